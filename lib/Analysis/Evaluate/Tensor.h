// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Concrete tensors of the evaluator: element kinds, shapes and contiguous bytes as ONNX stores raw data.
#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_TENSOR_H
#define QUIRE_LIB_ANALYSIS_EVALUATE_TENSOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir {
class MLIRContext;
class Type;
} // namespace mlir

namespace quire::eval {

enum class ElementKind : uint8_t {
  F32,
  F64,
  F16,
  BF16,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0,
  F4E2M1,
  I2,
  U2,
  I4,
  U4,
  I8,
  U8,
  I16,
  U16,
  I32,
  U32,
  I64,
  U64,
  Bool
};

/// In which C++ type the kernels compute an element kind: f32 for all floats up to 32 bits, then double, int64, uint64.
enum class ComputeClass : uint8_t { Float, Double, Signed, Unsigned };

unsigned bitWidth(ElementKind kind);
ComputeClass computeClass(ElementKind kind);
llvm::StringRef nameOf(ElementKind kind);
inline bool isFloat(ElementKind kind) {
  return computeClass(kind) == ComputeClass::Float || computeClass(kind) == ComputeClass::Double;
}
/// The kind of a builtin element type (signless integers are signed, i1 is Bool), or none for index, complex and
/// others.
std::optional<ElementKind> kindOf(mlir::Type elementType);
mlir::Type elementTypeOf(ElementKind kind, mlir::MLIRContext *context);

using Shape = llvm::SmallVector<int64_t, 6>;

/// The number of elements of a shape.
int64_t countOf(llvm::ArrayRef<int64_t> shape);
/// Row-major strides in elements.
Shape stridesOf(llvm::ArrayRef<int64_t> shape);
std::string textOf(llvm::ArrayRef<int64_t> shape);

/// An error with a text for a person. Kernels name what they expected and what they got.
llvm::Error fail(const llvm::Twine &text);

/// A contiguous row-major tensor. Bytes are little endian; kinds below 8 bits are packed, first element in the low
/// bits, as in ONNX. Copies share their bytes; bytes do not change once a tensor has been handed on.
class Tensor {
public:
  Tensor() = default;

  /// Zeros, writable until handed on.
  static Tensor zeros(ElementKind kind, llvm::ArrayRef<int64_t> shape);
  /// A view of bytes that somebody else keeps alive (through `owner`, when given).
  static Tensor view(ElementKind kind, llvm::ArrayRef<int64_t> shape, const void *bytes,
                     std::shared_ptr<const void> owner = nullptr);
  /// Takes the values, which are stored elements of `kind`.
  template <typename T>
  static Tensor adopt(ElementKind kind, llvm::ArrayRef<int64_t> shape, std::vector<T> values) {
    auto held = std::make_shared<std::vector<T>>(std::move(values));
    const void *bytes = held->data();
    return view(kind, shape, bytes, std::shared_ptr<const void>(std::move(held)));
  }

  /// False for the tensor of an absent optional operand or result.
  explicit operator bool() const { return present; }
  ElementKind kind() const { return elementKind; }
  llvm::ArrayRef<int64_t> shape() const { return extents; }
  int64_t rank() const { return static_cast<int64_t>(extents.size()); }
  int64_t extent(int64_t axis) const { return extents[axis < 0 ? axis + rank() : axis]; }
  int64_t count() const { return elements; }
  int64_t byteCount() const;
  const char *bytes() const { return data; }
  /// Only for a tensor from zeros() that has not been handed on.
  char *writableBytes() { return const_cast<char *>(data); }
  template <typename T>
  llvm::ArrayRef<T> stored() const {
    return {reinterpret_cast<const T *>(data), static_cast<size_t>(elements)};
  }
  template <typename T>
  llvm::MutableArrayRef<T> writable() {
    return {reinterpret_cast<T *>(writableBytes()), static_cast<size_t>(elements)};
  }

  /// The same bytes under another shape of the same count.
  Tensor withShape(llvm::ArrayRef<int64_t> shape) const;
  /// The same bytes under another kind of the same width.
  Tensor withKind(ElementKind kind) const;

private:
  bool present = false;
  ElementKind elementKind = ElementKind::F32;
  Shape extents;
  int64_t elements = 0;
  const char *data = nullptr;
  std::shared_ptr<const void> owner;
};

using Result = llvm::Expected<Tensor>;
using Tensors = llvm::SmallVector<Tensor, 4>;
using Results = llvm::Expected<Tensors>;

/// Elements as compute type T (float, double, int64_t or uint64_t): borrowed when the tensor stores T, else converted.
template <typename T>
class Numbers {
public:
  explicit Numbers(const Tensor &tensor);
  Numbers(Numbers &&) = default;
  llvm::ArrayRef<T> all() const { return values; }
  const T *data() const { return values.data(); }
  T operator[](int64_t index) const { return values[index]; }
  size_t size() const { return values.size(); }

private:
  Tensor keep;
  std::vector<T> owned;
  llvm::ArrayRef<T> values;
};

/// Stores compute values as `kind`: floats round to nearest even (8-bit floats saturate when `saturate`), integers
/// wrap, Bool is "not zero". Conversions between compute types follow C, floats to integers truncate.
template <typename T>
Tensor storeAs(ElementKind kind, llvm::ArrayRef<int64_t> shape, std::vector<T> values, bool saturate = true);

/// Elements as 64-bit integers, for shapes, axes and indices.
llvm::SmallVector<int64_t, 8> integersOf(const Tensor &tensor);
/// The single element as a number.
double scalarOf(const Tensor &tensor);
Tensor scalarTensor(ElementKind kind, double value);
Tensor vectorTensor(llvm::ArrayRef<int64_t> values);

/// The bytes of one element per byte for kinds below 8 bits (sign extended for signed ones), and back.
std::vector<uint8_t> unpackNibbles(const Tensor &tensor);
Tensor packNibbles(ElementKind kind, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<uint8_t> bytes);

/// Calls `body` with a null value of the compute type of `kind`.
template <typename F>
auto dispatchCompute(ElementKind kind, F &&body) {
  switch (computeClass(kind)) {
  case ComputeClass::Float:
    return body(float{});
  case ComputeClass::Double:
    return body(double{});
  case ComputeClass::Signed:
    return body(int64_t{});
  case ComputeClass::Unsigned:
    break;
  }
  return body(uint64_t{});
}

} // namespace quire::eval

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_TENSOR_H
