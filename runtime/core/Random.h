// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small generator of pseudo-random numbers, the same on every machine.
#ifndef QUIRE_RUNTIME_CORE_RANDOM_H
#define QUIRE_RUNTIME_CORE_RANDOM_H

#include <cstdint>

namespace quire::runtime {

/// SplitMix64 (Steele, Lea, Flood 2014): any state is a good one.
inline uint64_t splitMix(uint64_t &state) {
  uint64_t value = state += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_CORE_RANDOM_H
