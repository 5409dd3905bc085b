// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Transfer rules of gathers, scatters and coordinates.

#include "lib/Analysis/Element/Rules.h"

using namespace llvm;
using namespace mlir;

namespace quire {
namespace {

/// A negative index counts from the end. Token ids are never negative.
Expr wrapped(ExprContext &ctx, Expr i, Expr extent) {
  if (i->isBad() || !ctx.isInt(i) || !ctx.leavesOf(i).tokens.empty() ||
      i->is(ExprKind::NonZero) || i->is(ExprKind::Table) ||
      i->is(ExprKind::Opaque))
    return i;
  return ctx.ite(ctx.ge0(i), i, ctx.add(extent, i));
}

LogicalResult gatherRule(onnx::GatherOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getData()), *i = in.get(op.getIndices());
  if (!t || !i)
    return failure();
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis)
    return in.refuse(op, "expected an axis of the operand");
  unsigned r = i->rank();
  SymbolicTensor out;
  out.type = t->type;
  ArrayRef<Expr> d = t->extents;
  out.extents.append(d.begin(), d.begin() + *axis);
  out.extents.append(i->extents);
  out.extents.append(d.begin() + *axis + 1, d.end());
  SmallVector<Expr, 4> at;
  for (auto [k, e] : llvm::enumerate(i->extents))
    at.push_back(in.index(*axis + k, e));
  Expr given = in.at(*i, at), row = wrapped(ctx, given, d[*axis]);
  if (row->isBad()) {
    out.element = row;
    in.set(op.getResult(), std::move(out));
    return success();
  }
  in.boundPositions(given, d[*axis]);
  SmallVector<Expr, 4> idx;
  for (unsigned q = 0; q < t->rank(); ++q)
    idx.push_back(q < *axis    ? in.index(q, d[q])
                  : q == *axis ? row
                               : in.index(q + r - 1, d[q]));
  out.element = in.at(*t, idx);
  in.set(op.getResult(), std::move(out));
  return success();
}

LogicalResult gatherElementsRule(onnx::GatherElementsOp op, Interp &in) {
  const SymbolicTensor *t = in.get(op.getData()), *i = in.get(op.getIndices());
  if (!t || !i)
    return failure();
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis || i->rank() != t->rank())
    return in.refuse(op, "expected indices of the operand's rank");
  SmallVector<Expr, 4> idx = in.generic(i->extents);
  idx[*axis] = wrapped(in.ctx, i->element, t->extents[*axis]);
  in.boundPositions(i->element, t->extents[*axis]);
  Expr e = idx[*axis]->isBad() ? idx[*axis] : in.at(*t, idx);
  in.set(op.getResult(), {i->extents, e, t->type});
  return success();
}

LogicalResult gatherND(Operation *op, Interp &in, Value data, Value indices,
                       int64_t batchDims) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(data), *i = in.get(indices);
  if (!t || !i)
    return failure();
  if (!i->rank())
    return in.refuse(op, "expected index tuples");
  std::optional<int64_t> k = ctx.constInt(i->extents.back());
  if (!k || *k <= 0 || batchDims < 0 || batchDims + *k > int64_t(t->rank()) ||
      batchDims >= int64_t(i->rank()))
    return in.refuse(op, "expected index tuples that fit the operand");
  SymbolicTensor out;
  out.type = t->type;
  out.extents.assign(i->extents.begin(), i->extents.end() - 1);
  SmallVector<Expr, 4> lead = in.generic(out.extents);
  out.extents.append(t->extents.begin() + batchDims + *k, t->extents.end());
  SmallVector<Expr, 4> idx(lead.begin(), lead.begin() + batchDims);
  for (int64_t c = 0; c < *k; ++c) {
    SmallVector<Expr, 4> at = lead;
    at.push_back(ctx.num(c));
    Expr given = in.at(*i, at), extent = t->extents[batchDims + c];
    idx.push_back(wrapped(ctx, given, extent));
    in.boundPositions(given, extent);
    if (idx.back()->isBad()) {
      out.element = idx.back();
      in.set(op->getResult(0), std::move(out));
      return success();
    }
  }
  for (unsigned q = batchDims + *k; q < t->rank(); ++q)
    idx.push_back(
        in.index(lead.size() + q - batchDims - *k, t->extents[q]));
  out.element = in.at(*t, idx);
  in.set(op->getResult(0), std::move(out));
  return success();
}

LogicalResult gatherNDRule(onnx::GatherNDOp op, Interp &in) {
  return gatherND(op, in, op.getData(), op.getIndices(), op.getBatchDims());
}
LogicalResult msGatherNDRule(onnx::MSGatherNDOp op, Interp &in) {
  return gatherND(op, in, op.getData(), op.getIndices(), 0);
}

