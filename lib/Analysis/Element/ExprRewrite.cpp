// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Substitution, printing and evaluation of symbolic elements.

#include "lib/Analysis/Element/Expr.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace llvm;

namespace quire {

//===----------------------------------------------------------------------===//
// Substitution
//===----------------------------------------------------------------------===//

Expr ExprContext::rebuild(Expr e, function_ref<Expr(Expr)> f) {
  SmallVector<Expr, 8> args;
  auto mapArgs = [&](ArrayRef<Expr> in) {
    for (Expr x : in)
      args.push_back(f(x));
  };
  auto same = [&](ExprNode proto) {
    proto.args = args;
    if (Expr b = firstBad(args))
      return b;
    return make(proto);
  };
  switch (e->kind) {
  case ExprKind::Poly: {
    for (const Term &t : e->terms) {
      Expr p = fromTerms({Term{unitMono, t.coef}});
      for (Expr x : t.mono->atoms)
        p = mul(p, f(x));
      args.push_back(p);
    }
    return add(args);
  }
  case ExprKind::Var:
  case ExprKind::Bool:
  case ExprKind::Special:
  case ExprKind::Bad:
    return e;
  case ExprKind::Ge0:
    return ge0(f(e->args[0]));
  case ExprKind::And:
  case ExprKind::Or:
    mapArgs(e->args);
    return e->is(ExprKind::And) ? band(args) : bor(args);
  case ExprKind::Not:
    return bnot(f(e->args[0]));
  case ExprKind::Ite: {
    Expr c = f(e->args[0]);
    if (c->is(ExprKind::Bool))
      return f(e->args[c->payload ? 1 : 2]);
    return ite(c, f(e->args[1]), f(e->args[2]));
  }
  case ExprKind::Call:
    mapArgs(e->args);
    if (e->fn == Fn::Named)
      return same(*e);
    return call(e->fn, args);
  case ExprKind::Table:
    mapArgs(e->args);
    return table(e->name, e->type, args);
  case ExprKind::Dot:
    return dot(e->name, e->args[0], f(e->args[1]), f(e->args[2]));
  default:
    mapArgs(e->args);
    return same(*e);
  }
}

Expr ExprContext::substImpl(Expr e, const Substitution &map, uint32_t mapId) {
  if (llvm::none_of(map, [&](auto &m) { return e->uses(m.first); }))
    return e;
  for (auto [from, to] : map)
    if (e == from)
      return to;
  auto it = substMemo.find({e, mapId});
  if (it != substMemo.end())
    return it->second;
  Expr r = rebuild(e, [&](Expr x) { return substImpl(x, map, mapId); });
  substMemo[{e, mapId}] = r;
  return r;
}

Expr ExprContext::subst(Expr e, const Substitution &map) {
  Substitution used;
  for (auto [from, to] : map)
    if (from != to && e->uses(from))
      used.push_back({from, to});
  if (used.empty())
    return e;
  std::vector<std::pair<uint32_t, uint32_t>> key;
  for (auto [from, to] : used)
    key.push_back({from->id, to->id});
  llvm::sort(key);
  uint32_t id = substIds.insert({key, uint32_t(substIds.size())}).first->second;
  return substImpl(e, used, id);
}

Expr ExprContext::replaceImpl(Expr e, Expr what, Expr by,
                              DenseMap<Expr, Expr> &memo) {
  if (e == what)
    return by;
  auto it = memo.find(e);
  if (it != memo.end())
    return it->second;
  Expr r = rebuild(e, [&](Expr x) { return replaceImpl(x, what, by, memo); });
  memo[e] = r;
  return r;
}

Expr ExprContext::replace(Expr e, Expr what, Expr by) {
  DenseMap<Expr, Expr> memo;
  return replaceImpl(e, what, by, memo);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static StringRef nameOf(Fn fn) {
  static constexpr StringLiteral names[] = {
      "div",  "mod",   "min",   "max",  "fmin",   "fmax",    "fdiv", "pow",
      "cos",  "sin",   "exp",   "log",  "sqrt",   "recip",   "tanh", "erf",
      "sigmoid", "abs", "floor", "ceil", "trunc", "anydiv", "anymod",
      "inftimes", "bool", "equal", "greater", "greaterequal", "isnan", "isinf"};
  static_assert(std::size(names) == size_t(Fn::Named));
  return names[size_t(fn)];
}

static void printNumber(const Coef &c, raw_ostream &os) {
  if (c.isFloat)
    os << format("%.6g", c.d);
  else
    os << c.i;
}

namespace {
class Printer {
public:
  std::string text(Expr e, unsigned depth = 0) const {
    std::string s;
    raw_string_ostream os(s);
    if (depth > 12)
      os << "...";
    else
      print(e, os, depth + 1);
    return s;
  }

private:
  std::string list(ArrayRef<Expr> xs, unsigned depth, bool sorted = false,
                   StringRef separator = ", ") const {
    SmallVector<std::string> parts;
    for (Expr x : xs)
      parts.push_back(text(x, depth));
    if (sorted)
      llvm::sort(parts);
    return llvm::join(parts, separator);
  }

  void printPoly(Expr e, raw_ostream &os, unsigned depth) const {
    if (e->terms.empty()) {
      os << "0";
      return;
    }
    // By falling degree, then by text: independent of creation order.
    SmallVector<std::tuple<int, std::string, Coef>> parts;
    for (const Term &t : e->terms)
      parts.push_back({-int(t.mono->atoms.size()),
                       list(t.mono->atoms, depth, true, "*"), t.coef});
    llvm::sort(parts, [](auto &a, auto &b) {
      return std::tie(std::get<0>(a), std::get<1>(a)) <
             std::tie(std::get<0>(b), std::get<1>(b));
    });
    bool first = true;
    for (auto &[degree, atoms, c] : parts) {
      bool negative = c.asDouble() < 0;
      if (!first)
        os << (negative ? " - " : " + ");
      else if (negative)
        os << "-";
      Coef magnitude = c;
      magnitude.i = c.isFloat ? 0 : (c.i == INT64_MIN ? c.i : std::abs(c.i));
      magnitude.d = std::abs(c.d);
      if (atoms.empty())
        printNumber(magnitude, os);
      else if (!magnitude.isOne()) {
        printNumber(magnitude, os);
        os << "*" << atoms;
      } else {
        os << atoms;
      }
      first = false;
    }
  }

  void print(Expr e, raw_ostream &os, unsigned depth) const {
    auto leaf = [&](StringRef kind, ArrayRef<Expr> args) {
      os << kind << "<" << e->name << ">(" << list(args, depth) << ")";
    };
    switch (e->kind) {
    case ExprKind::Poly:
      return printPoly(e, os, depth);
    case ExprKind::Var:
      os << e->name;
      return;
    case ExprKind::Bool:
      os << (e->payload ? "true" : "false");
      return;
    case ExprKind::Special:
      os << (e->payload == 0 ? "inf" : e->payload == 1 ? "-inf" : "nan");
      return;
    case ExprKind::Ge0:
      os << "[" << text(e->args[0], depth) << " >= 0]";
      return;
    case ExprKind::And:
    case ExprKind::Or:
      os << "("
         << list(e->args, depth, true, e->is(ExprKind::And) ? " and " : " or ")
         << ")";
      return;
    case ExprKind::Not:
      os << "not " << text(e->args[0], depth);
      return;
    case ExprKind::Ite:
      os << "(" << text(e->args[0], depth) << " ? " << text(e->args[1], depth)
         << " : " << text(e->args[2], depth) << ")";
      return;
    case ExprKind::Call:
      os << (e->fn == Fn::Named ? e->name : nameOf(e->fn)) << "("
         << list(e->args, depth) << ")";
      return;
    case ExprKind::Table:
      return leaf("tab", e->args);
    case ExprKind::Data: {
      SmallVector<Expr> address;
      for (auto [axis, x] : llvm::enumerate(e->args.drop_front(2)))
        if (axis >= 64 || !(e->payload >> axis & 1))
          address.push_back(x);
      os << "data<" << e->name << ">[" << text(e->args[0], depth) << "]("
         << list(address, depth) << ")";
      return;
    }
    case ExprKind::Opaque:
      return leaf("opq", e->args);
    case ExprKind::Past:
      return leaf("past", e->args);
    case ExprKind::Dot:
      os << "dot<" << e->name << ">(" << text(e->args[0], depth) << "; "
         << text(e->args[1], depth) << "; " << text(e->args[2], depth) << ")";
      return;
    case ExprKind::Prob:
      return leaf("prob", e->args);
    case ExprKind::Row:
      return leaf("row", e->args);
    case ExprKind::NonZero:
      os << "nonzero<" << e->name << "." << e->payload << ">("
         << text(e->args[0], depth) << ")";
      return;
    case ExprKind::Bad:
      os << "bad<" << e->name << ">";
      return;
    }
  }
};
} // namespace

void ExprContext::print(Expr e, raw_ostream &os) const {
  os << Printer().text(e);
}

std::string ExprContext::str(Expr e) const { return Printer().text(e); }

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

std::optional<double>
ExprContext::evaluate(Expr e, const DenseMap<Expr, double> &env) const {
  DenseMap<Expr, double> memo;
  return evaluateMemo(e, env, memo);
}

std::optional<double>
ExprContext::evaluateMemo(Expr e, const DenseMap<Expr, double> &env,
                          DenseMap<Expr, double> &memo) const {
  if (std::optional<Coef> c = constant(e))
    return c->asDouble();
  if (auto it = env.find(e); it != env.end())
    return it->second;
  if (auto it = memo.find(e); it != memo.end())
    return it->second;
  auto of = [&](Expr x) { return evaluateMemo(x, env, memo); };
  auto compute = [&]() -> std::optional<double> {
    switch (e->kind) {
    case ExprKind::Poly: {
      double sum = 0;
      for (const Term &t : e->terms) {
        double p = t.coef.asDouble();
        for (Expr x : t.mono->atoms) {
          std::optional<double> v = of(x);
          if (!v)
            return std::nullopt;
          p *= *v;
        }
        sum += p;
      }
      return sum;
    }
    case ExprKind::Ge0: {
      std::optional<double> v = of(e->args[0]);
      return v ? std::optional<double>(*v >= 0) : std::nullopt;
    }
    case ExprKind::And:
    case ExprKind::Or: {
      bool isAnd = e->is(ExprKind::And);
      for (Expr x : e->args) {
        std::optional<double> v = of(x);
        if (!v)
          return std::nullopt;
        if ((*v != 0) != isAnd)
          return double(!isAnd);
      }
      return double(isAnd);
    }
    case ExprKind::Not: {
      std::optional<double> v = of(e->args[0]);
      return v ? std::optional<double>(*v == 0) : std::nullopt;
    }
    case ExprKind::Ite: {
      std::optional<double> c = of(e->args[0]);
      return c ? of(e->args[*c != 0 ? 1 : 2]) : std::nullopt;
    }
    case ExprKind::Table: {
      const ConstantTable *t = findTable(e->name);
      SmallVector<int64_t> idx;
      for (Expr x : e->args) {
        std::optional<double> v = of(x);
        if (!t || !v)
          return std::nullopt;
        idx.push_back(int64_t(*v));
      }
      std::optional<Coef> v = t ? t->at(idx) : std::nullopt;
      return v ? std::optional<double>(v->asDouble()) : std::nullopt;
    }
    case ExprKind::Call: {
      SmallVector<double, 2> a;
      for (Expr x : e->args) {
        std::optional<double> v = of(x);
        if (!v)
          return std::nullopt;
        a.push_back(*v);
      }
      return evaluateCall(e, a);
    }
    default:
      return std::nullopt;
    }
  };
  std::optional<double> r = compute();
  if (r)
    memo[e] = *r;
  return r;
}

} // namespace quire
