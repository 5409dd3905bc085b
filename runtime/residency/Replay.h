// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs a recorded trace against another policy, size of the fast tier, or way to prefetch, on a simulated clock.
#ifndef QUIRE_RUNTIME_RESIDENCY_REPLAY_H
#define QUIRE_RUNTIME_RESIDENCY_REPLAY_H

#include "residency/Counters.h"
#include "residency/Optimal.h"
#include "residency/Policy.h"
#include "residency/Prefetch.h"
#include "residency/Trace.h"

#include <optional>

namespace quire::runtime {

/// Pages that somebody who knows more than the trace names before one of its events, the best first; those that were named before are
/// forgotten.
struct NamedPages {
  size_t event = 0; // of the trace's
  std::vector<uint32_t> pages;
};

struct ReplayOptions {
  PolicyKind policy = PolicyKind::Lru;
  uint32_t fastPages = 0; // at least 2
  PrefetchKind prefetch = PrefetchKind::None;
  uint32_t window = 3;             // pages asked for ahead, and transfers under way, at most
  uint32_t topk = 2;               // seed_hotspot: pages for each group of layers
  int64_t latencyNs = 100'000;     // of a load
  double bandwidth = 2e9;          // bytes a second of the slow tier
  int64_t computeNs = -1;          // for each demand; below 0: what the trace says
  const std::vector<NamedPages> *named = nullptr; // by ascending events; digest needs them, nothing else reads them
};

struct ReplayResult {
  PagerCounters counters; // tableNs stays 0: nothing was measured
  OptimalCounts optimum;
  int64_t slowBusyNs = 0;     // the slow tier was transferring
  double repeatedOrder = -1;  // share of demands that came in the order of the step before; below 0: not known

  /// Loads by demand or prefetch.
  uint64_t loads() const { return counters.misses + counters.prefetchIssued; }
};

/// What is simulated: one step after the other uses its pages in the trace's order
/// (usesOf()), on one thread. A use of a page with content is a demand, whatever is
/// resident: every policy has the same number. A page that is not there is waited
/// for. One transfer at a time
/// uses the bandwidth, latencies overlap; demands go before prefetches that have
/// not begun. The page in use cannot be evicted by a prefetch; other pins are not
/// considered. Stores wait for nothing and nothing waits for them. Sequential
/// prefetching predicts the order of a step by that of the step before; nothing
/// looks into the future. A prefetch evicts only what is used later (UsedLater).
/// Digest asks for the named pages one after the other, as the window has room for them. Hybrid is all strategies that a trace can feed:
/// digests are not among them, as traces hold neither keys nor queries.
/// Fails with QUIRE_INVALID_ARGUMENT if the options are out of range, or need what
/// the trace lacks.
Status replay(const Trace &trace, const ReplayOptions &options, ReplayResult &out);

/// What the recorded run itself did, as the pager counted it: demands by their outcomes, prefetches, and what steps waited. None: the events do
/// not say how demands ended.
std::optional<PagerCounters> recordedCounters(const Trace &trace);

/// The policy with the fewest misses on the trace, without prefetching; `present` if no other has fewer. None if the
/// trace cannot be replayed. `presentMisses`, if given, are those of `present`.
std::optional<PolicyKind> bestPolicy(const Trace &trace, uint32_t fastPages, PolicyKind present, uint64_t *presentMisses = nullptr);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_REPLAY_H
