// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sorts transfers by member and translates their slots.
#include "tier/StackedTier.h"

#include <algorithm>
#include <cassert>
#include <cinttypes>

namespace quire::runtime {

static std::string namesOf(const std::vector<std::unique_ptr<Tier>> &tiers) {
  std::string names;
  for (const std::unique_ptr<Tier> &tier : tiers)
    names += (names.empty() ? "" : "+") + tier->name();
  return names;
}

static std::vector<TierSlots::Member> slotsOf(const std::vector<std::unique_ptr<Tier>> &tiers) {
  std::vector<TierSlots::Member> members;
  for (const std::unique_ptr<Tier> &tier : tiers)
    members.push_back({tier->name(), tier->slots().total()});
  return members;
}

StackedTier::StackedTier(std::vector<std::unique_ptr<Tier>> members)
    : Tier(namesOf(members), slotsOf(members), members.front()->pageBytes()), members_(std::move(members)), inside_(batch) {
  assert(std::all_of(members_.begin(), members_.end(), [&](const auto &member) { return member->pageBytes() == pageBytes(); }));
  list_.reserve(batch);
  from_.reserve(batch);
}

void StackedTier::run(Transfer *const *transfers, size_t count) {
  for (size_t at = 0; at < count; at += batch)
    runSome(transfers + at, std::min(batch, count - at));
}

void StackedTier::runSome(Transfer *const *transfers, size_t count) {
  for (size_t member = 0; member < members_.size(); ++member) {
    uint32_t first = slots().firstOf(member), end = first + slots().members()[member].slots;
    list_.clear();
    from_.clear();
    for (size_t i = 0; i < count; ++i) {
      if (transfers[i]->slot < first || transfers[i]->slot >= end)
        continue;
      Transfer &inner = inside_[list_.size()];
      inner = *transfers[i];
      inner.slot -= first;
      list_.push_back(&inner);
      from_.push_back(transfers[i]);
    }
    if (list_.empty())
      continue;
    members_[member]->run(list_.data(), list_.size());
    for (size_t i = 0; i < list_.size(); ++i)
      from_[i]->status = std::move(list_[i]->status);
  }
  for (size_t i = 0; i < count; ++i)
    if (transfers[i]->slot >= slots().total())
      transfers[i]->status = failure(QUIRE_INVALID_ARGUMENT, "expected a slot below %" PRIu32 ", but got %" PRIu32, slots().total(), transfers[i]->slot);
}

} // namespace quire::runtime
