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
    appendStep(executor.get(), sequences[index], flat, known[index]);
  }

  TieredPool tiered;
  quire_pool *pool = nullptr;
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor;
  std::vector<quire_sequence> sequences, fillers;
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

/// Every fourth block is in use, and in no layer are three of them together much more than a page of the system.
TEST_F(Resize, CompactedMemoryGoesBackToTheSystem) {
  serving::PoolPointer plain = makePool({4096, false, 0, false});
  pool = plain.get();
  executor = makeExecutor(model.get(), pool, 1, 4096, 8);
  constexpr size_t count = 1024;
  for (size_t i = 0; i < count; ++i) {
    append(i, 1);
    quire_sequence fill = 0;
    ASSERT_EQ(quire_sequence_create(pool, &fill), QUIRE_OK);
    ASSERT_EQ(quire_sequence_reserve(pool, fill, 3 * blockTokens), QUIRE_OK);
    fillers.push_back(fill);
  }
  for (quire_sequence fill : fillers)
    ASSERT_EQ(quire_sequence_release(pool, fill), QUIRE_OK);
  auto kept = [&] {
    const char *text = nullptr;
    EXPECT_EQ(quire_doctor(pool, nullptr, &text), QUIRE_OK);
    return std::string(text).find("kept-memory: blocks in use keep") != std::string::npos;
  };
  EXPECT_FALSE(kept());
  ASSERT_EQ(resizeTo(pool, count), QUIRE_OK) << quire_last_error();
  auto [before, all] = residentPages(pool);
  EXPECT_TRUE(kept());
  quire_compaction done = {sizeof(done), 0, 0};
  ASSERT_EQ(quire_pool_compact(pool, &done), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(done.blocks, static_cast<int64_t>(count - count / 4));
  EXPECT_EQ(done.bytes, done.blocks * statsOf(pool).block_bytes);
  EXPECT_EQ(statsOf(pool).compacted_blocks, done.blocks);
  EXPECT_EQ(statsOf(pool).compacted_bytes, done.bytes);
  EXPECT_EQ(statsOf(pool).blocks_limit, static_cast<int64_t>(count));
  EXPECT_EQ(statsOf(pool).blocks_free, 0);
  int64_t after = residentPages(pool).first;
  EXPECT_LE(after, all / 4 + 2 * static_cast<int64_t>(toyInfo().layer_count)) << "and at most a page at each end of a layer";
  EXPECT_GT(before, 2 * after);
  EXPECT_FALSE(kept());
  const char *metrics = nullptr;
  ASSERT_EQ(quire_metrics(pool, &metrics), QUIRE_OK);
  EXPECT_NE(std::string(metrics).find("quire_moved_bytes_total{cause=\"compaction\"} " + std::to_string(done.bytes) + "\n"), std::string::npos);
  for (size_t i = 0; i < count; i += 17)
    append(i, 2);
  ASSERT_EQ(quire_pool_compact(pool, nullptr), QUIRE_OK);
  EXPECT_EQ(statsOf(pool).compacted_blocks, done.blocks) << "nothing is left to do";
  ASSERT_EQ(resizeTo(pool, 4096), QUIRE_OK) << quire_last_error();
  append(count, 200);
}

TEST_F(Resize, WhatCallersKnowThePlaceOfDoesNotMove) {
  serving::PoolPointer plain = makePool({8});
  pool = plain.get();
  executor = makeExecutor(model.get(), pool, 1, 256, 8);
  for (size_t i = 0; i < 3; ++i)
    append(i, 1); // blocks 0, 1 and 2
  quire_block held = 0;
  int32_t number = -1;
  ASSERT_EQ(quire_pool_allocate(pool, 1, &held), QUIRE_OK);
  append(3, 1);
  const int32_t *table = nullptr;
  int64_t length = 0;
  void *address = nullptr, *later = nullptr;
  EXPECT_EQ(quire_pool_unpin(pool, 0, 2), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "block 2 is not pinned");
  EXPECT_EQ(quire_pool_pin(pool, 0, 7, 0, &address), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "block 7 is free");
  ASSERT_EQ(quire_pool_pin(pool, 0, 2, 0, &address), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, sequences[0]), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, sequences[1]), QUIRE_OK);
  quire_compaction done = {0, 0, 0};
  EXPECT_EQ(quire_pool_compact(pool, &done), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "struct_size is not set");
  done.struct_size = sizeof(done);
  ASSERT_EQ(quire_pool_compact(pool, &done), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(done.blocks, 1);
  ASSERT_EQ(quire_sequence_table(pool, sequences[3], &table, &length), QUIRE_OK);
  EXPECT_EQ(table[0], 0);
  ASSERT_EQ(quire_sequence_table(pool, sequences[2], &table, &length), QUIRE_OK);
  EXPECT_EQ(table[0], 2);
  ASSERT_EQ(quire_block_index(pool, held, &number), QUIRE_OK);
  EXPECT_EQ(number, 3);
  for (int i = 1; i < UINT16_MAX; ++i)
    ASSERT_EQ(quire_pool_pin(pool, 1, 2, 0, &later), QUIRE_OK);
  EXPECT_EQ(quire_pool_pin(pool, 0, 2, 0, &later), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "block 2 is pinned too often");
  for (int i = 0; i < UINT16_MAX; ++i)
    ASSERT_EQ(quire_pool_unpin(pool, 0, 2), QUIRE_OK);
  ASSERT_EQ(quire_pool_compact(pool, &done), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(done.blocks, 1);
  ASSERT_EQ(quire_pool_pin(pool, 0, 1, 0, &later), QUIRE_OK);
  EXPECT_EQ(static_cast<char *>(address) - static_cast<char *>(later), pool->pool->layerBlockBytes(0));
  append(2, 20);
  append(3, 20);
  ASSERT_EQ(quire_block_release(pool, held), QUIRE_OK);
  EXPECT_EQ(quire_pool_compact(nullptr, nullptr), QUIRE_INVALID_ARGUMENT);
}

TEST_F(Resize, CachedPrefixesMoveToo) {
  serving::PoolPointer plain = makePool({12, false, 0, true, true});
  pool = plain.get();
  quire_tenant tenant = 0;
  ASSERT_EQ(quire_tenant_create(pool, nullptr, &tenant), QUIRE_OK);
  quire_sequence_options options = {sizeof(options), tenant, 0};
  std::vector<int64_t> tokens(static_cast<size_t>(3 * blockTokens + 1), 1);
  quire_sequence first = 0, cached = 0, again = 0;
  ASSERT_EQ(quire_sequence_create(pool, &first), QUIRE_OK);
  ASSERT_EQ(quire_sequence_reserve(pool, first, 4 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_create_with(pool, &options, &cached), QUIRE_OK);
  ASSERT_EQ(quire_sequence_reserve(pool, cached, 3 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_commit(pool, cached, 3 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_publish(pool, cached, tokens.data(), 3 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, cached), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, first), QUIRE_OK);
  quire_compaction done = {sizeof(done), 0, 0};
  ASSERT_EQ(quire_pool_act_as(pool, tenant), QUIRE_OK);
  EXPECT_EQ(quire_pool_compact(pool, &done), QUIRE_INVALID_ARGUMENT) << "not for a tenant";
  ASSERT_EQ(quire_pool_act_as(pool, 0), QUIRE_OK);
  ASSERT_EQ(quire_pool_compact(pool, &done), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(done.blocks, 3);
  EXPECT_EQ(statsOf(pool).blocks_reclaimable, 3);
  ASSERT_EQ(quire_sequence_create_with(pool, &options, &again), QUIRE_OK);
  int64_t matched = 0, length = 0;
  const int32_t *table = nullptr;
  ASSERT_EQ(quire_sequence_match_prefix(pool, again, tokens.data(), 3 * blockTokens + 1, &matched), QUIRE_OK);
  EXPECT_EQ(matched, 3 * blockTokens);
  ASSERT_EQ(quire_sequence_table(pool, again, &table, &length), QUIRE_OK);
  EXPECT_EQ(std::vector<int32_t>(table, table + length), (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

TEST_F(Resize, PagesWithASlowTierGoTogetherBySizeOnly) {
  TieredSettings settings;
  settings.fastPages = 40;
  make(settings);
  append(0, 40);
  quire_compaction done = {sizeof(done), 1, 1};
  ASSERT_EQ(quire_pool_compact(pool, &done), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(done.blocks, 0);
  EXPECT_EQ(done.bytes, 0);
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
  EXPECT_EQ(quire_pool_compact(pool, nullptr), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "blocks of a pool with exportable do not move: other processes read them");
}
