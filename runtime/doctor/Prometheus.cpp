// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of metrics, and its rendering.
#include "doctor/Prometheus.h"

#include <cinttypes>
#include <cstdio>

namespace quire::runtime {

namespace {

struct Series {
  const char *label; // key="value", or nothing
  uint64_t PagerCounters::*value;
};

struct Metric {
  const char *name;
  const char *help;
  bool isTime; // nanoseconds, shown as seconds
  std::vector<Series> series;
};

using C = PagerCounters;

const std::vector<Metric> &metrics() {
  static const std::vector<Metric> all = {
      {"quire_demands_total", "Uses of stored pages by steps, by what they found.", false,
       {{"outcome=\"hit\"", &C::hits}, {"outcome=\"late\"", &C::late}, {"outcome=\"miss\"", &C::misses}}},
      {"quire_polluted_misses_total", "Misses of pages that a prefetch had evicted.", false, {{"", &C::pollutedMisses}}},
      {"quire_prefetch_issued_total", "Prefetches that moved bytes.", false, {{"", &C::prefetchIssued}}},
      {"quire_prefetch_redundant_total", "Prefetches of pages that were resident or on their way.", false, {{"", &C::prefetchRedundant}}},
      {"quire_prefetch_useful_total", "Prefetches whose page was demanded before it was evicted.", false, {{"", &C::prefetchUseful}}},
      {"quire_prefetch_timely_total", "Useful prefetches that had arrived by the demand.", false, {{"", &C::prefetchTimely}}},
      {"quire_prefetch_dropped_total", "Prefetches without room or beyond the window.", false, {{"", &C::prefetchDropped}}},
      {"quire_prefetch_cancelled_total", "Prefetches that were cancelled before they began.", false, {{"", &C::prefetchCancelled}}},
      {"quire_evictions_total", "Pages that gave way, by what needed the room.", false,
       {{"cause=\"demand\"", &C::evictedForDemand}, {"cause=\"prefetch\"", &C::evictedForPrefetch}, {"cause=\"write\"", &C::evictedForWrite}}},
      {"quire_pins_given_up_total", "Pinned blocks that were given up, beyond the budget or for a step.", false, {{"", &C::pinsGivenUp}}},
      {"quire_seals_total", "Pages that became immutable, or were changed after their write-back.", false, {{"", &C::seals}}},
      {"quire_write_backs_total", "Pages stored in a slow tier.", false, {{"", &C::writeBacks}}},
      {"quire_moved_bytes_total", "Bytes moved, by why.", false,
       {{"cause=\"demand\"", &C::bytesInDemand}, {"cause=\"prefetch\"", &C::bytesInPrefetch}, {"cause=\"write_back\"", &C::bytesOut}, {"cause=\"compaction\"", &C::bytesCompacted}}},
      {"quire_idle_blocks_total", "Blocks sent to the slow tier since no step used them.", false, {{"", &C::idleBlocks}}},
      {"quire_pruned_tokens_total", "Tokens that pruning has dropped.", false, {{"", &C::prunedTokens}}},
      {"quire_transfer_retries_total", "Transfers that failed and were repeated.", false, {{"", &C::retries}}},
      {"quire_pages_lost_total", "Pages whose content could not be read back.", false, {{"", &C::pagesLost}}},
      {"quire_no_space_total", "Stores that the slow tier had no room for.", false, {{"", &C::noSpace}}},
      {"quire_pages_refused_total", "Stores of pages that the codec of the slow tier does not take.", false, {{"", &C::refused}}},
      {"quire_erasures_failed_total", "Slots of the slow tier that could not be erased.", false, {{"", &C::erasuresFailed}}},
      {"quire_stall_seconds_total", "Time that steps waited for pages.", true, {{"", &C::stallNs}}},
      {"quire_table_seconds_total", "Time of translation and bookkeeping.", true, {{"", &C::tableNs}}},
      {"quire_step_seconds_total", "Time of all steps.", true, {{"", &C::stepNs}}},
      {"quire_steps_total", "Steps.", false, {{"", &C::steps}}},
  };
  return all;
}

} // namespace

/// Adds `key="value"` with the format's escapes; nothing for an empty value.
static void addLabel(std::string &list, const char *key, const std::string &value) {
  if (value.empty())
    return;
  list += (list.empty() ? "" : ",") + std::string(key) + "=\"";
  for (char c : value) {
    if (c == '\n') {
      list += "\\n";
      continue;
    }
    if (c == '\\' || c == '"')
      list += '\\';
    list += c;
  }
  list += '"';
}

static std::string seconds(uint64_t ns) {
  char text[40];
  std::snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
  return text;
}

static void addHeader(std::string &out, const std::string &name, const std::string &help, const char *type) {
  out += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

static void addSample(std::string &out, const std::string &name, const std::string &labels, const std::string &value) {
  out += name + (labels.empty() ? "" : "{" + labels + "}") + " " + value + "\n";
}

/// Cumulative buckets at each doubling from 15 ns to 17 s.
static void addLatency(std::string &out, const LatencySample &sample) {
  static const std::string name = "quire_latency_seconds";
  std::string labels;
  addLabel(labels, "operation", sample.operation);
  addLabel(labels, "tier", sample.tier);
  std::string before = labels + (labels.empty() ? "" : ",");
  uint64_t below = 0;
  for (size_t bucket = 0; bucket < Histogram::buckets; ++bucket) {
    below += sample.histogram->inBucket(bucket);
    uint64_t bound = Histogram::upperBound(bucket);
    if (bucket >= 15 && (bucket - 15) % 8 == 0 && bound < (uint64_t(1) << 34))
      addSample(out, name + "_bucket", before + "le=\"" + seconds(bound) + "\"", std::to_string(below));
  }
  addSample(out, name + "_bucket", before + "le=\"+Inf\"", std::to_string(below));
  addSample(out, name + "_sum", labels, seconds(sample.histogram->sum()));
  addSample(out, name + "_count", labels, std::to_string(below));
}

/// Each slow tier's part of what the pool counts.
static void addTiers(std::string &out, const std::vector<TierSample> &tiers) {
  struct {
    const char *name, *help;
    bool gauge;
    uint64_t (*value)(const TierSample &);
  } const metrics[] = {
      {"quire_slow_tier_pages", "Pages that a slow tier holds at most.", true, [](const TierSample &t) { return t.pages; }},
      {"quire_slow_tier_pages_used", "Slots of a slow tier that have a page, or are being erased.", true, [](const TierSample &t) { return t.pagesUsed; }},
      {"quire_slow_tier_closed", "1: the tier is full below its quota, or fails, and takes no new pages.", true, [](const TierSample &t) { return uint64_t(t.closed); }},
      {"quire_slow_tier_pages_in_total", "Pages that a slow tier gave back.", false, [](const TierSample &t) { return t.counters->pagesIn; }},
      {"quire_slow_tier_pages_out_total", "Pages that a slow tier was given.", false, [](const TierSample &t) { return t.counters->pagesOut; }},
      {"quire_slow_tier_retries_total", "Transfers of a slow tier that failed and were repeated.", false, [](const TierSample &t) { return t.counters->retries; }},
      {"quire_slow_tier_pages_lost_total", "Pages that a slow tier could not give back.", false, [](const TierSample &t) { return t.counters->pagesLost; }},
      {"quire_slow_tier_no_space_total", "Stores that a slow tier had no room for.", false, [](const TierSample &t) { return t.counters->noSpace; }},
      {"quire_slow_tier_erasures_failed_total", "Slots of a slow tier that could not be erased.", false, [](const TierSample &t) { return t.counters->erasuresFailed; }},
      {"quire_slow_tier_slots_given_up_total", "Slots of a slow tier that are never used again.", false, [](const TierSample &t) { return t.counters->givenUp; }},
  };
  for (const auto &metric : metrics) {
    if (tiers.empty())
      return;
    addHeader(out, metric.name, metric.help, metric.gauge ? "gauge" : "counter");
    for (const TierSample &tier : tiers) {
      std::string labels;
      addLabel(labels, "tier", tier.tier);
      addLabel(labels, "level", tier.level);
      addSample(out, metric.name, labels, std::to_string(metric.value(tier)));
    }
  }
}

static void addTenants(std::string &out, const std::vector<TenantSample> &tenants) {
  using C = TenantCounters;
  struct {
    const char *name, *help;
    int64_t C::*value;
  } const metrics[] = {
      {"quire_prefix_queries_total", "Sequences that asked for a cached prefix.", &C::queries},
      {"quire_prefix_query_tokens_total", "Tokens that they asked for.", &C::queryTokens},
      {"quire_prefix_hit_tokens_total", "Tokens that were found in the prefix cache.", &C::hitTokens},
      {"quire_prefix_blocks_published_total", "Blocks that were made findable.", &C::blocksPublished},
      {"quire_prefix_blocks_merged_total", "Blocks that gave way to equal ones that were cached.", &C::blocksMerged},
      {"quire_prefix_blocks_evicted_total", "Cached blocks that were dropped for want of free ones.", &C::blocksEvicted},
      {"quire_prefix_blocks_expired_total", "Cached blocks that nobody used for the time to live.", &C::blocksExpired},
      {"quire_prefix_collisions_total", "Keys that another content had: misses.", &C::collisions},
  };
  for (const auto &metric : metrics) {
    if (tenants.empty())
      return;
    addHeader(out, metric.name, metric.help, "counter");
    for (const TenantSample &sample : tenants) {
      std::string labels;
      addLabel(labels, "tenant", sample.tenant);
      addSample(out, metric.name, labels, std::to_string(sample.counters->*metric.value));
    }
  }
}

std::string prometheusText(const std::vector<CounterSample> &counters, const std::vector<LatencySample> &latencies,
                           const std::vector<GaugeSample> &gauges, const std::vector<TierSample> &tiers,
                           const std::vector<TenantSample> &tenants) {
  std::string out;
  for (const Metric &metric : metrics()) {
    if (counters.empty())
      break;
    addHeader(out, metric.name, metric.help, "counter");
    for (const CounterSample &sample : counters)
      for (const Series &series : metric.series) {
        std::string labels = series.label;
        addLabel(labels, "tier", sample.tier);
        addLabel(labels, "tenant", sample.tenant);
        uint64_t value = sample.counters->*series.value;
        addSample(out, metric.name, labels, metric.isTime ? seconds(value) : std::to_string(value));
      }
  }
  for (const GaugeSample &gauge : gauges) {
    std::string labels;
    addLabel(labels, "tier", gauge.tier);
    char value[40];
    std::snprintf(value, sizeof(value), "%.9g", gauge.value);
    addHeader(out, gauge.name, gauge.help, "gauge");
    addSample(out, gauge.name, labels, value);
  }
  addTiers(out, tiers);
  addTenants(out, tenants);
  if (!latencies.empty())
    addHeader(out, "quire_latency_seconds", "Time of operations on pages.", "histogram");
  for (const LatencySample &sample : latencies)
    addLatency(out, sample);
  return out;
}

} // namespace quire::runtime
