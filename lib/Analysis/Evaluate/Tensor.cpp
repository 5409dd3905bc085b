// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors: storage, conversion between stored and compute types, element kinds and builtin types.
#include "Tensor.h"
#include "FloatFormats.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include <array>
#include <cmath>

using namespace llvm;

namespace quire::eval {

namespace {
struct KindInfo {
  const char *name;
  unsigned bits;
  ComputeClass compute;
};
constexpr KindInfo kindTable[] = {
    {"f32", 32, ComputeClass::Float},      {"f64", 64, ComputeClass::Double},
    {"f16", 16, ComputeClass::Float},      {"bf16", 16, ComputeClass::Float},
    {"f8E4M3FN", 8, ComputeClass::Float},  {"f8E4M3FNUZ", 8, ComputeClass::Float},
    {"f8E5M2", 8, ComputeClass::Float},    {"f8E5M2FNUZ", 8, ComputeClass::Float},
    {"f8E8M0FNU", 8, ComputeClass::Float}, {"f4E2M1FN", 4, ComputeClass::Float},
    {"i2", 2, ComputeClass::Signed},       {"ui2", 2, ComputeClass::Unsigned},
    {"i4", 4, ComputeClass::Signed},       {"ui4", 4, ComputeClass::Unsigned},
    {"i8", 8, ComputeClass::Signed},       {"ui8", 8, ComputeClass::Unsigned},
    {"i16", 16, ComputeClass::Signed},     {"ui16", 16, ComputeClass::Unsigned},
    {"i32", 32, ComputeClass::Signed},     {"ui32", 32, ComputeClass::Unsigned},
    {"i64", 64, ComputeClass::Signed},     {"ui64", 64, ComputeClass::Unsigned},
    {"i1", 8, ComputeClass::Unsigned},
};

const fltSemantics &semanticsOf(ElementKind kind) {
  switch (kind) {
  case ElementKind::F8E4M3FN:
    return APFloat::Float8E4M3FN();
  case ElementKind::F8E4M3FNUZ:
    return APFloat::Float8E4M3FNUZ();
  case ElementKind::F8E5M2:
    return APFloat::Float8E5M2();
  case ElementKind::F8E5M2FNUZ:
    return APFloat::Float8E5M2FNUZ();
  case ElementKind::F8E8M0:
    return APFloat::Float8E8M0FNU();
  default:
    return APFloat::Float4E2M1FN();
  }
}
} // namespace

unsigned bitWidth(ElementKind kind) { return kindTable[static_cast<unsigned>(kind)].bits; }
ComputeClass computeClass(ElementKind kind) { return kindTable[static_cast<unsigned>(kind)].compute; }
StringRef nameOf(ElementKind kind) { return kindTable[static_cast<unsigned>(kind)].name; }

std::optional<ElementKind> kindOf(mlir::Type type) {
  using namespace mlir;
  using Kind = std::optional<ElementKind>;
  return llvm::TypeSwitch<Type, Kind>(type)
      .Case<Float32Type>([](auto) { return ElementKind::F32; })
      .Case<Float64Type>([](auto) { return ElementKind::F64; })
      .Case<Float16Type>([](auto) { return ElementKind::F16; })
      .Case<BFloat16Type>([](auto) { return ElementKind::BF16; })
      .Case<Float8E4M3FNType>([](auto) { return ElementKind::F8E4M3FN; })
      .Case<Float8E4M3FNUZType>([](auto) { return ElementKind::F8E4M3FNUZ; })
      .Case<Float8E5M2Type>([](auto) { return ElementKind::F8E5M2; })
      .Case<Float8E5M2FNUZType>([](auto) { return ElementKind::F8E5M2FNUZ; })
      .Case<Float8E8M0FNUType>([](auto) { return ElementKind::F8E8M0; })
      .Case<Float4E2M1FNType>([](auto) { return ElementKind::F4E2M1; })
      .Case<IntegerType>([](IntegerType integer) -> Kind {
        bool isUnsigned = integer.isUnsigned();
        switch (integer.getWidth()) {
        case 1:
          return ElementKind::Bool;
        case 2:
          return isUnsigned ? ElementKind::U2 : ElementKind::I2;
        case 4:
          return isUnsigned ? ElementKind::U4 : ElementKind::I4;
        case 8:
          return isUnsigned ? ElementKind::U8 : ElementKind::I8;
        case 16:
          return isUnsigned ? ElementKind::U16 : ElementKind::I16;
        case 32:
          return isUnsigned ? ElementKind::U32 : ElementKind::I32;
        case 64:
          return isUnsigned ? ElementKind::U64 : ElementKind::I64;
        default:
          return std::nullopt;
        }
      })
      .Default([](Type) -> Kind { return std::nullopt; });
}

mlir::Type elementTypeOf(ElementKind kind, mlir::MLIRContext *context) {
  using namespace mlir;
  switch (kind) {
  case ElementKind::F32:
    return Float32Type::get(context);
  case ElementKind::F64:
    return Float64Type::get(context);
  case ElementKind::F16:
    return Float16Type::get(context);
  case ElementKind::BF16:
    return BFloat16Type::get(context);
  case ElementKind::F8E4M3FN:
    return Float8E4M3FNType::get(context);
  case ElementKind::F8E4M3FNUZ:
    return Float8E4M3FNUZType::get(context);
  case ElementKind::F8E5M2:
    return Float8E5M2Type::get(context);
  case ElementKind::F8E5M2FNUZ:
    return Float8E5M2FNUZType::get(context);
  case ElementKind::F8E8M0:
    return Float8E8M0FNUType::get(context);
  case ElementKind::F4E2M1:
    return Float4E2M1FNType::get(context);
  case ElementKind::Bool:
    return IntegerType::get(context, 1);
  default:
    break;
  }
  bool isSigned = computeClass(kind) == ComputeClass::Signed;
  return IntegerType::get(context, bitWidth(kind), isSigned ? IntegerType::Signless : IntegerType::Unsigned);
}

int64_t countOf(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

Shape stridesOf(ArrayRef<int64_t> shape) {
  Shape strides(shape.size(), 1);
  for (int64_t axis = static_cast<int64_t>(shape.size()) - 2; axis >= 0; --axis)
    strides[axis] = strides[axis + 1] * shape[axis + 1];
  return strides;
}

std::string textOf(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [index, extent] : enumerate(shape))
    text += (index ? "," : "") + std::to_string(extent);
  return text + "]";
}

Error fail(const Twine &text) { return createStringError(inconvertibleErrorCode(), text); }

//===--- Narrow formats -------------------------------------------------------------------------------------------===//

static std::array<float, 256> decodeTable(ElementKind kind) {
  std::array<float, 256> table{};
  unsigned bits = bitWidth(kind);
  for (unsigned value = 0; value < (1u << bits); ++value) {
    APFloat number(semanticsOf(kind), APInt(bits, value));
    bool lost = false;
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
    table[value] = number.convertToFloat();
  }
  return table;
}

float decodeNarrow(ElementKind kind, uint8_t bits) {
  static const std::array<float, 256> tables[] = {
      decodeTable(ElementKind::F8E4M3FN),   decodeTable(ElementKind::F8E4M3FNUZ), decodeTable(ElementKind::F8E5M2),
      decodeTable(ElementKind::F8E5M2FNUZ), decodeTable(ElementKind::F8E8M0),     decodeTable(ElementKind::F4E2M1)};
  return tables[static_cast<unsigned>(kind) - static_cast<unsigned>(ElementKind::F8E4M3FN)][bits];
}

uint8_t encodeNarrow(ElementKind kind, float value, bool saturate) {
  const fltSemantics &semantics = semanticsOf(kind);
  bool hasInfinity = kind == ElementKind::F8E5M2;
  if (kind == ElementKind::F8E8M0) { // powers of two: rounds up, without a sign
    uint32_t bits = floatToBits(value), exponent = bits >> 23 & 0xffu, mantissa = bits & 0x7fffffu;
    if (exponent == 0xff)
      return 0xff;
    exponent += mantissa > 0 ? 1 : 0;
    return static_cast<uint8_t>(exponent == 0xff && saturate ? 0xfe : exponent);
  }
  if (kind == ElementKind::F4E2M1 && std::isnan(value)) // has no code of its own
    return 0x8;
  float largest = APFloat::getLargest(semantics).convertToFloat();
  APFloat number(value);
  bool lost = false;
  bool nan = std::isnan(value);
  if (!nan && (saturate || kind == ElementKind::F4E2M1)) {
    if (std::fabs(value) > largest)
      return static_cast<uint8_t>(APFloat::getLargest(semantics, std::signbit(value)).bitcastToAPInt().getZExtValue());
  } else if (std::isinf(value) && !hasInfinity) {
    return static_cast<uint8_t>(APFloat::getQNaN(semantics, std::signbit(value)).bitcastToAPInt().getZExtValue());
  }
  number.convert(semantics, APFloat::rmNearestTiesToEven, &lost);
  return static_cast<uint8_t>(number.bitcastToAPInt().getZExtValue());
}

float roundTo(ElementKind kind, float value) {
  switch (kind) {
  case ElementKind::F32:
    return value;
  case ElementKind::F16:
    return halfToFloat(floatToHalf(value));
  case ElementKind::BF16:
    return bfloatToFloat(floatToBfloat(value));
  default:
    return decodeNarrow(kind, encodeNarrow(kind, value, true));
  }
}

//===--- Storage --------------------------------------------------------------------------------------------------===//

Tensor Tensor::zeros(ElementKind kind, ArrayRef<int64_t> shape) {
  int64_t bytes = (countOf(shape) * bitWidth(kind) + 7) / 8;
  return adopt(kind, shape, std::vector<char>(static_cast<size_t>(bytes)));
}

Tensor Tensor::view(ElementKind kind, ArrayRef<int64_t> shape, const void *bytes, std::shared_ptr<const void> owner) {
  Tensor tensor;
  tensor.present = true;
  tensor.elementKind = kind;
  tensor.extents.assign(shape.begin(), shape.end());
  tensor.elements = countOf(shape);
  tensor.data = static_cast<const char *>(bytes);
  tensor.owner = std::move(owner);
  return tensor;
}

int64_t Tensor::byteCount() const { return (elements * bitWidth(elementKind) + 7) / 8; }

Tensor Tensor::withShape(ArrayRef<int64_t> shape) const {
  assert(countOf(shape) == elements && "a new shape keeps the count");
  Tensor result = *this;
  result.extents.assign(shape.begin(), shape.end());
  return result;
}

Tensor Tensor::withKind(ElementKind kind) const {
  assert(bitWidth(kind) == bitWidth(elementKind) && "a new kind keeps the width");
  Tensor result = *this;
  result.elementKind = kind;
  return result;
}

std::vector<uint8_t> unpackNibbles(const Tensor &tensor) {
  unsigned bits = bitWidth(tensor.kind()), perByte = 8 / bits, mask = (1u << bits) - 1;
  bool isSigned = computeClass(tensor.kind()) == ComputeClass::Signed;
  std::vector<uint8_t> result(static_cast<size_t>(tensor.count()));
  const auto *bytes = reinterpret_cast<const uint8_t *>(tensor.bytes());
  for (size_t index = 0; index < result.size(); ++index) {
    unsigned value = (bytes[index / perByte] >> (bits * (index % perByte))) & mask;
    if (isSigned && (value >> (bits - 1)))
      value |= ~mask;
    result[index] = static_cast<uint8_t>(value);
  }
  return result;
}

Tensor packNibbles(ElementKind kind, ArrayRef<int64_t> shape, ArrayRef<uint8_t> bytes) {
  Tensor tensor = Tensor::zeros(kind, shape);
  unsigned bits = bitWidth(kind), perByte = 8 / bits, mask = (1u << bits) - 1;
  auto *out = reinterpret_cast<uint8_t *>(tensor.writableBytes());
  for (size_t index = 0; index < bytes.size(); ++index)
    out[index / perByte] |= static_cast<uint8_t>((bytes[index] & mask) << (bits * (index % perByte)));
  return tensor;
}

//===--- Conversion -----------------------------------------------------------------------------------------------===//

template <typename From, typename To>
static void widen(const Tensor &tensor, std::vector<To> &out) {
  ArrayRef<From> in = tensor.stored<From>();
  for (size_t index = 0; index < in.size(); ++index)
    out[index] = static_cast<To>(in[index]);
}

/// Floats to integers truncate; what does not fit saturates (C leaves it undefined).
template <typename To, typename From>
static To convertNumber(From value) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(value))
      return 0;
    if constexpr (std::is_same_v<To, uint64_t>) {
      if (value < 0)
        return static_cast<To>(value <= -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value));
      return value >= 0x1p64 ? std::numeric_limits<To>::max() : static_cast<To>(value);
    } else {
      if (value >= 0x1p63)
        return std::numeric_limits<To>::max();
      return value <= -0x1p63 ? std::numeric_limits<To>::min() : static_cast<To>(value);
    }
  } else {
    return static_cast<To>(value);
  }
}

