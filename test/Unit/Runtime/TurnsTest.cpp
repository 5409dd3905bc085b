// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dialogues that lose tokens of old turns: which ones go follows from the request alone, whatever else happens in the pool.
#include "TieredPool.h"
#include "serving/Scheduler.h"
#include "serving/Tuning.h"

#include <algorithm>
#include <map>

using namespace quire;
using namespace quire::serving;
using namespace quire::test;

namespace {

constexpr int64_t blockTokens = 16;

struct Collected : ResultSink {
  std::map<std::string, Result> results;
  std::map<std::string, std::vector<std::vector<float>>> rows;

  bool logits(const Request &request, const float *row) override {
    rows[request.id].emplace_back(row, row + toyInfo().vocabulary);
    return true;
  }
  bool finished(const Request &request, const Result &result) override {
    results[request.id] = result;
    return true;
  }
};

/// A dialogue whose turns have lengths around those of blocks; some tokens come often, some seldom.
Request dialogue(const std::string &id, std::vector<int64_t> turns, int64_t length, int64_t count, int64_t seed = 1) {
  Request r;
  r.id = id;
  r.idKind = Request::IdKind::Text;
  for (int64_t i = 0; i < length; ++i)
    r.prompt.push_back(i % 3 ? (seed + i * i * 29) % 7 : (seed * 53 + i * i * 29 + 11) % toyInfo().token_limit);
  r.turns = std::move(turns);
  r.maxNewTokens = count;
  return r;
}

std::vector<Request> dialogues() {
  return {dialogue("one", {20, 45, 70, 96, 120}, 130, 20), dialogue("none", {}, 40, 24, 2), dialogue("end", {10, 50, 90, 128}, 128, 24, 3),
          dialogue("short", {5, 9, 14}, 20, 24, 4), dialogue("same", {20, 45, 70, 96, 120}, 130, 10)};
}

TurnRules rules(double ratio = 0.5, int64_t recentTurns = 2, int64_t recentPages = 1, std::vector<int64_t> important = {0}) {
  return {true, ratio, recentTurns, recentPages, std::move(important)};
}

/// What a request gives, by the contract in plain words. `pruned`: the blocks that became free.
struct Expected {
  Expected(const Request &request, const TurnRules &rules) : request(request), rules(rules) {
    for (size_t i = 0; i < request.prompt.size(); ++i) {
      sequence.append(request.prompt[i]);
      if (i + 1 == request.prompt.size())
        rows.push_back(sequence.logits());
      stored.push_back(static_cast<int64_t>(i));
      for (size_t turn = 0; turn < request.turns.size(); ++turn)
        if (request.turns[turn] == static_cast<int64_t>(i) + 1 && rules.prunes)
          endTurn(static_cast<int64_t>(turn));
    }
    while (static_cast<int64_t>(tokens.size()) < request.maxNewTokens) {
      const std::vector<float> &row = rows.back();
      tokens.push_back(std::max_element(row.begin(), row.end()) - row.begin());
      sequence.append(tokens.back());
      rows.push_back(sequence.logits());
    }
    rows.pop_back();
  }

  void endTurn(int64_t turn) {
    if (turn < rules.recentTurns)
      return;
    int64_t seen = request.turns[static_cast<size_t>(turn)], oldEnd = request.turns[static_cast<size_t>(turn - rules.recentTurns)];
    auto length = static_cast<int64_t>(stored.size()), old = static_cast<int64_t>(std::count_if(stored.begin(), stored.end(), [&](int64_t p) { return p < oldEnd; }));
    int64_t begin = treated, last = (length + blockTokens - 1) / blockTokens - rules.recentPages;
    for (int64_t page : rules.importantPages)
      begin = std::max(begin, (page + 1) * blockTokens);
    int64_t end = std::min(old / blockTokens, last) * blockTokens, count = end - begin;
    int64_t kept = 0;
    while (static_cast<double>(kept) < (1 - rules.ratio) * static_cast<double>(count) - 1e-9)
      kept += blockTokens;
    if (count <= 0 || kept >= count)
      return;
    auto commonness = [&](int64_t position) {
      return std::count(request.prompt.begin(), request.prompt.begin() + seen, request.prompt[static_cast<size_t>(position)]);
    };
    std::vector<int64_t> best(stored.begin() + begin, stored.begin() + end);
    std::sort(best.begin(), best.end(), [&](int64_t a, int64_t b) { return std::pair(commonness(a), a) < std::pair(commonness(b), b); });
    best.resize(static_cast<size_t>(kept));
    std::sort(best.begin(), best.end());
    stored.erase(std::copy(best.begin(), best.end(), stored.begin() + begin), stored.begin() + end);
    sequence.keepOnly(stored);
    treated = begin + kept;
    pruned += (count - kept) / blockTokens;
  }

