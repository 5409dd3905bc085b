// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emission of kernel code, and the table of kernel functions of a module.
#include "lib/Target/CPU/KernelEmitter.h"

#include "lib/Target/CPU/SmallFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace quire::cpu;

SmallVector<Piece> quire::cpu::cutIntoVectors(int64_t extent, int64_t width) {
  SmallVector<Piece> pieces;
  for (int64_t offset = 0; offset < extent; offset += pieces.back().width) {
    int64_t piece = width;
    while (piece > extent - offset)
      piece /= 2;
    pieces.push_back({offset, piece});
  }
  return pieces;
}

Value KernelEmitter::index(int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); }
Value KernelEmitter::f32(float value) {
  return arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(value));
}
Value KernelEmitter::i32(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); }
Value KernelEmitter::add(Value a, Value b) { return arith::AddIOp::create(builder, loc, a, b); }
Value KernelEmitter::sub(Value a, Value b) { return arith::SubIOp::create(builder, loc, a, b); }
Value KernelEmitter::mul(Value a, Value b) { return arith::MulIOp::create(builder, loc, a, b); }
Value KernelEmitter::mul(Value a, int64_t b) { return b == 1 ? a : mul(a, index(b)); }
Value KernelEmitter::div(Value a, Value b) { return arith::DivUIOp::create(builder, loc, a, b); }
Value KernelEmitter::div(Value a, int64_t b) { return b == 1 ? a : div(a, index(b)); }
Value KernelEmitter::rem(Value a, Value b) { return arith::RemUIOp::create(builder, loc, a, b); }
Value KernelEmitter::rem(Value a, int64_t b) { return b == 1 ? index(0) : rem(a, index(b)); }
Value KernelEmitter::ceilDiv(Value a, Value b) { return div(add(a, sub(b, index(1))), b); }
Value KernelEmitter::min(Value a, Value b) { return arith::MinSIOp::create(builder, loc, a, b); }
Value KernelEmitter::max(Value a, Value b) { return arith::MaxSIOp::create(builder, loc, a, b); }
Value KernelEmitter::atLeast(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge, a, b);
}
Value KernelEmitter::below(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}
Value KernelEmitter::equal(Value a, Value b) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
}
Value KernelEmitter::both(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
Value KernelEmitter::shiftLeft(Value a, Value bits) { return arith::ShLIOp::create(builder, loc, a, bits); }
Value KernelEmitter::bitWidthOf(Value a) {
  Value bits = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), a);
  Value zeros = math::CountLeadingZerosOp::create(builder, loc, bits);
  return sub(index(64), arith::IndexCastOp::create(builder, loc, builder.getIndexType(), zeros));
}
Value KernelEmitter::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, condition, a, b);
}
Value KernelEmitter::toI32(Value index) {
  return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), index);
}

void KernelEmitter::loop(Value low, Value high, int64_t step, function_ref<void(Value)> body) {
  loop(low, high, step, {}, [&](Value i, ValueRange) {
    body(i);
    return Values{};
  });
}

KernelEmitter::Values KernelEmitter::loop(Value low, Value high, int64_t step, ValueRange initial,
                                          function_ref<Values(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(builder, loc, low, high, index(step), initial);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Values results = body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!initial.empty())
    scf::YieldOp::create(builder, loc, results);
  return Values(loop.getResults());
}

void KernelEmitter::loopWhileBelow(Value low, Value high, function_ref<Value(Value)> body) {
  auto loop = scf::WhileOp::create(
      builder, loc, TypeRange{builder.getIndexType()}, ValueRange{low},
      [&](OpBuilder &inner, Location at, ValueRange i) {
        Value more = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::slt, i[0], high);
        scf::ConditionOp::create(inner, at, more, i);
      },
      nullptr);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getAfterBody());
  Value next = body(loop.getAfterBody()->getArgument(0));
  scf::YieldOp::create(builder, loc, next);
}

