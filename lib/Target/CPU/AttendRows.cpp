// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Intervals and parts of rows, and the merging of results over parts.
#include "lib/Target/CPU/AttendRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

// Folded rows that share the reads of a page when a sequence has several new rows.
static constexpr int64_t foldedRows = 12;
// A step has many rows per sequence when there are this many on average.
static constexpr int64_t manyRows = 4;
// Values that lie together are as fast without being asked for from here on, where one query head shares each.
static constexpr int64_t bytesOfStream = int64_t(128) << 10;

// With vectors of 64 bytes the memory is what one row waits for. See docs/Rationale/AttentionKernel.md.
static bool isFastReader(const AttendShape &shape) { return shape.vectorBytes >= 64 && !shape.widens(); }

// The values of a KV head in a block.
static int64_t valueBytes(const AttendShape &shape) {
  return shape.state.getValue() * shape.state.getBlock() * shape.state.getElement().getIntOrFloatBitWidth() / 8;
}

// KV heads whose values in a block are asked for and read in one go: as many as have `bytesInOneGo`, or as there is room for in the first-level cache.
static int64_t headsAskedTogether(const AttendShape &shape) {
  constexpr int64_t bytesInOneGo = int64_t(16) << 10, mostFolded = 16;
  int64_t heads = shape.state.getHeads();
  if (!isFastReader(shape))
    return 1;
  int64_t runs = std::max(heads * valueBytes(shape) / bytesInOneGo, static_cast<int64_t>(llvm::divideCeil(heads * shape.group, mostFolded)));
  return llvm::divideCeil(heads, std::clamp<int64_t>(runs, 1, heads));
}

// KV heads for whose buffers there is room in the second-level cache.
static int64_t headsWithRoom(const AttendShape &shape) {
  constexpr int64_t room = int64_t(128) << 10;
  int64_t floats = shape.state.getKey() + 2 * shape.state.getValue() + shape.tilePages * shape.state.getBlock();
  return std::clamp<int64_t>(room / (4 * floats * shape.group), 1, shape.state.getHeads());
}

AttendPlan::AttendPlan(kvrt::AttendOp op, const LowerAttendOptions &options) {
  state = op.getState().getType();
  heads = cast<MemRefType>(op.getQuery().getType()).getDimSize(1);
  group = heads / state.getHeads();
  vectorBytes = options.vectorBytes;
  convertsHalf = options.convertsHalf;
  scale = op.getScale().convertToFloat();
  softcap = op.getSoftcap().convertToFloat();
  alibi = op.getAlibiSlopes().has_value();
  window = op.getWindow();
  chunk = op.getChunk();
  causal = op.getCausal();
  sinks = op.getSinks() != nullptr;
  observe = op.getObserve();
  prefetchPages = options.prefetchTokens ? std::max<int64_t>(1, options.prefetchTokens / state.getBlock()) : 0;
  partPages = std::max<int64_t>(1, options.partTokens / state.getBlock());
  tilePages = std::gcd(partPages, llvm::bit_floor(uint64_t(std::max<int64_t>(1, options.tileTokens / state.getBlock()))));
  places = op.getParts() ? cast<MemRefType>(op.getParts().getType()).getDimSize(0) : 0;
  breakHeads = options.breakWith == "heads";
  breakBlock = options.breakWith == "block";
  breakParts = options.breakWith == "parts";
  causal &= options.breakWith != "causal";
  scale *= options.breakWith == "scale" ? 1.01f : 1.0f;
  window += options.breakWith == "window" && window ? 1 : 0;
  tileRows = group == 1 ? foldedRows / 2 : std::max<int64_t>(1, foldedRows / group);
  taskHeads = askedHeads = headsAskedTogether(*this);
  streamHeads = llvm::divideCeil(bytesOfStream, valueBytes(*this));
  int64_t most = headsWithRoom(*this);
  if (isFastReader(*this) && group == 1 && streamHeads > 1 && streamHeads <= most)
    taskHeads = most;
  else // a head that has as many alone is read alone
    streamHeads = taskHeads + 1;
  asks = !prefetchPages ? 0 : !isFastReader(*this) ? 1 : state.getBlock() <= options.prefetchTokens ? 4 : 2;
  taskRows = (8 + tileRows - 1) / tileRows * tileRows;
}

AttendRows::AttendRows(KernelEmitter &emitter, const AttendPlan &plan, Value batch)
    : step(emitter, batch), e(emitter), plan(plan), sequences(step.read(kvrt::Field::sequence_of)),
      starts(step.read(kvrt::Field::query_starts)), places(step.read(kvrt::Field::places)),
      pastLengths(step.read(kvrt::Field::past_lens)) {}

Value AttendRows::emitTaskRows() {
  Value many = e.mul(step.extent(kvrt::Extent::sequences), manyRows);
  return e.select(e.atLeast(step.extent(kvrt::Extent::tokens), many), e.index(plan.taskRows), e.index(1));
}

Value AttendRows::lengthOf(Value sequence) {
  return e.add(e.loadIndex(pastLengths, {sequence}), e.sub(endOf(sequence), e.loadIndex(starts, {sequence})));
}

