// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options of a slow tier as the pool wants them, and its counters as the C interface has them.
#include "abi/SlowTier.h"

#include "abi/Handles.h"
#include "model/ModelInfo.h"
#include "pool/Geometry.h"
#include "pool/PageRule.h"
#include "tier/TierOptions.h"

namespace quire::runtime {

/// A longer list is taken for one that ends in itself.
static constexpr size_t maxSlowTiers = 16;

static Status outOfRange(const char *what, int64_t value) {
  return failure(QUIRE_INVALID_ARGUMENT, "slow tier: %s is out of range: %lld", what, static_cast<long long>(value));
}

static constexpr int64_t usualConcurrency = 8;

static Status chooseLayers(const quire_model_info &info, const quire_slow_tier_options &options, const TierOptions &tier, Pool::Options &out) {
  if (options.layers_per_page != 0 || options.page_rule == QUIRE_PAGES_OF_ONE_LAYER) {
    out.layersPerPage = std::max<int64_t>(1, options.layers_per_page);
    return success();
  }
  QUIRE_TRY(checkModelInfo(info));
  if (options.page_rule == QUIRE_PAGES_BY_CACHE)
    return layersByCache(info, level2CacheBytes(), options.concurrency ? options.concurrency : usualConcurrency, out.layersPerPage);
  Status made;
  auto make = [&](uint64_t pageBytes, uint64_t pages) {
    constexpr uint64_t sector = 4096; // of a file: each page begins with a new one, after a header
    return createTier(tier, pageBytes, (pages + 1) * (pageBytes + 2 * sector), *out.clock, made);
  };
  Status chosen = layersByTransfer(info, out.codec, *out.clock, make, out.layersPerPage);
  return made.ok() ? chosen : made;
}

/// Appends the tiers from `given` on.
static Status readLowerTiers(const quire_lower_tier_options *given, std::vector<TierQuota> &out) {
  while (given) {
    quire_lower_tier_options options;
    if (!readOptions(given, options))
      return badStructSize();
    if (!options.where)
      return failure(QUIRE_INVALID_ARGUMENT, "expected the place of slow tier %zu, but got null", out.size() + 1);
    if (out.size() == maxSlowTiers)
      return failure(QUIRE_INVALID_ARGUMENT, "expected at most %zu slow tiers, but got more", maxSlowTiers);
    TierQuota quota{{}, options.bytes};
    QUIRE_TRY(parseTier(options.where, quota.tier));
    if (quota.tier.kind == TierOptions::Kind::None)
      return failure(QUIRE_INVALID_ARGUMENT, "expected a place for slow tier %zu, but got none", out.size() + 1);
    if (options.checksum != 0)
      quota.tier.memoryChecksum = quota.tier.fileChecksum = options.checksum > 0;
    out.push_back(std::move(quota));
    given = options.lower;
  }
  return success();
}

Status readSlowTier(const quire_model_info &info, const quire_slow_tier_options *given, Pool::Options &out) {
  if (!given)
    return success();
  quire_slow_tier_options options;
  if (!readOptions(given, options))
    return badStructSize();
  if (!options.where)
    return failure(QUIRE_INVALID_ARGUMENT, "expected the place of the slow tier, but got null");
  TierOptions tier;
  QUIRE_TRY(parseTier(options.where, tier));
  if (tier.kind == TierOptions::Kind::None)
    return options.lower ? failure(QUIRE_INVALID_ARGUMENT, "expected a slow tier above another, but got none") : success();
  if (options.replacement < QUIRE_REPLACE_SCAN || options.replacement > QUIRE_REPLACE_ARC)
    return outOfRange("replacement", options.replacement);
  if (options.prefetch_window < -1 || options.prefetch_window > INT32_MAX)
    return outOfRange("prefetch_window", options.prefetch_window);
  if (options.layers_per_page < 0 || options.deadline < 0)
    return outOfRange("layers_per_page or deadline", std::min(options.layers_per_page, options.deadline));
  if (options.page_rule < QUIRE_PAGES_OF_ONE_LAYER || options.page_rule > QUIRE_PAGES_BY_TRANSFER)
    return outOfRange("page_rule", options.page_rule);
  if (options.concurrency < 0)
    return outOfRange("concurrency", options.concurrency);
  if (options.codec && !parseCodec(options.codec, out.codec))
    return failure(QUIRE_INVALID_ARGUMENT, "slow tier: no codec %s", options.codec);
  out.digests = options.digests != 0;
  static constexpr PolicyKind kinds[] = {PolicyKind::Scan, PolicyKind::Lru, PolicyKind::Importance, PolicyKind::Arc};
  out.paging.policy = kinds[options.replacement];
  if (options.prefetch_window != 0)
    out.paging.prefetchWindow = std::max<int64_t>(0, options.prefetch_window);
  if (options.deadline != 0)
    out.paging.deadlineNs = options.deadline;
  if (options.checksum != 0)
    tier.memoryChecksum = tier.fileChecksum = options.checksum > 0;
  out.clock = std::make_shared<SystemClock>();
  QUIRE_TRY(chooseLayers(info, options, tier, out));
  Clock *clock = out.clock.get();
  uint64_t fast = out.bytes;
  std::vector<TierQuota> tiers = {{tier, options.bytes}};
  QUIRE_TRY(readLowerTiers(options.lower, tiers));
  out.slowPlan = [tiers](uint64_t pageBytes, TierPlan &plan) { return planTiers(tiers, pageBytes, plan); };
  out.slowTier = [tiers, clock, fast](uint64_t pageBytes, std::unique_ptr<Tier> &made, std::unique_ptr<Mover> &mover) {
    QUIRE_TRY(checkFreeSpace(tiers, pageBytes));
    Status status;
    made = createTiers(tiers, pageBytes, *clock, status);
    QUIRE_TRY(status);
    mover = createThreadMover(*clock, Pager::transfersFor(fast / pageBytes));
    return success();
  };
  return success();
}

quire_paging_stats pagingStats(const Pool &pool) {
  quire_paging_stats stats = {};
  const Pager *pager = pool.pager();
  if (!pager)
    return stats;
  const PagerCounters &c = pager->counters();
  CodecError error = pager->slow().codecError();
  stats.page_bytes = static_cast<int64_t>(pager->geometry().pageBytes);
  stats.fast_pages = pager->fastPages();
  stats.slow_pages = pager->slow().slots().total();
  stats.layers_per_page = pager->geometry().layersPerPage;
  stats.metadata_bytes = static_cast<int64_t>(pager->metadataBytes());
  const std::pair<int64_t *, uint64_t> fields[] = {
      {&stats.demands, c.demands},
      {&stats.hits, c.hits},
      {&stats.late, c.late},
      {&stats.misses, c.misses},
      {&stats.polluted_misses, c.pollutedMisses},
      {&stats.prefetch_issued, c.prefetchIssued},
      {&stats.prefetch_redundant, c.prefetchRedundant},
      {&stats.prefetch_useful, c.prefetchUseful},
      {&stats.prefetch_timely, c.prefetchTimely},
      {&stats.prefetch_dropped, c.prefetchDropped},
      {&stats.evicted_for_demand, c.evictedForDemand},
      {&stats.evicted_for_prefetch, c.evictedForPrefetch},
      {&stats.evicted_for_write, c.evictedForWrite},
      {&stats.seals, c.seals},
      {&stats.write_backs, c.writeBacks},
      {&stats.bytes_in_demand, c.bytesInDemand},
      {&stats.bytes_in_prefetch, c.bytesInPrefetch},
      {&stats.bytes_out, c.bytesOut},
      {&stats.retries, c.retries},
      {&stats.pages_lost, c.pagesLost},
      {&stats.no_space, c.noSpace},
      {&stats.stall_ns, c.stallNs},
      {&stats.table_ns, c.tableNs},
      {&stats.step_ns, c.stepNs},
      {&stats.steps, c.steps},
      {&stats.pinned_blocks, pager->pinned().held()},
      {&stats.pin_budget_blocks, pager->pinned().budget()},
      {&stats.pins_given_up, c.pinsGivenUp},
      {&stats.erasures_failed, c.erasuresFailed},
      {&stats.stored_page_bytes, pager->slow().storedPageBytes()},
      {&stats.pages_refused, c.refused},
      {&stats.codec_samples, error.samples},
      {&stats.idle_blocks, static_cast<uint64_t>(pool.idleBlocks())},
      {&stats.pages_refused_held, pager->refusedPages()},
      {&stats.slow_tiers, pager->slow().slots().members().size()},
      {&stats.digest_bytes, pager->digests() ? pager->digests()->bytes() : 0},
      {&stats.digests_made, pager->digests() ? pager->digests()->made() : 0},
      {&stats.fast_bytes_with_memory, pager->fastBytesWithMemory()},
      {&stats.fast_page_stride, pager->geometry().pageStride},
      {&stats.memory_returns, pager->stable() ? pager->stable()->calls() : 0},
      {&stats.memory_bytes_returned, pager->stable() ? pager->stable()->bytesGivenBack() : 0},
  };
  stats.codec_error = error.relativeL2;
  for (auto [field, value] : fields)
    *field = static_cast<int64_t>(value);
  return stats;
}

Status tierStats(const Pool &pool, int64_t tier, quire_tier_stats &out) {
  const Pager *pager = pool.pager();
  int64_t count = pager ? static_cast<int64_t>(pager->slow().slots().members().size()) : 0;
  if (tier < 0 || tier >= count)
    return failure(QUIRE_INVALID_ARGUMENT, "no slow tier %lld: the pool has %lld", static_cast<long long>(tier), static_cast<long long>(count));
  const TierSlots &slots = pager->slow().slots();
  size_t member = static_cast<size_t>(tier);
  const TierCounters &c = pager->tierCounters(member);
  out = {};
  out.name = slots.members()[member].name.c_str();
  out.pages = slots.members()[member].slots;
  out.pages_given_up = static_cast<int64_t>(c.givenUp);
  out.pages_used = out.pages - slots.freeOf(member) - out.pages_given_up;
  out.closed = !slots.isOpen(member);
  out.pages_in = static_cast<int64_t>(c.pagesIn);
  out.pages_out = static_cast<int64_t>(c.pagesOut);
  out.retries = static_cast<int64_t>(c.retries);
  out.pages_lost = static_cast<int64_t>(c.pagesLost);
  out.no_space = static_cast<int64_t>(c.noSpace);
  out.erasures_failed = static_cast<int64_t>(c.erasuresFailed);
  return success();
}

} // namespace quire::runtime
