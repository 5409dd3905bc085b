// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Owned C objects of the runtime for tests.
#ifndef QUIRE_TEST_UNIT_RUNTIME_TESTPOOL_H
#define QUIRE_TEST_UNIT_RUNTIME_TESTPOOL_H

#include "ToyReference.h"
#include "serving/Engine.h"

#include <gtest/gtest.h>

namespace quire::test {

struct PoolSettings {
  int64_t blocks = 16;
  bool shuffle = false;
  uint64_t seed = 0;
  bool poison = true;
  bool prefixCache = false;
};

inline serving::PoolPointer makePool(const PoolSettings &settings = {}, const quire_model_info &info = toyInfo()) {
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = static_cast<uint64_t>(settings.blocks * quire_model_block_bytes(&info));
  options.shuffle = settings.shuffle;
  options.shuffle_seed = settings.seed;
  options.poison = settings.poison;
  options.prefix_cache = settings.prefixCache;
  quire_pool *pool = nullptr;
  EXPECT_EQ(quire_pool_create(&info, &options, &pool), QUIRE_OK) << quire_last_error();
  return serving::PoolPointer(pool);
}

inline serving::ModelPointer makeModel() {
  quire_model *model = nullptr;
  EXPECT_EQ(quire_model_from_info(&toyInfo(), toyWeights(), &model), QUIRE_OK) << quire_last_error();
  return serving::ModelPointer(model);
}

inline serving::ExecutorPointer makeExecutor(quire_model *model, quire_pool *pool, int64_t threads = 2,
                                             int64_t maxTokens = 256, int64_t maxSequences = 16,
                                             int64_t traceCapacity = 0) {
  quire_executor_options options = {};
  options.struct_size = sizeof(options);
  options.threads = threads;
  options.max_tokens = maxTokens;
  options.max_sequences = maxSequences;
  options.trace_capacity = traceCapacity;
  quire_executor *executor = nullptr;
  EXPECT_EQ(quire_executor_create(model, pool, &options, &executor), QUIRE_OK) << quire_last_error();
  return serving::ExecutorPointer(executor);
}

inline quire_pool_stats statsOf(const quire_pool *pool) {
  quire_pool_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(quire_pool_get_stats(pool, &stats), QUIRE_OK);
  return stats;
}

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_TESTPOOL_H
