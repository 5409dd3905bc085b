// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks that are to stay in the fast tier, within a budget.
#ifndef QUIRE_RUNTIME_RESIDENCY_PINNEDBLOCKS_H
#define QUIRE_RUNTIME_RESIDENCY_PINNEDBLOCKS_H

#include "core/Status.h"
#include "residency/PageLists.h"

#include <vector>

namespace quire::runtime {

/// A block has as many pins as it was given and not lost. It is held, once it has
/// one, until its last one goes or the block is given up: the one whose pin is the
/// oldest is, when more are held than the budget allows or somebody asks. A block
/// that was given up is held again when it is pinned anew. Each operation is O(1);
/// nothing allocates after creation.
class PinnedBlocks {
public:
  explicit PinnedBlocks(uint32_t blocks) : pins_(blocks), held_(blocks, 1) {}

  bool holds(uint32_t block) const { return held_.listOf(block) == 0; }
  uint32_t held() const { return held_.size(0); }
  uint32_t budget() const { return budget_; }
  uint32_t pins(uint32_t block) const { return pins_[block]; }
  uint64_t givenUp() const { return givenUp_; }
  static constexpr uint64_t bytesPerBlock() { return sizeof(uint32_t) + 2 * sizeof(uint32_t) + 1; }

  /// Its pin is the youngest then; 0 times renews the pins that it has.
  void pin(uint32_t block, uint32_t times) {
    pins_[block] += times;
    if (pins_[block] == 0)
      return;
    held_.moveToBack(0, block);
    setBudget(budget_);
  }

  void unpin(uint32_t block, uint32_t times) {
    assert(pins_[block] >= times);
    pins_[block] -= times;
    if (pins_[block] == 0)
      held_.remove(block);
  }

  void setBudget(uint32_t blocks) {
    budget_ = blocks;
    while (held() > budget_)
      giveUpOldest();
  }

  /// False: none is held.
  bool giveUpOldest() {
    if (held() == 0)
      return false;
    held_.remove(held_.front(0));
    ++givenUp_;
    return true;
  }

  Status validate() const {
    if (held() > budget_)
      return failure(QUIRE_INVARIANT_BROKEN, "%u blocks are held, but the budget is %u", held(), budget_);
    for (uint32_t block = 0; block < pins_.size(); ++block)
      if (holds(block) && pins_[block] == 0)
        return failure(QUIRE_INVARIANT_BROKEN, "block %u is held without a pin", block);
    return success();
  }

private:
  std::vector<uint32_t> pins_;
  PageLists held_; // one list, the oldest pin in front
  uint32_t budget_ = 0;
  uint64_t givenUp_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_PINNEDBLOCKS_H
