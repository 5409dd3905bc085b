// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E7: what churn leaves of free memory: with blocks of one size, with extents of several, and in segments that a system
// could take back.
#include "Experiment.h"
#include "ShapeModel.h"
#include "Workloads.h"

#include "pool/BlockAllocator.h"
#include "pool/SizedPages.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace quire::kvbench {

using namespace quire::runtime;

namespace {

constexpr uint64_t tokenBytes = 4096;
constexpr int64_t most = 2048, blockTokens = 16, segmentBlocks = 32; // 2 MiB

/// Segments with at least one block in use, for each that the blocks would fill.
double segmentWaste(const std::vector<int32_t> &used) {
  std::vector<int32_t> segments;
  for (int32_t block : used)
    segments.push_back(block / static_cast<int32_t>(segmentBlocks));
  std::sort(segments.begin(), segments.end());
  double held = static_cast<double>(std::unique(segments.begin(), segments.end()) - segments.begin());
  return held * static_cast<double>(segmentBlocks) / static_cast<double>(used.size());
}

/// Every `stride`-th block stays.
Json strideRow(uint32_t stride) {
  constexpr uint32_t kept = 1024;
  BlockAllocator allocator(kept * stride, {});
  std::vector<int32_t> blocks, left;
  allocator.allocate(kept * stride, blocks);
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % stride == 0)
      left.push_back(blocks[i]);
    else
      allocator.release(static_cast<uint32_t>(blocks[i]));
  std::vector<int32_t> again;
  bool served = allocator.allocate(allocator.freeCount(), again);
  return {{"stride", stride}, {"segment_waste", segmentWaste(left)}, {"all_free_blocks_served", served}};
}

/// Sequences of random lengths come and go for a while; they end in another order than they came.
class Turnover {
public:
  Turnover(int64_t alive, uint64_t seed) : alive_(alive), random_(seed) {}

  /// `begin` gives a sequence of this length, `end` takes one back by its place.
  template <typename Begin, typename End>
  void run(int64_t rounds, Begin begin, End end) {
    int64_t count = 0;
    for (int64_t round = 0; round < rounds; ++round) {
      if (count == alive_)
        end(random_.below(static_cast<uint64_t>(count--)));
      begin(drawLength(Lengths::Chat, most, random_));
      ++count;
    }
  }

private:
  int64_t alive_;
  Random random_;
};

struct Fixed {
  double segmentWaste;
  double refused; // allocations that failed while as much was free
};

Fixed fixedChurn(int64_t alive, int64_t rounds, uint64_t seed) {
  ShapeModel model({1, 1, 1, QUIRE_ELEMENT_F16, blockTokens, most}, Work::Nothing);
  ShapePool pool(model, {alive * most / blockTokens});
  std::vector<quire_sequence> live;
  Turnover(alive, seed)
      .run(
          rounds,
          [&](int64_t tokens) {
            quire_sequence handle;
            check(quire_sequence_create(pool.get(), &handle));
            check(quire_sequence_reserve(pool.get(), handle, tokens));
            check(quire_sequence_commit(pool.get(), handle, tokens));
            live.push_back(handle);
          },
          [&](uint64_t index) {
            check(quire_sequence_release(pool.get(), live[index]));
            live[index] = live.back();
            live.pop_back();
          });
  std::vector<int32_t> used;
  for (quire_sequence handle : live) {
    const int32_t *table;
    int64_t count;
    check(quire_sequence_table(pool.get(), handle, &table, &count));
    used.insert(used.end(), table, table + count);
  }
  Fixed out{segmentWaste(used), 0};
  std::vector<quire_block> rest(static_cast<size_t>(pool.stats().blocks_free));
  out.refused = quire_pool_allocate(pool.get(), static_cast<int64_t>(rest.size()), rest.data()) != QUIRE_OK;
  return out;
}

struct Sized {
  double external, refused, empty;
};