  const Request &request;
  const TurnRules &rules;
  ToySequence sequence;
  std::vector<int64_t> stored; // positions
  int64_t treated = 0, pruned = 0;
  std::vector<int64_t> tokens;
  std::vector<std::vector<float>> rows;
};

struct Served {
  Collected sink;
  Statistics statistics;
};

/// The pool's rules are those of the scheduler, as a configuration has them.
void setDialogue(quire_pool *pool, const TurnRules &rules) {
  quire_dialogue_options options = {sizeof(options), rules.recentTurns, rules.recentPages, rules.importantPages.data(), static_cast<int64_t>(rules.importantPages.size())};
  ASSERT_EQ(quire_pool_set_dialogue(pool, &options), QUIRE_OK) << quire_last_error();
}

/// `between` may change things after each step.
void run(quire_pool *pool, const std::vector<Request> &requests, const TurnRules &rules, const SchedulerLimits &limits, Served &out,
         const std::function<void(Scheduler &, int64_t step)> &between = {}) {
  ModelPointer model = makeModel();
  ExecutorPointer executor = makeExecutor(model.get(), pool, 2, limits.maxBatch + limits.prefillChunk, limits.maxBatch);
  {
    Scheduler scheduler(*quire_model_get_info(model.get()), pool, executor.get(), limits, out.sink);
    setDialogue(pool, rules);
    scheduler.setTurnRules(rules);
    for (const Request &r : requests)
      ASSERT_TRUE(scheduler.add(r));
    Scheduler::Progress progress;
    int64_t steps = 0;
    while ((progress = scheduler.step()) == Scheduler::Progress::Stepped) {
      ASSERT_LT(++steps, 100000) << "no end";
      if (between)
        between(scheduler, steps);
    }
    ASSERT_EQ(progress, Scheduler::Progress::Idle) << scheduler.error();
    out.statistics = scheduler.statistics();
  }
  EXPECT_EQ(statsOf(pool).sequences, 0);
  EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
}

void expectTokens(const std::vector<Request> &requests, const TurnRules &rules, const Served &run) {
  for (const Request &r : requests) {
    Expected expected(r, rules);
    const Result &result = run.sink.results.at(r.id);
    EXPECT_EQ(result.reason, FinishReason::Length) << r.id << ": " << result.error;
    EXPECT_EQ(result.tokens, expected.tokens) << r.id;
    EXPECT_EQ(run.sink.rows.at(r.id), expected.rows) << r.id;
  }
}

int64_t prunedBlocks(const std::vector<Request> &requests, const TurnRules &rules) {
  int64_t blocks = 0;
  for (const Request &r : requests)
    blocks += Expected(r, rules).pruned;
  return blocks;
}

constexpr SchedulerLimits batch = {8, 512, 64, false, 0};

} // namespace

TEST(Turns, OldTurnsLoseTokensAndBlocks) {
  for (const TurnRules &r : {rules(), rules(0.75, 1, 0, {}), rules(1, 0, 2, {1}), rules(1, 0, 0, {}), rules(0.5, 0, 0, {}), rules(0.3, 1, 3), rules(0.5, 9), rules(0.5, 1, 0, {1000})}) {
    SCOPED_TRACE(testing::Message() << r.ratio << " of " << r.recentTurns << " turns");
    PoolPointer pool = makePool({60});
    Served served;
    run(pool.get(), dialogues(), r, batch, served);
    expectTokens(dialogues(), r, served);
    int64_t pruned = prunedBlocks(dialogues(), r);
    EXPECT_EQ(served.statistics.prunedBlocks, pruned);
    EXPECT_EQ(served.statistics.prunedTokens, pruned * blockTokens);
    bool some = r.recentTurns < 9 && (r.importantPages.empty() || r.importantPages[0] < 1000);
    EXPECT_EQ(pruned > 0, some);
    EXPECT_NE(statisticsJson(served.statistics).find("\"pruned\":{\"tokens\":" + std::to_string(pruned * blockTokens) + ",\"blocks\":" + std::to_string(pruned) + "}"),
              std::string::npos);
  }
}

