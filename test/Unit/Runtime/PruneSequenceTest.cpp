// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sequences that lose tokens: whole blocks become free, survivors keep K, V and position, and everybody else notices nothing.
#include "AllocationCount.h"
#include "TieredPool.h"

#include <cmath>

using namespace quire;
using namespace quire::test;

namespace {

constexpr int64_t blockTokens = 16;

/// K and V of a position, which nothing else has.
float elementOf(int64_t position, int64_t layer, int64_t head, bool value, int64_t d) {
  return static_cast<float>(position * 1000 + layer * 300 + head * 40 + value * 20 + d);
}

/// With a slow tier (true) of which little is in memory, and without.
class PruneSequence : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override { make(12); }

  void make(int64_t blocks) {
    plain.reset();
    tiered = {};
    if (GetParam()) {
      TieredSettings settings;
      settings.fastPages = 5;
      settings.slowPages = static_cast<uint32_t>(blocks * toyInfo().layer_count - 4);
      tiered = makeTieredPool(settings);
      pool = tiered.pool.get();
    } else {
      plain = makePool({blocks, true, 3});
      pool = plain.get();
    }
    ASSERT_EQ(statsOf(pool).blocks_total, blocks);
  }

  void eachRow(quire_sequence sequence, int64_t begin, int64_t end, bool write, const std::function<int64_t(int64_t)> &positionOf) {
    const quire_model_info &info = toyInfo();
    for (int64_t token = begin; token < end; ++token)
      for (int64_t layer = 0; layer < info.layer_count; ++layer) {
        const int32_t *blocks = nullptr;
        int64_t count = 0;
        void *address = nullptr;
        ASSERT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
        int32_t block = blocks[token / blockTokens];
        ASSERT_EQ(quire_pool_pin(pool, layer, block, write, &address), QUIRE_OK) << quire_last_error();
        for (int64_t head = 0; head < info.layers[layer].kv_heads; ++head) {
          std::vector<float> key, value;
          for (int64_t d = 0; d < info.layers[layer].key_dim; ++d)
            key.push_back(elementOf(positionOf(token), layer, head, false, d));
          for (int64_t d = 0; d < info.layers[layer].value_dim; ++d)
            value.push_back(elementOf(positionOf(token), layer, head, true, d));
          std::vector<float> foundKey(key.size()), foundValue(value.size());
          if (write)
            ASSERT_EQ(quire_block_store_row(&info, layer, address, head, token % blockTokens, key.data(), value.data()), QUIRE_OK);
          ASSERT_EQ(quire_block_load_row(&info, layer, address, head, token % blockTokens, foundKey.data(), foundValue.data()), QUIRE_OK);
          ASSERT_EQ(foundKey, key) << "token " << token << " of layer " << layer;
          ASSERT_EQ(foundValue, value) << "token " << token << " of layer " << layer;
        }
        ASSERT_EQ(quire_pool_unpin(pool, layer, block), QUIRE_OK);
      }
  }

  /// Appends tokens, each with the numbers of the position that it gets.
  void append(quire_sequence sequence, int64_t count) {
    int64_t length = 0, next = 0;
    const int64_t *ignored = nullptr;
    ASSERT_EQ(quire_sequence_reserve(pool, sequence, count), QUIRE_OK) << quire_last_error();
    ASSERT_EQ(quire_sequence_length(pool, sequence, &length), QUIRE_OK);
    ASSERT_EQ(quire_sequence_positions(pool, sequence, &ignored, &next), QUIRE_OK);
    eachRow(sequence, length, length + count, true, [&](int64_t token) { return next + token - length; });
    ASSERT_EQ(quire_sequence_commit(pool, sequence, count), QUIRE_OK);
  }

  quire_sequence create(int64_t tokens) {
    quire_sequence made = 0;
    EXPECT_EQ(quire_sequence_create(pool, &made), QUIRE_OK);
    append(made, tokens);
    return made;
  }