/// The same in extents of a buddy allocator, in a range that is a half larger than what is alive on average.
template <typename Rule>
Sized sizedChurn(const Rule &rule, int64_t alive, int64_t rounds, uint64_t seed) {
  double mean = meanLength(Lengths::Chat, most);
  Buddy buddy(static_cast<uint64_t>(1.5 * static_cast<double>(alive) * mean) * tokenBytes, leastBlockBytes);
  std::vector<std::unique_ptr<SizedPages>> live;
  double asked = 0, external = 0, tokens = 0, bytes = 0;
  Turnover(alive, seed)
      .run(
          rounds,
          [&](int64_t length) {
            live.push_back(std::make_unique<SizedPages>(buddy, tokenBytes, size_t(2 * most)));
            for (int64_t left = length; left > 0; left -= 64)
              if (!live.back()->append(std::min<int64_t>(64, left), rule).ok())
                break;
            asked += 1;
            external += buddy.externalFragmentation();
          },
          [&](uint64_t index) {
            live[index] = std::move(live.back());
            live.pop_back();
          });
  for (const auto &pages : live) {
    tokens += static_cast<double>(pages->length());
    bytes += static_cast<double>(pages->bytes());
  }
  return {external / asked, static_cast<double>(buddy.failuresWithRoom()) / asked,
          1 - tokens * static_cast<double>(tokenBytes) / bytes};
}

template <typename Rule>
Json sizedRow(const char *name, const Rule &rule, int64_t alive, int64_t rounds, const Options &options) {
  std::vector<double> external, refused, empty;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    Sized sized = sizedChurn(rule, alive, rounds, options.seed + static_cast<uint64_t>(repeat));
    external.push_back(sized.external);
    refused.push_back(sized.refused);
    empty.push_back(sized.empty);
  }
  return {{"pages", name},
          {"external_fragmentation", spread(external)},
          {"refused_with_room", spread(refused)},
          {"empty_share", spread(empty)}};
}

} // namespace

Json fragmentation(const Options &options) {
  int64_t alive = options.quick ? 16 : 64, rounds = options.quick ? 200 : 4000;
  Json strides = Json::array();
  for (uint32_t stride : {1, 2, 4, 8, 16})
    strides.push_back(strideRow(stride));
  std::vector<double> waste, refused;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    Fixed fixed = fixedChurn(alive, rounds, options.seed + static_cast<uint64_t>(repeat));
    waste.push_back(fixed.segmentWaste);
    refused.push_back(fixed.refused);
  }
  Json rows = {
      {{"pages", "blocks of 64 KiB"}, {"refused_with_room", spread(refused)}, {"segment_waste", spread(waste)}},
      sizedRow("growing from 4 KiB to 4 MiB, doubling each 1,024 tokens", GrowthRule{}, alive, rounds, options),
      sizedRow("growing from 64 KiB to 1 MiB, doubling each 256 tokens",
               GrowthRule{uint64_t(64) << 10, uint64_t(1) << 20, 256}, alive, rounds, options),
      sizedRow("chapters of 1 MiB, paragraphs of 64 KiB", PageClasses{}, alive, rounds, options)};
  Json claims = {
      claim("blocks of one size: allocations that fail while as much is free", rows[0]["refused_with_room"]["median"],
            0, 0),
      claim("every 16th block stays: segments held for each that is needed", strides[4]["segment_waste"], 16, 16)};
  return {{"workload", "sequences of chat lengths that come and go in another order, 64 alive at a time; and blocks of "
                       "which every n-th stays"},
          {"baseline", "blocks of one size, where any free block serves"},
          {"formula", "external fragmentation = 1 - largest free extent / free bytes, mean over the run; segment waste "
                      "= segments of 2 MiB with a block in use * their blocks / blocks in use"},
          {"parameters",
           {{"alive", alive},
            {"rounds", rounds},
            {"token_bytes", tokenBytes},
            {"segment_blocks", segmentBlocks},
            {"repeats", options.repeats},
            {"seed", options.seed}}},
          {"rows", rows},
          {"strides", strides},
          {"claims", claims}};
}

} // namespace quire::kvbench
