// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several tiers, one under the other, as one.
#ifndef QUIRE_RUNTIME_TIER_STACKEDTIER_H
#define QUIRE_RUNTIME_TIER_STACKEDTIER_H

#include "tier/Tier.h"

#include <memory>
#include <vector>

namespace quire::runtime {

/// Its slots are those of its members, in their order; each member sees its own numbers
/// from 0, checks what it stores itself, and knows nothing of the others. A page stays in
/// the slot that it was written to: what gives way goes to the uppermost member that has a
/// free slot, and nothing is carried from one member to another.
class StackedTier final : public Tier {
public:
  /// All have pages of one size. Their own slots are not used.
  explicit StackedTier(std::vector<std::unique_ptr<Tier>> members);

  /// Member by member, the upper ones first.
  void run(Transfer *const *transfers, size_t count) override;

private:
  static constexpr size_t batch = 32;

  void runSome(Transfer *const *transfers, size_t count);

  std::vector<std::unique_ptr<Tier>> members_;
  std::vector<Transfer> inside_; // [batch]; the owner may look at its own meanwhile
  std::vector<Transfer *> list_, from_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_STACKEDTIER_H
