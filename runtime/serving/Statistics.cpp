// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The statistics file.
#include "serving/Statistics.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace quire::serving {

using Json = nlohmann::ordered_json;

std::string statisticsLine(const Statistics &s, int64_t requests, int64_t tokens, double seconds) {
  if (s.firstTokenMs.empty() || seconds <= 0)
    return {};
  std::vector<double> first = s.firstTokenMs;
  std::sort(first.begin(), first.end());
  char text[256];
  std::snprintf(text, sizeof(text),
                "%lld request%s, %lld new tokens in %.2f s: %.1f tokens/s; first token after %.0f ms (median), %.0f ms (most); "
                "largest gap between two tokens %.0f ms",
                static_cast<long long>(requests), requests == 1 ? "" : "s", static_cast<long long>(tokens), seconds,
                static_cast<double>(tokens) / seconds, first[first.size() / 2], first.back(), s.largestGapMs);
  return text;
}

/// Words as in docs/Runtime.md, "Tiers".
static Json tiers(const quire_paging_stats &p) {
  Json root;
  root["page_bytes"] = p.page_bytes;
  root["fast_pages"] = p.fast_pages;
  root["slow_pages"] = p.slow_pages;
  root["metadata_bytes"] = p.metadata_bytes;
  root["demands"] = {{"all", p.demands},
                     {"hits", p.hits},
                     {"late", p.late},
                     {"misses", p.misses},
                     {"polluted", p.polluted_misses}};
  root["prefetch"] = {{"issued", p.prefetch_issued},
                      {"redundant", p.prefetch_redundant},
                      {"useful", p.prefetch_useful},
                      {"timely", p.prefetch_timely},
                      {"dropped", p.prefetch_dropped}};
  root["evicted"] = {{"for_demand", p.evicted_for_demand},
                     {"for_prefetch", p.evicted_for_prefetch},
                     {"for_write", p.evicted_for_write}};
  root["pins"] = {{"held_blocks", p.pinned_blocks}, {"budget_blocks", p.pin_budget_blocks}, {"given_up", p.pins_given_up}};
  root["seals"] = p.seals;
  root["write_backs"] = p.write_backs;
  root["layers_per_page"] = p.layers_per_page;
  root["codec"] = {{"stored_page_bytes", p.stored_page_bytes},
                   {"refused", p.pages_refused},
                   {"refused_held", p.pages_refused_held},
                   {"idle_blocks", p.idle_blocks},
                   {"samples", p.codec_samples},
                   {"error", p.codec_error}};
  root["memory"] = {{"page_stride", p.fast_page_stride},
                    {"bytes", p.fast_bytes_with_memory},
                    {"returns", p.memory_returns},
                    {"bytes_returned", p.memory_bytes_returned}};
  root["bytes"] = {{"in_demand", p.bytes_in_demand}, {"in_prefetch", p.bytes_in_prefetch}, {"out", p.bytes_out}};
  root["faults"] = {{"retries", p.retries}, {"pages_lost", p.pages_lost}, {"no_space", p.no_space}, {"erasures_failed", p.erasures_failed}};
  root["ms"] = {{"stall", static_cast<double>(p.stall_ns) / 1e6},
                {"table", static_cast<double>(p.table_ns) / 1e6},
                {"steps", static_cast<double>(p.step_ns) / 1e6}};
  return root;
}

static Json slowTier(const quire_tier_stats &t) {
  return {{"name", t.name},
          {"pages", t.pages},
          {"used", t.pages_used},
          {"given_up", t.pages_given_up},
          {"closed", t.closed != 0},
          {"in", t.pages_in},
          {"out", t.pages_out},
          {"retries", t.retries},
          {"pages_lost", t.pages_lost},
          {"no_space", t.no_space},
          {"erasures_failed", t.erasures_failed}};
}

static Json latency(const quire_latency_stats &l) {
  auto us = [](int64_t ns) { return static_cast<double>(ns) / 1e3; };
  return {{"count", l.count}, {"p50", us(l.p50_ns)}, {"p99", us(l.p99_ns)}, {"max", us(l.max_ns)}};
}

std::string statisticsJson(const Statistics &s) {
  Json root;
  root["engine"] = "compiled";
  root["threads"] = s.threads;
  root["block_tokens"] = s.blockTokens;
  root["block_bytes"] = s.blockBytes;
  root["blocks_total"] = s.blocksTotal;
  root["blocks_peak"] = s.blocksPeak;
  root["reserve"] = {{"blocks", s.reserveBlocks}, {"hits", s.reserveHits}};
  root["max_sequences_in_step"] = s.maxSequencesInStep;
  root["max_prefill_tokens_in_step"] = s.maxPrefillTokensInStep;
  root["preemptions"] = s.preemptions;
  if (s.prunes)
    root["pruned"] = {{"tokens", s.prunedTokens}, {"blocks", s.prunedBlocks}};
  root["kv_copy_bytes"] = s.kvCopyBytes;
  root["largest_gap_ms"] = std::round(s.largestGapMs * 1000) / 1000;
  root["prefetch"] = {{"issued", s.prefetchIssued}, {"redundant", s.prefetchRedundant}};
  if (s.paging.page_bytes > 0) {
    root["tiers"] = tiers(s.paging);
    root["tiers"]["us"] = {{"acquire_hit", latency(s.acquireHit)}, {"acquire_miss", latency(s.acquireMiss)}, {"make_room", latency(s.makeRoom)}};
    root["tiers"]["slow"] = Json::array();
    for (const quire_tier_stats &tier : s.slowTiers)
      root["tiers"]["slow"].push_back(slowTier(tier));
    root["recomputed_tokens"] = s.recomputedTokens;
  }
  if (s.prefix.enabled)
    root["prefix"] = {{"tenants", s.prefix.tenants},
                      {"queries", s.prefix.queries},
                      {"query_tokens", s.prefix.queryTokens},
                      {"hit_tokens", s.prefix.hitTokens},
                      {"blocks_published", s.prefix.blocksPublished},
                      {"blocks_merged", s.prefix.blocksMerged},
                      {"blocks_evicted", s.prefix.blocksEvicted},
                      {"blocks_expired", s.prefix.blocksExpired}};
  Json tables = Json::object();
  for (const auto &[id, blocks] : s.finalBlockTables)
    tables[id] = blocks;
  root["final_block_tables"] = std::move(tables);
  Json steps = Json::array();
  for (const StepRecord &step : s.steps)
    steps.push_back({{"tokens", step.tokens},
                     {"sequences", step.sequences},
                     {"kv_tokens", step.kvTokens},
                     {"ms", std::round(step.ms * 1000) / 1000}});
  root["steps"] = std::move(steps);
  Json events = Json::array();
  for (const BlockEvent &event : s.blockEvents) {
    Json entry = {{"step", event.step}, {"id", event.id}};
    if (event.taken.empty())
      entry["released"] = true;
    else
      entry["taken"] = event.taken;
    events.push_back(std::move(entry));
  }
  root["block_events"] = std::move(events);
  return root.dump() + "\n";
}

} // namespace quire::serving
