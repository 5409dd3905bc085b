// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Uniquing, polynomials, leaves and the constants of symbolic elements.

#include "lib/Analysis/Element/Expr.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace quire {

static constexpr int64_t exactDouble = int64_t(1) << 53;
static constexpr unsigned maxDepth = 3000;

Coef Coef::ofDouble(double v) {
  if (std::isfinite(v) && std::abs(v) < double(exactDouble) &&
      v == std::floor(v))
    return ofInt(int64_t(v));
  return {true, 0, v};
}

/// a += b; false if an integer overflows.
static bool accumulate(Coef &a, const Coef &b) {
  if (!a.isFloat && !b.isFloat)
    return !AddOverflow(a.i, b.i, a.i);
  a = Coef::ofDouble(a.asDouble() + b.asDouble());
  return true;
}

static bool multiply(Coef &out, const Coef &a, const Coef &b) {
  if (!a.isFloat && !b.isFloat) {
    out = Coef::ofInt(0);
    return !MulOverflow(a.i, b.i, out.i);
  }
  out = Coef::ofDouble(a.asDouble() * b.asDouble());
  return true;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

void Monomial::Profile(FoldingSetNodeID &key) const {
  for (Expr atom : atoms)
    key.AddPointer(atom);
}

void ExprNode::Profile(FoldingSetNodeID &key) const {
  key.AddInteger(unsigned(kind) | unsigned(fn) << 8 | unsigned(type) << 16);
  key.AddInteger(payload);
  key.AddPointer(name.data());
  key.AddInteger(args.size());
  for (Expr arg : args)
    key.AddPointer(arg);
  for (const Term &term : terms) {
    key.AddPointer(term.mono);
    key.AddBoolean(term.coef.isFloat);
    key.AddInteger(term.coef.isFloat ? bit_cast<uint64_t>(term.coef.d)
                                     : uint64_t(term.coef.i));
  }
}

bool ExprNode::isLogic() const {
  switch (kind) {
  case ExprKind::Bool:
  case ExprKind::Ge0:
  case ExprKind::And:
  case ExprKind::Or:
  case ExprKind::Not:
    return true;
  case ExprKind::Call:
    return fn == Fn::ToBool || fn == Fn::Equal || fn == Fn::Greater ||
           fn == Fn::GreaterEqual || fn == Fn::IsNan || fn == Fn::IsInf;
  default:
    return false;
  }
}

bool ExprNode::uses(Expr var) const {
  return std::binary_search(freeVars.begin(), freeVars.end(), var,
                            [](Expr a, Expr b) { return a->id < b->id; });
}

std::optional<Coef> ConstantTable::at(ArrayRef<int64_t> index) const {
  if (index.size() != shape.size())
    return std::nullopt;
  int64_t flat = 0;
  for (auto [i, n] : llvm::zip(index, shape)) {
    if (i < 0 || i >= n)
      return std::nullopt;
    flat = flat * n + i;
  }
  if (size_t(flat) >= size())
    return std::nullopt;
  return this->flat(flat);
}

ExprContext::ExprContext() {
  unitMono = monomial({});
  auto leaf = [&](ExprKind kind, uint64_t payload) {
    ExprNode proto;
    proto.kind = kind;
    proto.payload = payload;
    return make(proto);
  };
  trueExpr = leaf(ExprKind::Bool, 1);
  falseExpr = leaf(ExprKind::Bool, 0);
  infExpr = leaf(ExprKind::Special, 0);
  negInfExpr = leaf(ExprKind::Special, 1);
  nanExpr = leaf(ExprKind::Special, 2);
  batchSym = symbol("B", 1);
  lengthSym = symbol("L", 1);
  pastSym = symbol("P", 0);
}

ExprContext::~ExprContext() = default;

StringRef ExprContext::intern(StringRef s) {
  if (s.empty())
    return {};
  return strings.insert({s, 0}).first->getKey();
}

const Monomial *ExprContext::monomial(ArrayRef<Expr> atoms) {
  Monomial proto;
  proto.atoms = atoms;
  FoldingSetNodeID key;
  proto.Profile(key);
  void *where;
  if (Monomial *found = monomials.FindNodeOrInsertPos(key, where))
    return found;
  auto *mono = new (arena.Allocate<Monomial>()) Monomial();
  mono->id = nextMono++;
  mono->atoms = atoms.copy(arena);
  monomials.InsertNode(mono, where);
  return mono;
}

static bool isIntegerNode(const ExprNode &n) {
  switch (n.kind) {
  case ExprKind::Poly:
    return llvm::all_of(n.terms, [](const Term &t) {
      return !t.coef.isFloat &&
             llvm::all_of(t.mono->atoms, [](Expr a) { return a->integer; });
    });
  case ExprKind::Var:
  case ExprKind::NonZero:
    return true;
  case ExprKind::Ite:
    return n.args[1]->integer && n.args[2]->integer;
  case ExprKind::Call:
    switch (n.fn) {
    case Fn::Div:
    case Fn::Mod:
    case Fn::AnyDiv:
    case Fn::AnyMod:
    case Fn::IntMin:
    case Fn::IntMax:
    case Fn::Trunc:
      return true;
    default:
      return n.type == ElementType::Int;
    }
  case ExprKind::Table:
  case ExprKind::Data:
  case ExprKind::Opaque:
    return n.type == ElementType::Int;
  default:
    return false;
  }
}

Expr ExprContext::make(ExprNode proto) {
  FoldingSetNodeID key;
  proto.Profile(key);
  void *where;
  if (ExprNode *found = nodes.FindNodeOrInsertPos(key, where))
    return found;

  auto *node = new (arena.Allocate<ExprNode>()) ExprNode(proto);
  node->id = nextId++;
  node->args = proto.args.copy(arena);
  node->terms = proto.terms.copy(arena);
  node->integer = isIntegerNode(*node);

  SmallVector<Expr> vars;
  uint64_t size = 1;
  unsigned depth = 0;
  auto visit = [&](Expr x) {
    size += x->size;
    depth = std::max<unsigned>(depth, x->depth);
    llvm::append_range(vars, x->freeVars);
  };
  if (node->kind == ExprKind::Var) {
    vars.push_back(node);
  } else {
    for (Expr x : node->args)
      visit(x);
    for (const Term &t : node->terms)
      for (Expr x : t.mono->atoms)
        visit(x);
  }
  node->size = uint32_t(std::min<uint64_t>(size, 1u << 24));
  node->depth = uint16_t(depth + 1);
  llvm::sort(vars, [](Expr a, Expr b) { return a->id < b->id; });
  vars.erase(llvm::unique(vars), vars.end());
  if (node->kind == ExprKind::Dot)
    llvm::erase(vars, node->args[0]);
  node->freeVars = ArrayRef<Expr>(vars).copy(arena);
  nodes.InsertNode(node, where);
  if (depth > maxDepth)
    return bad("expression is nested too deeply");
  return node;
}

Expr ExprContext::firstBad(ArrayRef<Expr> xs) const {
  for (Expr x : xs)
    if (x->isBad())
      return x;
  return nullptr;
}

/// Every constructor of composite nodes ends here: bottom absorbs.
Expr ExprContext::makeArgs(ExprKind kind, ArrayRef<Expr> args, StringRef name,
                           ElementType type, uint64_t payload) {
  if (Expr b = firstBad(args))
    return b;
  ExprNode proto;
  proto.kind = kind;
  proto.args = args;
  proto.name = intern(name);
  proto.type = type;
  proto.payload = payload;
  return make(proto);
}

//===----------------------------------------------------------------------===//
// Constants and variables
//===----------------------------------------------------------------------===//

Expr ExprContext::fromTerms(ArrayRef<Term> in) {
  SmallVector<Term, 8> terms;
  for (const Term &t : in) {
    Coef c = t.coef.isFloat ? Coef::ofDouble(t.coef.d) : t.coef;
    if (c.isFloat && !std::isfinite(c.d))
      return bad("coefficient is not finite");
    if (!c.isZero())
      terms.push_back({t.mono, c});
  }
  if (terms.size() == 1 && terms[0].coef.isOne() &&
      terms[0].mono->atoms.size() == 1)
    return terms[0].mono->atoms[0];
  llvm::sort(terms, [](const Term &a, const Term &b) {
    return std::lexicographical_compare(
        a.mono->atoms.begin(), a.mono->atoms.end(), b.mono->atoms.begin(),
        b.mono->atoms.end(), [](Expr x, Expr y) { return x->id < y->id; });
  });
  ExprNode proto;
  proto.kind = ExprKind::Poly;
  proto.terms = terms;
  return make(proto);
}

Expr ExprContext::num(int64_t v) {
  return fromTerms({Term{unitMono, Coef::ofInt(v)}});
}

Expr ExprContext::real(double v) {
  if (std::isnan(v))
    return nanExpr;
  if (std::isinf(v))
    return v > 0 ? infExpr : negInfExpr;
  return fromTerms({Term{unitMono, Coef::ofDouble(v)}});
}

Expr ExprContext::index(StringRef name, Expr extent) {
  return makeArgs(ExprKind::Var, {extent}, name);
}

Expr ExprContext::symbol(StringRef name, unsigned atLeast) {
  return makeArgs(ExprKind::Var, {}, name, ElementType::Int, atLeast);
}

std::optional<Coef> ExprContext::constant(Expr e) const {
  switch (e->kind) {
  case ExprKind::Poly:
    if (e->terms.empty())
      return Coef::ofInt(0);
    if (e->terms.size() == 1 && e->terms[0].mono == unitMono)
      return e->terms[0].coef;
    return std::nullopt;
  case ExprKind::Bool:
    return Coef::ofInt(int64_t(e->payload));
  case ExprKind::Special:
    return Coef{true, 0,
                e->payload == 0   ? INFINITY
                : e->payload == 1 ? -INFINITY
                                  : NAN};
  default:
    return std::nullopt;
  }
}

std::optional<int64_t> ExprContext::constInt(Expr e) const {
  if (std::optional<Coef> c = constant(e); c && !c->isFloat)
    return c->i;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Polynomials
//===----------------------------------------------------------------------===//

SmallVector<Term> ExprContext::termsOf(Expr e) {
  if (e->is(ExprKind::Poly))
    return SmallVector<Term>(e->terms);
  return {Term{monomial({e}), Coef::ofInt(1)}};
}

Coef ExprContext::coefficient(Expr e, Expr x) {
  for (const Term &t : termsOf(e))
    if (t.mono->atoms.size() == 1 && t.mono->atoms[0] == x)
      return t.coef;
  return Coef::ofInt(0);
}

Coef ExprContext::constantTerm(Expr e) {
  for (const Term &t : termsOf(e))
    if (t.mono == unitMono)
      return t.coef;
  return Coef::ofInt(0);
}

Expr ExprContext::add(ArrayRef<Expr> xs) {
  if (Expr b = firstBad(xs))
    return b;
  SmallVector<Expr, 4> nums;
  for (Expr x : xs)
    nums.push_back(asNum(x));
  if (Expr b = firstBad(nums))
    return b;
  Expr special = nullptr;
  SmallVector<Term, 8> sum;
  DenseMap<const Monomial *, unsigned> slot;
  for (Expr x : nums) {
    if (x->is(ExprKind::Special)) {
      special = !special || special == x ? x : nanExpr;
      continue;
    }
    for (const Term &t : termsOf(x)) {
      auto [it, isNew] = slot.insert({t.mono, sum.size()});
      if (isNew)
        sum.push_back(t);
      else if (!accumulate(sum[it->second].coef, t.coef))
        return bad("integer overflow in a sum");
    }
  }
  // Every other atom is finite: one sequence, no overflow, finite tables.
  return special ? special : fromTerms(sum);
}

Expr ExprContext::mul(Expr a, Expr b) {
  if (Expr x = firstBad({a, b}))
    return x;
  a = asNum(a);
  b = asNum(b);
  if (Expr x = firstBad({a, b}))
    return x;
  for (auto [x, y] : {std::pair(a, b), std::pair(b, a)}) {
    if (!x->is(ExprKind::Special))
      continue;
    std::optional<Coef> c = constant(y);
    if (!c)
      return call(Fn::InfTimes, {x, y});
    return real(constant(x)->d * c->asDouble());
  }
  SmallVector<Term, 8> sum;
  DenseMap<const Monomial *, unsigned> slot;
  SmallVector<Expr> atoms;
  for (const Term &s : termsOf(a)) {
    for (const Term &t : termsOf(b)) {
      atoms.assign(s.mono->atoms.begin(), s.mono->atoms.end());
      llvm::append_range(atoms, t.mono->atoms);
      llvm::sort(atoms, [](Expr x, Expr y) { return x->id < y->id; });
      Coef c;
      if (!multiply(c, s.coef, t.coef))
        return bad("integer overflow in a product");
      const Monomial *m = monomial(atoms);
      auto [it, isNew] = slot.insert({m, sum.size()});
      if (isNew)
        sum.push_back({m, c});
      else if (!accumulate(sum[it->second].coef, c))
        return bad("integer overflow in a product");
    }
    if (sum.size() > 4096)
      return bad("polynomial is too large");
  }
  return fromTerms(sum);
}

Expr ExprContext::product(ArrayRef<Expr> xs) {
  Expr r = num(1);
  for (Expr x : xs)
    r = mul(r, x);
  return r;
}

Expr ExprContext::replaceAtom(Expr e, Expr atom, Expr by) {
  SmallVector<Expr, 8> sum;
  for (const Term &t : termsOf(e)) {
    Expr p = fromTerms({Term{unitMono, t.coef}});
    for (Expr x : t.mono->atoms)
      p = mul(p, x == atom ? by : x);
    sum.push_back(p);
  }
  return add(sum);
}

//===----------------------------------------------------------------------===//
// Leaves
//===----------------------------------------------------------------------===//

void ExprContext::addTable(StringRef name, ConstantTable table) {
  tables[name] = std::move(table);
}

const ConstantTable *ExprContext::findTable(StringRef name) const {
  auto it = tables.find(name);
  return it == tables.end() ? nullptr : &it->second;
}

Expr ExprContext::table(StringRef name, ElementType type, ArrayRef<Expr> idx) {
  if (Expr b = firstBad(idx))
    return b;
  if (const ConstantTable *t = findTable(name)) {
    SmallVector<int64_t> at;
    for (Expr x : idx)
      if (std::optional<int64_t> c = constInt(x))
        at.push_back(*c);
    if (at.size() == idx.size()) {
      if (std::optional<Coef> v = t->at(at))
        return type == ElementType::Bool ? boolean(!v->isZero()) : num(*v);
      // Outside: only in a branch that is not taken. Stays a leaf.
    }
  }
  return makeArgs(ExprKind::Table, idx, name, type);
}

Expr ExprContext::data(StringRef name, ElementType type, Expr token,
                       Expr batch, ArrayRef<Expr> address, uint64_t carriers) {
  SmallVector<Expr, 6> args{token, batch};
  llvm::append_range(args, address);
  return makeArgs(ExprKind::Data, args, name, type, carriers);
}

Expr ExprContext::opaque(StringRef name, ElementType type,
                         ArrayRef<Expr> args) {
  return makeArgs(ExprKind::Opaque, args, name, type);
}

Expr ExprContext::past(StringRef state, ArrayRef<Expr> idx) {
  return makeArgs(ExprKind::Past, idx, state);
}

Expr ExprContext::dot(StringRef name, Expr bound, Expr a, Expr b) {
  return makeArgs(ExprKind::Dot, {bound, a, b}, name);
}

Expr ExprContext::prob(StringRef name, ArrayRef<Expr> idx) {
  return makeArgs(ExprKind::Prob, idx, name);
}

Expr ExprContext::row(StringRef name, ArrayRef<Expr> idx) {
  return makeArgs(ExprKind::Row, idx, name);
}

Expr ExprContext::nonZero(StringRef name, unsigned axis, Expr n, Expr extent) {
  return makeArgs(ExprKind::NonZero, {n, extent}, name, ElementType::Int,
                  axis);
}

Expr ExprContext::bad(StringRef reason) {
  return makeArgs(ExprKind::Bad, {}, reason);
}

Leaves ExprContext::leavesOf(Expr root) const {
  Leaves out;
  SmallVector<Expr> todo{root};
  llvm::DenseSet<Expr> seen;
  while (!todo.empty()) {
    Expr x = todo.pop_back_val();
    if (!seen.insert(x).second)
      continue;
    switch (x->kind) {
    case ExprKind::Data: {
      std::pair<Expr, Expr> token(x->args[0], x->args[1]);
      if (!llvm::is_contained(out.tokens, token))
        out.tokens.push_back(token);
      for (auto [axis, arg] : llvm::enumerate(x->args.drop_front(2)))
        if (axis >= 64 || !(x->payload >> axis & 1))
          todo.push_back(arg);
      break;
    }
    case ExprKind::Past:
      out.past.push_back(x);
      break;
    case ExprKind::Dot:
      out.dots.push_back(x);
      break;
    case ExprKind::Prob:
    case ExprKind::Row:
      out.probs.push_back(x);
      break;
    case ExprKind::Bad:
      if (!out.bad)
        out.bad = x;
      break;
    default:
      llvm::append_range(todo, x->args);
      for (const Term &t : x->terms)
        llvm::append_range(todo, t.mono->atoms);
    }
  }
  return out;
}

SmallVector<Expr> ExprContext::outerVars(Expr root) const {
  SmallVector<Expr> out;
  SmallVector<Expr> todo{root};
  llvm::DenseSet<Expr> seen;
  while (!todo.empty()) {
    Expr x = todo.pop_back_val();
    if (x->freeVars.empty() || !seen.insert(x).second)
      continue;
    if (x->is(ExprKind::Var)) {
      out.push_back(x);
    } else if (x->is(ExprKind::Data)) {
      for (auto [axis, arg] : llvm::enumerate(x->args.drop_front(2)))
        if (axis >= 64 || !(x->payload >> axis & 1))
          todo.push_back(arg);
    } else {
      llvm::append_range(todo, x->args);
      for (const Term &t : x->terms)
        llvm::append_range(todo, t.mono->atoms);
    }
  }
  llvm::sort(out, [](Expr a, Expr b) { return a->id < b->id; });
  return out;
}

bool ExprContext::outerUses(Expr e, Expr var) const {
  return e->uses(var) && llvm::is_contained(outerVars(e), var);
}

void ExprContext::walk(Expr e, function_ref<void(Expr)> f) {
  SmallVector<Expr> todo{e};
  llvm::DenseSet<Expr> seen;
  while (!todo.empty()) {
    Expr x = todo.pop_back_val();
    if (!seen.insert(x).second)
      continue;
    f(x);
    if (!x->is(ExprKind::Var))
      llvm::append_range(todo, x->args);
    for (const Term &t : x->terms)
      llvm::append_range(todo, t.mono->atoms);
  }
}

bool ExprContext::contains(Expr e, function_ref<bool(Expr)> f) {
  bool found = false;
  walk(e, [&](Expr x) { found = found || f(x); });
  return found;
}

} // namespace quire
