// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for rotary position embedding: pairs of features are rotated by the angles of the row's position.
#include "dialects/ONNX/ONNXAttentionOps.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"

using namespace mlir;

namespace quire {
namespace {

struct RotaryForm {
  Value input, cosine, sine;
  Value positions;         // null: the caches hold the angles of each row already
  int64_t heads = 0;       // of an input [1, rows, heads * features]
  int64_t rotated = 0;     // features that are rotated; 0: all
  bool interleaved = false; // pairs (2i, 2i + 1) instead of (i, i + rotated / 2)
};

/// The angles of every row: [1, rows, rotated / 2].
Value anglesOf(RuleContext &context, const RotaryForm &form, Value cache) {
  if (!form.positions)
    return cache;
  RankedTensorType cacheType = rankedType(cache), positionType = rankedType(form.positions);
  int64_t limit = cacheType.getDimSize(0);
  auto type = RankedTensorType::get({1, positionType.getDimSize(1), cacheType.getDimSize(1)}, cacheType.getElementType());
  OpBuilder &builder = context.builder;
  AffineMap maps[] = {AffineMap::get(3, 0, {builder.getAffineDimExpr(0), builder.getAffineDimExpr(1)}, builder.getContext()), builder.getMultiDimIdentityMap(3)};
  SmallVector<utils::IteratorType> iterators(3, utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, context.loc, type, form.positions, context.empty(type, context.rowsOf(ValueRange(form.positions))), maps, iterators,
                                   [&](OpBuilder &nested, Location loc, ValueRange arguments) {
                                     Value row = Emitter::wrapIndex(nested, loc, arguments[0], limit);
                                     Value column = linalg::IndexOp::create(nested, loc, 2);
                                     linalg::YieldOp::create(nested, loc, Emitter::extract(nested, loc, cache, {row, column}));
                                   })
      .getResult(0);
}

Value rotate(RuleContext &context, ValueRange inputs, RankedTensorType type, bool second) {
  return context.map(inputs, type, [&](OpBuilder &b, Location loc, ValueRange v) -> Value {
    // v: first feature, second feature, cosine, sine
    Value own = arith::MulFOp::create(b, loc, second ? v[1] : v[0], v[2]);
    Value other = arith::MulFOp::create(b, loc, second ? v[0] : v[1], v[3]);
    if (second)
      return arith::AddFOp::create(b, loc, own, other);
    return arith::SubFOp::create(b, loc, own, other);
  });
}

Value insertEverySecond(RuleContext &context, Value source, Value target, int64_t first) {
  OpBuilder &builder = context.builder;
  SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0)), sizes, strides(4, builder.getIndexAttr(1));
  for (int64_t extent : rankedType(source).getShape())
    sizes.push_back(ShapedType::isDynamic(extent) ? OpFoldResult(context.rowsOf(source)) : OpFoldResult(builder.getIndexAttr(extent)));
  offsets[3] = builder.getIndexAttr(first);
  strides[3] = builder.getIndexAttr(2);
  return tensor::InsertSliceOp::create(builder, context.loc, source, target, offsets, sizes, strides);
}

