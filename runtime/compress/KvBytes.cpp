// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The memory formula, for uniform shapes and for layers as models describe them.
#include "compress/KvBytes.h"

#include "model/ModelInfo.h"

namespace quire::runtime {

double kvBytes(const KvShape &shape, int64_t tokens) {
  return 2.0 * static_cast<double>(tokens) * static_cast<double>(shape.layers) * static_cast<double>(shape.kvHeads) *
         static_cast<double>(shape.headDim) * shape.bytesPerElement;
}

int64_t kvBytes(const quire_model_layer *layers, int64_t layerCount, int64_t tokens) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < layerCount; ++i)
    bytes += rowBytes(layers[i], false) + rowBytes(layers[i], true);
  return bytes * tokens;
}

int64_t pagedKvBytes(const quire_model_layer *layers, int64_t layerCount, int64_t blockTokens, int64_t tokens,
                     Codec codec) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < layerCount; ++i)
    bytes += encodedBytes(codec, layers[i], blockTokens);
  return (tokens + blockTokens - 1) / blockTokens * bytes;
}

double bytesPerElement(Codec codec, const quire_model_layer &layer, int64_t blockTokens) {
  int64_t values = layer.kv_heads * (layer.key_dim + layer.value_dim) * blockTokens;
  return static_cast<double>(encodedBytes(codec, layer, blockTokens)) / static_cast<double>(values);
}

double savedShare(double used, double bytesPerElement) { return 1.0 - used * bytesPerElement / 2.0; }

} // namespace quire::runtime
