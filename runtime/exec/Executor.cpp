// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks a batch, lays out its rows, calls the model. After creation nothing here touches the heap unless it fails.
#include "exec/Executor.h"

#include "model/ModelInfo.h"

#include <algorithm>
#include <cstring>

namespace quire::runtime {

static long long ll(int64_t value) { return static_cast<long long>(value); }

static constexpr int64_t maxThreads = 1024;
static constexpr int64_t maxRows = int64_t(1) << 31;

/// Entries past the end of a table; a model that uses one reads outside the pool
/// or is refused, but never reads another sequence's block unseen.
static constexpr int32_t noBlock = -1;

/// Code may read ahead in a table for its prefetches; that many entries follow
/// the last one.
static constexpr int64_t tableSlack = 64;

Executor::Executor(std::shared_ptr<Model> model, std::shared_ptr<Pool> pool, const Options &options)
    : model_(std::move(model)), pool_(std::move(pool)), options_(options), table_(), threads_(options.threads),
      start_(std::chrono::steady_clock::now()), positions_(static_cast<size_t>(options.maxTokens)),
      places_(static_cast<size_t>(options.maxTokens)),
      sequenceOf_(static_cast<size_t>(options.maxTokens)), queryStarts_(static_cast<size_t>(options.maxSequences + 1)),
      pastLens_(static_cast<size_t>(options.maxSequences)), firstPositions_(static_cast<size_t>(options.maxSequences)),
      layerOfPositions_(layerOfPositions(model_->info().layers, model_->info().layer_count)), distinct_(static_cast<size_t>(options.maxSequences)),
      tenants_(static_cast<size_t>(options.maxSequences)),
      blockMarks_(static_cast<size_t>(pool_->pager() ? pool_->blocksTotal() : 0)),
      held_(new std::atomic<int64_t>[static_cast<size_t>(model_->info().layer_count)]),
      trace_(static_cast<size_t>(options.traceCapacity)) {
  table_.struct_size = sizeof(table_);
  table_.abi_version = QUIRE_MODEL_ABI_VERSION;
  table_.parallel = onParallel;
  table_.acquire = onAcquire;
  table_.release = onRelease;
  table_.prefetch = onPrefetch;
  for (int64_t layer = 0; layer < model_->info().layer_count; ++layer)
    held_[layer].store(0, std::memory_order_relaxed);
}

Status Executor::create(std::shared_ptr<Model> model, std::shared_ptr<Pool> pool, const Options &given,
                        std::unique_ptr<Executor> &out) {
  Options options = given;
  if (options.threads == 0)
    options.threads = std::min(availableThreads(), maxThreads);
  if (options.threads < 1 || options.threads > maxThreads)
    return failure(QUIRE_INVALID_ARGUMENT, "expected 1 to %lld threads, but got %lld", ll(maxThreads),
                   ll(options.threads));
  if (options.maxTokens < 1 || options.maxTokens > maxRows || options.maxSequences < 1 ||
      options.maxSequences > maxRows || options.traceCapacity < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "expected max_tokens and max_sequences of 1 to %lld, but got %lld and %lld",
                   ll(maxRows), ll(options.maxTokens), ll(options.maxSequences));
  const quire_model_info &info = model->info();
  bool fits = pool->layerCount() == info.layer_count && pool->blockTokens() == info.block_tokens;
  for (int64_t layer = 0; fits && layer < info.layer_count; ++layer)
    fits = pool->layerBlockBytes(layer) == info.layers[layer].block_bytes;
  if (!fits)
    return failure(QUIRE_INVALID_ARGUMENT, "the pool was made for a model of another shape");

  std::unique_ptr<Executor> executor(new Executor(model, pool, options));
  int64_t scratch;
  if (__builtin_mul_overflow(options.maxTokens, std::max(info.scratch_per_token, info.scratch_per_selected),
                             &scratch) ||
      scratch > INT64_MAX / 4)
    return failure(QUIRE_OUT_OF_MEMORY, "scratch for steps of %lld tokens is too large", ll(options.maxTokens));
  QUIRE_TRY(executor->scratch_.map(static_cast<size_t>(scratchBytes(info, options.maxTokens, options.maxTokens)),
                                   MappedMemory::Pages::Huge));
  QUIRE_TRY(executor->scratch_.populate());
  int64_t stride = pool->blocksTotal();
  if (info.max_positions >= 0)
    stride = std::min(stride, pool->blocksFor(info.max_positions));
  int64_t entries;
  if (__builtin_mul_overflow(options.maxSequences, stride, &entries) || entries > INT64_MAX / 16)
    return failure(QUIRE_OUT_OF_MEMORY, "block tables of %lld sequences are too large", ll(options.maxSequences));
  size_t tableBytes = static_cast<size_t>(entries + tableSlack) * sizeof(int32_t);
  QUIRE_TRY(executor->tables_.map(tableBytes, MappedMemory::Pages::Small));
  if (Pager *pager = pool->pager()) {
    pager->prepare(options.maxSequences);
    QUIRE_TRY(executor->slots_.map(tableBytes, MappedMemory::Pages::Small));
    QUIRE_TRY(executor->slots_.populate());
  }
  executor->mostBlocks_ = stride;
  QUIRE_TRY(executor->observeIfWanted());
  out = std::move(executor);
  return success();
}

/// A pool may begin to want it while it is used; the next step then makes room for it, once.
Status Executor::observeIfWanted() {
  if (observation_ || (!options_.observe && !pool_->wantsAttention()))
    return success();
  auto observation = std::make_unique<Observation>();
  QUIRE_TRY(observation->create(model_->info(), options_.maxSequences, mostBlocks_));
  observation_ = std::move(observation);
  return success();
}

Status Executor::checkShape(int64_t sequences, const int64_t *tokenCounts, int64_t &tokens) const {
  if (sequences < 1 || sequences > options_.maxSequences)
    return failure(QUIRE_INVALID_ARGUMENT, "expected 1 to %lld sequences, but got %lld", ll(options_.maxSequences),
                   ll(sequences));
  if (!tokenCounts)
    return failure(QUIRE_INVALID_ARGUMENT, "expected token_counts, but got null");
  tokens = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    if (tokenCounts[i] < 1 || tokenCounts[i] > options_.maxTokens - tokens)
      return failure(QUIRE_INVALID_ARGUMENT, "token_counts[%lld]: expected 1 to %lld, but got %lld", ll(i),
                     ll(options_.maxTokens - tokens), ll(tokenCounts[i]));
    tokens += tokenCounts[i];
  }
  return success();
}

