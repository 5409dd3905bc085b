// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds the linalg and tensor operations that `onnx` operators become.
#include "dialects/ONNX/ONNXControlOps.h"
#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Conversion/ONNXToLinalg/Emitter.h"

#include "dialects/KVRT/KVRT.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace quire {

DenseElementsAttr constantOf(Value value) {
  DenseElementsAttr elements;
  if (auto constant = value.getDefiningOp<onnx::ConstantOp>())
    return dyn_cast<DenseElementsAttr>(constant.getValue());
  if (matchPattern(value, m_Constant(&elements)))
    return elements;
  return {};
}

std::optional<SmallVector<int64_t>> constantIntegers(Value value) {
  DenseElementsAttr elements = constantOf(value);
  if (!elements || !elements.getElementType().isIntOrIndex())
    return std::nullopt;
  SmallVector<int64_t> result;
  for (const APInt &element : elements.getValues<APInt>())
    result.push_back(element.getSExtValue());
  return result;
}

bool isPresent(Value value) { return value && !isa<NoneType>(value.getType()); }

RankedTensorType withElement(RankedTensorType type, Type element) { return RankedTensorType::get(type.getShape(), element); }

RankedTensorType rankedType(Value value) { return cast<RankedTensorType>(value.getType()); }

Type computeType(Type element) {
  return element.isF16() || element.isBF16() ? Type(Float32Type::get(element.getContext())) : element;
}

Value Emitter::index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }

Value Emitter::scalar(OpBuilder &builder, Location loc, Type type, double value) {
  if (isa<FloatType>(type))
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
  return arith::ConstantOp::create(builder, loc, builder.getIntegerAttr(type, static_cast<int64_t>(value)));
}

/// The operand of an `onnx` operator that its result has the rows of; null if there is none.
static Value operandWithRows(Operation *op) {
  if (!isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()))
    return {};
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType()); type && !type.hasStaticShape())
      return operand;
  return {};
}

Value Emitter::rowsOf(Value value) {
  Value source = value;
  while (Operation *op = source.getDefiningOp()) {
    if (auto empty = dyn_cast<tensor::EmptyOp>(op))
      return empty.getDynamicSizes().front();
    if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
      source = destination.getTiedOpOperand(cast<OpResult>(source))->get();
    else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::ExtractSliceOp, tensor::CastOp>(op))
      source = op->getOperand(0);
    else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
      source = insert.getDest();
    else if (auto read = dyn_cast<kvrt::ReadOp>(op))
      return kvrt::ExtentOp::create(builder, loc, read.getBatch(), read.getField() == kvrt::Field::selected ? kvrt::Extent::selected : kvrt::Extent::tokens);
    else if (Value operand = operandWithRows(op))
      source = operand;
    else
      break;
  }
  auto type = rankedType(source);
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (type.isDynamicDim(axis))
      return tensor::DimOp::create(builder, loc, source, axis);
  return {};
}

Value Emitter::rowsOf(ValueRange values) {
  for (Value value : values)
    if (!rankedType(value).hasStaticShape())
      return rowsOf(value);
  return {};
}

Value Emitter::empty(RankedTensorType type, Value rows) {
  return tensor::EmptyOp::create(builder, loc, type, type.hasStaticShape() ? ValueRange() : ValueRange(rows));
}

Value Emitter::filled(RankedTensorType type, Value rows, TypedAttr element) {
  Value value = arith::ConstantOp::create(builder, loc, element);
  return linalg::FillOp::create(builder, loc, value, empty(type, rows)).getResult(0);
}

/// How `input` is read when it is broadcast to `type`.
static AffineMap broadcastMap(RankedTensorType input, RankedTensorType type) {
  MLIRContext *context = type.getContext();
  SmallVector<AffineExpr> results;
  int64_t offset = type.getRank() - input.getRank();
  for (int64_t axis = 0; axis < input.getRank(); ++axis) {
    bool single = input.getDimSize(axis) == 1 && type.getDimSize(axis + offset) != 1;
    results.push_back(single ? getAffineConstantExpr(0, context) : getAffineDimExpr(axis + offset, context));
  }
  return AffineMap::get(type.getRank(), 0, results, context);
}

