// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Choice of survivors, and copies of single positions between blocks.
#include "compress/Prune.h"

#include "compress/StoredRows.h"
#include "model/ModelInfo.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace quire::runtime {
namespace {

int64_t positionOf(const PruneRequest &request, int64_t slot) {
  return request.positions ? request.positions[slot] : request.firstPosition + slot;
}

bool isProtected(const PruneRequest &request, int64_t slot) {
  int64_t position = positionOf(request, slot);
  for (int64_t i = 0; i < request.keepCount; ++i)
    if (position >= request.keep[i].begin && position < request.keep[i].end)
      return true;
  return false;
}

Status check(const PruneRequest &request) {
  if (!(request.ratio >= 0 && request.ratio <= 1))
    return failure(QUIRE_INVALID_ARGUMENT, "ratio: expected 0 to 1, but got %g", request.ratio);
  if (request.blocks < 0 || request.blockTokens < 1 || request.blocks > INT32_MAX / request.blockTokens)
    return failure(QUIRE_INVALID_ARGUMENT, "expected blocks of at least one token, and at most %d tokens", INT32_MAX);
  if (request.positions)
    for (int64_t slot = 1; slot < request.blocks * request.blockTokens; ++slot)
      if (request.positions[slot] <= request.positions[slot - 1])
        return failure(QUIRE_INVALID_ARGUMENT, "expected ascending positions, but got %lld after %lld",
                       static_cast<long long>(request.positions[slot]),
                       static_cast<long long>(request.positions[slot - 1]));
  return success();
}

template <typename Bits>
void moveElements(const Bits *from, Bits *to, int64_t count, int64_t stride) {
  for (int64_t i = 0; i < count; ++i)
    to[i * stride] = from[i * stride];
}

/// `lanes` is 1 for V. Blocks are at least as aligned as their elements.
template <typename Bits>
void moveSegment(const char *from, int64_t fromToken, char *to, int64_t toToken, int64_t channels, int64_t lanes) {
  auto place = [=](int64_t token) { return token / lanes * channels * lanes + token % lanes; };
  moveElements(reinterpret_cast<const Bits *>(from) + place(fromToken), reinterpret_cast<Bits *>(to) + place(toToken),
               channels, lanes);
}

template <typename Bits>
void moveToken(const quire_model_layer &layer, int64_t blockTokens, const char *from, int64_t fromToken, char *to,
               int64_t toToken) {
  // Elements I4 are moved two by two: a byte belongs to one token.
  int64_t bytes = static_cast<int64_t>(sizeof(Bits));
  int64_t keyBytes = storedBytes(layer.element, layer.key_dim), valueBytes = storedBytes(layer.element, layer.value_dim);
  for (int64_t head = 0; head < layer.kv_heads; ++head) {
    int64_t key = head * blockTokens * keyBytes;
    moveSegment<Bits>(from + key, fromToken, to + key, toToken, keyBytes / bytes, layer.lanes);
    int64_t value = layer.value_offset + head * blockTokens * valueBytes;
    moveSegment<Bits>(from + value, fromToken, to + value, toToken, valueBytes / bytes, 1);
  }
}

void moveScales(const quire_model_layer &layer, int64_t blockTokens, const char *from, int64_t fromToken, char *to,
                int64_t toToken) {
  int64_t zero = blockTokens * static_cast<int64_t>(sizeof(float));
  for (bool value : {false, true})
    for (int64_t head = 0; head < layer.kv_heads; ++head) {
      StoredRow source{&layer, blockTokens, value, head, fromToken}, target{&layer, blockTokens, value, head, toToken};
      for (int64_t group = 0; group < codeGroups(source.features()); ++group)
        for (int64_t at : {int64_t(0), zero})
          std::memcpy(to + scaleOffset(target, group) + at, from + scaleOffset(source, group) + at, sizeof(float));
    }
}

} // namespace

int64_t keptTokens(int64_t count, double ratio) {
  // 1 - ratio is not exact: 0.7 of 10 is 3 tokens, not 4.
  double kept = (1.0 - ratio) * static_cast<double>(count);
  double near = std::nearbyint(kept);
  return static_cast<int64_t>(std::fabs(kept - near) <= 1e-9 * static_cast<double>(count) ? near : std::ceil(kept));
}

