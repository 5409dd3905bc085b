// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules.
#include "doctor/Doctor.h"

#include "core/Quantities.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace quire::runtime {

static std::string format(const char *format, ...) __attribute__((format(printf, 1, 2)));
static std::string format(const char *format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

/// To three digits, and on its side of the limit that it is compared with.
static std::string below(double value, double limit) {
  bool touches = std::round(value * 1000) / 1000 >= limit;
  return format("%.3f", touches ? std::floor(value * 1000) / 1000 : value);
}
static std::string above(double value, double limit) {
  bool touches = std::round(value * 1000) / 1000 <= limit;
  return format("%.3f", touches ? std::ceil(value * 1000) / 1000 : value);
}

/// Two digits, or as many as it has.
static std::string limitOf(double limit) {
  bool isShort = std::abs(limit * 100 - std::round(limit * 100)) < 1e-9;
  return isShort ? format("%.2f", limit) : format("%.6g", limit);
}

namespace {

class Examination {
public:
  Examination(const Vitals &vitals, const Thresholds &thresholds) : v_(vitals), t_(thresholds) {}

  std::vector<Finding> run() {
    examineTransfers();
    examineCodec();
    examineHits();
    examinePrefetch();
    examineWaiting();
    examineTables();
    examineFragmentation();
    examineReserve();
    examineAttention();
    return std::move(findings_);
  }

private:
  void examineTransfers();
  void examineCodec();
  void examineHits();
  void examinePrefetch();
  void examineIdlePrefetch();
  void examineWaiting();
  void examineTables();
  void examineFragmentation();
  void examineReserve();
  void examineAttention();

  bool isCyclic() const { return v_.repeatedOrder && *v_.repeatedOrder >= t_.cyclic; }
  bool usesHotspots() const {
    return v_.prefetch && (*v_.prefetch == PrefetchKind::SeedHotspot || *v_.prefetch == PrefetchKind::Hybrid);
  }
  bool isSaturated() const { return v_.slowUse && *v_.slowUse > t_.maxSlowUse; }
  bool isPolluted() const {
    Ratio polluted = pollution(v_.counters);
    return polluted && v_.counters.misses >= t_.minPrefetches && *polluted > t_.maxPollution;
  }
  uint64_t asked() const { return v_.counters.prefetchIssued + v_.counters.prefetchRedundant + v_.counters.prefetchDropped; }
  /// Of the pages that were loaded; where none was missing, of those that prefetches asked for.
  Ratio movedByPrefetch() const {
    const PagerCounters &c = v_.counters;
    return ratio(static_cast<double>(c.prefetchIssued), static_cast<double>(c.misses > 0 ? c.prefetchIssued + c.misses : asked()));
  }
  bool prefetchesAreIdle() const {
    Ratio coverage = prefetchCoverage(v_.counters), moved = movedByPrefetch();
    bool isOn = v_.prefetch && *v_.prefetch != PrefetchKind::None;
    return isOn && asked() >= t_.minPrefetches && *moved < t_.minIssued && !(coverage && *coverage >= t_.minCoverage);
  }
  /// Why the window is not to grow; null: it may.
  const char *againstGrowth() const {
    return isSaturated()         ? "a larger window cannot help, as the slow tier is busy"
           : isPolluted()        ? "a larger window would push out more pages that are still used"
           : prefetchesAreIdle() ? "a larger window cannot help, as prefetches move next to nothing"
                                 : nullptr;
  }
  /// What is left of the gap when pages are used one by one, as in a replay.
  std::string ownGap() const {
    Ratio gap = v_.ownMisses ? ratio(static_cast<double>(*v_.ownMisses) - static_cast<double>(*v_.optimalMisses), static_cast<double>(v_.counters.demands)) : std::nullopt;
    return gap ? format(" (%.3f for %s itself, if only the page in use had to stay: the rest is that all pages of a layer stay while it computes, pins, and prefetching)", *gap,
                        policyName(*v_.policy))
               : std::string();
  }
  bool tablesAreLarge() const {
    Ratio time = tableTime(), bytes = tableBytesShare(v_.tableBytes, v_.kvBytes);
    return (time && *time > t_.maxTableTime) || (bytes && *bytes > t_.maxTableBytes);
  }
  /// Nothing if it is not known, or of too few steps.
  Ratio tableTime() const {
    return v_.isTableTimed && v_.counters.steps >= t_.minSteps ? tableTimeShare(v_.counters) : std::nullopt;
  }

  void add(const char *rule, Severity severity, double value, double limit, std::string text, const std::string &change) {
    std::string key = change.substr(0, change.find(':'));
    bool isTaken = std::any_of(findings_.begin(), findings_.end(), [&](const Finding &earlier) {
      return !key.empty() && earlier.change.substr(0, earlier.change.find(':')) == key;
    });
    findings_.push_back({rule, severity, value, limit, std::move(text), isTaken ? "" : change});
  }

  std::string toPolicy(PolicyKind to) const {
    return v_.policy ? format("replace.policy: %s -> %s", policyName(*v_.policy), policyName(to)) : std::string();
  }
  /// As the configuration has it, where predictors are one strategy.
  static const char *strategyName(PrefetchKind kind) {
    bool names = kind == PrefetchKind::SeedHotspot || kind == PrefetchKind::Digest || kind == PrefetchKind::LayerAhead;
    return names ? "hotspot" : prefetchName(kind);
  }
  std::string toStrategy(PrefetchKind to) const {
    return v_.prefetch ? format("prefetch.strategy: %s -> %s", strategyName(*v_.prefetch), strategyName(to)) : std::string();
  }
  /// Where it is off, by strategy or by window.
  std::string toPrefetching() const {
    constexpr unsigned usualWindow = 3;
    return v_.window == 0 ? format("prefetch.window_size: 0 -> %u", usualWindow) : toStrategy(PrefetchKind::Sequential);
  }
  /// 3 -> 5.
  std::string largerWindow() const {
    return v_.window ? format("prefetch.window_size: %u -> %u", v_.window, v_.window + std::max(2u, v_.window / 2)) : std::string();
  }
  std::string smallerWindow() const {
    return v_.window > 1 ? format("prefetch.window_size: %u -> %u", v_.window, v_.window / 2) : toStrategy(PrefetchKind::None);
  }
  std::string withoutHotspots() const {
    return toStrategy(*v_.prefetch == PrefetchKind::Hybrid ? PrefetchKind::Sequential : PrefetchKind::None);
  }
  /// As the configuration has it; null: it has no such form.
  static const char *quantName(Codec codec) {
    switch (codec) {
    case Codec::None:
      return "none";
    case Codec::Int8G128:
      return "int8_g128";
    case Codec::Int4G128:
      return "int4_g128";
    case Codec::Fp8E4M3:
      return "fp8";
    default:
      return nullptr;
    }
  }
  std::string toQuant(Codec to) const {
    if (isSparse(v_.codec) && to == Codec::None)
      return "compress.sparse.ratio: 8 -> 1";
    const char *now = quantName(v_.codec);
    return now && v_.codec != to ? format("compress.quant: %s -> %s", now, quantName(to)) : std::string();
  }
  std::string moreMemory() const {
    return v_.fastBytes ? "memory.fast_bytes: " + printSize(v_.fastBytes) + " -> " + printSize(2 * v_.fastBytes) : std::string();
  }
  std::string largerBlocks() const {
    return v_.blockTokens ? format("quirec --block-tokens: %llu -> %llu", static_cast<unsigned long long>(v_.blockTokens),
                                   static_cast<unsigned long long>(2 * v_.blockTokens))
                          : std::string();
  }
  std::string smallerBlocks() const {
    return v_.blockTokens > 1 ? format("quirec --block-tokens: %llu -> %llu", static_cast<unsigned long long>(v_.blockTokens),
                                       static_cast<unsigned long long>(v_.blockTokens / 2))
                              : std::string();
  }

  const Vitals &v_;
  const Thresholds &t_;
  std::vector<Finding> findings_;
};

} // namespace

void Examination::examineTransfers() {
  const PagerCounters &c = v_.counters;
  if (c.pagesLost > 0)
    add("pages-lost", Severity::Problem, static_cast<double>(c.pagesLost), 0,
        format("the content of %llu pages could not be read back: the slow tier's device fails or its files were changed",
               static_cast<unsigned long long>(c.pagesLost)),
        "");
  if (c.erasuresFailed > 0)
    add("not-erased", Severity::Problem, static_cast<double>(c.erasuresFailed), 0,
        format("%llu slots of the slow tier could not be erased and may still hold keys and values of sequences that ended: erase the device",
               static_cast<unsigned long long>(c.erasuresFailed)),
        "");
  if (c.noSpace > 0 && v_.slowTiers > 1)
    add("slow-tier-full", Severity::Problem, static_cast<double>(c.noSpace), 0,
        format("a slow tier had no room for %llu pages; %zu of %zu tiers take nothing new", static_cast<unsigned long long>(c.noSpace), v_.closedTiers, v_.slowTiers),
        "memory.slower: one more tier below, on another device");
  else if (c.noSpace > 0)
    add("slow-tier-full", Severity::Problem, static_cast<double>(c.noSpace), 0,
        format("the slow tier had no room for %llu pages", static_cast<unsigned long long>(c.noSpace)),
        v_.slowBytes ? "memory.slow.bytes: " + printSize(v_.slowBytes) + " -> " + printSize(2 * v_.slowBytes) : "");
}

void Examination::examineCodec() {
  if (v_.codec == Codec::None)
    return;
  const PagerCounters &c = v_.counters;
  Ratio refused = refusedShare(c);
  if (refused && c.refused + c.writeBacks >= t_.minPrefetches && *refused > t_.maxRefused)
    add("codec-refuses", Severity::Warning, *refused, t_.maxRefused,
        format("%s of the pages that were to leave are none that codec %s takes, above %s: they stay in the fast tier and fill it", above(*refused, t_.maxRefused).c_str(),
               codecName(v_.codec), limitOf(t_.maxRefused).c_str()),
        toQuant(v_.codec == Codec::Fp8E4M3 ? Codec::Int8G128 : Codec::None));
  bool isCoarse = v_.codec == Codec::Int4G128;
  if (v_.codecError && *v_.codecError > t_.maxCodecError)
    add("codec-error", Severity::Warning, *v_.codecError, t_.maxCodecError,
        format("pages come back off by %s of their norm, above %s: use %s", above(*v_.codecError, t_.maxCodecError).c_str(), limitOf(t_.maxCodecError).c_str(),
               isCoarse ? "more bits" : "no codec"),
        toQuant(isCoarse ? Codec::Int8G128 : Codec::None));
}

void Examination::examineHits() {
  const PagerCounters &c = v_.counters;
  Ratio hits = hitRate(c);
  if (c.demands < t_.minDemands || !hits)
    return;
  bool isLow = *hits < t_.minHit, scansBadly = isCyclic() && v_.policy && *v_.policy != PolicyKind::Scan;
  bool isUntraced = !v_.optimalMisses && !v_.repeatedOrder && v_.policy && *v_.policy != PolicyKind::Scan;
  if (isLow && scansBadly)
    add("cyclic-scan", Severity::Problem, *hits, t_.minHit,
        format("hit rate %s is below %s, and %.3f of the demands came in the order of the step before: a cyclic scan. "
               "use the scan policy, or sparse attention",
               below(*hits, t_.minHit).c_str(), limitOf(t_.minHit).c_str(), *v_.repeatedOrder),
        toPolicy(PolicyKind::Scan));
  else if (isLow)
    add("low-hit-rate", Severity::Warning, *hits, t_.minHit,
        format("hit rate %s is below %s: the fast tier holds too little of what steps read%s", below(*hits, t_.minHit).c_str(), limitOf(t_.minHit).c_str(),
               isUntraced ? "; whether another policy does better shows only in a trace (--trace)" : ""),
        moreMemory());
  Ratio gap = v_.optimalMisses ? gapToOptimum(c, *v_.optimalMisses) : std::nullopt;
  if (!gap || *gap <= t_.maxGap)
    return;
  bool isBest = v_.bestPolicy && v_.bestPolicy == v_.policy, isBetterKnown = v_.policy && v_.bestPolicy && !isBest;
  std::string better = isBetterKnown ? format("the policy %s has the fewest misses on the trace", policyName(*v_.bestPolicy))
                       : isBest      ? "no other policy has fewer misses on the trace" + ownGap()
                                     : "try other policies on a trace with quire-replay";
  add("gap-to-optimum", Severity::Warning, *gap, t_.maxGap,
      format("%.3f loads for each demand more than the best replacement would have done: %s", *gap, better.c_str()),
      isBetterKnown && !(isLow && scansBadly) ? toPolicy(*v_.bestPolicy) : "");
}

void Examination::examinePrefetch() {
  const PagerCounters &c = v_.counters;
  Ratio accuracy = prefetchAccuracy(c), timeliness = prefetchTimeliness(c), coverage = prefetchCoverage(c);
  bool isJudged = accuracy && c.prefetchIssued >= t_.minPrefetches;
  if (isJudged && *accuracy < t_.minAccuracy)
    add("prefetch-accuracy", Severity::Warning, *accuracy, t_.minAccuracy,
        format("%s of the prefetched pages were used, below %s: %s", below(*accuracy, t_.minAccuracy).c_str(), limitOf(t_.minAccuracy).c_str(),
               usesHotspots() ? "switch hot-spot prefetching off, or shrink the window" : "shrink the window"),
        usesHotspots() ? withoutHotspots() : smallerWindow());
  bool isGood = isJudged && *accuracy >= t_.goodAccuracy;
  const char *against = againstGrowth();
  if (isGood && timeliness && *timeliness < t_.minTimeliness)
    add("prefetch-timeliness", Severity::Warning, *timeliness, t_.minTimeliness,
        format("prefetches are right (accuracy %.3f) but late: %s arrived in time, below %s. %s", *accuracy, below(*timeliness, t_.minTimeliness).c_str(),
               limitOf(t_.minTimeliness).c_str(), against ? against : "grow the window, or prefetch.max_inflight"),
        against ? "" : largerWindow());
  if (isGood && coverage && c.misses >= t_.minPrefetches && *coverage < t_.minCoverage)
    add("prefetch-coverage", Severity::Note, *coverage, t_.minCoverage,
        format("prefetches are right (accuracy %.3f) but foresaw only %s of the loads, below %s: %s", *accuracy, below(*coverage, t_.minCoverage).c_str(),
               limitOf(t_.minCoverage).c_str(), against ? against : "grow the window"),
        against ? "" : largerWindow());
  examineIdlePrefetch();
  if (isPolluted())
    add("pollution", Severity::Warning, *pollution(c), t_.maxPollution,
        format("%s of the misses are pages that a prefetch had evicted, above %s: shrink the window", above(*pollution(c), t_.maxPollution).c_str(),
               limitOf(t_.maxPollution).c_str()),
        smallerWindow());
}

/// Prefetches that ask and move next to nothing, while what is missing is loaded by demand.
void Examination::examineIdlePrefetch() {
  const PagerCounters &c = v_.counters;
  if (!prefetchesAreIdle())
    return;
  double moved = *movedByPrefetch();
  std::string found = format("prefetches asked for %llu pages and moved %llu: %llu were there or on their way, for %llu there was no room",
                             static_cast<unsigned long long>(asked()), static_cast<unsigned long long>(c.prefetchIssued),
                             static_cast<unsigned long long>(c.prefetchRedundant), static_cast<unsigned long long>(c.prefetchDropped));
  bool isAhead = *v_.prefetch == PrefetchKind::Sequential || *v_.prefetch == PrefetchKind::Hybrid;
  if (c.misses == 0)
    add("prefetch-idle", Severity::Note, moved, t_.minIssued, found + "; nothing is missing: switch prefetching off", toStrategy(PrefetchKind::None));
  else if (c.prefetchDropped > c.prefetchIssued)
    add("prefetch-idle", Severity::Warning, moved, t_.minIssued, found + ": give the fast tier more room", moreMemory());
  else
    add("prefetch-idle", Severity::Warning, moved, t_.minIssued,
        found + format("; the %llu demands that missed were of other pages: %s", static_cast<unsigned long long>(c.misses),
                       isAhead ? "switch prefetching off" : "read ahead in order"),
        toStrategy(isAhead ? PrefetchKind::None : PrefetchKind::Sequential));
}

void Examination::examineWaiting() {
  const PagerCounters &c = v_.counters;
  Ratio stall = stallShare(c);
  bool prefetches = v_.prefetch && *v_.prefetch != PrefetchKind::None, wouldHelp = v_.prefetch && !prefetches && !isSaturated();
  if (stall && c.steps >= t_.minSteps && *stall > t_.maxStall)
    add("stall", Severity::Warning, *stall, t_.maxStall,
        format("%s of the steps' time was spent waiting for pages, above %s: %s", above(*stall, t_.maxStall).c_str(), limitOf(t_.maxStall).c_str(),
               prefetches || isSaturated() ? "give the fast tier more room" : "prefetch, or give the fast tier more room"),
        wouldHelp ? toPrefetching() : moreMemory());
  if (isSaturated())
    add("slow-bandwidth", Severity::Warning, *v_.slowUse, t_.maxSlowUse,
        format("the slow tier transferred %s of the time, above %s: %s, or attend to fewer pages", above(*v_.slowUse, t_.maxSlowUse).c_str(), limitOf(t_.maxSlowUse).c_str(),
               v_.codec == Codec::None ? "compress them (lossy: other tokens may come)" : "give the fast tier more room"),
        v_.topk > 1 && v_.prefetch && *v_.prefetch == PrefetchKind::Digest ? format("prefetch.topk: %u -> %u", v_.topk, v_.topk / 2)
                                                                         : v_.codec == Codec::None ? toQuant(Codec::Int8G128) : moreMemory());
}

void Examination::examineTables() {
  Ratio time = tableTime(), bytes = tableBytesShare(v_.tableBytes, v_.kvBytes);
  if (time && *time > t_.maxTableTime)
    add("table-time", Severity::Warning, *time, t_.maxTableTime,
        format("page tables took %s of the steps' time, above %s: use larger blocks", above(*time, t_.maxTableTime).c_str(), limitOf(t_.maxTableTime).c_str()), largerBlocks());
  if (bytes && *bytes > t_.maxTableBytes)
    add("table-bytes", Severity::Warning, *bytes, t_.maxTableBytes,
        format("page tables take %s bytes for each byte of keys and values, above %s: use larger blocks", above(*bytes, t_.maxTableBytes).c_str(),
               limitOf(t_.maxTableBytes).c_str()),
        largerBlocks());
}

void Examination::examineFragmentation() {
  Ratio internal = internalFragmentation(v_.liveBytes, v_.allocatedBytes);
  if (internal && *internal > t_.maxInternal)
    add("internal-fragmentation", Severity::Warning, *internal, t_.maxInternal,
        format("%s of the allocated bytes hold no token, above %s: %s", above(*internal, t_.maxInternal).c_str(), limitOf(t_.maxInternal).c_str(),
               tablesAreLarge() ? "smaller ones would help, but make page tables larger, which already are too large" : "use smaller blocks"),
        tablesAreLarge() ? "" : smallerBlocks());
  Ratio external = externalFragmentation(v_.largestFreeBytes, v_.freeBytes);
  if (v_.earlyOutOfMemory > 0)
    add("early-out-of-memory", Severity::Problem, static_cast<double>(v_.earlyOutOfMemory), 0,
        format("%llu allocations failed while as many bytes were free: compact", static_cast<unsigned long long>(v_.earlyOutOfMemory)),
        "quire_pool_compact()");
  else if (external && *external > t_.maxExternal)
    add("external-fragmentation", Severity::Warning, *external, t_.maxExternal,
        format("%s of the free bytes are outside the largest free extent, above %s: compact", above(*external, t_.maxExternal).c_str(), limitOf(t_.maxExternal).c_str()),
        "quire_pool_compact()");
  Ratio kept = keptMemory(v_.givenBackBytes, v_.couldGiveBackBytes);
  if (kept && *kept > t_.maxKept)
    add("kept-memory", Severity::Warning, *kept, t_.maxKept,
        format("blocks in use keep %s of the memory that a smaller size gave up from going back to the system, above %s: compact", above(*kept, t_.maxKept).c_str(),
               limitOf(t_.maxKept).c_str()),
        "quire_pool_compact()");
}

void Examination::examineReserve() {
  if (!v_.reserveRatio)
    return;
  double now = *v_.reserveRatio, oneBlock = v_.reserveBase ? std::ceil(1000 / static_cast<double>(v_.reserveBase)) / 1000 : 0;
  auto change = [&](double to) { return format("memory.reserve_ratio: %.3g -> %.3g", now, to); };
  if (v_.reserveExhausted > 0 && v_.preemptions > 0)
    add("reserve-exhausted", Severity::Warning, static_cast<double>(v_.reserveExhausted), 0,
        format("the reserve had nothing left %llu times, and %llu sequences gave way: raise it",
               static_cast<unsigned long long>(v_.reserveExhausted), static_cast<unsigned long long>(v_.preemptions)),
        change(std::min(std::max({2 * now, now > 0 ? 0.0 : 0.02, oneBlock}), 0.5)));
  else if (now > 0 && v_.reservePeak == 0 && v_.counters.steps >= t_.minSteps)
    add("reserve-unused", Severity::Note, 0, 0,
        format("nothing of the reserve (%.3g of the pool) was used in %llu steps: lower it", now,
               static_cast<unsigned long long>(v_.counters.steps)),
        change(now > 0.01 ? now / 2 : 0));
}

void Examination::examineAttention() {
  Ratio even = v_.attentionEntropy ? uniformity(*v_.attentionEntropy, v_.attentionPages) : std::nullopt;
  bool isImportance = v_.policy && *v_.policy == PolicyKind::Importance;
  if (even && *even > t_.maxUniformity && (usesHotspots() || isImportance))
    add("uniform-attention", Severity::Warning, *even, t_.maxUniformity,
        format("attention is spread evenly (entropy %s of the largest, above %s): there are no hot spots to find", above(*even, t_.maxUniformity).c_str(),
               limitOf(t_.maxUniformity).c_str()),
        usesHotspots() ? withoutHotspots() : toPolicy(isCyclic() ? PolicyKind::Scan : PolicyKind::Arc));
}

std::vector<Finding> diagnose(const Vitals &vitals, const Thresholds &thresholds) { return Examination(vitals, thresholds).run(); }

} // namespace quire::runtime
