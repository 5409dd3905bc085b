// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Failures that users of paged caches have met elsewhere, and what must happen here instead.
#include "Gate.h"
#include "TieredPool.h"

#include <cstring>
#include <memory>

namespace quire::test {
namespace {

using namespace runtime;

std::vector<int64_t> someTokens(int64_t count, int64_t seed) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back((i * 37 + seed * 19 + i * i % 11) % TOY_VOCABULARY);
  return tokens;
}

std::vector<int32_t> tableOf(quire_pool *pool, quire_sequence sequence) {
  const int32_t *blocks = nullptr;
  int64_t count = 0;
  EXPECT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
  return std::vector<int32_t>(blocks, blocks + count);
}

int64_t intactOf(quire_pool *pool, quire_sequence sequence) {
  int64_t intact = -1;
  EXPECT_EQ(quire_sequence_intact(pool, sequence, &intact), QUIRE_OK);
  return intact;
}

/// Fails the loads of a block's pages in one group for good.
std::function<quire_status(const Transfer &)> losing(const Pager &pager, int32_t block) {
  uint32_t blocks = pager.blocks();
  return [=](const Transfer &transfer) {
    bool its = static_cast<uint32_t>(transfer.tag) == static_cast<uint32_t>(block) + blocks; // of group 1
    return transfer.kind == Transfer::Kind::Load && its ? QUIRE_PAGE_LOST : QUIRE_OK;
  };
}

quire_status stepOf(quire_executor *executor, const std::vector<quire_sequence> &sequences) {
  std::vector<int64_t> ones(sequences.size(), 1), tokens(sequences.size(), 5);
  quire_batch batch = {sizeof(batch), static_cast<int64_t>(sequences.size()), sequences.data(), ones.data(), tokens.data(), nullptr, 0};
  return quire_executor_step(executor, &batch, nullptr);
}

//===----------------------------------------------------------------------===//
// What ends while something is under way
//===----------------------------------------------------------------------===//

enum class Stage { Before, During, After };
struct Ending {
  Transfer::Kind kind;
  Stage stage;
  bool stableVa;
};

class Endings : public ::testing::TestWithParam<Ending> {};

std::vector<Ending> endings() {
  std::vector<Ending> all;
  for (Transfer::Kind kind : {Transfer::Kind::Load, Transfer::Kind::Store, Transfer::Kind::Erase})
    for (Stage stage : {Stage::Before, Stage::During, Stage::After})
      for (bool stable : {false, true})
        all.push_back({kind, stage, stable});
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Endings, ::testing::ValuesIn(endings()));

/// A sequence that ends before, while or after its pages are loaded, stored or erased leaves nothing taken in any tier once the device has answered.
TEST_P(Endings, LeaveNothingBehind) {
  auto [kind, stage, stableVa] = GetParam();
  TieredSettings settings;
  settings.fastPages = 12;
  settings.thread = true;
  settings.stableVa = stableVa;
  settings.poison = false;
  settings.zeroOnFree = kind == Transfer::Kind::Erase;
  TieredPool tiered = makeTieredPool(settings);
  quire_pool *pool = tiered.pool.get();
  Gate gate(kind);
  if (stage != Stage::During)
    gate.open();
  tiered.tier->fault = [&](const Transfer &transfer) { return gate.pass(transfer); };
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 1);
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  ASSERT_EQ(quire_pool_get_tuning(pool, &tuning), QUIRE_OK);
  tuning.pin_budget = 1;
  ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK);
  int64_t free = statsOf(pool).blocks_free;
  quire_sequence sequence = 0;
  std::vector<int64_t> known;
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  appendStep(executor.get(), sequence, someTokens(48, 1), known);
  if (stage != Stage::Before) {
    for (int32_t block : tableOf(pool, sequence))
      ASSERT_TRUE(tiered.pager()->unload(static_cast<uint32_t>(block)).ok());
    if (kind != Transfer::Kind::Store) {
      ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
    }
    if (kind == Transfer::Kind::Load) {
      ASSERT_EQ(quire_sequence_pin(pool, sequence, 0, 48), QUIRE_OK); // fetches them
    }
    if (stage == Stage::After) {
      ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
    } else if (kind != Transfer::Kind::Erase) {
      gate.awaitSomebody();
    }
  }
  ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  EXPECT_EQ(statsOf(pool).blocks_free, free) << "blocks are free at once";
  if (stage == Stage::During && kind == Transfer::Kind::Erase)
    gate.awaitSomebody();
  gate.open();
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  EXPECT_EQ(tiered.pager()->fastPagesFree(), 12u);
  EXPECT_EQ(tiered.pager()->slow().slots().freeCount(), tiered.pager()->slow().slots().total());
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  known.clear();
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  for (int i = 0; i < 3; ++i) {
    appendStep(executor.get(), sequence, someTokens(30, i), known);
    ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, static_cast<int64_t>(known.size())), QUIRE_OK);
  }
}

