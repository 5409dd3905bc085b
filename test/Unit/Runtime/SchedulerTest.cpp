// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Continuous batching: the same tokens in every mode, and that the modes happen.
#include "serving/Scheduler.h"
#include "TieredPool.h"
#include "core/Quantities.h"

#include <map>

using namespace quire::serving;
using namespace quire::test;

namespace {

struct Collected : ResultSink {
  std::map<std::string, Result> results;
  std::map<std::string, std::vector<std::vector<float>>> rows;
  std::vector<std::string> order;
  int64_t stopAfter = -1; // rows; then the sink fails
  int64_t mostBegun = 0;  // requests with rows and no result yet, at any time

  bool logits(const Request &request, const float *row) override {
    rows[request.id].emplace_back(row, row + toyInfo().vocabulary);
    mostBegun = std::max(mostBegun, static_cast<int64_t>(rows.size()) - static_cast<int64_t>(results.size()));
    return stopAfter < 0 || --stopAfter >= 0;
  }
  bool finished(const Request &request, const Result &result) override {
    EXPECT_EQ(results.count(request.id), 0u) << "two results for " << request.id;
    results[request.id] = result;
    order.push_back(request.id);
    return true;
  }
};

struct Mode {
  int64_t maxBatch = 8;
  int64_t prefillChunk = 512;
  int64_t blocks = 200;
  bool shuffle = false;
  int64_t threads = 2;
  int64_t mixedChunk = 64;
  bool prefixCache = false;
  double reserve = 0;
};

Request request(const std::string &id, size_t promptLength, int64_t count, int64_t seed) {
  Request r;
  r.id = id;
  r.idKind = Request::IdKind::Text;
  for (size_t i = 0; i < promptLength; ++i)
    r.prompt.push_back((seed * 53 + static_cast<int64_t>(i * i) * 29 + 11) % toyInfo().token_limit);
  r.maxNewTokens = count;
  return r;
}

/// The lengths of the acceptance corpus.
std::vector<Request> corpus() {
  return {request("a", 1, 24, 1), request("b", 3, 24, 2), request("c", 7, 24, 3), request("d", 17, 24, 4),
          request("e", 40, 24, 5)};
}

struct Served {
  Collected sink;
  Statistics statistics;
  std::string error;
};

void serve(const std::vector<Request> &requests, const Mode &mode, Served &run) {
  ModelPointer model = makeModel();
  PoolSettings settings = {mode.blocks, mode.shuffle, 7, true, mode.prefixCache};
  PoolPointer pool = makePool(settings);
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  ASSERT_EQ(quire_pool_get_tuning(pool.get(), &tuning), QUIRE_OK);
  tuning.reserve_ratio = mode.reserve;
  ASSERT_EQ(quire_pool_set_tuning(pool.get(), &tuning), QUIRE_OK);
  ExecutorPointer executor =
      makeExecutor(model.get(), pool.get(), mode.threads, mode.maxBatch + mode.prefillChunk, mode.maxBatch);
  auto scheduler = std::make_unique<Scheduler>(
      *quire_model_get_info(model.get()), pool.get(), executor.get(),
      SchedulerLimits{mode.maxBatch, mode.prefillChunk, mode.mixedChunk, mode.prefixCache, 0}, run.sink);
  for (const Request &r : requests)
    ASSERT_TRUE(scheduler->add(r));
  Scheduler::Progress progress;
  int64_t steps = 0;
  while ((progress = scheduler->step()) == Scheduler::Progress::Stepped)
    ASSERT_LT(++steps, 100000) << "no end";
  ASSERT_EQ(progress, Scheduler::Progress::Idle) << scheduler->error();
  run.statistics = scheduler->statistics();
  EXPECT_EQ(run.sink.results.size(), requests.size());
  scheduler.reset(); // and with it what is cached
  EXPECT_EQ(statsOf(pool.get()).blocks_free, mode.blocks) << "blocks were lost";
  EXPECT_EQ(statsOf(pool.get()).sequences, 0);
  EXPECT_EQ(quire_pool_validate(pool.get()), QUIRE_OK) << quire_last_error();
}

/// The same on a pool of two tiers. `prepare` may make the slow one fail.
void serveTiered(const std::vector<Request> &requests, const TieredSettings &settings, Served &run,
                 const std::function<void(MemoryTier &)> &prepare = {}) {
  ModelPointer model = makeModel();
  TieredPool tiered = makeTieredPool(settings);
  if (prepare)
    prepare(*tiered.tier);
  ExecutorPointer executor = makeExecutor(model.get(), tiered.pool.get(), 2, 8 + 64, 8);
  Scheduler scheduler(*quire_model_get_info(model.get()), tiered.pool.get(), executor.get(), SchedulerLimits{8, 64, 64, false, 0}, run.sink);
  for (const Request &r : requests)
    ASSERT_TRUE(scheduler.add(r));
  Scheduler::Progress progress;
  int64_t steps = 0;
  while ((progress = scheduler.step()) == Scheduler::Progress::Stepped)
    ASSERT_LT(++steps, 100000) << "no end";
  ASSERT_EQ(progress, Scheduler::Progress::Idle) << scheduler.error();
  run.statistics = scheduler.statistics();
  EXPECT_EQ(statsOf(tiered.pool.get()).sequences, 0);
  EXPECT_EQ(quire_pool_validate(tiered.pool.get()), QUIRE_OK) << quire_last_error();
}

void expectReference(const std::vector<Request> &requests, const Served &run) {
  for (const Request &r : requests) {
    const Result &result = run.sink.results.at(r.id);
    EXPECT_EQ(result.reason, FinishReason::Length) << r.id << ": " << result.error;
    ToySequence known;
    for (int64_t token : r.prompt)
      known.append(token);
    std::vector<int64_t> expected = toyGreedy(r.prompt, r.maxNewTokens);
    EXPECT_EQ(result.tokens, expected) << r.id;
    const auto &rows = run.sink.rows.at(r.id);
    ASSERT_EQ(rows.size(), expected.size()) << r.id;
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i], known.logits()) << r.id << " row " << i;
      known.append(expected[i]);
    }
  }
}

} // namespace

