// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads for short parallel loops: they spin briefly, then sleep, and nobody waits for one that has not joined.
#ifndef QUIRE_RUNTIME_EXEC_THREADPOOL_H
#define QUIRE_RUNTIME_EXEC_THREADPOOL_H

#include "quire/model.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace quire::runtime {

/// A fork costs a few atomic operations while the workers spin. A worker that
/// the system does not schedule costs nothing: the caller runs its chunks.
class ThreadPool {
public:
  /// `threads` counts the caller; at least 1.
  explicit ThreadPool(int64_t threads);
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;
  ~ThreadPool();

  int64_t threads() const { return static_cast<int64_t>(workers_.size()) + 1; }

  /// Runs fn over [0, count) in chunks of at least `grain` iterations (the last
  /// may be shorter) and returns when all ran. Every write of a chunk is visible
  /// to the caller afterwards. Nested or concurrent calls run on their caller.
  void parallel(int64_t count, int64_t grain, quire_task_fn fn, void *env);

private:
  // state_ = number of workers inside the loop | open flag | epoch of the loop.
  static constexpr uint64_t joinedMask = 0xffffffffu;
  static constexpr uint64_t openFlag = uint64_t(1) << 32;
  static constexpr unsigned epochShift = 33;

  void workerMain();
  bool join(uint64_t &seen);
  void leave();
  void runChunks();
  void waitForWorkers();
  bool hasWork(uint64_t seen) const;

  // The loop; written while it is closed and nobody is inside.
  quire_task_fn fn_ = nullptr;
  void *env_ = nullptr;
  int64_t count_ = 0;
  int64_t grain_ = 1;

  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> sleepers_{0};
  std::atomic<bool> callerSleeps_{false};
  std::atomic<bool> stop_{false};
  std::atomic<bool> busy_{false}; // a loop runs; further ones stay on their callers
  std::mutex mutex_;
  std::condition_variable workReady_;
  std::condition_variable workersGone_;
  std::vector<std::thread> workers_;
};

/// CPUs that this process may use.
int64_t availableThreads();

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_EXEC_THREADPOOL_H
