// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slots of the two tiers: who has them, who gives them up.
#include "compress/Codec.h"
#include "residency/PagerAllowed.h"

#include <cassert>
#include <cstring>

namespace quire::runtime {

bool Pager::Allowed::mayEvict(uint32_t number) const {
  const Page &page = pager_.pages_[number];
  if (page.state != State::Resident || page.pins != 0 || pager_.pinned_.holds(pager_.blockOf(number)) || (page.dirty && !pager_.canStore(page)))
    return false;
  if (pager_.isNamed(number))
    return false;
  if (demand_ || pager_.blockStep_[pager_.blockOf(number)] != pager_.stepNumber_)
    return true;
  return pager_.distance(pager_.groupOf(number)) > pager_.distance(group_);
}

void Pager::setRefused(Page &page, bool refused) {
  refused_ += refused;
  refused_ -= page.refused;
  page.refused = refused;
}

void Pager::become(Page &page, State state) {
  shadowed_ -= page.state == State::Resident && page.slow != none;
  page.state = state;
  shadowed_ += page.state == State::Resident && page.slow != none;
}

bool Pager::takeFast(uint32_t &slot) {
  taken_.clear();
  if (!fastSlots_.allocate(1, taken_))
    return false;
  slot = static_cast<uint32_t>(taken_.front());
  return true;
}

void Pager::freeFast(uint32_t slot, uint32_t page) {
  if (options_.poison || options_.zeroOnFree)
    std::memset(addressOf(page, slot), options_.poison ? 0xFF : 0, geometry_.pageBytes);
  if (stable_)
    stable_->spare(page);
  fastSlots_.release(slot);
}

/// Before anybody touches pages that have come to be used. Who waits for them has their memory committed now; what is fetched ahead costs the step nothing.
void Pager::keepWithinBudget(bool commits) {
  if (!stable_)
    return;
  Status kept = stable_->keepTo(fastLimit_);
  if (kept.ok() && commits)
    kept = stable_->commitUsed();
  else
    stable_->leaveUsed();
  if (!kept.ok())
    fail(std::move(kept));
}

/// A new page waits for what is still read from or written to its address, of a content that was discarded.
void Pager::waitForAddresses() {
  int64_t deadline = 0;
  for (size_t i = 0; stable_ && i < fresh_.size();) {
    bool there = true;
    for (drain(); there && stable_->isUsed(fresh_[i]); drain()) {
      if (deadline == 0)
        deadline = deadlineFromNow();
      flush(Mover::Urgency::Demand);
      there = mover_->wait(deadline);
    }
    if (there) {
      ++i;
      continue;
    }
    fail(failure(QUIRE_NO_SPACE, "block %u: what is under way at its address does not end in time", blockOf(fresh_[i])));
    fresh_.erase(fresh_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// When all are taken, a resident page gives up the copy that it has below, unless
/// that is what it will come back as.
bool Pager::takeSlow(uint32_t &slot) {
  taken_.clear();
  if (slow_->slots().allocate(1, taken_)) {
    slot = static_cast<uint32_t>(taken_.front());
    return true;
  }
  for (size_t looked = 0; !slow_->lossy() && shadowed_ > 0 && looked < pages_.size(); ++looked) {
    Page &page = pages_[reclaimAt_];
    reclaimAt_ = reclaimAt_ + 1 == pages_.size() ? 0 : reclaimAt_ + 1;
    if (page.state != State::Resident || page.slow == none)
      continue;
    slot = page.slow;
    --shadowed_;
    page.slow = none;
    if (!page.dirty)
      ++counters_.seals; // it will have to be written back once more
    page.dirty = true;
    return true;
  }
  return false;
}

bool Pager::canStore(const Page &page) const {
  if (page.refused)
    return false;
  return page.slow != none || (shadowed_ > 0 && !slow_->lossy()) || slow_->slots().openCount() > 0;
}

/// Every fast slot may be in a transfer, so erasures have the spare ones only; what
/// is more waits for one of them to end.
void Pager::freeSlow(uint32_t slot) {
  if (!options_.zeroOnFree) {
    slow_->slots().release(slot);
    return;
  }
  if (erasing_ == spareFlights) {
    unerased_.push_back(slot);
    return;
  }
  ++erasing_;
  uint32_t index = begin(Transfer::Kind::Erase, none);
  flights_[index].transfer.slot = slot;
}

/// It is never used again.
void Pager::giveUp(uint32_t slot) {
  ++tierOf(slot).givenUp;
  ++quarantined_;
}

bool Pager::arenaHolds(const void *bytes, size_t count) const {
  return stable_ ? stable_->holds(bytes, count) : memmem(arena_.data(), arena_.size(), bytes, count) != nullptr;
}

/// A clean resident page keeps only its slow slot.
void Pager::evict(uint32_t number) {
  assert(pages_[number].state == State::Resident && !pages_[number].dirty && pages_[number].pins == 0);
  assert(!pinned_.holds(blockOf(number)));
  note(TraceEvent::Kind::Evict, number);
  policy_->removed(number, true);
  leave(number);
}

void Pager::leave(uint32_t number) {
  Page &page = pages_[number];
  uint32_t slot = page.fast;
  page.fast = none;
  page.brought = false;
  become(page, State::Slow);
  freeFast(slot, number);
}

Status Pager::noRoom(size_t pages) const {
  if (refused_ > 0)
    return failure(QUIRE_NO_SPACE, "%zu pages are wanted in the fast tier of %u, where %zu stay that codec %s of the slow tier does not take: "
                                   "their K or V are not finite, or out of its range; change %s, or raise memory.fast_bytes (--kv-bytes)",
                   pages, fastPages(), refused_, codecName(slow_->codec()), isSparse(slow_->codec()) ? "compress.sparse.ratio" : "compress.quant");
  return failure(QUIRE_NO_SPACE, "%zu pages are wanted in the fast tier, but no more can give way: the slow tier "
                                 "takes nothing, or not in time", pages);
}

/// Puts free fast slots for so many pages into slots_, or as many as there are
/// before one of them has been used, at least one; waits for pages that have to
/// be written back.
Status Pager::obtain(size_t loads, size_t fresh) {
  size_t count = loads + fresh;
  Allowed allowed(*this, true, 0);
  slots_.clear();
  int64_t deadline = 0, begun = 0;
  while (slots_.size() < count) {
    uint32_t slot;
    drain();
    if (takeFast(slot)) {
      slots_.push_back(slot);
      continue;
    }
    begun = begun == 0 ? clock_.now() : begun;
    bool asks = leaving_ < count - slots_.size();
    uint32_t victim = asks ? policy_->victim(allowed) : none;
    if (asks && victim == none && pinned_.giveUpOldest()) {
      counters_.pinsGivenUp = pinned_.givenUp();
      continue;
    }
    if (victim != none) {
      bool gone = !pages_[victim].dirty;
      if (gone)
        evict(victim);
      if (gone || startStore(victim, true)) {
        ++(slots_.size() < loads ? counters_.evictedForDemand : counters_.evictedForWrite);
        continue;
      }
    }
    flush(Mover::Urgency::Demand);
    if (mover_->pending() == 0 && !slots_.empty())
      return success();
    if (deadline == 0)
      deadline = deadlineFromNow();
    if (mover_->pending() > 0 && mover_->wait(deadline))
      continue;
    for (uint32_t taken : slots_)
      fastSlots_.release(taken);
    slots_.clear();
    return noRoom(count);
  }
  if (begun != 0)
    latencies_.makeRoom.record(static_cast<uint64_t>(clock_.now() - begun));
  return success();
}

} // namespace quire::runtime
