// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: traces, the doctor, metrics.
#include "abi/Handles.h"
#include "doctor/Doctor.h"
#include "doctor/Prometheus.h"
#include "residency/Optimal.h"
#include "residency/Replay.h"

#include <cmath>

using namespace quire::runtime;

/// Longer traces make the doctor slow.
static constexpr size_t maxReplayedEvents = size_t(1) << 22;

/// Share of demands that came in the order of the step before, the fewest misses that are possible, and the policy that comes next to them.
static void readTrace(const Trace &trace, Vitals &out) {
  if (trace.events().empty() || trace.dropped() > 0 || trace.events().size() > maxReplayedEvents)
    return;
  AccessOrder order(trace.pages);
  for (const TraceEvent &event : trace.events()) {
    if (event.kind == TraceEvent::Kind::Step)
      order.beginStep();
    else if (event.kind == TraceEvent::Kind::Demand)
      order.used(event.page);
    else if (event.kind == TraceEvent::Kind::Free)
      order.forget(event.page);
  }
  if (order.predictions() > 0)
    out.repeatedOrder = static_cast<double>(order.fulfilled()) / static_cast<double>(order.predictions());
  out.optimalMisses = optimal(trace, trace.fastPages).misses;
  uint64_t own = 0;
  if (out.policy)
    out.bestPolicy = bestPolicy(trace, trace.fastPages, *out.policy, &own);
  if (out.bestPolicy)
    out.ownMisses = own;
}

/// Both predictors go by attention, and advice on them is the same.
static PrefetchKind kindOf(PrefetchStrategy strategy) {
  switch (strategy) {
  case PrefetchStrategy::None:
    return PrefetchKind::None;
  case PrefetchStrategy::Sequential:
    return PrefetchKind::Sequential;
  case PrefetchStrategy::Hotspot:
    return PrefetchKind::SeedHotspot;
  case PrefetchStrategy::Hybrid:
    return PrefetchKind::Hybrid;
  }
  return PrefetchKind::None;
}

static Vitals vitalsOf(const Pool &pool, const quire_doctor_options &options) {
  Vitals vitals;
  vitals.blockTokens = static_cast<uint64_t>(pool.blockTokens());
  uint64_t block = static_cast<uint64_t>(pool.blockBytes()), token = block / vitals.blockTokens;
  vitals.liveBytes = pool.filling().tokens * token;
  vitals.allocatedBytes = pool.filling().positions * token;
  vitals.freeBytes = vitals.largestFreeBytes = static_cast<uint64_t>(pool.blocksFree()) * block;
  vitals.tableBytes = pool.tableBytes();
  vitals.kvBytes = static_cast<uint64_t>(pool.blocksLimit()) * block;
  Pool::GivenBack back = pool.givenBack();
  vitals.givenBackBytes = back.now;
  vitals.couldGiveBackBytes = back.compacted;
  if (pool.reserveBlocks() > 0 || pool.reserveCounters().exhausted > 0)
    vitals.reserveRatio = pool.reserveRatio();
  vitals.reserveBase = static_cast<uint64_t>(pool.reserveBase());
  vitals.reservePeak = static_cast<uint64_t>(pool.reserveCounters().peak);
  vitals.reserveExhausted = static_cast<uint64_t>(pool.reserveCounters().exhausted);
  vitals.preemptions = static_cast<uint64_t>(std::max<int64_t>(0, options.preemptions));
  const Pager *pager = pool.pager();
  if (!pager)
    return vitals;
  vitals.counters = pager->counters();
  if (const AttentionSpread &spread = pager->attention(); spread.samples > 0) {
    vitals.attentionEntropy = spread.entropy / static_cast<double>(spread.samples);
    vitals.attentionPages = std::exp(spread.logBlocks / static_cast<double>(spread.samples));
  }
  vitals.policy = pager->policyKind();
  vitals.prefetch = kindOf(pager->prefetchWindow() > 0 ? pager->prefetching().strategy : PrefetchStrategy::None);
  vitals.topk = pager->prefetching().topk;
  vitals.window = static_cast<uint32_t>(pager->prefetchWindow());
  vitals.fastBytes = pager->fastPages() * pager->geometry().pageStride;
  vitals.slowBytes = pager->slow().slots().total() * pager->slow().storedPageBytes();
  const TierSlots &slots = pager->slow().slots();
  vitals.slowTiers = slots.members().size();
  for (size_t member = 0; member < vitals.slowTiers; ++member)
    vitals.closedTiers += !slots.isOpen(member);
  vitals.codec = pager->slow().codec();
  if (CodecError error = pager->slow().codecError(); error.samples > 0)
    vitals.codecError = error.relativeL2;
  vitals.slowUse = ratio(static_cast<double>(pager->slowBusyNs()), static_cast<double>(vitals.counters.stepNs));
  if (const Trace *trace = pool.trace())
    readTrace(*trace, vitals);
  return vitals;
}

