// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// E11: documents of 10,000 tokens with 0.375 of their K and V in the fast tier: memory, exactness, speed of sparse
// reading, recall.
#include "Experiment.h"
#include "Replaying.h"
#include "ShapeModel.h"
#include "StoredPages.h"

#include "compress/KvBytes.h"
#include "residency/Digests.h"

#include <algorithm>
#include <cmath>

namespace quire::kvbench {

using namespace quire::runtime;

namespace {

constexpr double budget = 0.375, readShare = 1 / 2.1;
constexpr int64_t documents = 3, blockTokens = 16;

/// Documents are written and read in a real pool over two tiers, and every byte compared.
Json residencyRow(int64_t tokens) {
  constexpr int64_t chunk = 500, decodes = 8;
  Shape shape = {4, 2, 64, QUIRE_ELEMENT_F16, blockTokens};
  ShapeModel model(shape, Work::Mark);
  int64_t blocks = documents * ((tokens + decodes) / blockTokens + 1);
  int64_t fast = static_cast<int64_t>(budget * static_cast<double>(documents * tokens / blockTokens));
  ShapePool pool(model, {fast, "memory", blocks});
  serving::ExecutorPointer executor = pool.executor(model, documents * chunk, documents);
  std::vector<StepRow> rows;
  for (int64_t i = 0; i < documents; ++i) {
    quire_sequence handle;
    check(quire_sequence_create(pool.get(), &handle));
    rows.push_back({handle, chunk, i + 1});
  }
  for (int64_t stored = 0; stored < tokens; stored += chunk)
    check(tryStep(executor.get(), rows));
  for (StepRow &row : rows)
    row.tokens = 1;
  for (int64_t i = 0; i < decodes; ++i)
    check(tryStep(executor.get(), rows));
  quire_paging_stats stats = pool.pagingStats();
  double fastBytes = static_cast<double>(stats.fast_pages * stats.page_bytes),
         all = static_cast<double>(documents * tokens * shape.tokenBytes());
  double published = kvBytes({40, 40, 128, 2}, documents * tokens) / 1e9;
  return {{"tokens", tokens},
          {"documents", documents},
          {"fast_bytes", fastBytes},
          {"kv_bytes", all},
          {"share", fastBytes / all},
          {"published_gb", published},
          {"published_fast_gb", published * fastBytes / all},
          {"demands", stats.demands},
          {"hits", stats.hits},
          {"wrong_bytes", model.wrongBytes()}};
}

/// Mean time of a step, by the best of the policies with and without read-ahead of 8 pages.
double stepMs(const Trace &trace, uint32_t fastPages, double bandwidth) {
  double best = 0;
  for (PolicyKind policy : {PolicyKind::Scan, PolicyKind::Lru, PolicyKind::Importance})
    for (PrefetchKind prefetch : {PrefetchKind::None, PrefetchKind::Sequential}) {
      ReplayOptions options;
      options.fastPages = fastPages;
      options.policy = policy;
      options.prefetch = prefetch;
      options.window = 8;
      options.bandwidth = bandwidth;
      const PagerCounters c = replayed(trace, options).counters;
      double ms = static_cast<double>(c.stepNs) * 1e-6 / static_cast<double>(c.steps);
      best = best == 0 ? ms : std::min(best, ms);
    }
  return best;
}

/// Dense steps against steps that read a share of the pages; both with the budget.
Json speedRow(const TraceShape &shape, double bandwidth, const Options &options) {
  uint32_t fast = static_cast<uint32_t>(budget * shape.pages());
  Trace dense = denseTrace(shape);
  double allFast = stepMs(dense, shape.pages(), bandwidth), denseMs = stepMs(dense, fast, bandwidth);
  std::vector<double> speedups, sparseMs, ofAllFast;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    SparseAttention attention{static_cast<uint32_t>(readShare * shape.blocks), 0.9};
    Trace sparse = sparseTrace(shape, attention, options.seed + static_cast<uint64_t>(repeat));
    sparseMs.push_back(stepMs(sparse, fast, bandwidth));
    speedups.push_back(denseMs / sparseMs.back());
    ofAllFast.push_back(allFast / sparseMs.back());
  }
  return {{"bandwidth", bandwidth},      {"dense_all_fast_ms", allFast},
          {"dense_ms", denseMs},         {"sparse_ms", spread(sparseMs)},
          {"speedup", spread(speedups)}, {"speedup_over_all_fast", spread(ofAllFast)}};
}

/// Keys of a page have a share `alike` of their variance in common, as those of a paragraph about one thing.
HeadRows drawPages(int64_t tokens, int64_t dim, double alike, Random &random) {
  HeadRows head = drawHead(tokens, dim, random);
  std::vector<float> common(static_cast<size_t>(dim));
  for (int64_t token = 0; token < tokens; ++token) {
    if (token % blockTokens == 0)
      for (float &value : common)
        value = static_cast<float>(random.normal());
    for (int64_t i = 0; i < dim; ++i) {
      float &key = head.keys[static_cast<size_t>(token * dim + i)];
      key = static_cast<float>(std::sqrt(alike) * static_cast<double>(common[static_cast<size_t>(i)]) +
                               std::sqrt(1 - alike) * static_cast<double>(key));
    }
  }
  return head;
}

struct Recall {
  double dense, digest;
};

/// Needles in one head of a document, with all pages and with those whose digests bound the query's scores highest.
Recall recallOf(int64_t tokens, int64_t trials, double peak, double alike, uint64_t seed) {
  constexpr int64_t dim = 64;
  Random random(seed);
  HeadRows head = drawPages(tokens, dim, alike, random);
  KeyShape shape{1, dim};
  size_t pages = static_cast<size_t>(tokens / blockTokens);
  std::vector<float> digests(pages * shape.digestValues());
  std::vector<double> bounds(pages);
  for (size_t page = 0; page < pages; ++page) {
    digestReset(shape, &digests[page * shape.digestValues()]);
    for (int64_t slot = 0; slot < blockTokens; ++slot)
      digestAdd(shape, head.key(static_cast<int64_t>(page) * blockTokens + slot), &digests[page * shape.digestValues()]);
  }
  std::vector<uint32_t> chosen(static_cast<size_t>(readShare * static_cast<double>(pages)));
  std::vector<int64_t> all(pages * static_cast<size_t>(blockTokens));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<int64_t>(i);
  int64_t dense = 0, digest = 0;
  for (int64_t i = 0; i < trials; ++i) {
    int64_t needle = static_cast<int64_t>(random.below(all.size()));
    std::vector<float> query = needleQuery(head, needle, peak, random);
    dense += finds(head, attend(head, attentionWeights(head, query, all), all), needle);
    size_t count = digestTop(shape, query.data(), 1, digests.data(), pages, chosen.size(), bounds.data(), chosen.data());
    std::vector<int64_t> some;
    for (size_t page = 0; page < count; ++page)
      for (int64_t slot = 0; slot < blockTokens; ++slot)
        some.push_back(int64_t(chosen[page]) * blockTokens + slot);
    digest += finds(head, attend(head, attentionWeights(head, query, some), some), needle);
  }
  return {static_cast<double>(dense) / static_cast<double>(trials),
          static_cast<double>(digest) / static_cast<double>(trials)};
}

Json recallRow(int64_t tokens, int64_t trials, double peak, double alike, const Options &options) {
  std::vector<double> dense, digest, apart;
  for (int64_t repeat = 0; repeat < options.repeats; ++repeat) {
    Recall recall = recallOf(tokens, trials, peak, alike, options.seed + static_cast<uint64_t>(repeat));
    dense.push_back(recall.dense);
    digest.push_back(recall.digest);
    apart.push_back(recall.digest - recall.dense);
  }
  return {{"alike", alike},
          {"peak", peak},
          {"recall_dense", spread(dense)},
          {"recall_digest", spread(digest)},
          {"difference", spread(apart)}};
}

} // namespace

