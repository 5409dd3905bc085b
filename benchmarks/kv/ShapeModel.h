// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Models of any shape that ask the runtime for pages as compiled code does, and compute nothing.
#ifndef QUIRE_BENCHMARKS_KV_SHAPEMODEL_H
#define QUIRE_BENCHMARKS_KV_SHAPEMODEL_H

#include "serving/Engine.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace quire::kvbench {

struct Shape {
  int64_t layers = 1;
  int64_t kvHeads = 1;
  int64_t headDim = 64;
  int64_t element = QUIRE_ELEMENT_F16;
  int64_t blockTokens = 16;
  int64_t maxPositions = -1;

  /// Of K and V over all layers, without padding.
  int64_t tokenBytes() const;
};

/// SmolLM2-135M, which the demo runs, and one layer of a model of 13 billion parameters.
constexpr Shape demoShape = {30, 3, 64, QUIRE_ELEMENT_F32, 16};
constexpr Shape layer13B = {1, 40, 128, QUIRE_ELEMENT_F16, 16};

/// What a step does with the pages of each layer between acquire and release.
enum class Work {
  Nothing,
  Read, // every stored byte once, on all threads: attention can take no less
  Mark  // writes new positions, by their first token id, and compares every byte of those that are stored
};

/// Takes any token id below 2^30; its one logit is 0. Must outlive what is made from it.
class ShapeModel {
public:
  ShapeModel(const Shape &shape, Work work);
  ShapeModel(const ShapeModel &) = delete;
  ShapeModel &operator=(const ShapeModel &) = delete;

  const quire_model_info &info() const { return info_; }
  quire_model *model() const { return model_.get(); }
  /// Mark: bytes that were not as they were written, in all steps so far. What a failed step read is worthless and
  /// counts too.
  int64_t wrongBytes() const { return plan_.wrongBytes; }

private:
  struct alignas(64) Plan { // where a model has its weights
    const quire_model_info *info = nullptr;
    Work work = Work::Nothing;
    mutable int64_t wrongBytes = 0;
  };
  struct Reading;
  static void step(const quire_step *step);
  static void read(void *env, int64_t begin, int64_t end);
  static void mark(const quire_step &step, const Plan &plan, int64_t layer, const quire_kv_view &view);

  std::vector<quire_model_layer> layers_;
  quire_model_info info_ = {};
  Plan plan_;
  serving::ModelPointer model_;
};

/// Ends the program with the runtime's text when a call failed: an experiment has nothing to go on with.
void check(quire_status status);

/// A pool of `blocks` blocks, and sequences of it.
class ShapePool {
public:
  struct Options {
    int64_t blocks = 0;
    const char *slowTier = nullptr; // as in quire_slow_tier_options
    int64_t slowBlocks = 0;
    bool prefixCache = false;
    bool stableVa = false;
  };
  ShapePool(const ShapeModel &model, const Options &options);

  quire_pool *get() const { return pool_.get(); }
  const quire_model_info &info() const { return info_; }
  quire_pool_stats stats() const;
  quire_paging_stats pagingStats() const;

  serving::ExecutorPointer executor(const ShapeModel &model, int64_t maxTokens, int64_t maxSequences,
                                    int64_t threads = 0) const;

private:
  const quire_model_info &info_;
  serving::PoolPointer pool_;
};

/// `tokens` new ones for each of the sequences, in one step; their ids are 0.
void runStep(quire_executor *executor, const std::vector<quire_sequence> &sequences, int64_t tokens);

/// The same with a number of tokens and an id for each sequence; what the runtime says of it.
struct StepRow {
  quire_sequence sequence;
  int64_t tokens;
  int64_t id;
};
quire_status tryStep(quire_executor *executor, const std::vector<StepRow> &rows);

} // namespace quire::kvbench

#endif // QUIRE_BENCHMARKS_KV_SHAPEMODEL_H
