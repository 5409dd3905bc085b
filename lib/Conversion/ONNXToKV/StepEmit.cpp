// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emits the planned values of a ragged step.
#include "lib/Conversion/ONNXToKV/StepBuilder.h"

#include "dialects/ONNX/ONNXOps.h"

using namespace mlir;

namespace quire {

Value StepBuilder::constant(Location loc, ArrayRef<int64_t> values, Type element, ArrayRef<int64_t> shape) {
  auto type = RankedTensorType::get(shape, element);
  SmallVector<Attribute> attributes;
  for (int64_t value : values)
    attributes.push_back(isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, double(value)))
                                                 : Attribute(builder.getIntegerAttr(element, value)));
  return onnx::ConstantOp::create(builder, loc, type, DenseElementsAttr::get(type, attributes));
}

Value StepBuilder::vectorConstant(Location loc, ArrayRef<int64_t> values) {
  return constant(loc, values, builder.getI64Type(), {int64_t(values.size())});
}

Value StepBuilder::positions(Location loc) {
  if (!positionRows) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&step.getBody().front());
    positionRows = kv::PositionsOp::create(builder, loc, RankedTensorType::get({1, ShapedType::kDynamic}, builder.getI64Type()), batch);
  }
  return positionRows;
}

Value StepBuilder::emitReshape(Location loc, Value input, RankedTensorType type) {
  if (input.getType() == type)
    return input;
  SmallVector<int64_t> shape = llvm::map_to_vector(type.getShape(), [](int64_t size) { return ShapedType::isDynamic(size) ? -1 : size; });
  return onnx::ReshapeOp::create(builder, loc, type, input, vectorConstant(loc, shape));
}

/// `[rows]` of 0: whatever a position is, 0 times it is 0.
Value StepBuilder::zeroOfEachRow(Location loc) {
  if (!zeroRows) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfter(positions(loc).getDefiningOp());
    auto type = RankedTensorType::get({ShapedType::kDynamic}, builder.getI64Type());
    Value rows = emitReshape(loc, positionRows, type);
    zeroRows = onnx::MulOp::create(builder, loc, type, rows, constant(loc, {0}, builder.getI64Type(), {}));
  }
  return zeroRows;
}

/// A value that is the same for every row, as `type`, whose axes are its own, aligned on the right. The number of rows is in no operand but the positions, so the value is
/// a table of one row of which each row of the step takes that one: its bits. Null if it has several rows.
Value StepBuilder::repeatRow(Location loc, Value row, RankedTensorType type) {
  auto rowType = cast<RankedTensorType>(row.getType());
  SmallVector<int64_t> shape(type.getRank() - rowType.getRank(), 1);
  llvm::append_range(shape, rowType.getShape());
  const int64_t *axis = llvm::find(type.getShape(), ShapedType::kDynamic);
  int64_t rows = axis - type.getShape().begin();
  if (axis == type.getShape().end() || shape[rows] != 1)
    return nullptr;
  Value table = emitReshape(loc, row, RankedTensorType::get(shape, type.getElementType()));
  shape[rows] = ShapedType::kDynamic;
  auto repeated = RankedTensorType::get(shape, type.getElementType());
  Value result = onnx::GatherOp::create(builder, loc, repeated, table, zeroOfEachRow(loc), builder.getI64IntegerAttr(rows));
  if (repeated == type)
    return result;
  SmallVector<int64_t> target(type.getShape());
  target[rows] = 1; // the rows are there
  return onnx::ExpandOp::create(builder, loc, type, result, vectorConstant(loc, target));
}