static Thresholds thresholdsOf(const quire_doctor_options &given) {
  Thresholds thresholds;
  auto take = [](double value, double &out) { out = value == 0 ? out : std::max(0.0, value); };
  take(given.page_table_max, thresholds.maxTableTime);
  take(given.page_table_max, thresholds.maxTableBytes);
  take(given.min_hit, thresholds.minHit);
  take(given.frag_max, thresholds.maxInternal);
  return thresholds;
}

static constexpr struct {
  quire_operation operation;
  const char *name;
} operations[] = {{QUIRE_OPERATION_ALLOCATE, "allocate"},
                  {QUIRE_OPERATION_FREE, "free"},
                  {QUIRE_OPERATION_ACQUIRE_HIT, "acquire_hit"},
                  {QUIRE_OPERATION_ACQUIRE_MISS, "acquire_miss"},
                  {QUIRE_OPERATION_MAKE_ROOM, "make_room"}};

/// Null: of a slow tier that the pool has not.
static const Histogram *histogramOf(const Pool &pool, quire_operation operation) {
  const Pager *pager = pool.pager();
  switch (operation) {
  case QUIRE_OPERATION_ALLOCATE:
    return &pool.latencies().allocate;
  case QUIRE_OPERATION_FREE:
    return &pool.latencies().free;
  case QUIRE_OPERATION_ACQUIRE_HIT:
    return pager ? &pager->latencies().acquireHit : nullptr;
  case QUIRE_OPERATION_ACQUIRE_MISS:
    return pager ? &pager->latencies().acquireMiss : nullptr;
  case QUIRE_OPERATION_MAKE_ROOM:
    return pager ? &pager->latencies().makeRoom : nullptr;
  }
  return nullptr;
}

/// Takes away what a tenant's counters say, field by field.
static void subtract(PagerCounters &from, const PagerCounters &part) {
  constexpr size_t fields = sizeof(PagerCounters) / sizeof(uint64_t);
  uint64_t left[fields], less[fields];
  std::memcpy(left, &from, sizeof(left));
  std::memcpy(less, &part, sizeof(less));
  for (size_t i = 0; i < fields; ++i)
    left[i] -= less[i];
  std::memcpy(static_cast<void *>(&from), left, sizeof(left));
}

static std::vector<TierSample> tiersOf(const Pager &pager) {
  const TierSlots &slots = pager.slow().slots();
  std::vector<TierSample> tiers;
  for (size_t member = 0; member < slots.members().size(); ++member) {
    const auto &[name, total] = slots.members()[member];
    const TierCounters &counters = pager.tierCounters(member);
    tiers.push_back({name, std::to_string(member + 1), &counters, total - slots.freeOf(member) - counters.givenUp, total, !slots.isOpen(member)});
  }
  return tiers;
}