/// Arrays of a call may be freed when it returns, whatever it has begun.
TEST(ReportedFailures, ArraysAreTheCallersAgainWhenTheCallReturns) {
  TieredSettings settings;
  settings.fastPages = 9;
  settings.thread = true;
  TieredPool tiered = makeTieredPool(settings);
  quire_pool *pool = tiered.pool.get();
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 2);
  quire_sequence sequences[3];
  std::vector<int64_t> known[3];
  for (quire_sequence &sequence : sequences)
    ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  auto vocabulary = static_cast<size_t>(toyInfo().vocabulary);
  for (int64_t round = 0; round < 30; ++round) {
    size_t at = static_cast<size_t>(round) % 3;
    struct Arrays {
      quire_sequence sequence;
      int64_t count, tokens[6], selected, past, one = 1;
      int32_t table[16];
      float logits[TOY_VOCABULARY];
    };
    auto arrays = std::make_unique<Arrays>();
    arrays->sequence = sequences[at];
    arrays->count = 6;
    arrays->selected = 5;
    for (int64_t i = 0; i < 6; ++i)
      known[at].push_back(arrays->tokens[i] = (round * 7 + i * i) % TOY_VOCABULARY);
    quire_batch batch = {sizeof(batch), 1, &arrays->sequence, &arrays->count, arrays->tokens, &arrays->selected, 1};
    ASSERT_EQ(quire_executor_step(executor.get(), &batch, arrays->logits), QUIRE_OK) << quire_last_error();
    EXPECT_EQ(std::vector<float>(arrays->logits, arrays->logits + vocabulary), toyLogits(known[at])) << "round " << round;
    std::vector<int32_t> table = tableOf(pool, sequences[at]);
    std::copy(table.begin(), table.end(), arrays->table);
    arrays->past = static_cast<int64_t>(known[at].size()) - 1; // its last token once more
    quire_explicit_batch again = {sizeof(again), 1, &arrays->one, arrays->tokens + 5, &arrays->past, arrays->table, static_cast<int64_t>(table.size()), &arrays->one, 0};
    ASSERT_EQ(quire_executor_invoke(executor.get(), &again, nullptr), QUIRE_OK) << quire_last_error();
    std::memset(static_cast<void *>(arrays.get()), 0x5E, sizeof(Arrays));
    arrays.reset();
    ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
    ASSERT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  }
}

//===----------------------------------------------------------------------===//
// What several of them share, and lose
//===----------------------------------------------------------------------===//

/// Each sequence that has a lost block goes back to it and no further, and others do not.
TEST(ReportedFailures, AllThatShareALostBlockComputeItAgain) {
  TieredSettings settings;
  settings.fastPages = 16;
  TieredPool tiered = makeTieredPool(settings);
  quire_pool *pool = tiered.pool.get();
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 1);
  quire_sequence first = 0, second = 0, other = 0;
  std::vector<int64_t> known[3];
  ASSERT_EQ(quire_sequence_create(pool, &first), QUIRE_OK);
  ASSERT_EQ(quire_sequence_create(pool, &other), QUIRE_OK);
  appendStep(executor.get(), first, someTokens(40, 1), known[0]);
  appendStep(executor.get(), other, someTokens(40, 2), known[2]);
  ASSERT_EQ(quire_sequence_fork(pool, first, 40, &second), QUIRE_OK);
  known[1] = known[0];
  appendStep(executor.get(), second, {3, 4}, known[1]);
  int32_t shared = tableOf(pool, first)[1];
  ASSERT_EQ(tableOf(pool, second)[1], shared);
  ASSERT_EQ(quire_sequence_unload(pool, first, 0, 40), QUIRE_OK);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  tiered.tier->fault = losing(*tiered.pager(), shared);
  EXPECT_EQ(stepOf(executor.get(), {first, second, other}), QUIRE_PAGE_LOST);
  tiered.tier->fault = nullptr;
  const quire_sequence sequences[] = {first, second, other};
  const int64_t intact[] = {16, 16, 40};
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(intactOf(pool, sequences[i]), intact[i]);
    ASSERT_EQ(quire_sequence_truncate(pool, sequences[i], intact[i]), QUIRE_OK);
    std::vector<int64_t> rest(known[i].begin() + intact[i], known[i].end());
    known[i].resize(static_cast<size_t>(intact[i]));
    rest.push_back(8);
    appendStep(executor.get(), sequences[i], rest, known[i]);
  }
  EXPECT_NE(tableOf(pool, first)[1], tableOf(pool, second)[1]) << "each has its own now";
  EXPECT_EQ(tiered.pager()->counters().pagesLost, 1u);
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

