// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bounds of the keys in a page, and of the scores that a query can give them.
#ifndef QUIRE_RUNTIME_RESIDENCY_DIGESTS_H
#define QUIRE_RUNTIME_RESIDENCY_DIGESTS_H

#include "residency/PageGeometry.h"

#include "quire/model.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace quire::runtime {

/// Of the keys of one layer. A digest has the smallest value of each channel of each KV head, then the largest ones:
/// [2][heads][channels] (J. Tang et al., "Quest: query-aware sparsity for efficient long-context LLM inference", ICML 2024).
struct KeyShape {
  int64_t heads = 0;
  int64_t channels = 0;

  size_t values() const { return static_cast<size_t>(heads * channels); }
  size_t digestValues() const { return 2 * values(); }
};

/// The digest of no key.
void digestReset(const KeyShape &shape, float *digest);
/// `key`: [heads][channels] of one token. One that is NaN in a channel bounds nothing there.
void digestAdd(const KeyShape &shape, const float *key, float *digest);
/// Keys of the first `tokens` positions of a stored block, of any element type. `key` is room for one of a head.
void digestBlock(const quire_model_layer &layer, int64_t blockTokens, const char *block, int64_t tokens, float *key, float *digest);

/// At least the largest product of any query head with any key of its KV head: `query` is [queryHeads][channels], and
/// queryHeads / heads of them share each KV head, the first ones the first. The sum over channels is taken in their order, in
/// double, where products of floats are exact; as rounding is monotone, it is at least what the same sum gives for each key, and that for a
/// page of one key. Minus infinity: there is no key. Infinity where something is NaN.
double digestBound(const KeyShape &shape, const float *query, int64_t queryHeads, const float *digest);

/// The places of the `k` digests with the largest bounds, which follow each other; the largest first, the smaller place on ties, none
/// without a key. `bounds` is room for `pages` values. Returns their number.
size_t digestTop(const KeyShape &shape, const float *query, int64_t queryHeads, const float *digests, size_t pages, size_t k,
                 double *bounds, uint32_t *out);

/// Digests of the pages of a pool, one for each layer of a page, in memory whatever tier the page is in. Nothing allocates
/// after creation.
class PageDigests {
public:
  PageDigests(const quire_model_info &info, const PageGeometry &geometry, uint32_t blocks);

  static uint64_t bytesPerBlock(const quire_model_info &info);
  uint64_t bytes() const { return blocks_ * bytesPerBlock_; }
  /// Since creation.
  uint64_t made() const { return made_; }

  const KeyShape &shape(int64_t layer) const { return shapes_[static_cast<size_t>(layer)].keys; }

  bool knows(uint32_t group, uint32_t block) const { return known_[placeOf(group, block)] != 0; }
  /// `page` has the group's layers, of which the first `tokens` positions are stored.
  void make(uint32_t group, uint32_t block, const char *page, int64_t tokens);
  /// Its keys are nobody's any more: nothing is left of them.
  void erase(uint32_t group, uint32_t block);
  /// Its keys will be others.
  void forget(uint32_t group, uint32_t block) { known_[placeOf(group, block)] = 0; }
  /// Of a page that is known.
  const float *of(int64_t layer, uint32_t block) const;

private:
  struct Layer {
    quire_model_layer stored;
    KeyShape keys;
    size_t first; // of block 0 in values_
  };

  /// Layers of the group, [first, second).
  std::pair<int64_t, int64_t> layersOf(uint32_t group) const;
  float *digestOf(int64_t layer, uint32_t block);
  size_t placeOf(uint32_t group, uint32_t block) const { return size_t(group) * blocks_ + block; }

  PageGeometry geometry_;
  uint64_t blocks_;
  uint64_t bytesPerBlock_;
  std::vector<Layer> shapes_;
  std::vector<float> values_;   // [layers][blocks][digest]
  std::vector<uint8_t> known_;  // [groups][blocks]
  std::vector<float> key_;      // of one head, the widest
  uint64_t made_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_DIGESTS_H
