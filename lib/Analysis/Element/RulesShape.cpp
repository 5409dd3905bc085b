// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfer rules of shape and movement operators: they only remap indices.

#include "lib/Analysis/Element/Rules.h"

using namespace llvm;
using namespace mlir;

namespace quire {

//===----------------------------------------------------------------------===//
// Reshape
//===----------------------------------------------------------------------===//

/// Remaps by groups of equal products; inside a group linearises and splits.
static SymbolicTensor regrouped(Interp &in, const SymbolicTensor &t,
                                ArrayRef<Expr> out) {
  ExprContext &ctx = in.ctx;
  ArrayRef<Expr> src = t.extents;
  auto isOne = [&](ArrayRef<Expr> xs, size_t k) {
    return k < xs.size() && ctx.isConst(xs[k], 1);
  };
  auto smaller = [&](Expr a, Expr b) {
    std::optional<int64_t> ca = ctx.constInt(a), cb = ctx.constInt(b);
    if (ca && cb)
      return *ca < *cb;
    return a != b && ctx.nonNeg(ctx.sub(b, a));
  };
  SmallVector<std::pair<SmallVector<unsigned>, SmallVector<unsigned>>> groups;
  SmallVector<unsigned> gi, gj;
  Expr pi = ctx.num(1), pj = ctx.num(1);
  size_t i = 0, j = 0;
  while (i < src.size() || j < out.size()) {
    if (!gi.empty() && pi == pj && !isOne(src, i) && !isOne(out, j)) {
      groups.push_back({gi, gj});
      gi.clear();
      gj.clear();
      pi = pj = ctx.num(1);
    }
    bool takeSource = i < src.size() && (gi.empty() || j >= out.size() ||
                                         isOne(src, i) || smaller(pi, pj));
    if (takeSource || j >= out.size()) {
      gi.push_back(i);
      pi = ctx.mul(pi, src[i++]);
    } else {
      gj.push_back(j);
      pj = ctx.mul(pj, out[j++]);
    }
  }
  groups.push_back({gi, gj});

  SmallVector<Expr, 4> idx(src.size(), ctx.num(0));
  for (auto &[from, to] : groups) {
    llvm::erase_if(from, [&](unsigned k) { return isOne(src, k); });
    llvm::erase_if(to, [&](unsigned k) { return isOne(out, k); });
    Expr x = ctx.num(0);
    for (unsigned k : to)
      x = ctx.add(ctx.mul(x, out[k]), in.index(k, out[k]));
    for (size_t q = from.size(); q-- > 0;) {
      if (q == 0) {
        idx[from[0]] = x;
        break;
      }
      std::tie(x, idx[from[q]]) = ctx.divMod(x, src[from[q]]);
    }
  }
  SymbolicTensor r;
  r.extents.assign(out.begin(), out.end());
  r.type = t.type;
  r.element = in.at(t, idx);
  return r;
}

std::optional<SymbolicTensor> reshaped(Operation *op, Interp &in,
                                       const SymbolicTensor &t,
                                       ArrayRef<Expr> extents) {
  Expr a = in.productOf(t.extents), b = in.productOf(extents);
  if (a != b && failed(in.unify(op, b, a)))
    return std::nullopt;
  return regrouped(in, t, extents);
}

namespace {
LogicalResult reshapeRule(onnx::ReshapeOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getData());
  auto want = t ? in.elements(op, op.getShape()) : std::nullopt;
  if (!want)
    return failure();
  SmallVector<Expr, 4> out = *want;
  std::optional<unsigned> open;
  for (auto [k, w] : llvm::enumerate(*want)) {
    if (ctx.isConst(w, 0) && !op.getAllowzero()) {
      if (k >= t->rank())
        return in.refuse(op, "expected a copied axis to exist");
      out[k] = t->extents[k];
    }
    if (ctx.isConst(out[k], -1)) {
      if (open)
        return in.refuse(op, "expected at most one open extent");
      open = k;
    }
  }
  if (open) {
    SmallVector<Expr> src(t->extents.begin(), t->extents.end()), rest;
    for (auto [k, d] : llvm::enumerate(out)) {
      if (k == *open)
        continue;
      auto it = llvm::find(src, d);
      if (it != src.end())
        src.erase(it);
      else
        rest.push_back(d);
    }
    Expr have = in.productOf(src), divisor = in.productOf(rest);
    auto [q, r] = ctx.leadDiv(have, divisor);
    if (!ctx.isConst(r, 0))
      return in.refuse(op, "cannot infer the open extent: " + ctx.str(have) +
                               " over " + ctx.str(divisor));
    out[*open] = q;
  }
  auto r = reshaped(op, in, *t, out);
  if (!r)
    return failure();
  in.set(op.getResult(), std::move(*r));
  return success();
}

LogicalResult flattenRule(onnx::FlattenOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getInput());
  if (!t)
    return failure();
  int64_t axis = op.getAxis() < 0 ? op.getAxis() + t->rank() : op.getAxis();
  if (axis < 0 || axis > int64_t(t->rank()))
    return in.refuse(op, "expected an axis of the operand");
  ArrayRef<Expr> d = t->extents;
  auto r = reshaped(op, in, *t, {in.productOf(d.take_front(axis)),
                                 in.productOf(d.drop_front(axis))});
  if (!r)
    return failure();
  in.set(op.getResult(), std::move(*r));
  return success();
}

