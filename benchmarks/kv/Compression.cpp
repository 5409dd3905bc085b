// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E9: bytes, capacity, speed, error and recall of the codecs, of pruning, and of a dense part beside sparse pages.
#include "CpuTime.h"
#include "Experiment.h"
#include "StoredPages.h"

#include "compress/AttentionError.h"
#include "compress/KvBytes.h"
#include "compress/Prune.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace quire::kvbench {

using namespace quire::runtime;

namespace {

constexpr int64_t blockTokens = StoredPages::blockTokens;
constexpr double needlePeak = 10;

struct Sizes {
  int64_t pages, trials;
};

using Pages = std::vector<std::vector<char>>;

std::vector<const char *> addressesOf(const Pages &pages) {
  std::vector<const char *> list;
  for (const std::vector<char> &page : pages)
    list.push_back(page.data());
  return list;
}

/// All pages as the codec makes them, but the last `dense` ones as they are.
Pages coded(StoredPages &stored, Codec codec, int64_t dense) {
  const quire_model_layer &layer = stored.layer();
  std::vector<char> bytes(static_cast<size_t>(encodedBytes(codec, layer, blockTokens)));
  Pages pages;
  for (int64_t i = 0; i < stored.pageCount(); ++i) {
    pages.emplace_back(stored.page(i), stored.page(i) + layer.block_bytes);
    if (i >= stored.pageCount() - dense)
      continue;
    if (encode(codec, layer, blockTokens, stored.page(i), blockTokens, bytes.data()) != EncodeResult::Encoded)
      throw std::runtime_error(std::string("a page is refused by ") + codecName(codec));
    decode(codec, layer, blockTokens, bytes.data(), pages.back().data());
  }
  return pages;
}

struct Quality {
  std::vector<double> spreadL2, peakedL2, cosine, recall;

  void add(StoredPages &stored, const std::vector<const char *> &changed, int64_t tokens, int64_t trials,
           uint64_t seed) {
    std::vector<const char *> original = stored.addresses();
    int64_t all = stored.pageCount() * blockTokens;
    for (double peak : {0.0, 8.0}) {
      AttentionErrorOptions options;
      options.queries = 2;
      options.seed = seed;
      options.peak = peak;
      AttentionError error =
          measureAttentionError(stored.layers(), {original.data(), all}, {changed.data(), tokens}, options);
      (peak == 0 ? spreadL2 : peakedL2).push_back(error.relativeL2);
      if (peak != 0)
        cosine.push_back(error.cosineMean);
    }
    HeadRows before = readHead(stored.layer(), blockTokens, original, all, 0),
             after = readHead(stored.layer(), blockTokens, changed, tokens, 0);
    recall.push_back(needleRecall(before, after, {0, all, trials, needlePeak, seed}));
  }

  void write(Json &row) const {
    row["relative_l2_spread"] = spread(spreadL2);
    row["relative_l2_peaked"] = spread(peakedL2);
    row["cosine_peaked"] = spread(cosine);
    row["recall"] = spread(recall);
  }
};

/// Time of memcpy / time of the codec, for the same pages in turns.
void speedOf(Codec codec, StoredPages &stored, int64_t repeats, Json &row) {
  const quire_model_layer &layer = stored.layer();
  size_t bytes = static_cast<size_t>(encodedBytes(codec, layer, blockTokens));
  std::vector<char> encoded(bytes * static_cast<size_t>(stored.pageCount())),
      page(static_cast<size_t>(layer.block_bytes));
  std::vector<double> encodes, decodes;
  for (int64_t repeat = 0; repeat < repeats; ++repeat) {
    double begin = cpuSeconds();
    for (int64_t i = 0; i < stored.pageCount(); ++i) {
      std::memcpy(page.data(), stored.page(i), page.size());
      asm volatile("" : : "r"(page.data()) : "memory");
    }
    double copied = cpuSeconds();
    for (int64_t i = 0; i < stored.pageCount(); ++i)
      encode(codec, layer, blockTokens, stored.page(i), blockTokens, encoded.data() + static_cast<size_t>(i) * bytes);
    double done = cpuSeconds();
    for (int64_t i = 0; i < stored.pageCount(); ++i)
      decode(codec, layer, blockTokens, encoded.data() + static_cast<size_t>(i) * bytes, page.data());
    encodes.push_back((copied - begin) / (done - copied));
    decodes.push_back((copied - begin) / (cpuSeconds() - done));
  }
  row["encode_share_of_memcpy"] = spread(encodes);
  row["decode_share_of_memcpy"] = spread(decodes);
}

Json codecRow(Codec codec, Content content, const Sizes &sizes, const Options &options) {
  Quality quality;
  Json row = {{"codec", codecName(codec)}, {"content", content == Content::Normal ? "normal" : "sparse"}};
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    StoredPages stored(QUIRE_ELEMENT_F16, sizes.pages, content, seed);
    Pages pages = coded(stored, codec, 0);
    quality.add(stored, addressesOf(pages), sizes.pages * blockTokens, sizes.trials, seed);
    if (repeat == 0) {
      double share = static_cast<double>(encodedBytes(codec, stored.layer(), blockTokens)) /
                     static_cast<double>(stored.layer().block_bytes);
      row["bytes_share"] = share;
      row["capacity"] = 1 / share;
      speedOf(codec, stored, options.repeats, row);
    }
  }
  quality.write(row);
  return row;
}

