// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Descriptions of the shapes, their steps, pools and executors.
#include "ShapeModel.h"

#include "compress/KvBytes.h"
#include "core/Random.h"
#include "model/ModelInfo.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace quire::kvbench {

static int64_t alignTo64(int64_t bytes) { return (bytes + 63) & ~int64_t(63); }

int64_t Shape::tokenBytes() const {
  double bytes = static_cast<double>(runtime::storedBytes(element, 1));
  return static_cast<int64_t>(runtime::kvBytes({layers, kvHeads, headDim, bytes}, 1));
}

ShapeModel::ShapeModel(const Shape &shape, Work work) {
  int64_t keys = shape.kvHeads * shape.blockTokens * runtime::storedBytes(shape.element, shape.headDim);
  int64_t lanes = shape.blockTokens % 16 == 0 ? 16 : 1;
  layers_.assign(static_cast<size_t>(shape.layers),
                 {shape.kvHeads, shape.headDim, shape.headDim, shape.element, lanes, keys, alignTo64(2 * keys), 0, 0, 0});
  info_.struct_size = sizeof(info_);
  info_.abi_version = QUIRE_MODEL_ABI_VERSION;
  info_.vocabulary = 1;
  info_.token_limit = int64_t(1) << 30;
  info_.max_positions = shape.maxPositions;
  info_.block_tokens = shape.blockTokens;
  info_.layer_count = shape.layers;
  info_.layers = layers_.data();
  info_.weights_bytes = sizeof(Plan);
  info_.step = step;
  plan_.info = &info_;
  plan_.work = work;
  quire_model *model = nullptr;
  check(quire_model_from_info(&info_, &plan_, &model));
  model_.reset(model);
}

struct ShapeModel::Reading {
  const quire_step &step;
  const quire_kv_view &view;
  int64_t blockTokens, blockBytes;
};

/// Iteration i is block i % stride of sequence i / stride.
void ShapeModel::read(void *env, int64_t begin, int64_t end) {
  const Reading &reading = *static_cast<const Reading *>(env);
  uint64_t sum = 0;
  for (int64_t i = begin; i < end; ++i) {
    if (i % reading.step.table_stride * reading.blockTokens >= reading.step.past_lens[i / reading.step.table_stride])
      continue;
    const char *block = reading.view.base + reading.view.tables[i] * reading.view.block_stride;
    const uint64_t *words = reinterpret_cast<const uint64_t *>(block);
    for (int64_t at = 0; at < reading.blockBytes / 8; ++at)
      sum += words[at];
  }
  asm volatile("" : : "r"(sum)); // the sum is wanted
}

static uint64_t markOf(int64_t id, int64_t layer, int64_t position) {
  uint64_t state = static_cast<uint64_t>(id * 1'000'003 + layer) * 0x100000001b3u + static_cast<uint64_t>(position);
  return runtime::splitMix(state);
}

/// A position has an equal share of its block, filled with one word.
void ShapeModel::mark(const quire_step &step, const Plan &plan, int64_t layer, const quire_kv_view &view) {
  int64_t blockTokens = plan.info->block_tokens, words = plan.info->layers[layer].block_bytes / blockTokens / 8;
  auto place = [&](int64_t sequence, int64_t position) {
    int64_t block = view.tables[sequence * step.table_stride + position / blockTokens];
    return reinterpret_cast<uint64_t *>(view.base + block * view.block_stride) + position % blockTokens * words;
  };
  for (int64_t sequence = 0; sequence < step.sequences; ++sequence) {
    int64_t id = step.ids[step.query_starts[sequence]], past = step.past_lens[sequence];
    int64_t rows = step.query_starts[sequence + 1] - step.query_starts[sequence];
    for (int64_t position = past; position < past + rows; ++position)
      std::fill_n(place(sequence, position), words, markOf(id, layer, position));
    for (int64_t position = 0; position < past; ++position) {
      const uint64_t *stored = place(sequence, position);
      uint64_t wanted = markOf(id, layer, position);
      plan.wrongBytes += 8 * std::count_if(stored, stored + words, [&](uint64_t word) { return word != wanted; });
    }
  }
}

