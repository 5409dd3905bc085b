// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every rule of the doctor with counters that make it speak and counters that do not; metrics by their definitions.
#include "config/Config.h"
#include "doctor/Doctor.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <random>
#include <sstream>

using namespace quire::runtime;

namespace {

/// Nothing is wrong with it.
Vitals healthy() {
  Vitals v;
  PagerCounters &c = v.counters;
  c.demands = 10000;
  c.hits = 9500;
  c.late = 100;
  c.misses = 400;
  c.pollutedMisses = 4;
  c.prefetchIssued = 1000;
  c.prefetchUseful = 900;
  c.prefetchTimely = 850;
  c.stallNs = 50;
  c.tableNs = 10;
  c.stepNs = 1000;
  c.steps = 100;
  v.policy = PolicyKind::Lru;
  v.prefetch = PrefetchKind::Hybrid;
  v.window = 3;
  v.topk = 4;
  v.blockTokens = 16;
  v.fastBytes = uint64_t(512) << 20;
  v.slowBytes = uint64_t(8) << 30;
  v.reserveRatio = 0.1;
  v.tableBytes = 10;
  v.kvBytes = 1000;
  v.liveBytes = 950;
  v.allocatedBytes = 1000;
  v.freeBytes = v.largestFreeBytes = 100;
  v.reservePeak = 3;
  v.repeatedOrder = 0.5;
  v.attentionEntropy = 2.0;
  v.attentionPages = 128;
  v.optimalMisses = 1300;
  v.slowUse = 0.3;
  return v;
}

const Finding *find(const std::vector<Finding> &findings, const std::string &rule) {
  for (const Finding &finding : findings)
    if (finding.rule == rule)
      return &finding;
  return nullptr;
}

/// "section.key: before -> after": a configuration takes what it shall be.
void expectTaken(const std::string &change) {
  size_t colon = change.find(": "), arrow = change.find(" -> ");
  if (arrow == std::string::npos || change.rfind("quirec --block-tokens: ", 0) == 0) // nothing, a call to make, or an option of the compiler
    return;
  std::string text, ends;
  for (char c : change.substr(0, colon)) {
    text += c == '.' ? ": {" : std::string(1, c);
    ends += c == '.' ? "}" : "";
  }
  text += ": " + change.substr(arrow + 4) + ends + "\n";
  quire::config::Config config;
  Status status = quire::config::parseConfig(text, "advice", config, quire::config::Keys::All);
  EXPECT_TRUE(status.ok()) << status.text();
}

/// The rule speaks, of this number, and asks for this change; and is the only one
/// besides `others`.
void expectFinding(const Vitals &v, const std::string &rule, double value, const std::string &change,
                   const std::vector<std::string> &others = {}) {
  SCOPED_TRACE(rule);
  std::vector<Finding> findings = diagnose(v);
  const Finding *finding = find(findings, rule);
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(finding->value, value, 1e-9);
  EXPECT_EQ(finding->change, change);
  expectTaken(finding->change);
  EXPECT_FALSE(finding->text.empty());
  for (const Finding &other : findings)
    if (other.rule != rule) {
      EXPECT_NE(std::find(others.begin(), others.end(), other.rule), others.end()) << other.rule;
    }
}

void expectSilence(const Vitals &v, const std::string &rule) {
  EXPECT_EQ(find(diagnose(v), rule), nullptr) << rule;
}

} // namespace

TEST(Doctor, FindsNothingWhereNothingIsWrong) {
  for (const Finding &finding : diagnose(healthy()))
    ADD_FAILURE() << finding.rule << ": " << finding.text;
  EXPECT_TRUE(diagnose(Vitals()).empty()); // nor where nothing is known
}

