// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E13: churn of sequences, forks, prefixes and tenants over two tiers for as long as asked, and what is left of it.
#include "Experiment.h"
#include "ShapeModel.h"
#include "Workloads.h"

#include "bench/Session.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>

namespace quire::kvbench {

namespace {

constexpr Shape shape = {4, 2, 32, QUIRE_ELEMENT_F16, 16};
constexpr int64_t fastBlocks = 96, slowBlocks = 256, mostTokens = 512, mostAlive = 24, mostInStep = 6, tenants = 3,
                  identities = 40;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Random operations of the C interface. A sequence stores one token id over and over, so that equal ids are equal
/// prefixes.
class Soaking {
public:
  explicit Soaking(uint64_t seed)
      : random_(seed), model_(shape, Work::Mark), pool_(model_, options()),
        executor_(pool_.executor(model_, 1024, mostInStep, 1)) {
    for (quire_tenant &tenant : tenants_)
      open(tenant);
  }

  void once() {
    ++operations_;
    switch (random_.below(10)) {
    case 0:
    case 1:
      return create();
    case 2:
      return fork();
    case 3:
      return truncate();
    case 4:
      return release();
    case 5:
      return random_.below(50) == 0 ? changeTenant() : advance();
    default:
      return step();
    }
  }

  /// Ends everything; whether nothing is left and the counters add up.
  Json drain() {
    while (!live_.empty())
      drop(live_.size() - 1);
    for (quire_tenant tenant : tenants_)
      check(quire_tenant_destroy(pool_.get(), tenant));
    check(quire_pool_settle(pool_.get()));
    quire_pool_stats stats = pool_.stats();
    quire_paging_stats paging = pool_.pagingStats();
    bool whole = quire_pool_validate(pool_.get()) == QUIRE_OK;
    bool exact = paging.hits + paging.late + paging.misses == paging.demands &&
                 // A step that finds no room for its pages has missed them, and moves none.
                 (starved_ > 0 ? paging.bytes_in_demand < paging.misses * paging.page_bytes
                               : paging.bytes_in_demand == paging.misses * paging.page_bytes) &&
                 paging.bytes_in_prefetch == paging.prefetch_issued * paging.page_bytes &&
                 paging.write_backs <= paging.seals;
    return {{"operations", operations_},
            {"steps", steps_},
            {"refused", refused_},
            {"wrong_bytes", wrongBytes_},
            {"left_sequences", stats.sequences},
            {"left_blocks", stats.blocks_total - stats.blocks_free},
            {"demands", paging.demands},
            {"hits", paging.hits},
            {"misses", paging.misses},
            {"loads", paging.bytes_in_demand / paging.page_bytes},
            {"allocations", stats.allocations},
            {"exact", exact && whole}};
  }

private:
  struct Live {
    quire_sequence sequence;
    quire_tenant tenant;
    int64_t id, length;
  };

  static ShapePool::Options options() {
    ShapePool::Options options{fastBlocks, "memory", slowBlocks};
    options.prefixCache = true;
    return options;
  }

  size_t any() { return static_cast<size_t>(random_.below(live_.size())); }

  void open(quire_tenant &tenant) {
    quire_tenant_options options = {};
    options.struct_size = sizeof(options);
    options.time_to_live_ns = 5000;
    check(quire_tenant_create(pool_.get(), &options, &tenant));
  }

  void create() {
    if (live_.size() >= mostAlive)
      return release();
    Live live = {0, tenants_[random_.below(tenants)], 1 + static_cast<int64_t>(random_.below(identities)), 0};
    quire_sequence_options options = {};
    options.struct_size = sizeof(options);
    options.tenant = live.tenant;
    check(quire_sequence_create_with(pool_.get(), &options, &live.sequence));
    std::vector<int64_t> tokens(static_cast<size_t>(1 + random_.below(mostTokens)), live.id);
    check(quire_sequence_match_prefix(pool_.get(), live.sequence, tokens.data(), static_cast<int64_t>(tokens.size()),
                                      &live.length));
    live_.push_back(live);
  }

  void fork() {
    if (live_.empty() || live_.size() >= mostAlive)
      return;
    Live copy = live_[any()];
    copy.length = static_cast<int64_t>(random_.below(static_cast<uint64_t>(copy.length) + 1));
    check(quire_sequence_fork(pool_.get(), copy.sequence, copy.length, &copy.sequence));
    live_.push_back(copy);
  }

  void truncate() {
    if (live_.empty())
      return;
    Live &live = live_[any()];
    live.length = static_cast<int64_t>(random_.below(static_cast<uint64_t>(live.length) + 1));
    check(quire_sequence_truncate(pool_.get(), live.sequence, live.length));
  }

