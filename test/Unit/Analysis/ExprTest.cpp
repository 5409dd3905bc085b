// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Identities that the normalising constructors must give.

#include "lib/Analysis/Element/Interp.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace quire;

namespace {
class ExprTest : public ::testing::Test {
protected:
  Expr n(int64_t v) { return c.num(v); }
  Expr i(const char *name, Expr extent) { return c.index(name, extent); }
  std::string str(Expr e) { return c.str(e); }

  ExprContext c;
  Expr L = c.L(), P = c.P(), B = c.B();
  Expr T = c.add(c.P(), c.L());
};

// Against the definition, tried out: the first position whose index leaves
// [-rows, rows) for some value of the other axis.
TEST_F(ExprTest, PositionsInsideOfATable) {
  Expr token = i("t", L), p = c.add(P, token), axis = i("a", n(5));
  struct Case {
    Expr index;
    int64_t (*value)(int64_t p, int64_t axis);
  } cases[] = {
      {p, [](int64_t p, int64_t) { return p; }},
      {P, [](int64_t p, int64_t) { return p; }},
      {c.add(p, n(5)), [](int64_t p, int64_t) { return p + 5; }},
      {c.sub(p, n(9)), [](int64_t p, int64_t) { return p - 9; }},
      {c.mul(n(3), p), [](int64_t p, int64_t) { return 3 * p; }},
      {c.sub(n(63), p), [](int64_t p, int64_t) { return 63 - p; }},
      {c.sub(n(63), c.mul(n(4), p)),
       [](int64_t p, int64_t) { return 63 - 4 * p; }},
      {c.add(p, axis), [](int64_t p, int64_t a) { return p + a; }},
      {c.sub(c.mul(n(2), p), axis),
       [](int64_t p, int64_t a) { return 2 * p - a; }},
      {c.add({P, L, n(-1)}), [](int64_t p, int64_t) { return p; }},
      {c.floorDiv(p, n(3)), [](int64_t p, int64_t) { return p / 3; }},
      {c.add(c.floorDiv(p, n(3)), axis),
       [](int64_t p, int64_t a) { return p / 3 + a; }},
      {c.mul(p, p), [](int64_t p, int64_t) { return p * p; }},
      {c.ite(c.lt(p, n(7)), p, c.mul(n(2), p)),
       [](int64_t p, int64_t) { return p < 7 ? p : 2 * p; }},
      {c.sub(p, n(200)), [](int64_t p, int64_t) { return p - 200; }},
  };
  for (const Case &each : cases)
    for (int64_t rows : {1, 5, 64, 100}) {
      int64_t expected = 0;
      auto stays = [&](int64_t p) {
        for (int64_t a = 0; a < 5; ++a)
          if (each.value(p, a) < -rows || each.value(p, a) >= rows)
            return false;
        return true;
      };
      while (expected < 2000 && stays(expected))
        ++expected;
      ASSERT_LT(expected, 2000);
      EXPECT_EQ(positionsInside(c, each.index, rows),
                std::optional<int64_t>(expected))
          << str(each.index) << " in " << rows;
    }
  EXPECT_EQ(positionsInside(c, c.mod(p, n(64)), 64),
            std::optional<int64_t>(INT64_MAX));
  EXPECT_EQ(positionsInside(c, n(70), 64), std::optional<int64_t>(INT64_MAX));
  Expr id = c.data("ids", ElementType::Int, token, n(0), {}, 0);
  EXPECT_EQ(positionsInside(c, id, 64), std::nullopt);
  EXPECT_EQ(positionsInside(c, c.add(p, i("wide", P)), 64), std::nullopt);
  EXPECT_EQ(positionsInside(c, c.opaque("f", ElementType::Int, {p}), 64),
            std::nullopt);
}

TEST_F(ExprTest, UniquesEqualExpressions) {
  EXPECT_EQ(c.add(L, P), c.add(P, L));
  EXPECT_EQ(c.sub(c.mul(c.add(L, P), n(2)), c.mul(n(2), P)), c.mul(n(2), L));
  EXPECT_EQ(c.sub(L, L), n(0));
  EXPECT_EQ(c.real(3.0), n(3));
  EXPECT_EQ(c.mul(c.real(0.5), n(2)), n(1));
  EXPECT_NE(i("a", L), i("a", P));
}

TEST_F(ExprTest, PrintsIndependentlyOfCreationOrder) {
  ExprContext d;
  d.P();
  Expr x = d.add({d.mul(d.num(2), d.P()), d.L(), d.num(-3)});
  EXPECT_EQ(d.str(x), "L + 2*P - 3");
  EXPECT_EQ(str(c.ge0(c.sub(c.symbol("q"), c.symbol("k")))),
            "[-k + q >= 0]");
}

TEST_F(ExprTest, BottomNeverCancels) {
  Expr bad = c.bad("x");
  EXPECT_TRUE(c.sub(bad, bad)->isBad());
  EXPECT_TRUE(c.mul(bad, n(0))->isBad());
}

TEST_F(ExprTest, BottomAbsorbsInEveryConstructor) {
  Expr b = c.bad("x");
  Expr q = c.symbol("q");
  Expr v = i("v", n(4));
  for (Expr e :
       {c.add(b, L), c.sub(L, b), c.mul(L, b), c.neg(b), c.floorDiv(b, n(2)),
        c.floorDiv(q, b), c.mod(b, n(2)), c.ge0(b), c.band({b, c.ge0(c.sub(q, P))}),
        c.bor({b, c.boolean(true)}), c.band({b, c.boolean(false)}), c.bnot(b),
        c.asBool(b), c.asNum(b), c.ite(b, L, P),
        c.ite(c.ge0(c.sub(q, P)), b, P), c.ite(c.ge0(c.sub(q, P)), P, b),
        c.compare(Fn::Equal, b, b), c.compare(Fn::Greater, b, c.inf()),
        c.call(Fn::Cos, {b}), c.call(Fn::Max, {b, b}), c.call(Fn::IsNan, {b}),
        c.named("gelu", {b}), c.table("t", ElementType::Float, {b}),
        c.data("d", ElementType::Float, b, n(0), {}, 0),
        c.data("d", ElementType::Float, v, n(0), {b}, 0),
        c.opaque("o", ElementType::Float, {b}), c.past("s", {b}),
        c.dot("m", v, b, L), c.dot("m", v, L, b), c.prob("p", {b}),
        c.row("r", {b}), c.nonZero("z", 0, b, L),
        c.index("w", b), c.add(b, c.inf()), c.mul(c.inf(), b)})
    EXPECT_TRUE(e->isBad());
  // A branch that is not taken has no say.
  EXPECT_EQ(c.ite(c.boolean(true), L, b), L);
  // Bottom that appears by substitution absorbs too.
  EXPECT_TRUE(c.subst(c.add(v, L), v, b)->isBad());
  EXPECT_TRUE(c.subst(c.sub(c.call(Fn::Cos, {v}), c.call(Fn::Cos, {L})), v, b)
                  ->isBad());
}

TEST_F(ExprTest, OverflowIsBottom) {
  EXPECT_TRUE(c.add(n(INT64_MAX), n(1))->isBad());
  EXPECT_TRUE(c.mul(n(INT64_MAX), L)->is(ExprKind::Poly));
  EXPECT_TRUE(c.mul(n(INT64_MAX), n(3))->isBad());
}

TEST_F(ExprTest, Infinities) {
  EXPECT_EQ(c.add(c.negInf(), L), c.negInf());
  EXPECT_EQ(c.add(c.negInf(), c.inf()), c.nan());
  EXPECT_EQ(c.mul(c.negInf(), n(-1)), c.inf());
  EXPECT_EQ(c.mul(c.negInf(), n(0)), c.nan());
  EXPECT_TRUE(c.mul(c.inf(), c.symbol("q"))->isCall(Fn::InfTimes));
}

TEST_F(ExprTest, NonNegative) {
  Expr k = i("k", T), q = i("q", L);
  EXPECT_TRUE(c.nonNeg(k));
  EXPECT_TRUE(c.nonNeg(c.sub(c.sub(T, n(1)), k)));
  EXPECT_TRUE(c.nonNeg(c.sub(c.sub(T, n(1)), c.add(P, q))));
  EXPECT_FALSE(c.nonNeg(c.sub(k, q)));
  EXPECT_TRUE(c.nonNeg(c.sub(L, n(1))));
  EXPECT_FALSE(c.nonNeg(c.sub(P, n(1))));
  EXPECT_FALSE(c.nonNeg(c.sub(L, n(2))));
}

TEST_F(ExprTest, AssumedTotalBoundsSlices) {
  Expr room = c.sub(n(128), T);
  EXPECT_FALSE(c.nonNeg(room));
  c.assumeTotalAtMost(128);
  EXPECT_TRUE(c.nonNeg(room));
  EXPECT_FALSE(c.nonNeg(c.sub(n(127), T)));
}

TEST_F(ExprTest, IndexVariablesFoldConditions) {
  Expr old = i("ko", P), fresh = i("kn", L);
  EXPECT_EQ(c.lt(old, P), c.boolean(true));
  EXPECT_EQ(c.lt(c.add(P, fresh), P), c.boolean(false));
  Expr cat = c.ite(c.lt(i("k", T), P), L, B);
  EXPECT_EQ(c.subst(cat, i("k", T), old), L);
  EXPECT_EQ(c.subst(cat, i("k", T), c.add(P, fresh)), B);
}

TEST_F(ExprTest, FloorDivision) {
  Expr h = i("h", n(8)), d = i("d", n(64)), t = i("t", T), b = i("b", B);
  Expr lin = c.add(c.mul(h, n(64)), d);
  EXPECT_EQ(c.floorDiv(lin, n(64)), h);
  EXPECT_EQ(c.mod(lin, n(64)), d);
  EXPECT_EQ(c.floorDiv(lin, n(128)), c.floorDiv(h, n(2)));
  EXPECT_EQ(c.floorDiv(c.add(c.mul(b, T), t), T), b);
  EXPECT_EQ(c.mod(c.add(c.mul(b, T), t), T), t);
  EXPECT_EQ(c.floorDiv(c.floorDiv(d, n(4)), n(2)), c.floorDiv(d, n(8)));
  EXPECT_EQ(c.floorDiv(n(-7), n(2)), n(-4));
  EXPECT_EQ(c.mod(n(-7), n(2)), n(1));
  EXPECT_EQ(c.floorDiv(c.mod(d, n(4)), n(4)), n(0));
}

TEST_F(ExprTest, DivisionByUnknownSignHasNoLaws) {
  Expr q = c.symbol("q"); // may be 0
  EXPECT_TRUE(c.floorDiv(L, q)->isCall(Fn::AnyDiv));
  EXPECT_TRUE(c.floorDiv(c.mul(L, n(4)), n(-2))->isCall(Fn::AnyDiv));
  // and becomes exact once the divisor is known
  EXPECT_EQ(c.subst(c.floorDiv(c.mul(n(6), L), q), q, n(3)), c.mul(n(2), L));
}

TEST_F(ExprTest, Logic) {
  Expr a = c.ge0(c.sub(c.symbol("q"), c.symbol("k")));
  EXPECT_EQ(c.band({a, c.bnot(a)}), c.boolean(false));
  EXPECT_EQ(c.bor({a, c.bnot(a)}), c.boolean(true));
  EXPECT_EQ(c.bnot(c.bnot(a)), a);
  EXPECT_EQ(c.band({a, c.boolean(true)}), a);
  EXPECT_EQ(c.asBool(c.asNum(a)), a);
  EXPECT_EQ(c.ite(a, c.boolean(true), c.boolean(false)), a);
  Expr opaque = c.compare(Fn::Equal, c.prob("p", {L}), n(0));
  EXPECT_EQ(c.ite(c.bnot(opaque), L, P), c.ite(opaque, P, L));
}

TEST_F(ExprTest, ConditionsLeaveArithmetic) {
  Expr a = c.ge0(c.sub(c.symbol("q"), c.symbol("k")));
  Expr m = c.ite(a, n(1), n(0));
  // bool((1 - m) * -1e30) is "masked"
  Expr bias = c.mul(c.sub(n(1), m), c.real(-1e30));
  EXPECT_EQ(c.asBool(bias), c.bnot(a));
  EXPECT_EQ(c.compare(Fn::Equal, c.add(m, n(0)), n(0)), c.bnot(a));
  EXPECT_EQ(c.compare(Fn::Equal, c.ite(a, c.negInf(), n(0)), c.negInf()), a);
}

TEST_F(ExprTest, Comparisons) {
  Expr q = c.symbol("q"), k = c.symbol("k");
  EXPECT_EQ(c.compare(Fn::Greater, q, k), c.ge0(c.sub(c.sub(q, k), n(1))));
  EXPECT_EQ(c.compare(Fn::Equal, q, q), c.boolean(true));
  EXPECT_EQ(c.compare(Fn::Equal, c.inf(), q), c.boolean(false));
  EXPECT_TRUE(c.compare(Fn::Equal, c.prob("p", {q}), c.inf())
                  ->isCall(Fn::Equal));
}

TEST_F(ExprTest, NanGuardStays) {
  Expr p = c.prob("p", {c.symbol("q")});
  EXPECT_TRUE(c.call(Fn::IsNan, {p})->isCall(Fn::IsNan));
  EXPECT_TRUE(c.call(Fn::IsNan, {c.mul(n(2), p)})->isCall(Fn::IsNan));
  EXPECT_EQ(c.call(Fn::IsNan, {c.add(L, n(1))}), c.boolean(false));
}

TEST_F(ExprTest, Functions) {
  EXPECT_EQ(c.call(Fn::Max, {L, n(0)}), L);
  EXPECT_EQ(c.call(Fn::Min, {L, T}), L);
  EXPECT_EQ(c.call(Fn::Cos, {n(0)}), n(1));
  EXPECT_EQ(c.call(Fn::FloatDiv, {L, n(4)}), c.mul(L, c.real(0.25)));
  EXPECT_EQ(c.call(Fn::Abs, {L}), L);
  EXPECT_EQ(c.call(Fn::Trunc, {c.real(-1.5)}), n(-1));
  EXPECT_EQ(c.call(Fn::Floor, {c.real(-1.5)}), n(-2));
}

TEST_F(ExprTest, TablesFoldAtConstants) {
  c.addTable("t", {{2, 2}, ElementType::Float, {1, 2, 3, 4.5}, {}});
  Expr v = i("v", n(2));
  Expr e = c.table("t", ElementType::Float, {v, n(1)});
  EXPECT_EQ(c.subst(e, v, n(1)), c.real(4.5));
  EXPECT_TRUE(c.subst(e, v, n(7))->is(ExprKind::Table));
}

TEST_F(ExprTest, LeavesSeeTokensInsideAddresses) {
  Expr t = i("t", L), u = i("u", L);
  Expr inner = c.data("topk", ElementType::Int, u, n(0), {u}, 1);
  Expr e = c.data("x", ElementType::Float, t, n(0), {t, inner}, 1);
  EXPECT_EQ(c.leavesOf(e).tokens.size(), 2u);
}

TEST_F(ExprTest, OuterVariables) {
  Expr t = i("t", L), f = i("f", n(8));
  Expr own = c.data("x", ElementType::Float, t, n(0), {t, f}, 1);
  EXPECT_FALSE(c.outerUses(own, t));
  EXPECT_TRUE(c.outerUses(own, f));
  // A feature index that depends on the past length is not hidden.
  Expr shifted = c.data("x", ElementType::Float, t, n(0), {t, c.add(f, P)}, 1);
  EXPECT_TRUE(c.outerUses(shifted, P));
}

TEST_F(ExprTest, DotBindsItsVariable) {
  Expr f = i("c0", n(8)), t = i("t", L);
  Expr d = c.dot("m", f, c.data("x", ElementType::Float, t, n(0), {t, f}, 1),
                 c.past("s", {f}));
  EXPECT_FALSE(d->uses(f));
  EXPECT_TRUE(d->uses(t));
}

TEST_F(ExprTest, Evaluation) {
  c.addTable("slopes", {{4}, ElementType::Float, {.5, .25, .125, .0625}, {}});
  Expr q = c.symbol("q"), h = i("h", n(4));
  Expr e = c.mul(c.table("slopes", ElementType::Float, {h}),
                 c.ite(c.ge0(c.sub(q, n(3))), q, n(0)));
  llvm::DenseMap<Expr, double> env{{q, 8.0}, {h, 2.0}};
  EXPECT_EQ(c.evaluate(e, env), std::optional<double>(1.0));
  env[q] = 1;
  EXPECT_EQ(c.evaluate(e, env), std::optional<double>(0.0));
  EXPECT_FALSE(c.evaluate(c.add(e, L), env).has_value());
}

// Random polynomials and conditions keep their value through normalisation.
TEST_F(ExprTest, NormalisationKeepsValues) {
  Expr a = c.symbol("a"), b = c.symbol("b");
  for (int x = 0; x < 6; ++x)
    for (int y = 0; y < 6; ++y) {
      llvm::DenseMap<Expr, double> env{{a, double(x)}, {b, double(y)}};
      auto val = [&](Expr e) { return c.evaluate(e, env).value(); };
      Expr lin = c.add(c.mul(n(6), a), b);
      EXPECT_EQ(val(c.floorDiv(lin, n(4))), std::floor((6 * x + y) / 4.0));
      EXPECT_EQ(val(c.mod(lin, n(4))), (6 * x + y) % 4);
      EXPECT_EQ(val(c.floorDiv(c.sub(a, b), n(3))), std::floor((x - y) / 3.0));
      EXPECT_EQ(val(c.compare(Fn::Greater, a, b)), x > y);
      EXPECT_EQ(val(c.call(Fn::Max, {a, b})), std::max(x, y));
      EXPECT_EQ(val(c.ite(c.bnot(c.compare(Fn::Equal, a, b)), a, n(-1))),
                x != y ? x : -1);
      EXPECT_EQ(val(c.subst(c.floorDiv(a, n(2)), a, c.add(b, n(1)))),
                (y + 1) / 2);
    }
}
} // namespace