TEST(Doctor, CyclicScanAsksForTheScanPolicy) {
  Vitals v = healthy();
  v.counters.hits = 0;
  v.counters.misses = 9900;
  v.optimalMisses.reset();
  v.repeatedOrder = 0.99;
  v.prefetch = PrefetchKind::None;
  v.counters.prefetchIssued = v.counters.prefetchUseful = v.counters.prefetchTimely = 0;
  expectFinding(v, "cyclic-scan", 0, "replace.policy: lru -> scan");
  EXPECT_NE(find(diagnose(v), "cyclic-scan")->text.find("use the scan policy, or sparse attention"), std::string::npos);
  v.policy = PolicyKind::Scan; // it is that already: too little memory
  expectSilence(v, "cyclic-scan");
  expectFinding(v, "low-hit-rate", 0, "memory.fast_bytes: 512MiB -> 1GiB");
  v.policy = PolicyKind::Lru;
  v.repeatedOrder = 0.5;
  expectSilence(v, "cyclic-scan");
  v.repeatedOrder.reset();
  expectSilence(v, "cyclic-scan");
  v.repeatedOrder = 0.99;
  v.counters = healthy().counters;
  expectSilence(v, "cyclic-scan"); // hits are high
  v.counters.demands = 99;
  v.counters.hits = 0;
  expectSilence(v, "cyclic-scan"); // too few
}

TEST(Doctor, LowHitRate) {
  Vitals v = healthy();
  v.counters.hits = 8000;
  v.counters.misses = 1900;
  v.counters.prefetchUseful = 950;
  v.optimalMisses.reset();
  expectFinding(v, "low-hit-rate", 0.8, "memory.fast_bytes: 512MiB -> 1GiB", {"prefetch-coverage"});
  expectSilence(healthy(), "low-hit-rate");
  EXPECT_EQ(find(diagnose(v), "low-hit-rate")->text, "hit rate 0.800 is below 0.90: the fast tier holds too little of what steps read");
  v.repeatedOrder.reset(); // lru, and nobody knows whether it is a cycle
  EXPECT_EQ(find(diagnose(v), "low-hit-rate")->text,
            "hit rate 0.800 is below 0.90: the fast tier holds too little of what steps read; whether another policy does better shows only in a trace (--trace)");
  v.policy = PolicyKind::Scan;
  EXPECT_EQ(find(diagnose(v), "low-hit-rate")->text.find("--trace"), std::string::npos);
}

/// A number is never shown as its limit, and a limit as it was given.
TEST(Doctor, NumbersAndLimitsDiffer) {
  Vitals v = healthy();
  v.counters.hits = 8996;
  v.counters.misses = 904;
  v.optimalMisses.reset();
  EXPECT_NE(find(diagnose(v), "low-hit-rate")->text.find("hit rate 0.899 is below 0.90:"), std::string::npos) << find(diagnose(v), "low-hit-rate")->text;
  Thresholds t;
  t.minHit = 0.8997;
  std::vector<Finding> findings = diagnose(v, t);
  EXPECT_NE(find(findings, "low-hit-rate")->text.find("hit rate 0.899 is below 0.8997:"), std::string::npos);
  v = healthy();
  v.counters.stepNs = 1000000;
  v.counters.tableNs = 50100;
  EXPECT_NE(find(diagnose(v), "table-time")->text.find("page tables took 0.051 of the steps' time, above 0.05:"), std::string::npos);
  t.maxTableTime = 0.0123;
  findings = diagnose(v, t);
  EXPECT_NE(find(findings, "table-time")->text.find(" took 0.050 of the steps' time, above 0.0123:"), std::string::npos);
}

TEST(Doctor, GapToTheOptimum) {
  Vitals v = healthy();
  v.optimalMisses = 300; // 1400 loads, 10000 demands
  expectFinding(v, "gap-to-optimum", 0.11, ""); // nobody knows
  v.bestPolicy = PolicyKind::Arc;
  expectFinding(v, "gap-to-optimum", 0.11, "replace.policy: lru -> arc");
  v.bestPolicy = PolicyKind::Scan;
  expectFinding(v, "gap-to-optimum", 0.11, "replace.policy: lru -> scan");
  v.policy = PolicyKind::Scan;
  expectFinding(v, "gap-to-optimum", 0.11, "");
  EXPECT_NE(find(diagnose(v), "gap-to-optimum")->text.find("no other policy has fewer misses"), std::string::npos);
  v.ownMisses = 550;
  EXPECT_NE(find(diagnose(v), "gap-to-optimum")->text.find("no other policy has fewer misses on the trace (0.025 for scan itself, if only the page in use had to stay"), std::string::npos)
      << find(diagnose(v), "gap-to-optimum")->text;
  v.optimalMisses = 500;
  expectSilence(v, "gap-to-optimum");
  v.optimalMisses.reset();
  expectSilence(v, "gap-to-optimum");
}

