// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replays: counters' invariants, theory on dense scans, prefetching, simulated time.
#include "PageTraces.h"
#include "doctor/ReplayReport.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

using namespace quire::runtime;
using namespace quire::test;

namespace {

using Kind = TraceEvent::Kind;
constexpr PolicyKind allKinds[] = {PolicyKind::Lru, PolicyKind::Scan, PolicyKind::Importance, PolicyKind::Arc};

ReplayResult run(const Trace &trace, const ReplayOptions &options) {
  ReplayResult out;
  Status status = replay(trace, options, out);
  EXPECT_TRUE(status.ok()) << status.text();
  return out;
}

ReplayOptions with(PolicyKind policy, uint32_t fastPages, PrefetchKind prefetch = PrefetchKind::None, uint32_t window = 3) {
  ReplayOptions options;
  options.policy = policy;
  options.fastPages = fastPages;
  options.prefetch = prefetch;
  options.window = window;
  return options;
}

void expectConsistent(const Trace &trace, const ReplayOptions &options, const ReplayResult &result) {
  const PagerCounters &c = result.counters;
  SCOPED_TRACE(std::string(policyName(options.policy)) + " " + prefetchName(options.prefetch));
  EXPECT_EQ(c.hits + c.late + c.misses, c.demands);
  EXPECT_EQ(c.demands, result.optimum.demands);
  EXPECT_EQ(c.bytesInDemand, c.misses * trace.pageBytes);
  EXPECT_EQ(c.bytesInPrefetch, c.prefetchIssued * trace.pageBytes);
  EXPECT_LE(c.prefetchTimely, c.prefetchUseful);
  EXPECT_LE(c.prefetchUseful, c.prefetchIssued);
  EXPECT_LE(c.pollutedMisses, c.misses);
  EXPECT_LE(c.writeBacks, c.seals);
  EXPECT_EQ(c.bytesOut, c.writeBacks * trace.pageBytes);
  EXPECT_LE(c.stallNs, c.stepNs);
  EXPECT_GE(result.loads(), result.optimum.misses);
  if (options.prefetch == PrefetchKind::None) {
    EXPECT_LE(c.hits, result.optimum.hits);
    EXPECT_EQ(c.prefetchIssued + c.late + c.evictedForPrefetch, 0u);
  }
}

} // namespace

TEST(Replay, DenseScanIsTheory) {
  const uint32_t pages = 100, steps = 40;
  Trace trace = denseTrace(pages, steps);
  for (uint32_t fast : {25u, 50u, 75u, 90u, 99u}) {
    ReplayResult lru = run(trace, with(PolicyKind::Lru, fast)), scan = run(trace, with(PolicyKind::Scan, fast));
    EXPECT_EQ(lru.counters.hits, 0u);
    EXPECT_EQ(scan.counters.hits, scan.optimum.hits);
    double theory = static_cast<double>(fast - 1) / (pages - 1);
    EXPECT_NEAR(*hitRate(scan.counters) * steps / (steps - 1), theory, 0.01);
    EXPECT_NEAR(*gapToOptimum(lru.counters, lru.optimum.misses), *hitRate(scan.counters), 1e-12);
    EXPECT_EQ(gapToOptimum(scan.counters, scan.optimum.misses), 0.0);
    EXPECT_EQ(lru.repeatedOrder, 1.0);
  }
}