//===----------------------------------------------------------------------===//
// Shapes as values
//===----------------------------------------------------------------------===//

LogicalResult shapeRule(onnx::ShapeOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getData());
  if (!t)
    return failure();
  int64_t r = t->rank();
  auto clampTo = [&](int64_t v) {
    return std::clamp<int64_t>(v < 0 ? v + r : v, 0, r);
  };
  int64_t from = clampTo(op.getStart()), to = clampTo(op.getEnd().value_or(r));
  in.set(op.getResult(),
         in.vector(ArrayRef<Expr>(t->extents)
                       .slice(from, std::max<int64_t>(to - from, 0))));
  return success();
}

LogicalResult sizeRule(onnx::SizeOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getData());
  if (!t)
    return failure();
  in.set(op.getResult(), {{}, in.productOf(t->extents), ElementType::Int});
  return success();
}

LogicalResult constantRule(onnx::ConstantOp op, Interp &in) {
  std::string name = in.label(op.getResult()).str();
  if (auto table = tableOf(op.getValue())) {
    in.set(op.getResult(), in.constant(name, std::move(*table)));
    return success();
  }
  SymbolicTensor t;
  for (int64_t n : op.getValue().getShapedType().getShape())
    t.extents.push_back(in.ctx.num(n));
  t.type = elementTypeOf(op.getType());
  t.element = in.ctx.table(name, t.type, in.generic(t.extents));
  in.set(op.getResult(), std::move(t));
  return success();
}

LogicalResult constantOfShapeRule(onnx::ConstantOfShapeOp op, Interp &in) {
  auto extents = in.elements(op, op.getInput());
  if (!extents)
    return failure();
  SymbolicTensor t;
  t.extents = *extents;
  t.type = elementTypeOf(op.getType());
  Coef value = Coef::ofInt(0);
  if (auto attr = op.getValue()) {
    auto table = tableOf(*attr);
    if (!table || table->size() != 1)
      return in.refuse(op, "expected a value of one element");
    value = table->flat(0);
  }
  t.element = t.type == ElementType::Bool ? in.ctx.boolean(!value.isZero())
                                          : in.ctx.num(value);
  in.set(op.getResult(), std::move(t));
  return success();
}

Expr atLeastZero(Interp &in, Expr extent);

