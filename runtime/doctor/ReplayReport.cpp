// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tables and JSON of replays.
#include "doctor/ReplayReport.h"

#include "core/Quantities.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace quire::runtime {

using Json = nlohmann::ordered_json;

std::optional<ReplayReport::Recorded> recordedRun(const Trace &trace) {
  std::optional<PagerCounters> counters = recordedCounters(trace);
  if (!counters || trace.fastPages == 0)
    return std::nullopt;
  return ReplayReport::Recorded{*counters, optimal(trace, trace.fastPages).misses};
}

Vitals vitalsOf(const ReplayReport &report, const ReplayReport::Run &run) {
  Vitals out;
  out.counters = run.result.counters;
  out.isTableTimed = false;
  out.policy = run.policy;
  out.prefetch = report.options.prefetch;
  out.window = report.options.window;
  out.topk = report.options.topk;
  out.fastBytes = report.trace->pageBytes * report.options.fastPages;
  if (run.result.repeatedOrder >= 0)
    out.repeatedOrder = run.result.repeatedOrder;
  out.optimalMisses = run.result.optimum.misses;
  out.bestPolicy = bestPolicy(*report.trace, report.options.fastPages, run.policy);
  out.slowUse = ratio(static_cast<double>(run.result.slowBusyNs), static_cast<double>(run.result.counters.stepNs));
  return out;
}

static std::string line(const std::string &name, const OptimalCounts &counts, Ratio gap, uint64_t late, uint64_t loads,
                        const std::string &stall) {
  char text[200];
  std::snprintf(text, sizeof(text), "%-11s %11llu %9llu %11llu %9s %8s %11llu %10.1f %12s\n", name.c_str(),
                static_cast<unsigned long long>(counts.hits), static_cast<unsigned long long>(late),
                static_cast<unsigned long long>(counts.misses),
                shown(ratio(static_cast<double>(counts.hits), static_cast<double>(counts.demands))).c_str(),
                shown(gap).c_str(), static_cast<unsigned long long>(loads),
                static_cast<double>(counts.bytesIn) / (1 << 20), stall.c_str());
  return text;
}

static std::string line(const std::string &name, const PagerCounters &c, uint64_t optimalMisses) {
  char stall[40];
  std::snprintf(stall, sizeof(stall), "%.3f", static_cast<double>(c.stallNs) / 1e6);
  OptimalCounts counts{c.demands, c.hits, c.misses, c.bytesInDemand + c.bytesInPrefetch, c.bytesOut};
  return line(name, counts, gapToOptimum(c, optimalMisses), c.late, c.misses + c.prefetchIssued, stall);
}

static std::string headerOf(const ReplayReport &report) {
  const Trace &trace = *report.trace;
  std::string out = std::to_string(trace.events().size()) + " events; " + std::to_string(report.livePages) +
                    " pages of " + printSize(trace.pageBytes) + " alive at most, " +
                    std::to_string(report.options.fastPages) + " of them in the fast tier; prefetch " +
                    prefetchName(report.options.prefetch);
  if (report.options.prefetch != PrefetchKind::None)
    out += ", window " + std::to_string(report.options.window);
  out += "\n";
  if (trace.dropped() > 0)
    out += "the trace is cut: " + std::to_string(trace.dropped()) + " events after these were not recorded\n";
  bool hasMass = std::any_of(trace.events().begin(), trace.events().end(),
                             [](const TraceEvent &event) { return event.kind == TraceEvent::Kind::Observe; });
  bool asksForMass = std::any_of(report.runs.begin(), report.runs.end(), [](const ReplayReport::Run &run) {
    return run.policy == PolicyKind::Importance;
  });
  if (asksForMass && !hasMass)
    out += "the trace has no attention mass: importance decides as lru does\n";
  return out;
}

