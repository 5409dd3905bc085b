// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Digests of keys, and where they are kept.
#include "residency/Digests.h"

#include "compress/StoredRows.h"
#include "residency/LargestOf.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quire::runtime {

static constexpr float infinity = std::numeric_limits<float>::infinity();

//===----------------------------------------------------------------------===//
// One digest
//===----------------------------------------------------------------------===//

void digestReset(const KeyShape &shape, float *digest) {
  std::fill_n(digest, shape.values(), infinity);
  std::fill_n(digest + shape.values(), shape.values(), -infinity);
}

static void addChannels(const float *key, size_t count, float *low, float *high) {
  for (size_t c = 0; c < count; ++c) {
    low[c] = std::min(low[c], std::isnan(key[c]) ? -infinity : key[c]);
    high[c] = std::max(high[c], std::isnan(key[c]) ? infinity : key[c]);
  }
}

void digestAdd(const KeyShape &shape, const float *key, float *digest) { addChannels(key, shape.values(), digest, digest + shape.values()); }

void digestBlock(const quire_model_layer &layer, int64_t blockTokens, const char *block, int64_t tokens, float *key, float *digest) {
  KeyShape shape{layer.kv_heads, layer.key_dim};
  digestReset(shape, digest);
  for (int64_t head = 0; head < layer.kv_heads; ++head)
    for (int64_t token = 0; token < tokens; ++token) {
      loadRow({&layer, blockTokens, false, head, token}, block, key);
      float *low = digest + head * layer.key_dim;
      addChannels(key, static_cast<size_t>(layer.key_dim), low, low + shape.values());
    }
}

static double boundOfHead(const float *query, const float *low, const float *high, int64_t channels) {
  double sum = 0;
  for (int64_t c = 0; c < channels; ++c) {
    double q = query[c];
    sum += q > 0 ? q * high[c] : q < 0 ? q * low[c] : q == 0 ? 0 : static_cast<double>(infinity);
  }
  return std::isnan(sum) ? static_cast<double>(infinity) : sum;
}

double digestBound(const KeyShape &shape, const float *query, int64_t queryHeads, const float *digest) {
  double bound = -static_cast<double>(infinity);
  if (digest[0] > digest[shape.values()])
    return bound;
  int64_t sharing = queryHeads / shape.heads;
  for (int64_t head = 0; head < queryHeads; ++head) {
    const float *low = digest + head / sharing * shape.channels;
    bound = std::max(bound, boundOfHead(query + head * shape.channels, low, low + shape.values(), shape.channels));
  }
  return bound;
}

size_t digestTop(const KeyShape &shape, const float *query, int64_t queryHeads, const float *digests, size_t pages, size_t k,
                 double *bounds, uint32_t *out) {
  for (size_t page = 0; page < pages; ++page)
    bounds[page] = digestBound(shape, query, queryHeads, digests + page * shape.digestValues());
  return largestOf(bounds, pages, k, -static_cast<double>(infinity), out);
}

//===----------------------------------------------------------------------===//
// Digests of pages
//===----------------------------------------------------------------------===//

static uint64_t bytesOf(const quire_model_layer &layer) { return KeyShape{layer.kv_heads, layer.key_dim}.digestValues() * sizeof(float); }

uint64_t PageDigests::bytesPerBlock(const quire_model_info &info) {
  uint64_t bytes = 0;
  for (int64_t layer = 0; layer < info.layer_count; ++layer)
    bytes += bytesOf(info.layers[layer]);
  return bytes + static_cast<uint64_t>(info.layer_count); // at most as many groups
}

PageDigests::PageDigests(const quire_model_info &info, const PageGeometry &geometry, uint32_t blocks)
    : geometry_(geometry), blocks_(blocks), bytesPerBlock_(bytesPerBlock(info)), known_(size_t(geometry.groups) * blocks) {
  size_t first = 0;
  for (int64_t layer = 0; layer < info.layer_count; ++layer) {
    KeyShape keys{info.layers[layer].kv_heads, info.layers[layer].key_dim};
    shapes_.push_back({info.layers[layer], keys, first});
    first += blocks * keys.digestValues();
    key_.resize(std::max(key_.size(), static_cast<size_t>(keys.channels)));
  }
  values_.resize(first);
}

std::pair<int64_t, int64_t> PageDigests::layersOf(uint32_t group) const {
  int64_t begin = int64_t(group) * geometry_.layersPerPage;
  return {begin, std::min<int64_t>(begin + geometry_.layersPerPage, geometry_.layers())};
}

float *PageDigests::digestOf(int64_t layer, uint32_t block) {
  const Layer &shape = shapes_[static_cast<size_t>(layer)];
  return values_.data() + shape.first + block * shape.keys.digestValues();
}

const float *PageDigests::of(int64_t layer, uint32_t block) const { return const_cast<PageDigests *>(this)->digestOf(layer, block); }

void PageDigests::make(uint32_t group, uint32_t block, const char *page, int64_t tokens) {
  for (auto [layer, end] = layersOf(group); layer < end; ++layer)
    digestBlock(shapes_[static_cast<size_t>(layer)].stored, geometry_.blockTokens, page + geometry_.layerStart[static_cast<size_t>(layer)], tokens, key_.data(),
                digestOf(layer, block));
  known_[placeOf(group, block)] = 1;
  ++made_;
}

void PageDigests::erase(uint32_t group, uint32_t block) {
  for (auto [layer, end] = layersOf(group); layer < end; ++layer)
    std::fill_n(digestOf(layer, block), shape(layer).digestValues(), 0.0f);
  forget(group, block);
}

} // namespace quire::runtime