/// An integer expression over the position and generic indices, broadcast to `extents`.
Value StepBuilder::emitExpr(Location loc, Expr e, ArrayRef<Expr> extents, int tokenAxis) {
  Type i64 = builder.getI64Type();
  unsigned rank = extents.size();
  auto typeOf = [&](Value a, Value b, Type element) {
    auto left = cast<RankedTensorType>(a.getType()), right = cast<RankedTensorType>(b.getType());
    SmallVector<int64_t> shape;
    for (auto [x, y] : llvm::zip_equal(left.getShape(), right.getShape()))
      shape.push_back(x == 1 ? y : x);
    return RankedTensorType::get(shape, element);
  };
  SmallVector<int64_t> ones(rank, 1);
  if (std::optional<int64_t> number = exprs.constInt(e))
    return constant(loc, {*number}, i64, ones);
  if (e == model.positionSymbol() && tokenAxis >= 0) {
    SmallVector<int64_t> shape = ones;
    shape[tokenAxis] = ShapedType::kDynamic;
    return emitReshape(loc, positions(loc), RankedTensorType::get(shape, i64));
  }
  for (unsigned axis = 0; axis < rank; ++axis)
    if (e == genericIndex(exprs, axis, extents[axis])) {
      std::optional<int64_t> size = exprs.constInt(extents[axis]);
      if (!size)
        return nullptr;
      SmallVector<int64_t> values(llvm::to_vector(llvm::seq<int64_t>(0, *size))), shape = ones;
      shape[axis] = *size;
      return constant(loc, values, i64, shape);
    }
  auto binary = [&](auto create, Expr left, Expr right) -> Value {
    Value a = emitExpr(loc, left, extents, tokenAxis), b = emitExpr(loc, right, extents, tokenAxis);
    return a && b ? create(a, b) : nullptr;
  };
  auto multiply = [&](Value a, Value b) -> Value { return onnx::MulOp::create(builder, loc, typeOf(a, b, i64), a, b); };
  if (e->is(ExprKind::Poly)) {
    Value sum;
    for (const Term &term : exprs.termsOf(e)) {
      if (term.coef.isFloat)
        return nullptr;
      Value product = constant(loc, {term.coef.i}, i64, ones);
      for (Expr atom : term.mono->atoms) {
        Value factor = emitExpr(loc, atom, extents, tokenAxis);
        if (!factor)
          return nullptr;
        product = multiply(product, factor);
      }
      sum = sum ? Value(onnx::AddOp::create(builder, loc, typeOf(sum, product, i64), sum, product)) : product;
    }
    return sum;
  }
  if (e->isCall(Fn::IntMin) || e->isCall(Fn::IntMax))
    return binary(
        [&](Value a, Value b) -> Value {
          if (e->isCall(Fn::IntMin))
            return onnx::MinOp::create(builder, loc, typeOf(a, b, i64), ValueRange{a, b});
          return onnx::MaxOp::create(builder, loc, typeOf(a, b, i64), ValueRange{a, b});
        },
        e->args[0], e->args[1]);
  // Truncating division is floor division where the dividend is not negative.
  if (e->isCall(Fn::Div) && exprs.nonNeg(e->args[0]))
    return binary([&](Value a, Value b) -> Value { return onnx::DivOp::create(builder, loc, typeOf(a, b, i64), a, b); }, e->args[0], e->args[1]);
  if (e->isCall(Fn::Mod))
    return binary([&](Value a, Value b) -> Value { return onnx::ModOp::create(builder, loc, typeOf(a, b, i64), a, b); }, e->args[0], e->args[1]);
  return nullptr;
}

Value StepBuilder::emitInteger(Value value) {
  auto type = stepType(value);
  Location loc = value.getLoc();
  if (std::optional<SmallVector<int64_t>> elements = constantElements(value)) {
    SmallVector<int64_t> shape;
    for (Expr extent : model.elementOf(value)->extents)
      shape.push_back(*exprs.constInt(exprs.subst(extent, exprs.B(), exprs.num(1))));
    return constant(loc, *elements, cast<ShapedType>(value.getType()).getElementType(), shape);
  }
  const SymbolicTensor &tensor = *model.elementOf(value);
  Value result = type ? emitExpr(loc, model.asIntegerOfPosition(value), tensor.extents, model.tokenAxis(value)) : nullptr;
  if (!result) {
    fail(loc, "not implemented: integers of this form: " + exprs.str(tensor.element));
    return nullptr;
  }
  Type element = type->getElementType();
  auto resultType = cast<RankedTensorType>(result.getType());
  if (element != resultType.getElementType()) {
    resultType = RankedTensorType::get(resultType.getShape(), element);
    result = onnx::CastOp::create(builder, loc, resultType, result, TypeAttr::get(element));
  }
  if (resultType == *type)
    return result;
  // What does not vary along an axis is repeated along it.
  SmallVector<int64_t> shape = llvm::map_to_vector(type->getShape(), [](int64_t size) { return ShapedType::isDynamic(size) ? -1 : size; });
  if (llvm::is_contained(shape, -1) && resultType.hasStaticShape())
    return repeatRow(loc, result, *type);
  for (int64_t &size : shape)
    size = size == -1 ? 1 : size;
  return onnx::ExpandOp::create(builder, loc, *type, result, vectorConstant(loc, shape));
}