template <typename To>
static void convertAll(const Tensor &tensor, std::vector<To> &out) {
  auto fromBits = [&](auto bitsType, auto decode) {
    auto in = tensor.stored<decltype(bitsType)>();
    for (size_t index = 0; index < in.size(); ++index)
      out[index] = convertNumber<To>(decode(in[index]));
  };
  auto same = [](auto value) { return value; };
  switch (tensor.kind()) {
  case ElementKind::F32:
    return fromBits(float{}, same);
  case ElementKind::F64:
    return fromBits(double{}, same);
  case ElementKind::F16:
    return fromBits(uint16_t{}, halfToFloat);
  case ElementKind::BF16:
    return fromBits(uint16_t{}, bfloatToFloat);
  case ElementKind::I8:
    return widen<int8_t>(tensor, out);
  case ElementKind::U8:
  case ElementKind::Bool:
    return widen<uint8_t>(tensor, out);
  case ElementKind::I16:
    return widen<int16_t>(tensor, out);
  case ElementKind::U16:
    return widen<uint16_t>(tensor, out);
  case ElementKind::I32:
    return widen<int32_t>(tensor, out);
  case ElementKind::U32:
    return widen<uint32_t>(tensor, out);
  case ElementKind::I64:
    return widen<int64_t>(tensor, out);
  case ElementKind::U64:
    return widen<uint64_t>(tensor, out);
  case ElementKind::F8E4M3FN:
  case ElementKind::F8E4M3FNUZ:
  case ElementKind::F8E5M2:
  case ElementKind::F8E5M2FNUZ:
  case ElementKind::F8E8M0:
    return fromBits(uint8_t{}, [&](uint8_t bits) { return decodeNarrow(tensor.kind(), bits); });
  case ElementKind::F4E2M1:
  case ElementKind::I4:
  case ElementKind::U4:
  case ElementKind::I2:
  case ElementKind::U2:
    break;
  }
  std::vector<uint8_t> bytes = unpackNibbles(tensor);
  bool isSigned = computeClass(tensor.kind()) == ComputeClass::Signed;
  for (size_t index = 0; index < bytes.size(); ++index) {
    if (tensor.kind() == ElementKind::F4E2M1)
      out[index] = convertNumber<To>(decodeNarrow(tensor.kind(), bytes[index]));
    else
      out[index] = isSigned ? static_cast<To>(static_cast<int8_t>(bytes[index])) : static_cast<To>(bytes[index]);
  }
}

