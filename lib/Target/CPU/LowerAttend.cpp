// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// kvrt.attend: tasks over rows, KV heads and, when there are few, parts of the keys; each a loop over the pages that its rows see.
#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/AttendRows.h"
#include "lib/Target/CPU/Passes.h"

namespace quire::cpu {
#define GEN_PASS_DEF_LOWERATTEND
#include "lib/Target/CPU/Passes.h.inc"
} // namespace quire::cpu

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

// What a kernel is called with, in this order.
struct AttendArguments {
  AttendArguments(const AttendPlan &plan, ValueRange arguments) : arguments(arguments) {
    query = take();
    state = take();
    batch = take();
    if (plan.sinks)
      sinks = take();
    if (plan.places)
      parts = take();
    output = take();
    if (plan.places)
      places = take();
    begin = take();
    end = take();
  }
  Value query, state, batch, sinks, parts, output, begin, end;
  Value places; // that each row and KV head has in `parts`; 0: a task has all parts of its rows

private:
  Value take() {
    Value first = arguments.front();
    arguments = arguments.drop_front();
    return first;
  }

  ValueRange arguments;
};

class AttendKernel {
public:
  AttendKernel(KernelEmitter &emitter, const AttendPlan &plan, Value slopes, ValueRange arguments)
      : e(emitter), plan(plan), a(plan, arguments), rows(emitter, plan, a.batch) {
    int64_t folded = plan.tileRows * plan.group;
    current = rows.stackResult(folded);
    total = rows.stackResult(folded);
    buffers.query = e.stackBuffer({folded, plan.state.getKey()});
    buffers.accumulator = current.accumulator;
    buffers.scores = e.stackBuffer({folded, plan.tilePages * plan.state.getBlock()});
    buffers.maximum = current.maximum;
    buffers.sum = current.sum;
    buffers.rescale = e.stackBuffer({folded});
    buffers.slopes = slopes;
    if (plan.state.isQuantized())
      buffers.querySums = e.stackBuffer({folded, static_cast<int64_t>(codeGroups(plan.state.getKey()).size())});
    tables = rows.step.tables(a.state);
    if (plan.observe) {
      buffers.pageSums = e.stackBuffer({folded, plan.tilePages});
      observed = kvrt::IsObservedOp::create(e.builder, e.loc, a.state);
    }
  }

  void emit() {
    Value tokens = rows.step.extent(kvrt::Extent::tokens), taskRows = rows.emitTaskRows();
    Value parts = plan.places ? e.max(a.places, e.index(1)) : e.index(1);
    e.loop(a.begin, a.end, 1, [&](Value task) {
      part = e.rem(task, parts);
      task = e.div(task, parts);
      head = e.rem(task, plan.state.getHeads());
      Value low = e.mul(e.div(task, plan.state.getHeads()), taskRows);
      emitTask(low, e.min(e.add(low, taskRows), tokens));
    });
  }

private:
  // Several rows of one sequence at a time where there are as many, and they are cut alike.
  void emitTask(Value low, Value high) {
    e.loopWhileBelow(low, high, [&](Value row) {
      sequence = rows.sequenceOf(row);
      length = rows.lengthOf(sequence);
      if (plan.tileRows == 1) {
        emitRows(row, 1);
        return e.add(row, 1);
      }
      Value stop = e.min(high, rows.endOf(sequence)), last = e.min(e.add(row, plan.tileRows), stop);
      RowParts ofFirst = rows.partsOf(rows.seenFrom(row, length));
      RowParts ofLast = rows.partsOf(rows.seenFrom(e.sub(last, e.index(1)), length));
      Value full = e.both(e.equal(e.sub(last, row), e.index(plan.tileRows)),
                          e.both(e.equal(ofFirst.pages, ofLast.pages), e.equal(ofFirst.first, ofLast.first)));
      e.ifThen(full, [&] { emitRows(row, plan.tileRows); }, [&] { emitRows(row, 1); });
      return e.add(row, e.select(full, e.index(plan.tileRows), e.index(1)));
    });
  }

  // One part of the rows, kept in its place, or all of them.
  void emitRows(Value row, int64_t count) {
    SmallVector<AttendRow> seen;
    for (int64_t i = 0; i < count; ++i)
      seen.push_back(rows.seenFrom(e.add(row, i), length));
    RowParts parts = rows.partsOf(seen.front());
    parts.end = rows.partsOf(seen.back()).end;
    if (!plan.places) {
      emitParts(row, seen, parts);
      emitOutput(row, count, parts);
      return;
    }
    Value cut = e.atLeast(a.places, e.index(1));
    RowParts own = parts;
    own.first = e.select(cut, e.add(parts.first, part), parts.first);
    own.end = e.select(cut, e.min(e.add(own.first, 1), parts.end), parts.end);
    e.ifThen(e.below(own.first, own.end), [&] {
      emitParts(row, seen, own);
      e.ifThen(cut, [&] { emitKeep(row, count); }, [&] { emitOutput(row, count, own); });
    });
  }

