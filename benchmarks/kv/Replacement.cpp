// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E4: replacement policies on traces, with the best possible one; and how little fast memory costs little time.
#include "Experiment.h"
#include "Replaying.h"

#include "doctor/Metrics.h"

#include <cmath>

namespace quire::kvbench {

using namespace quire::runtime;

namespace {

constexpr PolicyKind policies[] = {PolicyKind::Lru, PolicyKind::Scan, PolicyKind::Importance, PolicyKind::Arc};

Json rowOf(TraceKind kind, PolicyKind policy, double budget, const TraceShape &shape, const Options &options) {
  std::vector<double> hits, best, gaps, stalls;
  for (int64_t repeat = 0; repeat < repeatsOf(kind, options); ++repeat) {
    Trace trace = traceOf(kind, shape, options.seed + static_cast<uint64_t>(repeat));
    ReplayOptions replaying = replayAt(trace, budget);
    replaying.policy = policy;
    ReplayResult result = replayed(trace, replaying);
    hits.push_back(*hitRate(result.counters));
    best.push_back(static_cast<double>(result.optimum.hits) / static_cast<double>(result.optimum.demands));
    gaps.push_back(*gapToOptimum(result.counters, result.optimum.misses));
    stalls.push_back(*stallShare(result.counters));
  }
  return {{"trace", traceName(kind)},     {"policy", policyName(policy)}, {"budget", budget},
          {"hit_rate", spread(hits)},     {"hit_rate_opt", spread(best)}, {"gap", spread(gaps)},
          {"stall_share", spread(stalls)}};
}

/// Pearson's correlation of hit rate and stall share.
double correlation(const Json &rows, TraceKind kind) {
  std::vector<double> x, y;
  for (const Json &row : rows)
    if (row["trace"] == traceName(kind)) {
      x.push_back(row["hit_rate"]["median"]);
      y.push_back(row["stall_share"]["median"]);
    }
  double n = static_cast<double>(x.size()), sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sx += x[i], sy += y[i];
    sxx += x[i] * x[i], syy += y[i] * y[i], sxy += x[i] * y[i];
  }
  return (n * sxy - sx * sy) / std::sqrt((n * sxx - sx * sx) * (n * syy - sy * sy));
}

const Json &find(const Json &rows, TraceKind kind, PolicyKind policy, double budget) {
  for (const Json &row : rows)
    if (row["trace"] == traceName(kind) && row["policy"] == policyName(policy) && row["budget"] == budget)
      return row;
  static const Json none;
  return none;
}

/// Time of the steps at a budget, above the time with everything in the fast tier.
double slowdown(const Trace &trace, double budget, PolicyKind policy, PrefetchKind prefetch) {
  ReplayOptions replaying = replayAt(trace, budget), all = replayAt(trace, 1);
  replaying.policy = policy;
  replaying.prefetch = prefetch;
  replaying.window = 8;
  double fast = static_cast<double>(replayed(trace, all).counters.stepNs);
  return static_cast<double>(replayed(trace, replaying).counters.stepNs) / fast - 1;
}

struct Tiering {
  const char *name;
  TraceKind kind;
  PolicyKind policy;
  PrefetchKind prefetch;
};
constexpr Tiering tierings[] = {
    {"dense, scan", TraceKind::Dense, PolicyKind::Scan, PrefetchKind::None},
    {"dense, scan, sequential", TraceKind::Dense, PolicyKind::Scan, PrefetchKind::Sequential},
    {"sparse, importance", TraceKind::Sparse, PolicyKind::Importance, PrefetchKind::None},
    {"sparse, importance, hybrid", TraceKind::Sparse, PolicyKind::Importance, PrefetchKind::Hybrid},
    {"dialogue, lru", TraceKind::Dialogue, PolicyKind::Lru, PrefetchKind::None},
    {"dialogue, scan, sequential", TraceKind::Dialogue, PolicyKind::Scan, PrefetchKind::Sequential},
    {"document, lru", TraceKind::Document, PolicyKind::Lru, PrefetchKind::None},
};

/// The smallest budget, in steps of 2.5 points from all down, up to which no budget costs more than 2 %.
Json knee(const Tiering &tiering, const TraceShape &shape, const Options &options, Json &curve) {
  constexpr double most = 0.02;
  std::vector<double> budgets;
  for (int64_t repeat = 0; repeat < repeatsOf(tiering.kind, options); ++repeat) {
    Trace trace = traceOf(tiering.kind, shape, options.seed + static_cast<uint64_t>(repeat));
    double least = 1;
    bool ended = false;
    for (int point = 40; point >= 4; --point) {
      double budget = point / 40.0, slower = slowdown(trace, budget, tiering.policy, tiering.prefetch);
      if (repeat == 0)
        curve.push_back({{"tiering", tiering.name}, {"budget", budget}, {"slowdown", slower}});
      ended |= slower > most;
      least = ended ? least : budget;
    }
    budgets.push_back(least);
  }
  return {{"tiering", tiering.name}, {"least_budget", spread(budgets)}};
}

} // namespace

Json replacement(const Options &options) {
  TraceShape shape = residencyShape(options.quick);
  Json rows = Json::array(), knees = Json::array(), curve = Json::array(), correlations = Json::array();
  for (TraceKind kind : allTraces) {
    for (double budget : {0.25, 0.5, 0.75, 0.9})
      for (PolicyKind policy : policies)
        rows.push_back(rowOf(kind, policy, budget, shape, options));
    correlations.push_back({{"trace", traceName(kind)}, {"hit_rate_and_stall", correlation(rows, kind)}});
  }
  for (const Tiering &tiering : tierings)
    knees.push_back(knee(tiering, shape, options, curve));
  double pages = shape.pages(), fast = std::floor(0.5 * pages);
  double ideal = (fast - 1) / (pages - 1);
  Json claims = {claim("lru finds nothing on dense attention when half of the pages fit",
                       find(rows, TraceKind::Dense, PolicyKind::Lru, 0.5)["hit_rate"]["median"], 0, 0),
                 claim("scan finds (C-1)/(N-1) there, the most that is possible",
                       find(rows, TraceKind::Dense, PolicyKind::Scan, 0.5)["hit_rate"]["median"], ideal - 0.03, ideal),
                 claim("two tiers save 15 % of fast memory or more at 2 % slowdown, sparse attention",
                       1 - static_cast<double>(knees[2]["least_budget"]["median"]), 0.15, 1),
                 claim("two tiers save 15 % of fast memory or more at 2 % slowdown, dialogue",
                       1 - static_cast<double>(knees[4]["least_budget"]["median"]), 0.15, 1),
                 claim("two tiers save 15 % of fast memory or more at 2 % slowdown, dense attention",
                       1 - static_cast<double>(knees[1]["least_budget"]["median"]), 0.15, 1)};
  return {{"workload", "page traces of one sequence: dense attention, sparse attention, a dialogue of 20 turns, a "
                       "document with questions"},
          {"baseline", "everything in the fast tier (slowdown), and the best possible replacement by Belady (hits)"},
          {"formula", "hit rate = hits / demands; gap = (loads - loads of the best possible) / demands; slowdown = "
                      "time of steps / that with everything in the fast tier - 1"},
          {"parameters", parametersOf(shape, options)},
          {"rows", rows},
          {"correlations", correlations},
          {"knees", knees},
          {"curve", curve},
          {"claims", claims}};
}

} // namespace quire::kvbench
