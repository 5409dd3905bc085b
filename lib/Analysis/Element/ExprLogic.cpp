// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Truth values, conditionals and functions of symbolic elements.

#include "lib/Analysis/Element/Expr.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace quire {

/// Conditions are lifted out of a term with at most this many of them: n
/// conditions give 2^n cases.
static constexpr unsigned maxLifted = 10;

Expr ExprContext::asNum(Expr e) {
  if (e->is(ExprKind::Bool))
    return num(int64_t(e->payload));
  if (e->isLogic())
    return ite(e, num(1), num(0));
  return e;
}

/// A conditional atom of a polynomial. Unless `anywhere`, those that hold data
/// or scores are left alone: their lifting belongs to the score analysis.
Expr ExprContext::findConditional(Expr e, bool anywhere) const {
  Expr found = nullptr;
  unsigned count = 0;
  auto consider = [&](Expr x) {
    if (!x->is(ExprKind::Ite))
      return;
    if (!anywhere) {
      Leaves l = leavesOf(x);
      if (!l.tokens.empty() || !l.past.empty() || l.readsScores())
        return;
    }
    ++count;
    if (!found)
      found = x;
  };
  if (e->is(ExprKind::Poly))
    for (const Term &t : e->terms)
      for (Expr x : t.mono->atoms)
        consider(x);
  return count <= maxLifted ? found : nullptr;
}

Expr ExprContext::ge0(Expr e) {
  if (e->isBad())
    return e;
  if (std::optional<Coef> c = constant(e))
    return boolean(c->asDouble() >= 0);
  if (e->is(ExprKind::Ite))
    return ite(e->args[0], ge0(e->args[1]), ge0(e->args[2]));
  if (Expr x = findConditional(e, /*anywhere=*/true))
    return ite(x->args[0], ge0(replaceAtom(e, x, x->args[1])),
               ge0(replaceAtom(e, x, x->args[2])));
  if (isInt(e)) {
    if (nonNeg(e))
      return trueExpr;
    if (nonNeg(sub(num(-1), e)))
      return falseExpr;
  }
  return makeArgs(ExprKind::Ge0, {e});
}

static bool relationHolds(Fn relation, double a, double b) {
  return relation == Fn::Greater        ? a > b
         : relation == Fn::GreaterEqual ? a >= b
                                        : a == b;
}

Expr ExprContext::compare(Fn relation, Expr a, Expr b) {
  if (Expr x = firstBad({a, b}))
    return x;
  a = asNum(a);
  b = asNum(b);
  if (Expr x = firstBad({a, b}))
    return x;
  auto opaqueRelation = [&] {
    ExprNode proto;
    proto.kind = ExprKind::Call;
    proto.fn = relation;
    Expr args[] = {a, b};
    proto.args = args;
    return make(proto);
  };
  if (a->is(ExprKind::Special) || b->is(ExprKind::Special)) {
    std::optional<Coef> ca = constant(a), cb = constant(b);
    if (ca && cb)
      return boolean(relationHolds(relation, ca->asDouble(), cb->asDouble()));
    Expr x = ca ? b : a;
    if (x->is(ExprKind::Ite)) {
      Expr other = ca ? a : b;
      auto part = [&](Expr y) {
        return ca ? compare(relation, other, y) : compare(relation, y, other);
      };
      return ite(x->args[0], part(x->args[1]), part(x->args[2]));
    }
    bool mayBeInfinite = contains(x, [](Expr y) {
      return y->is(ExprKind::Special) || y->isCall(Fn::InfTimes) ||
             y->is(ExprKind::Ite) || y->is(ExprKind::Prob) ||
             y->is(ExprKind::Row) || y->isBad();
    });
    if (relation == Fn::Equal && !mayBeInfinite)
      return falseExpr;
    return opaqueRelation();
  }
  for (auto [x, y, first] : {std::tuple(a, b, true), std::tuple(b, a, false)}) {
    if (!x->is(ExprKind::Ite) || isInt(x))
      continue;
    auto part = [&, y = y, first = first](Expr z) {
      return first ? compare(relation, z, y) : compare(relation, y, z);
    };
    return ite(x->args[0], part(x->args[1]), part(x->args[2]));
  }
  Expr d = sub(a, b);
  if (d->isBad())
    return d;
  if (std::optional<Coef> c = constant(d))
    return boolean(relationHolds(relation, c->asDouble(), 0));
  if (isInt(d)) {
    if (relation == Fn::Equal)
      return band({ge0(d), ge0(neg(d))});
    return ge0(relation == Fn::GreaterEqual ? d : sub(d, num(1)));
  }
  if (Expr x = findConditional(d, /*anywhere=*/false))
    return ite(x->args[0],
               compare(relation, replaceAtom(d, x, x->args[1]), num(0)),
               compare(relation, replaceAtom(d, x, x->args[2]), num(0)));
  return opaqueRelation();
}

