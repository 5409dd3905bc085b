// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pins: of single pages by hand, and of blocks that are to stay in the fast tier.
#include "residency/Pager.h"

#include <cstring>

namespace quire::runtime {

//===----------------------------------------------------------------------===//
// Pages by hand
//===----------------------------------------------------------------------===//

Status Pager::pin(uint32_t group, uint32_t block, bool write, char *&address) {
  if (group >= geometry_.groups || block >= blocks_ || inStep_)
    return failure(QUIRE_INVALID_ARGUMENT, "no page of block %u in group %u, or a step runs", block, group);
  uint32_t number = pageOf(group, block);
  Page &page = pages_[number];
  if (page.state == State::Absent && !write)
    return failure(QUIRE_INVALID_ARGUMENT, "block %u has no content", block);
  if (page.pins == UINT16_MAX)
    return failure(QUIRE_INVALID_ARGUMENT, "block %u is pinned too often", block);
  if (page.state == State::Resident && !write) { // there is nothing to bring in or to wait for
    countDemand(number);
    policy_->touched(number);
    page.brought = false;
    ++page.pins;
    address = addressOf(number);
    return success();
  }
  failure_ = success();
  bool fresh = page.state == State::Absent;
  want(number, !fresh, write);
  if (write)
    page.tokens = static_cast<int32_t>(geometry_.blockTokens); // nobody says which
  bringIn();
  ++page.pins;
  unpinHeld();
  if (!failure_.ok()) {
    --page.pins;
    return failure_;
  }
  address = addressOf(number);
  if (fresh && slow_->lossy())
    std::memset(address, 0, geometry_.pageBytes); // a codec wants numbers in all of them
  return success();
}

Status Pager::unpin(uint32_t group, uint32_t block) {
  if (group >= geometry_.groups || block >= blocks_ || pages_[pageOf(group, block)].pins == 0)
    return failure(QUIRE_INVALID_ARGUMENT, "block %u is not pinned in group %u", block, group);
  --pages_[pageOf(group, block)].pins;
  return success();
}

Status Pager::read(uint32_t block) {
  char *ignored;
  for (uint32_t group = 0; group < geometry_.groups; ++group) {
    if (pages_[pageOf(group, block)].state == State::Absent)
      continue;
    QUIRE_TRY(pin(group, block, false, ignored));
    (void)unpin(group, block);
  }
  return success();
}

Status Pager::copy(uint32_t from, uint32_t to) {
  for (uint32_t group = 0; group < geometry_.groups; ++group) {
    if (pages_[pageOf(group, from)].state == State::Absent)
      continue;
    char *source, *target;
    QUIRE_TRY(pin(group, from, false, source));
    Status made = pin(group, to, true, target);
    if (made.ok()) {
      std::memcpy(target, source, geometry_.pageBytes);
      pages_[pageOf(group, to)].tokens = pages_[pageOf(group, from)].tokens;
      (void)unpin(group, to);
    }
    (void)unpin(group, from);
    if (!made.ok()) {
      discard(to);
      return made;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void Pager::setPinBudget(double share) {
  pinShare_ = share;
  pinned_.setBudget(static_cast<uint32_t>(share * fastPages()) / geometry_.groups);
  counters_.pinsGivenUp = pinned_.givenUp();
}

/// What is on its way out stays, and what is out is fetched if there is room; if
/// not, the next step that reads it brings it in.
void Pager::pinBlock(uint32_t block, uint32_t times) {
  pinned_.pin(block, times);
  counters_.pinsGivenUp = pinned_.givenUp();
  if (!pinned_.holds(block))
    return;
  drain();
  for (uint32_t group = 0; group < geometry_.groups; ++group) {
    uint32_t number = pageOf(group, block);
    rescue(number);
    if (pages_[number].state == State::Slow)
      prefetchPage(number);
  }
  flush(Mover::Urgency::Prefetch);
}

void Pager::unpinBlock(uint32_t block, uint32_t times) { pinned_.unpin(block, times); }

Status Pager::unload(uint32_t block) {
  if (pinned_.holds(block))
    return success();
  Status status;
  for (uint32_t group = 0; group < geometry_.groups && status.ok(); ++group) {
    uint32_t number = pageOf(group, block);
    Page &page = pages_[number];
    if (page.pins > 0 || !waitFor(number, deadlineFromNow()) || page.state != State::Resident)
      continue;
    if (page.dirty && !canStore(page))
      settle(); // slots that are being erased are free then
    if (!page.dirty)
      evict(number);
    else if (!canStore(page) || !startStore(number, true))
      status = failure(QUIRE_NO_SPACE, "the slow tier takes no page of block %u", block);
  }
  flush(Mover::Urgency::WriteBack);
  return status;
}

bool Pager::isUnloaded(uint32_t block) const {
  bool away = true;
  for (uint32_t group = 0; group < geometry_.groups; ++group) {
    const Page &page = pages_[pageOf(group, block)];
    away = away && (page.fast == none || page.pins > 0);
  }
  return away || pinned_.holds(block);
}

void Pager::observe(uint32_t block, float mass) {
  for (uint32_t group = 0; group < geometry_.groups; ++group)
    policy_->observed(pageOf(group, block), mass);
}

Status Pager::validatePins() const {
  QUIRE_TRY(pinned_.validate());
  for (uint32_t number = 0; number < pages_.size(); ++number)
    if (pages_[number].leaving && pinned_.holds(blockOf(number)))
      return failure(QUIRE_INVARIANT_BROKEN, "block %u is held, but a page of it leaves", blockOf(number));
  return success();
}

} // namespace quire::runtime
