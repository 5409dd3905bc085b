// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The list of watched pages in order of their last read.
#include "compress/IdleTracker.h"

#include <cassert>

namespace quire::runtime {

IdleTracker::IdleTracker(uint32_t pages, uint64_t idleSteps) : pages_(pages), idleSteps_(idleSteps) {}

void IdleTracker::read(uint32_t page, uint64_t step) {
  assert((tail_ == none || pages_[tail_].lastRead <= step) && "steps go forward");
  forget(page);
  Page &p = pages_[page];
  p.watched = true;
  p.lastRead = step;
  p.previous = tail_;
  (tail_ == none ? head_ : pages_[tail_].next) = page;
  tail_ = page;
  ++watched_;
}

void IdleTracker::forget(uint32_t page) {
  Page &p = pages_[page];
  if (!p.watched)
    return;
  (p.previous == none ? head_ : pages_[p.previous].next) = p.next;
  (p.next == none ? tail_ : pages_[p.next].previous) = p.previous;
  p = {};
  --watched_;
}

size_t IdleTracker::take(uint64_t step, uint32_t *out, size_t most) {
  size_t taken = 0;
  while (taken < most && head_ != none && step - pages_[head_].lastRead >= idleSteps_) {
    out[taken++] = head_;
    forget(head_);
  }
  return taken;
}

Status IdleTracker::validate() const {
  uint32_t count = 0, previous = none;
  for (uint32_t page = head_; page != none; page = pages_[page].next) {
    if (page >= pages_.size() || !pages_[page].watched || pages_[page].previous != previous || count >= watched_)
      return failure(QUIRE_INVARIANT_BROKEN, "list of idle pages is broken at page %u", page);
    if (previous != none && pages_[previous].lastRead > pages_[page].lastRead)
      return failure(QUIRE_INVARIANT_BROKEN, "page %u was read before its predecessor", page);
    previous = page;
    ++count;
  }
  if (previous != tail_ || count != watched_)
    return failure(QUIRE_INVARIANT_BROKEN, "expected %u watched pages, but got %u", watched_, count);
  return success();
}

} // namespace quire::runtime
