// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The reserve: who may take the last blocks of a pool, and what is counted.
#include "TieredPool.h"

#include <cmath>

using namespace quire::serving;
using namespace quire::test;

namespace {

constexpr int64_t blockTokens = 16;

void setReserve(quire_pool *pool, double ratio) {
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  ASSERT_EQ(quire_pool_get_tuning(pool, &tuning), QUIRE_OK);
  tuning.reserve_ratio = ratio;
  ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK) << quire_last_error();
}

quire_sequence sequenceIn(quire_pool *pool) {
  quire_sequence made = 0;
  EXPECT_EQ(quire_sequence_create(pool, &made), QUIRE_OK);
  return made;
}

/// Reserves and commits.
quire_status append(quire_pool *pool, quire_sequence sequence, int64_t blocks) {
  quire_status status = quire_sequence_reserve(pool, sequence, blocks * blockTokens);
  if (status == QUIRE_OK)
    EXPECT_EQ(quire_sequence_commit(pool, sequence, blocks * blockTokens), QUIRE_OK);
  return status;
}

} // namespace

TEST(Reserve, NewSequencesLeaveItToThoseThatRun) {
  PoolSettings settings;
  settings.blocks = 20;
  PoolPointer owner = makePool(settings);
  quire_pool *pool = owner.get();
  setReserve(pool, 0.25);
  EXPECT_EQ(statsOf(pool).reserve_blocks, 5);
  quire_sequence first = sequenceIn(pool), second = sequenceIn(pool);
  ASSERT_EQ(append(pool, first, 12), QUIRE_OK);
  EXPECT_EQ(append(pool, second, 4), QUIRE_OUT_OF_BLOCKS);
  EXPECT_STREQ(quire_last_error(), "4 new blocks wanted, but of 8 free ones 5 are reserved for sequences that run");
  EXPECT_EQ(statsOf(pool).blocks_free, 8);
  quire_block held[4];
  EXPECT_EQ(quire_pool_allocate(pool, 4, held), QUIRE_OUT_OF_BLOCKS) << "blocks by hand are new";
  EXPECT_EQ(quire_pool_allocate(pool, 0, held), QUIRE_OK);
  ASSERT_EQ(append(pool, second, 3), QUIRE_OK);
  EXPECT_EQ(statsOf(pool).reserve_hits, 0);
  // Both run now: what is left is theirs.
  ASSERT_EQ(append(pool, second, 3), QUIRE_OK);
  EXPECT_EQ(statsOf(pool).reserve_hits, 3);
  EXPECT_EQ(statsOf(pool).reserve_peak, 3);
  ASSERT_EQ(append(pool, first, 2), QUIRE_OK);
  EXPECT_EQ(statsOf(pool).blocks_free, 0);
  EXPECT_EQ(statsOf(pool).reserve_hits, 5);
  EXPECT_EQ(statsOf(pool).reserve_exhausted, 0);
  EXPECT_EQ(append(pool, first, 1), QUIRE_OUT_OF_BLOCKS);
  EXPECT_STREQ(quire_last_error(), "1 blocks wanted, but 0 of 20 are free");
  EXPECT_EQ(statsOf(pool).reserve_exhausted, 1);
}

TEST(Reserve, OneThatIsAloneMayTakeAll) {
  PoolSettings settings;
  settings.blocks = 16; // as many as a sequence may have
  PoolPointer owner = makePool(settings);
  quire_pool *pool = owner.get();
  setReserve(pool, 0.5);
  quire_sequence alone = sequenceIn(pool), other = sequenceIn(pool);
  ASSERT_EQ(append(pool, alone, 16), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool).reserve_peak, 8);
  ASSERT_EQ(quire_sequence_release(pool, alone), QUIRE_OK);
  quire_block held[16];
  ASSERT_EQ(quire_pool_allocate(pool, 16, held), QUIRE_OK) << "nobody else has blocks";
  for (quire_block block : held)
    ASSERT_EQ(quire_block_release(pool, block), QUIRE_OK);
  ASSERT_EQ(append(pool, other, 16), QUIRE_OK);
}

TEST(Reserve, CopiesOnWriteDrawOnIt) {
  PoolSettings settings;
  settings.blocks = 10;
  PoolPointer owner = makePool(settings);
  quire_pool *pool = owner.get();
  setReserve(pool, 0.2);
  quire_sequence source = sequenceIn(pool), fork = 0;
  ASSERT_EQ(quire_sequence_reserve(pool, source, 7 * blockTokens + 3), QUIRE_OK);
  ASSERT_EQ(quire_sequence_commit(pool, source, 7 * blockTokens + 3), QUIRE_OK);
  ASSERT_EQ(quire_sequence_fork(pool, source, 7 * blockTokens + 3, &fork), QUIRE_OK);
  ASSERT_EQ(quire_sequence_reserve(pool, fork, 1), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool).reserve_hits, 1);
  EXPECT_GT(statsOf(pool).copied_bytes, 0);
}

/// A step over new sequences is admitted as a whole or not at all.
TEST(Reserve, StepsChangeNothingWhenTheyAreRefused) {
  PoolSettings settings;
  settings.blocks = 10;
  ModelPointer model = makeModel();
  PoolPointer owner = makePool(settings);
  quire_pool *pool = owner.get();
  ExecutorPointer executor = makeExecutor(model.get(), pool);
  setReserve(pool, 0.2);
  quire_sequence sequences[2] = {sequenceIn(pool), sequenceIn(pool)};
  std::vector<int64_t> tokens(10 * blockTokens, 1);
  auto step = [&](int64_t first, int64_t second) {
    int64_t counts[2] = {first * blockTokens, second * blockTokens};
    quire_batch batch = {sizeof(batch), second ? 2 : 1, sequences, counts, tokens.data(), nullptr, 0};
    return quire_executor_step(executor.get(), &batch, nullptr);
  };
  EXPECT_EQ(step(4, 5), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(statsOf(pool).blocks_free, 10);
  ASSERT_EQ(step(4, 4), QUIRE_OK) << quire_last_error();
  ASSERT_EQ(step(1, 1), QUIRE_OK) << "they run: " << quire_last_error();
  EXPECT_EQ(statsOf(pool).reserve_hits, 2);
  for (quire_sequence sequence : sequences)
    ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  sequences[0] = sequenceIn(pool);
  ASSERT_EQ(step(10, 0), QUIRE_OK) << "alone: " << quire_last_error();
}

/// With two tiers it is a share of the fast one.
TEST(Reserve, OfTheFastTier) {
  TieredSettings settings;
  settings.fastPages = 30;
  TieredPool tiered = makeTieredPool(settings);
  setReserve(tiered.pool.get(), 0.5);
  EXPECT_EQ(statsOf(tiered.pool.get()).reserve_blocks, 5); // half of 30 pages of 3 layers
}

TEST(Reserve, RefusesSharesThatAreNone) {
  PoolPointer owner = makePool();
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  for (double wrong : {-0.1, 0.51, std::nan("")}) {
    tuning.reserve_ratio = wrong;
    EXPECT_EQ(quire_pool_set_tuning(owner.get(), &tuning), QUIRE_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(quire_last_error()).rfind("reserve_ratio: expected 0 to 0.5, but got ", 0), 0u)
        << quire_last_error();
  }
  tuning.reserve_ratio = 0.1;
  tuning.struct_size = 0;
  EXPECT_EQ(quire_pool_set_tuning(owner.get(), &tuning), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(statsOf(owner.get()).reserve_blocks, 0);
}
