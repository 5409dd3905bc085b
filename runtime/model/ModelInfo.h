// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks on what a model says of itself, and sizes that follow from it.
#ifndef QUIRE_RUNTIME_MODEL_MODELINFO_H
#define QUIRE_RUNTIME_MODEL_MODELINFO_H

#include "core/Status.h"

namespace quire::runtime {

/// Every number in range, layers laid out inside their blocks, no overflow in
/// the sizes derived from them.
Status checkModelInfo(const quire_model_info &info);

/// Bytes of one block over all layers.
int64_t blockBytesOf(const quire_model_info &info);

/// The first layer whose attention takes the place of a key for its position; -1: no layer does.
int64_t layerOfPositions(const quire_model_layer *layers, int64_t count);

/// Bytes of one element, or 0 for an unknown one.
int64_t elementBytes(int64_t element);

/// Groups of a row of elements I8 that have a scale and a zero of their own.
inline int64_t codeGroups(int64_t features) { return (features + QUIRE_CODE_GROUP - 1) / QUIRE_CODE_GROUP; }

/// Bytes from the start of a block to the scales of K or, with `value`, of V; for elements I8.
int64_t scalesOffset(const quire_model_layer &layer, int64_t blockTokens, bool value);

/// Bytes that K or V of one token take, scales included, padding not.
int64_t rowBytes(const quire_model_layer &layer, bool value);

/// "f32", "f16", "bf16", "i8", or null.
const char *elementName(int64_t element);

/// Scratch bytes of a step, a multiple of 64. The numbers must be in the range
/// that checkModelInfo allows.
int64_t scratchBytes(const quire_model_info &info, int64_t tokens, int64_t selected);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_MODEL_MODELINFO_H
