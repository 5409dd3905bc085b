// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of K and V in blocks: places written from the description in quire/model.h, and what codes keep of numbers.
#include "CodecPages.h"

#include "compress/Prune.h"
#include "compress/StoredRows.h"
#include "model/ModelInfo.h"
#include "quire/runtime.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <tuple>

using namespace quire::runtime;
using namespace quire::test;

namespace {

constexpr int64_t blockTokens = 16, lanes = 8;

/// Two heads, K of two groups, V of one short one, in bytes of `halves` codes.
quire_model_layer codeLayer(int64_t element = QUIRE_ELEMENT_I8) {
  int64_t halves = element == QUIRE_ELEMENT_I4 ? 2 : 1;
  quire_model_layer layer{};
  layer.kv_heads = 2;
  layer.key_dim = 192;
  layer.value_dim = 80;
  layer.element = element;
  layer.lanes = lanes;
  layer.value_offset = 2 * 16 * 192 / halves + 2 * 2 * 2 * 16 * 4;
  layer.block_bytes = layer.value_offset + 2 * 16 * 80 / halves + 2 * 1 * 2 * 16 * 4;
  return layer;
}

/// The same without scales. E4M3 and E5M2.
quire_model_layer smallFloatLayer(int64_t element) {
  quire_model_layer layer = codeLayer();
  layer.element = element;
  layer.value_offset = 2 * 16 * 192;
  layer.block_bytes = layer.value_offset + 2 * 16 * 80;
  return layer;
}

std::vector<float> numbersOf(const StoredRow &row, uint64_t seed) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < row.features(); ++i)
    numbers.push_back(static_cast<float>(sampleValue({row.value, row.head, row.token, i}, seed)));
  return numbers;
}

std::vector<float> loaded(const StoredRow &row, const std::vector<char> &block) {
  std::vector<float> numbers(static_cast<size_t>(row.features()));
  loadRow(row, block.data(), numbers.data());
  return numbers;
}

template <typename Visit>
void eachRow(const quire_model_layer &layer, Visit visit) {
  for (bool value : {false, true})
    for (int64_t head = 0; head < layer.kv_heads; ++head)
      for (int64_t token = 0; token < blockTokens; ++token)
        visit(StoredRow{&layer, blockTokens, value, head, token});
}

TEST(StoredRows, FloatsLieAsDescribed) {
  for (const BlockShape &shape : blockShapes()) {
    SCOPED_TRACE(shape.text());
    TestBlock block(shape);
    for (bool value : {false, true})
      for (int64_t head = 0; head < shape.kvHeads; ++head)
        for (int64_t token = 0; token < shape.blockTokens; ++token) {
          StoredRow row{&block.layer(), shape.blockTokens, value, head, token};
          std::vector<float> numbers = numbersOf(row, 3), back(numbers.size());
          storeRow(row, numbers.data(), block.data());
          loadRow(row, block.data(), back.data());
          for (int64_t i = 0; i < row.features(); ++i) {
            Place place{value, head, token, i};
            ASSERT_EQ(block.getBits(place), elementBits(shape.element, numbers[i]));
            ASSERT_EQ(back[i], block.get(place));
          }
        }
  }
}

TEST(StoredRows, CodesLieAsDescribed) {
  quire_model_layer layer = codeLayer();
  std::vector<char> block(static_cast<size_t>(layer.block_bytes), '\xff');
  auto unsignedAt = [&](int64_t at) { return static_cast<float>(static_cast<unsigned char>(block[at])); };
  auto floatAt = [&](int64_t at) {
    float number;
    std::memcpy(&number, block.data() + at, 4);
    return number;
  };
  eachRow(layer, [&](const StoredRow &row) {
    std::vector<float> numbers = numbersOf(row, 5);
    storeRow(row, numbers.data(), block.data());
    int64_t features = row.features(), groups = row.value ? 1 : 2;
    int64_t start = row.value ? layer.value_offset : 0, scales = start + 2 * blockTokens * features;
    for (int64_t i = 0; i < features; ++i) {
      int64_t code = row.value ? (row.head * blockTokens + row.token) * features + i
                               : ((row.head * 2 + row.token / lanes) * features + i) * lanes + row.token % lanes;
      int64_t scaleAt = scales + (((row.head * groups + i / 128) * 2) * blockTokens + row.token) * 4;
      float scale = floatAt(scaleAt), zero = floatAt(scaleAt + blockTokens * 4);
      ASSERT_EQ(loaded(row, block)[i], zero + scale * unsignedAt(start + code));
      ASSERT_NEAR(numbers[i], zero + scale * unsignedAt(start + code), scale * 0.501f);
      auto first = numbers.begin() + i / 128 * 128, last = numbers.begin() + std::min(i / 128 * 128 + 128, features);
      ASSERT_EQ(zero, *std::min_element(first, last));
      ASSERT_NEAR(scale, (*std::max_element(first, last) - zero) / 255, 1e-6f * scale);
    }
  });
}