AttendRow AttendRows::seenFrom(Value row, Value length) {
  AttendRow seen;
  seen.place = e.loadIndex(places, {row});
  seen.low = e.index(0);
  seen.high = plan.causal ? e.add(seen.place, 1) : length;
  if (plan.window)
    seen.low = e.max(e.sub(seen.place, e.index(plan.window - 1)), seen.low);
  if (plan.chunk) {
    Value start = e.mul(e.div(seen.place, plan.chunk), plan.chunk);
    seen.low = e.max(start, seen.low);
    seen.high = e.min(e.add(start, plan.chunk), seen.high);
  }
  return seen;
}

RowParts AttendRows::partsOf(const AttendRow &seen) {
  RowParts parts;
  parts.pages = e.index(plan.partPages);
  int64_t most = plan.partPages * plan.state.getBlock() * mostAttendParts, bound = plan.mostSeen();
  if (!bound || bound > most) {
    // Twice the size for every doubling beyond the most parts.
    Value keys = bound ? e.min(seen.high, e.index(bound)) : seen.high;
    parts.pages = e.shiftLeft(parts.pages, e.bitWidthOf(e.div(e.sub(keys, e.index(1)), most)));
  }
  bool fromStart = !plan.window && !plan.chunk;
  parts.first = fromStart ? e.index(0) : e.div(e.div(seen.low, plan.state.getBlock()), parts.pages);
  Value end = e.ceilDiv(e.ceilDiv(seen.high, plan.state.getBlock()), parts.pages);
  parts.end = e.max(end, e.add(parts.first, 1));
  return parts;
}

AttendResult AttendRows::stackResult(int64_t folded) {
  return {e.stackBuffer({folded, plan.state.getValue()}), e.stackBuffer({folded}), e.stackBuffer({folded})};
}

void AttendRows::emitStart(const AttendResult &result, Value at) {
  e.eachVector(plan.state.getValue(), plan.valueLanes(), [&](Value offset, int64_t width) {
    e.storeVector(e.zeros(width), result.accumulator, {at, offset});
  });
  e.store(e.f32(lowestScore), result.maximum, {at});
  e.store(e.f32(0.0f), result.sum, {at});
}

Value AttendRows::expOfDifference(Value a, Value b) {
  return math::ExpOp::create(e.builder, e.loc, arith::SubFOp::create(e.builder, e.loc, a, b));
}

void AttendRows::emitMerge(const AttendResult &result, Value at, Value maximum, Value sum,
                           function_ref<Value(Value, int64_t)> accumulator) {
  OpBuilder &b = e.builder;
  Value before = e.load(result.maximum, {at}), grown = e.greater(maximum, before);
  Value rescale = expOfDifference(before, grown), weight = expOfDifference(maximum, grown);
  Value kept = arith::MulFOp::create(b, e.loc, e.load(result.sum, {at}), rescale);
  Value added = arith::MulFOp::create(b, e.loc, sum, weight);
  e.store(grown, result.maximum, {at});
  e.store(arith::AddFOp::create(b, e.loc, kept, added), result.sum, {at});
  e.eachVector(plan.state.getValue(), plan.valueLanes(), [&](Value offset, int64_t width) {
    Value old = e.loadVector(result.accumulator, {at, offset}, width);
    old = arith::MulFOp::create(b, e.loc, old, e.broadcast(rescale, width));
    e.storeVector(e.fma(accumulator(offset, width), e.broadcast(weight, width), old), result.accumulator, {at, offset});
  });
}

// The score of a head's sink. With ALiBi, scores are relative to slope * position, which is the place then.
Value AttendRows::sinkScore(Value row, Value queryHead, Value slopes, Value sinks) {
  Value sink = e.load(sinks, {queryHead});
  if (!plan.alibi)
    return sink;
  Value place = arith::SIToFPOp::create(e.builder, e.loc, e.builder.getF32Type(),
                                           e.toI32(e.loadIndex(places, {row})));
  Value base = arith::MulFOp::create(e.builder, e.loc, e.load(slopes, {queryHead}), place);
  return arith::SubFOp::create(e.builder, e.loc, sink, base);
}

void AttendRows::emitFinish(const AttendResult &result, Value at, Value row, Value queryHead, Value slopes, Value sinks,
                            Value output) {
  if (sinks)
    emitMerge(result, at, sinkScore(row, queryHead, slopes, sinks), e.f32(1.0f),
              [&](Value, int64_t width) { return e.zeros(width); });
  Value sum = e.load(result.sum, {at}), zero = e.f32(0.0f);
  Value empty = arith::CmpFOp::create(e.builder, e.loc, arith::CmpFPredicate::OEQ, sum, zero);
  Value divisor = e.select(empty, e.f32(1.0f), sum);
  e.eachVector(plan.state.getValue(), plan.valueLanes(), [&](Value offset, int64_t width) {
    Value total = e.loadVector(result.accumulator, {at, offset}, width);
    Value mean = arith::DivFOp::create(e.builder, e.loc, total, e.broadcast(divisor, width));
    e.storeVector(mean, output, {row, queryHead, offset});
  });
}
