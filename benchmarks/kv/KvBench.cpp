// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Google Benchmark cases: what the runtime takes for blocks, pages, forks and tables, beside plain ways to do the same.
#include "CpuTime.h"
#include "ShapeModel.h"

#include "abi/Handles.h"
#include "exec/ThreadPool.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <numeric>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

using namespace quire;
using namespace quire::kvbench;

namespace {

constexpr int64_t forkTokens = 4096;
constexpr int64_t poolBlocks = 4096; // of the cases that need no content: more table than a core's nearest cache
constexpr Shape tableShape = {1, 1, 16, QUIRE_ELEMENT_F16, 16}; // few bytes, as only tables are timed

/// `ns` a unit of `count` in each iteration; with a bar, the two are compared by the page of results.
void reportEach(benchmark::State &state, int64_t count, double bar = 0) {
  using benchmark::Counter;
  auto flags = static_cast<Counter::Flags>(Counter::kIsIterationInvariantRate | Counter::kInvert);
  state.counters["value"] = Counter(static_cast<double>(count) * 1e-9, flags);
  if (bar > 0)
    state.counters["bar"] = bar;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

constexpr double blockBar = 100; // ns

std::vector<size_t> shuffled(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t(0));
  std::shuffle(order.begin(), order.end(), std::mt19937_64(1));
  return order;
}

/// `count` blocks one by one, given back in random order.
void allocateFree(benchmark::State &state, size_t count) {
  ShapeModel model(tableShape, Work::Nothing);
  ShapePool pool(model, {poolBlocks});
  std::vector<quire_block> blocks(count);
  std::vector<size_t> order = shuffled(count);
  for (auto _ : state) {
    for (quire_block &block : blocks)
      check(quire_pool_allocate(pool.get(), 1, &block));
    for (size_t i : order)
      check(quire_block_release(pool.get(), blocks[i]));
  }
  reportEach(state, static_cast<int64_t>(count), blockBar);
}

/// The same through a sequence: a block at its end comes and goes.
void growShrink(benchmark::State &state, int64_t blocks) {
  ShapeModel model(tableShape, Work::Nothing);
  ShapePool pool(model, {poolBlocks});
  quire_sequence sequence;
  check(quire_sequence_create(pool.get(), &sequence));
  for (auto _ : state) {
    for (int64_t i = 0; i < blocks; ++i)
      check(quire_sequence_reserve(pool.get(), sequence, (i + 1) * tableShape.blockTokens));
    check(quire_sequence_truncate(pool.get(), sequence, 0));
  }
  reportEach(state, blocks, blockBar);
}

void mallocFree(benchmark::State &state, size_t count, size_t bytes) {
  std::vector<void *> blocks(count);
  std::vector<size_t> order = shuffled(count);
  for (auto _ : state) {
    for (void *&block : blocks) {
      block = std::malloc(bytes);
      benchmark::DoNotOptimize(block);
    }
    for (size_t i : order)
      std::free(blocks[i]);
  }
  reportEach(state, static_cast<int64_t>(count));
}

/// A free list and nothing else: no counts, handles or checks.
void plainFreeList(benchmark::State &state, size_t count) {
  std::vector<int32_t> free(poolBlocks), blocks(count);
  std::iota(free.begin(), free.end(), 0);
  std::vector<size_t> order = shuffled(count);
  for (auto _ : state) {
    for (int32_t &block : blocks) {
      block = free.back();
      free.pop_back();
      benchmark::DoNotOptimize(block);
    }
    for (size_t i : order)
      free.push_back(blocks[i]);
  }
  reportEach(state, static_cast<int64_t>(count));
}

//===----------------------------------------------------------------------===//
// Acquire
//===----------------------------------------------------------------------===//

constexpr double acquireBar = 100; // ns a page

/// Sequences whose every page is in memory, over a slow tier that is not needed.
struct Resident {
  Resident(const Shape &shape, int64_t sequences, int64_t tokens)
      : model(shape, Work::Nothing), pool(model, {2 * sequences * blocksOf(shape, tokens + 1), "memory", 1}),
        executor(pool.executor(model, sequences * tokens, sequences)), handles(static_cast<size_t>(sequences)) {
    for (quire_sequence &sequence : handles)
      check(quire_sequence_create(pool.get(), &sequence));
    runStep(executor.get(), handles, tokens);
  }

  static int64_t blocksOf(const Shape &shape, int64_t tokens) {
    return (tokens + shape.blockTokens - 1) / shape.blockTokens;
  }

