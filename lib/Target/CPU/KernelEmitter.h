// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emits the scf, vector and memref operations that kernels are made of; arithmetic is in f32 whatever memory holds.
#ifndef QUIRE_LIB_TARGET_CPU_KERNELEMITTER_H
#define QUIRE_LIB_TARGET_CPU_KERNELEMITTER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringMap.h"

namespace quire::cpu {

/// A run of consecutive elements: where it starts and how many.
struct Piece {
  int64_t offset;
  int64_t width;
};

/// Cuts `extent` elements into pieces of `width`, the rest into smaller powers of two.
llvm::SmallVector<Piece> cutIntoVectors(int64_t extent, int64_t width);

class KernelEmitter {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<mlir::Value>;

  KernelEmitter(mlir::OpBuilder &builder, mlir::Location loc) : builder(builder), loc(loc) {}

  Value index(int64_t value);
  Value f32(float value);
  Value i32(int64_t value);

  // Index arithmetic. Quantities are not negative, but for differences.
  Value add(Value a, Value b);
  Value add(Value a, int64_t b) { return b ? add(a, index(b)) : a; }
  Value sub(Value a, Value b);
  Value mul(Value a, int64_t b);
  Value mul(Value a, Value b);
  Value div(Value a, int64_t b);
  Value div(Value a, Value b);
  Value rem(Value a, int64_t b);
  Value rem(Value a, Value b);
  Value ceilDiv(Value a, int64_t b) { return div(add(a, b - 1), b); }
  Value ceilDiv(Value a, Value b);
  Value min(Value a, Value b);
  Value max(Value a, Value b);
  Value atLeast(Value a, Value b);
  Value below(Value a, Value b);
  Value equal(Value a, Value b);
  Value both(Value a, Value b);
  Value shiftLeft(Value a, Value bits);
  /// Bits that an index takes; 0 takes none.
  Value bitWidthOf(Value a);
  Value select(Value condition, Value a, Value b);
  Value toI32(Value index);

  /// for (i = low; i < high; i += step)
  void loop(Value low, Value high, int64_t step, llvm::function_ref<void(Value)> body);
  Values loop(Value low, Value high, int64_t step, mlir::ValueRange initial,
              llvm::function_ref<Values(Value, mlir::ValueRange)> body);
  /// for (i = low; i < high; i = body(i))
  void loopWhileBelow(Value low, Value high, llvm::function_ref<Value(Value)> body);
  /// Every vector of `extent` elements, `width` at a time, then smaller ones: body(offset, width).
  void eachVector(int64_t extent, int64_t width, llvm::function_ref<void(Value, int64_t)> body);
  void ifThen(Value condition, llvm::function_ref<void()> then, llvm::function_ref<void()> otherwise = nullptr);

  /// Vectors of f32.
  mlir::VectorType vectorType(int64_t width);
  Value zeros(int64_t width);
  Value splat(float value, int64_t width);
  Value broadcast(Value scalar, int64_t width);
  Value fma(Value a, Value b, Value c);
  /// The sum or the maximum of a vector's elements, as a tree of a fixed shape. The width is a power of two.
  Value sumOf(Value vector);
  Value maxOf(Value vector);
  /// The greater of two, `b` when `a` is not a number.
  Value greater(Value a, Value b);

  /// Memory of f32, f16, bf16, the 8-bit formats of SmallFloats.h, or i8 for unsigned integers, which take numbers in [0, 256) and drop what is behind the
  /// point.
  Value load(Value memref, mlir::ValueRange indices);
  void store(Value scalar, Value memref, mlir::ValueRange indices);
  Value loadVector(Value memref, mlir::ValueRange indices, int64_t width);
  void storeVector(Value vector, Value memref, mlir::ValueRange indices);
  /// Stores the first `count` elements.
  void storeFirst(Value vector, int64_t count, Value memref, mlir::ValueRange indices);
  /// The first `count` elements, then zeros.
  Value loadFirst(int64_t count, Value memref, mlir::ValueRange indices, int64_t width);
  /// Elements of memory as they are, a vector or, with width 0, one.
  Value loadRaw(Value memref, mlir::ValueRange indices, int64_t width);
  /// Elements of memory as numbers.
  Value numberOf(Value raw) { return widen(raw); }
  /// The lower or the upper half of bytes, each half a number in [0, 16).
  Value halfOf(Value bytes, bool upper);
  /// Numbers in [0, 16) as the halves of bytes; `upper` may be null for 0. What is behind the point is dropped.
  void storeHalves(Value lower, Value upper, Value memref, mlir::ValueRange indices);
  /// An i64 or i32 element as an index.
  Value loadIndex(Value memref, mlir::ValueRange indices);
  Value stackBuffer(llvm::ArrayRef<int64_t> shape);

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  Value widen(Value value);
  Value narrow(Value value, mlir::Type element);
  Value mask(int64_t count, int64_t width);
  Value reduce(Value vector, llvm::function_ref<Value(Value, Value)> combine);
};

/// The private kernel functions of a module, one per key.
class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module) : module(module), symbols(module) {}

  /// The function for `key`; when there is none yet, one named after `name` whose body `emit` fills. The terminator is there.
  mlir::func::FuncOp getOrCreate(llvm::StringRef name, llvm::StringRef key, mlir::Location loc, mlir::TypeRange arguments,
                                 llvm::function_ref<void(KernelEmitter &, mlir::ValueRange)> emit);
  mlir::SymbolTable &getSymbols() { return symbols; }

private:
  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  llvm::StringMap<mlir::func::FuncOp> kernels;
};

/// What tells kernels of one kind apart: the types of operands and the attributes of `op`.
std::string kernelKey(mlir::Operation *op);

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_KERNELEMITTER_H
