// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether the numbers that count (positions, lengths, and what is made of them)
// are exact in the element type that holds them. Expressions are exact
// integers; a type wraps or rounds beyond its range.

#include "lib/Analysis/Element/Interp.h"
#include <cmath>

using namespace mlir;

namespace quire {

/// Lengths below this many tokens are what exactness is proved for. Sums and
/// differences of a few positions stay exact in f32 (2^24) with it.
static constexpr double mostTokens = double(1 << 22);

static constexpr unsigned mostDepth = 16;

/// An upper bound of |e|, for polynomials over positions, lengths and their
/// quotients; nothing for anything that contains data. What has a sign is not
/// larger than its terms of that sign, since variables are not negative.
static std::optional<double> magnitude(ExprContext &ctx, Expr e,
                                       unsigned depth = 0) {
  if (depth > mostDepth)
    return std::nullopt;
  switch (e->kind) {
  case ExprKind::Var:
    if (Expr extent = e->extent())
      if (std::optional<double> m = magnitude(ctx, extent, depth + 1))
        return std::min(*m, 2 * mostTokens);
    return mostTokens;
  case ExprKind::Poly: {
    double positive = 0, negative = 0;
    bool counts = true; // no atom is below 0
    for (const Term &t : e->terms) {
      double product = std::abs(t.coef.asDouble());
      for (Expr atom : t.mono->atoms) {
        std::optional<double> m = magnitude(ctx, atom, depth + 1);
        if (!m)
          return std::nullopt;
        product *= *m;
        counts &= atom->is(ExprKind::Var);
      }
      (t.coef.asDouble() < 0 ? negative : positive) += product;
    }
    if (counts && ctx.nonNeg(e))
      return positive;
    if (counts && ctx.nonNeg(ctx.neg(e)))
      return negative;
    return positive + negative;
  }
  case ExprKind::Call:
    switch (e->fn) {
    case Fn::Div:
      return magnitude(ctx, e->args[0], depth + 1);
    case Fn::Mod:
      return magnitude(ctx, e->args[1], depth + 1);
    case Fn::IntMin:
    case Fn::IntMax: {
      auto a = magnitude(ctx, e->args[0], depth + 1);
      auto b = magnitude(ctx, e->args[1], depth + 1);
      return a && b ? std::optional(std::max(*a, *b)) : std::nullopt;
    }
    default:
      return std::nullopt;
    }
  default:
    return std::nullopt;
  }
}

/// The largest integer up to which every integer is exact.
static double exactUpTo(Type type) {
  if (auto i = dyn_cast<IntegerType>(type))
    return std::ldexp(1.0, i.getWidth() - (i.isUnsigned() ? 0 : 1)) - 1;
  if (auto f = dyn_cast<FloatType>(type))
    return std::ldexp(1.0, f.getFPMantissaWidth());
  return HUGE_VAL;
}

/// The smallest step between two values of a polynomial: its least coefficient.
static double leastStep(Expr e) {
  double least = 1;
  if (e->is(ExprKind::Poly))
    for (const Term &t : e->terms)
      if (!t.mono->atoms.empty())
        least = std::min(least, std::abs(t.coef.asDouble()));
  return least;
}

bool isRepresentable(ExprContext &ctx, Expr e, Type type) {
  if (type.isInteger(1) || e->freeVars.empty())
    return true;
  // The size of a tensor that exists fits into 64 bits.
  bool counts = llvm::any_of(e->freeVars, [](Expr v) { return v->isIndex(); });
  if (!counts && type.isInteger(64))
    return true;
  std::optional<double> most = magnitude(ctx, e);
  if (!most)
    return true;
  auto integer = dyn_cast<IntegerType>(type);
  if (integer && integer.isUnsigned() && !ctx.nonNeg(e))
    return false;
  return *most <= exactUpTo(type) * (integer ? 1.0 : leastStep(e));
}

} // namespace quire
