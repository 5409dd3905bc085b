// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between f32 and the formats of 8 and 16 bits, as integer arithmetic that compilers vectorise.
#ifndef QUIRE_RUNTIME_COMPRESS_SMALLFLOAT_H
#define QUIRE_RUNTIME_COMPRESS_SMALLFLOAT_H

#include "quire/model.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

/// Loops are compiled for several instruction sets: what they call takes the set of
/// its caller.
#define QUIRE_LOOP __attribute__((always_inline)) static inline

namespace quire::runtime {

QUIRE_LOOP uint32_t bitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

QUIRE_LOOP float floatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// Sign, `exponentBits`, `mantissaBits`, with subnormals. With infinities the
/// largest exponent is infinity and NaN, as in IEEE 754; without them only the
/// largest code is NaN, as in E4M3 of the OCP 8-bit Floating Point Specification 1.0.
/// No step meets a subnormal f32 whose value matters, so that neither the mode that
/// flushes them nor their slowness does.
template <int exponentBits, int mantissaBits, bool infinities>
struct SmallFloat {
  using Bits = std::conditional_t<exponentBits + mantissaBits + 1 == 16, uint16_t, uint8_t>;
  static constexpr int bias = (1 << (exponentBits - 1)) - 1;
  static constexpr int shift = 23 - mantissaBits;
  static constexpr uint32_t magnitudeMask = (1u << (exponentBits + mantissaBits)) - 1;
  static constexpr uint32_t infinity = ((1u << exponentBits) - 1) << mantissaBits;
  static constexpr uint32_t largest = infinities ? infinity - 1 : magnitudeMask - 1;
  static constexpr uint32_t rebias = static_cast<uint32_t>(127 - bias) << 23;
  /// A power of two whose f32 neighbours are one unit of the subnormals apart.
  static constexpr uint32_t subnormalBase = static_cast<uint32_t>(127 + 23 - (bias - 1 + mantissaBits)) << 23;
  static constexpr uint32_t smallestNormal = rebias + (1u << 23);

  /// Exact, NaN payloads included.
  QUIRE_LOOP float widen(uint32_t bits) {
    uint32_t magnitude = bits & magnitudeMask;
    uint32_t sign = (bits >> (exponentBits + mantissaBits)) << 31;
    uint32_t wide = (magnitude << shift) + rebias;
    if (infinities)
      wide = magnitude >= infinity ? (magnitude << shift) | 0x7f800000u : wide;
    else
      wide = magnitude == magnitudeMask ? 0x7fc00000u : wide;
    uint32_t small = bitsOf(floatOf(subnormalBase | magnitude) - floatOf(subnormalBase));
    return floatOf((magnitude < (1u << mantissaBits) ? small : wide) | sign);
  }

  /// To nearest, ties to even. Overflow gives infinity or, in a format without, the
  /// largest number. NaN stays NaN and keeps what fits of its payload.
  QUIRE_LOOP Bits narrow(float value) {
    uint32_t bits = bitsOf(value), magnitude = bits & 0x7fffffffu;
    uint32_t sign = (bits >> 31) << (exponentBits + mantissaBits);
    uint32_t odd = (magnitude >> shift) & 1;
    uint32_t normal = ((magnitude + ((1u << (shift - 1)) - 1) + odd) >> shift) - (rebias >> shift);
    uint32_t small = bitsOf(floatOf(magnitude) + floatOf(subnormalBase)) - subnormalBase;
    uint32_t narrowed = magnitude < smallestNormal ? small : normal;
    constexpr uint32_t overflow = infinities ? infinity : largest;
    narrowed = narrowed > overflow ? overflow : narrowed;
    uint32_t payload = (magnitude >> shift) & ((1u << mantissaBits) - 1);
    uint32_t nan = infinities ? infinity | (payload == 0 ? 1u << (mantissaBits - 1) : payload) : magnitudeMask;
    return static_cast<Bits>((magnitude > 0x7f800000u ? nan : narrowed) | sign);
  }

  /// The same where no number may become another one in silence: what is beyond the largest number, infinite or NaN is NaN, with all bits but the sign.
  QUIRE_LOOP Bits narrowOrNaN(float value) {
    bool within = (bitsOf(value) & 0x7fffffffu) <= bitsOf(widen(largest));
    return within ? narrow(value) : static_cast<Bits>(magnitudeMask);
  }
};

using F16 = SmallFloat<5, 10, true>;
using E4M3 = SmallFloat<4, 3, false>;
using E5M2 = SmallFloat<5, 2, true>;

/// The upper half of an f32.
struct BF16 {
  using Bits = uint16_t;

  QUIRE_LOOP float widen(uint32_t bits) { return floatOf(bits << 16); }

  QUIRE_LOOP Bits narrow(float value) {
    uint32_t bits = bitsOf(value);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    uint32_t nan = (bits >> 16) | ((bits & 0x007f0000u) == 0 ? 0x40u : 0u);
    return static_cast<Bits>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
};

struct F32 {
  using Bits = uint32_t;
  QUIRE_LOOP float widen(uint32_t bits) { return floatOf(bits); }
  QUIRE_LOOP Bits narrow(float value) { return bitsOf(value); }
};

/// The largest f16 that is not above a number of the f16 range, and the smallest that
/// is not below.
inline uint16_t f16Below(float value) {
  uint16_t bits = F16::narrow(value);
  if (F16::widen(bits) <= value)
    return bits;
  return static_cast<uint16_t>(bits & 0x8000 ? bits + 1 : bits - 1);
}
inline uint16_t f16Above(float value) { return static_cast<uint16_t>(f16Below(-value) ^ 0x8000); }

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_SMALLFLOAT_H