Expr ExprContext::bnot(Expr a) {
  if (a->isBad())
    return a;
  a = asBool(a);
  if (std::optional<Coef> c = constant(a))
    return boolean(c->isZero());
  switch (a->kind) {
  case ExprKind::Not:
    return a->args[0];
  case ExprKind::Ge0:
    if (isInt(a->args[0]))
      return ge0(sub(num(-1), a->args[0]));
    break;
  case ExprKind::And:
  case ExprKind::Or: {
    SmallVector<Expr> parts;
    for (Expr x : a->args)
      parts.push_back(bnot(x));
    return a->is(ExprKind::And) ? bor(parts) : band(parts);
  }
  case ExprKind::Ite:
    return ite(a->args[0], bnot(a->args[1]), bnot(a->args[2]));
  default:
    break;
  }
  return makeArgs(ExprKind::Not, {a});
}

Expr ExprContext::asBool(Expr e) {
  if (e->isBad() || e->isLogic())
    return e;
  if (std::optional<Coef> c = constant(e))
    return boolean(!c->isZero());
  if (e->is(ExprKind::Ite))
    return ite(e->args[0], asBool(e->args[1]), asBool(e->args[2]));
  if (isInt(e) && nonNeg(e))
    return ge0(sub(e, num(1)));
  if (Expr x = findConditional(e, /*anywhere=*/true))
    return ite(x->args[0], asBool(replaceAtom(e, x, x->args[1])),
               asBool(replaceAtom(e, x, x->args[2])));
  ExprNode proto;
  proto.kind = ExprKind::Call;
  proto.fn = Fn::ToBool;
  Expr args[] = {e};
  proto.args = args;
  return make(proto);
}

Expr ExprContext::makeNary(ExprKind kind, Expr unit, Expr zero,
                           ArrayRef<Expr> xs) {
  SmallVector<Expr> parts;
  for (Expr x : xs) {
    x = asBool(x);
    if (x->isBad())
      return x;
    ArrayRef<Expr> members = x->is(kind) ? x->args : ArrayRef<Expr>(x);
    for (Expr y : members) {
      if (y == zero)
        return zero;
      if (y != unit && !llvm::is_contained(parts, y))
        parts.push_back(y);
    }
  }
  if (parts.empty())
    return unit;
  if (parts.size() == 1)
    return parts[0];
  for (Expr y : parts)
    if (llvm::is_contained(parts, bnot(y)))
      return zero;
  llvm::sort(parts, [](Expr a, Expr b) { return a->id < b->id; });
  return makeArgs(kind, parts);
}

Expr ExprContext::band(ArrayRef<Expr> xs) {
  if (Expr b = firstBad(xs))
    return b;
  return makeNary(ExprKind::And, trueExpr, falseExpr, xs);
}

Expr ExprContext::bor(ArrayRef<Expr> xs) {
  if (Expr b = firstBad(xs))
    return b;
  return makeNary(ExprKind::Or, falseExpr, trueExpr, xs);
}

