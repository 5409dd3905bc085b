// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which pages to ask for before they are demanded: strategies as functions of what a caller knows, with memory that the caller keeps.
#ifndef QUIRE_RUNTIME_RESIDENCY_PREFETCH_H
#define QUIRE_RUNTIME_RESIDENCY_PREFETCH_H

#include "residency/Policy.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace quire::runtime {

/// Sequential: read-ahead along the access order. SeedHotspot: the pages with the
/// most attention mass in the last step; in decoding these are mostly resident
/// already, and it is kept for comparison under this name. Digest: bounds of the
/// current query's scores (Digests.h). LayerAhead: the same blocks in the next layer. Hybrid:
/// all of them.
enum class PrefetchKind : uint8_t { None, Sequential, SeedHotspot, Digest, LayerAhead, Hybrid };

/// "none", "sequential", "seed_hotspot", "digest", "layer_ahead", "hybrid".
const char *prefetchName(PrefetchKind kind);
bool prefetchFromName(std::string_view name, PrefetchKind &out);

/// What a pager prefetches of a layer that a step comes to: nothing; its pages in the order of block tables; only those that the predictor
/// names, the hottest first; or these first, and then the others.
enum class PrefetchStrategy : uint8_t { None, Sequential, Hotspot, Hybrid };

/// Names, for each sequence and layer, the blocks with the largest shares of the attention: in the layer that the step attended to last, or in the same layer when it was
/// attended to last, in an earlier step.
enum class PrefetchPredictor : uint8_t { LayerAhead, SeedHotspot };

struct Prefetching {
  PrefetchStrategy strategy = PrefetchStrategy::Sequential;
  PrefetchPredictor predictor = PrefetchPredictor::LayerAhead;
  uint32_t topk = 2;           // blocks that the predictor names
  uint64_t bytes = UINT64_MAX; // that may be under way together

  bool looksAtAttention() const { return strategy == PrefetchStrategy::Hotspot || strategy == PrefetchStrategy::Hybrid; }
};

/// How pages are numbered. A block has one page in each group of layers.
struct PageNumbering {
  uint32_t blocks = 0;
  uint32_t groups = 1;
  bool isGroupMajor = false; // page = group * blocks + block; otherwise block * groups + group

  uint32_t page(uint32_t block, uint32_t group) const { return isGroupMajor ? group * blocks + block : block * groups + group; }
  uint32_t blockOf(uint32_t page) const { return isGroupMajor ? page % blocks : page / groups; }
  uint32_t groupOf(uint32_t page) const { return isGroupMajor ? page / blocks : page % groups; }
};

/// How far away the next use of a page is, in uses of pages.
class NextUse {
public:
  static constexpr uint64_t never = UINT64_MAX;

  virtual ~NextUse() = default;
  /// 1: it is used next. never: no use is known.
  virtual uint64_t distance(uint32_t page) const = 0;
};

/// What a prefetch may evict: a page that `base` allows and whose next use is
/// later than `distance`, that of the page which is prefetched.
class UsedLater final : public Evictable {
public:
  UsedLater(const Evictable &base, const NextUse &next, uint64_t distance) : base_(base), next_(next), distance_(distance) {}
  bool mayEvict(uint32_t page) const override { return base_.mayEvict(page) && next_.distance(page) > distance_; }

private:
  const Evictable &base_;
  const NextUse &next_;
  uint64_t distance_;
};

/// The order in which steps use pages, predicted from the step before: whoever
/// knows block tables knows it better, and need not use this. A page counts at its
/// first use in a step. After creation nothing allocates.
class AccessOrder final : public NextUse {
public:
  explicit AccessOrder(uint32_t pages);

  /// What was used since the last call becomes the predicted order.
  void beginStep();
  void used(uint32_t page);
  /// Its content is gone.
  void forget(uint32_t page);

  uint64_t distance(uint32_t page) const override;
  /// Pages predicted to be used next, nearest first, at most `most`, beginning
  /// after the first `skip` of the order that are to come; goes on into the next
  /// step. Returns their number.
  size_t ahead(size_t skip, size_t most, uint32_t *out) const;
  /// Length of the predicted order, and the place in it of what is used next.
  size_t length() const { return order_.size(); }
  size_t place() const { return at_; }
  /// Uses so far, in steps with a prediction, and those of them that came as
  /// predicted: near all of them in dense attention.
  uint64_t predictions() const { return predictions_; }
  uint64_t fulfilled() const { return fulfilled_; }

private:
  static constexpr uint32_t none = UINT32_MAX;

  std::vector<uint32_t> order_, next_; // of the last step, of this one
  std::vector<uint32_t> place_;        // in order_
  std::vector<uint32_t> nextPlace_;    // in next_
  size_t at_ = 0;                      // place in order_ of the next use
  uint64_t predictions_ = 0, fulfilled_ = 0;
};

/// sequential, for writes: blocks that a sequence of `tokens` tokens should own
/// before the next step, so that the page it fills next is there already.
uint64_t blocksWithNext(uint64_t tokens, uint64_t blockTokens);

/// seed_hotspot: the `k` of `count` with the largest mass above 0, largest first,
/// the smaller index on ties. Returns their number.
size_t topMass(const float *mass, size_t count, size_t k, uint32_t *out);

/// layer_ahead: the pages of the blocks in the group after `group`; none after the
/// last. Returns their number.
size_t layerAhead(const PageNumbering &numbering, const uint32_t *blocks, size_t count, uint32_t group, uint32_t *out);

/// Windows for the sequences of a batch, in proportion to the pages that remain for
/// them: window_i = clamp(round(T * remaining_i / sum of remaining), 1, `most`),
/// where T = min(`window` * `count`, `available`), and `available` is the number of
/// free slots without the reserve. Their sum is at most T: what rounding and the
/// lower bound add is taken back, from the largest windows first, and windows
/// below 1 where T is less than the number of sequences. A sequence with nothing
/// remaining gets 0. Returns the sum.
uint64_t batchWindows(const uint32_t *remaining, size_t count, uint32_t window, uint32_t most, uint64_t available, uint32_t *out);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_PREFETCH_H
