// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Loops of one linalg operation: what does not vary along the vector axis is computed before its loop, the rest in vectors.
#include "lib/Transforms/Buffers/LoopEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace quire {

//===-- The plan ----------------------------------------------------------------------------------------------===//

static bool isContiguousAlongLast(Type type) {
  auto memref = dyn_cast<MemRefType>(type);
  return memref && memref.getRank() > 0 && memref.isLastDimUnitStride() && !memref.getElementType().isInteger(1);
}

LoopPlan::LoopPlan(linalg::GenericOp op, Value initial) : op(op), initial(initial) {
  extents = op.getStaticLoopRanges();
  for (auto [loop, extent] : llvm::enumerate(extents))
    if (ShapedType::isDynamic(extent))
      rowLoop = loop;
  if (canVectorize())
    chooseVectorLoop();
}

bool LoopPlan::canVectorize() const {
  for (Value output : op.getOutputs())
    if (!isa<MemRefType>(output.getType()) || cast<MemRefType>(output.getType()).getElementType().isInteger(1))
      return false;
  return llvm::all_of(op.getBody()->without_terminator(), [](Operation &inner) {
    return OpTrait::hasElementwiseMappableTraits(&inner) || isa<linalg::IndexOp, memref::LoadOp, arith::ConstantOp>(inner);
  });
}

/// The loop that runs along the last axis of an operand, if the axis is contiguous.
static int64_t loopAlongLastAxis(linalg::GenericOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  if (!isContiguousAlongLast(operand.get().getType()) || map.getNumResults() == 0)
    return -1;
  auto dim = dyn_cast<AffineDimExpr>(map.getResults().back());
  return dim ? static_cast<int64_t>(dim.getPosition()) : -1;
}

void LoopPlan::chooseVectorLoop() {
  OpOperand &output = op.getDpsInitsMutable()[0];
  int64_t candidate = loopAlongLastAxis(op, output);
  if (candidate >= 0 && candidate != rowLoop && extents[candidate] > 1) {
    bool everyOutput = llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &other) { return loopAlongLastAxis(op, other) == candidate; });
    vectorLoop = everyOutput ? candidate : -1;
    return;
  }
  if (op.getNumReductionLoops() == 0 || op.getNumDpsInits() != 1)
    return;
  // A reduction along the last axis of an input, by one operation that may take the elements in another order.
  BlockArgument accumulator = op.getBody()->getArguments().back();
  Operation *last = op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  if (!last || last->getNumOperands() != 2 || !accumulator.hasOneUse() || *accumulator.user_begin() != last || !arith::getNeutralElement(last))
    return;
  for (OpOperand *input : op.getDpsInputOperands()) {
    int64_t loop = loopAlongLastAxis(op, *input);
    if (loop >= 0 && loop != rowLoop && isReduction(loop) && extents[loop] > 1) {
      vectorLoop = loop;
      combiner = last;
      return;
    }
  }
}

bool LoopPlan::isRowLocal() const {
  if (rowLoop < 0)
    return false;
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<MemRefType>(operand.get().getType());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (int64_t axis = 0; type && axis < type.getRank(); ++axis)
      if (type.isDynamicDim(axis) && map.getResult(axis) != getAffineDimExpr(rowLoop, op.getContext()))
        return false;
  }
  for (auto load : op.getBody()->getOps<memref::LoadOp>())
    for (auto [axis, index] : llvm::enumerate(load.getIndices())) {
      auto loop = index.getDefiningOp<linalg::IndexOp>();
      if (load.getMemRefType().isDynamicDim(axis) && (!loop || static_cast<int64_t>(loop.getDim()) != rowLoop))
        return false;
    }
  return true;
}

int64_t LoopPlan::workOfRow() const {
  int64_t work = 1, cost = 1;
  for (auto [loop, extent] : llvm::enumerate(extents))
    if (static_cast<int64_t>(loop) != rowLoop)
      work *= extent;
  for (Operation &inner : *op.getBody())
    cost += isa<math::MathDialect>(inner.getDialect()) ? 10 : 1;
  return work * cost;
}