TEST(Scheduler, TwoTiersGiveTheSameTokens) {
  TieredSettings settings;
  settings.fastPages = 16;
  Served run;
  serveTiered(corpus(), settings, run);
  expectReference(corpus(), run);
  EXPECT_EQ(run.statistics.maxSequencesInStep, 5);
  EXPECT_GT(run.statistics.paging.misses, 0);
  EXPECT_GE(run.statistics.kvCopyBytes, run.statistics.paging.bytes_in_demand + run.statistics.paging.bytes_out);
}

TEST(Scheduler, SequencesTakeTurnsWhenNotAllFitIntoAStep) {
  TieredSettings settings;
  settings.fastPages = 5;
  Served run;
  serveTiered(corpus(), settings, run);
  expectReference(corpus(), run);
  EXPECT_LT(run.statistics.maxSequencesInStep, 5);
  EXPECT_GT(run.statistics.maxSequencesInStep, 1);
  EXPECT_EQ(run.statistics.preemptions, 0) << "the slow tier has room";
}

TEST(Scheduler, WhatASlowTierLosesIsComputedAgain) {
  TieredSettings settings;
  settings.fastPages = 6;
  int64_t loads = 0;
  Served run;
  serveTiered(corpus(), settings, run, [&](MemoryTier &tier) {
    tier.fault = [&](const quire::runtime::Transfer &transfer) {
      bool load = transfer.kind == quire::runtime::Transfer::Kind::Load;
      return load && ++loads % 40 == 0 ? QUIRE_PAGE_LOST : QUIRE_OK;
    };
  });
  expectReference(corpus(), run);
  EXPECT_GT(run.statistics.paging.pages_lost, 0);
  EXPECT_GT(run.statistics.recomputedTokens, 0);
}

/// The younger of two gives way at most as often as the older one takes a block, also where slots of the slow tier are only free once they are erased: nobody
/// tries in vain for long.
TEST(Scheduler, GivingWayIsBoundedByWhatOthersTake) {
  std::vector<Request> requests = {request("old", 17, 70, 1), request("young", 17, 70, 2)};
  Served memory, tiers;
  Mode mode;
  mode.blocks = 7; // each takes six
  serve(requests, mode, memory);
  TieredSettings settings;
  settings.fastPages = 8;
  settings.slowPages = 14; // with those of the fast tier seven blocks
  settings.zeroOnFree = true;
  settings.poison = false;
  serveTiered(requests, settings, tiers);
  for (const Served *run : {&memory, &tiers}) {
    expectReference(requests, *run);
    EXPECT_EQ(run->sink.order, (std::vector<std::string>{"old", "young"}));
    EXPECT_GT(run->statistics.preemptions, 0);
    EXPECT_LE(run->statistics.preemptions, 6);
  }
}

