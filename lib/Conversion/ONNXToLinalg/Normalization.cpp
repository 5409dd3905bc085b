// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for softmax and normalisation. Statistics are computed in f32.
#include "dialects/ONNX/ONNXNormOps.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"

using namespace mlir;

namespace quire {
namespace {

Value sumUp(OpBuilder &b, Location loc, Value accumulator, Value element) { return arith::AddFOp::create(b, loc, accumulator, element); }

Value sumSquares(OpBuilder &b, Location loc, Value accumulator, Value element) {
  return arith::AddFOp::create(b, loc, accumulator, arith::MulFOp::create(b, loc, element, element));
}

LogicalResult convertSoftmaxOver(RuleContext &context, int64_t axis, bool logarithm, MutableArrayRef<Value> results) {
  Value input = context.op->getOperand(0);
  RankedTensorType type = rankedType(input);
  if (axis < 0)
    axis += type.getRank();
  if (type.isDynamicDim(axis))
    return context.refuse("it normalises over rows");
  if (!isa<FloatType>(type.getElementType()))
    return context.refuse("integer elements");
  Type element = computeType(type.getElementType());
  RankedTensorType wide = withElement(type, element);
  Value max = context.reduce(input, axis, element, -std::numeric_limits<double>::infinity(),
                             [](OpBuilder &b, Location loc, Value accumulator, Value x) { return arith::MaximumFOp::create(b, loc, accumulator, x); });
  Value shifted = context.map({input, max}, wide, [](OpBuilder &b, Location loc, ValueRange v) { return arith::SubFOp::create(b, loc, v[0], v[1]); });
  Value power = context.map(shifted, wide, [](OpBuilder &b, Location loc, ValueRange v) { return math::ExpOp::create(b, loc, v[0]); });
  Value sum = context.reduce(power, axis, element, 0, sumUp);
  results[0] = context.map({logarithm ? shifted : power, sum}, type, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
    if (logarithm)
      return arith::SubFOp::create(b, loc, v[0], math::LogOp::create(b, loc, v[1]));
    return arith::DivFOp::create(b, loc, v[0], v[1]);
  });
  return success();
}

LogicalResult convertSoftmax(onnx::SoftmaxOp op, RuleContext &context, MutableArrayRef<Value> results) {
  return convertSoftmaxOver(context, op.getAxis(), false, results);
}

LogicalResult convertLogSoftmax(onnx::LogSoftmaxOp op, RuleContext &context, MutableArrayRef<Value> results) {
  return convertSoftmaxOver(context, op.getAxis(), true, results);
}

/// What normalisation over the axes from `axis` on gives.
struct Normalized {
  Value result, mean, inverse;
};

/// (x - mean) / sqrt(variance + epsilon) * scale + bias; without `centred` the mean is taken to be 0. `input` may be wider than
/// the result. Null results when the axes are not static.
Normalized normalize(RuleContext &context, Value input, int64_t axis, Value scale, Value bias, double epsilon, bool centred, Type resultElement) {
  RankedTensorType type = rankedType(input);
  if (axis < 0)
    axis += type.getRank();
  SmallVector<int64_t> axes;
  int64_t count = 1;
  for (int64_t i = axis; i < type.getRank(); ++i) {
    if (type.isDynamicDim(i))
      return {};
    axes.push_back(i);
    count *= type.getDimSize(i);
  }
  Type element = computeType(type.getElementType());
  Normalized normalized;
  Value centredInput = input;
  if (centred) {
    Value sum = context.reduce(input, axes, element, 0, sumUp);
    normalized.mean = context.mapExact(sum, rankedType(sum), [&](OpBuilder &b, Location loc, ValueRange v) {
      return arith::DivFOp::create(b, loc, v[0], Emitter::scalar(b, loc, element, static_cast<double>(count)));
    });
    centredInput = context.map({input, normalized.mean}, withElement(type, element),
                               [](OpBuilder &b, Location loc, ValueRange v) { return arith::SubFOp::create(b, loc, v[0], v[1]); });
  }
  Value squares = context.reduce(centredInput, axes, element, 0, sumSquares);
  normalized.inverse = context.mapExact(squares, rankedType(squares), [&](OpBuilder &b, Location loc, ValueRange v) {
    Value mean = arith::DivFOp::create(b, loc, v[0], Emitter::scalar(b, loc, element, static_cast<double>(count)));
    Value root = math::SqrtOp::create(b, loc, arith::AddFOp::create(b, loc, mean, Emitter::scalar(b, loc, element, epsilon)));
    return arith::DivFOp::create(b, loc, Emitter::scalar(b, loc, element, 1), root);
  });
  SmallVector<Value> inputs = {centredInput, normalized.inverse, scale};
  if (bias)
    inputs.push_back(bias);
  normalized.result = context.map(inputs, withElement(type, resultElement), [](OpBuilder &b, Location loc, ValueRange v) -> Value {
    Value scaled = arith::MulFOp::create(b, loc, arith::MulFOp::create(b, loc, v[0], v[1]), v[2]);
    return v.size() == 4 ? Value(arith::AddFOp::create(b, loc, scaled, v[3])) : scaled;
  });
  return normalized;
}

Value presentOrNull(Value value) { return isPresent(value) ? value : Value(); }

LogicalResult finish(RuleContext &context, const Normalized &normalized, MutableArrayRef<Value> results) {
  if (!normalized.result)
    return context.refuse("it normalises over rows");
  results[0] = normalized.result;
  for (auto [i, value] : {std::pair<size_t, Value>(1, normalized.mean), std::pair<size_t, Value>(2, normalized.inverse)})
    if (i < results.size() && !context.op->getResult(i).use_empty()) {
      if (!value)
        return context.refuse("a mean that is not computed");
      results[i] = value;
    }
  return success();
}

LogicalResult convertLayerNormalization(onnx::LayerNormalizationOp op, RuleContext &context, MutableArrayRef<Value> results) {
  Type element = rankedType(op->getResult(0)).getElementType();
  return finish(context, normalize(context, op->getOperand(0), op.getAxis(), op->getOperand(1), presentOrNull(op->getOperand(2)), op.getEpsilon(), true, element), results);
}

LogicalResult convertRMSNormalization(onnx::RMSNormalizationOp op, RuleContext &context, MutableArrayRef<Value> results) {
  Type element = rankedType(op->getResult(0)).getElementType();
  return finish(context, normalize(context, op->getOperand(0), op.getAxis(), op->getOperand(1), {}, op.getEpsilon(), false, element), results);
}

LogicalResult convertSimplified(onnx::SimplifiedLayerNormalizationOp op, RuleContext &context, MutableArrayRef<Value> results) {
  if (!op->getResult(1).use_empty())
    return context.refuse("the inverse deviation is used");
  Type element = rankedType(op->getResult(0)).getElementType();
  return finish(context, normalize(context, op->getOperand(0), op.getAxis(), op->getOperand(1), {}, op.getEpsilon(), false, element), results.take_front(1));
}

/// Normalises input + skip + bias over the last axis. The sum is normalised in f32, before it is rounded for its own result.
LogicalResult convertSkip(RuleContext &context, Value gamma, Value beta, Value bias, double epsilon, bool centred, MutableArrayRef<Value> results) {
  Operation *op = context.op;
  if (!op->getResult(1).use_empty() || !op->getResult(2).use_empty())
    return context.refuse("the mean or the inverse deviation is used");
  RankedTensorType type = rankedType(op->getOperand(0));
  SmallVector<Value> inputs = {op->getOperand(0), op->getOperand(1)};
  if (bias)
    inputs.push_back(bias);
  Value sum = context.map(inputs, withElement(type, computeType(type.getElementType())), [](OpBuilder &b, Location loc, ValueRange v) {
    Value result = arith::AddFOp::create(b, loc, v[0], v[1]);
    return v.size() == 3 ? Value(arith::AddFOp::create(b, loc, result, v[2])) : result;
  });
  if (!op->getResult(3).use_empty())
    results[3] = context.convert(sum, type.getElementType());
  Normalized normalized = normalize(context, sum, -1, gamma, beta, epsilon, centred, type.getElementType());
  if (!normalized.result)
    return context.refuse("it normalises over rows");
  results[0] = normalized.result;
  return success();
}

LogicalResult convertSkipLayer(onnx::MSSkipLayerNormalizationOp op, RuleContext &context, MutableArrayRef<Value> results) {
  return convertSkip(context, op->getOperand(2), presentOrNull(op->getOperand(3)), presentOrNull(op->getOperand(4)), op.getEpsilon(), true, results);
}

LogicalResult convertSkipSimplified(onnx::MSSkipSimplifiedLayerNormalizationOp op, RuleContext &context, MutableArrayRef<Value> results) {
  return convertSkip(context, op->getOperand(2), {}, presentOrNull(op->getOperand(3)), op.getEpsilon(), false, results);
}

} // namespace

void addNormalizationRules(RuleSet &rules) {
  rules.add<onnx::SoftmaxOp>(convertSoftmax);
  rules.add<onnx::LogSoftmaxOp>(convertLogSoftmax);
  rules.add<onnx::LayerNormalizationOp>(convertLayerNormalization);
  rules.add<onnx::RMSNormalizationOp>(convertRMSNormalization);
  rules.add<onnx::SimplifiedLayerNormalizationOp>(convertSimplified);
  rules.add<onnx::MSSkipLayerNormalizationOp>(convertSkipLayer);
  rules.add<onnx::MSSkipSimplifiedLayerNormalizationOp>(convertSkipSimplified);
}

} // namespace quire
