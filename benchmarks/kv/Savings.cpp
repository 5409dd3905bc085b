// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E1: what a pool filled with sequences takes, against one region of the greatest length for each.
#include "Experiment.h"
#include "ShapeModel.h"
#include "Workloads.h"

#include "abi/Handles.h"
#include "compress/KvBytes.h"

namespace quire::kvbench {

using runtime::Codec;

namespace {

/// 40 layers of 40 heads of 128 in f16: 819,200 bytes a token. The pool of the experiment has the same blocks and
/// tables with few bytes in each.
constexpr Shape publishedShape = {40, 40, 128, QUIRE_ELEMENT_F16, 16};
constexpr Shape thinShape = {1, 1, 1, QUIRE_ELEMENT_F16, 16};

struct Filled {
  double saved;        // of the contiguous bytes, tables counted
  double tableShare;   // bytes of tables / bytes of blocks
  double emptyShare;   // slots without a token / slots
  double doubling;     // saved by a contiguous cache that doubles
  double copiedTokens; // by that, for each stored one
};

class Filler {
public:
  Filler(int64_t blockTokens, int64_t most, int64_t sequences)
      : most_(most), sequences_(sequences), blockTokens_(blockTokens), model_(shape(thinShape), Work::Nothing),
        published_(shape(publishedShape), Work::Nothing),
        pool_(model_, {sequences * ((most + blockTokens - 1) / blockTokens)}) {}

  Filled fill(Lengths lengths, uint64_t seed) {
    Random random(seed);
    double tokens = 0, doubling = 0, copied = 0;
    std::vector<quire_sequence> handles(static_cast<size_t>(sequences_));
    for (quire_sequence &handle : handles) {
      int64_t length = drawLength(lengths, most_, random);
      check(quire_sequence_create(pool_.get(), &handle));
      check(quire_sequence_reserve(pool_.get(), handle, length));
      check(quire_sequence_commit(pool_.get(), handle, length));
      tokens += static_cast<double>(length);
      doubling += static_cast<double>(doublingSlots(length, most_));
      copied += static_cast<double>(doublingCopies(length, most_));
    }
    quire_pool_stats stats = pool_.stats();
    double slots = static_cast<double>((stats.blocks_total - stats.blocks_free) * blockTokens_);
    double bytes = slots * static_cast<double>(publishedShape.tokenBytes());
    double tables = static_cast<double>(pool_.get()->pool->tableBytes());
    double all = static_cast<double>(sequences_ * most_);
    double allBytes = all * static_cast<double>(publishedShape.tokenBytes());
    for (quire_sequence handle : handles)
      check(quire_sequence_release(pool_.get(), handle));
    return {1 - (bytes + tables) / allBytes, tables / bytes, 1 - tokens / slots, 1 - doubling / all, copied / tokens};
  }

  /// Bytes of an encoded block / bytes of the block.
  double codecShare(Codec codec) const {
    const quire_model_info &info = published_.info();
    return static_cast<double>(runtime::pagedKvBytes(info.layers, 1, blockTokens_, blockTokens_, codec)) /
           static_cast<double>(runtime::pagedKvBytes(info.layers, 1, blockTokens_, blockTokens_));
  }

private:
  Shape shape(Shape base) const {
    base.blockTokens = blockTokens_;
    base.maxPositions = most_;
    return base;
  }