TEST(Scheduler, AFullDeviceLetsSequencesGiveWay) {
  TieredSettings settings;
  settings.fastPages = 12;
  int64_t stores = 0;
  Served run;
  serveTiered(corpus(), settings, run, [&](MemoryTier &tier) {
    tier.fault = [&](const quire::runtime::Transfer &transfer) {
      bool store = transfer.kind == quire::runtime::Transfer::Kind::Store;
      return store && ++stores > 4 ? QUIRE_NO_SPACE : QUIRE_OK;
    };
  });
  expectReference(corpus(), run);
  EXPECT_GT(run.statistics.paging.no_space, 0);
}

TEST(Scheduler, ADeviceThatLosesEverythingEndsInErrors) {
  TieredSettings settings;
  settings.fastPages = 5;
  Served run;
  serveTiered(corpus(), settings, run, [&](MemoryTier &tier) {
    tier.fault = [&](const quire::runtime::Transfer &transfer) {
      return transfer.kind == quire::runtime::Transfer::Kind::Load ? QUIRE_PAGE_LOST : QUIRE_OK;
    };
  });
  size_t errors = 0;
  for (const Request &r : corpus()) {
    const Result &result = run.sink.results.at(r.id);
    errors += result.reason == FinishReason::Error;
    if (result.reason == FinishReason::Length)
      EXPECT_EQ(result.tokens, toyGreedy(r.prompt, r.maxNewTokens));
  }
  EXPECT_GT(errors, 0u);
}

TEST(Scheduler, RequestsLargerThanAStepAreErrors) {
  TieredSettings settings;
  settings.fastPages = 5;
  Served run;
  Request longer = request("long", 100, 24, 6), endless = request("endless", 40, 200, 7);
  endless.stop = {-1};
  serveTiered({longer, endless}, settings, run);
  EXPECT_EQ(run.sink.results.at("long").error,
            "line 0: needs 8 blocks at once, but the fast tier holds 5 of a layer; raise memory.fast_bytes (--kv-bytes)");
  EXPECT_NE(run.sink.results.at("endless").error.find("blocks that the fast tier holds of a layer"), std::string::npos)
      << run.sink.results.at("endless").error;
}

TEST(Scheduler, Solo) {
  Served run;
  serve(corpus(), {1, 512, 200, false, 1}, run);
  expectReference(corpus(), run);
  EXPECT_EQ(run.statistics.maxSequencesInStep, 1);
}

TEST(Scheduler, BatchHoldsAllRequestsAtOnce) {
  Served run;
  serve(corpus(), {}, run);
  expectReference(corpus(), run);
  EXPECT_EQ(run.statistics.maxSequencesInStep, 5);
  EXPECT_EQ(run.statistics.steps.size(), 24u);
  EXPECT_EQ(run.statistics.steps[0].tokens, 68);
  EXPECT_EQ(run.statistics.steps[0].kvTokens, 68);
  EXPECT_EQ(run.statistics.steps[1].tokens, 5);
  EXPECT_EQ(run.statistics.steps[1].kvTokens, 73);
  EXPECT_EQ(run.statistics.maxPrefillTokensInStep, 68);
  EXPECT_EQ(run.statistics.preemptions, 0);
  EXPECT_EQ(run.statistics.kvCopyBytes, 0);
  EXPECT_EQ(run.statistics.prefetchIssued, 2 * 24);
  EXPECT_EQ(run.statistics.prefetchRedundant, 2 * 24);
}

TEST(Scheduler, ShuffledBlocks) {
  Served ordered, shuffled;
  serve(corpus(), {}, ordered);
  Mode mode;
  mode.shuffle = true;
  serve(corpus(), mode, shuffled);
  expectReference(corpus(), shuffled);
  EXPECT_NE(ordered.statistics.finalBlockTables, shuffled.statistics.finalBlockTables);
  ASSERT_EQ(shuffled.statistics.finalBlockTables.size(), 5u);
  for (const auto &[id, blocks] : shuffled.statistics.finalBlockTables)
    EXPECT_EQ(blocks.size(), (shuffled.sink.results.at(id).tokens.size() - 1 +
                              (id == "a"   ? 1
                               : id == "b" ? 3
                               : id == "c" ? 7
                               : id == "d" ? 17
                                           : 40) +
                              15) /
                                 16);
}

