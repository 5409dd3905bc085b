// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prefetch strategies: predicted order, hot spots, layers, windows.
#include "AllocationCount.h"
#include "residency/Prefetch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <tuple>

using namespace quire::runtime;

static std::vector<uint32_t> ahead(const AccessOrder &order, size_t skip, size_t most) {
  std::vector<uint32_t> out(most);
  out.resize(order.ahead(skip, most, out.data()));
  return out;
}

static void step(AccessOrder &order, const std::vector<uint32_t> &pages) {
  order.beginStep();
  for (uint32_t page : pages)
    order.used(page);
}

TEST(Prefetch, NamesGoBothWays) {
  for (const char *name : {"none", "sequential", "seed_hotspot", "digest", "layer_ahead", "hybrid"}) {
    PrefetchKind kind;
    ASSERT_TRUE(prefetchFromName(name, kind));
    EXPECT_STREQ(prefetchName(kind), name);
  }
  PrefetchKind kind;
  EXPECT_FALSE(prefetchFromName("hotspot", kind));
}

TEST(Prefetch, NumberingGoesBothWays) {
  for (bool isGroupMajor : {false, true}) {
    PageNumbering numbering{5, 3, isGroupMajor};
    std::vector<bool> seen(15, false);
    for (uint32_t block = 0; block < 5; ++block)
      for (uint32_t group = 0; group < 3; ++group) {
        uint32_t page = numbering.page(block, group);
        ASSERT_LT(page, 15u);
        EXPECT_FALSE(seen[page]);
        seen[page] = true;
        EXPECT_EQ(numbering.blockOf(page), block);
        EXPECT_EQ(numbering.groupOf(page), group);
      }
  }
}

TEST(Prefetch, OrderOfTheLastStepIsPredicted) {
  AccessOrder order(10);
  EXPECT_TRUE(ahead(order, 0, 3).empty());
  EXPECT_EQ(order.distance(4), NextUse::never);
  step(order, {4, 2, 7, 1});
  order.beginStep();
  EXPECT_EQ(ahead(order, 0, 3), (std::vector<uint32_t>{4, 2, 7}));
  EXPECT_EQ(order.distance(4), 1u);
  order.used(4);
  EXPECT_EQ(ahead(order, 0, 3), (std::vector<uint32_t>{2, 7, 1}));
  EXPECT_EQ(ahead(order, 2, 2), (std::vector<uint32_t>{1, 4})); // into the next step
  EXPECT_EQ(order.distance(2), 1u);
  EXPECT_EQ(order.distance(1), 3u);
  EXPECT_EQ(order.distance(4), 4u);
  EXPECT_EQ(order.distance(9), NextUse::never);
  order.used(9); // new: used again in the next step, after this one's rest
  EXPECT_EQ(order.distance(9), 5u);
  EXPECT_EQ(ahead(order, 0, 1), (std::vector<uint32_t>{2}));
  order.used(7); // one was left out
  EXPECT_EQ(ahead(order, 0, 1), (std::vector<uint32_t>{1}));
  order.forget(1);
  EXPECT_EQ(ahead(order, 0, 1), (std::vector<uint32_t>{4}));
  EXPECT_EQ(order.distance(1), NextUse::never);
  order.beginStep();
  EXPECT_EQ(ahead(order, 0, 9), (std::vector<uint32_t>{4, 9, 7}));
}

TEST(Prefetch, OrderSaysHowOftenItWasRight) {
  AccessOrder dense(8), random(8);
  std::mt19937_64 generator(1);
  std::vector<uint32_t> pages(8);
  std::iota(pages.begin(), pages.end(), 0);
  for (int i = 0; i < 50; ++i) {
    step(dense, pages);
    std::vector<uint32_t> shuffled = pages;
    std::shuffle(shuffled.begin(), shuffled.end(), generator);
    step(random, shuffled);
  }
  EXPECT_EQ(dense.predictions(), 49u * 8);
  EXPECT_EQ(dense.fulfilled(), dense.predictions());
  EXPECT_LT(static_cast<double>(random.fulfilled()), 0.4 * static_cast<double>(random.predictions()));
}