/// The last `dense` of the tokens as they are, the older ones by a sparse codec.
Json denseRow(Codec codec, double dense, const Sizes &sizes, const Options &options) {
  Quality quality;
  double coded8 = 0, index = 0, share = 0;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    StoredPages stored(QUIRE_ELEMENT_F16, sizes.pages, Content::Normal, seed);
    int64_t kept = static_cast<int64_t>(dense * static_cast<double>(sizes.pages) + 0.5);
    Pages pages = coded(stored, codec, kept);
    quality.add(stored, addressesOf(pages), sizes.pages * blockTokens, sizes.trials, seed);
    double whole = static_cast<double>(stored.layer().block_bytes);
    coded8 = static_cast<double>(encodedBytes(codec, stored.layer(), blockTokens)) / whole;
    index = coded8 - 0.125;
    share = static_cast<double>(kept) / static_cast<double>(sizes.pages);
  }
  Json row = {{"codec", codecName(codec)},
              {"dense_share", share},
              {"coded_share", coded8},
              {"index_share", index},
              {"capacity", 1 / (share + (1 - share) * coded8)}};
  quality.write(row);
  return row;
}

Json pruneRow(double ratio, const Sizes &sizes, const Options &options) {
  Quality quality;
  std::vector<double> freed, masked;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    StoredPages stored(QUIRE_ELEMENT_F16, sizes.pages, Content::Normal, seed);
    std::vector<float> scores =
        attentionMass(readHead(stored.layer(), blockTokens, stored.addresses(), sizes.pages * blockTokens, 0), seed);
    PruneRequest request;
    request.blocks = sizes.pages;
    request.blockTokens = blockTokens;
    request.scores = scores.data();
    request.ratio = ratio;
    PrunePlan plan;
    Status status = planPrune(request, plan);
    if (!status.ok())
      throw std::runtime_error(status.text());
    Pages pages = coded(stored, Codec::None, 0);
    std::vector<char *> places;
    for (std::vector<char> &page : pages)
      places.push_back(page.data());
    movePositions(stored.layers(), places.data(), plan.moves.data(), static_cast<int64_t>(plan.moves.size()));
    int64_t left = static_cast<int64_t>(plan.positions.size());
    std::vector<bool> used(static_cast<size_t>(sizes.pages), false);
    for (int64_t position : plan.positions)
      used[static_cast<size_t>(position / blockTokens)] = true;
    freed.push_back(static_cast<double>(plan.freed.size()) / static_cast<double>(sizes.pages));
    masked.push_back(static_cast<double>(std::count(used.begin(), used.end(), false)) /
                     static_cast<double>(sizes.pages));
    quality.add(stored, addressesOf(pages), left, sizes.trials, seed);
  }
  Json row = {{"ratio", ratio}, {"freed_blocks", spread(freed)}, {"freed_by_a_mask", spread(masked)}};
  quality.write(row);
  return row;
}

} // namespace

Json compression(const Options &options) {
  Sizes sizes = options.quick ? Sizes{8, 16} : Sizes{32, 48};
  Json rows = Json::array(), dense = Json::array(), pruned = Json::array();
  for (Content content : {Content::Normal, Content::Sparse})
    for (int i = 0; i < codecCount; ++i)
      rows.push_back(codecRow(static_cast<Codec>(i), content, sizes, options));
  for (Codec codec : {Codec::Sparse8Bitmap, Codec::Sparse8Index})
    for (double share : {0.0, 1.0 / 16, 1.0 / 8, 3.0 / 16, 1.0 / 4})
      dense.push_back(denseRow(codec, share, sizes, options));
  for (double ratio : {0.25, 0.5, 0.75})
    pruned.push_back(pruneRow(ratio, sizes, options));
  double none = rows[0]["recall"]["median"], int8 = rows[1]["recall"]["median"];
  Json claims = {
      claim("sparse 8:1 holds 3 to 5 times as many tokens (bitmap, an eighth dense)", dense[2]["capacity"], 3, 5),
      claim("its recall is within 1 point of dense, values without structure",
            static_cast<double>(dense[2]["recall"]["median"]) - none, -0.01, 1),
      claim("its recall is within 1 point of dense, values of which seven of eight are 0",
            static_cast<double>(rows[codecCount + 5]["recall"]["median"]) -
                static_cast<double>(rows[codecCount]["recall"]["median"]),
            -0.01, 1),
      claim("recall of int8 groups is within 1 point of dense", int8 - none, -0.01, 1),
      claim("pruning half of the tokens frees half of the blocks", pruned[1]["freed_blocks"]["median"], 0.5, 0.5)};
  return {{"workload",
           "made-up K and V of 8 heads of 128 in f16: normal values with large channels in K, or values of which seven "
           "of eight are 0; a needle is a token whose logit is greater by 10 than the others' deviation"},
          {"baseline", "the same pages as they are"},
          {"formula", "capacity = 1 / (r + (1 - r) * c), r the dense share, c the bytes of a coded page / those of the "
                      "page; recall = needles whose value the output of attention points to most / all needles"},
          {"parameters",
           {{"tokens", sizes.pages * blockTokens},
            {"needles", sizes.trials},
            {"repeats", options.repeats},
            {"seed", options.seed}}},
          {"rows", rows},
          {"dense", dense},
          {"pruned", pruned},
          {"claims", claims}};
}

} // namespace quire::kvbench