  int64_t most_, sequences_, blockTokens_;
  ShapeModel model_, published_;
  ShapePool pool_;
};

Json rowOf(Filler &filler, Lengths lengths, int64_t most, int64_t blockTokens, const Options &options) {
  std::vector<double> saved, tables, empty, doubling, copied;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    Filled filled = filler.fill(lengths, options.seed + static_cast<uint64_t>(repeat));
    saved.push_back(filled.saved);
    tables.push_back(filled.tableShare);
    empty.push_back(filled.emptyShare);
    doubling.push_back(filled.doubling);
    copied.push_back(filled.copiedTokens);
  }
  double used = 1 - medianOf(saved);
  auto with = [&](Codec codec) { return 1 - used * filler.codecShare(codec); };
  return {{"lengths", lengthsName(lengths)},
          {"longest", most},
          {"block_tokens", blockTokens},
          {"saved", spread(saved)},
          {"expected", 1 - meanLength(lengths, most) / static_cast<double>(most)},
          {"table_share", spread(tables)},
          {"empty_share", spread(empty)},
          {"saved_by_doubling", spread(doubling)},
          {"copies_by_doubling", spread(copied)},
          {"saved_int8", with(Codec::Int8G128)},
          {"saved_fp8", with(Codec::Fp8E4M3)},
          {"saved_int4", with(Codec::Int4G128)}};
}

/// Mean over the time in which all sequences grow together from a share `prompt` of the greatest length to all of it.
Json growthRow(double prompt, int64_t most) {
  constexpr int64_t blockTokens = 16;
  Shape shape = thinShape;
  shape.maxPositions = most;
  ShapeModel model(shape, Work::Nothing);
  ShapePool pool(model, {most / blockTokens});
  quire_sequence sequence;
  check(quire_sequence_create(pool.get(), &sequence));
  double used = 0, moments = 0;
  for (int64_t tokens = std::max<int64_t>(1, static_cast<int64_t>(prompt * static_cast<double>(most))); tokens <= most;
       ++tokens) {
    int64_t length = 0;
    check(quire_sequence_length(pool.get(), sequence, &length));
    check(quire_sequence_reserve(pool.get(), sequence, tokens - length));
    check(quire_sequence_commit(pool.get(), sequence, tokens - length));
    quire_pool_stats stats = pool.stats();
    used += static_cast<double>((stats.blocks_total - stats.blocks_free) * blockTokens);
    ++moments;
  }
  return {{"prompt_share", prompt},
          {"saved", 1 - used / moments / static_cast<double>(most)},
          {"expected", (1 - prompt) / 2}};
}

const Json &find(const Json &rows, Lengths lengths, int64_t most, int64_t blockTokens) {
  for (const Json &row : rows)
    if (row["lengths"] == lengthsName(lengths) && row["longest"] == most && row["block_tokens"] == blockTokens)
      return row;
  static const Json none;
  return none;
}

} // namespace

Json savings(const Options &options) {
  int64_t sequences = options.quick ? 128 : 1024;
  std::vector<int64_t> sizes =
      options.quick ? std::vector<int64_t>{16, 128} : std::vector<int64_t>{4, 8, 16, 32, 64, 128, 256};
  Json rows = Json::array(), growth = Json::array();
  for (int64_t most : {2048, 4096})
    for (int64_t blockTokens : sizes) {
      Filler filler(blockTokens, most, sequences);
      for (Lengths lengths : allLengths)
        rows.push_back(rowOf(filler, lengths, most, blockTokens, options));
    }
  for (double prompt : {0.0, 0.25, 0.5})
    growth.push_back(growthRow(prompt, 2048));
  const Json &long20 = find(rows, Lengths::From20, 4096, 16), &short40 = find(rows, Lengths::From40, 2048, 16);
  double tolerance = options.quick ? 0.06 : 0.015;
  Json claims = {claim("-40 % of memory at 4,096 tokens, lengths U[0.2,1]", long20["saved"]["median"], 0.40 - tolerance,
                       0.40 + tolerance),
                 claim("-30 % of memory at 2,048 tokens, lengths U[0.4,1]", short40["saved"]["median"],
                       0.30 - tolerance, 0.30 + tolerance),
                 claim("-64 % with int8 groups, 2,048 tokens, lengths U[0.4,1]", short40["saved_int8"],
                       0.64 - (options.quick ? 0.03 : 0.01), 0.64 + (options.quick ? 0.03 : 0.01)),
                 claim("nothing where all sequences have the greatest length",
                       find(rows, Lengths::Fixed, 4096, 16)["saved"]["median"], -0.01, 0.001)};
  return {{"workload", "sequences that are alive together, each at its full length, in blocks of a pool"},
          {"baseline", "one contiguous region of the greatest length for each sequence"},
          {"formula", "saved = 1 - (allocated blocks * block bytes + bytes of tables) / (sequences * greatest length * "
                      "token bytes), with 819,200 bytes a token (40 layers of 40 heads of 128 in f16)"},
          {"parameters",
           {{"sequences", sequences},
            {"repeats", options.repeats},
            {"seed", options.seed},
            {"token_bytes", publishedShape.tokenBytes()}}},
          {"rows", rows},
          {"growth", growth},
          {"claims", claims}};
}

} // namespace quire::kvbench
