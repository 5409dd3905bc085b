// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds, signs, floor division and modulus of symbolic elements.

#include "lib/Analysis/Element/Expr.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace llvm;

namespace quire {

static int64_t floorDivide(int64_t a, int64_t b) {
  return divideFloorSigned(a, b);
}

/// Bounds of one atom of a product; `lo` is >= 0, `hi` may be null.
bool ExprContext::boundsOf(Expr x, Expr &lo, Expr &hi) {
  hi = nullptr;
  if (x->is(ExprKind::Var)) {
    if (Expr extent = x->extent()) {
      lo = num(0);
      hi = sub(extent, num(1));
    } else {
      lo = hi = x;
    }
    return true;
  }
  if (x->isCall(Fn::Mod)) {
    lo = num(0);
    hi = sub(x->args[1], num(1));
    return true;
  }
  if (x->isCall(Fn::Div) && nonNeg(x->args[0])) {
    lo = num(0);
    std::optional<int64_t> d = constInt(x->args[1]);
    Expr least = d ? lower(neg(x->args[0])) : nullptr;
    std::optional<int64_t> c = least ? constInt(least) : std::nullopt;
    if (c && *c != INT64_MIN)
      hi = num(floorDivide(-*c, *d));
    return true;
  }
  if (x->isCall(Fn::IntMax)) {
    lo = nonNeg(x->args[0])   ? x->args[0]
         : nonNeg(x->args[1]) ? num(0)
                              : nullptr;
    return lo != nullptr;
  }
  if (x->isCall(Fn::IntMin)) {
    if (!nonNeg(x->args[0]) || !nonNeg(x->args[1]))
      return false;
    lo = num(0);
    hi = x->args[0];
    return true;
  }
  if (x->is(ExprKind::NonZero)) {
    lo = num(0);
    hi = sub(x->args[1], num(1));
    return true;
  }
  return false;
}

Expr ExprContext::lower(Expr e) {
  if (!isInt(e))
    return nullptr;
  for (unsigned round = 0; round < 8; ++round) {
    SmallVector<Expr, 8> sum;
    for (const Term &t : termsOf(e)) {
      Expr acc = num(t.coef.i);
      for (Expr x : t.mono->atoms) {
        Expr lo, hi;
        if (!boundsOf(x, lo, hi))
          return nullptr;
        Expr pick = t.coef.i > 0 ? lo : hi;
        if (!pick)
          return nullptr;
        acc = mul(acc, pick);
      }
      sum.push_back(acc);
    }
    e = add(sum);
    if (e->isBad() || !isInt(e))
      return nullptr;
    if (llvm::none_of(e->freeVars, [](Expr v) { return v->isIndex(); }))
      return e;
  }
  return nullptr;
}

bool ExprContext::nonNeg(Expr e) {
  auto [it, isNew] = nonNegMemo.insert({e, false});
  if (!isNew)
    return it->second;
  bool r = nonNegImpl(e);
  nonNegMemo[e] = r;
  return r;
}

bool ExprContext::nonNegImpl(Expr e) {
  if (std::optional<Coef> c = constant(e))
    return c->asDouble() >= 0;
  if (!isInt(e))
    return false;
  if (e->is(ExprKind::Ite))
    return nonNeg(e->args[1]) && nonNeg(e->args[2]);
  Expr r = lower(e);
  if (!r)
    return false;
  if (bound) {
    // P + L - bound <= 0, so adding a positive multiple of it lowers r.
    int64_t k = std::min<int64_t>(
        {coefficient(r, lengthSym).i, coefficient(r, pastSym).i, 0});
    if (k < 0 && k > -(int64_t(1) << 31))
      r = add({r, mul(num(-k), add(lengthSym, pastSym)), mul(num(k), num(*bound))});
  }
  if (r->isBad())
    return false;
  // Each symbol s with lower bound 1 becomes 1 + s'; then no coefficient may
  // be negative.
  SmallVector<Expr, 8> sum;
  for (const Term &t : termsOf(r)) {
    Expr acc = num(t.coef.i);
    for (Expr x : t.mono->atoms) {
      if (!x->isSymbol())
        return false;
      acc = mul(acc, x->payload ? add(num(1), x) : x);
    }
    sum.push_back(acc);
  }
  Expr shifted = add(sum);
  if (shifted->isBad())
    return false;
  return llvm::all_of(termsOf(shifted),
                      [](const Term &t) { return t.coef.i >= 0; });
}

void ExprContext::assumeTotalAtMost(int64_t n) {
  bound = n;
  nonNegMemo.clear();
  substMemo.clear();
}

//===----------------------------------------------------------------------===//
// Division
//===----------------------------------------------------------------------===//

static bool leadsBefore(const Term &a, const Term &b) {
  auto names = [](const Term &t) {
    SmallVector<StringRef> r;
    for (Expr x : t.mono->atoms)
      r.push_back(x->is(ExprKind::Var) ? x->name : StringRef());
    return r;
  };
  if (a.mono->atoms.size() != b.mono->atoms.size())
    return a.mono->atoms.size() > b.mono->atoms.size();
  return names(a) > names(b);
}

/// m without the atoms of `lead`, or none if they are not all in it.
static std::optional<SmallVector<Expr>> withoutAtoms(const Monomial *m,
                                                     const Monomial *lead) {
  SmallVector<Expr> rest(m->atoms.begin(), m->atoms.end());
  for (Expr y : lead->atoms) {
    auto it = llvm::find(rest, y);
    if (it == rest.end())
      return std::nullopt;
    rest.erase(it);
  }
  return rest;
}

std::pair<Expr, Expr> ExprContext::leadDiv(Expr x, Expr d) {
  SmallVector<Term> dt = termsOf(d);
  if (dt.empty() || llvm::any_of(dt, [](const Term &t) { return t.coef.isFloat; }))
    return {num(0), x};
  Term lead = *std::min_element(dt.begin(), dt.end(), leadsBefore);
  Expr q = num(0), r = x;
  for (unsigned round = 0; round < 40; ++round) {
    Expr hit = nullptr;
    for (const Term &t : termsOf(r)) {
      if (t.coef.isFloat)
        continue;
      std::optional<SmallVector<Expr>> rest = withoutAtoms(t.mono, lead.mono);
      int64_t c = t.coef.i, dc = lead.coef.i;
      if (!rest || dc == 0 || c == INT64_MIN)
        continue;
      int64_t whole = floorDivide(c, dc);
      if (whole == 0 || (c % dc != 0 && !t.mono->atoms.empty()))
        continue;
      hit = fromTerms({Term{monomial(*rest), Coef::ofInt(whole)}});
      break;
    }
    if (!hit)
      break;
    Expr nextR = sub(r, mul(hit, d));
    Expr nextQ = add(q, hit);
    if (nextR->isBad() || nextQ->isBad())
      break;
    q = nextQ;
    r = nextR;
  }
  return {q, r};
}

/// (g*x + r) div (g*n) = x div n for 0 <= r < g.
std::optional<std::pair<Expr, Expr>>
ExprContext::divModCommonFactor(Expr r, int64_t d) {
  SmallVector<int64_t> factors;
  for (const Term &t : termsOf(r)) {
    int64_t c = std::abs(t.coef.i);
    if (!t.mono->atoms.empty() && c > 1 && c < d && d % c == 0 &&
        !llvm::is_contained(factors, c))
      factors.push_back(c);
  }
  llvm::sort(factors, std::greater<int64_t>());
  for (int64_t g : factors) {
    SmallVector<Term> high, low;
    for (const Term &t : termsOf(r)) {
      if (t.coef.i % g == 0)
        high.push_back({t.mono, Coef::ofInt(t.coef.i / g)});
      else
        low.push_back(t);
    }
    Expr rest = fromTerms(low);
    if (!nonNeg(rest) || !nonNeg(sub(num(g - 1), rest)))
      continue;
    auto [q, m] = divMod(fromTerms(high), num(d / g));
    return std::pair(q, add(mul(num(g), m), rest));
  }
  return std::nullopt;
}

std::pair<Expr, Expr> ExprContext::divMod(Expr x, Expr d) {
  if (Expr b = firstBad({x, d}))
    return {b, b};
  auto node = [&](Fn fn, Expr a, Expr b) {
    ExprNode proto;
    proto.kind = ExprKind::Call;
    proto.fn = fn;
    Expr args[] = {a, b};
    proto.args = args;
    return make(proto);
  };
  std::optional<int64_t> cx = constInt(x), cd = constInt(d);
  if (cd == std::optional<int64_t>(1) && isInt(x))
    return {x, num(0)};
  if (!isInt(x) || !isInt(d) || !nonNeg(sub(d, num(1))))
    return {node(Fn::AnyDiv, x, d), node(Fn::AnyMod, x, d)};
  if (cx && cd)
    return {num(floorDivide(*cx, *cd)), num(*cx - *cd * floorDivide(*cx, *cd))};
  if (x->is(ExprKind::Ite)) {
    auto a = divMod(x->args[1], d), b = divMod(x->args[2], d);
    return {ite(x->args[0], a.first, b.first),
            ite(x->args[0], a.second, b.second)};
  }
  if (x->isCall(Fn::Div) && cd)
    if (std::optional<int64_t> inner = constInt(x->args[1]);
        inner && *inner < (1 << 30) && *cd < (1 << 30)) {
      Expr q = divMod(x->args[0], num(*cd * *inner)).first;
      return {q, sub(x, mul(d, q))};
    }
  auto [q, r] = leadDiv(x, d);
  if (nonNeg(r) && nonNeg(sub(sub(d, num(1)), r)))
    return {q, r};
  if (cd)
    if (auto common = divModCommonFactor(r, *cd))
      return {add(q, common->first), common->second};
  if (r->isCall(Fn::Mod) && r->args[1] == d)
    return {q, r};
  return {add(q, node(Fn::Div, r, d)), node(Fn::Mod, r, d)};
}

} // namespace quire