TEST(Doctor, LowAccuracyShrinksTheWindowOrEndsHotSpots) {
  Vitals v = healthy();
  v.counters.prefetchUseful = v.counters.prefetchTimely = 499;
  expectFinding(v, "prefetch-accuracy", 0.499, "prefetch.strategy: hybrid -> sequential");
  v.prefetch = PrefetchKind::SeedHotspot;
  expectFinding(v, "prefetch-accuracy", 0.499, "prefetch.strategy: hotspot -> none");
  v.prefetch = PrefetchKind::Sequential;
  expectFinding(v, "prefetch-accuracy", 0.499, "prefetch.window_size: 3 -> 1");
  v.window = 1;
  expectFinding(v, "prefetch-accuracy", 0.499, "prefetch.strategy: sequential -> none");
  v.counters.prefetchUseful = 500;
  expectSilence(v, "prefetch-accuracy");
  v.counters.prefetchUseful = v.counters.prefetchTimely = 0;
  v.counters.prefetchIssued = 31;
  expectSilence(v, "prefetch-accuracy"); // too few
}

TEST(Doctor, LateButRightPrefetchesGrowTheWindowFromThreeToFive) {
  Vitals v = healthy();
  v.counters.prefetchTimely = 450;
  expectFinding(v, "prefetch-timeliness", 0.5, "prefetch.window_size: 3 -> 5");
  v.slowUse = 0.95; // the bandwidth is used up
  expectFinding(v, "prefetch-timeliness", 0.5, "", {"slow-bandwidth"});
  v.slowUse.reset();
  v.counters.prefetchUseful = 700; // not right often enough
  expectSilence(v, "prefetch-timeliness");
  v = healthy();
  v.counters.prefetchTimely = 720;
  expectSilence(v, "prefetch-timeliness");
}

TEST(Doctor, LowCoverage) {
  Vitals v = healthy();
  v.counters.prefetchIssued = 100;
  v.counters.prefetchUseful = v.counters.prefetchTimely = 90;
  v.optimalMisses.reset();
  expectFinding(v, "prefetch-coverage", 90.0 / 490, "prefetch.window_size: 3 -> 5");
  v.counters.misses = 31;
  v.counters.hits = 9869;
  expectSilence(v, "prefetch-coverage");
  expectSilence(healthy(), "prefetch-coverage");
}

TEST(Doctor, Pollution) {
  Vitals v = healthy();
  v.counters.pollutedMisses = 41;
  expectFinding(v, "pollution", 41.0 / 400, "prefetch.window_size: 3 -> 1");
  v.counters.pollutedMisses = 40;
  expectSilence(v, "pollution");
  v.counters.misses = v.counters.pollutedMisses = 31;
  expectSilence(v, "pollution"); // too few
}

TEST(Doctor, AWindowThatPollutesIsNotToGrow) {
  Vitals v = healthy();
  v.window = 5;
  v.counters.prefetchTimely = 450;
  v.counters.pollutedMisses = 41;
  expectFinding(v, "prefetch-timeliness", 0.5, "", {"pollution"});
  EXPECT_EQ(find(diagnose(v), "prefetch-timeliness")->text,
            "prefetches are right (accuracy 0.900) but late: 0.500 arrived in time, below 0.80. a larger window would push out more pages that are still used");
  expectFinding(v, "pollution", 41.0 / 400, "prefetch.window_size: 5 -> 2", {"prefetch-timeliness"});
  v = healthy();
  v.optimalMisses.reset();
  v.counters.prefetchIssued = 100;
  v.counters.prefetchUseful = v.counters.prefetchTimely = 90;
  v.counters.pollutedMisses = 41;
  expectFinding(v, "prefetch-coverage", 90.0 / 490, "", {"pollution"});
  EXPECT_EQ(find(diagnose(v), "prefetch-coverage")->text.find("grow the window"), std::string::npos);
}

