// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element-wise fusion of linalg generics where nothing is computed twice.
#include "lib/Transforms/Buffers/Passes.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "lib/Transforms/Buffers/Passes.h.inc"

/// True when the operand is read once for each iteration: every loop of more than one iteration is an axis of the operand.
static bool readsEachElementOnce(OpOperand *operand) {
  auto consumer = cast<linalg::GenericOp>(operand->getOwner());
  AffineMap map = consumer.getMatchingIndexingMap(operand);
  SmallVector<int64_t> ranges = consumer.getStaticLoopRanges();
  for (auto [loop, extent] : llvm::enumerate(ranges))
    if (extent != 1 && !map.isFunctionOfDim(loop))
      return false;
  return true;
}

static bool isWorthFusing(OpOperand *operand) {
  Operation *producer = operand->get().getDefiningOp();
  return producer && producer->hasOneUse() && isa<linalg::GenericOp>(operand->getOwner()) && readsEachElementOnce(operand);
}

namespace {
class FuseElementwisePass : public impl::FuseElementwiseBase<FuseElementwisePass> {
public:
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, isWorthFusing);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal(true);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      signalPassFailure();
  }
};
} // namespace

} // namespace quire
