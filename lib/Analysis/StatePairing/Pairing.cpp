// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs states with their presents, and reads what the outputs are.

#include "lib/Analysis/StatePairing/Pairing.h"
#include "dialects/ONNX/ONNXOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace llvm;
using namespace mlir;

namespace quire {

void Pairing::reason(const Twine &why) {
  std::string text = why.str();
  if (!llvm::is_contained(model.reasons, text))
    model.reasons.push_back(std::move(text));
}

/// What is wrong in one place of the graph reaches every output behind it; it is one reason.
void Pairing::reasonOfOutput(const std::string &output, StringRef why) {
  OutputReason &known = outputReasons[why];
  if (known.count++ == 0) {
    known.first = output;
    known.at = model.reasons.size();
    model.reasons.emplace_back();
  }
  std::string others =
      known.count > 1 ? " (and " + std::to_string(known.count - 1) + " more)"
                      : "";
  model.reasons[known.at] = (Twine(known.first) + others + ": " + why).str();
}

bool Pairing::fail(AttentionSite &site, const Twine &why) {
  if (site.reason.empty())
    site.reason = why.str();
  return false;
}

Expr Pairing::withOneSequence(Expr e) {
  return ctx.subst(e, ctx.B(), ctx.num(1));
}

void Pairing::run() {
  model.inputRoles = in.roles;
  listStates();
  pairOutputs();
  readSites();
  readOutputs();
  finish();
}

//===----------------------------------------------------------------------===//
// States
//===----------------------------------------------------------------------===//

void Pairing::listStates() {
  for (const StateInput &s : in.states) {
    State state;
    state.input = s.arg;
    state.name = s.name;
    for (auto [axis, d] : llvm::enumerate(s.extents)) {
      std::optional<int64_t> n = ctx.constInt(withOneSequence(d));
      AxisRole role{AxisKind::Other, n.value_or(-1)};
      if (int(axis) == s.axis)
        role.kind = AxisKind::Key;
      else if (d == in.B)
        role.kind = AxisKind::Batch;
      state.axes.push_back(role);
    }
    if (s.growth == Growth::Scatter && s.axis >= 0 &&
        s.axis < int(s.extents.size()))
      state.bufferRows = ctx.constInt(s.extents[s.axis]).value_or(0);
    model.states.push_back(std::move(state));
  }
  presents.resize(model.states.size());
}

/// Instances of an element with small constant leading axes made concrete.
static SmallVector<std::pair<Expr, SmallVector<Expr, 4>>>
instances(ExprContext &ctx, Expr e, ArrayRef<Expr> index) {
  SmallVector<std::pair<Expr, SmallVector<Expr, 4>>> all{
      {e, SmallVector<Expr, 4>(index)}};
  for (size_t q = 0; q + 3 < index.size(); ++q) {
    Expr v = index[q];
    std::optional<int64_t> n =
        v->isIndex() ? ctx.constInt(v->extent()) : std::nullopt;
    if (!n || *n > 64 || !e->uses(v))
      continue;
    SmallVector<std::pair<Expr, SmallVector<Expr, 4>>> next;
    for (auto &[x, idx] : all)
      for (int64_t c = 0; c < *n; ++c) {
        SmallVector<Expr, 4> at = idx;
        at[q] = ctx.num(c);
        next.push_back({ctx.subst(x, v, ctx.num(c)), at});
      }
    all = std::move(next);
  }
  return all;
}

void Pairing::pairOutputs() {
  auto ret = in.function().getBody().front().getTerminator();
  model.outputs.resize(ret->getNumOperands());
  for (auto [i, v] : llvm::enumerate(ret->getOperands())) {
    ModelOutput &out = model.outputs[i];
    out.value.value = v;
    const SymbolicTensor *t = in.find(v);
    if (!t) {
      reason("output '" + in.outputName(i) + "' has no known element");
      continue;
    }
    Leaves l = ctx.leavesOf(t->element);
    if (!l.past.empty())
      pairPresent(i, v, *t, l);
  }
}

void Pairing::pairPresent(unsigned output, Value v, const SymbolicTensor &t,
                          const Leaves &l) {
  std::string name = "output '" + in.outputName(output) + "'";
  StringRef stateName;
  for (Expr x : l.past) {
    if (!stateName.empty() && stateName != x->name) {
      std::string why = (name + " mixes states '" + stateName + "' and '" +
                         x->name + "'")
                            .str();
      unpaired[stateName] = unpaired[x->name] = why;
      return reason(why);
    }
    stateName = x->name;
  }
  unsigned index = 0;
  while (index < model.states.size() && model.states[index].name != stateName)
    ++index;
  if (index == model.states.size())
    return reason(name + " reads an unknown state '" + stateName + "'");
  if (model.states[index].outputIndex >= 0)
    return reason("state '" + stateName + "' is returned twice");
  StateKind kind = StateKind::Unused;
  if (std::string why = presentKind(index, name, t, kind); !why.empty()) {
    unpaired[stateName] = why;
    return reason(why);
  }
  State &state = model.states[index];
  ModelOutput &out = model.outputs[output];
  state.kind = kind;
  state.outputIndex = int(output);
  out.kind = OutputKind::Present;
  out.state = int(index);
  presents[index] = PresentRows{index, output, &t};
  if (kind != StateKind::Constant)
    locateNewRows(index);
}

/// What `t` makes of a state; if that is no present of it, why.
std::string Pairing::presentKind(unsigned index, const std::string &name,
                                 const SymbolicTensor &t, StateKind &kind) {
  const StateInput &input = in.states[index];
  SmallVector<Expr, 4> idx = in.generic(t.extents);
  auto isSame = [&](Expr e, ArrayRef<Expr> at) {
    return e->is(ExprKind::Past) && e->args == at;
  };
  kind = StateKind::Constant;
  if (isSame(t.element, idx))
    return {};
  if (input.axis < 0 || t.rank() != input.extents.size())
    return name + " of state '" + input.name + "': no append along one axis";
  unsigned axis = unsigned(input.axis);
  Expr key = idx[axis];
  if (!key->is(ExprKind::Var))
    return name + ": a state of length 1";
  SmallVector<Expr, 4> oldIndex = idx;
  oldIndex[axis] = oldRow();
  for (auto &[e, at] :
       instances(ctx, ctx.subst(t.element, key, oldRow()), oldIndex))
    if (!isSame(e, at))
      return name + ": cached rows are not kept in place: " +
             ctx.str(e).substr(0, 140);
  if (input.growth == Growth::Concat && t.extents[axis] != ctx.add(in.P, in.L))
    return name + ": length " + ctx.str(t.extents[axis]) +
           " is not past and new rows";
  if (input.growth == Growth::Scatter &&
      t.extents[axis] != input.extents[axis])
    return name + ": the buffer changes its length";
  if (std::string why = newRowsReason(t, axis); !why.empty())
    return name + ": " + why;
  kind = input.growth == Growth::Scatter ? StateKind::Static : StateKind::Grow;
  return {};
}

std::string Pairing::newRowsReason(const SymbolicTensor &present,
                                   unsigned axis) {
  SmallVector<Expr, 4> idx = in.generic(present.extents);
  Expr kn = newRow();
  Expr rows = ctx.subst(present.element, idx[axis], ctx.add(in.P, kn));
  idx[axis] = ctx.add(in.P, kn);
  for (auto &[e, at] : instances(ctx, rows, idx)) {
    Leaves l = ctx.leavesOf(e);
    if (l.bad)
      return l.bad->name.str();
    if (!l.past.empty() || l.readsScores())
      return "new rows read the cache";
    for (auto [token, batch] : l.tokens)
      if (token != kn)
        return "a new row is data of token " + ctx.str(token);
    if (l.tokens.empty())
      return "new rows hold no data of a token";
    if (std::string why = in.notOfPosition({e}, kn); !why.empty())
      return "new rows depend on " + why;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// New rows as a value of the graph
//===----------------------------------------------------------------------===//

/// The value that an If yields on the branch that is taken.
static Value throughIf(Interp &in, Value v) {
  while (auto branch = v.getDefiningOp<onnx::IfOp>()) {
    const SymbolicTensor *c = in.find(branch.getCond());
    if (!c)
      return nullptr;
    Expr e = in.ctx.asBool(c->element);
    if (!e->is(ExprKind::Bool))
      return nullptr;
    Region &taken = e->payload ? branch.getThenBranch() : branch.getElseBranch();
    v = taken.front().getTerminator()->getOperand(
        cast<OpResult>(v).getResultNumber());
  }
  return v;
}

/// `rows` are what the present of `state` has after its cached rows, index by
/// index; `axes` gives the state's axis for each of theirs. Fills newRows.
bool Pairing::appends(Value rows, ArrayRef<int> axes, State &state) {
  state.newRows.value = rows;
  const SymbolicTensor *t = in.find(rows);
  if (!t || t->rank() != axes.size())
    return false;
  // The same element, index by index.
  SmallVector<Expr, 4> at;
  Expr kn = newRow();
  const SymbolicTensor &present = *presents[&state - &model.states[0]]->tensor;
  SmallVector<Expr, 4> idx = in.generic(present.extents);
  for (auto [a, s] : llvm::enumerate(axes)) {
    if (s < 0)
      return false;
    bool key = state.axes[s].kind == AxisKind::Key;
    if (key ? model.extentKind(t->extents[a]) != ExtentKind::Length &&
                  !ctx.isConst(in.L, 1)
            : t->extents[a] != present.extents[s])
      return false;
    at.push_back(key ? kn : idx[s]);
    AxisRole role = state.axes[s];
    if (key)
      role = {AxisKind::Token, -1};
    state.newRows.axes.push_back(role);
    state.newRowsAxes.push_back(s);
  }
  Expr want = present.element;
  for (auto [s, role] : llvm::enumerate(state.axes))
    if (role.kind == AxisKind::Key)
      want = ctx.subst(want, idx[s], ctx.add(in.P, kn));
  return in.at(*t, at) == want;
}

/// Walks back from a present to the rows that are appended; axes[a] is the
/// state's axis that axis a of the value is.
bool Pairing::findAppended(Value v, SmallVector<int> axes, State &state) {
  auto keyAxis = [&](ArrayRef<int> map) {
    for (auto [a, s] : llvm::enumerate(map))
      if (s >= 0 && state.axes[s].kind == AxisKind::Key)
        return int(a);
    return -1;
  };
  for (unsigned steps = 0; steps < 16; ++steps) {
    v = throughIf(in, v);
    if (!v)
      return false;
    Operation *op = v.getDefiningOp();
    Value rows;
    if (!op)
      return false;
    // A cast to the type that the value has already is an identity.
    auto sameType = [](Operation *cast) {
      return getElementTypeOrSelf(cast->getResult(0)) ==
             getElementTypeOrSelf(cast->getOperand(0));
    };
    if (isa<onnx::IdentityOp>(op) || (isa<onnx::CastOp>(op) && sameType(op))) {
      v = op->getOperand(0);
      continue;
    }
    if (auto t = dyn_cast<onnx::TransposeOp>(op)) {
      SmallVector<int> source(axes.size(), -1);
      for (size_t a = 0; a < axes.size(); ++a) {
        int64_t from = t.getPerm() ? (*t.getPerm())[a]
                                   : int64_t(axes.size() - 1 - a);
        source[from] = axes[a];
      }
      axes = source;
      v = t.getData();
      continue;
    }
    if (auto concat = dyn_cast<onnx::ConcatOp>(op)) {
      int64_t a = concat.getAxis();
      a = a < 0 ? a + int64_t(axes.size()) : a;
      if (concat.getInputs().size() == 1) {
        v = concat.getInputs()[0];
        continue;
      }
      if (concat.getInputs().size() != 2 || a != keyAxis(axes))
        return false;
      rows = concat.getInputs()[1];
    } else if (auto s = dyn_cast<onnx::TensorScatterOp>(op)) {
      rows = s.getUpdate();
    } else if (auto s = dyn_cast<onnx::ScatterElementsOp>(op)) {
      rows = s.getUpdates();
    } else if (auto s = dyn_cast<onnx::ScatterNDOp>(op)) {
      rows = s.getUpdates();
    } else {
      return false;
    }
    return appends(rows, axes, state);
  }
  return false;
}

void Pairing::locateNewRows(unsigned index) {
  State &state = model.states[index];
  SmallVector<int> axes;
  for (size_t a = 0; a < state.axes.size(); ++a)
    axes.push_back(int(a));
  Value v = model.outputs[state.outputIndex].value.value;
  if (!findAppended(v, axes, state)) {
    state.newRows = {};
    state.newRowsAxes.clear();
  }
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

void Pairing::readOutputs() {
  for (auto [i, out] : llvm::enumerate(model.outputs)) {
    if (out.kind == OutputKind::Present)
      continue;
    const SymbolicTensor *t = in.find(out.value.value);
    if (!t)
      continue;
    std::string name = "output '" + in.outputName(i) + "'";
    Leaves l = ctx.leavesOf(t->element);
    if (l.bad) {
      reasonOfOutput(name, l.bad->name);
      continue;
    }
    if (!l.past.empty())
      continue; // its reason stands
    if (l.readsScores()) {
      reason(name + " holds attention scores");
      continue;
    }
    SmallVector<Expr> tokens;
    for (auto [token, batch] : l.tokens)
      if (!llvm::is_contained(tokens, token))
        tokens.push_back(token);
    if (tokens.empty()) {
      out.kind = OutputKind::NoData;
      continue;
    }
    std::string why;
    bool last = tokens.size() == 1 &&
                tokens[0] == ctx.sub(in.L, ctx.num(1)) &&
                !ctx.isConst(in.L, 1);
    if (last) {
      out.kind = OutputKind::LastToken;
      why = in.notOfPosition({t->element}, tokens[0]);
      if (!why.empty())
        why = "depends on " + why;
    } else {
      out.kind = OutputKind::TokenWise;
      (void)model.isTokenWise(out.value.value, &why);
    }
    if (!why.empty())
      reasonOfOutput(name, why);
    int token = last ? -1 : model.tokenAxis(out.value.value);
    for (auto [axis, d] : llvm::enumerate(t->extents)) {
      AxisRole role;
      std::optional<int64_t> n = ctx.constInt(withOneSequence(d));
      role.extent = n.value_or(-1);
      role.kind = int(axis) == token ? AxisKind::Token
                  : d == in.B || (axis == 0 && n == std::optional<int64_t>(1))
                      ? AxisKind::Batch
                  : axis + 1 == t->extents.size() ? AxisKind::Feature
                                                  : AxisKind::Other;
      out.value.axes.push_back(role);
    }
  }
}

void Pairing::finish() {
  bool any = false;
  SmallVector<bool> read(model.states.size(), false);
  for (AttentionSite &site : model.sites) {
    if (!site.reason.empty()) {
      if (!llvm::is_contained(model.reasons, site.reason))
        reason("node '" + site.node + "': " + site.reason);
      continue;
    }
    any |= !site.cross;
    read[site.keyState] = read[site.valueState] = true;
  }
  if (!any && model.reasons.empty())
    reason("no attention with a cached state");
  if (model.reasons.empty())
    for (auto [i, s] : llvm::enumerate(model.states)) {
      bool grows = s.kind == StateKind::Grow || s.kind == StateKind::Static;
      if (grows && !read[i])
        reason("state '" + s.name + "' grows but no attention reads it");
    }
  for (auto &flag : in.flags)
    model.flags.push_back(flag.getKey().str());
  llvm::sort(model.flags);
  model.assumptions = in.assumptions;
  int64_t most = in.maxPositions.value_or(INT64_MAX);
  if (std::optional<int64_t> n = ctx.totalBound())
    most = std::min(most, *n);
  for (const State &s : model.states)
    if (s.kind == StateKind::Static && s.bufferRows)
      most = std::min(most, s.bufferRows);
  model.maxPositions = most == INT64_MAX ? 0 : most;
  model.restarts = in.restarts;
}

} // namespace quire