TEST(Scheduler, ChunkedPrefillIsMixedWithDecode) {
  for (int64_t chunk : {1, 3, 5, 16}) {
    Served run;
    Mode mode;
    mode.maxBatch = 4;
    mode.prefillChunk = chunk;
    serve(corpus(), mode, run);
    expectReference(corpus(), run);
    EXPECT_LE(run.statistics.maxPrefillTokensInStep, chunk);
    EXPECT_GT(run.statistics.maxPrefillTokensInStep, 0);
    bool mixed = false;
    for (const StepRecord &step : run.statistics.steps) {
      EXPECT_LE(step.sequences, 4);
      mixed |= step.sequences > 1 && step.tokens > step.sequences;
    }
    EXPECT_TRUE(mixed || chunk == 1);
  }
}

// A long prompt beside a sequence that decodes is appended in small pieces; alone, in large ones.
TEST(Scheduler, FewPromptTokensBesideDecoding) {
  std::vector<Request> requests = {request("short", 2, 40, 1), request("long", 120, 2, 3)};
  for (int64_t mixed : {4, 16, 200}) {
    Served run;
    Mode mode;
    mode.maxBatch = 2;
    mode.prefillChunk = 50;
    mode.mixedChunk = mixed;
    serve(requests, mode, run);
    expectReference(requests, run);
    const std::vector<StepRecord> &steps = run.statistics.steps;
    EXPECT_EQ(steps.front().tokens, 50); // nobody decodes yet
    int64_t beside = std::min<int64_t>(mixed, 50);
    for (size_t i = 1; i < steps.size(); ++i)
      EXPECT_LE(steps[i].tokens, beside + 1) << "step " << i;
    EXPECT_EQ(steps[1].tokens, beside + 1);
    EXPECT_GT(run.statistics.largestGapMs, 0);
  }
}

TEST(Scheduler, PressureMakesRoomByPreemption) {
  for (bool shuffle : {false, true}) {
    Served run;
    Mode mode;
    mode.blocks = (64 + 16) / 16; // the longest request and one block
    mode.shuffle = shuffle;
    serve(corpus(), mode, run);
    expectReference(corpus(), run);
    EXPECT_GE(run.statistics.preemptions, 1);
    EXPECT_EQ(run.statistics.blocksPeak, mode.blocks);
    EXPECT_EQ(run.statistics.kvCopyBytes, 0);
  }
}

TEST(Scheduler, BlockEventsTellEveryTableAtEveryStep) {
  Served run;
  Mode mode;
  mode.blocks = 5; // with preemption
  serve(corpus(), mode, run);
  std::map<std::string, std::vector<int32_t>> tables, last;
  std::map<int32_t, std::string> owner;
  int64_t step = 0;
  for (const BlockEvent &event : run.statistics.blockEvents) {
    EXPECT_GE(event.step, step);
    step = event.step;
    for (int32_t block : event.taken) {
      EXPECT_TRUE(owner.emplace(block, event.id).second) << "block " << block << " has two owners";
      tables[event.id].push_back(block);
    }
    if (!event.taken.empty())
      continue;
    for (int32_t block : tables[event.id])
      owner.erase(block);
    last[event.id] = std::move(tables[event.id]);
    tables.erase(event.id);
  }
  EXPECT_TRUE(tables.empty());
  EXPECT_LE(step, static_cast<int64_t>(run.statistics.steps.size()));
  for (const auto &[id, blocks] : run.statistics.finalBlockTables)
    EXPECT_EQ(last.at(id), blocks) << id;
}

TEST(Scheduler, EveryPoolThatHoldsTheLongestCompletes) {
  std::vector<Request> requests = corpus();
  requests.push_back(request("f", 30, 34, 6));
  requests.push_back(request("g", 1, 63, 7));
  for (int64_t blocks = 4; blocks <= 12; ++blocks)
    for (int64_t chunk : {4, 64}) {
      Served run;
      Mode mode;
      mode.blocks = blocks;
      mode.prefillChunk = chunk;
      serve(requests, mode, run);
      expectReference(requests, run);
    }
}

