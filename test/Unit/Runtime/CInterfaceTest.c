// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface used from C: load by structure, two sequences, a fork, errors.
#include "ToyModel.h"
#include "quire/config.h"
#include "quire/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, quire_last_error());                                  \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

static int64_t largest(const float *row) {
  int64_t best = 0;
  for (int64_t i = 1; i < TOY_VOCABULARY; ++i)
    if (row[i] > row[best])
      best = i;
  return best;
}

static void addOne(void *env, int64_t begin, int64_t end) {
  int64_t *values = env;
  for (int64_t i = begin; i < end; ++i)
    ++values[i];
}

/* What a program does to a pool between steps; `length` tokens are stored. With one tier most of it only counts. */
static void tune(quire_pool *pool, quire_sequence sequence, int64_t length, int tiered) {
  quire_pool_tuning tuning;
  tuning.struct_size = sizeof(tuning);
  CHECK(quire_pool_get_tuning(pool, &tuning) == QUIRE_OK);
  CHECK(tuning.reserve_ratio == 0 && (tuning.pin_budget == 0.25) == tiered);
  tuning.time_blocks = 1;
  tuning.pin_budget = 0.5;
  CHECK(quire_pool_set_tuning(pool, &tuning) == QUIRE_OK);
  quire_dialogue_options dialogue = {sizeof(dialogue), 1, 1, NULL, 0};
  CHECK(quire_pool_set_dialogue(pool, &dialogue) == QUIRE_OK);
  CHECK(quire_sequence_end_turn(pool, sequence, length) == QUIRE_OK);
  CHECK(quire_sequence_pin(pool, sequence, 0, 1) == QUIRE_OK);
  CHECK(quire_sequence_unpin(pool, sequence, 0, 1) == QUIRE_OK);
  CHECK(quire_sequence_unload(pool, sequence, 0, length) == QUIRE_OK);
  CHECK(quire_sequence_set_importance(pool, sequence, 0, length, 0.5f) == QUIRE_OK);
  quire_pool_stats stats;
  stats.struct_size = sizeof(stats);
  CHECK(quire_pool_get_stats(pool, &stats) == QUIRE_OK && stats.blocks_limit == stats.blocks_total);
  if (!tiered) { /* the size of a pool with a slow tier is that of its pages */
    uint64_t block = (uint64_t)stats.block_bytes, used = (uint64_t)(stats.blocks_total - stats.blocks_free);
    CHECK(quire_pool_resize_fast(pool, (used - 1) * block) == QUIRE_OUT_OF_BLOCKS);
    CHECK(quire_pool_resize_fast(pool, used * block) == QUIRE_OK);
    CHECK(quire_pool_get_stats(pool, &stats) == QUIRE_OK && stats.blocks_limit == (int64_t)used && stats.blocks_free == 0);
    CHECK(quire_pool_resize_fast(pool, (uint64_t)stats.blocks_total * block) == QUIRE_OK);
  }
  quire_sequence fork;
  CHECK(quire_sequence_fork(pool, sequence, length, &fork) == QUIRE_OK);
  CHECK(quire_sequence_release(pool, fork) == QUIRE_OK);
  quire_latency_stats latency;
  latency.struct_size = sizeof(latency);
  CHECK(quire_pool_get_latency(pool, QUIRE_OPERATION_FREE, &latency) == QUIRE_OK && latency.count > 0);
  CHECK(latency.p50_ns <= latency.p99_ns && latency.p99_ns <= latency.max_ns);
  CHECK(quire_pool_get_latency(pool, QUIRE_OPERATION_ACQUIRE_HIT, &latency) == QUIRE_OK && (latency.count > 0) == tiered);
  CHECK(quire_pool_get_latency(pool, 9, &latency) == QUIRE_INVALID_ARGUMENT);
}

