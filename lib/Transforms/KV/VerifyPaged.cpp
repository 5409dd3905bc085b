// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// States what may no longer occur after paginate.
#include "dialects/KV/KVDialect.h"
#include "dialects/ONNX/ONNXOps.h"
#include "lib/Transforms/KV/Passes.h"

namespace quire::kv {
#define GEN_PASS_DEF_VERIFYPAGEDPASS
#include "lib/Transforms/KV/Passes.h.inc"
} // namespace quire::kv

using namespace mlir;
using namespace quire::kv;

namespace {
LogicalResult verifyValue(Operation *op, Type type) {
  if (auto state = dyn_cast<StateType>(type); state && state.getLayout().getBlockTokens() == 0)
    return op->emitOpError() << "expected paged states after paginate, but got " << type;
  if (isa<UnrankedTensorType>(type))
    return op->emitOpError() << "expected a ranked tensor in the paged form, but got " << type;
  if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.getNumDynamicDims() > 1)
    return op->emitOpError() << "expected at most one unknown extent in the paged form, but got " << type;
  return success();
}

LogicalResult verifyOp(Operation *op) {
  for (Type type : op->getResultTypes())
    if (failed(verifyValue(op, type)))
      return failure();
  if (isa<quire::onnx::CustomOp, quire::onnx::IfOp, quire::onnx::LoopOp, quire::onnx::ScanOp, quire::onnx::ShapeOp>(op))
    return op->emitOpError() << "expected row-wise operations in the paged form, but got this one";
  return success();
}

struct VerifyPaged : quire::kv::impl::VerifyPagedPassBase<VerifyPaged> {
  void runOnOperation() override {
    bool bad = getOperation()
                   .walk([](func::FuncOp func) {
                     for (Type type : func.getArgumentTypes())
                       if (failed(verifyValue(func, type)))
                         return WalkResult::interrupt();
                     return func.walk([](Operation *op) { return failed(verifyOp(op)) ? WalkResult::interrupt() : WalkResult::advance(); });
                   })
                   .wasInterrupted();
    if (bad)
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
