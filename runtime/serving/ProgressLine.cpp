// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Drawing of the progress line.
#include "serving/ProgressLine.h"

#include <chrono>
#include <cstdio>

#include <unistd.h>

namespace quire::serving {

using Clock = std::chrono::steady_clock;

static constexpr std::chrono::milliseconds quietTime(2000);
static constexpr std::chrono::milliseconds interval(200);

ProgressLine::ProgressLine() {
  if (::isatty(STDERR_FILENO) != 1)
    return;
  thread_ = std::thread([this] {
    Clock::time_point start = Clock::now();
    std::unique_lock<std::mutex> lock(mutex_);
    if (ended_.wait_for(lock, quietTime, [this] { return end_; }))
      return;
    do
      draw(std::chrono::duration<double>(Clock::now() - start).count());
    while (!ended_.wait_for(lock, interval, [this] { return end_; }));
    std::fputs("\r\033[K", stderr);
  });
}

ProgressLine::~ProgressLine() {
  if (!thread_.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void ProgressLine::draw(double seconds) const {
  if (!serving.load()) {
    std::fprintf(stderr, "\rloading the model, %.0f s\033[K", seconds);
  } else {
    std::fprintf(stderr, "\r%llu of %llu requests, %llu running, %lld tokens, %.0f s\033[K",
                 static_cast<unsigned long long>(finished.load()), static_cast<unsigned long long>(requests.load()),
                 static_cast<unsigned long long>(running.load()), static_cast<long long>(tokens.load()), seconds);
  }
  std::fflush(stderr);
}

} // namespace quire::serving