//===----------------------------------------------------------------------===//
// Scatters
//===----------------------------------------------------------------------===//

/// Rows of axis `axis` written at index(u) for 0 <= u < count; `update` is the
/// element written at u.
struct RowWrite {
  unsigned axis;
  Expr u, count, index, update, condition;
};

/// Affine indices are inverted; others are written only if each row is written
/// back to the row it came from.
Expr writeRows(Operation *op, Interp &in, const SymbolicTensor &t,
               const RowWrite &w) {
  ExprContext &ctx = in.ctx;
  if (w.index->isBad() || w.update->isBad() || t.element->isBad())
    return w.index->isBad() ? w.index
           : w.update->isBad() ? w.update
                               : t.element;
  Expr k = in.index(w.axis, t.extents[w.axis]);
  if (w.u->is(ExprKind::Var) && ctx.coefficient(w.index, w.u).isOne()) {
    Expr offset = ctx.sub(w.index, w.u);
    // A negative index would count from the end.
    if (!offset->uses(w.u) && ctx.nonNeg(offset)) {
      Expr from = ctx.sub(k, offset);
      Expr inside = ctx.band({ctx.ge0(from), ctx.lt(from, w.count),
                              w.condition});
      return ctx.ite(inside, ctx.subst(w.update, w.u, from), t.element);
    }
  }
  if (!w.index->uses(w.u) && ctx.isConst(w.count, 1)) {
    Expr i = wrapped(ctx, w.index, t.extents[w.axis]);
    return ctx.ite(ctx.band({ctx.compare(Fn::Equal, k, i), w.condition}),
                   w.update, t.element);
  }
  if (w.index->is(ExprKind::NonZero)) {
    // The update at u belongs to row index(u): with that row renamed to k, the
    // result at k must be data of one token.
    in.flag("expert routing by NonZero: each row is written back to the row "
            "it was read from");
    Expr update = ctx.replace(w.update, w.index, k);
    if (update->uses(w.u))
      return in.bad(op, "scatter of rows from elsewhere");
    // Whether row k is written depends on what NonZero looked at.
    const SymbolicTensor &source = in.coordinates[w.index->name];
    SmallVector<unsigned> others;
    for (unsigned q = 0; q < source.rank(); ++q)
      if (q != w.index->payload)
        others.push_back(q);
    SmallVector<Expr> bound;
    SymbolicTensor chosen = source;
    chosen.element = in.bindAxes(source, others, bound);
    Expr v = in.index(w.index->payload, source.extents[w.index->payload]);
    Expr reason = ctx.subst(chosen.element, v, k);
    return in.leaf(op, in.label(op->getResult(0)), t.extents,
                   {t.element, update, reason}, t.type, bound);
  }
  return in.bad(op, "scatter at unknown rows " + ctx.str(w.index));
}

Expr rowVariable(Interp &in, unsigned n, Expr extent) {
  if (in.ctx.isConst(extent, 1))
    return in.ctx.num(0);
  return in.ctx.index("u" + std::to_string(n), extent);
}

/// Full-rank addressing: component c is affine in its own variable.
Expr writePoints(Operation *op, Interp &in, const SymbolicTensor &t,
                 ArrayRef<Expr> vars, ArrayRef<Expr> components, Expr update) {
  ExprContext &ctx = in.ctx;
  Substitution inverse;
  SmallVector<Expr> condition;
  for (auto [c, e] : llvm::enumerate(components)) {
    if (e->isBad())
      return e;
    Expr k = in.index(c, t.extents[c]);
    SmallVector<Expr> used;
    for (Expr v : vars)
      if (v->is(ExprKind::Var) && e->uses(v))
        used.push_back(v);
    if (used.empty()) {
      condition.push_back(
          ctx.compare(Fn::Equal, k, wrapped(ctx, e, t.extents[c])));
      continue;
    }
    Expr offset = ctx.sub(e, used[0]);
    bool taken = llvm::any_of(inverse,
                              [&](auto &m) { return m.first == used[0]; });
    if (used.size() != 1 || taken || !ctx.coefficient(e, used[0]).isOne() ||
        offset->uses(used[0]) || !ctx.nonNeg(offset))
      return in.bad(op, "scatter at unknown rows " + ctx.str(e));
    Expr from = ctx.sub(k, offset);
    inverse.push_back({used[0], from});
    condition.push_back(ctx.ge0(from));
    condition.push_back(ctx.lt(from, used[0]->extent()));
  }
  for (Expr v : vars)
    if (v->is(ExprKind::Var) &&
        llvm::none_of(inverse, [&](auto &m) { return m.first == v; }))
      return in.bad(op, "scatter of several rows to one place");
  return ctx.ite(ctx.band(condition), ctx.subst(update, inverse), t.element);
}