  ShapeModel model;
  ShapePool pool;
  serving::ExecutorPointer executor;
  std::vector<quire_sequence> handles;
};

/// Acquire and release of every layer by the pager: translation, pins and replacement order of each page.
void acquireHit(benchmark::State &state, Shape shape, int64_t sequences, int64_t tokens) {
  Resident resident(shape, sequences, tokens);
  runtime::Pool &pool = *resident.pool.get()->pool;
  int64_t blocks = Resident::blocksOf(shape, tokens);
  std::vector<int32_t> tables, slots(static_cast<size_t>(sequences * blocks));
  for (quire_sequence sequence : resident.handles) {
    const int32_t *row;
    int64_t count;
    check(quire_sequence_table(resident.pool.get(), sequence, &row, &count));
    tables.insert(tables.end(), row, row + blocks);
  }
  std::vector<int64_t> past(resident.handles.size(), tokens - 1), ones(resident.handles.size(), 1);
  runtime::Pager::Step step{sequences, tables.data(), blocks, past.data(), ones.data(), slots.data()};
  for (auto _ : state) {
    check(runtime::report(pool.pager()->beginStep(step)));
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      quire_kv_view view;
      bool acquired = pool.pager()->acquire(layer, view) && pool.pager()->release(layer);
      benchmark::DoNotOptimize(acquired);
    }
    check(runtime::report(pool.pager()->endStep()));
  }
  quire_paging_stats stats = resident.pool.pagingStats();
  if (stats.hits != stats.demands)
    state.SkipWithError("not all pages were resident");
  reportEach(state, shape.layers * sequences * blocks, acquireBar);
}

/// One page by hand, at random.
void pinHit(benchmark::State &state) {
  Resident resident(tableShape, 1, poolBlocks / 4 * tableShape.blockTokens);
  const int32_t *table;
  int64_t count;
  check(quire_sequence_table(resident.pool.get(), resident.handles[0], &table, &count));
  std::vector<size_t> order = shuffled(static_cast<size_t>(count));
  for (auto _ : state)
    for (size_t i : order) {
      void *address;
      check(quire_pool_pin(resident.pool.get(), 0, table[i], 0, &address));
      check(quire_pool_unpin(resident.pool.get(), 0, table[i]));
      benchmark::DoNotOptimize(address);
    }
  reportEach(state, count, acquireBar);
}

/// What a cache of pages is without pins, tiers and counters: a hash table and a list in order of use.
void plainLru(benchmark::State &state, int32_t pages) {
  std::list<int32_t> order;
  std::unordered_map<int32_t, std::list<int32_t>::iterator> places;
  for (int32_t page = 0; page < pages; ++page)
    places[page] = order.insert(order.end(), page);
  for (auto _ : state)
    for (int32_t page = 0; page < pages; ++page) {
      auto found = places.find(page);
      order.splice(order.end(), order, found->second);
      benchmark::DoNotOptimize(*found->second);
    }
  reportEach(state, pages);
}

//===----------------------------------------------------------------------===//
// Reloads
//===----------------------------------------------------------------------===//

constexpr int64_t reloadBlocks = 32;

/// All pages of a layer come in from host memory, in one acquire, while those of the other layer give way: CPU time of both threads for each page. With
/// addresses that stay also the system calls that gave memory back for it.
void reload(benchmark::State &state, Shape shape, bool stable) {
  ShapeModel model(shape, Work::Nothing);
  ShapePool::Options options{reloadBlocks / 2 + 1, "memory", 2 * reloadBlocks};
  options.stableVa = stable;
  ShapePool pool(model, options);
  runtime::Pool &inner = *pool.get()->pool;
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  check(quire_pool_get_tuning(pool.get(), &tuning));
  tuning.prefetch_strategy = QUIRE_PREFETCH_NONE;
  check(quire_pool_set_tuning(pool.get(), &tuning));
  serving::ExecutorPointer executor = pool.executor(model, reloadBlocks * shape.blockTokens, 1);
  std::vector<quire_sequence> handles(1);
  check(quire_sequence_create(pool.get(), handles.data()));
  int64_t tokens = reloadBlocks * shape.blockTokens - 1;
  runStep(executor.get(), handles, tokens);
  const int32_t *table;
  int64_t count, one = 1;
  check(quire_sequence_table(pool.get(), handles[0], &table, &count));
  std::vector<int32_t> slots(static_cast<size_t>(count));
  runtime::Pager::Step step{1, table, count, &tokens, &one, slots.data()};
  quire_paging_stats before = pool.pagingStats();
  for (auto _ : state) {
    check(runtime::report(inner.pager()->beginStep(step)));
    for (int64_t layer = 0; layer < shape.layers; ++layer) {
      quire_kv_view view;
      bool acquired = inner.pager()->acquire(layer, view) && inner.pager()->release(layer);
      benchmark::DoNotOptimize(acquired);
    }
    check(runtime::report(inner.pager()->endStep()));
  }
  quire_paging_stats after = pool.pagingStats();
  auto loads = static_cast<double>(after.bytes_in_demand - before.bytes_in_demand) / static_cast<double>(after.page_bytes);
  using benchmark::Counter;
  double loadsOfStep = loads / static_cast<double>(state.iterations());
  state.counters["ns_a_load"] = Counter(loadsOfStep * 1e-9, static_cast<Counter::Flags>(Counter::kIsIterationInvariantRate | Counter::kInvert));
  state.counters["returns_a_load"] = static_cast<double>(after.memory_returns - before.memory_returns) / loads;
}

