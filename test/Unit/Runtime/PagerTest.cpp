// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pools of two tiers: what steps compute must not depend on where pages lie, who gives way, when transfers end, or what fails.
#include "AllocationCount.h"
#include "TieredPool.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace quire;
using namespace quire::test;
using runtime::PolicyKind;
using runtime::PrefetchPredictor;
using runtime::PrefetchStrategy;
using runtime::Transfer;

namespace {

/// Sequences of the toy model with the tokens that they hold: the reference has all memory it wants.
class Serving {
public:
  Serving(const TieredSettings &settings, uint64_t seed) : tiered(makeTieredPool(settings)), random(seed) {}

  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); }
  runtime::PagerCounters counters() const { return tiered.pager()->counters(); }

  /// A step of up to `most` sequences, as many as the fast tier takes. Rows are compared with the reference.
  quire_status step(size_t most, size_t tokensEach) {
    std::vector<quire_sequence> chosen;
    std::vector<int64_t> counts, flat, selected;
    int64_t room = statsOf(tiered.pool.get()).step_blocks;
    std::vector<std::vector<int64_t> *> known;
    std::vector<quire_sequence> order;
    for (auto &[sequence, tokens] : live)
      order.push_back(sequence);
    std::shuffle(order.begin(), order.end(), random);
    for (quire_sequence sequence : order) {
      std::vector<int64_t> &tokens = live[sequence];
      int64_t count = 1 + static_cast<int64_t>(below(tokensEach));
      count = std::min<int64_t>(count, toyInfo().max_positions - static_cast<int64_t>(tokens.size()));
      int64_t blocks = (static_cast<int64_t>(tokens.size()) + count + toyInfo().block_tokens - 1) / toyInfo().block_tokens;
      if (count < 1 || blocks > room || chosen.size() == most)
        continue;
      room -= blocks;
      chosen.push_back(sequence);
      counts.push_back(count);
      for (int64_t i = 0; i < count; ++i)
        flat.push_back(static_cast<int64_t>(below(static_cast<size_t>(toyInfo().token_limit))));
      selected.push_back(static_cast<int64_t>(flat.size()) - 1);
    }
    if (chosen.empty())
      return QUIRE_OK;
    std::vector<float> logits(selected.size() * static_cast<size_t>(toyInfo().vocabulary));
    quire_batch batch = {sizeof(batch), static_cast<int64_t>(chosen.size()), chosen.data(), counts.data(), flat.data(),
                         selected.data(), static_cast<int64_t>(selected.size())};
    quire_status status = quire_executor_step(executor.get(), &batch, logits.data());
    if (status != QUIRE_OK)
      return status;
    size_t at = 0;
    for (size_t i = 0; i < chosen.size(); ++i) {
      std::vector<int64_t> &tokens = live[chosen[i]];
      tokens.insert(tokens.end(), flat.begin() + static_cast<std::ptrdiff_t>(at),
                    flat.begin() + static_cast<std::ptrdiff_t>(at) + counts[i]);
      at += static_cast<size_t>(counts[i]);
      auto row = logits.begin() + static_cast<std::ptrdiff_t>(i) * toyInfo().vocabulary;
      EXPECT_EQ(std::vector<float>(row, row + toyInfo().vocabulary), toyLogits(tokens)) << "sequence " << i;
    }
    return QUIRE_OK;
  }

  void create() {
    quire_sequence sequence = 0;
    ASSERT_EQ(quire_sequence_create(tiered.pool.get(), &sequence), QUIRE_OK);
    live[sequence] = {};
  }

  quire_sequence any() {
    auto found = live.begin();
    std::advance(found, static_cast<std::ptrdiff_t>(below(live.size())));
    return found->first;
  }

  void fork() {
    quire_sequence from = any(), made = 0;
    size_t length = below(live[from].size() + 1);
    ASSERT_EQ(quire_sequence_fork(tiered.pool.get(), from, static_cast<int64_t>(length), &made), QUIRE_OK);
    live[made].assign(live[from].begin(), live[from].begin() + static_cast<std::ptrdiff_t>(length));
  }

  void truncate() {
    quire_sequence sequence = any();
    size_t length = below(live[sequence].size() + 1);
    ASSERT_EQ(quire_sequence_truncate(tiered.pool.get(), sequence, static_cast<int64_t>(length)), QUIRE_OK);
    live[sequence].resize(length);
  }

  void release() {
    quire_sequence sequence = any();
    ASSERT_EQ(quire_sequence_release(tiered.pool.get(), sequence), QUIRE_OK);
    live.erase(sequence);
  }

  /// What a scheduler does after QUIRE_PAGE_LOST: sequences go back to what is intact.
  int64_t giveUpLost() {
    int64_t given = 0;
    for (auto &[sequence, tokens] : live) {
      int64_t intact = 0;
      EXPECT_EQ(quire_sequence_intact(tiered.pool.get(), sequence, &intact), QUIRE_OK);
      given += static_cast<int64_t>(tokens.size()) - intact;
      if (intact == static_cast<int64_t>(tokens.size()))
        continue;
      EXPECT_EQ(quire_sequence_truncate(tiered.pool.get(), sequence, intact), QUIRE_OK);
      tokens.resize(static_cast<size_t>(intact));
    }
    return given;
  }

  /// Operations in proportion to what serving does. Failures of the tier are recovered from.
  void operate(int64_t count) {
    for (int64_t i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
      size_t what = below(100);
      if (live.empty() || (what < 8 && live.size() < 7))
        create();
      else if (what < 14 && live.size() < 7)
        fork();
      else if (what < 20)
        truncate();
      else if (what < 26)
        release();
      else
        account(step(1 + below(4), what < 50 ? 1 : 12));
      ASSERT_EQ(quire_pool_validate(tiered.pool.get()), QUIRE_OK) << quire_last_error();
    }
  }

  void account(quire_status status) {
    ++seen[status];
    if (status == QUIRE_PAGE_LOST)
      giveUpLost();
    else if (status == QUIRE_OUT_OF_BLOCKS || status == QUIRE_NO_SPACE)
      release();
    else
      EXPECT_EQ(status, QUIRE_OK) << quire_last_error();
  }

  void end() {
    while (!live.empty())
      release();
    ASSERT_EQ(quire_pool_settle(tiered.pool.get()), QUIRE_OK);
    ASSERT_EQ(quire_pool_validate(tiered.pool.get()), QUIRE_OK) << quire_last_error();
    EXPECT_EQ(tiered.pager()->fastPagesFree(), tiered.pager()->fastPages()) << "fast slots were lost";
  }

  TieredPool tiered;
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), tiered.pool.get(), 1, 256, 8);
  std::map<quire_sequence, std::vector<int64_t>> live;
  std::map<quire_status, int64_t> seen;
  std::mt19937_64 random;
};

} // namespace

