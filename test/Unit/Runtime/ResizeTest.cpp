// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The fast tier made smaller and larger while sequences are alive: the same content, less memory, all or nothing.
#include "TieredPool.h"

#include <random>

#include <sys/mman.h>

using namespace quire;
using namespace quire::test;

namespace {

constexpr int64_t blockTokens = 16;

class Resize : public ::testing::Test {
protected:
  void make(const TieredSettings &settings) {
    tiered = makeTieredPool(settings);
    pool = tiered.pool.get();
    executor = makeExecutor(model.get(), pool, 1, 256, 8);
  }

  quire_status resize(int64_t pages) {
    quire_status status = quire_pool_resize_fast(pool, static_cast<uint64_t>(pages) * pageBytes());
    EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
    return status;
  }

  uint64_t pageBytes() const { return tiered.pager()->geometry().pageBytes; }

  void append(size_t index, int64_t count) {
    if (index == sequences.size()) {
      sequences.emplace_back();
      known.emplace_back();
      ASSERT_EQ(quire_sequence_create(pool, &sequences.back()), QUIRE_OK);
    }
    std::vector<int64_t> flat;
    for (int64_t i = 0; i < count; ++i)
      flat.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(toyInfo().token_limit)));
    int64_t last = count - 1;
    std::vector<float> logits(static_cast<size_t>(toyInfo().vocabulary));
    quire_batch batch = {sizeof(batch), 1, &sequences[index], &count, flat.data(), &last, 1};
    ASSERT_EQ(quire_executor_step(executor.get(), &batch, logits.data()), QUIRE_OK) << quire_last_error();
    known[index].insert(known[index].end(), flat.begin(), flat.end());
    ASSERT_EQ(logits, toyLogits(known[index]));
  }

  TieredPool tiered;
  quire_pool *pool = nullptr;
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor;
  std::vector<quire_sequence> sequences;
  std::vector<std::vector<int64_t>> known;
  std::mt19937_64 random{3};
};

} // namespace

TEST_F(Resize, ContentIsTheSameWhateverTheSize) {
  TieredSettings settings;
  settings.fastPages = 40;
  settings.slowPages = 120;
  make(settings);
  for (size_t i = 0; i < 4; ++i)
    append(i, 3 * blockTokens + static_cast<int64_t>(i));
  for (int round = 0; round < 40; ++round) {
    int64_t pages = 6 + static_cast<int64_t>(random() % 35);
    ASSERT_EQ(resize(pages), QUIRE_OK) << quire_last_error();
    EXPECT_EQ(tiered.pager()->fastPages(), pages);
    EXPECT_EQ(statsOf(pool).step_blocks, pages);
    for (size_t i = 0; i < 4; ++i)
      append(i, 1);
  }
  EXPECT_GT(tiered.pager()->counters().bytesCompacted, 0u);
  EXPECT_GT(tiered.tier->loads, 0);
}

TEST_F(Resize, MemoryGoesBackToTheSystem) {
  TieredSettings settings;
  settings.fastPages = 4096; // some MiB
  settings.slowPages = 60;
  settings.poison = false;
  make(settings);
  append(0, 40);
  append(1, 40);
  auto resident = [&](int64_t first, int64_t last) {
    uintptr_t base = reinterpret_cast<uintptr_t>(tiered.pager()->arenaBegin());
    uintptr_t begin = (base + static_cast<uint64_t>(first) * pageBytes() + 4095) & ~uintptr_t(4095);
    uintptr_t end = (base + static_cast<uint64_t>(last) * pageBytes()) & ~uintptr_t(4095);
    std::vector<unsigned char> pages((end - begin) / 4096);
    EXPECT_EQ(::mincore(reinterpret_cast<void *>(begin), end - begin, pages.data()), 0);
    int64_t sum = 0;
    for (unsigned char page : pages)
      sum += page & 1;
    return std::make_pair(sum, static_cast<int64_t>(pages.size()));
  };
  auto [before, all] = resident(512, 4096);
  EXPECT_EQ(before, all);
  ASSERT_EQ(resize(512), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(resident(512, 4096).first, 0);
  append(0, 5);
  ASSERT_EQ(resize(4096), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(resident(512, 4096).first, all) << "committed, so that no step waits for memory";
  append(1, 5);
}

TEST_F(Resize, WhatDoesNotFitChangesNothing) {
  TieredSettings settings;
  settings.fastPages = 20;
  settings.slowPages = 10;
  make(settings);
  quire_pool_stats before = statsOf(pool);
  EXPECT_EQ(before.blocks_limit, before.blocks_total);
  append(0, 7 * blockTokens);
  EXPECT_EQ(resize(6), QUIRE_OUT_OF_BLOCKS);
  EXPECT_STREQ(quire_last_error(), "7 blocks are in use, but a fast tier of 6 pages and the slow one hold 5");
  EXPECT_EQ(tiered.pager()->fastPages(), 20u);
  ASSERT_EQ(resize(14), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool).blocks_limit, 7);
  EXPECT_EQ(statsOf(pool).blocks_total, before.blocks_total);
  EXPECT_EQ(statsOf(pool).blocks_free, 0);
  EXPECT_EQ(quire_sequence_reserve(pool, sequences[0], 1), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(resize(21), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(quire_last_error()).rfind("expected a fast tier of at most 20 pages", 0), 0u)
      << quire_last_error();
  EXPECT_EQ(resize(0), QUIRE_INVALID_ARGUMENT);
  ASSERT_EQ(resize(20), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool).blocks_free, before.blocks_total - 7);
  append(0, 1);
}

TEST_F(Resize, PagesPinnedByHandAndAFullDeviceStandInTheWay) {
  TieredSettings settings;
  settings.fastPages = 20;
  make(settings);
  append(0, 6 * blockTokens - 4); // 18 pages
  const int32_t *blocks;
  int64_t count;
  ASSERT_EQ(quire_sequence_table(pool, sequences[0], &blocks, &count), QUIRE_OK);
  void *address = nullptr;
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(quire_pool_pin(pool, 2, blocks[i], 0, &address), QUIRE_OK);
  EXPECT_EQ(resize(7), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "a page that is pinned by hand lies in the part of the fast tier that is given up");
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(quire_pool_unpin(pool, 2, blocks[i]), QUIRE_OK);
  tiered.tier->fault = [](const runtime::Transfer &transfer) {
    return transfer.kind == runtime::Transfer::Kind::Store ? QUIRE_NO_SPACE : QUIRE_OK;
  };
  EXPECT_EQ(resize(7), QUIRE_NO_SPACE);
  EXPECT_EQ(tiered.pager()->fastPages(), 20u);
  append(0, 1);
}

TEST_F(Resize, IsForPoolsWithASlowTier) {
  serving::PoolPointer plain = makePool();
  EXPECT_EQ(quire_pool_resize_fast(plain.get(), 1 << 20), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "not implemented: resizing a pool without a slow tier");
}
