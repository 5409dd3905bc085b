// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sequences: growth, sharing, and calls that break their contract.
#include "TestPool.h"

using namespace quire::test;

namespace {

class Sequence : public ::testing::Test {
protected:
  quire_sequence create() {
    quire_sequence sequence = 0;
    EXPECT_EQ(quire_sequence_create(pool.get(), &sequence), QUIRE_OK);
    return sequence;
  }
  void append(quire_sequence sequence, int64_t tokens) {
    ASSERT_EQ(quire_sequence_reserve(pool.get(), sequence, tokens), QUIRE_OK) << quire_last_error();
    ASSERT_EQ(quire_sequence_commit(pool.get(), sequence, tokens), QUIRE_OK) << quire_last_error();
  }
  std::vector<int32_t> table(quire_sequence sequence) {
    const int32_t *blocks = nullptr;
    int64_t count = 0;
    EXPECT_EQ(quire_sequence_table(pool.get(), sequence, &blocks, &count), QUIRE_OK);
    return std::vector<int32_t>(blocks, blocks + count);
  }
  int64_t free() { return statsOf(pool.get()).blocks_free; }

  quire::serving::PoolPointer pool = makePool();
};

} // namespace

TEST_F(Sequence, TakesBlocksAsItGrows) {
  quire_sequence sequence = create();
  EXPECT_EQ(free(), 16);
  append(sequence, 16);
  EXPECT_EQ(free(), 15);
  append(sequence, 1);
  EXPECT_EQ(table(sequence), (std::vector<int32_t>{0, 1}));
  ASSERT_EQ(quire_sequence_truncate(pool.get(), sequence, 16), QUIRE_OK);
  EXPECT_EQ(free(), 15);
  ASSERT_EQ(quire_sequence_truncate(pool.get(), sequence, 0), QUIRE_OK);
  EXPECT_EQ(free(), 16);
}

TEST_F(Sequence, ReservingAgainIsFree) {
  quire_sequence sequence = create();
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(quire_sequence_reserve(pool.get(), sequence, 33), QUIRE_OK);
  EXPECT_EQ(free(), 13);
  ASSERT_EQ(quire_sequence_truncate(pool.get(), sequence, 0), QUIRE_OK); // drops the reservation
  EXPECT_EQ(free(), 16);
}

TEST_F(Sequence, CommitNeedsReservation) {
  quire_sequence sequence = create();
  EXPECT_EQ(quire_sequence_commit(pool.get(), sequence, 1), QUIRE_INVALID_ARGUMENT);
  ASSERT_EQ(quire_sequence_reserve(pool.get(), sequence, 3), QUIRE_OK);
  EXPECT_EQ(quire_sequence_commit(pool.get(), sequence, 17), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_commit(pool.get(), sequence, -1), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_commit(pool.get(), sequence, 3), QUIRE_OK);
}

TEST_F(Sequence, ForkSharesUntilOneWrites) {
  quire_sequence first = create(), second = 0;
  append(first, 20);
  ASSERT_EQ(quire_sequence_fork(pool.get(), first, 20, &second), QUIRE_OK);
  EXPECT_EQ(free(), 14);
  EXPECT_EQ(table(first), table(second));
  EXPECT_EQ(quire_sequence_commit(pool.get(), second, 1), QUIRE_INVALID_ARGUMENT); // would write a shared block
  append(second, 1);
  EXPECT_EQ(table(first)[0], table(second)[0]);
  EXPECT_NE(table(first)[1], table(second)[1]);
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, quire_model_block_bytes(&toyInfo()));
  append(first, 1); // owns its block alone again
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, quire_model_block_bytes(&toyInfo()));
  ASSERT_EQ(quire_sequence_release(pool.get(), first), QUIRE_OK);
  EXPECT_EQ(free(), 14);
  ASSERT_EQ(quire_sequence_release(pool.get(), second), QUIRE_OK);
  EXPECT_EQ(free(), 16);
}

TEST_F(Sequence, ForkAtBlockBoundaryCopiesNothing) {
  quire_sequence first = create(), second = 0;
  append(first, 32);
  ASSERT_EQ(quire_sequence_fork(pool.get(), first, 16, &second), QUIRE_OK);
  append(second, 5);
  append(first, 5);
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, 0);
}

