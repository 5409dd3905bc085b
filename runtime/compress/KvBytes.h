// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many bytes a KV cache takes: the one formula that reports use.
#ifndef QUIRE_RUNTIME_COMPRESS_KVBYTES_H
#define QUIRE_RUNTIME_COMPRESS_KVBYTES_H

#include "compress/Codec.h"

namespace quire::runtime {

struct KvShape {
  int64_t layers = 0;
  int64_t kvHeads = 0;
  int64_t headDim = 0;
  double bytesPerElement = 2; // 4 for f32, 2 for f16 and bf16; see bytesPerElement() for codecs
};

/// bytes = 2 * seq * layers * kv_heads * head_dim * bytes_per_element, where 2 stands
/// for K and V.
double kvBytes(const KvShape &shape, int64_t tokens);

/// The same sum where layers and the widths of K and V differ: no padding, no unused
/// slots.
int64_t kvBytes(const quire_model_layer *layers, int64_t layerCount, int64_t tokens);

/// With both: whole blocks of `blockTokens`, each in the bytes that `codec` makes of it.
int64_t pagedKvBytes(const quire_model_layer *layers, int64_t layerCount, int64_t blockTokens, int64_t tokens,
                     Codec codec = Codec::None);

/// Encoded bytes of a whole segment by its values. With 128 channels: int8_g128
/// 132/128, int4_g128 68/128, fp8 1; of f16, sparse by bitmap 0.375, by index 0.296875.
double bytesPerElement(Codec codec, const quire_model_layer &layer, int64_t blockTokens);

/// Bytes saved of a contiguous cache in f16 whose pages are used to `used` of it and
/// encoded in `bytesPerElement`: 1 - used * bytesPerElement / 2.
double savedShare(double used, double bytesPerElement);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_KVBYTES_H
