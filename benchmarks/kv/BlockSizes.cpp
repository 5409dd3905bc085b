// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E6: blocks of 4 KiB to 4 MiB, blocks that grow, and chapters with paragraphs.
#include "CpuTime.h"
#include "Experiment.h"
#include "ShapeModel.h"
#include "Workloads.h"

#include "abi/Handles.h"
#include "pool/SizedPages.h"
#include "pool/TransferRates.h"
#include "tier/HostTier.h"
#include "tier/ThrottledTier.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace quire::kvbench {

using namespace quire::runtime;

namespace {

/// One layer of 8 KV heads of 128 in f16: 4,096 bytes a token, so that 4 KiB hold one and 4 MiB 1,024.
constexpr int64_t kvHeads = 8, headDim = 128;
constexpr uint64_t tokenBytes = 2 * kvHeads * headDim * 2;
constexpr int64_t most = 2048;

void need(const Status &status) {
  if (!status.ok())
    throw std::runtime_error(status.text());
}

struct Waste {
  double empty;  // bytes without a token / allocated bytes
  double tables; // bytes of tables / allocated bytes
};

/// Chat lengths in blocks of one size, in a real pool with thin blocks.
Waste fixedWaste(int64_t blockTokens, int64_t sequences, uint64_t seed) {
  ShapeModel model({1, 1, 1, QUIRE_ELEMENT_F16, blockTokens, most}, Work::Nothing);
  ShapePool pool(model, {sequences * ((most + blockTokens - 1) / blockTokens)});
  Random random(seed);
  double tokens = 0;
  for (int64_t i = 0; i < sequences; ++i) {
    int64_t length = drawLength(Lengths::Chat, most, random);
    quire_sequence handle;
    check(quire_sequence_create(pool.get(), &handle));
    check(quire_sequence_reserve(pool.get(), handle, length));
    check(quire_sequence_commit(pool.get(), handle, length));
    tokens += static_cast<double>(length);
  }
  quire_pool_stats stats = pool.stats();
  int64_t used = stats.blocks_total - stats.blocks_free;
  double slots = static_cast<double>(used * blockTokens);
  double tables = static_cast<double>(pool.get()->pool->tableBytes()) * static_cast<double>(used) /
                  static_cast<double>(stats.blocks_total);
  return {1 - tokens / slots, tables / (slots * static_cast<double>(tokenBytes))};
}

/// Time that the runtime takes for a page that is there, in ns: of a step with one layer that asks for `pages` pages
/// and does nothing with them.
double pageNs(int64_t pages) {
  ShapeModel model({1, 1, 1, QUIRE_ELEMENT_F16, 1, -1}, Work::Nothing);
  ShapePool pool(model, {2 * pages, "memory", 1});
  serving::ExecutorPointer executor = pool.executor(model, pages, 1, 1);
  std::vector<quire_sequence> handles(1);
  check(quire_sequence_create(pool.get(), &handles[0]));
  runStep(executor.get(), handles, pages);
  constexpr int64_t steps = 20;
  double before = cpuSeconds();
  for (int64_t i = 0; i < steps; ++i)
    runStep(executor.get(), handles, 1);
  return (cpuSeconds() - before) * 1e9 / static_cast<double>(steps * pages);
}

std::vector<SizeRate> copyRates(const std::vector<uint64_t> &sizes, bool quick) {
  RateOptions options;
  if (quick)
    options.bytes = options.sourceBytes = uint64_t(8) << 20;
  std::vector<SizeRate> rates;
  need(measureCopy(sizes, options, rates));
  return rates;
}

/// Single loads from a tier of 100 us and 2 GB/s, on a virtual clock.
double loadRate(uint64_t bytes) {
  VirtualClock clock;
  Status status;
  std::unique_ptr<Tier> inner = HostTier::create({2, bytes}, status);
  need(status);
  ThrottledTier tier(std::move(inner), {}, clock);
  std::vector<char> page(bytes);
  Transfer transfer;
  transfer.page = page.data();
  Transfer *list[] = {&transfer};
  transfer.kind = Transfer::Kind::Store;
  tier.run(list, 1);
  need(transfer.status);
  transfer.kind = Transfer::Kind::Load;
  int64_t before = clock.now();
  tier.run(list, 1);
  need(transfer.status);
  return static_cast<double>(bytes) / static_cast<double>(clock.now() - before) * 1e9;
}

struct Sized {
  double empty, pages, external;
  bool failed;
};

/// Sequences of chat lengths in pages of several sizes, 64 tokens at a time by turns; then every other one ends.
template <typename Rule>
Sized sizedWaste(const Rule &rule, int64_t sequences, uint64_t seed) {
  Buddy buddy(static_cast<uint64_t>(sequences) * most * tokenBytes * 2, leastBlockBytes);
  Random random(seed);
  std::vector<std::unique_ptr<SizedPages>> all;
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < sequences; ++i) {
    all.push_back(std::make_unique<SizedPages>(buddy, tokenBytes, size_t(2 * most)));
    lengths.push_back(drawLength(Lengths::Chat, most, random));
  }
  Sized out = {};
  for (int64_t begin = 0; begin < most; begin += 64)
    for (size_t i = 0; i < all.size(); ++i)
      if (int64_t tokens = std::min<int64_t>(64, lengths[i] - all[i]->length()); tokens > 0)
        out.failed |= !all[i]->append(tokens, rule).ok();
  double bytes = 0, tokens = 0;
  for (const auto &pages : all) {
    bytes += static_cast<double>(pages->bytes());
    tokens += static_cast<double>(pages->length());
    out.pages += static_cast<double>(pages->pages().size()) / static_cast<double>(sequences);
  }
  out.empty = 1 - tokens * static_cast<double>(tokenBytes) / bytes;
  for (size_t i = 0; i < all.size(); i += 2)
    all[i].reset();
  out.external = buddy.externalFragmentation();
  return out;
}

