// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every number that is derived from the pager's counters, defined once.
#ifndef QUIRE_RUNTIME_DOCTOR_METRICS_H
#define QUIRE_RUNTIME_DOCTOR_METRICS_H

#include "residency/Counters.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

namespace quire::runtime {

/// Nothing where the denominator is 0: then there is no such number.
using Ratio = std::optional<double>;

inline Ratio ratio(double part, double whole) { return whole > 0 ? Ratio(part / whole) : std::nullopt; }

/// Of the demands, those that found their page resident and whole.
inline Ratio hitRate(const PagerCounters &c) { return ratio(static_cast<double>(c.hits), static_cast<double>(c.demands)); }

/// Of the prefetches that moved bytes, those whose page was demanded before it was
/// evicted.
inline Ratio prefetchAccuracy(const PagerCounters &c) {
  return ratio(static_cast<double>(c.prefetchUseful), static_cast<double>(c.prefetchIssued));
}

/// Of the demands that needed a load, those that a prefetch had foreseen.
inline Ratio prefetchCoverage(const PagerCounters &c) {
  return ratio(static_cast<double>(c.prefetchUseful), static_cast<double>(c.prefetchUseful + c.misses));
}

/// Of the useful prefetches, those that had arrived by the demand.
inline Ratio prefetchTimeliness(const PagerCounters &c) {
  return ratio(static_cast<double>(c.prefetchTimely), static_cast<double>(c.prefetchUseful));
}

/// Of the pages that were to be stored, those that the slow tier's codec does not take.
inline Ratio refusedShare(const PagerCounters &c) {
  return ratio(static_cast<double>(c.refused), static_cast<double>(c.refused + c.writeBacks));
}

/// Of the misses, those whose page a prefetch had evicted.
inline Ratio pollution(const PagerCounters &c) {
  return ratio(static_cast<double>(c.pollutedMisses), static_cast<double>(c.misses));
}

/// Of the steps' time, what was waited for pages.
inline Ratio stallShare(const PagerCounters &c) {
  return ratio(static_cast<double>(c.stallNs), static_cast<double>(c.stepNs));
}

/// Of the steps' time, what translation and bookkeeping took.
inline Ratio tableTimeShare(const PagerCounters &c) {
  return ratio(static_cast<double>(c.tableNs), static_cast<double>(c.stepNs));
}

/// Bytes of tables for each byte of keys and values.
inline Ratio tableBytesShare(uint64_t tableBytes, uint64_t kvBytes) {
  return ratio(static_cast<double>(tableBytes), static_cast<double>(kvBytes));
}

/// Of the bytes in allocated blocks, those that hold no token.
inline Ratio internalFragmentation(uint64_t liveBytes, uint64_t allocatedBytes) {
  uint64_t dead = allocatedBytes - std::min(liveBytes, allocatedBytes);
  return ratio(static_cast<double>(dead), static_cast<double>(allocatedBytes));
}

/// Of the free bytes, those that the largest free extent does not hold. 0 while
/// all blocks have one size and any free one serves.
inline Ratio externalFragmentation(uint64_t largestFreeBytes, uint64_t freeBytes) {
  uint64_t outside = freeBytes - std::min(largestFreeBytes, freeBytes);
  return ratio(static_cast<double>(outside), static_cast<double>(freeBytes));
}

/// Of the memory of withheld blocks that could go back to the system, what blocks in use
/// keep from it.
inline Ratio keptMemory(uint64_t givenBackBytes, uint64_t couldGiveBackBytes) {
  uint64_t kept = couldGiveBackBytes - std::min(givenBackBytes, couldGiveBackBytes);
  return ratio(static_cast<double>(kept), static_cast<double>(couldGiveBackBytes));
}

/// Loads above the fewest possible, for each demand. Without prefetching it is the
/// difference of the hit rates.
inline Ratio gapToOptimum(const PagerCounters &c, uint64_t optimalMisses) {
  double loads = static_cast<double>(c.misses + c.prefetchIssued);
  return ratio(loads - static_cast<double>(optimalMisses), static_cast<double>(c.demands));
}

/// Entropy of the attention mass over `pages` pages, of the largest it can be.
/// `entropy` in nats.
inline Ratio uniformity(double entropy, double pages) {
  return pages > 1 ? ratio(entropy, std::log(pages)) : std::nullopt;
}

/// "0.123", or "none".
inline std::string shown(Ratio value) {
  if (!value)
    return "none";
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", *value);
  return text;
}

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_DOCTOR_METRICS_H
