// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The slots of a tier, or of several that are stacked: which are free, and which of them may be used.
#ifndef QUIRE_RUNTIME_TIER_TIERSLOTS_H
#define QUIRE_RUNTIME_TIER_TIERSLOTS_H

#include "pool/BlockAllocator.h"

#include <string>
#include <vector>

namespace quire::runtime {

/// Slots 0 .. total-1, those of the upper member first. A tier that is not stacked has one
/// member. Belongs to the pool's thread.
class TierSlots {
public:
  struct Member {
    std::string name;
    uint32_t slots;
  };

  /// At least one; together at most INT32_MAX slots.
  explicit TierSlots(std::vector<Member> members);

  uint32_t total() const { return total_; }
  /// Free ones, those of closed members included.
  uint32_t freeCount() const;
  /// Free ones that allocate() may hand out.
  uint32_t openCount() const;

  /// Appends `count` slots to `out`, none of a lower member while an upper one that is
  /// open has any, and returns true; or returns false and changes nothing.
  bool allocate(uint32_t count, std::vector<int32_t> &out);
  void release(uint32_t slot);

  const std::vector<Member> &members() const { return members_; }
  /// Of a slot below total().
  size_t memberOf(uint32_t slot) const;
  uint32_t firstOf(size_t member) const { return parts_[member].first; }
  uint32_t freeOf(size_t member) const { return parts_[member].slots.freeCount(); }

  /// No free slot of this member is handed out any more.
  void close(size_t member) { parts_[member].open = false; }
  bool isOpen(size_t member) const { return parts_[member].open; }
  bool allOpen() const;

  Status validate() const;

private:
  struct Part {
    uint32_t first;
    BlockAllocator slots;
    bool open = true;
  };

  std::vector<Member> members_;
  std::vector<Part> parts_;
  uint32_t total_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_TIERSLOTS_H
