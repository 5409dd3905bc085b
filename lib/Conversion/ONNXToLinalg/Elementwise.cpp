// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for element-wise arithmetic, comparison, logic and conversion.
#include "dialects/ONNX/ONNXMathOps.h"
#include "dialects/ONNX/ONNXLogicOps.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"

using namespace mlir;

namespace quire {
namespace {

using ElementRule = Value (*)(OpBuilder &, Location, ValueRange);

template <typename OpTy, ElementRule rule> LogicalResult mapRule(OpTy op, RuleContext &context, MutableArrayRef<Value> results) {
  results[0] = context.map(op->getOperands(), rankedType(op->getResult(0)), rule);
  return success();
}

/// A rule for all element types from the arith operation for floats and the one for signed integers.
template <typename FloatOp, typename IntOp> Value either(OpBuilder &b, Location loc, ValueRange v) {
  if (isa<FloatType>(v[0].getType()))
    return FloatOp::create(b, loc, v[0], v[1]);
  return IntOp::create(b, loc, v[0], v[1]);
}

/// The same over any number of inputs, from the first to the last.
template <typename FloatOp, typename IntOp> Value fold(OpBuilder &b, Location loc, ValueRange v) {
  Value result = v[0];
  for (Value next : v.drop_front())
    result = either<FloatOp, IntOp>(b, loc, {result, next});
  return result;
}

template <typename FloatOp> Value unaryFloat(OpBuilder &b, Location loc, ValueRange v) { return FloatOp::create(b, loc, v[0]); }

template <typename IntOp> Value binaryInt(OpBuilder &b, Location loc, ValueRange v) { return IntOp::create(b, loc, v[0], v[1]); }

template <arith::CmpFPredicate floats, arith::CmpIPredicate ints> Value compare(OpBuilder &b, Location loc, ValueRange v) {
  if (isa<FloatType>(v[0].getType()))
    return arith::CmpFOp::create(b, loc, floats, v[0], v[1]);
  return arith::CmpIOp::create(b, loc, ints, v[0], v[1]);
}

Value negate(OpBuilder &b, Location loc, ValueRange v) {
  if (isa<FloatType>(v[0].getType()))
    return arith::NegFOp::create(b, loc, v[0]);
  return arith::SubIOp::create(b, loc, Emitter::scalar(b, loc, v[0].getType(), 0), v[0]);
}

Value absolute(OpBuilder &b, Location loc, ValueRange v) {
  if (isa<FloatType>(v[0].getType()))
    return math::AbsFOp::create(b, loc, v[0]);
  return math::AbsIOp::create(b, loc, v[0]);
}

Value reciprocal(OpBuilder &b, Location loc, ValueRange v) {
  return arith::DivFOp::create(b, loc, Emitter::scalar(b, loc, v[0].getType(), 1), v[0]);
}

Value sign(OpBuilder &b, Location loc, ValueRange v) {
  Type type = v[0].getType();
  Value zero = Emitter::scalar(b, loc, type, 0), one = Emitter::scalar(b, loc, type, 1), minus = Emitter::scalar(b, loc, type, -1);
  Value isPositive = compare<arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt>(b, loc, {v[0], zero});
  Value isNegative = compare<arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt>(b, loc, {v[0], zero});
  Value below = arith::SelectOp::create(b, loc, isNegative, minus, zero);
  return arith::SelectOp::create(b, loc, isPositive, one, below);
}

Value invert(OpBuilder &b, Location loc, ValueRange v) {
  Value ones = arith::ConstantOp::create(b, loc, b.getIntegerAttr(v[0].getType(), -1));
  return arith::XOrIOp::create(b, loc, v[0], ones);
}

Value isNaN(OpBuilder &b, Location loc, ValueRange v) { return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, v[0], v[0]); }

Value choose(OpBuilder &b, Location loc, ValueRange v) { return arith::SelectOp::create(b, loc, v[0], v[1], v[2]); }

Value average(OpBuilder &b, Location loc, ValueRange v) {
  Value sum = fold<arith::AddFOp, arith::AddIOp>(b, loc, v);
  return arith::DivFOp::create(b, loc, sum, Emitter::scalar(b, loc, sum.getType(), static_cast<double>(v.size())));
}

/// x to a power that is known: squares and cubes as ONNX Runtime computes them.
Value knownPower(OpBuilder &b, Location loc, Value x, double exponent) {
  if (exponent == 1)
    return x;
  Value square = arith::MulFOp::create(b, loc, x, x);
  return exponent == 2 ? square : Value(arith::MulFOp::create(b, loc, square, x));
}

LogicalResult convertPow(onnx::PowOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType type = rankedType(op->getResult(0)), exponentType = rankedType(op->getOperand(1));
  if (!isa<FloatType>(type.getElementType()))
    return context.refuse("integer base");
  DenseElementsAttr exponent = constantOf(op->getOperand(1));
  std::optional<double> known;
  if (exponent && exponent.isSplat())
    known = isa<FloatType>(exponent.getElementType()) ? exponent.getSplatValue<APFloat>().convertToDouble()
                                                      : static_cast<double>(exponent.getSplatValue<APInt>().getSExtValue());
  if (known && (*known == 1 || *known == 2 || *known == 3) && exponentType.getRank() <= type.getRank()) {
    results[0] = context.map(op->getOperand(0), type, [&](OpBuilder &b, Location loc, ValueRange v) { return knownPower(b, loc, v[0], *known); });
    return success();
  }
  bool isRoot = known && *known == 0.5;
  results[0] = context.map(op->getOperands(), type, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
    if (isRoot)
      return math::SqrtOp::create(b, loc, v[0]);
    return math::PowFOp::create(b, loc, v[0], Emitter::castElement(b, loc, v[1], v[0].getType()));
  });
  return success();
}