Value StepBuilder::emitSlice(Operation *op, Value value) {
  auto slice = cast<onnx::SliceOp>(op);
  const SymbolicTensor &from = *model.elementOf(slice.getData()), &to = *model.elementOf(value);
  std::optional<SmallVector<int64_t>> starts = constantElements(slice.getStarts()), axes, steps;
  if (!isa<NoneType>(slice.getAxes().getType()))
    axes = constantElements(slice.getAxes());
  if (!isa<NoneType>(slice.getSteps().getType()))
    steps = constantElements(slice.getSteps());
  SmallVector<int64_t> newStarts, newEnds, newAxes, newSteps;
  const SymbolicTensor *startVector = model.elementOf(slice.getStarts());
  int64_t count = starts ? int64_t(starts->size()) : (startVector->rank() ? exprs.constInt(startVector->extents[0]).value_or(-1) : 1);
  for (int64_t i = 0; i < count; ++i) {
    int64_t axis = axes ? (*axes)[i] : i;
    axis += axis < 0 ? int64_t(from.rank()) : 0;
    std::optional<int64_t> size = exprs.constInt(from.extents[axis]), length = exprs.constInt(to.extents[axis]);
    if (from.extents[axis] == to.extents[axis] && (!steps || (*steps)[i] == 1))
      continue;
    if (!size || !length || !starts) {
      fail(op, "not implemented: a slice with bounds that are not constant");
      return nullptr;
    }
    int64_t step = steps ? (*steps)[i] : 1, start = (*starts)[i];
    start += start < 0 ? *size : 0;
    if (step < 1) {
      fail(op, "not implemented: a slice with a negative step");
      return nullptr;
    }
    newStarts.push_back(std::clamp<int64_t>(start, 0, *size));
    newEnds.push_back(std::min(*size, newStarts.back() + (*length - 1) * step + 1));
    newAxes.push_back(axis);
    newSteps.push_back(step);
  }
  Value data = emit(slice.getData());
  Location loc = op->getLoc();
  if (newAxes.empty())
    return data;
  return onnx::SliceOp::create(builder, loc, *stepType(value), data, vectorConstant(loc, newStarts), vectorConstant(loc, newEnds),
                               vectorConstant(loc, newAxes), vectorConstant(loc, newSteps));
}

