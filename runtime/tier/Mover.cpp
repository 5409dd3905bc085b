// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A mover with a thread, and one without for tests that replay.
#include "tier/Mover.h"

#include "core/Random.h"
#include "tier/TransferQueue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include <pthread.h>
#include <sys/prctl.h>

namespace quire::runtime {
namespace {

/// Most demands in one batch: enough to fill a device's queue.
constexpr size_t demandBatch = 32;
/// Most others: a demand waits for a whole batch that has begun.
constexpr size_t otherBatch = 8;

/// Returns how long it took.
int64_t runTimed(Clock &clock, Tier &tier, Transfer *const *transfers, size_t count) {
  int64_t begun = clock.now();
  tier.run(transfers, count);
  int64_t ended = clock.now();
  for (size_t i = 0; i < count; ++i) {
    transfers[i]->begun = begun;
    transfers[i]->ended = ended;
  }
  return ended - begun;
}

/// The lock guards the queue only; it is not held while a tier runs.
class ThreadMover final : public Mover {
public:
  ThreadMover(Clock &clock, size_t capacity) : clock_(clock), queue_(capacity), thread_([this] { work(); }) {}
  ~ThreadMover() override;

  void submit(Tier &tier, Transfer *const *transfers, size_t count, Urgency urgency) override;
  void promote(Transfer &transfer) override;
  bool cancel(Transfer &transfer) override;
  size_t take(Transfer **out, size_t most) override;
  bool wait(int64_t deadline) override;
  size_t pending() const override { return pending_; }
  int64_t busyNs() const override { return busyNs_.load(std::memory_order_relaxed); }

private:
  void work();

  Clock &clock_;
  size_t pending_ = 0; // owner's
  std::atomic<int64_t> busyNs_{0};
  std::mutex mutex_;
  std::condition_variable submitted_, finished_;
  bool stop_ = false;
  TransferQueue queue_;
  std::thread thread_; // last: it uses the rest
};

} // namespace

ThreadMover::~ThreadMover() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  submitted_.notify_one();
  thread_.join();
}

void ThreadMover::work() {
  ::pthread_setname_np(::pthread_self(), "quire-mover");
  // Tiers that sleep (see ThrottledTier) wake on time: without it, 50 us late.
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  Transfer *batch[demandBatch];
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    submitted_.wait(lock, [this] { return stop_ || queue_.waiting(); });
    if (stop_)
      return;
    Tier *tier = nullptr;
    size_t count = queue_.begin(batch, demandBatch, otherBatch, tier);
    lock.unlock();
    busyNs_.fetch_add(runTimed(clock_, *tier, batch, count), std::memory_order_relaxed);
    lock.lock();
    queue_.finish(batch, count);
    finished_.notify_one();
  }
}

void ThreadMover::submit(Tier &tier, Transfer *const *transfers, size_t count, Urgency urgency) {
  pending_ += count;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = 0; i < count; ++i)
      queue_.push(tier, *transfers[i], urgency);
  }
  submitted_.notify_one();
}

void ThreadMover::promote(Transfer &transfer) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.promote(transfer);
}

bool ThreadMover::cancel(Transfer &transfer) {
  std::lock_guard<std::mutex> lock(mutex_);
  bool cancelled = queue_.cancel(transfer);
  pending_ -= cancelled;
  return cancelled;
}

size_t ThreadMover::take(Transfer **out, size_t most) {
  if (pending_ == 0)
    return 0;
  std::lock_guard<std::mutex> lock(mutex_);
  size_t count = queue_.takeFinished(out, most);
  pending_ -= count;
  return count;
}

bool ThreadMover::wait(int64_t deadline) {
  // The clock may not be the system's, so it is asked again from time to time.
  constexpr int64_t look = 10000000, shortest = 50000;
  if (pending_ == 0)
    return false;
  std::unique_lock<std::mutex> lock(mutex_);
  while (queue_.finished() == 0) {
    int64_t now = clock_.now();
    if (now >= deadline)
      return false;
    int64_t pause = deadline - std::max<int64_t>(now, 0) < look ? deadline - now : look;
    finished_.wait_for(lock, std::chrono::nanoseconds(std::max(pause, shortest)));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Without a thread
//===----------------------------------------------------------------------===//

namespace {

class SteppedMover final : public Mover {
public:
  SteppedMover(Clock &clock, size_t capacity, uint64_t seed) : clock_(clock), queue_(capacity), random_(seed) {}

  void submit(Tier &tier, Transfer *const *transfers, size_t count, Urgency urgency) override {
    for (size_t i = 0; i < count; ++i)
      queue_.push(tier, *transfers[i], urgency);
    pending_ += count;
  }
  void promote(Transfer &transfer) override { queue_.promote(transfer); }
  bool cancel(Transfer &transfer) override {
    bool cancelled = queue_.cancel(transfer);
    pending_ -= cancelled;
    return cancelled;
  }
  size_t take(Transfer **out, size_t most) override {
    if (queue_.waiting() && (splitMix(random_) & 1))
      runOne();
    size_t count = queue_.takeFinished(out, most);
    pending_ -= count;
    return count;
  }
  bool wait(int64_t deadline) override {
    if (queue_.finished())
      return true;
    if (!queue_.waiting() || clock_.now() >= deadline)
      return false;
    runOne();
    return clock_.now() <= deadline;
  }
  size_t pending() const override { return pending_; }
  int64_t busyNs() const override { return busyNs_; }

private:
  void runOne() {
    Transfer *transfer;
    Tier *tier;
    if (!queue_.beginOne(splitMix(random_), transfer, tier))
      return;
    busyNs_ += runTimed(clock_, *tier, &transfer, 1);
    queue_.finish(&transfer, 1);
  }

  Clock &clock_;
  TransferQueue queue_;
  uint64_t random_;
  size_t pending_ = 0;
  int64_t busyNs_ = 0;
};

} // namespace

std::unique_ptr<Mover> createThreadMover(Clock &clock, size_t capacity) {
  return std::make_unique<ThreadMover>(clock, capacity);
}

std::unique_ptr<Mover> createSteppedMover(Clock &clock, size_t capacity, uint64_t seed) {
  return std::make_unique<SteppedMover>(clock, capacity, seed);
}

} // namespace quire::runtime