void KernelEmitter::eachVector(int64_t extent, int64_t width, function_ref<void(Value, int64_t)> body) {
  int64_t whole = extent / width * width;
  if (whole)
    loop(index(0), index(whole), width, [&](Value offset) { body(offset, width); });
  for (Piece piece : cutIntoVectors(extent - whole, width))
    body(index(whole + piece.offset), piece.width);
}

void KernelEmitter::ifThen(Value condition, function_ref<void()> then, function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/static_cast<bool>(otherwise));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  then();
  if (!otherwise)
    return;
  builder.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

VectorType KernelEmitter::vectorType(int64_t width) { return VectorType::get({width}, builder.getF32Type()); }
Value KernelEmitter::zeros(int64_t width) { return splat(0.0f, width); }
Value KernelEmitter::splat(float value, int64_t width) {
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(vectorType(width), value));
}
Value KernelEmitter::broadcast(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(builder, loc, VectorType::get({width}, scalar.getType()), scalar);
}
Value KernelEmitter::fma(Value a, Value b, Value c) { return vector::FMAOp::create(builder, loc, a, b, c); }

Value KernelEmitter::reduce(Value vector, function_ref<Value(Value, Value)> combine) {
  int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
  while (width > 1) {
    width /= 2;
    SmallVector<int64_t> low(width), high(width);
    for (int64_t i = 0; i < width; ++i) {
      low[i] = i;
      high[i] = width + i;
    }
    vector = combine(vector::ShuffleOp::create(builder, loc, vector, vector, low),
                     vector::ShuffleOp::create(builder, loc, vector, vector, high));
  }
  return vector::ExtractOp::create(builder, loc, vector, int64_t(0));
}

Value KernelEmitter::sumOf(Value vector) {
  return reduce(vector, [&](Value a, Value b) -> Value { return arith::AddFOp::create(builder, loc, a, b); });
}
Value KernelEmitter::maxOf(Value vector) {
  return reduce(vector, [&](Value a, Value b) { return greater(a, b); });
}
Value KernelEmitter::greater(Value a, Value b) {
  return select(arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OGT, a, b), a, b);
}

Value KernelEmitter::widen(Value value) {
  if (getElementTypeOrSelf(value.getType()).isF32())
    return value;
  Type type = builder.getF32Type();
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(type);
  if (getElementTypeOrSelf(value.getType()).isInteger(8))
    return arith::UIToFPOp::create(builder, loc, type, value);
  if (isSmallFloat(getElementTypeOrSelf(value.getType())))
    return widenSmallFloat(*this, value, /*viaHalf=*/false);
  return arith::ExtFOp::create(builder, loc, type, value);
}

Value KernelEmitter::narrow(Value value, Type element) {
  if (element.isF32())
    return value;
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    type = vector.clone(element);
  if (element.isInteger(8))
    return arith::FPToUIOp::create(builder, loc, type, value);
  if (isSmallFloat(element))
    return narrowToSmallFloat(*this, value, element);
  return arith::TruncFOp::create(builder, loc, type, value);
}

static Type elementOf(Value memref) { return cast<MemRefType>(memref.getType()).getElementType(); }

Value KernelEmitter::load(Value memref, ValueRange indices) {
  return widen(memref::LoadOp::create(builder, loc, memref, indices));
}
void KernelEmitter::store(Value scalar, Value memref, ValueRange indices) {
  memref::StoreOp::create(builder, loc, narrow(scalar, elementOf(memref)), memref, indices);
}
Value KernelEmitter::loadVector(Value memref, ValueRange indices, int64_t width) {
  return widen(vector::LoadOp::create(builder, loc, VectorType::get({width}, elementOf(memref)), memref, indices));
}
void KernelEmitter::storeVector(Value vector, Value memref, ValueRange indices) {
  vector::StoreOp::create(builder, loc, narrow(vector, elementOf(memref)), memref, indices);
}

Value KernelEmitter::loadRaw(Value memref, ValueRange indices, int64_t width) {
  if (width == 0)
    return memref::LoadOp::create(builder, loc, memref, indices);
  return vector::LoadOp::create(builder, loc, VectorType::get({width}, elementOf(memref)), memref, indices);
}