TEST(Pager, RandomServingMatchesUnlimitedMemory) {
  PolicyKind kinds[] = {PolicyKind::Scan, PolicyKind::Lru, PolicyKind::Importance, PolicyKind::Arc};
  PrefetchStrategy strategies[] = {PrefetchStrategy::Sequential, PrefetchStrategy::Hotspot, PrefetchStrategy::Hybrid};
  for (uint64_t seed = 0; seed < 18; ++seed) {
    TieredSettings settings;
    settings.policy = kinds[seed % 4];
    settings.seed = seed;
    settings.fastPages = 6 + static_cast<int64_t>(seed / 3);
    settings.slowPages = seed % 3 ? 80 : 30;
    settings.window = static_cast<int64_t>(seed % 5);
    settings.prefetch.strategy = strategies[(seed + seed / 6) % 3];
    settings.prefetch.predictor = seed % 2 ? PrefetchPredictor::LayerAhead : PrefetchPredictor::SeedHotspot;
    settings.prefetch.topk = 1 + static_cast<uint32_t>(seed % 4);
    settings.layersPerPage = 1 + static_cast<int64_t>(seed % 3);
    Serving serving(settings, seed + 1);
    serving.operate(120);
    runtime::PagerCounters counters = serving.counters();
    EXPECT_GT(counters.misses, 0u) << "everything fitted";
    EXPECT_GT(counters.writeBacks, 0u);
    serving.end();
    if (HasFailure())
      FAIL() << "seed " << seed;
  }
}

TEST(Pager, ThreadMovesPages) {
  TieredSettings settings;
  settings.thread = true;
  Serving serving(settings, 5);
  serving.operate(300);
  EXPECT_GT(serving.counters().misses, 0u);
  serving.end();
}

/// Whoever wants to wait for ever asks for the longest time that there is.
TEST(Pager, ADeadlineBeyondTheClockLosesNothing) {
  TieredSettings settings;
  settings.thread = true;
  settings.deadlineNs = INT64_MAX;
  Serving serving(settings, 6);
  serving.operate(100);
  EXPECT_GT(serving.counters().misses, 0u);
  EXPECT_EQ(serving.seen[QUIRE_PAGE_LOST], 0);
  EXPECT_EQ(serving.counters().pagesLost, 0u);
  serving.end();
}

