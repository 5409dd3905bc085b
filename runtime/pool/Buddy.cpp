// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Splitting, coalescing and checking of buddies (Knuth, The Art of Computer Programming 1, 2.5).
#include "pool/Buddy.h"

#include <algorithm>
#include <cassert>

namespace quire::runtime {

static int log2Floor(uint64_t value) { return 63 - __builtin_clzll(value); }

Buddy::Buddy(uint64_t bytes, uint64_t unit)
    : states_(static_cast<size_t>(bytes / unit), inside), links_(states_.size(), {noUnit, noUnit}), unit_(unit) {
  assert(unit != 0 && (unit & (unit - 1)) == 0 && "a unit is a power of two");
  assert(states_.size() <= (uint64_t(1) << 31));
  std::fill(std::begin(heads_), std::end(heads_), noUnit);
  for (uint64_t first = 0; first < states_.size();) {
    int order = log2Floor(states_.size() - first);
    if (first != 0)
      order = std::min(order, __builtin_ctzll(first));
    push(static_cast<uint32_t>(first), order);
    first += uint64_t(1) << order;
  }
}

void Buddy::push(uint32_t first, int order) {
  states_[first] = static_cast<uint8_t>(freeFlag | order);
  links_[first] = {noUnit, heads_[order]};
  if (heads_[order] != noUnit)
    links_[heads_[order]].previous = first;
  heads_[order] = first;
  listed_ |= 1u << order;
  freeUnits_ += uint64_t(1) << order;
}

void Buddy::remove(uint32_t first, int order) {
  Links links = links_[first];
  (links.previous == noUnit ? heads_[order] : links_[links.previous].next) = links.next;
  if (links.next != noUnit)
    links_[links.next].previous = links.previous;
  if (heads_[order] == noUnit)
    listed_ &= ~(1u << order);
  states_[first] = inside;
  freeUnits_ -= uint64_t(1) << order;
}

uint64_t Buddy::largestFree() const { return listed_ == 0 ? 0 : unit_ << log2Floor(listed_); }

double Buddy::externalFragmentation() const {
  if (freeUnits_ == 0)
    return 0;
  return 1.0 - static_cast<double>(largestFree()) / static_cast<double>(freeBytes());
}

uint64_t Buddy::extentBytes(uint64_t bytes) const {
  if (bytes <= unit_)
    return unit_;
  if (bytes > uint64_t(1) << 63)
    return 0;
  return uint64_t(1) << (log2Floor(bytes - 1) + 1);
}

uint64_t Buddy::allocate(uint64_t bytes) {
  uint64_t extent = extentBytes(bytes);
  int order = extent == 0 ? orders : log2Floor(extent / unit_);
  uint32_t fitting = order >= orders ? 0 : listed_ & ~((1u << order) - 1);
  if (fitting == 0) {
    failuresWithRoom_ += freeBytes() >= bytes;
    return none;
  }
  int found = __builtin_ctz(fitting);
  return take(heads_[found], found, order);
}

/// The lower part of a free extent of order `found`.
uint64_t Buddy::take(uint32_t first, int found, int order) {
  remove(first, found);
  while (found > order) {
    --found;
    push(first + (1u << found), found);
  }
  states_[first] = static_cast<uint8_t>(order);
  return first * unit_;
}

uint64_t Buddy::allocateBelow(uint64_t bytes, uint64_t limit) {
  uint64_t extent = extentBytes(bytes);
  int order = extent == 0 ? orders : log2Floor(extent / unit_), found = orders;
  uint32_t lowest = noUnit;
  for (int larger = order; larger < orders; ++larger)
    for (uint32_t first = heads_[larger]; first != noUnit; first = links_[first].next)
      if (first < lowest) {
        lowest = first;
        found = larger;
      }
  if (lowest == noUnit || lowest * unit_ + extent > limit)
    return none;
  return take(lowest, found, order);
}

uint64_t Buddy::sizeAt(uint64_t offset) const {
  uint64_t first = offset / unit_;
  if (offset % unit_ != 0 || first >= states_.size() || states_[first] >= freeFlag)
    return 0;
  return unit_ << states_[first];
}

bool Buddy::mayMerge(uint32_t buddy, int order) const {
  return buddy < states_.size() && states_[buddy] == (freeFlag | order);
}

bool Buddy::release(uint64_t offset) {
  uint64_t bytes = sizeAt(offset);
  if (bytes == 0)
    return false;
  uint32_t first = static_cast<uint32_t>(offset / unit_);
  int order = states_[first];
  states_[first] = inside;
  while (order + 1 < orders && mayMerge(first ^ (1u << order), order)) {
    uint32_t buddy = first ^ (1u << order);
    remove(buddy, order);
    first = std::min(first, buddy);
    ++order;
  }
  push(first, order);
  return true;
}

Status Buddy::validate() const {
  uint64_t freeUnits = 0, freeExtents = 0, listed = 0;
  for (uint64_t first = 0; first < states_.size();) {
    uint8_t state = states_[first];
    int order = state & ~freeFlag;
    uint64_t units = order < orders ? uint64_t(1) << order : 0;
    if (state == inside || units == 0 || first % units != 0 || first + units > states_.size())
      return failure(QUIRE_INVARIANT_BROKEN, "no extent begins at unit %llu", static_cast<unsigned long long>(first));
    for (uint64_t i = first + 1; i < first + units; ++i)
      if (states_[i] != inside)
        return failure(QUIRE_INVARIANT_BROKEN, "unit %llu is in two extents", static_cast<unsigned long long>(i));
    if (state & freeFlag) {
      if (order + 1 < orders && mayMerge(static_cast<uint32_t>(first ^ units), order))
        return failure(QUIRE_INVARIANT_BROKEN, "units %llu and its buddy are free, but not merged",
                       static_cast<unsigned long long>(first));
      freeUnits += units;
      ++freeExtents;
    }
    first += units;
  }
  for (int order = 0; order < orders; ++order) {
    if ((heads_[order] != noUnit) != ((listed_ >> order & 1) != 0))
      return failure(QUIRE_INVARIANT_BROKEN, "order %d is wrongly marked", order);
    uint32_t previous = noUnit;
    for (uint32_t first = heads_[order]; first != noUnit; first = links_[first].next) {
      if (!mayMerge(first, order) || links_[first].previous != previous || ++listed > freeExtents)
        return failure(QUIRE_INVARIANT_BROKEN, "free list of order %d is broken at unit %u", order, first);
      previous = first;
    }
  }
  if (listed != freeExtents || freeUnits != freeUnits_)
    return failure(QUIRE_INVARIANT_BROKEN, "expected %llu free units, but got %llu",
                   static_cast<unsigned long long>(freeUnits), static_cast<unsigned long long>(freeUnits_));
  return success();
}

} // namespace quire::runtime