  Value severalOf(const RowParts &parts) { return e.atLeast(parts.end, e.add(parts.first, 2)); }

  // The result is in `current`, or in `total` when there are several parts.
  void emitParts(Value row, ArrayRef<AttendRow> seen, const RowParts &parts) {
    Value folded = e.index(seen.size() * plan.group), several = severalOf(parts);
    e.loop(e.index(0), folded, 1, [&](Value at) {
      e.eachVector(plan.state.getKey(), plan.valueLanes(), [&](Value offset, int64_t width) {
        Value query = e.loadVector(a.query, {rowOf(row, at), queryHead(at), offset}, width);
        e.storeVector(query, buffers.query, {at, offset});
      });
      if (plan.state.isQuantized())
        emitQuerySums(at);
    });
    e.ifThen(several, [&] { e.loop(e.index(0), folded, 1, [&](Value at) { rows.emitStart(total, at); }); });
    // Positions ascend within a sequence, and so do both ends of what is visible.
    int64_t block = plan.state.getBlock();
    Value firstPage = e.div(seen.front().low, block), lastPage = e.ceilDiv(seen.back().high, block);
    if (plan.observe)
      watched = e.both(observed, e.equal(e.add(row, static_cast<int64_t>(seen.size())), rows.endOf(sequence)));
    e.loop(parts.first, parts.end, 1, [&](Value index) {
      e.loop(e.index(0), folded, 1, [&](Value at) { rows.emitStart(current, at); });
      Value from = e.mul(index, parts.pages), to = e.add(from, parts.pages);
      Value first = e.max(firstPage, from), last = e.min(lastPage, to);
      // A tile begins at a multiple of its size: what shares a step of the softmax does not depend on what else a row sees.
      e.loop(e.mul(e.div(first, plan.tilePages), plan.tilePages), last, plan.tilePages, [&](Value start) {
        Value begin = e.max(first, start), end = e.min(last, e.add(start, plan.tilePages));
        emitPages(start, begin, end, lastPage, seen);
        if (plan.observe)
          e.ifThen(watched, [&] { emitObserve(start, begin, end, seen.size() - 1); });
      });
      Value merged = plan.breakParts ? e.both(several, e.below(parts.first, index)) : several;
      e.ifThen(merged, [&] { e.loop(e.index(0), folded, 1, [&](Value at) { emitMerge(at); }); });
    });
  }

  void emitQuerySums(Value at) {
    for (auto [group, features] : llvm::enumerate(codeGroups(plan.state.getKey()))) {
      Value sum = e.f32(0.0f);
      for (Piece piece : cutIntoVectors(features.width, plan.valueLanes())) {
        Value query = e.loadVector(buffers.query, {at, e.index(features.offset + piece.offset)}, piece.width);
        sum = arith::AddFOp::create(e.builder, e.loc, sum, e.sumOf(query));
      }
      e.store(sum, buffers.querySums, {at, e.index(group)});
    }
  }

  void emitMerge(Value at) {
    rows.emitMerge(total, at, e.load(current.maximum, {at}), e.load(current.sum, {at}), [&](Value offset, int64_t width) {
      return e.loadVector(current.accumulator, {at, offset}, width);
    });
  }

  Value rowOf(Value row, Value folded) { return e.add(row, e.div(folded, plan.group)); }
  Value queryHead(Value folded) { return e.add(e.mul(head, plan.group), e.rem(folded, plan.group)); }

  AttendBlock viewBlock(Value block) {
    OpBuilder &b = e.builder;
    AttendBlock parts;
    parts.key = kvrt::KeyPageOp::create(b, e.loc, a.state, block);
    parts.value = kvrt::ValuePageOp::create(b, e.loc, a.state, block);
    if (plan.state.isQuantized()) {
      parts.keyScales = kvrt::KeyScalesOp::create(b, e.loc, a.state, block);
      parts.valueScales = kvrt::ValueScalesOp::create(b, e.loc, a.state, block);
    }
    return parts;
  }