Expr ExprContext::ite(Expr c, Expr a, Expr b) {
  c = asBool(c);
  if (c->isBad())
    return c;
  if (c->is(ExprKind::Bool))
    return c->payload ? a : b;
  if (Expr x = firstBad({a, b}))
    return x;
  if (a == b)
    return a;
  if (a->isLogic() && b->isLogic())
    return bor({band({c, a}), band({bnot(c), b})});
  if (c->is(ExprKind::Not))
    return ite(c->args[0], b, a);
  if (a->is(ExprKind::Ite) && a->args[0] == c)
    a = a->args[1];
  if (b->is(ExprKind::Ite) && b->args[0] == c)
    b = b->args[2];
  if (a == b)
    return a;
  return makeArgs(ExprKind::Ite, {c, a, b});
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

static std::optional<double> applyReal(Fn fn, double x) {
  switch (fn) {
  case Fn::Cos:
    return std::cos(x);
  case Fn::Sin:
    return std::sin(x);
  case Fn::Exp:
    return std::exp(x);
  case Fn::Log:
    return std::log(x);
  case Fn::Sqrt:
    return std::sqrt(x);
  case Fn::Recip:
    return 1.0 / x;
  case Fn::Tanh:
    return std::tanh(x);
  case Fn::Erf:
    return std::erf(x);
  case Fn::Sigmoid:
    return 1.0 / (1.0 + std::exp(-x));
  case Fn::Abs:
    return std::abs(x);
  case Fn::Floor:
    return std::floor(x);
  case Fn::Ceil:
    return std::ceil(x);
  case Fn::Trunc:
    return std::trunc(x);
  case Fn::ToBool:
    return x != 0;
  case Fn::IsNan:
    return std::isnan(x);
  case Fn::IsInf:
    return std::isinf(x);
  default:
    return std::nullopt;
  }
}

static std::optional<double> applyReal(Fn fn, double x, double y) {
  switch (fn) {
  case Fn::Div:
  case Fn::AnyDiv:
    if (y == 0)
      return std::nullopt;
    return std::floor(x / y);
  case Fn::Mod:
  case Fn::AnyMod:
    if (y == 0)
      return std::nullopt;
    return x - y * std::floor(x / y);
  case Fn::IntMin:
  case Fn::Min:
    return std::min(x, y);
  case Fn::IntMax:
  case Fn::Max:
    return std::max(x, y);
  case Fn::FloatDiv:
    return x / y;
  case Fn::Pow:
    return std::pow(x, y);
  case Fn::InfTimes:
    return x * y;
  case Fn::Equal:
  case Fn::Greater:
  case Fn::GreaterEqual:
    return relationHolds(fn, x, y);
  default:
    return std::nullopt;
  }
}

std::optional<double> ExprContext::evaluateCall(Expr e,
                                                ArrayRef<double> a) const {
  if (a.size() == 1)
    return applyReal(e->fn, a[0]);
  if (a.size() == 2)
    return applyReal(e->fn, a[0], a[1]);
  return std::nullopt;
}

Expr ExprContext::foldCall(Fn fn, ArrayRef<Expr> args) {
  SmallVector<double, 2> values;
  for (Expr x : args) {
    std::optional<Coef> c = constant(x);
    if (!c)
      return nullptr;
    values.push_back(c->asDouble());
  }
  std::optional<double> r;
  if (values.size() == 1)
    r = applyReal(fn, values[0]);
  else if (values.size() == 2)
    r = applyReal(fn, values[0], values[1]);
  if (!r)
    return nullptr;
  if (fn == Fn::IsNan || fn == Fn::IsInf || fn == Fn::ToBool)
    return boolean(*r != 0);
  return real(*r);
}

Expr ExprContext::minMax(Fn fn, Expr a, Expr b) {
  if (a == b)
    return a;
  if (isInt(a) && isInt(b)) {
    Expr d = sub(b, a);
    if (nonNeg(d))
      return fn == Fn::Min ? a : b;
    if (nonNeg(neg(d)))
      return fn == Fn::Min ? b : a;
    Expr c = ge0(d);
    return fn == Fn::Min ? ite(c, a, b) : ite(c, b, a);
  }
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if (x->is(ExprKind::Ite))
      return ite(x->args[0], call(fn, {x->args[1], y}),
                 call(fn, {x->args[2], y}));
  return nullptr;
}

/// Finite by the reference semantics, so never NaN and never infinite.
static bool isFiniteByNature(Expr e) {
  auto finiteAtom = [](Expr x) {
    switch (x->kind) {
    case ExprKind::Var:
    case ExprKind::Table:
    case ExprKind::Data:
    case ExprKind::Dot:
    case ExprKind::Past:
    case ExprKind::NonZero:
      return true;
    default:
      return x->isCall(Fn::Div) || x->isCall(Fn::Mod);
    }
  };
  if (!e->is(ExprKind::Poly))
    return finiteAtom(e);
  return llvm::all_of(e->terms, [&](const Term &t) {
    return llvm::all_of(t.mono->atoms, finiteAtom);
  });
}

Expr ExprContext::call(Fn fn, ArrayRef<Expr> args) {
  if (Expr b = firstBad(args))
    return b;
  SmallVector<Expr, 2> a;
  for (Expr x : args)
    a.push_back(asNum(x));
  if (Expr b = firstBad(a))
    return b;
  switch (fn) {
  case Fn::Equal:
  case Fn::Greater:
  case Fn::GreaterEqual:
    return compare(fn, a[0], a[1]);
  case Fn::ToBool:
    return asBool(a[0]);
  case Fn::Div:
  case Fn::AnyDiv:
    return floorDiv(a[0], a[1]);
  case Fn::Mod:
  case Fn::AnyMod:
    return mod(a[0], a[1]);
  default:
    break;
  }
  if (Expr folded = foldCall(fn, a))
    return folded;
  switch (fn) {
  case Fn::FloatDiv:
    if (std::optional<Coef> c = constant(a[1]);
        c && !c->isZero() && std::isfinite(c->asDouble()))
      return mul(a[0], real(1.0 / c->asDouble()));
    break;
  case Fn::Min:
  case Fn::Max:
    if (Expr r = minMax(fn, a[0], a[1]))
      return r;
    break;
  case Fn::IntMin:
  case Fn::IntMax:
    if (nonNeg(sub(a[1], a[0])))
      return fn == Fn::IntMin ? a[0] : a[1];
    if (nonNeg(sub(a[0], a[1])))
      return fn == Fn::IntMin ? a[1] : a[0];
    break;
  case Fn::Abs:
    if (isInt(a[0])) {
      if (nonNeg(a[0]))
        return a[0];
      return ite(ge0(a[0]), a[0], neg(a[0]));
    }
    break;
  case Fn::IsNan:
  case Fn::IsInf:
    if (isFiniteByNature(a[0]))
      return falseExpr;
    break;
  case Fn::Floor:
  case Fn::Ceil:
  case Fn::Trunc:
    if (isInt(a[0]))
      return a[0];
    break;
  default:
    break;
  }
  if (a.size() == 1 && a[0]->is(ExprKind::Ite))
    switch (fn) {
    case Fn::IsNan:
    case Fn::IsInf:
      // The guard of a probability must stay whole.
      if (leavesOf(a[0]).readsScores())
        break;
      [[fallthrough]];
    case Fn::Floor:
    case Fn::Ceil:
    case Fn::Trunc:
    case Fn::Cos:
    case Fn::Sin:
    case Fn::Abs:
      return ite(a[0]->args[0], call(fn, {a[0]->args[1]}),
                 call(fn, {a[0]->args[2]}));
    default:
      break;
    }
  ExprNode proto;
  proto.kind = ExprKind::Call;
  proto.fn = fn;
  proto.args = a;
  return make(proto);
}

Expr ExprContext::named(StringRef name, ArrayRef<Expr> args) {
  if (Expr b = firstBad(args))
    return b;
  ExprNode proto;
  proto.kind = ExprKind::Call;
  proto.fn = Fn::Named;
  proto.name = intern(name);
  proto.args = args;
  return make(proto);
}

} // namespace quire