LogicalResult rangeRule(onnx::RangeOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *start = in.get(op.getStart()),
                       *limit = in.get(op.getLimit()),
                       *delta = in.get(op.getDelta());
  if (!start || !limit || !delta)
    return failure();
  std::optional<int64_t> step = ctx.constInt(delta->element);
  if (!step || *step <= 0)
    return in.refuse(op, "expected a positive constant step");
  Expr span = ctx.sub(limit->element, start->element);
  if (span->isBad())
    return in.refuse(op, span->name);
  if (!ctx.isInt(span))
    return in.refuse(op, "expected integer bounds");
  Expr count = *step == 1 ? span
                          : ctx.floorDiv(ctx.add(span, ctx.num(*step - 1)),
                                         ctx.num(*step));
  count = atLeastZero(in, count);
  SymbolicTensor t;
  t.extents = {count};
  t.type = elementTypeOf(op.getType());
  t.element = ctx.add(start->element,
                      ctx.mul(delta->element, in.index(0, count)));
  in.set(op.getResult(), std::move(t));
  return success();
}

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

/// Result axis q takes the index of source axis source[q]; -1: extent 1.
void permute(Interp &in, Value result, const SymbolicTensor &t,
             ArrayRef<int> source) {
  SymbolicTensor out;
  out.type = t.type;
  SmallVector<Expr, 4> idx(t.rank(), in.ctx.num(0));
  for (auto [q, s] : llvm::enumerate(source)) {
    out.extents.push_back(s < 0 ? in.ctx.num(1) : t.extents[s]);
    if (s >= 0)
      idx[s] = in.index(q, t.extents[s]);
  }
  out.element = in.at(t, idx);
  in.set(result, std::move(out));
}

std::optional<SmallVector<bool>> markedAxes(Interp &in, Operation *op, Value v,
                                            unsigned rank) {
  auto axes = in.integers(op, v);
  if (!axes)
    return std::nullopt;
  SmallVector<bool> marked(rank, false);
  for (int64_t a : *axes) {
    auto q = axisIn(a, rank);
    if (!q || marked[*q]) {
      (void)in.refuse(op, "expected distinct axes of the tensor");
      return std::nullopt;
    }
    marked[*q] = true;
  }
  return marked;
}

LogicalResult unsqueezeRule(onnx::UnsqueezeOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getData());
  auto axes = t ? in.integers(op, op.getAxes()) : std::nullopt;
  if (!axes)
    return failure();
  auto marked = markedAxes(in, op, op.getAxes(), t->rank() + axes->size());
  if (!marked)
    return failure();
  SmallVector<int> source;
  int next = 0;
  for (bool m : *marked)
    source.push_back(m ? -1 : next++);
  permute(in, op.getResult(), *t, source);
  return success();
}

LogicalResult squeezeRule(onnx::SqueezeOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getData());
  if (!t)
    return failure();
  SmallVector<bool> marked(t->rank(), false);
  if (isa<NoneType>(op.getAxes().getType())) {
    for (auto [q, d] : llvm::enumerate(t->extents))
      marked[q] = in.ctx.isConst(d, 1);
  } else {
    auto m = markedAxes(in, op, op.getAxes(), t->rank());
    if (!m)
      return failure();
    marked = *m;
  }
  SmallVector<int> source;
  for (auto [q, m] : llvm::enumerate(marked)) {
    if (!m)
      source.push_back(q);
    else if (failed(in.unify(op, t->extents[q], in.ctx.num(1))))
      return failure();
  }
  permute(in, op.getResult(), *t, source);
  return success();
}

LogicalResult transposeRule(onnx::TransposeOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getData());
  if (!t)
    return failure();
  SmallVector<int> source;
  if (auto perm = op.getPerm()) {
    for (int64_t q : *perm)
      source.push_back(int(q));
  } else {
    for (unsigned q = t->rank(); q-- > 0;)
      source.push_back(int(q));
  }
  if (source.size() != t->rank())
    return in.refuse(op, "expected a permutation of the operand's axes");
  permute(in, op.getResult(), *t, source);
  return success();
}