// Byte i of a group of n has feature i in its lower half, feature i + ceil(n / 2) in its upper one. 51 features leave the last byte half empty.
TEST(StoredRows, HalvesLieAsDescribed) {
  quire_model_layer layer = codeLayer(QUIRE_ELEMENT_I4);
  layer.value_dim = 51;
  std::vector<char> block(static_cast<size_t>(layer.block_bytes), '\xff');
  auto byteAt = [&](int64_t at) { return static_cast<int>(static_cast<unsigned char>(block[at])); };
  auto floatAt = [&](int64_t at) {
    float number;
    std::memcpy(&number, block.data() + at, 4);
    return number;
  };
  eachRow(layer, [&](const StoredRow &row) {
    std::vector<float> numbers = numbersOf(row, 5);
    storeRow(row, numbers.data(), block.data());
    int64_t features = row.features(), bytes = (features + 1) / 2, groups = row.value ? 1 : 2;
    int64_t start = row.value ? layer.value_offset : 0, scales = start + (2 * blockTokens * bytes + 63) / 64 * 64;
    for (int64_t i = 0; i < features; ++i) {
      int64_t inGroup = i % 128, half = (std::min(i / 128 * 128 + 128, features) - i / 128 * 128 + 1) / 2;
      int64_t byte = i / 128 * 64 + inGroup % half;
      int64_t place = row.value ? (row.head * blockTokens + row.token) * bytes + byte
                                : ((row.head * 2 + row.token / lanes) * bytes + byte) * lanes + row.token % lanes;
      int code = inGroup < half ? byteAt(start + place) % 16 : byteAt(start + place) / 16;
      int64_t scaleAt = scales + (((row.head * groups + i / 128) * 2) * blockTokens + row.token) * 4;
      float scale = floatAt(scaleAt), zero = floatAt(scaleAt + blockTokens * 4);
      ASSERT_EQ(loaded(row, block)[i], zero + scale * static_cast<float>(code));
      ASSERT_NEAR(numbers[i], zero + scale * static_cast<float>(code), scale * 0.501f);
      auto first = numbers.begin() + i / 128 * 128, last = numbers.begin() + std::min(i / 128 * 128 + 128, features);
      ASSERT_EQ(zero, *std::min_element(first, last));
      ASSERT_NEAR(scale, (*std::max_element(first, last) - zero) / 15, 1e-6f * scale);
    }
    if (row.value)
      ASSERT_LT(byteAt(start + (row.head * blockTokens + row.token) * bytes + bytes - 1), 16);
  });
}

/// The number of 8 bits in f64, from the OCP specification: NaN for codes that are none or infinite.
double smallFloat(int code, int mantissaBits, bool infinities) {
  int exponent = (code & 127) >> mantissaBits, mantissa = code & ((1 << mantissaBits) - 1), bias = infinities ? 15 : 7;
  if (infinities ? exponent == 31 : (code & 127) == 127)
    return NAN;
  double fraction = static_cast<double>(mantissa) / (1 << mantissaBits);
  double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return code & 128 ? -magnitude : magnitude;
}

