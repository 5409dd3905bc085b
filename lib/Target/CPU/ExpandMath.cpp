// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Math and copies in a form that needs nothing but libm.
#include "lib/Target/CPU/KernelEmitter.h"
#include "lib/Target/CPU/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace quire::cpu {
#define GEN_PASS_DEF_EXPANDMATH
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire::cpu;

namespace {

struct CopyToLoops : OpRewritePattern<memref::CopyOp> {
  using OpRewritePattern::OpRewritePattern;

  static void copy(KernelEmitter &e, memref::CopyOp op, SmallVector<Value> &indices) {
    int64_t dimension = indices.size();
    auto type = cast<MemRefType>(op.getSource().getType());
    if (dimension == type.getRank()) {
      Value element = memref::LoadOp::create(e.builder, e.loc, op.getSource(), indices);
      memref::StoreOp::create(e.builder, e.loc, element, op.getTarget(), indices);
      return;
    }
    Value extent = memref::DimOp::create(e.builder, e.loc, op.getSource(), e.index(dimension));
    e.loop(e.index(0), extent, 1, [&](Value i) {
      indices.push_back(i);
      copy(e, op, indices);
      indices.pop_back();
    });
  }

  LogicalResult matchAndRewrite(memref::CopyOp op, PatternRewriter &rewriter) const override {
    if (!isa<MemRefType>(op.getSource().getType()) || !isa<MemRefType>(op.getTarget().getType()))
      return failure();
    KernelEmitter e(rewriter, op.getLoc());
    SmallVector<Value> indices;
    copy(e, op, indices);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Rounds f32 to bf16 on bits: to nearest, ties to even; a NaN stays one and becomes quiet. The choice is between integers, not between numbers of bf16 as in
/// MLIR's expansion: LLVM does some of those in f32 on processors without bf16, and calls a function to round back.
struct NarrowToBfloat : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    Value number = op.getIn();
    if (!getElementTypeOrSelf(op.getType()).isBF16() || !getElementTypeOrSelf(number.getType()).isF32())
      return failure();
    Location loc = op.getLoc();
    auto integers = [&](unsigned width) -> Type {
      Type element = rewriter.getIntegerType(width);
      auto shaped = dyn_cast<ShapedType>(op.getType());
      return shaped ? shaped.clone(element) : element;
    };
    Type wide = integers(32);
    auto constant = [&](int32_t value) -> Value {
      TypedAttr attribute = rewriter.getI32IntegerAttr(value);
      if (auto shaped = dyn_cast<ShapedType>(wide))
        attribute = DenseElementsAttr::get(shaped, attribute);
      return arith::ConstantOp::create(rewriter, loc, attribute);
    };
    Value bits = arith::BitcastOp::create(rewriter, loc, wide, number), half = constant(16);
    Value last = arith::AndIOp::create(rewriter, loc, arith::ShRUIOp::create(rewriter, loc, bits, half), constant(1));
    Value bias = arith::AddIOp::create(rewriter, loc, last, constant(0x7fff));
    Value rounded = arith::AddIOp::create(rewriter, loc, bits, bias);
    Value quiet = arith::OrIOp::create(rewriter, loc, bits, constant(0x400000));
    Value isNan = arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, number, number);
    Value chosen = arith::SelectOp::create(rewriter, loc, isNan, quiet, rounded);
    Value narrow = arith::TruncIOp::create(rewriter, loc, integers(16), arith::ShRUIOp::create(rewriter, loc, chosen, half));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), narrow);
    return success();
  }
};

struct ExpandMath : quire::cpu::impl::ExpandMathBase<ExpandMath> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    auto expanded = [](StringRef name) { return name == "math.exp" || name == "math.tanh"; };
    populateMathF32ExpansionPatterns(patterns, expanded);
    populateMathPolynomialApproximationPatterns(patterns, expanded);
    arith::populateExpandBFloat16Patterns(patterns);
    patterns.add<CopyToLoops>(&getContext());
    patterns.add<NarrowToBfloat>(&getContext(), /*benefit=*/2);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
