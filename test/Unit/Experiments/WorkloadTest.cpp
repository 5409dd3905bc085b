// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generators against closed forms: lengths, contiguous caches that double, traces, needles, costs of steps.
#include "Replaying.h"
#include "Server.h"
#include "StoredPages.h"
#include "Workloads.h"

#include "doctor/Metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

using namespace quire::kvbench;
using namespace quire::runtime;

using Kind = TraceEvent::Kind;

TEST(Workloads, MeansOfLengthsAreThoseOfTheirFormulas) {
  for (int64_t most : {2048, 4096})
    for (Lengths lengths : allLengths) {
      Random random(7);
      constexpr int draws = 200'000;
      double sum = 0;
      for (int i = 0; i < draws; ++i) {
        int64_t length = drawLength(lengths, most, random);
        ASSERT_GE(length, 1);
        ASSERT_LE(length, most);
        sum += static_cast<double>(length);
      }
      double mean = sum / draws - (lengths == Lengths::Fixed ? 0 : 0.5); // rounded up
      EXPECT_NEAR(mean / static_cast<double>(most), meanLength(lengths, most) / static_cast<double>(most), 0.003)
          << lengthsName(lengths);
    }
  EXPECT_NEAR(1 - meanLength(Lengths::From20, 4096) / 4096, 0.4, 1e-12);
  EXPECT_NEAR(1 - meanLength(Lengths::From40, 2048) / 2048, 0.3, 1e-12);
  EXPECT_NEAR(1 - meanLength(Lengths::Chat, 2048) / 2048, 0.76, 0.01);
  EXPECT_NEAR(1 - meanLength(Lengths::Chat, 4096) / 4096, 0.88, 0.01);
}

TEST(Workloads, ShortestLengthsAreThoseOfTheirNames) {
  Random random(3);
  int64_t least20 = 1000, least40 = 1000;
  for (int i = 0; i < 20'000; ++i) {
    least20 = std::min(least20, drawLength(Lengths::From20, 1000, random));
    least40 = std::min(least40, drawLength(Lengths::From40, 1000, random));
  }
  EXPECT_GE(least20, 200);
  EXPECT_LE(least20, 202);
  EXPECT_GE(least40, 400);
  EXPECT_LE(least40, 402);
}

TEST(Workloads, EqualSeedsGiveEqualNumbers) {
  Random one(5), two(5), other(6);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    double value = one.normal();
    EXPECT_EQ(value, two.normal());
    differs |= value != other.normal();
  }
  EXPECT_TRUE(differs);
}

TEST(Workloads, DoublingCopiesLessThanItHolds) {
  EXPECT_EQ(doublingSlots(1, 4096), 16);
  EXPECT_EQ(doublingSlots(16, 4096), 16);
  EXPECT_EQ(doublingSlots(17, 4096), 32);
  EXPECT_EQ(doublingSlots(3000, 4000), 4000);
  EXPECT_EQ(doublingCopies(16, 4096), 0);
  EXPECT_EQ(doublingCopies(17, 4096), 16);
  EXPECT_EQ(doublingCopies(100, 4096), 16 + 32 + 64);
  for (int64_t tokens = 1; tokens < 4096; ++tokens)
    ASSERT_LT(doublingCopies(tokens, 4096), 2 * tokens);
}

TEST(Workloads, DenseTraceIsACyclicScan) {
  TraceShape shape;
  shape.blocks = 20;
  shape.steps = 30;
  Trace trace = denseTrace(shape);
  EXPECT_EQ(trace.dropped(), 0u);
  EXPECT_EQ(mostLivePages(trace), shape.pages());
  ReplayOptions options = replayAt(trace, 0.5);
  EXPECT_EQ(options.fastPages, shape.pages() / 2);
  EXPECT_EQ(replayed(trace, options).counters.hits, 0u);
  options.policy = PolicyKind::Scan;
  ReplayResult scan = replayed(trace, options);
  EXPECT_EQ(scan.counters.hits, scan.optimum.hits);
  EXPECT_EQ(scan.repeatedOrder, 1.0);
}

