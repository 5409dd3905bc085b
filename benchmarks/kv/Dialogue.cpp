// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E10: a dialogue of 20 turns whose old turns are pruned or compressed, while its first page and its last turns stay as
// they are.
#include "Experiment.h"
#include "StoredPages.h"

#include "compress/AttentionError.h"
#include "compress/Prune.h"

#include <algorithm>
#include <stdexcept>

namespace quire::kvbench {

using namespace quire::runtime;

namespace {

constexpr int64_t blockTokens = StoredPages::blockTokens, turns = 20, recentTurns = 3, importantPages = 1;

/// What is done to the pages between the important ones and the recent turns.
struct Treatment {
  const char *name;
  double pruned = 0; // share of the tokens
  Codec codec = Codec::None;
};
constexpr Treatment treatments[] = {
    {"as they are", 0, Codec::None}, {"half pruned", 0.5, Codec::None},
    {"int8", 0, Codec::Int8G128},    {"half pruned, int8", 0.5, Codec::Int8G128},
    {"int4", 0, Codec::Int4G128},    {"sparse 8:1, bitmap", 0, Codec::Sparse8Bitmap},
};

using Pages = std::vector<std::vector<char>>;

struct Treated {
  Pages pages;
  int64_t tokens;
  double bytes; // of the original ones
};

Treated treat(StoredPages &stored, const Treatment &treatment, int64_t oldEnd, uint64_t seed) {
  const quire_model_layer &layer = stored.layer();
  int64_t count = stored.pageCount(), all = count * blockTokens;
  Treated out{{}, all, 0};
  std::vector<char *> places;
  for (int64_t i = 0; i < count; ++i)
    out.pages.emplace_back(stored.page(i), stored.page(i) + layer.block_bytes);
  for (std::vector<char> &page : out.pages)
    places.push_back(page.data());
  std::vector<float> scores = attentionMass(readHead(layer, blockTokens, stored.addresses(), all, 0), seed);
  PositionRange keep[] = {{0, importantPages * blockTokens}, {oldEnd * blockTokens, all}};
  PruneRequest request;
  request.blocks = count;
  request.blockTokens = blockTokens;
  request.scores = scores.data();
  request.ratio = treatment.pruned * static_cast<double>(oldEnd - importantPages) / static_cast<double>(count);
  request.keep = keep;
  request.keepCount = 2;
  PrunePlan plan;
  if (Status status = planPrune(request, plan); !status.ok())
    throw std::runtime_error(status.text());
  movePositions(stored.layers(), places.data(), plan.moves.data(), static_cast<int64_t>(plan.moves.size()));
  out.tokens = static_cast<int64_t>(plan.positions.size());
  int64_t left = count - static_cast<int64_t>(plan.freed.size()), recent = count - oldEnd;
  std::vector<char> encoded(static_cast<size_t>(encodedBytes(treatment.codec, layer, blockTokens)));
  for (int64_t i = importantPages; i < left - recent; ++i) {
    if (encode(treatment.codec, layer, blockTokens, places[static_cast<size_t>(i)], blockTokens, encoded.data()) !=
        EncodeResult::Encoded)
      throw std::runtime_error("a page of a dialogue is refused");
    decode(treatment.codec, layer, blockTokens, encoded.data(), places[static_cast<size_t>(i)]);
  }
  double old = static_cast<double>(left - recent - importantPages) * static_cast<double>(encoded.size());
  out.bytes = (old + static_cast<double>((recent + importantPages) * layer.block_bytes)) /
              static_cast<double>(count * layer.block_bytes);
  return out;
}

Json rowOf(const Treatment &treatment, int64_t turnPages, int64_t trials, const Options &options) {
  std::vector<double> bytes, error, recallOld, recallRecent;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    uint64_t seed = options.seed + static_cast<uint64_t>(repeat);
    StoredPages stored(QUIRE_ELEMENT_F16, turns * turnPages, Content::Normal, seed);
    int64_t oldEnd = (turns - recentTurns) * turnPages, all = stored.pageCount() * blockTokens;
    Treated treated = treat(stored, treatment, oldEnd, seed);
    std::vector<const char *> original = stored.addresses(), changed;
    for (const std::vector<char> &page : treated.pages)
      changed.push_back(page.data());
    AttentionErrorOptions measuring;
    measuring.queries = 2;
    measuring.seed = seed;
    measuring.peak = 8;
    error.push_back(
        measureAttentionError(stored.layers(), {original.data(), all}, {changed.data(), treated.tokens}, measuring)
            .relativeL2);
    HeadRows before = readHead(stored.layer(), blockTokens, original, all, 0);
    HeadRows after = readHead(stored.layer(), blockTokens, changed, treated.tokens, 0);
    recallOld.push_back(
        needleRecall(before, after, {importantPages * blockTokens, oldEnd * blockTokens, trials, 10, seed}));
    recallRecent.push_back(needleRecall(before, after, {oldEnd * blockTokens, all, trials, 10, seed}));
    bytes.push_back(treated.bytes);
  }
  return {{"old_turns", treatment.name},
          {"bytes", spread(bytes)},
          {"relative_l2", spread(error)},
          {"recall_old", spread(recallOld)},
          {"recall_recent", spread(recallRecent)}};
}

} // namespace

Json dialogue(const Options &options) {
  int64_t turnPages = options.quick ? 1 : 4, trials = options.quick ? 16 : 48;
  Json rows = Json::array();
  for (const Treatment &treatment : treatments)
    rows.push_back(rowOf(treatment, turnPages, trials, options));
  double recent = rows[0]["recall_recent"]["median"];
  Json claims = {
      claim("half of the old tokens pruned: bytes of the dialogue that are left", rows[1]["bytes"]["median"], 0.55,
            0.61),
      claim("recall in the recent turns is within 1 point of the untouched dialogue, old turns half pruned",
            static_cast<double>(rows[1]["recall_recent"]["median"]) - recent, -0.01, 1),
      claim("recall in the old turns is within 1 point of the untouched dialogue, old turns half pruned",
            static_cast<double>(rows[1]["recall_old"]["median"]) - static_cast<double>(rows[0]["recall_old"]["median"]),
            -0.01, 1),
      claim("recall in the old turns is within 1 point of the untouched dialogue, old turns as int8",
            static_cast<double>(rows[2]["recall_old"]["median"]) - static_cast<double>(rows[0]["recall_old"]["median"]),
            -0.01, 1)};
  return {{"workload", "a dialogue of 20 turns with made-up K and V; the first page and the last 3 turns stay as they "
                       "are, the pages between are treated"},
          {"baseline", "the untouched dialogue"},
          {"formula", "bytes = pages that are left, as they are stored / all pages; recall = needles whose value the "
                      "output of attention points to most / all needles, in the old and in the recent turns"},
          {"parameters",
           {{"turns", turns},
            {"pages_of_turn", turnPages},
            {"recent_turns", recentTurns},
            {"important_pages", importantPages},
            {"needles", trials},
            {"repeats", options.repeats},
            {"seed", options.seed}}},
          {"rows", rows},
          {"claims", claims}};
}

} // namespace quire::kvbench
