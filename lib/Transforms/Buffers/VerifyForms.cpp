// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may no longer occur at the end of the resource and the buffer phase.
#include "lib/Transforms/Buffers/Passes.h"

#include "dialects/KV/KVDialect.h"
#include "dialects/KVRT/KVRT.h"
#include "dialects/ONNX/ONNXDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_VERIFYRESOURCE
#define GEN_PASS_DEF_VERIFYBUFFER
#include "lib/Transforms/Buffers/Passes.h.inc"

static bool hasType(Operation *op, llvm::function_ref<bool(Type)> matches) {
  if (llvm::any_of(op->getOperandTypes(), matches) || llvm::any_of(op->getResultTypes(), matches))
    return true;
  for (Region &region : op->getRegions())
    for (Block &block : region)
      if (llvm::any_of(block.getArgumentTypes(), matches))
        return true;
  return false;
}

/// The step takes a batch and returns nothing.
static LogicalResult verifyStep(kvrt::ModelOp model) {
  auto step = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(model, model.getStepAttr());
  if (!step)
    return model.emitError("expected a step function, but got ") << model.getStepAttr();
  FunctionType type = step.getFunctionType();
  if (type.getNumResults() != 0 || type.getNumInputs() != 1 || !isa<kvrt::BatchType>(type.getInput(0)))
    return step.emitError("expected a step of type (!kvrt.batch) -> (), but got ") << type;
  return success();
}

namespace {
class VerifyResourcePass : public impl::VerifyResourceBase<VerifyResourcePass> {
public:
  void runOnOperation() override {
    markAllAnalysesPreserved();
    WalkResult result = getOperation().walk([](Operation *op) {
      if (isa_and_nonnull<kv::KVDialect>(op->getDialect()) || hasType(op, llvm::IsaPred<kv::StateType, kv::BatchType>)) {
        op->emitError("expected no kv states after the resource phase, but got ") << op->getName();
        return WalkResult::interrupt();
      }
      if (isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()) && op->getParentOfType<func::FuncOp>()) {
        op->emitError("expected no onnx operators after the resource phase, but got ") << op->getName();
        return WalkResult::interrupt();
      }
      if (auto model = dyn_cast<kvrt::ModelOp>(op); model && failed(verifyStep(model)))
        return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

class VerifyBufferPass : public impl::VerifyBufferBase<VerifyBufferPass> {
public:
  void runOnOperation() override {
    markAllAnalysesPreserved();
    WalkResult result = WalkResult::advance();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      result = function.walk<WalkOrder::PreOrder>([](Operation *op) { return check(op); });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }

private:
  static WalkResult check(Operation *op) {
    StringRef what;
    if (hasType(op, llvm::IsaPred<TensorType>))
      what = "tensors";
    else if (isa_and_nonnull<linalg::LinalgDialect>(op->getDialect()))
      what = "linalg";
    else if (isa<memref::CopyOp>(op))
      what = "copies";
    else if (isa<memref::AllocOp, memref::AllocaOp, memref::ReallocOp, memref::DeallocOp>(op))
      what = "allocations";
    else
      return WalkResult::advance();
    op->emitError("expected no ") << what << " after the buffer phase, but got " << op->getName();
    return WalkResult::interrupt();
  }
};
} // namespace

} // namespace quire
