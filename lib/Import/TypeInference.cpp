// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element types of results, and how inferred types meet stated ones.

#include "lib/Import/TypeInference.h"

#include "dialects/ONNX/ONNXControlOps.h"
#include "dialects/ONNX/ONNXLogicOps.h"
#include "dialects/ONNX/ONNXQuantOps.h"
#include "dialects/ONNX/ONNXShapeOps.h"
#include "lib/Import/ElementTypes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace quire;

std::optional<SmallVector<int64_t>> import::constantInts(Value value) {
  DenseIntElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || elements.getElementType().isInteger(1))
    return std::nullopt;
  SmallVector<int64_t> ints;
  bool isUnsigned = elements.getElementType().isUnsignedInteger();
  for (const APInt &element : elements.getValues<APInt>())
    ints.push_back(isUnsigned ? element.getZExtValue() : element.getSExtValue());
  return ints;
}

namespace {

// How the element type of a result follows; codes of ElementRule below.
enum class Rule { Operand0, Operand1, Operand2, Bool, Int64, Int32, UInt8, Float32, Special };

Rule ruleOf(StringRef name, unsigned index) {
  switch (index) {
  case 0:
    return llvm::StringSwitch<Rule>(name)
        .Cases({"And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}, Rule::Bool)
        .Cases({"IsInf", "IsNaN", "OptionalHasElement"}, Rule::Bool)
        .Cases({"Shape", "Size", "NonZero", "ArgMax", "ArgMin", "NonMaxSuppression", "SequenceLength"}, Rule::Int64)
        .Cases({"MatMulInteger", "ConvInteger"}, Rule::Int32)
        .Cases({"Where", "CastLike"}, Rule::Operand1)
        .Cases({"OneHot", "ms.GatherBlockQuantized", "ms.EmbedLayerNormalization", "ms.MatMulIntegerToFloat"},
               Rule::Operand2)
        .Case("DynamicQuantizeLinear", Rule::UInt8)
        .Cases({"Cast", "BitCast", "ConstantOfShape", "EyeLike", "RandomNormal", "RandomUniform", "RandomNormalLike"},
               Rule::Special)
        .Cases({"RandomUniformLike", "Bernoulli", "Multinomial", "QuantizeLinear", "DequantizeLinear"}, Rule::Special)
        .Cases({"QLinearMatMul", "ms.QuantizeLinear", "ms.DequantizeLinear", "ms.QGemm"}, Rule::Special)
        .Cases({"ms.RelativePositionBias", "ms.GatedRelativePositionBias"}, Rule::Operand0)
        .Default(Rule::Operand0);
  case 1:
    return llvm::StringSwitch<Rule>(name)
        .Cases({"TopK", "Unique", "MaxPool"}, Rule::Int64)
        .Case("Dropout", Rule::Bool)
        .Case("DynamicQuantizeLinear", Rule::Float32)
        .Cases({"LayerNormalization", "ms.SkipLayerNormalization", "ms.SkipSimplifiedLayerNormalization"},
               Rule::Float32)
        .Case("SimplifiedLayerNormalization", Rule::Float32)
        .Cases({"ms.EmbedLayerNormalization", "ms.RemovePadding"}, Rule::Int32)
        .Default(Rule::Special);
  default:
    return llvm::StringSwitch<Rule>(name)
        .Case("Unique", Rule::Int64)
        .Case("DynamicQuantizeLinear", Rule::UInt8)
        .Cases({"LayerNormalization", "ms.SkipLayerNormalization", "ms.SkipSimplifiedLayerNormalization"},
               index == 2 ? Rule::Float32 : Rule::Operand0)
        .Case("ms.EmbedLayerNormalization", Rule::Operand2)
        .Case("ms.RemovePadding", Rule::Int32)
        .Default(Rule::Special);
  }
}

Type elementOf(Operation *op, unsigned operand) {
  if (operand >= op->getNumOperands())
    return {};
  auto tensor = dyn_cast<TensorType>(op->getOperand(operand).getType());
  return tensor ? tensor.getElementType() : Type();
}

// Results whose element type is an operand's, by operator: states keep the type of the past they continue.
Type followedOperand(Operation *op, StringRef name, unsigned index) {
  auto firstPresent = [&](std::initializer_list<unsigned> operands) {
    for (unsigned operand : operands)
      if (Type element = elementOf(op, operand))
        return element;
    return Type();
  };
  if (name == "Attention")
    return index == 1 ? elementOf(op, 1) : index == 2 ? elementOf(op, 2) : elementOf(op, 0);
  if (name == "ms.GroupQueryAttention" || name == "ms.SparseAttention")
    return index == 1 ? firstPresent({3, 1, 0}) : index == 2 ? firstPresent({4, 2, 0}) : elementOf(op, 0);
  if (name == "ms.PagedAttention")
    return index == 1 ? elementOf(op, 3) : firstPresent({4, 3});
  if (name == "LinearAttention" || name == "ms.LinearAttention")
    return firstPresent({3, 0});
  if (name == "CausalConvWithState" || name == "ms.CausalConvWithState")
    return firstPresent({3, 0});
  if (name == "Split" || name == "TopK" || name.contains("Attention"))
    return elementOf(op, 0);
  return {};
}

Type zeroPointOr(Operation *op, unsigned operand, Type other) {
  Type element = elementOf(op, operand);
  return element ? element : other;
}

Type specialElement(Operation *op, StringRef name, unsigned index) {
  Builder builder(op->getContext());
  Type f32 = builder.getF32Type(), ui8 = builder.getIntegerType(8, false);
  if (index > 0)
    return followedOperand(op, name, index);
  if (auto cast = dyn_cast<quire::onnx::CastOp>(op))
    return cast.getTo();
  if (auto cast = dyn_cast<quire::onnx::BitCastOp>(op))
    return cast.getTo();
  if (auto constant = dyn_cast<quire::onnx::ConstantOfShapeOp>(op))
    return constant.getValue() ? constant.getValue()->getElementType() : f32;
  if (auto eye = dyn_cast<quire::onnx::EyeLikeOp>(op))
    return eye.getDtype().value_or(elementOf(op, 0));
  if (auto random = dyn_cast<quire::onnx::RandomNormalOp>(op))
    return random.getDtype().value_or(f32);
  if (auto random = dyn_cast<quire::onnx::RandomUniformOp>(op))
    return random.getDtype().value_or(f32);
  if (auto random = dyn_cast<quire::onnx::RandomNormalLikeOp>(op))
    return random.getDtype().value_or(elementOf(op, 0));
  if (auto random = dyn_cast<quire::onnx::RandomUniformLikeOp>(op))
    return random.getDtype().value_or(elementOf(op, 0));
  if (auto draw = dyn_cast<quire::onnx::BernoulliOp>(op))
    return draw.getDtype().value_or(elementOf(op, 0));
  if (auto draw = dyn_cast<quire::onnx::MultinomialOp>(op))
    return draw.getDtype().value_or(builder.getI32Type());
  if (auto quantize = dyn_cast<quire::onnx::QuantizeLinearOp>(op))
    return zeroPointOr(op, 2, quantize.getOutputDtype().value_or(ui8));
  if (auto dequantize = dyn_cast<quire::onnx::DequantizeLinearOp>(op))
    return dequantize.getOutputDtype().value_or(elementOf(op, 1));
  if (name == "ms.QuantizeLinear")
    return zeroPointOr(op, 2, ui8);
  if (name == "ms.DequantizeLinear")
    return elementOf(op, 1);
  if (name == "ms.QGemm")
    return zeroPointOr(op, 8, f32);
  if (name == "QLinearMatMul")
    return elementOf(op, 7);
  return {};
}

} // namespace

Type import::inferElementType(Operation *op, unsigned index) {
  StringRef name = op->getName().stripDialect();
  Builder builder(op->getContext());
  switch (ruleOf(name, index)) {
  case Rule::Operand0:
    return elementOf(op, 0);
  case Rule::Operand1:
    return elementOf(op, 1);
  case Rule::Operand2:
    return elementOf(op, 2);
  case Rule::Bool:
    return builder.getI1Type();
  case Rule::Int64:
    return builder.getI64Type();
  case Rule::Int32:
    return builder.getI32Type();
  case Rule::UInt8:
    return builder.getIntegerType(8, false);
  case Rule::Float32:
    return builder.getF32Type();
  case Rule::Special:
    return specialElement(op, name, index);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Operators with subgraphs, sequences and optionals
//===----------------------------------------------------------------------===//

// A value with one axis more in front, whose extent is not known.
static Type stacked(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return type;
  SmallVector<int64_t> shape(ranked.getShape());
  shape.insert(shape.begin(), ShapedType::kDynamic);
  return RankedTensorType::get(shape, ranked.getElementType());
}

// The same value with another extent somewhere: only the rank is kept.
static Type anyExtents(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked)
    return type;
  return RankedTensorType::get(SmallVector<int64_t>(ranked.getRank(), ShapedType::kDynamic), ranked.getElementType());
}

static quire::onnx::YieldOp yieldOf(Region &region) { return cast<quire::onnx::YieldOp>(region.front().getTerminator()); }

static bool wellFormed(Operation *op) {
  return llvm::all_of(op->getRegions(), [](Region &region) {
    return !region.empty() && !region.front().empty() && isa<quire::onnx::YieldOp>(region.front().back());
  });
}

// Types of the results of If, Loop and Scan, from what their subgraphs yield; null where they do not say.
static SmallVector<Type> regionResultTypes(Operation *op) {
  SmallVector<Type> types(op->getNumResults());
  if (auto branch = dyn_cast<quire::onnx::IfOp>(op)) {
    ValueRange then = yieldOf(branch.getThenBranch()).getValues(), other = yieldOf(branch.getElseBranch()).getValues();
    for (unsigned i = 0; i < types.size() && i < then.size() && i < other.size(); ++i)
      types[i] = import::joinTypes(then[i].getType(), other[i].getType());
    return types;
  }
  bool loop = isa<quire::onnx::LoopOp>(op);
  if (!loop && !isa<quire::onnx::ScanOp>(op))
    return types;
  ValueRange yielded = yieldOf(op->getRegion(0)).getValues();
  unsigned skip = loop ? 1 : 0;
  int64_t operands = op->getNumOperands();
  int64_t scanned = loop ? 2 : std::clamp<int64_t>(cast<quire::onnx::ScanOp>(op).getNumScanInputs(), 0, operands);
  unsigned carried = operands - scanned;
  bool moved = !loop && cast<quire::onnx::ScanOp>(op).getScanOutputAxes();
  for (unsigned i = 0; i < types.size() && i + skip < yielded.size(); ++i) {
    Type type = yielded[i + skip].getType();
    if (i < carried)
      types[i] = loop ? import::joinTypes(type, op->getOperand(i + 2).getType()) : type;
    else
      types[i] = moved ? anyExtents(stacked(type)) : stacked(type);
  }
  return types;
}

static Type containerType(Operation *op) {
  StringRef name = op->getName().stripDialect();
  auto operand = [&](unsigned i) { return i < op->getNumOperands() ? op->getOperand(i).getType() : Type(); };
  if (name == "SequenceConstruct" && op->getNumOperands()) {
    Type element = operand(0);
    for (Value other : op->getOperands()) {
      if (!isa<TensorType>(other.getType()))
        return {};
      element = import::joinTypes(element, other.getType());
    }
    return quire::onnx::SequenceType::get(op->getContext(), element);
  }
  if (name == "SplitToSequence")
    if (auto tensor = dyn_cast<TensorType>(operand(0)))
      return quire::onnx::SequenceType::get(op->getContext(), import::unrankedTensor(tensor.getElementType()));
  if (name == "SequenceInsert" || name == "SequenceErase") {
    auto sequence = dyn_cast_or_null<quire::onnx::SequenceType>(operand(0));
    auto tensor = sequence ? dyn_cast<TensorType>(sequence.getElementType()) : TensorType();
    return tensor ? quire::onnx::SequenceType::get(op->getContext(), import::unrankedTensor(tensor.getElementType()))
                  : operand(0);
  }
  if (name == "SequenceAt" || name == "ConcatFromSequence")
    if (auto sequence = dyn_cast<quire::onnx::SequenceType>(operand(0)))
      if (auto tensor = dyn_cast<TensorType>(sequence.getElementType()))
        return name == "SequenceAt" ? Type(tensor) : import::unrankedTensor(tensor.getElementType());
  if (name == "SequenceEmpty") {
    auto dtype = op->getAttrOfType<TypeAttr>("dtype");
    Type element = dtype ? dtype.getValue() : Type(Float32Type::get(op->getContext()));
    return quire::onnx::SequenceType::get(op->getContext(), import::unrankedTensor(element));
  }
  if (name == "OptionalGetElement")
    if (auto optional = dyn_cast<quire::onnx::OptionalType>(operand(0)))
      return optional.getElementType();
  if (name == "Identity" && !isa<TensorType>(operand(0)))
    return operand(0);
  return {};
}

static Type resultType(Operation *op, unsigned index, ArrayRef<Type> regionTypes) {
  if (!regionTypes.empty())
    return regionTypes[index];
  if (Type container = containerType(op))
    return container;
  Type stated = op->getResult(index).getType();
  if (!isa<TensorType>(stated))
    return {};
  Type element = import::inferElementType(op, index);
  if (!element)
    element = quire::onnx::UnknownType::get(op->getContext());
  std::optional<SmallVector<int64_t>> shape = import::inferShape(op, index);
  return shape ? Type(RankedTensorType::get(*shape, element)) : import::unrankedTensor(element);
}

void import::inferResultTypes(Operation *op) {
  SmallVector<Type> regionTypes;
  if (op->getNumRegions() && wellFormed(op))
    regionTypes = regionResultTypes(op);
  for (OpResult result : op->getResults()) {
    if (isa<NoneType>(result.getType()))
      continue;
    Type inferred = resultType(op, result.getResultNumber(), regionTypes);
    if (inferred && isa<TensorType>(inferred) == isa<TensorType>(result.getType()))
      result.setType(mergeTypes(inferred, result.getType()));
    else if (inferred)
      result.setType(inferred);
  }
}
