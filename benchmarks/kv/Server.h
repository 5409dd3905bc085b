// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The runtime's scheduler and pool, serving requests on a clock that counts what steps would cost.
#ifndef QUIRE_BENCHMARKS_KV_SERVER_H
#define QUIRE_BENCHMARKS_KV_SERVER_H

#include "Workloads.h"
#include "serving/Statistics.h"

#include <string>
#include <vector>

namespace quire::kvbench {

/// Milliseconds of a step: fixed + perSequence * sequences + perKvToken * stored tokens of these + perPromptToken *
/// rows beyond one a sequence.
struct StepCost {
  std::string name;
  double fixed = 1;
  double perSequence = 0;
  double perKvToken = 0;
  double perPromptToken = 0;

  double ms(const serving::StepRecord &step) const;
};
/// From the file that benchmarks/kv/run.py writes; throws std::runtime_error, with the name of the file, if that is not
/// one.
std::vector<StepCost> readCosts(const std::string &path);

struct Arrival {
  double ms = 0;
  int64_t prompt = 1;
  int64_t generated = 1;
  int64_t shared = 0; // first tokens of the prompt, which all requests have in common
};
/// Requests whose stored tokens are drawn, a share `prompt` of which is their prompt; all at time 0.
std::vector<Arrival> drawRequests(size_t count, Lengths lengths, int64_t most, double prompt, uint64_t seed);
/// Spreads them over time: a Poisson process with this many a millisecond.
void arriveAtRandom(std::vector<Arrival> &requests, double perMs, uint64_t seed);

struct ServerOptions {
  int64_t blockTokens = 16; // the greatest length: a contiguous cache with one region a sequence
  int64_t blocks = 1;
  int64_t maxBatch = 8;
  int64_t prefillChunk = 512;
  int64_t mixedChunk = 512;
  bool prefixCache = false;
  double allocationMs = 0; // that a step waits for each block which it takes: memory that is touched for the first time
};

/// What stands before the scheduler: a request is handed to it only where its prompt leaves a share of the blocks free,
/// which are then for sequences that grow, and where nobody waits who gave way.
struct Admission {
  bool isGated = false;
  double reserve = 0;
};

struct Served {
  double ms = 0;                    // until the last token
  std::vector<double> firstTokenMs; // of each request, from its arrival
  int64_t generated = 0;
  int64_t preemptions = 0;
  std::vector<serving::StepRecord> steps;

  double meanBatch() const;
  /// Rows beyond one a sequence: prompts, and what was stored again after giving way.
  int64_t promptTokens() const;
  /// Of the same steps with another cost.
  double totalMs(const StepCost &cost) const;
};
/// All requests are served, or the program ends.
Served serve(const std::vector<Arrival> &requests, const ServerOptions &options, const StepCost &cost,
             const Admission &admission = {});

} // namespace quire::kvbench

#endif // QUIRE_BENCHMARKS_KV_SERVER_H
