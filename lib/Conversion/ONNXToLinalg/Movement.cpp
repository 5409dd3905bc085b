// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for operators that move elements: reshapes, transposes, slices, concatenation, broadcasting, padding.
#include "dialects/ONNX/ONNXShapeOps.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"

using namespace mlir;

namespace quire {
namespace {

/// Reshape, Flatten, Squeeze, Unsqueeze: their types say everything, since `?` pairs with `?`.
template <typename OpTy> LogicalResult convertReshape(OpTy op, RuleContext &context, MutableArrayRef<Value> results) {
  results[0] = context.reshape(op->getOperand(0), rankedType(op->getResult(0)));
  return results[0] ? success() : context.refuse("it mixes rows with other axes");
}

LogicalResult convertIdentity(onnx::IdentityOp op, RuleContext &context, MutableArrayRef<Value> results) {
  results[0] = op->getOperand(0);
  return success();
}

LogicalResult convertTranspose(onnx::TransposeOp op, RuleContext &context, MutableArrayRef<Value> results) {
  int64_t rank = rankedType(op->getOperand(0)).getRank();
  SmallVector<int64_t> permutation;
  if (auto given = op.getPerm())
    permutation.assign(given->begin(), given->end());
  else
    for (int64_t axis = rank - 1; axis >= 0; --axis)
      permutation.push_back(axis);
  results[0] = context.transpose(op->getOperand(0), permutation);
  return success();
}

/// Aligns the input with the result on the right and broadcasts it.
LogicalResult convertExpand(onnx::ExpandOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType source = rankedType(op->getOperand(0)), type = rankedType(op->getResult(0));
  if (!type.hasStaticShape() && source.hasStaticShape()) {
    // Only the shape has the rows: an element does not depend on them, but the number of rows must come from somewhere.
    return context.refuse("the rows come from the shape only");
  }
  results[0] = context.broadcast(op->getOperand(0), type);
  return success();
}

/// Axis by axis: an axis of n elements, r times, is [r, n] broadcast and joined.
LogicalResult convertTile(onnx::TileOp op, RuleContext &context, MutableArrayRef<Value> results) {
  auto repeats = constantIntegers(op->getOperand(1));
  if (!repeats)
    return context.refuse("repeats are no constant");
  Value value = op->getOperand(0);
  RankedTensorType source = rankedType(value);
  for (int64_t axis = 0; axis < source.getRank(); ++axis)
    if ((*repeats)[axis] != 1 && source.isDynamicDim(axis))
      return context.refuse("rows are repeated");
  for (int64_t axis = 0; axis < source.getRank(); ++axis) {
    int64_t count = (*repeats)[axis];
    if (count == 1)
      continue;
    SmallVector<int64_t> shape(rankedType(value).getShape());
    Type element = source.getElementType();
    SmallVector<int64_t> single(shape), wide(shape), joined(shape);
    single.insert(single.begin() + axis, 1);
    wide.insert(wide.begin() + axis, count);
    joined[axis] *= count;
    Value split = context.reshape(value, RankedTensorType::get(single, element));
    value = context.reshape(context.broadcast(split, RankedTensorType::get(wide, element)), RankedTensorType::get(joined, element));
  }
  results[0] = value;
  return success();
}

LogicalResult convertConcat(onnx::ConcatOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType type = rankedType(op->getResult(0));
  int64_t axis = op.getAxis() < 0 ? op.getAxis() + type.getRank() : op.getAxis();
  if (type.isDynamicDim(axis))
    return context.refuse("rows are joined");
  results[0] = context.concat(op->getOperands(), axis, type);
  return success();
}

LogicalResult convertSplit(onnx::SplitOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType source = rankedType(op->getOperand(0));
  int64_t axis = op.getAxis() < 0 ? op.getAxis() + source.getRank() : op.getAxis();
  if (source.isDynamicDim(axis))
    return context.refuse("rows are split");
  int64_t first = 0;
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results)) {
    int64_t count = rankedType(result).getDimSize(axis);
    value = context.slice(op->getOperand(0), axis, first, count);
    first += count;
  }
  return success();
}

/// One axis of a Slice, clamped as ONNX says.
struct Piece {
  int64_t axis, first, count, step;
};

