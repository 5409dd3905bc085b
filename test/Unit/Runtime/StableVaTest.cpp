// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pools whose pages keep their addresses when they leave the fast tier and come back.
#include "Gate.h"
#include "SystemPages.h"
#include "TieredPool.h"
#include "core/Random.h"

#include <cstring>
#include <map>
#include <set>
#include <thread>

namespace quire::test {
namespace {

using namespace runtime;

TieredSettings stable(int64_t fastPages = 8) {
  TieredSettings settings;
  settings.fastPages = fastPages;
  settings.stableVa = true;
  return settings;
}

std::vector<int64_t> someTokens(int64_t count, int64_t seed) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back((i * 31 + seed * 17) % TOY_VOCABULARY);
  return tokens;
}

const void *addressOf(quire_pool *pool, int64_t layer, int32_t block) {
  void *address = nullptr;
  EXPECT_EQ(quire_pool_block_address(pool, layer, block, &address), QUIRE_OK) << quire_last_error();
  return address;
}

const void *pinnedAddressOf(quire_pool *pool, int64_t layer, int32_t block) {
  void *address = nullptr;
  EXPECT_EQ(quire_pool_pin(pool, layer, block, 0, &address), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(quire_pool_unpin(pool, layer, block), QUIRE_OK);
  return address;
}

quire_paging_stats pagingOf(quire_pool *pool) {
  quire_paging_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(quire_pool_get_paging_stats(pool, &stats), QUIRE_OK);
  return stats;
}

/// Of all pages, whether they are in the fast tier or not.
uint64_t residentOf(const TieredPool &tiered) {
  const Pager &pager = *tiered.pager();
  const PageGeometry &geometry = pager.geometry();
  return residentBytes(pager.stable()->group(0), geometry.groups * (uint64_t(pager.blocks()) + 1) * geometry.pageStride);
}

std::vector<int32_t> tableOf(quire_pool *pool, quire_sequence sequence) {
  const int32_t *blocks = nullptr;
  int64_t count = 0;
  EXPECT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
  return std::vector<int32_t>(blocks, blocks + count);
}

/// Addresses of a sequence's pages, by layer and place.
std::vector<const void *> addressesOf(quire_pool *pool, quire_sequence sequence, bool pinned) {
  std::vector<const void *> addresses;
  for (int32_t block : tableOf(pool, sequence))
    for (int64_t layer = 0; layer < TOY_LAYERS; ++layer)
      addresses.push_back(pinned ? pinnedAddressOf(pool, layer, block) : addressOf(pool, layer, block));
  return addresses;
}

/// A pool, and a sequence with that many tokens in it.
struct OneSequence {
  TieredPool tiered;
  quire_pool *pool = nullptr;
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor;
  quire_sequence sequence = 0;
  std::vector<int64_t> known;

  OneSequence(const TieredSettings &settings, int64_t tokens) : tiered(makeTieredPool(settings)), pool(tiered.pool.get()), executor(makeExecutor(model.get(), pool, 1)) {
    EXPECT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
    appendStep(executor.get(), sequence, someTokens(tokens, 2), known);
  }
};

class StableVa : public ::testing::TestWithParam<int64_t> {};

/// Of layers in a page.
INSTANTIATE_TEST_SUITE_P(LayersPerPage, StableVa, ::testing::Values(1, 2, 3));

TEST_P(StableVa, AddressesSurviveEvictionAndReload) {
  TieredSettings settings = stable();
  settings.layersPerPage = GetParam();
  TieredPool tiered = makeTieredPool(settings);
  quire_pool *pool = tiered.pool.get();
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 2);
  std::vector<quire_sequence> sequences(3);
  std::vector<std::vector<int64_t>> known(3);
  std::vector<std::vector<const void *>> before;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(quire_sequence_create(pool, &sequences[i]), QUIRE_OK);
    appendStep(executor.get(), sequences[i], someTokens(16 * (4 + static_cast<int64_t>(i)) - 3, static_cast<int64_t>(i)), known[i]);
    before.push_back(addressesOf(pool, sequences[i], false));
  }
  for (int round = 0; round < 4; ++round)
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(quire_sequence_unload(pool, sequences[i], 0, static_cast<int64_t>(known[i].size())), QUIRE_OK);
      ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
      appendStep(executor.get(), sequences[(i + 1) % 3], {round}, known[(i + 1) % 3]);
      std::vector<const void *> now = addressesOf(pool, sequences[i], true);
      now.resize(before[i].size());
      EXPECT_EQ(now, before[i]);
      EXPECT_LE(residentOf(tiered), 8 * tiered.pager()->geometry().pageStride);
    }
  std::set<const void *> all;
  for (const auto &addresses : before)
    all.insert(addresses.begin(), addresses.end());
  EXPECT_EQ(all.size(), before[0].size() + before[1].size() + before[2].size());
  EXPECT_GT(tiered.tier->loads, 20);
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

