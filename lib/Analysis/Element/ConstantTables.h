// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Constant arrays and weights as tables.

#ifndef QUIRE_ANALYSIS_ELEMENT_CONSTANTTABLES_H
#define QUIRE_ANALYSIS_ELEMENT_CONSTANTTABLES_H

#include "lib/Analysis/Element/Expr.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace quire {

ElementType elementTypeOf(mlir::Type type);

/// Values of an attribute, or nothing if they are not plain numbers.
std::optional<ConstantTable> tableOf(mlir::ElementsAttr attr);

/// Values of row-major, little-endian bytes, as ONNX stores raw data.
std::optional<ConstantTable> tableOf(mlir::RankedTensorType type,
                                     llvm::ArrayRef<char> bytes);

} // namespace quire

#endif // QUIRE_ANALYSIS_ELEMENT_CONSTANTTABLES_H