TEST(Pager, PrefetchHidesMissesAndCountsThem) {
  TieredSettings settings;
  settings.fastPages = 12;
  settings.window = 8;
  Serving serving(settings, 3);
  serving.create();
  serving.create();
  for (int i = 0; i < 60; ++i)
    ASSERT_EQ(serving.step(2, 1), QUIRE_OK) << quire_last_error();
  runtime::PagerCounters with = serving.counters();
  EXPECT_GT(with.prefetchIssued, 0u);
  EXPECT_GT(with.prefetchUseful, 0u);
  EXPECT_LE(with.prefetchUseful, with.prefetchIssued);
  EXPECT_LE(with.prefetchTimely, with.prefetchUseful);
  EXPECT_EQ(with.bytesInPrefetch, with.prefetchIssued * serving.tiered.pager()->geometry().pageBytes);
  settings.window = 0;
  Serving without(settings, 3);
  without.create();
  without.create();
  for (int i = 0; i < 60; ++i)
    ASSERT_EQ(without.step(2, 1), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(without.counters().prefetchIssued, 0u);
  EXPECT_LT(with.misses, without.counters().misses);
}

namespace {

quire_pool_tuning tuningOf(quire_pool *pool) {
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  EXPECT_EQ(quire_pool_get_tuning(pool, &tuning), QUIRE_OK);
  return tuning;
}

} // namespace

/// From one step to the next, as a configuration that is read again has it.
TEST(Pager, PrefetchFollowsItsTuning) {
  TieredSettings settings;
  settings.fastPages = 12;
  settings.window = 8;
  Serving serving(settings, 3);
  quire_pool *pool = serving.tiered.pool.get();
  serving.create();
  serving.create();
  auto issuedIn = [&](int steps) {
    uint64_t before = serving.counters().prefetchIssued;
    for (int i = 0; i < steps; ++i)
      EXPECT_EQ(serving.step(2, 1), QUIRE_OK) << quire_last_error();
    return serving.counters().prefetchIssued - before;
  };
  EXPECT_GT(issuedIn(60), 0u);
  quire_pool_tuning tuning = tuningOf(pool);
  EXPECT_EQ(tuning.prefetch_strategy, QUIRE_PREFETCH_SEQUENTIAL);
  EXPECT_EQ(tuning.prefetch_window, 8);
  EXPECT_EQ(tuning.prefetch_bytes, UINT64_MAX);
  tuning.prefetch_strategy = QUIRE_PREFETCH_NONE;
  ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK);
  EXPECT_EQ(issuedIn(5), 0u);
  tuning.prefetch_strategy = QUIRE_PREFETCH_SEQUENTIAL;
  tuning.prefetch_bytes = serving.tiered.pager()->geometry().pageBytes - 1; // no page is so small
  ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK);
  EXPECT_EQ(issuedIn(5), 0u);
  tuning.prefetch_bytes = UINT64_MAX;
  ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK);
  EXPECT_GT(issuedIn(5), 0u);
  for (int64_t predictor : {QUIRE_PREDICT_LAYER_AHEAD, QUIRE_PREDICT_SEED_HOTSPOT}) { // the executor did not observe so far
    tuning.prefetch_strategy = QUIRE_PREFETCH_HOTSPOT;
    tuning.prefetch_predictor = predictor;
    tuning.prefetch_topk = 3;
    ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK) << quire_last_error();
    EXPECT_EQ(tuningOf(pool).prefetch_topk, 3);
    EXPECT_GT(issuedIn(20), 0u) << predictor;
  }
  tuning.prefetch_predictor = 2;
  EXPECT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "prefetch_predictor: expected 0 or 1, but got 2");
  tuning.prefetch_predictor = QUIRE_PREDICT_LAYER_AHEAD;
  tuning.prefetch_topk = 0;
  EXPECT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "prefetch_topk: expected at least 1 block, but got 0");
  tuning.prefetch_topk = 2;
  tuning.prefetch_strategy = 4;
  EXPECT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "prefetch_strategy: expected 0 to 3, but got 4");
  tuning.prefetch_strategy = QUIRE_PREFETCH_SEQUENTIAL;
  tuning.prefetch_window = -1;
  EXPECT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_INVALID_ARGUMENT);
  tuning.prefetch_window = 3;
  tuning.pin_budget = 1.5;
  EXPECT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(tuningOf(pool).prefetch_window, 8) << "all or nothing";
}

/// What the window allowed and nothing gave way for counts, page by page, although the first one without room ends the attempt.
TEST(Pager, PrefetchesWithoutRoomAreCounted) {
  TieredSettings settings;
  settings.fastPages = 6;
  settings.window = 3;
  Serving serving(settings, 11);
  serving.create();
  quire_sequence sequence = serving.live.begin()->first;
  while (serving.live[sequence].size() < 5 * 16 + 1) // six blocks: a layer of them fills the fast tier
    ASSERT_EQ(serving.step(1, 1), QUIRE_OK) << quire_last_error();
  ASSERT_EQ(quire_sequence_unload(serving.tiered.pool.get(), sequence, 0, 80), QUIRE_OK);
  runtime::PagerCounters before = serving.counters();
  ASSERT_EQ(serving.step(1, 1), QUIRE_OK) << quire_last_error();
  runtime::PagerCounters after = serving.counters();
  EXPECT_EQ(after.prefetchIssued, before.prefetchIssued);
  EXPECT_EQ(after.prefetchDropped - before.prefetchDropped, 2u * 3u) << "three pages for each layer but the first";
}

