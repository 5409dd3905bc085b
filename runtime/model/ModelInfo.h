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

/// Bytes of one element, or 0 for an unknown one.
int64_t elementBytes(int64_t element);

/// "f32", "f16", "bf16", or null.
const char *elementName(int64_t element);

/// Scratch bytes of a step, a multiple of 64. The numbers must be in the range
/// that checkModelInfo allows.
int64_t scratchBytes(const quire_model_info &info, int64_t tokens, int64_t selected);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_MODEL_MODELINFO_H
