// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Places of values in blocks, written from the description in quire/model.h.
#include "CodecPages.h"

#include <cmath>
#include <cstring>
#include <random>

namespace quire::test {

std::string BlockShape::text() const {
  const char *elements[] = {"f32", "f16", "bf16"};
  return std::string(elements[element]) + " heads " + std::to_string(kvHeads) + " K " + std::to_string(keyDim) + " V " +
         std::to_string(valueDim) + " lanes " + std::to_string(lanes) + " tokens " + std::to_string(blockTokens);
}

static int64_t bytesOf(int64_t element) { return element == QUIRE_ELEMENT_F32 ? 4 : 2; }

quire_model_layer layerOf(const BlockShape &shape) {
  int64_t rows = shape.kvHeads * shape.blockTokens * bytesOf(shape.element);
  quire_model_layer layer{};
  layer.kv_heads = shape.kvHeads;
  layer.key_dim = shape.keyDim;
  layer.value_dim = shape.valueDim;
  layer.element = shape.element;
  layer.lanes = shape.lanes;
  layer.value_offset = rows * shape.keyDim + 64;
  layer.block_bytes = layer.value_offset + rows * shape.valueDim + 64;
  return layer;
}

std::vector<BlockShape> blockShapes() {
  std::vector<BlockShape> shapes;
  for (int64_t element : {QUIRE_ELEMENT_F32, QUIRE_ELEMENT_F16, QUIRE_ELEMENT_BF16}) {
    shapes.push_back({2, 128, 128, element, 16, 16});
    shapes.push_back({1, 64, 64, element, 8, 32});
    shapes.push_back({3, 80, 48, element, 4, 12}); // rows that are no multiple of 64 channels
    shapes.push_back({2, 5, 3, element, 3, 9});    // groups, runs and bytes that end early
    shapes.push_back({1, 100, 33, element, 1, 7});
    shapes.push_back({1, 2, 2, element, 256, 256}); // more lanes than a group has values
    shapes.push_back({2, 1, 1, element, 1, 1});
  }
  return shapes;
}

uint32_t elementBits(int64_t element, double value) {
  if (element == QUIRE_ELEMENT_F32) {
    float narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, 4);
    return bits;
  }
  int mantissa = element == QUIRE_ELEMENT_F16 ? 10 : 7, bias = element == QUIRE_ELEMENT_F16 ? 15 : 127;
  uint32_t infinity = element == QUIRE_ELEMENT_F16 ? 0x7c00 : 0x7f80, sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value))
    return infinity | 1;
  double size = std::fabs(value);
  if (std::isinf(value))
    return sign | infinity;
  int exponent = std::max(size == 0 ? -bias : std::ilogb(size), 1 - bias);
  uint32_t units = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, mantissa - exponent)));
  uint32_t bits = units + (static_cast<uint32_t>(exponent + bias - 1) << mantissa);
  return sign | std::min(bits, infinity);
}

TestBlock::TestBlock(const BlockShape &shape)
    : shape_(shape), layer_(layerOf(shape)), bytes_(static_cast<size_t>(layer_.block_bytes), '\xff') {}

int64_t TestBlock::offsetOf(Place place) const {
  int64_t bytes = bytesOf(shape_.element);
  if (place.value)
    return layer_.value_offset +
           ((place.head * shape_.blockTokens + place.token) * shape_.valueDim + place.channel) * bytes;
  int64_t chunks = shape_.blockTokens / shape_.lanes, chunk = place.token / shape_.lanes;
  return (((place.head * chunks + chunk) * shape_.keyDim + place.channel) * shape_.lanes + place.token % shape_.lanes) *
         bytes;
}

void TestBlock::setBits(Place place, uint32_t bits) {
  std::memcpy(bytes_.data() + offsetOf(place), &bits, static_cast<size_t>(bytesOf(shape_.element)));
}

uint32_t TestBlock::getBits(Place place) const {
  uint32_t bits = 0;
  std::memcpy(&bits, bytes_.data() + offsetOf(place), static_cast<size_t>(bytesOf(shape_.element)));
  return bits;
}

double TestBlock::get(Place place) const {
  uint32_t bits = getBits(place);
  if (shape_.element != QUIRE_ELEMENT_F16) {
    bits = shape_.element == QUIRE_ELEMENT_BF16 ? bits << 16 : bits;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
  }
  int exponent = static_cast<int>(bits >> 10 & 31);
  double mantissa = bits & 1023, sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return mantissa != 0 ? std::nan("") : sign * INFINITY;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

void TestBlock::forEach(int64_t tokens, const std::function<void(Place)> &visit) const {
  for (bool value : {false, true})
    for (int64_t head = 0; head < shape_.kvHeads; ++head)
      for (int64_t token = 0; token < tokens; ++token)
        for (int64_t channel = 0; channel < (value ? shape_.valueDim : shape_.keyDim); ++channel)
          visit({value, head, token, channel});
}

void TestBlock::fill(int64_t tokens, const std::function<double(Place)> &value) {
  forEach(tokens, [&](Place place) { set(place, value(place)); });
}

double sampleValue(Place place, uint64_t seed) {
  static const std::vector<double> numbers = [] {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    std::vector<double> made(8191);
    for (double &number : made)
      number = normal(random);
    return made;
  }();
  uint64_t z = seed;
  for (int64_t part : {int64_t(place.value), place.head, place.token, place.channel}) {
    z = (z + static_cast<uint64_t>(part) + 1) * 0x9e3779b97f4a7c15u;
    z ^= z >> 29;
  }
  return numbers[z % numbers.size()] * (place.channel % 32 == 5 ? 10 : 1);
}

} // namespace quire::test
