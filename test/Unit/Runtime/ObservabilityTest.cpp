// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Latency histograms and the Prometheus text.
#include "doctor/Prometheus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <regex>
#include <sstream>

using namespace quire::runtime;

TEST(Histogram, BucketsCoverEveryValueInOrder) {
  size_t last = 0;
  for (unsigned bit = 0; bit < 64; ++bit)
    for (uint64_t offset : {uint64_t(0), (uint64_t(1) << bit) / 3, (uint64_t(1) << bit) - 1}) {
      uint64_t value = (uint64_t(1) << bit) + offset;
      size_t bucket = Histogram::bucketOf(value);
      ASSERT_LT(bucket, Histogram::buckets);
      EXPECT_GE(bucket, last);
      last = bucket;
      EXPECT_GE(Histogram::upperBound(bucket), value);
      EXPECT_EQ(Histogram::bucketOf(Histogram::upperBound(bucket)), bucket);
      EXPECT_LE(static_cast<double>(Histogram::upperBound(bucket)), static_cast<double>(value) * 1.125);
    }
  EXPECT_EQ(Histogram::upperBound(Histogram::bucketOf(UINT64_MAX)), UINT64_MAX);
}

TEST(Histogram, QuantilesAreAtMostAnEighthTooLarge) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(10, 2);
  Histogram histogram, first, second;
  std::vector<uint64_t> values;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(static_cast<uint64_t>(latency(random)));
    histogram.record(values.back());
    (i % 3 ? first : second).record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (double q : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    size_t rank = static_cast<size_t>(std::max(std::ceil(q * 20000) - 1, 0.0));
    uint64_t exact = values[rank], found = *histogram.quantile(q);
    EXPECT_GE(found, exact) << q;
    EXPECT_LE(static_cast<double>(found), static_cast<double>(exact) * 1.125) << q;
  }
  first.add(second);
  EXPECT_EQ(first.count(), 20000u);
  EXPECT_EQ(first.sum(), histogram.sum());
  EXPECT_EQ(first.quantile(0.99), histogram.quantile(0.99));
}

TEST(Histogram, NothingRecordedHasNoQuantile) {
  Histogram histogram;
  EXPECT_FALSE(histogram.quantile(0.5));
  histogram.record(7);
  EXPECT_EQ(histogram.quantile(0), 7u);
  EXPECT_EQ(histogram.quantile(1), 7u);
}

namespace {

/// Samples by name and labels; fails on what a scraper would refuse.
std::map<std::string, double> scrape(const std::string &text) {
  std::map<std::string, double> samples;
  std::map<std::string, std::string> types;
  std::regex help("# HELP ([a-z_]+) .+"), type("# TYPE ([a-z_]+) (counter|histogram)");
  std::regex sample("([a-z_]+)(\\{([a-z]+=\"([^\"\\\\\n]|\\\\[\\\\n\"])*\",?)+\\})? ([0-9.]+)");
  std::istringstream lines(text);
  std::string last;
  std::smatch match;
  EXPECT_TRUE(text.empty() || text.back() == '\n');
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_match(line, match, help)) {
      last = match[1];
      EXPECT_EQ(types.count(last), 0u) << "described twice: " << last;
    } else if (std::regex_match(line, match, type)) {
      EXPECT_EQ(match[1], last);
      types[match[1]] = match[2];
    } else if (std::regex_match(line, match, sample)) {
      std::string name = match[1];
      EXPECT_EQ(name.rfind(last, 0), 0u) << name << " stands below " << last;
      EXPECT_TRUE(types[last] == "histogram" || (name == last && name.size() > 6 && name.substr(name.size() - 6) == "_total"));
      EXPECT_TRUE(samples.emplace(line.substr(0, line.rfind(' ')), std::stod(match[5])).second) << line;
    } else {
      ADD_FAILURE() << line;
    }
  }
  return samples;
}

} // namespace

TEST(Prometheus, CountersHaveLabelsAndUnits) {
  PagerCounters a, b;
  a.hits = 3, a.late = 1, a.misses = 2, a.stallNs = 1'500'000'001, a.bytesInDemand = UINT64_MAX;
  b.hits = 9;
  std::string text = prometheusText({{"fast", "alice", &a}, {"fast", "b\"o\\b\n", &b}}, {});
  auto samples = scrape(text);
  EXPECT_EQ(samples["quire_demands_total{outcome=\"hit\",tier=\"fast\",tenant=\"alice\"}"], 3);
  EXPECT_EQ(samples["quire_demands_total{outcome=\"late\",tier=\"fast\",tenant=\"alice\"}"], 1);
  EXPECT_EQ(samples["quire_demands_total{outcome=\"hit\",tier=\"fast\",tenant=\"b\\\"o\\\\b\\n\"}"], 9);
  EXPECT_NE(text.find("quire_stall_seconds_total{tier=\"fast\",tenant=\"alice\"} 1.500000001\n"), std::string::npos);
  EXPECT_NE(text.find("quire_moved_bytes_total{cause=\"demand\",tier=\"fast\",tenant=\"alice\"} 18446744073709551615\n"), std::string::npos);
  EXPECT_NE(prometheusText({{"", "", &b}}, {}).find("\nquire_steps_total 0\n"), std::string::npos);
  EXPECT_EQ(prometheusText({}, {}), "");
}

