// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Codecs of pages: sizes, bounds of the error in f64, refusals, partly filled blocks, and the memory formula.
#include "CodecPages.h"
#include "compress/KvBytes.h"
#include "compress/SmallFloat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <tuple>

using namespace quire::runtime;
using namespace quire::test;

namespace {

constexpr Codec lossy[] = {Codec::Int8G128, Codec::Int4G128,      Codec::Fp8E4M3,
                           Codec::Fp8E5M2,  Codec::Sparse8Bitmap, Codec::Sparse8Index};

std::vector<char> encoded(Codec codec, const TestBlock &block, int64_t tokens) {
  std::vector<char> out(static_cast<size_t>(encodedBytes(codec, block.layer(), block.shape().blockTokens)));
  EXPECT_EQ(encode(codec, block.layer(), block.shape().blockTokens, block.data(), tokens, out.data()),
            EncodeResult::Encoded);
  return out;
}

TestBlock decoded(Codec codec, const TestBlock &block, const std::vector<char> &bytes) {
  TestBlock out(block.shape());
  decode(codec, block.layer(), block.shape().blockTokens, bytes.data(), out.data());
  return out;
}

/// Half a unit in the last place of the element, at a value: what decoding rounds.
double elementRounding(int64_t element, double value) {
  int mantissa = element == QUIRE_ELEMENT_F32 ? 23 : element == QUIRE_ELEMENT_F16 ? 10 : 7;
  double least = element == QUIRE_ELEMENT_F16 ? std::ldexp(1, -25) : 0;
  return std::max(least, std::ldexp(std::fabs(value), -mantissa - 1));
}

/// Number of a value in its segment's order, from the description of the codec.
int64_t orderOf(const BlockShape &shape, Place place) {
  int64_t channels = place.value ? shape.valueDim : shape.keyDim, lanes = place.value ? 1 : shape.lanes;
  return (place.token / lanes * channels + place.channel) * lanes + place.token % lanes;
}

using GroupId = std::tuple<bool, int64_t, int64_t>;
struct Range {
  double low = INFINITY, high = -INFINITY;
};

/// Bound for value = zero + scale * code: half a step of (high - zero) / levels with
/// zero and scale rounded outwards to f16, and the rounding to the page's element.
void checkGroups(Codec codec, const TestBlock &block, int64_t tokens, double levels) {
  const BlockShape &shape = block.shape();
  auto groupOf = [&](Place place) { return GroupId(place.value, place.head, orderOf(shape, place) / 128); };
  std::map<GroupId, Range> ranges;
  block.forEach(tokens, [&](Place place) {
    Range &range = ranges[groupOf(place)];
    range.low = std::min(range.low, block.get(place));
    range.high = std::max(range.high, block.get(place));
  });
  TestBlock back = decoded(codec, block, encoded(codec, block, tokens));
  block.forEach(tokens, [&](Place place) {
    Range range = ranges[groupOf(place)];
    double spread = range.high - range.low + std::max(std::ldexp(std::fabs(range.low), -10), std::ldexp(1, -24));
    double scale = spread / levels * (1 + std::ldexp(1, -10)) + std::ldexp(1, -24);
    double want = block.get(place), got = back.get(place);
    double bound = scale / 2 * (1 + 1e-5) + elementRounding(shape.element, std::fabs(want) + scale);
    ASSERT_LE(std::fabs(want - got), bound)
        << place.value << " " << place.head << " " << place.token << " " << place.channel;
  });
}

void checkFp8(Codec codec, const TestBlock &block, int64_t tokens) {
  TestBlock back = decoded(codec, block, encoded(codec, block, tokens));
  bool e4m3 = codec == Codec::Fp8E4M3;
  block.forEach(tokens, [&](Place place) {
    double want = block.get(place);
    double bound = std::max(std::ldexp(std::fabs(want), e4m3 ? -4 : -3), std::ldexp(1, e4m3 ? -10 : -17));
    ASSERT_LE(std::fabs(want - back.get(place)), bound);
  });
}

/// Each run of channels keeps its largest, to the bit, and nothing else.
void checkSparse(Codec codec, const TestBlock &block, int64_t tokens) {
  int64_t run = codec == Codec::Sparse8Bitmap ? 64 : 8;
  TestBlock back = decoded(codec, block, encoded(codec, block, tokens));
  for (bool value : {false, true})
    for (int64_t head = 0; head < block.shape().kvHeads; ++head)
      for (int64_t token = 0; token < tokens; ++token)
        for (int64_t first = 0, channels = value ? block.shape().valueDim : block.shape().keyDim; first < channels;
             first += run) {
          int64_t count = std::min(run, channels - first), keep = (count + 7) / 8;
          std::vector<int64_t> order(static_cast<size_t>(count));
          for (int64_t i = 0; i < count; ++i)
            order[i] = first + i;
          std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            double left = std::fabs(block.get({value, head, token, a})),
                   right = std::fabs(block.get({value, head, token, b}));
            return left != right ? left > right : a < b;
          });
          for (int64_t i = 0; i < count; ++i) {
            Place place{value, head, token, order[i]};
            ASSERT_EQ(back.getBits(place), i < keep ? block.getBits(place) : 0u) << first << " " << i;
          }
        }
}