// Against the nearest of all codes in f64. What the codecs of the same formats refuse is not a number, and all else is not another one.
TEST(StoredRows, SmallFloatsAreTheNearestOrNotANumber) {
  for (auto [element, mantissaBits, codec] : {std::tuple(QUIRE_ELEMENT_FP8_E4M3, 3, Codec::Fp8E4M3), std::tuple(QUIRE_ELEMENT_FP8_E5M2, 2, Codec::Fp8E5M2)}) {
    bool infinities = element == QUIRE_ELEMENT_FP8_E5M2;
    double largest = infinities ? 57344 : 448;
    quire_model_layer layer = smallFloatLayer(element);
    std::vector<char> block(static_cast<size_t>(layer.block_bytes), '\xff');
    TestBlock source({1, 192, 4, QUIRE_ELEMENT_F32, 1, 1});
    std::vector<char> encoded(static_cast<size_t>(encodedBytes(codec, source.layer(), 1)));
    StoredRow row{&layer, blockTokens, false, 1, 11};
    for (double start : {0.0, 1e-9, 0.001, 0.9, 440.0, 57000.0, 1e30}) {
      std::vector<float> numbers(192);
      for (int64_t i = 0; i < 192; ++i)
        numbers[i] = static_cast<float>((i % 2 ? -1 : 1) * start * (1 + static_cast<double>(i * i) / 8192));
      if (start == 0)
        numbers = {INFINITY, -INFINITY, NAN, 448, -448, 449, 464, -464.1f, 57344, -57344, 57345, 61440, 0x1p-9f, 0x1p-10f, 0x1.8p-10f, 0x1p-16f, 0x1p-17f, 0x1.8p-17f, -0.0f};
      numbers.resize(192);
      storeRow(row, numbers.data(), block.data());
      std::vector<float> got = loaded(row, block);
      for (int64_t i = 0; i < 192; ++i) {
        source.fill(1, [&](Place place) { return place.value ? 0.0 : static_cast<double>(numbers[i]); });
        bool refused = encode(codec, source.layer(), 1, source.data(), 1, encoded.data()) != EncodeResult::Encoded;
        ASSERT_EQ(std::isnan(got[i]), refused) << numbers[i];
        ASSERT_EQ(refused, !(std::fabs(numbers[i]) <= largest)) << numbers[i];
        int code = static_cast<unsigned char>(block[((2 + row.token / lanes) * 192 + i) * lanes + row.token % lanes]);
        if (refused) {
          ASSERT_EQ(code, 0x7f);
          continue;
        }
        ASSERT_EQ(code, static_cast<int>(static_cast<unsigned char>(encoded[0]))) << numbers[i];
        double best = INFINITY;
        for (int other = 0; other < 256; ++other)
          if (double number = smallFloat(other, mantissaBits, infinities); !std::isnan(number))
            best = std::min(best, std::fabs(number - numbers[i]));
        ASSERT_EQ(static_cast<double>(got[i]), smallFloat(code, mantissaBits, infinities));
        ASSERT_EQ(std::fabs(static_cast<double>(got[i]) - numbers[i]), best) << numbers[i];
      }
    }
  }
}

TEST(StoredRows, EqualNumbersAreKeptExactly) {
  for (int64_t element : {QUIRE_ELEMENT_I8, QUIRE_ELEMENT_I4}) {
    quire_model_layer layer = codeLayer(element);
    std::vector<char> block(static_cast<size_t>(layer.block_bytes));
    StoredRow row{&layer, blockTokens, false, 1, 3};
    std::vector<float> numbers(192, -0.3f);
    std::fill(numbers.begin() + 128, numbers.end(), 1e30f);
    storeRow(row, numbers.data(), block.data());
    EXPECT_EQ(loaded(row, block), numbers);
  }
}

TEST(StoredRows, AGroupWithANumberThatIsNotFiniteIsNotANumber) {
  for (int64_t element : {QUIRE_ELEMENT_I8, QUIRE_ELEMENT_I4})
    for (float broken : {INFINITY, -INFINITY, NAN}) {
      quire_model_layer layer = codeLayer(element);
      std::vector<char> block(static_cast<size_t>(layer.block_bytes));
      StoredRow row{&layer, blockTokens, false, 0, 9};
      std::vector<float> numbers = numbersOf(row, 7);
      numbers[5] = broken;
      storeRow(row, numbers.data(), block.data());
      std::vector<float> back = loaded(row, block);
      EXPECT_TRUE(std::all_of(back.begin(), back.begin() + 128, [](float x) { return std::isnan(x); }));
      EXPECT_TRUE(std::all_of(back.begin() + 128, back.end(), [](float x) { return std::isfinite(x); }));
    }
}

TEST(StoredRows, MovedTokensKeepTheirElementsAndScales) {
  for (quire_model_layer layer : {codeLayer(), codeLayer(QUIRE_ELEMENT_I4), smallFloatLayer(QUIRE_ELEMENT_FP8_E4M3), smallFloatLayer(QUIRE_ELEMENT_FP8_E5M2)}) {
    std::vector<char> before(static_cast<size_t>(layer.block_bytes)), after;
    eachRow(layer, [&](const StoredRow &row) { storeRow(row, numbersOf(row, 9).data(), before.data()); });
    after = before;
    char *page = after.data();
    uint64_t start = 0;
    TokenMove moves[] = {{{0, 5}, {0, 1}}, {{0, 12}, {0, 2}}};
    movePositions({&layer, &start, 1, blockTokens}, &page, moves, 2);
    eachRow(layer, [&](StoredRow row) {
      std::vector<float> got = loaded(row, after);
      row.token = row.token == 1 ? 5 : row.token == 2 ? 12 : row.token;
      EXPECT_EQ(got, loaded(row, before)) << elementName(layer.element);
    });
  }
}