template <typename T>
static bool storesComputeType(ElementKind kind) {
  if constexpr (std::is_same_v<T, float>)
    return kind == ElementKind::F32;
  else if constexpr (std::is_same_v<T, double>)
    return kind == ElementKind::F64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return kind == ElementKind::I64;
  else
    return kind == ElementKind::U64;
}

template <typename T>
Numbers<T>::Numbers(const Tensor &tensor) : keep(tensor) {
  if (storesComputeType<T>(tensor.kind()) && reinterpret_cast<uintptr_t>(tensor.bytes()) % alignof(T) == 0) {
    values = tensor.stored<T>();
    return;
  }
  owned.resize(static_cast<size_t>(tensor.count()));
  if (storesComputeType<T>(tensor.kind())) // bytes in the middle of a file need not be aligned
    std::memcpy(owned.data(), tensor.bytes(), owned.size() * sizeof(T));
  else
    convertAll<T>(tensor, owned);
  values = owned;
}

template <typename To, typename From>
static Tensor narrow(ElementKind kind, ArrayRef<int64_t> shape, const std::vector<From> &in) {
  std::vector<To> out(in.size());
  for (size_t index = 0; index < in.size(); ++index) {
    if constexpr (std::is_floating_point_v<To>)
      out[index] = static_cast<To>(in[index]);
    else
      out[index] =
          static_cast<To>(convertNumber<std::conditional_t<std::is_signed_v<To>, int64_t, uint64_t>>(in[index]));
  }
  return Tensor::adopt(kind, shape, std::move(out));
}

