// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The fast tier, or all of a pool, made smaller and larger while sequences are alive: the same content, less memory, all or nothing.
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
  EXPECT_STREQ(quire_last_error(), "7 blocks are in use, but there would be 5");
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

//===----------------------------------------------------------------------===//
// Without a slow tier
//===----------------------------------------------------------------------===//

namespace {

quire_status resizeTo(quire_pool *pool, int64_t blocks) {
  quire_status status = quire_pool_resize_fast(pool, static_cast<uint64_t>(blocks) * static_cast<uint64_t>(statsOf(pool).block_bytes));
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  return status;
}

/// Pages of the system that the arena has, and all that it could have.
std::pair<int64_t, int64_t> residentPages(quire_pool *pool) {
  auto begin = reinterpret_cast<uintptr_t>(pool->pool->layerBase(0));
  uint64_t bytes = static_cast<uint64_t>(statsOf(pool).blocks_total * statsOf(pool).block_bytes);
  std::vector<unsigned char> pages(bytes / 4096);
  EXPECT_EQ(begin % 4096, 0u);
  EXPECT_EQ(::mincore(reinterpret_cast<void *>(begin), pages.size() * 4096, pages.data()), 0);
  int64_t sum = 0;
  for (unsigned char page : pages)
    sum += page & 1;
  return {sum, static_cast<int64_t>(pages.size())};
}

} // namespace

TEST_F(Resize, ShrinksToWhatIsInUseAndGrowsBack) {
  serving::PoolPointer plain = makePool({20, true, 4});
  pool = plain.get();
  executor = makeExecutor(model.get(), pool, 1, 256, 8);
  append(0, 3 * blockTokens + 1);
  append(1, 2 * blockTokens);
  EXPECT_EQ(resizeTo(pool, 5), QUIRE_OUT_OF_BLOCKS);
  EXPECT_STREQ(quire_last_error(), "6 blocks are in use, but there would be 5");
  EXPECT_EQ(statsOf(pool).blocks_limit, 20);
  EXPECT_EQ(statsOf(pool).blocks_free, 14);
  ASSERT_EQ(resizeTo(pool, 6), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool).blocks_total, 20);
  EXPECT_EQ(statsOf(pool).blocks_limit, 6);
  EXPECT_EQ(statsOf(pool).step_blocks, 6);
  EXPECT_EQ(statsOf(pool).blocks_free, 0);
  EXPECT_EQ(quire_sequence_reserve(pool, sequences[1], 1), QUIRE_OUT_OF_BLOCKS);
  append(0, 2); // in the block that it has
  ASSERT_EQ(resizeTo(pool, 9), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool).blocks_free, 3);
  append(1, blockTokens);
  ASSERT_EQ(resizeTo(pool, 20), QUIRE_OK) << quire_last_error();
  append(2, 10 * blockTokens);
  append(0, 1);
  EXPECT_EQ(statsOf(pool).blocks_peak, 17);
  for (int64_t wrong : {0, 21}) {
    EXPECT_EQ(resizeTo(pool, wrong), QUIRE_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(quire_last_error()).rfind("expected a pool of 1 to 20 blocks", 0), 0u) << quire_last_error();
  }
}

TEST_F(Resize, MemoryOfFreeBlocksGoesBackToTheSystem) {
  serving::PoolPointer plain = makePool({4096, false, 0, false});
  pool = plain.get();
  executor = makeExecutor(model.get(), pool, 1, 256, 8);
  append(0, 40);
  auto [before, all] = residentPages(pool);
  EXPECT_EQ(before, all);
  ASSERT_EQ(resizeTo(pool, 1024), QUIRE_OK) << quire_last_error();
  EXPECT_LE(residentPages(pool).first, all / 4 + 2 * static_cast<int64_t>(toyInfo().layer_count)) << "and at most a page at each end of a layer";
  append(0, 5);
  ASSERT_EQ(resizeTo(pool, 4096), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(residentPages(pool).first, all) << "committed, so that no step waits for memory";
  append(1, 100);
}

TEST_F(Resize, CachedPrefixesGiveWayOnlyIfThatIsEnough) {
  serving::PoolPointer plain = makePool({10, false, 0, true, true});
  pool = plain.get();
  quire_tenant tenant = 0;
  ASSERT_EQ(quire_tenant_create(pool, nullptr, &tenant), QUIRE_OK);
  quire_sequence_options options = {sizeof(options), tenant, 0};
  std::vector<int64_t> tokens(static_cast<size_t>(4 * blockTokens), 1);
  quire_sequence cached = 0, other = 0;
  ASSERT_EQ(quire_sequence_create_with(pool, &options, &cached), QUIRE_OK);
  ASSERT_EQ(quire_sequence_reserve(pool, cached, 4 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_commit(pool, cached, 4 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_publish(pool, cached, tokens.data(), 4 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, cached), QUIRE_OK);
  ASSERT_EQ(quire_sequence_create(pool, &other), QUIRE_OK);
  ASSERT_EQ(quire_sequence_reserve(pool, other, 3 * blockTokens), QUIRE_OK);
  EXPECT_EQ(resizeTo(pool, 2), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(statsOf(pool).blocks_reclaimable, 4);
  ASSERT_EQ(resizeTo(pool, 5), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool).blocks_reclaimable, 2);
  ASSERT_EQ(quire_pool_act_as(pool, tenant), QUIRE_OK);
  EXPECT_EQ(resizeTo(pool, 10), QUIRE_INVALID_ARGUMENT) << "not for a tenant";
}

TEST_F(Resize, ASealedArenaKeepsItsSize) {
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = static_cast<uint64_t>(4 * quire_model_block_bytes(&toyInfo()));
  options.exportable = 1;
  ASSERT_EQ(quire_pool_create(&toyInfo(), &options, &pool), QUIRE_OK) << quire_last_error();
  serving::PoolPointer owned(pool);
  EXPECT_EQ(resizeTo(pool, 3), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "the memory of a pool with exportable cannot go back to the system: it is sealed");
  EXPECT_EQ(resizeTo(pool, 4), QUIRE_OK) << quire_last_error();
}