/* One sequence that is longer than the fast tier in all layers together, token by token; the logits of its last step. */
static void decodeOnTiers(const quire_model_info *info, quire_model *model, const char *where, int32_t stable, float *logits) {
  quire_slow_tier_options slow;
  memset(&slow, 0, sizeof(slow));
  slow.struct_size = sizeof(slow);
  slow.where = where;
  slow.bytes = where ? 1 << 20 : 0;
  quire_pool_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.bytes = stable ? 5 * 4096 : (uint64_t)(4 * quire_model_block_bytes(info));
  options.slow = where ? &slow : NULL;
  options.stable_va = stable;
  quire_pool *pool = NULL;
  CHECK(quire_pool_create(info, &options, &pool) == QUIRE_OK);
  quire_executor *executor = NULL;
  CHECK(quire_executor_create(model, pool, NULL, &executor) == QUIRE_OK);
  if (where)
    CHECK(quire_pool_trace(pool, 10000) == QUIRE_OK);
  quire_sequence sequence;
  CHECK(quire_sequence_create(pool, &sequence) == QUIRE_OK);
  int64_t one = 1, selected = 0;
  for (int64_t token = 0; token < 4 * info->block_tokens; ++token) {
    int64_t id = token % TOY_VOCABULARY;
    quire_batch batch = {sizeof(batch), 1, &sequence, &one, &id, &selected, 1};
    CHECK(quire_executor_step(executor, &batch, logits) == QUIRE_OK);
    if (token == 2 * info->block_tokens)
      tune(pool, sequence, token + 1, where != NULL);
  }
  quire_paging_stats stats;
  stats.struct_size = sizeof(stats);
  CHECK(quire_pool_get_paging_stats(pool, &stats) == QUIRE_OK);
  CHECK((stats.page_bytes > 0) == (where != NULL));
  CHECK(stats.hits + stats.late + stats.misses == stats.demands);
  CHECK(stats.fast_bytes_with_memory <= (int64_t)options.bytes);
  CHECK((stats.fast_page_stride > 0 && stats.fast_page_stride % 4096 == 0) == (stable && where));
  void *address = NULL, *pinned = NULL;
  CHECK(quire_pool_block_address(pool, 0, 0, &address) == (where && !stable ? QUIRE_INVALID_ARGUMENT : QUIRE_OK));
  CHECK(quire_pool_pin(pool, 0, 0, 0, &pinned) == QUIRE_OK && quire_pool_unpin(pool, 0, 0) == QUIRE_OK);
  CHECK((address == pinned) == (stable || !where));
  const char *text = NULL;
  CHECK(quire_doctor(pool, NULL, &text) == QUIRE_OK && strstr(text, "hit_rate"));
  CHECK(quire_metrics(pool, &text) == QUIRE_OK && strstr(text, "# TYPE"));
  CHECK(quire_pool_write_trace(pool, "") != QUIRE_OK);
  CHECK(quire_pool_set_prefetch_window(pool, -1) == QUIRE_INVALID_ARGUMENT);
  CHECK(quire_pool_set_prefetch_window(pool, 5) == QUIRE_OK);
  CHECK(quire_pool_validate(pool) == QUIRE_OK);
  quire_executor_destroy(executor);
  quire_pool_destroy(pool);
}

static void useTiers(const quire_model_info *info, quire_model *model) {
  float plain[TOY_VOCABULARY], tiered[TOY_VOCABULARY];
  decodeOnTiers(info, model, NULL, 0, plain);
  decodeOnTiers(info, model, "memory", 0, tiered);
  CHECK(memcmp(plain, tiered, sizeof(plain)) == 0);
  decodeOnTiers(info, model, "memory", 1, tiered);
  CHECK(memcmp(plain, tiered, sizeof(plain)) == 0);
  decodeOnTiers(info, model, "throttled:1us,10GB/s", 0, tiered);
  CHECK(memcmp(plain, tiered, sizeof(plain)) == 0);
  quire_slow_tier_options slow;
  memset(&slow, 0, sizeof(slow));
  slow.struct_size = sizeof(slow);
  slow.where = "tape";
  quire_pool_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.slow = &slow;
  quire_pool *pool = NULL;
  CHECK(quire_pool_create(info, &options, &pool) == QUIRE_INVALID_ARGUMENT);
  slow.where = "memory"; /* and no bytes */
  CHECK(quire_pool_create(info, &options, &pool) != QUIRE_OK);
  slow.bytes = 1 << 20;
  slow.replacement = 9;
  CHECK(quire_pool_create(info, &options, &pool) == QUIRE_INVALID_ARGUMENT);
}

/* Every token of the sequence begins with its position and the sequence's mark. */
static void fillPages(quire_sized_pool *pool, quire_sized_sequence sequence, int64_t from, int64_t length, int64_t mark) {
  for (int64_t position = from; position < length; ++position) {
    int64_t number, slot, token[2] = {position, mark};
    quire_sized_page page;
    page.struct_size = sizeof(page);
    CHECK(quire_sized_sequence_locate(pool, sequence, position, &number, &slot) == QUIRE_OK);
    CHECK(quire_sized_sequence_page(pool, sequence, number, &page) == QUIRE_OK);
    CHECK(page.first + slot == position && slot < page.slots);
    memcpy((char *)page.address + slot * 512, token, sizeof(token));
  }
}