void ShapeModel::step(const quire_step *step) {
  const Plan &plan = *reinterpret_cast<const Plan *>(step->weights);
  const quire_model_info &info = *plan.info;
  const quire_runtime_table &runtime = *step->runtime;
  for (int64_t layer = 0; layer < info.layer_count; ++layer) {
    quire_kv_view view;
    runtime.acquire(step->context, layer, &view);
    runtime.prefetch(step->context, layer + 1, 0, -1);
    if (plan.work == Work::Read) {
      Reading reading{*step, view, info.block_tokens, info.layers[layer].block_bytes};
      runtime.parallel(step->context, step->sequences * step->table_stride, 1, read, &reading);
    }
    if (plan.work == Work::Mark)
      mark(*step, plan, layer, view);
    runtime.release(step->context, layer);
  }
  std::fill_n(step->logits, step->selected_count, 0.0f);
}

void check(quire_status status) {
  if (status == QUIRE_OK)
    return;
  std::fprintf(stderr, "error: %s\n", quire_last_error());
  std::exit(1);
}

ShapePool::ShapePool(const ShapeModel &model, const Options &options) : info_(model.info()) {
  uint64_t blockBytes = static_cast<uint64_t>(quire_model_block_bytes(&info_));
  quire_slow_tier_options slow = {};
  slow.struct_size = sizeof(slow);
  slow.where = options.slowTier;
  slow.bytes = static_cast<uint64_t>(options.slowBlocks) * blockBytes;
  quire_pool_options poolOptions = {};
  poolOptions.struct_size = sizeof(poolOptions);
  poolOptions.bytes = static_cast<uint64_t>(options.blocks) * blockBytes;
  poolOptions.prefix_cache = options.prefixCache;
  poolOptions.stable_va = options.stableVa;
  poolOptions.slow = options.slowTier ? &slow : nullptr;
  quire_pool *pool = nullptr;
  check(quire_pool_create(&info_, &poolOptions, &pool));
  pool_.reset(pool);
}

quire_pool_stats ShapePool::stats() const {
  quire_pool_stats stats = {};
  stats.struct_size = sizeof(stats);
  check(quire_pool_get_stats(get(), &stats));
  return stats;
}

quire_paging_stats ShapePool::pagingStats() const {
  quire_paging_stats stats = {};
  stats.struct_size = sizeof(stats);
  check(quire_pool_get_paging_stats(get(), &stats));
  return stats;
}

serving::ExecutorPointer ShapePool::executor(const ShapeModel &model, int64_t maxTokens, int64_t maxSequences,
                                             int64_t threads) const {
  quire_executor_options options = {};
  options.struct_size = sizeof(options);
  options.threads = threads;
  options.max_tokens = maxTokens;
  options.max_sequences = maxSequences;
  quire_executor *executor = nullptr;
  check(quire_executor_create(model.model(), get(), &options, &executor));
  return serving::ExecutorPointer(executor);
}

void runStep(quire_executor *executor, const std::vector<quire_sequence> &sequences, int64_t tokens) {
  std::vector<StepRow> rows;
  for (quire_sequence sequence : sequences)
    rows.push_back({sequence, tokens, 0});
  check(tryStep(executor, rows));
}

quire_status tryStep(quire_executor *executor, const std::vector<StepRow> &rows) {
  std::vector<quire_sequence> sequences;
  std::vector<int64_t> counts, ids;
  for (const StepRow &row : rows) {
    sequences.push_back(row.sequence);
    counts.push_back(row.tokens);
    ids.insert(ids.end(), static_cast<size_t>(row.tokens), row.id);
  }
  quire_batch batch = {};
  batch.struct_size = sizeof(batch);
  batch.sequence_count = static_cast<int64_t>(sequences.size());
  batch.sequences = sequences.data();
  batch.token_counts = counts.data();
  batch.tokens = ids.data();
  return quire_executor_step(executor, &batch, nullptr);
}

} // namespace quire::kvbench
