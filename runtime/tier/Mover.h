// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Carries pages between the fast arena and slow tiers, beside the thread that owns the pool.
#ifndef QUIRE_RUNTIME_TIER_MOVER_H
#define QUIRE_RUNTIME_TIER_MOVER_H

#include "tier/Clock.h"
#include "tier/Tier.h"

#include <memory>

namespace quire::runtime {

/// Owned and called by one thread. Every transfer that was submitted is handed
/// back exactly once, by take() or by a cancel() that returned true. Demand runs
/// before prefetch, prefetch before write-back; within a class in order, but a
/// store of a slot always precedes a later load of it.
class Mover {
public:
  enum class Urgency : uint8_t { Demand, Prefetch, WriteBack };

  virtual ~Mover() = default;

  /// Queues a batch for one tier. Takes no memory once `capacity` (of the
  /// constructors below) suffices.
  virtual void submit(Tier &tier, Transfer *const *transfers, size_t count, Urgency urgency) = 0;

  /// Makes a queued transfer a demand. No effect on one that has begun.
  virtual void promote(Transfer &transfer) = 0;

  /// True: it had not begun and is the caller's again.
  virtual bool cancel(Transfer &transfer) = 0;

  /// Finished transfers, at most `most`; does not wait.
  virtual size_t take(Transfer **out, size_t most) = 0;

  /// Waits until take() would give one, or until the clock's `deadline`; false:
  /// the deadline passed first, or nothing is under way.
  virtual bool wait(int64_t deadline) = 0;

  /// Submitted and not handed back.
  virtual size_t pending() const = 0;

  /// Time in which transfers ran.
  virtual int64_t busyNs() const = 0;
};

/// A thread of its own. At its end it finishes what has begun and drops the rest.
std::unique_ptr<Mover> createThreadMover(Clock &clock, size_t capacity);

/// No thread: a transfer runs when somebody waits, or with probability 1/2 when
/// somebody takes; which one of its class is next depends on the seed alone. For
/// tests that replay.
std::unique_ptr<Mover> createSteppedMover(Clock &clock, size_t capacity, uint64_t seed);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_MOVER_H