struct View {
  std::vector<const char *> bases;
  std::vector<std::vector<int32_t>> tables;
  std::vector<const char *> blocks; // addresses
  bool operator==(const View &other) const { return bases == other.bases && tables == other.tables && blocks == other.blocks; }
};

/// What a step that adds a token to the sequence is given for each layer.
View viewOf(Pager &pager, const std::vector<int32_t> &table, int64_t past) {
  View view;
  int64_t one = 1;
  std::vector<int32_t> slots(table.size());
  pager.prepare(1);
  Pager::Step step{1, table.data(), static_cast<int64_t>(table.size()), &past, &one, slots.data(), nullptr};
  EXPECT_TRUE(pager.beginStep(step).ok());
  for (int64_t layer = 0; layer < TOY_LAYERS; ++layer) {
    quire_kv_view found;
    EXPECT_TRUE(pager.acquire(layer, found));
    view.bases.push_back(found.base);
    view.tables.emplace_back(found.tables, found.tables + table.size());
    for (int32_t entry : view.tables.back())
      view.blocks.push_back(found.base + entry * found.block_stride);
    EXPECT_TRUE(pager.release(layer));
  }
  EXPECT_TRUE(pager.endStep().ok());
  return view;
}

/// Table, base and so addresses of a step are what they were before the pages went away, and the table is the sequence's own. Without
/// stable_va pages come back into other slots, so that the entries are others: what this test sees is not a matter of course.
TEST(StableVaViews, TablesDoNotChangeByEvictionAndReload) {
  for (bool isStable : {true, false}) {
    TieredSettings settings = stable();
    settings.stableVa = isStable;
    TieredPool tiered = makeTieredPool(settings);
    quire_pool *pool = tiered.pool.get();
    serving::ModelPointer model = makeModel();
    serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 1);
    quire_sequence first = 0, second = 0;
    std::vector<int64_t> known, other;
    ASSERT_EQ(quire_sequence_create(pool, &first), QUIRE_OK);
    ASSERT_EQ(quire_sequence_create(pool, &second), QUIRE_OK);
    appendStep(executor.get(), first, someTokens(70, 1), known);
    std::vector<int32_t> table = tableOf(pool, first);
    View before = viewOf(*tiered.pager(), table, 70);
    bool same = true;
    for (int round = 0; round < 3; ++round) {
      appendStep(executor.get(), second, someTokens(20, round), other);
      ASSERT_EQ(quire_sequence_unload(pool, first, 0, 70), QUIRE_OK);
      ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
      same = viewOf(*tiered.pager(), table, 70) == before && same;
    }
    EXPECT_EQ(same, isStable);
    for (const std::vector<int32_t> &entries : before.tables)
      EXPECT_EQ(entries == table, isStable);
    for (size_t i = 0; isStable && i < before.blocks.size(); ++i)
      EXPECT_EQ(before.blocks[i], addressOf(pool, static_cast<int64_t>(i / table.size()), table[i % table.size()]));
    appendStep(executor.get(), first, {3}, known);
  }
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Two layers whose pages take three and two pages of the system.
const quire_model_info &largeInfo() {
  static constexpr quire_model_layer layers[] = {{3, 7, 50, QUIRE_ELEMENT_F32, 4, 3 * 7 * 64, 3 * 57 * 64, 3, 0, 0}, {1, 64, 36, QUIRE_ELEMENT_F32, 4, 64 * 64, 100 * 64, 1, 0, 0}};
  static const quire_model_info info = [] {
    quire_model_info made = toyInfo();
    made.layers = layers;
    made.layer_count = 2;
    return made;
  }();
  return info;
}

