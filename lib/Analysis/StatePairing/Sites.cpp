// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Proves what each softmax(q . k) v over a cached state is.

#include "lib/Analysis/StatePairing/Pairing.h"
#include "dialects/ONNX/ONNXOps.h"

using namespace llvm;
using namespace mlir;

namespace quire {

/// Values of the head variables for head h, row-major, with B = 1.
Substitution Pairing::headDigits(ArrayRef<Expr> headVars, unsigned head) {
  Substitution map;
  for (Expr v : llvm::reverse(headVars)) {
    int64_t n = ctx.constInt(withOneSequence(v->extent())).value_or(1);
    map.push_back({v, ctx.num(int64_t(head % n))});
    head /= unsigned(n);
  }
  map.push_back({ctx.B(), ctx.num(1)});
  for (unsigned axis = 0; axis < 8; ++axis)
    if (Expr v = in.index(axis, in.B); v->is(ExprKind::Var))
      map.push_back({v, ctx.num(0)}); // the only sequence
  return map;
}

SmallVector<AxisRole, 4> Pairing::rolesOf(const SymbolicTensor &t, Expr token,
                                          ArrayRef<Expr> heads, Expr feature) {
  SmallVector<AxisRole, 4> out;
  for (auto [axis, d] : llvm::enumerate(t.extents)) {
    Expr v = in.index(axis, d);
    AxisRole role{AxisKind::Other,
                  ctx.constInt(withOneSequence(d)).value_or(-1)};
    bool folded = d->uses(ctx.B()) && d != in.B;
    if (v == token)
      role.kind = AxisKind::Token;
    else if (v == feature)
      role.kind = AxisKind::Feature;
    else if (llvm::is_contained(heads, v))
      role.kind = folded ? AxisKind::BatchHead : AxisKind::Head;
    else if (d == in.B || role.extent == 1)
      role.kind = AxisKind::Batch;
    out.push_back(role);
  }
  return out;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Key or value rows against the presents: the row attended must be the row
/// stored, and both parts must carry the same factor.
std::optional<Pairing::Operand> Pairing::readOperand(Expr e, Expr keyVar,
                                                     StringRef what,
                                                     AttentionSite &out) {
  Operand r;
  Expr kn = newRow();
  Expr old = ctx.subst(e, keyVar, oldRow());
  Expr fresh = ctx.subst(e, keyVar, ctx.add(in.P, kn));
  auto [factor, row] = in.takeFactor(old);
  r.factor = factor;
  if (!row->is(ExprKind::Past)) {
    fail(out, what + " operand does not read a cached row in place: " +
                  ctx.str(row).substr(0, 140));
    return std::nullopt;
  }
  for (auto [i, s] : llvm::enumerate(model.states))
    if (s.name == row->name)
      r.state = int(i);
  if (r.state < 0) {
    fail(out, "unknown state '" + row->name + "'");
    return std::nullopt;
  }
  const StateInput &input = in.states[r.state];
  r.index.assign(row->args.begin(), row->args.end());
  if (input.axis < 0 || input.axis >= int(r.index.size())) {
    fail(out, what + " operand reads state '" + row->name +
                  "', which has no axis of rows");
    return std::nullopt;
  }
  if (r.index[input.axis] != oldRow()) {
    fail(out, what + " operand reads row " + ctx.str(r.index[input.axis]) +
                  " for another key");
    return std::nullopt;
  }
  if (!presents[r.state]) {
    fail(out, "state '" + row->name + "' has no present output");
    return std::nullopt;
  }
  if (model.states[r.state].kind == StateKind::Constant)
    return r;
  const SymbolicTensor &present = *presents[r.state]->tensor;
  SmallVector<Expr, 4> at = r.index;
  at[input.axis] = ctx.add(in.P, kn);
  Expr want = ctx.mul(ctx.real(factor), in.at(present, at));
  if (fresh->isBad() || want != fresh) {
    fail(out, what + " operand: the row attended differs from the row stored "
                     "in the present of '" +
                  row->name + "': " + ctx.str(fresh).substr(0, 100) +
                  " against " + ctx.str(want).substr(0, 100));
    return std::nullopt;
  }
  return r;
}

/// Which KV head each query head reads, by value; sets the roles of the
/// state's axes.
bool Pairing::readHeads(const Operand &operand, ArrayRef<Expr> headVars,
                        unsigned heads, Expr feature, AttentionSite &out,
                        SmallVectorImpl<int> &map, StateContent content) {
  State &state = model.states[operand.state];
  const StateInput &input = in.states[operand.state];
  std::string name = "state '" + state.name + "'";
  SmallVector<AxisRole, 4> axes = state.axes;
  int featureAxis = -1;
  int64_t dim = ctx.constInt(feature->extent()).value_or(0);
  SmallVector<unsigned> headAxes;
  bool batchSeen = false;
  for (auto [axis, e] : llvm::enumerate(operand.index)) {
    if (int(axis) == input.axis)
      continue;
    Expr d = input.extents[axis];
    AxisRole &role = axes[axis];
    bool folded = d->uses(ctx.B()) && d != in.B;
    if (e->uses(feature)) {
      if (featureAxis >= 0)
        return fail(out, name + " spreads features over several axes");
      featureAxis = int(axis);
      role.kind = e == feature ? AxisKind::Feature : AxisKind::HeadFeature;
      if (role.kind == AxisKind::HeadFeature)
        headAxes.push_back(axis);
    } else if (d == in.B || (ctx.isConst(d, 1) && !batchSeen)) {
      role.kind = AxisKind::Batch;
      batchSeen = true;
    } else if (ctx.constant(e) && !folded && role.extent == 2 &&
               operand.index.size() >= 5) {
      role.kind = AxisKind::Pack;
    } else {
      role.kind = folded ? AxisKind::BatchHead : AxisKind::Head;
      batchSeen |= folded;
      headAxes.push_back(axis);
    }
  }
  if (featureAxis < 0 || dim <= 0)
    return fail(out, name + " has no axis of features");
  unsigned kvHeads = 1;
  for (unsigned axis : headAxes) {
    int64_t n = axes[axis].extent;
    if (int(axis) == featureAxis)
      n = n % dim ? 0 : n / dim;
    if (n <= 0)
      return fail(out, name + " has an axis of unknown length");
    kvHeads *= unsigned(n);
  }
  map.clear();
  for (unsigned h = 0; h < heads; ++h) {
    Substitution digits = headDigits(headVars, h);
    int64_t kv = 0;
    for (unsigned axis : headAxes) {
      Expr e = ctx.subst(operand.index[axis], digits);
      int64_t n = axes[axis].extent;
      if (int(axis) == featureAxis) {
        // kv head * dim + feature
        e = ctx.sub(e, feature);
        std::optional<int64_t> base = ctx.constInt(e);
        if (!base || *base % dim)
          return fail(out, name + " is read at feature " + ctx.str(e));
        e = ctx.num(*base / dim);
        n /= dim;
      }
      std::optional<int64_t> c = ctx.constInt(e);
      if (!c || *c < 0 || *c >= n)
        return fail(out, name + " is read at head " + ctx.str(e));
      kv = kv * n + *c;
    }
    map.push_back(int(kv));
  }
  if (axes[featureAxis].kind == AxisKind::Feature &&
      axes[featureAxis].extent != dim)
    return fail(out, name + " has other features than the operand");
  if (state.content == StateContent::Unknown) {
    state.axes = axes;
    state.content = content;
    state.kvHeads = kvHeads;
    state.dim = dim;
    for (auto [a, role] : llvm::enumerate(state.newRows.axes))
      if (role.kind != AxisKind::Token) {
        // Roles of the same axes, found by their place in the state.
        for (auto [s, r] : llvm::enumerate(state.axes))
          if (state.newRowsAxes[a] == int(s))
            role = r;
      }
  } else if (state.content != content) {
    bool packed = llvm::any_of(
        axes, [](const AxisRole &r) { return r.kind == AxisKind::Pack; });
    if (!packed)
      return fail(out, name + " is read both as keys and as values");
    state.content = StateContent::Packed;
  } else if (state.kvHeads != kvHeads || state.dim != dim) {
    return fail(out, name + " is read in two shapes");
  }
  out.kvHeads = kvHeads;
  return true;
}

//===----------------------------------------------------------------------===//
// Query and result as values of the graph
//===----------------------------------------------------------------------===//

bool Pairing::roleQuery(const DotSite &site, Expr dot, const ScoreRow &row,
                        AttentionSite &out) {
  out.scoreProduct = site.op;
  out.queryOperand = site.queryOperand;
  Value q = site.op->getOperand(site.queryOperand);
  const SymbolicTensor *t = in.find(q);
  if (!t || t->rank() < 2)
    return fail(out, "the query has no known element");
  Leaves l = ctx.leavesOf(t->element);
  Expr token = l.tokens.size() == 1 ? l.tokens.front().first : nullptr;
  if (!token)
    return fail(out, "the query is not the data of one token");
  Expr tokenVar = token->isIndex() ? token : nullptr;
  // The contraction takes the last axis, or the last but one of the right
  // operand.
  bool transposed = false;
  if (auto f = dyn_cast<onnx::MSFusedMatMulOp>(site.op))
    transposed = site.queryOperand == 0 ? f.getTransA() : f.getTransB();
  else if (auto f = dyn_cast<onnx::MSTransposeMatMulOp>(site.op))
    transposed = site.queryOperand == 0 ? f.getTransA() : f.getTransB();
  else if (auto g = dyn_cast<onnx::GemmOp>(site.op))
    transposed = site.queryOperand == 0 ? g.getTransA() : g.getTransB();
  bool last = (site.queryOperand == 0) != transposed;
  unsigned featureAxis = t->rank() - (last ? 1 : 2);
  Expr feature = in.index(featureAxis, t->extents[featureAxis]);
  SmallVector<Expr> heads;
  for (auto [axis, d] : llvm::enumerate(t->extents)) {
    Expr v = in.index(axis, d);
    if (axis == featureAxis || v == tokenVar || !v->is(ExprKind::Var))
      continue;
    std::optional<int64_t> n = ctx.constInt(withOneSequence(d));
    if (!n)
      return fail(out, "the query has an axis of length " + ctx.str(d));
    if (*n > 1)
      heads.push_back(v);
  }
  out.query.value = q;
  out.query.axes = rolesOf(*t, tokenVar, heads, feature);
  // Head h of the graph's value is head h of the score.
  Expr own = withOneSequence(t->element), inScore = dot->args[1];
  for (unsigned h = 0; h < row.heads; ++h) {
    Substitution mine = headDigits(heads, h);
    mine.push_back({feature, dot->args[0]});
    if (tokenVar && row.rowVar)
      mine.push_back({tokenVar, row.rowVar});
    Substitution theirs = headDigits(row.headVars, h);
    Expr a = ctx.subst(own, mine);
    Expr b = ctx.mul(ctx.real(site.queryFactor), ctx.subst(inScore, theirs));
    if (a != b)
      return fail(out, "head " + Twine(h) + " of the query is not head " +
                           Twine(h) + " of the score: " +
                           ctx.str(a).substr(0, 400) + " against " +
                           ctx.str(b).substr(0, 400));
  }
  return true;
}

bool Pairing::roleResult(const ValueSite &site, const SoftmaxSite &softmax,
                         const ScoreRow &row, const Operand &value,
                         AttentionSite &out, SmallVectorImpl<Expr> &headVars,
                         Expr &feature) {
  Value r = site.op->getResult(0);
  const SymbolicTensor *t = in.find(r);
  if (!t)
    return fail(out, "the result has no known element");
  out.valueProduct = site.op;
  Expr token = nullptr;
  for (auto [v, arg] : llvm::zip(softmax.vars, site.prob->args))
    if (v == row.rowVar)
      token = arg;
  if (row.rowVar && (!token || !token->isIndex()))
    return fail(out, "rows of the result are " +
                         (token ? ctx.str(token) : std::string("unknown")));
  // The remaining axes with more than one entry: heads, then one feature axis.
  feature = nullptr;
  for (auto [axis, d] : llvm::enumerate(t->extents)) {
    Expr v = in.index(axis, d);
    std::optional<int64_t> n = ctx.constInt(withOneSequence(d));
    if (!v->is(ExprKind::Var) || v == token || d == in.B)
      continue;
    if (!n)
      return fail(out, "the result has an axis of length " + ctx.str(d));
    bool ofProbability = site.prob->uses(v);
    if (ofProbability)
      headVars.push_back(v);
    else if (feature)
      return fail(out, "the result spreads features over several axes");
    else
      feature = v;
  }
  if (!feature)
    return fail(out, "the result has no axis of features");
  unsigned heads = 1;
  for (Expr v : headVars)
    heads *= unsigned(*ctx.constInt(withOneSequence(v->extent())));
  if (heads != row.heads)
    return fail(out, "the result has " + Twine(heads) + " heads, the score " +
                         Twine(row.heads));
  // Head h of the result weighs by head h of the score.
  for (unsigned h = 0; h < heads; ++h) {
    Substitution mine = headDigits(headVars, h);
    int64_t flat = 0;
    for (Expr v : row.headVars) {
      Expr arg;
      for (auto [var, a] : llvm::zip(softmax.vars, site.prob->args))
        if (var == v)
          arg = ctx.subst(a, mine);
      std::optional<int64_t> c = ctx.constInt(arg);
      if (!c)
        return fail(out, "the result weighs by head " + ctx.str(arg));
      flat = flat * *ctx.constInt(withOneSequence(v->extent())) + *c;
    }
    if (flat != int64_t(h))
      return fail(out, "head " + Twine(h) + " of the result weighs by head " +
                           Twine(flat) + " of the score");
  }
  out.result.value = r;
  out.result.axes = rolesOf(*t, token, headVars, feature);
  return true;
}

//===----------------------------------------------------------------------===//
// A site
//===----------------------------------------------------------------------===//

/// Why attention over a state is not paged that no output was proved to grow.
std::string Pairing::crossReason(const State &state) {
  std::string name = "state '" + state.name + "'";
  if (state.kind == StateKind::Constant)
    return "not implemented: cross attention: " + name +
           " is returned as it came";
  if (auto why = unpaired.find(state.name); why != unpaired.end())
    return why->second;
  for (const ModelOutput &output : model.outputs) {
    const SymbolicTensor *t = in.find(output.value.value);
    if (!t || ctx.leavesOf(t->element).bad)
      return "no output is known to be the present of " + name;
  }
  return "not implemented: cross attention: no output continues " + name;
}

bool Pairing::readScore(const ValueSite &site, const SoftmaxSite &softmax,
                        AttentionSite &out, ScoreRow &row, Expr dot) {
  Expr extent = softmax.extents[softmax.axis];
  row.element = softmax.element;
  row.keyVar = softmax.vars[softmax.axis];
  row.keyExtent = extent;
  row.oneToken = ctx.isConst(in.L, 1);
  Leaves lv = ctx.leavesOf(site.value);
  const StateInput *state = in.state(lv.past.front()->name);
  for (auto [i, s] : llvm::enumerate(in.states))
    if (&s == state) {
      StateKind kind = model.states[i].kind;
      out.valueState = unsigned(i);
      out.cross = kind == StateKind::Constant || kind == StateKind::Unused;
      out.idiom = s.growth == Growth::Scatter ? "static"
                  : s.growth == Growth::Concat ? "concat"
                  : out.cross                  ? "cross"
                                               : "";
    }
  Expr total = ctx.add(in.P, in.L);
  if (out.cross)
    row.keys = extent;
  else if (state && state->growth == Growth::Scatter && state->axis >= 0)
    row.keys = state->extents[state->axis];
  else
    row.keys = extent == ctx.add(total, ctx.num(1)) ? total : extent;
  if (!out.cross && (!state || state->growth != Growth::Scatter) &&
      row.keys != total)
    return fail(out, "key extent " + ctx.str(extent) +
                         " is not past and new rows");
  row.cross = out.cross;
  Expr token = softmax.queryToken;
  if (token->isIndex() && token->extent() == in.L)
    row.rowVar = token;
  else if (!(row.oneToken && ctx.constant(token)))
    return fail(out, "rows of the score are data of token " + ctx.str(token));
  if (row.rowVar && !llvm::is_contained(softmax.vars, row.rowVar))
    return fail(out, "rows of the score are no axis of it");
  if (!row.keyVar->is(ExprKind::Var))
    return fail(out, "a score over one key");
  row.heads = 1;
  for (Expr v : softmax.vars) {
    if (!v->is(ExprKind::Var) || v == row.rowVar || v == row.keyVar)
      continue;
    std::optional<int64_t> n = ctx.constInt(withOneSequence(v->extent()));
    if (!n)
      return fail(out, "the score has an axis of length " +
                           ctx.str(v->extent()));
    if (*n == 1)
      continue;
    row.headVars.push_back(v);
    row.heads *= unsigned(*n);
  }
  ScoreMeaning meaning = analyzeScore(ctx, row);
  if (meaning.weakestMask < 0 && meaning.weakestMask > -1e30)
    in.flag("masked keys weigh nothing: scores of a row differ by less than the " +
            std::to_string(int64_t(-meaning.weakestMask)) +
            " that they are lowered by");
  if (!meaning)
    return fail(out, meaning.failure);
  out.visible = meaning.visible;
  out.scale = meaning.scale;
  out.softcap = meaning.softcap;
  out.mask = meaning.mask;
  out.maskSize = meaning.maskSize;
  out.biasKind = meaning.biasKind;
  out.bias = meaning.biasKind == BiasKind::None ? nullptr : meaning.bias;
  out.headVar = row.headVars.size() == 1 ? row.headVars[0] : nullptr;
  out.slopes = meaning.slopes;
  out.hasSinks = meaning.hasSinks;
  out.sinks = meaning.sinks;
  out.heads = row.heads;
  out.keyDim = ctx.constInt(dot->args[0]->extent()).value_or(0);
  return true;
}

void Pairing::readSite(const ValueSite &site, AttentionSite &out) {
  const SoftmaxSite &softmax = in.softmaxes[site.softmax];
  out.softmax = softmax.op;
  out.valueProduct = site.op;
  out.node = in.label(site.op->getResult(0)).str();
  if (auto name = site.op->getLoc()->findInstanceOf<NameLoc>())
    out.node = name.getName().str();
  out.zeroWhenMasked = site.guarded;
  Leaves l = ctx.leavesOf(softmax.element);
  for (Expr d : l.dots)
    if (d != l.dots.front()) {
      fail(out, "several score products in one softmax");
      return;
    }
  Expr dot = l.dots.front();
  const DotSite &dotSite = in.dots[dot->name];
  ScoreRow row;
  if (!readScore(site, softmax, out, row, dot))
    return;
  if (out.cross) {
    fail(out, crossReason(model.states[out.valueState]));
    return;
  }
  Leaves lq = ctx.leavesOf(dot->args[1]);
  if (lq.tokens.size() != 1 || !lq.past.empty() || lq.readsScores() ||
      lq.tokens.front().first != softmax.queryToken) {
    fail(out, "the query is not the data of its row's token");
    return;
  }
  if (std::string why =
          in.notOfPosition({dot->args[1]}, lq.tokens.front().first);
      !why.empty()) {
    fail(out, "the query depends on " + why);
    return;
  }
  auto key = readOperand(dot->args[2], row.keyVar, "key", out);
  auto value = key ? readOperand(site.value, site.bound, "value", out)
                   : std::nullopt;
  if (!value)
    return;
  out.keyState = unsigned(key->state);
  out.valueState = unsigned(value->state);
  out.scale *= key->factor / dotSite.queryFactor;
  out.resultScale = site.factor * value->factor;
  SmallVector<int> keyHeads, valueHeads;
  SmallVector<Expr> resultHeads;
  Expr feature = nullptr;
  if (!readHeads(*key, row.headVars, row.heads, dot->args[0], out, keyHeads,
                 StateContent::Keys) ||
      !roleResult(site, softmax, row, *value, out, resultHeads, feature) ||
      !readHeads(*value, resultHeads, row.heads, feature, out, valueHeads,
                 StateContent::Values) ||
      !roleQuery(dotSite, dot, row, out))
    return;
  out.valueDim = ctx.constInt(feature->extent()).value_or(0);
  if (keyHeads != valueHeads) {
    fail(out, "keys and values are read at different heads");
    return;
  }
  out.kvHeadOfQueryHead = keyHeads;
  out.idiom = in.states[key->state].growth == Growth::Scatter ? "static"
                                                              : "concat";
  out.positions = "none";
  ExprContext::walk(dot->args[1], [&](Expr x) {
    if (x->is(ExprKind::Data) && in.rotations.count(x->name))
      out.positions = in.rotations[x->name];
    else if ((x->isCall(Fn::Cos) || x->isCall(Fn::Sin) ||
              x->is(ExprKind::Table) || x->is(ExprKind::Opaque)) &&
             x->uses(ctx.P()) && out.positions == "none")
      out.positions = "rotary";
  });
  if (out.mask == MaskKind::Full)
    fail(out, "every key of the call is visible: rows would depend on the "
              "chunk");
  else if (out.mask == MaskKind::Other)
    fail(out, "mask has no known kind: " + ctx.str(out.visible).substr(0, 200));
  else if (out.mask == MaskKind::Prefix)
    in.flag("prefix mask: exact only if the whole prefix arrives in one call");
}

void Pairing::readSites() {
  for (const ValueSite &site : in.attentions) {
    AttentionSite out;
    readSite(site, out);
    model.sites.push_back(std::move(out));
  }
}

} // namespace quire
