// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Plain reads and chains of multiply-adds, on the widest vectors that this processor has.
#include "benchmarks/kernels/Limits.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace quire::bench {
namespace {

template <int bytes>
using Vector = float __attribute__((vector_size(bytes)));

constexpr int64_t readBytes = int64_t(512) << 20;
constexpr int64_t readPiece = int64_t(1) << 20;
constexpr int64_t fmaPieces = 256;
constexpr int64_t fmaRounds = 20000;
constexpr int chains = 12;
constexpr int repetitions = 5;

volatile float sink;

template <typename V>
__attribute__((always_inline)) inline void readAll(void *env, int64_t begin, int64_t end) {
  const char *base = static_cast<const char *>(env);
  V sums[8] = {};
  for (const char *at = base + begin * readPiece; at < base + end * readPiece; at += sizeof(sums))
    for (int i = 0; i < 8; ++i)
      sums[i] += *reinterpret_cast<const V *>(at + i * sizeof(V));
  for (int i = 1; i < 8; ++i)
    sums[0] += sums[i];
  sink = sums[0][0];
}

// Chains that do not depend on each other hide the latency of one multiply-add.
template <typename V>
__attribute__((always_inline)) inline void multiplyAddAll(void *env, int64_t begin, int64_t end) {
  V factor = V{} + *static_cast<const float *>(env), x[chains];
  for (int i = 0; i < chains; ++i)
    x[i] = V{} + static_cast<float>(i);
  for (int64_t round = 0; round < (end - begin) * fmaRounds; ++round)
    for (int i = 0; i < chains; ++i)
      x[i] = x[i] * factor + factor;
  for (int i = 1; i < chains; ++i)
    x[0] += x[i];
  sink = x[0][0];
}

/// Code for one kind of vectors.
struct Loops {
  quire_task_fn read, multiplyAdd;
  int64_t lanes;
};

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void read512(void *env, int64_t begin, int64_t end) { readAll<Vector<64>>(env, begin, end); }
__attribute__((target("avx512f"))) void multiplyAdd512(void *env, int64_t begin, int64_t end) { multiplyAddAll<Vector<64>>(env, begin, end); }
__attribute__((target("avx2,fma"))) void read256(void *env, int64_t begin, int64_t end) { readAll<Vector<32>>(env, begin, end); }
__attribute__((target("avx2,fma"))) void multiplyAdd256(void *env, int64_t begin, int64_t end) { multiplyAddAll<Vector<32>>(env, begin, end); }
#endif
void read128(void *env, int64_t begin, int64_t end) { readAll<Vector<16>>(env, begin, end); }
void multiplyAdd128(void *env, int64_t begin, int64_t end) { multiplyAddAll<Vector<16>>(env, begin, end); }

Loops loopsHere() {
#if defined(__x86_64__)
  if (quire_cpu_has_feature("avx512f") == 1)
    return {read512, multiplyAdd512, 16};
  if (quire_cpu_has_feature("avx2") == 1 && quire_cpu_has_feature("fma") == 1)
    return {read256, multiplyAdd256, 8};
#endif
  return {read128, multiplyAdd128, 4};
}

double bestSeconds(quire_executor *executor, int64_t count, quire_task_fn fn, void *env) {
  double best = 1e9;
  for (int i = 0; i < repetitions; ++i) {
    auto before = std::chrono::steady_clock::now();
    quire_executor_parallel(executor, count, 1, fn, env);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
  }
  return best;
}

} // namespace

Limits measureLimits(quire_executor *executor) {
  Limits limits;
  Loops loops = loopsHere();
  void *memory = ::mmap(nullptr, readBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    ::madvise(memory, readBytes, MADV_HUGEPAGE);
    std::memset(memory, 1, readBytes);
    limits.bytesPerSecond = readBytes / bestSeconds(executor, readBytes / readPiece, loops.read, memory);
    ::munmap(memory, readBytes);
  }
  float factor = 0.5f;
  double flops = 2.0 * static_cast<double>(loops.lanes * chains * fmaRounds * fmaPieces);
  limits.flopsPerSecond = flops / bestSeconds(executor, fmaPieces, loops.multiplyAdd, &factor);
  return limits;
}

} // namespace quire::bench