std::optional<SmallVector<Piece>> piecesOf(onnx::SliceOp op, RankedTensorType source) {
  auto starts = constantIntegers(op->getOperand(1)), ends = constantIntegers(op->getOperand(2));
  if (!starts || !ends)
    return std::nullopt;
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, starts->size())), steps(starts->size(), 1);
  for (auto [operand, list] : {std::pair(op->getOperand(3), &axes), std::pair(op->getOperand(4), &steps)})
    if (isPresent(operand)) {
      auto given = constantIntegers(operand);
      if (!given)
        return std::nullopt;
      *list = *given;
    }
  SmallVector<Piece> pieces;
  for (size_t i = 0; i < starts->size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + source.getRank() : axes[i], step = steps[i], extent = source.getDimSize(axis);
    int64_t first = (*starts)[i], end = (*ends)[i];
    if (ShapedType::isDynamic(extent)) {
      if (first == 0 && step == 1 && end >= std::numeric_limits<int32_t>::max())
        continue;
      return std::nullopt;
    }
    first = first < 0 ? first + extent : first;
    end = end < 0 ? std::max<int64_t>(end, -extent - 1) + extent : end;
    first = step > 0 ? std::clamp<int64_t>(first, 0, extent) : std::clamp<int64_t>(first, 0, extent - 1);
    end = step > 0 ? std::clamp<int64_t>(end, 0, extent) : std::clamp<int64_t>(end, -1, extent - 1);
    int64_t count = step > 0 ? (end - first + step - 1) / step : (first - end - step - 1) / -step;
    pieces.push_back({axis, first, std::max<int64_t>(count, 0), step});
  }
  return pieces;
}

LogicalResult convertSlice(onnx::SliceOp op, RuleContext &context, MutableArrayRef<Value> results) {
  Value value = op->getOperand(0);
  auto pieces = piecesOf(op, rankedType(value));
  if (!pieces)
    return context.refuse("it slices rows or its bounds are no constants");
  if (llvm::any_of(*pieces, [](const Piece &piece) { return piece.step < 0; }))
    return context.refuse("negative step");
  for (const Piece &piece : *pieces)
    value = context.slice(value, piece.axis, piece.first, piece.count, piece.step);
  results[0] = value;
  return success();
}

/// Pads as [before..., after...] over all axes, or over the given ones.
std::optional<SmallVector<int64_t>> padsOf(onnx::PadOp op, int64_t rank) {
  auto given = constantIntegers(op->getOperand(1));
  if (!given || !isPresent(op->getOperand(3)))
    return given;
  auto axes = constantIntegers(op->getOperand(3));
  if (!axes)
    return std::nullopt;
  SmallVector<int64_t> pads(2 * rank, 0);
  for (auto [i, axis] : llvm::enumerate(*axes)) {
    int64_t at = axis < 0 ? axis + rank : axis;
    pads[at] = (*given)[i];
    pads[at + rank] = (*given)[i + axes->size()];
  }
  return pads;
}

LogicalResult convertPad(onnx::PadOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType source = rankedType(op->getOperand(0)), type = rankedType(op->getResult(0));
  int64_t rank = source.getRank();
  auto pads = padsOf(op, rank);
  if (!pads || op.getMode() != "constant")
    return context.refuse("pads are no constants, or the mode is not constant");
  if (llvm::any_of(*pads, [](int64_t pad) { return pad < 0; }))
    return context.refuse("negative pads");
  TypedAttr element = cast<TypedAttr>(context.builder.getZeroAttr(type.getElementType()));
  if (isPresent(op->getOperand(2))) {
    DenseElementsAttr given = constantOf(op->getOperand(2));
    if (!given)
      return context.refuse("the padding value is no constant");
    element = cast<TypedAttr>(*given.getValues<Attribute>().begin());
  }
  Value rows = context.rowsOf(ValueRange(op->getOperand(0)));
  SmallVector<OpFoldResult> offsets, sizes, strides(rank, context.builder.getIndexAttr(1));
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (source.isDynamicDim(axis) && ((*pads)[axis] || (*pads)[axis + rank]))
      return context.refuse("rows are padded");
    offsets.push_back(context.builder.getIndexAttr((*pads)[axis]));
    sizes.push_back(source.isDynamicDim(axis) ? OpFoldResult(rows) : OpFoldResult(context.builder.getIndexAttr(source.getDimSize(axis))));
  }
  Value target = context.filled(type, rows, element);
  results[0] = tensor::InsertSliceOp::create(context.builder, context.loc, op->getOperand(0), target, offsets, sizes, strides);
  return success();
}

} // namespace

void addMovementRules(RuleSet &rules) {
  rules.add<onnx::ReshapeOp>(convertReshape<onnx::ReshapeOp>);
  rules.add<onnx::FlattenOp>(convertReshape<onnx::FlattenOp>);
  rules.add<onnx::SqueezeOp>(convertReshape<onnx::SqueezeOp>);
  rules.add<onnx::UnsqueezeOp>(convertReshape<onnx::UnsqueezeOp>);
  rules.add<onnx::IdentityOp>(convertIdentity);
  rules.add<onnx::TransposeOp>(convertTranspose);
  rules.add<onnx::ExpandOp>(convertExpand);
  rules.add<onnx::TileOp>(convertTile);
  rules.add<onnx::ConcatOp>(convertConcat);
  rules.add<onnx::SplitOp>(convertSplit);
  rules.add<onnx::SliceOp>(convertSlice);
  rules.add<onnx::PadOp>(convertPad);
}

} // namespace quire
