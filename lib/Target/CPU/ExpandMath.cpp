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

struct ExpandMath : quire::cpu::impl::ExpandMathBase<ExpandMath> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    auto expanded = [](StringRef name) { return name == "math.exp" || name == "math.tanh"; };
    populateMathF32ExpansionPatterns(patterns, expanded);
    populateMathPolynomialApproximationPatterns(patterns, expanded);
    arith::populateExpandBFloat16Patterns(patterns);
    patterns.add<CopyToLoops>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
