// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Google Benchmark cases: products at several numbers of rows, and attention at several lengths, as shares of the machine's limits.
#include "benchmarks/kernels/KernelModel.h"
#include "benchmarks/kernels/Limits.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <vector>

#include <time.h>

using namespace quire::bench;

namespace {

int64_t threads = 0; // all that the process may use
Limits limits;

/// The model that is in use; cases of one model follow each other.
std::unique_ptr<KernelModel> current;
std::string currentName;

KernelModel &modelOf(const std::string &name, llvm::function_ref<std::unique_ptr<KernelModel>()> make) {
  if (name != currentName) {
    current.reset();
    current = make();
    currentName = name;
  }
  return *current;
}

void report(benchmark::State &state, double bytes, double flops) {
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(bytes * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] = Counter(flops * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["share_of_bandwidth"] = Counter(bytes / limits.bytesPerSecond, Counter::kIsIterationInvariantRate);
  state.counters["share_of_peak"] = Counter(flops / limits.flopsPerSecond, Counter::kIsIterationInvariantRate);
}

constexpr int64_t maxRows = 512;

void product(benchmark::State &state, ProductShape shape, int64_t rows) {
  std::string name = "product/" + shape.element + "/" + std::to_string(shape.k) + "x" + std::to_string(shape.n);
  KernelModel &model = modelOf(name, [&] { return std::make_unique<KernelModel>(productModule(shape, maxRows), maxRows, 1, 0, threads); });
  model.fill(1, 0);
  model.step(rows);
  for (auto _ : state)
    model.step(rows);
  double bytes = static_cast<double>(shape.weightBytes() * shape.count);
  report(state, bytes, 2.0 * static_cast<double>(rows * shape.k * shape.n * shape.count));
}

void attend(benchmark::State &state, AttendShape shape, int64_t sequences, int64_t length, int64_t rows) {
  std::string name = "attend/" + shape.element + "/" + std::to_string(shape.heads) + "x" + std::to_string(shape.kvHeads) + "x" + std::to_string(shape.features);
  KernelModel &model = modelOf(name, [&] { return std::make_unique<KernelModel>(attendModule(shape, maxRows), maxRows, 8, 8 * 1024, threads); });
  model.fill(sequences, length);
  model.step(rows);
  for (auto _ : state)
    model.step(rows);
  double keys = static_cast<double>(sequences) * (static_cast<double>(length) + 0.5 * static_cast<double>(rows + 1)); // that a row sees on average
  report(state, static_cast<double>(sequences * (length + rows) * shape.tokenBytes()), 4.0 * static_cast<double>(rows * shape.layers * shape.heads * shape.features) * keys);
}

/// Of one thread the time that it computes, of which other programs on the machine take none; of several the time that passes, as a thread
/// without work waits for it actively.
double seconds(bool isOneThread) {
  timespec time;
  ::clock_gettime(isOneThread ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// A decode step of attention over blocks in random places, against the faster one of two contiguous forms in the same run: the same
/// blocks one after the other, and one block as long as the sequence. Times that follow each other, so that what slows the machine slows all.
void attendPaged(benchmark::State &state, AttendShape shape, int64_t sequences, int64_t length, int64_t stepThreads) {
  constexpr double bar = 1.05;
  current.reset(); // its memory is wanted
  currentName.clear();
  AttendShape whole = shape;
  whole.blockTokens = length;
  auto make = [&](const AttendShape &form, bool shuffle) {
    auto model = std::make_unique<KernelModel>(attendModule(form, sequences), sequences, sequences, sequences * length, stepThreads, shuffle);
    model->fill(sequences, length - 1);
    model->step(1);
    return model;
  };
  std::unique_ptr<KernelModel> models[] = {make(shape, true), make(shape, false), make(whole, false)};
  std::vector<double> times[3];
  for (auto _ : state) {
    double spent[3];
    for (size_t i = 0; i < 3; ++i) {
      double before = seconds(stepThreads == 1);
      models[i]->step(1);
      spent[i] = seconds(stepThreads == 1) - before;
      times[i].push_back(spent[i] * 1e3);
    }
    state.SetIterationTime(spent[0]);
  }
  auto median = [](std::vector<double> &values) {
    std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
  };
  double paged = median(times[0]), inOrder = median(times[1]), oneBlock = median(times[2]);
  state.counters["paged_ms"] = paged;
  state.counters["in_order_ms"] = inOrder;
  state.counters["one_block_ms"] = oneBlock;
  state.counters["value"] = paged / std::min(inOrder, oneBlock);
  state.counters["bar"] = bar;
}

void registerProducts() {
  constexpr int64_t allBytes = int64_t(256) << 20;
  for (const char *element : {"f32", "f16", "bf16"})
    for (auto [k, n] : {std::pair<int64_t, int64_t>(960, 2560), std::pair<int64_t, int64_t>(2560, 960)}) {
      ProductShape shape{element, k, n, 1, panelColumnsHere()};
      shape.count = allBytes / shape.weightBytes();
      for (int64_t rows : {1, 2, 4, 8, 16, 64, 512}) {
        std::string name = std::string("product/") + element + "/" + std::to_string(k) + "x" + std::to_string(n) + "/rows:" + std::to_string(rows);
        benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State &state) { product(state, shape, rows); })->UseRealTime()->Unit(benchmark::kMillisecond);
      }
    }
}

void registerAttention() {
  struct Heads {
    int64_t query, kv, features, layers;
  };
  for (const char *element : {"f32", "f16", "bf16", "i8", "i4", "f8E4M3FN", "f8E5M2"})
    for (Heads heads : {Heads{15, 5, 64, 24}, Heads{16, 16, 128, 4}}) {
      AttendShape shape{element, heads.query, heads.kv, heads.features, 16, std::min<int64_t>(16, lanesHere()), heads.layers};
      std::string base = std::string("attend/") + element + "/" + std::to_string(heads.query) + "x" + std::to_string(heads.kv) + "x" + std::to_string(heads.features);
      for (auto [sequences, length] : {std::pair<int64_t, int64_t>(1, 1024), std::pair<int64_t, int64_t>(1, 4096), std::pair<int64_t, int64_t>(8, 1024)})
        benchmark::RegisterBenchmark((base + "/decode:" + std::to_string(sequences) + "x" + std::to_string(length)).c_str(),
                                     [=, sequences = sequences, length = length](benchmark::State &state) { attend(state, shape, sequences, length - 1, 1); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      benchmark::RegisterBenchmark((base + "/prefill:512").c_str(), [=](benchmark::State &state) { attend(state, shape, 1, 0, 512); })->UseRealTime()->Unit(benchmark::kMillisecond);
    }
}

/// The demo's heads and those of a model of 13 billion parameters.
void registerPaged() {
  struct Heads {
    const char *name;
    int64_t query, kv, features, layers;
    const char *element;
  };
  auto add = [](const Heads &heads, int64_t blockTokens, int64_t sequences, int64_t length) {
    AttendShape shape{heads.element, heads.query, heads.kv, heads.features, blockTokens, std::min<int64_t>(16, lanesHere()), heads.layers};
    std::string base = std::string("attend_paged/") + heads.name + "/" + std::to_string(sequences) + "x" + std::to_string(length) + "/block:" + std::to_string(blockTokens);
    for (int64_t stepThreads : {int64_t(1), threads}) {
      std::string name = base + (stepThreads == 1 ? "/one_thread" : "/all_threads");
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State &state) { attendPaged(state, shape, sequences, length, stepThreads); })->UseManualTime()->Unit(benchmark::kMillisecond);
      if (threads == 1)
        break;
    }
  };
  for (Heads heads : {Heads{"demo", 9, 3, 64, 8, "f32"}, Heads{"13B_layer", 40, 40, 128, 1, "f16"}})
    for (int64_t blockTokens : {16, 64}) {
      add(heads, blockTokens, 1, 4096);
      add(heads, blockTokens, 8, 1024);
    }
}

bool takeThreads(int &argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef text(argv[i]);
    if (!text.consume_front("--threads="))
      continue;
    if (text.getAsInteger(10, threads) || threads < 1)
      return false;
    std::copy(argv + i + 1, argv + argc, argv + i);
    --argc;
    --i;
  }
  return true;
}

} // namespace

int main(int argc, char **argv) {
  if (!takeThreads(argc, argv)) {
    llvm::errs() << "quire-kernel-bench: error: expected --threads=N with a number from 1\n";
    return 1;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  {
    KernelModel any(productModule({"f32", 64, 64, 1, panelColumnsHere()}, 1), 1, 1, 0, threads);
    limits = measureLimits(any.executor());
  }
  benchmark::AddCustomContext("bandwidth_gb_per_s", std::to_string(limits.bytesPerSecond * 1e-9));
  benchmark::AddCustomContext("peak_gflop_per_s", std::to_string(limits.flopsPerSecond * 1e-9));
  registerProducts();
  registerAttention();
  registerPaged();
  benchmark::RunSpecifiedBenchmarks();
  current.reset();
  return 0;
}
