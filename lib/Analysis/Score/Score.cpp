// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cases of a score, its linear form, and the kind of its mask.

#include "lib/Analysis/Score/Score.h"
#include "lib/Analysis/Score/LinearFacts.h"
#include <cmath>

using namespace llvm;

namespace quire {

/// Scores at or below this vanish in the softmax of any known model; visible
/// constants above its negative are refused.
static constexpr double maskedScore = -9000;
static constexpr size_t maxCases = 64;

Expr queryPosition(ExprContext &ctx) { return ctx.symbol("p"); }
Expr keyPosition(ExprContext &ctx) { return ctx.symbol("k"); }

StringRef stringifyMaskKind(MaskKind kind) {
  static constexpr StringLiteral names[] = {"causal", "window", "chunked",
                                            "full",   "prefix", "other"};
  return names[size_t(kind)];
}

SmallVector<Expr> positionFacts(ExprContext &ctx, Expr keys, bool cross,
                                bool oneToken) {
  Expr p = queryPosition(ctx), k = keyPosition(ctx), one = ctx.num(1);
  Expr L = ctx.L(), P = ctx.P();
  SmallVector<Expr> facts = {P,
                             ctx.sub(L, one),
                             ctx.sub(p, P),
                             ctx.sub(ctx.sub(ctx.add(P, L), one), p),
                             k,
                             ctx.sub(ctx.sub(keys, one), k)};
  if (!cross)
    facts.push_back(ctx.sub(ctx.sub(keys, one), p));
  if (oneToken) {
    facts.push_back(ctx.sub(one, L));
    facts.push_back(ctx.sub(P, p));
  }
  if (std::optional<int64_t> n = ctx.totalBound())
    facts.push_back(ctx.sub(ctx.num(*n), ctx.add(P, L)));
  return facts;
}

//===----------------------------------------------------------------------===//
// Cases
//===----------------------------------------------------------------------===//

namespace {
struct Case {
  Expr condition, leaf;
};

class CaseSplit {
public:
  explicit CaseSplit(ExprContext &ctx) : ctx(ctx) {}

  /// Conditions on positions leave the arithmetic. False if there are too many.
  bool run(Expr e, Expr condition) {
    if (condition->is(ExprKind::Bool) && !condition->payload)
      return true;
    if (++steps > 4096 || cases.size() >= maxCases)
      return false;
    if (e->is(ExprKind::Ite))
      return branch(e->args[0], e->args[1], e->args[2], condition);
    if (e->isCall(Fn::Max) || e->isCall(Fn::Min))
      // A lower bound at the lower end of the float range changes no finite score, nor does an upper one at the upper end.
      for (unsigned i : {0u, 1u})
        if (std::optional<Coef> c = ctx.constant(e->args[i]);
            c && (e->isCall(Fn::Max) ? c->asDouble() < -1e30 : c->asDouble() > 1e30))
          return run(e->args[1 - i], condition);
    if (Expr x = conditional(e))
      return branch(x->args[0], ctx.replace(e, x, x->args[1]),
                    ctx.replace(e, x, x->args[2]), condition);
    cases.push_back({condition, e});
    return true;
  }

  std::vector<Case> cases;

private:
  bool branch(Expr c, Expr a, Expr b, Expr condition) {
    return run(a, ctx.band({condition, c})) &&
           run(b, ctx.band({condition, ctx.bnot(c)}));
  }

  /// A conditional outside of scores, tables and data.
  static Expr conditional(Expr e) {
    if (e->is(ExprKind::Ite))
      return e;
    if (e->is(ExprKind::Poly)) {
      for (const Term &t : e->terms)
        for (Expr x : t.mono->atoms)
          if (Expr r = conditional(x))
            return r;
    } else if (e->is(ExprKind::Call) && !e->isLogic()) {
      for (Expr x : e->args)
        if (Expr r = conditional(x))
          return r;
    }
    return nullptr;
  }

