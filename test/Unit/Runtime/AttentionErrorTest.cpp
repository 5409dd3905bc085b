// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The measure of attention's error, on cases whose error is known, and the order of the codecs by it.
#include "compress/AttentionError.h"
#include "CodecPages.h"
#include "compress/Prune.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace quire::runtime;
using namespace quire::test;

namespace {

/// A sequence of `tokens` in blocks of one layer.
struct TestSequence {
  TestSequence(const BlockShape &shape, int64_t tokens) : tokens(tokens), layer(layerOf(shape)) {
    for (int64_t first = 0; first < tokens; first += shape.blockTokens) {
      blocks.emplace_back(shape);
      blocks.back().fill(std::min(shape.blockTokens, tokens - first), [&](Place place) {
        place.token += first;
        return sampleValue(place, 77);
      });
    }
    layers = {&layer, &start, 1, shape.blockTokens};
  }

  StoredTokens stored() {
    addresses.clear();
    for (TestBlock &block : blocks)
      addresses.push_back(block.data());
    return {addresses.data(), tokens};
  }

  int64_t tokens;
  quire_model_layer layer;
  uint64_t start = 0;
  PageLayers layers;
  std::vector<TestBlock> blocks;
  std::vector<const char *> addresses;
};

const BlockShape shape{2, 64, 64, QUIRE_ELEMENT_F16, 16, 16};

TEST(AttentionError, NoneForTheSameContent) {
  TestSequence sequence(shape, 100);
  AttentionError error;
  ASSERT_EQ(measureCodecError(Codec::None, sequence.layers, sequence.stored(), {}, error), EncodeResult::Encoded);
  EXPECT_NEAR(error.cosineMean, 1, 1e-12);
  EXPECT_NEAR(error.cosineLeast, 1, 1e-12);
  EXPECT_EQ(error.relativeL2, 0);
  EXPECT_EQ(error.maximum, 0);
  EXPECT_EQ(error.outputs, 2 * 16);
}

TEST(AttentionError, ScaledValuesScaleTheOutput) {
  TestSequence original(shape, 50), changed(shape, 50), negated(shape, 50);
  for (size_t b = 0; b < original.blocks.size(); ++b)
    original.blocks[b].forEach(16, [&](Place place) {
      if (place.value && static_cast<int64_t>(b) * 16 + place.token < 50) {
        changed.blocks[b].set(place, original.blocks[b].get(place) * 2);
        negated.blocks[b].set(place, -original.blocks[b].get(place));
      }
    });
  AttentionError error = measureAttentionError(original.layers, original.stored(), changed.stored());
  EXPECT_NEAR(error.cosineLeast, 1, 1e-12) << "the direction is the same";
  EXPECT_NEAR(error.relativeL2, 1, 1e-12);
  EXPECT_GT(error.maximum, 0);
  error = measureAttentionError(original.layers, original.stored(), negated.stored());
  EXPECT_NEAR(error.cosineMean, -1, 1e-12);
  EXPECT_NEAR(error.relativeL2, 2, 1e-12);
}

TEST(AttentionError, MaximumIsOfOneComponent) {
  TestSequence original(shape, 1), changed(shape, 1); // attention over one token is its V
  Place place{true, 1, 0, 7};
  changed.blocks[0].set(place, original.blocks[0].get(place) + 4);
  AttentionError error = measureAttentionError(original.layers, original.stored(), changed.stored());
  EXPECT_NEAR(error.maximum, 4, 0.01);
}

TEST(AttentionError, NotANumberShows) {
  TestSequence original(shape, 20), changed(shape, 20);
  changed.blocks[0].set({true, 0, 3, 5}, std::nan(""));
  AttentionError error = measureAttentionError(original.layers, original.stored(), changed.stored());
  EXPECT_TRUE(std::isnan(error.cosineMean));
  EXPECT_TRUE(std::isnan(error.cosineLeast));
  EXPECT_TRUE(std::isnan(error.relativeL2));
  EXPECT_TRUE(std::isnan(error.maximum));
}

TEST(AttentionError, CodecsWithMoreBitsErrLess) {
  for (double peak : {0.0, 8.0}) {
    TestSequence sequence(shape, 200);
    AttentionErrorOptions options;
    options.peak = peak;
    auto measure = [&](Codec codec) {
      AttentionError error;
      EXPECT_EQ(measureCodecError(codec, sequence.layers, sequence.stored(), options, error), EncodeResult::Encoded);
      return error;
    };
    AttentionError int8 = measure(Codec::Int8G128), int4 = measure(Codec::Int4G128), e4m3 = measure(Codec::Fp8E4M3);
    AttentionError e5m2 = measure(Codec::Fp8E5M2), bitmap = measure(Codec::Sparse8Bitmap),
                   index = measure(Codec::Sparse8Index);
    EXPECT_LT(int8.relativeL2, 0.03);
    EXPECT_GT(int8.cosineLeast, 0.999);
    EXPECT_LT(int8.relativeL2, int4.relativeL2);
    EXPECT_LT(int8.relativeL2, e4m3.relativeL2);
    EXPECT_LT(e4m3.relativeL2, e5m2.relativeL2);
    EXPECT_LT(int4.relativeL2, bitmap.relativeL2);
    EXPECT_LT(bitmap.relativeL2, index.relativeL2);
  }
}

TEST(AttentionError, RefusalsAreHandedOn) {
  TestSequence sequence(shape, 20);
  sequence.blocks[1].set({false, 0, 2, 0}, INFINITY);
  AttentionError error;
  EXPECT_EQ(measureCodecError(Codec::Int4G128, sequence.layers, sequence.stored(), {}, error), EncodeResult::NotFinite);
}

TEST(AttentionError, PruningWhatIsAlikeCostsLittle) {
  TestSequence original(shape, 64), pruned(shape, 64);
  // Tokens differ so little in V that half of them stand for all.
  std::vector<float> scores(64);
  for (int64_t token = 0; token < 64; ++token) {
    scores[token] = token % 2 ? 1.0f : 0.0f;
    for (TestSequence *sequence : {&original, &pruned})
      for (int64_t head = 0; head < 2; ++head)
        for (int64_t channel = 0; channel < 64; ++channel) {
          TestBlock &block = sequence->blocks[static_cast<size_t>(token / 16)];
          block.set({true, head, token % 16, channel}, token % 2 ? 1.0 : 0.999);
        }
  }
  PruneRequest request;
  request.blocks = 4;
  request.blockTokens = 16;
  request.scores = scores.data();
  request.ratio = 0.5;
  PrunePlan plan;
  ASSERT_TRUE(planPrune(request, plan).ok());
  std::vector<char *> pages;
  for (TestBlock &block : pruned.blocks)
    pages.push_back(block.data());
  movePositions(pruned.layers, pages.data(), plan.moves.data(), static_cast<int64_t>(plan.moves.size()));
  pruned.tokens = static_cast<int64_t>(plan.positions.size());
  AttentionError error = measureAttentionError(original.layers, original.stored(), pruned.stored());
  EXPECT_LT(error.relativeL2, 0.001);
  EXPECT_GT(error.relativeL2, 0);
}

} // namespace
