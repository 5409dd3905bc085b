// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: what may change while a pool is in use, and what stays in its fast tier.
#include "abi/Handles.h"
#include "residency/TfIdf.h"

using namespace quire::runtime;

static_assert(static_cast<int>(PrefetchStrategy::Hybrid) == QUIRE_PREFETCH_HYBRID &&
                  static_cast<int>(PrefetchPredictor::SeedHotspot) == QUIRE_PREDICT_SEED_HOTSPOT,
              "the same numbers");

static quire_pool_tuning tuningOf(const Pool &pool) {
  quire_pool_tuning tuning = {};
  tuning.reserve_ratio = pool.reserveRatio();
  tuning.time_blocks = pool.blocksAreTimed();
  const Pager *pager = pool.pager();
  if (!pager)
    return tuning;
  tuning.pin_budget = pager->pinBudget();
  const Prefetching &prefetch = pager->prefetching();
  tuning.prefetch_strategy = static_cast<int64_t>(prefetch.strategy);
  tuning.prefetch_predictor = static_cast<int64_t>(prefetch.predictor);
  tuning.prefetch_topk = prefetch.topk;
  tuning.prefetch_window = pager->prefetchWindow();
  tuning.prefetch_bytes = prefetch.bytes;
  tuning.idle_steps = pool.idleSteps();
  return tuning;
}

static Status checkShare(const char *name, double value, double most) {
  if (value >= 0 && value <= most) // nor NaN
    return success();
  return failure(QUIRE_INVALID_ARGUMENT, "%s: expected 0 to %g, but got %g", name, most, value);
}

static Prefetching prefetchingOf(const quire_pool_tuning &tuning) {
  return {static_cast<PrefetchStrategy>(tuning.prefetch_strategy), static_cast<PrefetchPredictor>(tuning.prefetch_predictor),
          static_cast<uint32_t>(tuning.prefetch_topk), tuning.prefetch_bytes};
}

static Status checkTuning(const quire_pool_tuning &tuning, const Pool &pool) {
  QUIRE_TRY(checkShare("reserve_ratio", tuning.reserve_ratio, 0.5));
  QUIRE_TRY(checkShare("pin_budget", tuning.pin_budget, 1));
  if (tuning.prefetch_strategy < QUIRE_PREFETCH_NONE || tuning.prefetch_strategy > QUIRE_PREFETCH_HYBRID)
    return failure(QUIRE_INVALID_ARGUMENT, "prefetch_strategy: expected 0 to 3, but got %lld",
                   static_cast<long long>(tuning.prefetch_strategy));
  if (tuning.prefetch_predictor < QUIRE_PREDICT_LAYER_AHEAD || tuning.prefetch_predictor > QUIRE_PREDICT_SEED_HOTSPOT)
    return failure(QUIRE_INVALID_ARGUMENT, "prefetch_predictor: expected 0 or 1, but got %lld",
                   static_cast<long long>(tuning.prefetch_predictor));
  if (pool.pager() && (tuning.prefetch_topk < 1 || tuning.prefetch_topk > INT32_MAX))
    return failure(QUIRE_INVALID_ARGUMENT, "prefetch_topk: expected at least 1 block, but got %lld",
                   static_cast<long long>(tuning.prefetch_topk));
  if (tuning.prefetch_window < 0 || tuning.prefetch_window > INT32_MAX)
    return failure(QUIRE_INVALID_ARGUMENT, "prefetch_window: expected at least 0 pages, but got %lld",
                   static_cast<long long>(tuning.prefetch_window));
  if (tuning.idle_steps < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "idle_steps: expected at least 0 steps, but got %lld", static_cast<long long>(tuning.idle_steps));
  return pool.pager() ? pool.checkPrefetch(prefetchingOf(tuning)) : success();
}

static void apply(const quire_pool_tuning &tuning, Pool &pool) {
  pool.setReserve(tuning.reserve_ratio);
  pool.timeBlocks(tuning.time_blocks != 0);
  pool.setIdleSteps(tuning.idle_steps);
  Pager *pager = pool.pager();
  if (!pager)
    return;
  pager->setPinBudget(tuning.pin_budget);
  pager->setPrefetchWindow(tuning.prefetch_window);
  pager->setPrefetch(prefetchingOf(tuning));
}

