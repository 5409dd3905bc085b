// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages of one layer with made-up K and V, and what attention finds in them.
#ifndef QUIRE_BENCHMARKS_KV_STOREDPAGES_H
#define QUIRE_BENCHMARKS_KV_STOREDPAGES_H

#include "Workloads.h"
#include "compress/Codec.h"

#include <cstdint>
#include <vector>

namespace quire::kvbench {

/// Normal: standard normal, with one channel of 32 eightfold in K, as keys have them. Sparse: of the same values one of
/// eight in a row is kept, the others are 0.
enum class Content { Normal, Sparse };

/// 8 heads of 128, 16 tokens to a page.
class StoredPages {
public:
  static constexpr int64_t blockTokens = 16, kvHeads = 8, headDim = 128, lanes = 16;

  StoredPages(int64_t element, int64_t pages, Content content, uint64_t seed);
  StoredPages(const StoredPages &) = delete;
  StoredPages &operator=(const StoredPages &) = delete;

  const quire_model_layer &layer() const { return layer_; }
  runtime::PageLayers layers() const { return {&layer_, &start_, 1, blockTokens}; }
  int64_t pageCount() const { return static_cast<int64_t>(memory_.size()) / layer_.block_bytes; }
  size_t bytes() const { return memory_.size(); }
  char *page(int64_t index) { return memory_.data() + index % pageCount() * layer_.block_bytes; }
  std::vector<const char *> addresses();

private:
  void store(int64_t index, float value);

  quire_model_layer layer_{};
  uint64_t start_ = 0;
  std::vector<char> memory_;
};

/// K and V of one head, [tokens][dim].
struct HeadRows {
  int64_t tokens = 0, dim = 0;
  std::vector<float> keys, values;

  const float *key(int64_t token) const { return keys.data() + token * dim; }
  const float *value(int64_t token) const { return values.data() + token * dim; }
};
HeadRows readHead(const quire_model_layer &layer, int64_t blockTokens, const std::vector<const char *> &pages,
                  int64_t tokens, int64_t head);
/// Standard normal rows.
HeadRows drawHead(int64_t tokens, int64_t dim, Random &random);

/// A random query whose logits have a standard deviation of 1, but that of the token `needle` is greater by `peak`.
std::vector<float> needleQuery(const HeadRows &head, int64_t needle, double peak, Random &random);
/// Softmax weights of the query over the listed tokens of the head.
std::vector<double> attentionWeights(const HeadRows &head, const std::vector<float> &query,
                                     const std::vector<int64_t> &tokens);
/// Sum of their values with these weights.
std::vector<float> attend(const HeadRows &head, const std::vector<double> &weights, const std::vector<int64_t> &tokens);
/// Whether the output points to the value of `needle` more than to any other value.
bool finds(const HeadRows &head, const std::vector<float> &output, int64_t needle);

/// Mean attention of queries that look for one random token each, by token; not normalised.
std::vector<float> attentionMass(const HeadRows &head, uint64_t seed);

/// How needles are looked for: random ones among tokens [first, last) of the original, by queries that are made from
/// original keys. A needle is found if the output points to its original value, so one that was pruned is not.
struct Needles {
  int64_t first = 0, last = 0;
  int64_t trials = 64;
  double peak = 10;
  uint64_t seed = 1;
};
/// Share of them that attention over all rows of `changed` finds.
double needleRecall(const HeadRows &original, const HeadRows &changed, const Needles &needles);

} // namespace quire::kvbench

#endif // QUIRE_BENCHMARKS_KV_STOREDPAGES_H
