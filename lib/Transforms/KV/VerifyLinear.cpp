// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks that KV states are linear: one consumer, all readers before it, one append before the first attend.
#include "dialects/KV/KVDialect.h"
#include "lib/Transforms/KV/Passes.h"

#include "mlir/IR/Dominance.h"

namespace quire::kv {
#define GEN_PASS_DEF_KVVERIFYLINEARPASS
#include "lib/Transforms/KV/Passes.h.inc"
} // namespace quire::kv

using namespace mlir;
using namespace quire::kv;

namespace {
bool consumes(OpOperand &use) {
  if (auto op = dyn_cast<KVConsumeOpInterface>(use.getOwner()))
    return &op.getConsumedState() == &use;
  return use.getOwner()->hasTrait<OpTrait::IsTerminator>();
}

bool reads(OpOperand &use) {
  auto op = dyn_cast<KVReadOpInterface>(use.getOwner());
  return op && &op.getReadState() == &use;
}

/// One state value: who takes it over, who reads it, in which order.
LogicalResult verifyState(Value state) {
  Operation *consumer = nullptr;
  for (OpOperand &use : state.getUses()) {
    if (consumes(use)) {
      if (consumer) {
        Operation *first = consumer, *second = use.getOwner();
        if (first->getBlock() == second->getBlock() && second->isBeforeInBlock(first))
          std::swap(first, second);
        InFlightDiagnostic diagnostic = second->emitOpError() << "expected one consumer of a state, but got a second";
        diagnostic.attachNote(first->getLoc()) << "the first is here";
        return diagnostic;
      }
      consumer = use.getOwner();
    } else if (!reads(use)) {
      return use.getOwner()->emitOpError() << "expected a read or a consumer of a state, but got an op that is neither";
    }
  }
  if (!consumer)
    return success();
  if (consumer->getBlock() != state.getParentBlock())
    return consumer->emitOpError() << "expected the consumer of a state in the block that defines it";
  for (OpOperand &use : state.getUses()) {
    Operation *reader = consumer->getBlock()->findAncestorOpInBlock(*use.getOwner());
    if (use.getOwner() == consumer || (reader && reader->isBeforeInBlock(consumer)))
      continue;
    InFlightDiagnostic diagnostic = use.getOwner()->emitOpError() << "expected reads of a state before its consumer, but got one after it";
    diagnostic.attachNote(consumer->getLoc()) << "the consumer is here";
    return diagnostic;
  }
  return success();
}

/// States that enter the step are attended only after the step's rows were appended, and appended once.
LogicalResult verifyAppends(Value state) {
  for (OpOperand &use : state.getUses())
    if (auto read = dyn_cast<KVReadOpInterface>(use.getOwner()); read && read.needsRows())
      return use.getOwner()->emitOpError() << "expected the append of the step before this read of the state";
  for (Operation *user : state.getUsers())
    if (auto append = dyn_cast<KVConsumeOpInterface>(user); append && append.getTiedState())
      for (OpOperand &use : append.getTiedState().getUses())
        if (isa<KVConsumeOpInterface>(use.getOwner()) && consumes(use))
          return use.getOwner()->emitOpError() << "expected one append of a state in a step, but got a second";
  return success();
}

struct KVVerifyLinear : quire::kv::impl::KVVerifyLinearPassBase<KVVerifyLinear> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      for (Value value : op->getResults())
        if (isa<StateType>(value.getType()) && failed(verifyState(value)))
          return WalkResult::interrupt();
      for (Region &region : op->getRegions())
        for (Block &block : region)
          for (Value value : block.getArguments())
            if (isa<StateType>(value.getType()) &&
                (failed(verifyState(value)) || (isa<func::FuncOp>(op) && failed(verifyAppends(value)))))
              return WalkResult::interrupt();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
