// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the doctor says, as text and as JSON.
#include "doctor/Doctor.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace quire::runtime {

static constexpr const char *severityNames[] = {"note", "warning", "problem"};

static std::vector<std::pair<const char *, Ratio>> metricsOf(const Vitals &v) {
  const PagerCounters &c = v.counters;
  return {{"hit_rate", hitRate(c)},
          {"prefetch_accuracy", prefetchAccuracy(c)},
          {"prefetch_coverage", prefetchCoverage(c)},
          {"prefetch_timeliness", prefetchTimeliness(c)},
          {"pollution", pollution(c)},
          {"stall_share", stallShare(c)},
          {"gap_to_optimum", v.optimalMisses ? gapToOptimum(c, *v.optimalMisses) : std::nullopt},
          {"table_time_share", v.isTableTimed ? tableTimeShare(c) : std::nullopt},
          {"table_bytes_share", tableBytesShare(v.tableBytes, v.kvBytes)},
          {"internal_fragmentation", internalFragmentation(v.liveBytes, v.allocatedBytes)},
          {"external_fragmentation", externalFragmentation(v.largestFreeBytes, v.freeBytes)},
          {"kept_memory", keptMemory(v.givenBackBytes, v.couldGiveBackBytes)},
          {"repeated_order", v.repeatedOrder},
          {"attention_uniformity", v.attentionEntropy ? uniformity(*v.attentionEntropy, v.attentionPages) : std::nullopt},
          {"slow_use", v.slowUse},
          {"codec_refused", v.codec != Codec::None ? refusedShare(c) : std::nullopt},
          {"codec_error", v.codecError}};
}

std::string doctorText(const Vitals &vitals, const std::vector<Finding> &findings) {
  std::string out;
  for (const auto &[name, value] : metricsOf(vitals)) {
    std::string padded = name;
    padded.resize(24, ' ');
    out += padded + shown(value) + "\n";
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
  nlohmann::ordered_json metrics, list = nlohmann::ordered_json::array();
  for (const auto &[name, value] : metricsOf(vitals))
    metrics[name] = value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  for (const Finding &finding : findings)
    list.push_back({{"rule", finding.rule},
                    {"severity", severityNames[static_cast<size_t>(finding.severity)]},
                    {"value", finding.value},
                    {"limit", finding.limit},
                    {"text", finding.text},
                    {"change", finding.change}});
  nlohmann::ordered_json out;
  out["metrics"] = metrics;
  out["findings"] = list;
  return out.dump(2) + "\n";
}

} // namespace quire::runtime
