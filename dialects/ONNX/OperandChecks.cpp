// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks that verifiers of several operators share.

#include "dialects/ONNX/OperandChecks.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

LogicalResult quire::onnx::checkAxis(Operation *op, Value value, int64_t axis, int64_t extra) {
  RankedTensorType type = rankedType(value);
  if (!type)
    return success();
  int64_t rank = type.getRank();
  if (axis >= -rank - extra && axis < rank + extra)
    return success();
  return op->emitOpError() << "expected an axis within rank " << rank << ", but got " << axis;
}

LogicalResult quire::onnx::checkPair(Operation *op, Value a, Value b, StringRef what) {
  if (isPresent(a) == isPresent(b))
    return success();
  return op->emitOpError() << "expected " << what << " both or neither";
}

LogicalResult quire::onnx::checkHeads(Operation *op, int64_t heads, int64_t kvHeads) {
  if (heads <= 0 || kvHeads <= 0)
    return op->emitOpError() << "expected positive head counts, but got " << heads << " and " << kvHeads;
  if (heads % kvHeads != 0)
    return op->emitOpError() << "expected query heads to be a multiple of key-value heads, but got " << heads << " and "
                             << kvHeads;
  return success();
}

LogicalResult quire::onnx::checkRank(Operation *op, Value value, ArrayRef<int64_t> ranks, StringRef what) {
  RankedTensorType type = rankedType(value);
  if (!type || llvm::is_contained(ranks, type.getRank()))
    return success();
  InFlightDiagnostic diag = op->emitOpError() << "expected " << what << " of rank ";
  llvm::interleave(ranks, [&](int64_t rank) { diag << rank; }, [&] { diag << " or "; });
  return diag << ", but got " << type;
}

LogicalResult quire::onnx::checkOneOf(Operation *op, StringRef value, ArrayRef<StringRef> spellings, StringRef what) {
  if (llvm::is_contained(spellings, value))
    return success();
  return op->emitOpError() << "expected " << what << " to be one of " << llvm::join(spellings, ", ") << ", but got '"
                           << value << "'";
}
