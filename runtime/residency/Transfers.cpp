// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages on their way between the tiers: begun here, carried by the mover, and what their ends mean.
#include "residency/Pager.h"

#include <cassert>

namespace quire::runtime {

/// A transfer that may succeed when it is repeated is, so often.
static constexpr uint8_t maxAttempts = 4;

/// So many stores in a row that fail stand for a tier that takes no more.
static constexpr uint32_t maxFailedStores = 16;

uint32_t Pager::begin(Transfer::Kind kind, uint32_t number) {
  assert(!freeFlights_.empty() && "one for each fast slot, and more for erasures");
  uint32_t index = freeFlights_.back();
  freeFlights_.pop_back();
  Flight &flight = flights_[index];
  flight.page = flight.home = number;
  flight.attempts = 1;
  flight.transfer.kind = kind;
  flight.transfer.cookie = index;
  flight.transfer.page = nullptr;
  flight.fast = none;
  if (number != none) {
    Page &page = pages_[number];
    page.transfer = index;
    flight.fast = page.fast;
    flight.transfer.page = addressOf(number);
    flight.transfer.slot = page.slow;
    flight.transfer.tag = uint64_t(page.version) << 32 | number;
    flight.transfer.group = groupOf(number);
    flight.transfer.tokens = page.tokens;
  }
  batch_.push_back(&flight.transfer);
  return index;
}

void Pager::flush(Mover::Urgency urgency) {
  keepWithinBudget(urgency == Mover::Urgency::Demand);
  if (!batch_.empty())
    mover_->submit(*slow_, batch_.data(), batch_.size(), urgency);
  batch_.clear();
}

/// False if the slow tier has no room, or its codec refused the page.
bool Pager::startStore(uint32_t number, bool leaving) {
  Page &page = pages_[number];
  assert(page.state == State::Resident && page.dirty);
  if (page.refused)
    return false;
  if (page.slow == none) {
    uint32_t slot;
    if (!takeSlow(slot))
      return false;
    page.slow = slot;
    ++shadowed_;
  }
  if (digests_)
    digests_->make(groupOf(number), blockOf(number), addressOf(number), page.tokens);
  ++page.version;
  page.leaving = leaving;
  if (leaving) {
    note(TraceEvent::Kind::Evict, number);
    policy_->removed(number, true);
    ++leaving_;
  }
  become(page, State::Storing);
  begin(Transfer::Kind::Store, number);
  return true;
}

void Pager::startLoad(uint32_t number, uint32_t slot) {
  Page &page = pages_[number];
  assert(page.state == State::Slow);
  page.fast = slot;
  if (stable_)
    stable_->use(number);
  become(page, State::Loading);
  begin(Transfer::Kind::Load, number);
}

void Pager::drain() {
  while (size_t count = mover_->take(finished_.data(), finished_.size()))
    for (size_t i = 0; i < count; ++i)
      finish(static_cast<uint32_t>(finished_[i]->cookie));
}

void Pager::end(uint32_t index) { freeFlights_.push_back(index); }

void Pager::finish(uint32_t index) {
  Flight &flight = flights_[index];
  bool wanted = flight.page != none || flight.transfer.kind == Transfer::Kind::Erase;
  if (wanted && flight.transfer.status.code() == QUIRE_IO_ERROR && flight.attempts < maxAttempts) {
    ++flight.attempts;
    ++counters_.retries;
    ++tierOf(flight.transfer.slot).retries;
    Transfer *again = &flight.transfer;
    mover_->submit(*slow_, &again, 1, Mover::Urgency::Demand);
    return;
  }
  if (flight.page == none)
    finishOrphan(index);
  else if (flight.transfer.kind == Transfer::Kind::Load)
    finishLoad(index);
  else
    finishStore(index);
}

/// The content was discarded on the way, or the transfer was an erasure. A slot that
/// cannot be erased is never used again.
void Pager::finishOrphan(uint32_t index) {
  Flight &flight = flights_[index];
  if (flight.fast != none)
    freeFast(flight.fast, flight.home);
  uint32_t slot = flight.transfer.slot;
  bool erasure = flight.transfer.kind == Transfer::Kind::Erase, ok = flight.transfer.status.ok();
  end(index);
  if (!erasure) {
    freeSlow(slot);
  } else {
    --erasing_;
    if (ok) {
      slow_->slots().release(slot);
    } else {
      giveUp(slot);
      ++tierOf(slot).erasuresFailed;
      ++counters_.erasuresFailed;
    }
    if (!unerased_.empty()) {
      slot = unerased_.back();
      unerased_.pop_back();
      freeSlow(slot);
    }
  }
  flush(Mover::Urgency::WriteBack);
}

void Pager::finishLoad(uint32_t index) {
  uint32_t number = flights_[index].page;
  Page &page = pages_[number];
  bool ok = flights_[index].transfer.status.ok();
  end(index);
  page.transfer = none;
  prefetching_ -= page.brought;
  if (!ok)
    return lose(number);
  become(page, State::Resident);
  ++tierOf(page.slow).pagesIn;
  noteTransfer(TraceEvent::Kind::Load, number, flights_[index].transfer);
  policy_->inserted(number, !page.brought);
}

void Pager::finishStore(uint32_t index) {
  uint32_t number = flights_[index].page;
  Page &page = pages_[number];
  quire_status code = flights_[index].transfer.status.code();
  size_t member = slow_->slots().memberOf(page.slow);
  bool left = page.leaving;
  end(index);
  page.transfer = none;
  page.leaving = false;
  leaving_ -= left;
  become(page, State::Resident);
  if (code == QUIRE_OK) {
    failedStores_[member] = 0;
    ++tierCounters_[member].pagesOut;
    page.dirty = false;
    ++counters_.writeBacks;
    counters_.bytesOut += geometry_.pageBytes;
    noteTransfer(TraceEvent::Kind::Store, number, flights_[index].transfer);
    if (left)
      leave(number);
    return;
  }
  if (left)
    policy_->inserted(number, true);
  --shadowed_;
  uint32_t slot = page.slow;
  page.slow = none;
  if (code == QUIRE_INVALID_ARGUMENT) { // nothing is wrong with the slot
    setRefused(page, true);
    ++counters_.refused;
    freeSlow(slot);
    return flush(Mover::Urgency::WriteBack);
  }
  // The page stays, and its slot is given up; the next one comes from another tier once this one takes no more.
  counters_.noSpace += code == QUIRE_NO_SPACE;
  tierCounters_[member].noSpace += code == QUIRE_NO_SPACE;
  if (code == QUIRE_NO_SPACE || ++failedStores_[member] >= maxFailedStores)
    slow_->slots().close(member);
  giveUp(slot);
}

/// The page's fast slot is free again; its slow slot is never used again, since
/// what failed once is likely to fail once more.
void Pager::lose(uint32_t number) {
  Page &page = pages_[number];
  if (page.fast != none)
    freeFast(page.fast, number);
  giveUp(page.slow);
  ++tierOf(page.slow).pagesLost;
  ++counters_.pagesLost;
  page.fast = none;
  page.slow = none;
  page.brought = false;
  become(page, State::Lost);
}

/// Leaves a transfer that does not come back in time to itself.
void Pager::abandon(uint32_t number) {
  Page &page = pages_[number];
  Flight &flight = flights_[page.transfer];
  flight.page = none;
  prefetching_ -= page.brought;
  ++tierOf(page.slow).pagesLost;
  ++counters_.pagesLost;
  page.transfer = none;
  page.fast = none; // freed with the transfer, as the slow slot
  page.slow = none;
  page.brought = false;
  become(page, State::Lost);
}

int64_t Pager::deadlineFromNow() const {
  int64_t now = clock_.now();
  return options_.deadlineNs > INT64_MAX - now ? INT64_MAX : now + options_.deadlineNs;
}

/// Waits until the page is in no transfer; false: the deadline passed first.
bool Pager::waitFor(uint32_t number, int64_t deadline) {
  for (;;) {
    drain();
    if (pages_[number].transfer == none)
      return true;
    if (!mover_->wait(deadline))
      return false;
  }
}

void Pager::discard(uint32_t block) {
  assert(pinned_.pins(block) == 0);
  for (uint32_t group = 0; group < geometry_.groups; ++group) {
    uint32_t number = pageOf(group, block);
    Page &page = pages_[number];
    if (page.state == State::Absent)
      continue;
    if (!mass_.empty())
      mass_[number] = 0;
    if (digests_)
      digests_->erase(group, block);
    note(TraceEvent::Kind::Free, number);
    policy_->removed(number, false);
    leaving_ -= page.leaving;
    prefetching_ -= page.state == State::Loading && page.brought;
    bool under = page.transfer != none;
    if (under && mover_->cancel(flights_[page.transfer].transfer)) {
      counters_.prefetchCancelled += page.state == State::Loading;
      end(page.transfer);
      under = false;
    }
    if (under) {
      flights_[page.transfer].page = none;
      become(page, State::Absent);
    } else {
      become(page, State::Absent);
      if (page.fast != none)
        freeFast(page.fast, number);
      if (page.slow != none)
        freeSlow(page.slow);
    }
    setRefused(page, false);
    uint32_t version = page.version;
    page = Page();
    page.version = version;
  }
  flush(Mover::Urgency::WriteBack);
}

void Pager::settle() {
  flush(Mover::Urgency::Demand);
  int64_t deadline = deadlineFromNow();
  do
    drain();
  while (mover_->pending() > 0 && mover_->wait(deadline));
  drain();
}

} // namespace quire::runtime