/// A cached chain whose first block is lost is found by nobody, does not count as a hit, and its other blocks are handed out again.
TEST(ReportedFailures, AChainWithoutItsHeadIsNoHitAndNoLeak) {
  TieredSettings settings;
  settings.fastPages = 16;
  settings.slowPages = 32;
  settings.prefixCache = true;
  TieredPool tiered = makeTieredPool(settings);
  quire_pool *pool = tiered.pool.get();
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 1);
  int64_t blocks = statsOf(pool).blocks_free;
  quire_tenant_options tenantOptions = {sizeof(tenantOptions), "t", 1, 0};
  quire_tenant tenant = 0;
  ASSERT_EQ(quire_tenant_create(pool, &tenantOptions, &tenant), QUIRE_OK);
  quire_sequence_options options = {sizeof(options), tenant, 0};
  std::vector<int64_t> prompt = someTokens(70, 3);
  auto begin = [&](quire_sequence &sequence, int64_t expected) {
    int64_t found = -1;
    ASSERT_EQ(quire_sequence_create_with(pool, &options, &sequence), QUIRE_OK);
    ASSERT_EQ(quire_sequence_match_prefix(pool, sequence, prompt.data(), 70, &found), QUIRE_OK);
    ASSERT_EQ(found, expected);
  };
  quire_sequence first = 0, second = 0, third = 0;
  std::vector<int64_t> known;
  begin(first, 0);
  appendStep(executor.get(), first, prompt, known);
  ASSERT_EQ(quire_sequence_publish(pool, first, prompt.data(), 70), QUIRE_OK);
  int32_t head = tableOf(pool, first)[0];
  ASSERT_EQ(quire_sequence_unload(pool, first, 0, 70), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, first), QUIRE_OK);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  tiered.tier->fault = losing(*tiered.pager(), head);
  begin(second, 64);
  EXPECT_EQ(stepOf(executor.get(), {second}), QUIRE_PAGE_LOST);
  tiered.tier->fault = nullptr;
  ASSERT_EQ(intactOf(pool, second), 0);
  ASSERT_EQ(quire_sequence_truncate(pool, second, 0), QUIRE_OK);
  begin(third, 0);
  for (quire_sequence sequence : {second, third}) {
    known.clear();
    appendStep(executor.get(), sequence, prompt, known);
    ASSERT_EQ(quire_sequence_publish(pool, sequence, prompt.data(), 70), QUIRE_OK);
    ASSERT_NE(tableOf(pool, sequence)[0], head) << "nobody takes what is lost";
  }
  quire_tenant_stats stats = {};
  stats.struct_size = sizeof(stats);
  ASSERT_EQ(quire_tenant_get_stats(pool, tenant, &stats), QUIRE_OK);
  EXPECT_EQ(stats.queries, 3);
  EXPECT_EQ(stats.hit_tokens, 0) << "what was found and then lost saved nothing";
  ASSERT_EQ(quire_sequence_release(pool, second), QUIRE_OK);
  ASSERT_EQ(quire_sequence_release(pool, third), QUIRE_OK);
  EXPECT_EQ(statsOf(pool).blocks_free + statsOf(pool).blocks_reclaimable, blocks);
  std::vector<quire_block> all(static_cast<size_t>(blocks));
  EXPECT_EQ(quire_pool_allocate(pool, blocks, all.data()), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

} // namespace
} // namespace quire::test
