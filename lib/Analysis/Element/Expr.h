// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Hash-consed scalar expressions: the element of a tensor at a generic index.

#ifndef QUIRE_ANALYSIS_ELEMENT_EXPR_H
#define QUIRE_ANALYSIS_ELEMENT_EXPR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/FoldingSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace quire {

class ExprContext;
struct ExprNode;

/// Expressions are uniqued by their context: equal means the same pointer.
using Expr = const ExprNode *;

enum class ExprKind : uint8_t {
  Poly,    // sum of coefficient * monomial over atoms
  Var,     // index variable (has an extent) or symbol (has none)
  Bool,    // true, false
  Special, // +inf, -inf, nan
  Ge0,     // args[0] >= 0
  And,
  Or,
  Not,
  Ite,     // args[0] ? args[1] : args[2]
  Call,    // function `fn` of args
  Table,   // element of a constant array or weight: name, args are indices
  Data,    // token-wise data: args[0] token, args[1] batch, args[2..] address
  Opaque,  // function of args and of weights only
  Past,    // element of the cached state `name` at args
  Dot,     // sum over the bound variable args[0] of args[1] * args[2]
  Prob,    // softmax `name` over a score row, at args
  Row,     // constant of a score row: reduction `name` at args
  NonZero, // coordinate `payload` of the args[0]-th nonzero; args[1] extent
  Bad,     // not provable; name is the reason
};

enum class ElementType : uint8_t { Float, Int, Bool };

enum class Fn : uint8_t {
  Div,     // floor division, divisor > 0
  Mod,     // floor modulus, divisor > 0
  IntMin,
  IntMax,
  Min,
  Max,
  FloatDiv,
  Pow,
  Cos,
  Sin,
  Exp,
  Log,
  Sqrt,
  Recip,
  Tanh,
  Erf,
  Sigmoid,
  Abs,
  Floor,
  Ceil,
  Trunc,
  AnyDiv,   // integer floor division by something not provably positive
  AnyMod,
  InfTimes, // an infinity times something of unknown sign
  ToBool,
  Equal,
  Greater,
  GreaterEqual,
  IsNan,
  IsInf,
  Named, // any other function, by name
};

/// A coefficient: an exact integer or a double.
struct Coef {
  bool isFloat = false;
  int64_t i = 0;
  double d = 0;

  static Coef ofInt(int64_t v) { return {false, v, 0}; }
  /// Doubles that are small integers become integers.
  static Coef ofDouble(double v);
  double asDouble() const { return isFloat ? d : double(i); }
  bool isZero() const { return isFloat ? d == 0 : i == 0; }
  bool isOne() const { return !isFloat && i == 1; }
  bool operator==(const Coef &o) const {
    return isFloat == o.isFloat && (isFloat ? d == o.d : i == o.i);
  }
  bool operator<(const Coef &o) const { return asDouble() < o.asDouble(); }
};

/// Sorted product of atoms; the empty monomial is 1. Uniqued.
struct Monomial : llvm::FoldingSetNode {
  uint32_t id;
  llvm::ArrayRef<Expr> atoms;
  void Profile(llvm::FoldingSetNodeID &key) const;
};

struct Term {
  const Monomial *mono;
  Coef coef;
};

struct ExprNode : llvm::FoldingSetNode {
  ExprKind kind;
  Fn fn = Fn::Named;
  ElementType type = ElementType::Float;
  bool integer = false; // an exact integer for all values of its leaves
  uint16_t depth = 0;
  uint32_t id = 0;
  /// Nodes of the expression written out as a tree, saturated.
  uint32_t size = 1;
  /// Bool: 0 or 1. Special: 0 +inf, 1 -inf, 2 nan. Data: set of address axes
  /// that spell the token or the batch. Symbol: its lower bound, 0 or 1.
  /// NonZero: the axis.
  uint64_t payload = 0;
  llvm::StringRef name;
  llvm::ArrayRef<Expr> args;
  llvm::ArrayRef<Term> terms;
  /// Free variables in order of their id; bound variables of Dot excluded.
  llvm::ArrayRef<Expr> freeVars;

  bool is(ExprKind k) const { return kind == k; }
  bool isCall(Fn f) const { return kind == ExprKind::Call && fn == f; }
  bool isBad() const { return kind == ExprKind::Bad; }
  /// A truth value.
  bool isLogic() const;
  bool uses(Expr var) const;
  /// The extent of an index variable, null for a symbol.
  Expr extent() const {
    return kind == ExprKind::Var && !args.empty() ? args[0] : nullptr;
  }
  bool isSymbol() const { return kind == ExprKind::Var && args.empty(); }
  bool isIndex() const { return kind == ExprKind::Var && !args.empty(); }
  void Profile(llvm::FoldingSetNodeID &key) const;
};