linalg::GenericOp Emitter::generic(ValueRange inputs, RankedTensorType type, Value rows, function_ref<Value(OpBuilder &, Location, ValueRange)> body) {
  SmallVector<AffineMap> maps;
  for (Value input : inputs)
    maps.push_back(broadcastMap(rankedType(input), type));
  maps.push_back(AffineMap::getMultiDimIdentityMap(type.getRank(), type.getContext()));
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, type, inputs, empty(type, rows), maps, iterators,
                                   [&](OpBuilder &nested, Location at, ValueRange arguments) {
                                     linalg::YieldOp::create(nested, at, body(nested, at, arguments.drop_back()));
                                   });
}

/// A constant that has the same value everywhere becomes a scalar in the body instead of an operand.
static TypedAttr splatOf(Value value) {
  DenseElementsAttr elements = constantOf(value);
  return elements && elements.isSplat() ? cast<TypedAttr>(elements.getSplatValue<Attribute>()) : TypedAttr();
}

Value Emitter::mapExact(ValueRange inputs, RankedTensorType type, ElementFn fn) {
  SmallVector<Value> operands;
  SmallVector<TypedAttr> splats;
  for (Value input : inputs) {
    splats.push_back(splatOf(input));
    if (!splats.back())
      operands.push_back(input);
  }
  return generic(operands, type, rowsOf(operands), [&](OpBuilder &nested, Location at, ValueRange arguments) {
           SmallVector<Value> elements;
           for (TypedAttr splat : splats) {
             if (splat) {
               elements.push_back(arith::ConstantOp::create(nested, at, splat));
             } else {
               elements.push_back(arguments.front());
               arguments = arguments.drop_front();
             }
           }
           return fn(nested, at, elements);
         }).getResult(0);
}

Value Emitter::map(ValueRange inputs, RankedTensorType type, ElementFn fn) {
  return mapExact(inputs, type, [&](OpBuilder &nested, Location at, ValueRange elements) {
    SmallVector<Value> wide;
    for (Value element : elements)
      wide.push_back(castElement(nested, at, element, computeType(element.getType())));
    Value result = fn(nested, at, wide);
    bool narrow = isa<FloatType>(result.getType()) && isa<FloatType>(type.getElementType());
    return narrow ? castElement(nested, at, result, type.getElementType()) : result;
  });
}

static SmallVector<Value> indicesOf(OpBuilder &builder, Location loc, int64_t rank) {
  SmallVector<Value> indices;
  for (int64_t axis = 0; axis < rank; ++axis)
    indices.push_back(linalg::IndexOp::create(builder, loc, axis));
  return indices;
}

Value Emitter::generate(RankedTensorType type, Value rows, IndexFn fn) {
  return mapWithIndex({}, type, rows, [&](OpBuilder &nested, Location at, ValueRange, ValueRange indices) { return fn(nested, at, indices); });
}

Value Emitter::mapWithIndex(ValueRange inputs, RankedTensorType type, Value rows, function_ref<Value(OpBuilder &, Location, ValueRange, ValueRange)> fn) {
  return generic(inputs, type, rows, [&](OpBuilder &nested, Location at, ValueRange arguments) {
           return fn(nested, at, arguments, indicesOf(nested, at, type.getRank()));
         }).getResult(0);
}

Value Emitter::reduce(Value input, ArrayRef<int64_t> axes, Type accumulator, double initial,
                      function_ref<Value(OpBuilder &, Location, Value, Value)> combine) {
  auto type = rankedType(input);
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  SmallVector<AffineExpr> results;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    results.push_back(builder.getAffineDimExpr(axis));
  for (int64_t axis : axes) {
    shape[axis] = 1;
    iterators[axis] = utils::IteratorType::reduction;
    results[axis] = builder.getAffineConstantExpr(0);
  }
  auto resultType = RankedTensorType::get(shape, accumulator);
  TypedAttr first = isa<FloatType>(accumulator) ? TypedAttr(builder.getFloatAttr(accumulator, initial))
                                                : TypedAttr(builder.getIntegerAttr(accumulator, static_cast<int64_t>(initial)));
  Value start = filled(resultType, resultType.hasStaticShape() ? Value() : rowsOf(input), first);
  AffineMap maps[] = {builder.getMultiDimIdentityMap(type.getRank()), AffineMap::get(type.getRank(), 0, results, builder.getContext())};
  return linalg::GenericOp::create(builder, loc, resultType, input, start, maps, iterators,
                                   [&](OpBuilder &nested, Location at, ValueRange arguments) {
                                     Value element = castElement(nested, at, arguments[0], accumulator);
                                     linalg::YieldOp::create(nested, at, combine(nested, at, arguments[1], element));
                                   })
      .getResult(0);
}