LogicalResult expandRule(onnx::ExpandOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getInput());
  auto want = t ? in.elements(op, op.getShape()) : std::nullopt;
  if (!want)
    return failure();
  SymbolicTensor shape;
  shape.extents = *want;
  auto extents = in.broadcast(op, {t, &shape});
  if (!extents)
    return failure();
  in.set(op.getResult(), {*extents, in.atBroadcast(*t, *extents), t->type});
  return success();
}

LogicalResult tileRule(onnx::TileOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getInput());
  auto repeats = t ? in.elements(op, op.getRepeats()) : std::nullopt;
  if (!repeats)
    return failure();
  if (repeats->size() != t->rank())
    return in.refuse(op, "expected one repeat per axis");
  SymbolicTensor out;
  out.type = t->type;
  SmallVector<Expr, 4> idx;
  for (auto [q, d] : llvm::enumerate(t->extents)) {
    out.extents.push_back(ctx.mul(d, (*repeats)[q]));
    Expr v = in.index(q, out.extents.back());
    idx.push_back(ctx.isConst((*repeats)[q], 1) ? v : ctx.mod(v, d));
  }
  out.element = in.at(*t, idx);
  in.set(op.getResult(), std::move(out));
  return success();
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

LogicalResult concatRule(onnx::ConcatOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  SmallVector<const SymbolicTensor *> ts;
  for (Value v : op.getInputs()) {
    ts.push_back(in.get(v));
    if (!ts.back())
      return failure();
  }
  const SymbolicTensor &first = *ts.front();
  auto axis = axisIn(op.getAxis(), first.rank());
  if (!axis)
    return in.refuse(op, "expected an axis of the operands");
  SymbolicTensor out;
  out.type = first.type;
  out.extents = first.extents;
  SmallVector<Expr> lengths;
  for (const SymbolicTensor *t : ts) {
    if (t->rank() != first.rank())
      return in.refuse(op, "expected operands of one rank");
    for (unsigned q = 0; q < first.rank(); ++q)
      if (q != *axis && failed(in.unify(op, first.extents[q], t->extents[q])))
        return failure();
    lengths.push_back(t->extents[*axis]);
  }
  out.extents[*axis] = ctx.add(lengths);
  Expr v = in.index(*axis, out.extents[*axis]), offset = ctx.num(0);
  struct Part {
    Expr end, element;
  };
  SmallVector<Part> parts;
  for (const SymbolicTensor *t : ts) {
    Expr length = t->extents[*axis];
    if (ctx.isConst(length, 0))
      continue;
    SmallVector<Expr, 4> idx = in.generic(out.extents);
    idx[*axis] = ctx.isConst(length, 1) ? ctx.num(0) : ctx.sub(v, offset);
    offset = ctx.add(offset, length);
    parts.push_back({offset, in.at(*t, idx)});
  }
  out.element = parts.empty() ? ctx.num(0) : parts.back().element;
  for (const Part &p : llvm::reverse(ArrayRef(parts).drop_back(!parts.empty())))
    out.element = ctx.ite(ctx.lt(v, p.end), p.element, out.element);
  in.set(op.getResult(), std::move(out));
  return success();
}

/// A slice bound against an extent.
Expr clampBound(Interp &in, Expr x, Expr d) {
  ExprContext &ctx = in.ctx;
  if (x->isBad())
    return x;
  bool fromStart = ctx.nonNeg(x); // else a negative bound counts from the end
  if (std::optional<Coef> c = ctx.constant(x)) {
    double v = c->asDouble();
    if (v >= 2147483647.0)
      return d;
    if (v <= -2147483648.0)
      return ctx.num(0);
  }
  std::optional<int64_t> rows = ctx.constInt(d);
  auto assumeFits = [&] {
    if (rows && *rows >= 32 && (x->uses(ctx.P()) || x->uses(ctx.L())) &&
        (!ctx.totalBound() || *ctx.totalBound() > *rows))
      in.assume(*rows, "a constant table is sliced by a length");
  };
  if (!fromStart) {
    if (!ctx.nonNeg(ctx.sub(ctx.num(-1), x))) {
      assumeFits();
      return ctx.named("slicebound", {x, d});
    }
    x = ctx.add(d, x);
  }
  if (ctx.nonNeg(ctx.sub(x, d)))
    return d;
  if (ctx.nonNeg(x) && ctx.nonNeg(ctx.sub(d, x)))
    return x;
  assumeFits();
  return fromStart ? ctx.call(Fn::IntMin, {x, d})
                   : ctx.call(Fn::IntMax, {x, ctx.num(0)});
}