/// Values of a constant array that the analysis may look at.
struct ConstantTable {
  llvm::SmallVector<int64_t> shape;
  ElementType type = ElementType::Float;
  /// Row major; `ints` for integers and truth values, else `reals`.
  std::vector<double> reals;
  std::vector<int64_t> ints;
  size_t size() const {
    return type == ElementType::Float ? reals.size() : ints.size();
  }
  Coef flat(size_t i) const {
    return type == ElementType::Float ? Coef::ofDouble(reals[i])
                                      : Coef::ofInt(ints[i]);
  }
  std::optional<Coef> at(llvm::ArrayRef<int64_t> index) const;
};

/// What an expression is made of, without looking below its leaves.
struct Leaves {
  llvm::SmallVector<std::pair<Expr, Expr>> tokens; // (token, batch), distinct
  llvm::SmallVector<Expr> past, dots, probs;
  Expr bad = nullptr;
  bool readsScores() const { return !dots.empty() || !probs.empty(); }
};

/// Simultaneous replacement of variables.
using Substitution = llvm::SmallVector<std::pair<Expr, Expr>, 4>;

class ExprContext {
public:
  ExprContext();
  ~ExprContext();
  ExprContext(const ExprContext &) = delete;
  ExprContext &operator=(const ExprContext &) = delete;

  // Constants.
  Expr num(int64_t v);
  Expr real(double v);
  Expr num(const Coef &c) { return c.isFloat ? real(c.d) : num(c.i); }
  Expr boolean(bool v) { return v ? trueExpr : falseExpr; }
  Expr inf() const { return infExpr; }
  Expr negInf() const { return negInfExpr; }
  Expr nan() const { return nanExpr; }

  // Variables. A symbol is an integer >= atLeast (0 or 1).
  Expr index(llvm::StringRef name, Expr extent);
  Expr symbol(llvm::StringRef name, unsigned atLeast = 0);
  Expr B() const { return batchSym; }
  Expr L() const { return lengthSym; }
  Expr P() const { return pastSym; }

  // Arithmetic.
  Expr add(llvm::ArrayRef<Expr> xs);
  Expr add(Expr a, Expr b) { return add({a, b}); }
  Expr sub(Expr a, Expr b) { return add({a, neg(b)}); }
  Expr mul(Expr a, Expr b);
  Expr neg(Expr a) { return mul(num(-1), a); }
  Expr product(llvm::ArrayRef<Expr> xs);
  /// Floor division and modulus of integers; divisors that are not provably
  /// positive give opaque results without any law.
  std::pair<Expr, Expr> divMod(Expr x, Expr d);
  Expr floorDiv(Expr x, Expr d) { return divMod(x, d).first; }
  Expr mod(Expr x, Expr d) { return divMod(x, d).second; }
  /// x = q * d + r by the leading monomial of d.
  std::pair<Expr, Expr> leadDiv(Expr x, Expr d);
  Expr call(Fn fn, llvm::ArrayRef<Expr> args);
  Expr named(llvm::StringRef name, llvm::ArrayRef<Expr> args);

  // Logic.
  Expr ge0(Expr e);
  Expr le(Expr a, Expr b) { return ge0(sub(b, a)); }
  Expr lt(Expr a, Expr b) { return ge0(sub(sub(b, a), num(1))); }
  Expr compare(Fn relation, Expr a, Expr b); // Equal, Greater, GreaterEqual
  Expr band(llvm::ArrayRef<Expr> xs);
  Expr bor(llvm::ArrayRef<Expr> xs);
  Expr bnot(Expr a);
  Expr ite(Expr c, Expr a, Expr b);
  Expr asBool(Expr e);
  Expr asNum(Expr e);

  // Leaves.
  Expr table(llvm::StringRef name, ElementType type, llvm::ArrayRef<Expr> idx);
  Expr data(llvm::StringRef name, ElementType type, Expr token, Expr batch,
            llvm::ArrayRef<Expr> address, uint64_t carriers);
  Expr opaque(llvm::StringRef name, ElementType type,
              llvm::ArrayRef<Expr> args);
  Expr past(llvm::StringRef state, llvm::ArrayRef<Expr> idx);
  Expr dot(llvm::StringRef name, Expr bound, Expr a, Expr b);
  Expr prob(llvm::StringRef name, llvm::ArrayRef<Expr> idx);
  Expr row(llvm::StringRef name, llvm::ArrayRef<Expr> idx);
  Expr nonZero(llvm::StringRef name, unsigned axis, Expr n, Expr extent);
  Expr bad(llvm::StringRef reason);