TEST(Turns, WithoutTheRuleNothingIsDropped) {
  TurnRules none = rules();
  none.prunes = false;
  PoolPointer pool = makePool({60});
  Served served;
  run(pool.get(), dialogues(), none, batch, served);
  expectTokens(dialogues(), none, served);
  EXPECT_EQ(served.statistics.prunedBlocks, 0);
  EXPECT_EQ(served.sink.results.at("one").tokens, toyGreedy(dialogues()[0].prompt, 20));
  EXPECT_EQ(statisticsJson(served.statistics).find("\"pruned\""), std::string::npos);
}

TEST(Turns, ChunksAndBatchesChangeNothing) {
  for (int64_t chunk : {1, 7, 16, 40}) {
    PoolPointer pool = makePool({60, true, 5});
    Served served;
    run(pool.get(), dialogues(), rules(0.5, 1), {chunk % 3 + 1, chunk, 4, false, 0}, served);
    expectTokens(dialogues(), rules(0.5, 1), served);
  }
}

/// Who gives way is stored again from its beginning, and loses the same tokens at the same moments.
TEST(Turns, WhoGivesWayComesBackTheSame) {
  std::vector<Request> requests = {dialogue("a", {40, 80}, 82, 60), dialogue("b", {33, 66, 90}, 95, 60, 3), dialogue("c", {20, 60}, 64, 80, 5)};
  TurnRules r = rules(0.5, 1, 0, {});
  int64_t again = 0;
  for (int64_t blocks : {12, 14, 17}) {
    PoolPointer pool = makePool({blocks});
    Served served;
    run(pool.get(), requests, r, {3, 24, 24, false, 0}, served);
    expectTokens(requests, r, served);
    EXPECT_GT(served.statistics.preemptions, 0) << blocks;
    again += served.statistics.prunedBlocks - prunedBlocks(requests, r);
  }
  EXPECT_GT(again, 0);
}

/// What was dropped under rules that changed meanwhile goes again when the sequence comes back.
TEST(Turns, WhatWasDoneIsRepeatedUnderOtherRules) {
  std::vector<Request> requests = {dialogue("older", {60}, 64, 60, 6), dialogue("younger", {40, 80, 100}, 110, 30)};
  TurnRules first = rules(0.5, 1, 0, {}), second = rules(0.5, 9, 9, {0, 1, 2});
  PoolPointer pool = makePool({12});
  Served served;
  run(pool.get(), requests, first, {2, 200, 200, false, 0}, served, [&](Scheduler &scheduler, int64_t step) {
    if (step == 5) { // all turns have ended
      setDialogue(pool.get(), second);
      scheduler.setTurnRules(second);
    }
  });
  ASSERT_GT(served.statistics.preemptions, 0);
  expectTokens(requests, first, served);
}

/// Prefixes are shared up to where tokens may go, and what comes later is nobody else's.
TEST(Turns, PrefixesEndWhereTokensGo) {
  std::vector<Request> requests = {dialogue("plain", {}, 130, 4), dialogue("one", {20, 45, 70, 96, 120}, 130, 20), dialogue("again", {20, 45, 70, 96, 120}, 130, 20),
                                   dialogue("plain again", {}, 130, 20)};
  for (int64_t blocks : {60, 12}) {
    PoolSettings settings = {blocks, false, 0, true, true};
    PoolPointer pool = makePool(settings);
    Served served;
    run(pool.get(), requests, rules(0.5, 1), {blocks == 60 ? 1 : 3, 64, 64, true, 0}, served);
    expectTokens(requests, rules(0.5, 1), served);
    EXPECT_GT(served.statistics.prefix.hitTokens, 0);
    if (blocks == 60) {
      EXPECT_EQ(served.statistics.prefix.hitTokens, 2 * 32 + 128) << "45 tokens before the first that may go; all but the last block without turns";
    }
  }
}