/// Whatever the counters are, no two findings ask for opposite changes.
TEST(Doctor, NoTwoFindingsContradictEachOther) {
  std::mt19937_64 random(1);
  size_t opposed[4] = {}, ended = 0;
  for (int i = 0; i < 20000; ++i) {
    Vitals v = healthy();
    auto some = [&](uint64_t most) { return random() % (most + 1); };
    v.counters.prefetchIssued = some(some(1) ? 1000 : 30);
    v.counters.prefetchUseful = v.counters.prefetchIssued - some(v.counters.prefetchIssued) / (1 + some(9));
    v.counters.prefetchTimely = some(v.counters.prefetchUseful);
    v.counters.prefetchRedundant = some(1) * some(50000);
    v.counters.prefetchDropped = some(1) * some(50000);
    v.counters.pollutedMisses = some(v.counters.misses);
    v.counters.tableNs = some(100);
    v.tableBytes = some(100);
    v.liveBytes = 850 + some(150);
    v.slowUse = static_cast<double>(some(100)) / 100;
    v.prefetch = std::array{PrefetchKind::Sequential, PrefetchKind::SeedHotspot, PrefetchKind::Hybrid}[some(2)];
    std::string all;
    for (const Finding &finding : diagnose(v))
      all += finding.text + "\n";
    const char *words[4] = {"grow the window", "shrink the window", "use larger blocks", "use smaller blocks"};
    bool said[4];
    for (int word = 0; word < 4; ++word)
      opposed[word] += said[word] = all.find(words[word]) != std::string::npos;
    ASSERT_FALSE(said[0] && said[1]) << all;
    ASSERT_FALSE(said[2] && said[3]) << all;
    bool endsIt = all.find("switch prefetching off") != std::string::npos;
    ended += endsIt;
    ASSERT_FALSE(said[0] && endsIt) << all;
  }
  EXPECT_GT(ended, 100u);
  for (size_t count : opposed)
    EXPECT_GT(count, 100u);
}

TEST(Doctor, PrefetchesThatMoveNothing) {
  Vitals v = healthy();
  PagerCounters &c = v.counters;
  c.prefetchIssued = c.prefetchUseful = c.prefetchTimely = 0;
  v.optimalMisses.reset();
  v.prefetch = PrefetchKind::SeedHotspot;
  c.prefetchRedundant = 368;
  expectFinding(v, "prefetch-idle", 0, "prefetch.strategy: hotspot -> sequential");
  EXPECT_EQ(find(diagnose(v), "prefetch-idle")->text,
            "prefetches asked for 368 pages and moved 0: 368 were there or on their way, for 0 there was no room; the 400 demands that missed were of other pages: read ahead in order");
  v.prefetch = PrefetchKind::Sequential;
  expectFinding(v, "prefetch-idle", 0, "prefetch.strategy: sequential -> none");
  c.prefetchRedundant = 3680; // what is there needs no room
  c.prefetchDropped = 400;
  expectFinding(v, "prefetch-idle", 0, "memory.fast_bytes: 512MiB -> 1GiB");
  EXPECT_EQ(find(diagnose(v), "prefetch-idle")->text,
            "prefetches asked for 4080 pages and moved 0: 3680 were there or on their way, for 400 there was no room: give the fast tier more room");
  c.misses = c.pollutedMisses = c.prefetchDropped = 0;
  c.hits = 9900;
  expectFinding(v, "prefetch-idle", 0, "prefetch.strategy: sequential -> none");
  EXPECT_EQ(find(diagnose(v), "prefetch-idle")->severity, Severity::Note);
  v.prefetch = PrefetchKind::None;
  expectSilence(v, "prefetch-idle");
  v.prefetch = PrefetchKind::Sequential;
  c.prefetchRedundant = 31;
  expectSilence(v, "prefetch-idle"); // too few
  v = healthy();
  v.counters.prefetchRedundant = 30000; // few are missing, and those are foreseen
  expectSilence(v, "prefetch-idle");
  v.counters.prefetchIssued = v.counters.prefetchUseful = 100; // of 500 loads, and late: more of them, not none
  v.counters.prefetchTimely = 0;
  v.optimalMisses.reset();
  expectFinding(v, "prefetch-timeliness", 0, "prefetch.window_size: 3 -> 5", {"prefetch-coverage"});
  v.counters.prefetchIssued = v.counters.prefetchUseful = 20; // of 420
  expectFinding(v, "prefetch-idle", 20.0 / 420, "prefetch.strategy: hybrid -> none");
}

