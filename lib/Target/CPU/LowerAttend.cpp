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
    if (plan.taskHeads > 1)
      taskHeads = take();
    begin = take();
    end = take();
  }
  Value query, state, batch, sinks, parts, output, begin, end;
  Value taskHeads; // KV heads of a task, more than one only where a task has one row; null: one
  Value places;    // that each row and KV head has in `parts`; 0: a task has all parts of its rows

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
    int64_t folded = std::max(plan.tileRows, plan.taskHeads) * plan.group;
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
    Value parts = plan.places ? e.max(a.places, e.index(1)) : e.index(1), all = e.index(plan.state.getHeads());
    e.loop(a.begin, a.end, 1, [&](Value task) {
      part = e.rem(task, parts);
      task = e.div(task, parts);
      Value runs = a.taskHeads ? e.ceilDiv(all, a.taskHeads) : all;
      head = e.rem(task, runs);
      if (a.taskHeads) {
        head = e.mul(head, a.taskHeads);
        headsOfTask = e.min(a.taskHeads, e.sub(all, head));
      }
      Value low = e.mul(e.div(task, runs), taskRows);
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
    heads = count == 1 ? headsOfTask : Value();
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
    Value folded = foldedOf(seen.size()), several = severalOf(parts);
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

  // The folded rows of a task: those of some rows of one KV head, or of one row of some.
  Value foldedOf(int64_t rows) { return heads ? e.mul(heads, plan.group) : e.index(rows * plan.group); }
  Value rowOf(Value row, Value folded) { return heads ? row : e.add(row, e.div(folded, plan.group)); }
  Value headOf(Value folded) { return heads ? e.add(head, e.div(folded, plan.group)) : head; }
  Value queryHead(Value folded) { return e.add(e.mul(headOf(folded), plan.group), e.rem(folded, plan.group)); }

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
    pages.heads = heads;
    if (heads && plan.streamHeads <= plan.taskHeads)
      pages.streams = e.atLeast(a.taskHeads, e.index(plan.streamHeads));
    auto headOf = [&](Value inTask) {
      Value own = inTask ? e.add(head, inTask) : head;
      return plan.breakHeads ? e.rem(e.add(own, 1), plan.state.getHeads()) : own;
    };
    pages.headOf = headOf;
    pages.first = e.sub(first, start);
    pages.last = e.sub(last, start);
    pages.base = e.mul(start, block);
    pages.from = e.max(e.sub(seen.front().low, pages.base), e.index(0));
    pages.to = e.min(e.sub(seen.back().high, pages.base), e.index(plan.tilePages * block));
    int64_t asks = seen.size() == 1 ? plan.asks : std::min<int64_t>(plan.asks, 1);
    auto view = [&](Value page) { return viewPage(e.add(start, page), lastPage, asks); };
    pages.page = view;
    pages.watched = watched;
    emitAttendTile(e, plan, buffers, seen, pages);
  }

  AttendPage viewPage(Value page, Value lastPage, int64_t asks) {
    auto blockOf = [&](Value ofPage) { return e.loadIndex(tables, {sequence, ofPage}); };
    auto ahead = [&](int64_t pages) { return blockOf(e.min(e.add(page, pages), e.sub(lastPage, e.index(1)))); };
    AttendPage parts;
    parts.block = viewBlock(blockOf(plan.breakBlock ? e.index(0) : page));
    if (plan.prefetchPages)
      parts.ahead = viewBlock(ahead(plan.prefetchPages));
    if (asks == 1)
      parts.asked = {parts.ahead.value};
    int64_t step = std::max<int64_t>(1, plan.prefetchPages / std::max<int64_t>(1, asks));
    for (int64_t ask = asks; asks > 1 && ask > 0; --ask)
      parts.asked.push_back(kvrt::ValuePageOp::create(e.builder, e.loc, a.state, ahead(ask * step)));
    return parts;
  }

  // What row `last` of the tile, the last new one of its sequence, sees of pages [first, end).
  void emitObserve(Value start, Value first, Value end, int64_t last) {
    auto type = MemRefType::get({ShapedType::kDynamic, plan.heads, ShapedType::kDynamic, 2}, e.builder.getF32Type());
    Value observed = kvrt::ObservedOp::create(e.builder, e.loc, type, a.state, a.batch);
    e.loop(e.index(last * plan.group), foldedOf(last + 1), 1, [&](Value at) {
      Value maximum = e.load(current.maximum, {at});
      e.loop(first, end, 1, [&](Value page) {
        e.store(e.load(buffers.pageSums, {at, e.sub(page, start)}), observed, {sequence, queryHead(at), page, e.index(0)});
        e.store(maximum, observed, {sequence, queryHead(at), page, e.index(1)});
      });
    });
  }

  void emitKeep(Value row, int64_t count) {
    int64_t features = plan.state.getValue();
    e.loop(e.index(0), foldedOf(count), 1, [&](Value at) {
      Value pair = e.add(e.mul(rowOf(row, at), plan.state.getHeads()), headOf(at));
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
      e.loop(e.index(0), foldedOf(count), 1, [&](Value at) {
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
  Value headsOfTask, heads; // how many of the task, and of them for the row that is emitted; null: one
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

// How the rows of a step become tasks. Indices; what is null has one value only.
struct AttendSplit {
  Value tasks, places, heads; // places: of a row and KV head whose parts are tasks, 0 if they are not; heads: KV heads of a task
};

class AttendSplitter {
public:
  AttendSplitter(KernelEmitter &emitter, const AttendPlan &plan, AttendRows &rows, Value tokens)
      : e(emitter), plan(plan), rows(rows), tokens(tokens), taskRows(rows.emitTaskRows()) {}

  AttendSplit emit() {
    AttendSplit split;
    Value all = e.index(plan.state.getHeads()), ofRows = e.ceilDiv(tokens, taskRows);
    Value tasks = e.mul(ofRows, plan.state.getHeads());
    threads = rows.step.extent(kvrt::Extent::threads);
    if (plan.places)
      split.places = emitPlaces(tasks);
    if (plan.taskHeads > 1) {
      split.heads = emitHeads(split.places);
      tasks = e.mul(ofRows, e.ceilDiv(all, split.heads));
    }
    split.tasks = split.places ? e.mul(tasks, e.max(split.places, e.index(1))) : tasks;
    return split;
  }

private:
  Value enough() { return e.min(e.mul(threads, tasksPerThread), e.index(enoughAttendTasks)); }

  // How many places each row and KV head takes when the rows of this step are cut; 0 when they are not, because there
  // are enough tasks or as many for each thread, because no row has two parts, or because there are not enough places.
  Value emitPlaces(Value tasks) {
    Value pairs = e.mul(tokens, plan.state.getHeads());
    Value uneven = e.below(e.index(0), e.rem(tasks, threads));
    Value few = e.both(e.both(uneven, e.below(tasks, enough())), e.atLeast(e.index(plan.places / 2), pairs));
    Value zero = e.index(0), counted = e.select(few, tokens, zero);
    Value most = e.loop(zero, counted, 1, zero, [&](Value row, ValueRange carried) -> KernelEmitter::Values {
      RowParts parts = rows.partsOf(rows.seenFrom(row, rows.lengthOf(rows.sequenceOf(row))));
      return {e.max(carried[0], e.sub(parts.end, parts.first))};
    })[0];
    Value cut = e.both(e.atLeast(most, e.index(2)), e.atLeast(e.index(plan.places), e.mul(pairs, most)));
    return e.select(cut, most, zero);
  }

  // As many as are read in one go while there are twice as many tasks as are enough, since sequences differ in length. One thread needs
  // no other task, and what one row shares out evenly is enough. One head where tasks have several rows.
  Value emitHeads(Value places) {
    int64_t heads = plan.state.getHeads(), runs = llvm::divideCeil(heads, plan.askedHeads);
    Value one = e.index(1), most = e.index(plan.askedHeads), twice = e.mul(enough(), 2);
    Value ofHead = e.max(places ? e.mul(tokens, e.max(places, one)) : tokens, one);
    Value wanted = e.min(e.ceilDiv(twice, ofHead), e.index(heads));
    Value share = e.ceilDiv(e.index(heads), wanted), chosen = e.min(most, share);
    if (heads % plan.askedHeads == 0) {
      Value even = e.equal(e.rem(e.index(runs), threads), e.index(0));
      chosen = e.select(e.both(e.equal(ofHead, one), even), most, chosen);
    }
    chosen = e.select(e.equal(threads, one), most, chosen);
    if (plan.streamHeads <= plan.taskHeads)
      chosen = emitStream(ofHead, share, chosen);
    return e.select(e.equal(taskRows, one), chosen, one);
  }

  // More heads where as many have values that need not be asked for.
  Value emitStream(Value ofHead, Value share, Value asked) {
    Value one = e.index(1), heads = e.index(plan.state.getHeads()), ofThread = e.ceilDiv(heads, threads);
    Value even = e.atLeast(e.mul(heads, 17), e.mul(e.mul(ofThread, threads), 16));
    share = e.select(e.both(e.equal(ofHead, one), even), ofThread, share);
    share = e.min(e.select(e.equal(threads, one), heads, share), e.index(plan.taskHeads));
    share = e.ceilDiv(heads, e.ceilDiv(heads, share)); // tasks of one size
    return e.select(e.atLeast(share, e.index(plan.streamHeads)), share, asked);
  }

  KernelEmitter &e;
  const AttendPlan &plan;
  AttendRows &rows;
  Value tokens, taskRows, threads;
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

  using Emit = function_ref<void(KernelEmitter &, const AttendPlan &, Value slopes, ValueRange arguments)>;

  // A loop over `count` tasks around the kernel that `emit` makes.
  void emitLoop(KernelEmitter &e, kvrt::AttendOp op, const AttendPlan &plan, KernelTable &kernels, StringRef what,
                ValueRange more, Value count, Emit emit) {
    SmallVector<Value> operands(op->getOperands());
    operands.append(more.begin(), more.end());
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
    Value tokens = rows.step.extent(kvrt::Extent::tokens);
    AttendSplit split = AttendSplitter(e, plan, rows, tokens).emit();
    SmallVector<Value> more;
    for (Value value : {split.places, split.heads})
      if (value)
        more.push_back(value);
    auto emitAttend = [](KernelEmitter &inner, const AttendPlan &shared, Value slopes, ValueRange arguments) {
      AttendKernel(inner, shared, slopes, arguments).emit();
    };
    emitLoop(e, op, plan, kernels, "attend", more, split.tasks, emitAttend);
    if (plan.places)
      e.ifThen(e.atLeast(split.places, e.index(1)), [&] {
        emitLoop(e, op, plan, kernels, "combine", more, e.mul(tokens, plan.heads), emitCombine);
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