/// A long and a short sequence share the window by what each has yet to get, within both limits.
TEST(Pager, PrefetchWindowsAreSharedByTheBatch) {
  TieredSettings settings;
  settings.fastPages = 45;
  settings.window = 2;
  Serving serving(settings, 11);
  quire_pool *pool = serving.tiered.pool.get();
  serving.create();
  quire_sequence longer = serving.live.begin()->first;
  while (serving.live[longer].size() < 150)
    ASSERT_EQ(serving.step(1, 12), QUIRE_OK) << quire_last_error();
  serving.create();
  quire_sequence shorter = std::next(serving.live.begin())->first;
  ASSERT_NE(shorter, longer);
  while (serving.live[shorter].size() < 17)
    ASSERT_EQ(serving.step(2, 2), QUIRE_OK) << quire_last_error();
  for (int64_t limit : {4, 3}) { // pages: twice the window, and less
    quire_pool_tuning tuning = tuningOf(pool);
    tuning.prefetch_bytes = static_cast<uint64_t>(limit) * serving.tiered.pager()->geometry().pageBytes;
    ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK);
    for (quire_sequence sequence : {longer, shorter})
      ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, static_cast<int64_t>(serving.live[sequence].size())), QUIRE_OK);
    ASSERT_EQ(quire_pool_trace(pool, 10000), QUIRE_OK);
    ASSERT_EQ(serving.step(2, 1), QUIRE_OK) << quire_last_error();
    const int32_t *blocks;
    int64_t count;
    ASSERT_EQ(quire_sequence_table(pool, longer, &blocks, &count), QUIRE_OK);
    std::set<uint32_t> ofLonger(blocks, blocks + count);
    uint32_t perLayer = serving.tiered.pager()->blocks();
    std::map<std::pair<uint32_t, bool>, int64_t> fetched; // by layer, and whether for the longer one
    for (const runtime::TraceEvent &event : pool->pool->trace()->events())
      if (event.kind == runtime::TraceEvent::Kind::Prefetch)
        ++fetched[{event.page / perLayer, ofLonger.count(event.page % perLayer) > 0}];
    std::map<std::pair<uint32_t, bool>, int64_t> expected = {
        {{1, true}, limit - 1}, {{1, false}, 1}, {{2, true}, limit - 1}, {{2, false}, 1}};
    EXPECT_EQ(fetched, expected) << limit;
  }
}

namespace {

/// Places in the block table that a layer's attention had most of, hottest first.
std::vector<int64_t> hottest(const Serving &serving, int64_t layer, size_t most) {
  const float *shares = nullptr;
  int64_t sequences = 0, stride = 0;
  EXPECT_EQ(quire_executor_attention(serving.executor.get(), layer, &shares, &sequences, &stride), QUIRE_OK);
  std::vector<int64_t> places(static_cast<size_t>(stride));
  for (size_t i = 0; i < places.size(); ++i)
    places[i] = static_cast<int64_t>(i);
  std::sort(places.begin(), places.end(), [&](int64_t a, int64_t b) { return shares[a] != shares[b] ? shares[a] > shares[b] : a < b; });
  places.resize(std::min(most, places.size()));
  return places;
}

/// Of one sequence, places in its block table in the order in which the layer's prefetches began.
std::vector<int64_t> prefetched(const Serving &serving, uint32_t layer) {
  quire_pool *pool = serving.tiered.pool.get();
  const int32_t *blocks;
  int64_t count;
  EXPECT_EQ(quire_sequence_table(pool, serving.live.begin()->first, &blocks, &count), QUIRE_OK);
  const runtime::Trace &trace = *pool->pool->trace();
  std::vector<int64_t> places;
  for (const runtime::TraceEvent &event : trace.events())
    if (event.kind == runtime::TraceEvent::Kind::Prefetch && trace.numbering.groupOf(event.page) == layer)
      places.push_back(std::find(blocks, blocks + count, static_cast<int32_t>(trace.numbering.blockOf(event.page))) - blocks);
  return places;
}

} // namespace

/// hotspot begins with the hottest page and ends after the k-th; hybrid goes on with the others in their order.
TEST(Pager, PrefetchesTheHottestPagesFirst) {
  for (PrefetchStrategy strategy : {PrefetchStrategy::Hotspot, PrefetchStrategy::Hybrid})
    for (PrefetchPredictor predictor : {PrefetchPredictor::LayerAhead, PrefetchPredictor::SeedHotspot}) {
      TieredSettings settings;
      settings.fastPages = 60;
      settings.window = 5;
      settings.prefetch = {strategy, predictor, 3};
      Serving serving(settings, 21);
      quire_pool *pool = serving.tiered.pool.get();
      serving.create();
      auto &[sequence, tokens] = *serving.live.begin();
      while (tokens.size() < 101)
        ASSERT_EQ(serving.step(1, 5), QUIRE_OK) << quire_last_error();
      std::vector<int64_t> hot = hottest(serving, 1, 3); // of the step before
      int64_t full = static_cast<int64_t>(tokens.size()) / toyInfo().block_tokens; // what is not full stays where it is
      ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, static_cast<int64_t>(tokens.size())), QUIRE_OK);
      ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
      ASSERT_EQ(quire_pool_trace(pool, 10000), QUIRE_OK);
      ASSERT_EQ(serving.step(1, 1), QUIRE_OK) << quire_last_error();
      if (predictor == PrefetchPredictor::LayerAhead)
        hot = hottest(serving, 0, 3);
      ASSERT_EQ(hot.size(), 3u);
      hot.erase(std::remove_if(hot.begin(), hot.end(), [&](int64_t place) { return place >= full; }), hot.end());
      ASSERT_GE(hot.size(), 2u);
      EXPECT_GT(hot[0], hot[1]) << "not the order of the table";
      std::vector<int64_t> expected = hot;
      for (int64_t i = 0; strategy == PrefetchStrategy::Hybrid && expected.size() < 5; ++i)
        if (std::find(hot.begin(), hot.end(), i) == hot.end())
          expected.push_back(i);
      EXPECT_EQ(prefetched(serving, 0), std::vector<int64_t>()) << "nobody asks for it";
      EXPECT_EQ(prefetched(serving, 1), expected) << static_cast<int>(strategy) << static_cast<int>(predictor);
    }
}