TEST(Turns, TwoTiers) {
  for (int64_t fast : {12, 20}) {
    TieredSettings settings;
    settings.fastPages = fast;
    settings.slowPages = 200;
    TieredPool tiered = makeTieredPool(settings);
    Served served;
    run(tiered.pool.get(), dialogues(), rules(0.5, 1), {8, 64, 64, false, 0}, served);
    expectTokens(dialogues(), rules(0.5, 1), served);
    EXPECT_GT(served.statistics.paging.misses, 0);
    EXPECT_GT(served.statistics.prunedBlocks, 0);
  }
}

TEST(Turns, WhatASlowTierLosesIsComputedAgain) {
  TieredSettings settings;
  settings.fastPages = 12;
  settings.slowPages = 200;
  TieredPool tiered = makeTieredPool(settings);
  int64_t loads = 0;
  tiered.tier->fault = [&](const runtime::Transfer &transfer) {
    return transfer.kind == runtime::Transfer::Kind::Load && ++loads % 150 == 0 ? QUIRE_PAGE_LOST : QUIRE_OK;
  };
  Served served;
  run(tiered.pool.get(), dialogues(), rules(0.5, 1), {8, 64, 64, false, 0}, served);
  expectTokens(dialogues(), rules(0.5, 1), served);
  EXPECT_GT(served.statistics.recomputedTokens, 0);
}

/// Paragraphs are ranges of the prompt, wherever its tokens are stored.
TEST(Turns, ParagraphsBesideTurns) {
  TieredSettings settings;
  settings.fastPages = 20;
  TieredPool tiered = makeTieredPool(settings);
  std::vector<Request> requests = {dialogue("both", {40, 60, 80, 100}, 110, 10)};
  requests[0].paragraphs = {30, 58, 76, 110};
  Served served;
  run(tiered.pool.get(), requests, rules(0.5, 1), {1, 8, 8, false, 0}, served, [](Scheduler &scheduler, int64_t) { scheduler.setDocumentRules({true, true}); });
  expectTokens(requests, rules(0.5, 1), served);
}

/// The sequence's own reservation is the room for what stays; a pool that is full of what is stored has none.
TEST(Turns, AFullPoolIsSaid) {
  std::vector<Request> requests = {dialogue("all", {64, 128}, 128, 1)};
  PoolPointer pool = makePool({8});
  Served served;
  run(pool.get(), requests, rules(0.5, 0, 0, {}), batch, served);
  expectTokens(requests, rules(0.5, 0, 0, {}), served);

  requests[0].turns = {128};
  requests[0].maxNewTokens = 2;
  requests[0].stop = {-1}; // its length is not known
  PoolPointer full = makePool({8});
  Served error;
  run(full.get(), requests, rules(0.5, 0, 0, {}), batch, error);
  EXPECT_EQ(error.sink.results.at("all").error, "the pool of 8 blocks has no room to prune the first 128 tokens; raise memory.fast_bytes (--kv-bytes)");
}

TEST(Turns, AModelMayNotAllowIt) {
  config::Config config;
  std::string why;
  config.dialogue.compression.method = config::CompressionMethod::Pruning;
  EXPECT_TRUE(checkModel(config, toyInfo(), why));
  EXPECT_TRUE(turnRules(config).prunes);
  EXPECT_EQ(turnRules(config).ratio, 0.5);
  EXPECT_EQ(turnRules(config).importantPages, std::vector<int64_t>{0});
  quire_model_info info = toyInfo();
  std::vector<quire_model_layer> layers(info.layers, info.layers + info.layer_count);
  layers[2].place_is_position = 1;
  info.layers = layers.data();
  EXPECT_FALSE(checkModel(config, info, why));
  EXPECT_EQ(why, "dialogue.compression.method: expected none, but got pruning: layer 2 of the model takes the place of a key for its position (a window, chunks or a bias "
                 "by position)");
  config.dialogue.compression.method = config::CompressionMethod::None;
  EXPECT_TRUE(checkModel(config, info, why));
  EXPECT_FALSE(turnRules(config).prunes);
}