Status Executor::checkTokens(const int64_t *ids, int64_t tokens) const {
  if (!ids)
    return failure(QUIRE_INVALID_ARGUMENT, "expected tokens, but got null");
  int64_t limit = model_->info().token_limit;
  for (int64_t i = 0; i < tokens; ++i)
    if (ids[i] < 0 || ids[i] >= limit)
      return failure(QUIRE_INVALID_ARGUMENT, "tokens[%lld]: expected 0 to %lld, but got %lld", ll(i), ll(limit - 1),
                     ll(ids[i]));
  return success();
}

Status Executor::checkSelection(const int64_t *selected, int64_t count, int64_t tokens, const float *logits) const {
  if (count < 0 || count > tokens)
    return failure(QUIRE_INVALID_ARGUMENT, "selected_count: expected 0 to %lld, but got %lld", ll(tokens), ll(count));
  if (count > 0 && (!selected || !logits))
    return failure(QUIRE_INVALID_ARGUMENT, "expected selected and logits, but got null");
  for (int64_t i = 0; i < count; ++i)
    if (selected[i] < (i ? selected[i - 1] + 1 : 0) || selected[i] >= tokens)
      return failure(QUIRE_INVALID_ARGUMENT, "selected[%lld]: expected ascending rows below %lld, but got %lld", ll(i),
                     ll(tokens), ll(selected[i]));
  return success();
}

void Executor::describeRows(int64_t sequences, const int64_t *tokenCounts, const int64_t *pastLens, const int64_t *firstPositions) {
  int64_t row = 0;
  for (int64_t s = 0; s < sequences; ++s) {
    queryStarts_[static_cast<size_t>(s)] = row;
    for (int64_t i = 0; i < tokenCounts[s]; ++i, ++row) {
      positions_[static_cast<size_t>(row)] = firstPositions[s] + i;
      places_[static_cast<size_t>(row)] = pastLens[s] + i;
      sequenceOf_[static_cast<size_t>(row)] = s;
    }
  }
  queryStarts_[static_cast<size_t>(sequences)] = row;
}

