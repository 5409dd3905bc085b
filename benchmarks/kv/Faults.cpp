// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E12: a slow tier that fails in every way, at several rates: no byte that a step reads is ever wrong.
#include "Experiment.h"
#include "ShapeModel.h"
#include "Workloads.h"

#include "abi/Handles.h"
#include "residency/Pager.h"
#include "tier/FaultTier.h"
#include "tier/HostTier.h"

#include <algorithm>

namespace quire::kvbench {

using namespace quire::runtime;

namespace {

constexpr Shape shape = {3, 1, 16, QUIRE_ELEMENT_F16, 4};
constexpr int64_t sequences = 6, most = 72;
constexpr uint64_t fastPages = 120;
constexpr uint32_t slowPages = 480;

struct Kind {
  const char *name;
  Fault::Kind kind;
  std::vector<Transfer::Kind> on;
};

const std::vector<Kind> &kinds() {
  using T = Transfer::Kind;
  static const std::vector<Kind> all = {
      {"I/O error", Fault::Kind::IoError, {T::Load, T::Store}},
      {"short transfer", Fault::Kind::ShortTransfer, {T::Load, T::Store}},
      {"no space", Fault::Kind::NoSpace, {T::Store}},
      {"delay", Fault::Kind::Delay, {T::Load, T::Store}},
      {"stuck", Fault::Kind::Stuck, {T::Load, T::Store}},
      {"flipped bit in a page", Fault::Kind::FlipPage, {T::Load, T::Store}},
      {"flipped bit in a header", Fault::Kind::FlipHeader, {T::Load, T::Store}},
      {"torn store", Fault::Kind::TornStore, {T::Store}},
      {"swapped slots", Fault::Kind::SwapSlots, {T::Store}},
  };
  return all;
}

FaultPlan planOf(const Kind &kind, double rate, uint64_t seed) {
  FaultPlan plan;
  plan.seed = seed;
  for (Transfer::Kind on : kind.on) {
    Fault fault;
    fault.kind = kind.kind;
    fault.on = on;
    fault.count = Fault::always;
    fault.probability = rate;
    fault.ns = kind.kind == Fault::Kind::Stuck ? 40'000'000'000 : 1'000'000; // beyond the deadline of a step; 1 ms
    plan.faults.push_back(fault);
  }
  return plan;
}

struct Pooled {
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  FaultTier *tier = nullptr;
  serving::PoolPointer pool;
};

Pooled makePool(const quire_model_info &info, const FaultPlan &plan, uint64_t seed) {
  Pooled made;
  Pool::Options options;
  options.bytes = fastPages * static_cast<uint64_t>(info.layers[0].block_bytes);
  options.clock = made.clock;
  options.slowTier = [&](uint64_t pageBytes, std::unique_ptr<Tier> &tier, std::unique_ptr<Mover> &mover) {
    Status status;
    HostTierOptions host;
    host.slots = slowPages;
    host.pageBytes = pageBytes;
    host.checksum = true;
    std::unique_ptr<HostTier> inner = HostTier::create(host, status);
    QUIRE_TRY(status);
    auto faulty = std::make_unique<FaultTier>(std::move(inner), plan, *made.clock);
    made.tier = faulty.get();
    tier = std::move(faulty);
    mover = createSteppedMover(*made.clock, Pager::transfersFor(fastPages), seed);
    return success();
  };
  std::unique_ptr<Pool> pool;
  check(report(Pool::create(info, options, pool)));
  made.pool.reset(new quire_pool{std::move(pool), {}});
  return made;
}

struct Outcome {
  int64_t steps = 0, failed = 0, recomputed = 0, restarted = 0;
  int64_t wrongBytes = 0;
  bool whole = true; // invariants held after every step, and nothing was left at the end
};

/// What the runtime's scheduler does with requests, for sequences that grow to `most` tokens and begin anew.
class Churn {
public:
  Churn(quire_pool *pool, quire_executor *executor, const ShapeModel &model, uint64_t seed)
      : pool_(pool), executor_(executor), model_(model), random_(seed) {
    for (int64_t i = 0; i < sequences; ++i)
      begin(live_.emplace_back());
  }

  Outcome run(int64_t rounds) {
    for (int64_t round = 0; round < rounds; ++round) {
      std::vector<StepRow> rows;
      for (Live &live : live_) {
        int64_t wanted = 1 + static_cast<int64_t>(random_.below(8));
        rows.push_back({live.sequence, std::min(wanted, most - live.length), live.id});
      }
      step(rows);
      outcome_.whole &= quire_pool_validate(pool_) == QUIRE_OK;
    }
    for (Live &live : live_)
      check(quire_sequence_release(pool_, live.sequence));
    check(quire_pool_settle(pool_));
    quire_pool_stats stats = {};
    stats.struct_size = sizeof(stats);
    check(quire_pool_get_stats(pool_, &stats));
    outcome_.whole &= stats.sequences == 0 && quire_pool_validate(pool_) == QUIRE_OK &&
                      pool_->pool->pager()->fastPagesFree() == pool_->pool->pager()->fastPages();
    return outcome_;
  }

private:
  struct Live {
    quire_sequence sequence = 0;
    int64_t id = 0, length = 0;
  };