bool LoopPlan::takeOuterLoopForRows() {
  for (auto [loop, extent] : llvm::enumerate(extents))
    if (static_cast<int64_t>(loop) != vectorLoop && extent > 1 && !isReduction(loop)) {
      rowLoop = loop;
      return true;
    }
  return false;
}

//===-- The loops ---------------------------------------------------------------------------------------------===//

namespace {

/// The values of a body at one place: scalars that hold for the whole vector, and vectors (scalars at width 1).
struct Lanes {
  IRMapping values;
  DenseSet<Value> varying; // keys of `values` that differ from lane to lane
};

class LoopEmitter {
public:
  LoopEmitter(OpBuilder &builder, const LoopPlan &plan, Value row) : builder(builder), plan(plan), op(plan.op), loc(plan.op.getLoc()) {
    indices.resize(plan.extents.size());
    Value zero;
    for (auto [loop, extent] : llvm::enumerate(plan.extents)) {
      if (static_cast<int64_t>(loop) == plan.rowLoop)
        indices[loop] = row;
      else if (extent == 1)
        indices[loop] = zero ? zero : (zero = index(0));
      else if (static_cast<int64_t>(loop) != plan.vectorLoop)
        (plan.isReduction(loop) ? reductionLoops : parallelLoops).push_back(loop);
    }
  }

  void emit() { emitParallel(0); }

private:
  Value index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

  /// One loop around what `body` emits; carries `carried` and returns what it becomes.
  Value loop(int64_t first, int64_t end, int64_t step, Value carried, function_ref<Value(Value iv, Value carried)> body) {
    auto nest = scf::ForOp::create(builder, loc, index(first), index(end), index(step), carried ? ValueRange(carried) : ValueRange());
    OpBuilder::InsertionGuard guard(builder);
    carried ? builder.setInsertionPointToStart(nest.getBody()) : builder.setInsertionPoint(nest.getBody()->getTerminator());
    Value result = body(nest.getInductionVar(), carried ? Value(nest.getRegionIterArgs()[0]) : Value());
    if (carried)
      scf::YieldOp::create(builder, loc, result);
    return carried ? nest.getResult(0) : Value();
  }

  void emitParallel(size_t depth) {
    if (depth == parallelLoops.size())
      return emitInner();
    int64_t at = parallelLoops[depth];
    loop(0, plan.extents[at], 1, {}, [&](Value iv, Value) {
      indices[at] = iv;
      emitParallel(depth + 1);
      return Value();
    });
  }

  void emitInner() {
    bool reduces = op.getNumReductionLoops() > 0;
    if (plan.combiner)
      return emitVectorReduction();
    if (plan.vectorLoop < 0)
      return reduces ? emitAccumulation(1) : emitMap(1, uniformPart());
    Lanes uniform;
    if (!reduces)
      uniform = uniformPart();
    overPieces(plan.extents[plan.vectorLoop], [&](int64_t width) { reduces ? emitAccumulation(width) : emitMap(width, uniform); });
  }

  /// Runs `body` for vectors that cover [0, extent): a loop of wide ones, then single ones of 8, 4, 2, 1.
  void overPieces(int64_t extent, function_ref<void(int64_t width)> body) {
    int64_t width = LoopPlan::maxWidth;
    while (width > extent)
      width /= 2;
    int64_t done = extent / width * width;
    Value &iv = indices[plan.vectorLoop];
    if (done == width) {
      iv = index(0);
      body(width);
    } else {
      loop(0, done, width, {}, [&](Value at, Value) {
        iv = at;
        body(width);
        return Value();
      });
    }
    for (width /= 2; done < extent; width /= 2)
      if (extent - done >= width) {
        iv = index(done);
        body(width);
        done += width;
      }
  }

  //===-- Bodies ----------------------------------------------------------------------------------------------===//

