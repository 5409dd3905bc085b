// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs steps of a model over ragged batches and answers the calls that the model's code makes meanwhile.
#ifndef QUIRE_RUNTIME_EXEC_EXECUTOR_H
#define QUIRE_RUNTIME_EXEC_EXECUTOR_H

#include "core/MappedMemory.h"
#include "exec/Observation.h"
#include "exec/ThreadPool.h"
#include "model/Model.h"
#include "pool/Pool.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

namespace quire::runtime {

class Executor {
public:
  struct Options {
    int64_t threads = 0; // 0: availableThreads()
    int64_t maxTokens = 1024;
    int64_t maxSequences = 64;
    int64_t traceCapacity = 0;
    bool observe = false; // which blocks are attended to; also if the pool has use for it
  };

  static Status create(std::shared_ptr<Model> model, std::shared_ptr<Pool> pool, const Options &options,
                       std::unique_ptr<Executor> &out);

  Status step(const quire_batch &batch, float *logits);
  Status invoke(const quire_explicit_batch &batch, float *logits);
  void parallel(int64_t count, int64_t grain, quire_task_fn fn, void *env) { threads_.parallel(count, grain, fn, env); }

  void stats(quire_executor_stats &out) const;
  /// Number of recorded events.
  int64_t trace(const quire_trace_event *&events) const;
  /// Null: nothing is observed.
  const Observation *observation() const { return observation_.get(); }
  Pool &pool() const { return *pool_; }

private:
  Executor(std::shared_ptr<Model> model, std::shared_ptr<Pool> pool, const Options &options);

  Status checkShape(int64_t sequences, const int64_t *tokenCounts, int64_t &tokens) const;
  Status checkTokens(const int64_t *ids, int64_t tokens) const;
  Status checkSelection(const int64_t *selected, int64_t count, int64_t tokens, const float *logits) const;
  Status checkStepBlocks(const quire_batch &batch, int64_t fresh);
  Status checkPlaces(quire_sequence sequence, int64_t index);
  Status prepareSequences(const quire_batch &batch, int64_t &stride);
  void describeRows(int64_t sequences, const int64_t *tokenCounts, const int64_t *pastLens, const int64_t *firstPositions);
  Status observeIfWanted();
  Status run(quire_step &step, const int32_t *tables, const int64_t *tokenCounts, const uint32_t *tenants);
  Status callModel(quire_step &step);
  void record(quire_trace_kind kind, int64_t layer);

  static void onParallel(void *context, int64_t count, int64_t grain, quire_task_fn fn, void *env);
  static void onAcquire(void *context, int64_t layer, quire_kv_view *out);
  static void onRelease(void *context, int64_t layer);
  static void onPrefetch(void *context, int64_t layer, int64_t first, int64_t count);

  std::shared_ptr<Model> model_;
  std::shared_ptr<Pool> pool_;
  Options options_;
  quire_runtime_table table_;
  ThreadPool threads_;
  std::chrono::steady_clock::time_point start_;

  MappedMemory scratch_;
  MappedMemory tables_; // int32 [maxSequences][stride of the step]
  MappedMemory slots_;  // the same, of a layer's pages; with a slow tier
  const int32_t *stepTables_ = nullptr;
  std::unique_ptr<Observation> observation_;
  int64_t mostBlocks_ = 0; // of a sequence
  std::vector<int64_t> positions_;
  std::vector<int64_t> places_;
  std::vector<int64_t> sequenceOf_;
  std::vector<int64_t> queryStarts_;
  std::vector<int64_t> pastLens_;
  std::vector<int64_t> firstPositions_; // of the sequences' new tokens
  int64_t layerOfPositions_;            // whose places must be positions; -1: none is
  std::vector<quire_sequence> distinct_; // [maxSequences], for checks
  std::vector<uint32_t> tenants_;        // [maxSequences]
  std::vector<uint32_t> blockMarks_;     // [blocks], the same; with a slow tier
  uint32_t stepMark_ = 0;

  int64_t steps_ = 0;
  int64_t tokens_ = 0;
  std::atomic<int64_t> acquires_{0};
  std::atomic<int64_t> prefetches_{0};
  std::atomic<int64_t> redundantPrefetches_{0};
  std::atomic<bool> badCall_{false};
  std::unique_ptr<std::atomic<int64_t>[]> held_; // acquires minus releases, by layer
  std::atomic<int64_t> recorded_{0};
  std::vector<quire_trace_event> trace_; // [traceCapacity]
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_EXEC_EXECUTOR_H