extern "C" {

quire_status quire_pool_get_tuning(const quire_pool *pool, quire_pool_tuning *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return writeResult(tuningOf(*pool->pool), out) ? QUIRE_OK : report(badStructSize());
}

quire_status quire_pool_set_tuning(quire_pool *pool, const quire_pool_tuning *tuning) {
  if (!pool || !tuning)
    return nullArgument("pool and tuning");
  return guarded([&] {
    if (tuning->struct_size < sizeof(size_t) || tuning->struct_size > 4096)
      return badStructSize();
    quire_pool_tuning wanted = tuningOf(*pool->pool);
    std::memcpy(&wanted, tuning, std::min(tuning->struct_size, sizeof(wanted)));
    QUIRE_TRY(checkTuning(wanted, *pool->pool));
    apply(wanted, *pool->pool);
    return success();
  });
}

quire_status quire_pool_resize_fast(quire_pool *pool, uint64_t bytes) {
  return pool ? guarded([&] { return pool->pool->resizeFast(bytes); }) : nullArgument("pool");
}

quire_status quire_pool_compact(quire_pool *pool, quire_compaction *out) {
  if (!pool)
    return nullArgument("pool");
  return guarded([&] {
    if (quire_compaction ignored; out && !readOptions(out, ignored))
      return badStructSize();
    Compaction done;
    QUIRE_TRY(pool->pool->compact(done));
    if (out)
      writeResult(quire_compaction{0, static_cast<int64_t>(done.pages), static_cast<int64_t>(done.bytes)}, out);
    return success();
  });
}

quire_status quire_pool_set_dialogue(quire_pool *pool, const quire_dialogue_options *options) {
  if (!pool)
    return nullArgument("pool");
  return guarded([&] {
    quire_dialogue_options given;
    if (!readOptions(options, given))
      return badStructSize();
    if (given.recent_turns < 0 || given.recent_pages < 0 || given.important_count < 0 ||
        (given.important_count > 0 && !given.important_pages))
      return failure(QUIRE_INVALID_ARGUMENT, "dialogue: expected counts of at least 0, and important pages");
    Pool::DialogueRules rules{given.recent_turns, given.recent_pages, {}};
    for (int64_t i = 0; i < given.important_count; ++i) {
      if (given.important_pages[i] < 0)
        return failure(QUIRE_INVALID_ARGUMENT, "important_pages[%lld]: expected at least 0, but got %lld",
                       static_cast<long long>(i), static_cast<long long>(given.important_pages[i]));
      rules.importantPages.push_back(given.important_pages[i]);
    }
    pool->pool->setDialogue(std::move(rules));
    return success();
  });
}

quire_status quire_sequence_pin(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end) {
  return pool ? guarded([&] { return pool->pool->pinRange(sequence, begin, end); }) : nullArgument("pool");
}

quire_status quire_sequence_unpin(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end) {
  return pool ? guarded([&] { return pool->pool->unpinRange(sequence, begin, end); }) : nullArgument("pool");
}

quire_status quire_sequence_unload(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end) {
  return pool ? guarded([&] { return pool->pool->unload(sequence, begin, end); }) : nullArgument("pool");
}

quire_status quire_sequence_prune(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end,
                                  const quire_prune_options *options, quire_pruning *out) {
  if (!pool || !options)
    return nullArgument("pool and options");
  return guarded([&] {
    quire_prune_options given;
    if (quire_pruning ignored; !readOptions(options, given) || (out && !readOptions(out, ignored)))
      return badStructSize();
    if ((!given.scores && end > begin) || given.keep_count < 0 || (given.keep_count > 0 && !given.keep))
      return failure(QUIRE_INVALID_ARGUMENT, "prune: expected scores of the range, and a count of at least 0 of ranges to keep");
    Pool::Pruning wanted{given.ratio, given.scores, {}};
    for (int64_t i = 0; i < given.keep_count; ++i)
      wanted.keep.push_back({given.keep[2 * i], given.keep[2 * i + 1]});
    Pool::Pruned done;
    QUIRE_TRY(pool->pool->prune(sequence, begin, end, wanted, done));
    if (out)
      writeResult(quire_pruning{0, done.tokens, done.blocks}, out);
    return success();
  });
}

quire_status quire_sequence_positions(const quire_pool *pool, quire_sequence sequence, const int64_t **positions, int64_t *next) {
  if (!pool || !positions || !next)
    return nullArgument("pool, positions and next");
  return guarded([&] { return pool->pool->positions(sequence, *positions, *next); });
}

quire_status quire_sequence_set_importance(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end,
                                           float importance) {
  return pool ? guarded([&] { return pool->pool->setImportance(sequence, begin, end, importance); })
              : nullArgument("pool");
}

quire_status quire_sequence_prefetch_by_query(quire_pool *pool, quire_sequence sequence, int64_t layer, const float *query,
                                              int64_t query_heads, int64_t count, int64_t *places, double *bounds, int64_t *found) {
  if (!pool || !query || !found || (count > 0 && !places))
    return nullArgument("pool, query, places and found");
  return guarded([&] { return pool->pool->prefetchByQuery(sequence, {layer, query, query_heads}, count, places, bounds, *found); });
}

quire_status quire_tfidf(const int64_t *tokens, const int64_t *ends, int64_t count, float *scores) {
  if (count > 0 && (!tokens || !ends || !scores))
    return nullArgument("tokens, ends and scores");
  return guarded([&] {
    for (int64_t i = 0; i < count; ++i)
      if (ends[i] < (i ? ends[i - 1] : 0))
        return failure(QUIRE_INVALID_ARGUMENT, "ends[%lld]: expected at least %lld, but got %lld",
                       static_cast<long long>(i), static_cast<long long>(i ? ends[i - 1] : 0),
                       static_cast<long long>(ends[i]));
    if (count > 0)
      tfidf(tokens, ends, static_cast<size_t>(count), scores);
    return success();
  });
}

quire_status quire_sequence_end_turn(quire_pool *pool, quire_sequence sequence, int64_t end) {
  return pool ? guarded([&] { return pool->pool->endTurn(sequence, end); }) : nullArgument("pool");
}

} // extern "C"
