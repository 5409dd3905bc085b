// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfer rules of element-wise operators: they only build expressions.

#include "lib/Analysis/Element/Rules.h"

using namespace llvm;
using namespace mlir;

namespace quire {

LogicalResult elementWise(Operation *op, Interp &in, ValueRange operands,
                          llvm::function_ref<Expr(ArrayRef<Expr>)> f,
                          std::optional<ElementType> type) {
  SmallVector<const SymbolicTensor *, 4> ts;
  for (Value v : operands) {
    if (isa<NoneType>(v.getType()))
      continue;
    const SymbolicTensor *t = in.get(v);
    if (!t)
      return failure();
    ts.push_back(t);
  }
  if (ts.empty())
    return in.refuse(op, "expected an operand");
  auto extents = in.broadcast(op, ts);
  if (!extents)
    return failure();
  SmallVector<Expr, 4> parts;
  for (const SymbolicTensor *t : ts)
    parts.push_back(in.atBroadcast(*t, *extents));
  SymbolicTensor out;
  out.extents = *extents;
  out.element = f(parts);
  out.type = type.value_or(elementTypeOf(op->getResult(0).getType()));
  in.set(op->getResult(0), std::move(out));
  return success();
}

namespace {
template <typename OpT, Fn fn>
LogicalResult unary(OpT op, Interp &in) {
  return elementWise(op, in, op->getOperands().take_front(1),
                     [&](ArrayRef<Expr> x) { return in.ctx.call(fn, x); });
}

/// A function without laws of its own; the operation is its name, its
/// attributes make it another function.
template <typename OpT>
LogicalResult namedFunction(OpT op, Interp &in) {
  std::string name = op->getName().stripDialect().str();
  std::string attrs;
  raw_string_ostream os(attrs);
  for (NamedAttribute a : op->getAttrs())
    os << "," << a.getName().getValue() << "=" << a.getValue();
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) {
    return in.ctx.named(name + attrs, x);
  });
}

LogicalResult addRule(onnx::AddOp op, Interp &in) {
  return elementWise(op, in, op->getOperands(),
                     [&](ArrayRef<Expr> x) { return in.ctx.add(x); });
}
LogicalResult sumRule(onnx::SumOp op, Interp &in) {
  return elementWise(op, in, op->getOperands(),
                     [&](ArrayRef<Expr> x) { return in.ctx.add(x); });
}
LogicalResult subRule(onnx::SubOp op, Interp &in) {
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) {
    return in.ctx.sub(x[0], x[1]);
  });
}
LogicalResult mulRule(onnx::MulOp op, Interp &in) {
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) {
    return in.ctx.mul(x[0], x[1]);
  });
}
LogicalResult negRule(onnx::NegOp op, Interp &in) {
  return elementWise(op, in, op->getOperands(),
                     [&](ArrayRef<Expr> x) { return in.ctx.neg(x[0]); });
}
LogicalResult meanRule(onnx::MeanOp op, Interp &in) {
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) {
    return in.ctx.mul(in.ctx.real(1.0 / double(x.size())), in.ctx.add(x));
  });
}

/// Integer division truncates towards zero: a floor only where both signs are
/// known.
Expr truncatedDivision(ExprContext &ctx, Expr x, Expr d) {
  if (x->isBad() || d->isBad())
    return x->isBad() ? x : d;
  std::optional<int64_t> cx = ctx.constInt(x), cd = ctx.constInt(d);
  if (cx && cd && *cd != 0 && !(*cx == INT64_MIN && *cd == -1))
    return ctx.num(*cx / *cd);
  if (ctx.nonNeg(ctx.sub(d, ctx.num(1)))) {
    if (ctx.nonNeg(x))
      return ctx.floorDiv(x, d);
    if (ctx.nonNeg(ctx.neg(x)))
      return ctx.neg(ctx.floorDiv(ctx.neg(x), d));
  }
  if (x->is(ExprKind::Ite))
    return ctx.ite(x->args[0], truncatedDivision(ctx, x->args[1], d),
                   truncatedDivision(ctx, x->args[2], d));
  return ctx.named("truncdiv", {x, d});
}

LogicalResult divRule(onnx::DivOp op, Interp &in) {
  bool integer = elementTypeOf(op.getType()) == ElementType::Int;
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) {
    return integer ? truncatedDivision(in.ctx, x[0], x[1])
                   : in.ctx.call(Fn::FloatDiv, x);
  });
}

LogicalResult modRule(onnx::ModOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  bool truncating = op.getFmod() != 0 ||
                    elementTypeOf(op.getType()) != ElementType::Int;
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) -> Expr {
    if (truncating && !ctx.nonNeg(x[0]))
      return ctx.named("fmod", x);
    return ctx.mod(x[0], x[1]);
  });
}

LogicalResult powRule(onnx::PowOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) -> Expr {
    if (ctx.isConst(x[1], 2) && x[0]->size < 40)
      return ctx.mul(x[0], x[0]);
    return ctx.call(Fn::Pow, x);
  });
}

