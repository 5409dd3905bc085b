// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The fast tier becomes smaller and larger again, within the range that was reserved for it.
#include "residency/Pager.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace quire::runtime {

/// Part of the fast pages that is not counted as room, so that there is always
/// a page to exchange others with; no more than the slow tier adds.
static constexpr uint64_t spareShare = 16;

uint64_t Pager::blocksIn(const PageGeometry &geometry, uint64_t fastPages, uint64_t slowPages, bool lossy) {
  uint64_t spare = std::max<uint64_t>(1, std::min(fastPages / spareShare, slowPages));
  uint64_t pages = fastPages > spare ? (lossy ? 0 : fastPages - spare) + slowPages : 0;
  return pages / geometry.groups;
}

int64_t Pager::blockLimitOf(uint64_t pages) const {
  return static_cast<int64_t>(
      std::min<uint64_t>(blocks_, blocksIn(geometry_, pages, slow_->slots().total() - quarantined_, slow_->lossy())));
}

Status Pager::checkResize(uint64_t pages) const {
  if (inStep_)
    return failure(QUIRE_INVALID_ARGUMENT, "the fast tier cannot be resized during a step");
  if (pages > fastSlots_.total() || blockLimitOf(pages) == 0)
    return failure(QUIRE_INVALID_ARGUMENT,
                   "expected a fast tier of at most %u pages, which were reserved, and of one block, but got %llu pages",
                   fastSlots_.total(), static_cast<unsigned long long>(pages));
  for (const Page &page : pages_)
    if (!stable_ && page.pins > 0 && page.fast != none && page.fast >= pages)
      return failure(QUIRE_INVALID_ARGUMENT,
                     "a page that is pinned by hand lies in the part of the fast tier that is given up");
  return success();
}

Status Pager::resize(uint64_t pages) {
  QUIRE_TRY(checkResize(pages));
  QUIRE_TRY(pages < fastLimit_ ? shrink(static_cast<uint32_t>(pages)) : grow(static_cast<uint32_t>(pages)));
  fastLimit_ = static_cast<uint32_t>(pages);
  blockLimit_ = blockLimitOf(pages);
  setPinBudget(pinShare_);
  return success();
}

/// Frees as many slots as are given up, wherever they lie, and moves what lies in the
/// part that goes into them.
Status Pager::shrink(uint32_t pages) {
  QUIRE_TRY(obtain(0, fastLimit_ - pages));
  bool enough = slots_.size() == fastLimit_ - pages;
  settle();
  for (uint32_t slot; takeFast(slot);)
    slots_.push_back(slot);
  std::sort(slots_.begin(), slots_.end());
  Status status;
  if (!enough || mover_->pending() > 0)
    status = failure(QUIRE_NO_SPACE, enough ? "a transfer of the slow tier does not end in time" : "the slow tier takes too few pages");
  else if (stable_)
    status = stable_->keepTo(pages);
  size_t used = status.ok() ? movePages(pages) : 0;
  for (; used < slots_.size() && (slots_[used] < pages || !status.ok()); ++used)
    fastSlots_.release(slots_[used]);
  slots_.clear();
  if (status.ok() && !stable_)
    arena_.giveBack(pages * geometry_.pageStride, (fastLimit_ - pages) * geometry_.pageStride);
  return status;
}

/// Into slots_, from its beginning; gives the number of slots that were taken. With addresses that stay only the slots change.
size_t Pager::movePages(uint32_t pages) {
  size_t used = 0;
  for (Page &page : pages_) {
    if (page.fast == none || page.fast < pages)
      continue;
    assert(page.state == State::Resident && slots_[used] < pages);
    uint32_t slot = slots_[used++];
    if (!stable_) {
      std::memcpy(slotAddress(slot), slotAddress(page.fast), geometry_.pageBytes);
      if (options_.zeroOnFree || options_.poison) // the system takes whole pages of its own only
        std::memset(slotAddress(page.fast), 0, geometry_.pageBytes);
      counters_.bytesCompacted += geometry_.pageBytes;
    }
    page.fast = slot;
  }
  return used;
}

Status Pager::grow(uint32_t pages) {
  uint64_t begin = fastLimit_ * geometry_.pageStride, bytes = (pages - fastLimit_) * geometry_.pageStride;
  QUIRE_TRY(stable_ ? stable_->fillTo(pages) : arena_.commit(begin, bytes));
  if (options_.poison && !stable_)
    std::memset(arena_.data() + begin, 0xFF, bytes);
  for (uint32_t slot = fastLimit_; slot < pages; ++slot)
    fastSlots_.release(slot);
  return success();
}

} // namespace quire::runtime
