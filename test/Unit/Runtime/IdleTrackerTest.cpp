// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Idle pages against a map of last reads.
#include "compress/IdleTracker.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

using namespace quire::runtime;

namespace {

TEST(IdleTracker, PagesAreIdleAfterSoManySteps) {
  IdleTracker tracker(4, 3);
  uint32_t out[4];
  tracker.read(2, 10);
  tracker.read(0, 11);
  EXPECT_EQ(tracker.take(12, out, 4), 0u);
  EXPECT_EQ(tracker.take(13, out, 4), 1u);
  EXPECT_EQ(out[0], 2u);
  EXPECT_EQ(tracker.take(13, out, 4), 0u) << "handed out once";
  tracker.read(2, 13);
  EXPECT_EQ(tracker.take(20, out, 1), 1u);
  EXPECT_EQ(out[0], 0u) << "the longest idle first";
  EXPECT_EQ(tracker.take(20, out, 4), 1u);
  EXPECT_EQ(out[0], 2u);
  EXPECT_EQ(tracker.watched(), 0u);
}

TEST(IdleTracker, ForgottenPagesAreNoCandidates) {
  IdleTracker tracker(3, 1);
  uint32_t out[3];
  for (uint32_t page : {0u, 1u, 2u})
    tracker.read(page, 1);
  tracker.forget(1);
  tracker.forget(1);
  EXPECT_EQ(tracker.watched(), 2u);
  EXPECT_EQ(tracker.take(2, out, 3), 2u);
  EXPECT_EQ(out[0], 0u);
  EXPECT_EQ(out[1], 2u);
}

TEST(IdleTracker, TheNumberOfStepsMayChange) {
  IdleTracker tracker(1, 100);
  uint32_t out[1];
  tracker.read(0, 0);
  EXPECT_EQ(tracker.take(50, out, 1), 0u);
  tracker.setIdleSteps(50);
  EXPECT_EQ(tracker.take(50, out, 1), 1u);
}

TEST(IdleTracker, RandomOperationsAgreeWithAMap) {
  constexpr uint32_t pages = 40;
  IdleTracker tracker(pages, 7);
  std::map<uint32_t, uint64_t> reads;
  std::mt19937 random(3);
  uint64_t step = 0;
  for (int i = 0; i < 20000; ++i) {
    uint32_t page = random() % pages;
    step += random() % 2;
    if (random() % 8 == 0) {
      tracker.forget(page);
      reads.erase(page);
    } else if (random() % 8 == 0) {
      uint32_t out[pages];
      size_t most = random() % 5, taken = tracker.take(step, out, most), idle = 0;
      for (auto [other, read] : reads)
        idle += step - read >= 7;
      ASSERT_EQ(taken, std::min(most, idle));
      for (size_t j = 0; j < taken; ++j) {
        ASSERT_GE(step - reads.at(out[j]), 7u);
        reads.erase(out[j]);
      }
    } else {
      tracker.read(page, step);
      reads[page] = step;
    }
    ASSERT_EQ(tracker.watched(), reads.size());
    Status status = tracker.validate();
    ASSERT_TRUE(status.ok()) << status.text();
  }
}

} // namespace