LogicalResult scatterNDRule(onnx::ScatterNDOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getData()), *i = in.get(op.getIndices()),
                       *u = in.get(op.getUpdates());
  if (!t || !i || !u)
    return failure();
  if (op.getReduction() != "none") {
    in.set(op.getResult(),
           {t->extents, in.bad(op, "scatter with a reduction"), t->type});
    return success();
  }
  if (!i->rank())
    return in.refuse(op, "expected index tuples");
  std::optional<int64_t> k = ctx.constInt(i->extents.back());
  unsigned lead = i->rank() - 1;
  if (!k || *k <= 0 || *k > int64_t(t->rank()) ||
      u->rank() != lead + t->rank() - unsigned(*k))
    return in.refuse(op, "expected index tuples that fit the operand");
  SmallVector<Expr, 4> vars;
  for (unsigned q = 0; q < lead; ++q)
    vars.push_back(rowVariable(in, q, i->extents[q]));
  for (unsigned q = 0; q < lead; ++q)
    if (failed(in.unify(op, u->extents[q], i->extents[q])))
      return failure();
  SmallVector<Expr, 4> components, at = vars;
  for (int64_t c = 0; c < *k; ++c) {
    SmallVector<Expr, 4> idx = vars;
    idx.push_back(ctx.num(c));
    components.push_back(in.at(*i, idx));
  }
  for (unsigned q = unsigned(*k); q < t->rank(); ++q) {
    if (failed(in.unify(op, u->extents[lead + q - *k], t->extents[q])))
      return failure();
    at.push_back(in.index(q, t->extents[q]));
  }
  Expr update = in.at(*u, at);
  Expr e;
  if (*k == 1 && lead == 1)
    e = writeRows(op, in, *t,
                  {0, vars[0], i->extents[0], components[0], update,
                   ctx.boolean(true)});
  else
    e = update->isBad() ? update
                        : writePoints(op, in, *t, vars, components, update);
  in.set(op.getResult(), {t->extents, e, t->type});
  return success();
}

LogicalResult scatterElementsRule(onnx::ScatterElementsOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getData()), *i = in.get(op.getIndices()),
                       *u = in.get(op.getUpdates());
  if (!t || !i || !u)
    return failure();
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis || i->rank() != t->rank() || u->rank() != t->rank())
    return in.refuse(op, "expected operands of one rank");
  if (op.getReduction() != "none") {
    in.set(op.getResult(),
           {t->extents, in.bad(op, "scatter with a reduction"), t->type});
    return success();
  }
  Expr row = rowVariable(in, *axis, i->extents[*axis]);
  SmallVector<Expr, 4> idx = in.generic(i->extents);
  idx[*axis] = row;
  // The index ranges over the operand's other axes, or over their first part.
  Substitution toData;
  SmallVector<Expr> condition;
  for (unsigned q = 0; q < t->rank(); ++q) {
    if (q == *axis)
      continue;
    Expr v = in.index(q, i->extents[q]), w = in.index(q, t->extents[q]);
    if (v->is(ExprKind::Var))
      toData.push_back({v, w});
    if (i->extents[q] != t->extents[q])
      condition.push_back(ctx.lt(w, i->extents[q]));
  }
  Expr at = ctx.subst(in.at(*i, idx), toData);
  Expr update = ctx.subst(in.at(*u, idx), toData);
  Expr e;
  if (!at->isBad() && !ctx.leavesOf(at).tokens.empty()) {
    // A column chosen by data stays inside its token, or is refused.
    SmallVector<Expr> bound;
    if (row->is(ExprKind::Var))
      bound.push_back(row);
    e = in.leaf(op, in.label(op.getResult()), t->extents,
                {t->element, at, update}, t->type, bound);
  } else {
    e = writeRows(op, in, *t,
                  {*axis, row, i->extents[*axis], at, update,
                   ctx.band(condition)});
  }
  in.set(op.getResult(), {t->extents, e, t->type});
  return success();
}

