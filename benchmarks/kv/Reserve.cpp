// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E8: blocks that are kept for sequences which have begun: fewer give way, and fewer run.
#include "Experiment.h"
#include "Server.h"

#include <algorithm>

namespace quire::kvbench {

namespace {

constexpr double arena = 4, promptShare = 0.25;
constexpr int64_t maxBatch = 16, blockTokens = 16;
constexpr double ratios[] = {0, 0.02, 0.05, 0.10, 0.15};

/// Each repetition's throughput is divided by that without a reserve.
Json rowOf(Lengths lengths, double reserve, const StepCost &cost, int64_t most, size_t requests,
           const Options &options) {
  std::vector<double> gains, preemptions, prompts, batches;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    std::vector<Arrival> arrivals =
        drawRequests(requests, lengths, most, promptShare, options.seed + static_cast<uint64_t>(repeat));
    ServerOptions server;
    server.blocks = static_cast<int64_t>(arena * static_cast<double>(most)) / blockTokens;
    server.maxBatch = maxBatch;
    Served without = serve(arrivals, server, cost, {true, 0}), with = serve(arrivals, server, cost, {true, reserve});
    gains.push_back(without.ms / with.ms);
    preemptions.push_back(static_cast<double>(with.preemptions));
    prompts.push_back(static_cast<double>(with.promptTokens()));
    batches.push_back(with.meanBatch());
  }
  return {{"lengths", lengthsName(lengths)},  {"reserve", reserve},
          {"throughput", spread(gains)},      {"preemptions", spread(preemptions)},
          {"prompt_tokens", spread(prompts)}, {"batch", spread(batches)}};
}

} // namespace

Json reserves(const Options &options) {
  int64_t most = options.quick ? 256 : 2048;
  size_t requests = options.quick ? 24 : 128;
  StepCost cost = {"1, and 0.02 a prompt token", 1, 0, 0, 0.02};
  if (!options.costs.empty())
    cost = readCosts(options.costs).at(0);
  Json rows = Json::array();
  double best = 0, bestGain = 0, fullGain = 0;
  for (Lengths lengths : {Lengths::From20, Lengths::Chat, Lengths::Fixed})
    for (double reserve : ratios) {
      rows.push_back(rowOf(lengths, reserve, cost, most, requests, options));
      double gain = rows.back()["throughput"]["median"];
      if (lengths == Lengths::From20 && gain > bestGain) {
        bestGain = gain;
        best = reserve;
      }
      if (lengths == Lengths::From20 && reserve == 0.10)
        fullGain = gain;
    }
  Json claims = {claim("reserve with the most throughput, lengths U[0.2,1]", best, 0.02, 0.05),
                 claim("throughput with a reserve of 10 %, of that without, lengths U[0.2,1]", fullGain, 1, 2)};
  return {{"workload",
           "requests that are all there at the start, a quarter of each one's tokens being its prompt, at most 16 "
           "sequences in a step and memory for 4 of the greatest length"},
          {"baseline", "no reserve: a request is admitted where its prompt fits"},
          {"formula", "throughput = time of all steps without a reserve / with it; who gives way stores its tokens "
                      "again later, which counts as "
                      "prompt tokens"},
          {"parameters",
           {{"greatest_length", most},
            {"requests", requests},
            {"arena", arena},
            {"max_batch", maxBatch},
            {"prompt_share", promptShare},
            {"cost", cost.name},
            {"repeats", options.repeats},
            {"seed", options.seed}}},
          {"rows", rows},
          {"claims", claims}};
}

} // namespace quire::kvbench
