// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E3: what a shared prefix, admission by need, and memory that was touched before each do to the time to the first
// token.
#include "CpuTime.h"
#include "Experiment.h"
#include "Server.h"
#include "ShapeModel.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

namespace quire::kvbench {

namespace {

constexpr double promptShare = 0.25, arena = 3.5;
constexpr int64_t blockTokens = 16;

/// Milliseconds of the first touch of the K and V of one sequence, in memory that the system has not given yet.
double touchMs(int64_t tokens) {
  size_t bytes = static_cast<size_t>(tokens * demoShape.tokenBytes());
  double before = cpuSeconds();
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw std::bad_alloc();
  std::memset(memory, 0, bytes);
  double ms = 1e3 * (cpuSeconds() - before);
  ::munmap(memory, bytes);
  return ms;
}

double quantileOf(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

/// Requests one by one: no queue, so that only the prompt counts.
Json prefixRow(double share, const StepCost &cost, int64_t prompt, size_t requests) {
  std::vector<Arrival> arrivals(requests);
  int64_t shared = static_cast<int64_t>(share * static_cast<double>(prompt)) / blockTokens * blockTokens;
  for (size_t i = 0; i < requests; ++i)
    arrivals[i] = {1e9 * static_cast<double>(i), prompt, 2, shared};
  ServerOptions options;
  options.blocks = 2 * prompt;
  options.prefillChunk = options.mixedChunk = prompt;
  Served without = serve(arrivals, options, cost);
  options.prefixCache = true;
  Served with = serve(arrivals, options, cost);
  double before = without.firstTokenMs.back(), after = with.firstTokenMs.back();
  return {{"cost", cost.name},
          {"shared", static_cast<double>(shared) / static_cast<double>(prompt)},
          {"ms_without", before},
          {"ms_with", after},
          {"saved", 1 - after / before}};
}

struct Loaded {
  Served paged, touched, cold;
};

Loaded serveLoaded(const std::vector<Arrival> &arrivals, const StepCost &cost, int64_t most, double coldMs) {
  ServerOptions paged, contiguous;
  paged.blocks = static_cast<int64_t>(arena * static_cast<double>(most)) / blockTokens;
  contiguous.blockTokens = most;
  contiguous.blocks = static_cast<int64_t>(arena);
  Loaded loaded;
  loaded.paged = serve(arrivals, paged, cost);
  loaded.touched = serve(arrivals, contiguous, cost);
  contiguous.allocationMs = coldMs;
  loaded.cold = serve(arrivals, contiguous, cost);
  return loaded;
}

/// At `load` of the rate at which the contiguous cache, touched before, serves the same requests without a pause.
Json loadRow(double load, Lengths lengths, const StepCost &cost, int64_t most, size_t requests, double coldMs,
             const Options &options) {
  std::vector<double> values[3][2], saved[2], coldPart[2];
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    std::vector<Arrival> arrivals = drawRequests(requests, lengths, most, promptShare, seed);
    ServerOptions contiguous;
    contiguous.blockTokens = most;
    contiguous.blocks = static_cast<int64_t>(arena);
    double capacity = static_cast<double>(requests) / serve(arrivals, contiguous, cost).ms;
    arriveAtRandom(arrivals, load * capacity, seed + 1000);
    Loaded loaded = serveLoaded(arrivals, cost, most, coldMs);
    for (size_t q = 0; q < 2; ++q) {
      double at = q == 0 ? 0.5 : 0.95;
      double paged = quantileOf(loaded.paged.firstTokenMs, at), touched = quantileOf(loaded.touched.firstTokenMs, at),
             cold = quantileOf(loaded.cold.firstTokenMs, at);
      values[0][q].push_back(paged);
      values[1][q].push_back(touched);
      values[2][q].push_back(cold);
      saved[q].push_back(1 - paged / touched);
      coldPart[q].push_back(1 - touched / cold);
    }
  }
  Json row = {{"load", load}, {"lengths", lengthsName(lengths)}, {"cost", cost.name}};
  const char *names[] = {"paged", "contiguous_touched", "contiguous_cold"};
  for (size_t q = 0; q < 2; ++q) {
    std::string end = q == 0 ? "_p50" : "_p95";
    for (size_t i = 0; i < 3; ++i)
      row[names[i] + end] = spread(values[i][q]);
    row["saved_by_admission" + end] = spread(saved[q]);
    row["saved_by_touching_before" + end] = spread(coldPart[q]);
  }
  return row;
}

} // namespace

Json firstToken(const Options &options) {
  int64_t most = options.quick ? 256 : 2048;
  size_t requests = options.quick ? 24 : 128;
  std::vector<StepCost> costs = options.costs.empty()
                                    ? std::vector<StepCost>{{"1 ms, and 0.05 ms a prompt token", 1, 0, 0, 0.05}}
                                    : readCosts(options.costs);
  costs.resize(1); // Quire's own
  std::vector<double> touches;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat)
    touches.push_back(touchMs(most));
  double coldMs = medianOf(touches);
  Json prefixes = Json::array(), rows = Json::array();
  for (double share : {0.0, 0.15, 0.3, 0.5, 0.9})
    prefixes.push_back(prefixRow(share, costs[0], most / 2, 8));
  for (Lengths lengths : {Lengths::From20, Lengths::Chat})
    for (double load : {0.3, 0.6, 0.9, 1.2})
      rows.push_back(loadRow(load, lengths, costs[0], most, requests, coldMs, options));
  double tolerance = 0.04; // a prefix is whole blocks, and a step has a fixed cost
  Json claims = {claim("-15 % of the time to the first token where 15 % of the prompt is a cached prefix",
                       prefixes[1]["saved"], 0.15 - tolerance, 0.15 + tolerance),
                 claim("at least -15 % by admission alone at 60 % load, median request, lengths U[0.2,1]",
                       rows[1]["saved_by_admission_p50"]["median"], 0.15, 1.0)};
  return {{"workload", "prefix: requests one by one whose prompts begin alike; admission: requests that arrive at "
                       "random (Poisson), a quarter of each one's tokens being its prompt"},
          {"baseline", "prefix: no cache of prefixes; admission: one region of the greatest length for each sequence, "
                       "3 of them, touched before or at admission"},
          {"formula", "saved = 1 - time to the first token / that of the baseline; load is the rate of arrivals / the "
                      "rate at which the baseline serves them without a pause"},
          {"parameters",
           {{"greatest_length", most},
            {"requests", requests},
            {"arena", arena},
            {"prompt_share", promptShare},
            {"touch_ms", spread(touches)},
            {"token_bytes", demoShape.tokenBytes()},
            {"repeats", options.repeats},
            {"seed", options.seed}}},
          {"prefixes", prefixes},
          {"rows", rows},
          {"claims", claims}};
}

} // namespace quire::kvbench
