// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which resident page gives way: bookkeeping over page numbers, the same for the pager and for the replay of a trace.
#ifndef QUIRE_RUNTIME_RESIDENCY_POLICY_H
#define QUIRE_RUNTIME_RESIDENCY_POLICY_H

#include <cstdint>
#include <memory>
#include <string_view>

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
  /// The page is wanted and not resident; comes before the victim() that makes
  /// room for it, if any. Optional: a policy that learns from misses then learns
  /// when the page is inserted.
  virtual void missed(uint32_t page) { (void)page; }
  /// The page became resident. `wanted`: by a demand or a write, which is its
  /// first use, so that touched() is not called for it; otherwise by a prefetch.
  virtual void inserted(uint32_t page, bool wanted) = 0;
  /// A resident page was read.
  virtual void touched(uint32_t page) = 0;
  /// The page is resident no more. `evicted`: by victim(), not because its owner
  /// ended. When the owner of a page that is not resident ends, this is called as
  /// well, with false: what was remembered of the content is dropped.
  virtual void removed(uint32_t page, bool evicted) = 0;
  /// Attention mass of the page in a step, in [0, 1]; resident or not, once for
  /// each page that the step read.
  virtual void observed(uint32_t page, float mass) {
    (void)page;
    (void)mass;
  }
  /// The page to give up first, among those that may be; none if there is none.
  /// Changes nothing that a later answer depends on, except as said here: the
  /// first `exactSearch` pages in the policy's order are asked; if all are refused,
  /// the others are asked round robin from where the last such search ended, so
  /// that a long stretch of refused pages is not walked for each victim.
  static constexpr uint32_t exactSearch = 1024;
  virtual uint32_t victim(const Evictable &allowed) = 0;
};

/// Bytes that a policy keeps for each page, at most.
constexpr uint64_t policyBytesPerPage = 48;

/// `Lru`: least recently used. `Scan`: for cyclic scans, as dense attention makes
/// them: the most recently read page first, then pages that nobody has read yet,
/// the newest first; on a cyclic scan this is Belady's choice, with
/// (capacity-1)/(pages-1) hits. `Importance`: the smallest moving average of
/// attention mass, least recently used among equals. `Arc`: adaptive replacement
/// cache (Megiddo and Modha, FAST 2003). Each operation is O(1), of `Importance`
/// O(log capacity).
/// `capacity`: resident pages at most.
std::unique_ptr<Policy> createPolicy(PolicyKind kind, uint32_t pages, uint32_t capacity);

/// "lru", "scan", "importance", "arc".
const char *policyName(PolicyKind kind);
bool policyFromName(std::string_view name, PolicyKind &out);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_POLICY_H