/// Whatever policy is present, none has fewer misses than the one that is named; and it is kept unless another one has.
TEST(Replay, TheBestPolicyHasTheFewestMisses) {
  Trace dense = denseTrace(20, 8);
  for (PolicyKind present : allKinds)
    EXPECT_EQ(bestPolicy(dense, 10, present), PolicyKind::Scan);
  for (PolicyKind present : allKinds)
    EXPECT_EQ(bestPolicy(dense, 20, present), present) << "all of it fits";
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    Trace trace = randomTrace(40, 1500, seed);
    for (PolicyKind present : allKinds) {
      ReplayOptions options;
      options.fastPages = 8;
      std::optional<PolicyKind> best = bestPolicy(trace, options.fastPages, present);
      ASSERT_TRUE(best.has_value());
      auto missesOf = [&](PolicyKind policy) {
        options.policy = policy;
        ReplayResult result;
        EXPECT_TRUE(replay(trace, options, result).ok());
        return result.counters.misses;
      };
      for (PolicyKind other : allKinds)
        EXPECT_LE(missesOf(*best), missesOf(other));
      EXPECT_TRUE(*best == present || missesOf(*best) < missesOf(present));
    }
  }
  EXPECT_EQ(bestPolicy(dense, 1, PolicyKind::Scan), std::nullopt);
}

TEST(Replay, RandomTracesKeepEveryInvariant) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Trace trace = randomTrace(40, 1500, seed);
    trace.numbering = {10, 4, seed % 2 == 0};
    for (PolicyKind policy : allKinds)
      for (PrefetchKind prefetch : {PrefetchKind::None, PrefetchKind::Sequential, PrefetchKind::LayerAhead, PrefetchKind::Hybrid}) {
        ReplayOptions options = with(policy, 2 + static_cast<uint32_t>(seed) % 20, prefetch, 1 + static_cast<uint32_t>(seed) % 6);
        options.computeNs = seed % 3 == 0 ? 0 : 40'000;
        expectConsistent(trace, options, run(trace, options));
      }
  }
}

TEST(Replay, SparseTracesStayBelowTheOptimum) {
  for (double sticky : {0.0, 0.8}) {
    Trace trace = sparseTrace(128, 300, 12, sticky, 1);
    for (PolicyKind policy : allKinds) {
      ReplayOptions options = with(policy, 32);
      ReplayResult result = run(trace, options);
      expectConsistent(trace, options, result);
      if (policy != PolicyKind::Scan) {
        EXPECT_GT(*hitRate(result.counters), sticky > 0 ? 0.7 : 0.4) << policyName(policy);
      }
    }
  }
}

