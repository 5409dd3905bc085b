// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Questions about the values of an interpreted model.

#include "lib/Analysis/StatePairing/RaisedModel.h"
#include "dialects/ONNX/ONNXOps.h"
#include "lib/Analysis/Element/Interp.h"

using namespace llvm;
using namespace mlir;

namespace quire {

RaisedModel::RaisedModel() = default;
RaisedModel::~RaisedModel() = default;
RaisedModel::RaisedModel(RaisedModel &&) = default;
RaisedModel &RaisedModel::operator=(RaisedModel &&) = default;

void RaisedModel::adopt(std::shared_ptr<Interp> interp) {
  interpretation = std::move(interp);
}

ExprContext &RaisedModel::context() const { return interp().ctx; }
Expr RaisedModel::positionSymbol() const { return queryPosition(context()); }
Expr RaisedModel::keySymbol() const { return keyPosition(context()); }

const SymbolicTensor *RaisedModel::elementOf(Value v) const {
  return interp().find(v);
}

ExtentKind RaisedModel::extentKind(Expr extent) const {
  ExprContext &ctx = context();
  Interp &in = interp();
  if (ctx.constant(extent))
    return ExtentKind::Constant;
  if (extent == in.B)
    return ExtentKind::Batch;
  Expr e = ctx.subst(extent, ctx.B(), ctx.num(1));
  if (ctx.constant(e))
    return ExtentKind::Constant;
  if (e == in.L)
    return ExtentKind::Length;
  if (e == ctx.P())
    return ExtentKind::Past;
  if (e == ctx.add(ctx.P(), in.L))
    return ExtentKind::Total;
  return ExtentKind::Other;
}

/// The only axis of length L, none if there is another one that depends on
/// the call.
static std::optional<int> onlyCallAxis(const RaisedModel &m,
                                       const SymbolicTensor &t) {
  int found = -1;
  for (auto [axis, d] : llvm::enumerate(t.extents)) {
    ExtentKind kind = m.extentKind(d);
    if (kind == ExtentKind::Constant || kind == ExtentKind::Batch)
      continue;
    if (kind != ExtentKind::Length || found >= 0)
      return std::nullopt;
    found = int(axis);
  }
  return found;
}

int RaisedModel::tokenAxis(Value v) const {
  const SymbolicTensor *t = elementOf(v);
  if (!t)
    return -1;
  return onlyCallAxis(*this, *t).value_or(-1);
}

/// Token index that a row of axis `axis` has with B = 1.
static bool isRowOf(Interp &in, const SymbolicTensor &t, int axis, Expr token) {
  ExprContext &ctx = in.ctx;
  if (axis < 0)
    return false;
  Expr v = in.index(unsigned(axis), t.extents[axis]);
  if (token == v)
    return true;
  return t.extents[axis] == ctx.mul(in.B, in.L) &&
         token == ctx.mod(v, in.L);
}

/// A tensor with an axis of c * L (tokens, then c parts of each) as one with
/// an axis of L and one of c in its place.
static SymbolicTensor unfoldTokens(ExprContext &ctx, Expr length,
                                   const SymbolicTensor &t) {
  for (auto [axis, extent] : llvm::enumerate(t.extents)) {
    Coef factor = ctx.coefficient(extent, length);
    if (factor.isFloat || factor.i < 2 ||
        extent != ctx.mul(ctx.num(factor.i), length))
      continue;
    SymbolicTensor out;
    out.type = t.type;
    out.extents.assign(t.extents.begin(), t.extents.end());
    out.extents[axis] = length;
    out.extents.insert(out.extents.begin() + axis + 1, ctx.num(factor.i));
    SmallVector<Expr, 4> index = genericIndices(ctx, out.extents);
    index[axis] =
        ctx.add(ctx.mul(ctx.num(factor.i), index[axis]), index[axis + 1]);
    index.erase(index.begin() + axis + 1);
    out.element = elementAt(ctx, t, index);
    return out;
  }
  return t;
}

bool RaisedModel::isTokenWise(Value v, std::string *why) const {
  auto no = [&](const Twine &text) {
    if (why)
      *why = text.str();
    return false;
  };
  const SymbolicTensor *known = elementOf(v);
  if (!known)
    return no("a value with no known element");
  Interp &in = interp();
  ExprContext &ctx = context();
  SymbolicTensor unfolded = unfoldTokens(ctx, in.L, *known);
  const SymbolicTensor *t = &unfolded;
  if (t->element->isBad())
    return no(t->element->name);
  Leaves l = ctx.leavesOf(t->element);
  if (l.bad)
    return no(l.bad->name);
  if (!l.past.empty())
    return no("reads cached state '" + l.past.front()->name + "'");
  if (l.readsScores())
    return no("reads attention scores");
  std::optional<int> axis = onlyCallAxis(*this, *t);
  if (!axis)
    return no("more than its token axis depends on the lengths of the call");
  if (l.tokens.empty()) {
    Expr e = t->element;
    if (*axis >= 0) {
      Expr row = in.index(unsigned(*axis), t->extents[*axis]);
      // With B = 1 a folded axis is the token axis itself.
      if (t->extents[*axis] == ctx.mul(in.B, in.L)) {
        e = ctx.subst(e, row, in.index(unsigned(*axis), in.L));
        row = in.index(unsigned(*axis), in.L);
      }
      e = in.atPosition(e, row);
    } else if (ctx.isConst(in.L, 1))
      return true;
    if (ctx.outerUses(e, ctx.P()) || ctx.outerUses(e, ctx.L()))
      return no("depends on the lengths of the call: " +
                ctx.str(t->element).substr(0, 160));
    return true;
  }
  Expr token = l.tokens.front().first;
  for (auto [other, batch] : l.tokens)
    if (other != token)
      return no("combines data of tokens " + ctx.str(token) + " and " +
                ctx.str(other));
  bool oneToken = ctx.isConst(in.L, 1) && ctx.constant(token);
  if (!oneToken && !isRowOf(in, *t, *axis, token))
    return no("its rows are data of token " + ctx.str(token));
  std::string reason = in.notOfPosition({t->element}, token);
  return reason.empty() || no("depends on " + reason);
}

static bool isExactInteger(Expr e) {
  bool exact = true;
  ExprContext::walk(e, [&](Expr x) {
    switch (x->kind) {
    case ExprKind::Poly:
    case ExprKind::Var:
    case ExprKind::Bool:
    case ExprKind::Ge0:
    case ExprKind::And:
    case ExprKind::Or:
    case ExprKind::Not:
    case ExprKind::Ite:
      break;
    case ExprKind::Call:
      exact &= x->fn == Fn::Div || x->fn == Fn::Mod || x->fn == Fn::IntMin ||
               x->fn == Fn::IntMax;
      break;
    default:
      exact = false;
    }
    for (const Term &t : x->terms)
      exact &= !t.coef.isFloat;
  });
  return exact;
}

Expr RaisedModel::asIntegerOfPosition(Value v) const {
  const SymbolicTensor *t = elementOf(v);
  if (!t || t->type == ElementType::Float)
    return nullptr;
  std::optional<int> axis = onlyCallAxis(*this, *t);
  if (!axis)
    return nullptr;
  Interp &in = interp();
  ExprContext &ctx = context();
  Expr e = t->element;
  if (*axis >= 0) {
    Expr row = in.index(unsigned(*axis), t->extents[*axis]);
    // With B = 1 a folded axis is the token axis itself.
    if (row->extent() != in.L) {
      e = ctx.subst(e, row, in.index(unsigned(*axis), in.L));
      row = in.index(unsigned(*axis), in.L);
    }
    if (row->is(ExprKind::Var))
      e = in.atPosition(e, row);
  }
  if (ctx.isConst(in.L, 1))
    e = ctx.subst(e, ctx.P(), positionSymbol());
  e = ctx.subst(e, ctx.B(), ctx.num(1));
  if (!isExactInteger(e) || e->uses(ctx.P()) || e->uses(ctx.L()))
    return nullptr;
  return e;
}

std::optional<int64_t> RaisedModel::sliceFromPosition(Operation *op,
                                                      unsigned axis) const {
  auto slice = dyn_cast<onnx::SliceOp>(op);
  const SymbolicTensor *from = slice ? elementOf(slice.getData()) : nullptr,
                       *to = slice ? elementOf(slice.getResult()) : nullptr;
  if (!from || !to || axis >= from->rank() ||
      extentKind(to->extents[axis]) != ExtentKind::Length)
    return std::nullopt;
  Interp &in = interp();
  auto starts = in.elements(op, slice.getStarts());
  if (!starts)
    return std::nullopt;
  for (auto [n, start] : llvm::enumerate(*starts)) {
    int64_t a = int64_t(n);
    if (!isa<NoneType>(slice.getAxes().getType())) {
      auto axes = in.integers(op, slice.getAxes());
      if (!axes || n >= axes->size())
        return std::nullopt;
      a = (*axes)[n];
    }
    if (a != int64_t(axis) && a + int64_t(from->rank()) != int64_t(axis))
      continue;
    if (!isa<NoneType>(slice.getSteps().getType())) {
      auto steps = in.integers(op, slice.getSteps());
      if (!steps || (*steps)[n] != 1)
        return std::nullopt;
    }
    return context().constInt(context().sub(start, context().P()));
  }
  return std::nullopt;
}

} // namespace quire
