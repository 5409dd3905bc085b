// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Masks, scales, biases and sinks read from hand-built scores.

#include "lib/Analysis/Score/LinearFacts.h"
#include "lib/Analysis/Score/Score.h"
#include "gtest/gtest.h"

using namespace quire;

namespace {
class ScoreTest : public ::testing::Test {
protected:
  ScoreTest() {
    T = c.add(c.P(), c.L());
    i = c.index("i2", c.L());
    j = c.index("i3", T);
    h = c.index("i1", c.num(4));
    f = c.index("c0", c.num(16));
    p = c.add(c.P(), i);
    Expr q = c.data("q", ElementType::Float, i, c.num(0), {i, h, f}, 1);
    dot = c.dot("qk", f, q, c.past("s", {h, j, f}));
    row.rowVar = i;
    row.keyVar = j;
    row.keys = T;
    row.keyExtent = T;
    row.headVars = {h};
    row.heads = 4;
  }
  ScoreMeaning read(Expr e) {
    row.element = e;
    return analyzeScore(c, row);
  }
  Expr n(int64_t v) { return c.num(v); }
  Expr hide(Expr visible, Expr score) {
    return c.ite(visible, score, c.negInf());
  }
  Expr causal() { return c.le(j, p); }
  Expr scaled() { return c.mul(c.real(0.25), dot); }

  ExprContext c;
  ScoreRow row;
  Expr T, i, j, h, f, p, dot;
};

TEST_F(ScoreTest, CausalInTwoSpellings) {
  ScoreMeaning m = read(hide(causal(), scaled()));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Causal);
  EXPECT_EQ(m.scale, 0.25);
  EXPECT_EQ(m.softcap, 0);
  EXPECT_EQ(m.biasKind, BiasKind::None);
  // 1 - visible times the least float, added
  Expr bias = c.mul(c.sub(n(1), c.asNum(causal())), c.real(-3.4e38));
  m = read(c.add(scaled(), bias));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Causal);
}

TEST_F(ScoreTest, WindowChunkPrefixFull) {
  Expr near = c.lt(c.sub(p, j), n(7));
  ScoreMeaning m = read(hide(c.band({causal(), near}), dot));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Window);
  EXPECT_EQ(m.maskSize, 7);

  Expr chunk = c.compare(Fn::Equal, c.floorDiv(p, n(8)), c.floorDiv(j, n(8)));
  m = read(hide(c.band({causal(), chunk}), dot));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Chunked);
  EXPECT_EQ(m.maskSize, 8);

  m = read(hide(c.bor({causal(), c.lt(j, n(5))}), dot));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Prefix);
  EXPECT_EQ(m.maskSize, 5);

  m = read(dot);
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Full);
}

TEST_F(ScoreTest, OffByOneIsNoCausalMask) {
  EXPECT_EQ(read(hide(c.lt(j, p), dot)).mask, MaskKind::Other);
  EXPECT_EQ(read(hide(c.le(j, c.add(p, n(1))), dot)).mask, MaskKind::Other);
}

TEST_F(ScoreTest, TopLeftCausalDependsOnTheCall) {
  // j <= i forgets the past: right only for P = 0.
  EXPECT_FALSE(read(hide(c.le(j, i), dot)));
}

TEST_F(ScoreTest, StaticBuffer) {
  row.keys = row.keyExtent = c.symbol("S");
  row.keyVar = j = c.index("i3", row.keys);
  ScoreMeaning m = read(hide(c.le(j, p), dot));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Causal);
  // every row below P + L is not causal within the call
  m = read(hide(c.lt(j, T), dot));
  EXPECT_EQ(m.mask, MaskKind::Other);
  EXPECT_FALSE(m);
}

TEST_F(ScoreTest, OneToken) {
  row.rowVar = nullptr;
  row.oneToken = true;
  ScoreMeaning m = read(c.subst(dot, i, n(0)));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Causal);
}

TEST_F(ScoreTest, Softcap) {
  Expr capped = c.mul(n(20), c.call(Fn::Tanh, {c.mul(c.real(0.0125), dot)}));
  ScoreMeaning m = read(hide(causal(), capped));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.softcap, 20);
  EXPECT_DOUBLE_EQ(m.scale, 0.25);
  // a cap over score and bias is no softcap
  EXPECT_FALSE(read(hide(
      causal(), c.call(Fn::Tanh, {c.add(dot, c.sub(j, p))}))));
}

TEST_F(ScoreTest, AlibiDropsTheRowConstant) {
  c.addTable("slopes", {{4}, ElementType::Float, {.5, .25, .125, .0625}, {}});
  Expr slope = c.table("slopes", ElementType::Float, {h});
  for (Expr origin : {n(0), p, c.sub(T, n(1))}) {
    ScoreMeaning m = read(hide(
        causal(), c.add(scaled(), c.mul(slope, c.sub(j, origin)))));
    ASSERT_TRUE(m) << m.failure;
    EXPECT_EQ(m.biasKind, BiasKind::Alibi);
    EXPECT_EQ(m.slopes, (llvm::SmallVector<double>{.5, .25, .125, .0625}));
  }
}

