// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX element types and value types as MLIR types.

#include "lib/Import/ElementTypes.h"

#include "dialects/ONNX/ONNXDialect.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace quire::import;
using pb::TensorProto;

Type quire::import::elementType(MLIRContext *context, int64_t dataType) {
  Builder builder(context);
  switch (dataType) {
  case TensorProto::FLOAT:
    return builder.getF32Type();
  case TensorProto::UINT8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case TensorProto::INT8:
    return builder.getIntegerType(8);
  case TensorProto::UINT16:
    return builder.getIntegerType(16, false);
  case TensorProto::INT16:
    return builder.getIntegerType(16);
  case TensorProto::INT32:
    return builder.getIntegerType(32);
  case TensorProto::INT64:
    return builder.getIntegerType(64);
  case TensorProto::STRING:
    return quire::onnx::StringType::get(context);
  case TensorProto::BOOL:
    return builder.getI1Type();
  case TensorProto::FLOAT16:
    return builder.getF16Type();
  case TensorProto::DOUBLE:
    return builder.getF64Type();
  case TensorProto::UINT32:
    return builder.getIntegerType(32, false);
  case TensorProto::UINT64:
    return builder.getIntegerType(64, false);
  case TensorProto::COMPLEX64:
    return ComplexType::get(builder.getF32Type());
  case TensorProto::COMPLEX128:
    return ComplexType::get(builder.getF64Type());
  case TensorProto::BFLOAT16:
    return builder.getBF16Type();
  case TensorProto::FLOAT8E4M3FN:
    return Float8E4M3FNType::get(context);
  case TensorProto::FLOAT8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case TensorProto::FLOAT8E5M2:
    return Float8E5M2Type::get(context);
  case TensorProto::FLOAT8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case TensorProto::UINT4:
    return builder.getIntegerType(4, false);
  case TensorProto::INT4:
    return builder.getIntegerType(4);
  case 23: // FLOAT4E2M1, since onnx 1.18
    return Float4E2M1FNType::get(context);
  case 24: // FLOAT8E8M0, since onnx 1.19
    return Float8E8M0FNUType::get(context);
  case 25: // UINT2, since onnx 1.20
    return builder.getIntegerType(2, false);
  case 26: // INT2, since onnx 1.20
    return builder.getIntegerType(2);
  case 27: // FLOAT6E2M3, since onnx 1.23
    return Float6E2M3FNType::get(context);
  case 28: // FLOAT6E3M2, since onnx 1.23
    return Float6E3M2FNType::get(context);
  default:
    return {};
  }
}

StringRef quire::import::dataTypeName(int64_t dataType) {
  if (dataType < 0 || dataType > 28 || !TensorProto::DataType_IsValid(static_cast<int>(dataType)))
    return "an unknown element type";
  return TensorProto::DataType_Name(static_cast<TensorProto::DataType>(dataType));
}

unsigned quire::import::rawBits(Type element) {
  if (auto complex = dyn_cast<ComplexType>(element))
    return 2 * complex.getElementType().getIntOrFloatBitWidth();
  if (!element.isIntOrFloat())
    return 0;
  unsigned width = element.getIntOrFloatBitWidth();
  return width == 1 ? 8 : width;
}

Type quire::import::unrankedTensor(Type element) { return UnrankedTensorType::get(element); }

static Type tensorType(MLIRContext *context, const pb::TypeProto::Tensor &tensor, std::string &reason) {
  Type element;
  if (tensor.elem_type() == TensorProto::UNDEFINED)
    element = quire::onnx::UnknownType::get(context);
  else
    element = quire::import::elementType(context, tensor.elem_type());
  if (!element) {
    reason = "expected a known element type, but got " + std::to_string(tensor.elem_type());
    return {};
  }
  if (!tensor.has_shape())
    return UnrankedTensorType::get(element);
  SmallVector<int64_t> shape;
  for (const auto &dim : tensor.shape().dim()) {
    // Exporters write -1 for "unknown" now and then.
    if (dim.has_dim_value() && dim.dim_value() < -1) {
      reason = "expected non-negative extents, but got " + std::to_string(dim.dim_value());
      return {};
    }
    shape.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? dim.dim_value() : ShapedType::kDynamic);
  }
  return RankedTensorType::get(shape, element);
}

Type quire::import::valueType(MLIRContext *context, const pb::TypeProto &type, std::string &reason) {
  switch (type.value_case()) {
  case pb::TypeProto::kTensorType:
    return tensorType(context, type.tensor_type(), reason);
  case pb::TypeProto::kSequenceType: {
    Type element = valueType(context, type.sequence_type().elem_type(), reason);
    return element ? quire::onnx::SequenceType::get(context, element) : Type();
  }
  case pb::TypeProto::kOptionalType: {
    Type element = valueType(context, type.optional_type().elem_type(), reason);
    return element ? quire::onnx::OptionalType::get(context, element) : Type();
  }
  case pb::TypeProto::kMapType:
    reason = "not implemented: values of type map";
    return {};
  case pb::TypeProto::kSparseTensorType:
    reason = "not implemented: values of type sparse tensor";
    return {};
  case pb::TypeProto::kOpaqueType:
    reason = "not implemented: values of type opaque";
    return {};
  case pb::TypeProto::VALUE_NOT_SET:
    return {};
  }
  return {};
}

SmallVector<std::string> quire::import::dimensionNames(const pb::TypeProto &type) {
  SmallVector<std::string> names;
  if (type.has_tensor_type() && type.tensor_type().has_shape())
    for (const auto &dim : type.tensor_type().shape().dim())
      names.push_back(dim.has_dim_param() ? dim.dim_param() : std::string());
  return names;
}

static bool isUnknown(Type type) { return isa<quire::onnx::UnknownType>(type); }

Type quire::import::mergeTypes(Type first, Type second) {
  if (!first || !second)
    return first ? first : second;
  auto a = dyn_cast<TensorType>(first), b = dyn_cast<TensorType>(second);
  if (!a || !b)
    return first;
  Type element = isUnknown(a.getElementType()) ? b.getElementType() : a.getElementType();
  if (!a.hasRank() || !b.hasRank()) {
    TensorType ranked = a.hasRank() ? a : b;
    return ranked.hasRank() ? Type(RankedTensorType::get(ranked.getShape(), element)) : unrankedTensor(element);
  }
  SmallVector<int64_t> shape(a.getShape());
  if (a.getRank() == b.getRank())
    for (auto [extent, other] : llvm::zip_equal(shape, b.getShape()))
      if (ShapedType::isDynamic(extent))
        extent = other;
  return RankedTensorType::get(shape, element);
}

Type quire::import::joinTypes(Type first, Type second) {
  auto a = dyn_cast_or_null<TensorType>(first), b = dyn_cast_or_null<TensorType>(second);
  if (first == second || !a || !b)
    return first;
  Type element = a.getElementType() == b.getElementType()
                     ? a.getElementType()
                     : Type(quire::onnx::UnknownType::get(a.getContext()));
  if (!a.hasRank() || !b.hasRank() || a.getRank() != b.getRank())
    return unrankedTensor(element);
  SmallVector<int64_t> shape(a.getShape());
  for (auto [extent, other] : llvm::zip_equal(shape, b.getShape()))
    if (extent != other)
      extent = ShapedType::kDynamic;
  return RankedTensorType::get(shape, element);
}