TEST(StoredRows, NarrowElementsAreNotEncodedAgain) {
  for (quire_model_layer layer : {codeLayer(), codeLayer(QUIRE_ELEMENT_I4), smallFloatLayer(QUIRE_ELEMENT_FP8_E4M3), smallFloatLayer(QUIRE_ELEMENT_FP8_E5M2)}) {
    std::vector<char> block(static_cast<size_t>(layer.block_bytes)), out(block.size());
    EXPECT_EQ(encode(Codec::Int8G128, layer, blockTokens, block.data(), blockTokens, out.data()), EncodeResult::Codes);
    EXPECT_EQ(encode(Codec::None, layer, blockTokens, block.data(), blockTokens, out.data()), EncodeResult::Encoded);
  }
  EXPECT_STREQ(encodeResultName(EncodeResult::Codes), "codes already");
}

TEST(StoredRows, ScalesMustFitIntoTheBlock) {
  quire_model_layer layer = codeLayer();
  quire_model_info info{};
  info.vocabulary = info.token_limit = 10;
  info.max_positions = -1;
  info.block_tokens = blockTokens;
  info.layer_count = 1;
  info.layers = &layer;
  EXPECT_TRUE(checkModelInfo(info).ok());
  EXPECT_EQ(rowBytes(layer, false), 2 * (192 + 16));
  EXPECT_EQ(rowBytes(layer, true), 2 * (80 + 8));
  for (auto [narrow, key, value] : {std::tuple(codeLayer(QUIRE_ELEMENT_I4), 96 + 16, 40 + 8), std::tuple(smallFloatLayer(QUIRE_ELEMENT_FP8_E4M3), 192, 80),
                                    std::tuple(smallFloatLayer(QUIRE_ELEMENT_FP8_E5M2), 192, 80)}) {
    layer = narrow;
    EXPECT_TRUE(checkModelInfo(info).ok()) << checkModelInfo(info).text();
    EXPECT_EQ(rowBytes(layer, false), 2 * key);
    EXPECT_EQ(rowBytes(layer, true), 2 * value);
    layer.block_bytes -= 1;
    EXPECT_NE(checkModelInfo(info).text().find("keys and values do not fit"), std::string::npos);
    layer = narrow;
    layer.value_offset -= 1;
    EXPECT_NE(checkModelInfo(info).text().find("keys and values do not fit"), std::string::npos);
  }
  layer = codeLayer();
  layer.block_bytes -= 1;
  EXPECT_NE(checkModelInfo(info).text().find("keys and values do not fit"), std::string::npos);
  layer = codeLayer();
  layer.value_offset -= 64;
  EXPECT_NE(checkModelInfo(info).text().find("keys and values do not fit"), std::string::npos);
  layer = codeLayer();
  layer.kv_heads = layer.key_dim = int64_t(1) << 24;
  info.block_tokens = int64_t(1) << 24;
  EXPECT_NE(checkModelInfo(info).text().find("keys and values do not fit"), std::string::npos);
}

TEST(StoredRows, TheCInterfaceChecksItsArguments) {
  quire_model_layer layer = codeLayer();
  quire_model_info info{};
  info.block_tokens = blockTokens;
  info.layer_count = 1;
  info.layers = &layer;
  std::vector<char> block(static_cast<size_t>(layer.block_bytes));
  std::vector<float> key(192, 1.0f), value(80, 2.0f), gotKey(192), gotValue(80);
  ASSERT_EQ(quire_block_store_row(&info, 0, block.data(), 1, 15, key.data(), value.data()), QUIRE_OK);
  ASSERT_EQ(quire_block_load_row(&info, 0, block.data(), 1, 15, gotKey.data(), gotValue.data()), QUIRE_OK);
  EXPECT_EQ(gotKey, key);
  EXPECT_EQ(gotValue, value);
  auto refused = [&](int64_t ofLayer, int64_t head, int64_t token, const char *text) {
    for (quire_status status :
         {quire_block_store_row(&info, ofLayer, block.data(), head, token, key.data(), value.data()),
          quire_block_load_row(&info, ofLayer, block.data(), head, token, gotKey.data(), gotValue.data())}) {
      EXPECT_EQ(status, QUIRE_INVALID_ARGUMENT);
      EXPECT_STREQ(quire_last_error(), text);
    }
  };
  refused(1, 0, 0, "layer: expected 0 to 0, but got 1");
  refused(0, 2, 0, "head: expected 0 to 1, but got 2");
  refused(0, 0, -1, "token: expected 0 to 15, but got -1");
  EXPECT_EQ(quire_block_load_row(&info, 0, nullptr, 0, 0, gotKey.data(), gotValue.data()), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected info, block, key and value, but got null");
  EXPECT_EQ(quire_block_store_row(nullptr, 0, block.data(), 0, 0, key.data(), value.data()), QUIRE_INVALID_ARGUMENT);
}

} // namespace
