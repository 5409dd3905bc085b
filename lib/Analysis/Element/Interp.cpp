// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forward pass, its restarts, and the extents of tensors.

#include "lib/Analysis/Element/Interp.h"
#include "dialects/ONNX/ONNXDialect.h"

using namespace llvm;
using namespace mlir;

namespace quire {

/// Token-wise expressions larger than this become leaves, or residual streams
/// explode.
static constexpr unsigned largeElement = 300;

static bool isUnknown(Expr e) {
  return e->isSymbol() && e->name.starts_with("?");
}

static bool mentionsUnknown(Expr e) {
  return llvm::any_of(e->freeVars, isUnknown);
}

Interp::Interp(func::FuncOp fn, InterpOptions opts)
    : fn(fn), options(std::move(opts)) {
  position = ctx.symbol("p");
  P = ctx.P();
  if (options.oneToken)
    bindings[ctx.L()] = ctx.num(1);
  if (auto module = fn->getParentOfType<ModuleOp>())
    for (auto op : module.getOps<onnx::EntryOp>())
      if (op.getFunction() == fn.getName())
        entry = op;
  findInputRoles(*this, options);
  reset();
}

void Interp::reset() {
  auto bound = [&](Expr s) {
    auto it = bindings.find(s);
    return it == bindings.end() ? s : it->second;
  };
  B = bound(ctx.B());
  L = bound(ctx.L());
  env.clear();
  dots.clear();
  softmaxes.clear();
  attentions.clear();
  rotations.clear();
  coordinates.clear();
  flags.clear();
  maxPositions.reset();
  refusal.clear();
  pending = {};
  freshCount = 0;
  interpreted = 0;
}

bool Interp::run() {
  for (;;) {
    reset();
    bindInputs();
    bool done = !pending && succeeded(interpretBlock(fn.getBody().front()));
    if (done && !learnMaskLength(/*onlyIfUsed=*/true))
      return true;
    if (done) {
      ++restarts;
      continue;
    }
    if (++restarts > options.maxRestarts) {
      refusal = "extents do not settle";
      return false;
    }
    if (pending ? !learn() : !learnFromRefusal())
      return false;
  }
}

/// Takes a pending binding or assumption over. False if it contradicts.
bool Interp::learn() {
  if (pending.bound) {
    ctx.assumeTotalAtMost(*pending.bound);
    assumptions.push_back("P + L <= " + std::to_string(*pending.bound) + ": " +
                          pending.why);
    return true;
  }
  Expr var = pending.var, value = pending.value;
  if (value->uses(var) || value->isBad()) {
    refusal = "extents do not unify: " + ctx.str(var) + " and " +
              ctx.str(value);
    return false;
  }
  SmallVector<std::pair<Expr, Expr>> learnt{{var, value}};
  // The peers of a state have its extents; a wrong guess conflicts later.
  for (const StateInput &s : states)
    for (int axis = 0; axis < int(s.extents.size()); ++axis) {
      if (inputSymbol(s.arg.getArgNumber(), axis) != var ||
          mentionsUnknown(value))
        continue;
      for (const StateInput &peer : states) {
        Expr other = inputSymbol(peer.arg.getArgNumber(), axis);
        if (peer.extents.size() == s.extents.size() && other != var &&
            !bindings.count(other))
          learnt.push_back({other, value});
      }
    }
  for (auto &binding : bindings)
    binding.second = ctx.subst(binding.second, var, value);
  for (auto [v, e] : learnt)
    bindings[v] = e;
  return true;
}

/// Reference semantics for lengths that nothing in the graph fixes.
bool Interp::learnFromRefusal() {
  bool any = false;
  if (StringRef(refusal).contains('?'))
    for (const StateInput &s : states)
      for (int axis = 0; axis < int(s.extents.size()) && axis <= 2; ++axis) {
        Expr symbol = inputSymbol(s.arg.getArgNumber(), axis);
        if (s.axis >= 0 && axis != s.axis && s.extents[axis] == symbol) {
          bindings[symbol] = B;
          any = true;
        }
      }
  return any || learnMaskLength(/*onlyIfUsed=*/false);
}

/// A mask whose length nothing fixes covers past and new tokens.
bool Interp::learnMaskLength(bool onlyIfUsed) {
  for (auto [i, role] : llvm::enumerate(roles)) {
    auto type = dyn_cast<RankedTensorType>(fn.getArgument(i).getType());
    if (role != InputRole::AttentionMask || !type || type.getRank() != 2 ||
        !type.isDynamicDim(1))
      continue;
    Expr symbol = inputSymbol(i, 1);
    BlockArgument mask = fn.getArgument(i);
    auto mentions = [&](auto &entry) {
      const SymbolicTensor &t = *entry.second;
      return entry.first != mask &&
             (t.element->uses(symbol) ||
              llvm::any_of(t.extents, [&](Expr d) { return d->uses(symbol); }));
    };
    if (onlyIfUsed && llvm::none_of(env, mentions))
      continue;
    if (bindings.insert({symbol, ctx.add(P, L)}).second)
      return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

LogicalResult Interp::interpretBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(interpretOp(&op)))
      return failure();
  return success();
}

LogicalResult Interp::interpretOp(Operation *op) {
  ++interpreted;
  if (auto rule = dyn_cast<ElementOpInterface>(op)) {
    LogicalResult r = rule.interpretElements(*this);
    if (pending || !refusal.empty())
      return failure();
    if (failed(r))
      return refuse(op, "malformed for its rule");
  }
  setUnknown(op);
  return failure(bool(pending));
}

/// Results that no rule has given are not provable.
void Interp::setUnknown(Operation *op) {
  for (Value v : op->getResults()) {
    if (isa<NoneType>(v.getType()) || env.count(v))
      continue;
    SymbolicTensor t;
    auto type = dyn_cast<RankedTensorType>(v.getType());
    if (!type)
      continue; // a use of it refuses
    std::string name = label(v).str();
    for (auto [axis, n] : llvm::enumerate(type.getShape())) {
      if (!ShapedType::isDynamic(n)) {
        t.extents.push_back(ctx.num(n));
        continue;
      }
      Expr symbol = ctx.symbol("?" + name + "." + std::to_string(axis));
      auto it = bindings.find(symbol);
      t.extents.push_back(it == bindings.end() ? symbol : it->second);
    }
    t.element = bad(op, "no rule for this operator");
    env[v] = std::make_unique<SymbolicTensor>(std::move(t));
  }
}

const SymbolicTensor *Interp::find(Value v) const {
  auto it = env.find(v);
  return it == env.end() ? nullptr : it->second.get();
}

const SymbolicTensor *Interp::get(Value v) {
  if (const SymbolicTensor *t = find(v))
    return t;
  if (refusal.empty() && !pending)
    refusal = "value '" + label(v).str() + "' has no known extents";
  return nullptr;
}

const SymbolicTensor *Interp::getOptional(Value v) {
  if (!v || isa<NoneType>(v.getType()))
    return nullptr;
  return get(v);
}

void Interp::set(Value v, SymbolicTensor t) {
  if (isa<NoneType>(v.getType()))
    return;
  if (auto type = dyn_cast<ShapedType>(v.getType());
      type && !isRepresentable(ctx, t.element, type.getElementType())) {
    std::string text;
    llvm::raw_string_ostream(text) << type.getElementType();
    t.element = bad(v.getDefiningOp(), "positions beyond what " + text +
                                           " counts exactly");
  }
  collapse(v, t);
  env[v] = std::make_unique<SymbolicTensor>(std::move(t));
}

void Interp::collapse(Value v, SymbolicTensor &t) {
  if (t.element->size <= largeElement || t.type != ElementType::Float)
    return;
  Leaves l = ctx.leavesOf(t.element);
  if (!l.past.empty() || l.readsScores() || l.bad || l.tokens.empty())
    return;
  t.element = leaf(v.getDefiningOp(), label(v), t.extents, {t.element}, t.type);
}

LogicalResult Interp::refuse(Operation *op, const Twine &why) {
  if (refusal.empty() && !pending)
    refusal = where(op) + ": " + why.str();
  return failure();
}

static StringRef locationName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (StringRef s = locationName(part); !s.empty())
        return s;
  return {};
}