std::string replayText(const ReplayReport &report) {
  std::string out = headerOf(report);
  char title[200];
  std::snprintf(title, sizeof(title), "%-11s %11s %9s %11s %9s %8s %11s %10s %12s\n", "policy", "hits", "late", "misses",
                "hit rate", "gap", "loads", "MiB in", "stall ms");
  out += title;
  if (report.recorded)
    out += line("recorded", report.recorded->counters, report.recorded->optimalMisses);
  for (const ReplayReport::Run &run : report.runs)
    out += line(policyName(run.policy), run.result.counters, run.result.optimum.misses);
  if (report.withOptimum)
    out += line("opt", report.optimum, 0, 0, report.optimum.misses, "-");
  if (report.withDoctor)
    for (const ReplayReport::Run &run : report.runs) {
      Vitals vitals = vitalsOf(report, run);
      out += "\n" + std::string(policyName(run.policy)) + ":\n" + doctorText(vitals, diagnose(vitals));
    }
  return out;
}

static Json countersJson(const PagerCounters &c) {
  return {{"demands", c.demands},
          {"hits", c.hits},
          {"late", c.late},
          {"misses", c.misses},
          {"polluted_misses", c.pollutedMisses},
          {"prefetch_issued", c.prefetchIssued},
          {"prefetch_redundant", c.prefetchRedundant},
          {"prefetch_useful", c.prefetchUseful},
          {"prefetch_timely", c.prefetchTimely},
          {"prefetch_dropped", c.prefetchDropped},
          {"prefetch_cancelled", c.prefetchCancelled},
          {"evicted_for_demand", c.evictedForDemand},
          {"evicted_for_prefetch", c.evictedForPrefetch},
          {"evicted_for_write", c.evictedForWrite},
          {"seals", c.seals},
          {"write_backs", c.writeBacks},
          {"bytes_in_demand", c.bytesInDemand},
          {"bytes_in_prefetch", c.bytesInPrefetch},
          {"bytes_out", c.bytesOut},
          {"stall_ns", c.stallNs},
          {"step_ns", c.stepNs},
          {"steps", c.steps}};
}

std::string replayJson(const ReplayReport &report) {
  const Trace &trace = *report.trace;
  Json runs = Json::array();
  for (const ReplayReport::Run &run : report.runs) {
    Vitals vitals = vitalsOf(report, run);
    Json found = Json::parse(doctorJson(vitals, diagnose(vitals)));
    Json entry = {{"policy", policyName(run.policy)}, {"loads", run.result.loads()}};
    entry["counters"] = countersJson(run.result.counters);
    entry["metrics"] = found["metrics"];
    if (report.withDoctor)
      entry["findings"] = found["findings"];
    runs.push_back(entry);
  }
  Json out = {{"events", trace.events().size()},
              {"dropped", trace.dropped()},
              {"page_bytes", trace.pageBytes},
              {"live_pages", report.livePages},
              {"fast_pages", report.options.fastPages},
              {"prefetch", prefetchName(report.options.prefetch)},
              {"window", report.options.window},
              {"latency_ns", report.options.latencyNs},
              {"bandwidth", report.options.bandwidth}};
  if (report.recorded) {
    const PagerCounters &c = report.recorded->counters;
    out["recorded"] = {{"fast_pages", trace.fastPages}, {"demands", c.demands},   {"hits", c.hits},
                       {"late", c.late},                {"misses", c.misses},     {"prefetch_issued", c.prefetchIssued},
                       {"stall_ns", c.stallNs},         {"opt_misses", report.recorded->optimalMisses}};
    out["recorded"]["gap_to_optimum"] = *gapToOptimum(c, report.recorded->optimalMisses); // there are demands
  }
  out["runs"] = runs;
  if (report.withOptimum)
    out["opt"] = {{"demands", report.optimum.demands},
                  {"hits", report.optimum.hits},
                  {"misses", report.optimum.misses},
                  {"bytes_in", report.optimum.bytesIn},
                  {"bytes_out", report.optimum.bytesOut}};
  return out.dump(2) + "\n";
}

} // namespace quire::runtime
