// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pruning: who stays, what becomes free, and that K and V arrive.
#include "compress/Prune.h"
#include "CodecPages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

using namespace quire::runtime;
using namespace quire::test;

namespace {

PrunePlan planOf(PruneRequest request, const std::vector<float> &scores, double ratio,
                 const std::vector<PositionRange> &keep = {}) {
  request.scores = scores.data();
  request.ratio = ratio;
  request.keep = keep.data();
  request.keepCount = static_cast<int64_t>(keep.size());
  PrunePlan plan;
  Status status = planPrune(request, plan);
  EXPECT_TRUE(status.ok()) << status.text();
  return plan;
}

PruneRequest requestOf(int64_t blocks, int64_t blockTokens) {
  PruneRequest request;
  request.blocks = blocks;
  request.blockTokens = blockTokens;
  return request;
}

std::vector<float> randomScores(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> scores(count);
  for (float &score : scores)
    score = static_cast<float>(random() % 20) / 20; // with ties
  return scores;
}

TEST(Prune, KeptTokens) {
  EXPECT_EQ(keptTokens(10, 0), 10);
  EXPECT_EQ(keptTokens(10, 1), 0);
  EXPECT_EQ(keptTokens(10, 0.5), 5);
  EXPECT_EQ(keptTokens(7, 0.5), 4) << "rounded up";
  EXPECT_EQ(keptTokens(10, 0.7), 3) << "1 - 0.7 is a little more than 0.3";
  EXPECT_EQ(keptTokens(10, 0.71), 3);
  EXPECT_EQ(keptTokens(1, 0.999), 1);
  EXPECT_EQ(keptTokens(0, 0.5), 0);
}

TEST(Prune, TheLargestScoresStayInOrder) {
  EXPECT_EQ(prune({0.1f, 0.9f, 0.5f, 0.7f}, 0.5), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(prune({1, 1, 1, 1}, 0.5), (std::vector<int64_t>{0, 1})) << "of equal ones the earliest";
  EXPECT_EQ(prune({NAN, -5, NAN, -6}, 0.5), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(prune({3, 2, 1}, 0), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_TRUE(prune({3, 2, 1}, 1).empty());
  EXPECT_TRUE(prune({}, 0.5).empty());
}

TEST(Prune, HalfOfEachOfFourBlocksFreesTwo) {
  std::vector<float> scores(64);
  for (size_t i = 0; i < scores.size(); ++i)
    scores[i] = i % 2 ? 1.0f : 0.0f; // 8 of 16 in each block
  PrunePlan plan = planOf(requestOf(4, 16), scores, 0.5);
  EXPECT_EQ(plan.freed, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(plan.lastTokens, 16);
  ASSERT_EQ(plan.positions.size(), 32u);
  for (int64_t i = 0; i < 32; ++i)
    EXPECT_EQ(plan.positions[i], 2 * i + 1);
  EXPECT_EQ(plan.moves.size(), 32u) << "even the first survivor moves, from slot 1 to 0";
}

TEST(Prune, WholeBlocksKeepMore) {
  PruneRequest request = requestOf(4, 16);
  request.wholeBlocks = true;
  for (int64_t goes : {0, 1, 15, 16, 17, 32, 63, 64}) {
    PrunePlan plan = planOf(request, randomScores(64, 5), static_cast<double>(goes) / 64);
    EXPECT_EQ(static_cast<int64_t>(plan.freed.size()), goes / 16);
    EXPECT_EQ(static_cast<int64_t>(plan.positions.size()), 64 - goes / 16 * 16);
    EXPECT_EQ(plan.lastTokens, goes == 64 ? 0 : 16);
  }
}

/// Attention over survivors with keys that were rotated by their positions, for a new row at its position and at its place.
TEST(Prune, APlaceIsNoPosition) {
  constexpr int64_t features = 128, count = 512, rounds = 30;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  using Row = std::vector<double>;
  auto draw = [&] {
    Row row(features);
    for (double &x : row)
      x = normal(random);
    return row;
  };
  Row frequencies;
  for (size_t i = 0; i < features; i += 2)
    frequencies.push_back(std::pow(10000.0, -static_cast<double>(i) / features));
  auto rotated = [&](const Row &row, int64_t position) {
    Row out(features);
    for (size_t i = 0; i < features; i += 2) {
      double angle = static_cast<double>(position) * frequencies[i / 2];
      out[i] = row[i] * std::cos(angle) - row[i + 1] * std::sin(angle);
      out[i + 1] = row[i] * std::sin(angle) + row[i + 1] * std::cos(angle);
    }
    return out;
  };
  double sum = 0;
  for (int64_t round = 0; round < rounds; ++round) {
    std::vector<Row> keys, values;
    for (int64_t i = 0; i < count; ++i) {
      keys.push_back(draw());
      values.push_back(draw());
    }
    Row query = draw();
    const Row &sought = keys[2 * (random() % (count / 2)) + 1];
    for (size_t i = 0; i < features; ++i)
      query[i] += 2 * sought[i];
    auto attend = [&](int64_t position) {
      Row turned = rotated(query, position), out(features);
      double total = 0;
      for (int64_t i = 1; i < count; i += 2) { // every second one survives
        Row key = rotated(keys[static_cast<size_t>(i)], i);
        double weight = std::exp(std::inner_product(key.begin(), key.end(), turned.begin(), 0.0) / std::sqrt(features));
        total += weight;
        for (size_t d = 0; d < features; ++d)
          out[d] += weight * values[static_cast<size_t>(i)][d];
      }
      for (double &x : out)
        x /= total;
      return out;
    };
    Row right = attend(count), wrong = attend(count / 2);
    double difference = 0, norm = 0;
    for (size_t d = 0; d < features; ++d) {
      difference += (right[d] - wrong[d]) * (right[d] - wrong[d]);
      norm += right[d] * right[d];
    }
    sum += std::sqrt(difference / norm);
  }
  EXPECT_GT(sum / rounds, 1.0);
  EXPECT_LT(sum / rounds, 2.0) << "docs/Rationale/Residency.md has the number";
}

TEST(Prune, EdgesOfTheRatio) {
  std::vector<float> scores = randomScores(64, 1);
  PrunePlan nothing = planOf(requestOf(4, 16), scores, 0);
  EXPECT_TRUE(nothing.moves.empty());
  EXPECT_TRUE(nothing.freed.empty());
  EXPECT_EQ(nothing.lastTokens, 16);
  PrunePlan all = planOf(requestOf(4, 16), scores, 1);
  EXPECT_TRUE(all.positions.empty());
  EXPECT_EQ(all.freed.size(), 4u);
  EXPECT_EQ(all.lastTokens, 0);
  PrunePlan one = planOf(requestOf(4, 16), scores, 0.99);
  EXPECT_EQ(one.positions.size(), 1u);
  EXPECT_EQ(one.freed.size(), 3u);
  EXPECT_EQ(one.lastTokens, 1);
  EXPECT_TRUE(planOf(requestOf(0, 16), {}, 0.5).freed.empty());
  PrunePlan more = planOf(requestOf(4, 16), scores, 0.49); // 33 tokens need 3 blocks
  EXPECT_EQ(more.freed, (std::vector<int32_t>{3}));
  EXPECT_EQ(more.lastTokens, 1);
}

TEST(Prune, BadRequestsAreRefused) {
  std::vector<float> scores(8, 1.0f);
  PrunePlan plan;
  for (double ratio : {-0.1, 1.1, double(NAN)}) {
    PruneRequest request = requestOf(2, 4);
    request.scores = scores.data();
    request.ratio = ratio;
    EXPECT_EQ(planPrune(request, plan).code(), QUIRE_INVALID_ARGUMENT);
  }
  PruneRequest request = requestOf(2, 0);
  EXPECT_EQ(planPrune(request, plan).code(), QUIRE_INVALID_ARGUMENT);
  std::vector<int64_t> positions{0, 1, 2, 3, 3, 5, 6, 7};
  request = requestOf(2, 4);
  request.scores = scores.data();
  request.positions = positions.data();
  Status status = planPrune(request, plan);
  EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(status.text(), "expected ascending positions, but got 3 after 3");
}

TEST(Prune, NothingProtectedIsLost) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    PruneRequest request = requestOf(1 + random() % 6, 1 + random() % 20);
    int64_t total = request.blocks * request.blockTokens;
    request.firstPosition = random() % 100;
    std::vector<float> scores = randomScores(static_cast<size_t>(total), seed);
    std::vector<PositionRange> keep;
    std::set<int64_t> guarded;
    for (uint32_t i = random() % 4; i > 0; --i) {
      int64_t begin = static_cast<int64_t>(random() % 150), end = begin + static_cast<int64_t>(random() % 20);
      keep.push_back({begin, end});
      for (int64_t p = std::max(begin, request.firstPosition); p < std::min(end, request.firstPosition + total); ++p)
        guarded.insert(p);
    }
    double ratio = static_cast<double>(random() % 101) / 100;
    PrunePlan plan = planOf(request, scores, ratio, keep);
    std::set<int64_t> kept(plan.positions.begin(), plan.positions.end());
    ASSERT_EQ(static_cast<int64_t>(kept.size()),
              std::max<int64_t>(keptTokens(total, ratio), static_cast<int64_t>(guarded.size())));
    ASSERT_TRUE(std::includes(kept.begin(), kept.end(), guarded.begin(), guarded.end()));
    ASSERT_TRUE(std::is_sorted(plan.positions.begin(), plan.positions.end()));
    // Nobody who left has a higher score than an unprotected one who stayed.
    float leastKept = INFINITY, mostLeft = -INFINITY;
    for (int64_t slot = 0; slot < total; ++slot) {
      int64_t position = request.firstPosition + slot;
      if (!kept.count(position))
        mostLeft = std::max(mostLeft, scores[slot]);
      else if (!guarded.count(position))
        leastKept = std::min(leastKept, scores[slot]);
    }
    ASSERT_LE(mostLeft, leastKept);
  }
}

TEST(Prune, PlanningAgainKeepsOriginalPositions) {
  std::vector<float> scores = randomScores(64, 8);
  PrunePlan first = planOf(requestOf(4, 16), scores, 0.5);
  PruneRequest request = requestOf(2, 16);
  request.positions = first.positions.data();
  PrunePlan second = planOf(request, randomScores(32, 9), 0.5, {{first.positions[3], first.positions[3] + 1}});
  EXPECT_EQ(second.freed, (std::vector<int32_t>{1}));
  EXPECT_TRUE(
      std::includes(first.positions.begin(), first.positions.end(), second.positions.begin(), second.positions.end()));
  EXPECT_TRUE(std::count(second.positions.begin(), second.positions.end(), first.positions[3]));
}

TEST(Prune, ReservedPlansDoNotGrow) {
  PrunePlan plan;
  plan.reserve(4, 16);
  const void *before[] = {plan.moves.data(), plan.positions.data(), plan.freed.data(), plan.order.data()};
  std::vector<float> scores = randomScores(64, 4);
  PruneRequest request = requestOf(4, 16);
  request.scores = scores.data();
  for (double ratio : {0.0, 0.3, 1.0}) {
    request.ratio = ratio;
    ASSERT_TRUE(planPrune(request, plan).ok());
  }
  const void *after[] = {plan.moves.data(), plan.positions.data(), plan.freed.data(), plan.order.data()};
  EXPECT_TRUE(std::equal(std::begin(before), std::end(before), std::begin(after)));
}

TEST(Prune, MovesCarryKeysAndValues) {
  for (const BlockShape &shape : blockShapes()) {
    SCOPED_TRACE(shape.text());
    constexpr int64_t blocks = 4;
    std::vector<TestBlock> originals, moved;
    for (int64_t b = 0; b < blocks; ++b) {
      TestBlock block(shape);
      block.fill(shape.blockTokens, [&](Place place) {
        place.token += b * shape.blockTokens;
        return sampleValue(place, 50);
      });
      originals.push_back(block);
    }
    moved = originals;
    PrunePlan plan = planOf(requestOf(blocks, shape.blockTokens),
                            randomScores(static_cast<size_t>(blocks * shape.blockTokens), 12), 0.4);
    std::vector<char *> pages;
    for (TestBlock &block : moved)
      pages.push_back(block.data());
    quire_model_layer layer = layerOf(shape);
    uint64_t start = 0;
    movePositions({&layer, &start, 1, shape.blockTokens}, pages.data(), plan.moves.data(),
                  static_cast<int64_t>(plan.moves.size()));
    for (size_t i = 0; i < plan.positions.size(); ++i) {
      int64_t slot = static_cast<int64_t>(i), position = plan.positions[i];
      const TestBlock &from = originals[static_cast<size_t>(position / shape.blockTokens)];
      const TestBlock &to = moved[static_cast<size_t>(slot / shape.blockTokens)];
      from.forEach(1, [&](Place place) {
        Place source = place, target = place;
        source.token = position % shape.blockTokens;
        target.token = slot % shape.blockTokens;
        ASSERT_EQ(to.getBits(target), from.getBits(source)) << slot;
      });
    }
  }
}

} // namespace