//===----------------------------------------------------------------------===//
// Forks
//===----------------------------------------------------------------------===//

constexpr double forkBar = 5000; // ns, and the time of copying the table

/// Time of copying a block table into new memory, in ns.
double tableCopyNs(const int32_t *table, int64_t count) {
  constexpr int copies = 1000;
  double before = cpuSeconds();
  for (int i = 0; i < copies; ++i) {
    std::vector<int32_t> copy(table, table + count);
    benchmark::DoNotOptimize(copy.data());
  }
  return (cpuSeconds() - before) * 1e9 / copies;
}

/// Forks of a sequence of 4096 tokens; giving them back is not timed.
void fork(benchmark::State &state, bool shares) {
  constexpr int forks = 32;
  ShapeModel model(tableShape, Work::Nothing);
  ShapePool::Options options{poolBlocks};
  options.prefixCache = shares;
  ShapePool pool(model, options);
  quire_sequence sequence, copies[forks];
  check(quire_sequence_create(pool.get(), &sequence));
  check(quire_sequence_reserve(pool.get(), sequence, forkTokens));
  check(quire_sequence_commit(pool.get(), sequence, forkTokens));
  const int32_t *table;
  int64_t count;
  check(quire_sequence_table(pool.get(), sequence, &table, &count));
  double copyNs = tableCopyNs(table, count);
  for (auto _ : state) {
    double before = cpuSeconds();
    for (quire_sequence &copy : copies)
      check(quire_sequence_fork(pool.get(), sequence, forkTokens, &copy));
    state.SetIterationTime(cpuSeconds() - before);
    for (quire_sequence copy : copies)
      check(quire_sequence_release(pool.get(), copy));
  }
  if (pool.stats().copied_bytes != 0)
    state.SkipWithError("a fork copied stored bytes");
  reportEach(state, forks, forkBar + copyNs);
  state.counters["table_copy_ns"] = copyNs;
}

/// A contiguous cache has to copy what it holds.
void forkByCopy(benchmark::State &state) {
  size_t bytes = static_cast<size_t>(forkTokens * demoShape.tokenBytes());
  std::vector<char> from(bytes, 1), to(bytes, 2);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  reportEach(state, 1);
}

//===----------------------------------------------------------------------===//
// Tables in a decode step
//===----------------------------------------------------------------------===//

constexpr double tableBar = 0.05;