/// With a slow tier, before anything is reserved: whether the step's blocks, of
/// which `fresh` are to be reserved, fit into the fast one.
Status Executor::checkStepBlocks(const quire_batch &batch, int64_t fresh) {
  if (!pool_->pager())
    return success();
  if (++stepMark_ == 0) {
    std::fill(blockMarks_.begin(), blockMarks_.end(), 0);
    stepMark_ = 1;
  }
  int64_t distinct = fresh;
  for (int64_t s = 0; s < batch.sequence_count; ++s) {
    int64_t length, cost, count;
    const int32_t *blocks;
    QUIRE_TRY(pool_->length(batch.sequences[s], length));
    QUIRE_TRY(pool_->reserveCost(batch.sequences[s], batch.token_counts[s], cost));
    QUIRE_TRY(pool_->table(batch.sequences[s], blocks, count));
    int64_t used = pool_->blocksFor(length + batch.token_counts[s]), kept = std::min(count, used);
    bool copied = cost > used - kept; // the block of the first new token gives way to its copy
    for (int64_t i = 0; i < kept; ++i) {
      if (copied && i == length / pool_->blockTokens())
        continue;
      uint32_t &mark = blockMarks_[static_cast<size_t>(blocks[i])];
      distinct += mark != stepMark_;
      mark = stepMark_;
    }
  }
  return pool_->pager()->checkStep(distinct);
}

/// Whether code of this model finds the keys of the sequence where it looks for them.
Status Executor::checkPlaces(quire_sequence sequence, int64_t index) {
  const int64_t *positions;
  int64_t length, next;
  QUIRE_TRY(pool_->length(sequence, length));
  QUIRE_TRY(pool_->positions(sequence, positions, next));
  if (next != length && layerOfPositions_ >= 0)
    return failure(QUIRE_INVALID_ARGUMENT, "sequences[%lld]: %lld tokens were pruned, but layer %lld of the model takes the place of a key for its position",
                   ll(index), ll(next - length), ll(layerOfPositions_));
  firstPositions_[static_cast<size_t>(index)] = next;
  return success();
}

/// Checks all sequences and the free blocks, then reserves; only a slow tier that
/// fails makes that fail halfway. Gives the stride of the step's tables.
Status Executor::prepareSequences(const quire_batch &batch, int64_t &stride) {
  int64_t wanted = 0, room = INT64_MAX;
  for (int64_t s = 0; s < batch.sequence_count; ++s) {
    int64_t cost, own;
    QUIRE_TRY(checkPlaces(batch.sequences[s], s));
    QUIRE_TRY(pool_->reserveCost(batch.sequences[s], batch.token_counts[s], cost));
    QUIRE_TRY(pool_->roomFor(batch.sequences[s], batch.sequence_count > 1, own));
    wanted += cost;
    room = cost > 0 ? std::min(room, own) : room;
    distinct_[static_cast<size_t>(s)] = batch.sequences[s];
  }
  auto end = distinct_.begin() + batch.sequence_count;
  std::sort(distinct_.begin(), end);
  if (std::adjacent_find(distinct_.begin(), end) != end)
    return failure(QUIRE_INVALID_ARGUMENT, "expected different sequences, but one comes twice");
  QUIRE_TRY(pool_->checkRoom(wanted, room));
  QUIRE_TRY(checkStepBlocks(batch, wanted));
  stride = 1;
  for (int64_t s = 0; s < batch.sequence_count; ++s) {
    Status reserved = pool_->reserve(batch.sequences[s], batch.token_counts[s]);
    if (reserved.code() == QUIRE_OUT_OF_BLOCKS) // since the check the slow tier has begun to refuse stores
      return failure(QUIRE_NO_SPACE, "%s", reserved.text().c_str());
    QUIRE_TRY(reserved);
    int64_t &past = pastLens_[static_cast<size_t>(s)];
    QUIRE_TRY(pool_->length(batch.sequences[s], past));
    tenants_[static_cast<size_t>(s)] = pool_->tenantOf(batch.sequences[s]);
    stride = std::max(stride, pool_->blocksFor(past + batch.token_counts[s]));
  }
  return success();
}

