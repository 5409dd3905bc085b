// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for activation functions, in the formulas of ONNX Runtime.
#include "dialects/ONNX/ONNXMathOps.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"

using namespace mlir;

namespace quire {
namespace {

/// Float arithmetic on elements.
struct Elements {
  OpBuilder &builder;
  Location loc;

  Value constant(Value like, double value) const { return Emitter::scalar(builder, loc, like.getType(), value); }
  Value add(Value a, Value b) const { return arith::AddFOp::create(builder, loc, a, b); }
  Value add(Value a, double b) const { return add(a, constant(a, b)); }
  Value sub(Value a, Value b) const { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) const { return arith::MulFOp::create(builder, loc, a, b); }
  Value mul(Value a, double b) const { return mul(a, constant(a, b)); }
  Value div(Value a, Value b) const { return arith::DivFOp::create(builder, loc, a, b); }
  Value neg(Value a) const { return arith::NegFOp::create(builder, loc, a); }
  Value exp(Value a) const { return math::ExpOp::create(builder, loc, a); }
  Value tanh(Value a) const { return math::TanhOp::create(builder, loc, a); }
  Value erf(Value a) const { return math::ErfOp::create(builder, loc, a); }
  Value log1p(Value a) const { return math::Log1pOp::create(builder, loc, a); }
  Value abs(Value a) const { return math::AbsFOp::create(builder, loc, a); }
  Value max(Value a, double b) const { return arith::MaximumFOp::create(builder, loc, a, constant(a, b)); }
  Value min(Value a, double b) const { return arith::MinimumFOp::create(builder, loc, a, constant(a, b)); }
  Value select(Value condition, Value a, Value b) const { return arith::SelectOp::create(builder, loc, condition, a, b); }
  Value isNegative(Value a) const { return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, constant(a, 0)); }

