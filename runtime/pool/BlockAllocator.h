// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bookkeeping of numbered blocks: a free list, reference counts and generations. Knows nothing of their memory.
#ifndef QUIRE_RUNTIME_POOL_BLOCKALLOCATOR_H
#define QUIRE_RUNTIME_POOL_BLOCKALLOCATOR_H

#include "core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace quire::runtime {

/// Blocks 0 .. total-1, each either free (on the intrusive list, no references),
/// in use (off the list, at least one reference) or withheld (neither). Allocation
/// and release are O(1) per block and never fail halfway.
class BlockAllocator {
public:
  struct Options {
    bool shuffle = false;
    uint64_t seed = 0;
  };

  BlockAllocator(uint32_t total, const Options &options);

  /// Most memory that a block takes here, at any time.
  static constexpr uint64_t bytesPerBlock() { return sizeof(Block) + sizeof(uint32_t); }

  uint32_t total() const { return static_cast<uint32_t>(blocks_.size()); }
  uint32_t freeCount() const { return freeCount_; }
  uint32_t withheldCount() const { return withheldCount_; }
  uint32_t usedCount() const { return total() - freeCount_ - withheldCount_; }
  uint32_t peak() const { return peak_; }
  uint64_t allocations() const { return allocations_; }

  /// Appends `count` blocks with one reference each to `out` and returns true;
  /// or returns false and changes nothing.
  bool allocate(uint32_t count, std::vector<int32_t> &out);

  /// Adds a reference to a block in use. False: the count is at its limit.
  bool retain(uint32_t block);

  /// Drops a reference of a block in use; true if that made it free.
  bool release(uint32_t block);

  /// The free block `to` takes over all references to `from`, which becomes free.
  void move(uint32_t from, uint32_t to);

  /// Takes a free block out of circulation, and brings it back. O(1).
  void withhold(uint32_t block);
  void bringBack(uint32_t block);
  bool isWithheld(uint32_t block) const { return blocks_[block].previous == away; }

  uint32_t references(uint32_t block) const { return blocks_[block].references; }

  /// Number of times the block became free, plus one.
  uint32_t generation(uint32_t block) const { return blocks_[block].generation; }

  /// Checks the list, the counts and the split into free, in use and withheld.
  Status validate() const;

private:
  friend struct BlockAllocatorDamage; // by a test, for validate() to find

  static constexpr uint32_t none = UINT32_MAX;
  static constexpr uint32_t away = UINT32_MAX - 1; // in `previous`: withheld

  struct Block {
    uint32_t previous = none;
    uint32_t next = none;
    uint32_t references = 0;
    uint32_t generation = 1;
  };

  void pushFront(uint32_t block);
  void pushBack(uint32_t block);
  uint32_t popFront();
  void unlink(uint32_t block);
  uint64_t random();

  std::vector<Block> blocks_;
  uint32_t head_ = none;
  uint32_t tail_ = none;
  uint32_t freeCount_ = 0;
  uint32_t withheldCount_ = 0;
  uint32_t peak_ = 0;
  uint64_t allocations_ = 0;
  bool shuffle_ = false;
  uint64_t randomState_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_BLOCKALLOCATOR_H