void checkBound(Codec codec, const TestBlock &block, int64_t tokens) {
  switch (codec) {
  case Codec::None:
    break;
  case Codec::Int8G128:
    return checkGroups(codec, block, tokens, 255);
  case Codec::Int4G128:
    return checkGroups(codec, block, tokens, 15);
  case Codec::Fp8E4M3:
  case Codec::Fp8E5M2:
    return checkFp8(codec, block, tokens);
  case Codec::Sparse8Bitmap:
  case Codec::Sparse8Index:
    return checkSparse(codec, block, tokens);
  }
}

TEST(Codec, NamesAreReadBack) {
  for (int i = 0; i < codecCount; ++i) {
    Codec codec = Codec::None;
    EXPECT_TRUE(parseCodec(codecName(static_cast<Codec>(i)), codec));
    EXPECT_EQ(codec, static_cast<Codec>(i));
  }
  Codec codec = Codec::Fp8E4M3;
  EXPECT_FALSE(parseCodec("int8", codec));
  EXPECT_FALSE(parseCodec("", codec));
  EXPECT_STREQ(encodeResultName(EncodeResult::OutOfRange), "out of range");
}

TEST(Codec, NoneGivesTheBlockBack) {
  for (const BlockShape &shape : blockShapes()) {
    TestBlock block(shape);
    block.fill(1, [](Place place) { return sampleValue(place, 1); });
    std::vector<char> bytes = encoded(Codec::None, block, 1);
    EXPECT_EQ(bytes.size(), block.size());
    EXPECT_TRUE(decoded(Codec::None, block, bytes) == block);
  }
}