TEST_F(ScoreTest, RelativeBiasIsARegion) {
  Expr bucket = c.call(Fn::Min, {c.sub(p, j), n(31)});
  Expr e = c.add(dot, c.table("W", ElementType::Float, {bucket, h}));
  ScoreMeaning m = read(hide(causal(), e));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.biasKind, BiasKind::Region);
  EXPECT_TRUE(m.bias->uses(queryPosition(c)));
}

TEST_F(ScoreTest, BiasOfDataIsRefused) {
  Expr gate = c.data("g", ElementType::Float, j, n(0), {j}, 1);
  EXPECT_FALSE(read(hide(causal(), c.add(dot, gate))));
  EXPECT_FALSE(read(hide(causal(), c.add(dot, c.mul(c.L(), j)))));
}

// Section 4, hole 3: a constant per case is no constant per row.
TEST_F(ScoreTest, PromotedKeysAreNoRowConstant) {
  // the visible keys carry +5, all others +0
  Expr e = c.add(dot, c.ite(causal(), n(5), n(0)));
  ScoreMeaning m = read(e);
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.biasKind, BiasKind::Region);
  EXPECT_EQ(m.mask, MaskKind::Full);
  // s - ite(c, 0, min): hidden keys become huge
  EXPECT_FALSE(read(c.sub(dot, c.ite(causal(), n(0), c.real(-3.4e38)))));
  EXPECT_FALSE(read(c.ite(causal(), dot, c.inf())));
  EXPECT_FALSE(read(c.ite(causal(), dot, c.nan())));
  EXPECT_FALSE(read(c.ite(causal(), dot, c.bad("x"))));
}

TEST_F(ScoreTest, DifferentScalesAreRefused) {
  EXPECT_FALSE(read(c.ite(causal(), dot, c.mul(n(2), dot))));
  EXPECT_FALSE(read(c.mul(dot, c.table("t", ElementType::Float, {h}))));
  EXPECT_FALSE(read(c.mul(dot, dot)));
}

TEST_F(ScoreTest, Sinks) {
  c.addTable("sink", {{4}, ElementType::Float, {1, 2, 3, 4}, {}});
  row.keyExtent = c.add(T, n(1));
  row.keyVar = j = c.index("i3", row.keyExtent);
  Expr s = c.table("sink", ElementType::Float, {h});
  Expr most = c.row("max", {h, i});
  Expr masked = hide(causal(), scaled());
  ScoreMeaning m =
      read(c.sub(c.ite(c.lt(j, T), c.ite(causal(), scaled(), c.real(-3e38)), s),
                 most));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_TRUE(m.hasSinks);
  EXPECT_EQ(m.sinks, (llvm::SmallVector<double>{1, 2, 3, 4}));
  EXPECT_EQ(m.mask, MaskKind::Causal);
  // a maximum that is taken off the keys only changes the sink's weight
  EXPECT_FALSE(read(c.ite(c.lt(j, T), c.sub(masked, most), s)));
  // a sink column made of data
  Expr data = c.data("g", ElementType::Float, i, n(0), {i}, 1);
  EXPECT_FALSE(read(c.ite(c.lt(j, T), masked, data)));
}

TEST_F(ScoreTest, MinusTenThousandHides) {
  ScoreMeaning m = read(c.add(scaled(), c.ite(causal(), n(0), n(-10000))));
  ASSERT_TRUE(m) << m.failure;
  EXPECT_EQ(m.mask, MaskKind::Causal);
}

TEST_F(ScoreTest, LinearFacts) {
  Expr a = c.symbol("a"), b = c.symbol("b");
  EXPECT_TRUE(implies(c, c.lt(a, b), c.le(a, b), {}));
  EXPECT_FALSE(implies(c, c.le(a, b), c.lt(a, b), {}));
  EXPECT_TRUE(implies(c, c.le(c.mul(n(2), a), n(5)), c.le(a, n(2)), {}));
  EXPECT_TRUE(contradicts(c, c.band({c.lt(a, b), c.lt(b, a)}), {}));
  Expr chunk = c.floorDiv(a, n(8));
  EXPECT_TRUE(implies(c, c.le(n(16), a), c.le(n(2), chunk), {}));
  EXPECT_FALSE(implies(c, c.le(n(15), a), c.le(n(2), chunk), {}));
  // atoms that are no inequalities prove nothing
  EXPECT_FALSE(implies(c, c.compare(Fn::Equal, c.prob("x", {a}), n(0)),
                       c.boolean(false), {}));
}
} // namespace
