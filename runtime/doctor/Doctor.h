// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads counters and says what is wrong, by which number, and what to change.
#ifndef QUIRE_RUNTIME_DOCTOR_DOCTOR_H
#define QUIRE_RUNTIME_DOCTOR_DOCTOR_H

#include "compress/Codec.h"
#include "doctor/Metrics.h"
#include "residency/Prefetch.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quire::runtime {

/// What a pool, its pager and its configuration are. What is not known stays
/// empty, and rules that need it are silent.
struct Vitals {
  PagerCounters counters;
  bool isTableTimed = true; // false: counters.tableNs was not measured

  // Configuration.
  std::optional<PolicyKind> policy;
  std::optional<PrefetchKind> prefetch;
  uint32_t window = 0;
  uint32_t topk = 0;
  uint64_t blockTokens = 0; // 0: not known
  uint64_t fastBytes = 0;
  uint64_t slowBytes = 0; // as pages lie there; of all slow tiers
  size_t slowTiers = 1, closedTiers = 0; // those that take no new pages
  Codec codec = Codec::None; // of the slow tier
  std::optional<double> reserveRatio; // configured, in [0, 1)
  uint64_t reserveBase = 0;           // blocks that it is a share of; 0: not known

  // Pool.
  uint64_t tableBytes = 0;     // block tables, page descriptors, lists
  uint64_t kvBytes = 0;        // of the pages that these describe
  uint64_t liveBytes = 0;      // of the tokens of a sequence after a step, summed over all steps
  uint64_t allocatedBytes = 0; // of the blocks that held them, summed the same way
  uint64_t freeBytes = 0;
  uint64_t largestFreeBytes = 0; // extent; the same as freeBytes while blocks have one size
  uint64_t givenBackBytes = 0;   // to the system, of blocks that a smaller size withholds
  uint64_t couldGiveBackBytes = 0; // that would be, if blocks in use moved together
  uint64_t earlyOutOfMemory = 0; // allocations that failed while as many bytes were free
  uint64_t reservePeak = 0;      // most blocks of the reserve in use
  uint64_t reserveExhausted = 0; // how often it had nothing left
  uint64_t preemptions = 0;

  // Measured beside the counters.
  std::optional<double> repeatedOrder;    // share of demands in the order of the step before (AccessOrder)
  std::optional<double> attentionEntropy; // nats, mean over steps, over `attentionPages`
  double attentionPages = 0;
  std::optional<uint64_t> optimalMisses; // of the same trace (optimal())
  std::optional<PolicyKind> bestPolicy;  // on the same trace (bestPolicy())
  std::optional<uint64_t> ownMisses;     // of `policy` there, without prefetching
  std::optional<double> slowUse;         // time that the slow tier was transferring / time of the steps
  std::optional<double> codecError;      // relative L2 of the pages that were sampled
};

struct Thresholds {
  double minHit = 0.9;
  double cyclic = 0.8; // repeatedOrder
  double minAccuracy = 0.5;
  double goodAccuracy = 0.8; // from here on a window may grow
  double minTimeliness = 0.8;
  double minCoverage = 0.5;
  double minIssued = 0.05; // of the pages that were loaded, or, where none was missing, that prefetches asked for
  double maxPollution = 0.1;
  double maxStall = 0.1;
  double maxGap = 0.1;
  double maxTableTime = 0.05;
  double maxTableBytes = 0.05;
  double maxInternal = 0.1;
  double maxExternal = 0.3;
  double maxKept = 0.3;
  double maxUniformity = 0.95;
  double maxSlowUse = 0.9;
  double maxRefused = 0.05;
  double maxCodecError = 0.05;
  // With less there is nothing to judge.
  uint64_t minDemands = 100;
  uint64_t minPrefetches = 32;
  uint64_t minSteps = 16;
};

enum class Severity : uint8_t { Note, Warning, Problem };

struct Finding {
  std::string rule;
  Severity severity = Severity::Note;
  double value = 0; // the number that led to it
  double limit = 0; // what it was compared with
  std::string text;
  std::string change; // "prefetch.window_size: 3 -> 5", or a call to make; may be empty
};

/// In the order of the rules in docs/Runtime.md, which depends on nothing else. No
/// two findings change one key, or ask for opposite changes of one thing.
std::vector<Finding> diagnose(const Vitals &vitals, const Thresholds &thresholds = {});

/// Metrics ("none" and why, where there is no number), then findings.
std::string doctorText(const Vitals &vitals, const std::vector<Finding> &findings);
/// {"metrics": {name: number or null}, "none": {name: why}, "findings": [{"rule", "severity", "value", "limit", "text", "change"}]}
std::string doctorJson(const Vitals &vitals, const std::vector<Finding> &findings);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_DOCTOR_DOCTOR_H