TEST(Codec, BytesAreThoseOfTheFormula) {
  BlockShape shape{4, 128, 128, QUIRE_ELEMENT_F16, 16, 16};
  quire_model_layer layer = layerOf(shape);
  int64_t values = 4 * 256 * 16;
  EXPECT_EQ(encodedBytes(Codec::None, layer, 16), values * 2 + 128);
  EXPECT_EQ(encodedBytes(Codec::Int8G128, layer, 16), values * 132 / 128);
  EXPECT_EQ(encodedBytes(Codec::Int4G128, layer, 16), values * 68 / 128);
  EXPECT_EQ(encodedBytes(Codec::Fp8E4M3, layer, 16), values);
  EXPECT_EQ(encodedBytes(Codec::Fp8E5M2, layer, 16), values);
  EXPECT_EQ(encodedBytes(Codec::Sparse8Bitmap, layer, 16), values / 8 * 2 + values / 8)
      << "1.5 bits of index for 16 of data";
  EXPECT_EQ(encodedBytes(Codec::Sparse8Index, layer, 16), values / 8 * 2 + values / 8 * 3 / 8);

  // 5 channels of 9 tokens: one short group of 45 values, or 9 rows.
  BlockShape odd{1, 5, 5, QUIRE_ELEMENT_F16, 3, 9};
  EXPECT_EQ(encodedBytes(Codec::Int8G128, layerOf(odd), 9), 2 * (4 + 45));
  EXPECT_EQ(encodedBytes(Codec::Int4G128, layerOf(odd), 9), 2 * (4 + 23));
  EXPECT_EQ(encodedBytes(Codec::Sparse8Bitmap, layerOf(odd), 9), 2 * 9 * (2 + 1));
  EXPECT_EQ(encodedBytes(Codec::Sparse8Index, layerOf(odd), 9), 2 * 9 * (2 + 1));
}

TEST(Codec, ErrorsStayWithinTheirBounds) {
  for (const BlockShape &shape : blockShapes())
    for (Codec codec : lossy) {
      SCOPED_TRACE(std::string(codecName(codec)) + " " + shape.text());
      std::set<int64_t> tokens{1, (shape.blockTokens + 1) / 2, shape.blockTokens};
      for (int64_t count : tokens)
        for (double scale : {1.0, 1e-6, 5.0}) {
          TestBlock block(shape);
          block.fill(count, [&](Place place) { return sampleValue(place, 7) * scale; });
          checkBound(codec, block, count);
        }
      TestBlock offset(shape); // a small range far from 0
      offset.fill(shape.blockTokens, [](Place place) { return 400 + sampleValue(place, 9) * 0.1; });
      checkBound(codec, offset, shape.blockTokens);
    }
}

TEST(Codec, LargestRangeOfGroups) {
  for (int64_t element : {QUIRE_ELEMENT_F32, QUIRE_ELEMENT_F16})
    for (Codec codec : {Codec::Int8G128, Codec::Int4G128}) {
      TestBlock block({1, 128, 128, element, 16, 16});
      block.fill(16, [](Place place) { return place.channel % 2 ? 65504.0 : -65504.0; });
      checkBound(codec, block, 16);
      TestBlock back = decoded(codec, block, encoded(codec, block, 16));
      EXPECT_TRUE(std::isfinite(back.get({false, 0, 0, 1}))) << "rounds to the largest number, not to infinity";
    }
}

TEST(Codec, ConstantGroupsAreExact) {
  for (const BlockShape &shape : blockShapes())
    for (Codec codec : {Codec::Int8G128, Codec::Int4G128})
      for (double value : {0.0, -0.0, 1.5, -3.25, 65504.0, 5.9604644775390625e-08 /* 2^-24 */}) {
        if (shape.element == QUIRE_ELEMENT_BF16 && value == 65504.0)
          continue; // not a bf16
        TestBlock block(shape);
        block.fill(shape.blockTokens, [=](Place) { return value; });
        TestBlock back = decoded(codec, block, encoded(codec, block, shape.blockTokens));
        block.forEach(shape.blockTokens, [&](Place place) { ASSERT_EQ(back.get(place), value) << shape.text(); });
      }
}

TEST(Codec, WhatIsNoNumberIsRefused) {
  for (const BlockShape &shape : blockShapes())
    for (Codec codec : lossy)
      for (double bad : {double(INFINITY), -double(INFINITY), std::nan("")}) {
        TestBlock block(shape);
        block.fill(shape.blockTokens, [](Place) { return 1.0; });
        Place last{true, shape.kvHeads - 1, shape.blockTokens - 1, shape.valueDim - 1};
        for (Place place : {Place{false, 0, 0, 0}, last}) {
          TestBlock broken = block;
          broken.set(place, bad);
          std::vector<char> out(static_cast<size_t>(encodedBytes(codec, block.layer(), shape.blockTokens)));
          EXPECT_EQ(encode(codec, block.layer(), shape.blockTokens, broken.data(), shape.blockTokens, out.data()),
                    EncodeResult::NotFinite)
              << codecName(codec) << " " << shape.text();
        }
      }
}

