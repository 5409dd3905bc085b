// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between float and the narrow floating-point formats, by bits.
#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_FLOATFORMATS_H
#define QUIRE_LIB_ANALYSIS_EVALUATE_FLOATFORMATS_H

#include "Tensor.h"
#include <cstring>

namespace quire::eval {

inline float bitsToFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint32_t floatToBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float bfloatToFloat(uint16_t bits) { return bitsToFloat(static_cast<uint32_t>(bits) << 16); }

inline uint16_t floatToBfloat(float value) {
  uint32_t bits = floatToBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float halfToFloat(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16, body = half & 0x7fffu;
  if (body >= 0x7c00u)
    return bitsToFloat(sign | 0x7f800000u | (body & 0x3ffu) << 13);
  // 2^112 moves the exponent bias from 15 to 127; subnormal halves become normal floats on the way.
  return bitsToFloat(sign | floatToBits(bitsToFloat(body << 13) * 0x1p112f));
}

inline uint16_t floatToHalf(float value) {
  uint32_t bits = floatToBits(value), sign = (bits >> 16) & 0x8000u, body = bits & 0x7fffffffu;
  if (body > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((body >> 13) & 0x3ffu));
  if (body >= 0x47800000u)
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (body < 0x38800000u) { // a subnormal half: adding 1/2 aligns the mantissa to units of 2^-24
    float aligned = bitsToFloat(body) + 0.5f;
    return static_cast<uint16_t>(sign | (floatToBits(aligned) - 0x3f000000u));
  }
  uint32_t rounded = body + 0xfffu + ((body >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

/// Formats of 8 and 4 bits. Decoding is exact; encoding rounds to nearest even and saturates to the largest finite
/// value when asked to.
float decodeNarrow(ElementKind kind, uint8_t bits);
uint8_t encodeNarrow(ElementKind kind, float value, bool saturate);

/// `value` rounded to `kind` and back.
float roundTo(ElementKind kind, float value);

} // namespace quire::eval

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_FLOATFORMATS_H
