// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between f32 and the 16-bit formats, on their bits; rounding is to the nearest, ties to even.
#ifndef QUIRE_LIB_TARGET_CPU_FLOATFORMATS_H
#define QUIRE_LIB_TARGET_CPU_FLOATFORMATS_H

#include <cstdint>
#include <cstring>

namespace quire::cpu {

inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

inline uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float floatFromBfloat(uint16_t bits) { return floatFromBits(static_cast<uint32_t>(bits) << 16); }

inline uint16_t bfloatFromFloat(float value) {
  uint32_t bits = bitsOf(value);
  if ((bits & 0x7fffffff) > 0x7f800000)
    return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline float floatFromHalf(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = (half >> 10) & 31, mantissa = half & 0x3ff;
  if (exponent == 31)
    return floatFromBits(sign | 0x7f800000 | mantissa << 13);
  if (exponent != 0)
    return floatFromBits(sign | (exponent + 112) << 23 | mantissa << 13);
  // A subnormal is a multiple of 2^-24.
  float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-08f;
  return floatFromBits(sign | bitsOf(magnitude));
}

inline uint16_t halfFromFloat(float value) {
  uint32_t bits = bitsOf(value), sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000)
    return static_cast<uint16_t>(sign | 0x7e00);
  if (magnitude >= 0x477ff000) // at least the middle between the greatest half and 2^16
    return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000) { // below 2^-14: adding 0.5 leaves multiples of 2^-24, rounded
    uint32_t rounded = bitsOf(floatFromBits(magnitude) + 0.5f) - bitsOf(0.5f);
    return static_cast<uint16_t>(sign | rounded);
  }
  uint32_t rounded = magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1);
  return static_cast<uint16_t>(sign | rounded >> 13);
}

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_FLOATFORMATS_H
