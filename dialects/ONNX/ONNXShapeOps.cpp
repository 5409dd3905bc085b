// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: shape, movement and indexing.

#include "dialects/ONNX/ONNXShapeOps.h"
#include "dialects/ONNX/OperandChecks.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace quire::onnx;

LogicalResult GatherOp::verify() { return checkAxis(*this, getData(), getAxis()); }

LogicalResult GatherElementsOp::verify() { return checkAxis(*this, getData(), getAxis()); }

LogicalResult ScatterElementsOp::verify() { return checkAxis(*this, getData(), getAxis()); }

LogicalResult SplitOp::verify() {
  if (getNumResults() == 0)
    return emitOpError("expected at least one result");
  return checkAxis(*this, getInput(), getAxis());
}

LogicalResult SqueezeOp::verify() {
  DenseIntElementsAttr axes;
  if (!isPresent(getAxes()) || !matchPattern(getAxes(), m_Constant(&axes)))
    return success();
  for (const APInt &axis : axes.getValues<APInt>())
    if (failed(checkAxis(*this, getData(), axis.getSExtValue())))
      return failure();
  return success();
}

LogicalResult FlattenOp::verify() {
  // The axis may equal the rank: every axis is then in the first extent.
  RankedTensorType type = rankedType(getInput());
  if (type && getAxis() == type.getRank())
    return success();
  return checkAxis(*this, getInput(), getAxis());
}

LogicalResult TransposeOp::verify() {
  std::optional<ArrayRef<int64_t>> perm = getPerm();
  if (!perm)
    return success();
  SmallVector<bool> seen(perm->size());
  for (int64_t axis : *perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(seen.size()) || seen[axis])
      return emitOpError() << "expected perm to be a permutation, but got " << getPermAttr();
    seen[axis] = true;
  }
  RankedTensorType type = rankedType(getData());
  if (type && type.getRank() != static_cast<int64_t>(perm->size()))
    return emitOpError() << "expected perm of " << type.getRank() << " axes, but got " << getPermAttr();
  return success();
}

LogicalResult ConcatOp::verify() {
  if (getInputs().empty())
    return emitOpError("expected at least one operand");
  for (Value input : getInputs())
    if (failed(checkAxis(*this, input, getAxis())))
      return failure();
  return success();
}

LogicalResult PadOp::verify() {
  return checkOneOf(*this, getMode(), {"constant", "reflect", "edge", "wrap"}, "mode");
}

LogicalResult TensorScatterOp::verify() {
  if (failed(checkOneOf(*this, getMode(), {"linear", "circular"}, "mode")))
    return failure();
  return checkAxis(*this, getPastCache(), getAxis());
}

void ONNXDialect::addShapeOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXShapeOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXShapeOps.cpp.inc"