Value StepBuilder::emitClone(Operation *op, Value value) {
  Location loc = op->getLoc();
  if (isa<NoneType>(value.getType()) || isa<onnx::ConstantOp, onnx::WeightOp>(op))
    return builder.clone(*op)->getResult(cast<OpResult>(value).getResultNumber());
  std::optional<RankedTensorType> type = stepType(value);
  if (isa<onnx::ReshapeOp, onnx::SqueezeOp, onnx::UnsqueezeOp, onnx::FlattenOp>(op))
    return emitReshape(loc, emit(op->getOperand(0)), *type);
  if (isa<onnx::SliceOp>(op))
    return emitSlice(op, value);
  if (isa<onnx::ExpandOp>(op)) {
    Value data = emit(op->getOperand(0));
    if (data.getType() == *type)
      return data;
    SmallVector<int64_t> shape = llvm::map_to_vector(type->getShape(), [](int64_t size) { return ShapedType::isDynamic(size) ? -1 : size; });
    if (llvm::is_contained(shape, -1) && cast<ShapedType>(data.getType()).hasStaticShape())
      return repeatRow(loc, data, *type);
    for (int64_t &size : shape)
      size = size == -1 ? 1 : size;
    return onnx::ExpandOp::create(builder, loc, *type, data, vectorConstant(loc, shape));
  }
  if (auto filled = dyn_cast<onnx::ConstantOfShapeOp>(op)) {
    SmallVector<int64_t> shape = llvm::map_to_vector(type->getShape(), [](int64_t size) { return ShapedType::isDynamic(size) ? 1 : size; });
    auto rowType = RankedTensorType::get(shape, type->getElementType());
    Attribute element = builder.getZeroAttr(type->getElementType());
    if (auto given = filled.getValue())
      element = *cast<DenseElementsAttr>(*given).getValues<Attribute>().begin();
    Value row = onnx::ConstantOp::create(builder, loc, rowType, DenseElementsAttr::get(rowType, element));
    return rowType == *type ? row : repeatRow(loc, row, *type);
  }
  if (isa<onnx::TileOp>(op)) {
    Value data = emit(op->getOperand(0));
    SmallVector<int64_t> repeats;
    for (auto [to, from] : llvm::zip_equal(type->getShape(), cast<ShapedType>(data.getType()).getShape()))
      repeats.push_back(to == from ? 1 : to / from);
    return onnx::TileOp::create(builder, loc, *type, data, vectorConstant(loc, repeats));
  }
  if (auto concat = dyn_cast<onnx::ConcatOp>(op)) {
    SmallVector<Value> parts;
    for (Value operand : op->getOperands())
      if (!isEmpty(operand))
        parts.push_back(emit(operand));
    if (llvm::is_contained(parts, Value()))
      return nullptr;
    return parts.size() == 1 ? parts.front() : Value(onnx::ConcatOp::create(builder, loc, *type, parts, concat.getAxisAttr()));
  }
  return emitCopy(op, value);
}

/// The same op on the emitted operands, with the types of the step.
Value StepBuilder::emitCopy(Operation *op, Value value) {
  IRMapping mapping;
  for (Value operand : op->getOperands()) {
    if (isa<onnx::SplitOp>(op) && operand != op->getOperand(0))
      continue;
    Value mapped = emit(operand);
    if (!mapped)
      return nullptr;
    mapping.map(operand, mapped);
  }
  if (isa<onnx::SplitOp>(op)) {
    auto split = cast<onnx::SplitOp>(op);
    SmallVector<int64_t> sizes;
    for (Value part : op->getResults()) {
      auto partType = stepType(part);
      int64_t rank = partType ? partType->getRank() : 0, axis = split.getAxis() < 0 ? split.getAxis() + rank : split.getAxis();
      if (!partType || partType->isDynamicDim(axis)) {
        fail(op, "not implemented: a split along the rows");
        return nullptr;
      }
      sizes.push_back(partType->getDimSize(axis));
    }
    mapping.map(op->getOperand(1), vectorConstant(op->getLoc(), sizes));
  }
  Operation *clone = builder.clone(*op, mapping);
  if (countsPartsOfRows(value)) { // the last axis has another number now
    if (auto norm = dyn_cast<onnx::SimplifiedLayerNormalizationOp>(clone))
      norm.setAxis(-1);
    else if (auto norm = dyn_cast<onnx::RMSNormalizationOp>(clone))
      norm.setAxis(-1);
    else if (auto norm = dyn_cast<onnx::LayerNormalizationOp>(clone))
      norm.setAxis(-1);
  }
  for (auto [from, to] : llvm::zip_equal(op->getResults(), clone->getResults())) {
    if (isa<NoneType>(from.getType()))
      continue;
    std::optional<RankedTensorType> resultType = stepType(from);
    if (!resultType) {
      if (!from.use_empty()) {
        fail(op, "a row needs a value whose extents are not those of the tokens of the call");
        return nullptr;
      }
      to.setType(builder.getNoneType()); // an optional result that nobody reads
      continue;
    }
    to.setType(*resultType);
    emitted[from] = to;
  }
  return clone->getResult(cast<OpResult>(value).getResultNumber());
}