/// A count is never negative; open extents are settled by a restart.
Expr atLeastZero(Interp &in, Expr extent) {
  ExprContext &ctx = in.ctx;
  if (extent->isBad() || ctx.nonNeg(extent) ||
      llvm::any_of(extent->freeVars,
                   [](Expr v) { return v->name.starts_with("?"); }))
    return extent;
  if (ctx.nonNeg(ctx.neg(extent)))
    return ctx.num(0);
  return ctx.call(Fn::IntMax, {extent, ctx.num(0)});
}

LogicalResult sliceRule(onnx::SliceOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getData());
  if (!t)
    return failure();
  auto starts = in.elements(op, op.getStarts());
  auto ends = starts ? in.elements(op, op.getEnds()) : std::nullopt;
  if (!ends)
    return failure();
  SmallVector<int64_t, 4> axes, steps;
  if (isa<NoneType>(op.getAxes().getType())) {
    for (size_t q = 0; q < starts->size(); ++q)
      axes.push_back(int64_t(q));
  } else if (auto xs = in.integers(op, op.getAxes())) {
    axes = *xs;
  } else {
    return failure();
  }
  steps.assign(starts->size(), 1);
  if (!isa<NoneType>(op.getSteps().getType())) {
    auto xs = in.integers(op, op.getSteps());
    if (!xs)
      return failure();
    steps = *xs;
  }
  if (ends->size() != starts->size() || axes.size() != starts->size() ||
      steps.size() != starts->size())
    return in.refuse(op, "expected as many starts as ends, axes and steps");
  SymbolicTensor out = *t;
  SmallVector<Expr, 4> idx = in.generic(out.extents);
  SmallVector<bool> seen(t->rank(), false);
  for (size_t n = 0; n < axes.size(); ++n) {
    auto q = axisIn(axes[n], t->rank());
    if (!q || seen[*q])
      return in.refuse(op, "expected distinct axes of the operand");
    seen[*q] = true;
    Expr d = t->extents[*q];
    int64_t step = steps[n];
    if (step <= 0) {
      // Only the whole axis in reverse.
      std::optional<Coef> s = ctx.constant((*starts)[n]),
                          e = ctx.constant((*ends)[n]);
      bool whole = step == -1 && s && e &&
                   (s->asDouble() == -1 || s->asDouble() >= 2147483647.0) &&
                   e->asDouble() <= -2147483648.0;
      if (!whole)
        return in.refuse(op, "negative step");
      idx[*q] = ctx.sub(ctx.sub(d, ctx.num(1)), in.index(*q, d));
      continue;
    }
    Expr s = clampBound(in, (*starts)[n], d), e = clampBound(in, (*ends)[n], d);
    Expr extent = ctx.sub(e, s);
    if (step != 1)
      extent = ctx.floorDiv(ctx.add(extent, ctx.num(step - 1)), ctx.num(step));
    if (extent->isBad())
      return in.refuse(op, extent->name);
    extent = atLeastZero(in, extent);
    out.extents[*q] = extent;
    idx[*q] = ctx.add(s, ctx.mul(ctx.num(step), in.index(*q, extent)));
  }
  out.element = in.at(*t, idx);
  in.set(op.getResult(), std::move(out));
  return success();
}