LogicalResult emitRotary(RuleContext &context, const RotaryForm &form, Value &result) {
  RankedTensorType type = rankedType(form.input);
  Value x = form.input;
  bool rowsFirst = type.getRank() == 3; // [1, rows, heads, features] instead of [1, heads, rows, features]
  if (rowsFirst) {
    if (form.heads <= 0 || type.isDynamicDim(2) || type.getDimSize(2) % form.heads != 0)
      return context.refuse("the number of heads is not known");
    x = context.reshape(x, RankedTensorType::get({type.getDimSize(0), type.getDimSize(1), form.heads, type.getDimSize(2) / form.heads}, type.getElementType()));
  }
  RankedTensorType shaped = x ? rankedType(x) : RankedTensorType();
  if (!shaped || shaped.getRank() != 4 || shaped.isDynamicDim(3) || shaped.getDimSize(0) != 1)
    return context.refuse("the input is neither [1, rows, heads * features] nor [1, heads, rows, features]");
  int64_t features = shaped.getDimSize(3), rotated = form.rotated > 0 ? form.rotated : features, half = rotated / 2;
  if (rankedType(form.cosine).getShape().back() != half)
    return context.refuse("expected caches of " + Twine(half) + " columns, but got " + Twine(rankedType(form.cosine).getShape().back()));
  Value caches[] = {form.cosine, form.sine}, angles[2];
  for (auto [cache, angle] : llvm::zip_equal(caches, angles)) {
    Value gathered = anglesOf(context, form, cache);
    RankedTensorType gatheredType = rankedType(gathered);
    int64_t rows = gatheredType.getDimSize(gatheredType.getRank() - 2);
    SmallVector<int64_t> shape = rowsFirst ? SmallVector<int64_t>{1, rows, 1, half} : SmallVector<int64_t>{1, 1, rows, half};
    angle = context.reshape(gathered, RankedTensorType::get(shape, gatheredType.getElementType()));
    if (!angle)
      return context.refuse("the caches do not have one row for each row of the input");
  }
  int64_t step = form.interleaved ? 2 : 1;
  Value first = context.slice(x, 3, 0, half, step), second = context.slice(x, 3, form.interleaved ? 1 : half, half, step);
  RankedTensorType halfType = rankedType(first);
  Value inputs[] = {first, second, angles[0], angles[1]};
  Value low = rotate(context, inputs, halfType, false), high = rotate(context, inputs, halfType, true);
  SmallVector<Value> parts;
  if (form.interleaved) {
    SmallVector<int64_t> shape(shaped.getShape());
    shape[3] = rotated;
    Value pairs = context.empty(RankedTensorType::get(shape, type.getElementType()), context.rowsOf(ValueRange(x)));
    parts.push_back(insertEverySecond(context, high, insertEverySecond(context, low, pairs, 0), 1));
  } else {
    parts = {low, high};
  }
  if (rotated < features)
    parts.push_back(context.slice(x, 3, rotated, features - rotated));
  result = context.reshape(context.concat(parts, 3, shaped), type);
  return success();
}

LogicalResult convertRotary(onnx::RotaryEmbeddingOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RotaryForm form{op->getOperand(0), op->getOperand(1), op->getOperand(2), {}};
  if (isPresent(op->getOperand(3)))
    form.positions = op->getOperand(3);
  form.heads = op.getNumHeads().value_or(0);
  form.rotated = op.getRotaryEmbeddingDim();
  form.interleaved = op.getInterleaved() != 0;
  return emitRotary(context, form, results[0]);
}

LogicalResult convertMSRotary(onnx::MSRotaryEmbeddingOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RotaryForm form{op->getOperand(0), op->getOperand(2), op->getOperand(3), op->getOperand(1)};
  if (rankedType(form.positions).getRank() != 2)
    return context.refuse("positions that are not given for each row");
  if (op.getScale().value_or(1.0f) != 1.0f)
    return context.refuse("scale");
  form.rotated = op.getRotaryEmbeddingDim();
  form.interleaved = op.getInterleaved().value_or(0) != 0;
  form.heads = op.getNumHeads().value_or(0);
  RankedTensorType type = rankedType(form.input);
  if (form.heads == 0 && form.rotated == 0 && type.getRank() == 3 && !type.isDynamicDim(2))
    form.heads = type.getDimSize(2) / (2 * rankedType(form.cosine).getDimSize(1));
  return emitRotary(context, form, results[0]);
}

} // namespace

void addRotaryRules(RuleSet &rules) {
  rules.add<onnx::RotaryEmbeddingOp>(convertRotary);
  rules.add<onnx::MSRotaryEmbeddingOp>(convertMSRotary);
}

} // namespace quire
