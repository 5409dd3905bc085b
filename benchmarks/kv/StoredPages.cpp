// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contents of pages, rows of heads, and attention over them in plain loops.
#include "StoredPages.h"

#include "compress/SmallFloat.h"
#include "model/ModelInfo.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace quire::kvbench {

using namespace quire::runtime;

StoredPages::StoredPages(int64_t element, int64_t pages, Content content, uint64_t seed) {
  int64_t bytes = storedBytes(element, 1);
  layer_.kv_heads = kvHeads;
  layer_.key_dim = layer_.value_dim = headDim;
  layer_.element = element;
  layer_.lanes = lanes;
  layer_.value_offset = kvHeads * blockTokens * headDim * bytes;
  layer_.block_bytes = 2 * layer_.value_offset;
  memory_.resize(static_cast<size_t>(pages * layer_.block_bytes));
  Random random(seed);
  for (int64_t i = 0; i < static_cast<int64_t>(memory_.size()) / bytes; ++i) {
    int64_t at = i * bytes % layer_.block_bytes;
    bool isKey = at < layer_.value_offset;
    // K lies [channels][lanes], V [tokens][channels].
    int64_t channel = isKey ? i / lanes % headDim : i % headDim, token = isKey ? i % lanes : i / headDim % blockTokens;
    double value = random.normal() * (isKey && channel % 32 == 5 ? 8 : 1);
    bool kept = content == Content::Normal || (channel + token) % 8 == 0;
    store(i, kept ? static_cast<float>(value) : 0.0f);
  }
}

void StoredPages::store(int64_t index, float value) {
  if (layer_.element == QUIRE_ELEMENT_F32) {
    std::memcpy(memory_.data() + index * 4, &value, 4);
    return;
  }
  uint16_t half = layer_.element == QUIRE_ELEMENT_F16 ? F16::narrow(value) : BF16::narrow(value);
  std::memcpy(memory_.data() + index * 2, &half, 2);
}

std::vector<const char *> StoredPages::addresses() {
  std::vector<const char *> list;
  for (int64_t i = 0; i < pageCount(); ++i)
    list.push_back(page(i));
  return list;
}