Json document(const Options &options) {
  int64_t tokens = options.quick ? 1000 : 10000, trials = options.quick ? 8 : 40;
  TraceShape shape;
  shape.blocks = static_cast<uint32_t>(tokens / blockTokens);
  shape.steps = options.quick ? 8 : 24;
  Json residency = residencyRow(tokens), rows = Json::array(), recall = Json::array();
  for (double bandwidth : {0.5e9, 1e9, 2e9, 4e9, 8e9})
    rows.push_back(speedRow(shape, bandwidth, options));
  for (double alike : {0.0, 0.5})
    for (double peak : {8.0, 10.0, 12.0})
      recall.push_back(recallRow(tokens, trials, peak, alike, options));
  Json claims = {
      claim("peak fast memory of K and V, as share (24 -> 9 GB in the published shape)", residency["share"], 0, 0.375),
      claim("bytes that were read back and that were not as they were written", residency["wrong_bytes"], 0, 0),
      claim("2.1 times the speed of dense steps with the same budget, 2 GB/s", rows[2]["speedup"]["median"], 2.1, 100),
      claim("needle recall is within 1 point of dense, peak 10, keys without structure",
            recall[1]["difference"]["median"], -0.01, 1),
      claim("needle recall is within 1 point of dense, peak 10, keys of a page alike by a half",
            recall[4]["difference"]["median"], -0.01, 1)};
  Json parameters = parametersOf(shape, options);
  parameters["budget"] = budget;
  parameters["read_share"] = readShare;
  parameters["needles"] = trials;
  return {
      {"workload", "3 documents of 10,000 tokens, written in chunks and read by decode steps; made-up K for recall"},
      {"baseline", "dense steps with the same budget, and dense steps with everything in the fast tier; each by the "
                   "best of scan, lru and importance, with and without read-ahead of 8 pages"},
      {"formula",
       "share = bytes of the fast tier / bytes of K and V; speedup = time of a dense step / time of a step that reads "
       "1/2.1 of the pages, by digests; recall = needles whose value the output points to most / all needles"},
      {"parameters", parameters},
      {"residency", residency},
      {"rows", rows},
      {"recall", recall},
      {"claims", claims}};
}

} // namespace quire::kvbench
