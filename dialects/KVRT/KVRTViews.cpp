// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Verification of views and of the symbols that stand for entries of weights.bin.
#include "dialects/KVRT/KVRT.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace quire::kvrt;

LogicalResult ReadOp::verify() {
  auto type = cast<ShapedType>(getResult().getType());
  if (!type.getElementType().isSignlessInteger(64))
    return emitOpError("expected elements i64, but got ") << type.getElementType();
  ArrayRef<int64_t> shape = type.getShape();
  bool row = type.getRank() == 1 || (type.getRank() == 2 && shape.front() == 1);
  if (!row || !ShapedType::isDynamic(shape.back()))
    return emitOpError("expected shape [?] or [1, ?], but got ") << type;
  return success();
}

WeightEntry quire::kvrt::lookupWeight(Operation *from, FlatSymbolRefAttr name, SymbolTableCollection &tables) {
  Operation *symbol = tables.lookupNearestSymbolFrom(from, name);
  auto entry = [](auto op) {
    return WeightEntry{cast<RankedTensorType>(op.getType()),
                       op.getOffset() ? static_cast<int64_t>(*op.getOffset()) : -1};
  };
  if (auto packed = dyn_cast_or_null<PackedOp>(symbol))
    return entry(packed);
  if (auto raw = dyn_cast_or_null<RawOp>(symbol))
    return entry(raw);
  return {};
}

LogicalResult WeightOp::verifySymbolUses(SymbolTableCollection &tables) {
  WeightEntry entry = lookupWeight(*this, getWeightAttr(), tables);
  if (!entry.type)
    return emitOpError("expected an entry of weights.bin, but got ") << getWeightAttr();
  auto type = cast<ShapedType>(getResult().getType());
  if (type.getShape() != entry.type.getShape() || type.getElementType() != entry.type.getElementType())
    return emitOpError("expected the shape and elements of ") << entry.type << ", but got " << type;
  return success();
}

static LogicalResult verifyLogits(Operation *op, Type value) {
  auto type = cast<ShapedType>(value);
  if (type.getRank() != 2 || !type.getElementType().isF32() || type.isDynamicDim(1))
    return op->emitOpError("expected logits of shape [?, vocabulary] and f32, but got ") << type;
  return success();
}

LogicalResult WriteOp::verify() { return verifyLogits(*this, getSource().getType()); }
LogicalResult LogitsOp::verify() { return verifyLogits(*this, getResult().getType()); }

LogicalResult ScratchOp::verify() {
  auto type = cast<MemRefType>(getResult().getType());
  if (!type.getLayout().isIdentity())
    return emitOpError("expected a contiguous buffer, but got ") << type;
  if (getSizes().size() != type.getNumDynamicDims())
    return emitOpError("expected ") << type.getNumDynamicDims() << " sizes, but got " << getSizes().size();
  for (auto [value, name] : {std::pair(getFixed(), "fixed"), std::pair(getPerToken(), "per_token"),
                             std::pair(getPerSelected(), "per_selected")})
    if (value % 64 != 0)
      return emitOpError("expected a multiple of 64 bytes, but got ") << name << " = " << value;
  return success();
}

LogicalResult TablesOp::inferReturnTypes(MLIRContext *context, std::optional<Location>, ValueRange, DictionaryAttr,
                                         OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  int64_t shape[] = {ShapedType::kDynamic, ShapedType::kDynamic};
  types.push_back(MemRefType::get(shape, IntegerType::get(context, 32)));
  return success();
}

LogicalResult KeyPageOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                          OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  types.push_back(cast<StateType>(operands.front().getType()).getKeyPageType());
  return success();
}

LogicalResult ValuePageOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &types) {
  types.push_back(cast<StateType>(operands.front().getType()).getValuePageType());
  return success();
}

static LogicalResult inferScales(std::optional<Location> location, ValueRange operands, bool keys, SmallVectorImpl<Type> &types) {
  auto state = cast<StateType>(operands.front().getType());
  if (!state.isQuantized())
    return emitOptionalError(location, "expected a state of elements i8 or i4, but got ", state);
  types.push_back(keys ? state.getKeyScalesType() : state.getValueScalesType());
  return success();
}

LogicalResult KeyScalesOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, ValueRange operands,
                                            DictionaryAttr, OpaqueProperties, RegionRange,
                                            SmallVectorImpl<Type> &types) {
  return inferScales(location, operands, /*keys=*/true, types);
}

LogicalResult ValueScalesOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, ValueRange operands,
                                              DictionaryAttr, OpaqueProperties, RegionRange,
                                              SmallVectorImpl<Type> &types) {
  return inferScales(location, operands, /*keys=*/false, types);
}

static bool isFloat(Type type) { return type.isF32() || type.isF16() || type.isBF16(); }

LogicalResult PackedOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  int64_t nr = getLayout().getNr(), k = getK(), n = getN();
  SmallVector<int64_t> expected = {(n + nr - 1) / nr, k, nr};
  if (!isFloat(type.getElementType()))
    return emitOpError("expected elements f32, f16 or bf16, but got ") << type.getElementType();
  if (type.getShape() != ArrayRef(expected))
    return emitOpError("expected shape ")
           << RankedTensorType::get(expected, type.getElementType()) << ", but got " << type;
  return success();
}

LogicalResult RawOp::verify() {
  if (!cast<RankedTensorType>(getType()).hasStaticShape())
    return emitOpError("expected a static shape, but got ") << getType();
  return success();
}

static LogicalResult verifySource(Operation *op, FlatSymbolRefAttr source, SymbolTableCollection &tables) {
  if (!tables.lookupNearestSymbolFrom(op, source))
    return op->emitOpError("expected an initializer, but got ") << source;
  return success();
}

LogicalResult PackedOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifySource(*this, getSourceAttr(), tables);
}

LogicalResult RawOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifySource(*this, getSourceAttr(), tables);
}

LogicalResult ModelOp::verify() {
  for (auto [index, attribute] : llvm::enumerate(getLayers().getAsValueRange<TypeAttr>())) {
    auto state = dyn_cast<StateType>(attribute);
    if (!state)
      return emitOpError("expected layer ") << index << " to be a state type, but got " << attribute;
    if (state.getBlock() != static_cast<int64_t>(getBlockTokens()))
      return emitOpError("expected layer ")
             << index << " to have block " << getBlockTokens() << ", but got " << state.getBlock();
  }
  for (ArrayRef<int64_t> numbers : {getQueryHeads(), getWindows(), getPlaceIsPosition()})
    if (!numbers.empty() && (numbers.size() != getLayers().size() || llvm::any_of(numbers, [](int64_t n) { return n < 0; })))
      return emitOpError("expected query_heads, windows and place_is_position of ") << getLayers().size() << " numbers that are not negative";
  return success();
}

LogicalResult ModelOp::verifySymbolUses(SymbolTableCollection &tables) {
  if (!tables.lookupNearestSymbolFrom(*this, getStepAttr()))
    return emitOpError("expected a function, but got ") << getStepAttr();
  return success();
}
