// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: reductions and pooling.

#include "dialects/ONNX/ONNXReduceOps.h"
#include "dialects/ONNX/OperandChecks.h"

using namespace mlir;
using namespace quire::onnx;

LogicalResult ArgMaxOp::verify() { return checkAxis(*this, getData(), getAxis()); }

LogicalResult ArgMinOp::verify() { return checkAxis(*this, getData(), getAxis()); }

LogicalResult TopKOp::verify() { return checkAxis(*this, getX(), getAxis()); }

void ONNXDialect::addReduceOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXReduceOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXReduceOps.cpp.inc"