TEST(Doctor, Stall) {
  Vitals v = healthy();
  v.counters.stallNs = 101;
  expectFinding(v, "stall", 0.101, "memory.fast_bytes: 512MiB -> 1GiB");
  v.prefetch = PrefetchKind::None;
  expectFinding(v, "stall", 0.101, "prefetch.strategy: none -> sequential");
  v.slowUse = 0.95; // what is fetched ahead would wait as long
  expectFinding(v, "stall", 0.101, "memory.fast_bytes: 512MiB -> 1GiB", {"slow-bandwidth"});
  v.slowUse = 0.3;
  v.window = 0;
  expectFinding(v, "stall", 0.101, "prefetch.window_size: 0 -> 3");
  v.counters.stallNs = 100;
  expectSilence(v, "stall");
  v.counters.stallNs = 101;
  v.counters.steps = 15;
  expectSilence(v, "stall"); // too few
}

TEST(Doctor, SlowBandwidthIsUsedUp) {
  Vitals v = healthy();
  v.slowUse = 0.91;
  expectFinding(v, "slow-bandwidth", 0.91, "compress.quant: none -> int8_g128");
  v.codec = Codec::Fp8E4M3;
  expectFinding(v, "slow-bandwidth", 0.91, "memory.fast_bytes: 512MiB -> 1GiB");
  v.prefetch = PrefetchKind::Digest;
  expectFinding(v, "slow-bandwidth", 0.91, "prefetch.topk: 4 -> 2");
  v.slowUse = 0.9;
  expectSilence(v, "slow-bandwidth");
}

TEST(Doctor, CodecsRefusePages) {
  Vitals v = healthy();
  v.counters.writeBacks = 94;
  v.counters.refused = 6;
  expectSilence(v, "codec-refuses"); // there is no codec
  v.codec = Codec::Fp8E4M3;
  expectFinding(v, "codec-refuses", 0.06, "compress.quant: fp8 -> int8_g128");
  v.codec = Codec::Int4G128;
  expectFinding(v, "codec-refuses", 0.06, "compress.quant: int4_g128 -> none");
  for (Codec codec : {Codec::Sparse8Bitmap, Codec::Sparse8Index}) {
    v.codec = codec;
    expectFinding(v, "codec-refuses", 0.06, "compress.sparse.ratio: 8 -> 1");
  }
  v.codec = Codec::Fp8E5M2;
  expectFinding(v, "codec-refuses", 0.06, ""); // C only
  v.counters.writeBacks = 95;
  v.counters.refused = 5;
  expectSilence(v, "codec-refuses");
  v.counters.writeBacks = 0;
  expectSilence(v, "codec-refuses"); // too few
}

TEST(Doctor, CodecsChangePages) {
  Vitals v = healthy();
  v.codec = Codec::Int4G128;
  v.codecError = 0.06;
  expectFinding(v, "codec-error", 0.06, "compress.quant: int4_g128 -> int8_g128");
  v.codec = Codec::Int8G128;
  expectFinding(v, "codec-error", 0.06, "compress.quant: int8_g128 -> none");
  v.codec = Codec::Sparse8Index;
  expectFinding(v, "codec-error", 0.06, "compress.sparse.ratio: 8 -> 1");
  v.codecError = 0.05;
  expectSilence(v, "codec-error");
  v.codecError.reset();
  expectSilence(v, "codec-error");
}

TEST(Doctor, TablesTakeTimeOrBytes) {
  Vitals v = healthy();
  v.counters.tableNs = 51;
  expectFinding(v, "table-time", 0.051, "quirec --block-tokens: 16 -> 32");
  v.counters.tableNs = 50;
  expectSilence(v, "table-time");
  v.tableBytes = 51;
  expectFinding(v, "table-bytes", 0.051, "quirec --block-tokens: 16 -> 32");
  v.tableBytes = 50;
  expectSilence(v, "table-bytes");
}

