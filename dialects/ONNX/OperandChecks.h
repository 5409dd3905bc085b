// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks that verifiers of several operators share: axes within a rank, presence of operands, head counts.

#ifndef QUIRE_DIALECTS_ONNX_OPERANDCHECKS_H
#define QUIRE_DIALECTS_ONNX_OPERANDCHECKS_H

#include "dialects/ONNX/ONNXDialect.h"

namespace quire::onnx {

/// True unless `value` is the result of `onnx.none`, or any other value of type `none`.
inline bool isPresent(mlir::Value value) { return !mlir::isa<mlir::NoneType>(value.getType()); }

/// The type of `value` if it is a tensor of known rank, else null.
inline mlir::RankedTensorType rankedType(mlir::Value value) {
  return mlir::dyn_cast<mlir::RankedTensorType>(value.getType());
}

/// `axis` lies in [-rank, rank - 1 + extra] of `value`, where its rank is known.
llvm::LogicalResult checkAxis(mlir::Operation *op, mlir::Value value, int64_t axis, int64_t extra = 0);

/// Both of `a` and `b` are present, or neither.
llvm::LogicalResult checkPair(mlir::Operation *op, mlir::Value a, mlir::Value b, llvm::StringRef what);

/// Head counts are positive, and query heads a multiple of key-value heads.
llvm::LogicalResult checkHeads(mlir::Operation *op, int64_t heads, int64_t kvHeads);

/// `value` has one of the ranks, where its rank is known.
llvm::LogicalResult checkRank(mlir::Operation *op, mlir::Value value, llvm::ArrayRef<int64_t> ranks,
                              llvm::StringRef what);

/// `value` is one of the spellings.
llvm::LogicalResult checkOneOf(mlir::Operation *op, llvm::StringRef value, llvm::ArrayRef<llvm::StringRef> spellings,
                               llvm::StringRef what);

} // namespace quire::onnx

#endif // QUIRE_DIALECTS_ONNX_OPERANDCHECKS_H
