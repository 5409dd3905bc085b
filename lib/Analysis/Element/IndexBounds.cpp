// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For how many positions an index stays inside of its table.

#include "lib/Analysis/Element/Interp.h"

using namespace llvm;

namespace quire {

// What is tried out at most, where an index has no closed form: evaluations,
// and positions.
static constexpr int64_t mostEvaluations = int64_t(1) << 20;
static constexpr int64_t mostPositions = int64_t(1) << 17;

namespace {

/// The variables of an index beside the position, and how many values each has.
/// The token axis is not one of them: its first token has position P.
struct OtherAxes {
  SmallVector<std::pair<Expr, int64_t>, 4> axes;
  int64_t combinations = 1;

  bool collect(ExprContext &ctx, Expr index) {
    for (Expr v : index->freeVars) {
      Expr extent = v->extent();
      if (!extent || extent->uses(ctx.L()) || extent->uses(ctx.B()))
        continue;
      std::optional<int64_t> size = ctx.constInt(extent);
      if (!size || *size <= 0 || *size > mostEvaluations / combinations)
        return false;
      axes.push_back({v, *size});
      combinations *= *size;
    }
    return true;
  }
};

/// a + b * p for the least and the greatest value of the other axes.
struct Linear {
  int64_t slope = 0, least = 0, greatest = 0;

  static std::optional<Linear> of(ExprContext &ctx, Expr index,
                                  const OtherAxes &others) {
    Linear line;
    for (const Term &t : ctx.termsOf(index)) {
      if (t.coef.isFloat || t.mono->atoms.size() > 1)
        return std::nullopt;
      int64_t c = t.coef.i;
      if (!t.mono->atoms.empty()) {
        Expr atom = t.mono->atoms[0];
        if (!atom->is(ExprKind::Var))
          return std::nullopt;
        if (atom == ctx.P()) {
          line.slope = c;
          continue;
        }
        const auto *axis = find_if(
            others.axes, [&](const auto &other) { return other.first == atom; });
        if (axis != others.axes.end()) {
          (c < 0 ? line.least : line.greatest) += c * (axis->second - 1);
          continue;
        }
        if (atom->isIndex()) // the token axis, at its first token
          continue;
      }
      line.least += c; // a constant, or L and B of a call of one token
      line.greatest += c;
    }
    return line;
  }

  int64_t positionsInside(int64_t rows) const {
    if (greatest >= rows || least < -rows)
      return 0;
    if (slope > 0)
      return (rows - 1 - greatest) / slope + 1;
    return slope < 0 ? (least + rows) / -slope + 1 : INT64_MAX;
  }
};

} // namespace

static std::optional<int64_t> tryPositions(ExprContext &ctx, Expr index,
                                           int64_t rows,
                                           const OtherAxes &others) {
  DenseMap<Expr, double> values;
  for (Expr v : index->freeVars)
    values[v] = v == ctx.L() || v == ctx.B() ? 1 : 0;
  int64_t most = std::min(mostPositions, mostEvaluations / others.combinations);
  for (int64_t p = 0; p < most; ++p) {
    values[ctx.P()] = double(p);
    for (int64_t c = 0; c < others.combinations; ++c) {
      int64_t rest = c;
      for (auto [v, size] : others.axes) {
        values[v] = double(rest % size);
        rest /= size;
      }
      std::optional<double> at = ctx.evaluate(index, values);
      if (!at)
        return std::nullopt;
      if (!(*at >= double(-rows) && *at < double(rows)))
        return p;
    }
  }
  return most;
}

std::optional<int64_t> positionsInside(ExprContext &ctx, Expr index,
                                       int64_t rows) {
  if (index->isBad() || !ctx.leavesOf(index).tokens.empty())
    return std::nullopt;
  if (!index->uses(ctx.P()) ||
      (ctx.isInt(index) && ctx.nonNeg(ctx.add(index, ctx.num(rows))) &&
       ctx.nonNeg(ctx.sub(ctx.num(rows - 1), index))))
    return INT64_MAX;
  OtherAxes others;
  if (!others.collect(ctx, index))
    return std::nullopt;
  if (index->is(ExprKind::Poly) || index->is(ExprKind::Var))
    if (std::optional<Linear> line = Linear::of(ctx, index, others))
      return line->positionsInside(rows);
  return tryPositions(ctx, index, rows, others);
}

void Interp::boundPositions(Expr index, Expr rows) {
  std::optional<int64_t> n = ctx.constInt(rows);
  if (!n)
    return;
  std::optional<int64_t> limit = positionsInside(ctx, index, *n);
  if (limit && *limit != INT64_MAX)
    maxPositions = std::min(maxPositions.value_or(INT64_MAX), *limit);
}

} // namespace quire