/// Samples of one metric add up to what the pool counted.
static std::string metricsOf(const Pool &pool) {
  const Pager *pager = pool.pager();
  std::string tier = pager ? pager->slow().name() : std::string();
  PagerCounters rest = pager ? pager->counters() : PagerCounters();
  rest.bytesCompacted += pool.compacted().bytes;
  rest.idleBlocks = static_cast<uint64_t>(pool.idleBlocks());
  rest.prunedTokens = static_cast<uint64_t>(pool.pruned().tokens);
  std::vector<CounterSample> counters = {{tier, "", &rest}};
  std::vector<TenantSample> tenants;
  for (uint32_t slot = Tenants::nobody + 1; slot < pool.tenants().size(); ++slot) {
    if (!pool.tenants()[slot].live)
      continue;
    tenants.push_back({std::to_string(slot), &pool.tenants()[slot].counters});
    if (!pager)
      continue;
    subtract(rest, pager->tenantCounters(slot));
    counters.push_back({tier, std::to_string(slot), &pager->tenantCounters(slot)});
  }
  std::vector<LatencySample> latencies;
  for (auto [operation, name] : operations)
    if (const Histogram *histogram = histogramOf(pool, operation); histogram && histogram->count() > 0)
      latencies.push_back({name, tier, histogram});
  std::vector<GaugeSample> gauges = {
      {"quire_blocks", "Blocks that can be in use.", "", double(pool.blocksLimit())},
      {"quire_blocks_free", "Blocks that nobody has.", "", double(pool.blocksFree())},
      {"quire_blocks_reclaimable", "Blocks of cached prefixes that are handed out when free ones are short.", "", double(pool.blocksReclaimable())},
      {"quire_block_bytes", "Bytes of a block over all layers.", "", double(pool.blockBytes())},
      {"quire_sequences", "Sequences that are alive.", "", double(pool.sequenceCount())}};
  if (pager) {
    const Tier &slow = pager->slow();
    gauges.push_back({"quire_slow_page_bytes", "Bytes that a page takes in the slow tier, where a codec may have made it smaller.", tier, double(slow.storedPageBytes())});
    if (CodecError error = slow.codecError(); error.samples > 0)
      gauges.push_back({"quire_codec_error_ratio", "Norm of what a codec changed, of a sample of the pages stored, to their norm.", tier, error.relativeL2});
  }
  return prometheusText(counters, latencies, gauges, pager ? tiersOf(*pager) : std::vector<TierSample>(), tenants);
}

extern "C" {

quire_status quire_pool_set_prefetch_window(quire_pool *pool, int64_t pages) {
  if (!pool)
    return nullArgument("pool");
  if (pages < 0 || pages > INT32_MAX)
    return report(failure(QUIRE_INVALID_ARGUMENT, "expected a window of at least 0 pages, but got %lld",
                          static_cast<long long>(pages)));
  if (Pager *pager = pool->pool->pager())
    pager->setPrefetchWindow(pages);
  return QUIRE_OK;
}

quire_status quire_pool_trace(quire_pool *pool, int64_t events) {
  return pool ? guarded([&] { return pool->pool->startTrace(events); }) : nullArgument("pool");
}

quire_status quire_pool_write_trace(const quire_pool *pool, const char *path) {
  if (!pool || !path)
    return nullArgument("pool and path");
  return guarded([&] {
    const Trace *trace = pool->pool->trace();
    return trace ? trace->write(path) : failure(QUIRE_INVALID_ARGUMENT, "nothing is being recorded");
  });
}

quire_status quire_doctor(quire_pool *pool, const quire_doctor_options *options, const char **text) {
  if (!pool || !text)
    return nullArgument("pool and text");
  return guarded([&] {
    quire_doctor_options given;
    if (!readOptions(options, given))
      return badStructSize();
    Vitals vitals = vitalsOf(*pool->pool, given);
    std::vector<Finding> findings = diagnose(vitals, thresholdsOf(given));
    pool->text = given.json ? doctorJson(vitals, findings) : doctorText(vitals, findings);
    *text = pool->text.c_str();
    return success();
  });
}

quire_status quire_metrics(quire_pool *pool, const char **text) {
  if (!pool || !text)
    return nullArgument("pool and text");
  return guarded([&] {
    pool->text = metricsOf(*pool->pool);
    *text = pool->text.c_str();
    return success();
  });
}

quire_status quire_pool_get_latency(const quire_pool *pool, int64_t operation, quire_latency_stats *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    if (operation < QUIRE_OPERATION_ALLOCATE || operation > QUIRE_OPERATION_MAKE_ROOM)
      return failure(QUIRE_INVALID_ARGUMENT, "no operation %lld", static_cast<long long>(operation));
    const Histogram *histogram = histogramOf(*pool->pool, static_cast<quire_operation>(operation));
    Histogram none;
    const Histogram &found = histogram ? *histogram : none;
    quire_latency_stats stats = {};
    stats.count = static_cast<int64_t>(found.count());
    stats.sum_ns = static_cast<int64_t>(found.sum());
    stats.p50_ns = static_cast<int64_t>(found.quantile(0.5).value_or(0));
    stats.p99_ns = static_cast<int64_t>(found.quantile(0.99).value_or(0));
    stats.max_ns = static_cast<int64_t>(found.quantile(1).value_or(0));
    return writeResult(stats, out) ? success() : badStructSize();
  });
}

} // extern "C"
