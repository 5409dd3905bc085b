// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An address for every page of a pool, and memory of the system for those that are in the fast tier.
#ifndef QUIRE_RUNTIME_RESIDENCY_STABLEPAGES_H
#define QUIRE_RUNTIME_RESIDENCY_STABLEPAGES_H

#include "core/MappedMemory.h"
#include "residency/PageGeometry.h"

#include <memory>
#include <vector>

namespace quire::runtime {

/// One range of addresses has a place for each page, in the order of their numbers, and behind those of
/// each group one more, its grave, for what stands in for pages that are lost. A page is used, or spare, or has no memory. Spare ones
/// keep theirs until others want it: pages with memory are never more than keepTo() was told, once it has succeeded.
/// Nobody else knows of memory here, so that nothing may touch a page that is not used.
class StablePages {
public:
  /// QUIRE_INVALID_ARGUMENT where the system does not take memory back.
  static Status create(const PageGeometry &geometry, uint32_t blocks, uint32_t mostUsed, std::unique_ptr<StablePages> &out);

  char *group(uint32_t group) const { return memory_.data() + uint64_t(group) * (blocks_ + 1) * stride_; }
  char *address(uint32_t page) const { return memory_.data() + placeOf(page) * stride_; }
  /// In a block table, whose numbers are those of blocks.
  uint32_t graveIndex() const { return blocks_; }

  bool isUsed(uint32_t page) const { return state_[page] == used; }
  /// Not to be touched before keepTo() has succeeded.
  void use(uint32_t page);
  /// Its memory may go back from now on.
  void spare(uint32_t page);
  /// Gives memory of spare pages back until no more than `pages` have any. QUIRE_OUT_OF_MEMORY: the system
  /// does not take it.
  Status keepTo(uint32_t pages);
  /// Commits the memory of those that came to be used since the last call, neighbours in one call of the system, which takes half the time of
  /// touching them. Or leaves that to who touches them.
  Status commitUsed();
  void leaveUsed() { untouched_.clear(); }
  /// Commits memory for spare pages until `pages` have some: that of the first blocks.
  Status fillTo(uint32_t pages);
  void emptyGrave(uint32_t group);

  uint64_t bytesWithMemory() const { return withMemory_ * stride_; }
  uint64_t calls() const { return calls_; }          // that gave memory back
  uint64_t bytesGivenBack() const { return bytesGivenBack_; }
  /// Whether the bytes lie in a page that has memory.
  bool holds(const void *bytes, size_t count) const;
  Status validate(size_t usedPages, uint32_t most) const;

  /// Of a page, beside its memory: the state, and the system's own table of it.
  static uint64_t tableBytesPerPage(const PageGeometry &geometry);

private:
  static constexpr uint32_t nothing = UINT32_MAX, used = UINT32_MAX - 1; // otherwise the place in spare_

  StablePages(const PageGeometry &geometry, uint32_t blocks);
  uint64_t placeOf(uint32_t page) const { return uint64_t(page) + page / blocks_; }
  size_t runEndingAt(size_t last, size_t first) const;
  void number(size_t first);
  Status commit(std::vector<uint32_t> &pages);

  MappedMemory memory_;
  uint32_t blocks_;
  uint64_t stride_;
  std::vector<uint32_t> state_; // [pages]
  std::vector<uint32_t> untouched_; // perhaps
  std::vector<uint32_t> spare_; // the last ones give up their memory first
  uint64_t withMemory_ = 0;
  uint64_t calls_ = 0, bytesGivenBack_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_STABLEPAGES_H