static void checkPages(quire_sized_pool *pool, quire_sized_sequence sequence, int64_t mark) {
  quire_sized_sequence_stats stats;
  stats.struct_size = sizeof(stats);
  CHECK(quire_sized_sequence_get_stats(pool, sequence, &stats) == QUIRE_OK);
  for (int64_t number = 0; number < stats.pages; ++number) {
    quire_sized_page page;
    page.struct_size = sizeof(page);
    CHECK(quire_sized_sequence_page(pool, sequence, number, &page) == QUIRE_OK);
    for (int64_t slot = 0; slot < page.slots && page.first + slot < stats.length; ++slot) {
      int64_t token[2];
      memcpy(token, (char *)page.address + slot * 512, sizeof(token));
      CHECK(token[0] == page.first + slot && token[1] == mark);
    }
  }
}

/* Growing pages of two sequences, of which one ends; then the other moves together. Sizes come from a file. */
static void usePagesOfSeveralSizes(const char *folder) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/sizes.yaml", folder);
  FILE *file = fopen(path, "w");
  CHECK(file && fputs("block: {adaptive: {base: 8KiB, double_every: 512, max: 64KiB}}\n", file) >= 0 && fclose(file) == 0);
  quire_sized_pool_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.bytes = 2 << 20; /* as much as the two need */
  options.token_bytes = 512;
  CHECK(quire_config_read_sizes(path, &options) == QUIRE_OK);
  CHECK(options.base == 8 << 10 && options.double_every == 512 && options.max == 64 << 10 && options.chapter_page == 1 << 20);
  remove(path);
  CHECK(quire_config_read_sizes(path, &options) == QUIRE_IO_ERROR);

  quire_sized_pool *pool = NULL;
  CHECK(quire_sized_pool_create(&options, &pool) == QUIRE_OK);
  quire_sized_sequence sequences[2];
  for (int i = 0; i < 2; ++i)
    CHECK(quire_sized_sequence_create(pool, &sequences[i]) == QUIRE_OK);
  for (int64_t length = 0; length < 2000; length += 100)
    for (int i = 0; i < 2; ++i) {
      CHECK(quire_sized_sequence_append(pool, sequences[i], 100) == QUIRE_OK);
      fillPages(pool, sequences[i], length, length + 100, i + 1);
    }
  quire_sized_page first, last;
  first.struct_size = last.struct_size = sizeof(quire_sized_page);
  quire_sized_sequence_stats stats;
  stats.struct_size = sizeof(stats);
  CHECK(quire_sized_sequence_get_stats(pool, sequences[1], &stats) == QUIRE_OK && stats.length == 2000);
  CHECK(quire_sized_sequence_page(pool, sequences[1], 0, &first) == QUIRE_OK && first.bytes == 8 << 10);
  CHECK(quire_sized_sequence_page(pool, sequences[1], stats.pages - 1, &last) == QUIRE_OK && last.bytes == 64 << 10);
  CHECK(quire_sized_sequence_release(pool, sequences[0]) == QUIRE_OK);
  CHECK(quire_sized_sequence_append(pool, sequences[0], 1) == QUIRE_STALE_HANDLE);

  quire_sized_pool_stats before, after;
  before.struct_size = after.struct_size = sizeof(before);
  CHECK(quire_sized_pool_get_stats(pool, &before) == QUIRE_OK && before.sequences == 1 && before.tokens == 2000);
  quire_compaction moved = {sizeof(moved), 0, 0};
  CHECK(quire_sized_pool_compact(pool, &moved) == QUIRE_OK && moved.blocks > 0);
  CHECK(quire_sized_pool_get_stats(pool, &after) == QUIRE_OK && after.compacted_pages == moved.blocks);
  CHECK(after.bytes_free == before.bytes_free && after.largest_free > before.largest_free && after.fragmentation < before.fragmentation);
  int64_t generation = stats.generation;
  CHECK(quire_sized_sequence_get_stats(pool, sequences[1], &stats) == QUIRE_OK && stats.generation == generation + moved.blocks);
  checkPages(pool, sequences[1], 2);
  CHECK(quire_sized_pool_validate(pool) == QUIRE_OK);
  quire_sized_pool_destroy(pool);
}