  // Pages [first, last) of the sequence, in the tile that begins with page `start`.
  void emitPages(Value start, Value first, Value last, Value lastPage, ArrayRef<AttendRow> seen) {
    int64_t block = plan.state.getBlock();
    AttendPages pages;
    pages.head = plan.breakHeads ? e.rem(e.add(head, 1), plan.state.getHeads()) : head;
    pages.first = e.sub(first, start);
    pages.last = e.sub(last, start);
    pages.base = e.mul(start, block);
    pages.from = e.max(e.sub(seen.front().low, pages.base), e.index(0));
    pages.to = e.min(e.sub(seen.back().high, pages.base), e.index(plan.tilePages * block));
    auto blocks = [&](Value page) { return viewBlocks(e.add(start, page), lastPage); };
    pages.blocks = blocks;
    pages.watched = watched;
    emitAttendTile(e, plan, buffers, seen, pages);
  }

  std::pair<AttendBlock, AttendBlock> viewBlocks(Value page, Value lastPage) {
    AttendBlock block = viewBlock(e.loadIndex(tables, {sequence, plan.breakBlock ? e.index(0) : page})), ahead;
    if (plan.prefetchPages) {
      Value index = e.min(e.add(page, plan.prefetchPages), e.sub(lastPage, e.index(1)));
      ahead = viewBlock(e.loadIndex(tables, {sequence, index}));
    }
    return {block, ahead};
  }

  // What row `last` of the tile, the last new one of its sequence, sees of pages [first, end).
  void emitObserve(Value start, Value first, Value end, int64_t last) {
    auto type = MemRefType::get({ShapedType::kDynamic, plan.heads, ShapedType::kDynamic, 2}, e.builder.getF32Type());
    Value observed = kvrt::ObservedOp::create(e.builder, e.loc, type, a.state, a.batch);
    e.loop(e.index(last * plan.group), e.index((last + 1) * plan.group), 1, [&](Value at) {
      Value maximum = e.load(current.maximum, {at});
      e.loop(first, end, 1, [&](Value page) {
        e.store(e.load(buffers.pageSums, {at, e.sub(page, start)}), observed, {sequence, queryHead(at), page, e.index(0)});
        e.store(maximum, observed, {sequence, queryHead(at), page, e.index(1)});
      });
    });
  }

  void emitKeep(Value row, int64_t count) {
    int64_t features = plan.state.getValue();
    e.loop(e.index(0), e.index(count * plan.group), 1, [&](Value at) {
      Value pair = e.add(e.mul(rowOf(row, at), plan.state.getHeads()), head);
      Value place = e.add(e.mul(pair, a.places), part), inGroup = e.rem(at, plan.group);
      e.eachVector(features, plan.valueLanes(), [&](Value offset, int64_t width) {
        e.storeVector(e.loadVector(current.accumulator, {at, offset}, width), a.parts, {place, inGroup, offset});
      });
      e.store(e.load(current.maximum, {at}), a.parts, {place, inGroup, e.index(features)});
      e.store(e.load(current.sum, {at}), a.parts, {place, inGroup, e.index(features + 1)});
    });
  }

  void emitOutput(Value row, int64_t count, const RowParts &parts) {
    auto from = [&](const AttendResult &result) {
      e.loop(e.index(0), e.index(count * plan.group), 1, [&](Value at) {
        rows.emitFinish(result, at, rowOf(row, at), queryHead(at), buffers.slopes, a.sinks, a.output);
      });
    };
    e.ifThen(severalOf(parts), [&] { from(total); }, [&] { from(current); });
  }

  KernelEmitter &e;
  const AttendPlan &plan;
  AttendArguments a;
  AttendRows rows;
  Value tables;
  AttendBuffers buffers;
  AttendResult current, total;
  Value observed;
  Value part, head, sequence, length, watched; // of the task, and of the row that is emitted
};

// Tasks are rows and query heads, row by row: merges what tasks over parts have kept, in the order of parts.
void emitCombine(KernelEmitter &e, const AttendPlan &plan, Value slopes, ValueRange arguments) {
  AttendArguments a(plan, arguments);
  AttendRows rows(e, plan, a.batch);
  AttendResult total = rows.stackResult(1);
  Value only = e.index(0);
  int64_t features = plan.state.getValue();
  e.loop(a.begin, a.end, 1, [&](Value task) {
    Value row = e.div(task, plan.heads), queryHead = e.rem(task, plan.heads), inGroup = e.rem(queryHead, plan.group);
    RowParts parts = rows.partsOf(rows.seenFrom(row, rows.lengthOf(rows.sequenceOf(row))));
    // Row and KV head are one number: query heads of a KV head lie together.
    Value first = e.mul(e.div(task, plan.group), a.places), last = e.add(first, e.sub(parts.end, parts.first));
    rows.emitStart(total, only);
    e.loop(e.add(first, plan.breakParts ? 1 : 0), last, 1, [&](Value place) {
      rows.emitMerge(total, only, e.load(a.parts, {place, inGroup, e.index(features)}),
                     e.load(a.parts, {place, inGroup, e.index(features + 1)}), [&](Value offset, int64_t width) {
                       return e.loadVector(a.parts, {place, inGroup, offset}, width);
                     });
    });
    rows.emitFinish(total, only, row, queryHead, slopes, a.sinks, a.output);
  });
}