TEST(Pager, HotPrefetchingNeedsAModelThatTellsWhatItAttendsTo) {
  quire_model_info info = toyInfo();
  std::vector<quire_model_layer> layers(info.layers, info.layers + info.layer_count);
  for (quire_model_layer &layer : layers)
    layer.query_heads = 0;
  info.layers = layers.data();
  TieredPool tiered = makeTieredPool({}, info);
  quire_pool_tuning tuning = tuningOf(tiered.pool.get());
  for (int64_t strategy : {QUIRE_PREFETCH_HOTSPOT, QUIRE_PREFETCH_HYBRID}) {
    tuning.prefetch_strategy = strategy;
    EXPECT_EQ(quire_pool_set_tuning(tiered.pool.get(), &tuning), QUIRE_INVALID_ARGUMENT);
    EXPECT_STREQ(quire_last_error(), "prefetch strategy: hotspot and hybrid need a model that tells what it attends to, but no layer of this one does");
  }
  EXPECT_EQ(tuningOf(tiered.pool.get()).prefetch_strategy, QUIRE_PREFETCH_SEQUENTIAL);
}

#ifndef QUIRE_CHECK_INVARIANTS
/// The same step again and again, with pages that come and go.
TEST(Pager, StepsThatLookAtAttentionUseNoHeap) {
  for (PrefetchPredictor predictor : {PrefetchPredictor::LayerAhead, PrefetchPredictor::SeedHotspot}) {
    TieredSettings settings;
    settings.fastPages = 12;
    settings.prefetch = {PrefetchStrategy::Hybrid, predictor, 3};
    Serving serving(settings, 3);
    quire_pool *pool = serving.tiered.pool.get();
    serving.create();
    auto &[sequence, tokens] = *serving.live.begin();
    while (tokens.size() < 90)
      ASSERT_EQ(serving.step(1, 5), QUIRE_OK) << quire_last_error();
    int64_t length = static_cast<int64_t>(tokens.size()), count = 1, token = 1, allocated = 0;
    uint64_t issued = 0;
    quire_batch batch = {sizeof(batch), 1, &sequence, &count, &token, nullptr, 0};
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(quire_sequence_truncate(pool, sequence, length), QUIRE_OK);
      int64_t before = allocations.load();
      uint64_t had = serving.counters().prefetchIssued;
      quire_status status = quire_executor_step(serving.executor.get(), &batch, nullptr);
      if (i >= 20) { // the slow tier of tests allocates a slot when it is stored for the first time
        allocated += allocations.load() - before;
        issued += serving.counters().prefetchIssued - had;
      }
      ASSERT_EQ(status, QUIRE_OK) << quire_last_error();
    }
    EXPECT_EQ(allocated, 0);
    EXPECT_GT(issued, 0u);
  }
}
#endif

TEST(Pager, EverythingFastMovesNothing) {
  TieredSettings settings;
  settings.fastPages = 60;
  Serving serving(settings, 4);
  serving.create();
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(serving.step(1, 3), QUIRE_OK);
  EXPECT_EQ(serving.counters().misses, 0u);
  EXPECT_EQ(serving.tiered.tier->loads, 0);
  EXPECT_EQ(serving.counters().hits, serving.counters().demands);
}

TEST(Pager, FailuresNeverGiveWrongNumbers) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    TieredSettings settings;
    settings.seed = seed;
    settings.slowPages = 90;
    Serving serving(settings, seed + 100);
    std::mt19937_64 dice(seed);
    quire_status kind = seed % 3 == 0 ? QUIRE_IO_ERROR : seed % 3 == 1 ? QUIRE_PAGE_LOST : QUIRE_NO_SPACE;
    Transfer::Kind victim = kind == QUIRE_NO_SPACE ? Transfer::Kind::Store : Transfer::Kind::Load;
    serving.tiered.tier->fault = [&](const Transfer &transfer) {
      return transfer.kind == victim && dice() % (kind == QUIRE_IO_ERROR ? 3 : 40) == 0 ? kind : QUIRE_OK;
    };
    serving.operate(120);
    if (kind == QUIRE_IO_ERROR)
      EXPECT_GT(serving.counters().retries, 0u);
    if (kind == QUIRE_PAGE_LOST)
      EXPECT_GT(serving.counters().pagesLost, 0u);
    if (kind == QUIRE_NO_SPACE)
      EXPECT_GT(serving.counters().noSpace, 0u);
    serving.end();
    if (HasFailure())
      FAIL() << "seed " << seed;
  }
}