double median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A decode step that does nothing but ask for its pages, as share of one that also reads K and V once. Whole steps by
/// the runtime are counted as time of tables: checks, reservation, tables, acquire, prefetch, release, commit. One
/// thread does both, and the reading is taken to be as many times faster as there are cores, since tables are the
/// calling thread's. A real step takes longer, so its share is smaller.
void tableTime(benchmark::State &state, Shape shape, int64_t sequences, int64_t tokens, bool tiers) {
  ShapeModel nothing(shape, Work::Nothing), reading(shape, Work::Read);
  int64_t blocks = sequences * Resident::blocksOf(shape, tokens + 1);
  ShapePool pool(nothing, {blocks + blocks / 8 + 1, tiers ? "memory" : nullptr, 1});
  serving::ExecutorPointer empty = pool.executor(nothing, sequences * tokens, sequences, 1);
  serving::ExecutorPointer full = pool.executor(reading, sequences, sequences, 1);
  std::vector<quire_sequence> handles(static_cast<size_t>(sequences));
  for (quire_sequence &sequence : handles)
    check(quire_sequence_create(pool.get(), &sequence));
  runStep(empty.get(), handles, tokens);
  auto timed = [&](quire_executor *executor) {
    double before = cpuSeconds();
    runStep(executor, handles, 1);
    double spent = cpuSeconds() - before;
    for (quire_sequence sequence : handles)
      check(quire_sequence_truncate(pool.get(), sequence, tokens));
    return spent;
  };
  timed(empty.get());
  timed(full.get());
  std::vector<double> emptySteps, fullSteps;
  for (auto _ : state) {
    emptySteps.push_back(timed(empty.get()));
    fullSteps.push_back(timed(full.get()));
    state.SetIterationTime(fullSteps.back());
  }
  double cores = static_cast<double>(runtime::availableThreads()), emptyStep = median(emptySteps);
  state.counters["value"] = emptyStep / (emptyStep + (median(fullSteps) - emptyStep) / cores);
  state.counters["bar"] = tableBar;
  state.counters["empty_us"] = emptyStep * 1e6;
  state.counters["kv_bytes"] = static_cast<double>(sequences * tokens * shape.tokenBytes());
}

//===----------------------------------------------------------------------===//

void add(const std::string &name, const std::function<void(benchmark::State &)> &run) {
  benchmark::RegisterBenchmark(name.c_str(), run);
}

void addManual(const std::string &name, const std::function<void(benchmark::State &)> &run) {
  benchmark::RegisterBenchmark(name.c_str(), run)->UseManualTime();
}

void registerBlocks() {
  for (size_t count : {size_t(1), size_t(1024)}) {
    std::string end = "/blocks:" + std::to_string(count);
    size_t bytes = static_cast<size_t>(demoShape.blockTokens * demoShape.tokenBytes() / demoShape.layers);
    add("allocate_free" + end, [=](benchmark::State &state) { allocateFree(state, count); });
    add("allocate_free/sequence" + end,
        [=](benchmark::State &state) { growShrink(state, static_cast<int64_t>(count)); });
    add("allocate_free/plain/malloc" + end, [=](benchmark::State &state) { mallocFree(state, count, bytes); });
    add("allocate_free/plain/free_list" + end, [=](benchmark::State &state) { plainFreeList(state, count); });
  }
}

void registerPages() {
  for (auto [sequences, tokens] : {std::pair<int64_t, int64_t>(1, 1024), std::pair<int64_t, int64_t>(8, 1024)}) {
    Shape shape = {30, 1, 16, QUIRE_ELEMENT_F16, 16}; // the demo's pages, with fewer bytes in each
    std::string name = "acquire_hit/" + std::to_string(sequences) + "x" + std::to_string(tokens);
    add(name, [=, sequences = sequences, tokens = tokens](benchmark::State &state) {
      acquireHit(state, shape, sequences, tokens);
    });
  }
  add("acquire_hit/pin", pinHit);
  add("acquire_hit/plain/hash_and_list", [](benchmark::State &state) { plainLru(state, 30 * 64); });
  for (int64_t kib : {4, 16, 64, 256, 1024})
    for (bool stable : {false, true}) {
      Shape shape = {2, 1, 64, QUIRE_ELEMENT_F16, 4 * kib};
      benchmark::RegisterBenchmark(("reload/" + std::to_string(kib) + "KiB" + (stable ? "/stable_va" : "")).c_str(),
                                   [=](benchmark::State &state) { reload(state, shape, stable); })
          ->MeasureProcessCPUTime();
    }
  addManual("fork/4096", [](benchmark::State &state) { fork(state, false); });
  addManual("fork/4096/prefix_cache", [](benchmark::State &state) { fork(state, true); });
  add("fork/4096/plain/memcpy", forkByCopy);
}

void registerSteps() {
  struct Named {
    const char *name;
    Shape shape;
  };
  for (Named named : {Named{"demo", demoShape}, Named{"13B_layer", layer13B}})
    for (auto [sequences, tokens] : {std::pair<int64_t, int64_t>(1, 1024), std::pair<int64_t, int64_t>(8, 1024)})
      for (bool tiers : {false, true}) {
        std::string name = std::string("table_time/") + named.name + "/" + std::to_string(sequences) + "x" +
                           std::to_string(tokens) + (tiers ? "/tiers" : "");
        addManual(name, [=, sequences = sequences, tokens = tokens](benchmark::State &state) {
          tableTime(state, named.shape, sequences, tokens, tiers);
        });
      }
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  registerBlocks();
  registerPages();
  registerSteps();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
