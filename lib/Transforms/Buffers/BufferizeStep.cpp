// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One-shot bufferization of a step, with copies as linalg.
#include "lib/Transforms/Buffers/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/OneShotModuleBufferize.h"
#include "mlir/Dialect/Bufferization/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_BUFFERIZESTEP
#include "lib/Transforms/Buffers/Passes.h.inc"

namespace {
class BufferizeStepPass : public impl::BufferizeStepBase<BufferizeStepPass> {
public:
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    bufferization::OneShotBufferizationOptions options;
    options.bufferizeFunctionBoundaries = true;
    options.setFunctionBoundaryTypeConversion(bufferization::LayoutMapOption::IdentityLayoutMap);
    options.memCpyFn = [](OpBuilder &builder, Location loc, Value from, Value to) {
      linalg::makeMemRefCopyOp(builder, loc, from, to);
      return success();
    };
    bufferization::BufferizationState state;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(bufferization::eliminateEmptyTensors(rewriter, function)))
        return signalPassFailure();
    if (failed(bufferization::runOneShotModuleBufferize(getOperation(), options, state)))
      signalPassFailure();
  }
};
} // namespace

} // namespace quire