TEST(Prefetch, OrderSurvivesRandomUsesAndEndsOfPages) {
  std::mt19937_64 random(3);
  const uint32_t pages = 20;
  AccessOrder order(pages);
  std::vector<uint32_t> last, now; // without those that were forgotten
#ifndef QUIRE_CHECK_INVARIANTS
  std::vector<uint32_t> out(pages);
  int64_t before = 0;
  last.reserve(2 * pages), now.reserve(2 * pages);
  before = allocations.load();
#endif
  for (int i = 0; i < 20000; ++i) {
    uint32_t page = static_cast<uint32_t>(random() % pages);
    switch (random() % 8) {
    case 0:
      if (!now.empty())
        last = now, now.clear();
      order.beginStep();
      break;
    case 1:
      last.erase(std::remove(last.begin(), last.end(), page), last.end());
      now.erase(std::remove(now.begin(), now.end(), page), now.end());
      order.forget(page);
      break;
    default:
      if (std::find(now.begin(), now.end(), page) == now.end())
        now.push_back(page);
      order.used(page);
    }
#ifdef QUIRE_CHECK_INVARIANTS
    std::vector<uint32_t> found = ahead(order, 0, pages), expected = last;
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(found, expected) << i;
    for (size_t k = 0; k + 1 < found.size(); ++k)
      ASSERT_NE(order.distance(found[k]), NextUse::never);
#endif
  }
#ifndef QUIRE_CHECK_INVARIANTS
  EXPECT_EQ(allocations.load(), before);
#endif
}

TEST(Prefetch, EvictsOnlyWhatIsUsedLater) {
  class Allowed final : public Evictable {
    bool mayEvict(uint32_t page) const override { return page != 3; }
  } allowed;
  AccessOrder order(8);
  step(order, {0, 1, 2, 3, 4});
  order.beginStep();
  order.used(0);
  UsedLater later(allowed, order, order.distance(2));
  EXPECT_FALSE(later.mayEvict(1)); // sooner
  EXPECT_FALSE(later.mayEvict(2)); // itself
  EXPECT_FALSE(later.mayEvict(3)); // refused
  EXPECT_TRUE(later.mayEvict(4));
  EXPECT_TRUE(later.mayEvict(0)); // in the next step
  EXPECT_TRUE(later.mayEvict(7)); // never
  EXPECT_FALSE(UsedLater(allowed, order, NextUse::never).mayEvict(7)); // nobody knows which is sooner
}

TEST(Prefetch, NextBlockIsThereBeforeItsFirstToken) {
  EXPECT_EQ(blocksWithNext(0, 16), 1u);
  EXPECT_EQ(blocksWithNext(15, 16), 1u);
  EXPECT_EQ(blocksWithNext(16, 16), 2u); // the last one is full: the next token needs another
  EXPECT_EQ(blocksWithNext(17, 16), 2u);
}

TEST(Prefetch, TopMassIsASort) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    size_t count = random() % 40, k = random() % 12;
    std::vector<float> mass(count);
    for (float &value : mass)
      value = static_cast<float>(random() % 8) / 8; // ties, and zeros
    std::vector<uint32_t> expected, out(k);
    for (uint32_t i = 0; i < count; ++i)
      if (mass[i] > 0)
        expected.push_back(i);
    std::sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) { return std::tie(mass[b], a) < std::tie(mass[a], b); });
    expected.resize(std::min(expected.size(), k));
    out.resize(topMass(mass.data(), count, k, out.data()));
    EXPECT_EQ(out, expected);
  }
  float odd[] = {NAN, 0.5f, -1};
  uint32_t out[3];
  EXPECT_EQ(topMass(odd, 3, 3, out), 1u);
}

TEST(Prefetch, NextLayerOfTheSameBlocks) {
  PageNumbering numbering{4, 3, false};
  const uint32_t blocks[] = {2, 0};
  uint32_t out[2];
  ASSERT_EQ(layerAhead(numbering, blocks, 2, 1, out), 2u);
  EXPECT_EQ(out[0], numbering.page(2, 2));
  EXPECT_EQ(out[1], numbering.page(0, 2));
  EXPECT_EQ(layerAhead(numbering, blocks, 2, 2, out), 0u); // the last
}