std::string Interp::where(Operation *op) const {
  StringRef name = locationName(op->getLoc());
  std::string kind = op->getName().stripDialect().str();
  if (auto custom = dyn_cast<onnx::CustomOp>(op))
    kind = (custom.getDomain().empty() ? "" : custom.getDomain() + "::").str() +
           custom.getOpType().str();
  return kind + " '" + name.str() + "'";
}

Expr Interp::bad(Operation *op, const Twine &why) {
  return ctx.bad(where(op) + ": " + why.str());
}

StringRef Interp::label(Value v) {
  auto [it, isNew] = labels.insert({v, StringRef()});
  if (!isNew)
    return it->second;
  std::string base;
  if (auto arg = dyn_cast<BlockArgument>(v)) {
    base = arg.getOwner() == &fn.getBody().front()
               ? inputName(arg.getArgNumber())
               : "arg" + std::to_string(arg.getArgNumber());
  } else {
    auto result = cast<OpResult>(v);
    base = locationName(v.getLoc()).str();
    if (base.empty())
      base = result.getOwner()->getName().stripDialect().str();
    if (result.getResultNumber())
      base += "#" + std::to_string(result.getResultNumber());
  }
  std::string name = base;
  for (unsigned n = 2; !usedLabels.insert(name).second; ++n)
    name = base + "~" + std::to_string(n);
  StringRef stable = usedLabels.find(name)->getKey();
  labels[v] = stable;
  return stable;
}

std::string Interp::inputName(unsigned i) const {
  if (entry && i < entry.getInputs().size())
    return cast<StringAttr>(entry.getInputs()[i]).str();
  return "input" + std::to_string(i);
}

std::string Interp::outputName(unsigned i) const {
  if (entry && i < entry.getOutputs().size())
    return cast<StringAttr>(entry.getOutputs()[i]).str();
  return "output" + std::to_string(i);
}

