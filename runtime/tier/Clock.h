// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Time for tiers and deadlines: the system's, or one that tests advance.
#ifndef QUIRE_RUNTIME_TIER_CLOCK_H
#define QUIRE_RUNTIME_TIER_CLOCK_H

#include <atomic>
#include <cstdint>

namespace quire::runtime {

class Clock {
public:
  virtual ~Clock() = default;
  /// Nanoseconds since some moment; never goes back.
  virtual int64_t now() const = 0;
  /// Returns at `time` or later.
  virtual void sleepUntil(int64_t time) = 0;
};

/// CLOCK_MONOTONIC.
class SystemClock final : public Clock {
public:
  int64_t now() const override;
  void sleepUntil(int64_t time) override;
};

/// Sleeping advances it and takes no time.
class VirtualClock final : public Clock {
public:
  int64_t now() const override { return now_.load(); }
  void sleepUntil(int64_t time) override;

private:
  std::atomic<int64_t> now_{0};
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_CLOCK_H