/// Each counter is given a value of its own, and each value has to come out once.
/// `demands` is the sum of its outcomes.
TEST(Prometheus, ShowsEveryCounter) {
  constexpr size_t fields = sizeof(PagerCounters) / sizeof(uint64_t);
  PagerCounters counters;
  uint64_t values[fields];
  for (size_t i = 0; i < fields; ++i)
    values[i] = (1000 + i) * 1'000'000'000;
  std::memcpy(&counters, values, sizeof(counters));
  counters.demands = 0;
  std::map<double, int> seen;
  for (const auto &[name, value] : scrape(prometheusText({{"", "", &counters}}, {})))
    ++seen[name.find("seconds") == std::string::npos ? value / 1e9 : value];
  EXPECT_EQ(seen.size(), fields - 1);
  for (size_t i = 1; i < fields; ++i)
    EXPECT_EQ(seen[static_cast<double>(1000 + i)], 1) << i;
}

/// But for the blocks that are cached now, which is no counter.
TEST(Prometheus, ShowsEveryCounterOfTenants) {
  constexpr size_t fields = sizeof(TenantCounters) / sizeof(int64_t);
  TenantCounters counters, others;
  int64_t values[fields];
  for (size_t i = 0; i < fields; ++i)
    values[i] = static_cast<int64_t>(1000 + i);
  std::memcpy(static_cast<void *>(&counters), values, sizeof(counters));
  auto samples = scrape(prometheusText({}, {}, {}, {}, {{"1", &counters}, {"2", &others}}));
  std::map<double, int> seen;
  for (const auto &[name, value] : samples) {
    EXPECT_EQ(value == 0, name.find("{tenant=\"2\"}") != std::string::npos) << name;
    seen[value] += value > 0;
  }
  EXPECT_EQ(samples.size(), 2 * (fields - 1));
  for (int64_t value : values)
    EXPECT_EQ(seen[static_cast<double>(value)], value != counters.blocksCached) << value;
  EXPECT_EQ(samples["quire_prefix_hit_tokens_total{tenant=\"1\"}"], static_cast<double>(counters.hitTokens));
}

TEST(Prometheus, GaugesHaveTheirTier) {
  EXPECT_EQ(prometheusText({}, {}, {{"quire_x", "What it is.", "file", 0.25}, {"quire_y", "Another.", "", 4096}}),
            "# HELP quire_x What it is.\n# TYPE quire_x gauge\nquire_x{tier=\"file\"} 0.25\n"
            "# HELP quire_y Another.\n# TYPE quire_y gauge\nquire_y 4096\n");
}

TEST(Prometheus, HistogramsAreCumulative) {
  Histogram hits, loads;
  for (uint64_t ns : {3u, 15u, 16u, 31u, 40u, 1000u})
    hits.record(ns);
  hits.record(uint64_t(1) << 40);
  std::string text = prometheusText({}, {{"acquire_hit", "", &hits}, {"load", "file", &loads}});
  auto samples = scrape(text);
  auto below = [&](const char *bound) { return samples["quire_latency_seconds_bucket{operation=\"acquire_hit\",le=\"" + std::string(bound) + "\"}"]; };
  EXPECT_EQ(below("0.000000015"), 2);
  EXPECT_EQ(below("0.000000031"), 4);
  EXPECT_EQ(below("0.000000063"), 5);
  EXPECT_EQ(below("0.000001023"), 6);
  EXPECT_EQ(samples["quire_latency_seconds_count{operation=\"acquire_hit\"}"], 7);
  EXPECT_NE(text.find("le=\"+Inf\"} 7\n"), std::string::npos);
  EXPECT_EQ(samples["quire_latency_seconds_count{operation=\"load\",tier=\"file\"}"], 0);
  EXPECT_NEAR(samples["quire_latency_seconds_sum{operation=\"acquire_hit\"}"], 1099.511627776 + 1105e-9, 1e-6);
}
