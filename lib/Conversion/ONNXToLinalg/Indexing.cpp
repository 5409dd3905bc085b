// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for gathers: rows of an embedding, columns of a small tensor, elements by index.
#include "dialects/ONNX/ONNXShapeOps.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"

using namespace mlir;

namespace quire {
namespace {

/// One index that is known: a slice without its axis.
LogicalResult convertSingleGather(RuleContext &context, Value data, int64_t axis, int64_t index, RankedTensorType type, Value &result) {
  int64_t extent = rankedType(data).getDimSize(axis);
  if (ShapedType::isDynamic(extent))
    return context.refuse("it takes one row");
  Value piece = context.slice(data, axis, index < 0 ? index + extent : index, 1);
  result = context.reshape(piece, type);
  return result ? success() : context.refuse("it mixes rows with other axes");
}

LogicalResult convertGather(onnx::GatherOp op, RuleContext &context, MutableArrayRef<Value> results) {
  Value data = op->getOperand(0), indices = op->getOperand(1);
  RankedTensorType dataType = rankedType(data), indexType = rankedType(indices), type = rankedType(op->getResult(0));
  int64_t axis = op.getAxis() < 0 ? op.getAxis() + dataType.getRank() : op.getAxis();
  if (auto known = constantIntegers(indices); known && known->size() == 1)
    return convertSingleGather(context, data, axis, known->front(), type, results[0]);
  if (dataType.isDynamicDim(axis))
    return context.refuse("it gathers rows");
  OpBuilder &builder = context.builder;
  int64_t rank = type.getRank(), indexRank = indexType.getRank(), extent = dataType.getDimSize(axis);
  SmallVector<AffineExpr> reads;
  for (int64_t i = 0; i < indexRank; ++i)
    reads.push_back(builder.getAffineDimExpr(axis + i));
  AffineMap maps[] = {AffineMap::get(rank, 0, reads, builder.getContext()), builder.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  Value target = context.empty(type, context.rowsOf({data, indices}));
  results[0] = linalg::GenericOp::create(builder, context.loc, type, indices, target, maps, iterators,
                                         [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                                           SmallVector<Value> position;
                                           for (int64_t i = 0; i < axis; ++i)
                                             position.push_back(linalg::IndexOp::create(nested, loc, i));
                                           position.push_back(Emitter::wrapIndex(nested, loc, arguments[0], extent));
                                           for (int64_t i = axis + indexRank; i < rank; ++i)
                                             position.push_back(linalg::IndexOp::create(nested, loc, i));
                                           linalg::YieldOp::create(nested, loc, Emitter::extract(nested, loc, data, position));
                                         })
                   .getResult(0);
  return success();
}

LogicalResult convertGatherElements(onnx::GatherElementsOp op, RuleContext &context, MutableArrayRef<Value> results) {
  Value data = op->getOperand(0), indices = op->getOperand(1);
  RankedTensorType dataType = rankedType(data), type = rankedType(op->getResult(0));
  int64_t axis = op.getAxis() < 0 ? op.getAxis() + dataType.getRank() : op.getAxis();
  if (dataType.isDynamicDim(axis))
    return context.refuse("it gathers rows");
  int64_t extent = dataType.getDimSize(axis);
  results[0] = context.mapWithIndex(indices, type, context.rowsOf({data, indices}), [&](OpBuilder &b, Location loc, ValueRange elements, ValueRange index) {
    SmallVector<Value> position(index);
    position[axis] = Emitter::wrapIndex(b, loc, elements[0], extent);
    return Emitter::extract(b, loc, data, position);
  });
  return success();
}

/// The last axis of the indices holds the first positions of what is taken.
LogicalResult convertGatherND(onnx::GatherNDOp op, RuleContext &context, MutableArrayRef<Value> results) {
  Value data = op->getOperand(0), indices = op->getOperand(1);
  RankedTensorType dataType = rankedType(data), indexType = rankedType(indices), type = rankedType(op->getResult(0));
  int64_t outer = indexType.getRank() - 1, count = indexType.getShape().back();
  if (op.getBatchDims() != 0 || ShapedType::isDynamic(count))
    return context.refuse("batch_dims, or positions of unknown length");
  for (int64_t axis = 0; axis < count; ++axis)
    if (dataType.isDynamicDim(axis))
      return context.refuse("it gathers rows");
  results[0] = context.generate(type, context.rowsOf({data, indices}), [&](OpBuilder &b, Location loc, ValueRange index) {
    SmallVector<Value> position;
    for (int64_t axis = 0; axis < count; ++axis) {
      SmallVector<Value> at(index.take_front(outer));
      at.push_back(arith::ConstantIndexOp::create(b, loc, axis));
      position.push_back(Emitter::wrapIndex(b, loc, Emitter::extract(b, loc, indices, at), dataType.getDimSize(axis)));
    }
    llvm::append_range(position, index.drop_front(outer));
    return Emitter::extract(b, loc, data, position);
  });
  return success();
}

} // namespace

void addIndexingRules(RuleSet &rules) {
  rules.add<onnx::GatherOp>(convertGather);
  rules.add<onnx::GatherElementsOp>(convertGatherElements);
  rules.add<onnx::GatherNDOp>(convertGatherND);
}

} // namespace quire