LogicalResult splitRule(onnx::SplitOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getInput());
  if (!t)
    return failure();
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis)
    return in.refuse(op, "expected an axis of the operand");
  Expr d = t->extents[*axis];
  size_t n = op.getOutputs().size();
  SmallVector<Expr, 4> sizes;
  if (isa<NoneType>(op.getSplit().getType())) {
    Expr chunk = ctx.floorDiv(ctx.add(d, ctx.num(int64_t(n) - 1)),
                              ctx.num(int64_t(n)));
    sizes.assign(n, chunk);
    sizes.back() = ctx.sub(d, ctx.mul(ctx.num(int64_t(n) - 1), chunk));
  } else if (auto xs = in.elements(op, op.getSplit())) {
    sizes = *xs;
  } else {
    return failure();
  }
  if (sizes.size() != n)
    return in.refuse(op, "expected one size per result");
  if (failed(in.unify(op, ctx.add(sizes), d)))
    return failure();
  Expr offset = ctx.num(0);
  for (auto [k, size] : llvm::enumerate(sizes)) {
    SymbolicTensor out = *t;
    out.extents[*axis] = size;
    SmallVector<Expr, 4> idx = in.generic(out.extents);
    idx[*axis] = ctx.add(offset, in.index(*axis, size));
    out.element = in.at(*t, idx);
    offset = ctx.add(offset, size);
    in.set(op.getOutputs()[k], std::move(out));
  }
  return success();
}

LogicalResult triangleRule(Operation *op, Interp &in, Value x, Value diagonal,
                           bool upper) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(x);
  if (!t)
    return failure();
  if (t->rank() < 2)
    return in.refuse(op, "expected matrices");
  Expr offset = ctx.num(0);
  if (const SymbolicTensor *k = in.getOptional(diagonal))
    offset = k->element;
  unsigned r = t->rank();
  Expr row = in.index(r - 2, t->extents[r - 2]),
       col = in.index(r - 1, t->extents[r - 1]);
  Expr d = ctx.sub(ctx.sub(col, row), offset);
  Expr keep = ctx.ge0(upper ? d : ctx.neg(d));
  Expr zero = t->type == ElementType::Bool ? ctx.boolean(false) : ctx.num(0);
  in.set(op->getResult(0),
         {t->extents, ctx.ite(keep, t->element, zero), t->type});
  return success();
}

LogicalResult triluRule(onnx::TriluOp op, Interp &in) {
  return triangleRule(op, in, op.getInput(), op.getK(), op.getUpper());
}
LogicalResult msTriluRule(onnx::MSTriluOp op, Interp &in) {
  return triangleRule(op, in, op.getX(), op.getK(), op.getUpper());
}

LogicalResult weightRule(onnx::WeightOp op, Interp &in) {
  in.set(op.getResult(), in.weight(op));
  return success();
}
} // namespace

template <typename OpT, LogicalResult (*rule)(OpT, Interp &)>
static void attach(MLIRContext &context) {
  OpT::template attachInterface<RuleModel<OpT, rule>>(context);
}

void attachShapeRules(MLIRContext &c) {
  using namespace onnx;
  attach<ReshapeOp, reshapeRule>(c);
  attach<FlattenOp, flattenRule>(c);
  attach<ShapeOp, shapeRule>(c);
  attach<SizeOp, sizeRule>(c);
  attach<ConstantOp, constantRule>(c);
  attach<WeightOp, weightRule>(c);
  attach<ConstantOfShapeOp, constantOfShapeRule>(c);
  attach<RangeOp, rangeRule>(c);
  attach<UnsqueezeOp, unsqueezeRule>(c);
  attach<SqueezeOp, squeezeRule>(c);
  attach<TransposeOp, transposeRule>(c);
  attach<ExpandOp, expandRule>(c);
  attach<TileOp, tileRule>(c);
  attach<ConcatOp, concatRule>(c);
  attach<SliceOp, sliceRule>(c);
  attach<SplitOp, splitRule>(c);
  attach<TriluOp, triluRule>(c);
  attach<MSTriluOp, msTriluRule>(c);
}

} // namespace quire
