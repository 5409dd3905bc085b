// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fourier-Motzkin elimination over exact integers.

#include "lib/Analysis/Score/LinearFacts.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>
#include <set>

using namespace llvm;

namespace quire {

static constexpr size_t maxConjunctions = 200;
static constexpr size_t maxRows = 4000;

static bool dnf(ExprContext &ctx, Expr e, std::vector<Conjunction> &out) {
  switch (e->kind) {
  case ExprKind::Bool:
    if (e->payload)
      out.push_back({});
    return true;
  case ExprKind::Ge0:
    if (!ctx.isInt(e->args[0]))
      return false;
    out.push_back({e->args[0]});
    return true;
  case ExprKind::Or:
    for (Expr x : e->args)
      if (!dnf(ctx, x, out) || out.size() > maxConjunctions)
        return false;
    return true;
  case ExprKind::And: {
    std::vector<Conjunction> acc(1);
    for (Expr x : e->args) {
      std::vector<Conjunction> part, next;
      if (!dnf(ctx, x, part))
        return false;
      for (const Conjunction &a : acc)
        for (const Conjunction &b : part) {
          next.push_back(a);
          llvm::append_range(next.back(), b);
        }
      if (next.size() > maxConjunctions)
        return false;
      acc = std::move(next);
    }
    llvm::append_range(out, acc);
    return true;
  }
  case ExprKind::Ite: {
    Expr c = e->args[0];
    Expr flat = ctx.bor({ctx.band({c, e->args[1]}),
                         ctx.band({ctx.bnot(c), e->args[2]})});
    return !flat->is(ExprKind::Ite) && dnf(ctx, flat, out);
  }
  default:
    return false;
  }
}

std::optional<std::vector<Conjunction>> disjunctiveForm(ExprContext &ctx,
                                                        Expr predicate) {
  std::vector<Conjunction> out;
  if (!dnf(ctx, predicate, out))
    return std::nullopt;
  return out;
}

namespace {
/// sum of coefficients * monomials + constant >= 0
struct Inequality {
  SmallVector<std::pair<uint32_t, int64_t>, 6> terms; // by monomial id
  int64_t constant = 0;

  bool operator<(const Inequality &o) const {
    return std::tie(terms, constant) < std::tie(o.terms, o.constant);
  }
  int64_t coefficient(uint32_t id) const {
    for (auto [m, c] : terms)
      if (m == id)
        return c;
    return 0;
  }
  /// Divides by the common factor; the constant rounds down, as all terms are
  /// integers.
  void tighten() {
    int64_t g = 0;
    for (auto [m, c] : terms)
      g = std::gcd(g, c);
    if (g <= 1)
      return;
    for (auto &[m, c] : terms)
      c /= g;
    constant = divideFloorSigned(constant, g);
  }
};

/// x*a + y*b with x, y > 0; false on overflow.
bool combine(const Inequality &a, int64_t x, const Inequality &b, int64_t y,
             Inequality &out) {
  auto fused = [&](int64_t ca, int64_t cb, int64_t &r) {
    int64_t u, v;
    return !MulOverflow(ca, x, u) && !MulOverflow(cb, y, v) &&
           !AddOverflow(u, v, r);
  };
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    uint32_t ma = i < a.terms.size() ? a.terms[i].first : UINT32_MAX;
    uint32_t mb = j < b.terms.size() ? b.terms[j].first : UINT32_MAX;
    uint32_t m = std::min(ma, mb);
    int64_t c;
    if (!fused(ma == m ? a.terms[i].second : 0,
               mb == m ? b.terms[j].second : 0, c))
      return false;
    if (c)
      out.terms.push_back({m, c});
    i += ma == m;
    j += mb == m;
  }
  if (!fused(a.constant, b.constant, out.constant))
    return false;
  out.tighten();
  return true;
}

class Elimination {
public:
  /// False if the expression is no integer polynomial.
  bool add(ExprContext &ctx, Expr e) {
    if (!ctx.isInt(e))
      return false;
    Inequality row;
    for (const Term &t : ctx.termsOf(e)) {
      if (t.mono->atoms.empty())
        row.constant = t.coef.i;
      else
        row.terms.push_back({t.mono->id, t.coef.i});
    }
    llvm::sort(row.terms);
    row.tighten();
    rows.insert(std::move(row));
    return true;
  }