  void release() {
    if (!live_.empty())
      drop(any());
  }

  void drop(size_t index) {
    check(quire_sequence_release(pool_.get(), live_[index].sequence));
    live_[index] = live_.back();
    live_.pop_back();
  }

  void changeTenant() {
    quire_tenant &tenant = tenants_[random_.below(tenants)];
    for (size_t i = live_.size(); i-- > 0;)
      if (live_[i].tenant == tenant)
        drop(i);
    check(quire_tenant_destroy(pool_.get(), tenant));
    open(tenant);
  }

  void advance() { check(quire_pool_advance(pool_.get(), now_ += static_cast<int64_t>(random_.below(100)), nullptr)); }

  void step() {
    std::vector<StepRow> rows;
    std::vector<size_t> chosen;
    int64_t blocks = 0;
    for (size_t i = 0, first = live_.empty() ? 0 : any(); i < live_.size() && rows.size() < mostInStep; ++i) {
      const Live &live = live_[(first + i) % live_.size()];
      int64_t tokens = std::min<int64_t>(1 + static_cast<int64_t>(random_.below(40)), mostTokens - live.length);
      blocks += (live.length + tokens + shape.blockTokens - 1) / shape.blockTokens;
      if (tokens < 1 || blocks > pool_.stats().step_blocks)
        break;
      rows.push_back({live.sequence, tokens, live.id});
      chosen.push_back((first + i) % live_.size());
    }
    if (rows.empty())
      return release();
    int64_t before = model_.wrongBytes();
    quire_status status = tryStep(executor_.get(), rows);
    ++steps_;
    if (status == QUIRE_OUT_OF_BLOCKS || status == QUIRE_NO_SPACE) {
      ++refused_;
      starved_ += status == QUIRE_NO_SPACE;
      return release();
    }
    check(status);
    wrongBytes_ += model_.wrongBytes() - before;
    for (size_t i = 0; i < rows.size(); ++i) {
      Live &live = live_[chosen[i]];
      live.length += rows[i].tokens;
      if (random_.below(2) == 0)
        publish(live);
    }
  }

  void publish(Live &live) {
    std::vector<int64_t> tokens(static_cast<size_t>(live.length), live.id);
    check(quire_sequence_publish(pool_.get(), live.sequence, tokens.data(), live.length));
  }

  Random random_;
  ShapeModel model_;
  ShapePool pool_;
  serving::ExecutorPointer executor_;
  quire_tenant tenants_[tenants] = {};
  std::vector<Live> live_;
  int64_t now_ = 0, operations_ = 0, steps_ = 0, refused_ = 0, starved_ = 0, wrongBytes_ = 0;
};

} // namespace

Json soak(const Options &options) {
  double length = options.quick ? 1 : options.soakSeconds;
  constexpr int samples = 20, warm = 5;
  Soaking soaking(options.seed);
  std::vector<double> resident;
  double begun = seconds();
  for (int sample = 1; sample <= samples; ++sample) {
    while (seconds() - begun < length * sample / samples)
      for (int i = 0; i < 64; ++i)
        soaking.once();
    resident.push_back(static_cast<double>(bench::processMemory().resident));
  }
  double before = *std::max_element(resident.begin(), resident.begin() + warm),
         after = *std::max_element(resident.begin() + warm, resident.end());
  Json row = soaking.drain();
  row["seconds"] = length;
  row["resident_bytes"] = resident;
  row["growth_bytes"] = after - before;
  double left = row["left_sequences"].get<double>() + row["left_blocks"].get<double>();
  Json claims = {
      claim("growth of resident memory after the first quarter, as share", (after - before) / before, -1, 0.01),
      claim("sequences and blocks that are left at the end", left, 0, 0),
      claim("counters that add up at the end", row["exact"].get<bool>(), 1, 1),
      claim("bytes that a step read and that were not as they were written", row["wrong_bytes"], 0, 0)};
  return {
      {"workload", "random creation, steps, forks, truncation, release, prefixes and tenants that come and go, over a "
                   "fast tier of 96 blocks and a slow one of 256; every step compares every stored byte"},
      {"baseline", "resident memory after a quarter of the time"},
      {"formula", "growth = most resident memory after the first quarter - most in it"},
      {"parameters",
       {{"fast_blocks", fastBlocks}, {"slow_blocks", slowBlocks}, {"sequences", mostAlive}, {"seed", options.seed}}},
      {"rows", Json::array({row})},
      {"claims", claims}};
}

} // namespace quire::kvbench
