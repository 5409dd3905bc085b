// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: softmax and normalisation.

#include "dialects/ONNX/ONNXNormOps.h"
#include "dialects/ONNX/OperandChecks.h"

using namespace mlir;
using namespace quire::onnx;

LogicalResult SoftmaxOp::verify() { return checkAxis(*this, getInput(), getAxis()); }

LogicalResult LogSoftmaxOp::verify() { return checkAxis(*this, getInput(), getAxis()); }

LogicalResult LayerNormalizationOp::verify() { return checkAxis(*this, getX(), getAxis()); }

LogicalResult RMSNormalizationOp::verify() { return checkAxis(*this, getX(), getAxis()); }

LogicalResult SimplifiedLayerNormalizationOp::verify() { return checkAxis(*this, getX(), getAxis()); }

void ONNXDialect::addNormOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXNormOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXNormOps.cpp.inc"
