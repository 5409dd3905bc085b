// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfer rules of reductions, normalisations and softmax.

#include "lib/Analysis/Element/Rules.h"

using namespace llvm;
using namespace mlir;

namespace quire {

LogicalResult mixAxes(Operation *op, Interp &in, const SymbolicTensor &x,
                      ArrayRef<unsigned> axes, Expr lastExtent) {
  SmallVector<Expr> bound;
  Expr e = in.bindAxes(x, axes, bound);
  SymbolicTensor out;
  out.extents = x.extents;
  if (lastExtent)
    out.extents.back() = lastExtent;
  Value r = op->getResult(0);
  out.type = elementTypeOf(r.getType());
  out.element = in.leaf(op, in.label(r), out.extents, {e}, out.type, bound);
  in.set(r, std::move(out));
  return success();
}

namespace {
enum class Reduction { Sum, Mean, Max, Min, Other };

struct ReduceShape {
  SmallVector<unsigned> axes;
  bool keep;
};

/// Extents after the reduction, and the renaming of the kept indices.
SymbolicTensor reducedFrame(Interp &in, const SymbolicTensor &t,
                            const ReduceShape &s, Substitution &rename) {
  SymbolicTensor out;
  for (auto [q, d] : llvm::enumerate(t.extents)) {
    bool gone = llvm::is_contained(s.axes, unsigned(q));
    if (gone && s.keep)
      out.extents.push_back(in.ctx.num(1));
    if (gone)
      continue;
    Expr v = in.index(q, d), w = in.index(out.extents.size(), d);
    out.extents.push_back(d);
    if (v != w)
      rename.push_back({v, w});
  }
  return out;
}

/// Closed form of a reduction that needs no leaf, or null.
Expr closedReduction(Interp &in, const SymbolicTensor &t, const ReduceShape &s,
                     Reduction kind) {
  ExprContext &ctx = in.ctx;
  Expr e = t.element;
  SmallVector<Expr> live;
  Expr count = ctx.num(1);
  bool nonEmpty = true;
  for (unsigned q : s.axes) {
    Expr v = in.index(q, t.extents[q]);
    count = ctx.mul(count, t.extents[q]);
    nonEmpty &= ctx.nonNeg(ctx.sub(t.extents[q], ctx.num(1)));
    if (v->is(ExprKind::Var) && e->uses(v))
      live.push_back(v);
  }
  if (live.empty()) {
    if (kind == Reduction::Sum)
      return ctx.mul(ctx.asNum(e), count);
    return kind == Reduction::Other || !nonEmpty ? nullptr : e;
  }
  if ((kind != Reduction::Max && kind != Reduction::Min) || !nonEmpty ||
      !ctx.isInt(e) || !(e->is(ExprKind::Poly) || e->is(ExprKind::Var)) ||
      !ctx.leavesOf(e).tokens.empty())
    return nullptr;
  Substitution ends;
  for (Expr v : live) {
    Coef c = ctx.coefficient(e, v);
    Expr rest = ctx.sub(e, ctx.mul(ctx.num(c), v));
    if (c.isFloat || c.i <= 0 || rest->uses(v))
      return nullptr;
    ends.push_back({v, kind == Reduction::Max
                           ? ctx.sub(v->extent(), ctx.num(1))
                           : ctx.num(0)});
  }
  return ctx.subst(e, ends);
}

LogicalResult reduce(Operation *op, Interp &in, const SymbolicTensor &t,
                     const ReduceShape &s, Reduction kind) {
  ExprContext &ctx = in.ctx;
  Substitution rename;
  SymbolicTensor out = reducedFrame(in, t, s, rename);
  Value r = op->getResult(0);
  out.type = elementTypeOf(r.getType());
  if (t.element->isBad()) {
    out.element = t.element;
  } else if (Expr e = closedReduction(in, t, s, kind)) {
    out.element = ctx.subst(e, rename);
  } else if (Leaves l = ctx.leavesOf(t.element); l.readsScores() && !l.bad) {
    SmallVector<Expr> idx;
    for (auto [q, d] : llvm::enumerate(out.extents))
      idx.push_back(in.index(q, d));
    out.element = ctx.row(in.label(r), idx);
  } else {
    SmallVector<Expr> bound;
    Expr e = ctx.subst(in.bindAxes(t, s.axes, bound), rename);
    out.element = in.leaf(op, in.label(r), out.extents, {e}, out.type, bound);
  }
  in.set(r, std::move(out));
  return success();
}

template <typename OpT, Reduction kind>
LogicalResult reduceRule(OpT op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getData());
  if (!t)
    return failure();
  ReduceShape s;
  s.keep = op.getKeepdims();
  if (!isa<NoneType>(op.getAxes().getType())) {
    auto axes = in.integers(op, op.getAxes());
    if (!axes)
      return failure();
    for (int64_t a : *axes) {
      auto q = axisIn(a, t->rank());
      if (!q || llvm::is_contained(s.axes, *q))
        return in.refuse(op, "expected distinct axes of the operand");
      s.axes.push_back(*q);
    }
  }
  if (s.axes.empty()) {
    if (op.getNoopWithEmptyAxes()) {
      in.set(op->getResult(0), *t);
      return success();
    }
    for (unsigned q = 0; q < t->rank(); ++q)
      s.axes.push_back(q);
  }
  return reduce(op, in, *t, s, kind);
}

template <typename OpT>
LogicalResult argRule(OpT op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getData());
  if (!t)
    return failure();
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis)
    return in.refuse(op, "expected an axis of the operand");
  return reduce(op, in, *t, {{*axis}, bool(op.getKeepdims())},
                Reduction::Other);
}

