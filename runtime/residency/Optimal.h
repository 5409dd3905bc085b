// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The fewest loads that any replacement could have done, by knowing the future (L. A. Belady, IBM Systems Journal, 1966).
#ifndef QUIRE_RUNTIME_RESIDENCY_OPTIMAL_H
#define QUIRE_RUNTIME_RESIDENCY_OPTIMAL_H

#include "residency/Trace.h"

namespace quire::runtime {

struct OptimalCounts {
  uint64_t demands = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t bytesIn = 0;
  uint64_t bytesOut = 0; // evicted pages whose content was not stored yet; not minimised
};

/// Evicts the page whose next use is farthest. Pages with content that the trace
/// does not write are in the slow tier at its start; pins are not considered.
/// Demands are those of replay(), whatever is resident. No policy has fewer misses,
/// and no prefetching fewer loads. O(events * log events) time.
OptimalCounts optimal(const Trace &trace, uint32_t fastPages);

/// Most pages with content at any time: with so many fast pages nothing is evicted.
uint32_t mostLivePages(const Trace &trace);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_OPTIMAL_H