TEST_F(Sequence, ForkLeavesReservationsBehind) {
  quire_sequence first = create(), second = 0;
  append(first, 5);
  ASSERT_EQ(quire_sequence_reserve(pool.get(), first, 40), QUIRE_OK);
  ASSERT_EQ(quire_sequence_fork(pool.get(), first, 5, &second), QUIRE_OK);
  EXPECT_EQ(table(second).size(), 1u);
  ASSERT_EQ(quire_pool_validate(pool.get()), QUIRE_OK) << quire_last_error();
  append(first, 40);
  append(second, 40);
  std::vector<int32_t> a = table(first), b = table(second);
  for (int32_t block : a)
    EXPECT_EQ(std::count(b.begin(), b.end(), block), 0);
}

TEST_F(Sequence, FullPoolChangesNothing) {
  quire_sequence first = create(), second = create();
  append(first, 15 * 16);
  append(second, 10);
  EXPECT_EQ(quire_sequence_reserve(pool.get(), second, 7), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(table(second).size(), 1u);
  append(second, 6);
}

TEST_F(Sequence, StopsAtMaxPositions) {
  quire_sequence sequence = create();
  EXPECT_EQ(quire_sequence_reserve(pool.get(), sequence, 257), QUIRE_TOO_LONG);
  EXPECT_EQ(quire_sequence_reserve(pool.get(), sequence, INT64_MAX), QUIRE_TOO_LONG);
  append(sequence, 256);
  EXPECT_EQ(quire_sequence_reserve(pool.get(), sequence, 1), QUIRE_TOO_LONG);
}

TEST_F(Sequence, RefusesBadArguments) {
  quire_sequence sequence = create(), out = 0;
  append(sequence, 4);
  EXPECT_EQ(quire_sequence_reserve(pool.get(), sequence, -1), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_truncate(pool.get(), sequence, 5), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_truncate(pool.get(), sequence, -1), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_fork(pool.get(), sequence, 5, &out), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_fork(pool.get(), sequence, -1, &out), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_release(pool.get(), 0), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_release(pool.get(), uint64_t(1) << 32 | 1234), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_create(nullptr, &out), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected pool and out, but got null");
  int64_t length;
  EXPECT_EQ(quire_sequence_length(pool.get(), sequence, &length), QUIRE_OK);
  EXPECT_EQ(length, 4);
}

TEST_F(Sequence, StaleHandlesAreNoticedAfterReuse) {
  quire_sequence first = create();
  append(first, 4);
  ASSERT_EQ(quire_sequence_release(pool.get(), first), QUIRE_OK);
  quire_sequence second = create();
  EXPECT_NE(first, second);
  EXPECT_EQ(quire_sequence_reserve(pool.get(), first, 1), QUIRE_STALE_HANDLE);
  EXPECT_EQ(quire_sequence_commit(pool.get(), first, 0), QUIRE_STALE_HANDLE);
  EXPECT_EQ(quire_sequence_truncate(pool.get(), first, 0), QUIRE_STALE_HANDLE);
  const int32_t *blocks;
  int64_t count;
  EXPECT_EQ(quire_sequence_table(pool.get(), first, &blocks, &count), QUIRE_STALE_HANDLE);
}

TEST_F(Sequence, BlockHandlesOfTheCallerAreApart) {
  quire_block blocks[2];
  ASSERT_EQ(quire_pool_allocate(pool.get(), 2, blocks), QUIRE_OK);
  EXPECT_EQ(quire_pool_allocate(pool.get(), 15, blocks), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(quire_pool_allocate(pool.get(), -1, blocks), QUIRE_INVALID_ARGUMENT);
  quire_sequence sequence = create();
  append(sequence, 16);
  // A handle made up for a sequence's block is refused.
  uint64_t forged = uint64_t(1) << 32 | static_cast<uint32_t>(table(sequence)[0]);
  EXPECT_EQ(quire_block_release(pool.get(), forged), QUIRE_STALE_HANDLE);
  EXPECT_EQ(quire_block_release(pool.get(), 5), QUIRE_INVALID_ARGUMENT);
  void *address;
  EXPECT_EQ(quire_pool_block_address(pool.get(), 3, 0, &address), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_pool_block_address(pool.get(), 0, 16, &address), QUIRE_INVALID_ARGUMENT);
}