LogicalResult topKRule(onnx::TopKOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getX());
  auto k = t ? in.elements(op, op.getK()) : std::nullopt;
  if (!k)
    return failure();
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis || k->size() != 1)
    return in.refuse(op, "expected an axis of the operand");
  SmallVector<Expr> bound;
  Expr e = in.bindAxes(*t, {*axis}, bound);
  for (Value r : op->getResults()) {
    SymbolicTensor out;
    out.extents = t->extents;
    out.extents[*axis] = (*k)[0];
    out.type = elementTypeOf(r.getType());
    out.element = in.leaf(op, in.label(r), out.extents, {e}, out.type, bound);
    in.set(r, std::move(out));
  }
  return success();
}

LogicalResult cumSumRule(onnx::CumSumOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getX());
  auto axes = t ? in.integers(op, op.getAxis()) : std::nullopt;
  if (!axes)
    return failure();
  auto axis = axes->size() == 1 ? axisIn((*axes)[0], t->rank()) : std::nullopt;
  if (!axis)
    return in.refuse(op, "expected an axis of the operand");
  Expr d = t->extents[*axis], v = in.index(*axis, d);
  SymbolicTensor out = *t;
  if (ctx.constant(t->element)) {
    Expr count = op.getReverse() ? ctx.sub(d, v) : ctx.add(v, ctx.num(1));
    if (op.getExclusive())
      count = ctx.sub(count, ctx.num(1));
    out.element = ctx.mul(t->element, count);
  } else if (!t->element->isBad()) {
    // The sum up to the own row depends on that row's index too.
    Expr c = in.fresh(d);
    Expr part = v->is(ExprKind::Var) ? ctx.subst(t->element, v, c)
                                     : t->element;
    SmallVector<Expr> bound;
    if (c->is(ExprKind::Var))
      bound.push_back(c);
    out.element = in.leaf(op, in.label(op.getResult()), t->extents, {part, v},
                          t->type, bound);
  }
  in.set(op.getResult(), std::move(out));
  return success();
}

//===----------------------------------------------------------------------===//
// Normalisations
//===----------------------------------------------------------------------===//

SmallVector<unsigned> axesFrom(unsigned first, unsigned rank) {
  SmallVector<unsigned> out;
  for (unsigned q = first; q < rank; ++q)
    out.push_back(q);
  return out;
}

