// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One workload under every kind of fault at every transfer of its slow tier: never a wrong byte, a standstill, or a slot that is lost.
#include "PoolChild.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace quire::test;
using quire::runtime::Fault;
using quire::runtime::Transfer;

namespace {

bool makesSense(const Fault &fault) {
  bool ofStores = fault.kind == Fault::Kind::NoSpace || fault.kind == Fault::Kind::TornStore || fault.kind == Fault::Kind::SwapSlots;
  bool ofBytes = fault.kind == Fault::Kind::FlipPage || fault.kind == Fault::Kind::FlipHeader;
  return !(ofStores && fault.on != Transfer::Kind::Store) && !(ofBytes && fault.on == Transfer::Kind::Erase);
}

class PoolFaultSweep : public ::testing::TestWithParam<uint8_t> {};

} // namespace

TEST_P(PoolFaultSweep, AtEveryTransfer) {
  Program program = serverProgram(GetParam());
  RunCounts whole;
  ASSERT_EQ(runProgram(program, whole), "");
  ASSERT_GT(whole.loads, 20u);
  ASSERT_GT(whole.stores, 20u);
  ASSERT_GT(whole.hits, 0u);
  RunCounts counts;
  for (size_t kind = 0; kind < Fault::kinds; ++kind)
    for (Transfer::Kind on : {Transfer::Kind::Load, Transfer::Kind::Store, Transfer::Kind::Erase})
      for (uint64_t count : {uint64_t(1), uint64_t(5), Fault::always}) {
        Fault fault;
        fault.kind = Fault::Kind(kind);
        fault.on = on;
        fault.count = count;
        fault.ns = faultNs;
        if (!makesSense(fault))
          continue;
        uint64_t before = counts.injected;
        ASSERT_EQ(sweepFault(program, fault, sweepStride, counts), "") << "fault " << kind << " on " << int(on) << ", " << count << " from " << fault.first;
        EXPECT_GT(counts.injected, before) << "fault " << kind << " on " << int(on);
      }
  EXPECT_GT(counts.lost, 0u);
  RecordProperty("swept", static_cast<int>(counts.programs));
}

INSTANTIATE_TEST_SUITE_P(Tiers, PoolFaultSweep, ::testing::Values(uint8_t(1), uint8_t(2), uint8_t(3), uint8_t(7)), [](const auto &info) {
  return info.param == 1 ? "memory" : info.param == 2 ? "file" : info.param == 3 ? "memoryOverAFile" : "aFileUnderMemory";
});

//===----------------------------------------------------------------------===//
// Single faults
//===----------------------------------------------------------------------===//

namespace {

/// One group of layers, four fast pages and six slow ones: nine blocks.
Program smallPool() {
  Program program;
  program[ShapeField::Tier] = 1;
  program[ShapeField::Layers] = 2;
  program[ShapeField::PrefixCache] = 1;
  program[ShapeField::ZeroOnFree] = 1;
  return program;
}

Fault ioErrors(Transfer::Kind on) {
  Fault fault;
  fault.on = on;
  fault.count = Fault::always;
  return fault;
}

/// Into blocks that hold nothing else.
void append(quire_pool *pool, quire_sequence sequence, int64_t tokens) {
  int64_t length = 0, count = 0;
  const int32_t *blocks = nullptr;
  void *address = nullptr;
  ASSERT_EQ(quire_sequence_length(pool, sequence, &length), QUIRE_OK);
  ASSERT_EQ(quire_sequence_reserve(pool, sequence, tokens), QUIRE_OK) << quire_last_error();
  ASSERT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
  for (int64_t i = length / markBlockTokens; i < count; ++i) {
    ASSERT_EQ(quire_pool_pin(pool, 0, blocks[i], 1, &address), QUIRE_OK) << quire_last_error();
    std::memset(address, 7, 16);
    ASSERT_EQ(quire_pool_unpin(pool, 0, blocks[i]), QUIRE_OK);
  }
  ASSERT_EQ(quire_sequence_commit(pool, sequence, tokens), QUIRE_OK);
}

quire_paging_stats pagingOf(quire_pool *pool) {
  quire_paging_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(quire_pool_get_paging_stats(pool, &stats), QUIRE_OK);
  return stats;
}

} // namespace