TEST(Doctor, InternalFragmentationAsksForSmallerBlocks) {
  Vitals v = healthy();
  v.liveBytes = 890;
  expectFinding(v, "internal-fragmentation", 0.11, "quirec --block-tokens: 16 -> 8");
  v.counters.tableNs = 60; // the tables forbid it: one key, one change
  expectFinding(v, "internal-fragmentation", 0.11, "", {"table-time"});
  EXPECT_EQ(find(diagnose(v), "internal-fragmentation")->text,
            "0.110 of the allocated bytes hold no token, above 0.10: smaller ones would help, but make page tables larger, which already are too large");
  v.liveBytes = 900;
  expectSilence(v, "internal-fragmentation");
}

TEST(Doctor, OutOfMemoryTooEarlyOrScatteredFreeMemoryIsCompacted) {
  Vitals v = healthy();
  v.largestFreeBytes = 69;
  expectFinding(v, "external-fragmentation", 0.31, "quire_pool_compact()");
  v.earlyOutOfMemory = 2;
  expectFinding(v, "early-out-of-memory", 2, "quire_pool_compact()");
  v.largestFreeBytes = 70;
  v.earlyOutOfMemory = 0;
  expectSilence(v, "external-fragmentation");
  expectSilence(v, "early-out-of-memory");
  v.freeBytes = v.largestFreeBytes = 0; // a full pool is not a scattered one
  expectSilence(v, "external-fragmentation");
}

TEST(Doctor, MemoryThatBlocksInUseKeepIsCompacted) {
  Vitals v = healthy();
  v.couldGiveBackBytes = 1000;
  v.givenBackBytes = 690;
  expectFinding(v, "kept-memory", 0.31, "quire_pool_compact()");
  v.givenBackBytes = 700;
  expectSilence(v, "kept-memory");
  v.couldGiveBackBytes = v.givenBackBytes = 0; // nothing is withheld
  expectSilence(v, "kept-memory");
}

TEST(Doctor, Reserve) {
  Vitals v = healthy();
  v.reservePeak = 0;
  expectFinding(v, "reserve-unused", 0, "memory.reserve_ratio: 0.1 -> 0.05");
  v.reserveRatio = 0;
  expectSilence(v, "reserve-unused");
  v = healthy();
  v.reserveExhausted = 7;
  v.preemptions = 2;
  expectFinding(v, "reserve-exhausted", 7, "memory.reserve_ratio: 0.1 -> 0.2");
  v.reserveRatio = 0;
  expectFinding(v, "reserve-exhausted", 7, "memory.reserve_ratio: 0 -> 0.02");
  v.reserveBase = 32; // of which 0.02 would be none
  expectFinding(v, "reserve-exhausted", 7, "memory.reserve_ratio: 0 -> 0.032");
  v.reserveRatio = 0.01;
  expectFinding(v, "reserve-exhausted", 7, "memory.reserve_ratio: 0.01 -> 0.032");
  v.reserveRatio = 0.1;
  expectFinding(v, "reserve-exhausted", 7, "memory.reserve_ratio: 0.1 -> 0.2");
  v.preemptions = 0;
  expectSilence(v, "reserve-exhausted");
  v.preemptions = 2;
  v.reserveExhausted = 0;
  expectSilence(v, "reserve-exhausted");
}

TEST(Doctor, UniformAttentionHasNoHotSpots) {
  Vitals v = healthy();
  v.attentionEntropy = 0.96 * std::log(128);
  expectFinding(v, "uniform-attention", 0.96, "prefetch.strategy: hybrid -> sequential");
  v.prefetch = PrefetchKind::Sequential;
  expectSilence(v, "uniform-attention");
  v.policy = PolicyKind::Importance;
  expectFinding(v, "uniform-attention", 0.96, "replace.policy: importance -> arc");
  v.attentionEntropy = 0.95 * std::log(128);
  expectSilence(v, "uniform-attention");
  v.attentionPages = 1;
  expectSilence(v, "uniform-attention");
}