template <typename T>
Tensor storeAs(ElementKind kind, ArrayRef<int64_t> shape, std::vector<T> values, bool saturate) {
  if (storesComputeType<T>(kind))
    return Tensor::adopt(kind, shape, std::move(values));
  auto encode = [&](auto bitsType, auto code) {
    std::vector<decltype(bitsType)> out(values.size());
    for (size_t index = 0; index < values.size(); ++index)
      out[index] = code(values[index]);
    return out;
  };
  auto toNarrow = [&](T value) { return encodeNarrow(kind, static_cast<float>(value), saturate); };
  switch (kind) {
  case ElementKind::F32:
    return narrow<float>(kind, shape, values);
  case ElementKind::F64:
    return narrow<double>(kind, shape, values);
  case ElementKind::F16:
    return Tensor::adopt(kind, shape,
                         encode(uint16_t{}, [](T value) { return floatToHalf(static_cast<float>(value)); }));
  case ElementKind::BF16:
    return Tensor::adopt(kind, shape,
                         encode(uint16_t{}, [](T value) { return floatToBfloat(static_cast<float>(value)); }));
  case ElementKind::Bool:
    return Tensor::adopt(kind, shape, encode(uint8_t{}, [](T value) { return static_cast<uint8_t>(value != T{}); }));
  case ElementKind::I8:
    return narrow<int8_t>(kind, shape, values);
  case ElementKind::U8:
    return narrow<uint8_t>(kind, shape, values);
  case ElementKind::I16:
    return narrow<int16_t>(kind, shape, values);
  case ElementKind::U16:
    return narrow<uint16_t>(kind, shape, values);
  case ElementKind::I32:
    return narrow<int32_t>(kind, shape, values);
  case ElementKind::U32:
    return narrow<uint32_t>(kind, shape, values);
  case ElementKind::I64:
    return narrow<int64_t>(kind, shape, values);
  case ElementKind::U64:
    return narrow<uint64_t>(kind, shape, values);
  case ElementKind::F8E4M3FN:
  case ElementKind::F8E4M3FNUZ:
  case ElementKind::F8E5M2:
  case ElementKind::F8E5M2FNUZ:
  case ElementKind::F8E8M0:
    return Tensor::adopt(kind, shape, encode(uint8_t{}, toNarrow));
  case ElementKind::F4E2M1:
    return packNibbles(kind, shape, encode(uint8_t{}, toNarrow));
  case ElementKind::I4:
  case ElementKind::U4:
  case ElementKind::I2:
  case ElementKind::U2:
    break;
  }
  return packNibbles(kind, shape,
                     encode(uint8_t{}, [](T value) { return static_cast<uint8_t>(convertNumber<int64_t>(value)); }));
}

#define QUIRE_COMPUTE_TYPE(T)                                                                                          \
  template class Numbers<T>;                                                                                           \
  template Tensor storeAs<T>(ElementKind, ArrayRef<int64_t>, std::vector<T>, bool);
QUIRE_COMPUTE_TYPE(float)
QUIRE_COMPUTE_TYPE(double)
QUIRE_COMPUTE_TYPE(int64_t)
QUIRE_COMPUTE_TYPE(uint64_t)
#undef QUIRE_COMPUTE_TYPE

SmallVector<int64_t, 8> integersOf(const Tensor &tensor) {
  Numbers<int64_t> numbers(tensor);
  return {numbers.all().begin(), numbers.all().end()};
}

double scalarOf(const Tensor &tensor) { return tensor.count() ? Numbers<double>(tensor)[0] : 0.0; }

Tensor scalarTensor(ElementKind kind, double value) { return storeAs(kind, {}, std::vector<double>{value}); }

Tensor vectorTensor(ArrayRef<int64_t> values) {
  return Tensor::adopt(ElementKind::I64, {static_cast<int64_t>(values.size())},
                       std::vector<int64_t>(values.begin(), values.end()));
}

} // namespace quire::eval