TEST(Scheduler, OrderOfArrivalIsKeptUnderPressure) {
  Served run;
  Mode mode;
  mode.blocks = 4;
  std::vector<Request> requests;
  for (int i = 0; i < 6; ++i)
    requests.push_back(request(std::to_string(i), 10, 30, i));
  serve(requests, mode, run);
  expectReference(requests, run);
  EXPECT_EQ(run.sink.order.front(), "0");
  EXPECT_GE(run.statistics.preemptions, 1);
}

TEST(Scheduler, WhatNeverFitsIsAnError) {
  Served run;
  Mode mode;
  mode.blocks = 3;
  std::vector<Request> requests = {request("long", 49, 1, 1), request("grows", 10, 40, 2), request("fits", 10, 39, 3),
                                   request("one", 48, 1, 4)};
  serve(requests, mode, run);
  EXPECT_EQ(run.sink.results["long"].reason, FinishReason::Error);
  EXPECT_EQ(run.sink.results["long"].error,
            "line 0: needs 4 blocks of 16 tokens, but the pool has 3; raise memory.fast_bytes (--kv-bytes) to at least " + quire::runtime::printSize(4 * static_cast<uint64_t>(run.statistics.blockBytes)));
  EXPECT_EQ(run.sink.results["grows"].reason, FinishReason::Error);
  EXPECT_EQ(run.sink.results["fits"].tokens, toyGreedy(requests[2].prompt, 39));
  EXPECT_EQ(run.sink.results["one"].tokens, toyGreedy(requests[3].prompt, 1));
}

/// Short prompts that grow, of staggered lengths: without a reserve all begin, and most give way.
TEST(Scheduler, AReserveSparesPreemptions) {
  std::vector<Request> requests;
  for (int i = 0; i < 40; ++i)
    requests.push_back(request(std::to_string(i), 8 + static_cast<size_t>(i * 7 % 40), 40 + i * 11 % 100, i));
  int64_t before = INT64_MAX;
  for (double reserve : {0.0, 0.1, 0.25}) {
    Served run;
    Mode mode;
    mode.blocks = 40;
    mode.reserve = reserve;
    serve(requests, mode, run);
    expectReference(requests, run);
    EXPECT_LT(run.statistics.preemptions, before) << reserve;
    EXPECT_EQ(run.statistics.reserveBlocks, static_cast<int64_t>(reserve * 40));
    EXPECT_EQ(run.statistics.reserveHits > 0, reserve > 0);
    before = run.statistics.preemptions;
  }
}

/// Whatever is reserved, a request as large as the pool completes, also behind others.
TEST(Scheduler, AReserveNeverKeepsARequestThatFitsAlone) {
  std::vector<Request> requests = {request("a", 20, 30, 1), request("whole", 100, 157, 2), request("prompt", 200, 5, 3),
                                   request("b", 3, 60, 4)};
  for (double reserve : {0.1, 0.5}) {
    Served run;
    Mode mode;
    mode.blocks = 16; // 256 tokens, as many as "whole" stores
    mode.reserve = reserve;
    serve(requests, mode, run);
    expectReference(requests, run);
    EXPECT_EQ(run.statistics.blocksPeak, 16);
  }
}

TEST(Scheduler, UnknownLengthRunsUntilThePoolIsFull) {
  Served run;
  Mode mode;
  mode.blocks = 2;
  Request open = request("open", 10, 200, 1);
  std::vector<int64_t> tokens = toyGreedy(open.prompt, 60);
  int64_t absent = 0;
  while (std::find(tokens.begin(), tokens.end(), absent) != tokens.end())
    ++absent;
  open.stop = {absent};
  serve({open, request("after", 3, 5, 2)}, mode, run);
  EXPECT_EQ(run.sink.results["open"].reason, FinishReason::Error);
  EXPECT_NE(run.sink.results["open"].error.find("the pool of 2 blocks is full after 32 tokens"), std::string::npos);
  EXPECT_EQ(run.sink.results["open"].tokens, toyGreedy(open.prompt, 23)); // 10 + 22 stored, 1 not
  EXPECT_EQ(run.sink.results["after"].reason, FinishReason::Length);
}

TEST(Scheduler, StopTokens) {
  Request r = request("s", 5, 50, 3);
  std::vector<int64_t> all = toyGreedy(r.prompt, 50);
  r.stop = {all[6]};
  size_t first = static_cast<size_t>(std::find(all.begin(), all.end(), all[6]) - all.begin());
  Served run;
  serve({r}, {}, run);
  EXPECT_EQ(run.sink.results["s"].reason, FinishReason::Stop);
  EXPECT_EQ(run.sink.results["s"].tokens,
            std::vector<int64_t>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first) + 1));
  EXPECT_EQ(run.sink.rows["s"].size(), first + 1);
}

