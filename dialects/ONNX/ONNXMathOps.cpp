// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: arithmetic, activations and products.

#include "dialects/ONNX/ONNXMathOps.h"
#include "dialects/ONNX/OperandChecks.h"

using namespace mlir;
using namespace quire::onnx;

LogicalResult GeluOp::verify() { return checkOneOf(*this, getApproximate(), {"none", "tanh"}, "approximate"); }

LogicalResult MatMulOp::verify() {
  RankedTensorType a = rankedType(getA()), b = rankedType(getB());
  if (!a || !b)
    return success();
  if (a.getRank() == 0 || b.getRank() == 0)
    return emitOpError("expected operands of rank 1 or more");
  int64_t inner = a.getShape().back(), other = b.getDimSize(b.getRank() == 1 ? 0 : b.getRank() - 2);
  if (ShapedType::isStatic(inner) && ShapedType::isStatic(other) && inner != other)
    return emitOpError() << "expected equal inner extents, but got " << inner << " and " << other;
  return success();
}

void ONNXDialect::addMathOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXMathOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXMathOps.cpp.inc"
