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
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_BUFFERIZESTEP
#include "lib/Transforms/Buffers/Passes.h.inc"

/// Gives every use as a destination an empty or filled tensor of its own: what only starts a computation is not worth keeping.
static void separateDestinations(func::FuncOp function) {
  SmallVector<DestinationStyleOpInterface> users;
  function.walk([&](DestinationStyleOpInterface op) { users.push_back(op); });
  for (DestinationStyleOpInterface user : users)
    for (OpOperand &output : user.getDpsInitsMutable()) {
      OpBuilder builder(user);
      Operation *start = output.get().getDefiningOp();
      if (auto fill = dyn_cast_or_null<linalg::FillOp>(start)) {
        auto own = cast<linalg::FillOp>(builder.clone(*fill));
        if (auto empty = own.output().getDefiningOp<tensor::EmptyOp>()) {
          builder.setInsertionPoint(own);
          own.getOutputsMutable().assign(builder.clone(*empty)->getResult(0));
        }
        output.set(own.getResult(0));
      } else if (isa_and_nonnull<tensor::EmptyOp>(start)) {
        output.set(builder.clone(*start)->getResult(0));
      }
    }
  function.walk([](Operation *op) {
    if (isa<linalg::FillOp, tensor::EmptyOp>(op) && op->use_empty())
      op->erase();
  });
}

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
      separateDestinations(function);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(bufferization::eliminateEmptyTensors(rewriter, function)))
        return signalPassFailure();
    if (failed(bufferization::runOneShotModuleBufferize(getOperation(), options, state)))
      signalPassFailure();
  }
};
} // namespace

} // namespace quire
