// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Several slow tiers, one under the other: order, quotas, counters, faults in each place, and pools that are refused before they are made.
#include "TestTier.h"
#include "TieredPool.h"
#include "ToyFolder.h"

#include "core/MappedMemory.h"
#include "tier/StackedTier.h"
#include "tier/TierOptions.h"

#include <gtest/gtest.h>

using namespace quire;
using namespace quire::test;
using runtime::Pager;
using runtime::Transfer;

namespace {

/// Blocks are pages.
TieredSettings stacked(uint32_t upper, std::vector<uint32_t> lower) {
  TieredSettings settings;
  settings.layersPerPage = TOY_LAYERS;
  settings.slowPages = upper;
  settings.lowerPages = std::move(lower);
  return settings;
}

quire_tier_stats statsOfTier(const TieredPool &tiered, int64_t tier) {
  quire_tier_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(quire_pool_get_tier_stats(tiered.pool.get(), tier, &stats), QUIRE_OK);
  return stats;
}

void write(Pager &pager, uint32_t block, int byte) {
  char *page;
  ASSERT_TRUE(pager.pin(0, block, true, page).ok());
  std::memset(page, byte, pager.geometry().pageBytes);
  ASSERT_TRUE(pager.unpin(0, block).ok());
}

bool holds(Pager &pager, uint32_t block, int byte) {
  char *page;
  if (!pager.pin(0, block, false, page).ok())
    return false;
  std::vector<char> expected(pager.geometry().pageBytes, static_cast<char>(byte));
  bool same = std::memcmp(page, expected.data(), expected.size()) == 0;
  EXPECT_TRUE(pager.unpin(0, block).ok());
  return same;
}

/// A store that failed leaves the page where it was: again, until it is gone.
void sendAway(Pager &pager, uint32_t block) {
  for (int attempt = 0; attempt < 40 && !pager.isUnloaded(block); ++attempt) {
    ASSERT_NE(pager.unload(block).code(), QUIRE_INVARIANT_BROKEN);
    pager.settle();
  }
  ASSERT_TRUE(pager.isUnloaded(block)) << block;
}

} // namespace