template <typename OpT, Fn fn>
LogicalResult extremeRule(OpT op, Interp &in) {
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) {
    Expr r = x[0];
    for (Expr y : x.drop_front())
      r = in.ctx.call(fn, {r, y});
    return r;
  });
}

LogicalResult clipRule(onnx::ClipOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getInput());
  if (!x)
    return failure();
  SymbolicTensor out = *x;
  for (auto [v, fn] : {std::pair(op.getMin(), Fn::Max),
                       std::pair(op.getMax(), Fn::Min)}) {
    const SymbolicTensor *limit = in.getOptional(v);
    if (!limit)
      continue;
    if (!in.ctx.isConst(in.productOf(limit->extents), 1))
      return in.refuse(op, "expected scalar limits");
    out.element = in.ctx.call(fn, {out.element, limit->element});
  }
  in.set(op.getResult(), std::move(out));
  return success();
}

template <typename OpT, Fn relation, bool swapped>
LogicalResult compareRule(OpT op, Interp &in) {
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) {
    return in.ctx.compare(relation, x[swapped ? 1 : 0], x[swapped ? 0 : 1]);
  });
}

template <typename OpT>
LogicalResult logicRule(OpT op, Interp &in) {
  ExprContext &ctx = in.ctx;
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) -> Expr {
    if constexpr (std::is_same_v<OpT, onnx::AndOp>)
      return ctx.band(x);
    else if constexpr (std::is_same_v<OpT, onnx::OrOp>)
      return ctx.bor(x);
    else if constexpr (std::is_same_v<OpT, onnx::NotOp>)
      return ctx.bnot(x[0]);
    else
      return ctx.bor({ctx.band({x[0], ctx.bnot(x[1])}),
                      ctx.band({ctx.bnot(x[0]), x[1]})});
  });
}

/// Bitwise operators on truth values only.
template <typename OpT>
LogicalResult bitwiseRule(OpT op, Interp &in) {
  bool truth = elementTypeOf(op.getType()) == ElementType::Bool;
  ExprContext &ctx = in.ctx;
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) -> Expr {
    if (!truth)
      return ctx.named(op->getName().stripDialect(), x);
    return std::is_same_v<OpT, onnx::BitwiseAndOp> ? ctx.band(x) : ctx.bor(x);
  });
}

LogicalResult isInfRule(onnx::IsInfOp op, Interp &in) {
  if (!op.getDetectNegative() || !op.getDetectPositive())
    return namedFunction(op, in);
  return unary<onnx::IsInfOp, Fn::IsInf>(op, in);
}

LogicalResult whereRule(onnx::WhereOp op, Interp &in) {
  return elementWise(op, in, op->getOperands(), [&](ArrayRef<Expr> x) {
    return in.ctx.ite(x[0], x[1], x[2]);
  });
}

Expr converted(ExprContext &ctx, Expr e, ElementType from, ElementType to) {
  if (to == ElementType::Bool)
    return ctx.asBool(e);
  if (from == ElementType::Bool)
    return ctx.asNum(e);
  if (to == ElementType::Int && from == ElementType::Float)
    return ctx.call(Fn::Trunc, {e});
  return e;
}

LogicalResult castRule(onnx::CastOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getInput());
  if (!x)
    return failure();
  ElementType to = elementTypeOf(op.getTo());
  Expr element = converted(in.ctx, x->element, x->type, to);
  // Rounded positions are some function of the positions.
  if (isa<FloatType>(op.getTo()) &&
      !isRepresentable(in.ctx, element, op.getTo()))
    element = in.ctx.named("rounded", {element});
  in.set(op.getResult(), {x->extents, element, to});
  return success();
}

LogicalResult castLikeRule(onnx::CastLikeOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getInput());
  if (!x)
    return failure();
  ElementType to = elementTypeOf(op.getTargetType().getType());
  in.set(op.getResult(),
         {x->extents, converted(in.ctx, x->element, x->type, to), to});
  return success();
}

LogicalResult biasAddRule(onnx::MSBiasAddOp op, Interp &in) {
  return elementWise(op, in, op->getOperands(),
                     [&](ArrayRef<Expr> x) { return in.ctx.add(x); });
}

/// A rounding that depends on where a value came from is no identity; Dropout
/// outside of training is.
LogicalResult dropoutRule(onnx::DropoutOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getData());
  if (!x)
    return failure();
  if (const SymbolicTensor *training = in.getOptional(op.getTrainingMode()))
    if (training->element != in.ctx.boolean(false))
      return in.refuse(op, "expected training mode to be off");
  in.set(op.getOutput(), *x);
  return success();
}

LogicalResult identityRule(onnx::IdentityOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getInput());
  if (!x)
    return failure();
  in.set(op.getResult(), *x);
  return success();
}
} // namespace

template <typename OpT>
static void attachNamed(MLIRContext &context) {
  OpT::template attachInterface<RuleModel<OpT, namedFunction<OpT>>>(context);
}