TEST(Codec, WhatIsOutOfRangeIsRefused) {
  auto result = [](Codec codec, double value) {
    TestBlock block({1, 128, 128, QUIRE_ELEMENT_F32, 16, 16});
    block.fill(16, [](Place) { return 1.0; });
    block.set({true, 0, 9, 77}, value);
    std::vector<char> out(static_cast<size_t>(encodedBytes(codec, block.layer(), 16)));
    return encode(codec, block.layer(), 16, block.data(), 16, out.data());
  };
  for (auto [codec, largest] : {std::pair<Codec, double>(Codec::Int8G128, 65504),
                                {Codec::Int4G128, 65504},
                                {Codec::Fp8E4M3, 448},
                                {Codec::Fp8E5M2, 57344}}) {
    EXPECT_EQ(result(codec, largest), EncodeResult::Encoded);
    EXPECT_EQ(result(codec, -largest), EncodeResult::Encoded);
    EXPECT_EQ(result(codec, largest * 1.0001), EncodeResult::OutOfRange);
    EXPECT_EQ(result(codec, -largest * 1.0001), EncodeResult::OutOfRange);
  }
  for (Codec codec : {Codec::Sparse8Bitmap, Codec::Sparse8Index})
    EXPECT_EQ(result(codec, 3e38), EncodeResult::Encoded) << "kept as it is";
}

TEST(Codec, UnstoredPositionsChangeNothing) {
  std::mt19937_64 random(5);
  for (const BlockShape &shape : blockShapes())
    for (Codec codec : lossy)
      for (int64_t tokens = 1; tokens < shape.blockTokens; tokens += 5) {
        TestBlock poisoned(shape), noisy(shape);
        for (size_t i = 0; i < noisy.size(); ++i)
          noisy.data()[i] = static_cast<char>(random());
        poisoned.fill(tokens, [](Place place) { return sampleValue(place, 11); });
        noisy.forEach(tokens, [&](Place place) { noisy.setBits(place, poisoned.getBits(place)); });
        std::vector<char> bytes = encoded(codec, poisoned, tokens);
        ASSERT_EQ(bytes, encoded(codec, noisy, tokens)) << codecName(codec) << " " << shape.text() << " " << tokens;
        TestBlock back = decoded(codec, poisoned, bytes);
        back.forEach(shape.blockTokens, [&](Place place) { ASSERT_TRUE(std::isfinite(back.get(place))); });
      }
}

TEST(Codec, PaddingIsLeftAlone) {
  for (Codec codec : lossy) {
    TestBlock block({2, 128, 64, QUIRE_ELEMENT_F16, 16, 16});
    block.fill(16, [](Place place) { return sampleValue(place, 2); });
    TestBlock back = decoded(codec, block, encoded(codec, block, 16));
    TestBlock filled = back;
    filled.fill(16, [](Place) { return 0.0; });
    size_t padding = 0;
    for (size_t i = 0; i < back.size(); ++i)
      padding += static_cast<unsigned char>(filled.data()[i]) == 0xff;
    EXPECT_EQ(padding, 128u);
  }
}