  SmallVector<Value> address(AffineMap map) {
    SmallVector<Value> result;
    for (AffineExpr expr : map.getResults())
      result.push_back(isa<AffineDimExpr>(expr) ? indices[cast<AffineDimExpr>(expr).getPosition()] : index(cast<AffineConstantExpr>(expr).getValue()));
    return result;
  }

  bool varies(AffineMap map) const { return plan.vectorLoop >= 0 && map.isFunctionOfDim(plan.vectorLoop); }
  VectorType vectorOf(Type element, int64_t width) const { return VectorType::get({width}, element); }

  /// `width` elements along the vector axis.
  Value load(OpOperand &operand, int64_t width) {
    Value source = operand.get();
    if (!isa<MemRefType>(source.getType()))
      return source;
    AffineMap map = op.getMatchingIndexingMap(&operand);
    SmallVector<Value> at = address(map);
    if (width == 1 || !varies(map))
      return memref::LoadOp::create(builder, loc, source, at);
    if (loopAlongLastAxis(op, operand) == plan.vectorLoop && llvm::count_if(map.getResults(), [&](AffineExpr e) { return e.isFunctionOfDim(plan.vectorLoop); }) == 1)
      return vector::LoadOp::create(builder, loc, vectorOf(cast<MemRefType>(source.getType()).getElementType(), width), source, at);
    SmallVector<Value> elements;
    Value first = indices[plan.vectorLoop];
    for (int64_t lane = 0; lane < width; ++lane) {
      indices[plan.vectorLoop] = lane ? Value(arith::AddIOp::create(builder, loc, first, index(lane))) : first;
      elements.push_back(memref::LoadOp::create(builder, loc, source, address(map)));
    }
    indices[plan.vectorLoop] = first;
    return vector::FromElementsOp::create(builder, loc, vectorOf(elements[0].getType(), width), elements);
  }

  void store(Value value, OpOperand &output, int64_t width) {
    SmallVector<Value> at = address(op.getMatchingIndexingMap(&output));
    if (width == 1)
      memref::StoreOp::create(builder, loc, value, output.get(), at);
    else
      vector::StoreOp::create(builder, loc, isa<VectorType>(value.getType()) ? value : spread(value, width), output.get(), at);
  }

  Value spread(Value scalar, int64_t width) { return vector::BroadcastOp::create(builder, loc, vectorOf(scalar.getType(), width), scalar); }

  bool isVarying(Operation &inner, const Lanes &lanes) const {
    if (auto at = dyn_cast<linalg::IndexOp>(inner))
      return static_cast<int64_t>(at.getDim()) == plan.vectorLoop;
    return llvm::any_of(inner.getOperands(), [&](Value operand) { return lanes.varying.contains(operand); });
  }

  /// Operands and operations of the body that are the same along the vector axis. An accumulator varies.
  Lanes uniformPart() {
    Lanes lanes;
    for (OpOperand &operand : op->getOpOperands()) {
      BlockArgument argument = op.getMatchingBlockArgument(&operand);
      if (op.isDpsInit(&operand) || varies(op.getMatchingIndexingMap(&operand)))
        lanes.varying.insert(argument);
      else if (!argument.use_empty())
        lanes.values.map(argument, load(operand, 1));
    }
    for (Operation &inner : op.getBody()->without_terminator()) {
      if (isVarying(inner, lanes)) {
        lanes.varying.insert(inner.result_begin(), inner.result_end());
      } else if (auto at = dyn_cast<linalg::IndexOp>(inner)) {
        lanes.values.map(at.getResult(), indices[at.getDim()]);
      } else {
        builder.clone(inner, lanes.values);
      }
    }
    return lanes;
  }