TEST(PoolFaults, ErasuresThatFailForGoodAreCounted) {
  PoolUnderTest under(smallPool());
  ASSERT_EQ(under.open(), "");
  quire_pool *pool = under.get();
  quire_sequence sequence = 0;
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  append(pool, sequence, 3 * markBlockTokens);
  ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, 3 * markBlockTokens), QUIRE_OK) << quire_last_error();
  under.plan(ioErrors(Transfer::Kind::Erase));
  ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  EXPECT_EQ(pagingOf(pool).erasures_failed, 3);
  EXPECT_GT(pagingOf(pool).retries, 0);
  EXPECT_FALSE(under.slowIsBlank()) << "which is what the counter says";
  const char *text = nullptr;
  ASSERT_EQ(quire_metrics(pool, &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("quire_erasures_failed_total"), std::string::npos);
  ASSERT_EQ(quire_doctor(pool, nullptr, &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("not-erased"), std::string::npos) << text;
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

TEST(PoolFaults, AnErasureThatSucceedsLaterIsNotCounted) {
  PoolUnderTest under(smallPool());
  ASSERT_EQ(under.open(), "");
  quire_pool *pool = under.get();
  quire_sequence sequence = 0;
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  append(pool, sequence, markBlockTokens);
  ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, markBlockTokens), QUIRE_OK) << quire_last_error();
  Fault once = ioErrors(Transfer::Kind::Erase);
  once.count = 1;
  under.plan(once);
  ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  EXPECT_EQ(pagingOf(pool).retries, 1);
  EXPECT_EQ(pagingOf(pool).erasures_failed, 0);
  EXPECT_TRUE(under.slowIsBlank());
}

/// What gave way could not come back.
TEST(PoolFaults, ABlockThatIsLostIsNoReasonToEvict) {
  PoolUnderTest under(smallPool());
  ASSERT_EQ(under.open(), "");
  quire_pool *pool = under.get();
  quire_tenant tenant = 0;
  ASSERT_EQ(quire_tenant_create(pool, nullptr, &tenant), QUIRE_OK);
  quire_sequence_options options = {sizeof(options), tenant, 0};
  quire_sequence source = 0, fork = 0, cached = 0;
  ASSERT_EQ(quire_sequence_create_with(pool, &options, &source), QUIRE_OK);
  append(pool, source, 2 * markBlockTokens);
  ASSERT_EQ(quire_sequence_unload(pool, source, 0, 2 * markBlockTokens), QUIRE_OK) << quire_last_error();
  ASSERT_EQ(quire_sequence_create_with(pool, &options, &cached), QUIRE_OK);
  append(pool, cached, 7 * markBlockTokens);
  std::vector<int64_t> tokens(7 * markBlockTokens, 1);
  ASSERT_EQ(quire_sequence_publish(pool, cached, tokens.data(), 7 * markBlockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, cached), QUIRE_OK);
  ASSERT_EQ(quire_sequence_fork(pool, source, 2 * markBlockTokens - 2, &fork), QUIRE_OK);
  quire_pool_stats before = {}, after = {};
  before.struct_size = after.struct_size = sizeof(before);
  ASSERT_EQ(quire_pool_get_stats(pool, &before), QUIRE_OK);
  ASSERT_EQ(before.blocks_free, 0);
  ASSERT_EQ(before.blocks_reclaimable, 7);
  under.plan(ioErrors(Transfer::Kind::Load));
  EXPECT_EQ(quire_sequence_reserve(pool, fork, 1), QUIRE_PAGE_LOST);
  ASSERT_EQ(quire_pool_get_stats(pool, &after), QUIRE_OK);
  EXPECT_EQ(after.blocks_reclaimable, 7);
  quire_tenant_stats stats = {};
  stats.struct_size = sizeof(stats);
  ASSERT_EQ(quire_tenant_get_stats(pool, tenant, &stats), QUIRE_OK);
  EXPECT_EQ(stats.blocks_evicted, 0);
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}
