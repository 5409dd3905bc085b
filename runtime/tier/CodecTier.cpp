// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Encodes into memory of its own, from which the inner tier stores.
#include "tier/CodecTier.h"

#include "compress/StoredRows.h"
#include "model/ModelInfo.h"

#include <algorithm>
#include <cmath>

namespace quire::runtime {

Status CodecTier::slotBytes(Codec codec, const quire_model_info &info, const PageGeometry &geometry, uint64_t &out) {
  uint64_t largest = 0, bytes = 0;
  for (int64_t layer = 0; layer < info.layer_count; ++layer) {
    if (elementBits(info.layers[layer].element) <= 8)
      return failure(QUIRE_INVALID_ARGUMENT, "slow tier: codec %s takes elements f32, f16 and bf16, but layer %lld has %s already",
                     codecName(codec), static_cast<long long>(layer), elementName(info.layers[layer].element));
    if (layer % geometry.layersPerPage == 0)
      bytes = 0;
    bytes += static_cast<uint64_t>(encodedBytes(codec, info.layers[layer], info.block_tokens));
    largest = std::max(largest, bytes);
  }
  out = (largest + 63) & ~uint64_t(63);
  return success();
}

CodecTier::CodecTier(std::unique_ptr<Tier> inner, Codec codec, const quire_model_info &info, const PageGeometry &geometry)
    : Tier(inner->name(), inner->slots().members(), geometry.pageBytes), inner_(std::move(inner)), codec_(codec),
      layers_(info.layers, info.layers + info.layer_count), starts_(geometry.layerStart),
      layersPerPage_(geometry.layersPerPage), blockTokens_(geometry.blockTokens), staging_(batch * inner_->pageBytes()),
      inside_(batch), decoded_(geometry.pageBytes) {
  list_.reserve(batch);
  int64_t widest = 0;
  for (const quire_model_layer &layer : layers_)
    widest = std::max({widest, layer.key_dim, layer.value_dim});
  numbers_.resize(static_cast<size_t>(widest));
  changed_.resize(static_cast<size_t>(widest));
}

PageLayers CodecTier::layersOf(uint32_t group) const {
  size_t first = size_t(group) * layersPerPage_;
  size_t count = std::min<size_t>(layersPerPage_, layers_.size() - first);
  return {layers_.data() + first, starts_.data() + first, static_cast<int64_t>(count), blockTokens_};
}

void CodecTier::run(Transfer *const *transfers, size_t count) {
  for (size_t at = 0; at < count; at += batch)
    runSome(transfers + at, std::min(batch, count - at));
}

void CodecTier::runSome(Transfer *const *transfers, size_t count) {
  list_.clear();
  for (size_t i = 0; i < count; ++i) {
    Transfer &outer = *transfers[i];
    outer.status = outer.kind == Transfer::Kind::Store ? encodePage(outer, staging(i)) : success();
    if (!outer.status.ok())
      continue;
    inside_[i] = outer;
    inside_[i].page = outer.kind == Transfer::Kind::Erase ? nullptr : staging(i);
    list_.push_back(&inside_[i]);
  }
  inner_->run(list_.data(), list_.size());
  for (size_t i = 0; i < count; ++i) {
    Transfer &outer = *transfers[i];
    if (!outer.status.ok())
      continue;
    outer.status = std::move(inside_[i].status);
    if (outer.kind == Transfer::Kind::Load && outer.status.ok())
      decode(codec_, layersOf(outer.group), staging(i), outer.page);
  }
}

Status CodecTier::encodePage(const Transfer &transfer, char *out) {
  PageLayers layers = layersOf(transfer.group);
  EncodeResult result = encode(codec_, layers, transfer.page, transfer.tokens, out);
  if (result != EncodeResult::Encoded)
    return failure(QUIRE_INVALID_ARGUMENT, "codec %s does not take a page: %s", codecName(codec_), encodeResultName(result));
  std::fill(out + encodedBytes(codec_, layers), out + inner_->pageBytes(), char(0));
  if (stores_++ % sampleEvery == 0)
    sample(transfer, out);
  return success();
}

/// Compares what is stored of a page with what it will come back as.
void CodecTier::sample(const Transfer &transfer, const char *encoded) {
  PageLayers page = layersOf(transfer.group);
  decode(codec_, page, encoded, decoded_.data());
  double difference = 0, norm = 0;
  for (int64_t l = 0; l < page.count; ++l)
    for (bool value : {false, true})
      for (int64_t head = 0; head < page.layers[l].kv_heads; ++head)
        for (int64_t token = 0; token < transfer.tokens; ++token) {
          StoredRow row{&page.layers[l], blockTokens_, value, head, token};
          loadRow(row, transfer.page + page.starts[l], numbers_.data());
          loadRow(row, decoded_.data() + page.starts[l], changed_.data());
          for (size_t i = 0; i < static_cast<size_t>(row.features()); ++i) {
            double d = double(changed_[i]) - double(numbers_[i]);
            difference += d * d;
            norm += double(numbers_[i]) * double(numbers_[i]);
          }
        }
  difference_.store(difference_.load(std::memory_order_relaxed) + difference, std::memory_order_relaxed);
  norm_.store(norm_.load(std::memory_order_relaxed) + norm, std::memory_order_relaxed);
  samples_.fetch_add(1, std::memory_order_relaxed);
}

CodecError CodecTier::codecError() const {
  double norm = norm_.load(std::memory_order_relaxed);
  double difference = difference_.load(std::memory_order_relaxed);
  return {samples_.load(std::memory_order_relaxed), norm > 0 ? std::sqrt(difference / norm) : 0};
}

} // namespace quire::runtime
