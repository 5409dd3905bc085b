// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: sequences and optionals.

#include "dialects/ONNX/ONNXSequenceOps.h"

using namespace mlir;
using namespace quire::onnx;

void ONNXDialect::addSequenceOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXSequenceOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXSequenceOps.cpp.inc"