  // Facts.
  bool isInt(Expr e) const { return e->integer; }
  /// Provably >= 0 for every value of the variables.
  bool nonNeg(Expr e);
  /// Lower bound with index variables eliminated, null if unknown.
  Expr lower(Expr e);
  std::optional<Coef> constant(Expr e) const;
  std::optional<int64_t> constInt(Expr e) const;
  bool isConst(Expr e, int64_t v) const {
    return constInt(e) == std::optional<int64_t>(v);
  }
  /// Terms of e as a polynomial (an atom is one term).
  llvm::SmallVector<Term> termsOf(Expr e);
  /// Coefficient of the single atom x in e, zero if absent.
  Coef coefficient(Expr e, Expr x);
  Coef constantTerm(Expr e);
  Expr fromTerms(llvm::ArrayRef<Term> terms);
  const Monomial *monomial(llvm::ArrayRef<Expr> atoms);
  Leaves leavesOf(Expr e) const;
  /// Free variables outside the token and batch of data leaves, and outside
  /// the address axes that spell them.
  llvm::SmallVector<Expr> outerVars(Expr e) const;
  bool outerUses(Expr e, Expr var) const;

  // Rewriting.
  Expr subst(Expr e, const Substitution &map);
  Expr subst(Expr e, Expr var, Expr by) {
    return subst(e, Substitution{{var, by}});
  }
  /// Replaces whole subexpressions.
  Expr replace(Expr e, Expr what, Expr by);
  /// Calls `f` on every distinct subexpression, e included, leaves entered.
  static void walk(Expr e, llvm::function_ref<void(Expr)> f);
  static bool contains(Expr e, llvm::function_ref<bool(Expr)> f);

  /// P + L <= n from now on. Drops what was derived without it.
  void assumeTotalAtMost(int64_t n);
  std::optional<int64_t> totalBound() const { return bound; }

  void addTable(llvm::StringRef name, ConstantTable table);
  const ConstantTable *findTable(llvm::StringRef name) const;

  void print(Expr e, llvm::raw_ostream &os) const;
  std::string str(Expr e) const;
  size_t size() const { return nextId; }

  /// Numeric value under values of variables; none if a leaf has none.
  std::optional<double>
  evaluate(Expr e, const llvm::DenseMap<Expr, double> &env) const;

private:
  friend struct ExprNode;
  Expr make(ExprNode proto);
  Expr makeNary(ExprKind kind, Expr unit, Expr zero, llvm::ArrayRef<Expr> xs);
  Expr makeArgs(ExprKind kind, llvm::ArrayRef<Expr> args,
                llvm::StringRef name = {},
                ElementType type = ElementType::Float, uint64_t payload = 0);
  Expr firstBad(llvm::ArrayRef<Expr> xs) const;
  Expr foldCall(Fn fn, llvm::ArrayRef<Expr> args);
  Expr minMax(Fn fn, Expr a, Expr b);
  Expr replaceAtom(Expr e, Expr atom, Expr by);
  Expr findConditional(Expr e, bool anywhere) const;
  Expr rebuild(Expr e, llvm::function_ref<Expr(Expr)> f);
  Expr substImpl(Expr e, const Substitution &map, uint32_t mapId);
  Expr replaceImpl(Expr e, Expr what, Expr by,
                   llvm::DenseMap<Expr, Expr> &memo);
  bool nonNegImpl(Expr e);
  bool boundsOf(Expr atom, Expr &lo, Expr &hi);
  std::optional<std::pair<Expr, Expr>> divModCommonFactor(Expr r, int64_t d);
  std::optional<double> evaluateCall(Expr e, llvm::ArrayRef<double> a) const;
  std::optional<double>
  evaluateMemo(Expr e, const llvm::DenseMap<Expr, double> &env,
               llvm::DenseMap<Expr, double> &memo) const;
  llvm::StringRef intern(llvm::StringRef s);

  llvm::BumpPtrAllocator arena;
  llvm::FoldingSet<ExprNode> nodes;
  llvm::FoldingSet<Monomial> monomials;
  llvm::StringMap<char> strings;
  llvm::StringMap<ConstantTable> tables;
  uint32_t nextId = 0, nextMono = 0;
  Expr trueExpr, falseExpr, infExpr, negInfExpr, nanExpr;
  Expr batchSym, lengthSym, pastSym;
  const Monomial *unitMono;
  std::optional<int64_t> bound;
  llvm::DenseMap<Expr, bool> nonNegMemo;
  llvm::DenseMap<std::pair<Expr, uint32_t>, Expr> substMemo;
  std::map<std::vector<std::pair<uint32_t, uint32_t>>, uint32_t> substIds;
};

} // namespace quire

#endif // QUIRE_ANALYSIS_ELEMENT_EXPR_H
