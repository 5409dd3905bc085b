// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions of small formats over all their values, against definitions in f64.
#include "compress/SmallFloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace quire::runtime;

namespace {

struct Definition {
  int exponentBits, mantissaBits;
  bool infinities;

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  uint32_t codes() const { return 1u << (exponentBits + mantissaBits + 1); }

  double value(uint32_t code) const {
    uint32_t magnitude = code & (codes() / 2 - 1), mantissa = magnitude & ((1u << mantissaBits) - 1);
    int exponent = static_cast<int>(magnitude >> mantissaBits);
    double sign = code >= codes() / 2 ? -1 : 1;
    if (infinities && exponent == (1 << exponentBits) - 1)
      return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
    if (!infinities && magnitude == codes() / 2 - 1)
      return std::nan("");
    double whole = exponent == 0 ? mantissa : mantissa + (1u << mantissaBits);
    return sign * std::ldexp(whole, std::max(exponent, 1) - bias() - mantissaBits);
  }
};

template <typename Format>
void checkAll(const Definition &definition) {
  for (uint32_t code = 0; code < definition.codes(); ++code) {
    double want = definition.value(code), got = Format::widen(code);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(got)) << code;
    } else {
      ASSERT_EQ(got, want) << code;
      ASSERT_EQ(std::signbit(got), std::signbit(want)) << code;
    }
    ASSERT_EQ(Format::narrow(Format::widen(code)), code) << "the way back of a value";
  }
}

/// Between two neighbours the nearer one, and the even one from the middle.
template <typename Format>
void checkRounding(const Definition &definition) {
  for (uint32_t code = 0; code + 1 < definition.codes() / 2; ++code) {
    double low = definition.value(code), high = definition.value(code + 1);
    if (!std::isfinite(low) || !std::isfinite(high))
      break;
    float middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(middle, (low + high) / 2) << "f32 has the middle";
    uint32_t even = code % 2 ? code + 1 : code, sign = definition.codes() / 2;
    ASSERT_EQ(Format::narrow(middle), even) << code;
    ASSERT_EQ(Format::narrow(-middle), even | sign) << code;
    ASSERT_EQ(Format::narrow(std::nextafter(middle, 0.0f)), code) << code;
    ASSERT_EQ(Format::narrow(std::nextafter(middle, INFINITY)), code + 1) << code;
  }
}

TEST(SmallFloat, EveryF16IsExact) {
  checkAll<F16>({5, 10, true});
  checkRounding<F16>({5, 10, true});
}

TEST(SmallFloat, EveryBf16IsExact) {
  checkAll<BF16>({8, 7, true});
  checkRounding<BF16>({8, 7, true});
}

TEST(SmallFloat, EveryFp8IsExact) {
  checkAll<E4M3>({4, 3, false});
  checkRounding<E4M3>({4, 3, false});
  checkAll<E5M2>({5, 2, true});
  checkRounding<E5M2>({5, 2, true});
}

TEST(SmallFloat, LimitsOfTheFormats) {
  float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  EXPECT_EQ(F16::narrow(65504.0f), 0x7bff);
  EXPECT_EQ(F16::narrow(65519.0f), 0x7bff) << "rounds down to the largest";
  EXPECT_EQ(F16::narrow(65520.0f), 0x7c00) << "the middle to the next power of two";
  EXPECT_EQ(F16::narrow(infinity), 0x7c00);
  EXPECT_EQ(F16::narrow(-infinity), 0xfc00);
  EXPECT_TRUE(std::isnan(F16::widen(F16::narrow(nan))));
  EXPECT_TRUE(std::isnan(F16::widen(F16::narrow(floatOf(0x7f800001u))))) << "a payload that does not fit";
  EXPECT_EQ(F16::narrow(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(E4M3::widen(E4M3::largest), 448.0f);
  EXPECT_EQ(E4M3::narrow(1e9f), E4M3::largest) << "no infinity";
  EXPECT_EQ(E4M3::narrow(nan), 0x7f);
  EXPECT_EQ(E5M2::widen(E5M2::largest), 57344.0f);
  EXPECT_EQ(BF16::narrow(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(BF16::narrow(floatOf(1)), 0);
  EXPECT_TRUE(std::isnan(BF16::widen(BF16::narrow(floatOf(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(BF16::widen(BF16::narrow(floatOf(0xffffffffu)))));
}

TEST(SmallFloat, DirectedRounding) {
  for (uint32_t code = 0; code < 0x7bff; ++code) {
    float low = F16::widen(code), high = F16::widen(code + 1);
    for (float x : {std::nextafter(low, high), (low + high) / 2, std::nextafter(high, low)}) {
      ASSERT_EQ(f16Below(x), code);
      ASSERT_EQ(f16Above(x), code + 1);
      ASSERT_EQ(f16Below(-x), (code + 1) | 0x8000);
      ASSERT_EQ(f16Above(-x), code | 0x8000);
    }
    ASSERT_EQ(f16Below(low), code);
    ASSERT_EQ(f16Above(low), code);
  }
}

} // namespace