TEST(Pager, LosesOnlyThePageThatIsLost) {
  TieredSettings settings;
  settings.fastPages = 6;
  Serving serving(settings, 9);
  serving.create();
  serving.create();
  ASSERT_EQ(serving.step(1, 1), QUIRE_OK);
  for (int i = 0; i < 40 && serving.counters().misses < 6; ++i)
    ASSERT_EQ(serving.step(2, 12), QUIRE_OK) << quire_last_error();
  int64_t failures = 0;
  serving.tiered.tier->fault = [&](const Transfer &transfer) {
    return transfer.kind == Transfer::Kind::Load && failures++ == 0 ? QUIRE_PAGE_LOST : QUIRE_OK;
  };
  quire_status status = QUIRE_OK;
  for (int i = 0; i < 10 && status == QUIRE_OK; ++i)
    status = serving.step(2, 1);
  ASSERT_EQ(status, QUIRE_PAGE_LOST);
  EXPECT_EQ(serving.counters().pagesLost, 1u);
  size_t whole = 0;
  for (auto &[sequence, tokens] : serving.live) {
    int64_t intact = 0;
    ASSERT_EQ(quire_sequence_intact(serving.tiered.pool.get(), sequence, &intact), QUIRE_OK);
    whole += intact == static_cast<int64_t>(tokens.size());
    EXPECT_TRUE(intact == static_cast<int64_t>(tokens.size()) || intact % toyInfo().block_tokens == 0);
  }
  EXPECT_EQ(whole, serving.live.size() - 1);
  EXPECT_GT(serving.giveUpLost(), 0);
  for (int i = 0; i < 10; ++i)
    ASSERT_EQ(serving.step(2, 1), QUIRE_OK) << quire_last_error();
}

TEST(Pager, PinnedPagesStay) {
  TieredPool tiered = makeTieredPool({});
  quire_pool *pool = tiered.pool.get();
  quire_sequence sequence = 0;
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  ASSERT_EQ(quire_sequence_reserve(pool, sequence, 8 * toyInfo().block_tokens), QUIRE_OK);
  const int32_t *blocks;
  int64_t count;
  ASSERT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
  void *first = nullptr, *again = nullptr, *other = nullptr;
  EXPECT_EQ(quire_pool_pin(pool, 0, blocks[0], 0, &first), QUIRE_INVALID_ARGUMENT) << "it has no content";
  ASSERT_EQ(quire_pool_pin(pool, 0, blocks[0], 1, &first), QUIRE_OK) << quire_last_error();
  std::memset(first, 42, 64);
  for (int64_t i = 1; i < count; ++i)
    for (int64_t layer = 0; layer < toyInfo().layer_count; ++layer) {
      ASSERT_EQ(quire_pool_pin(pool, layer, blocks[i], 1, &other), QUIRE_OK) << quire_last_error();
      EXPECT_NE(other, first);
      std::memset(other, static_cast<int>(i), 64);
      ASSERT_EQ(quire_pool_unpin(pool, layer, blocks[i]), QUIRE_OK);
    }
  ASSERT_EQ(quire_pool_pin(pool, 0, blocks[0], 0, &again), QUIRE_OK);
  EXPECT_EQ(first, again);
  EXPECT_EQ(static_cast<char *>(again)[63], 42);
  for (int64_t i = 1; i < count; ++i) {
    ASSERT_EQ(quire_pool_pin(pool, 1, blocks[i], 0, &other), QUIRE_OK) << quire_last_error();
    EXPECT_EQ(static_cast<char *>(other)[5], static_cast<char>(i)) << "content after moving";
    ASSERT_EQ(quire_pool_unpin(pool, 1, blocks[i]), QUIRE_OK);
  }
  EXPECT_GT(tiered.tier->loads, 0);
  EXPECT_EQ(quire_pool_unpin(pool, 2, blocks[0]), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_pool_block_address(pool, 0, blocks[0], &other), QUIRE_INVALID_ARGUMENT);
  ASSERT_EQ(quire_pool_unpin(pool, 0, blocks[0]), QUIRE_OK);
  ASSERT_EQ(quire_pool_unpin(pool, 0, blocks[0]), QUIRE_OK);
  EXPECT_EQ(quire_pool_unpin(pool, 0, blocks[0]), QUIRE_INVALID_ARGUMENT);
}

TEST(Pager, FreedContentIsOverwrittenInBothTiers) {
  TieredSettings settings;
  settings.zeroOnFree = true;
  settings.poison = false;
  TieredPool tiered = makeTieredPool(settings);
  quire_pool *pool = tiered.pool.get();
  quire_sequence sequence = 0;
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  ASSERT_EQ(quire_sequence_reserve(pool, sequence, 8 * toyInfo().block_tokens), QUIRE_OK);
  const int32_t *blocks;
  int64_t count;
  ASSERT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
  std::vector<char> canary(64, 'c');
  void *page = nullptr;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t layer = 0; layer < toyInfo().layer_count; ++layer) {
      ASSERT_EQ(quire_pool_pin(pool, layer, blocks[i], 1, &page), QUIRE_OK);
      std::memcpy(page, canary.data(), canary.size());
      ASSERT_EQ(quire_pool_unpin(pool, layer, blocks[i]), QUIRE_OK);
    }
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  EXPECT_TRUE(tiered.tier->holds(canary)) << "the test has to see it before";
  EXPECT_TRUE(tiered.pager()->arenaHolds(canary.data(), canary.size()));
  ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  EXPECT_FALSE(tiered.tier->holds(canary));
  EXPECT_FALSE(tiered.pager()->arenaHolds(canary.data(), canary.size()));
  EXPECT_GT(tiered.tier->erasures, 0);
}

