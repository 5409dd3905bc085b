// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges that stay in the fast tier: counted pins, their budget, turns of dialogues; and that steps always get their
// pages.
#include "TieredPool.h"
#include "residency/PinnedBlocks.h"

#include <cmath>
#include <random>

using namespace quire;
using namespace quire::test;

namespace {

constexpr int64_t blockTokens = 16;

/// A pool of two tiers with sequences of the toy model whose tokens are known.
class Pinned : public ::testing::Test {
protected:
  void make(int64_t fastPages, double budget, uint32_t slowPages = 120) {
    TieredSettings settings;
    settings.fastPages = fastPages;
    settings.slowPages = slowPages;
    tiered = makeTieredPool(settings);
    pool = tiered.pool.get();
    executor = makeExecutor(model.get(), pool, 1, 256, 8);
    setBudget(budget);
  }

  void setBudget(double share) {
    quire_pool_tuning tuning = {};
    tuning.struct_size = sizeof(tuning);
    ASSERT_EQ(quire_pool_get_tuning(pool, &tuning), QUIRE_OK);
    tuning.pin_budget = share;
    ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK) << quire_last_error();
  }

  void setDialogue(int64_t turns, int64_t pages, const std::vector<int64_t> &important) {
    quire_dialogue_options options = {sizeof(options), turns, pages, important.data(),
                                      static_cast<int64_t>(important.size())};
    ASSERT_EQ(quire_pool_set_dialogue(pool, &options), QUIRE_OK) << quire_last_error();
  }

  quire_sequence create(int64_t tokens) {
    quire_sequence made = 0;
    EXPECT_EQ(quire_sequence_create(pool, &made), QUIRE_OK);
    known.emplace_back();
    append(made, known.size() - 1, tokens);
    return made;
  }

  /// Appends so many random tokens and compares the last row.
  void append(quire_sequence sequence, size_t index, int64_t count) {
    std::vector<int64_t> flat;
    for (int64_t i = 0; i < count; ++i)
      flat.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(toyInfo().token_limit)));
    int64_t last = count - 1;
    std::vector<float> logits(static_cast<size_t>(toyInfo().vocabulary));
    quire_batch batch = {sizeof(batch), 1, &sequence, &count, flat.data(), &last, 1};
    ASSERT_EQ(quire_executor_step(executor.get(), &batch, logits.data()), QUIRE_OK) << quire_last_error();
    known[index].insert(known[index].end(), flat.begin(), flat.end());
    EXPECT_EQ(logits, toyLogits(known[index]));
    ASSERT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  }

  quire_paging_stats stats() const {
    quire_paging_stats out = {};
    out.struct_size = sizeof(out);
    EXPECT_EQ(quire_pool_get_paging_stats(pool, &out), QUIRE_OK);
    return out;
  }

  std::vector<int32_t> table(quire_sequence sequence) const {
    const int32_t *blocks = nullptr;
    int64_t count = 0;
    EXPECT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
    return std::vector<int32_t>(blocks, blocks + count);
  }

  /// Which blocks of the sequence's table are held.
  std::vector<int64_t> heldOf(quire_sequence sequence) const {
    std::vector<int64_t> out;
    std::vector<int32_t> blocks = table(sequence);
    for (size_t i = 0; i < blocks.size(); ++i)
      if (tiered.pager()->pinned().holds(static_cast<uint32_t>(blocks[i])))
        out.push_back(static_cast<int64_t>(i));
    return out;
  }

  TieredPool tiered;
  quire_pool *pool = nullptr;
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor;
  std::vector<std::vector<int64_t>> known; // tokens, in order of creation
  std::mt19937_64 random{7};
};

using Indices = std::vector<int64_t>;

} // namespace