template <typename Rule>
Json sizedRow(const char *name, const Rule &rule, int64_t sequences, const Options &options) {
  std::vector<double> empty, pages, external;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    Sized sized = sizedWaste(rule, sequences, options.seed + static_cast<uint64_t>(repeat));
    if (sized.failed)
      throw std::runtime_error("no room for pages of several sizes");
    empty.push_back(sized.empty);
    pages.push_back(sized.pages);
    external.push_back(sized.external);
  }
  return {{"pages", name},
          {"empty_share", spread(empty)},
          {"pages_of_sequence", spread(pages)},
          {"external_fragmentation", spread(external)}};
}

Json fixedRow(const SizeRate &copy, double bestCopy, double onePageNs, int64_t sequences, const Options &options) {
  int64_t blockTokens = static_cast<int64_t>(copy.bytes / tokenBytes);
  std::vector<double> empty, tables;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    Waste waste = fixedWaste(blockTokens, sequences, options.seed + static_cast<uint64_t>(repeat));
    empty.push_back(waste.empty);
    tables.push_back(waste.tables);
  }
  double loads = loadRate(copy.bytes), readNs = static_cast<double>(copy.bytes) / bestCopy * 1e9;
  return {{"block_bytes", copy.bytes},
          {"block_tokens", blockTokens},
          {"empty_share", spread(empty)},
          {"table_share", spread(tables)},
          {"copy_share", copy.bytesPerSecond / bestCopy},
          {"load_share", loads / static_cast<double>(Throttle().bandwidth)},
          {"table_time_share", onePageNs / (onePageNs + readNs)}};
}

Json choiceRow(const char *name, const GeometryRequest &request) {
  GeometryChoice choice = chooseGeometry(request);
  return {{"rules", name},
          {"block_tokens", choice.blockTokens},
          {"block_bytes", choice.blockBytes},
          {"decided", geometryRuleName(choice.decided)},
          {"by_cache", choice.byCache},
          {"by_transfer", choice.byTransfer},
          {"by_waste", choice.byWaste},
          {"by_metadata", choice.byMetadata}};
}

} // namespace

Json blockSizes(const Options &options) {
  int64_t sequences = options.quick ? 64 : 512;
  std::vector<SizeRate> rates = copyRates(runtime::blockSizes(), options.quick);
  double best = 0;
  for (const SizeRate &rate : rates)
    best = std::max(best, rate.bytesPerSecond);
  std::vector<double> times;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat)
    times.push_back(pageNs(options.quick ? 256 : 4096));
  double onePageNs = medianOf(times);
  Json rows = Json::array(), choices = Json::array();
  for (const SizeRate &rate : rates)
    rows.push_back(fixedRow(rate, best, onePageNs, sequences, options));
  Json sized = {sizedRow("growing from 4 KiB to 4 MiB, doubling each 1,024 tokens", GrowthRule{}, sequences, options),
                sizedRow("growing from 64 KiB to 1 MiB, doubling each 256 tokens",
                         GrowthRule{uint64_t(64) << 10, uint64_t(1) << 20, 256}, sequences, options),
                sizedRow("chapters of 1 MiB, paragraphs of 64 KiB", PageClasses{}, sequences, options)};
  GeometryRequest request;
  request.tokenBytes = tokenBytes;
  request.concurrency = 4;
  request.l2Bytes = level2CacheBytes();
  choices.push_back(choiceRow("cache of this machine, 4 sequences", request));
  request.l2Bytes = uint64_t(32) << 20;
  choices.push_back(choiceRow("cache of 32 MiB, 4 sequences", request));
  request.rates = rates.data();
  request.rateCount = rates.size();
  choices.push_back(choiceRow("cache and measured copies", request));
  request.meanTokens = meanLength(Lengths::Chat, most);
  choices.push_back(choiceRow("cache, measured copies, and at most 10 % of waste", request));
  double cacheRule = static_cast<double>(blockBytesByCache(uint64_t(32) << 20, 4));
  Json claims = {
      claim("L2 / (2 * sequences): 32 MiB and 4 give 4 MiB", cacheRule, 4 << 20, 4 << 20),
      claim("tables take less than 5 % of the bytes in blocks of 4 KiB", rows[0]["table_share"]["median"], 0, 0.05),
      claim("tables take less than 5 % of the time of reading a block of 64 KiB", rows[4]["table_time_share"], 0,
            0.05)};
  return {{"workload", "sequences of chat lengths (log-normal, mean 500, at most 2,048 tokens) in pages of one layer "
                       "with 4,096 bytes a token"},
          {"baseline", "no waste, the fastest copy of this run, and the bandwidth of the slow tier (100 us, 2 GB/s)"},
          {"formula", "empty share = slots without a token / slots; table time share = t / (t + block bytes / fastest "
                      "copy), where t is what the runtime takes for a page that is there"},
          {"parameters",
           {{"sequences", sequences},
            {"longest", most},
            {"token_bytes", tokenBytes},
            {"page_ns", spread(times)},
            {"copy_bytes_per_second", best},
            {"l2_bytes", level2CacheBytes()},
            {"repeats", options.repeats},
            {"seed", options.seed}}},
          {"rows", rows},
          {"sized", sized},
          {"choices", choices},
          {"claims", claims}};
}

} // namespace quire::kvbench