TEST(Replay, ReadAheadHidesLoadsThatAreFasterThanTheCompute) {
  const uint32_t pages = 100, steps = 30;
  Trace trace = denseTrace(pages, steps, 50'000); // 50 us a page; a load takes 132.8 us, of which 32.8 us are bandwidth
  ReplayOptions options = with(PolicyKind::Scan, 50, PrefetchKind::Sequential, 8);
  ReplayResult ahead = run(trace, options), without = run(trace, with(PolicyKind::Scan, 50));
  expectConsistent(trace, options, ahead);
  uint64_t firstStep = pages * 132'768;
  EXPECT_EQ(without.counters.stallNs, without.counters.misses * 132'768);
  EXPECT_LT(ahead.counters.stallNs - firstStep, (without.counters.stallNs - firstStep) / 20);
  EXPECT_GT(*hitRate(ahead.counters), 0.95);
  EXPECT_GT(*prefetchAccuracy(ahead.counters), 0.95);
  EXPECT_GT(*prefetchTimeliness(ahead.counters), 0.95);
  EXPECT_EQ(ahead.counters.pollutedMisses, 0u);
  // Prefetching does not save bytes; pages that wait for their use take the room of up to `window` others.
  EXPECT_GE(ahead.loads(), without.loads());
  EXPECT_LE(ahead.loads(), without.loads() + 8 * steps);
}

TEST(Replay, AWindowOfFiveIsMoreTimelyThanOneOfThree) {
  Trace trace = denseTrace(100, 30, 30'000);
  ReplayOptions three = with(PolicyKind::Scan, 50, PrefetchKind::Sequential, 3), five = with(PolicyKind::Scan, 50, PrefetchKind::Sequential, 5);
  three.bandwidth = five.bandwidth = 4e9;
  ReplayResult first = run(trace, three), second = run(trace, five);
  EXPECT_GT(*prefetchTimeliness(second.counters), *prefetchTimeliness(first.counters) + 0.1);
  EXPECT_LT(second.counters.stallNs, first.counters.stallNs);
}

TEST(Replay, HotSpotsOfTheLastStepAreThereAlready) {
  Trace trace = sparseTrace(128, 400, 12, 0.5, 3, 20'000);
  ReplayOptions options = with(PolicyKind::Lru, 32, PrefetchKind::SeedHotspot);
  ReplayResult hot = run(trace, options), without = run(trace, with(PolicyKind::Lru, 32));
  expectConsistent(trace, options, hot);
  EXPECT_EQ(hot.counters.prefetchIssued, 0u);
  EXPECT_EQ(hot.counters.prefetchRedundant, 399u * 2);
  EXPECT_EQ(hot.counters.hits, without.counters.hits);
}

TEST(Replay, TheNextLayerComesWhileThisOneRuns) {
  // Two layers read the same changing blocks: only knowledge of the first layer helps the second.
  const uint32_t blocks = 40, steps = 60;
  Trace trace = emptyTrace(2 * blocks, 4000);
  trace.numbering = {blocks, 2, true};
  std::mt19937_64 random(5);
  int64_t now = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    trace.record(event(Kind::Step, 1, now));
    std::vector<uint32_t> chosen(blocks);
    for (uint32_t i = 0; i < blocks; ++i)
      chosen[i] = i;
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(6);
    for (uint32_t layer = 0; layer < 2; ++layer)
      for (uint32_t block : chosen)
        trace.record(event(Kind::Demand, trace.numbering.page(block, layer), now += 60'000));
  }
  ReplayOptions options = with(PolicyKind::Lru, 20, PrefetchKind::LayerAhead, 8);
  ReplayResult ahead = run(trace, options), without = run(trace, with(PolicyKind::Lru, 20));
  expectConsistent(trace, options, ahead);
  EXPECT_GT(*prefetchAccuracy(ahead.counters), 0.9);
  EXPECT_LT(ahead.counters.stallNs, without.counters.stallNs * 7 / 10);
}

TEST(Replay, PrefetchNeverEvictsWhatIsUsedSooner) {
  // With lru as policy the page that is used next is the coldest one: without the guard every prefetch would push it out.
  Trace trace = denseTrace(50, 30, 100'000);
  ReplayResult result = run(trace, with(PolicyKind::Lru, 25, PrefetchKind::Sequential, 5));
  EXPECT_EQ(result.counters.pollutedMisses, 0u);
  EXPECT_GT(result.counters.prefetchUseful, 0u);
}

TEST(Replay, StallsOfTheRecordedRunAreNotComputed) {
  Trace trace = emptyTrace(4, 10);
  trace.record(event(Kind::Step, 1, 0));
  TraceEvent waited = event(Kind::Demand, 0, 1000);
  waited.duration = 500'000;
  trace.record(waited);
  trace.record(event(Kind::Load, 0, 1000)); // the mover's
  trace.record(event(Kind::Demand, 1, 503'000)); // 2 us later
  ReplayResult result = run(trace, with(PolicyKind::Lru, 4));
  EXPECT_EQ(result.counters.stepNs - result.counters.stallNs, 3'000u);
  EXPECT_EQ(result.counters.stallNs, 2u * 132'768);
  ReplayOptions fixed = with(PolicyKind::Lru, 4);
  fixed.computeNs = 7'000;
  ReplayResult other = run(trace, fixed);
  EXPECT_EQ(other.counters.stepNs - other.counters.stallNs, 14'000u);
}

TEST(Replay, DemandsAreThoseOfTheTraceWhateverIsResident) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Trace trace = randomTrace(40, 1500, seed);
    uint64_t demands = run(trace, with(PolicyKind::Lru, 40)).counters.demands;
    for (PolicyKind policy : allKinds)
      for (uint32_t fast : {2u, 3u, 10u, 25u})
        EXPECT_EQ(run(trace, with(policy, fast, PrefetchKind::Sequential)).counters.demands, demands) << policyName(policy) << " " << fast;
  }
}

TEST(Replay, AWriteAfterAUseInTheSameStepIsPartOfIt) {
  Trace trace = emptyTrace(4, 20);
  for (auto [kind, page] : std::vector<std::pair<Kind, uint32_t>>{
           {Kind::Step, 1}, {Kind::Demand, 0}, {Kind::Demand, 1}, {Kind::Demand, 2}, // 0 gives way before the trace writes it
           {Kind::Write, 0}, {Kind::Write, 0}, {Kind::Step, 1}, {Kind::Write, 0}})
    trace.record(event(kind, page));
  ReplayResult result = run(trace, with(PolicyKind::Lru, 2));
  EXPECT_EQ(result.counters.demands, 4u); // three, and that of the last step, whose write needs the page
  EXPECT_EQ(result.counters.misses, 4u);
  EXPECT_EQ(result.counters.seals, 2u);
  EXPECT_EQ(result.counters.writeBacks, 1u);
  EXPECT_EQ(result.optimum.demands, 4u);
  EXPECT_EQ(result.optimum.hits, 1u);
}

TEST(Replay, WritesAndEndsOfPages) {
  Trace trace = emptyTrace(4, 20);
  for (auto [kind, page] : std::vector<std::pair<Kind, uint32_t>>{
           {Kind::Step, 1}, {Kind::Write, 0}, {Kind::Write, 1}, {Kind::Write, 2}, // 0 gives way, and is stored
           {Kind::Step, 1}, {Kind::Demand, 0}, // a miss; 1 gives way
           {Kind::Step, 1}, {Kind::Write, 1}, // has content: a miss; 2 gives way
           {Kind::Free, 0}, {Kind::Write, 0}}) // new content, in the room that the end made
    trace.record(event(kind, page));
  ReplayResult result = run(trace, with(PolicyKind::Lru, 2));
  const PagerCounters &c = result.counters;
  EXPECT_EQ(c.demands, 2u);
  EXPECT_EQ(c.misses, 2u);
  EXPECT_EQ(c.evictedForWrite, 1u);
  EXPECT_EQ(c.evictedForDemand, 2u);
  EXPECT_EQ(c.writeBacks, 3u);
  EXPECT_EQ(c.seals, 5u);
  EXPECT_EQ(c.steps, 3u);
}

/// Pages 0 to 3 are in the fast tier; then 4 and 5 are read, which somebody names before page 0 is used.
TEST(Replay, NamedPagesAreAskedForAsTheWindowAllows) {
  Trace trace = emptyTrace(8, 60);
  auto add = [&](Kind kind, uint32_t page) { trace.record(event(kind, page)); };
  add(Kind::Step, 1);
  for (uint32_t page : {0, 1, 2, 3})
    add(Kind::Demand, page);
  add(Kind::Step, 1);
  size_t at = trace.events().size();
  for (uint32_t page : {0, 1, 4, 5})
    add(Kind::Demand, page);
  for (uint32_t window : {1u, 2u}) {
    ReplayOptions options = with(PolicyKind::Lru, 4, PrefetchKind::Digest, window);
    options.computeNs = 200'000; // a page takes 133 us
    std::vector<NamedPages> named = {{at, {5, 4, 0, 1}}};
    options.named = &named;
    const PagerCounters c = run(trace, options).counters;
    EXPECT_EQ(c.misses, 4u) << "of the first step";
    EXPECT_EQ(c.prefetchIssued, 2u);
    EXPECT_EQ(c.prefetchUseful, 2u);
    EXPECT_EQ(c.prefetchTimely, 2u) << "one after the other, while 0 and 1 are computed";
    EXPECT_EQ(c.evictedForPrefetch, 2u);
    EXPECT_EQ(c.pollutedMisses, 0u) << "0 and 1 are named too, and stay";
  }
  ReplayOptions options = with(PolicyKind::Lru, 4, PrefetchKind::Digest, 2);
  std::vector<NamedPages> later = {{at + 2, {4, 5}}}; // before 4 itself is used
  options.named = &later;
  options.computeNs = 200'000;
  PagerCounters c = run(trace, options).counters;
  EXPECT_EQ(c.late, 1u);
  EXPECT_EQ(c.prefetchTimely, 1u);
  std::vector<NamedPages> wrong = {{at, {8}}}, twice = {{at, {4}}, {at, {5}}};
  for (const auto *bad : {&wrong, &twice}) {
    options.named = bad;
    ReplayResult out;
    EXPECT_EQ(replay(trace, options, out).text(), "expected pages of the trace, named by ascending events, but got others");
  }
}

TEST(Replay, WhatATraceLacksIsRefused) {
  Trace trace = denseTrace(10, 3);
  auto error = [&](const ReplayOptions &options, const Trace &of) {
    ReplayResult out;
    Status status = replay(of, options, out);
    EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
    return status.text();
  };
  EXPECT_EQ(error(with(PolicyKind::Lru, 4, PrefetchKind::Digest), trace),
            "not implemented: replay of digest prefetching, as traces hold neither keys nor queries");
  EXPECT_EQ(error(with(PolicyKind::Lru, 4, PrefetchKind::SeedHotspot), trace),
            "expected a trace with attention mass for seed_hotspot, but got none");
  EXPECT_EQ(error(with(PolicyKind::Lru, 4, PrefetchKind::LayerAhead), trace),
            "expected a trace with several groups of layers for layer_ahead, but got one");
  EXPECT_EQ(error(with(PolicyKind::Lru, 1), trace), "expected at least 2 fast pages, but got 1");
  EXPECT_EQ(error(with(PolicyKind::Lru, 4, PrefetchKind::Sequential, 0), trace), "expected a prefetch window of at least 1, but got 0");
  EXPECT_EQ(error(with(PolicyKind::Lru, 4), Trace(0)), "expected a trace with pages, but got none");
  ReplayOptions slow = with(PolicyKind::Lru, 4);
  slow.bandwidth = 0;
  EXPECT_NE(error(slow, trace).find("100 s"), std::string::npos);
}

TEST(Replay, ReportNamesEveryPolicyAndTheOptimum) {
  Trace trace = denseTrace(20, 20, 1000);
  ReplayReport report{&trace, mostLivePages(trace), with(PolicyKind::Lru, 10), {}, true, {}, true};
  for (PolicyKind policy : {PolicyKind::Lru, PolicyKind::Scan, PolicyKind::Importance}) {
    report.options.policy = policy;
    report.runs.push_back({policy, run(trace, report.options)});
  }
  report.optimum = optimal(trace, 10);
  std::string text = replayText(report);
  EXPECT_NE(text.find("420 events; 20 pages of 64KiB alive at most, 10 of them in the fast tier; prefetch none\n"), std::string::npos) << text;
  EXPECT_NE(text.find("the trace has no attention mass: importance decides as lru does\n"), std::string::npos);
  EXPECT_NE(text.find("\nlru                   0         0         400     0.000    0.45"), std::string::npos) << text;
  EXPECT_NE(text.find("\nopt "), std::string::npos);
  EXPECT_NE(text.find("change: replace.policy: lru -> scan\n"), std::string::npos) << text;
  nlohmann::json json = nlohmann::json::parse(replayJson(report));
  EXPECT_EQ(json["runs"].size(), 3u);
  EXPECT_EQ(json["runs"][0]["counters"]["misses"], 400);
  EXPECT_EQ(json["runs"][1]["metrics"]["gap_to_optimum"], 0.0);
  EXPECT_EQ(json["runs"][1]["metrics"]["prefetch_accuracy"], nullptr);
  EXPECT_EQ(json["runs"][1]["metrics"]["table_time_share"], nullptr); // not measured
  EXPECT_EQ(json["runs"][0]["findings"][0]["rule"], "cyclic-scan");
  EXPECT_EQ(json["opt"]["hits"], json["runs"][1]["counters"]["hits"]);
}
