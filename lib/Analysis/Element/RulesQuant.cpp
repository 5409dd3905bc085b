// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfer rules of quantisation, packed weights and experts.

#include "lib/Analysis/Element/Rules.h"

using namespace llvm;
using namespace mlir;

namespace quire {
namespace {

/// Scales and zero points of weights; data as a scale makes the result a leaf
/// of the same token, or refuses.
LogicalResult quantRule(Operation *op, Interp &in) {
  const SymbolicTensor *x = in.get(op->getOperand(0)),
                       *scale = in.get(op->getOperand(1));
  if (!x || !scale)
    return failure();
  ExprContext &ctx = in.ctx;
  Value r = op->getResult(0);
  SymbolicTensor out = *x;
  out.type = elementTypeOf(r.getType());
  Leaves lx = ctx.leavesOf(x->element), ls = ctx.leavesOf(scale->element);
  bool plain = lx.tokens.empty() && lx.past.empty() && !lx.readsScores();
  if (lx.bad || ls.bad) {
    out.element = lx.bad ? lx.bad : ls.bad;
  } else if (!ls.tokens.empty() || !ls.past.empty() || ls.readsScores()) {
    if (!ctx.isConst(in.productOf(scale->extents), 1))
      return in.refuse(op, "not implemented: scales made of data");
    out.element = in.leaf(op, in.label(r), x->extents,
                          {x->element, scale->element}, out.type);
  } else if (plain && llvm::all_of(x->element->freeVars, [](Expr v) {
               return v->isIndex();
             })) {
    out.element = ctx.table(in.label(r), out.type, in.generic(x->extents));
  } else {
    // The scale may differ along an axis: that index is an argument.
    SmallVector<Expr> args{x->element};
    for (Expr v : in.generic(x->extents))
      if (v->is(ExprKind::Var) && scale->rank() && ctx.constInt(v->extent()))
        args.push_back(v);
    out.element = ctx.named(("quant:" + in.label(r)).str(), args);
  }
  in.set(r, std::move(out));
  return success();
}

template <typename OpT>
LogicalResult quantizeRule(OpT op, Interp &in) {
  return quantRule(op, in);
}

/// Rows of x times a packed weight with N columns.
LogicalResult packedProduct(Operation *op, Interp &in, int64_t columns) {
  const SymbolicTensor *x = in.get(op->getOperand(0));
  if (!x)
    return failure();
  if (!x->rank())
    return in.refuse(op, "expected rows");
  return mixAxes(op, in, *x, {x->rank() - 1}, in.ctx.num(columns));
}

LogicalResult nBitsRule(onnx::MSMatMulNBitsOp op, Interp &in) {
  return packedProduct(op, in, op.getN());
}
LogicalResult bnb4Rule(onnx::MSMatMulBnb4Op op, Interp &in) {
  return packedProduct(op, in, op.getN());
}

LogicalResult gatherBlockRule(onnx::MSGatherBlockQuantizedOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *i = in.get(op.getIndices()),
                       *scales = in.get(op.getScales());
  if (!i || !scales)
    return failure();
  if (op.getGatherAxis() != 0 || !scales->rank())
    return in.refuse(op, "not implemented: gather along another axis");
  SymbolicTensor out;
  out.extents = i->extents;
  out.extents.push_back(
      ctx.mul(scales->extents.back(), ctx.num(op.getBlockSize())));
  out.element = in.leaf(op, in.label(op.getResult()), out.extents,
                        {i->element}, ElementType::Float);
  in.set(op.getResult(), std::move(out));
  return success();
}

/// The range is over the whole call in the original; per token here.
LogicalResult dynamicQuantizeRule(onnx::DynamicQuantizeLinearOp op,
                                  Interp &in) {
  const SymbolicTensor *x = in.get(op.getX());
  if (!x)
    return failure();
  Leaves l = in.ctx.leavesOf(x->element);
  for (Value r : op->getResults()) {
    SymbolicTensor out;
    if (r == op.getY())
      out.extents = x->extents;
    out.type = elementTypeOf(r.getType());
    out.element = l.bad ? l.bad
                        : in.bad(op, "its range is over all tokens of a call");
    in.set(r, std::move(out));
  }
  return success();
}

template <typename OpT>
LogicalResult expertsRule(OpT op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *x = in.get(op.getInput()),
                       *router = in.get(op.getRouterProbs());
  if (!x || !router)
    return failure();
  if (!x->rank() || router->rank() < 2)
    return in.refuse(op, "expected rows");
  SmallVector<Expr> bound;
  Expr ex = in.bindAxes(*x, {x->rank() - 1}, bound);
  Expr er = in.bindAxes(*router, {router->rank() - 1}, bound);
  if (router->rank() == 2 && x->rank() != 2) {
    // Rows of the router are the flattened rows of x.
    Expr flat = ctx.num(0);
    for (unsigned q = 0; q + 1 < x->rank(); ++q)
      flat = ctx.add(ctx.mul(flat, x->extents[q]), in.index(q, x->extents[q]));
    Expr row = in.index(0, router->extents[0]);
    if (row->is(ExprKind::Var))
      er = ctx.subst(er, row, flat);
  } else if (router->rank() != x->rank()) {
    return in.refuse(op, "expected a router row per row");
  }
  Value r = op->getResult(0);
  in.set(r, {x->extents,
             in.leaf(op, in.label(r), x->extents, {ex, er}, ElementType::Float,
                     bound),
             ElementType::Float});
  return success();
}
} // namespace

template <typename OpT, LogicalResult (*rule)(OpT, Interp &)>
static void attach(MLIRContext &context) {
  OpT::template attachInterface<RuleModel<OpT, rule>>(context);
}

void attachQuantRules(MLIRContext &c) {
  using namespace onnx;
  attach<QuantizeLinearOp, quantizeRule<QuantizeLinearOp>>(c);
  attach<DequantizeLinearOp, quantizeRule<DequantizeLinearOp>>(c);
  attach<MSQuantizeLinearOp, quantizeRule<MSQuantizeLinearOp>>(c);
  attach<MSDequantizeLinearOp, quantizeRule<MSDequantizeLinearOp>>(c);
  attach<MSMatMulNBitsOp, nBitsRule>(c);
  attach<MSMatMulBnb4Op, bnb4Rule>(c);
  attach<MSGatherBlockQuantizedOp, gatherBlockRule>(c);
  attach<DynamicQuantizeLinearOp, dynamicQuantizeRule>(c);
  attach<MSMoEOp, expertsRule<MSMoEOp>>(c);
  attach<MSQMoEOp, expertsRule<MSQMoEOp>>(c);
}

} // namespace quire
