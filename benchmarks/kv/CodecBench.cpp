// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Google Benchmark cases: codecs of pages against memcpy of the same pages in the same run, with their bytes and
// errors.
#include "compress/AttentionError.h"
#include "compress/KvBytes.h"
#include "compress/SmallFloat.h"
#include "model/ModelInfo.h"
#include "pool/Geometry.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <time.h>

using namespace quire::runtime;

namespace {

constexpr int64_t blockTokens = 16, kvHeads = 8, headDim = 128, lanes = 16;
constexpr int64_t pageCount = 256; // 16 MiB in f16: more than the caches of a core
constexpr int64_t errorTokens = 512;

/// Pages of one layer, normal with one channel of 32 eightfold, as keys have them.
struct Pages {
  explicit Pages(int64_t element) {
    int64_t bytes = storedBytes(element, 1);
    layer.kv_heads = kvHeads;
    layer.key_dim = layer.value_dim = headDim;
    layer.element = element;
    layer.lanes = lanes;
    layer.value_offset = kvHeads * blockTokens * headDim * bytes;
    layer.block_bytes = 2 * layer.value_offset;
    memory.resize(static_cast<size_t>(pageCount * layer.block_bytes));
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    int64_t values = static_cast<int64_t>(memory.size()) / bytes;
    for (int64_t i = 0; i < values; ++i) {
      bool key = i * bytes % layer.block_bytes < layer.value_offset;
      store(i, element, normal(random) * (key && i / lanes % headDim % 32 == 5 ? 8.0f : 1.0f));
    }
  }

  void store(int64_t index, int64_t element, float value) {
    uint16_t half = element == QUIRE_ELEMENT_F16 ? F16::narrow(value) : BF16::narrow(value);
    if (element == QUIRE_ELEMENT_F32)
      std::memcpy(memory.data() + index * 4, &value, 4);
    else
      std::memcpy(memory.data() + index * 2, &half, 2);
  }

  char *page(int64_t index) { return memory.data() + index % pageCount * layer.block_bytes; }
  PageLayers layers() const { return {&layer, &start, 1, blockTokens}; }

  quire_model_layer layer{};
  uint64_t start = 0;
  std::vector<char> memory;
};

Pages &pagesOf(int64_t element) {
  static Pages all[] = {Pages(QUIRE_ELEMENT_F32), Pages(QUIRE_ELEMENT_F16), Pages(QUIRE_ELEMENT_BF16)};
  return all[element];
}

/// CPU time of this thread, in seconds, as the cases are timed in: other programs on the
/// machine take none of it.
double cpuSeconds() {
  timespec time;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Bytes of pages a second by memcpy: the best of a few passes, taken beside each case,
/// so that what slows the machine slows both.
double copyRate(Pages &pages) {
  std::vector<char> to(static_cast<size_t>(pages.layer.block_bytes));
  double best = 0;
  for (int pass = 0; pass < 5; ++pass) {
    double before = cpuSeconds();
    for (int64_t i = 0; i < pageCount; ++i) {
      std::memcpy(to.data(), pages.page(i), to.size());
      benchmark::DoNotOptimize(to.data());
      benchmark::ClobberMemory();
    }
    best = std::max(best, static_cast<double>(pages.memory.size()) / (cpuSeconds() - before));
  }
  return best;
}

void report(benchmark::State &state, Codec codec, Pages &pages, double copy) {
  using benchmark::Counter;
  double bytes = static_cast<double>(pages.layer.block_bytes);
  state.counters["GB/s"] = Counter(bytes * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["share_of_memcpy"] = Counter(bytes / copy, Counter::kIsIterationInvariantRate);
  state.counters["memcpy_GB/s"] = copy * 1e-9;
  state.counters["bytes_of_page"] = static_cast<double>(encodedBytes(codec, pages.layer, blockTokens)) / bytes;
}

void reportError(benchmark::State &state, Codec codec, Pages &pages) {
  std::vector<const char *> addresses;
  for (int64_t i = 0; i < errorTokens / blockTokens; ++i)
    addresses.push_back(pages.page(i));
  for (double peak : {0.0, 8.0}) {
    AttentionErrorOptions options;
    options.queries = 4;
    options.peak = peak;
    AttentionError error;
    EncodeResult result = measureCodecError(codec, pages.layers(), {addresses.data(), errorTokens}, options, error);
    if (result != EncodeResult::Encoded)
      return state.SkipWithError(encodeResultName(result));
    std::string kind = peak == 0 ? "spread_" : "peaked_";
    state.counters[kind + "cosine"] = error.cosineMean;
    state.counters[kind + "relative_l2"] = error.relativeL2;
    state.counters[kind + "maximum"] = error.maximum;
  }
}

void encodePages(benchmark::State &state, Codec codec, int64_t element, bool wide) {
  Pages &pages = pagesOf(element);
  double copy = copyRate(pages);
  std::vector<char> out(static_cast<size_t>(encodedBytes(codec, pages.layer, blockTokens)));
  int64_t page = 0;
  for (auto _ : state) {
    EncodeResult result =
        codecLoops(wide).encode(codec, pages.layer, blockTokens, pages.page(page++), blockTokens, out.data());
    benchmark::DoNotOptimize(result);
    benchmark::ClobberMemory();
  }
  report(state, codec, pages, copy);
  if (wide)
    reportError(state, codec, pages);
}

void decodePages(benchmark::State &state, Codec codec, int64_t element, bool wide) {
  Pages &pages = pagesOf(element);
  double copy = copyRate(pages);
  size_t bytes = static_cast<size_t>(encodedBytes(codec, pages.layer, blockTokens));
  std::vector<char> encodedPages(bytes * pageCount), out(static_cast<size_t>(pages.layer.block_bytes));
  for (int64_t i = 0; i < pageCount; ++i)
    encode(codec, pages.layer, blockTokens, pages.page(i), blockTokens,
           encodedPages.data() + static_cast<size_t>(i) * bytes);
  size_t page = 0;
  for (auto _ : state) {
    codecLoops(wide).decode(codec, pages.layer, blockTokens, encodedPages.data() + page++ % pageCount * bytes,
                            out.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  report(state, codec, pages, copy);
}

void registerCases() {
  for (int64_t element : {QUIRE_ELEMENT_F16, QUIRE_ELEMENT_BF16, QUIRE_ELEMENT_F32})
    for (int i = 0; i < codecCount; ++i)
      for (bool wide : {true, false}) {
        Codec codec = static_cast<Codec>(i);
        if (!wide && (codec == Codec::None || &codecLoops(true) == &codecLoops(false)))
          continue;
        std::string name = std::string("/") + elementName(element) + "/" + codecName(codec) + (wide ? "" : "/plain");
        benchmark::RegisterBenchmark(("encode" + name).c_str(), encodePages, codec, element, wide);
        benchmark::RegisterBenchmark(("decode" + name).c_str(), decodePages, codec, element, wide);
      }
}

} // namespace

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  benchmark::AddCustomContext("page_tokens", std::to_string(blockTokens));
  benchmark::AddCustomContext("kv_heads", std::to_string(kvHeads));
  benchmark::AddCustomContext("head_dim", std::to_string(headDim));
  benchmark::AddCustomContext("l2_bytes", std::to_string(level2CacheBytes()));
  registerCases();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
