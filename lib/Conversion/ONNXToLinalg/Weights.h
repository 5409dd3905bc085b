// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Entries of weights.bin for initializers, made when a rule first needs them.
#ifndef QUIRE_LIB_CONVERSION_ONNXTOLINALG_WEIGHTS_H
#define QUIRE_LIB_CONVERSION_ONNXTOLINALG_WEIGHTS_H

#include "dialects/ONNX/ONNXControlOps.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"

namespace quire {

/// The panels of a matrix: an initializer [k, n], or [n, k] when `transposed`. The step needs a batch.
mlir::Value packedWeight(RuleContext &context, mlir::FlatSymbolRefAttr initializer, bool transposed, int64_t k, int64_t n, mlir::Type element);

/// The elements of an initializer, row-major.
mlir::Value rawWeight(RuleContext &context, onnx::WeightOp weight);

} // namespace quire

#endif // QUIRE_LIB_CONVERSION_ONNXTOLINALG_WEIGHTS_H
