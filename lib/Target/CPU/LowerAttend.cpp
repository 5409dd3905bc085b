// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// kvrt.attend: tasks over rows and KV heads, each a loop over the pages that its rows see.
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/AttendTile.h"
#include "lib/Target/CPU/KernelEmitter.h"
#include "lib/Target/CPU/Passes.h"
#include "lib/Target/CPU/StepFields.h"

namespace quire::cpu {
#define GEN_PASS_DEF_LOWERATTEND
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

// Folded rows that share the reads of a page when a sequence has several new rows.
constexpr int64_t foldedRows = 12;
// A step has many rows per sequence when there are this many on average.
constexpr int64_t manyRows = 4;

struct AttendPlan : AttendShape {
  AttendPlan(kvrt::AttendOp op, int64_t vectorBytes, int64_t prefetchTokens, StringRef breakWith) {
    state = op.getState().getType();
    heads = cast<MemRefType>(op.getQuery().getType()).getDimSize(1);
    group = heads / state.getHeads();
    this->vectorBytes = vectorBytes;
    scale = op.getScale().convertToFloat();
    softcap = op.getSoftcap().convertToFloat();
    alibi = op.getAlibiSlopes().has_value();
    window = op.getWindow();
    chunk = op.getChunk();
    causal = op.getCausal();
    sinks = op.getSinks() != nullptr;
    prefetchPages = prefetchTokens ? std::max<int64_t>(1, prefetchTokens / state.getBlock()) : 0;
    breakHeads = breakWith == "heads";
    breakBlock = breakWith == "block";
    causal &= breakWith != "causal";
    scale *= breakWith == "scale" ? 1.01f : 1.0f;
    window += breakWith == "window" && window ? 1 : 0;
    tileRows = group == 1 ? foldedRows / 2 : std::max<int64_t>(1, foldedRows / group);
    taskRows = (8 + tileRows - 1) / tileRows * tileRows;
  }
  int64_t heads, window, chunk, prefetchPages;
  int64_t tileRows; // rows that are handled together
  int64_t taskRows; // rows of a task when there are many
  bool causal, sinks;
  bool breakHeads, breakBlock; // wrong on purpose
};

/// Rows of one task of this step: one when sequences have few new rows each.
Value emitTaskRows(KernelEmitter &e, StepFields &step, const AttendPlan &plan) {
  Value many = e.mul(step.extent(kvrt::Extent::sequences), manyRows);
  return e.select(e.atLeast(step.extent(kvrt::Extent::tokens), many), e.index(plan.taskRows), e.index(1));
}

class AttendKernel {
public:
  using Values = KernelEmitter::Values;

  AttendKernel(KernelEmitter &emitter, const AttendPlan &plan, Value slopes, ValueRange arguments)
      : e(emitter), plan(plan), step(emitter, arguments[2]), query(arguments[0]), state(arguments[1]),
        sinks(plan.sinks ? arguments[3] : Value()), output(arguments[plan.sinks ? 4 : 3]),
        begin(arguments[arguments.size() - 2]), end(arguments.back()) {
    int64_t folded = plan.tileRows * plan.group;
    buffers.query = e.stackBuffer({folded, plan.state.getKey()});
    buffers.accumulator = e.stackBuffer({folded, plan.state.getValue()});
    buffers.scores = e.stackBuffer({folded, plan.state.getBlock()});
    buffers.maximum = e.stackBuffer({folded});
    buffers.sum = e.stackBuffer({folded});
    buffers.rescale = e.stackBuffer({folded});
    buffers.slopes = slopes;
    sequences = step.read(kvrt::Field::sequence_of);
    starts = step.read(kvrt::Field::query_starts);
    positions = step.read(kvrt::Field::positions);
    pastLengths = step.read(kvrt::Field::past_lens);
    tables = step.read(kvrt::Field::block_tables);
  }

  void emit() {
    Value tokens = step.extent(kvrt::Extent::tokens), taskRows = emitTaskRows(e, step, plan);
    e.loop(begin, end, 1, [&](Value task) {
      Value head = e.rem(task, plan.state.getHeads());
      Value low = e.mul(e.div(task, plan.state.getHeads()), taskRows);
      emitTask(head, low, e.min(e.add(low, taskRows), tokens));
    });
  }

private:
  // Several rows of one sequence at a time where there are as many.
  void emitTask(Value head, Value low, Value high) {
    e.loopWhileBelow(low, high, [&](Value row) {
      Value sequence = e.loadIndex(sequences, {row});
      if (plan.tileRows == 1) {
        emitRows(head, row, sequence, 1);
        return e.add(row, 1);
      }
      Value stop = e.min(high, e.loadIndex(starts, {e.add(sequence, 1)}));
      Value full = e.atLeast(e.sub(stop, row), e.index(plan.tileRows));
      e.ifThen(
          full, [&] { emitRows(head, row, sequence, plan.tileRows); }, [&] { emitRows(head, row, sequence, 1); });
      return e.add(row, e.select(full, e.index(plan.tileRows), e.index(1)));
    });
  }

