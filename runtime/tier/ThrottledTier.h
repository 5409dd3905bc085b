// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tier made as slow as a device that this machine does not have.
#ifndef QUIRE_RUNTIME_TIER_THROTTLEDTIER_H
#define QUIRE_RUNTIME_TIER_THROTTLEDTIER_H

#include "tier/Clock.h"
#include "tier/Tier.h"

#include <memory>

namespace quire::runtime {

/// The model: a queue of any depth in front of one link, for both directions. All
/// transfers of one run() are issued when it begins, at t. Each is ready at
/// t + latency; the link then carries them one after the other, a page in
/// page bytes / bandwidth: transfer i ends at max(ready, end of i - 1) + that. So n
/// pages take latency + n * page / bandwidth. The link is a token bucket without
/// depth: idle time earns nothing. Erasing pays the latency only. run() returns on
/// the clock at the last end; copying counts into that time and makes it longer
/// only where the copy is slower than the model.
struct Throttle {
  int64_t latency = 100000;          // ns
  uint64_t bandwidth = 2000000000;   // bytes a second

  /// Of what may be asked for: who ends a pool waits for what has begun.
  static constexpr int64_t mostLatency = int64_t(60) * 1000000000;
  static constexpr uint64_t mostBandwidth = uint64_t(1) << 40;
};

class ThrottledTier final : public Tier {
public:
  /// The slots are those of this object; the inner tier's are not used. `clock`
  /// outlives it.
  ThrottledTier(std::unique_ptr<Tier> inner, const Throttle &throttle, Clock &clock);

  void run(Transfer *const *transfers, size_t count) override;

private:
  std::unique_ptr<Tier> inner_;
  Throttle throttle_;
  Clock &clock_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_THROTTLEDTIER_H
