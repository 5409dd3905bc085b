// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The system's monotonic clock, and one that sleeping advances.
#include "tier/Clock.h"

#include <cerrno>
#include <ctime>

namespace quire::runtime {

static constexpr int64_t second = 1000000000;

int64_t SystemClock::now() const {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return int64_t(time.tv_sec) * second + time.tv_nsec;
}

void SystemClock::sleepUntil(int64_t time) {
  if (time <= now())
    return;
  timespec until = {static_cast<time_t>(time / second), static_cast<long>(time % second)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void VirtualClock::sleepUntil(int64_t time) {
  int64_t current = now_.load();
  while (current < time && !now_.compare_exchange_weak(current, time)) {
  }
}

} // namespace quire::runtime