  // Which keys a row sees: an interval.
  AttendRow visibleFrom(Value row, Value length) {
    AttendRow seen;
    seen.position = e.loadIndex(positions, {row});
    seen.low = e.index(0);
    seen.high = plan.causal ? e.add(seen.position, 1) : length;
    if (plan.window)
      seen.low = e.max(e.sub(seen.position, e.index(plan.window - 1)), seen.low);
    if (plan.chunk) {
      Value start = e.mul(e.div(seen.position, plan.chunk), plan.chunk);
      seen.low = e.max(start, seen.low);
      seen.high = e.min(e.add(start, plan.chunk), seen.high);
    }
    return seen;
  }

  void emitRows(Value head, Value row, Value sequence, int64_t count) {
    Value length = e.add(e.loadIndex(pastLengths, {sequence}),
                         e.sub(e.loadIndex(starts, {e.add(sequence, 1)}), e.loadIndex(starts, {sequence})));
    SmallVector<AttendRow> rows;
    for (int64_t i = 0; i < count; ++i)
      rows.push_back(visibleFrom(e.add(row, i), length));
    // Positions ascend within a sequence, and so do both ends of what is visible.
    Value low = rows.front().low, high = rows.back().high;
    Value folded = e.index(count * plan.group);
    e.loop(e.index(0), folded, 1, [&](Value at) { emitStart(head, row, at); });
    int64_t block = plan.state.getBlock();
    Value lastPage = e.ceilDiv(high, block);
    e.loop(e.div(low, block), lastPage, 1,
           [&](Value index) { emitPage(head, sequence, index, lastPage, low, high, rows); });
    e.loop(e.index(0), folded, 1, [&](Value at) { emitFinish(head, row, at); });
  }

  Value rowOf(Value row, Value folded) { return e.add(row, e.div(folded, plan.group)); }
  Value queryHead(Value head, Value folded) { return e.add(e.mul(head, plan.group), e.rem(folded, plan.group)); }

  // The score of a head's sink. With ALiBi, scores are relative to slope * position.
  Value sinkScore(Value row, Value queryHead) {
    Value sink = e.load(sinks, {queryHead});
    if (!plan.alibi)
      return sink;
    Value position = arith::SIToFPOp::create(e.builder, e.loc, e.builder.getF32Type(),
                                             e.toI32(e.loadIndex(positions, {row})));
    Value base = arith::MulFOp::create(e.builder, e.loc, e.load(buffers.slopes, {queryHead}), position);
    return arith::SubFOp::create(e.builder, e.loc, sink, base);
  }

  void emitStart(Value head, Value row, Value at) {
    Value from = rowOf(row, at), queryHead = this->queryHead(head, at);
    e.eachVector(plan.state.getKey(), plan.valueLanes(), [&](Value offset, int64_t width) {
      e.storeVector(e.loadVector(query, {from, queryHead, offset}, width), buffers.query, {at, offset});
    });
    e.eachVector(plan.state.getValue(), plan.valueLanes(), [&](Value offset, int64_t width) {
      e.storeVector(e.zeros(width), buffers.accumulator, {at, offset});
    });
    e.store(sinks ? sinkScore(from, queryHead) : e.f32(lowestScore), buffers.maximum, {at});
    e.store(e.f32(sinks ? 1.0f : 0.0f), buffers.sum, {at});
  }