template <typename OpT>
LogicalResult normRule(OpT op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getX());
  if (!x)
    return failure();
  auto axis = axisIn(op.getAxis(), x->rank());
  if (!axis)
    return in.refuse(op, "expected an axis of the operand");
  return mixAxes(op, in, *x, axesFrom(*axis, x->rank()));
}

LogicalResult lpNormRule(onnx::LpNormalizationOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getInput());
  auto axis = x ? axisIn(op.getAxis(), x->rank()) : std::nullopt;
  if (!axis)
    return in.refuse(op, "expected an axis of the operand");
  return mixAxes(op, in, *x, {*axis});
}

/// Norm of (input + skip + bias); the sum is a result of its own.
template <typename OpT>
LogicalResult skipNormRule(OpT op, Interp &in) {
  SmallVector<const SymbolicTensor *> ts{in.get(op.getInput()),
                                         in.get(op.getSkip())};
  if (!ts[0] || !ts[1])
    return failure();
  if (const SymbolicTensor *bias = in.getOptional(op.getBias()))
    ts.push_back(bias);
  auto extents = in.broadcast(op, ts);
  if (!extents)
    return failure();
  SmallVector<Expr> parts;
  for (const SymbolicTensor *t : ts)
    parts.push_back(in.atBroadcast(*t, *extents));
  SymbolicTensor sum;
  sum.extents = *extents;
  sum.element = in.ctx.add(parts);
  if (!isa<NoneType>(op.getInputSkipBiasSum().getType())) {
    in.set(op.getInputSkipBiasSum(), sum);
    sum = *in.find(op.getInputSkipBiasSum());
  }
  if (!sum.rank())
    return in.refuse(op, "expected rows");
  return mixAxes(op, in, sum, {sum.rank() - 1});
}

LogicalResult gatedNormRule(onnx::MSGatedRMSNormOp op, Interp &in) {
  const SymbolicTensor *x = in.get(op.getX()), *g = in.get(op.getGate());
  if (!x || !g)
    return failure();
  if (x->rank() != g->rank() || !x->rank())
    return in.refuse(op, "expected a gate of the operand's shape");
  SmallVector<Expr> bound;
  Expr e = in.bindAxes(*x, {x->rank() - 1}, bound);
  Value r = op->getResult(0);
  in.set(r, {x->extents,
             in.leaf(op, in.label(r), x->extents, {e, g->element},
                     ElementType::Float, bound),
             ElementType::Float});
  return success();
}

LogicalResult embedNormRule(onnx::MSEmbedLayerNormalizationOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *ids = in.get(op.getInputIds()),
                       *words = in.get(op.getWordEmbedding()),
                       *places = in.get(op.getPositionEmbedding());
  if (!ids || !words || !places)
    return failure();
  const SymbolicTensor *pos = in.getOptional(op.getPositionIds());
  if (ids->rank() != 2 || words->rank() != 2 || places->rank() != 2 ||
      (pos && pos->rank() != 2))
    return in.refuse(op, "expected rows of ids and tables of rows");
  if (in.getOptional(op.getSegmentIds()))
    return in.refuse(op, "not implemented: segment ids");
  SymbolicTensor sum;
  sum.extents = {ids->extents[0], ids->extents[1], words->extents[1]};
  Expr h = in.index(2, words->extents[1]);
  Expr p = pos ? in.at(*pos, {in.ctx.isConst(pos->extents[0], 1)
                                  ? ctx.num(0)
                                  : in.index(0, ids->extents[0]),
                              in.index(1, ids->extents[1])})
               : in.index(1, ids->extents[1]);
  in.boundPositions(p, places->extents[0]);
  sum.element = ctx.add(in.at(*words, {ids->element, h}),
                        in.at(*places, {p, h}));
  if (!isa<NoneType>(op.getEmbeddingSum().getType()))
    in.set(op.getEmbeddingSum(), sum);
  return mixAxes(op, in, sum, {2});
}

