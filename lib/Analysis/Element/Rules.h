// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the transfer rules of several families share.

#ifndef QUIRE_ANALYSIS_ELEMENT_RULES_H
#define QUIRE_ANALYSIS_ELEMENT_RULES_H

#include "dialects/ONNX/ONNXOps.h"
#include "lib/Analysis/Element/ConstantTables.h"
#include "lib/Analysis/Element/Interp.h"

namespace quire {

void attachMathRules(mlir::MLIRContext &context);
void attachShapeRules(mlir::MLIRContext &context);
void attachIndexRules(mlir::MLIRContext &context);
void attachNormRules(mlir::MLIRContext &context);
void attachAttentionRules(mlir::MLIRContext &context);
void attachQuantRules(mlir::MLIRContext &context);
void attachControlRules(mlir::MLIRContext &context);

/// An axis attribute in [0, rank), or nothing.
inline std::optional<unsigned> axisIn(int64_t axis, unsigned rank) {
  int64_t a = axis < 0 ? axis + int64_t(rank) : axis;
  if (a < 0 || a >= int64_t(rank))
    return std::nullopt;
  return unsigned(a);
}

/// Element-wise results: `f` maps the operands' elements, broadcast.
mlir::LogicalResult
elementWise(mlir::Operation *op, Interp &in, mlir::ValueRange operands,
            llvm::function_ref<Expr(llvm::ArrayRef<Expr>)> f,
            std::optional<ElementType> type = std::nullopt);

/// Result 0 mixes the given axes of x; other operands are weights.
mlir::LogicalResult mixAxes(mlir::Operation *op, Interp &in,
                            const SymbolicTensor &x,
                            llvm::ArrayRef<unsigned> axes,
                            Expr lastExtent = nullptr);

/// The same elements under new extents with an equal product.
std::optional<SymbolicTensor> reshaped(mlir::Operation *op, Interp &in,
                                       const SymbolicTensor &t,
                                       llvm::ArrayRef<Expr> extents);

} // namespace quire

#endif // QUIRE_ANALYSIS_ELEMENT_RULES_H
