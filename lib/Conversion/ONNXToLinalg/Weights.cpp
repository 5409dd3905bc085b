// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for constants, weights and generated tensors; entries of weights.bin.
#include "dialects/ONNX/ONNXShapeOps.h"
#include "dialects/ONNX/ONNXControlOps.h"
#include "lib/Conversion/ONNXToLinalg/Weights.h"

#include "dialects/KVRT/KVRT.h"

using namespace mlir;

namespace quire {

/// Inserts a symbol `name` right after the initializer it is made from, unless it is there.
template <typename OpTy, typename Build> static void addSymbol(RuleContext &context, FlatSymbolRefAttr initializer, StringRef name, Build build) {
  ModuleOp module = context.state.module;
  if (module.lookupSymbol<OpTy>(name))
    return;
  OpBuilder::InsertionGuard guard(context.builder);
  Operation *source = module.lookupSymbol(initializer.getValue());
  source ? context.builder.setInsertionPointAfter(source) : context.builder.setInsertionPointToStart(module.getBody());
  build();
}

Value packedWeight(RuleContext &context, FlatSymbolRefAttr initializer, bool transposed, int64_t k, int64_t n, Type element) {
  OpBuilder &builder = context.builder;
  int64_t columns = context.state.panelColumns;
  auto type = RankedTensorType::get({(n + columns - 1) / columns, k, columns}, element);
  std::string name = (initializer.getValue() + (transposed ? ".packed_t" : ".packed")).str();
  addSymbol<kvrt::PackedOp>(context, initializer, name, [&] {
    auto op = kvrt::PackedOp::create(builder, context.loc, builder.getStringAttr(name), initializer, kvrt::PanelsAttr::get(builder.getContext(), columns),
                                     transposed ? builder.getUnitAttr() : UnitAttr(), builder.getI64IntegerAttr(k), builder.getI64IntegerAttr(n), IntegerAttr(),
                                     TypeAttr::get(type));
    SymbolTable::setSymbolVisibility(op, SymbolTable::Visibility::Private);
  });
  return kvrt::WeightOp::create(builder, context.loc, type, context.state.batch, FlatSymbolRefAttr::get(builder.getContext(), name));
}

Value rawWeight(RuleContext &context, onnx::WeightOp weight) {
  OpBuilder &builder = context.builder;
  auto type = cast<RankedTensorType>(weight.getType());
  std::string name = (weight.getInitializer() + ".raw").str();
  addSymbol<kvrt::RawOp>(context, weight.getInitializerAttr(), name, [&] {
    auto op = kvrt::RawOp::create(builder, context.loc, builder.getStringAttr(name), weight.getInitializerAttr(), IntegerAttr(), TypeAttr::get(type));
    SymbolTable::setSymbolVisibility(op, SymbolTable::Visibility::Private);
  });
  return kvrt::WeightOp::create(builder, context.loc, type, context.state.batch, FlatSymbolRefAttr::get(builder.getContext(), name));
}

static LogicalResult convertWeight(onnx::WeightOp op, RuleContext &context, MutableArrayRef<Value> results) {
  if (!context.state.batch)
    return context.refuse("it is outside of a step");
  if (!rankedType(op.getResult()).hasStaticShape())
    return context.refuse("its extents are not known");
  results[0] = rawWeight(context, op);
  return success();
}

static LogicalResult convertConstant(onnx::ConstantOp op, RuleContext &context, MutableArrayRef<Value> results) {
  auto value = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!value)
    return context.refuse("elements that are not dense");
  results[0] = arith::ConstantOp::create(context.builder, context.loc, value);
  return success();
}

static LogicalResult convertConstantOfShape(onnx::ConstantOfShapeOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType type = rankedType(op.getResult());
  if (!type.hasStaticShape())
    return context.refuse("the rows come from the shape only");
  Attribute element = context.builder.getZeroAttr(type.getElementType());
  if (auto value = op.getValue())
    element = *cast<DenseElementsAttr>(*value).getValues<Attribute>().begin();
  results[0] = arith::ConstantOp::create(context.builder, context.loc, DenseElementsAttr::get(type, element));
  return success();
}

static LogicalResult convertRange(onnx::RangeOp op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType type = rankedType(op.getResult());
  auto start = constantIntegers(op->getOperand(0)), delta = constantIntegers(op->getOperand(2));
  if (!type.hasStaticShape() || !start || !delta || !type.getElementType().isInteger(64))
    return context.refuse("its bounds are no integer constants");
  SmallVector<int64_t> values;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    values.push_back(start->front() + i * delta->front());
  results[0] = arith::ConstantOp::create(context.builder, context.loc, DenseElementsAttr::get(type, ArrayRef<int64_t>(values)));
  return success();
}

void addConstantRules(RuleSet &rules) {
  rules.add<onnx::WeightOp>(convertWeight);
  rules.add<onnx::ConstantOp>(convertConstant);
  rules.add<onnx::ConstantOfShapeOp>(convertConstantOfShape);
  rules.add<onnx::RangeOp>(convertRange);
}

} // namespace quire
