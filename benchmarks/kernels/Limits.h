// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the machine can do at most: bytes read and multiply-adds a second.
#ifndef QUIRE_BENCHMARKS_KERNELS_LIMITS_H
#define QUIRE_BENCHMARKS_KERNELS_LIMITS_H

#include "quire/runtime.h"

namespace quire::bench {

struct Limits {
  double bytesPerSecond = 0; // plain reads of 2 MiB pages, all threads of the executor
  double flopsPerSecond = 0; // f32 fused multiply-adds in registers, two operations each
};

/// The better of a few short runs on the threads of `executor`.
Limits measureLimits(quire_executor *executor);

} // namespace quire::bench

#endif // QUIRE_BENCHMARKS_KERNELS_LIMITS_H