namespace {
/// Axes of two shapes that hold the same elements: source[first] pairs with target[second].
struct AxisGroups {
  SmallVector<ReassociationIndices> source, target;
  SmallVector<int64_t> extents;
};

/// Number of elements of some axes: a static factor and the number of `?`.
struct Volume {
  int64_t factor = 1, dynamic = 0;
  void take(int64_t extent) { ShapedType::isDynamic(extent) ? void(++dynamic) : void(factor *= extent); }
  bool operator==(const Volume &other) const { return factor == other.factor && dynamic == other.dynamic; }
};
} // namespace

/// The finest common grouping of two shapes; nothing if rows would be mixed with other axes.
static std::optional<AxisGroups> groupAxes(ArrayRef<int64_t> source, ArrayRef<int64_t> target) {
  AxisGroups groups;
  size_t i = 0, j = 0;
  while (i < source.size() && j < target.size()) {
    ReassociationIndices from = {static_cast<int64_t>(i)}, to = {static_cast<int64_t>(j)};
    Volume a, b;
    a.take(source[i++]);
    b.take(target[j++]);
    while (!(a == b)) {
      bool sourceIsBehind = a.dynamic != b.dynamic ? a.dynamic < b.dynamic : a.factor < b.factor;
      if (sourceIsBehind ? i == source.size() : j == target.size())
        return std::nullopt;
      if (sourceIsBehind) {
        from.push_back(i);
        a.take(source[i++]);
      } else {
        to.push_back(j);
        b.take(target[j++]);
      }
    }
    if (a.dynamic && a.factor != 1)
      return std::nullopt;
    groups.source.push_back(from);
    groups.target.push_back(to);
    groups.extents.push_back(a.dynamic ? ShapedType::kDynamic : a.factor);
  }
  for (; i < source.size(); ++i) {
    if (source[i] != 1)
      return std::nullopt;
    if (!groups.source.empty())
      groups.source.back().push_back(i);
  }
  for (; j < target.size(); ++j) {
    if (target[j] != 1)
      return std::nullopt;
    if (!groups.target.empty())
      groups.target.back().push_back(j);
  }
  return groups;
}

Value Emitter::reshape(Value input, RankedTensorType type) {
  auto source = rankedType(input);
  if (source == type)
    return input;
  std::optional<AxisGroups> groups = groupAxes(source.getShape(), type.getShape());
  if (!groups)
    return {};
  auto middle = RankedTensorType::get(groups->extents, source.getElementType());
  Value result = input;
  if (middle.getRank() != source.getRank())
    result = tensor::CollapseShapeOp::create(builder, loc, middle, result, groups->source);
  if (middle.getRank() == type.getRank())
    return result;
  SmallVector<OpFoldResult> extents;
  for (int64_t extent : type.getShape())
    extents.push_back(ShapedType::isDynamic(extent) ? OpFoldResult(rowsOf(input)) : OpFoldResult(builder.getIndexAttr(extent)));
  return tensor::ExpandShapeOp::create(builder, loc, type, result, groups->target, extents);
}

Value Emitter::transpose(Value input, ArrayRef<int64_t> permutation) {
  auto source = rankedType(input);
  int64_t rank = source.getRank();
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> reads(rank);
  for (int64_t axis = 0; axis < rank; ++axis) {
    shape.push_back(source.getDimSize(permutation[axis]));
    reads[permutation[axis]] = builder.getAffineDimExpr(axis);
  }
  auto type = RankedTensorType::get(shape, source.getElementType());
  // Moving extents of 1 changes no order: a view.
  SmallVector<int64_t> order;
  for (int64_t axis : permutation)
    if (source.getDimSize(axis) != 1)
      order.push_back(axis);
  if (llvm::is_sorted(order))
    if (Value view = reshape(input, type))
      return view;
  AffineMap maps[] = {AffineMap::get(rank, 0, reads, builder.getContext()), builder.getMultiDimIdentityMap(rank)};
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  Value target = empty(type, type.hasStaticShape() ? Value() : rowsOf(input));
  return linalg::GenericOp::create(builder, loc, type, input, target, maps, iterators,
                                   [](OpBuilder &nested, Location at, ValueRange arguments) { linalg::YieldOp::create(nested, at, arguments[0]); })
      .getResult(0);
}

Value Emitter::broadcast(Value input, RankedTensorType type) {
  if (rankedType(input) == type)
    return input;
  return mapExact(input, type, [](OpBuilder &, Location, ValueRange elements) { return elements[0]; });
}