TEST(Doctor, LostPagesAndAFullSlowTier) {
  Vitals v = healthy();
  v.counters.pagesLost = 3;
  expectFinding(v, "pages-lost", 3, "");
  EXPECT_EQ(find(diagnose(v), "pages-lost")->severity, Severity::Problem);
  v = healthy();
  v.counters.erasuresFailed = 2;
  expectFinding(v, "not-erased", 2, "");
  expectSilence(healthy(), "not-erased");
  v = healthy();
  v.counters.noSpace = 5;
  expectFinding(v, "slow-tier-full", 5, "memory.slow.bytes: 8GiB -> 16GiB");
  v.slowTiers = 3;
  v.closedTiers = 1;
  expectFinding(v, "slow-tier-full", 5, "memory.slower: one more tier below, on another device");
  EXPECT_EQ(find(diagnose(v), "slow-tier-full")->text, "a slow tier had no room for 5 pages; 1 of 3 tiers take nothing new");
  expectSilence(healthy(), "pages-lost");
  expectSilence(healthy(), "slow-tier-full");
}

TEST(Doctor, NoTwoFindingsChangeOneKey) {
  Vitals v = healthy();
  v.counters.hits = 0;
  v.counters.misses = 9900;
  v.counters.pollutedMisses = 9000;
  v.counters.prefetchUseful = v.counters.prefetchTimely = 100;
  v.counters.stallNs = 900;
  v.counters.tableNs = 90;
  v.tableBytes = 500;
  v.liveBytes = 10;
  v.repeatedOrder = 1;
  v.optimalMisses = 0;
  v.attentionEntropy = std::log(128);
  std::vector<Finding> findings = diagnose(v);
  std::vector<std::string> keys;
  for (const Finding &finding : findings)
    if (!finding.change.empty())
      keys.push_back(finding.change.substr(0, finding.change.find(':')));
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
  EXPECT_GE(findings.size(), 8u);
}

TEST(Doctor, TextAndJson) {
  Vitals v = healthy();
  v.counters.prefetchTimely = 450;
  v.counters.stepNs = 0;
  std::vector<Finding> findings = diagnose(v);
  std::string text = doctorText(v, findings);
  EXPECT_NE(text.find("hit_rate                0.950\n"), std::string::npos) << text;
  EXPECT_NE(text.find("stall_share             none: no step ran\n"), std::string::npos) << text;
  EXPECT_NE(text.find("warning: prefetch-timeliness: prefetches are right (accuracy 0.900) but late: 0.500 arrived in time"), std::string::npos) << text;
  EXPECT_NE(text.find("\n  change: prefetch.window_size: 3 -> 5\n"), std::string::npos);
  EXPECT_NE(doctorText(v, {}).find("\nno findings\n"), std::string::npos);
  nlohmann::json json = nlohmann::json::parse(doctorJson(v, findings));
  EXPECT_EQ(json["metrics"]["hit_rate"], 0.95);
  EXPECT_EQ(json["metrics"]["stall_share"], nullptr);
  EXPECT_EQ(json["none"]["stall_share"], "no step ran");
  EXPECT_FALSE(json["none"].contains("hit_rate"));
  EXPECT_EQ(json["findings"].size(), 1u);
  EXPECT_EQ(json["findings"][0]["rule"], "prefetch-timeliness");
  EXPECT_EQ(json["findings"][0]["severity"], "warning");
  EXPECT_EQ(json["findings"][0]["value"], 0.5);
  EXPECT_EQ(json["findings"][0]["limit"], 0.8);
  EXPECT_EQ(json["findings"][0]["change"], "prefetch.window_size: 3 -> 5");
  EXPECT_TRUE(nlohmann::json::parse(doctorJson(v, {}))["findings"].empty());
}

