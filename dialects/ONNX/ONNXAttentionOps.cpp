// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verifiers and registration of the `onnx` dialect: attention operators.

#include "dialects/ONNX/ONNXAttentionOps.h"
#include "dialects/ONNX/OperandChecks.h"

using namespace mlir;
using namespace quire::onnx;

LogicalResult AttentionOp::verify() {
  if (failed(checkPair(*this, getPastKey(), getPastValue(), "past_key and past_value")) ||
      failed(checkRank(*this, getQ(), {3, 4}, "Q")) || failed(checkRank(*this, getK(), {3, 4}, "K")) ||
      failed(checkRank(*this, getV(), {3, 4}, "V")))
    return failure();
  RankedTensorType type = rankedType(getQ());
  if (type && type.getRank() == 3 && !(getQNumHeads() && getKvNumHeads()))
    return emitOpError("expected q_num_heads and kv_num_heads with operands of rank 3");
  if (getQNumHeads() && getKvNumHeads())
    return checkHeads(*this, *getQNumHeads(), *getKvNumHeads());
  return success();
}

LogicalResult RotaryEmbeddingOp::verify() {
  if (failed(checkRank(*this, getX(), {3, 4}, "X")))
    return failure();
  RankedTensorType type = rankedType(getX());
  if (type && type.getRank() == 3 && getNumHeads().value_or(0) <= 0)
    return emitOpError("expected num_heads with an operand of rank 3");
  return success();
}

LogicalResult LinearAttentionOp::verify() {
  return checkOneOf(*this, getUpdateRule(), {"linear", "gated", "delta", "gated_delta"}, "update_rule");
}

LogicalResult MSLinearAttentionOp::verify() {
  return checkOneOf(*this, getUpdateRule(), {"linear", "gated", "delta", "gated_delta"}, "update_rule");
}

LogicalResult MSAttentionOp::verify() { return checkHeads(*this, getNumHeads(), getNumHeads()); }

LogicalResult MSMultiHeadAttentionOp::verify() {
  if (failed(checkHeads(*this, getNumHeads(), getNumHeads())))
    return failure();
  return checkPair(*this, getPastKey(), getPastValue(), "past_key and past_value");
}

LogicalResult MSGroupQueryAttentionOp::verify() {
  if (failed(checkHeads(*this, getNumHeads(), getKvNumHeads())) ||
      failed(checkPair(*this, getKey(), getValue(), "key and value")) ||
      failed(checkPair(*this, getPastKey(), getPastValue(), "past_key and past_value")))
    return failure();
  return checkPair(*this, getCosCache(), getSinCache(), "cos_cache and sin_cache");
}

LogicalResult MSPagedAttentionOp::verify() {
  if (failed(checkHeads(*this, getNumHeads(), getKvNumHeads())))
    return failure();
  return checkOneOf(*this, getKvCacheLayout(), {"SEPARATE", "LATENT"}, "kv_cache_layout");
}

void ONNXDialect::addAttentionOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/ONNX/ONNXAttentionOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXAttentionOps.cpp.inc"
