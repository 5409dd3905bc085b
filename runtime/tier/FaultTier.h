// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tier that fails as planned: for tests of whoever uses tiers.
#ifndef QUIRE_RUNTIME_TIER_FAULTTIER_H
#define QUIRE_RUNTIME_TIER_FAULTTIER_H

#include "tier/Clock.h"
#include "tier/StoredSlots.h"
#include "tier/Tier.h"

#include <array>
#include <atomic>
#include <memory>
#include <vector>

namespace quire::runtime {

struct Fault {
  enum class Kind : uint8_t {
    IoError,       // QUIRE_IO_ERROR, nothing done; a store leaves no content
    ShortTransfer, // half of the page moved, QUIRE_IO_ERROR
    NoSpace,       // of stores: QUIRE_NO_SPACE, no content
    Delay,         // `ns` more on the clock
    Stuck,         // until release(); `ns` > 0: until so much has passed on the clock, then QUIRE_IO_ERROR
    FlipPage,      // one bit of the stored page: before a load, after a store
    FlipHeader,    // the same in the stored header
    TornStore,     // of stores: says QUIRE_OK, but only a beginning replaced the old bytes
    SwapSlots      // of stores: says QUIRE_OK, then the bytes change places with another slot's
  };
  static constexpr size_t kinds = 9;
  static constexpr uint64_t always = UINT64_MAX;

  Kind kind = Kind::IoError;
  Transfer::Kind on = Transfer::Kind::Load;
  uint64_t first = 0;     // transfers of kind `on` before it, counted from the tier's creation
  uint64_t count = 1;     // transfers in a row that it may hit
  double probability = 1; // of hitting each of them
  int64_t ns = 0;
};

/// What happens depends on the plan, the seed and the order of transfers alone.
struct FaultPlan {
  uint64_t seed = 0;
  std::vector<Fault> faults;
};

/// A load that fails fills the page with 0xA5.
class FaultTier final : public Tier {
public:
  /// Over any tier that is also StoredSlots, such as a HostTier with checksums. The
  /// slots are those of this object. `clock` outlives it.
  template <typename Inner>
  FaultTier(std::unique_ptr<Inner> inner, FaultPlan plan, Clock &clock)
      : FaultTier(std::unique_ptr<Tier>(inner.get()), inner.get(), std::move(plan), clock) {
    inner.release();
  }

  void run(Transfer *const *transfers, size_t count) override;

  /// While nothing runs: one more fault, whose `first` counts from now.
  void add(Fault fault);

  /// Any thread: lets everything go that is stuck or will be.
  void release() { released_.store(true); }
  /// Any thread: a transfer is stuck now.
  bool stuck() const { return stuck_.load(); }
  /// Any thread: how often it has happened.
  uint64_t injected(Fault::Kind kind) const { return injected_[static_cast<size_t>(kind)].load(); }

private:
  FaultTier(std::unique_ptr<Tier> inner, StoredSlots *stored, FaultPlan plan, Clock &clock);
  void runOne(Transfer &transfer);
  bool hits(const Fault &fault, const Transfer &transfer, uint64_t index);
  bool before(const Fault &fault, Transfer &transfer);
  void after(const Fault &fault, const Transfer &transfer);
  Status standStill(const Fault &fault);
  void fail(Transfer &transfer, Status status);
  void flip(uint32_t slot, bool header);
  void swap(uint32_t slot);
  uint64_t random();

  std::unique_ptr<Tier> inner_;
  StoredSlots *stored_;
  FaultPlan plan_;
  Clock &clock_;
  uint64_t randomState_;
  std::array<uint64_t, 3> seen_{}; // by kind of transfer
  std::vector<char> old_, other_;  // stored bytes
  std::vector<const Fault *> active_;
  std::atomic<bool> released_{false};
  std::atomic<bool> stuck_{false};
  std::array<std::atomic<uint64_t>, Fault::kinds> injected_{};
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_FAULTTIER_H