TEST(Scheduler, SamplingDoesNotDependOnBatchingOrPreemption) {
  std::vector<Request> requests = corpus();
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].sampling.temperature = 20;
    requests[i].sampling.topK = 50;
    requests[i].sampling.topP = 0.95;
    requests[i].sampling.seed = i;
  }
  Served alone, batch, pressure;
  serve(requests, {1, 512, 200, false, 1}, alone);
  serve(requests, {8, 7, 200, true, 3}, batch);
  serve(requests, {8, 512, 5, true, 2}, pressure);
  EXPECT_GE(pressure.statistics.preemptions, 1);
  for (const Request &r : requests) {
    EXPECT_EQ(batch.sink.results[r.id].tokens, alone.sink.results[r.id].tokens);
    EXPECT_EQ(pressure.sink.results[r.id].tokens, alone.sink.results[r.id].tokens);
    EXPECT_NE(alone.sink.results[r.id].tokens, toyGreedy(r.prompt, r.maxNewTokens));
  }
}

TEST(Scheduler, TimesAreReported) {
  Served run;
  serve({request("one", 4, 1, 1), request("two", 4, 2, 1)}, {}, run);
  EXPECT_GT(run.sink.results["one"].firstTokenMs, 0);
  EXPECT_LT(run.sink.results["one"].decodeMsPerToken, 0);
  EXPECT_GT(run.sink.results["two"].decodeMsPerToken, 0);
  ASSERT_EQ(run.statistics.firstTokenMs.size(), 2u);
  EXPECT_LE(run.statistics.firstTokenMs[0], run.statistics.firstTokenMs[1]);
  EXPECT_GT(run.statistics.largestGapMs, 0); // of "two"
  std::string line = statisticsLine(run.statistics, 2, 3, 0.5);
  EXPECT_EQ(line.rfind("2 requests, 3 new tokens in 0.50 s: 6.0 tokens/s; first token after ", 0), 0u) << line;
  EXPECT_EQ(statisticsLine({}, 0, 0, 0.5), "");
}

TEST(Scheduler, FailingSinkEndsTheRun) {
  Served run;
  run.sink.stopAfter = 3;
  ModelPointer model = makeModel();
  PoolPointer pool = makePool();
  ExecutorPointer executor = makeExecutor(model.get(), pool.get());
  {
    Scheduler scheduler(toyInfo(), pool.get(), executor.get(), {8, 64}, run.sink);
    ASSERT_TRUE(scheduler.add(request("a", 4, 10, 1)));
    Scheduler::Progress progress;
    while ((progress = scheduler.step()) == Scheduler::Progress::Stepped) {
    }
    EXPECT_EQ(progress, Scheduler::Progress::Failed);
  }
  EXPECT_EQ(statsOf(pool.get()).blocks_free, 16);
}

TEST(Scheduler, ManyRequestsThroughASmallBatch) {
  std::vector<Request> requests;
  for (int i = 0; i < 60; ++i)
    requests.push_back(request(std::to_string(i), 1 + static_cast<size_t>(i * 7 % 30), 1 + i * 5 % 20, i));
  Served run;
  serve(requests, {3, 8, 6, true, 2}, run);
  expectReference(requests, run);
  EXPECT_EQ(run.statistics.maxSequencesInStep, 3);
}

/// Also those that gave way count: each keeps its file of logits open.
TEST(Scheduler, NoMoreRequestsBeginThanTheBatchHolds) {
  std::vector<Request> requests;
  for (int i = 0; i < 20; ++i)
    requests.push_back(request(std::to_string(i), 1 + static_cast<size_t>(i * 5 % 20), 20 + i * 3 % 20, i));
  for (int64_t blocks : {4, 7})
    for (int64_t chunk : {4, 512}) {
      Served run;
      serve(requests, {4, chunk, blocks, true, 2}, run);
      expectReference(requests, run);
      EXPECT_GE(run.statistics.preemptions, 1) << blocks << " blocks";
      EXPECT_LE(run.sink.mostBegun, 4) << blocks << " blocks";
    }
}

