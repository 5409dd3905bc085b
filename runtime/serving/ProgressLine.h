// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One line on a terminal that says how far a run is, rewritten in place by a thread of its own.
#ifndef QUIRE_RUNTIME_SERVING_PROGRESSLINE_H
#define QUIRE_RUNTIME_SERVING_PROGRESSLINE_H

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace quire::serving {

/// Shows nothing in the first two seconds, and nothing at all where standard
/// error is no terminal. The counters may be set from any thread.
class ProgressLine {
public:
  ProgressLine();
  /// Clears the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

  std::atomic<bool> serving{false}; // before that, the model is being loaded
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> finished{0};
  std::atomic<uint64_t> running{0};
  std::atomic<int64_t> tokens{0};

private:
  void draw(double seconds) const;

  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_PROGRESSLINE_H