TEST(Codec, WideAndPlainLoopsGiveTheSameBytes) {
  for (const BlockShape &shape : blockShapes())
    for (Codec codec : lossy) {
      TestBlock block(shape);
      int64_t tokens = (shape.blockTokens * 2 + 2) / 3;
      block.fill(tokens, [](Place place) { return sampleValue(place, 21) * 7; });
      size_t bytes = static_cast<size_t>(encodedBytes(codec, block.layer(), shape.blockTokens));
      std::vector<char> plain(bytes), wide(bytes);
      codecLoops(false).encode(codec, block.layer(), shape.blockTokens, block.data(), tokens, plain.data());
      codecLoops(true).encode(codec, block.layer(), shape.blockTokens, block.data(), tokens, wide.data());
      EXPECT_EQ(plain, wide);
      TestBlock a(shape), b(shape);
      codecLoops(false).decode(codec, block.layer(), shape.blockTokens, plain.data(), a.data());
      codecLoops(true).decode(codec, block.layer(), shape.blockTokens, plain.data(), b.data());
      EXPECT_TRUE(a == b);
    }
}

TEST(Codec, BytesThatNobodyEncodedStayInTheBlock) {
  std::mt19937_64 random(17);
  for (const BlockShape &shape : blockShapes())
    for (Codec codec : lossy)
      for (int round = 0; round < 8; ++round) {
        TestBlock block(shape);
        std::vector<char> bytes(static_cast<size_t>(encodedBytes(codec, block.layer(), shape.blockTokens)));
        for (char &byte : bytes)
          byte = round == 0 ? '\xff' : static_cast<char>(random());
        decode(codec, block.layer(), shape.blockTokens, bytes.data(), block.data()); // sanitizers watch the borders
        block.fill(shape.blockTokens, [](Place) { return 0.0; });
        EXPECT_EQ(std::count(block.data(), block.data() + block.size(), '\xff'), 128);
      }
}

TEST(Codec, SegmentsLieWhereTheLayoutSays) {
  // A kernel that reads encoded pages: value = zero + scale * code.
  BlockShape shape{2, 128, 64, QUIRE_ELEMENT_F16, 16, 16};
  TestBlock block(shape);
  block.fill(16, [](Place place) { return sampleValue(place, 31); });
  std::vector<char> bytes = encoded(Codec::Int8G128, block, 16);
  TestBlock back = decoded(Codec::Int8G128, block, bytes);
  back.forEach(16, [&](Place place) {
    SegmentLayout layout = segmentLayout(Codec::Int8G128, block.layer(), 16, place.value);
    const char *head = bytes.data() + layout.offset + place.head * layout.headBytes;
    int64_t order = orderOf(shape, place);
    uint16_t scale, zero;
    std::memcpy(&scale, head + order / 128 * 4, 2);
    std::memcpy(&zero, head + order / 128 * 4 + 2, 2);
    float value = F16::widen(zero) + F16::widen(scale) * static_cast<uint8_t>(head[layout.codesOffset + order]);
    ASSERT_EQ(F16::narrow(value), back.getBits(place));
  });
}

TEST(Codec, PagesOfSeveralLayers) {
  BlockShape shapes[] = {{2, 64, 64, QUIRE_ELEMENT_F16, 16, 16}, {1, 80, 48, QUIRE_ELEMENT_F32, 4, 16}};
  quire_model_layer layers[] = {layerOf(shapes[0]), layerOf(shapes[1])};
  uint64_t second = (static_cast<uint64_t>(layers[0].block_bytes) + 63) & ~uint64_t(63);
  uint64_t starts[] = {0, second};
  PageLayers page{layers, starts, 2, 16};
  std::vector<char> bytes(second + static_cast<size_t>(layers[1].block_bytes)), back(bytes.size());
  for (int i = 0; i < 2; ++i) {
    TestBlock block(shapes[i]);
    block.fill(16, [=](Place place) { return sampleValue(place, 40 + static_cast<uint64_t>(i)); });
    std::memcpy(bytes.data() + starts[i], block.data(), block.size());
  }
  for (int i = 0; i < codecCount; ++i) {
    Codec codec = static_cast<Codec>(i);
    ASSERT_EQ(encodedBytes(codec, page), encodedBytes(codec, layers[0], 16) + encodedBytes(codec, layers[1], 16));
    std::vector<char> out(static_cast<size_t>(encodedBytes(codec, page)));
    ASSERT_EQ(encode(codec, page, bytes.data(), 16, out.data()), EncodeResult::Encoded);
    decode(codec, page, out.data(), back.data());
    for (int layer = 0; layer < 2; ++layer) {
      TestBlock block(shapes[layer]), whole(shapes[layer]);
      std::memcpy(block.data(), bytes.data() + starts[layer], block.size());
      TestBlock want = decoded(codec, block, encoded(codec, block, 16));
      std::memcpy(whole.data(), back.data() + starts[layer], whole.size());
      want.forEach(16, [&](Place place) { ASSERT_EQ(want.getBits(place), whole.getBits(place)); });
    }
  }
  uint32_t infinity = 0x7f800000u;
  std::memcpy(bytes.data() + second, &infinity, 4);
  std::vector<char> out(static_cast<size_t>(encodedBytes(Codec::Int8G128, page)));
  EXPECT_EQ(encode(Codec::Int8G128, page, bytes.data(), 16, out.data()), EncodeResult::NotFinite);
}

