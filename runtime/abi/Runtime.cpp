// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: models, pools, sequences.
#include "abi/Handles.h"
#include "abi/SlowTier.h"

#include "model/FileReader.h"
#include "model/ModelInfo.h"

using namespace quire::runtime;

static thread_local std::string lastError;

quire_status quire::runtime::report(const Status &status) noexcept {
  if (status.ok())
    return QUIRE_OK;
  try {
    lastError = status.text().empty() ? quire_status_name(status.code()) : status.text();
  } catch (const std::bad_alloc &) {
    lastError.clear();
  }
  return status.code();
}

extern "C" {

const char *quire_last_error(void) { return lastError.c_str(); }

const char *quire_runtime_version(void) { return QUIRE_RUNTIME_VERSION; }

quire_status quire_checksum_file(const char *path, uint64_t *hash, uint64_t *bytes) {
  if (!path || !hash || !bytes)
    return nullArgument("path, hash and bytes");
  return guarded([&] {
    FileReader file;
    uint64_t found;
    QUIRE_TRY(file.open(path));
    QUIRE_TRY(file.readAndHash(nullptr, found));
    *hash = found;
    *bytes = file.size();
    return success();
  });
}

quire_status quire_model_load(const char *folder, quire_model **out) {
  if (!folder || !out)
    return nullArgument("folder and out");
  return guarded([&] {
    auto model = std::make_unique<quire_model>();
    QUIRE_TRY(Model::load(folder, model->model));
    *out = model.release();
    return success();
  });
}

quire_status quire_model_from_info(const quire_model_info *info, const void *weights, quire_model **out) {
  if (!info || !out)
    return nullArgument("info and out");
  return guarded([&] {
    auto model = std::make_unique<quire_model>();
    QUIRE_TRY(Model::wrap(*info, weights, model->model));
    *out = model.release();
    return success();
  });
}

const quire_model_info *quire_model_get_info(const quire_model *model) { return &model->model->info(); }

int64_t quire_model_block_bytes(const quire_model_info *info) { return blockBytesOf(*info); }

void quire_model_destroy(quire_model *model) { delete model; }

quire_status quire_pool_create(const quire_model_info *info, const quire_pool_options *options, quire_pool **out) {
  if (!info || !out)
    return nullArgument("info and out");
  return guarded([&] {
    quire_pool_options given;
    if (!readOptions(options, given))
      return badStructSize();
    Pool::Options wanted;
    if (given.bytes)
      wanted.bytes = given.bytes;
    wanted.order.shuffle = given.shuffle != 0;
    wanted.order.seed = given.shuffle_seed;
    wanted.poison = given.poison != 0;
    wanted.zeroOnFree = given.zero_on_free != 0;
    wanted.prefixCache = given.prefix_cache != 0;
    wanted.exportable = given.exportable != 0;
    wanted.stableVa = given.stable_va != 0;
    QUIRE_TRY(readSlowTier(*info, given.slow, wanted));
    std::unique_ptr<Pool> made;
    QUIRE_TRY(Pool::create(*info, wanted, made));
    *out = new quire_pool{std::move(made), {}};
    return success();
  });
}

void quire_pool_destroy(quire_pool *pool) { delete pool; }

quire_status quire_pool_get_stats(const quire_pool *pool, quire_pool_stats *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  const Pool &p = *pool->pool;
  quire_pool_stats stats = {};
  stats.blocks_total = p.blocksTotal();
  stats.blocks_free = p.blocksFree();
  stats.blocks_peak = p.blocksPeak();
  stats.block_bytes = p.blockBytes();
  stats.block_tokens = p.blockTokens();
  stats.sequences = p.sequenceCount();
  stats.allocations = p.allocations();
  stats.copied_bytes = p.copiedBytes();
  stats.step_blocks = p.stepBlocks();
  stats.blocks_reclaimable = p.blocksReclaimable();
  stats.reserve_blocks = p.reserveBlocks();
  stats.reserve_hits = p.reserveCounters().hits;
  stats.reserve_peak = p.reserveCounters().peak;
  stats.reserve_exhausted = p.reserveCounters().exhausted;
  stats.blocks_limit = p.blocksLimit();
  stats.compacted_blocks = static_cast<int64_t>(p.compacted().pages);
  stats.compacted_bytes = static_cast<int64_t>(p.compacted().bytes);
  stats.pruned_tokens = p.pruned().tokens;
  stats.pruned_blocks = p.pruned().blocks;
  return writeResult(stats, out) ? QUIRE_OK : report(badStructSize());
}

quire_status quire_pool_get_paging_stats(const quire_pool *pool, quire_paging_stats *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return writeResult(pagingStats(*pool->pool), out) ? QUIRE_OK : report(badStructSize());
}

quire_status quire_pool_get_tier_stats(const quire_pool *pool, int64_t tier, quire_tier_stats *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    quire_tier_stats stats;
    QUIRE_TRY(tierStats(*pool->pool, tier, stats));
    return writeResult(stats, out) ? success() : badStructSize();
  });
}