// How many places each row and KV head takes when the rows of this step are cut; 0 when they are not, because there
// are enough tasks or as many for each thread, because no row has two parts, or because there are not enough places.
Value emitPlaces(KernelEmitter &e, const AttendPlan &plan, AttendRows &rows, Value tasks) {
  Value tokens = rows.step.extent(kvrt::Extent::tokens), pairs = e.mul(tokens, plan.state.getHeads());
  Value threads = rows.step.extent(kvrt::Extent::threads), uneven = e.below(e.index(0), e.rem(tasks, threads));
  Value enough = e.min(e.mul(threads, tasksPerThread), e.index(enoughAttendTasks));
  Value few = e.both(e.both(uneven, e.below(tasks, enough)), e.atLeast(e.index(plan.places / 2), pairs));
  Value zero = e.index(0), counted = e.select(few, tokens, zero);
  Value most = e.loop(zero, counted, 1, zero, [&](Value row, ValueRange carried) -> KernelEmitter::Values {
    RowParts parts = rows.partsOf(rows.seenFrom(row, rows.lengthOf(rows.sequenceOf(row))));
    return {e.max(carried[0], e.sub(parts.end, parts.first))};
  })[0];
  Value cut = e.both(e.atLeast(most, e.index(2)), e.atLeast(e.index(plan.places), e.mul(pairs, most)));
  return e.select(cut, most, zero);
}

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

  using Emit = function_ref<void(KernelEmitter &, const AttendPlan &, Value slopes, ValueRange arguments)>;

  // A loop over `count` tasks around the kernel that `emit` makes.
  void emitLoop(KernelEmitter &e, kvrt::AttendOp op, const AttendPlan &plan, KernelTable &kernels, StringRef what,
                Value places, Value count, Emit emit) {
    SmallVector<Value> operands(op->getOperands());
    if (places)
      operands.push_back(places);
    SmallVector<Type> types = llvm::to_vector(ValueRange(operands).getTypes());
    types.append(2, e.builder.getIndexType());
    std::string name = (what + "_" + Twine(plan.heads) + "x" + Twine(plan.state.getKey())).str();
    func::FuncOp kernel = kernels.getOrCreate(name, (what + kernelKey(op)).str(), op.getLoc(), types,
                                              [&](KernelEmitter &inner, ValueRange arguments) {
                                                emit(inner, plan, emitSlopes(inner, op, kernels), arguments);
                                              });
    kvrt::ParallelOp::create(e.builder, op.getLoc(), count, op.getBatch(), 1,
                             [&](OpBuilder &inner, Location loc, Value begin, Value end) {
                               SmallVector<Value> arguments(operands);
                               arguments.append({begin, end});
                               func::CallOp::create(inner, loc, kernel, arguments);
                             });
  }

  LogicalResult lower(kvrt::AttendOp op, KernelTable &kernels) {
    if (!breakWith.empty() &&
        !llvm::is_contained({"causal", "window", "scale", "heads", "block", "parts"}, breakWith.getValue()))
      return op.emitOpError("expected break=causal, window, scale, heads, block or parts, but got '") << breakWith << "'";
    if (!isa<MemRefType>(op.getQuery().getType()))
      return op.emitOpError("expected memrefs: lower-attend runs after bufferization");
    AttendPlan plan(op, {vectorBytes, prefetchTokens, partTokens, tileTokens, convertsHalf, breakWith});
    OpBuilder builder(op);
    KernelEmitter e(builder, op.getLoc());
    AttendRows rows(e, plan, op.getBatch());
    Value tokens = rows.step.extent(kvrt::Extent::tokens), places;
    Value tasks = e.mul(e.ceilDiv(tokens, rows.emitTaskRows()), plan.state.getHeads()), count = tasks;
    if (plan.places) {
      places = emitPlaces(e, plan, rows, tasks);
      count = e.mul(tasks, e.max(places, e.index(1)));
    }
    auto emitAttend = [](KernelEmitter &inner, const AttendPlan &shared, Value slopes, ValueRange arguments) {
      AttendKernel(inner, shared, slopes, arguments).emit();
    };
    emitLoop(e, op, plan, kernels, "attend", places, count, emitAttend);
    if (plan.places)
      e.ifThen(e.atLeast(places, e.index(1)), [&] {
        emitLoop(e, op, plan, kernels, "combine", places, e.mul(tokens, plan.heads), emitCombine);
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
