// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Feeds the scheduler by a virtual clock.
#include "Server.h"

#include "ShapeModel.h"
#include "core/Json.h"
#include "serving/Scheduler.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace quire::kvbench {

double StepCost::ms(const serving::StepRecord &step) const {
  return fixed + perSequence * static_cast<double>(step.sequences) + perKvToken * static_cast<double>(step.kvTokens) +
         perPromptToken * static_cast<double>(step.tokens - step.sequences);
}

std::vector<StepCost> readCosts(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  nlohmann::json json;
  std::string error;
  if (!file || !runtime::parseJson(text.str(), json, error))
    throw std::runtime_error(path + ": " + (file ? error : "cannot be read"));
  try {
    std::vector<StepCost> costs;
    for (const nlohmann::json &entry : json.at("engines"))
      costs.push_back({entry.at("name"), entry.at("fixed_ms"), entry.at("per_sequence_ms"), entry.at("per_kv_token_ms"),
                       entry.at("per_prompt_token_ms")});
    return costs;
  } catch (const nlohmann::json::exception &problem) {
    throw std::runtime_error(path + ": expected costs of steps as benchmarks/kv/run.py writes them: " + problem.what());
  }
}

std::vector<Arrival> drawRequests(size_t count, Lengths lengths, int64_t most, double prompt, uint64_t seed) {
  Random random(seed);
  std::vector<Arrival> requests(count);
  for (Arrival &request : requests) {
    int64_t stored = drawLength(lengths, most, random);
    request.prompt = std::max<int64_t>(1, static_cast<int64_t>(prompt * static_cast<double>(stored)));
    request.generated = stored - request.prompt + 1; // the last token is not stored
  }
  return requests;
}

void arriveAtRandom(std::vector<Arrival> &requests, double perMs, uint64_t seed) {
  Random random(seed);
  double now = 0;
  for (Arrival &request : requests)
    request.ms = now += random.exponential(1 / perMs);
}

double Served::meanBatch() const {
  double sequences = 0;
  for (const serving::StepRecord &step : steps)
    sequences += static_cast<double>(step.sequences);
  return sequences / static_cast<double>(std::max<size_t>(1, steps.size()));
}

int64_t Served::promptTokens() const {
  int64_t tokens = 0;
  for (const serving::StepRecord &step : steps)
    tokens += step.tokens - step.sequences;
  return tokens;
}

double Served::totalMs(const StepCost &cost) const {
  double total = 0;
  for (const serving::StepRecord &step : steps)
    total += cost.ms(step);
  return total;
}

namespace {

/// Notes whose first token came in the step. A request is known by its line, from 1.
class FirstTokens final : public serving::ResultSink {
public:
  explicit FirstTokens(size_t requests) : seen_(requests, false) {}

  bool logits(const serving::Request &request, const float *) override {
    size_t index = static_cast<size_t>(request.line - 1);
    if (!seen_[index])
      now.push_back(index);
    seen_[index] = true;
    return true;
  }
  bool finished(const serving::Request &, const serving::Result &result) override {
    if (result.reason != serving::FinishReason::Error)
      return true;
    std::fprintf(stderr, "error: a request of an experiment: %s\n", result.error.c_str());
    std::exit(1);
  }

  std::vector<size_t> now;

private:
  std::vector<bool> seen_;
};

serving::Request requestOf(const Arrival &arrival, size_t index) {
  serving::Request request;
  request.line = static_cast<int64_t>(index) + 1;
  request.idKind = serving::Request::IdKind::Integer;
  request.id = std::to_string(index);
  request.maxNewTokens = arrival.generated;
  request.tenant = "all";
  request.prompt.assign(static_cast<size_t>(arrival.prompt), request.line);
  std::fill_n(request.prompt.begin(), std::min(arrival.shared, arrival.prompt), int64_t(0));
  return request;
}

} // namespace

Served serve(const std::vector<Arrival> &requests, const ServerOptions &options, const StepCost &cost,
             const Admission &admission) {
  Shape shape = {1, 1, 1, QUIRE_ELEMENT_F16, options.blockTokens};
  ShapeModel model(shape, Work::Nothing);
  ShapePool::Options poolOptions{options.blocks};
  poolOptions.prefixCache = options.prefixCache;
  ShapePool pool(model, poolOptions);
  serving::ExecutorPointer executor =
      pool.executor(model, options.maxBatch + options.prefillChunk, options.maxBatch, /*threads=*/1);
  serving::SchedulerLimits limits;
  limits.maxBatch = options.maxBatch;
  limits.prefillChunk = options.prefillChunk;
  limits.mixedChunk = options.mixedChunk;
  limits.prefixCache = options.prefixCache;
  FirstTokens sink(requests.size());
  serving::Scheduler scheduler(model.info(), pool.get(), executor.get(), limits, sink);

  Served served;
  served.firstTokenMs.resize(requests.size());
  int64_t allocations = 0;
  for (size_t next = 0;;) {
    int64_t promised = static_cast<int64_t>(admission.reserve * static_cast<double>(options.blocks));
    for (; next < requests.size() && requests[next].ms <= served.ms; ++next) {
      promised += (requests[next].prompt + options.blockTokens - 1) / options.blockTokens;
      bool waits = scheduler.unfinished() > scheduler.running() ||
                   scheduler.running() >= static_cast<size_t>(options.maxBatch) || promised > pool.stats().blocks_free;
      if (admission.isGated && waits && scheduler.unfinished() > 0)
        break;
      scheduler.add(requestOf(requests[next], next));
    }
    sink.now.clear();
    auto progress = scheduler.step();
    if (progress == serving::Scheduler::Progress::Failed) {
      std::fprintf(stderr, "error: %s\n", scheduler.error().c_str());
      std::exit(1);
    }
    const std::vector<serving::StepRecord> &steps = scheduler.statistics().steps;
    if (progress == serving::Scheduler::Progress::Idle && next == requests.size())
      break;
    if (progress == serving::Scheduler::Progress::Idle) {
      served.ms = requests[next].ms;
      continue;
    }
    int64_t taken = pool.stats().allocations - allocations;
    allocations += taken;
    served.ms += static_cast<double>(taken) * options.allocationMs;
    if (steps.size() > served.steps.size()) {
      served.ms += cost.ms(steps.back());
      served.steps.push_back(steps.back());
    }
    for (size_t index : sink.now)
      served.firstTokenMs[index] = served.ms - requests[index].ms;
  }
  served.generated = scheduler.generated();
  served.preemptions = scheduler.statistics().preemptions;
  return served;
}

} // namespace quire::kvbench