static std::vector<uint32_t> windows(const std::vector<uint32_t> &remaining, uint32_t window, uint32_t most, uint64_t available,
                                     uint64_t &sum) {
  std::vector<uint32_t> out(remaining.size());
  sum = batchWindows(remaining.data(), remaining.size(), window, most, available, out.data());
  EXPECT_EQ(sum, std::accumulate(out.begin(), out.end(), uint64_t(0)));
  return out;
}

TEST(Prefetch, WindowsAreInProportion) {
  uint64_t sum;
  EXPECT_EQ(windows({10, 10, 10, 10}, 3, 8, 100, sum), (std::vector<uint32_t>{3, 3, 3, 3}));
  EXPECT_EQ(windows({10, 20, 30}, 4, 8, 100, sum), (std::vector<uint32_t>{2, 4, 6}));
  EXPECT_EQ(windows({1, 1, 98}, 4, 8, 100, sum), (std::vector<uint32_t>{1, 1, 8})); // clamped at both ends
  EXPECT_EQ(windows({1, 1, 98}, 4, 100, 100, sum), (std::vector<uint32_t>{1, 1, 10})); // the sum stays at 12
  EXPECT_EQ(windows({10, 20, 30}, 4, 8, 6, sum), (std::vector<uint32_t>{1, 2, 3})); // six slots are free
  EXPECT_EQ(windows({10, 0, 10}, 3, 8, 100, sum), (std::vector<uint32_t>{5, 0, 4})); // 4.5 each
  EXPECT_EQ(windows({5, 5, 5}, 2, 8, 2, sum), (std::vector<uint32_t>{1, 1, 0}));
  EXPECT_EQ(windows({}, 3, 8, 9, sum), std::vector<uint32_t>());
  EXPECT_EQ(windows({3, 3}, 0, 8, 9, sum), (std::vector<uint32_t>{0, 0}));
  EXPECT_EQ(windows({3, 3}, 2, 8, 0, sum), (std::vector<uint32_t>{0, 0}));
}

TEST(Prefetch, WindowsKeepTheirPromisesOnAnyInput) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 20000; ++round) {
    size_t count = random() % 20;
    std::vector<uint32_t> remaining(count);
    for (uint32_t &value : remaining)
      value = static_cast<uint32_t>(random() % 5 == 0 ? 0 : random() % (random() % 2 ? 10 : 100000));
    uint32_t window = static_cast<uint32_t>(random() % 9), most = static_cast<uint32_t>(random() % 12);
    uint64_t available = random() % 100, sum, total = std::min<uint64_t>(uint64_t(window) * count, available);
    std::vector<uint32_t> out = windows(remaining, window, most, available, sum);
    ASSERT_LE(sum, total);
    double all = std::accumulate(remaining.begin(), remaining.end(), 0.0);
    size_t waiting = static_cast<size_t>(std::count_if(remaining.begin(), remaining.end(), [](uint32_t r) { return r > 0; }));
    uint64_t asked = 0;
    std::vector<uint32_t> formula(count, 0);
    for (size_t i = 0; i < count; ++i)
      if (remaining[i] > 0 && most > 0) {
        double part = std::round(static_cast<double>(total) * remaining[i] / all);
        formula[i] = static_cast<uint32_t>(std::clamp(part, 1.0, static_cast<double>(most)));
        asked += formula[i];
      }
    for (size_t i = 0; i < count; ++i) {
      ASSERT_LE(out[i], most);
      ASSERT_LE(out[i], formula[i]);
      if (remaining[i] > 0 && most > 0 && total >= waiting) {
        ASSERT_GE(out[i], 1u);
      }
    }
    if (asked <= total) {
      ASSERT_EQ(out, formula);
    } else {
      ASSERT_EQ(sum, total); // nothing more than needed is taken back
    }
  }
}
