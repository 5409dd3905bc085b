// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: quantisation.

#include "dialects/ONNX/ONNXQuantOps.h"

using namespace mlir;
using namespace quire::onnx;

LogicalResult DequantizeLinearOp::verify() {
  if (getBlockSize() < 0)
    return emitOpError() << "expected a block_size of zero or more, but got " << getBlockSize();
  return success();
}

LogicalResult QuantizeLinearOp::verify() {
  if (getBlockSize() < 0)
    return emitOpError() << "expected a block_size of zero or more, but got " << getBlockSize();
  return success();
}

LogicalResult MSMatMulNBitsOp::verify() {
  int64_t bits = getBits(), block = getBlockSize();
  if (bits != 2 && bits != 4 && bits != 8)
    return emitOpError() << "expected 2, 4 or 8 bits, but got " << bits;
  if (block < 16 || (block & (block - 1)) != 0)
    return emitOpError() << "expected a block_size that is a power of two from 16, but got " << block;
  if (getK() <= 0 || getN() <= 0)
    return emitOpError() << "expected positive K and N, but got " << getK() << " and " << getN();
  return success();
}

void ONNXDialect::addQuantOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXQuantOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXQuantOps.cpp.inc"
