// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// kvrt.append: rows are written into the pages of their sequences.
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/KernelEmitter.h"
#include "lib/Target/CPU/Passes.h"
#include "lib/Target/CPU/StepFields.h"
#include "lib/Target/CPU/StoredRow.h"

namespace quire::cpu {
#define GEN_PASS_DEF_LOWERAPPEND
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

// Rows that make a task worth its dispatch.
constexpr int64_t appendGrain = 8;

void emitAppend(KernelEmitter &e, kvrt::StateType type, int64_t lanes, ValueRange arguments) {
  Value key = arguments[0], value = arguments[1], state = arguments[2];
  StepFields step(e, arguments[3]);
  Value sequences = step.read(kvrt::Field::sequence_of), places = step.read(kvrt::Field::places);
  Value tables = step.tables(state);
  e.loop(arguments[4], arguments[5], 1, [&](Value row) {
    Value place = e.loadIndex(places, {row});
    Value block = e.loadIndex(tables, {e.loadIndex(sequences, {row}), e.div(place, type.getBlock())});
    Value slot = e.rem(place, type.getBlock());
    Value group = e.div(slot, type.getLanes()), lane = e.rem(slot, type.getLanes());
    Value keyPage = kvrt::KeyPageOp::create(e.builder, e.loc, state, block);
    Value valuePage = kvrt::ValuePageOp::create(e.builder, e.loc, state, block);
    e.loop(e.index(0), e.index(type.getHeads()), 1, [&](Value head) {
      StoredRow keyRow(e, key, row, head, type.getKey(), lanes), valueRow(e, value, row, head, type.getValue(), lanes);
      if (type.isQuantized()) {
        int64_t largest = type.isHalved() ? 15 : 255;
        keyRow.quantize(kvrt::KeyScalesOp::create(e.builder, e.loc, state, block), slot, largest);
        valueRow.quantize(kvrt::ValueScalesOp::create(e.builder, e.loc, state, block), slot, largest);
      }
      if (type.isHalved()) {
        auto storeKey = [&](Value at, Value lower, Value upper) { e.storeHalves(lower, upper, keyPage, {head, group, at, lane}); };
        auto storeValue = [&](Value at, Value lower, Value upper) { e.storeHalves(lower, upper, valuePage, {head, slot, at}); };
        keyRow.eachByte(1, storeKey);
        valueRow.eachByte(lanes, storeValue);
        return;
      }
      keyRow.eachFeature([&](Value feature, Value element) { e.store(element, keyPage, {head, group, feature, lane}); });
      valueRow.eachVector([&](Value feature, Value elements) { e.storeVector(elements, valuePage, {head, slot, feature}); });
    });
  });
}

struct LowerAppend : quire::cpu::impl::LowerAppendBase<LowerAppend> {
  using LowerAppendBase::LowerAppendBase;

  LogicalResult lower(kvrt::AppendOp op, KernelTable &kernels) {
    if (!isa<MemRefType>(op.getKey().getType()))
      return op.emitOpError("expected memrefs: lower-append runs after bufferization");
    OpBuilder builder(op);
    Type index = builder.getIndexType();
    SmallVector<Type> types(op->getOperandTypes());
    types.append({index, index});
    func::FuncOp kernel =
        kernels.getOrCreate("append", kernelKey(op), op.getLoc(), types, [&](KernelEmitter &e, ValueRange arguments) {
          emitAppend(e, op.getState().getType(), vectorBytes / 4, arguments);
        });
    KernelEmitter e(builder, op.getLoc());
    Value rows = memref::DimOp::create(builder, op.getLoc(), op.getKey(), e.index(0));
    kvrt::ParallelOp::create(builder, op.getLoc(), rows, op.getBatch(), appendGrain,
                             [&](OpBuilder &inner, Location loc, Value begin, Value end) {
                               SmallVector<Value> arguments(op->getOperands());
                               arguments.append({begin, end});
                               func::CallOp::create(inner, loc, kernel, arguments);
                             });
    op.erase();
    return success();
  }

  void runOnOperation() override {
    KernelTable kernels(getOperation());
    SmallVector<kvrt::AppendOp> ops;
    getOperation().walk([&](kvrt::AppendOp op) { ops.push_back(op); });
    for (kvrt::AppendOp op : ops)
      if (failed(lower(op, kernels)))
        return signalPassFailure();
  }
};

} // namespace