/// More slots are to be erased than there are transfers, while steps want transfers of their own.
TEST(Pager, ErasuresLeaveTransfersForPages) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    TieredSettings settings;
    settings.slowPages = 300;
    settings.zeroOnFree = true;
    settings.seed = seed;
    Serving serving(settings, seed);
    for (int round = 0; round < 3; ++round) {
      for (int i = 0; i < 12; ++i)
        serving.create();
      for (int i = 0; i < 60; ++i)
        serving.account(serving.step(1, 12));
      while (!serving.live.empty())
        serving.release();
    }
    serving.end();
    const runtime::Tier &tier = serving.tiered.pager()->slow();
    EXPECT_EQ(tier.slots().freeCount(), tier.slots().total());
  }
}

TEST(Pager, RefusesWhatCannotWork) {
  TieredPool tiered = makeTieredPool({});
  quire_pool *pool = tiered.pool.get();
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 1, 256, 8);
  EXPECT_EQ(statsOf(pool).step_blocks, 8);
  quire_sequence sequence = 0;
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  std::vector<int64_t> tokens(static_cast<size_t>(9 * toyInfo().block_tokens), 1);
  int64_t rows = static_cast<int64_t>(tokens.size());
  quire_batch batch = {sizeof(batch), 1, &sequence, &rows, tokens.data(), nullptr, 0};
  EXPECT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_OUT_OF_BLOCKS);
  EXPECT_STREQ(quire_last_error(), "a step with 9 blocks, but the fast tier holds 8 pages of a layer");
  runtime::Pool::Options options;
  options.bytes = 64;
  options.slowTier = [](uint64_t pageBytes, std::unique_ptr<runtime::Tier> &tier, std::unique_ptr<runtime::Mover> &) {
    tier = std::make_unique<MemoryTier>(100, pageBytes);
    return runtime::success();
  };
  std::unique_ptr<runtime::Pool> none;
  EXPECT_EQ(runtime::Pool::create(toyInfo(), options, none).code(), QUIRE_OUT_OF_BLOCKS);
  options.exportable = true;
  EXPECT_EQ(runtime::Pool::create(toyInfo(), options, none).text(), "not implemented: export of a pool with a slow tier");
  options.exportable = false;
  options.layersPerPage = 4;
  EXPECT_EQ(runtime::Pool::create(toyInfo(), options, none).code(), QUIRE_INVALID_ARGUMENT);
}

TEST(Pager, AStepThatIsTooLargeChangesNothing) {
  TieredPool tiered = makeTieredPool({});
  quire_pool *pool = tiered.pool.get();
  serving::ModelPointer model = makeModel();
  serving::ExecutorPointer executor = makeExecutor(model.get(), pool, 1, 256, 8);
  quire_sequence sequence = 0, fork = 0;
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  std::vector<int64_t> tokens(static_cast<size_t>(9 * toyInfo().block_tokens), 1);
  int64_t rows = 7;
  quire_batch batch = {sizeof(batch), 1, &sequence, &rows, tokens.data(), nullptr, 0};
  ASSERT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_OK) << quire_last_error();
  ASSERT_EQ(quire_sequence_fork(pool, sequence, 7, &fork), QUIRE_OK);
  int64_t before = statsOf(pool).blocks_free, count = 0;
  rows = static_cast<int64_t>(tokens.size());
  EXPECT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_OUT_OF_BLOCKS);
  const int32_t *blocks;
  ASSERT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(statsOf(pool).blocks_free, before);
  EXPECT_EQ(statsOf(pool).copied_bytes, 0);
  quire_sequence both[] = {sequence, fork};
  int64_t counts[] = {3 * toyInfo().block_tokens, 3 * toyInfo().block_tokens}; // 4 blocks each, nothing shared any more
  batch = {sizeof(batch), 2, both, counts, tokens.data(), nullptr, 0};
  EXPECT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_OK) << quire_last_error();
}