TEST(KvBytes, FormulaOfKnownModels) {
  KvShape small{32, 32, 128, 2}, large{40, 40, 128, 2}; // shapes of 7B and 13B
  EXPECT_EQ(kvBytes(small, 2048), double(int64_t(1) << 30));
  EXPECT_EQ(kvBytes(large, 1), 819200);
  EXPECT_EQ(kvBytes(large, 2048), 1.5625 * double(int64_t(1) << 30));
}

TEST(KvBytes, LayersAndBlocks) {
  BlockShape shape{40, 128, 128, QUIRE_ELEMENT_F16, 16, 16};
  std::vector<quire_model_layer> layers(40, layerOf(shape));
  EXPECT_EQ(kvBytes(layers.data(), 40, 2048), int64_t(kvBytes(KvShape{40, 40, 128, 2}, 2048)));
  EXPECT_EQ(pagedKvBytes(layers.data(), 40, 16, 0), 0);
  EXPECT_EQ(pagedKvBytes(layers.data(), 40, 16, 17), 2 * 40 * layers[0].block_bytes) << "with padding and unused slots";
  EXPECT_EQ(pagedKvBytes(layers.data(), 40, 16, 32, Codec::Int8G128), kvBytes(layers.data(), 40, 32) * 132 / 256);
  layers[1].value_dim = 64;
  layers[2].element = QUIRE_ELEMENT_F32;
  EXPECT_EQ(kvBytes(layers.data(), 3, 10), 10 * 40 * (256 * 2 + 192 * 2 + 256 * 4));
}

TEST(KvBytes, SavingOfGroupsOnPages) {
  quire_model_layer layer = layerOf({40, 128, 128, QUIRE_ELEMENT_F16, 16, 16});
  double int8 = bytesPerElement(Codec::Int8G128, layer, 16), int4 = bytesPerElement(Codec::Int4G128, layer, 16);
  EXPECT_DOUBLE_EQ(int8, 132.0 / 128);
  EXPECT_DOUBLE_EQ(int4, 68.0 / 128);
  EXPECT_DOUBLE_EQ(bytesPerElement(Codec::Sparse8Bitmap, layer, 16), 2 * 0.1875);
  EXPECT_DOUBLE_EQ(bytesPerElement(Codec::Sparse8Index, layer, 16), 2 * 0.1484375);
  // Pages that save 30 %, and groups on top of them.
  EXPECT_DOUBLE_EQ(savedShare(0.70, int8), 1 - 0.70 * (132.0 / 256));
  EXPECT_NEAR(savedShare(0.70, int8), 0.639, 0.0005);
  EXPECT_NEAR(savedShare(0.70, 1), 0.65, 1e-12);
  EXPECT_NEAR(savedShare(0.70, int4), 0.814, 0.0005);
}

} // namespace