/// Every metric without a number says why.
TEST(Doctor, NoNumberHasAReason) {
  Vitals v;
  auto reasons = [&] { return nlohmann::json::parse(doctorJson(v, {}))["none"]; };
  EXPECT_EQ(reasons().size(), 17u);
  EXPECT_EQ(reasons()["hit_rate"], "there is no slow tier");
  EXPECT_EQ(reasons()["internal_fragmentation"], "no sequence stored a token");
  v.policy = PolicyKind::Scan;
  EXPECT_EQ(reasons()["prefetch_accuracy"], "prefetching is off");
  EXPECT_EQ(reasons()["codec_error"], "the slow tier has no codec");
  v.prefetch = PrefetchKind::Sequential;
  v.codec = Codec::Int8G128;
  EXPECT_EQ(reasons()["prefetch_accuracy"], "no prefetch moved a page");
  EXPECT_EQ(reasons()["prefetch_timeliness"], "no prefetched page was used");
  EXPECT_EQ(reasons()["gap_to_optimum"], "no trace was recorded (--trace, quire_pool_trace), or not all of it");
  EXPECT_EQ(reasons()["codec_error"], "no page was sampled");
  v.isTableTimed = false;
  EXPECT_EQ(reasons()["table_time_share"], "a replay has no block tables");
  EXPECT_EQ(reasons()["internal_fragmentation"], "a replay has no block tables");
  std::istringstream lines(doctorText(v, {}));
  for (std::string line; std::getline(lines, line) && !line.empty();)
    EXPECT_EQ(line.find("none"), line.find("none: ")) << line;
}

TEST(Metrics, AreWhatTheirDefinitionsSay) {
  PagerCounters c;
  c.demands = 100, c.hits = 60, c.late = 10, c.misses = 30, c.pollutedMisses = 3;
  c.prefetchIssued = 40, c.prefetchUseful = 20, c.prefetchTimely = 15;
  c.stallNs = 5, c.tableNs = 2, c.stepNs = 50;
  EXPECT_EQ(hitRate(c), 0.6);
  EXPECT_EQ(prefetchAccuracy(c), 0.5);
  EXPECT_EQ(prefetchCoverage(c), 0.4);
  EXPECT_EQ(prefetchTimeliness(c), 0.75);
  EXPECT_EQ(pollution(c), 0.1);
  EXPECT_EQ(stallShare(c), 0.1);
  EXPECT_EQ(tableTimeShare(c), 0.04);
  EXPECT_EQ(tableBytesShare(8, 4096), 8.0 / 4096);
  EXPECT_EQ(internalFragmentation(75, 100), 0.25);
  EXPECT_EQ(externalFragmentation(20, 100), 0.8);
  EXPECT_EQ(gapToOptimum(c, 50), 0.2);
  EXPECT_NEAR(*uniformity(std::log(8), 8), 1, 1e-12);
}

TEST(Metrics, NothingOfNothingIsNone) {
  PagerCounters c;
  for (Ratio value : {hitRate(c), prefetchAccuracy(c), prefetchCoverage(c), prefetchTimeliness(c), pollution(c), stallShare(c),
                      tableTimeShare(c), tableBytesShare(0, 0), internalFragmentation(0, 0), externalFragmentation(0, 0),
                      gapToOptimum(c, 0), uniformity(0, 0), uniformity(0, 1)}) {
    EXPECT_FALSE(value);
    EXPECT_EQ(shown(value), "none");
  }
  EXPECT_EQ(shown(0.0), "0.000");
  EXPECT_EQ(shown(1.0 / 3), "0.333");
}

/// Rules and metrics of the program are those of the page.
TEST(Doctor, RulesAreDocumented) {
  std::ifstream file(QUIRE_RUNTIME_DOC);
  std::stringstream page;
  page << file.rdbuf();
  for (const char *rule : {"pages-lost", "not-erased", "slow-tier-full", "codec-refuses", "codec-error", "cyclic-scan", "low-hit-rate", "gap-to-optimum", "prefetch-accuracy",
                           "prefetch-timeliness", "prefetch-coverage", "prefetch-idle", "pollution", "stall", "slow-bandwidth", "table-time", "table-bytes",
                           "internal-fragmentation", "early-out-of-memory", "external-fragmentation", "kept-memory", "reserve-exhausted",
                           "reserve-unused", "uniform-attention"})
    EXPECT_NE(page.str().find("\n| `" + std::string(rule) + "` |"), std::string::npos) << rule;
  nlohmann::json metrics = nlohmann::json::parse(doctorJson(Vitals(), {}))["metrics"];
  for (const auto &item : metrics.items())
    EXPECT_NE(page.str().find("\n| `" + item.key() + "` |"), std::string::npos) << item.key();
}