  void emitPage(Value head, Value sequence, Value index, Value lastPage, Value low, Value high,
                ArrayRef<AttendRow> rows) {
    AttendPage page;
    Value block = e.loadIndex(tables, {sequence, plan.breakBlock ? e.index(0) : index});
    page.key = kvrt::KeyPageOp::create(e.builder, e.loc, state, block);
    page.value = kvrt::ValuePageOp::create(e.builder, e.loc, state, block);
    if (plan.prefetchPages) {
      Value ahead = e.min(e.add(index, plan.prefetchPages), e.sub(lastPage, e.index(1)));
      Value next = e.loadIndex(tables, {sequence, ahead});
      page.nextKey = kvrt::KeyPageOp::create(e.builder, e.loc, state, next);
      page.nextValue = kvrt::ValuePageOp::create(e.builder, e.loc, state, next);
    }
    page.head = plan.breakHeads ? e.rem(e.add(head, 1), plan.state.getHeads()) : head;
    page.base = e.mul(index, plan.state.getBlock());
    page.from = e.max(e.sub(low, page.base), e.index(0));
    page.to = e.min(e.sub(high, page.base), e.index(plan.state.getBlock()));
    emitAttendTile(e, plan, buffers, rows, page);
  }

  // output = accumulator / sum, 0 when nothing was seen.
  void emitFinish(Value head, Value row, Value at) {
    Value to = rowOf(row, at), queryHead = this->queryHead(head, at);
    Value sum = e.load(buffers.sum, {at}), zero = e.f32(0.0f);
    Value empty = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OEQ, sum, zero);
    Value divisor = e.select(empty, e.f32(1.0f), sum);
    e.eachVector(plan.state.getValue(), plan.valueLanes(), [&](Value offset, int64_t width) {
      Value total = e.loadVector(buffers.accumulator, {at, offset}, width);
      Value mean = arith::DivFOp::create(e.builder, e.loc, total, e.broadcast(divisor, width));
      e.storeVector(mean, output, {to, queryHead, offset});
    });
  }

  KernelEmitter &e;
  const AttendPlan &plan;
  StepFields step;
  Value query, state, sinks, output, begin, end;
  AttendBuffers buffers;
  Value sequences, starts, positions, pastLengths, tables;
};

struct LowerAttend : quire::cpu::impl::LowerAttendBase<LowerAttend> {
  using LowerAttendBase::LowerAttendBase;

  // ALiBi slopes as a constant of the module.
  static Value emitSlopes(KernelEmitter &e, kvrt::AttendOp op, KernelTable &kernels) {
    if (!op.getAlibiSlopes())
      return {};
    ArrayRef<float> slopes = *op.getAlibiSlopes();
    auto type = MemRefType::get({static_cast<int64_t>(slopes.size())}, e.builder.getF32Type());
    OpBuilder detached(e.builder.getContext());
    auto value = DenseElementsAttr::get(RankedTensorType::get(type.getShape(), type.getElementType()), slopes);
    auto global = memref::GlobalOp::create(detached, e.loc, "slopes", detached.getStringAttr("private"), type, value,
                                           /*constant=*/true, IntegerAttr());
    kernels.getSymbols().insert(global);
    return memref::GetGlobalOp::create(e.builder, e.loc, type, global.getSymName());
  }

  LogicalResult lower(kvrt::AttendOp op, KernelTable &kernels) {
    if (!breakWith.empty() && !llvm::is_contained({"causal", "window", "scale", "heads", "block"}, breakWith.getValue()))
      return op.emitOpError("expected break=causal, window, scale, heads or block, but got '") << breakWith << "'";
    if (!isa<MemRefType>(op.getQuery().getType()))
      return op.emitOpError("expected memrefs: lower-attend runs after bufferization");
    AttendPlan plan(op, vectorBytes, prefetchTokens, breakWith);
    OpBuilder builder(op);
    Type index = builder.getIndexType();
    SmallVector<Type> types(op->getOperandTypes());
    types.append({index, index});
    std::string name = ("attend_" + Twine(plan.heads) + "x" + Twine(plan.state.getKey())).str();
    func::FuncOp kernel = kernels.getOrCreate(name, kernelKey(op), op.getLoc(), types,
                                              [&](KernelEmitter &e, ValueRange arguments) {
                                                Value slopes = emitSlopes(e, op, kernels);
                                                AttendKernel(e, plan, slopes, arguments).emit();
                                              });
    KernelEmitter e(builder, op.getLoc());
    StepFields step(e, op.getBatch());
    Value rows = step.extent(kvrt::Extent::tokens);
    Value count = e.mul(e.ceilDiv(rows, emitTaskRows(e, step, plan)), plan.state.getHeads());
    kvrt::ParallelOp::create(builder, op.getLoc(), count, op.getBatch(), 1,
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
    SmallVector<kvrt::AttendOp> ops;
    getOperation().walk([&](kvrt::AttendOp op) { ops.push_back(op); });
    for (kvrt::AttendOp op : ops)
      if (failed(lower(op, kernels)))
        return signalPassFailure();
  }
};

} // namespace