const StateInput *Interp::state(StringRef name) const {
  for (const StateInput &s : states)
    if (s.name == name)
      return &s;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// Extents
//===----------------------------------------------------------------------===//

LogicalResult Interp::unify(Operation *op, Expr a, Expr b) {
  if (a == b)
    return success();
  if (a->isBad() || b->isBad())
    return refuse(op, (a->isBad() ? a : b)->name);
  auto learnt = [&](Expr var, Expr value) {
    if (!pending && refusal.empty()) {
      pending.var = var;
      pending.value = value;
    }
    return failure();
  };
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)})
    if (isUnknown(x) && !y->uses(x))
      return learnt(x, y);
  for (Expr x : {a, b})
    if (x->isCall(Fn::IntMin))
      for (unsigned i : {0u, 1u})
        if (isUnknown(x->args[i]))
          return learnt(x->args[i], x->args[1 - i]);
  Expr d = ctx.sub(a, b);
  for (const Term &t : ctx.termsOf(d)) {
    if (t.mono->atoms.size() != 1 || !isUnknown(t.mono->atoms[0]) ||
        t.coef.isFloat || std::abs(t.coef.i) != 1)
      continue;
    Expr v = t.mono->atoms[0];
    Expr rest = ctx.sub(d, ctx.mul(ctx.num(t.coef.i), v));
    if (!rest->uses(v))
      return learnt(v, ctx.mul(ctx.num(-t.coef.i), rest));
  }
  return refuse(op, "extents " + ctx.str(a) + " and " + ctx.str(b) + " differ");
}

std::optional<SmallVector<Expr, 4>>
Interp::broadcast(Operation *op, ArrayRef<const SymbolicTensor *> ts) {
  unsigned rank = 0;
  for (const SymbolicTensor *t : ts)
    rank = std::max(rank, t->rank());
  SmallVector<Expr, 4> out(rank, ctx.num(1));
  for (const SymbolicTensor *t : ts)
    for (auto [a, d] : llvm::enumerate(t->extents)) {
      Expr &o = out[a + rank - t->rank()];
      if (ctx.isConst(d, 1))
        continue;
      if (ctx.isConst(o, 1))
        o = d;
      else if (failed(unify(op, o, d)))
        return std::nullopt;
    }
  return out;
}

Expr Interp::atBroadcast(const SymbolicTensor &t, ArrayRef<Expr> extents) {
  unsigned off = extents.size() - t.rank();
  SmallVector<Expr, 4> idx;
  for (auto [a, d] : llvm::enumerate(t.extents))
    idx.push_back(ctx.isConst(d, 1) ? ctx.num(0)
                                    : index(a + off, extents[a + off]));
  return at(t, idx);
}

Expr Interp::fresh(Expr extent) {
  if (ctx.isConst(extent, 1))
    return ctx.num(0);
  return ctx.index("c" + std::to_string(++freshCount), extent);
}

std::optional<SmallVector<Expr, 4>> Interp::elements(Operation *op, Value v) {
  const SymbolicTensor *t = get(v);
  if (!t)
    return std::nullopt;
  SmallVector<Expr, 4> out;
  if (t->rank() == 1) {
    std::optional<int64_t> n = ctx.constInt(t->extents[0]);
    if (n && *n >= 0 && *n <= 4096) {
      for (int64_t k = 0; k < *n; ++k)
        out.push_back(at(*t, {ctx.num(k)}));
    } else {
      (void)refuse(op, "vector of unknown length " + ctx.str(t->extents[0]));
      return std::nullopt;
    }
  } else if (ctx.isConst(productOf(t->extents), 1)) {
    out.push_back(t->element);
  } else {
    (void)refuse(op, "vector of unknown length");
    return std::nullopt;
  }
  for (Expr e : out)
    if (e->isBad()) {
      (void)refuse(op, e->name);
      return std::nullopt;
    }
  return out;
}

std::optional<SmallVector<int64_t, 4>> Interp::integers(Operation *op,
                                                        Value v) {
  auto xs = elements(op, v);
  if (!xs)
    return std::nullopt;
  SmallVector<int64_t, 4> out;
  for (Expr x : *xs) {
    std::optional<int64_t> c = ctx.constInt(x);
    if (!c) {
      (void)refuse(op, "expected a constant, but got " + ctx.str(x));
      return std::nullopt;
    }
    out.push_back(*c);
  }
  return out;
}

SymbolicTensor Interp::vector(ArrayRef<Expr> xs) {
  SymbolicTensor t;
  t.type = ElementType::Int;
  t.extents = {ctx.num(int64_t(xs.size()))};
  t.element = xs.empty() ? ctx.num(0) : xs.back();
  Expr v = index(0, t.extents[0]);
  for (int64_t k = int64_t(xs.size()) - 2; k >= 0; --k)
    t.element = ctx.ite(ctx.le(v, ctx.num(k)), xs[k], t.element);
  return t;
}

void Interp::assume(int64_t n, StringRef why) {
  if (pending || !refusal.empty())
    return;
  pending.bound = n;
  pending.why = why.str();
}

} // namespace quire

#include "lib/Analysis/Element/ElementOpInterface.cpp.inc"