/// Random reads and writes of single pages, whose content is known: what the system has for them never exceeds the budget.
TEST(StableVaMemory, StaysWithinTheBudget) {
  TieredSettings settings = stable(6);
  settings.slowPages = 40;
  TieredPool tiered = makeTieredPool(settings, largeInfo());
  quire_pool *pool = tiered.pool.get();
  const PageGeometry &geometry = tiered.pager()->geometry();
  uint64_t stride = geometry.pageStride, budget = 6 * stride;
  EXPECT_EQ(stride, 3 * MappedMemory::systemPage());
  EXPECT_EQ(residentOf(tiered), budget) << "committed from the beginning";
  std::vector<quire_block> blocks(static_cast<size_t>(statsOf(pool).blocks_total));
  ASSERT_GT(blocks.size(), 20u);
  ASSERT_EQ(quire_pool_allocate(pool, static_cast<int64_t>(blocks.size()), blocks.data()), QUIRE_OK);
  std::map<std::pair<int64_t, int32_t>, char> written;
  std::map<std::pair<int64_t, int32_t>, const void *> addresses;
  uint64_t state = 5;
  for (int i = 0; i < 3000; ++i) {
    auto block = static_cast<int32_t>(splitMix(state) % blocks.size());
    auto layer = static_cast<int64_t>(splitMix(state) % 2);
    auto key = std::make_pair(layer, block);
    bool write = written.count(key) == 0 || splitMix(state) % 4 == 0;
    void *address = nullptr;
    ASSERT_EQ(quire_pool_pin(pool, layer, block, write, &address), QUIRE_OK) << quire_last_error();
    ASSERT_EQ(addresses.emplace(key, address).first->second, address);
    auto bytes = static_cast<char *>(address);
    auto size = static_cast<size_t>(largeInfo().layers[layer].block_bytes);
    if (!write) {
      ASSERT_TRUE(std::all_of(bytes, bytes + size, [&](char byte) { return byte == written[key]; })) << "page of block " << block;
    } else {
      written[key] = static_cast<char>(i);
      std::memset(bytes, i, size);
    }
    ASSERT_EQ(quire_pool_unpin(pool, layer, block), QUIRE_OK);
    uint64_t resident = residentOf(tiered);
    ASSERT_LE(resident, budget) << "after " << i << " accesses";
    ASSERT_GE(static_cast<uint64_t>(pagingOf(pool).fast_bytes_with_memory), resident);
    ASSERT_LE(static_cast<uint64_t>(pagingOf(pool).fast_bytes_with_memory), budget);
  }
  quire_paging_stats stats = pagingOf(pool);
  EXPECT_GT(tiered.tier->loads, 1000);
  EXPECT_EQ(static_cast<uint64_t>(stats.fast_page_stride), stride);
  EXPECT_GE(stats.memory_bytes_returned, (tiered.tier->loads - 6) * stats.fast_page_stride);
  EXPECT_LE(stats.memory_returns * stats.fast_page_stride, stats.memory_bytes_returned);
  EXPECT_EQ(residentOf(tiered), budget) << "and all of it is used";
}

/// Pages of a step that leave together go back in fewer calls than there are pages.
TEST(StableVaMemory, BatchesGoBackInFewerCalls) {
  TieredSettings settings = stable(24);
  settings.window = 0;
  OneSequence made(settings, 16 * 14);
  auto &[tiered, pool, model, executor, sequence, known] = made;
  quire_paging_stats before = pagingOf(pool);
  for (int i = 0; i < 8; ++i)
    appendStep(executor.get(), sequence, {i}, known);
  quire_paging_stats after = pagingOf(pool);
  int64_t calls = after.memory_returns - before.memory_returns;
  int64_t pages = (after.memory_bytes_returned - before.memory_bytes_returned) / after.fast_page_stride;
  EXPECT_GT(pages, 8 * 10);
  EXPECT_LT(calls, pages / 2) << pages << " pages";
}

