// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Builds the linalg and tensor operations that `onnx` operators become: element-wise maps, reductions, views and gathers.
#ifndef QUIRE_LIB_CONVERSION_ONNXTOLINALG_EMITTER_H
#define QUIRE_LIB_CONVERSION_ONNXTOLINALG_EMITTER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace quire {

/// Computes one element from the elements of the inputs.
using ElementFn = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// Computes one element from its index in the result.
using IndexFn = llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)>;

/// The constant elements of a value, if it is a constant.
mlir::DenseElementsAttr constantOf(mlir::Value value);

/// The integers of a constant tensor, in row-major order; nothing if the value is no constant.
std::optional<llvm::SmallVector<int64_t>> constantIntegers(mlir::Value value);

/// True for an operand that is present (an absent one has type `none`).
bool isPresent(mlir::Value value);

/// Emits at the place of one op. A tensor has at most one extent `?`, the number of rows; it is taken from a value that has it.
class Emitter {
public:
  Emitter(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;

  /// The number of rows of a value with an extent `?`.
  mlir::Value rowsOf(mlir::Value value);
  /// The number of rows of the first of `values` that has any; null if none has.
  mlir::Value rowsOf(mlir::ValueRange values);

  mlir::Value empty(mlir::RankedTensorType type, mlir::Value rows);
  mlir::Value filled(mlir::RankedTensorType type, mlir::Value rows, mlir::TypedAttr element);
  mlir::Value index(int64_t value);
  mlir::Value scalar(mlir::Type type, double value) { return scalar(builder, loc, type, value); }
  static mlir::Value scalar(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type, double value);

  /// `fn` on every element, inputs broadcast to `type` as numpy does. 16-bit floats reach `fn` as f32 and its result is
  /// converted to the element type of `type`.
  mlir::Value map(mlir::ValueRange inputs, mlir::RankedTensorType type, ElementFn fn);

  /// As `map`, without the conversion to and from f32.
  mlir::Value mapExact(mlir::ValueRange inputs, mlir::RankedTensorType type, ElementFn fn);

  /// An element of `type` from its index.
  mlir::Value generate(mlir::RankedTensorType type, mlir::Value rows, IndexFn fn);

  /// As `map`, with the index of the element after the elements of the inputs.
  mlir::Value mapWithIndex(mlir::ValueRange inputs, mlir::RankedTensorType type, mlir::Value rows,
                           llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange elements, mlir::ValueRange index)> fn);

  /// Folds `combine(accumulator, element)` over `axes` in ascending order, from `initial`, in `accumulator` type; the axes stay as extents of 1.
  mlir::Value reduce(mlir::Value input, llvm::ArrayRef<int64_t> axes, mlir::Type accumulator, double initial,
                     llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::Value, mlir::Value)> combine);

  /// The same elements in row-major order under another shape; null if that would mix rows.
  mlir::Value reshape(mlir::Value input, mlir::RankedTensorType type);

  mlir::Value transpose(mlir::Value input, llvm::ArrayRef<int64_t> permutation);
  mlir::Value broadcast(mlir::Value input, mlir::RankedTensorType type);
  /// `count` elements along `axis` from `first` on, every `step`-th. The axis is static.
  mlir::Value slice(mlir::Value input, int64_t axis, int64_t first, int64_t count, int64_t step = 1);
  mlir::Value concat(mlir::ValueRange inputs, int64_t axis, mlir::RankedTensorType type);

  /// Converts elements; integers from floats are truncated, `i1` is "not zero".
  mlir::Value convert(mlir::Value input, mlir::Type element);
  static mlir::Value castElement(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value element, mlir::Type type);

  /// An element of a tensor.
  static mlir::Value extract(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tensor, mlir::ValueRange index);
  /// An integer element as index into an axis of `extent` elements; negative counts from the end.
  static mlir::Value wrapIndex(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value element, int64_t extent);

private:
  mlir::linalg::GenericOp generic(mlir::ValueRange inputs, mlir::RankedTensorType type, mlir::Value rows,
                                  llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location, mlir::ValueRange)> body);
};

/// The type of `type` with another element type.
mlir::RankedTensorType withElement(mlir::RankedTensorType type, mlir::Type element);
/// The type in which elements of `element` are computed: f32 for 16-bit floats.
mlir::Type computeType(mlir::Type element);
mlir::RankedTensorType rankedType(mlir::Value value);

} // namespace quire

#endif // QUIRE_LIB_CONVERSION_ONNXTOLINALG_EMITTER_H