  std::vector<int64_t> positionsOf(quire_sequence sequence) {
    int64_t length = 0, next = 0;
    const int64_t *positions = nullptr;
    EXPECT_EQ(quire_sequence_length(pool, sequence, &length), QUIRE_OK);
    EXPECT_EQ(quire_sequence_positions(pool, sequence, &positions, &next), QUIRE_OK);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < length; ++i)
      all.push_back(positions ? positions[i] : i);
    all.push_back(next);
    return all;
  }

  /// All that is stored is what its position had, and the pool is whole.
  void expectSound(quire_sequence sequence) {
    std::vector<int64_t> positions = positionsOf(sequence);
    eachRow(sequence, 0, static_cast<int64_t>(positions.size()) - 1, false, [&](int64_t token) { return positions[static_cast<size_t>(token)]; });
    EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  }

  /// Of each range every second token is important: the odd ones.
  quire_status prune(quire_sequence sequence, int64_t begin, int64_t end, double ratio, const std::vector<int64_t> &keep = {}) {
    std::vector<float> scores;
    for (int64_t token = begin; token < end; ++token)
      scores.push_back(token % 2 ? 1.0f : 0.0f);
    quire_prune_options options = {sizeof(options), ratio, scores.data(), keep.data(), static_cast<int64_t>(keep.size() / 2)};
    done = {sizeof(done), -1, -1};
    return quire_sequence_prune(pool, sequence, begin, end, &options, &done);
  }

  serving::PoolPointer plain;
  TieredPool tiered;
  quire_pool *pool = nullptr;
  quire_pruning done = {};
};

} // namespace

