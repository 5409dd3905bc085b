// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the pager counts. All of it only grows.
#ifndef QUIRE_RUNTIME_RESIDENCY_COUNTERS_H
#define QUIRE_RUNTIME_RESIDENCY_COUNTERS_H

#include <cstdint>

namespace quire::runtime {

/// Definitions. A demand is the use of a page with stored content by a step; the
/// first write of a page is none. Of demands, a hit found the page resident, a
/// late one found it on its way, a miss neither: hits + late + misses = demands.
/// A prefetch is issued when it moves bytes; it is redundant when the page was
/// resident or on its way, useful when its page is demanded before it is evicted,
/// timely when it had arrived by then. A miss is polluted when a prefetch had
/// evicted the page.
struct PagerCounters {
  uint64_t demands = 0;
  uint64_t hits = 0;
  uint64_t late = 0;
  uint64_t misses = 0;
  uint64_t pollutedMisses = 0;

  uint64_t prefetchIssued = 0;
  uint64_t prefetchRedundant = 0;
  uint64_t prefetchUseful = 0;
  uint64_t prefetchTimely = 0;
  uint64_t prefetchDropped = 0;   // within the window, but there was no room; in a replay also beyond the window
  uint64_t prefetchCancelled = 0;

  uint64_t evictedForDemand = 0;
  uint64_t evictedForPrefetch = 0;
  uint64_t evictedForWrite = 0;   // room for new pages
  uint64_t pinsGivenUp = 0;       // blocks that were pinned, beyond the budget or for a step
  uint64_t seals = 0;             // pages that became immutable, or were changed after their write-back
  uint64_t writeBacks = 0;        // at most `seals`

  uint64_t bytesInDemand = 0;
  uint64_t bytesInPrefetch = 0;
  uint64_t bytesOut = 0;
  uint64_t bytesCompacted = 0;

  uint64_t idleBlocks = 0;        // sent to the slow tier, since no step used them
  uint64_t prunedTokens = 0;      // that sequences have lost

  uint64_t retries = 0;           // transfers that failed and were repeated
  uint64_t pagesLost = 0;         // content that could not be read back
  uint64_t refused = 0;           // stores of pages that a codec does not take
  uint64_t noSpace = 0;           // stores that the slow tier had no room for
  uint64_t erasuresFailed = 0;    // slots that may still hold what was to be erased

  uint64_t stallNs = 0;           // waited for pages
  uint64_t tableNs = 0;           // translation and bookkeeping, the waiting excluded
  uint64_t stepNs = 0;            // all of the steps, the above included
  uint64_t steps = 0;
};

/// Of one of the slow tiers: its part of what PagerCounters has under the same names.
struct TierCounters {
  uint64_t pagesIn = 0;  // loads that succeeded
  uint64_t pagesOut = 0; // write-backs
  uint64_t retries = 0;
  uint64_t pagesLost = 0;
  uint64_t noSpace = 0;
  uint64_t erasuresFailed = 0;
  uint64_t givenUp = 0; // slots that are never used again
};

/// Sums over layers and sequences of more than one block whose attention was observed.
struct AttentionSpread {
  double entropy = 0;   // nats, of the shares of blocks
  double logBlocks = 0; // the largest it could have been
  uint64_t samples = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_COUNTERS_H