  Value sigmoid(Value x) const { return div(constant(x, 1), add(exp(neg(x)), 1)); }
  Value gelu(Value x) const { return mul(mul(x, 0.5), add(erf(mul(x, 0.70710678118654752440)), 1)); }
  Value tanhGelu(Value x) const {
    Value cube = mul(mul(x, x), mul(x, 0.044715));
    return mul(mul(x, 0.5), add(tanh(mul(add(x, cube), 0.79788456080286535588)), 1));
  }
  /// max(x, 0) + log1p(exp(-|x|)): does not overflow.
  Value softplus(Value x) const { return add(max(x, 0), log1p(exp(neg(abs(x))))); }
  Value hardSigmoid(Value x, double alpha, double beta) const { return max(min(add(mul(x, alpha), beta), 1), 0); }
};

using Formula = llvm::function_ref<Value(const Elements &, ValueRange)>;

LogicalResult apply(RuleContext &context, ValueRange inputs, MutableArrayRef<Value> results, Formula formula) {
  RankedTensorType type = rankedType(context.op->getResult(0));
  if (!isa<FloatType>(type.getElementType()))
    return context.refuse("integer elements");
  results[0] = context.map(inputs, type, [&](OpBuilder &b, Location loc, ValueRange v) { return formula(Elements{b, loc}, v); });
  return success();
}

/// A rule for one input and a formula without parameters.
template <typename OpTy, Value (*formula)(const Elements &, Value)>
LogicalResult unary(OpTy op, RuleContext &context, MutableArrayRef<Value> results) {
  return apply(context, op->getOperand(0), results, [](const Elements &e, ValueRange v) { return formula(e, v[0]); });
}

Value sigmoid(const Elements &e, Value x) { return e.sigmoid(x); }
Value hyperbolicTangent(const Elements &e, Value x) { return e.tanh(x); }
Value softplus(const Elements &e, Value x) { return e.softplus(x); }
Value softsign(const Elements &e, Value x) { return e.div(x, e.add(e.abs(x), 1)); }
Value mish(const Elements &e, Value x) { return e.mul(x, e.tanh(e.softplus(x))); }
Value hardSwish(const Elements &e, Value x) { return e.mul(x, e.hardSigmoid(x, 1.0 / 6, 0.5)); }
Value gelu(const Elements &e, Value x) { return e.gelu(x); }

LogicalResult convertRelu(onnx::ReluOp op, RuleContext &context, MutableArrayRef<Value> results) {
  return apply(context, op->getOperand(0), results, [](const Elements &e, ValueRange v) { return e.max(v[0], 0); });
}

LogicalResult convertLeakyRelu(onnx::LeakyReluOp op, RuleContext &context, MutableArrayRef<Value> results) {
  double alpha = op.getAlpha();
  return apply(context, op->getOperand(0), results,
               [&](const Elements &e, ValueRange v) { return e.select(e.isNegative(v[0]), e.mul(v[0], alpha), v[0]); });
}

LogicalResult convertElu(onnx::EluOp op, RuleContext &context, MutableArrayRef<Value> results) {
  double alpha = op.getAlpha();
  return apply(context, op->getOperand(0), results, [&](const Elements &e, ValueRange v) {
    return e.select(e.isNegative(v[0]), e.mul(e.add(e.exp(v[0]), -1), alpha), v[0]);
  });
}

LogicalResult convertHardSigmoid(onnx::HardSigmoidOp op, RuleContext &context, MutableArrayRef<Value> results) {
  double alpha = op.getAlpha(), beta = op.getBeta();
  return apply(context, op->getOperand(0), results, [&](const Elements &e, ValueRange v) { return e.hardSigmoid(v[0], alpha, beta); });
}

LogicalResult convertGelu(onnx::GeluOp op, RuleContext &context, MutableArrayRef<Value> results) {
  bool approximate = op.getApproximate() == "tanh";
  return apply(context, op->getOperand(0), results, [&](const Elements &e, ValueRange v) { return approximate ? e.tanhGelu(v[0]) : e.gelu(v[0]); });
}

LogicalResult convertSwish(onnx::SwishOp op, RuleContext &context, MutableArrayRef<Value> results) {
  double alpha = op.getAlpha();
  return apply(context, op->getOperand(0), results, [&](const Elements &e, ValueRange v) { return e.mul(v[0], e.sigmoid(e.mul(v[0], alpha))); });
}

LogicalResult convertQuickGelu(onnx::MSQuickGeluOp op, RuleContext &context, MutableArrayRef<Value> results) {
  double alpha = op.getAlpha();
  return apply(context, op->getOperand(0), results, [&](const Elements &e, ValueRange v) { return e.mul(v[0], e.sigmoid(e.mul(v[0], alpha))); });
}

LogicalResult convertBiasGelu(onnx::MSBiasGeluOp op, RuleContext &context, MutableArrayRef<Value> results) {
  return apply(context, op->getOperands(), results, [](const Elements &e, ValueRange v) { return e.gelu(e.add(v[0], v[1])); });
}

LogicalResult convertFastGelu(onnx::MSFastGeluOp op, RuleContext &context, MutableArrayRef<Value> results) {
  bool hasBias = isPresent(op->getOperand(1));
  return apply(context, op->getOperands().take_front(hasBias ? 2 : 1), results,
               [](const Elements &e, ValueRange v) { return e.tanhGelu(v.size() == 2 ? e.add(v[0], v[1]) : v[0]); });
}

LogicalResult convertBiasAdd(onnx::MSBiasAddOp op, RuleContext &context, MutableArrayRef<Value> results) {
  return apply(context, op->getOperands(), results, [](const Elements &e, ValueRange v) { return e.add(e.add(v[0], v[1]), v[2]); });
}

} // namespace

void addActivationRules(RuleSet &rules) {
  rules.add<onnx::SigmoidOp>(unary<onnx::SigmoidOp, sigmoid>);
  rules.add<onnx::TanhOp>(unary<onnx::TanhOp, hyperbolicTangent>);
  rules.add<onnx::SoftplusOp>(unary<onnx::SoftplusOp, softplus>);
  rules.add<onnx::SoftsignOp>(unary<onnx::SoftsignOp, softsign>);
  rules.add<onnx::MishOp>(unary<onnx::MishOp, mish>);
  rules.add<onnx::HardSwishOp>(unary<onnx::HardSwishOp, hardSwish>);
  rules.add<onnx::MSGeluOp>(unary<onnx::MSGeluOp, gelu>);
  rules.add<onnx::ReluOp>(convertRelu);
  rules.add<onnx::LeakyReluOp>(convertLeakyRelu);
  rules.add<onnx::EluOp>(convertElu);
  rules.add<onnx::HardSigmoidOp>(convertHardSigmoid);
  rules.add<onnx::GeluOp>(convertGelu);
  rules.add<onnx::SwishOp>(convertSwish);
  rules.add<onnx::MSQuickGeluOp>(convertQuickGelu);
  rules.add<onnx::MSBiasGeluOp>(convertBiasGelu);
  rules.add<onnx::MSFastGeluOp>(convertFastGelu);
  rules.add<onnx::MSBiasAddOp>(convertBiasAdd);
}

} // namespace quire
