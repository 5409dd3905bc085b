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
                                       PrefetchKind::Digest, PrefetchKind::Hybrid};
constexpr uint32_t windows[] = {0, 1, 2, 3, 5, 8};
constexpr double bandwidths[] = {0.5e9, 1e9, 2e9, 4e9, 8e9};
constexpr double budget = 0.5;

/// A kind of attention: its traces, one for each repetition, and what a query's digests name in them.
struct Workload {
  const char *name;
  PolicyKind policy;
  uint32_t topk; // blocks that hot spots and digests name in each group: as many as are read
  std::vector<KeyedTrace> traces;
};

Workload denseWorkload(const TraceShape &shape) {
  Workload made{"dense", PolicyKind::Scan, 2, {}};
  made.traces.push_back({denseTrace(shape), {}});
  return made;
}

KeyedAttention keyedAttention(const TraceShape &shape) {
  KeyedAttention attention;
  attention.topk = std::max<uint32_t>(8, shape.blocks / 8);
  attention.interests = attention.topk / 2;
  return attention;
}

Workload sparseWorkload(const TraceShape &shape, const Options &options) {
  KeyedAttention attention = keyedAttention(shape);
  Workload made{"sparse", PolicyKind::Importance, attention.topk, {}};
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat)
    made.traces.push_back(keyedTrace(shape, attention, options.seed + static_cast<uint64_t>(repeat)));
  return made;
}

/// Every page of a dense step has the same mass, and every one is read.
bool hasUseFor(const Workload &workload, PrefetchKind strategy) {
  return workload.policy != PolicyKind::Scan || (strategy != PrefetchKind::SeedHotspot && strategy != PrefetchKind::Digest);
}

Json ratioSpread(const std::vector<double> &values) { return values.empty() ? Json(nullptr) : spread(values); }

struct Case {
  PrefetchKind strategy;
  uint32_t window;
  double bandwidth;
};

ReplayOptions optionsOf(const Workload &workload, const KeyedTrace &keyed, double bandwidth) {
  ReplayOptions replaying = replayAt(keyed.trace, budget);
  replaying.policy = workload.policy;
  replaying.topk = workload.topk;
  replaying.bandwidth = bandwidth;
  replaying.named = &keyed.named;
  return replaying;
}

/// `plain`: each trace without prefetching.
Json rowOf(const Workload &workload, const Case &one, const std::vector<ReplayResult> &plain) {
  std::vector<double> accuracy, coverage, timeliness, polluted, stall, bytes, slower;
  auto keep = [](std::vector<double> &values, Ratio value) {
    if (value)
      values.push_back(*value);
  };
  for (size_t i = 0; i < workload.traces.size(); ++i) {
    ReplayOptions replaying = optionsOf(workload, workload.traces[i], one.bandwidth);
    replaying.prefetch = one.window == 0 ? PrefetchKind::None : one.strategy;
    replaying.window = std::max(one.window, 1u);
    ReplayResult result = replayed(workload.traces[i].trace, replaying);
    const PagerCounters &c = result.counters;
    keep(accuracy, prefetchAccuracy(c));
    keep(coverage, prefetchCoverage(c));
    keep(timeliness, prefetchTimeliness(c));
    keep(polluted, pollution(c));
    keep(stall, stallShare(c));
    bytes.push_back(static_cast<double>(result.loads()) / static_cast<double>(plain[i].loads()));
    slower.push_back(static_cast<double>(c.stepNs) / static_cast<double>(plain[i].counters.stepNs));
  }
  return {{"trace", workload.name},
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

void addRows(const Workload &workload, Json &rows) {
  for (double bandwidth : bandwidths) {
    std::vector<ReplayResult> plain;
    for (const KeyedTrace &keyed : workload.traces)
      plain.push_back(replayed(keyed.trace, optionsOf(workload, keyed, bandwidth)));
    for (PrefetchKind strategy : strategies)
      for (uint32_t window : windows)
        if (hasUseFor(workload, strategy))
          rows.push_back(rowOf(workload, {strategy, window, bandwidth}, plain));
  }
}

const Json &find(const Json &rows, const char *workload, const Case &one) {
  for (const Json &row : rows)
    if (row["trace"] == workload && row["strategy"] == prefetchName(one.strategy) && row["window"] == one.window &&
        row["bandwidth"] == one.bandwidth)
      return row;
  static const Json none;
  return none;
}

double medianOr0(const Json &value) { return value.is_null() ? 0.0 : value["median"].get<double>(); }

Json claimsOf(const Json &rows) {
  auto dense = [&](uint32_t window) -> const Json & { return find(rows, "dense", {PrefetchKind::Sequential, window, 2e9}); };
  auto sparse = [&](PrefetchKind strategy) -> const Json & { return find(rows, "sparse", {strategy, 3, 2e9}); };
  double named = medianOr0(sparse(PrefetchKind::Digest)["coverage"]);
  return {
      claim("a window of 5 instead of 3 is no later where a load takes longer than a page is computed: timeliness at 5 "
            "less that at 3, dense, sequential, 2 GB/s",
            medianOr0(dense(5)["timeliness"]) - medianOr0(dense(3)["timeliness"]), 0, 1),
      claim("hot spots of the last step are no help: coverage, sparse, 2 GB/s", medianOr0(sparse(PrefetchKind::SeedHotspot)["coverage"]), 0, 0.1),
      claim("digests of the current query find most of what is missing: coverage, sparse, window 3, 2 GB/s", named, 0.5, 1),
      claim("they find more of it than the layer before does: coverage of digests less that of layer_ahead, sparse, window 3, 2 GB/s",
            named - medianOr0(sparse(PrefetchKind::LayerAhead)["coverage"]), 0, 1),
      claim("read-ahead moves no more bytes than demands alone, dense, window 3, 2 GB/s", dense(3)["bytes"]["median"],
            0.9, 1.05)};
}

} // namespace

Json prefetching(const Options &options) {
  TraceShape shape = residencyShape(options.quick);
  Json rows = Json::array();
  addRows(denseWorkload(shape), rows);
  addRows(sparseWorkload(shape, options), rows);
  KeyedAttention attention = keyedAttention(shape);
  Json parameters = parametersOf(shape, options), claims = claimsOf(rows);
  parameters["budget"] = budget;
  parameters["read_blocks"] = attention.topk;
  parameters["interests"] = attention.interests;
  parameters["interests_kept"] = attention.sticky;
  parameters["keys_alike"] = attention.alike;
  return {
      {"workload", "page traces of one sequence with half of its pages in the fast tier: dense attention (policy scan), and sparse attention (policy "
                   "importance) over made-up keys, where a step reads the blocks that its query gives most in each group of layers; half of what a query "
                   "looks for is the same in all groups"},
      {"baseline", "the same without prefetching (window 0)"},
      {"formula", "accuracy = useful / issued; coverage = useful / (useful + misses); timeliness = timely / useful; "
                  "pollution = misses of pages that a prefetch had evicted / misses; time and bytes: of the baseline. Pages are named by seed_hotspot from the attention of "
                  "the step before, when a step begins; by layer_ahead from what the group before reads, as it reads it; by digest from bounds of the keys and the query that "
                  "then reads, when a group begins: as many as are read"},
      {"parameters", parameters},
      {"rows", rows},
      {"claims", claims}};
}

} // namespace quire::kvbench