// All slots below are taken by pages that are nowhere else, and those above are too many to be brought in at once: each
// that comes back makes room for another one to go.
TEST(Pager, ExchangesPagesWhileTheSlowTierIsFull) {
  TieredSettings settings;
  settings.fastPages = 9;
  settings.slowPages = 8;
  settings.layersPerPage = 3;
  Serving serving(settings, 1);
  int64_t blocks = statsOf(serving.tiered.pool.get()).blocks_total;
  ASSERT_EQ(blocks, 16);
  std::vector<quire_sequence> sequences(2);
  for (quire_sequence &sequence : sequences) {
    ASSERT_EQ(quire_sequence_create(serving.tiered.pool.get(), &sequence), QUIRE_OK);
    serving.live[sequence] = {};
  }
  std::vector<int64_t> tokens(static_cast<size_t>(8 * toyInfo().block_tokens), 1);
  for (int round = 0; round < 6; ++round) {
    quire_sequence sequence = sequences[static_cast<size_t>(round % 2)];
    int64_t rows = round < 2 ? static_cast<int64_t>(tokens.size()) - 5 : 1, selected = rows - 1;
    std::vector<float> logits(static_cast<size_t>(toyInfo().vocabulary));
    quire_batch batch = {sizeof(batch), 1, &sequence, &rows, tokens.data(), &selected, 1};
    ASSERT_EQ(quire_executor_step(serving.executor.get(), &batch, logits.data()), QUIRE_OK) << round << ": " << quire_last_error();
    std::vector<int64_t> &known = serving.live[sequence];
    known.insert(known.end(), tokens.begin(), tokens.begin() + rows);
    EXPECT_EQ(logits, toyLogits(known));
    ASSERT_EQ(quire_pool_settle(serving.tiered.pool.get()), QUIRE_OK);
  }
  serving.end();
}

TEST(Pager, ErasuresAreRepeatedAndSlotsThatKeepContentAreNotUsed) {
  for (int64_t failing : {3, 4}) { // of four attempts
    TieredSettings settings;
    settings.zeroOnFree = true;
    settings.poison = false;
    TieredPool tiered = makeTieredPool(settings);
    quire_pool *pool = tiered.pool.get();
    quire_sequence sequence = 0;
    ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
    ASSERT_EQ(quire_sequence_reserve(pool, sequence, 8 * toyInfo().block_tokens), QUIRE_OK);
    const int32_t *blocks;
    int64_t count;
    ASSERT_EQ(quire_sequence_table(pool, sequence, &blocks, &count), QUIRE_OK);
    std::vector<char> canary(64, 'c');
    void *page = nullptr;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t layer = 0; layer < toyInfo().layer_count; ++layer) {
        ASSERT_EQ(quire_pool_pin(pool, layer, blocks[i], 1, &page), QUIRE_OK);
        std::memcpy(page, canary.data(), canary.size());
        ASSERT_EQ(quire_pool_unpin(pool, layer, blocks[i]), QUIRE_OK);
      }
    ASSERT_TRUE(tiered.tier->holds(canary));
    int64_t failures = 0;
    uint32_t slot = UINT32_MAX; // the first that is erased
    tiered.tier->fault = [&](const Transfer &transfer) {
      if (transfer.kind != Transfer::Kind::Erase || (slot != UINT32_MAX && transfer.slot != slot) || failures == failing)
        return QUIRE_OK;
      slot = transfer.slot;
      ++failures;
      return QUIRE_IO_ERROR;
    };
    ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
    ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
    EXPECT_EQ(failures, failing);
    EXPECT_EQ(tiered.tier->holds(canary), failing == 4);
    uint32_t kept = tiered.pager()->slow().slots().total() - tiered.pager()->slow().slots().freeCount();
    EXPECT_EQ(kept, failing == 4 ? 1u : 0u);
    EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
  }
}

TEST(Pager, APrefetchTakesOnlyPagesThatTheStepReachesLater) {
  uint64_t taken = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    TieredSettings settings;
    settings.fastPages = 8;
    settings.window = 8;
    settings.seed = seed;
    settings.policy = seed % 2 ? PolicyKind::Lru : PolicyKind::Scan;
    settings.prefetch.strategy = seed < 3 ? PrefetchStrategy::Sequential : seed < 6 ? PrefetchStrategy::Hotspot : PrefetchStrategy::Hybrid;
    settings.prefetch.predictor = seed % 4 < 2 ? PrefetchPredictor::LayerAhead : PrefetchPredictor::SeedHotspot;
    Serving serving(settings, seed);
    serving.create(); // all blocks are of one sequence, so that each step reaches every page
    while (serving.live.begin()->second.size() < 90)
      ASSERT_EQ(serving.step(1, 12), QUIRE_OK) << quire_last_error();
    ASSERT_EQ(quire_pool_trace(serving.tiered.pool.get(), 100000), QUIRE_OK);
    for (int i = 0; i < 12; ++i)
      ASSERT_EQ(serving.step(1, 1), QUIRE_OK) << quire_last_error();
    const runtime::Trace &trace = *serving.tiered.pool->pool->trace();
    uint32_t current = 0, groups = trace.numbering.groups;
    for (size_t i = 0; i + 1 < trace.events().size(); ++i) {
      const runtime::TraceEvent &event = trace.events()[i], &next = trace.events()[i + 1];
      using Kind = runtime::TraceEvent::Kind;
      if (event.kind == Kind::Demand || event.kind == Kind::Write)
        current = trace.numbering.groupOf(event.page);
      if (event.kind != Kind::Evict || next.kind != Kind::Prefetch)
        continue;
      auto distance = [&](uint32_t page) { return (trace.numbering.groupOf(page) + groups - current) % groups; };
      EXPECT_GT(distance(event.page), distance(next.page)) << "seed " << seed << ", event " << i;
      ++taken;
    }
  }
  EXPECT_GT(taken, 0u);
}