  void begin(Live &live) {
    live = {0, ++ids_, 0};
    check(quire_sequence_create(pool_, &live.sequence));
  }

  void restart(Live &live) {
    check(quire_sequence_release(pool_, live.sequence));
    begin(live);
  }

  void step(const std::vector<StepRow> &rows) {
    int64_t before = model_.wrongBytes();
    quire_status status = tryStep(executor_, rows);
    ++outcome_.steps;
    if (status == QUIRE_OK) {
      outcome_.wrongBytes += model_.wrongBytes() - before;
      for (size_t i = 0; i < rows.size(); ++i)
        if ((live_[i].length += rows[i].tokens) >= most)
          restart(live_[i]);
      return;
    }
    ++outcome_.failed;
    if (status == QUIRE_PAGE_LOST)
      return recompute();
    if (status != QUIRE_NO_SPACE && status != QUIRE_OUT_OF_BLOCKS)
      check(status);
    auto longest =
        std::max_element(live_.begin(), live_.end(), [](const Live &a, const Live &b) { return a.length < b.length; });
    ++outcome_.restarted;
    restart(*longest);
  }

  /// Cuts sequences back to what is intact, so that the next steps append the rest again.
  void recompute() {
    for (Live &live : live_) {
      int64_t intact = 0;
      check(quire_sequence_intact(pool_, live.sequence, &intact));
      if (intact == live.length)
        continue;
      outcome_.recomputed += live.length - intact;
      check(quire_sequence_truncate(pool_, live.sequence, intact));
      live.length = intact;
    }
  }

  quire_pool *pool_;
  quire_executor *executor_;
  const ShapeModel &model_;
  Random random_;
  std::vector<Live> live_;
  int64_t ids_ = 0;
  Outcome outcome_;
};

Json rowOf(const Kind &kind, double rate, int64_t rounds, const Options &options) {
  Outcome all;
  double injected = 0, retries = 0, lost = 0, noSpace = 0;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    ShapeModel model(shape, Work::Mark);
    Pooled pooled = makePool(model.info(), planOf(kind, rate, seed), seed);
    quire_executor_options executorOptions = {};
    executorOptions.struct_size = sizeof(executorOptions);
    executorOptions.threads = 1;
    quire_executor *executor = nullptr;
    check(quire_executor_create(model.model(), pooled.pool.get(), &executorOptions, &executor));
    serving::ExecutorPointer owner(executor);
    Outcome outcome = Churn(pooled.pool.get(), executor, model, seed).run(rounds);
    const PagerCounters &c = pooled.pool->pool->pager()->counters();
    injected += static_cast<double>(pooled.tier->injected(kind.kind));
    retries += static_cast<double>(c.retries);
    lost += static_cast<double>(c.pagesLost);
    noSpace += static_cast<double>(c.noSpace);
    all.steps += outcome.steps;
    all.failed += outcome.failed;
    all.recomputed += outcome.recomputed;
    all.restarted += outcome.restarted;
    all.wrongBytes += outcome.wrongBytes;
    all.whole &= outcome.whole;
  }
  return {{"fault", kind.name},
          {"rate", rate},
          {"injected", injected},
          {"steps", all.steps},
          {"failed_steps", all.failed},
          {"retries", retries},
          {"pages_lost", lost},
          {"no_space", noSpace},
          {"recomputed_tokens", all.recomputed},
          {"restarted", all.restarted},
          {"wrong_bytes", all.wrongBytes},
          {"whole", all.whole}};
}

} // namespace

Json faults(const Options &options) {
  int64_t rounds = options.quick ? 60 : 400;
  Json rows = Json::array();
  double wrong = 0, broken = 0;
  for (const Kind &kind : kinds())
    for (double rate : {0.001, 0.01, 0.1}) {
      rows.push_back(rowOf(kind, rate, rounds, options));
      wrong += rows.back()["wrong_bytes"].get<double>();
      broken += !rows.back()["whole"].get<bool>();
    }
  Json claims = {claim("bytes that a step read and that were not as they were written", wrong, 0, 0),
                 claim("runs in which an invariant broke or something was left at the end", broken, 0, 0)};
  return {{"workload", "6 sequences that grow to 72 tokens and begin anew, over a fast tier that holds a part of their "
                       "pages; every step compares every stored byte"},
          {"baseline", "what was written"},
          {"formula", "rate: probability that a transfer of the kinds that the fault is for is hit"},
          {"parameters",
           {{"rounds", rounds},
            {"fast_pages", fastPages},
            {"slow_pages", slowPages},
            {"repeats", options.repeats},
            {"seed", options.seed}}},
          {"rows", rows},
          {"claims", claims}};
}

} // namespace quire::kvbench