quire_status quire_pool_settle(quire_pool *pool) {
  return pool ? guarded([&] {
    if (pool->pool->pager())
      pool->pool->pager()->settle();
    return success();
  })
              : nullArgument("pool");
}

quire_status quire_pool_pin(quire_pool *pool, int64_t layer, int32_t index, int32_t write, void **address) {
  if (!pool || !address)
    return nullArgument("pool and address");
  return guarded([&] {
    char *found;
    QUIRE_TRY(pool->pool->pin(layer, index, write != 0, found));
    *address = found;
    return success();
  });
}

quire_status quire_pool_unpin(quire_pool *pool, int64_t layer, int32_t index) {
  return pool ? guarded([&] { return pool->pool->unpin(layer, index); }) : nullArgument("pool");
}

quire_status quire_pool_validate(const quire_pool *pool) {
  return pool ? guarded([&] { return pool->pool->validate(); }) : nullArgument("pool");
}

quire_status quire_pool_allocate(quire_pool *pool, int64_t count, quire_block *out) {
  if (!pool || (!out && count > 0))
    return nullArgument("pool and out");
  return guarded([&] { return pool->pool->allocate(count, out); });
}

quire_status quire_block_retain(quire_pool *pool, quire_block block) {
  return pool ? guarded([&] { return pool->pool->retain(block); }) : nullArgument("pool");
}

quire_status quire_block_release(quire_pool *pool, quire_block block) {
  return pool ? guarded([&] { return pool->pool->release(block); }) : nullArgument("pool");
}

quire_status quire_block_index(const quire_pool *pool, quire_block block, int32_t *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] { return pool->pool->index(block, *out); });
}

quire_status quire_pool_block_address(const quire_pool *pool, int64_t layer, int32_t index, void **out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    char *found;
    QUIRE_TRY(pool->pool->address(layer, index, found));
    *out = found;
    return success();
  });
}

quire_status quire_sequence_create(quire_pool *pool, quire_sequence *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] { return pool->pool->createSequence({}, *out); });
}

quire_status quire_sequence_release(quire_pool *pool, quire_sequence sequence) {
  return pool ? guarded([&] { return pool->pool->releaseSequence(sequence); }) : nullArgument("pool");
}

quire_status quire_sequence_fork(quire_pool *pool, quire_sequence sequence, int64_t length, quire_sequence *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] { return pool->pool->fork(sequence, length, *out); });
}

quire_status quire_sequence_reserve(quire_pool *pool, quire_sequence sequence, int64_t tokens) {
  return pool ? guarded([&] { return pool->pool->reserve(sequence, tokens); }) : nullArgument("pool");
}

quire_status quire_sequence_commit(quire_pool *pool, quire_sequence sequence, int64_t tokens) {
  return pool ? guarded([&] { return pool->pool->commit(sequence, tokens); }) : nullArgument("pool");
}

quire_status quire_sequence_truncate(quire_pool *pool, quire_sequence sequence, int64_t length) {
  return pool ? guarded([&] { return pool->pool->truncate(sequence, length); }) : nullArgument("pool");
}

quire_status quire_sequence_length(const quire_pool *pool, quire_sequence sequence, int64_t *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] { return pool->pool->length(sequence, *out); });
}

quire_status quire_sequence_intact(const quire_pool *pool, quire_sequence sequence, int64_t *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] { return pool->pool->intactLength(sequence, *out); });
}

quire_status quire_sequence_table(const quire_pool *pool, quire_sequence sequence, const int32_t **blocks,
                                  int64_t *count) {
  if (!pool || !blocks || !count)
    return nullArgument("pool, blocks and count");
  return guarded([&] { return pool->pool->table(sequence, *blocks, *count); });
}

} // extern "C"
