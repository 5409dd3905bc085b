// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention of random queries in f64, head by head.
#include "compress/AttentionError.h"

#include "compress/StoredRows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace quire::runtime {
namespace {

/// K and V of one head of a sequence: [tokens][channels].
struct Head {
  std::vector<double> keys, values;
};

Head loadHead(const PageLayers &page, int64_t layer, int64_t head, const StoredTokens &stored) {
  const quire_model_layer &shape = page.layers[layer];
  Head loaded;
  std::vector<float> row(static_cast<size_t>(std::max(shape.key_dim, shape.value_dim)));
  for (int64_t token = 0; token < stored.tokens; ++token) {
    const char *block = stored.pages[token / page.blockTokens] + page.starts[layer];
    for (bool value : {false, true}) {
      StoredRow place{&shape, page.blockTokens, value, head, token % page.blockTokens};
      loadRow(place, block, row.data());
      std::vector<double> &to = value ? loaded.values : loaded.keys;
      to.insert(to.end(), row.begin(), row.begin() + place.features());
    }
  }
  return loaded;
}

std::vector<double> attend(const Head &head, const std::vector<double> &query, int64_t tokens, int64_t valueDim) {
  int64_t keyDim = static_cast<int64_t>(query.size());
  std::vector<double> weights(static_cast<size_t>(tokens)), out(static_cast<size_t>(valueDim));
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t token = 0; token < tokens; ++token) {
    double logit = 0;
    for (int64_t i = 0; i < keyDim; ++i)
      logit += query[i] * head.keys[token * keyDim + i];
    weights[token] = logit / std::sqrt(static_cast<double>(keyDim));
    largest = std::max(largest, weights[token]);
  }
  for (double &weight : weights)
    sum += weight = std::exp(weight - largest);
  for (int64_t token = 0; token < tokens; ++token)
    for (int64_t i = 0; i < valueDim; ++i)
      out[i] += weights[token] / sum * head.values[token * valueDim + i];
  return out;
}

double squares(const double *x, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += x[i] * x[i];
  return sum;
}

std::vector<double> makeQuery(const Head &head, int64_t keyDim, int64_t tokens, double peak, std::mt19937_64 &random) {
  std::normal_distribution<double> normal;
  double size = std::sqrt(squares(head.keys.data(), tokens * keyDim) / static_cast<double>(tokens * keyDim));
  std::vector<double> query(static_cast<size_t>(keyDim));
  for (double &x : query)
    x = normal(random) / (size > 0 ? size : 1.0);
  int64_t token = static_cast<int64_t>(random() % static_cast<uint64_t>(tokens));
  const double *key = head.keys.data() + token * keyDim;
  double norm = squares(key, keyDim);
  if (peak != 0 && norm > 0)
    for (int64_t i = 0; i < keyDim; ++i)
      query[i] += peak * std::sqrt(static_cast<double>(keyDim)) * key[i] / norm;
  return query;
}

struct Sums {
  double cosine = 0, cosineLeast = 1, difference = 0, original = 0, maximum = 0;
  int64_t outputs = 0;

  void add(const std::vector<double> &want, const std::vector<double> &got) {
    int64_t count = static_cast<int64_t>(want.size());
    double dot = 0;
    for (int64_t i = 0; i < count; ++i) {
      double apart = std::fabs(want[i] - got[i]);
      dot += want[i] * got[i];
      difference += apart * apart;
      if (!(apart <= maximum) && !std::isnan(maximum))
        maximum = apart;
    }
    double wantNorm = squares(want.data(), count), gotNorm = squares(got.data(), count);
    double norms = std::sqrt(wantNorm * gotNorm);
    double between = norms > 0 ? dot / norms : (wantNorm == gotNorm ? 1.0 : norms == 0 ? 0.0 : norms);
    cosine += between;
    if (!(between >= cosineLeast) && !std::isnan(cosineLeast))
      cosineLeast = between;
    original += wantNorm;
    ++outputs;
  }
};

} // namespace

AttentionError measureAttentionError(const PageLayers &layers, const StoredTokens &original,
                                     const StoredTokens &changed, const AttentionErrorOptions &options) {
  Sums sums;
  std::mt19937_64 random(options.seed);
  for (int64_t layer = 0; layer < layers.count && original.tokens > 0 && changed.tokens > 0; ++layer) {
    const quire_model_layer &shape = layers.layers[layer];
    for (int64_t index = 0; index < shape.kv_heads; ++index) {
      Head want = loadHead(layers, layer, index, original), got = loadHead(layers, layer, index, changed);
      for (int64_t i = 0; i < options.queries; ++i) {
        std::vector<double> query = makeQuery(want, shape.key_dim, original.tokens, options.peak, random);
        sums.add(attend(want, query, original.tokens, shape.value_dim),
                 attend(got, query, changed.tokens, shape.value_dim));
      }
    }
  }
  AttentionError error;
  error.outputs = sums.outputs;
  if (sums.outputs == 0)
    return error;
  error.cosineMean = sums.cosine / static_cast<double>(sums.outputs);
  error.cosineLeast = sums.cosineLeast;
  error.relativeL2 = sums.difference == 0 ? 0 : std::sqrt(sums.difference / sums.original);
  error.maximum = sums.maximum;
  return error;
}

EncodeResult measureCodecError(Codec codec, const PageLayers &layers, const StoredTokens &original,
                               const AttentionErrorOptions &options, AttentionError &error) {
  uint64_t pageBytes = 0;
  for (int64_t i = 0; i < layers.count; ++i)
    pageBytes = std::max(pageBytes, layers.starts[i] + static_cast<uint64_t>(layers.layers[i].block_bytes));
  int64_t pages = (original.tokens + layers.blockTokens - 1) / layers.blockTokens;
  std::vector<char> encoded(static_cast<size_t>(encodedBytes(codec, layers)));
  std::vector<std::vector<char>> decoded(static_cast<size_t>(pages), std::vector<char>(pageBytes));
  std::vector<const char *> addresses;
  for (int64_t i = 0; i < pages; ++i) {
    int64_t tokens = std::min(layers.blockTokens, original.tokens - i * layers.blockTokens);
    EncodeResult result = encode(codec, layers, original.pages[i], tokens, encoded.data());
    if (result != EncodeResult::Encoded)
      return result;
    decode(codec, layers, encoded.data(), decoded[i].data());
    addresses.push_back(decoded[i].data());
  }
  error = measureAttentionError(layers, original, {addresses.data(), original.tokens}, options);
  return EncodeResult::Encoded;
}

} // namespace quire::runtime
