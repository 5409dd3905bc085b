// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a pool says of its times and of its tenants, in structures and as text.
#include "TieredPool.h"

#include <regex>

using namespace quire;
using namespace quire::test;

namespace {

quire_latency_stats latencyOf(quire_pool *pool, quire_operation operation) {
  quire_latency_stats out = {};
  out.struct_size = sizeof(out);
  EXPECT_EQ(quire_pool_get_latency(pool, operation, &out), QUIRE_OK) << quire_last_error();
  EXPECT_LE(out.p50_ns, out.p99_ns);
  EXPECT_LE(out.p99_ns, out.max_ns);
  return out;
}

/// Two sequences that do not fit into the fast tier together, of these tenants, for some steps.
void serve(quire_pool *pool, quire_tenant first, quire_tenant second, int steps) {
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 1, 256, 8);
  quire_sequence sequences[2] = {};
  quire_sequence_options options = {};
  options.struct_size = sizeof(options);
  for (int i = 0; i < 2; ++i) {
    options.tenant = i ? second : first;
    ASSERT_EQ(quire_sequence_create_with(pool, &options, &sequences[i]), QUIRE_OK) << quire_last_error();
  }
  std::vector<int64_t> tokens(200, 3);
  for (int step = 0; step < steps; ++step) {
    int64_t counts[2] = {step ? 1 : 60, step ? 1 : 30};
    quire_batch batch = {sizeof(batch), 2, sequences, counts, tokens.data(), nullptr, 0};
    ASSERT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_OK) << quire_last_error();
  }
  for (quire_sequence sequence : sequences)
    ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
}

} // namespace

TEST(Latency, OfPagesIsAlwaysKnown) {
  TieredSettings settings;
  settings.fastPages = 10;
  settings.thread = true; // and the system's clock
  TieredPool tiered = makeTieredPool(settings);
  quire_pool *pool = tiered.pool.get();
  serve(pool, 0, 0, 20);
  quire_latency_stats hit = latencyOf(pool, QUIRE_OPERATION_ACQUIRE_HIT),
                      miss = latencyOf(pool, QUIRE_OPERATION_ACQUIRE_MISS);
  EXPECT_EQ(hit.count + miss.count, 20 * toyInfo().layer_count);
  EXPECT_GT(miss.count, 0);
  EXPECT_GT(miss.sum_ns, 0);
  EXPECT_GT(latencyOf(pool, QUIRE_OPERATION_MAKE_ROOM).count, 0);
  const char *text = nullptr;
  ASSERT_EQ(quire_metrics(pool, &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("quire_latency_seconds_count{operation=\"acquire_miss\",tier=\"test\"} " +
                                   std::to_string(miss.count)),
            std::string::npos)
      << text;
  EXPECT_EQ(std::string(text).find("operation=\"allocate\""), std::string::npos) << "nobody asked for it";
}

TEST(Latency, OfBlocksIsTakenWhenAskedFor) {
  serving::PoolPointer owner = makePool();
  quire_pool *pool = owner.get();
  quire_block blocks[4];
  auto handOut = [&] {
    ASSERT_EQ(quire_pool_allocate(pool, 4, blocks), QUIRE_OK);
    for (quire_block block : blocks)
      ASSERT_EQ(quire_block_release(pool, block), QUIRE_OK);
  };
  handOut();
  EXPECT_EQ(latencyOf(pool, QUIRE_OPERATION_ALLOCATE).count, 0);
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  ASSERT_EQ(quire_pool_get_tuning(pool, &tuning), QUIRE_OK);
  tuning.time_blocks = 1;
  ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK);
  handOut();
  EXPECT_EQ(latencyOf(pool, QUIRE_OPERATION_ALLOCATE).count, 1);
  EXPECT_EQ(latencyOf(pool, QUIRE_OPERATION_FREE).count, 4);
  EXPECT_EQ(latencyOf(pool, QUIRE_OPERATION_ACQUIRE_HIT).count, 0) << "there are no pages";
  quire_latency_stats out = {};
  out.struct_size = sizeof(out);
  EXPECT_EQ(quire_pool_get_latency(pool, 5, &out), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "no operation 5");
}

TEST(Latency, DemandsAreCountedForTenants) {
  TieredPool tiered = makeTieredPool({});
  quire_pool *pool = tiered.pool.get();
  quire_tenant tenants[2] = {};
  for (quire_tenant &tenant : tenants)
    ASSERT_EQ(quire_tenant_create(pool, nullptr, &tenant), QUIRE_OK);
  serve(pool, tenants[0], tenants[1], 12);
  serve(pool, tenants[0], 0, 3);
  quire_tenant_stats stats[2] = {};
  for (int i = 0; i < 2; ++i) {
    stats[i].struct_size = sizeof(stats[i]);
    ASSERT_EQ(quire_tenant_get_stats(pool, tenants[i], &stats[i]), QUIRE_OK);
    EXPECT_EQ(stats[i].hits + stats[i].late + stats[i].misses, stats[i].demands);
    EXPECT_GT(stats[i].misses, 0);
  }
  // After the first step each decodes 1 token: blocks of 60 and more, and of 30 and more tokens, in three layers.
  EXPECT_GT(stats[0].demands, stats[1].demands);
  quire_paging_stats all = {};
  all.struct_size = sizeof(all);
  ASSERT_EQ(quire_pool_get_paging_stats(pool, &all), QUIRE_OK);
  EXPECT_LT(stats[0].demands + stats[1].demands, all.demands) << "some are nobody's";
  const char *text = nullptr;
  ASSERT_EQ(quire_metrics(pool, &text), QUIRE_OK);
  std::string metrics = text;
  std::regex sample("quire_demands_total\\{outcome=\"[a-z]+\",tier=\"test\"(,tenant=\"([0-9]+)\")?\\} ([0-9]+)");
  int64_t sum = 0, labelled = 0;
  for (std::sregex_iterator at(metrics.begin(), metrics.end(), sample), end; at != end; ++at) {
    sum += std::stoll((*at)[3]);
    labelled += (*at)[2].length() > 0;
  }
  EXPECT_EQ(sum, all.demands) << "samples add up";
  EXPECT_EQ(labelled, 2 * 3);
}