TEST(StableVaMemory, WhatEndedIsGoneAndWhatIsNewIsPoisoned) {
  TieredSettings settings = stable(6);
  settings.poison = false;
  settings.zeroOnFree = true;
  TieredPool tiered = makeTieredPool(settings, largeInfo());
  quire_pool *pool = tiered.pool.get();
  quire_block block = 0;
  ASSERT_EQ(quire_pool_allocate(pool, 1, &block), QUIRE_OK);
  void *address = nullptr;
  const char needle[] = "what nobody else may read";
  ASSERT_EQ(quire_pool_pin(pool, 1, 0, 1, &address), QUIRE_OK);
  std::memcpy(address, needle, sizeof(needle));
  EXPECT_TRUE(tiered.pager()->arenaHolds(needle, sizeof(needle)));
  ASSERT_EQ(quire_pool_unpin(pool, 1, 0), QUIRE_OK);
  ASSERT_EQ(quire_block_release(pool, block), QUIRE_OK);
  EXPECT_FALSE(tiered.pager()->arenaHolds(needle, sizeof(needle)));

  settings.poison = true;
  tiered = makeTieredPool(settings, largeInfo());
  pool = tiered.pool.get();
  std::vector<quire_block> blocks(20);
  ASSERT_EQ(quire_pool_allocate(pool, 20, blocks.data()), QUIRE_OK);
  for (int round = 0; round < 2; ++round)
    for (int32_t index = 0; index < 20; ++index) {
      ASSERT_EQ(quire_pool_pin(pool, 0, index, 1, &address), QUIRE_OK);
      auto bytes = static_cast<unsigned char *>(address);
      EXPECT_TRUE(std::all_of(bytes, bytes + largeInfo().layers[0].block_bytes, [](unsigned char byte) { return byte == 0xFF; })) << "block " << index;
      ASSERT_EQ(quire_pool_unpin(pool, 0, index), QUIRE_OK);
    }
}

/// A lock on memory of the fast tier keeps it from going back: the step says so, and the next one without the lock does not.
TEST(StableVaMemory, ALockOnItFailsTheStepThatWantsIt) {
  OneSequence made(stable(6), 16 * 5);
  auto &[tiered, pool, model, executor, sequence, known] = made;
  const StablePages &pages = *tiered.pager()->stable();
  uint64_t all = 3 * (uint64_t(tiered.pager()->blocks()) + 1) * tiered.pager()->geometry().pageStride;
  if (!lockMemory(pages.group(0), all))
    GTEST_SKIP() << "the process may not lock so much";
  int64_t one = 1, token = 1;
  quire_batch batch = {sizeof(batch), 1, &sequence, &one, &token, nullptr, 0};
  EXPECT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_OUT_OF_MEMORY);
  EXPECT_NE(std::string(quire_last_error()).find("the system does not take that of others back"), std::string::npos) << quire_last_error();
  ASSERT_TRUE(unlockMemory(pages.group(0), all));
  appendStep(executor.get(), sequence, {4}, known);
  EXPECT_LE(residentOf(tiered), 6 * tiered.pager()->geometry().pageStride);
}

