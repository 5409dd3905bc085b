// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of K and V in a block of any element type, as numbers.
#ifndef QUIRE_RUNTIME_COMPRESS_STOREDROWS_H
#define QUIRE_RUNTIME_COMPRESS_STOREDROWS_H

#include "quire/model.h"

#include <cstdint>

namespace quire::runtime {

/// K or V of one token and one head of a block of a layer that checkModelInfo accepts.
struct StoredRow {
  const quire_model_layer *layer;
  int64_t blockTokens;
  bool value; // V, not K
  int64_t head;
  int64_t token; // in the block

  int64_t features() const { return value ? layer->value_dim : layer->key_dim; }
};

/// Of codes: bytes from the start of the block to the scale of a group of features; its zero lies `blockTokens` floats further.
int64_t scaleOffset(const StoredRow &row, int64_t group);

/// Writes `features` numbers.
void loadRow(const StoredRow &row, const char *block, float *numbers);

/// Rounds as compiled code does: to nearest, ties to even; to NaN what FP8 does not reach; to codes whose zero is the least number of a group and whose
/// scale is a 255th (I8) or a 15th (I4) of its range, both of them f32.
void storeRow(const StoredRow &row, const float *numbers, char *block);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_STOREDROWS_H
