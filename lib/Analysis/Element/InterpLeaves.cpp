// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Opaque results that are proved token-wise, products, scores and attention.

#include "lib/Analysis/Element/Interp.h"

using namespace llvm;
using namespace mlir;

namespace quire {

Expr Interp::bindAxes(const SymbolicTensor &t, ArrayRef<unsigned> axes,
                      SmallVectorImpl<Expr> &bound) {
  Substitution map;
  for (unsigned a : axes) {
    Expr v = index(a, t.extents[a]);
    if (!v->is(ExprKind::Var))
      continue;
    Expr c = fresh(t.extents[a]);
    map.push_back({v, c});
    bound.push_back(c);
  }
  return ctx.subst(t.element, map);
}

Expr Interp::dataLeaf(StringRef name, ElementType type, Expr token, Expr batch,
                      ArrayRef<Expr> extents) {
  SmallVector<Expr, 4> address = generic(extents);
  uint64_t carriers = 0;
  for (auto [axis, v] : llvm::enumerate(address))
    if (axis < 64 && v->is(ExprKind::Var) && (token->uses(v) || batch->uses(v)))
      carriers |= uint64_t(1) << axis;
  return ctx.data(name, type, token, batch, address, carriers);
}

static void insertUnique(SmallVectorImpl<Expr> &set, Expr e) {
  if (!llvm::is_contained(set, e))
    set.push_back(e);
}

Expr Interp::leaf(Operation *op, StringRef name, ArrayRef<Expr> extents,
                  ArrayRef<Expr> parts, ElementType type,
                  ArrayRef<Expr> bound) {
  SmallVector<Expr> tokens, batches;
  bool scores = false;
  Expr past = nullptr;
  for (Expr part : parts) {
    Leaves l = ctx.leavesOf(part);
    if (l.bad)
      return l.bad;
    for (auto [t, b] : l.tokens) {
      insertUnique(tokens, t);
      insertUnique(batches, b);
    }
    scores |= l.readsScores();
    if (!l.past.empty())
      past = l.past.front();
  }
  if (past)
    return bad(op, "reads cached state '" + past->name + "' outside attention");
  if (scores)
    return bad(op, "reads attention scores in an unknown way");
  for (Expr c : bound) {
    for (Expr t : tokens)
      if (t->uses(c))
        return bad(op, "reduces or mixes over the token axis");
    for (Expr b : batches)
      if (b->uses(c))
        return bad(op, "reduces or mixes over the batch axis");
  }
  if (tokens.size() > 1)
    return bad(op, "combines data of different tokens " + ctx.str(tokens[0]) +
                       ", " + ctx.str(tokens[1]));
  if (batches.size() > 1)
    return bad(op, "combines data of different sequences of the batch");
  if (tokens.empty()) {
    SmallVector<Expr> all(parts.begin(), parts.end());
    for (Expr c : bound)
      all.push_back(c->extent());
    return opaqueOfPosition(name, type, extents, all);
  }
  for (Expr c : bound)
    for (Expr s : c->extent()->freeVars)
      if (s == ctx.P() || s == ctx.L() || s == ctx.B())
        return bad(op, "reduces over an axis of length " +
                           ctx.str(c->extent()));
  if (std::string why = notOfPosition(parts, tokens[0]); !why.empty())
    return bad(op, "data depends on " + why);
  return dataLeaf(name, type, tokens[0], batches[0], extents);
}

/// A function of weights, of positions and of the lengths of the call.
Expr Interp::opaqueOfPosition(StringRef name, ElementType type,
                              ArrayRef<Expr> extents, ArrayRef<Expr> parts) {
  SmallVector<Expr> vars;
  for (Expr part : parts)
    for (Expr v : ctx.outerVars(part))
      insertUnique(vars, v);
  llvm::sort(vars, [](Expr a, Expr b) { return a->id < b->id; });
  auto uses = [&](Expr s) { return llvm::is_contained(vars, s); };
  SmallVector<Expr> args;
  Expr row = nullptr;
  if (uses(P) || uses(ctx.L())) {
    for (Expr v : vars) {
      if (v->extent() != L)
        continue;
      bool clean = llvm::all_of(parts, [&](Expr part) {
        Expr e = ctx.subst(part, v, ctx.sub(position, P));
        return !ctx.outerUses(e, P) && !ctx.outerUses(e, ctx.L());
      });
      if (!clean)
        continue;
      row = v;
      args.push_back(ctx.add(P, v));
      break;
    }
    if (!row)
      for (Expr s : {P, ctx.L()})
        if (uses(s))
          args.push_back(s);
  }
  if (uses(ctx.B()))
    args.push_back(ctx.B());
  for (Expr v : vars)
    if (v->isSymbol() && v != P && v != ctx.L() && v != ctx.B())
      args.push_back(v);
  for (Expr v : generic(extents))
    if (v->is(ExprKind::Var) && v != row)
      args.push_back(v);
  return ctx.opaque(name, type, args);
}

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

Expr Interp::atPosition(Expr e, Expr token) {
  Expr t = ctx.sub(position, P);
  if (token->is(ExprKind::Var))
    return ctx.subst(e, token, t);
  if (ctx.constant(token))
    return ctx.subst(e, P, ctx.sub(position, token));
  // Solve token = position - P for an index variable, then for L.
  for (Expr v : token->freeVars) {
    if (!v->isIndex() || !ctx.coefficient(token, v).isOne())
      continue;
    Expr rest = ctx.sub(token, v);
    if (!rest->uses(v))
      return ctx.subst(e, v, ctx.sub(t, rest));
  }
  if (ctx.coefficient(token, ctx.L()).isOne()) {
    Expr rest = ctx.sub(token, ctx.L());
    if (!rest->uses(ctx.L()) && !rest->uses(P))
      return ctx.subst(e, ctx.L(), ctx.sub(t, rest));
  }
  return ctx.replace(e, token, t);
}

std::string Interp::notOfPosition(ArrayRef<Expr> parts, Expr token) {
  if (ctx.isConst(L, 1) && ctx.constant(token))
    return {}; // one token: every use of P is its position
  for (Expr part : parts) {
    if (!ctx.outerUses(part, P) && !ctx.outerUses(part, ctx.L()))
      continue;
    Expr e = atPosition(part, token);
    bool past = ctx.outerUses(e, P), length = ctx.outerUses(e, ctx.L());
    if (!past && !length)
      continue;
    assumeShortSide(part);
    return std::string(past && length ? "the past length and the call length"
                       : past         ? "the past length"
                                      : "the call length") +
           ", not only on the position";
  }
  return {};
}

bool Interp::assumeShortSide(Expr e) {
  std::optional<int64_t> limit;
  ExprContext::walk(e, [&](Expr x) {
    if (!x->is(ExprKind::Ge0))
      return;
    std::optional<int64_t> c =
        ctx.constInt(ctx.sub(x->args[0], ctx.add(ctx.P(), ctx.L())));
    if (c && -*c - 1 >= 8 && !limit &&
        (!ctx.totalBound() || *ctx.totalBound() > -*c - 1))
      limit = -*c - 1;
  });
  if (limit)
    assume(*limit, "a longer total selects another table");
  return limit.has_value();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

std::pair<double, Expr> Interp::takeFactor(Expr e) {
  if (!e->is(ExprKind::Poly) || e->terms.empty())
    return {1, e};
  if (e->terms.size() == 1) {
    if (e->terms[0].mono->atoms.empty())
      return {1, e};
    return {e->terms[0].coef.asDouble(),
            ctx.fromTerms({Term{e->terms[0].mono, Coef::ofInt(1)}})};
  }
  double k = std::abs(e->terms[0].coef.asDouble());
  SmallVector<Term> terms;
  for (const Term &t : e->terms) {
    double c = t.coef.asDouble();
    if (k == 1 || std::abs(c) != k || t.mono->atoms.empty())
      return {1, e};
    terms.push_back({t.mono, Coef::ofInt(c < 0 ? -1 : 1)});
  }
  return {k, ctx.fromTerms(terms)};
}

/// The contraction runs over tokens of the call or over cached rows.
bool Interp::onTokenAxis(const Leaves &l, Expr c) const {
  for (auto [t, b] : l.tokens)
    if (t->uses(c))
      return true;
  for (Expr x : l.past) {
    const StateInput *s = state(x->name);
    if (s && s->axis >= 0 && size_t(s->axis) < x->args.size() &&
        x->args[s->axis]->uses(c))
      return true;
  }
  return false;
}

Expr Interp::contract(Operation *op, Value result, ArrayRef<Expr> extents,
                      Expr c, Expr a, Expr b, double alpha) {
  if (!c->is(ExprKind::Var))
    return ctx.mul(ctx.real(alpha), ctx.mul(a, b));
  Leaves la = ctx.leavesOf(a), lb = ctx.leavesOf(b);
  if (la.bad || lb.bad)
    return la.bad ? la.bad : lb.bad;
  if (!la.dots.empty() || !lb.dots.empty())
    return bad(op, "product with raw attention scores");
  bool past = !la.past.empty() || !lb.past.empty();
  bool probs = !la.probs.empty() || !lb.probs.empty();
  bool bothData = !la.tokens.empty() && !lb.tokens.empty();
  StringRef name = label(result);
  if (!past && !probs && !bothData)
    return ctx.mul(ctx.real(alpha),
                   leaf(op, name, extents, {a, b}, ElementType::Float, {c}));
  auto [ka, ea] = takeFactor(a);
  auto [kb, eb] = takeFactor(b);
  if (probs) {
    bool swapped = la.probs.empty();
    return attentionResult(op, result, extents, c, swapped ? eb : ea,
                           swapped ? ea : eb, ka * kb * alpha);
  }
  if (onTokenAxis(la, c) || onTokenAxis(lb, c))
    return bad(op, "contraction over token positions without softmax");
  SmallVector<Expr> tokens;
  for (const Leaves *l : {&la, &lb})
    for (auto [t, batch] : l->tokens)
      insertUnique(tokens, t);
  if (!past && tokens.size() <= 1)
    return ctx.mul(ctx.real(alpha),
                   leaf(op, name, extents, {a, b}, ElementType::Float, {c}));
  if ((!la.past.empty() && !lb.past.empty()) || tokens.empty())
    return bad(op, "product of two cached states");
  bool swapped = !la.past.empty();
  DotSite &site = dots[name];
  site.op = op;
  site.queryOperand = swapped ? 1 : 0;
  site.queryFactor = swapped ? kb : ka;
  return ctx.mul(ctx.real(ka * kb * alpha),
                 ctx.dot(name, c, swapped ? eb : ea, swapped ? ea : eb));
}

/// sum over keys of probability * value row.
Expr Interp::attentionResult(Operation *op, Value result,
                             ArrayRef<Expr> extents, Expr c, Expr p, Expr v,
                             double factor) {
  Leaves lp = ctx.leavesOf(p), lv = ctx.leavesOf(v);
  ValueSite site;
  site.op = op;
  // Where(IsNaN(p), 0, p): a fully masked row gives 0. Exactly this form.
  if (p->is(ExprKind::Ite) && p->args[0]->isCall(Fn::IsNan) &&
      p->args[0]->args[0] == p->args[2] && ctx.isConst(p->args[1], 0)) {
    p = p->args[2];
    site.guarded = true;
  }
  auto [kp, prob] = takeFactor(p);
  if (!prob->is(ExprKind::Prob))
    return bad(op, "probabilities are changed before the product: " +
                       ctx.str(prob).substr(0, 120));
  const SoftmaxSite &softmax = softmaxes[prob->name];
  if (prob->args[softmax.axis] != c)
    return bad(op, "probabilities are not summed over their keys");
  if (!lv.probs.empty() || !lv.dots.empty())
    return bad(op, "value operand reads attention scores");
  if (lv.past.empty())
    return bad(op, lv.tokens.empty()
                       ? "value operand is neither cache nor data"
                       : "softmax over tokens whose value operand is no cached "
                         "state");
  site.softmax = prob->name.str();
  site.prob = prob;
  site.value = v;
  site.bound = c;
  site.factor = factor * kp;
  Substitution map;
  for (auto [var, arg] : llvm::zip(softmax.vars, prob->args))
    if (var->is(ExprKind::Var))
      map.push_back({var, arg});
  Expr token = ctx.subst(softmax.queryToken, map);
  Expr batch = ctx.subst(softmax.queryBatch, map);
  Expr out = dataLeaf(label(result), ElementType::Float, token, batch, extents);
  Expr scaled = ctx.mul(ctx.real(site.factor), out);
  attentions.push_back(std::move(site));
  return scaled;
}

} // namespace quire
