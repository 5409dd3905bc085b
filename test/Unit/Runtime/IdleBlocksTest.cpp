// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Full blocks that no step uses leave the fast tier after a number of steps, and come back when one does.
#include "TieredPool.h"

using namespace quire;
using namespace quire::test;

namespace {

constexpr int64_t blockTokens = 16;

class IdleBlocks : public ::testing::Test {
protected:
  void make(const TieredSettings &settings, int64_t idleSteps) {
    tiered = makeTieredPool(settings);
    pool = tiered.pool.get();
    executor = makeExecutor(model.get(), pool, 1, 256, 4);
    setIdleSteps(idleSteps);
  }

  void setIdleSteps(int64_t idleSteps) {
    quire_pool_tuning tuning = {};
    tuning.struct_size = sizeof(tuning);
    ASSERT_EQ(quire_pool_get_tuning(pool, &tuning), QUIRE_OK);
    tuning.idle_steps = idleSteps;
    ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK) << quire_last_error();
    ASSERT_EQ(quire_pool_get_tuning(pool, &tuning), QUIRE_OK);
    EXPECT_EQ(tuning.idle_steps, idleSteps);
  }

  /// A step of one sequence, whose logits are the toy's.
  void append(size_t index, int64_t count) {
    if (index == sequences.size()) {
      sequences.emplace_back();
      known.emplace_back();
      ASSERT_EQ(quire_sequence_create(pool, &sequences.back()), QUIRE_OK);
    }
    std::vector<int64_t> flat;
    for (int64_t i = 0; i < count; ++i)
      flat.push_back((static_cast<int64_t>(known[index].size()) + i) * 7 % toyInfo().token_limit);
    appendStep(executor.get(), sequences[index], flat, known[index], exact);
    EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  }

  int64_t idleCount() const {
    quire_paging_stats stats = {};
    stats.struct_size = sizeof(stats);
    EXPECT_EQ(quire_pool_get_paging_stats(pool, &stats), QUIRE_OK);
    return stats.idle_blocks;
  }

  std::vector<bool> unloaded(size_t index) const {
    std::vector<bool> away;
    const int32_t *blocks = nullptr;
    int64_t count = 0;
    EXPECT_EQ(quire_pool_settle(pool), QUIRE_OK);
    EXPECT_EQ(quire_sequence_table(pool, sequences[index], &blocks, &count), QUIRE_OK);
    for (int64_t i = 0; i < count; ++i)
      away.push_back(tiered.pager()->isUnloaded(static_cast<uint32_t>(blocks[i])));
    return away;
  }

  TieredPool tiered;
  quire_pool *pool = nullptr;
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor;
  std::vector<quire_sequence> sequences;
  std::vector<std::vector<int64_t>> known;
  bool exact = true;
};

TieredSettings roomy() {
  TieredSettings settings;
  settings.fastPages = 60; // more than anybody needs
  settings.slowPages = 120;
  settings.window = 0;
  return settings;
}

} // namespace

TEST_F(IdleBlocks, LeaveAndComeBack) {
  make(roomy(), 3);
  append(0, 3 * blockTokens + 5);
  append(1, 2 * blockTokens);
  append(1, 1);
  EXPECT_EQ(idleCount(), 0);
  EXPECT_EQ(unloaded(0), (std::vector<bool>{false, false, false, false}));
  append(1, 1);
  EXPECT_EQ(idleCount(), 3) << "three steps without the first sequence";
  EXPECT_EQ(unloaded(0), (std::vector<bool>{true, true, true, false})) << "the last block is not full";
  EXPECT_EQ(unloaded(1), (std::vector<bool>{false, false, false}));
  append(1, 1);
  EXPECT_EQ(idleCount(), 3);
  int64_t loads = tiered.tier->loads;
  append(0, 1);
  EXPECT_EQ(tiered.tier->loads, loads + 3 * toyInfo().layer_count);
  for (int i = 0; i < 3; ++i)
    append(1, 1);
  EXPECT_EQ(idleCount(), 6) << "they came back, and leave again";
  const char *text = nullptr;
  ASSERT_EQ(quire_metrics(pool, &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("quire_idle_blocks_total{tier=\"test\"} 6\n"), std::string::npos) << text;
}

TEST_F(IdleBlocks, PinnedOnesStayAndFreeOnesAreForgotten) {
  make(roomy(), 2);
  append(0, 2 * blockTokens);
  append(1, 2 * blockTokens);
  ASSERT_EQ(quire_sequence_pin(pool, sequences[0], 0, 1), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, sequences[1]), QUIRE_OK);
  append(2, 1);
  append(2, 1);
  EXPECT_EQ(unloaded(0), (std::vector<bool>{true, true})) << "what is pinned counts as away, but";
  EXPECT_EQ(idleCount(), 1);
  EXPECT_EQ(tiered.tier->stores, toyInfo().layer_count);
}

