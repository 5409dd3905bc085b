// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One free list a member.
#include "tier/TierSlots.h"

#include <algorithm>
#include <cassert>

namespace quire::runtime {

TierSlots::TierSlots(std::vector<Member> members) : members_(std::move(members)) {
  assert(!members_.empty());
  for (const Member &member : members_) {
    parts_.push_back({total_, BlockAllocator(member.slots, {})});
    total_ += member.slots;
  }
  assert(total_ <= INT32_MAX);
}

uint32_t TierSlots::freeCount() const {
  uint32_t count = 0;
  for (const Part &part : parts_)
    count += part.slots.freeCount();
  return count;
}

uint32_t TierSlots::openCount() const {
  uint32_t count = 0;
  for (const Part &part : parts_)
    count += part.open ? part.slots.freeCount() : 0;
  return count;
}

bool TierSlots::allOpen() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const Part &part) { return part.open; });
}

bool TierSlots::allocate(uint32_t count, std::vector<int32_t> &out) {
  if (count > openCount())
    return false;
  out.reserve(out.size() + count); // the only step that can throw comes first
  for (Part &part : parts_) {
    uint32_t here = part.open ? std::min(count, part.slots.freeCount()) : 0;
    size_t begin = out.size();
    part.slots.allocate(here, out);
    for (size_t i = begin; i < out.size(); ++i)
      out[i] += static_cast<int32_t>(part.first);
    count -= here;
  }
  return true;
}

size_t TierSlots::memberOf(uint32_t slot) const {
  assert(slot < total_);
  size_t member = parts_.size() - 1;
  while (parts_[member].first > slot)
    --member;
  return member;
}

void TierSlots::release(uint32_t slot) {
  Part &part = parts_[memberOf(slot)];
  part.slots.release(slot - part.first);
}

Status TierSlots::validate() const {
  for (const Part &part : parts_)
    QUIRE_TRY(part.slots.validate());
  return success();
}

} // namespace quire::runtime
