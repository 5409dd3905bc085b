// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Softmax over blocks from sums and maxima of each.
#include "exec/Observation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace quire::runtime {

Status Observation::create(const quire_model_info &info, int64_t sequences, int64_t blocks) {
  info_ = &info;
  ended_.assign(static_cast<size_t>(info.layer_count), 0);
  int64_t heads = 0, cells, left, shares;
  for (int64_t layer = 0; layer < info.layer_count; ++layer)
    heads = std::max(heads, info.layers[layer].query_heads);
  if (__builtin_mul_overflow(sequences, blocks, &cells) || __builtin_mul_overflow(cells, std::max<int64_t>(heads, 1) * 8, &left) ||
      __builtin_mul_overflow(cells, info.layer_count * 4, &shares))
    return failure(QUIRE_OUT_OF_MEMORY, "room for the attention of %lld sequences is too large", static_cast<long long>(sequences));
  cells_ = cells;
  QUIRE_TRY(left_.map(static_cast<size_t>(left), MappedMemory::Pages::Small));
  return shares_.map(static_cast<size_t>(shares), MappedMemory::Pages::Small);
}

Status Observation::beginStep(int64_t sequences, int64_t stride) {
  if (sequences * stride > cells_)
    return failure(QUIRE_INVALID_ARGUMENT, "table_stride: %lld entries of %lld sequences are more than the pool has", static_cast<long long>(stride),
                   static_cast<long long>(sequences));
  sequences_ = sequences;
  stride_ = stride;
  std::fill(ended_.begin(), ended_.end(), 0);
  return success();
}

float *Observation::begin(int64_t layer) {
  int64_t heads = info_->layers[layer].query_heads;
  if (heads == 0)
    return nullptr;
  float *left = reinterpret_cast<float *>(left_.data());
  std::fill_n(left, sequences_ * heads * stride_ * 2, 0.0f);
  return left;
}

/// Adds the shares of one head: softmax of maxima weighted by sums.
static void addHead(const float *left, int64_t blocks, float weight, float *shares) {
  float most = -std::numeric_limits<float>::infinity();
  double sum = 0;
  for (int64_t i = 0; i < blocks; ++i)
    if (left[2 * i] > 0)
      most = std::max(most, left[2 * i + 1]);
  for (int64_t i = 0; i < blocks; ++i)
    if (left[2 * i] > 0)
      sum += static_cast<double>(left[2 * i]) * std::exp(static_cast<double>(left[2 * i + 1] - most));
  for (int64_t i = 0; i < blocks; ++i)
    if (left[2 * i] > 0)
      shares[i] += weight * static_cast<float>(left[2 * i] * std::exp(static_cast<double>(left[2 * i + 1] - most)) / sum);
}

const float *Observation::end(int64_t layer) {
  int64_t heads = info_->layers[layer].query_heads, cells = sequences_ * stride_;
  if (heads == 0)
    return nullptr;
  const float *left = reinterpret_cast<const float *>(left_.data());
  float *shares = reinterpret_cast<float *>(shares_.data()) + layer * cells;
  std::fill_n(shares, cells, 0.0f);
  for (int64_t s = 0; s < sequences_; ++s)
    for (int64_t head = 0; head < heads; ++head)
      addHead(left + (s * heads + head) * stride_ * 2, stride_, 1.0f / static_cast<float>(heads), shares + s * stride_);
  ended_[static_cast<size_t>(layer)] = 1;
  return shares;
}

const float *Observation::shares(int64_t layer) const {
  return ended_[static_cast<size_t>(layer)] ? reinterpret_cast<const float *>(shares_.data()) + layer * sequences_ * stride_ : nullptr;
}

} // namespace quire::runtime