LogicalResult convertMod(onnx::ModOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType type = rankedType(op->getResult(0));
  bool isFloat = isa<FloatType>(type.getElementType());
  bool truncates = op.getFmod() != 0;
  if (isFloat && !truncates)
    return context.refuse("floating-point remainder without fmod");
  results[0] = context.map(op->getOperands(), type, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
    if (isFloat)
      return arith::RemFOp::create(b, loc, v[0], v[1]);
    Value remainder = arith::RemSIOp::create(b, loc, v[0], v[1]);
    if (truncates)
      return remainder;
    // The sign of the divisor, as in Python.
    Value zero = Emitter::scalar(b, loc, v[0].getType(), 0);
    Value product = arith::XOrIOp::create(b, loc, remainder, v[1]);
    Value differs = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, product, zero);
    Value nonzero = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, remainder, zero);
    Value adjusted = arith::AddIOp::create(b, loc, remainder, v[1]);
    return arith::SelectOp::create(b, loc, arith::AndIOp::create(b, loc, differs, nonzero), adjusted, remainder);
  });
  return success();
}

LogicalResult convertCast(onnx::CastOp op, RuleContext &context, MutableArrayRef<Value> results) {
  results[0] = context.convert(op->getOperand(0), rankedType(op->getResult(0)).getElementType());
  return success();
}

LogicalResult convertCastLike(onnx::CastLikeOp op, RuleContext &context, MutableArrayRef<Value> results) {
  results[0] = context.convert(op->getOperand(0), rankedType(op->getResult(0)).getElementType());
  return success();
}

LogicalResult convertWhere(onnx::WhereOp op, RuleContext &context, MutableArrayRef<Value> results) {
  results[0] = context.mapExact(op->getOperands(), rankedType(op->getResult(0)), choose);
  return success();
}

LogicalResult convertIsInf(onnx::IsInfOp op, RuleContext &context, MutableArrayRef<Value> results) {
  bool positive = op.getDetectPositive() != 0, negative = op.getDetectNegative() != 0;
  results[0] = context.map(op->getOperand(0), rankedType(op->getResult(0)), [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
    Value infinity = Emitter::scalar(b, loc, v[0].getType(), std::numeric_limits<double>::infinity());
    Value minus = Emitter::scalar(b, loc, v[0].getType(), -std::numeric_limits<double>::infinity());
    Value above = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, v[0], infinity);
    Value below = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, v[0], minus);
    if (positive && negative)
      return arith::OrIOp::create(b, loc, above, below);
    return positive ? above : negative ? below : Emitter::scalar(b, loc, b.getI1Type(), 0);
  });
  return success();
}

LogicalResult convertClip(onnx::ClipOp op, RuleContext &context, MutableArrayRef<Value> results) {
  SmallVector<Value> inputs = {op->getOperand(0)};
  bool hasLow = isPresent(op->getOperand(1)), hasHigh = isPresent(op->getOperand(2));
  if (hasLow)
    inputs.push_back(op->getOperand(1));
  if (hasHigh)
    inputs.push_back(op->getOperand(2));
  results[0] = context.map(inputs, rankedType(op->getResult(0)), [&](OpBuilder &b, Location loc, ValueRange v) {
    Value result = v[0];
    if (hasLow)
      result = either<arith::MaximumFOp, arith::MaxSIOp>(b, loc, {result, v[1]});
    if (hasHigh)
      result = either<arith::MinimumFOp, arith::MinSIOp>(b, loc, {result, v.back()});
    return result;
  });
  return success();
}

LogicalResult refuseNonFloat(RuleContext &context) {
  for (Value operand : context.op->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType()); type && !isa<FloatType>(type.getElementType()))
      return context.refuse("elements of type " + std::string(type.getElementType().isInteger(1) ? "bool" : "integer"));
  return success();
}

/// A rule that exists for floats only.
template <typename OpTy, ElementRule rule> LogicalResult floatRule(OpTy op, RuleContext &context, MutableArrayRef<Value> results) {
  if (failed(refuseNonFloat(context)))
    return failure();
  return mapRule<OpTy, rule>(op, context, results);
}

} // namespace