TEST(TierSlots, UpperOnesFirstAndClosedOnesNever) {
  runtime::TierSlots slots({{"a", 3}, {"b", 2}, {"c", 4}});
  std::vector<int32_t> taken;
  ASSERT_TRUE(slots.allocate(4, taken));
  EXPECT_EQ(taken, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(slots.memberOf(2), 0u);
  EXPECT_EQ(slots.memberOf(3), 1u);
  EXPECT_EQ(slots.memberOf(5), 2u);
  slots.release(1);
  slots.release(3);
  taken.clear();
  ASSERT_TRUE(slots.allocate(1, taken));
  EXPECT_EQ(taken.front(), 1);
  slots.close(1);
  EXPECT_FALSE(slots.allOpen());
  EXPECT_EQ(slots.openCount(), 4u);
  EXPECT_EQ(slots.freeCount(), 6u);
  EXPECT_FALSE(slots.allocate(5, taken));
  EXPECT_EQ(taken.size(), 1u) << "what fails changes nothing";
  taken.clear();
  ASSERT_TRUE(slots.allocate(4, taken));
  EXPECT_EQ(taken, (std::vector<int32_t>{5, 6, 7, 8}));
  EXPECT_EQ(slots.freeOf(1), 2u);
  EXPECT_TRUE(slots.validate().ok());
}

TEST(StackedTier, EachMemberSeesItsOwnSlots) {
  auto upper = std::make_unique<MemoryTier>(2, 64), lower = std::make_unique<MemoryTier>(3, 64);
  MemoryTier *a = upper.get(), *b = lower.get();
  std::vector<uint32_t> seen;
  b->fault = [&](const Transfer &transfer) {
    seen.push_back(transfer.slot);
    return QUIRE_OK;
  };
  std::vector<std::unique_ptr<runtime::Tier>> members;
  members.push_back(std::move(upper));
  members.push_back(std::move(lower));
  runtime::StackedTier tier(std::move(members));
  EXPECT_EQ(tier.name(), "test+test");
  EXPECT_EQ(tier.slots().total(), 5u);
  for (uint32_t slot = 0; slot < 5; ++slot)
    EXPECT_TRUE(store(tier, slot, 100 + slot).ok());
  EXPECT_EQ(a->stores, 2);
  EXPECT_EQ(b->stores, 3);
  EXPECT_EQ(seen, (std::vector<uint32_t>{0, 1, 2}));
  for (uint32_t slot = 0; slot < 5; ++slot)
    EXPECT_TRUE(load(tier, slot, 100 + slot).ok());
  EXPECT_EQ(load(tier, 4, 101).code(), QUIRE_PAGE_LOST);
  EXPECT_TRUE(erase(tier, 3).ok());
  EXPECT_EQ(b->erasures, 1);
  EXPECT_EQ(load(tier, 3, 103).code(), QUIRE_PAGE_LOST);
  EXPECT_EQ(store(tier, 5, 1).text(), "expected a slot below 5, but got 5");

  // More transfers than go together, of both members in turn, each with its own end.
  a->fault = [](const Transfer &transfer) { return transfer.slot == 1 ? QUIRE_IO_ERROR : QUIRE_OK; };
  std::vector<TestPage> pages;
  std::vector<Transfer> transfers;
  for (int i = 0; i < 70; ++i)
    pages.emplace_back(uint64_t(64));
  for (uint32_t i = 0; i < 70; ++i)
    transfers.push_back(transferOf(Transfer::Kind::Load, i % 5, pages[i].data(), 100 + i % 5));
  std::vector<Transfer *> all;
  for (Transfer &transfer : transfers)
    all.push_back(&transfer);
  tier.run(all.data(), all.size());
  for (uint32_t i = 0; i < 70; ++i) {
    bool there = i % 5 != 1 && i % 5 != 3; // one fails, one was erased
    EXPECT_EQ(transfers[i].slot, i % 5) << "the owner's is left alone";
    EXPECT_EQ(transfers[i].status.ok(), there) << i;
    EXPECT_EQ(pages[i].holds(100 + i % 5), there) << i;
  }
}

TEST(StackedTier, PagesGoToTheUppermostTierWithRoom) {
  TieredPool tiered = makeTieredPool(stacked(4, {3, 20}));
  Pager &pager = *tiered.pager();
  EXPECT_EQ(pager.blocks(), 8u - 1 + 27) << "all tiers, less a page to exchange others with";
  for (uint32_t block = 0; block < 9; ++block) {
    write(pager, block, static_cast<int>(block) + 1);
    sendAway(pager, block);
  }
  const int64_t used[] = {4, 3, 2}, pages[] = {4, 3, 20};
  for (int64_t tier = 0; tier < 3; ++tier) {
    quire_tier_stats stats = statsOfTier(tiered, tier);
    EXPECT_STREQ(stats.name, "test");
    EXPECT_EQ(stats.pages, pages[tier]);
    EXPECT_EQ(stats.pages_used, used[tier]);
    EXPECT_EQ(stats.pages_out, used[tier]);
    EXPECT_EQ(stats.pages_in + stats.pages_given_up + stats.closed + stats.retries + stats.pages_lost + stats.no_space + stats.erasures_failed, 0);
  }
  for (uint32_t block = 0; block < 9; ++block)
    EXPECT_TRUE(holds(pager, block, static_cast<int>(block) + 1)) << block;
  for (int64_t tier = 0; tier < 3; ++tier)
    EXPECT_EQ(statsOfTier(tiered, tier).pages_in, used[tier]);
  pager.discard(1);
  write(pager, 9, 77);
  sendAway(pager, 9);
  EXPECT_EQ(tiered.tiers[0]->stores, 5) << "the free slot above is taken first";
  EXPECT_TRUE(holds(pager, 9, 77));
  quire_paging_stats paging = {};
  paging.struct_size = sizeof(paging);
  ASSERT_EQ(quire_pool_get_paging_stats(tiered.pool.get(), &paging), QUIRE_OK);
  EXPECT_EQ(paging.slow_tiers, 3);
  EXPECT_EQ(paging.slow_pages, 27);
  EXPECT_EQ(paging.write_backs, 10);
  quire_tier_stats none = {};
  none.struct_size = sizeof(none);
  EXPECT_EQ(quire_pool_get_tier_stats(tiered.pool.get(), 3, &none), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "no slow tier 3: the pool has 3");
  const char *text = nullptr;
  ASSERT_EQ(quire_metrics(tiered.pool.get(), &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("\nquire_slow_tier_pages_out_total{tier=\"test\",level=\"1\"} 5\n"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("\nquire_slow_tier_pages_used{tier=\"test\",level=\"3\"} 2\n"), std::string::npos) << text;
  EXPECT_TRUE(pager.validate().ok()) << pager.validate().text();
}

// Whichever place it has: those before it keep what they have, those after it take what it does not.
TEST(StackedTier, ATierThatTakesNothingSendsPagesOn) {
  for (size_t bad = 0; bad < 3; ++bad)
    for (quire_status code : {QUIRE_IO_ERROR, QUIRE_NO_SPACE}) {
      TieredPool tiered = makeTieredPool(stacked(20, {20, 20}));
      Pager &pager = *tiered.pager();
      tiered.tiers[bad]->fault = [&](const Transfer &transfer) { return transfer.kind == Transfer::Kind::Store ? code : QUIRE_OK; };
      uint32_t blocks = 40; // that the other two hold
      for (uint32_t block = 0; block < blocks; ++block) {
        write(pager, block, static_cast<int>(block) + 1);
        sendAway(pager, block);
      }
      bool met = bad < 2; // the others suffice before the last is asked
      quire_tier_stats stats = statsOfTier(tiered, static_cast<int64_t>(bad));
      EXPECT_EQ(stats.closed, met);
      EXPECT_EQ(stats.pages_out, 0);
      EXPECT_EQ(stats.pages_given_up, !met ? 0 : code == QUIRE_NO_SPACE ? 1 : 16);
      EXPECT_EQ(stats.no_space, met && code == QUIRE_NO_SPACE);
      EXPECT_EQ(stats.retries, met && code == QUIRE_IO_ERROR ? 16 * 3 : 0);
      EXPECT_EQ(pager.full(), met);
      for (int64_t tier = 0; tier < 3; ++tier)
        if (tier != static_cast<int64_t>(bad)) {
          EXPECT_EQ(statsOfTier(tiered, tier).pages_out, 20);
          EXPECT_EQ(statsOfTier(tiered, tier).closed, 0);
        }
      for (uint32_t block = 0; block < blocks; ++block)
        EXPECT_TRUE(holds(pager, block, static_cast<int>(block) + 1)) << block;
      EXPECT_TRUE(pager.validate().ok()) << pager.validate().text();
    }
}

TEST(StackedTier, WhatOneTierLosesIsItsOwn) {
  TieredPool tiered = makeTieredPool(stacked(2, {2, 20}));
  Pager &pager = *tiered.pager();
  for (uint32_t block = 0; block < 6; ++block) {
    write(pager, block, static_cast<int>(block) + 1);
    sendAway(pager, block);
  }
  tiered.tiers[1]->fault = [](const Transfer &transfer) { return transfer.kind == Transfer::Kind::Load ? QUIRE_PAGE_LOST : QUIRE_OK; };
  for (uint32_t block = 0; block < 6; ++block)
    EXPECT_EQ(holds(pager, block, static_cast<int>(block) + 1), block != 2 && block != 3) << block;
  for (int64_t tier = 0; tier < 3; ++tier) {
    EXPECT_EQ(statsOfTier(tiered, tier).pages_lost, tier == 1 ? 2 : 0);
    EXPECT_EQ(statsOfTier(tiered, tier).pages_given_up, tier == 1 ? 2 : 0);
    EXPECT_EQ(statsOfTier(tiered, tier).pages_used, tier == 1 ? 0 : 2);
  }
  EXPECT_TRUE(pager.validate().ok()) << pager.validate().text();
}

TEST(StackedTier, WhatIsFreedIsErasedInEachTier) {
  TieredSettings settings = stacked(2, {3, 20});
  settings.zeroOnFree = true;
  TieredPool tiered = makeTieredPool(settings);
  Pager &pager = *tiered.pager();
  for (uint32_t block = 0; block < 9; ++block) {
    write(pager, block, 0x5A);
    sendAway(pager, block);
  }
  std::vector<char> canary(64, 0x5A);
  for (MemoryTier *tier : tiered.tiers)
    EXPECT_TRUE(tier->holds(canary));
  tiered.tiers[1]->fault = [](const Transfer &transfer) { return transfer.kind == Transfer::Kind::Erase && transfer.slot == 0 ? QUIRE_IO_ERROR : QUIRE_OK; };
  for (uint32_t block = 0; block < 9; ++block)
    pager.discard(block);
  pager.settle();
  EXPECT_FALSE(tiered.tiers[0]->holds(canary));
  EXPECT_FALSE(tiered.tiers[2]->holds(canary));
  EXPECT_FALSE(pager.arenaHolds(canary.data(), canary.size()));
  EXPECT_EQ(tiered.tiers[0]->erasures, 2);
  EXPECT_EQ(tiered.tiers[1]->erasures, 2);
  EXPECT_EQ(tiered.tiers[2]->erasures, 4);
  for (int64_t tier = 0; tier < 3; ++tier) {
    EXPECT_EQ(statsOfTier(tiered, tier).erasures_failed, tier == 1);
    EXPECT_EQ(statsOfTier(tiered, tier).pages_used, 0);
  }
  EXPECT_TRUE(pager.validate().ok()) << pager.validate().text();
}

TEST(StackedTier, OneCodecForAllTiers) {
  TieredSettings settings = stacked(6, {60});
  settings.codec = runtime::Codec::Int8G128;
  TieredPool tiered = makeTieredPool(settings);
  Pager &pager = *tiered.pager();
  EXPECT_EQ(pager.blocks(), 66u) << "those that the slow tiers hold";
  for (uint32_t block = 0; block < 12; ++block) {
    write(pager, block, 0);
    sendAway(pager, block);
  }
  EXPECT_EQ(statsOfTier(tiered, 0).pages_out, 6);
  EXPECT_EQ(statsOfTier(tiered, 1).pages_out, 6);
  for (uint32_t block = 0; block < 12; ++block) {
    char *page;
    ASSERT_TRUE(pager.pin(0, block, false, page).ok());
    float number;
    std::memcpy(&number, page, sizeof(number));
    EXPECT_EQ(number, 0) << block;
    ASSERT_TRUE(pager.unpin(0, block).ok());
  }
}

// They fill the fast tier: a step that has no room beside them says so before it begins.
TEST(StackedTier, StepsBesidePagesThatACodecRefused) {
  TieredSettings settings = stacked(60, {});
  settings.codec = runtime::Codec::Int8G128;
  TieredPool tiered = makeTieredPool(settings);
  Pager &pager = *tiered.pager();
  for (uint32_t block = 0; block < 6; ++block) {
    write(pager, block, 0xFF); // NaN
    ASSERT_TRUE(pager.unload(block).ok());
    pager.settle();
  }
  for (uint32_t block = 6; block < 20; ++block) {
    write(pager, block, 0);
    sendAway(pager, block);
  }
  quire_paging_stats stats = {};
  stats.struct_size = sizeof(stats);
  ASSERT_EQ(quire_pool_get_paging_stats(tiered.pool.get(), &stats), QUIRE_OK);
  EXPECT_EQ(stats.pages_refused_held, 6);
  std::vector<int32_t> slots(8);
  auto begin = [&](std::vector<int32_t> blocks) {
    int64_t past = static_cast<int64_t>(blocks.size()) * TOY_BLOCK_TOKENS - 1, rows = 1;
    Pager::Step step;
    step.sequences = 1;
    step.blocks = blocks.data();
    step.stride = static_cast<int64_t>(blocks.size());
    step.pastLens = &past;
    step.tokenCounts = &rows;
    step.slots = slots.data();
    runtime::Status status = pager.beginStep(step);
    quire_kv_view view;
    if (status.ok()) {
      EXPECT_TRUE(pager.acquire(0, view));
      EXPECT_TRUE(pager.release(0));
      status = pager.endStep();
    }
    return status;
  };
  EXPECT_TRUE(begin({6, 7}).ok());
  runtime::Status status = begin({8, 9, 10});
  EXPECT_EQ(status.code(), QUIRE_NO_SPACE);
  EXPECT_EQ(status.text(), "3 pages are wanted in the fast tier of 8, where 6 stay that codec int8_g128 of the slow tier does not take: their K or V are not finite, "
                           "or out of its range; change compress.quant, or raise memory.fast_bytes (--kv-bytes)");
  EXPECT_TRUE(begin({0, 1, 8, 9}).ok()) << "of these, two are among the six";
  pager.discard(5);
  EXPECT_TRUE(begin({10, 11, 12}).ok());
  EXPECT_EQ(pager.refusedPages(), 5u);
  EXPECT_TRUE(pager.validate().ok()) << pager.validate().text();
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

namespace {

/// Empty: a pool was made.
std::string errorOf(uint64_t fast, const quire_slow_tier_options &slow, quire_status expected) {
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = fast;
  options.slow = &slow;
  quire_pool *pool = nullptr;
  quire_status status = quire_pool_create(&toyInfo(), &options, &pool);
  EXPECT_EQ(status, expected) << quire_last_error();
  quire_pool_destroy(pool);
  return status == QUIRE_OK ? "" : quire_last_error();
}

quire_slow_tier_options slowOf(const char *where, uint64_t bytes, const char *codec = nullptr, const quire_lower_tier_options *lower = nullptr) {
  quire_slow_tier_options slow = {};
  slow.struct_size = sizeof(slow);
  slow.where = where;
  slow.bytes = bytes;
  slow.layers_per_page = TOY_LAYERS;
  slow.codec = codec;
  slow.lower = lower;
  return slow;
}

uint64_t pageBytes() {
  runtime::PageGeometry geometry;
  EXPECT_TRUE(runtime::PageGeometry::make(toyInfo(), TOY_LAYERS, geometry).ok());
  return geometry.pageBytes;
}

bool has(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace

TEST(StackedTier, ListsOfTiersAreChecked) {
  uint64_t page = pageBytes();
  quire_lower_tier_options lower = {sizeof(lower), "memory", 8 * page, 0, nullptr};
  quire_slow_tier_options slow = slowOf("memory", 8 * page, nullptr, &lower);
  EXPECT_EQ(errorOf(16 * page, slow, QUIRE_OK), "");
  slow.struct_size = offsetof(quire_slow_tier_options, lower); // an older program's
  EXPECT_EQ(errorOf(16 * page, slow, QUIRE_OK), "");
  slow.struct_size = sizeof(slow);
  lower.where = nullptr;
  EXPECT_EQ(errorOf(16 * page, slow, QUIRE_INVALID_ARGUMENT), "expected the place of slow tier 2, but got null");
  lower.where = "none";
  EXPECT_EQ(errorOf(16 * page, slow, QUIRE_INVALID_ARGUMENT), "expected a place for slow tier 2, but got none");
  lower.where = "memory";
  lower.lower = &lower;
  EXPECT_EQ(errorOf(16 * page, slow, QUIRE_INVALID_ARGUMENT), "expected at most 16 slow tiers, but got more");
  lower.lower = nullptr;
  lower.struct_size = 0;
  EXPECT_EQ(errorOf(16 * page, slow, QUIRE_INVALID_ARGUMENT), "struct_size is not set");
  lower.struct_size = sizeof(lower);
  slow.where = "none";
  EXPECT_EQ(errorOf(16 * page, slow, QUIRE_INVALID_ARGUMENT), "expected a slow tier above another, but got none");
  TemporaryFolder folder;
  std::string file = "file:" + (folder / "pages").string();
  slow = slowOf(file.c_str(), 1 << 20, nullptr, &lower);
  lower.where = file.c_str();
  lower.bytes = 1 << 20;
  EXPECT_TRUE(has(errorOf(16 * page, slow, QUIRE_IO_ERROR), ": another pool uses this file as its slow tier"));
  EXPECT_FALSE(std::filesystem::exists(folder / "pages"));
}

TEST(StackedTier, NoPoolIsSmallerThanItsFastTier) {
  uint64_t page = pageBytes();
  for (uint32_t slow : {1, 3, 4, 5, 100})
    EXPECT_EQ(makeTieredPool([&] {
                TieredSettings settings = stacked(slow, {});
                settings.fastPages = 64;
                return settings;
              }()).pager()->blocks(),
              64 - std::min(4u, slow) + slow);
  std::string text = errorOf(64 * page, slowOf("memory", 8 * page, "int8_g128"), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(text.find("a slow tier of "), 0u) << text;
  EXPECT_TRUE(has(text, " blocks, but the fast tier of 64 pages alone would be one of 64; raise memory.slow.bytes ")) << text;
  EXPECT_TRUE(has(text, "(--slow-bytes) to 64 pages of ")) << text;
  EXPECT_EQ(errorOf(64 * page, slowOf("memory", 64 * page, "int8_g128"), QUIRE_OK), "");
}

TEST(StackedTier, TablesThatDoNotFitAreRefusedBeforeTheyAreMade) {
  runtime::Pool::Options options;
  options.bytes = 1 << 20;
  bool made = false;
  options.slowPlan = [](uint64_t, runtime::TierPlan &plan) {
    plan.slots = INT32_MAX; // 4 TiB of pages of 2 KiB
    plan.memoryBytes = uint64_t(1) << 55;
    return runtime::success();
  };
  options.slowTier = [&](uint64_t, std::unique_ptr<runtime::Tier> &, std::unique_ptr<runtime::Mover> &) {
    made = true;
    return runtime::failure(QUIRE_IO_ERROR, "made");
  };
  std::unique_ptr<runtime::Pool> pool;
  runtime::Status status = runtime::Pool::create(toyInfo(), options, pool);
  EXPECT_EQ(status.code(), QUIRE_OUT_OF_MEMORY);
  EXPECT_FALSE(made);
  EXPECT_TRUE(has(status.text(), "slow tiers of 2147483647 pages: expected that pages and tables fit into the ")) << status.text();
  EXPECT_TRUE(has(status.text(), " for each page; lower memory.slow.bytes (--slow-bytes) or memory.fast_bytes (--kv-bytes)")) << status.text();
  options.slowPlan = nullptr;
  EXPECT_EQ(runtime::Pool::create(toyInfo(), options, pool).text(), "made");
  for (bool stable : {false, true}) {
    TieredSettings settings = stacked(60, {30});
    settings.stableVa = stable;
    TieredPool tiered = makeTieredPool(settings);
    const Pager &pager = *tiered.pager();
    uint64_t tables = Pager::tableBytes(pager.geometry(), pager.blocks(), pager.fastPages(), 90, stable);
    EXPECT_GE(tables, pager.metadataBytes());
    EXPECT_LT(tables, 2 * pager.metadataBytes()) << "and not much more than that";
    uint64_t addresses = pager.geometry().groups * uint64_t(pager.blocks()) * 12;
    EXPECT_EQ(tables - Pager::tableBytes(pager.geometry(), pager.blocks(), pager.fastPages(), 90, false), stable ? addresses : 0) << "4 bytes, and 8 of the system for 4 KiB";
  }
  EXPECT_LT(runtime::availableMemory(), runtime::physicalMemory());
  EXPECT_GT(runtime::availableMemory(), uint64_t(1) << 20);
}

TEST(StackedTier, FilesThatTheirFileSystemCannotHoldAreRefused) {
  TemporaryFolder folder;
  std::vector<runtime::TierQuota> tiers(2);
  runtime::TierPlan plan;
  ASSERT_TRUE(runtime::parseTier("memory", tiers[0].tier).ok());
  ASSERT_TRUE(runtime::parseTier("file:" + (folder / "pages").string(), tiers[1].tier).ok());
  tiers[0].bytes = 10 * 4096;
  tiers[1].bytes = 4096 + 20 * 8192;
  ASSERT_TRUE(runtime::planTiers(tiers, 4096, plan).ok());
  EXPECT_EQ(plan.slots, 30u);
  EXPECT_EQ(plan.memoryBytes, 10 * (4096 + 24) + 20u);
  tiers[1].bytes = uint64_t(1) << 43; // 2^30 slots
  uint64_t free = std::filesystem::space(folder / "").available;
  runtime::Status status = runtime::checkFreeSpace(tiers, 4096);
  EXPECT_TRUE(runtime::planTiers(tiers, 4096, plan).ok()) << "which is arithmetic";
  if (free < tiers[1].bytes) {
    EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
    EXPECT_TRUE(has(status.text(), "/pages: expected a file that fits into the ")) << status.text();
    EXPECT_TRUE(has(status.text(), " bytes; lower memory.slower (--slow-bytes)")) << status.text();
    EXPECT_TRUE(has(runtime::checkFreeSpace({tiers[1]}, 4096).text(), " bytes; lower memory.slow.bytes (--slow-bytes)"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "pages"));
  // Each fits, both do not.
  tiers[0] = tiers[1];
  tiers[0].bytes = tiers[1].bytes = free / 5 * 3;
  if (free < uint64_t(1) << 43) {
    EXPECT_TRUE(has(runtime::checkFreeSpace(tiers, 4096).text(), " of other slow tiers on it")) << free;
  }
  tiers.resize(1);
  EXPECT_TRUE(runtime::checkFreeSpace(tiers, 4096).ok());
  ASSERT_TRUE(runtime::parseTier("memory", tiers[0].tier).ok());
  tiers[0].bytes = uint64_t(1) << 50;
  tiers.push_back(tiers[0]);
  EXPECT_TRUE(has(runtime::planTiers(tiers, 4096, plan).text(), "expected slow tiers of at most 2147483647 pages together, but got 4294967294"));
  tiers[1].bytes = 4095;
  EXPECT_EQ(runtime::planTiers(tiers, 4096, plan).text(),
            "slow tier 'memory': expected at least 4096 bytes, which one page takes, but got 4095; raise memory.slower (--slow-bytes)");
  std::swap(tiers[0], tiers[1]);
  EXPECT_TRUE(has(runtime::planTiers(tiers, 4096, plan).text(), ", but got 4095; raise memory.slow.bytes (--slow-bytes)"));
}