template <typename OpT, Fn fn>
static void attachUnary(MLIRContext &context) {
  OpT::template attachInterface<RuleModel<OpT, unary<OpT, fn>>>(context);
}

template <typename OpT, LogicalResult (*rule)(OpT, Interp &)>
static void attach(MLIRContext &context) {
  OpT::template attachInterface<RuleModel<OpT, rule>>(context);
}

template <typename OpT, Fn relation, bool swapped>
static void attachCompare(MLIRContext &context) {
  attach<OpT, compareRule<OpT, relation, swapped>>(context);
}

void attachMathRules(MLIRContext &c) {
  using namespace onnx;
  attachUnary<CosOp, Fn::Cos>(c);
  attachUnary<SinOp, Fn::Sin>(c);
  attachUnary<ExpOp, Fn::Exp>(c);
  attachUnary<LogOp, Fn::Log>(c);
  attachUnary<SqrtOp, Fn::Sqrt>(c);
  attachUnary<ReciprocalOp, Fn::Recip>(c);
  attachUnary<TanhOp, Fn::Tanh>(c);
  attachUnary<ErfOp, Fn::Erf>(c);
  attachUnary<SigmoidOp, Fn::Sigmoid>(c);
  attachUnary<AbsOp, Fn::Abs>(c);
  attachUnary<FloorOp, Fn::Floor>(c);
  attachUnary<CeilOp, Fn::Ceil>(c);
  attachUnary<IsNaNOp, Fn::IsNan>(c);
  attachNamed<AcosOp>(c);
  attachNamed<AcoshOp>(c);
  attachNamed<AsinOp>(c);
  attachNamed<AsinhOp>(c);
  attachNamed<AtanOp>(c);
  attachNamed<AtanhOp>(c);
  attachNamed<CoshOp>(c);
  attachNamed<SinhOp>(c);
  attachNamed<TanOp>(c);
  attachNamed<RoundOp>(c);
  attachNamed<SignOp>(c);
  attachNamed<ReluOp>(c);
  attachNamed<LeakyReluOp>(c);
  attachNamed<PReluOp>(c);
  attachNamed<EluOp>(c);
  attachNamed<SeluOp>(c);
  attachNamed<CeluOp>(c);
  attachNamed<GeluOp>(c);
  attachNamed<HardSigmoidOp>(c);
  attachNamed<HardSwishOp>(c);
  attachNamed<MishOp>(c);
  attachNamed<SoftplusOp>(c);
  attachNamed<SoftsignOp>(c);
  attachNamed<SwishOp>(c);
  attachNamed<SwiGLUOp>(c);
  attachNamed<ShrinkOp>(c);
  attachNamed<ThresholdedReluOp>(c);
  attachNamed<BitwiseNotOp>(c);
  attachNamed<BitwiseXorOp>(c);
  attachNamed<BitShiftOp>(c);
  attachNamed<MSBiasGeluOp>(c);
  attachNamed<MSFastGeluOp>(c);
  attachNamed<MSQuickGeluOp>(c);
  attachNamed<MSGeluOp>(c);
  attach<AddOp, addRule>(c);
  attach<SumOp, sumRule>(c);
  attach<SubOp, subRule>(c);
  attach<MulOp, mulRule>(c);
  attach<NegOp, negRule>(c);
  attach<MeanOp, meanRule>(c);
  attach<DivOp, divRule>(c);
  attach<ModOp, modRule>(c);
  attach<PowOp, powRule>(c);
  attach<MaxOp, extremeRule<MaxOp, Fn::Max>>(c);
  attach<MinOp, extremeRule<MinOp, Fn::Min>>(c);
  attach<ClipOp, clipRule>(c);
  attachCompare<EqualOp, Fn::Equal, false>(c);
  attachCompare<GreaterOp, Fn::Greater, false>(c);
  attachCompare<GreaterOrEqualOp, Fn::GreaterEqual, false>(c);
  attachCompare<LessOp, Fn::Greater, true>(c);
  attachCompare<LessOrEqualOp, Fn::GreaterEqual, true>(c);
  attach<AndOp, logicRule<AndOp>>(c);
  attach<OrOp, logicRule<OrOp>>(c);
  attach<XorOp, logicRule<XorOp>>(c);
  attach<NotOp, logicRule<NotOp>>(c);
  attach<BitwiseAndOp, bitwiseRule<BitwiseAndOp>>(c);
  attach<BitwiseOrOp, bitwiseRule<BitwiseOrOp>>(c);
  attach<IsInfOp, isInfRule>(c);
  attach<WhereOp, whereRule>(c);
  attach<CastOp, castRule>(c);
  attach<CastLikeOp, castLikeRule>(c);
  attach<MSBiasAddOp, biasAddRule>(c);
  attach<DropoutOp, dropoutRule>(c);
  attach<IdentityOp, identityRule>(c);
}

} // namespace quire