  /// False only if the rows contradict each other.
  bool feasible() {
    for (unsigned round = 0; round < 40; ++round) {
      for (const Inequality &row : rows)
        if (row.terms.empty() && row.constant < 0)
          return false;
      std::optional<uint32_t> victim = cheapest();
      if (!victim)
        return true;
      if (!eliminate(*victim))
        return true;
    }
    return true;
  }

private:
  std::optional<uint32_t> cheapest() const {
    std::map<uint32_t, std::pair<size_t, size_t>> counts;
    for (const Inequality &row : rows)
      for (auto [m, c] : row.terms)
        ++(c > 0 ? counts[m].first : counts[m].second);
    std::optional<uint32_t> best;
    size_t cost = 0;
    for (auto &[m, n] : counts)
      if (!best || n.first * n.second < cost) {
        best = m;
        cost = n.first * n.second;
      }
    return best;
  }

  bool eliminate(uint32_t m) {
    std::vector<Inequality> above, below;
    std::set<Inequality> rest;
    for (const Inequality &row : rows) {
      int64_t c = row.coefficient(m);
      if (c > 0)
        above.push_back(row);
      else if (c < 0)
        below.push_back(row);
      else
        rest.insert(row);
    }
    for (const Inequality &a : above)
      for (const Inequality &b : below) {
        int64_t ca = a.coefficient(m), cb = b.coefficient(m);
        if (cb == INT64_MIN)
          return false;
        Inequality sum;
        if (!combine(a, -cb, b, ca, sum))
          return false;
        rest.insert(std::move(sum));
        if (rest.size() > maxRows)
          return false;
      }
    rows = std::move(rest);
    return true;
  }

  std::set<Inequality> rows;
};
} // namespace

bool isFeasible(ExprContext &ctx, ArrayRef<Expr> inequalities) {
  Elimination system;
  SmallVector<Expr> todo(inequalities.begin(), inequalities.end());
  llvm::DenseSet<Expr> defined;
  while (!todo.empty()) {
    Expr e = todo.pop_back_val();
    if (!system.add(ctx, e))
      continue; // fewer facts: still sound
    for (const Term &t : ctx.termsOf(e))
      for (Expr x : t.mono->atoms) {
        if (!(x->isCall(Fn::Div) || x->isCall(Fn::Mod)) ||
            !ctx.constInt(x->args[1]) || !defined.insert(x).second)
          continue;
        Expr n = x->args[0], d = x->args[1], last = ctx.sub(d, ctx.num(1));
        if (x->isCall(Fn::Div)) {
          Expr below = ctx.mul(d, x);
          todo.push_back(ctx.sub(n, below));
          todo.push_back(ctx.sub(ctx.add(below, last), n));
        } else {
          Expr q = ctx.floorDiv(n, d);
          todo.push_back(x);
          todo.push_back(ctx.sub(last, x));
          Expr rest = ctx.sub(n, ctx.mul(d, q));
          todo.push_back(ctx.sub(rest, x));
          todo.push_back(ctx.sub(x, rest));
        }
      }
  }
  return system.feasible();
}

bool implies(ExprContext &ctx, Expr a, Expr b, ArrayRef<Expr> given) {
  auto left = disjunctiveForm(ctx, a);
  auto right = disjunctiveForm(ctx, ctx.bnot(b));
  if (!left || !right)
    return false;
  for (const Conjunction &c : *left) {
    SmallVector<Expr> facts(given.begin(), given.end());
    llvm::append_range(facts, c);
    if (!isFeasible(ctx, facts))
      continue;
    for (const Conjunction &d : *right) {
      SmallVector<Expr> all(facts);
      llvm::append_range(all, d);
      if (isFeasible(ctx, all))
        return false;
    }
  }
  return true;
}

bool equivalent(ExprContext &ctx, Expr a, Expr b, ArrayRef<Expr> given) {
  return implies(ctx, a, b, given) && implies(ctx, b, a, given);
}

bool contradicts(ExprContext &ctx, Expr a, ArrayRef<Expr> given) {
  return implies(ctx, a, ctx.boolean(false), given);
}

} // namespace quire