Status Executor::step(const quire_batch &batch, float *logits) {
  int64_t tokens, stride;
  QUIRE_TRY(checkShape(batch.sequence_count, batch.token_counts, tokens));
  QUIRE_TRY(checkTokens(batch.tokens, tokens));
  QUIRE_TRY(checkSelection(batch.selected, batch.selected_count, tokens, logits));
  if (!batch.sequences)
    return failure(QUIRE_INVALID_ARGUMENT, "expected sequences, but got null");
  QUIRE_TRY(prepareSequences(batch, stride));
  int32_t *tables = reinterpret_cast<int32_t *>(tables_.data());
  for (int64_t s = 0; s < batch.sequence_count; ++s) {
    const int32_t *blocks;
    int64_t count;
    QUIRE_TRY(pool_->table(batch.sequences[s], blocks, count));
    int32_t *row = tables + s * stride;
    count = std::min(count, stride);
    std::copy_n(blocks, count, row);
    std::fill(row + count, row + stride, noBlock);
  }
  std::fill_n(tables + batch.sequence_count * stride, tableSlack, noBlock);
  describeRows(batch.sequence_count, batch.token_counts, pastLens_.data(), firstPositions_.data());

  quire_step step = {};
  step.ids = batch.tokens;
  step.past_lens = pastLens_.data();
  step.selected = batch.selected;
  step.logits = logits;
  step.tokens = tokens;
  step.sequences = batch.sequence_count;
  step.table_stride = stride;
  step.selected_count = batch.selected_count;
  QUIRE_TRY(run(step, tables, batch.token_counts, tenants_.data()));
  for (int64_t s = 0; s < batch.sequence_count; ++s)
    QUIRE_TRY(pool_->commit(batch.sequences[s], batch.token_counts[s]));
  return success();
}

Status Executor::invoke(const quire_explicit_batch &batch, float *logits) {
  int64_t tokens;
  QUIRE_TRY(checkShape(batch.sequence_count, batch.token_counts, tokens));
  QUIRE_TRY(checkTokens(batch.tokens, tokens));
  QUIRE_TRY(checkSelection(batch.selected, batch.selected_count, tokens, logits));
  if (!batch.past_lens || !batch.block_tables)
    return failure(QUIRE_INVALID_ARGUMENT, "expected past_lens and block_tables, but got null");
  int64_t limit = model_->info().max_positions;
  if (limit < 0)
    limit = INT64_MAX / 2;
  for (int64_t s = 0; s < batch.sequence_count; ++s) {
    int64_t past = batch.past_lens[s];
    if (past < 0 || batch.token_counts[s] > limit - past)
      return failure(QUIRE_TOO_LONG, "past_lens[%lld]: %lld tokens and %lld more are beyond the model's %lld positions",
                     ll(s), ll(past), ll(batch.token_counts[s]), ll(limit));
    int64_t needed = pool_->blocksFor(past + batch.token_counts[s]);
    if (needed > batch.table_stride)
      return failure(QUIRE_INVALID_ARGUMENT, "table_stride: expected at least %lld for sequence %lld, but got %lld",
                     ll(needed), ll(s), ll(batch.table_stride));
    for (int64_t i = 0; i < needed; ++i) {
      int32_t block = batch.block_tables[s * batch.table_stride + i];
      if (block < 0 || block >= pool_->blocksTotal())
        return failure(QUIRE_INVALID_ARGUMENT, "block_tables[%lld][%lld]: expected 0 to %lld, but got %d", ll(s), ll(i),
                       ll(pool_->blocksTotal() - 1), block);
    }
  }
  describeRows(batch.sequence_count, batch.token_counts, batch.past_lens, batch.past_lens);
  quire_step step = {};
  step.ids = batch.tokens;
  step.past_lens = batch.past_lens;
  step.selected = batch.selected;
  step.logits = logits;
  step.tokens = tokens;
  step.sequences = batch.sequence_count;
  step.table_stride = batch.table_stride;
  step.selected_count = batch.selected_count;
  return run(step, batch.block_tables, batch.token_counts, nullptr);
}

/// Brackets the model's code with what the pager has to know.
Status Executor::run(quire_step &step, const int32_t *tables, const int64_t *tokenCounts, const uint32_t *tenants) {
  stepTables_ = tables;
  QUIRE_TRY(observeIfWanted());
  if (observation_)
    QUIRE_TRY(observation_->beginStep(step.sequences, step.table_stride));
  Pager *pager = pool_->pager();
  if (!pager)
    return callModel(step);
  int64_t entries = step.sequences * step.table_stride;
  if (static_cast<size_t>(entries + tableSlack) * sizeof(int32_t) > slots_.size())
    return failure(QUIRE_INVALID_ARGUMENT, "table_stride: %lld entries of %lld sequences are more than the pool has",
                   ll(step.table_stride), ll(step.sequences));
  Pager::Step paged;
  paged.sequences = step.sequences;
  paged.blocks = tables;
  paged.stride = step.table_stride;
  paged.pastLens = step.past_lens;
  paged.tokenCounts = tokenCounts;
  paged.tenants = tenants;
  paged.slots = reinterpret_cast<int32_t *>(slots_.data());
  std::fill_n(paged.slots + entries, tableSlack, noBlock);
  QUIRE_TRY(pager->beginStep(paged));
  Status called = callModel(step);
  Status paging = pager->endStep();
  pool_->endStep(tables, step.table_stride, step.past_lens, tokenCounts, step.sequences);
  return called.ok() ? paging : called;
}

