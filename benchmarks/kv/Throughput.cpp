// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E2: how many more tokens a second a memory budget serves in blocks than in regions of the greatest length.
#include "Experiment.h"
#include "Server.h"

#include <algorithm>

namespace quire::kvbench {

namespace {

constexpr double promptShare = 0.25;
constexpr int64_t maxBatch = 8, blockTokens = 16;

struct Both {
  Served paged, contiguous;
};

Both serveBoth(Lengths lengths, double arena, int64_t most, size_t requests, uint64_t seed) {
  std::vector<Arrival> arrivals = drawRequests(requests, lengths, most, promptShare, seed);
  double slots = arena * static_cast<double>(most);
  ServerOptions paged, contiguous;
  paged.blockTokens = blockTokens;
  paged.blocks = static_cast<int64_t>(slots) / blockTokens;
  contiguous.blockTokens = most;
  contiguous.blocks = static_cast<int64_t>(arena);
  return {serve(arrivals, paged, {}), serve(arrivals, contiguous, {})};
}

/// Constant: a step reads the weights, and these are all. KV bound: three regions that are full cost as much as the
/// weights.
std::vector<StepCost> costsOf(const Options &options, int64_t most) {
  std::vector<StepCost> costs = {{"constant"}, {"bound by K and V", 1, 0, 1.0 / static_cast<double>(3 * most), 0}};
  if (!options.costs.empty())
    for (StepCost &cost : readCosts(options.costs)) {
      cost.name = "measured: " + cost.name;
      costs.push_back(cost);
    }
  return costs;
}

Json rowOf(const std::vector<Both> &runs, const StepCost &cost, Lengths lengths, double arena) {
  std::vector<double> speedups, pagedBatch, contiguousBatch, preemptions;
  for (const Both &run : runs) {
    speedups.push_back(run.contiguous.totalMs(cost) / run.paged.totalMs(cost));
    pagedBatch.push_back(run.paged.meanBatch());
    contiguousBatch.push_back(run.contiguous.meanBatch());
    preemptions.push_back(static_cast<double>(run.paged.preemptions));
  }
  return {{"lengths", lengthsName(lengths)},
          {"arena", arena},
          {"cost", cost.name},
          {"speedup", spread(speedups)},
          {"batch_paged", spread(pagedBatch)},
          {"batch_contiguous", spread(contiguousBatch)},
          {"preemptions", spread(preemptions)}};
}

double speedupOf(const Json &rows, Lengths lengths, double arena, const std::string &cost) {
  for (const Json &row : rows)
    if (row["lengths"] == lengthsName(lengths) && row["arena"] == arena && row["cost"] == cost)
      return row["speedup"]["median"];
  return 0;
}

} // namespace

Json throughput(const Options &options) {
  int64_t most = options.quick ? 256 : 2048;
  size_t requests = options.quick ? 24 : 64;
  std::vector<StepCost> costs = costsOf(options, most);
  Json rows = Json::array();
  for (Lengths lengths : allLengths)
    for (double arena : {2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0}) {
      std::vector<Both> runs;
      for (int64_t repeat = 0; repeat < options.repeats; ++repeat)
        runs.push_back(serveBoth(lengths, arena, most, requests, options.seed + static_cast<uint64_t>(repeat)));
      for (const StepCost &cost : costs)
        rows.push_back(rowOf(runs, cost, lengths, arena));
    }
  Json claims = Json::array();
  for (Lengths lengths : {Lengths::From20, Lengths::From40, Lengths::Chat})
    claims.push_back(claim(std::string("2.0 to 2.4 times the throughput, rounded: arena of 3.5 greatest lengths, "
                                       "constant cost of a step, lengths ") +
                               lengthsName(lengths),
                           speedupOf(rows, lengths, 3.5, "constant"), 1.95, 2.45));
  claims.push_back(claim("no gain where 8 regions fit, lengths U[0.2,1]",
                         speedupOf(rows, Lengths::From20, 8.0, "constant"), 0.99, 1.01));
  for (size_t i = 2; i < costs.size(); ++i)
    claims.push_back(claim("1.2 to 1.8 times with costs of steps that were measured (" +
                               costs[i].name.substr(costs[i].name.find(' ') + 1) + "), lengths U[0.2,1]",
                           speedupOf(rows, Lengths::From20, 3.5, costs[i].name), 1.2, 1.8));
  return {{"workload", "requests that are all there at the start, a quarter of each one's tokens being its prompt, "
                       "served by the runtime's scheduler with at most 8 sequences in a step"},
          {"baseline", "the same scheduler and budget with one region of the greatest length for each sequence"},
          {"formula", "speedup = time of all steps with regions / time of all steps with blocks; a step costs 1 "
                      "(constant), 1 + stored tokens / (3 * greatest length) (bound by K and V), or what was measured"},
          {"parameters",
           {{"greatest_length", most},
            {"requests", requests},
            {"max_batch", maxBatch},
            {"block_tokens", blockTokens},
            {"prompt_share", promptShare},
            {"repeats", options.repeats},
            {"seed", options.seed}}},
          {"rows", rows},
          {"claims", claims}};
}

} // namespace quire::kvbench