void addElementwiseRules(RuleSet &rules) {
  rules.add<onnx::AddOp>(mapRule<onnx::AddOp, either<arith::AddFOp, arith::AddIOp>>);
  rules.add<onnx::SubOp>(mapRule<onnx::SubOp, either<arith::SubFOp, arith::SubIOp>>);
  rules.add<onnx::MulOp>(mapRule<onnx::MulOp, either<arith::MulFOp, arith::MulIOp>>);
  rules.add<onnx::DivOp>(mapRule<onnx::DivOp, either<arith::DivFOp, arith::DivSIOp>>);
  rules.add<onnx::MaxOp>(mapRule<onnx::MaxOp, fold<arith::MaximumFOp, arith::MaxSIOp>>);
  rules.add<onnx::MinOp>(mapRule<onnx::MinOp, fold<arith::MinimumFOp, arith::MinSIOp>>);
  rules.add<onnx::SumOp>(mapRule<onnx::SumOp, fold<arith::AddFOp, arith::AddIOp>>);
  rules.add<onnx::MeanOp>(floatRule<onnx::MeanOp, average>);
  rules.add<onnx::PowOp>(convertPow);
  rules.add<onnx::ModOp>(convertMod);
  rules.add<onnx::NegOp>(mapRule<onnx::NegOp, negate>);
  rules.add<onnx::AbsOp>(mapRule<onnx::AbsOp, absolute>);
  rules.add<onnx::SignOp>(mapRule<onnx::SignOp, sign>);
  rules.add<onnx::ReciprocalOp>(floatRule<onnx::ReciprocalOp, reciprocal>);
  rules.add<onnx::SqrtOp>(floatRule<onnx::SqrtOp, unaryFloat<math::SqrtOp>>);
  rules.add<onnx::ExpOp>(floatRule<onnx::ExpOp, unaryFloat<math::ExpOp>>);
  rules.add<onnx::LogOp>(floatRule<onnx::LogOp, unaryFloat<math::LogOp>>);
  rules.add<onnx::SinOp>(floatRule<onnx::SinOp, unaryFloat<math::SinOp>>);
  rules.add<onnx::CosOp>(floatRule<onnx::CosOp, unaryFloat<math::CosOp>>);
  rules.add<onnx::ErfOp>(floatRule<onnx::ErfOp, unaryFloat<math::ErfOp>>);
  rules.add<onnx::FloorOp>(floatRule<onnx::FloorOp, unaryFloat<math::FloorOp>>);
  rules.add<onnx::CeilOp>(floatRule<onnx::CeilOp, unaryFloat<math::CeilOp>>);
  rules.add<onnx::RoundOp>(floatRule<onnx::RoundOp, unaryFloat<math::RoundEvenOp>>);
  rules.add<onnx::AndOp>(mapRule<onnx::AndOp, binaryInt<arith::AndIOp>>);
  rules.add<onnx::OrOp>(mapRule<onnx::OrOp, binaryInt<arith::OrIOp>>);
  rules.add<onnx::XorOp>(mapRule<onnx::XorOp, binaryInt<arith::XOrIOp>>);
  rules.add<onnx::NotOp>(mapRule<onnx::NotOp, invert>);
  rules.add<onnx::BitwiseAndOp>(mapRule<onnx::BitwiseAndOp, binaryInt<arith::AndIOp>>);
  rules.add<onnx::BitwiseOrOp>(mapRule<onnx::BitwiseOrOp, binaryInt<arith::OrIOp>>);
  rules.add<onnx::BitwiseXorOp>(mapRule<onnx::BitwiseXorOp, binaryInt<arith::XOrIOp>>);
  rules.add<onnx::BitwiseNotOp>(mapRule<onnx::BitwiseNotOp, invert>);
  rules.add<onnx::EqualOp>(mapRule<onnx::EqualOp, compare<arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq>>);
  rules.add<onnx::LessOp>(mapRule<onnx::LessOp, compare<arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt>>);
  rules.add<onnx::LessOrEqualOp>(mapRule<onnx::LessOrEqualOp, compare<arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle>>);
  rules.add<onnx::GreaterOp>(mapRule<onnx::GreaterOp, compare<arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt>>);
  rules.add<onnx::GreaterOrEqualOp>(mapRule<onnx::GreaterOrEqualOp, compare<arith::CmpFPredicate::OGE, arith::CmpIPredicate::sge>>);
  rules.add<onnx::IsNaNOp>(floatRule<onnx::IsNaNOp, isNaN>);
  rules.add<onnx::IsInfOp>(convertIsInf);
  rules.add<onnx::WhereOp>(convertWhere);
  rules.add<onnx::ClipOp>(convertClip);
  rules.add<onnx::CastOp>(convertCast);
  rules.add<onnx::CastLikeOp>(convertCastLike);
}

} // namespace quire
