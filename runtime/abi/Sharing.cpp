// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: tenants, shared prefixes, and the arena for other processes.
#include "abi/Handles.h"

using namespace quire::runtime;

extern "C" {

quire_status quire_tenant_create(quire_pool *pool, const quire_tenant_options *options, quire_tenant *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    quire_tenant_options given;
    if (!readOptions(options, given))
      return badStructSize();
    return pool->pool->createTenant(given.name, given.name_bytes, given.time_to_live_ns, *out);
  });
}

quire_status quire_tenant_destroy(quire_pool *pool, quire_tenant tenant) {
  return pool ? guarded([&] { return pool->pool->destroyTenant(tenant); }) : nullArgument("pool");
}

quire_status quire_tenant_get_stats(const quire_pool *pool, quire_tenant tenant, quire_tenant_stats *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    const Tenant *found;
    QUIRE_TRY(pool->pool->tenant(tenant, found));
    quire_tenant_stats stats = {};
    stats.queries = found->counters.queries;
    stats.query_tokens = found->counters.queryTokens;
    stats.hit_tokens = found->counters.hitTokens;
    stats.blocks_cached = found->counters.blocksCached;
    stats.blocks_published = found->counters.blocksPublished;
    stats.blocks_merged = found->counters.blocksMerged;
    stats.blocks_evicted = found->counters.blocksEvicted;
    stats.blocks_expired = found->counters.blocksExpired;
    stats.collisions = found->counters.collisions;
    stats.sequences = found->sequences;
    if (const Pager *pager = pool->pool->pager()) {
      const PagerCounters &paging = pager->tenantCounters(static_cast<uint32_t>(tenant));
      stats.demands = static_cast<int64_t>(paging.demands);
      stats.hits = static_cast<int64_t>(paging.hits);
      stats.late = static_cast<int64_t>(paging.late);
      stats.misses = static_cast<int64_t>(paging.misses);
      stats.prefetch_issued = static_cast<int64_t>(paging.prefetchIssued);
    }
    return writeResult(stats, out) ? success() : badStructSize();
  });
}

quire_status quire_pool_act_as(quire_pool *pool, quire_tenant tenant) {
  return pool ? guarded([&] { return pool->pool->actAs(tenant); }) : nullArgument("pool");
}

quire_status quire_pool_advance(quire_pool *pool, int64_t now_ns, int64_t *dropped) {
  if (!pool)
    return nullArgument("pool");
  return guarded([&] {
    int64_t count;
    QUIRE_TRY(pool->pool->advance(now_ns, count));
    if (dropped)
      *dropped = count;
    return success();
  });
}

quire_status quire_sequence_create_with(quire_pool *pool, const quire_sequence_options *options, quire_sequence *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    quire_sequence_options given;
    if (!readOptions(options, given))
      return badStructSize();
    return pool->pool->createSequence({given.tenant, given.resumed != 0}, *out);
  });
}

quire_status quire_sequence_match_prefix(quire_pool *pool, quire_sequence sequence, const int64_t *tokens, int64_t count,
                                         int64_t *matched) {
  if (!pool || (!tokens && count > 0) || !matched)
    return nullArgument("pool, tokens and matched");
  return guarded([&] { return pool->pool->matchPrefix(sequence, tokens, count, *matched); });
}

quire_status quire_sequence_publish(quire_pool *pool, quire_sequence sequence, const int64_t *tokens, int64_t count) {
  if (!pool || (!tokens && count > 0))
    return nullArgument("pool and tokens");
  return guarded([&] { return pool->pool->publish(sequence, tokens, count); });
}

quire_status quire_sequence_move(quire_pool *pool, quire_sequence sequence, quire_sequence *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] { return pool->pool->moveSequence(sequence, *out); });
}

quire_status quire_pool_export(const quire_pool *pool, int *descriptor) {
  if (!pool || !descriptor)
    return nullArgument("pool and descriptor");
  return guarded([&] { return pool->pool->exportArena(*descriptor); });
}

quire_status quire_pool_block_offset(const quire_pool *pool, int64_t layer, int32_t index, uint64_t *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    const Pool &p = *pool->pool;
    if (layer < 0 || layer >= p.layerCount() || index < 0 || index >= p.blocksTotal())
      return failure(QUIRE_INVALID_ARGUMENT, "no block %d of layer %lld", index, static_cast<long long>(layer));
    *out = p.blockOffset(layer, index);
    return success();
  });
}

} // extern "C"
