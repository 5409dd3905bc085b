// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks of chosen shapes for tests of codecs, with their values as f64.
#ifndef QUIRE_TEST_UNIT_RUNTIME_CODECPAGES_H
#define QUIRE_TEST_UNIT_RUNTIME_CODECPAGES_H

#include "compress/Codec.h"

#include <functional>
#include <string>
#include <vector>

namespace quire::test {

struct BlockShape {
  int64_t kvHeads, keyDim, valueDim, element, lanes, blockTokens;

  std::string text() const;
};

/// 64 bytes of padding before V and at the end.
quire_model_layer layerOf(const BlockShape &shape);

/// Shapes with whole and with short groups, with one and with many lanes.
std::vector<BlockShape> blockShapes();

/// Bits of a value in an element format, by rounding in f64.
uint32_t elementBits(int64_t element, double value);

/// A value of a block.
struct Place {
  bool value; // V, not K
  int64_t head, token, channel;
};

class TestBlock {
public:
  /// Filled with 0xFF bytes, as the pool's poison does.
  explicit TestBlock(const BlockShape &shape);

  const quire_model_layer &layer() const { return layer_; }
  const BlockShape &shape() const { return shape_; }
  char *data() { return bytes_.data(); }
  const char *data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }
  bool operator==(const TestBlock &other) const { return bytes_ == other.bytes_; }

  void set(Place place, double value) { setBits(place, elementBits(shape_.element, value)); }
  double get(Place place) const;
  void setBits(Place place, uint32_t bits);
  uint32_t getBits(Place place) const;

  /// All channels of tokens 0 .. tokens, with values by place.
  void fill(int64_t tokens, const std::function<double(Place)> &value);
  void forEach(int64_t tokens, const std::function<void(Place)> &visit) const;

private:
  int64_t offsetOf(Place place) const;

  BlockShape shape_;
  quire_model_layer layer_;
  std::vector<char> bytes_;
};

/// Deterministic, about normal, with one channel in 32 tenfold.
double sampleValue(Place place, uint64_t seed);

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_CODECPAGES_H
