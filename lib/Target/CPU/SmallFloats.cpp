// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Integer arithmetic on the bits of 8-bit formats, subnormals included. No operation meets a subnormal f32 whose value matters.
#include "lib/Target/CPU/SmallFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace quire::cpu;

bool quire::cpu::isSmallFloat(Type element) { return isa<Float8E4M3FNType, Float8E5M2Type>(element); }

namespace {

struct Format {
  explicit Format(Type element) : ieee(isa<Float8E5M2Type>(element)), mantissa(ieee ? 2 : 3), shift(23 - mantissa) {
    int32_t bias = ieee ? 15 : 7;
    rebias = (127 - bias) << 23;
    subnormalBase = (127 + 23 - (bias - 1 + mantissa)) << 23;
    largest = ieee ? 0x7b : 0x7e;
  }

  bool ieee; // has infinities
  int32_t mantissa, shift;
  int32_t rebias;        // between the exponents of f32 and of the format
  int32_t subnormalBase; // a power of two whose f32 neighbours are one unit of the subnormals apart
  int32_t largest;
};

// Operations on values of one shape.
class Bits {
public:
  Bits(KernelEmitter &emitter, Value like) : b(emitter.builder), loc(emitter.loc), shape(dyn_cast<VectorType>(like.getType())) {}

  Type of(Type element) { return shape ? Type(shape.clone(element)) : element; }
  Type integers(unsigned width) { return of(b.getIntegerType(width)); }
  Type floats() { return of(b.getF32Type()); }
  Value constant(unsigned width, int64_t value) {
    Type element = b.getIntegerType(width);
    TypedAttr scalar = IntegerAttr::get(element, APInt(width, static_cast<uint64_t>(value), /*isSigned=*/false, /*implicitTrunc=*/true));
    if (shape)
      scalar = DenseElementsAttr::get(shape.clone(element), cast<Attribute>(scalar));
    return arith::ConstantOp::create(b, loc, scalar);
  }
  Value i32(int64_t value) { return constant(32, value); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, loc, x, y); }
  Value either(Value x, Value y) { return arith::OrIOp::create(b, loc, x, y); }
  Value differ(Value x, Value y) { return arith::XOrIOp::create(b, loc, x, y); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  Value sub(Value x, Value y) { return arith::SubIOp::create(b, loc, x, y); }
  Value up(Value x, Value by) { return arith::ShLIOp::create(b, loc, x, by); }
  Value down(Value x, Value by) { return arith::ShRUIOp::create(b, loc, x, by); }
  Value as(Type type, Value x) { return arith::BitcastOp::create(b, loc, type, x); }
  Value isBelow(Value x, int64_t limit) { return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, i32(limit)); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, loc, condition, x, y); }

  OpBuilder &b;
  Location loc;
  VectorType shape;
};

// Both formats are a part of f16: f8E5M2 is its upper byte; f8E4M3FN has the same order of bits with one bit of the exponent fewer, and its NaN is the one
// magnitude from which one more carries into the bit that it lacks.
Value widenViaHalf(Bits &x, Value bytes, bool ieee) {
  Type i16 = x.integers(16), f16 = x.of(x.b.getF16Type());
  if (ieee) {
    Value half = x.up(arith::ExtUIOp::create(x.b, x.loc, i16, bytes), x.constant(16, 8));
    return arith::ExtFOp::create(x.b, x.loc, x.floats(), x.as(f16, half));
  }
  Value shifted = x.up(arith::ExtSIOp::create(x.b, x.loc, i16, bytes), x.constant(16, 7));
  Value carry = x.both(x.differ(x.add(shifted, x.constant(16, 0x80)), shifted), x.constant(16, 0x4000));
  Value half = x.either(x.both(shifted, x.constant(16, 0xbf80)), carry);
  Value number = arith::ExtFOp::create(x.b, x.loc, x.floats(), x.as(f16, half));
  TypedAttr scale = x.b.getF32FloatAttr(256.0f); // biases are 15 and 7
  if (x.shape)
    scale = DenseElementsAttr::get(cast<ShapedType>(x.floats()), cast<Attribute>(scale));
  return arith::MulFOp::create(x.b, x.loc, number, arith::ConstantOp::create(x.b, x.loc, scale));
}

} // namespace

Value quire::cpu::widenSmallFloat(KernelEmitter &emitter, Value elements, bool viaHalf) {
  Bits x(emitter, elements);
  Format format(getElementTypeOrSelf(elements.getType()));
  Value bytes = x.as(x.integers(8), elements);
  if (viaHalf)
    return widenViaHalf(x, bytes, format.ieee);
  Value wide = arith::ExtUIOp::create(x.b, x.loc, x.integers(32), bytes);
  Value magnitude = x.both(wide, x.i32(0x7f)), sign = x.up(x.both(wide, x.i32(0x80)), x.i32(24));
  Value shifted = x.up(magnitude, x.i32(format.shift));
  Value special = x.either(shifted, x.i32(0x7f800000)); // with the mantissa that tells NaN from infinity
  Value number = x.select(x.isBelow(magnitude, format.largest + 1), x.add(shifted, x.i32(format.rebias)), special);
  Value base = x.as(x.floats(), x.i32(format.subnormalBase));
  Value above = x.as(x.floats(), x.either(magnitude, x.i32(format.subnormalBase)));
  Value small = x.as(x.integers(32), arith::SubFOp::create(x.b, x.loc, above, base));
  return x.as(x.floats(), x.either(x.select(x.isBelow(magnitude, 1 << format.mantissa), small, number), sign));
}

Value quire::cpu::narrowToSmallFloat(KernelEmitter &emitter, Value numbers, Type element) {
  Bits x(emitter, numbers);
  Format format(element);
  Value bits = x.as(x.integers(32), numbers), magnitude = x.both(bits, x.i32(0x7fffffff));
  Value sign = x.both(x.down(bits, x.i32(24)), x.i32(0x80)), shift = x.i32(format.shift);
  Value odd = x.both(x.down(magnitude, shift), x.i32(1));
  Value rounded = x.add(x.add(magnitude, x.i32((1 << (format.shift - 1)) - 1)), odd);
  Value normal = x.sub(x.down(rounded, shift), x.i32(format.rebias >> format.shift));
  Value base = x.i32(format.subnormalBase);
  Value above = arith::AddFOp::create(x.b, x.loc, x.as(x.floats(), magnitude), x.as(x.floats(), base));
  Value small = x.sub(x.as(x.integers(32), above), base);
  Value number = x.select(x.isBelow(magnitude, format.rebias + (1 << 23)), small, normal);
  int64_t largest = (static_cast<int64_t>(format.largest) << format.shift) + format.rebias; // its bits in f32
  Value stored = x.select(x.isBelow(magnitude, largest + 1), x.either(number, sign), x.i32(0x7f));
  return x.as(x.of(element), arith::TruncIOp::create(x.b, x.loc, x.integers(8), stored));
}