TEST_F(IdleBlocks, NeverUnlessAsked) {
  make(roomy(), 3);
  setIdleSteps(0);
  append(0, 3 * blockTokens);
  for (int i = 0; i < 80; ++i)
    append(1, 1);
  EXPECT_EQ(idleCount(), 0);
  EXPECT_EQ(tiered.tier->stores, 0);
}

TEST_F(IdleBlocks, AFullSlowTierKeepsThem) {
  make(roomy(), 1);
  append(0, 3 * blockTokens);
  tiered.tier->fault = [](const runtime::Transfer &transfer) { return transfer.kind == runtime::Transfer::Kind::Store ? QUIRE_NO_SPACE : QUIRE_OK; };
  append(1, 1);
  append(1, 1);
  EXPECT_EQ(unloaded(0), (std::vector<bool>{false, false, false}));
  append(0, 1);
}

/// Many at once leave over several steps, so that none of them waits for all.
TEST_F(IdleBlocks, LeaveAFewAtATime) {
  TieredSettings settings = roomy();
  settings.fastPages = 200;
  settings.slowPages = 400;
  make(settings, 50);
  for (size_t i = 0; i < 3; ++i)
    append(i, 10 * blockTokens);
  append(3, 1);
  EXPECT_EQ(idleCount(), 0);
  setIdleSteps(1);
  append(3, 1);
  EXPECT_EQ(idleCount(), 16);
  append(3, 1);
  EXPECT_EQ(idleCount(), 30);
}

TEST_F(IdleBlocks, ACodecCompressesThem) {
  TieredSettings settings = roomy();
  settings.codec = runtime::Codec::Int8G128;
  settings.poison = false;
  make(settings, 2);
  append(0, 3 * blockTokens);
  append(1, 1);
  EXPECT_EQ(tiered.tier->stores, 0);
  append(1, 1);
  EXPECT_EQ(idleCount(), 3);
  EXPECT_EQ(unloaded(0).size(), 3u);
  auto refused = static_cast<int64_t>(tiered.pager()->counters().refused); // elements of the toy may be beyond 65,504
  EXPECT_EQ(tiered.tier->stores + refused, 3 * toyInfo().layer_count);
  EXPECT_GT(tiered.tier->stores, refused);
  EXPECT_GT(tiered.pager()->slow().codecError().samples, 0u);
}

TEST_F(IdleBlocks, NeedASlowTierAndANumberOfSteps) {
  serving::PoolPointer plain = makePool();
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  ASSERT_EQ(quire_pool_get_tuning(plain.get(), &tuning), QUIRE_OK);
  tuning.idle_steps = 5;
  ASSERT_EQ(quire_pool_set_tuning(plain.get(), &tuning), QUIRE_OK);
  ASSERT_EQ(quire_pool_get_tuning(plain.get(), &tuning), QUIRE_OK);
  EXPECT_EQ(tuning.idle_steps, 0) << "there is nowhere to go";
  tuning.idle_steps = -1;
  EXPECT_EQ(quire_pool_set_tuning(plain.get(), &tuning), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "idle_steps: expected at least 0 steps, but got -1");
}