LogicalResult tensorScatterRule(onnx::TensorScatterOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getPastCache()),
                       *u = in.get(op.getUpdate());
  if (!t || !u)
    return failure();
  const SymbolicTensor *w = in.getOptional(op.getWriteIndices());
  auto axis = axisIn(op.getAxis(), t->rank());
  if (!axis || u->rank() != t->rank() || *axis == 0)
    return in.refuse(op, "expected operands of one rank");
  for (unsigned q = 0; q < t->rank(); ++q)
    if (q != *axis && failed(in.unify(op, t->extents[q], u->extents[q])))
      return failure();
  Expr e;
  if (op.getMode() != "linear") {
    e = in.bad(op, "circular TensorScatter");
  } else {
    Expr start = ctx.num(0);
    if (w)
      start = in.at(*w, {in.index(0, w->extents[0])});
    Expr row = rowVariable(in, *axis, u->extents[*axis]);
    SmallVector<Expr, 4> idx = in.generic(u->extents);
    idx[*axis] = row;
    e = writeRows(op, in, *t,
                  {*axis, row, u->extents[*axis], ctx.add(start, row),
                   in.at(*u, idx), ctx.boolean(true)});
  }
  in.set(op.getResult(), {t->extents, e, t->type});
  return success();
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

LogicalResult nonZeroRule(onnx::NonZeroOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *t = in.get(op.getX());
  if (!t)
    return failure();
  unsigned r = t->rank();
  StringRef name = in.label(op.getResult());
  std::optional<Coef> c = ctx.constant(t->element);
  bool all = c && !c->isZero();
  Expr count = all ? in.productOf(t->extents)
                   : ctx.symbol(("N:" + name).str());
  Expr v = in.index(1, count);
  SmallVector<Expr> rows(r, ctx.num(0));
  if (all) {
    Expr rest = v;
    for (unsigned q = r; q-- > 0;)
      std::tie(rest, rows[q]) = ctx.divMod(rest, t->extents[q]);
  } else {
    for (unsigned q = 0; q < r; ++q)
      if (!ctx.isConst(t->extents[q], 1))
        rows[q] = ctx.nonZero(name, q, v, t->extents[q]);
  }
  Expr e = r ? rows.back() : ctx.num(0);
  Expr axis = in.index(0, ctx.num(r));
  for (unsigned q = r; q-- > 1;)
    e = ctx.ite(ctx.le(axis, ctx.num(int64_t(q) - 1)), rows[q - 1], e);
  // `e` was built from the last row backwards.
  if (Leaves l = ctx.leavesOf(t->element); l.bad)
    e = l.bad;
  in.coordinates[name] = *t;
  in.set(op.getResult(), {{ctx.num(r), count}, e, ElementType::Int});
  return success();
}

LogicalResult oneHotRule(onnx::OneHotOp op, Interp &in) {
  ExprContext &ctx = in.ctx;
  const SymbolicTensor *i = in.get(op.getIndices());
  auto depth = i ? in.elements(op, op.getDepth()) : std::nullopt;
  auto values = depth ? in.elements(op, op.getValues()) : std::nullopt;
  if (!values)
    return failure();
  auto axis = axisIn(op.getAxis(), i->rank() + 1);
  if (!axis || values->size() != 2 || depth->size() != 1)
    return in.refuse(op, "expected a depth and two values");
  SymbolicTensor out;
  out.type = elementTypeOf(op.getType());
  SmallVector<Expr, 4> at;
  for (unsigned q = 0; q <= i->rank(); ++q) {
    if (q == *axis) {
      out.extents.push_back((*depth)[0]);
      continue;
    }
    Expr d = i->extents[q < *axis ? q : q - 1];
    out.extents.push_back(d);
    at.push_back(in.index(q, d));
  }
  Expr hit = ctx.compare(Fn::Equal, wrapped(ctx, in.at(*i, at), (*depth)[0]),
                         in.index(*axis, (*depth)[0]));
  out.element = ctx.ite(hit, (*values)[1], (*values)[0]);
  in.set(op.getResult(), std::move(out));
  return success();
}
} // namespace

template <typename OpT, LogicalResult (*rule)(OpT, Interp &)>
static void attach(MLIRContext &context) {
  OpT::template attachInterface<RuleModel<OpT, rule>>(context);
}

void attachIndexRules(MLIRContext &c) {
  using namespace onnx;
  attach<GatherOp, gatherRule>(c);
  attach<GatherElementsOp, gatherElementsRule>(c);
  attach<GatherNDOp, gatherNDRule>(c);
  attach<MSGatherNDOp, msGatherNDRule>(c);
  attach<ScatterNDOp, scatterNDRule>(c);
  attach<ScatterElementsOp, scatterElementsRule>(c);
  attach<TensorScatterOp, tensorScatterRule>(c);
  attach<NonZeroOp, nonZeroRule>(c);
  attach<OneHotOp, oneHotRule>(c);
}

} // namespace quire
