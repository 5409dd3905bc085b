// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Elementwise, product and logic operations bound to their kernels.
#include "Rules.h"
#include "dialects/ONNX/ONNXLogicOps.h"
#include "dialects/ONNX/ONNXMathOps.h"

using namespace mlir;
using namespace quire::eval;

namespace quire::onnx {

static Result rule(LeakyReluOp op, Operands in) { return unary(UnaryKind::LeakyRelu, *in[0], op.getAlpha()); }
static Result rule(EluOp op, Operands in) { return unary(UnaryKind::Elu, *in[0], op.getAlpha()); }
static Result rule(CeluOp op, Operands in) { return unary(UnaryKind::Celu, *in[0], op.getAlpha()); }
static Result rule(SeluOp op, Operands in) { return unary(UnaryKind::Selu, *in[0], op.getAlpha(), op.getGamma()); }
static Result rule(HardSigmoidOp op, Operands in) {
  return unary(UnaryKind::HardSigmoid, *in[0], op.getAlpha(), op.getBeta());
}
static Result rule(ThresholdedReluOp op, Operands in) {
  return unary(UnaryKind::ThresholdedRelu, *in[0], op.getAlpha());
}
static Result rule(ShrinkOp op, Operands in) { return unary(UnaryKind::Shrink, *in[0], op.getLambd(), op.getBias()); }
static Result rule(SwishOp op, Operands in) { return unary(UnaryKind::Swish, *in[0], op.getAlpha()); }
static Result rule(GeluOp op, Operands in) {
  return unary(op.getApproximate() == "tanh" ? UnaryKind::GeluTanh : UnaryKind::GeluErf, *in[0]);
}
static Result rule(SwiGLUOp op, Operands in) { return swiGlu(*in[0], *in[1], op.getAlpha()); }
static Result rule(ModOp op, Operands in) {
  return binary(op.getFmod() ? BinaryKind::FMod : BinaryKind::Mod, *in[0], *in[1]);
}
static Result rule(MaxOp, Operands in) { return fold(BinaryKind::Max, in); }
static Result rule(MinOp, Operands in) { return fold(BinaryKind::Min, in); }
static Result rule(SumOp, Operands in) { return fold(BinaryKind::Add, in); }
static Result rule(MeanOp, Operands in) { return mean(in); }
static Result rule(CumSumOp op, Operands in) {
  return cumulative(*in[0], static_cast<int64_t>(scalarOf(*in[1])), op.getExclusive(), op.getReverse(), false);
}
static Result rule(CumProdOp op, Operands in) {
  return cumulative(*in[0], static_cast<int64_t>(scalarOf(*in[1])), op.getExclusive(), op.getReverse(), true);
}

static Result rule(MatMulOp, Operands in) { return matMul(*in[0], *in[1]); }
static Result rule(GemmOp op, Operands in) {
  return gemmOp(*in[0], *in[1], in[2], op.getAlpha(), op.getBeta(), op.getTransA(), op.getTransB());
}
static Result rule(MSFusedMatMulOp op, Operands in) {
  return fusedMatMul(*in[0], *in[1], op.getTransA(), op.getTransB(), op.getTransBatchA(), op.getTransBatchB(),
                     op.getAlpha());
}
static Result rule(MSTransposeMatMulOp op, Operands in) {
  return fusedMatMul(*in[0], *in[1], op.getTransA(), op.getTransB(), false, false, op.getAlpha());
}
static Result rule(EinsumOp op, Operands in) { return einsum(op.getEquation(), in); }
static Result rule(ConvOp op, Operands in) {
  ConvAttributes attributes{listOf(op.getDilations()), listOf(op.getPads()), listOf(op.getStrides()), op.getAutoPad(),
                            op.getGroup()};
  return conv(*in[0], *in[1], in[2], attributes);
}
static Result rule(MSBiasGeluOp, Operands in) { return biasGelu(*in[0], in[1], false); }
static Result rule(MSFastGeluOp, Operands in) { return biasGelu(*in[0], in[1], true); }
static Result rule(MSGeluOp, Operands in) { return unary(UnaryKind::GeluErf, *in[0]); }
static Result rule(MSQuickGeluOp op, Operands in) { return unary(UnaryKind::Swish, *in[0], op.getAlpha()); }
static Result rule(MSBiasAddOp, Operands in) { return fold(BinaryKind::Add, in); }

static Result rule(NotOp, Operands in) { return logicalNot(*in[0]); }
static Result rule(BitwiseNotOp, Operands in) { return bitwiseNot(*in[0]); }
static Result rule(IsInfOp op, Operands in) { return isInf(*in[0], op.getDetectPositive(), op.getDetectNegative()); }
static Result rule(IsNaNOp, Operands in) { return isNaN(*in[0]); }
static Result rule(WhereOp, Operands in) { return where(*in[0], *in[1], *in[2]); }
static Result rule(ClipOp, Operands in) { return clip(*in[0], in[1], in[2]); }
static Result rule(CastOp op, Operands in) {
  llvm::Expected<ElementKind> to = kindOrError(op.getTo());
  if (!to)
    return to.takeError();
  if (*to == ElementKind::F8E8M0 && op.getRoundMode() != "up")
    return fail("not implemented: round_mode " + op.getRoundMode());
  return castTo(*in[0], *to, op.getSaturate());
}
static Result rule(CastLikeOp op, Operands in) { return castTo(*in[0], in[1]->kind(), op.getSaturate()); }
static Result rule(BitCastOp op, Operands in) {
  llvm::Expected<ElementKind> to = kindOrError(op.getTo());
  return to ? bitCast(*in[0], *to) : Result(to.takeError());
}
static Result rule(BitShiftOp op, Operands in) {
  return binary(op.getDirection() == "LEFT" ? BinaryKind::ShiftLeft : BinaryKind::ShiftRight, *in[0], *in[1]);
}

} // namespace quire::onnx

