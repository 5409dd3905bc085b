// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks on what a model says of itself, and sizes that follow from it.
#ifndef QUIRE_RUNTIME_MODEL_MODELINFO_H
#define QUIRE_RUNTIME_MODEL_MODELINFO_H

#include "core/Status.h"

#include <string_view>

namespace quire::runtime {

/// Every number in range, layers laid out inside their blocks, no overflow in
/// the sizes derived from them.
Status checkModelInfo(const quire_model_info &info);

/// Bytes of one block over all layers.
int64_t blockBytesOf(const quire_model_info &info);

/// The first layer whose attention takes the place of a key for its position; -1: no layer does.
int64_t layerOfPositions(const quire_model_layer *layers, int64_t count);

/// Bits of one element, or 0 for an unknown one.
int64_t elementBits(int64_t element);

/// Elements are codes, with scales and zeros beside them.
bool isQuantized(int64_t element);

/// Bytes that the elements of a row of one head take.
int64_t storedBytes(int64_t element, int64_t features);

/// Groups of a row of codes that have a scale and a zero of their own.
inline int64_t codeGroups(int64_t features) { return (features + QUIRE_CODE_GROUP - 1) / QUIRE_CODE_GROUP; }

/// Bytes from the start of a block to the scales of K or, with `value`, of V; for codes.
int64_t scalesOffset(const quire_model_layer &layer, int64_t blockTokens, bool value);

/// Bytes that K or V of one token take, scales included, padding not.
int64_t rowBytes(const quire_model_layer &layer, bool value);

/// "f32", "f16", "bf16", "i8", "i4", "fp8_e4m3", "fp8_e5m2", or null.
const char *elementName(int64_t element);
/// False: no element type has that name.
bool parseElement(std::string_view name, int64_t &out);

/// Scratch bytes of a step, a multiple of 64. The numbers must be in the range
/// that checkModelInfo allows.
int64_t scratchBytes(const quire_model_info &info, int64_t tokens, int64_t selected);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_MODEL_MODELINFO_H