/// Lost pages are replaced by a grave, whose memory is not kept.
TEST(StableVaMemory, AGraveStandsInForLostPages) {
  OneSequence made(stable(6), 72);
  auto &[tiered, pool, model, executor, sequence, known] = made;
  ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, 72), QUIRE_OK);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  tiered.tier->fault = [](const Transfer &transfer) { return transfer.kind == Transfer::Kind::Load && transfer.group == 1 ? QUIRE_PAGE_LOST : QUIRE_OK; };
  int64_t one = 1, token = 1;
  quire_batch batch = {sizeof(batch), 1, &sequence, &one, &token, nullptr, 0};
  EXPECT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_PAGE_LOST);
  EXPECT_LE(residentOf(tiered), 6 * tiered.pager()->geometry().pageStride);
  tiered.tier->fault = nullptr;
  int64_t intact = -1;
  ASSERT_EQ(quire_sequence_intact(pool, sequence, &intact), QUIRE_OK);
  ASSERT_EQ(quire_sequence_truncate(pool, sequence, intact), QUIRE_OK);
  std::vector<int64_t> rest(known.begin() + intact, known.end());
  known.resize(static_cast<size_t>(intact));
  appendStep(executor.get(), sequence, rest, known);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

TEST(StableVaSizes, PagesStayWhereTheyAre) {
  OneSequence made(stable(12), 70);
  auto &[tiered, pool, model, executor, sequence, known] = made;
  uint64_t stride = tiered.pager()->geometry().pageStride;
  std::vector<const void *> before = addressesOf(pool, sequence, true);
  void *pinned = nullptr;
  ASSERT_EQ(quire_pool_pin(pool, 2, tableOf(pool, sequence)[3], 0, &pinned), QUIRE_OK);
  ASSERT_EQ(quire_pool_resize_fast(pool, 6 * stride), QUIRE_OK) << "also beside a page that is held: " << quire_last_error();
  EXPECT_LE(residentOf(tiered), 6 * stride);
  appendStep(executor.get(), sequence, {1, 2}, known);
  EXPECT_EQ(addressesOf(pool, sequence, true), before);
  ASSERT_EQ(quire_pool_unpin(pool, 2, tableOf(pool, sequence)[3]), QUIRE_OK);
  EXPECT_EQ(tiered.pager()->counters().bytesCompacted, 0u) << "nothing is copied";
  ASSERT_EQ(quire_pool_resize_fast(pool, 12 * stride), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(residentOf(tiered), 12 * stride) << "committed";
  EXPECT_EQ(addressesOf(pool, sequence, true), before);
  appendStep(executor.get(), sequence, {5}, known);
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

TEST(StableVaSizes, PagesThatAreHeldNeedTheirRoom) {
  TieredPool tiered = makeTieredPool(stable(12), largeInfo());
  quire_pool *pool = tiered.pool.get();
  uint64_t stride = tiered.pager()->geometry().pageStride;
  std::vector<quire_block> blocks(4);
  ASSERT_EQ(quire_pool_allocate(pool, 4, blocks.data()), QUIRE_OK);
  void *address = nullptr;
  for (int32_t block = 0; block < 4; ++block)
    ASSERT_EQ(quire_pool_pin(pool, 0, block, 1, &address), QUIRE_OK);
  EXPECT_EQ(quire_pool_resize_fast(pool, 3 * stride), QUIRE_NO_SPACE);
  EXPECT_EQ(pagingOf(pool).fast_pages, 12);
  EXPECT_EQ(quire_pool_resize_fast(pool, 4 * stride), QUIRE_OK) << quire_last_error();
}

/// Without a slow tier nothing leaves, and what would move blocks is refused.
TEST(StableVaSizes, WithoutASlowTierBlocksAreNotCompacted) {
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = static_cast<uint64_t>(8 * quire_model_block_bytes(&toyInfo()));
  options.stable_va = 1;
  quire_pool *made = nullptr;
  ASSERT_EQ(quire_pool_create(&toyInfo(), &options, &made), QUIRE_OK) << quire_last_error();
  serving::PoolPointer pool(made);
  EXPECT_EQ(quire_pool_compact(made, nullptr), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "blocks of a pool with stable_va do not move");
  const void *address = addressOf(made, 1, 3);
  ASSERT_EQ(quire_pool_resize_fast(made, options.bytes / 2), QUIRE_OK);
  Pool::GivenBack back = made->pool->givenBack();
  EXPECT_EQ(back.compacted, back.now) << "there is nothing to gain";
  EXPECT_EQ(addressOf(made, 1, 3), address);
}

TEST(StableVaSizes, WithASlowTierOthersMoveAsBefore) {
  TieredSettings settings = stable();
  settings.stableVa = false;
  TieredPool tiered = makeTieredPool(settings);
  void *address = nullptr;
  EXPECT_EQ(quire_pool_block_address(tiered.pool.get(), 0, 0, &address), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "blocks of a pool with a slow tier move: pin them, or make it with stable_va");
  quire_paging_stats stats = pagingOf(tiered.pool.get());
  EXPECT_EQ(stats.fast_page_stride, stats.page_bytes);
  EXPECT_EQ(stats.fast_bytes_with_memory, 8 * stats.page_bytes);
  EXPECT_EQ(stats.memory_returns, 0);
  EXPECT_EQ(stats.memory_bytes_returned, 0);
}

//===----------------------------------------------------------------------===//
// What is under way at an address
//===----------------------------------------------------------------------===//

class StableVaTransfers : public ::testing::TestWithParam<Transfer::Kind> {
protected:
  void make(int64_t deadlineNs) {
    TieredSettings settings = stable(12);
    settings.thread = true;
    settings.window = 3;
    settings.deadlineNs = deadlineNs;
    tiered_ = makeTieredPool(settings);
    pool_ = tiered_.pool.get();
    tiered_.tier->fault = [this](const Transfer &transfer) { return gate_.pass(transfer); };
    model_ = makeModel();
    executor_ = makeExecutor(model_.get(), pool_, 1);
    quire_pool_tuning tuning = {};
    tuning.struct_size = sizeof(tuning);
    ASSERT_EQ(quire_pool_get_tuning(pool_, &tuning), QUIRE_OK);
    tuning.pin_budget = 1;
    ASSERT_EQ(quire_pool_set_tuning(pool_, &tuning), QUIRE_OK);
  }

  /// A sequence ends while a page of its only block is loaded or stored, and another one gets the block.
  void endWhileUnderWay() {
    quire_sequence old = 0;
    std::vector<int64_t> known;
    ASSERT_EQ(quire_sequence_create(pool_, &old), QUIRE_OK);
    appendStep(executor_.get(), old, someTokens(16, 1), known);
    std::vector<int32_t> table = tableOf(pool_, old);
    ASSERT_TRUE(tiered_.pager()->unload(static_cast<uint32_t>(table[0])).ok()) << "it does not wait";
    if (GetParam() == Transfer::Kind::Load) {
      ASSERT_EQ(quire_pool_settle(pool_), QUIRE_OK);
      ASSERT_EQ(quire_sequence_pin(pool_, old, 0, 16), QUIRE_OK);
    }
    gate_.awaitSomebody();
    ASSERT_EQ(quire_sequence_release(pool_, old), QUIRE_OK);
    ASSERT_EQ(quire_sequence_create(pool_, &next_), QUIRE_OK);
    ASSERT_EQ(quire_sequence_reserve(pool_, next_, 4), QUIRE_OK);
    ASSERT_EQ(tableOf(pool_, next_), table);
  }

  void checkNext(std::vector<int64_t> known) {
    for (int i = 0; i < 3; ++i) {
      appendStep(executor_.get(), next_, {i}, known);
      ASSERT_EQ(quire_sequence_unload(pool_, next_, 0, static_cast<int64_t>(known.size())), QUIRE_OK);
      ASSERT_EQ(quire_pool_settle(pool_), QUIRE_OK);
    }
    EXPECT_EQ(quire_pool_validate(pool_), QUIRE_OK) << quire_last_error();
  }

  Gate gate_{GetParam()};
  TieredPool tiered_;
  quire_pool *pool_ = nullptr;
  serving::ModelPointer model_;
  serving::ExecutorPointer executor_;
  quire_sequence next_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Kinds, StableVaTransfers, ::testing::Values(Transfer::Kind::Load, Transfer::Kind::Store));

/// Its first step waits for the transfer, which would otherwise write over it.
TEST_P(StableVaTransfers, TheNextContentWaitsForTheLastOne) {
  make(0);
  endWhileUnderWay();
  std::thread opener([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gate_.open();
  });
  std::vector<int64_t> known;
  appendStep(executor_.get(), next_, {7, 8, 9, 10}, known);
  opener.join();
  ASSERT_EQ(quire_pool_settle(pool_), QUIRE_OK);
  checkNext(known);
}

TEST_P(StableVaTransfers, WhatDoesNotEndFailsTheStep) {
  make(20000000);
  endWhileUnderWay();
  int64_t one = 1, token = 7;
  quire_batch batch = {sizeof(batch), 1, &next_, &one, &token, nullptr, 0};
  EXPECT_EQ(quire_executor_step(executor_.get(), &batch, nullptr), QUIRE_NO_SPACE);
  EXPECT_EQ(std::string(quire_last_error()), "block " + std::to_string(tableOf(pool_, next_)[0]) + ": what is under way at its address does not end in time");
  gate_.open();
  ASSERT_EQ(quire_pool_settle(pool_), QUIRE_OK);
  std::vector<int64_t> known;
  appendStep(executor_.get(), next_, {7, 8, 9, 10}, known);
  checkNext(known);
}

//===----------------------------------------------------------------------===//
// With other settings
//===----------------------------------------------------------------------===//

struct Variant {
  const char *name;
  TieredSettings settings;
  bool exact;
};

class StableVaVariants : public ::testing::TestWithParam<Variant> {};

std::vector<Variant> variants() {
  std::vector<Variant> made;
  auto add = [&](const char *name, auto change, bool exact = true) {
    made.push_back({name, stable(9), exact});
    change(made.back().settings);
  };
  add("Thread", [](TieredSettings &s) { s.thread = true; });
  add("Zero", [](TieredSettings &s) { s.zeroOnFree = true; s.poison = false; });
  add("Stacked", [](TieredSettings &s) { s.slowPages = 20; s.lowerPages = {20, 20}; });
  add("Lru", [](TieredSettings &s) { s.policy = PolicyKind::Lru; });
  add("Arc", [](TieredSettings &s) { s.policy = PolicyKind::Arc; s.thread = true; });
  add("Importance", [](TieredSettings &s) { s.policy = PolicyKind::Importance; });
  add("Hybrid", [](TieredSettings &s) { s.prefetch.strategy = PrefetchStrategy::Hybrid; });
  add("Codec", [](TieredSettings &s) { s.codec = Codec::Int8G128; s.poison = false; }, false);
  return made;
}

INSTANTIATE_TEST_SUITE_P(Settings, StableVaVariants, ::testing::ValuesIn(variants()), [](const auto &info) { return std::string(info.param.name); });

/// Sequences that do not fit together take turns; logits are exact, addresses stay, and so does the budget.
TEST_P(StableVaVariants, StepsAreRightAndAddressesStay) {
  TieredPool tiered = makeTieredPool(GetParam().settings);
  quire_pool *pool = tiered.pool.get();
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 2);
  constexpr size_t count = 3;
  quire_sequence sequences[count];
  std::vector<int64_t> known[count];
  std::vector<const void *> before[count];
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(quire_sequence_create(pool, &sequences[i]), QUIRE_OK);
    appendStep(executor.get(), sequences[i], someTokens(61, static_cast<int64_t>(i)), known[i], GetParam().exact);
    before[i] = addressesOf(pool, sequences[i], false);
  }
  for (int64_t round = 0; round < 6; ++round)
    for (size_t i = 0; i < count; ++i) {
      appendStep(executor.get(), sequences[i], {round}, known[i], GetParam().exact);
      std::vector<const void *> now = addressesOf(pool, sequences[i], round % 2 == 1);
      now.resize(before[i].size());
      ASSERT_EQ(now, before[i]);
      ASSERT_LE(residentOf(tiered), 9 * tiered.pager()->geometry().pageStride);
      ASSERT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
    }
  EXPECT_GT(pagingOf(pool).memory_returns, 0);
}

} // namespace
} // namespace quire::test