/// Where an axis goes in `[rows, heads, features]`: 1, 2, 3; 0 for axes of extent 1.
static int placeOf(AxisKind kind) {
  switch (kind) {
  case AxisKind::Token:
  case AxisKind::BatchToken:
    return 1;
  case AxisKind::Head:
  case AxisKind::BatchHead:
  case AxisKind::HeadFeature:
    return 2;
  case AxisKind::Feature:
    return 3;
  default:
    return 0;
  }
}

/// `[rows, heads, features]` of a value whose axes have roles.
Value StepBuilder::emitRows(Location loc, const RoledValue &rows, int64_t heads, int64_t features) {
  Value value = emit(rows.value);
  if (!value)
    return nullptr;
  SmallVector<int64_t> order[4];
  for (auto [axis, role] : llvm::enumerate(rows.axes)) {
    order[placeOf(role.kind)].push_back(axis);
    if (placeOf(role.kind) == 0 && role.extent != 1) {
      fail(loc, "not implemented: rows with an axis that is no token, head or feature");
      return nullptr;
    }
  }
  SmallVector<int64_t> permutation;
  for (ArrayRef<int64_t> part : order)
    llvm::append_range(permutation, part);
  auto type = cast<RankedTensorType>(value.getType());
  if (!llvm::is_sorted(permutation)) {
    SmallVector<int64_t> shape = llvm::map_to_vector(permutation, [&](int64_t axis) { return type.getDimSize(axis); });
    value = onnx::TransposeOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), value,
                                      builder.getDenseI64ArrayAttr(permutation));
  }
  return emitReshape(loc, value, RankedTensorType::get({ShapedType::kDynamic, heads, features}, type.getElementType()));
}

Value StepBuilder::emitAttention(const AttentionSite &site) {
  Location loc = site.result.value.getLoc();
  StepState &state = states[{site.keyState, site.valueState}];
  auto stateType = cast<kv::StateType>(state.value.getType());
  Value query = emitRows(loc, site.query, site.heads, site.keyDim);
  if (!query)
    return nullptr;
  if (!state.appended) {
    Value key = emitRows(loc, model.states[site.keyState].newRows, site.kvHeads, site.keyDim);
    Value rows = emitRows(loc, model.states[site.valueState].newRows, site.kvHeads, site.valueDim);
    if (!key || !rows)
      return nullptr;
    state.value = kv::AppendOp::create(builder, loc, stateType, key, rows, state.value, batch);
    state.appended = true;
  }
  return emitResult(site, emitAttend(site, query, state.value));
}

Value StepBuilder::emitAttend(const AttentionSite &site, Value query, Value state) {
  Location loc = site.result.value.getLoc();
  Type element = cast<RankedTensorType>(query.getType()).getElementType();
  auto type = RankedTensorType::get({ShapedType::kDynamic, int64_t(site.heads), site.valueDim}, element);
  Value sinks;
  if (site.hasSinks) {
    auto sinkType = RankedTensorType::get({int64_t(site.heads)}, builder.getF32Type());
    SmallVector<float> values(site.sinks.begin(), site.sinks.end());
    sinks = onnx::ConstantOp::create(builder, loc, sinkType, DenseElementsAttr::get(sinkType, ArrayRef(values)));
  }
  SmallVector<float> slopes(site.slopes.begin(), site.slopes.end());
  auto size = builder.getI64IntegerAttr(site.maskSize);
  return kv::AttendOp::create(builder, loc, type, query, state, batch, sinks, builder.getF64FloatAttr(site.scale), builder.getBoolAttr(true),
                              site.softcap != 0 ? builder.getF64FloatAttr(site.softcap) : nullptr, site.mask == MaskKind::Window ? size : nullptr,
                              site.mask == MaskKind::Chunked ? size : nullptr,
                              site.biasKind == BiasKind::Alibi ? builder.getDenseF32ArrayAttr(slopes) : nullptr);
}