TEST(PinnedBlocks, TheOldestPinGoesFirst) {
  runtime::PinnedBlocks pinned(10);
  pinned.setBudget(2);
  pinned.pin(3, 1);
  pinned.pin(4, 2);
  pinned.pin(3, 0); // renewed
  pinned.pin(5, 1);
  EXPECT_TRUE(pinned.holds(3) && pinned.holds(5) && !pinned.holds(4));
  EXPECT_EQ(pinned.givenUp(), 1u);
  EXPECT_EQ(pinned.pins(4), 2u) << "it may be taken back as often as it was given";
  pinned.unpin(4, 2);
  pinned.pin(4, 0);
  EXPECT_FALSE(pinned.holds(4)) << "it has no pin that could be renewed";
  pinned.setBudget(0);
  EXPECT_EQ(pinned.held(), 0u);
  EXPECT_FALSE(pinned.giveUpOldest());
  EXPECT_TRUE(pinned.validate().ok());
}

TEST_F(Pinned, PagesStayWhileOthersComeAndGo) {
  make(24, 0.25); // two blocks of three layers
  quire_sequence first = create(6 * blockTokens);
  ASSERT_EQ(quire_sequence_pin(pool, first, 0, blockTokens + 1), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(heldOf(first), (Indices{0, 1}));
  EXPECT_EQ(stats().pinned_blocks, 2);
  EXPECT_EQ(stats().pin_budget_blocks, 2);
  quire_sequence second = create(7 * blockTokens);
  for (int i = 0; i < 20; ++i) {
    append(second, 1, 1);
    append(first, 0, 1);
  }
  // Only what is not held had to be loaded again.
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  int64_t loads = tiered.tier->loads;
  std::vector<int32_t> blocks = table(first);
  void *address = nullptr;
  for (int64_t layer = 0; layer < toyInfo().layer_count; ++layer)
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_EQ(quire_pool_pin(pool, layer, blocks[i], 0, &address), QUIRE_OK);
      ASSERT_EQ(quire_pool_unpin(pool, layer, blocks[i]), QUIRE_OK);
    }
  EXPECT_EQ(tiered.tier->loads, loads);
  EXPECT_GT(loads, 0) << "there was no pressure";
  EXPECT_EQ(stats().pins_given_up, 0);
}

