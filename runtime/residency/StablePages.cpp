// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory that comes and goes under addresses that stay.
#include "residency/StablePages.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace quire::runtime {

StablePages::StablePages(const PageGeometry &geometry, uint32_t blocks)
    : blocks_(blocks), stride_(geometry.pageStride), state_(size_t(blocks) * geometry.groups, nothing) {}

uint64_t StablePages::tableBytesPerPage(const PageGeometry &geometry) {
  return sizeof(uint32_t) + geometry.pageStride / MappedMemory::systemPage() * sizeof(void *);
}

Status StablePages::create(const PageGeometry &geometry, uint32_t blocks, uint32_t mostUsed, std::unique_ptr<StablePages> &out) {
  assert(geometry.pageStride % MappedMemory::systemPage() == 0 && "its pages are separate");
  std::unique_ptr<StablePages> made(new StablePages(geometry, blocks));
  made->spare_.reserve(mostUsed);
  made->untouched_.reserve(mostUsed);
  bool huge = geometry.pageStride % MappedMemory::hugePage == 0;
  uint64_t bytes = uint64_t(geometry.groups) * (blocks + uint64_t(1)) * geometry.pageStride;
  QUIRE_TRY(made->memory_.map(bytes, huge ? MappedMemory::Pages::Huge : MappedMemory::Pages::Single));
  if (!made->memory_.giveBack(0, geometry.pageStride))
    return failure(QUIRE_INVALID_ARGUMENT, "stable_va: expected memory that can go back to the system, but got memory that is locked");
  QUIRE_TRY(made->fillTo(mostUsed));
  out = std::move(made);
  return success();
}

void StablePages::use(uint32_t page) {
  uint32_t place = state_[page];
  assert(place != used);
  state_[page] = used;
  if (place == nothing) {
    ++withMemory_;
    untouched_.push_back(page);
    return;
  }
  uint32_t last = spare_.back();
  spare_.pop_back();
  if (last == page)
    return;
  spare_[place] = last;
  state_[last] = place;
}

void StablePages::spare(uint32_t page) {
  assert(state_[page] == used);
  state_[page] = static_cast<uint32_t>(spare_.size());
  spare_.push_back(page);
}

void StablePages::number(size_t first) {
  for (size_t i = first; i < spare_.size(); ++i)
    state_[spare_[i]] = static_cast<uint32_t>(i);
}

/// First of the neighbours in spare_, not before `first`, whose addresses end with that of `last`.
size_t StablePages::runEndingAt(size_t last, size_t first) const {
  while (last > first && placeOf(spare_[last - 1]) + 1 == placeOf(spare_[last]))
    --last;
  return last;
}

Status StablePages::keepTo(uint32_t pages) {
  if (withMemory_ <= pages)
    return success();
  uint64_t wanted = std::min<uint64_t>(withMemory_ - pages, spare_.size());
  size_t first = spare_.size() - wanted;
  std::sort(spare_.begin() + static_cast<std::ptrdiff_t>(first), spare_.end());
  number(first);
  while (spare_.size() > first) {
    size_t begin = runEndingAt(spare_.size() - 1, first), count = spare_.size() - begin;
    if (!memory_.giveBack(placeOf(spare_[begin]) * stride_, count * stride_))
      break;
    ++calls_;
    bytesGivenBack_ += count * stride_;
    withMemory_ -= count;
    for (; count > 0; --count) {
      state_[spare_.back()] = nothing;
      spare_.pop_back();
    }
  }
  if (withMemory_ <= pages)
    return success();
  return failure(QUIRE_OUT_OF_MEMORY, "the fast tier has memory for %llu pages, but should have it for %u: the system does not take that of others back",
                 static_cast<unsigned long long>(withMemory_), pages);
}

/// Puts them in order.
Status StablePages::commit(std::vector<uint32_t> &pages) {
  std::sort(pages.begin(), pages.end());
  for (size_t begin = 0, end = 0; begin < pages.size(); begin = end) {
    for (end = begin + 1; end < pages.size() && placeOf(pages[end - 1]) + 1 == placeOf(pages[end]);)
      ++end;
    QUIRE_TRY(memory_.populate(placeOf(pages[begin]) * stride_, (end - begin) * stride_));
  }
  return success();
}

Status StablePages::commitUsed() {
  untouched_.erase(std::remove_if(untouched_.begin(), untouched_.end(), [this](uint32_t page) { return !isUsed(page); }), untouched_.end());
  Status status = commit(untouched_);
  untouched_.clear();
  return status;
}

Status StablePages::fillTo(uint32_t pages) {
  size_t first = spare_.size(), groups = state_.size() / blocks_;
  for (uint32_t block = 0; block < blocks_; ++block)
    for (size_t group = 0; group < groups && withMemory_ + spare_.size() - first < pages; ++group)
      if (uint32_t page = static_cast<uint32_t>(group) * blocks_ + block; state_[page] == nothing)
        spare_.push_back(page);
  std::vector<uint32_t> byAddress(spare_.begin() + static_cast<std::ptrdiff_t>(first), spare_.end());
  Status status = commit(byAddress);
  withMemory_ += byAddress.size();
  number(first);
  if (!status.ok())
    (void)keepTo(static_cast<uint32_t>(withMemory_ - byAddress.size()));
  return status;
}

void StablePages::emptyGrave(uint32_t group) {
  char *grave = this->group(group) + blocks_ * stride_;
  if (!memory_.giveBack(static_cast<size_t>(grave - memory_.data()), stride_))
    std::memset(grave, 0, stride_);
}

bool StablePages::holds(const void *bytes, size_t count) const {
  for (uint32_t page = 0; page < state_.size(); ++page)
    if (state_[page] != nothing && memmem(address(page), stride_, bytes, count) != nullptr)
      return true;
  return false;
}

Status StablePages::validate(size_t usedPages, uint32_t most) const {
  size_t inUse = 0, spare = 0;
  for (uint32_t page = 0; page < state_.size(); ++page) {
    inUse += state_[page] == used;
    bool listed = state_[page] < spare_.size() && spare_[state_[page]] == page;
    spare += listed;
    if (state_[page] != used && state_[page] != nothing && !listed)
      return failure(QUIRE_INVARIANT_BROKEN, "page %u is spare, but is not listed", page);
  }
  if (inUse != usedPages || spare != spare_.size() || inUse + spare != withMemory_)
    return failure(QUIRE_INVARIANT_BROKEN, "%zu pages with memory are used and %zu spare, but %zu are in the fast tier and %llu counted", inUse, spare,
                   usedPages, static_cast<unsigned long long>(withMemory_));
  if (withMemory_ > most)
    return failure(QUIRE_INVARIANT_BROKEN, "%llu pages have memory, but the fast tier is one of %u", static_cast<unsigned long long>(withMemory_), most);
  return success();
}

} // namespace quire::runtime