/// From `[rows, heads, features]` back to the axes that the graph's result has.
Value StepBuilder::emitResult(const AttentionSite &site, Value result) {
  Location loc = site.result.value.getLoc();
  std::optional<RankedTensorType> wanted = stepType(site.result.value);
  if (!wanted) {
    fail(loc, "the result of attention has extents that are not those of the tokens of the call");
    return nullptr;
  }
  auto type = cast<RankedTensorType>(result.getType());
  Type element = wanted->getElementType();
  if (element != type.getElementType()) {
    type = RankedTensorType::get(type.getShape(), element);
    result = onnx::CastOp::create(builder, loc, type, result, TypeAttr::get(element));
  }
  if (site.resultScale != 1) {
    auto scalar = RankedTensorType::get({}, element);
    Attribute factor = builder.getFloatAttr(element, site.resultScale);
    result = onnx::MulOp::create(builder, loc, type, result, onnx::ConstantOp::create(builder, loc, scalar, DenseElementsAttr::get(scalar, factor)));
  }
  SmallVector<int64_t> grouped, sizes;
  for (int place = 0; place < 4; ++place)
    for (auto [axis, role] : llvm::enumerate(site.result.axes))
      if (placeOf(role.kind) == place) {
        grouped.push_back(axis);
        sizes.push_back(wanted->getDimSize(axis));
      }
  result = emitReshape(loc, result, RankedTensorType::get(sizes, element));
  SmallVector<int64_t> inverse(grouped.size());
  for (auto [to, axis] : llvm::enumerate(grouped))
    inverse[axis] = to;
  if (llvm::is_sorted(inverse))
    return result;
  return onnx::TransposeOp::create(builder, loc, *wanted, result, builder.getDenseI64ArrayAttr(inverse));
}

Value StepBuilder::emitNow(Value value, const Plan &plan) {
  Location loc = value.getLoc();
  switch (plan.source) {
  case Source::Ids: {
    auto type = stepType(value);
    if (!type) {
      fail(loc, "expected ids of type [batch, tokens]");
      return nullptr;
    }
    Value result = ids;
    if (type->getElementType() != builder.getI64Type())
      result = onnx::CastOp::create(builder, loc, RankedTensorType::get({1, ShapedType::kDynamic}, type->getElementType()), result,
                                    TypeAttr::get(type->getElementType()));
    return emitReshape(loc, result, *type);
  }
  case Source::Integer:
    return emitInteger(value);
  case Source::SameAs:
    return emit(plan.needs[0]);
  case Source::RowsOfTable: {
    Value table = emit(plan.needs[0]);
    auto type = stepType(value);
    if (!table || !type)
      return nullptr;
    auto rowsType = RankedTensorType::get({ShapedType::kDynamic}, builder.getI64Type());
    Value index = emitReshape(loc, positions(loc), rowsType);
    if (plan.offset != 0)
      index = onnx::AddOp::create(builder, loc, rowsType, index, constant(loc, {plan.offset}, builder.getI64Type(), {}));
    return onnx::GatherOp::create(builder, loc, *type, table, index, builder.getI64IntegerAttr(plan.axis));
  }
  case Source::Attention:
    return emitAttention(*plan.site);
  case Source::LastRow: {
    Value rows = emit(plan.needs[0]);
    if (!rows)
      return nullptr;
    if (model.tokenAxis(plan.needs[0]) != 1) {
      fail(loc, "not implemented: the last token taken from an axis that is not the second");
      return nullptr;
    }
    std::optional<RankedTensorType> type = stepType(value);
    if (!type) {
      fail(loc, "not implemented: the last token in this form");
      return nullptr;
    }
    return emitReshape(loc, kv::SelectOp::create(builder, loc, rows, batch), *type);
  }
  case Source::Clone: {
    Operation *op = value.getDefiningOp();
    if (auto gather = dyn_cast<onnx::GatherOp>(op); gather && plan.needs.size() == 2 && plan.needs[0] != gather.getData()) {
      Value data = emit(plan.needs[0]), index = emit(plan.needs[1]);
      return data && index ? Value(onnx::GatherOp::create(builder, loc, *stepType(value), data, index, gather.getAxisAttr())) : nullptr;
    }
    return emitClone(op, value);
  }
  }
  return nullptr;
}

Value StepBuilder::emit(Value value) {
  if (Value done = emitted.lookup(value))
    return done;
  Value result = emitNow(value, plans.find(value)->second);
  if (result)
    emitted[value] = result;
  return result;
}