TEST_F(Pinned, PinsAreCounted) {
  make(36, 0.5);
  quire_sequence sequence = create(3 * blockTokens);
  ASSERT_EQ(quire_sequence_pin(pool, sequence, 0, 2 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_pin(pool, sequence, blockTokens, 3 * blockTokens), QUIRE_OK);
  EXPECT_EQ(heldOf(sequence), (Indices{0, 1, 2}));
  ASSERT_EQ(quire_sequence_unpin(pool, sequence, 0, 2 * blockTokens), QUIRE_OK);
  EXPECT_EQ(heldOf(sequence), (Indices{1, 2}));
  EXPECT_EQ(quire_sequence_unpin(pool, sequence, 0, blockTokens + 1), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "block 0 of the sequence is not pinned");
  EXPECT_EQ(heldOf(sequence), (Indices{1, 2})) << "all or nothing";
  EXPECT_EQ(quire_sequence_pin(pool, sequence, 0, 3 * blockTokens + 1), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected tokens of the 48 that are stored, but got 0 to 49");
  EXPECT_EQ(quire_sequence_pin(pool, sequence, 5, 4), QUIRE_INVALID_ARGUMENT);
  ASSERT_EQ(quire_sequence_pin(pool, sequence, 16, 16), QUIRE_OK) << "an empty range";
  EXPECT_EQ(stats().pinned_blocks, 2);
  // What the sequence gives up is pinned no more.
  ASSERT_EQ(quire_sequence_truncate(pool, sequence, 2 * blockTokens), QUIRE_OK);
  EXPECT_EQ(stats().pinned_blocks, 1);
  ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  EXPECT_EQ(stats().pinned_blocks, 0);
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

TEST_F(Pinned, BeyondTheBudgetTheOldestAreGivenUp) {
  make(36, 0.25); // three blocks
  quire_sequence sequence = create(6 * blockTokens);
  ASSERT_EQ(quire_sequence_pin(pool, sequence, 0, 5 * blockTokens), QUIRE_OK);
  EXPECT_EQ(heldOf(sequence), (Indices{2, 3, 4}));
  EXPECT_EQ(stats().pins_given_up, 2);
  setBudget(0.1);
  EXPECT_EQ(heldOf(sequence), (Indices{4}));
  setBudget(0.5);
  ASSERT_EQ(quire_sequence_pin(pool, sequence, 0, 1), QUIRE_OK) << "pinned anew";
  EXPECT_EQ(heldOf(sequence), (Indices{0, 4}));
  ASSERT_EQ(quire_sequence_unpin(pool, sequence, 0, 5 * blockTokens), QUIRE_OK) << "also what was given up";
  EXPECT_EQ(heldOf(sequence), (Indices{0}));
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

/// All of the fast tier is pinned, and a step of as many other blocks as fit comes along.
TEST_F(Pinned, AStepAlwaysGetsItsPages) {
  make(12, 1);
  quire_sequence first = create(4 * blockTokens);
  ASSERT_EQ(quire_sequence_pin(pool, first, 0, 4 * blockTokens), QUIRE_OK);
  EXPECT_EQ(stats().pinned_blocks, 4);
  quire_sequence second = create(11 * blockTokens);
  append(second, 1, 4);
  EXPECT_GT(stats().pins_given_up, 0);
  append(first, 0, 3);
  ASSERT_EQ(quire_sequence_unpin(pool, first, 0, 4 * blockTokens), QUIRE_OK);
}

TEST_F(Pinned, CopiesOnWriteTakePinsAlong) {
  make(36, 0.5);
  quire_sequence source = create(blockTokens + 4), fork = 0;
  ASSERT_EQ(quire_sequence_pin(pool, source, 0, blockTokens + 4), QUIRE_OK);
  ASSERT_EQ(quire_sequence_fork(pool, source, blockTokens + 4, &fork), QUIRE_OK);
  append(source, 0, 1); // into a block that both have
  EXPECT_NE(table(source)[1], table(fork)[1]);
  EXPECT_EQ(heldOf(source), (Indices{0, 1}));
  EXPECT_EQ(heldOf(fork), (Indices{0})) << "which both have";
  ASSERT_EQ(quire_sequence_release(pool, source), QUIRE_OK);
  EXPECT_EQ(heldOf(fork), Indices{});
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

TEST_F(Pinned, RecentTurnsAndImportantPagesStay) {
  make(60, 0.5); // ten blocks
  setDialogue(2, 1, {0});
  quire_sequence sequence = create(2 * blockTokens);
  EXPECT_EQ(heldOf(sequence), Indices{}) << "without a turn it is no dialogue";
  ASSERT_EQ(quire_sequence_end_turn(pool, sequence, 2 * blockTokens), QUIRE_OK);
  EXPECT_EQ(heldOf(sequence), (Indices{0, 1}));
  append(sequence, 0, 2 * blockTokens);
  EXPECT_EQ(heldOf(sequence), (Indices{0, 1, 2, 3})) << "what follows the last turn";
  ASSERT_EQ(quire_sequence_end_turn(pool, sequence, 3 * blockTokens), QUIRE_OK);
  ASSERT_EQ(quire_sequence_end_turn(pool, sequence, 3 * blockTokens + 4), QUIRE_OK);
  EXPECT_EQ(heldOf(sequence), (Indices{0, 2, 3})) << "the first turn is too old";
  append(sequence, 0, 2 * blockTokens);
  ASSERT_EQ(quire_sequence_end_turn(pool, sequence, 6 * blockTokens), QUIRE_OK);
  EXPECT_EQ(heldOf(sequence), (Indices{0, 3, 4, 5}));
  setDialogue(0, 3, {1, 40}); // only pages now
  EXPECT_EQ(heldOf(sequence), (Indices{1, 3, 4, 5}));
  append(sequence, 0, 1);
  EXPECT_EQ(heldOf(sequence), (Indices{1, 4, 5, 6}));
  setDialogue(1, 0, {});
  EXPECT_EQ(heldOf(sequence), (Indices{3, 4, 5, 6}));
  ASSERT_EQ(quire_sequence_truncate(pool, sequence, 4 * blockTokens), QUIRE_OK); // into the last turn, which is gone
  EXPECT_EQ(heldOf(sequence), (Indices{3}));
  ASSERT_EQ(quire_pool_set_dialogue(pool, nullptr), QUIRE_OK);
  EXPECT_EQ(heldOf(sequence), Indices{});
  ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

TEST_F(Pinned, ImportantPagesAreGivenUpLast) {
  make(36, 0.25); // three blocks
  setDialogue(3, 0, {0});
  quire_sequence sequence = create(6 * blockTokens);
  ASSERT_EQ(quire_sequence_end_turn(pool, sequence, 6 * blockTokens), QUIRE_OK);
  EXPECT_EQ(heldOf(sequence), (Indices{0, 4, 5}));
}

TEST_F(Pinned, RefusesTurnsThatAreNone) {
  make(36, 0.25);
  quire_sequence sequence = create(10);
  EXPECT_EQ(quire_sequence_end_turn(pool, sequence, 11), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected a turn that ends after 0 of the 10 tokens that are stored, but got 11");
  EXPECT_EQ(quire_sequence_end_turn(pool, sequence, 0), QUIRE_INVALID_ARGUMENT);
  ASSERT_EQ(quire_sequence_end_turn(pool, sequence, 4), QUIRE_OK);
  EXPECT_EQ(quire_sequence_end_turn(pool, sequence, 4), QUIRE_INVALID_ARGUMENT);
  ASSERT_EQ(quire_sequence_truncate(pool, sequence, 3), QUIRE_OK);
  ASSERT_EQ(quire_sequence_end_turn(pool, sequence, 3), QUIRE_OK) << "the turn before was shortened";
  int64_t negative = -1;
  quire_dialogue_options options = {sizeof(options), 1, 1, &negative, 1};
  EXPECT_EQ(quire_pool_set_dialogue(pool, &options), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "important_pages[0]: expected at least 0, but got -1");
  options.recent_turns = -1;
  EXPECT_EQ(quire_pool_set_dialogue(pool, &options), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_pin(pool, sequence + 1, 0, 1), QUIRE_INVALID_ARGUMENT);
}

TEST_F(Pinned, WhatWasProcessedLeavesAndComesBack) {
  make(60, 0.25);
  quire_sequence sequence = create(6 * blockTokens + 3);
  ASSERT_EQ(quire_sequence_pin(pool, sequence, 0, 1), QUIRE_OK);
  uint32_t before = tiered.pager()->fastPagesFree();
  ASSERT_EQ(quire_sequence_unload(pool, sequence, 5, 4 * blockTokens + 1), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(tiered.pager()->fastPagesFree(), before + 3 * 3) << "blocks 1 to 3, in three layers";
  ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, 6 * blockTokens + 3), QUIRE_OK);
  EXPECT_EQ(tiered.pager()->fastPagesFree(), before + 5 * 3)
      << "what is pinned stays, and so does the last block, which is not full";
  ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, 6 * blockTokens), QUIRE_OK) << "again";
  EXPECT_EQ(tiered.tier->stores, 5 * 3);
  ASSERT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  append(sequence, 0, 2); // reads all of it
  EXPECT_EQ(tiered.tier->loads, 5 * 3);
  EXPECT_EQ(quire_sequence_unload(pool, sequence, 0, 200), QUIRE_INVALID_ARGUMENT);
  // A device that takes nothing: it stays.
  tiered.tier->fault = [](const runtime::Transfer &transfer) {
    return transfer.kind == runtime::Transfer::Kind::Store ? QUIRE_NO_SPACE : QUIRE_OK;
  };
  append(sequence, 0, blockTokens);
  EXPECT_EQ(quire_sequence_unload(pool, sequence, 6 * blockTokens, 7 * blockTokens), QUIRE_NO_SPACE);
  append(sequence, 0, 1);
}

TEST_F(Pinned, ImportanceDecidesWhatGivesWay) {
  TieredSettings settings;
  settings.fastPages = 12;
  settings.policy = runtime::PolicyKind::Importance;
  settings.window = 0;
  tiered = makeTieredPool(settings);
  pool = tiered.pool.get();
  executor = makeExecutor(model.get(), pool, 1, 256, 8);
  quire_sequence important = create(2 * blockTokens), other = create(2 * blockTokens);
  ASSERT_EQ(quire_sequence_set_importance(pool, important, 0, 2 * blockTokens, 1), QUIRE_OK) << quire_last_error();
  ASSERT_EQ(quire_sequence_set_importance(pool, other, 0, 2 * blockTokens, 0.01f), QUIRE_OK);
  create(2 * blockTokens); // six pages have to give way
  std::vector<int32_t> blocks = table(important);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  int64_t loads = tiered.tier->loads;
  void *address = nullptr;
  for (int64_t layer = 0; layer < toyInfo().layer_count; ++layer)
    for (int32_t block : blocks) {
      ASSERT_EQ(quire_pool_pin(pool, layer, block, 0, &address), QUIRE_OK);
      ASSERT_EQ(quire_pool_unpin(pool, layer, block), QUIRE_OK);
    }
  EXPECT_EQ(tiered.tier->loads, loads);
  EXPECT_EQ(quire_sequence_set_importance(pool, other, 0, 1, 1.5f), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected an importance of 0 to 1, but got 1.5");
}

TEST(TfIdf, RareTokensWeighMore) {
  //                  |------|  |------------|  |----|
  int64_t tokens[] = {1, 1, 2, 1, 1, 1, 1, 3, 4, 5, 1}, ends[] = {3, 7, 7, 11};
  float scores[4];
  ASSERT_EQ(quire_tfidf(tokens, ends, 4, scores), QUIRE_OK);
  double common = std::log(4.0 / 3), rare = std::log(4.0);
  double expected[] = {(2 * common + rare) / 3, common, 0, (common + 3 * rare) / 4};
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(scores[i], expected[i] / expected[3], 1e-6) << i;
  int64_t same[] = {7, 7}, halves[] = {1, 2};
  ASSERT_EQ(quire_tfidf(same, halves, 2, scores), QUIRE_OK);
  EXPECT_EQ(scores[0], 0);
  EXPECT_EQ(scores[1], 0);
  int64_t back[] = {2, 1};
  EXPECT_EQ(quire_tfidf(same, back, 2, scores), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "ends[1]: expected at least 2, but got 1");
  EXPECT_EQ(quire_tfidf(nullptr, nullptr, 0, nullptr), QUIRE_OK);
}

/// Random pins and turns beside steps; validate() checks counts, budget and that nothing held leaves.
TEST_F(Pinned, RandomPinsNeverHarmSteps) {
  make(18, 0.6);
  setDialogue(1, 1, {0});
  quire_sequence sequences[3] = {create(20), create(40), create(60)};
  std::vector<std::pair<int64_t, int64_t>> pins[3];
  for (int i = 0; i < 150 && !HasFailure(); ++i) {
    size_t which = random() % 3;
    int64_t length = static_cast<int64_t>(known[which].size());
    switch (random() % 4) {
    case 0: {
      int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(length));
      int64_t end = begin + static_cast<int64_t>(random() % static_cast<uint64_t>(length - begin + 1));
      ASSERT_EQ(quire_sequence_pin(pool, sequences[which], begin, end), QUIRE_OK) << quire_last_error();
      pins[which].emplace_back(begin, end);
      break;
    }
    case 1:
      if (!pins[which].empty()) {
        auto [begin, end] = pins[which].back();
        ASSERT_EQ(quire_sequence_unpin(pool, sequences[which], begin, end), QUIRE_OK) << quire_last_error();
        pins[which].pop_back();
      }
      break;
    case 2:
      (void)quire_sequence_end_turn(pool, sequences[which], length);
      break;
    default:
      if (length < 240)
        append(sequences[which], which, 1 + static_cast<int64_t>(random() % 3));
    }
    ASSERT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  }
  EXPECT_GT(stats().pins_given_up, 0);
  EXPECT_GT(stats().misses, 0);
}