TEST_P(PruneSequence, HalfOfFourBlocksFreesTwo) {
  quire_sequence sequence = create(5 * blockTokens + 3);
  int64_t free = statsOf(pool).blocks_free;
  ASSERT_EQ(prune(sequence, 0, 4 * blockTokens + 7, 0.5), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(done.blocks, 2);
  EXPECT_EQ(done.tokens, 2 * blockTokens);
  EXPECT_EQ(statsOf(pool).blocks_free, free + 2) << "not only marked: they are free";
  EXPECT_EQ(statsOf(pool).pruned_blocks, 2);
  EXPECT_EQ(statsOf(pool).pruned_tokens, 2 * blockTokens);
  std::vector<int64_t> expected;
  for (int64_t position = 1; position < 4 * blockTokens; position += 2)
    expected.push_back(position);
  for (int64_t position = 4 * blockTokens; position <= 5 * blockTokens + 3; ++position)
    expected.push_back(position); // the last is the next one
  EXPECT_EQ(positionsOf(sequence), expected);
  expectSound(sequence);
  append(sequence, 20);
  EXPECT_EQ(positionsOf(sequence).back(), 5 * blockTokens + 23);
  expectSound(sequence);
  ASSERT_EQ(prune(sequence, blockTokens, 3 * blockTokens, 0.5), QUIRE_OK) << "again";
  EXPECT_EQ(done.blocks, 1);
  expectSound(sequence);
  const char *text = nullptr;
  ASSERT_EQ(quire_metrics(pool, &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("quire_pruned_tokens_total"), std::string::npos);
}

TEST_P(PruneSequence, SurvivorsFillTheirBlocks) {
  quire_sequence sequence = create(4 * blockTokens);
  ASSERT_EQ(prune(sequence, 0, 4 * blockTokens, 0.6), QUIRE_OK);
  EXPECT_EQ(done.blocks, 2) << "26 of 64 tokens, which 32 become";
  EXPECT_EQ(positionsOf(sequence).size(), 33u);
  ASSERT_EQ(prune(sequence, 0, 2 * blockTokens, 0.4), QUIRE_OK);
  EXPECT_EQ(done.blocks, 0) << "20 tokens need two blocks";
  EXPECT_EQ(positionsOf(sequence).size(), 33u);
  ASSERT_EQ(prune(sequence, 3, 29, 1), QUIRE_OK);
  EXPECT_EQ(done.blocks, 0) << "no block holds tokens of the range only";
  ASSERT_EQ(prune(sequence, 0, blockTokens, 1), QUIRE_OK);
  EXPECT_EQ(done.blocks, 1);
  expectSound(sequence);
  ASSERT_EQ(prune(sequence, 0, blockTokens, 1), QUIRE_OK);
  EXPECT_EQ(positionsOf(sequence), (std::vector<int64_t>{4 * blockTokens})) << "nothing is left but the next position";
  append(sequence, 3);
  expectSound(sequence);
}

TEST_P(PruneSequence, WhatIsToStayStays) {
  quire_sequence sequence = create(4 * blockTokens + 2);
  for (int64_t end : {10, 20, 40, 66})
    ASSERT_EQ(quire_sequence_end_turn(pool, sequence, end), QUIRE_OK);
  ASSERT_EQ(prune(sequence, 0, 4 * blockTokens, 0.75, {0, 12, 60, 1000}), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(done.blocks, 3) << "12 and 4 tokens are kept in any case";
  std::vector<int64_t> expected = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 60, 61, 62, 63, 64, 65, 66};
  EXPECT_EQ(positionsOf(sequence), expected);
  expectSound(sequence);
  EXPECT_EQ(quire_sequence_end_turn(pool, sequence, 18), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected a turn that ends after 18 of the 18 tokens that are stored, but got 18");
  ASSERT_EQ(quire_sequence_truncate(pool, sequence, 12), QUIRE_OK);
  EXPECT_EQ(quire_sequence_end_turn(pool, sequence, 12), QUIRE_INVALID_ARGUMENT) << "the second turn has its last two tokens there, the third none";
  EXPECT_EQ(positionsOf(sequence).back(), 12) << "and without a gap it is whole";
  append(sequence, 1);
  ASSERT_EQ(quire_sequence_end_turn(pool, sequence, 13), QUIRE_OK) << quire_last_error();
}

TEST_P(PruneSequence, OthersKeepWhatTheyShare) {
  quire_sequence sequence = create(4 * blockTokens + 1), fork = 0, later = 0;
  ASSERT_EQ(quire_sequence_fork(pool, sequence, 3 * blockTokens + 5, &fork), QUIRE_OK);
  ASSERT_EQ(prune(sequence, 0, 4 * blockTokens, 0.5), QUIRE_OK) << quire_last_error();
  expectSound(fork);
  EXPECT_EQ(positionsOf(fork).back(), 3 * blockTokens + 5);
  expectSound(sequence);
  ASSERT_EQ(quire_sequence_fork(pool, sequence, blockTokens + 3, &later), QUIRE_OK);
  EXPECT_EQ(positionsOf(later).back(), 2 * (blockTokens + 2) + 2) << "after the last token that the fork has";
  append(later, 2);
  expectSound(later);
  expectSound(sequence);
  ASSERT_EQ(prune(fork, 0, 2 * blockTokens, 0.5), QUIRE_OK) << quire_last_error();
  expectSound(fork);
}

TEST_P(PruneSequence, PrefixesAreOfWholeSequencesOnly) {
  quire_sequence sequence = create(2 * blockTokens);
  ASSERT_EQ(prune(sequence, 0, 2 * blockTokens, 0.5), QUIRE_OK);
  int64_t token = 3, matched = 0;
  EXPECT_EQ(quire_sequence_publish(pool, sequence, &token, 0), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "16 tokens of the sequence were pruned: what is stored is no prefix of tokens");
  EXPECT_EQ(quire_sequence_match_prefix(pool, sequence, &token, 1, &matched), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_reserve(pool, sequence, TOY_MAX_POSITIONS - 2 * blockTokens + 1), QUIRE_TOO_LONG) << "positions count, not tokens";
}

namespace {

/// Sequences that steps of the toy model fill, each beside what it should hold.
class PruneSteps : public PruneSequence {
protected:
  struct Row {
    quire_sequence sequence = 0;
    ToySequence expected;
  };

  void SetUp() override {
    PruneSequence::SetUp();
    model = makeModel();
    executor = makeExecutor(model.get(), pool, 2, 256, 4);
  }

  Row open() {
    Row row;
    EXPECT_EQ(quire_sequence_create(pool, &row.sequence), QUIRE_OK);
    return row;
  }

  /// A step with so many new tokens for each; all of their logits are looked at.
  void step(const std::vector<std::pair<Row *, int64_t>> &parts) {
    std::vector<quire_sequence> sequences;
    std::vector<int64_t> counts, tokens, selected;
    for (auto [row, count] : parts) {
      sequences.push_back(row->sequence);
      counts.push_back(count);
      for (int64_t i = 0; i < count; ++i) {
        selected.push_back(static_cast<int64_t>(tokens.size()));
        tokens.push_back((row->expected.next() + i) * 31 % 89 + static_cast<int64_t>(parts.size()));
      }
    }
    std::vector<float> logits(tokens.size() * TOY_VOCABULARY);
    quire_batch batch = {sizeof(batch), static_cast<int64_t>(parts.size()), sequences.data(), counts.data(), tokens.data(), selected.data(), static_cast<int64_t>(selected.size())};
    ASSERT_EQ(quire_executor_step(executor.get(), &batch, logits.data()), QUIRE_OK) << quire_last_error();
    size_t at = 0;
    for (auto [row, count] : parts)
      for (int64_t i = 0; i < count; ++i, ++at) {
        row->expected.append(tokens[at]);
        ASSERT_EQ(std::vector<float>(logits.begin() + static_cast<std::ptrdiff_t>(at * TOY_VOCABULARY), logits.begin() + static_cast<std::ptrdiff_t>((at + 1) * TOY_VOCABULARY)),
                  row->expected.logits())
            << "row " << at << ", position " << row->expected.next() - 1;
      }
    EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  }

  void pruneRow(Row &row, int64_t begin, int64_t end, double ratio) {
    ASSERT_EQ(prune(row.sequence, begin, end, ratio), QUIRE_OK) << quire_last_error();
    row.expected.keepOnly(positionsOf(row.sequence));
  }

  serving::ModelPointer model;
  serving::ExecutorPointer executor;
};

} // namespace

/// Rows after the gap have their positions, are stored at their places, and see what is left: alone, in chunks, and beside a sequence without a gap.
TEST_P(PruneSteps, GoOnWithPlacesAndPositions) {
  Row pruned = open(), other = open();
  step({{&pruned, 2 * blockTokens + 8}});
  step({{&other, 5}, {&pruned, 1}});
  pruneRow(pruned, 0, 2 * blockTokens, 0.5);
  EXPECT_EQ(pruned.expected.next(), 2 * blockTokens + 9);
  step({{&pruned, 1}});
  step({{&pruned, 9}, {&other, 3}});
  step({{&other, 1}, {&pruned, 20}});
  EXPECT_EQ(positionsOf(pruned.sequence).back(), 2 * blockTokens + 39);
  pruneRow(pruned, blockTokens, 3 * blockTokens, 0.5);
  step({{&pruned, 1}, {&other, 1}});
}

TEST_P(PruneSteps, GoOnInForksAndAfterTruncation) {
  Row row = open(), fork;
  step({{&row, 3 * blockTokens}});
  pruneRow(row, 0, 2 * blockTokens, 0.5);
  step({{&row, 3}});
  fork.expected = row.expected;
  ASSERT_EQ(quire_sequence_fork(pool, row.sequence, 2 * blockTokens + 3, &fork.sequence), QUIRE_OK);
  step({{&fork, 2}});
  step({{&row, 1}});
  // Back to before the first gap: whole again, and tokens have their places for positions.
  ASSERT_EQ(quire_sequence_truncate(pool, row.sequence, 0), QUIRE_OK);
  row.expected = ToySequence();
  step({{&row, 4}, {&fork, 1}});
  EXPECT_EQ(positionsOf(row.sequence), (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

#ifndef QUIRE_CHECK_INVARIANTS // the checks allocate
TEST_P(PruneSteps, AllocateNothing) {
  if (GetParam())
    return; // the tier of these tests allocates
  Row row = open(), fork;
  step({{&row, 3 * blockTokens}});
  pruneRow(row, 0, 2 * blockTokens, 0.5);
  ASSERT_EQ(quire_sequence_fork(pool, row.sequence, blockTokens + 3, &fork.sequence), QUIRE_OK);
  for (quire_sequence sequence : {row.sequence, fork.sequence}) {
    int64_t count = blockTokens + 1;
    std::vector<int64_t> tokens(static_cast<size_t>(count), 5);
    quire_batch batch = {sizeof(batch), 1, &sequence, &count, tokens.data(), nullptr, 0};
    int64_t before = allocations.load();
    quire_status status = quire_executor_step(executor.get(), &batch, nullptr);
    EXPECT_EQ(allocations.load(), before);
    EXPECT_EQ(status, QUIRE_OK) << quire_last_error();
  }
}
#endif

/// What a layer says of itself decides, for the pool as for the steps of a model that has the same shape.
TEST(PruneLayers, ThatNeedPositionsAllowNone) {
  quire_model_info info = toyInfo();
  std::vector<quire_model_layer> layers(info.layers, info.layers + info.layer_count);
  layers[1].place_is_position = 1;
  info.layers = layers.data();
  std::vector<float> scores(2 * blockTokens, 1.0f);
  quire_prune_options options = {sizeof(options), 0.5, scores.data(), nullptr, 0};
  int64_t count = 2 * blockTokens, one = 1, token = 3;
  std::vector<int64_t> tokens(static_cast<size_t>(count), 7);
  quire_model *loaded = nullptr;
  ASSERT_EQ(quire_model_from_info(&info, toyWeights(), &loaded), QUIRE_OK) << quire_last_error();
  serving::ModelPointer model(loaded);
  for (bool poolSays : {true, false}) {
    serving::PoolPointer pool = makePool({4}, poolSays ? info : toyInfo());
    serving::ExecutorPointer executor = makeExecutor(model.get(), pool.get());
    quire_sequence sequence = 0;
    ASSERT_EQ(quire_sequence_create(pool.get(), &sequence), QUIRE_OK);
    quire_batch batch = {sizeof(batch), 1, &sequence, &count, tokens.data(), nullptr, 0};
    ASSERT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_OK) << quire_last_error();
    EXPECT_EQ(quire_sequence_prune(pool.get(), sequence, 0, count, &options, nullptr), poolSays ? QUIRE_INVALID_ARGUMENT : QUIRE_OK);
    if (poolSays) {
      EXPECT_STREQ(quire_last_error(), "prune: layer 1 of the model takes the place of a key for its position");
    }
    batch.token_counts = &one;
    batch.tokens = &token;
    int64_t free = statsOf(pool.get()).blocks_free;
    EXPECT_EQ(quire_executor_step(executor.get(), &batch, nullptr), poolSays ? QUIRE_OK : QUIRE_INVALID_ARGUMENT);
    if (!poolSays) {
      EXPECT_STREQ(quire_last_error(), "sequences[0]: 16 tokens were pruned, but layer 1 of the model takes the place of a key for its position");
      EXPECT_EQ(statsOf(pool.get()).blocks_free, free) << "nothing is reserved";
    }
  }
}

TEST_P(PruneSequence, WithoutRoomOrUnpinnedBlocksNothingChanges) {
  make(5);
  quire_sequence sequence = create(4 * blockTokens), other = create(3);
  std::vector<int64_t> before = positionsOf(sequence);
  ASSERT_EQ(statsOf(pool).blocks_free, 0);
  EXPECT_EQ(prune(sequence, 0, 4 * blockTokens, 0.5), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(done.blocks, -1) << "written on success only";
  EXPECT_EQ(positionsOf(sequence), before);
  expectSound(sequence);
  ASSERT_EQ(quire_sequence_release(pool, other), QUIRE_OK);
  EXPECT_EQ(prune(sequence, 0, 4 * blockTokens, 0.5), QUIRE_OUT_OF_BLOCKS) << "two are needed";
  ASSERT_EQ(quire_sequence_pin(pool, sequence, 20, 21), QUIRE_OK);
  EXPECT_EQ(prune(sequence, 0, 2 * blockTokens, 0.5), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "block 1 of the sequence is pinned");
  ASSERT_EQ(prune(sequence, 2 * blockTokens, 4 * blockTokens, 0.5), QUIRE_OK) << quire_last_error();
  ASSERT_EQ(quire_sequence_unpin(pool, sequence, 20, 21), QUIRE_OK);
  ASSERT_EQ(prune(sequence, 0, 2 * blockTokens, 0.5), QUIRE_OK) << "a few blocks at a time";
  EXPECT_EQ(statsOf(pool).blocks_free, 3);
  expectSound(sequence);
}

/// The first survivors of a range may be where they belong already.
TEST_P(PruneSequence, BlocksThatStayAsTheyAreNeedNoRoom) {
  make(4);
  quire_sequence sequence = create(4 * blockTokens);
  std::vector<float> scores(4 * blockTokens, 0.0f);
  quire_prune_options options = {sizeof(options), 0.5, scores.data(), nullptr, 0};
  ASSERT_EQ(quire_sequence_prune(pool, sequence, 0, 4 * blockTokens, &options, nullptr), QUIRE_OK) << "of equal ones the first stay";
  EXPECT_EQ(positionsOf(sequence).size(), 2u * blockTokens + 1);
  EXPECT_EQ(statsOf(pool).blocks_free, 2);
  expectSound(sequence);
}

TEST_P(PruneSequence, WhatIsLostIsNotPruned) {
  if (!GetParam())
    return;
  quire_sequence sequence = create(4 * blockTokens);
  ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, 4 * blockTokens), QUIRE_OK);
  int64_t used = statsOf(pool).blocks_total - statsOf(pool).blocks_free;
  tiered.tier->fault = [](const runtime::Transfer &transfer) { return transfer.kind == runtime::Transfer::Kind::Load ? QUIRE_IO_ERROR : QUIRE_OK; };
  EXPECT_EQ(prune(sequence, 0, 4 * blockTokens, 0.5), QUIRE_PAGE_LOST);
  EXPECT_EQ(statsOf(pool).blocks_total - statsOf(pool).blocks_free, used);
  EXPECT_EQ(positionsOf(sequence).size(), 4u * blockTokens + 1);
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

TEST_P(PruneSequence, BadCallsAreRefused) {
  quire_sequence sequence = create(2 * blockTokens);
  std::vector<float> scores(2 * blockTokens, 1.0f);
  quire_prune_options options = {sizeof(options), 0.5, scores.data(), nullptr, 0};
  auto call = [&](int64_t end = 2 * blockTokens) { return quire_sequence_prune(pool, sequence, 0, end, &options, nullptr); };
  options.struct_size = 0;
  EXPECT_EQ(call(), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "struct_size is not set");
  options.struct_size = sizeof(options);
  done = {};
  EXPECT_EQ(quire_sequence_prune(pool, sequence, 0, 1, &options, &done), QUIRE_INVALID_ARGUMENT);
  for (double ratio : {-0.1, 1.1, std::nan("")}) {
    options.ratio = ratio;
    EXPECT_EQ(call(), QUIRE_INVALID_ARGUMENT);
    EXPECT_EQ(std::string(quire_last_error()).rfind("ratio: expected 0 to 1, but got ", 0), 0u) << quire_last_error();
  }
  options.ratio = 0.5;
  EXPECT_EQ(call(2 * blockTokens + 1), QUIRE_INVALID_ARGUMENT);
  options.keep_count = 1;
  EXPECT_EQ(call(), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "prune: expected scores of the range, and a count of at least 0 of ranges to keep");
  options.keep_count = 0;
  options.scores = nullptr;
  EXPECT_EQ(call(), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(call(0), QUIRE_OK) << "nothing is named";
  EXPECT_EQ(quire_sequence_prune(pool, sequence, 0, 0, nullptr, nullptr), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_positions(pool, sequence, nullptr, nullptr), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(positionsOf(sequence).size(), 2u * blockTokens + 1);
}

INSTANTIATE_TEST_SUITE_P(Tiers, PruneSequence, ::testing::Bool(), [](const auto &info) { return info.param ? "Slow" : "Fast"; });
INSTANTIATE_TEST_SUITE_P(Tiers, PruneSteps, ::testing::Bool(), [](const auto &info) { return info.param ? "Slow" : "Fast"; });