namespace quire::eval {
using namespace quire::onnx;

static void attachUnaryOperators(MLIRContext &context) {
  attachUnary<UnaryKind::Abs, AbsOp>(context);
  attachUnary<UnaryKind::Acos, AcosOp>(context);
  attachUnary<UnaryKind::Acosh, AcoshOp>(context);
  attachUnary<UnaryKind::Asin, AsinOp>(context);
  attachUnary<UnaryKind::Asinh, AsinhOp>(context);
  attachUnary<UnaryKind::Atan, AtanOp>(context);
  attachUnary<UnaryKind::Atanh, AtanhOp>(context);
  attachUnary<UnaryKind::Ceil, CeilOp>(context);
  attachUnary<UnaryKind::Cos, CosOp>(context);
  attachUnary<UnaryKind::Cosh, CoshOp>(context);
  attachUnary<UnaryKind::Erf, ErfOp>(context);
  attachUnary<UnaryKind::Exp, ExpOp>(context);
  attachUnary<UnaryKind::Floor, FloorOp>(context);
  attachUnary<UnaryKind::Log, LogOp>(context);
  attachUnary<UnaryKind::Neg, NegOp>(context);
  attachUnary<UnaryKind::Reciprocal, ReciprocalOp>(context);
  attachUnary<UnaryKind::Round, RoundOp>(context);
  attachUnary<UnaryKind::Sigmoid, SigmoidOp>(context);
  attachUnary<UnaryKind::Sign, SignOp>(context);
  attachUnary<UnaryKind::Sin, SinOp>(context);
  attachUnary<UnaryKind::Sinh, SinhOp>(context);
  attachUnary<UnaryKind::Sqrt, SqrtOp>(context);
  attachUnary<UnaryKind::Tan, TanOp>(context);
  attachUnary<UnaryKind::Tanh, TanhOp>(context);
  attachUnary<UnaryKind::Relu, ReluOp>(context);
  attachUnary<UnaryKind::HardSwish, HardSwishOp>(context);
  attachUnary<UnaryKind::Mish, MishOp>(context);
  attachUnary<UnaryKind::Softplus, SoftplusOp>(context);
  attachUnary<UnaryKind::Softsign, SoftsignOp>(context);
}

void attachMathRules(MLIRContext &context) {
  attachUnaryOperators(context);
  attachBinary<BinaryKind::Add, AddOp>(context);
  attachBinary<BinaryKind::Sub, SubOp>(context);
  attachBinary<BinaryKind::Mul, MulOp>(context);
  attachBinary<BinaryKind::Div, DivOp>(context);
  attachBinary<BinaryKind::Pow, PowOp>(context);
  attachBinary<BinaryKind::PRelu, PReluOp>(context);
  attachRules<LeakyReluOp, EluOp, CeluOp, SeluOp, HardSigmoidOp, ThresholdedReluOp, ShrinkOp, SwishOp, GeluOp, SwiGLUOp,
              ModOp, MaxOp, MinOp, SumOp, MeanOp, CumSumOp, CumProdOp, MatMulOp, GemmOp, MSFusedMatMulOp,
              MSTransposeMatMulOp, EinsumOp, ConvOp, MSBiasGeluOp, MSFastGeluOp, MSGeluOp, MSQuickGeluOp, MSBiasAddOp>(
      context);
}

void attachLogicRules(MLIRContext &context) {
  attachBinary<BinaryKind::And, AndOp>(context);
  attachBinary<BinaryKind::Or, OrOp>(context);
  attachBinary<BinaryKind::Xor, XorOp>(context);
  attachBinary<BinaryKind::Equal, EqualOp>(context);
  attachBinary<BinaryKind::Greater, GreaterOp>(context);
  attachBinary<BinaryKind::GreaterOrEqual, GreaterOrEqualOp>(context);
  attachBinary<BinaryKind::Less, LessOp>(context);
  attachBinary<BinaryKind::LessOrEqual, LessOrEqualOp>(context);
  attachBinary<BinaryKind::BitAnd, BitwiseAndOp>(context);
  attachBinary<BinaryKind::BitOr, BitwiseOrOp>(context);
  attachBinary<BinaryKind::BitXor, BitwiseXorOp>(context);
  attachRules<NotOp, BitwiseNotOp, IsInfOp, IsNaNOp, WhereOp, ClipOp, CastOp, CastLikeOp, BitCastOp, BitShiftOp>(
      context);
}

} // namespace quire::eval