//===----------------------------------------------------------------------===//
// Softmax
//===----------------------------------------------------------------------===//

template <typename OpT>
LogicalResult rowFunctionRule(OpT op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getInput());
  if (!t)
    return failure();
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis)
    return in.refuse(op, "expected an axis of the operand");
  return mixAxes(op, in, *t, {*axis});
}

LogicalResult softmaxRule(onnx::SoftmaxOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getInput());
  if (!t)
    return failure();
  Leaves l = ctx.leavesOf(t->element);
  if (l.bad || l.dots.empty())
    return rowFunctionRule(op, in);
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis)
    return in.refuse(op, "expected an axis of the operand");
  SymbolicTensor out = *t;
  StringRef name = in.label(op.getResult());
  Leaves query = ctx.leavesOf(l.dots.front()->args[1]);
  if (query.tokens.size() != 1) {
    out.element = in.bad(op, "a query that is not the data of one token");
  } else {
    SoftmaxSite &site = in.softmaxes[name];
    site.op = op;
    site.element = t->element;
    site.axis = *axis;
    site.extents = t->extents;
    site.vars = in.generic(t->extents);
    site.queryToken = query.tokens.front().first;
    site.queryBatch = query.tokens.front().second;
    out.element = ctx.prob(name, site.vars);
  }
  in.set(op.getResult(), std::move(out));
  return success();
}
} // namespace

template <typename OpT, LogicalResult (*rule)(OpT, Interp &)>
static void attach(MLIRContext &context) {
  OpT::template attachInterface<RuleModel<OpT, rule>>(context);
}

template <typename OpT, Reduction kind>
static void attachReduce(MLIRContext &context) {
  attach<OpT, reduceRule<OpT, kind>>(context);
}

void attachNormRules(MLIRContext &c) {
  using namespace onnx;
  attachReduce<ReduceSumOp, Reduction::Sum>(c);
  attachReduce<ReduceMeanOp, Reduction::Mean>(c);
  attachReduce<ReduceMaxOp, Reduction::Max>(c);
  attachReduce<ReduceMinOp, Reduction::Min>(c);
  attachReduce<ReduceL1Op, Reduction::Other>(c);
  attachReduce<ReduceL2Op, Reduction::Other>(c);
  attachReduce<ReduceLogSumOp, Reduction::Other>(c);
  attachReduce<ReduceLogSumExpOp, Reduction::Other>(c);
  attachReduce<ReduceProdOp, Reduction::Other>(c);
  attachReduce<ReduceSumSquareOp, Reduction::Other>(c);
  attach<ArgMaxOp, argRule<ArgMaxOp>>(c);
  attach<ArgMinOp, argRule<ArgMinOp>>(c);
  attach<TopKOp, topKRule>(c);
  attach<CumSumOp, cumSumRule>(c);
  attach<LayerNormalizationOp, normRule<LayerNormalizationOp>>(c);
  attach<RMSNormalizationOp, normRule<RMSNormalizationOp>>(c);
  attach<SimplifiedLayerNormalizationOp,
         normRule<SimplifiedLayerNormalizationOp>>(c);
  attach<LpNormalizationOp, lpNormRule>(c);
  attach<MSSkipLayerNormalizationOp, skipNormRule<MSSkipLayerNormalizationOp>>(
      c);
  attach<MSSkipSimplifiedLayerNormalizationOp,
         skipNormRule<MSSkipSimplifiedLayerNormalizationOp>>(c);
  attach<MSEmbedLayerNormalizationOp, embedNormRule>(c);
  attach<MSGatedRMSNormOp, gatedNormRule>(c);
  attach<SoftmaxOp, softmaxRule>(c);
  attach<LogSoftmaxOp, rowFunctionRule<LogSoftmaxOp>>(c);
  attach<HardmaxOp, rowFunctionRule<HardmaxOp>>(c);
}

} // namespace quire
