// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which resident page gives way: bookkeeping over page numbers, the same for the pager and for the replay of a trace.
#ifndef QUIRE_RUNTIME_RESIDENCY_POLICY_H
#define QUIRE_RUNTIME_RESIDENCY_POLICY_H

#include <cstdint>
#include <memory>

namespace quire::runtime {

enum class PolicyKind : uint8_t { Lru, Scan, Importance, Arc };

/// Answers for pages that a victim may not be: pinned ones, those in transfer,
/// and those that are wanted before the page that asks for room.
class Evictable {
public:
  virtual ~Evictable() = default;
  virtual bool mayEvict(uint32_t page) const = 0;
};

/// Page numbers are in [0, pages). Nothing allocates after creation.
class Policy {
public:
  static constexpr uint32_t none = UINT32_MAX;

  virtual ~Policy() = default;
  /// The page became resident. `wanted`: by a demand, not by a prefetch.
  virtual void inserted(uint32_t page, bool wanted) = 0;
  /// A resident page was read.
  virtual void touched(uint32_t page) = 0;
  /// The page is resident no more. `evicted`: by victim(), not because its owner
  /// ended.
  virtual void removed(uint32_t page, bool evicted) = 0;
  /// Attention mass of the page in a step, in [0, 1].
  virtual void observed(uint32_t page, float mass) {
    (void)page;
    (void)mass;
  }
  /// The page to give up first, among those that may be; none if there is none.
  virtual uint32_t victim(const Evictable &allowed) = 0;
};

/// `capacity`: resident pages at most.
std::unique_ptr<Policy> createPolicy(PolicyKind kind, uint32_t pages, uint32_t capacity);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_POLICY_H