TEST(Workloads, SparseTraceReadsTopkBlocksOnceInEachGroup) {
  TraceShape shape;
  shape.blocks = 40;
  shape.steps = 25;
  SparseAttention attention{9, 0.8};
  Trace trace = sparseTrace(shape, attention, 11);
  EXPECT_EQ(trace.dropped(), 0u);
  std::map<uint32_t, std::set<uint32_t>> read; // by group, of the step
  size_t demands = 0;
  for (const TraceEvent &event : trace.events()) {
    if (event.kind == Kind::Step)
      read.clear();
    if (event.kind != Kind::Demand)
      continue;
    ++demands;
    EXPECT_TRUE(read[trace.numbering.groupOf(event.page)].insert(trace.numbering.blockOf(event.page)).second);
  }
  EXPECT_EQ(demands, size_t(shape.steps) * shape.groups * attention.topk);
  EXPECT_TRUE(read[0].count(0) && read[0].count(38) && read[0].count(39));
}

/// Half of a step's pages are those of the step before or more, and what is named before a group is about what the group reads.
TEST(Workloads, KeyedTraceReadsWhatItsQueriesGiveMost) {
  TraceShape shape;
  shape.blocks = 40;
  shape.steps = 12;
  KeyedAttention attention;
  attention.topk = 10;
  attention.interests = 5;
  KeyedTrace keyed = keyedTrace(shape, attention, 3), again = keyedTrace(shape, attention, 3), other = keyedTrace(shape, attention, 4);
  const std::vector<TraceEvent> &events = keyed.trace.events();
  ASSERT_EQ(events.size(), 12u * (4 * 2 * 10 + 1));
  ASSERT_EQ(keyed.named.size(), 12u * 4);
  size_t named = 0, different = 0, found = 0, reads = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].page, again.trace.events()[i].page);
    ASSERT_EQ(events[i].mass, again.trace.events()[i].mass);
    different += events[i].page != other.trace.events()[i].page;
    if (named == keyed.named.size() || keyed.named[named].event != i)
      continue;
    const std::vector<uint32_t> &pages = keyed.named[named].pages;
    ASSERT_EQ(pages, again.named[named].pages);
    ASSERT_EQ(pages.size(), 10u);
    uint32_t group = static_cast<uint32_t>(named % 4);
    double sum = 0;
    std::set<uint32_t> blocks;
    for (size_t k = 0; k < 10; ++k) {
      const TraceEvent &read = events[i + 2 * k], &seen = events[i + 2 * k + 1];
      ASSERT_EQ(read.kind, Kind::Demand);
      ASSERT_EQ(seen.kind, Kind::Observe);
      ASSERT_EQ(read.page, seen.page);
      ASSERT_EQ(keyed.trace.numbering.groupOf(read.page), group);
      ASSERT_TRUE(k == 0 || read.page > events[i + 2 * k - 2].page);
      blocks.insert(keyed.trace.numbering.blockOf(read.page));
      found += std::count(pages.begin(), pages.end(), read.page);
      sum += static_cast<double>(seen.mass);
      ++reads;
    }
    EXPECT_TRUE(blocks.count(0) && blocks.count(38) && blocks.count(39));
    EXPECT_GT(sum, 0.5) << "the rest has less of the attention";
    EXPECT_LE(sum, 1 + 1e-6);
    ++named;
  }
  EXPECT_EQ(named, keyed.named.size());
  EXPECT_GT(different, events.size() / 4);
  EXPECT_GT(found, reads / 2) << "three of ten are read whatever they hold";
  EXPECT_LT(found, reads);
}

TEST(Workloads, NoPolicyBeatsTheBestPossibleOneOnAnyTrace) {
  TraceShape shape = residencyShape(/*quick=*/true);
  for (TraceKind kind : allTraces)
    for (uint64_t seed : {1, 2, 3}) {
      Trace trace = traceOf(kind, shape, seed);
      EXPECT_EQ(trace.dropped(), 0u) << traceName(kind);
      for (double budget : {0.25, 0.6})
        for (PolicyKind policy : {PolicyKind::Lru, PolicyKind::Scan, PolicyKind::Importance, PolicyKind::Arc}) {
          ReplayOptions options = replayAt(trace, budget);
          options.policy = policy;
          ReplayResult result = replayed(trace, options);
          EXPECT_LE(result.counters.hits, result.optimum.hits) << traceName(kind) << " " << policyName(policy);
          EXPECT_GT(result.optimum.hits, 0u);
        }
    }
}

TEST(Workloads, DialogueAndDocumentWriteEveryBlockOnce) {
  TraceShape shape = residencyShape(/*quick=*/true);
  for (TraceKind kind : {TraceKind::Dialogue, TraceKind::Document}) {
    Trace trace = traceOf(kind, shape, 4);
    std::vector<int> writes(trace.pages, 0);
    for (const TraceEvent &event : trace.events()) {
      if (event.kind == Kind::Write)
        ++writes[event.page];
      if (event.kind == Kind::Demand)
        EXPECT_EQ(writes[event.page], 1) << "a page is read before it is written";
    }
    EXPECT_EQ(std::count(writes.begin(), writes.end(), 1), static_cast<int64_t>(shape.pages())) << traceName(kind);
  }
}