Value Emitter::slice(Value input, int64_t axis, int64_t first, int64_t count, int64_t step) {
  auto source = rankedType(input);
  if (first == 0 && step == 1 && count == source.getDimSize(axis))
    return input;
  SmallVector<OpFoldResult> offsets(source.getRank(), builder.getIndexAttr(0)), sizes, strides(source.getRank(), builder.getIndexAttr(1));
  SmallVector<int64_t> shape(source.getShape());
  shape[axis] = count;
  if (count == 0)
    return empty(RankedTensorType::get(shape, source.getElementType()), source.hasStaticShape() ? Value() : rowsOf(input));
  for (int64_t extent : shape)
    sizes.push_back(ShapedType::isDynamic(extent) ? OpFoldResult(rowsOf(input)) : OpFoldResult(builder.getIndexAttr(extent)));
  offsets[axis] = builder.getIndexAttr(first);
  strides[axis] = builder.getIndexAttr(step);
  return tensor::ExtractSliceOp::create(builder, loc, RankedTensorType::get(shape, source.getElementType()), input, offsets, sizes, strides);
}

Value Emitter::concat(ValueRange inputs, int64_t axis, RankedTensorType type) {
  if (inputs.size() == 1)
    return inputs[0];
  Value rows = rowsOf(inputs);
  Value result = empty(type, rows);
  int64_t first = 0;
  for (Value input : inputs) {
    auto part = rankedType(input);
    if (part.getDimSize(axis) == 0)
      continue;
    SmallVector<OpFoldResult> offsets(part.getRank(), builder.getIndexAttr(0)), sizes, strides(part.getRank(), builder.getIndexAttr(1));
    for (int64_t extent : part.getShape())
      sizes.push_back(ShapedType::isDynamic(extent) ? OpFoldResult(rows) : OpFoldResult(builder.getIndexAttr(extent)));
    offsets[axis] = builder.getIndexAttr(first);
    first += part.getDimSize(axis);
    result = tensor::InsertSliceOp::create(builder, loc, input, result, offsets, sizes, strides);
  }
  return result;
}

Value Emitter::castElement(OpBuilder &builder, Location loc, Value element, Type type) {
  Type source = element.getType();
  if (source == type)
    return element;
  auto sourceFloat = dyn_cast<FloatType>(source), targetFloat = dyn_cast<FloatType>(type);
  if (sourceFloat && targetFloat) {
    if (sourceFloat.getWidth() < targetFloat.getWidth())
      return arith::ExtFOp::create(builder, loc, type, element);
    if (sourceFloat.getWidth() > targetFloat.getWidth())
      return arith::TruncFOp::create(builder, loc, type, element);
    Value wide = arith::ExtFOp::create(builder, loc, builder.getF32Type(), element);
    return arith::TruncFOp::create(builder, loc, type, wide);
  }
  if (type.isInteger(1)) {
    Value zero = scalar(builder, loc, source, 0);
    if (sourceFloat)
      return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNE, element, zero);
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, element, zero);
  }
  if (sourceFloat)
    return arith::FPToSIOp::create(builder, loc, type, element);
  bool isUnsigned = source.isInteger(1);
  if (targetFloat) {
    Type wide = computeType(type);
    Value result = isUnsigned ? Value(arith::UIToFPOp::create(builder, loc, wide, element)) : Value(arith::SIToFPOp::create(builder, loc, wide, element));
    return castElement(builder, loc, result, type);
  }
  if (source.getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(builder, loc, type, element);
  if (isUnsigned)
    return arith::ExtUIOp::create(builder, loc, type, element);
  return arith::ExtSIOp::create(builder, loc, type, element);
}

Value Emitter::convert(Value input, Type element) {
  auto source = rankedType(input);
  if (source.getElementType() == element)
    return input;
  return mapExact(input, withElement(source, element),
                  [&](OpBuilder &nested, Location at, ValueRange elements) { return castElement(nested, at, elements[0], element); });
}

Value Emitter::extract(OpBuilder &builder, Location loc, Value tensor, ValueRange index) { return tensor::ExtractOp::create(builder, loc, tensor, index); }

Value Emitter::wrapIndex(OpBuilder &builder, Location loc, Value element, int64_t extent) {
  Value zero = scalar(builder, loc, element.getType(), 0);
  Value shifted = arith::AddIOp::create(builder, loc, element, scalar(builder, loc, element.getType(), static_cast<double>(extent)));
  Value isNegative = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, element, zero);
  Value wrapped = arith::SelectOp::create(builder, loc, isNegative, shifted, element);
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), wrapped);
}

} // namespace quire
