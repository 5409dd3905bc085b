// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: quantisation.

#include "dialects/ONNX/ONNXQuantOps.h"

using namespace mlir;
using namespace quire::onnx;

static LogicalResult checkBlockSize(Operation *op, int64_t size) {
  if (size < 0)
    return op->emitOpError() << "expected a block_size of zero or more, but got " << size;
  return success();
}

LogicalResult DequantizeLinearOp::verify() { return checkBlockSize(*this, getBlockSize()); }

LogicalResult QuantizeLinearOp::verify() { return checkBlockSize(*this, getBlockSize()); }

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