TEST(Needles, PeakedQueriesFindTheirTokenAndFlatOnesDoNot) {
  Random random(2);
  HeadRows head = drawHead(256, 64, random);
  EXPECT_EQ(needleRecall(head, head, {0, 256, 40, 12, 5}), 1.0);
  EXPECT_LT(needleRecall(head, head, {0, 256, 40, 0, 5}), 0.3);
}

TEST(Needles, LogitOfTheNeedleIsGreaterByThePeak) {
  Random random(9);
  HeadRows head = drawHead(300, 64, random);
  double sum = 0;
  for (int64_t needle = 0; needle < 100; ++needle) {
    std::vector<double> weights = attentionWeights(head, needleQuery(head, needle, 6, random), {needle, 250});
    sum += std::log(weights[0] / weights[1]) / 100;
  }
  EXPECT_NEAR(sum, 6, 1);
}

TEST(Needles, APrunedNeedleIsNotFound) {
  Random random(4);
  HeadRows head = drawHead(128, 64, random), half = head;
  half.tokens = 64;
  EXPECT_EQ(needleRecall(head, half, {0, 64, 30, 12, 1}), 1.0);
  EXPECT_LT(needleRecall(head, half, {64, 128, 30, 12, 1}), 0.3);
}

TEST(Server, ConstantCostCountsSteps) {
  std::vector<Arrival> one(1);
  one[0] = {0, 100, 10, 0};
  ServerOptions options;
  options.blocks = 16;
  Served served = serve(one, options, {});
  EXPECT_EQ(served.steps.size(), 10u); // the prompt's step gives the first token
  EXPECT_EQ(served.ms, 10);
  EXPECT_EQ(served.firstTokenMs[0], 1);
  EXPECT_EQ(served.generated, 10);
  EXPECT_EQ(served.totalMs({"other", 2, 1, 0, 0}), 30);
}

TEST(Server, RegionsAdmitAsManySequencesAsThereAre) {
  std::vector<Arrival> requests(8);
  for (Arrival &request : requests)
    request = {0, 4, 29, 0}; // 32 stored tokens
  ServerOptions regions;
  regions.blockTokens = 64;
  regions.blocks = 3;
  Served served = serve(requests, regions, {});
  int64_t most = 0;
  for (const auto &step : served.steps)
    most = std::max(most, step.sequences);
  EXPECT_EQ(most, 3);
  EXPECT_EQ(served.preemptions, 0);
  ServerOptions blocks;
  blocks.blocks = 3 * 64 / 16;
  Served paged = serve(requests, blocks, {});
  EXPECT_LT(paged.ms, served.ms); // 12 blocks of 16 hold six sequences of 32
}

TEST(Server, ArrivalsWaitForTheClock) {
  std::vector<Arrival> requests(2);
  requests[0] = {0, 1, 5, 0};
  requests[1] = {100, 1, 5, 0};
  ServerOptions options;
  options.blocks = 8;
  options.allocationMs = 3;
  Served served = serve(requests, options, {});
  EXPECT_EQ(served.firstTokenMs[0], 4); // one block, one step
  EXPECT_EQ(served.firstTokenMs[1], 4);
  EXPECT_EQ(served.ms, 108);
}

TEST(Server, CostsAreReadAndMistakesNamed) {
  std::string path = ::testing::TempDir() + "costs.json";
  std::ofstream(path)
      << R"({"engines": [{"name": "one", "fixed_ms": 1.5, "per_sequence_ms": 0.25, "per_kv_token_ms": 0.001, "per_prompt_token_ms": 0.5}]})";
  std::vector<StepCost> costs = readCosts(path);
  ASSERT_EQ(costs.size(), 1u);
  EXPECT_EQ(costs[0].name, "one");
  EXPECT_DOUBLE_EQ(costs[0].ms({12, 2, 1000, 0}), 1.5 + 0.5 + 1 + 5);
  std::ofstream(path) << R"({"engines": [{"name": "one"}]})";
  EXPECT_THROW(readCosts(path), std::runtime_error);
  EXPECT_THROW(readCosts(path + ".none"), std::runtime_error);
}
