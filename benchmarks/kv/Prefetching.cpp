// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E5: prefetch strategies, windows and bandwidths of the slow tier.
#include "Experiment.h"
#include "Replaying.h"

#include "doctor/Metrics.h"

#include <algorithm>

namespace quire::kvbench {

using namespace quire::runtime;

namespace {

constexpr PrefetchKind strategies[] = {PrefetchKind::Sequential, PrefetchKind::LayerAhead, PrefetchKind::SeedHotspot,
                                       PrefetchKind::Hybrid};
constexpr double budget = 0.5;

PolicyKind policyFor(TraceKind kind) { return kind == TraceKind::Dense ? PolicyKind::Scan : PolicyKind::Importance; }

Json ratioSpread(const std::vector<double> &values) { return values.empty() ? Json(nullptr) : spread(values); }

struct Case {
  TraceKind kind;
  PrefetchKind strategy;
  uint32_t window;
  double bandwidth;
};

Json rowOf(const Case &one, const TraceShape &shape, const Options &options) {
  std::vector<double> accuracy, coverage, timeliness, polluted, stall, bytes, slower;
  auto keep = [](std::vector<double> &values, Ratio value) {
    if (value)
      values.push_back(*value);
  };
  for (int64_t repeat = 0; repeat < repeatsOf(one.kind, options); ++repeat) {
    Trace trace = traceOf(one.kind, shape, options.seed + static_cast<uint64_t>(repeat));
    ReplayOptions replaying = replayAt(trace, budget);
    replaying.policy = policyFor(one.kind);
    replaying.prefetch = one.window == 0 ? PrefetchKind::None : one.strategy;
    replaying.window = std::max(one.window, 1u);
    replaying.bandwidth = one.bandwidth;
    ReplayResult result = replayed(trace, replaying);
    ReplayOptions without = replaying;
    without.prefetch = PrefetchKind::None;
    ReplayResult plain = replayed(trace, without);
    const PagerCounters &c = result.counters;
    keep(accuracy, prefetchAccuracy(c));
    keep(coverage, prefetchCoverage(c));
    keep(timeliness, prefetchTimeliness(c));
    keep(polluted, pollution(c));
    keep(stall, stallShare(c));
    bytes.push_back(static_cast<double>(result.loads()) / static_cast<double>(plain.loads()));
    slower.push_back(static_cast<double>(c.stepNs) / static_cast<double>(plain.counters.stepNs));
  }
  return {{"trace", traceName(one.kind)},
          {"strategy", prefetchName(one.strategy)},
          {"window", one.window},
          {"bandwidth", one.bandwidth},
          {"accuracy", ratioSpread(accuracy)},
          {"coverage", ratioSpread(coverage)},
          {"timeliness", ratioSpread(timeliness)},
          {"pollution", ratioSpread(polluted)},
          {"stall_share", ratioSpread(stall)},
          {"bytes", spread(bytes)},
          {"time", spread(slower)}};
}

const Json &find(const Json &rows, const Case &one) {
  for (const Json &row : rows)
    if (row["trace"] == traceName(one.kind) && row["strategy"] == prefetchName(one.strategy) &&
        row["window"] == one.window && row["bandwidth"] == one.bandwidth)
      return row;
  static const Json none;
  return none;
}

double medianOr0(const Json &value) { return value.is_null() ? 0.0 : value["median"].get<double>(); }

} // namespace

Json prefetching(const Options &options) {
  TraceShape shape = residencyShape(options.quick);
  Json rows = Json::array();
  for (TraceKind kind : {TraceKind::Dense, TraceKind::Sparse})
    for (PrefetchKind strategy : strategies) {
      if (kind == TraceKind::Dense && strategy == PrefetchKind::SeedHotspot)
        continue; // every page has the same mass
      for (uint32_t window : {0u, 1u, 2u, 3u, 5u, 8u})
        for (double bandwidth : {0.5e9, 1e9, 2e9, 4e9, 8e9})
          rows.push_back(rowOf({kind, strategy, window, bandwidth}, shape, options));
    }
  auto dense = [&](uint32_t window) -> const Json & {
    return find(rows, {TraceKind::Dense, PrefetchKind::Sequential, window, 2e9});
  };
  const Json &hotspot = find(rows, {TraceKind::Sparse, PrefetchKind::SeedHotspot, 3, 2e9});
  Json claims = {
      claim("a window of 5 instead of 3 is no later where a load takes longer than a page is computed: timeliness at 5 "
            "less that at 3, dense, sequential, 2 GB/s",
            medianOr0(dense(5)["timeliness"]) - medianOr0(dense(3)["timeliness"]), 0, 1),
      claim("hot spots of the last step are no help: coverage, sparse, 2 GB/s", medianOr0(hotspot["coverage"]), 0, 0.1),
      claim("read-ahead moves no more bytes than demands alone, dense, window 3, 2 GB/s", dense(3)["bytes"]["median"],
            0.9, 1.05)};
  Json parameters = parametersOf(shape, options);
  parameters["budget"] = budget;
  return {
      {"workload", "page traces of one sequence with half of its pages in the fast tier: dense attention (policy scan) "
                   "and sparse attention (policy importance)"},
      {"baseline", "the same without prefetching (window 0)"},
      {"formula", "accuracy = useful / issued; coverage = useful / (useful + misses); timeliness = timely / useful; "
                  "pollution = misses of pages that a prefetch had evicted / misses; time and bytes: of the baseline"},
      {"parameters", parameters},
      {"rows", rows},
      {"claims", claims}};
}

} // namespace quire::kvbench