bool StepBuilder::pairStates() {
  SmallVector<int> partner(model.states.size(), -1);
  for (const AttentionSite &site : model.sites) {
    auto pair = std::make_pair(site.keyState, site.valueState);
    if ((partner[pair.first] >= 0 && partner[pair.first] != int(pair.second)) || (partner[pair.second] >= 0 && partner[pair.second] != int(pair.first)))
      return fail(site.softmax ? site.softmax->getLoc() : source.getLoc(), "not implemented: keys and values of two layers share a state");
    partner[pair.first] = pair.second;
    partner[pair.second] = pair.first;
    states[pair];
  }
  return true;
}

Value StepBuilder::emitLogits(Location loc, Value value, bool selected) {
  auto type = cast<RankedTensorType>(value.getType());
  int64_t vocabulary = type.getShape().back();
  auto rows = RankedTensorType::get({1, ShapedType::kDynamic, vocabulary}, type.getElementType());
  if (ShapedType::isDynamic(vocabulary) || type.getNumDynamicDims() != 1) {
    fail(loc, "expected logits of type [batch, tokens, vocabulary]");
    return nullptr;
  }
  value = emitReshape(loc, value, rows);
  if (!selected)
    value = kv::SelectOp::create(builder, loc, value, batch);
  if (!rows.getElementType().isF32()) {
    rows = RankedTensorType::get(rows.getShape(), builder.getF32Type());
    value = onnx::CastOp::create(builder, loc, rows, value, TypeAttr::get(builder.getF32Type()));
  }
  return emitReshape(loc, value, RankedTensorType::get({ShapedType::kDynamic, vocabulary}, builder.getF32Type()));
}

func::FuncOp StepBuilder::build() {
  const ModelOutput *logits = logitsOutput();
  if (!logits || !pairStates() || !plan(logits->value.value))
    return nullptr;
  for (const AttentionSite &site : model.sites)
    if (!plans.count(site.result.value) && !plan(site.result.value))
      return nullptr;

  Type i64 = builder.getI64Type();
  auto idsType = RankedTensorType::get({1, ShapedType::kDynamic}, i64);
  SmallVector<Type> inputs{idsType, kv::BatchType::get(builder.getContext())};
  for (auto &[pair, state] : states) {
    auto reads = [keys = pair.first](const AttentionSite &s) { return s.keyState == keys; };
    const AttentionSite &site = *llvm::find_if(model.sites, reads);
    Type element = cast<ShapedType>(model.states[pair.first].input.getType()).getElementType();
    if (!isa<FloatType>(element) || element.getIntOrFloatBitWidth() < 16) {
      fail(source.getLoc(), "not implemented: a cache of quantised rows");
      return nullptr;
    }
    inputs.push_back(kv::StateType::get(builder.getContext(), site.kvHeads, site.keyDim, site.valueDim, element, kv::ContiguousAttr::get(builder.getContext())));
  }
  builder.setInsertionPointAfter(source);
  step = func::FuncOp::create(builder, source.getLoc(), "step", builder.getFunctionType(inputs, {}));
  Block *body = step.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  ids = body->getArgument(0);
  batch = body->getArgument(1);
  for (auto [index, entry] : llvm::enumerate(states))
    entry.second.value = body->getArgument(2 + index);

  // Program order keeps the recursion of emit() shallow, and the step readable.
  bool ok = true;
  source.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Value result : op->getResults())
      if (ok && plans.count(result))
        ok = emit(result) != nullptr;
  });
  Value result = ok ? emit(logits->value.value) : nullptr;
  if (result)
    result = emitLogits(source.getLoc(), result, logits->kind == OutputKind::LastToken);
  if (!result) {
    fail(source.getLoc(), "the step cannot be emitted");
    step.erase();
    return nullptr;
  }
  SmallVector<Value> results{result};
  for (auto &[pair, state] : states)
    results.push_back(state.value);
  func::ReturnOp::create(builder, source.getLoc(), results);
  step.setFunctionType(builder.getFunctionType(inputs, ValueRange(results).getTypes()));
  return step;
}

} // namespace quire
