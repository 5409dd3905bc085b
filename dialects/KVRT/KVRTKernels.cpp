// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verification of kernels: shapes against the state, and append before attend.
#include "dialects/KVRT/KVRT.h"

using namespace mlir;
using namespace quire::kvrt;

static bool isFloat(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

// `value` has the shape [?, heads, features]; 0 heads: any.
static LogicalResult verifyRows(Operation *op, StringRef name, Value value, int64_t heads, int64_t features) {
  auto type = cast<ShapedType>(value.getType());
  if (!isFloat(type.getElementType()))
    return op->emitOpError("expected ") << name << " of f32, f16 or bf16, but got " << type.getElementType();
  if (type.getRank() != 3 || type.isDynamicDim(1) || type.isDynamicDim(2))
    return op->emitOpError("expected ") << name << " of shape [rows, heads, features], but got " << type;
  if (heads && type.getDimSize(1) != heads)
    return op->emitOpError("expected ") << name << " with " << heads << " heads, but got " << type.getDimSize(1);
  if (type.getDimSize(2) != features)
    return op->emitOpError("expected ") << name << " with " << features << " features, but got " << type.getDimSize(2);
  return success();
}

// A kernel works on tensors only or on memrefs only; a tensor output is a result.
static LogicalResult verifyDestination(Operation *op, Value output) {
  bool tensors = isa<RankedTensorType>(output.getType());
  for (Type type : op->getOperandTypes())
    if (isa<ShapedType>(type) && isa<RankedTensorType>(type) != tensors)
      return op->emitOpError("expected tensors only or memrefs only");
  if (op->getNumResults() != (tensors ? 1u : 0u))
    return op->emitOpError("expected ") << (tensors ? "one result" : "no result");
  if (tensors && op->getResult(0).getType() != output.getType())
    return op->emitOpError("expected a result of type ") << output.getType();
  return success();
}

LogicalResult AppendOp::verify() {
  StateType state = getState().getType();
  if (isa<RankedTensorType>(getKey().getType()) != isa<RankedTensorType>(getValue().getType()))
    return emitOpError("expected tensors only or memrefs only");
  if (failed(verifyRows(*this, "key", getKey(), state.getHeads(), state.getKey())) ||
      failed(verifyRows(*this, "value", getValue(), state.getHeads(), state.getValue())))
    return failure();
  for (Operation *user : getState().getUsers())
    if (isa<AttendOp>(user) && user->getBlock() == (*this)->getBlock() && user->isBeforeInBlock(*this)) {
      InFlightDiagnostic diagnostic = emitOpError("expected every attend of the state after its append");
      diagnostic.attachNote(user->getLoc()) << "attended here";
      return diagnostic;
    }
  return success();
}

LogicalResult AttendOp::verify() {
  StateType state = getState().getType();
  if (failed(verifyRows(*this, "query", getQuery(), 0, state.getKey())))
    return failure();
  int64_t heads = cast<ShapedType>(getQuery().getType()).getDimSize(1);
  if (failed(verifyRows(*this, "output", getOutput(), heads, state.getValue())))
    return failure();
  if (heads % state.getHeads() != 0)
    return emitOpError("expected a multiple of ") << state.getHeads() << " query heads, but got " << heads;
  if (auto slopes = getAlibiSlopes(); slopes && static_cast<int64_t>(slopes->size()) != heads)
    return emitOpError("expected ") << heads << " slopes, but got " << slopes->size();
  if (Value sinks = getSinks()) {
    auto type = cast<ShapedType>(sinks.getType());
    if (type.getRank() != 1 || type.getDimSize(0) != heads || !isFloat(type.getElementType()))
      return emitOpError("expected ") << heads << " sinks, but got " << type;
  }
  if (Value parts = getParts()) {
    auto type = cast<MemRefType>(parts.getType());
    int64_t group = heads / state.getHeads(), floats = state.getValue() + 2;
    if (!type.hasStaticShape() || type.getDimSize(1) != group || type.getDimSize(2) != floats)
      return emitOpError("expected parts of shape [places, ") << group << ", " << floats << "], but got " << type;
  }
  return verifyDestination(*this, getOutput());
}

LogicalResult ProductOp::verify() {
  auto input = cast<ShapedType>(getInput().getType()), weight = cast<ShapedType>(getWeight().getType());
  auto output = cast<ShapedType>(getOutput().getType());
  for (ShapedType type : {input, weight, output})
    if (!isFloat(type.getElementType()))
      return emitOpError("expected elements f32, f16 or bf16, but got ") << type;
  if (input.getRank() != 2 || output.getRank() != 2 || input.isDynamicDim(1) || output.isDynamicDim(1))
    return emitOpError("expected input [rows, K] and output [rows, N], but got ") << input << " and " << output;
  int64_t n = output.getDimSize(1);
  if (weight.getRank() != 3 || !weight.hasStaticShape())
    return emitOpError("expected a weight of shape [panels, K, nr], but got ") << weight;
  int64_t nr = weight.getDimSize(2);
  if (weight.getDimSize(0) != (n + nr - 1) / nr || weight.getDimSize(1) != input.getDimSize(1))
    return emitOpError("expected panels for ") << input.getDimSize(1) << " x " << n << ", but got " << weight;
  if (Value bias = getBias()) {
    auto type = cast<ShapedType>(bias.getType());
    if (type.getRank() != 1 || type.getDimSize(0) != n || !isFloat(type.getElementType()))
      return emitOpError("expected a bias of ") << n << " elements, but got " << type;
  }
  return verifyDestination(*this, getOutput());
}