void PrunePlan::reserve(int64_t blocks, int64_t blockTokens) {
  size_t tokens = static_cast<size_t>(blocks * blockTokens);
  moves.reserve(tokens);
  positions.reserve(tokens);
  freed.reserve(static_cast<size_t>(blocks));
  order.reserve(tokens);
}

Status planPrune(const PruneRequest &request, PrunePlan &plan) {
  QUIRE_TRY(check(request));
  int64_t total = request.blocks * request.blockTokens;
  plan.moves.clear();
  plan.positions.clear();
  plan.freed.clear();
  plan.order.clear();
  for (int64_t slot = 0; slot < total; ++slot)
    plan.order.push_back(static_cast<int32_t>(slot));

  // Protected slots first, then by score.
  auto middle =
      std::partition(plan.order.begin(), plan.order.end(), [&](int32_t slot) { return isProtected(request, slot); });
  int64_t guarded = middle - plan.order.begin();
  int64_t kept = std::max(keptTokens(total, request.ratio), guarded);
  if (request.wholeBlocks)
    kept = (kept + request.blockTokens - 1) / request.blockTokens * request.blockTokens;
  auto end = plan.order.begin() + kept;
  if (end != plan.order.end() && end != middle)
    std::nth_element(middle, end, plan.order.end(), [&](int32_t a, int32_t b) {
      float left = request.scores[a], right = request.scores[b];
      if (std::isnan(left) || std::isnan(right))
        return std::isnan(left) != std::isnan(right) ? std::isnan(right) : a < b;
      return left != right ? left > right : a < b;
    });
  std::sort(plan.order.begin(), end);

  for (int64_t i = 0; i < kept; ++i) {
    int64_t slot = plan.order[i];
    plan.positions.push_back(positionOf(request, slot));
    if (slot != i)
      plan.moves.push_back(
          {{static_cast<int32_t>(slot / request.blockTokens), static_cast<int32_t>(slot % request.blockTokens)},
           {static_cast<int32_t>(i / request.blockTokens), static_cast<int32_t>(i % request.blockTokens)}});
  }
  int64_t blocks = (kept + request.blockTokens - 1) / request.blockTokens;
  for (int64_t block = blocks; block < request.blocks; ++block)
    plan.freed.push_back(static_cast<int32_t>(block));
  plan.lastTokens = blocks == 0 ? 0 : kept - (blocks - 1) * request.blockTokens;
  return success();
}

std::vector<int64_t> prune(const std::vector<float> &scores, double ratio) {
  PruneRequest request;
  request.blocks = scores.empty() ? 0 : 1;
  request.blockTokens = std::max<int64_t>(1, static_cast<int64_t>(scores.size()));
  request.scores = scores.data();
  request.ratio = std::clamp(ratio, 0.0, 1.0);
  PrunePlan plan;
  plan.reserve(request.blocks, request.blockTokens);
  Status status = planPrune(request, plan);
  return status.ok() ? plan.positions : std::vector<int64_t>();
}

void movePositions(const PageLayers &layers, char *const *pages, const TokenMove *moves, int64_t count) {
  for (int64_t layer = 0; layer < layers.count; ++layer) {
    const quire_model_layer &shape = layers.layers[layer];
    uint64_t start = layers.starts[layer];
    for (int64_t i = 0; i < count; ++i) {
      const char *from = pages[moves[i].from.block] + start;
      char *to = pages[moves[i].to.block] + start;
      int64_t fromToken = moves[i].from.token, toToken = moves[i].to.token;
      switch (elementBits(shape.element)) {
      case 32:
        moveToken<uint32_t>(shape, layers.blockTokens, from, fromToken, to, toToken);
        break;
      case 16:
        moveToken<uint16_t>(shape, layers.blockTokens, from, fromToken, to, toToken);
        break;
      default:
        moveToken<uint8_t>(shape, layers.blockTokens, from, fromToken, to, toToken);
      }
      if (isQuantized(shape.element))
        moveScales(shape, layers.blockTokens, from, fromToken, to, toToken);
    }
  }
}

} // namespace quire::runtime
