// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a run did, for --stats.
#ifndef QUIRE_RUNTIME_SERVING_STATISTICS_H
#define QUIRE_RUNTIME_SERVING_STATISTICS_H

#include "quire/runtime.h"
#include "serving/Request.h"

#include <string>
#include <utility>
#include <vector>

namespace quire::serving {

struct StepRecord {
  int64_t tokens = 0; // rows
  int64_t sequences = 0;
  int64_t kvTokens = 0; // stored after the step, over its sequences
  double ms = 0;        // of the model alone
};

/// A change of a sequence's block table, during step `step` (counts from 0): blocks taken at its end, or all given
/// back.
struct BlockEvent {
  int64_t step = 0;
  std::string id;
  std::vector<int32_t> taken; // empty: all given back
};

/// Of shared prefixes. A request counts once, when its first tokens are stored, however often it gives way.
struct PrefixStatistics {
  bool enabled = false;
  int64_t tenants = 0;
  int64_t queries = 0;
  int64_t queryTokens = 0; // prompt tokens of these requests
  int64_t hitTokens = 0;   // that were cached
  int64_t blocksPublished = 0;
  int64_t blocksMerged = 0;
  int64_t blocksEvicted = 0;
  int64_t blocksExpired = 0;
};

struct Statistics {
  int64_t blockTokens = 0;
  int64_t blockBytes = 0;
  int64_t blocksTotal = 0;
  int64_t blocksPeak = 0;
  int64_t reserveBlocks = 0; // that new requests leave free while others run
  int64_t reserveHits = 0;   // taken out of these
  int64_t maxSequencesInStep = 0;
  int64_t maxPrefillTokensInStep = 0; // re-appended tokens included
  int64_t preemptions = 0;
  bool prunes = false; // old turns of dialogues
  int64_t prunedTokens = 0, prunedBlocks = 0;
  int64_t kvCopyBytes = 0;
  int64_t prefetchIssued = 0;
  int64_t prefetchRedundant = 0;
  int64_t threads = 0;
  int64_t recomputedTokens = 0;  // whose K and V were lost
  quire_paging_stats paging = {}; // page_bytes 0: no slow tier
  std::vector<quire_tier_stats> slowTiers; // the upper ones first; their names are the pool's
  quire_latency_stats acquireHit = {}, acquireMiss = {}, makeRoom = {}; // of the slow tier's pages
  double largestGapMs = 0;          // between two tokens of a request, over all requests
  std::vector<double> firstTokenMs; // of each request, in the order in which they came
  /// Request id and its block table at the moment it finished.
  std::vector<std::pair<std::string, std::vector<int32_t>>> finalBlockTables;
  PrefixStatistics prefix;
  std::vector<StepRecord> steps;
  std::vector<BlockEvent> blockEvents;
};

/// One line for people: tokens a second, time to the first token, the largest
/// gap. Empty when no token was made.
std::string statisticsLine(const Statistics &statistics, int64_t requests, int64_t tokens, double seconds);

/// JSON text with a newline at its end.
std::string statisticsJson(const Statistics &statistics);

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_STATISTICS_H
