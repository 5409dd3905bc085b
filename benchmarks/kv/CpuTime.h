// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Time that other programs on the machine do not take part in.
#ifndef QUIRE_BENCHMARKS_KV_CPUTIME_H
#define QUIRE_BENCHMARKS_KV_CPUTIME_H

#include <time.h>

namespace quire::kvbench {

/// CPU time of the calling thread, that of the system for it included.
inline double cpuSeconds() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

} // namespace quire::kvbench

#endif // QUIRE_BENCHMARKS_KV_CPUTIME_H
