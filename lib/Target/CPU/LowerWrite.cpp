// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// kvrt.write: the buffer of the logits becomes the output, or is copied to it.
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/KernelEmitter.h"
#include "lib/Target/CPU/Passes.h"

namespace quire::cpu {
#define GEN_PASS_DEF_LOWERWRITE
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

struct LowerWrite : quire::cpu::impl::LowerWriteBase<LowerWrite> {
  using LowerWriteBase::LowerWriteBase;

  // The batch is an argument of the function or defined before `op`.
  static bool dominates(Value batch, Operation *op) {
    Operation *producer = batch.getDefiningOp();
    return !producer || (producer->getBlock() == op->getBlock() && producer->isBeforeInBlock(op));
  }

  void lower(kvrt::WriteOp op) {
    auto type = cast<MemRefType>(op.getSource().getType());
    auto outputType = MemRefType::get(type.getShape(), type.getElementType());
    Operation *source = op.getSource().getDefiningOp();
    OpBuilder builder(op);
    if (type == outputType && isa_and_nonnull<memref::AllocOp, kvrt::ScratchOp>(source) &&
        dominates(op.getBatch(), source)) {
      builder.setInsertionPoint(source);
      Value output = kvrt::LogitsOp::create(builder, op.getLoc(), outputType, op.getBatch());
      for (Operation *user : llvm::make_early_inc_range(source->getUsers()))
        if (isa<memref::DeallocOp>(user))
          user->erase();
      source->replaceAllUsesWith(ValueRange{output});
      source->erase();
      op.erase();
      return;
    }
    Value output = kvrt::LogitsOp::create(builder, op.getLoc(), outputType, op.getBatch());
    KernelEmitter outer(builder, op.getLoc());
    Value rows = memref::DimOp::create(builder, op.getLoc(), op.getSource(), outer.index(0));
    kvrt::ParallelOp::create(
        builder, op.getLoc(), rows, op.getBatch(), 1, [&](OpBuilder &inner, Location loc, Value begin, Value end) {
          KernelEmitter e(inner, loc);
          e.loop(begin, end, 1, [&](Value row) {
            e.eachVector(type.getDimSize(1), vectorBytes / 4, [&](Value column, int64_t width) {
              e.storeVector(e.loadVector(op.getSource(), {row, column}, width), output, {row, column});
            });
          });
        });
    op.erase();
  }

  void runOnOperation() override {
    SmallVector<kvrt::WriteOp> ops;
    getOperation().walk([&](kvrt::WriteOp op) { ops.push_back(op); });
    for (kvrt::WriteOp op : ops) {
      if (!isa<MemRefType>(op.getSource().getType())) {
        op.emitOpError("expected a memref: lower-write runs after bufferization");
        return signalPassFailure();
      }
      lower(op);
    }
  }
};

} // namespace
