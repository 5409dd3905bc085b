// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Binary buddy allocator: extents of 2^k units of one range, aligned to their size. Knows nothing of their memory.
#ifndef QUIRE_RUNTIME_POOL_BUDDY_H
#define QUIRE_RUNTIME_POOL_BUDDY_H

#include "core/Status.h"

#include <cstdint>
#include <vector>

namespace quire::runtime {

/// Single writer. Allocates memory at creation only; allocate and release are O(log n)
/// in the number of units. An extent that is handed out never moves by itself; see Compact.h.
class Buddy {
public:
  static constexpr uint64_t none = UINT64_MAX;

  /// Manages floor(bytes / unit) units, at most 2^31; `unit` is a power of two. The
  /// number of units need not be one.
  Buddy(uint64_t bytes, uint64_t unit);

  /// Memory that a unit takes here.
  static constexpr uint64_t bytesPerUnit() { return sizeof(Links) + 1; }

  uint64_t unit() const { return unit_; }
  uint64_t totalBytes() const { return states_.size() * unit_; }
  uint64_t freeBytes() const { return freeUnits_ * unit_; }
  uint64_t largestFree() const;
  /// 1 - largest free extent / all free bytes; 0 when nothing is free.
  double externalFragmentation() const;
  /// Failures although so many bytes were free.
  uint64_t failuresWithRoom() const { return failuresWithRoom_; }

  /// Offset of an extent of `bytes`, rounded up to a power of two and to a unit; none if
  /// there is none, and nothing has changed.
  uint64_t allocate(uint64_t bytes);
  /// The lowest extent of this size that is free and ends at `limit` or before. O(free
  /// extents); a failure is not counted.
  uint64_t allocateBelow(uint64_t bytes, uint64_t limit);
  /// What allocate makes of a size; 0 if that is more than 2^63.
  uint64_t extentBytes(uint64_t bytes) const;
  /// Bytes of the extent that was handed out at `offset`; 0 if none was.
  uint64_t sizeAt(uint64_t offset) const;
  /// False, and nothing has changed: no extent was handed out at `offset`.
  bool release(uint64_t offset);

  /// Every unit is in one extent; free lists hold exactly the free ones; no two free
  /// buddies lie side by side.
  Status validate() const;

private:
  static constexpr uint32_t noUnit = UINT32_MAX;
  static constexpr uint8_t inside = 0xff;   // not the first unit of an extent
  static constexpr uint8_t freeFlag = 0x80; // with the order of a free extent
  static constexpr int orders = 32;

  struct Links {
    uint32_t previous;
    uint32_t next;
  };

  void push(uint32_t first, int order);
  void remove(uint32_t first, int order);
  bool mayMerge(uint32_t buddy, int order) const;
  uint64_t take(uint32_t first, int found, int order);

  std::vector<uint8_t> states_; // [units]
  std::vector<Links> links_;    // [units], of free extents
  uint32_t heads_[orders];
  uint32_t listed_ = 0; // bit k: a free extent of order k
  uint64_t freeUnits_ = 0;
  uint64_t unit_;
  uint64_t failuresWithRoom_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_BUDDY_H