// An integer for each element of `like`.
static Value integers(OpBuilder &builder, Location loc, Type like, int64_t value) {
  if (auto vector = dyn_cast<VectorType>(like))
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(vector, APInt(vector.getElementTypeBitWidth(), value)));
  return arith::ConstantIntOp::create(builder, loc, like, value);
}

Value KernelEmitter::halfOf(Value bytes, bool upper) {
  auto typeOf = [&](Type element) -> Type {
    auto vector = dyn_cast<VectorType>(bytes.getType());
    return vector ? Type(vector.clone(element)) : element;
  };
  Type wide = typeOf(builder.getI32Type());
  Value widened = arith::ExtUIOp::create(builder, loc, wide, bytes);
  Value half = upper ? Value(arith::ShRUIOp::create(builder, loc, widened, integers(builder, loc, wide, 4)))
                     : Value(arith::AndIOp::create(builder, loc, widened, integers(builder, loc, wide, 15)));
  return arith::SIToFPOp::create(builder, loc, typeOf(builder.getF32Type()), half);
}

void KernelEmitter::storeHalves(Value lower, Value upper, Value memref, ValueRange indices) {
  Value bytes = narrow(lower, builder.getI8Type());
  if (upper) {
    Value high = narrow(upper, builder.getI8Type());
    high = arith::ShLIOp::create(builder, loc, high, integers(builder, loc, high.getType(), 4));
    bytes = arith::OrIOp::create(builder, loc, bytes, high);
  }
  if (isa<VectorType>(bytes.getType()))
    vector::StoreOp::create(builder, loc, bytes, memref, indices);
  else
    memref::StoreOp::create(builder, loc, bytes, memref, indices);
}

Value KernelEmitter::mask(int64_t count, int64_t width) {
  return vector::ConstantMaskOp::create(builder, loc, VectorType::get({width}, builder.getI1Type()),
                                        ArrayRef<int64_t>{count});
}

void KernelEmitter::storeFirst(Value vector, int64_t count, Value memref, ValueRange indices) {
  int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
  if (count >= width)
    return storeVector(vector, memref, indices);
  if (count > 0)
    vector::MaskedStoreOp::create(builder, loc, memref, indices, mask(count, width),
                                  narrow(vector, elementOf(memref)));
}

Value KernelEmitter::loadFirst(int64_t count, Value memref, ValueRange indices, int64_t width) {
  if (count >= width)
    return loadVector(memref, indices, width);
  if (count <= 0)
    return zeros(width);
  auto type = VectorType::get({width}, elementOf(memref));
  Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
  return widen(vector::MaskedLoadOp::create(builder, loc, type, memref, indices, mask(count, width), zero));
}

Value KernelEmitter::loadIndex(Value memref, ValueRange indices) {
  Value element = memref::LoadOp::create(builder, loc, memref, indices);
  return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), element);
}

Value KernelEmitter::stackBuffer(ArrayRef<int64_t> shape) {
  return memref::AllocaOp::create(builder, loc, MemRefType::get(shape, builder.getF32Type()),
                                  builder.getI64IntegerAttr(64));
}

func::FuncOp KernelTable::getOrCreate(StringRef name, StringRef key, Location loc, TypeRange arguments,
                                      function_ref<void(KernelEmitter &, ValueRange)> emit) {
  func::FuncOp &kernel = kernels[key];
  if (kernel)
    return kernel;
  OpBuilder builder(module.getContext());
  kernel = func::FuncOp::create(loc, name, builder.getFunctionType(arguments, {}));
  kernel.setPrivate();
  symbols.insert(kernel);
  Block *entry = kernel.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  builder.setInsertionPoint(func::ReturnOp::create(builder, loc));
  KernelEmitter emitter(builder, loc);
  emit(emitter, entry->getArguments());
  return kernel;
}

std::string quire::cpu::kernelKey(Operation *op) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  llvm::interleave(op->getOperandTypes(), stream, ";");
  stream << op->getAttrDictionary();
  return key;
}