  ExprContext &ctx;
  unsigned steps = 0;
};

/// scale * q.k (inside a softcap or not) + terms of the key + row constant
struct LinearScore {
  double scale = 0, softcap = 0;
  Expr ofKey = nullptr, ofRow = nullptr;
};
} // namespace

static bool isMasked(ExprContext &ctx, Expr e) {
  if (e->is(ExprKind::Special))
    return e == ctx.negInf();
  return e->is(ExprKind::Poly) && ctx.constantTerm(e).asDouble() <= maskedScore;
}

static bool hasScore(ExprContext &ctx, Expr e) {
  Leaves l = ctx.leavesOf(e);
  return !l.dots.empty();
}

static std::optional<LinearScore> dissect(ExprContext &ctx, Expr leaf) {
  LinearScore out;
  bool found = false;
  Expr k = keyPosition(ctx);
  SmallVector<Expr> ofKey{ctx.num(0)}, ofRow{ctx.num(0)};
  for (const Term &t : ctx.termsOf(leaf)) {
    Expr term = ctx.fromTerms({t});
    if (!hasScore(ctx, term)) {
      (term->uses(k) ? ofKey : ofRow).push_back(term);
      continue;
    }
    if (found || t.mono->atoms.size() != 1)
      return std::nullopt;
    found = true;
    Expr atom = t.mono->atoms[0];
    double c = t.coef.asDouble();
    if (atom->is(ExprKind::Dot)) {
      out.scale = c;
    } else if (atom->isCall(Fn::Tanh)) {
      SmallVector<Term> inner = ctx.termsOf(atom->args[0]);
      if (inner.size() != 1 || inner[0].mono->atoms.size() != 1 ||
          !inner[0].mono->atoms[0]->is(ExprKind::Dot) || c <= 0)
        return std::nullopt;
      out.softcap = c;
      out.scale = c * inner[0].coef.asDouble();
    } else {
      return std::nullopt;
    }
  }
  out.ofKey = ctx.add(ofKey);
  out.ofRow = ctx.add(ofRow);
  if (!found || out.ofKey->isBad() || out.ofRow->isBad())
    return std::nullopt;
  return out;
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

static SmallVector<Expr> inequalitiesOf(ExprContext &ctx, Expr predicate) {
  SmallVector<Expr> out;
  ExprContext::walk(predicate, [&](Expr x) {
    if (x->is(ExprKind::Ge0))
      out.push_back(x->args[0]);
  });
  llvm::sort(out, [](Expr a, Expr b) { return a->id < b->id; });
  return out;
}

MaskKind classifyMask(ExprContext &ctx, Expr visible, ArrayRef<Expr> facts,
                      bool oneToken, int64_t &size) {
  Expr p = queryPosition(ctx), k = keyPosition(ctx);
  Expr causal = ctx.ge0(ctx.sub(p, k)), all = ctx.boolean(true);
  size = 0;
  bool everything = equivalent(ctx, visible, all, facts);
  if (equivalent(ctx, visible, causal, facts) && (!everything || oneToken))
    return MaskKind::Causal;
  if (everything)
    return MaskKind::Full;
  SmallVector<Expr> atoms = inequalitiesOf(ctx, visible);
  for (Expr a : atoms) {
    std::optional<int64_t> c = ctx.constInt(ctx.sub(a, ctx.sub(k, p)));
    if (c && *c >= 0 && *c < INT64_MAX &&
        equivalent(ctx, visible, ctx.band({causal, ctx.ge0(a)}), facts)) {
      size = *c + 1;
      return MaskKind::Window;
    }
  }
  llvm::SmallVector<int64_t> divisors;
  for (Expr a : atoms)
    ExprContext::walk(a, [&](Expr x) {
      if (x->isCall(Fn::Div))
        if (std::optional<int64_t> d = ctx.constInt(x->args[1]);
            d && !llvm::is_contained(divisors, *d))
          divisors.push_back(*d);
    });
  for (int64_t d : divisors) {
    Expr dp = ctx.floorDiv(p, ctx.num(d)), dk = ctx.floorDiv(k, ctx.num(d));
    if (equivalent(ctx, visible, ctx.band({causal, ctx.le(dp, dk)}), facts)) {
      size = d;
      return MaskKind::Chunked;
    }
  }
  for (Expr a : atoms) {
    std::optional<int64_t> c = ctx.constInt(ctx.add(a, k));
    if (c && *c < INT64_MAX &&
        equivalent(ctx, visible, ctx.bor({causal, ctx.ge0(a)}), facts)) {
      size = *c + 1;
      return MaskKind::Prefix;
    }
  }
  return MaskKind::Other;
}

//===----------------------------------------------------------------------===//
// Bias and sinks
//===----------------------------------------------------------------------===//

/// Value for each head, heads row-major over `headVars`, with B = 1.
static std::optional<SmallVector<double>>
perHead(ExprContext &ctx, Expr e, const ScoreRow &row) {
  SmallVector<double> out;
  for (unsigned h = 0; h < row.heads; ++h) {
    DenseMap<Expr, double> env{{ctx.B(), 1.0}};
    unsigned rest = h;
    for (Expr v : llvm::reverse(row.headVars)) {
      Expr extent = ctx.subst(v->extent(), ctx.B(), ctx.num(1));
      std::optional<int64_t> n = ctx.constInt(extent);
      if (!n || *n <= 0)
        return std::nullopt;
      env[v] = double(rest % *n);
      rest /= unsigned(*n);
    }
    std::optional<double> v = ctx.evaluate(e, env);
    if (!v || !std::isfinite(*v))
      return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

static bool isFreeOfData(ExprContext &ctx, Expr e) {
  Leaves l = ctx.leavesOf(e);
  return l.tokens.empty() && l.past.empty() &&
         !l.readsScores() && !l.bad;
}

static bool dependsOnCall(ExprContext &ctx, Expr e) {
  return ctx.outerUses(e, ctx.P()) || ctx.outerUses(e, ctx.L());
}

static void readBias(ExprContext &ctx, Expr bias, const ScoreRow &row,
                     ScoreMeaning &out) {
  out.bias = bias;
  if (ctx.isConst(bias, 0))
    return;
  Expr p = queryPosition(ctx), k = keyPosition(ctx);
  SmallVector<Term> slope;
  bool linear = true;
  for (const Term &t : ctx.termsOf(bias)) {
    SmallVector<Expr> rest;
    unsigned ks = 0;
    for (Expr x : t.mono->atoms) {
      if (x == k)
        ++ks;
      else
        rest.push_back(x);
    }
    if (ks != 1 || llvm::any_of(rest, [&](Expr x) { return x->uses(k); }))
      linear = false;
    slope.push_back({ctx.monomial(rest), t.coef});
  }
  Expr perKey = ctx.fromTerms(slope);
  if (linear && !perKey->uses(p) && !dependsOnCall(ctx, perKey))
    if (auto slopes = perHead(ctx, perKey, row)) {
      out.biasKind = BiasKind::Alibi;
      out.slopes = *slopes;
      return;
    }
  if (!isFreeOfData(ctx, bias) || dependsOnCall(ctx, bias)) {
    out.failure = "bias depends on more than head and positions: " +
                  ctx.str(bias).substr(0, 160);
    return;
  }
  for (Expr v : ctx.outerVars(bias))
    if (v != p && v != k && v != ctx.B() && !llvm::is_contained(row.headVars, v)) {
      out.failure = "bias depends on the index " + ctx.str(v);
      return;
    }
  out.biasKind = BiasKind::Region;
}

static void readSinks(ExprContext &ctx, Expr sink, Expr rowConstant,
                      const ScoreRow &row, ScoreMeaning &out) {
  Expr value = ctx.sub(sink, rowConstant);
  auto sinks = isFreeOfData(ctx, value) ? perHead(ctx, value, row)
                                        : std::nullopt;
  if (!sinks) {
    out.failure = "the sink column is no constant of its head: " +
                  ctx.str(value).substr(0, 160);
    return;
  }
  out.hasSinks = true;
  out.sinks = *sinks;
}

//===----------------------------------------------------------------------===//
// The whole row
//===----------------------------------------------------------------------===//

namespace {
class ScoreAnalysis {
public:
  ScoreAnalysis(ExprContext &ctx, const ScoreRow &row) : ctx(ctx), row(row) {}

  ScoreMeaning run() {
    Expr score = atPositions();
    if (!score)
      return out;
    facts = positionFacts(ctx, row.keys, row.cross, row.oneToken);
    if (!collectCases(score))
      return out;
    if (Expr bias = combine()) {
      int64_t size;
      out.mask = classifyMask(ctx, out.visible, facts,
                              row.oneToken && !row.cross, size);
      out.maskSize = size;
      if (out.mask == MaskKind::Other && dependsOnCall(ctx, out.visible))
        fail("mask depends on the lengths of the call: " +
             ctx.str(out.visible).substr(0, 200));
      if (out.failure.empty())
        readBias(ctx, bias, row, out);
    }
    return out;
  }

private:
  void fail(const Twine &why) {
    if (out.failure.empty())
      out.failure = why.str();
  }

  /// The score at query position p and key k, with the sink column apart.
  Expr atPositions() {
    Expr p = queryPosition(ctx), k = keyPosition(ctx);
    Expr key = ctx.index("kk", row.keys);
    Expr main = ctx.subst(row.element, row.keyVar, key);
    bool hasSink = row.keyExtent == ctx.add(row.keys, ctx.num(1));
    if (!hasSink && row.keyExtent != row.keys) {
      fail("key extent " + ctx.str(row.keyExtent) +
           " is neither past and new rows nor the buffer");
      return nullptr;
    }
    Substitution map{{key, k}};
    if (row.rowVar)
      map.push_back({row.rowVar, ctx.sub(p, ctx.P())});
    else
      map.push_back({ctx.P(), p});
    if (hasSink) {
      Substitution onlyRow(map.begin() + 1, map.end());
      sink = ctx.subst(ctx.subst(row.element, row.keyVar, row.keys), onlyRow);
    }
    return ctx.subst(main, map);
  }

  bool collectCases(Expr score) {
    CaseSplit split(ctx);
    if (!split.run(score, ctx.boolean(true))) {
      fail("score has too many cases");
      return false;
    }
    SmallVector<Expr> conditions;
    for (const Case &c : split.cases) {
      if (contradicts(ctx, c.condition, facts))
        continue;
      if (isMasked(ctx, c.leaf)) {
        double number = ctx.constantTerm(c.leaf).asDouble();
        if (number < 0 && (out.weakestMask == 0 || number > out.weakestMask))
          out.weakestMask = number;
        continue;
      }
      bool special = false;
      for (Expr x : ctx.leavesOf(c.leaf).probs)
        special |= x->is(ExprKind::Prob);
      if (c.leaf->is(ExprKind::Special) || c.leaf->isBad() || special ||
          hasSpecial(c.leaf)) {
        fail("a visible score is " + ctx.str(c.leaf).substr(0, 80));
        return false;
      }
      double constant = ctx.constantTerm(c.leaf).asDouble();
      if (constant > -maskedScore) {
        fail("a key is promoted by " + std::to_string(constant));
        return false;
      }
      std::optional<LinearScore> linear = dissect(ctx, c.leaf);
      if (!linear) {
        fail("score is no scaled product with additive terms: " +
             ctx.str(c.leaf).substr(0, 160));
        return false;
      }
      visible.push_back({c.condition, *linear});
      conditions.push_back(c.condition);
    }
    out.visible = ctx.bor(conditions);
    if (visible.empty())
      fail("no key is visible");
    return !visible.empty();
  }

  /// An infinity or NaN outside of scores.
  static bool hasSpecial(Expr e) {
    if (e->is(ExprKind::Special))
      return true;
    if (e->is(ExprKind::Dot) || e->is(ExprKind::Data))
      return false;
    for (Expr x : e->args)
      if (!e->is(ExprKind::Var) && hasSpecial(x))
        return true;
    for (const Term &t : e->terms)
      for (Expr x : t.mono->atoms)
        if (hasSpecial(x))
          return true;
    return false;
  }

  /// Terms without the key are row constants only if every visible case has
  /// the same ones: a constant per case is part of the bias.
  Expr combine() {
    const LinearScore &first = visible.front().second;
    bool sameRow = true;
    for (auto &[condition, s] : visible) {
      if (s.scale != first.scale || s.softcap != first.softcap) {
        fail("different score formulas in one row");
        return nullptr;
      }
      sameRow &= s.ofRow == first.ofRow;
    }
    out.scale = first.scale;
    out.softcap = first.softcap;
    if (sink) {
      if (!sameRow) {
        fail("a sink column beside keys with different constants");
        return nullptr;
      }
      readSinks(ctx, sink, first.ofRow, row, out);
      if (!out.failure.empty())
        return nullptr;
    }
    auto biasOf = [&](const LinearScore &s) {
      return sameRow ? s.ofKey : ctx.add(s.ofKey, s.ofRow);
    };
    Expr bias = biasOf(visible.back().second);
    for (auto &[condition, s] : llvm::reverse(ArrayRef(visible).drop_back()))
      bias = ctx.ite(condition, biasOf(s), bias);
    return bias;
  }

  ExprContext &ctx;
  const ScoreRow &row;
  ScoreMeaning out;
  SmallVector<Expr> facts;
  Expr sink = nullptr;
  std::vector<std::pair<Expr, LinearScore>> visible;
};
} // namespace

ScoreMeaning analyzeScore(ExprContext &ctx, const ScoreRow &row) {
  return ScoreAnalysis(ctx, row).run();
}

} // namespace quire