namespace {

/// Requests of two tenants and of none that begin alike.
std::vector<Request> alike() {
  std::vector<Request> requests;
  for (int64_t i = 0; i < 12; ++i) {
    Request r = request(std::to_string(i), 70, 6, 1);
    r.prompt.resize(static_cast<size_t>(55 + i));
    r.prompt.push_back(i);
    r.tenant = i % 3 == 0 ? "" : i % 3 == 1 ? "a" : "b";
    requests.push_back(r);
  }
  return requests;
}

int64_t prefillTokens(const Served &run) {
  int64_t tokens = 0;
  for (const StepRecord &step : run.statistics.steps)
    tokens += step.tokens;
  return tokens;
}

} // namespace

TEST(Scheduler, PrefixCacheSavesPrefillAndChangesNoToken) {
  std::vector<Request> requests = alike();
  int64_t prompts = 0;
  for (const Request &r : requests)
    prompts += static_cast<int64_t>(r.prompt.size());
  for (int64_t batch : {1, 4}) {
    Served without, with;
    Mode mode;
    mode.maxBatch = batch;
    serve(requests, mode, without);
    mode.prefixCache = true;
    serve(requests, mode, with);
    expectReference(requests, without);
    expectReference(requests, with);
    const PrefixStatistics &prefix = with.statistics.prefix;
    EXPECT_FALSE(without.statistics.prefix.enabled);
    EXPECT_EQ(prefillTokens(with), prefillTokens(without) - prefix.hitTokens);
    EXPECT_EQ(prefix.tenants, 3);
    EXPECT_EQ(prefix.queries, 12);
    EXPECT_EQ(prefix.queryTokens, prompts);
    if (batch == 1) // all but the first of each tenant find the three full blocks that they have in common
      EXPECT_EQ(prefix.hitTokens, 9 * 48);
    else
      EXPECT_GT(prefix.hitTokens, 0);
    EXPECT_EQ(with.statistics.kvCopyBytes, 0);
  }
}

TEST(Scheduler, PrefixesAreNotSharedAcrossTenants) {
  std::vector<Request> requests = alike();
  for (size_t i = 0; i < requests.size(); ++i)
    requests[i].tenant = std::to_string(i);
  Served run;
  Mode mode;
  mode.maxBatch = 1;
  mode.prefixCache = true;
  serve(requests, mode, run);
  expectReference(requests, run);
  EXPECT_EQ(run.statistics.prefix.hitTokens, 0);
  EXPECT_EQ(run.statistics.prefix.tenants, 12);
}

TEST(Scheduler, PrefixCacheUnderPressure) {
  std::vector<Request> requests = alike();
  for (Request &r : requests)
    r.maxNewTokens = 20;
  int64_t preemptions = 0, evicted = 0;
  for (int64_t blocks : {6, 9})
    for (int64_t chunk : {16, 512}) {
      Served run;
      Mode mode;
      mode.blocks = blocks;
      mode.prefillChunk = chunk;
      mode.shuffle = chunk == 16;
      mode.prefixCache = true;
      serve(requests, mode, run);
      expectReference(requests, run);
      preemptions += run.statistics.preemptions;
      evicted += run.statistics.prefix.blocksEvicted;
      EXPECT_EQ(run.statistics.prefix.queries, 12) << "those that gave way count once";
      EXPECT_LE(run.statistics.prefix.hitTokens, 9 * 48) << "their own blocks are no hits";
    }
  EXPECT_GT(preemptions, 0);
  EXPECT_GT(evicted, 0);
}

/// Requests that run at the same time and store the same blocks end with one of each; the events say so.
TEST(Scheduler, BlockEventsFollowMergedBlocks) {
  std::vector<Request> requests = alike();
  for (Request &r : requests)
    r.tenant.clear();
  Served run;
  Mode mode;
  mode.maxBatch = 4;
  mode.prefixCache = true;
  serve(requests, mode, run);
  expectReference(requests, run);
  EXPECT_GT(run.statistics.prefix.blocksMerged, 0);
  std::map<std::string, std::vector<int32_t>> tables, last;
  for (const BlockEvent &event : run.statistics.blockEvents) {
    std::vector<int32_t> &table = tables[event.id];
    if (event.taken.empty())
      last[event.id] = std::move(table), table.clear();
    table.insert(table.end(), event.taken.begin(), event.taken.end());
  }
  for (const auto &[id, blocks] : run.statistics.finalBlockTables)
    EXPECT_EQ(last.at(id), blocks) << id;
}
