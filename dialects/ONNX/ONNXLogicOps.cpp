// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: comparison, logic and conversion.

#include "dialects/ONNX/ONNXLogicOps.h"
#include "dialects/ONNX/OperandChecks.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace quire::onnx;

LogicalResult CastOp::verify() {
  Type element = getElementTypeOrSelf(getOutput().getType());
  if (element != getTo())
    return emitOpError() << "expected a result with elements of type " << getTo() << ", but got " << element;
  return success();
}

LogicalResult BitShiftOp::verify() { return checkOneOf(*this, getDirection(), {"LEFT", "RIGHT"}, "direction"); }

void ONNXDialect::addLogicOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXLogicOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXLogicOps.cpp.inc"
