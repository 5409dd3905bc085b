// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Result types of operators from their operands, as far as that is easy.

#ifndef QUIRE_LIB_IMPORT_TYPEINFERENCE_H
#define QUIRE_LIB_IMPORT_TYPEINFERENCE_H

#include "mlir/IR/Operation.h"

namespace quire::import {

/// Sharpens the result types of an operator of the `onnx` dialect: what follows from the operands wins over what is
/// there, and fills what is unknown. Absent results (`none`) stay.
void inferResultTypes(mlir::Operation *op);

/// The element type of result `index` that follows from operands and attributes; null if none does.
mlir::Type inferElementType(mlir::Operation *op, unsigned index);

/// The shape of result `index`; nullopt if the rank is unknown.
std::optional<llvm::SmallVector<int64_t>> inferShape(mlir::Operation *op, unsigned index);

/// The elements of a constant integer operand.
std::optional<llvm::SmallVector<int64_t>> constantInts(mlir::Value value);

} // namespace quire::import

#endif // QUIRE_LIB_IMPORT_TYPEINFERENCE_H
