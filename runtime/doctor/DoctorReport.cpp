// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the doctor says, as text and as JSON.
#include "doctor/Doctor.h"

#include <nlohmann/json.hpp>

#include <vector>

namespace quire::runtime {

static constexpr const char *severityNames[] = {"note", "warning", "problem"};

namespace {

struct Metric {
  const char *name;
  Ratio value;
  const char *whyNone; // for the case that there is no number
};

} // namespace

static std::vector<Metric> metricsOf(const Vitals &v) {
  const PagerCounters &c = v.counters;
  bool isTiered = v.policy.has_value(), prefetches = v.prefetch && *v.prefetch != PrefetchKind::None;
  auto tiered = [&](const char *why) { return isTiered ? why : "there is no slow tier"; };
  const char *replayed = v.isTableTimed ? nullptr : "a replay has no block tables";
  const char *noStep = tiered("no step ran"), *noTrace = tiered("no trace was recorded (--trace, quire_pool_trace), or not all of it");
  return {{"hit_rate", hitRate(c), tiered("no page was demanded")},
          {"prefetch_accuracy", prefetchAccuracy(c), tiered(prefetches ? "no prefetch moved a page" : "prefetching is off")},
          {"prefetch_coverage", prefetchCoverage(c), tiered("no page had to be loaded")},
          {"prefetch_timeliness", prefetchTimeliness(c), tiered(prefetches ? "no prefetched page was used" : "prefetching is off")},
          {"pollution", pollution(c), tiered("no demand missed")},
          {"stall_share", stallShare(c), noStep},
          {"gap_to_optimum", v.optimalMisses ? gapToOptimum(c, *v.optimalMisses) : std::nullopt, noTrace},
          {"table_time_share", v.isTableTimed ? tableTimeShare(c) : std::nullopt, replayed ? replayed : noStep},
          {"table_bytes_share", tableBytesShare(v.tableBytes, v.kvBytes), replayed ? replayed : "the pool has no block"},
          {"internal_fragmentation", internalFragmentation(v.liveBytes, v.allocatedBytes), replayed ? replayed : "no sequence stored a token"},
          {"external_fragmentation", externalFragmentation(v.largestFreeBytes, v.freeBytes), replayed ? replayed : "no block is free"},
          {"kept_memory", keptMemory(v.givenBackBytes, v.couldGiveBackBytes), "the fast tier has its full size"},
          {"repeated_order", v.repeatedOrder, noTrace},
          {"attention_uniformity", v.attentionEntropy ? uniformity(*v.attentionEntropy, v.attentionPages) : std::nullopt,
           tiered("no attention over several blocks was observed")},
          {"slow_use", v.slowUse, noStep},
          {"codec_refused", v.codec != Codec::None ? refusedShare(c) : std::nullopt,
           tiered(v.codec == Codec::None ? "the slow tier has no codec" : "no page was stored")},
          {"codec_error", v.codecError, tiered(v.codec == Codec::None ? "the slow tier has no codec" : "no page was sampled")}};
}

std::string doctorText(const Vitals &vitals, const std::vector<Finding> &findings) {
  std::string out;
  for (const Metric &metric : metricsOf(vitals)) {
    std::string padded = metric.name;
    padded.resize(24, ' ');
    out += padded + shown(metric.value) + (metric.value ? "" : std::string(": ") + metric.whyNone) + "\n";
  }
  out += "\n";
  for (const Finding &finding : findings) {
    out += std::string(severityNames[static_cast<size_t>(finding.severity)]) + ": " + finding.rule + ": " + finding.text + "\n";
    if (!finding.change.empty())
      out += "  change: " + finding.change + "\n";
  }
  return out + (findings.empty() ? "no findings\n" : "");
}

std::string doctorJson(const Vitals &vitals, const std::vector<Finding> &findings) {
  nlohmann::ordered_json metrics, none = nlohmann::ordered_json::object(), list = nlohmann::ordered_json::array();
  for (const Metric &metric : metricsOf(vitals)) {
    metrics[metric.name] = metric.value ? nlohmann::ordered_json(*metric.value) : nlohmann::ordered_json();
    if (!metric.value)
      none[metric.name] = metric.whyNone;
  }
  for (const Finding &finding : findings)
    list.push_back({{"rule", finding.rule},
                    {"severity", severityNames[static_cast<size_t>(finding.severity)]},
                    {"value", finding.value},
                    {"limit", finding.limit},
                    {"text", finding.text},
                    {"change", finding.change}});
  nlohmann::ordered_json out;
  out["metrics"] = metrics;
  out["none"] = none;
  out["findings"] = list;
  return out.dump(2) + "\n";
}

} // namespace quire::runtime
