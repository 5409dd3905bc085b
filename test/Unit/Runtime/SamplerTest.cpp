// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sampling: known answers of the generator, ties, truncation, frequencies.
#include "serving/Sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

using namespace quire::serving;

static constexpr float infinity = std::numeric_limits<float>::infinity();

static int64_t choose(const std::vector<float> &logits, const Sampling &sampling = {}, uint64_t index = 0) {
  return Sampler().choose(logits.data(), static_cast<int64_t>(logits.size()), sampling, index);
}

TEST(Sampler, PhiloxKnownAnswer) {
  // Random123's kat_vectors: philox4x32-10, counter 0 and key 0 begin with 6627e8d5 e169c58d.
  uint64_t bits = uint64_t(0x6627e8d5) << 32 | 0xe169c58d;
  EXPECT_EQ(uniformAt(0, 0), static_cast<double>(bits >> 11) * 0x1p-53);
  EXPECT_NE(uniformAt(0, 1), uniformAt(0, 0));
  EXPECT_NE(uniformAt(1, 0), uniformAt(0, 0));
  EXPECT_NE(uniformAt(uint64_t(1) << 32, 0), uniformAt(0, 0));
}

TEST(Sampler, GreedyTakesLowestIndexOnTies) {
  EXPECT_EQ(choose({1, 3, 3, 2}), 1);
  EXPECT_EQ(choose({-infinity, -infinity}), 0);
  EXPECT_EQ(choose({0, infinity, infinity}), 1);
  EXPECT_EQ(choose({0, -0.0f}), 0);
  EXPECT_EQ(choose({-5}), 0);
}

TEST(Sampler, NotANumberIsReported) {
  Sampling warm;
  warm.temperature = 1;
  EXPECT_EQ(choose({1, NAN, 3}), -1);
  EXPECT_EQ(choose({1, NAN, 3}, warm), -1);
}

TEST(Sampler, DependsOnSeedAndIndexOnly) {
  Sampling s;
  s.temperature = 1.5;
  s.seed = 9;
  std::vector<float> logits;
  for (int i = 0; i < 50; ++i)
    logits.push_back(std::sin(static_cast<float>(i)));
  Sampler used;
  for (uint64_t i = 0; i < 20; ++i)
    used.choose(logits.data(), 50, s, 1000 + i);
  std::map<int64_t, int> seen;
  for (uint64_t i = 0; i < 50; ++i) {
    int64_t token = choose(logits, s, i);
    EXPECT_EQ(used.choose(logits.data(), 50, s, i), token);
    ++seen[token];
  }
  EXPECT_GT(seen.size(), 10u);
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  Sampling s;
  s.temperature = 2;
  std::vector<float> logits = {0, 2, 4, -infinity};
  double total = std::exp(0.0) + std::exp(1.0) + std::exp(2.0);
  std::map<int64_t, int> seen;
  int count = 20000;
  for (int i = 0; i < count; ++i)
    ++seen[choose(logits, s, static_cast<uint64_t>(i))];
  for (int64_t v = 0; v < 3; ++v)
    EXPECT_NEAR(seen[v] / double(count), std::exp(static_cast<double>(v)) / total, 0.015);
  EXPECT_EQ(seen.count(3), 0u);
}

TEST(Sampler, TopK) {
  Sampling s;
  s.temperature = 100; // nearly even
  s.topK = 2;
  std::map<int64_t, int> seen;
  for (uint64_t i = 0; i < 500; ++i)
    ++seen[choose({1, 5, 3, 5, 4, 5}, s, i)]; // of the three equal ones, the first two
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_GT(seen[1], 100);
  EXPECT_GT(seen[3], 100);
  s.topK = 1;
  EXPECT_EQ(choose({1, 5, 3, 5}, s, 3), 1);
  s.topK = 1000;
  EXPECT_GE(choose({1, 5, 3, 5}, s, 3), 0);
}

TEST(Sampler, TopP) {
  Sampling s;
  s.temperature = 1;
  s.topP = 0.6; // probabilities .5 .25 .125 .125: the first two
  float ln2 = std::log(2.0f);
  std::map<int64_t, int> seen;
  for (uint64_t i = 0; i < 900; ++i)
    ++seen[choose({-3 * ln2, -ln2, -2 * ln2, -3 * ln2}, s, i)];
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_NEAR(seen[1] / 900.0, 2.0 / 3, 0.05);
  s.topP = 1e-9; // at least one
  EXPECT_EQ(choose({1, 5, 3}, s, 0), 1);
}

TEST(Sampler, TinyTemperatureIsGreedy) {
  Sampling s;
  s.temperature = 1e-300;
  for (uint64_t i = 0; i < 50; ++i)
    EXPECT_EQ(choose({1, 5, 4.999f}, s, i), 1);
}