  /// The results of the body at one place; `lanes` has its uniform part, and the accumulator if there is one.
  SmallVector<Value> evaluate(Lanes lanes, int64_t width, Operation *stopBefore = nullptr) {
    for (OpOperand &operand : op->getOpOperands()) {
      BlockArgument argument = op.getMatchingBlockArgument(&operand);
      if (!lanes.values.contains(argument) && !argument.use_empty() && (!stopBefore || !op.isDpsInit(&operand)))
        lanes.values.map(argument, load(operand, width));
    }
    for (Operation &inner : op.getBody()->without_terminator()) {
      if (&inner == stopBefore)
        break;
      if (isVarying(inner, lanes))
        lanes.values.map(inner.getResult(0), evaluateVarying(inner, lanes, width));
    }
    SmallVector<Value> results;
    ValueRange wanted = stopBefore ? stopBefore->getOperands() : op.getBody()->getTerminator()->getOperands();
    for (Value value : wanted)
      results.push_back(lanes.values.lookupOrDefault(value));
    return results;
  }

  Value evaluateVarying(Operation &inner, Lanes &lanes, int64_t width) {
    if (isa<linalg::IndexOp>(inner)) {
      Value first = indices[plan.vectorLoop];
      if (width == 1)
        return first;
      SmallVector<Attribute> offsets = llvm::map_to_vector(llvm::seq<int64_t>(0, width), [&](int64_t lane) -> Attribute { return builder.getIndexAttr(lane); });
      Value steps = arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(vectorOf(builder.getIndexType(), width), offsets));
      return arith::AddIOp::create(builder, loc, spread(first, width), steps);
    }
    if (width == 1)
      return builder.clone(inner, lanes.values)->getResult(0);
    if (auto load = dyn_cast<memref::LoadOp>(inner))
      return gather(load, lanes, width);
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands()) {
      Value mapped = lanes.values.lookupOrDefault(operand);
      operands.push_back(isa<VectorType>(mapped.getType()) ? mapped : spread(mapped, width));
    }
    return cloneOn(inner, operands, width);
  }

  /// The operation on other operands of `width` elements.
  Value cloneOn(Operation &inner, ValueRange operands, int64_t width) {
    Type element = inner.getResult(0).getType();
    OperationState state(loc, inner.getName(), operands, width == 1 ? element : Type(vectorOf(element, width)), llvm::to_vector(inner.getDiscardableAttrs()));
    state.propertiesAttr = inner.getPropertiesAsAttribute();
    return builder.create(state)->getResult(0);
  }

  Value combineVectors(Operation &combiner, Value low, Value high) {
    OperationState state(loc, combiner.getName(), {low, high}, low.getType(), llvm::to_vector(combiner.getDiscardableAttrs()));
    state.propertiesAttr = combiner.getPropertiesAsAttribute();
    return builder.create(state)->getResult(0);
  }

  Value gather(memref::LoadOp load, Lanes &lanes, int64_t width) {
    SmallVector<Value> at;
    bool onlyLast = isContiguousAlongLast(load.getMemRefType());
    for (auto [axis, position] : llvm::enumerate(load.getIndices())) {
      bool isLast = axis + 1 == load.getIndices().size();
      auto lane = position.getDefiningOp<linalg::IndexOp>();
      onlyLast &= isLast ? lane && static_cast<int64_t>(lane.getDim()) == plan.vectorLoop : !lanes.varying.contains(position);
      at.push_back(lanes.values.lookupOrDefault(position));
    }
    Type element = load.getMemRefType().getElementType();
    if (onlyLast) {
      at.back() = indices[plan.vectorLoop];
      return vector::LoadOp::create(builder, loc, vectorOf(element, width), load.getMemRef(), at);
    }
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < width; ++lane) {
      SmallVector<Value> own;
      for (Value position : at)
        own.push_back(isa<VectorType>(position.getType()) ? Value(vector::ExtractOp::create(builder, loc, position, lane)) : position);
      elements.push_back(memref::LoadOp::create(builder, loc, load.getMemRef(), own));
    }
    return vector::FromElementsOp::create(builder, loc, vectorOf(element, width), elements);
  }

  //===-- Kinds of inner loops --------------------------------------------------------------------------------===//

  void emitMap(int64_t width, const Lanes &uniform) {
    SmallVector<Value> results = evaluate(uniform, width);
    for (auto [value, output] : llvm::zip_equal(results, op.getDpsInitsMutable()))
      store(value, output, width);
  }

  /// Reduces for `width` neighbouring results at once, over the reduction loops in ascending order.
  void emitAccumulation(int64_t width) {
    OpOperand &output = op.getDpsInitsMutable()[0];
    Value start = plan.initial ? (width == 1 ? plan.initial : spread(plan.initial, width)) : load(output, width);
    Value result = accumulate(0, start, [&](Value accumulator) {
      Lanes lanes = uniformPart();
      lanes.values.map(op.getMatchingBlockArgument(&output), accumulator);
      Value next = evaluate(lanes, width)[0];
      return width > 1 && !isa<VectorType>(next.getType()) ? spread(next, width) : next;
    });
    store(result, output, width);
  }

  Value accumulate(size_t depth, Value accumulator, function_ref<Value(Value)> body) {
    if (depth == reductionLoops.size())
      return body(accumulator);
    int64_t at = reductionLoops[depth];
    return loop(0, plan.extents[at], 1, accumulator, [&](Value iv, Value carried) {
      indices[at] = iv;
      return accumulate(depth + 1, carried, body);
    });
  }

  /// Reduces along the vector axis: partial results side by side, combined in halves at the end, then the elements that fill no vector.
  void emitVectorReduction() {
    OpOperand &output = op.getDpsInitsMutable()[0];
    Operation &combiner = *plan.combiner;
    int64_t extent = plan.extents[plan.vectorLoop], width = LoopPlan::maxWidth;
    while (width > extent)
      width /= 2;
    int64_t whole = extent / width * width;
    Value neutral = arith::ConstantOp::create(builder, loc, *arith::getNeutralElement(&combiner));
    unsigned accumulatorSide = combiner.getOperand(0) == op.getMatchingBlockArgument(&output) ? 0 : 1;
    auto step = [&](Value accumulator, int64_t at) {
      Value element = evaluate(uniformPart(), at, &combiner)[1 - accumulatorSide];
      if (at > 1 && !isa<VectorType>(element.getType()))
        element = spread(element, at);
      return cloneOn(combiner, {accumulator, element}, at);
    };
    Value partial = accumulate(0, spread(neutral, width), [&](Value outer) {
      return loop(0, whole, width, outer, [&](Value iv, Value carried) {
        indices[plan.vectorLoop] = iv;
        return step(carried, width);
      });
    });
    for (int64_t half = width / 2; half >= 1; half /= 2) {
      SmallVector<int64_t> lower = llvm::to_vector(llvm::seq<int64_t>(0, half)), upper = llvm::to_vector(llvm::seq<int64_t>(half, 2 * half));
      Value low = vector::ShuffleOp::create(builder, loc, partial, partial, lower);
      Value high = vector::ShuffleOp::create(builder, loc, partial, partial, upper);
      partial = combineVectors(combiner, low, high);
    }
    Value result = plan.initial ? plan.initial : load(output, 1);
    result = cloneOn(combiner, {result, vector::ExtractOp::create(builder, loc, partial, 0).getResult()}, 1);
    if (whole < extent)
      result = accumulate(0, result, [&](Value outer) {
        return loop(whole, extent, 1, outer, [&](Value iv, Value carried) {
          indices[plan.vectorLoop] = iv;
          return step(carried, 1);
        });
      });
    store(result, output, 1);
  }

  OpBuilder &builder;
  const LoopPlan &plan;
  linalg::GenericOp op;
  Location loc;
  SmallVector<Value> indices; // of every loop, at the place where code is emitted
  SmallVector<int64_t> parallelLoops, reductionLoops;
};

} // namespace

void emitLoops(OpBuilder &builder, const LoopPlan &plan, Value row) { LoopEmitter(builder, plan, row).emit(); }

} // namespace quire