int main(void) {
  _Alignas(64) static int32_t weights[TOY_VOCABULARY];
  for (int64_t v = 0; v < TOY_VOCABULARY; ++v)
    weights[v] = toyWeight(v);
  const quire_model_info *info = quire_model_query(QUIRE_MODEL_ABI_VERSION);
  quire_model *model = NULL;
  CHECK(quire_model_from_info(info, weights, &model) == QUIRE_OK);

  quire_pool_options poolOptions;
  memset(&poolOptions, 0, sizeof(poolOptions));
  poolOptions.struct_size = sizeof(poolOptions);
  poolOptions.bytes = (uint64_t)(8 * quire_model_block_bytes(info));
  poolOptions.poison = 1;
  quire_pool *pool = NULL;
  CHECK(quire_pool_create(info, &poolOptions, &pool) == QUIRE_OK);
  quire_executor *executor = NULL;
  CHECK(quire_executor_create(model, pool, NULL, &executor) == QUIRE_OK);

  quire_sequence sequences[2];
  CHECK(quire_sequence_create(pool, &sequences[0]) == QUIRE_OK);
  CHECK(quire_sequence_create(pool, &sequences[1]) == QUIRE_OK);
  int64_t tokens[] = {1, 2, 3, 4}, counts[] = {1, 3}, selected[] = {0, 3};
  float logits[2][TOY_VOCABULARY];
  quire_batch batch;
  memset(&batch, 0, sizeof(batch));
  batch.struct_size = sizeof(batch);
  batch.sequence_count = 2;
  batch.sequences = sequences;
  batch.token_counts = counts;
  batch.tokens = tokens;
  batch.selected = selected;
  batch.selected_count = 2;
  CHECK(quire_executor_step(executor, &batch, logits[0]) == QUIRE_OK);
  int64_t first = largest(logits[1]);

  /* The same prompt in two pieces, on a fork, gives the same logits. */
  quire_sequence fork;
  CHECK(quire_sequence_fork(pool, sequences[1], 1, &fork) == QUIRE_OK);
  batch.sequence_count = 1;
  batch.sequences = &fork;
  counts[0] = 2;
  selected[0] = 1;
  batch.tokens = tokens + 2;
  batch.selected_count = 1;
  float again[TOY_VOCABULARY];
  CHECK(quire_executor_step(executor, &batch, again) == QUIRE_OK);
  CHECK(largest(again) == first);
  CHECK(memcmp(again, logits[1], sizeof(again)) == 0);

  useTiers(info, model);
  const char *folder = getenv("TMPDIR");
  usePagesOfSeveralSizes(folder ? folder : "/tmp");

  int64_t values[100] = {0};
  CHECK(quire_executor_parallel(executor, 100, 1, addOne, values) == QUIRE_OK);
  for (int i = 0; i < 100; ++i)
    CHECK(values[i] == 1);

  quire_pool_stats stats;
  stats.struct_size = sizeof(stats);
  CHECK(quire_pool_get_stats(pool, &stats) == QUIRE_OK);
  CHECK(stats.blocks_total == 8 && stats.sequences == 3 && stats.blocks_free == 5);
  /* A program with an older, shorter structure gets what it knows. */
  memset(&stats, 0x55, sizeof(stats));
  stats.struct_size = offsetof(quire_pool_stats, blocks_peak);
  CHECK(quire_pool_get_stats(pool, &stats) == QUIRE_OK);
  CHECK(stats.blocks_total == 8 && stats.blocks_peak == 0x5555555555555555);

  CHECK(quire_sequence_release(pool, fork) == QUIRE_OK);
  CHECK(quire_sequence_release(pool, fork) == QUIRE_STALE_HANDLE);
  CHECK(strstr(quire_last_error(), "was released") != NULL);
  CHECK(strcmp(quire_status_name(QUIRE_OUT_OF_BLOCKS), "out of blocks") == 0);
  CHECK(strcmp(quire_status_name((quire_status)999), "unknown status") == 0);
  CHECK(quire_pool_validate(pool) == QUIRE_OK);

  /* Any order of destruction. */
  quire_model_destroy(model);
  quire_pool_destroy(pool);
  quire_executor_destroy(executor);
  quire_model_destroy(NULL);
  puts("ok");
  return 0;
}
