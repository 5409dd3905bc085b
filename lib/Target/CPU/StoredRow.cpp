// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Asymmetric quantisation of a row: zero + scale * code, codes from 0 to 255 or 15.
#include "lib/Target/CPU/StoredRow.h"
#include "lib/Target/CPU/AttendTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

void StoredRow::quantize(Value scales, Value slot, int64_t largestCode) {
  largest = static_cast<float>(largestCode);
  groups.clear();
  for (auto [index, piece] : llvm::enumerate(codeGroups(features)))
    quantizeGroup(piece, index, scales, slot);
}

void StoredRow::quantizeGroup(Piece piece, int64_t index, Value scales, Value slot) {
  OpBuilder &b = e.builder;
  Value highest, opposite, marks; // the maximum, that of the numbers negated, and 0 or, when some number is not finite, NaN
  auto join = [&](Value &soFar, Value next, bool sum) {
    soFar = !soFar ? next : sum ? Value(arith::AddFOp::create(b, e.loc, soFar, next)) : e.greater(next, soFar);
  };
  for (Piece part : cutIntoVectors(piece.width, vectorLanes)) {
    Value numbers = e.loadVector(rows, {row, head, e.index(piece.offset + part.offset)}, part.width);
    join(highest, e.maxOf(numbers), false);
    join(opposite, e.maxOf(arith::NegFOp::create(b, e.loc, numbers)), false);
    join(marks, e.sumOf(arith::MulFOp::create(b, e.loc, numbers, e.zeros(part.width))), true);
  }
  Value zero = arith::NegFOp::create(b, e.loc, opposite), none = e.f32(0.0f);
  Value range = arith::SubFOp::create(b, e.loc, highest, zero);
  Value scale = arith::MulFOp::create(b, e.loc, range, e.f32(1.0f / largest));
  Value some = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OGT, scale, none);
  Value inverse = e.select(some, arith::DivFOp::create(b, e.loc, e.f32(1.0f), scale), none);
  e.store(arith::AddFOp::create(b, e.loc, scale, marks), scales, {head, e.index(index), e.index(0), slot});
  e.store(zero, scales, {head, e.index(index), e.index(1), slot});
  groups.push_back({piece, zero, inverse});
}

Value StoredRow::stored(Value numbers, const Group &group) {
  if (!group.zero)
    return numbers;
  OpBuilder &b = e.builder;
  auto vector = dyn_cast<VectorType>(numbers.getType());
  auto spread = [&](Value scalar) { return vector ? e.broadcast(scalar, vector.getDimSize(0)) : scalar; };
  Value distance = arith::SubFOp::create(b, e.loc, numbers, spread(group.zero));
  Value code = arith::MulFOp::create(b, e.loc, distance, spread(group.inverse));
  code = arith::AddFOp::create(b, e.loc, code, spread(e.f32(0.5f)));
  Value most = spread(e.f32(largest));
  Value below = arith::CmpFOp::create(b, e.loc, arith::CmpFPredicate::OLT, code, most);
  return e.greater(e.select(below, code, most), spread(e.f32(0.0f)));
}

void StoredRow::eachFeature(function_ref<void(Value, Value)> body) {
  for (const Group &group : groups) {
    int64_t first = group.features.offset;
    e.loop(e.index(first), e.index(first + group.features.width), 1, [&](Value feature) {
      body(feature, stored(e.load(rows, {row, head, feature}), group));
    });
  }
}

void StoredRow::eachVector(function_ref<void(Value, Value)> body) {
  for (const Group &group : groups)
    e.eachVector(group.features.width, vectorLanes, [&](Value offset, int64_t width) {
      Value feature = e.add(offset, group.features.offset);
      body(feature, stored(e.loadVector(rows, {row, head, feature}, width), group));
    });
}

void StoredRow::eachByte(int64_t width, function_ref<void(Value, Value, Value)> body) {
  for (const Group &group : groups) {
    int64_t first = group.features.offset, pairs = group.features.width / 2, half = llvm::divideCeil(group.features.width, 2);
    auto numbers = [&](Value inGroup, int64_t from, int64_t lanes) {
      Value feature = e.add(inGroup, from);
      return stored(lanes ? e.loadVector(rows, {row, head, feature}, lanes) : e.load(rows, {row, head, feature}), group);
    };
    auto emit = [&](Value inGroup, int64_t lanes) {
      body(e.add(inGroup, first / 2), numbers(inGroup, first, lanes), numbers(inGroup, first + half, lanes));
    };
    if (width > 1)
      e.eachVector(pairs, width, emit);
    else
      e.loop(e.index(0), e.index(pairs), 1, [&](Value inGroup) { emit(inGroup, 0); });
    if (half > pairs)
      body(e.index(first / 2 + pairs), numbers(e.index(pairs), first, 0), Value());
  }
}