static float elementAt(const char *segment, int64_t element, int64_t index) {
  if (element == QUIRE_ELEMENT_F32) {
    float value;
    std::memcpy(&value, segment + index * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, segment + index * 2, 2);
  return element == QUIRE_ELEMENT_F16 ? F16::widen(bits) : BF16::widen(bits);
}

HeadRows readHead(const quire_model_layer &layer, int64_t blockTokens, const std::vector<const char *> &pages,
                  int64_t tokens, int64_t head) {
  HeadRows rows{tokens, layer.key_dim, {}, {}};
  int64_t segment = blockTokens * storedBytes(layer.element, layer.key_dim);
  for (int64_t token = 0; token < tokens; ++token) {
    const char *keys = pages[static_cast<size_t>(token / blockTokens)] + head * segment,
               *values = keys + layer.value_offset;
    int64_t slot = token % blockTokens;
    for (int64_t i = 0; i < layer.key_dim; ++i) {
      rows.keys.push_back(
          elementAt(keys, layer.element, (slot / layer.lanes * layer.key_dim + i) * layer.lanes + slot % layer.lanes));
      rows.values.push_back(elementAt(values, layer.element, slot * layer.key_dim + i));
    }
  }
  return rows;
}

HeadRows drawHead(int64_t tokens, int64_t dim, Random &random) {
  HeadRows rows{tokens, dim, {}, {}};
  for (auto *list : {&rows.keys, &rows.values})
    for (int64_t i = 0; i < tokens * dim; ++i)
      list->push_back(static_cast<float>(random.normal()));
  return rows;
}

static double dot(const float *a, const float *b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// Mean square of each channel of K; large channels would otherwise be all that a query sees.
static std::vector<double> channelSizes(const HeadRows &head) {
  std::vector<double> sizes(static_cast<size_t>(head.dim));
  for (int64_t i = 0; i < head.tokens * head.dim; ++i)
    sizes[static_cast<size_t>(i % head.dim)] +=
        static_cast<double>(head.keys[static_cast<size_t>(i)]) * static_cast<double>(head.keys[static_cast<size_t>(i)]);
  for (double &size : sizes)
    size = size > 0 ? size / static_cast<double>(head.tokens) : 1;
  return sizes;
}

std::vector<float> needleQuery(const HeadRows &head, int64_t needle, double peak, Random &random) {
  std::vector<double> sizes = channelSizes(head);
  const float *key = head.key(needle);
  double norm = 0;
  for (size_t i = 0; i < sizes.size(); ++i)
    norm += static_cast<double>(key[i]) * static_cast<double>(key[i]) / sizes[i];
  double scale = norm > 0 ? peak * std::sqrt(static_cast<double>(head.dim)) / norm : 0;
  std::vector<float> query(sizes.size());
  for (size_t i = 0; i < query.size(); ++i)
    query[i] =
        static_cast<float>(random.normal() / std::sqrt(sizes[i]) + scale * static_cast<double>(key[i]) / sizes[i]);
  return query;
}

std::vector<double> attentionWeights(const HeadRows &head, const std::vector<float> &query,
                                     const std::vector<int64_t> &tokens) {
  std::vector<double> weights;
  for (int64_t token : tokens)
    weights.push_back(dot(query.data(), head.key(token), head.dim) / std::sqrt(static_cast<double>(head.dim)));
  double largest = *std::max_element(weights.begin(), weights.end()), sum = 0;
  for (double &weight : weights)
    sum += weight = std::exp(weight - largest);
  for (double &weight : weights)
    weight /= sum;
  return weights;
}

std::vector<float> attend(const HeadRows &head, const std::vector<double> &weights,
                          const std::vector<int64_t> &tokens) {
  std::vector<double> sums(static_cast<size_t>(head.dim));
  for (size_t i = 0; i < tokens.size(); ++i)
    for (size_t channel = 0; channel < sums.size(); ++channel)
      sums[channel] += weights[i] * static_cast<double>(head.value(tokens[i])[channel]);
  return std::vector<float>(sums.begin(), sums.end());
}

bool finds(const HeadRows &head, const std::vector<float> &output, int64_t needle) {
  auto likeness = [&](int64_t token) {
    const float *value = head.value(token);
    double norm = dot(value, value, head.dim);
    return norm > 0 ? dot(output.data(), value, head.dim) / std::sqrt(norm) : 0.0;
  };
  double wanted = likeness(needle);
  for (int64_t token = 0; token < head.tokens; ++token)
    if (token != needle && likeness(token) >= wanted)
      return false;
  return true;
}

static std::vector<int64_t> allTokens(const HeadRows &head) {
  std::vector<int64_t> tokens(static_cast<size_t>(head.tokens));
  std::iota(tokens.begin(), tokens.end(), int64_t(0));
  return tokens;
}

std::vector<float> attentionMass(const HeadRows &head, uint64_t seed) {
  constexpr int queries = 64;
  constexpr double peak = 4;
  Random random(seed);
  std::vector<int64_t> tokens = allTokens(head);
  std::vector<float> mass(tokens.size());
  for (int i = 0; i < queries; ++i) {
    int64_t needle = static_cast<int64_t>(random.below(static_cast<uint64_t>(head.tokens)));
    std::vector<double> weights = attentionWeights(head, needleQuery(head, needle, peak, random), tokens);
    for (size_t token = 0; token < mass.size(); ++token)
      mass[token] += static_cast<float>(weights[token]);
  }
  return mass;
}

double needleRecall(const HeadRows &original, const HeadRows &changed, const Needles &needles) {
  Random random(needles.seed);
  std::vector<int64_t> tokens = allTokens(changed);
  int64_t found = 0;
  for (int64_t i = 0; i < needles.trials; ++i) {
    int64_t needle =
        needles.first + static_cast<int64_t>(random.below(static_cast<uint64_t>(needles.last - needles.first)));
    std::vector<float> query = needleQuery(original, needle, needles.peak, random);
    found += finds(original, attend(changed, attentionWeights(changed, query, tokens), tokens), needle);
  }
  return static_cast<double>(found) / static_cast<double>(needles.trials);
}

} // namespace quire::kvbench
