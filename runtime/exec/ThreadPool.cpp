// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fork and join of short loops over one atomic word.
#include "exec/ThreadPool.h"

#include <algorithm>
#include <chrono>

#include <sched.h>

namespace quire::runtime {

/// How long a thread spins before it sleeps. Decode steps open a loop every few
/// microseconds; a sleep and wake-up costs about as much as this.
static constexpr std::chrono::microseconds spinTime(50);

/// A thread takes its share of what is left, divided by this: large chunks first,
/// small ones at the end, so that all threads end together and one that comes
/// late or is slow leaves its part to the others.
static constexpr int64_t shareDivisor = 2;

static void pauseBriefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Spins until `done()` or the spin time is over; true if done.
template <typename Condition>
static bool spinUntil(Condition done) {
  auto end = std::chrono::steady_clock::now() + spinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done())
        return true;
      pauseBriefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

int64_t availableThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) == 0)
    return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}

ThreadPool::ThreadPool(int64_t threads) {
  workers_.reserve(static_cast<size_t>(std::max<int64_t>(0, threads - 1)));
  for (int64_t i = 1; i < threads; ++i) {
    try {
      workers_.emplace_back([this] { workerMain(); });
    } catch (const std::system_error &) {
      break; // fewer threads are slower, not wrong
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_.store(true);
  }
  workReady_.notify_all();
  for (std::thread &worker : workers_)
    worker.join();
}

bool ThreadPool::hasWork(uint64_t seen) const {
  uint64_t state = state_.load();
  return (state & openFlag) && (state >> epochShift) != seen;
}

/// Enters the open loop unless this worker was in it already.
bool ThreadPool::join(uint64_t &seen) {
  uint64_t state = state_.load(std::memory_order_acquire);
  while ((state & openFlag) && (state >> epochShift) != seen) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      seen = state >> epochShift;
      return true;
    }
  }
  return false;
}

void ThreadPool::leave() {
  uint64_t before = state_.fetch_sub(1);
  bool last = (before & joinedMask) == 1;
  // Pairs with waitForWorkers: either that sees the count at 0, or this sees the
  // caller asleep.
  if (last && !(before & openFlag) && callerSleeps_.load()) {
    std::lock_guard<std::mutex> lock(mutex_);
    workersGone_.notify_one();
  }
}

void ThreadPool::runChunks() {
  int64_t divisor = threads() * shareDivisor;
  int64_t begin = next_.load(std::memory_order_relaxed);
  while (begin < count_) {
    int64_t end = std::min(count_, begin + std::max(grain_, (count_ - begin) / divisor));
    if (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed))
      continue; // begin is the new value
    fn_(env_, begin, end);
    begin = next_.load(std::memory_order_relaxed);
  }
}

void ThreadPool::workerMain() {
  uint64_t seen = 0;
  for (;;) {
    if (join(seen)) {
      runChunks();
      leave();
      continue;
    }
    if (stop_.load(std::memory_order_relaxed))
      return;
    if (spinUntil([&] { return hasWork(seen) || stop_.load(std::memory_order_relaxed); }))
      continue;
    // Pairs with parallel(): either that sees a sleeper, or this sees the work.
    sleepers_.fetch_add(1);
    {
      std::unique_lock<std::mutex> lock(mutex_);
      workReady_.wait(lock, [&] { return hasWork(seen) || stop_.load(); });
    }
    sleepers_.fetch_sub(1);
  }
}

void ThreadPool::waitForWorkers() {
  auto gone = [this] { return (state_.load() & joinedMask) == 0; };
  if (spinUntil(gone))
    return;
  std::unique_lock<std::mutex> lock(mutex_);
  callerSleeps_.store(true);
  workersGone_.wait(lock, gone);
  callerSleeps_.store(false);
}

void ThreadPool::parallel(int64_t count, int64_t grain, quire_task_fn fn, void *env) {
  if (count <= 0)
    return;
  grain = std::max<int64_t>(1, grain);
  if (workers_.empty() || count <= grain || busy_.exchange(true)) {
    fn(env, 0, count);
    return;
  }
  fn_ = fn;
  env_ = env;
  count_ = count;
  grain_ = grain;
  next_.store(0, std::memory_order_relaxed);
  uint64_t epoch = (state_.load(std::memory_order_relaxed) >> epochShift) + 1;
  state_.store(epoch << epochShift | openFlag);
  if (sleepers_.load() > 0) {
    std::lock_guard<std::mutex> lock(mutex_);
    workReady_.notify_all();
  }
  runChunks();
  state_.fetch_and(~openFlag);
  waitForWorkers();
  busy_.store(false);
}

} // namespace quire::runtime