Status Executor::callModel(quire_step &step) {
  step.positions = positions_.data();
  step.places = places_.data();
  step.sequence_of = sequenceOf_.data();
  step.query_starts = queryStarts_.data();
  step.weights = model_->weights();
  step.scratch = scratch_.data();
  step.runtime = &table_;
  step.context = this;
  step.threads = threads_.threads();
  model_->info().step(&step);
  ++steps_;
  tokens_ += step.tokens;
  bool bad = badCall_.exchange(false);
  for (int64_t layer = 0; layer < pool_->layerCount(); ++layer)
    bad |= held_[layer].exchange(0) != 0;
  if (bad)
    return failure(
        QUIRE_INVARIANT_BROKEN,
        "the model's code does not acquire and release each layer in pairs, or names a layer that does not exist");
  return success();
}

void Executor::record(quire_trace_kind kind, int64_t layer) {
  if (recorded_.load(std::memory_order_relaxed) >= options_.traceCapacity)
    return;
  int64_t index = recorded_.fetch_add(1);
  if (index >= options_.traceCapacity)
    return;
  auto elapsed = std::chrono::steady_clock::now() - start_;
  trace_[static_cast<size_t>(index)] = {kind, layer, steps_,
                                        std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count()};
}

void Executor::onParallel(void *context, int64_t count, int64_t grain, quire_task_fn fn, void *env) {
  Executor &self = *static_cast<Executor *>(context);
  const Pager *pager = self.pool_->pager();
  if (pager && pager->failed())
    fn(env, 0, count);
  else
    self.threads_.parallel(count, grain, fn, env);
}

void Executor::onAcquire(void *context, int64_t layer, quire_kv_view *out) {
  Executor &self = *static_cast<Executor *>(context);
  if (layer < 0 || layer >= self.pool_->layerCount()) {
    self.badCall_.store(true);
    *out = {nullptr, 0, nullptr, nullptr};
    return;
  }
  self.held_[layer].fetch_add(1);
  self.acquires_.fetch_add(1, std::memory_order_relaxed);
  self.record(QUIRE_TRACE_ACQUIRE, layer);
  if (!self.pool_->pager())
    *out = {self.pool_->layerBase(layer), self.pool_->layerBlockBytes(layer), self.stepTables_, nullptr};
  else if (!self.pool_->pager()->acquire(layer, *out))
    self.badCall_.store(true);
  if (self.observation_)
    out->observed = self.observation_->begin(layer);
}

void Executor::onRelease(void *context, int64_t layer) {
  Executor &self = *static_cast<Executor *>(context);
  if (layer < 0 || layer >= self.pool_->layerCount() || self.held_[layer].fetch_sub(1) <= 0) {
    self.badCall_.store(true);
    return;
  }
  self.record(QUIRE_TRACE_RELEASE, layer);
  if (self.observation_)
    if (const float *shares = self.observation_->end(layer); shares && self.pool_->pager())
      self.pool_->pager()->observe(shares);
  if (self.pool_->pager() && !self.pool_->pager()->release(layer))
    self.badCall_.store(true);
}

/// With one tier every block is resident, so each request is redundant. Asking
/// for a layer past the last one is allowed: it spares the model a special case.
void Executor::onPrefetch(void *context, int64_t layer, int64_t first, int64_t count) {
  Executor &self = *static_cast<Executor *>(context);
  if (layer < 0) {
    self.badCall_.store(true);
    return;
  }
  if (layer >= self.pool_->layerCount())
    return;
  self.prefetches_.fetch_add(1, std::memory_order_relaxed);
  self.record(QUIRE_TRACE_PREFETCH, layer);
  if (!self.pool_->pager() || !self.pool_->pager()->prefetch(layer, first, count))
    self.redundantPrefetches_.fetch_add(1, std::memory_order_relaxed);
}

void Executor::stats(quire_executor_stats &out) const {
  out.steps = steps_;
  out.tokens = tokens_;
  out.threads = threads_.threads();
  out.scratch_bytes = static_cast<int64_t>(scratch_.size());
  out.acquires = acquires_.load();
  out.prefetch_issued = prefetches_.load();
  out.prefetch_redundant = redundantPrefetches_.load();
}

int64_t Executor::trace(const quire_trace_event *&events) const {
  events = trace_.data();
  return std::min(recorded_.load(), options_.traceCapacity);
}

} // namespace quire::runtime
