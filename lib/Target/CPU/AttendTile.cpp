// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scores, softmax step and weighted sum of one page, for a few folded rows at a time. See docs/Rationale/AttentionKernel.md.
#include "lib/Target/CPU/AttendTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>
#include <numeric>

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

constexpr int64_t cacheLine = 64;

class Tile {
public:
  using Values = KernelEmitter::Values;

  Tile(KernelEmitter &emitter, const AttendShape &shape, const AttendBuffers &buffers, ArrayRef<AttendRow> rows,
       const AttendPage &page, int64_t first, int64_t count)
      : e(emitter), shape(shape), buffers(buffers), rows(rows), page(page), first(first), count(count),
        lanes(shape.lanes()), elementBytes(shape.state.getElement().getIntOrFloatBitWidth() / 8) {}

  void emit() {
    if (first == 0 && page.next.keyScales) {
      prefetchScales(page.next.keyScales);
      prefetchScales(page.next.valueScales);
    }
    int64_t groups = shape.state.getBlock() / lanes;
    int64_t together = std::gcd(groups, std::max<int64_t>(1, llvm::bit_floor(uint64_t(shape.accumulators() / count))));
    Value low = e.mul(e.div(page.from, lanes * together), together);
    Value high = e.mul(e.ceilDiv(page.to, lanes * together), together);
    e.loop(low, high, together, [&](Value group) { emitScores(group, together); });
    emitMaximum(low, high);
    emitWeights(low, high);
    emitValues();
  }

private:
  Value folded(int64_t row) { return e.index(first + row); }
  Value scalar(Value buffer, int64_t row) { return e.load(buffer, {folded(row)}); }

  // scores = query . key, for `together` groups of lanes; the products of a key are added in ascending feature order.
  void emitScores(Value group, int64_t together) {
    Values scores;
    if (!shape.state.isQuantized()) {
      scores = sumProducts(group, together, {0, shape.state.getKey()});
    } else {
      scores.assign(count * together, e.zeros(lanes));
      for (auto [index, features] : llvm::enumerate(codeGroups(shape.state.getKey())))
        addCodes(group, together, index, sumProducts(group, together, features), scores);
    }
    for (int64_t row = 0; row < count; ++row)
      for (int64_t g = 0; g < together; ++g)
        e.storeVector(scores[row * together + g], buffers.scores, {folded(row), e.mul(e.add(group, g), lanes)});
  }

  Values sumProducts(Value group, int64_t together, Piece features) {
    int64_t unroll = std::gcd(features.width, std::max<int64_t>(2, cacheLine / (lanes * elementBytes)));
    Values sums(count * together, e.zeros(lanes));
    return e.loop(e.index(features.offset), e.index(features.offset + features.width), unroll, sums,
                  [&](Value feature, ValueRange carried) {
                    Values next(carried);
                    for (int64_t u = 0; u < unroll; ++u)
                      scoreStep(group, together, e.add(feature, u), u, next);
                    return next;
                  });
  }

  // query . (zero + scale * code) = scale * (query . code) + zero * (sum of the query).
  void addCodes(Value group, int64_t together, int64_t features, const Values &sums, Values &scores) {
    for (int64_t g = 0; g < together; ++g) {
      Value slot = e.mul(e.add(group, g), lanes);
      Value scale = e.loadVector(page.block.keyScales, {page.head, e.index(features), e.index(0), slot}, lanes);
      Value zero = e.loadVector(page.block.keyScales, {page.head, e.index(features), e.index(1), slot}, lanes);
      for (int64_t row = 0; row < count; ++row) {
        Value querySum = e.broadcast(e.load(buffers.querySums, {folded(row), e.index(features)}), lanes);
        Value &score = scores[row * together + g];
        score = e.fma(scale, sums[row * together + g], e.fma(zero, querySum, score));
      }
    }
  }

  void scoreStep(Value group, int64_t together, Value feature, int64_t unrolled, Values &sums) {
    int64_t loadBytes = lanes * elementBytes;
    Values keys;
    for (int64_t g = 0; g < together; ++g) {
      Value at = e.add(group, g);
      if (first == 0 && page.next.key && unrolled * loadBytes % cacheLine == 0)
        for (int64_t byte = 0; byte < loadBytes; byte += cacheLine)
          prefetch(page.next.key, {page.head, at, feature, e.index(byte / elementBytes)});
      keys.push_back(e.loadVector(page.block.key, {page.head, at, feature, e.index(0)}, lanes));
    }
    for (int64_t row = 0; row < count; ++row) {
      Value query = e.broadcast(e.load(buffers.query, {folded(row), feature}), lanes);
      for (int64_t g = 0; g < together; ++g) {
        Value &sum = sums[row * together + g];
        sum = e.fma(query, keys[g], sum);
      }
    }
  }

  // Scores in their final form, -inf where the key is not visible; the maximum grows, rescale = exp(old - new maximum).
  void emitMaximum(Value low, Value high) {
    Values start(count, e.splat(-INFINITY, lanes));
    Values maxima = e.loop(low, high, 1, start, [&](Value group, ValueRange carried) {
      Values next(carried);
      Value slot = e.mul(group, lanes);
      Value positions = keyPositions(slot);
      for (int64_t row = 0; row < count; ++row) {
        Value score = finishScore(e.loadVector(buffers.scores, {folded(row), slot}, lanes), row, positions);
        e.storeVector(score, buffers.scores, {folded(row), slot});
        next[row] = e.greater(score, next[row]);
      }
      return next;
    });
    for (int64_t row = 0; row < count; ++row) {
      Value old = scalar(buffers.maximum, row);
      Value grown = e.greater(e.maxOf(maxima[row]), old);
      e.store(grown, buffers.maximum, {folded(row)});
      e.store(arith::SubFOp::create(e.builder, e.loc, old, grown), buffers.rescale, {folded(row)});
    }
    for (Piece piece : cutIntoVectors(count, shape.valueLanes())) {
      Value difference = e.loadVector(buffers.rescale, {folded(piece.offset)}, piece.width);
      e.storeVector(math::ExpOp::create(e.builder, e.loc, difference), buffers.rescale, {folded(piece.offset)});
    }
  }

  // The positions of the keys of a group of lanes, as vector<i32>.
  Value keyPositions(Value slot) {
    SmallVector<int32_t> steps(lanes);
    std::iota(steps.begin(), steps.end(), 0);
    auto type = VectorType::get({lanes}, e.builder.getI32Type());
    Value offsets =
        arith::ConstantOp::create(e.builder, e.loc, DenseElementsAttr::get(type, ArrayRef<int32_t>(steps)));
    return e.add(e.broadcast(e.toI32(e.add(page.base, slot)), lanes), offsets);
  }

  Value compare(arith::CmpIPredicate predicate, Value a, Value b) {
    return arith::CmpIOp::create(e.builder, e.loc, predicate, a, b);
  }

  Value finishScore(Value score, int64_t row, Value positions) {
    OpBuilder &b = e.builder;
    const AttendRow &seen = rows[(first + row) / shape.group];
    score = arith::MulFOp::create(b, e.loc, score, e.splat(shape.scale, lanes));
    if (shape.softcap > 0.0f) {
      Value inner = arith::DivFOp::create(b, e.loc, score, e.splat(shape.softcap, lanes));
      Value capped = math::TanhOp::create(b, e.loc, inner);
      score = arith::MulFOp::create(b, e.loc, capped, e.splat(shape.softcap, lanes));
    }
    if (shape.alibi) {
      Value head = e.add(e.mul(page.head, shape.group), (first + row) % shape.group);
      Value slope = e.broadcast(e.load(buffers.slopes, {head}), lanes);
      Value distance = e.sub(positions, e.broadcast(e.toI32(seen.position), lanes));
      score = e.fma(slope, arith::SIToFPOp::create(b, e.loc, e.vectorType(lanes), distance), score);
    }
    Value notBefore = compare(arith::CmpIPredicate::sge, positions, e.broadcast(e.toI32(seen.low), lanes));
    Value before = compare(arith::CmpIPredicate::slt, positions, e.broadcast(e.toI32(seen.high), lanes));
    Value visible = arith::AndIOp::create(b, e.loc, notBefore, before);
    return e.select(visible, score, e.splat(-INFINITY, lanes));
  }

  // scores = exp(scores - maximum); sum = sum * rescale + their sum.
  void emitWeights(Value low, Value high) {
    Values maxima;
    for (int64_t row = 0; row < count; ++row)
      maxima.push_back(e.broadcast(scalar(buffers.maximum, row), lanes));
    Values start(count, e.zeros(lanes));
    Values sums = e.loop(low, high, 1, start, [&](Value group, ValueRange carried) {
      Values next(carried);
      Value slot = e.mul(group, lanes);
      for (int64_t row = 0; row < count; ++row) {
        Value score = e.loadVector(buffers.scores, {folded(row), slot}, lanes);
        Value shifted = arith::SubFOp::create(e.builder, e.loc, score, maxima[row]);
        Value weight = math::ExpOp::create(e.builder, e.loc, shifted);
        e.storeVector(weight, buffers.scores, {folded(row), slot});
        next[row] = arith::AddFOp::create(e.builder, e.loc, next[row], weight);
      }
      return next;
    });
    for (int64_t row = 0; row < count; ++row) {
      Value scaled = arith::MulFOp::create(e.builder, e.loc, scalar(buffers.sum, row), scalar(buffers.rescale, row));
      Value ofPage = e.sumOf(sums[row]), sum = arith::AddFOp::create(e.builder, e.loc, scaled, ofPage);
      if (buffers.pageSums)
        e.store(ofPage, buffers.pageSums, {folded(row)});
      e.store(sum, buffers.sum, {folded(row)});
    }
  }

  // accumulator = accumulator * rescale + scores . value, over the slots that some row sees, in ascending order.
  void emitValues() {
    SmallVector<Piece> pieces = cutIntoVectors(shape.state.getValue(), shape.valueLanes());
    // Codes become numbers in registers of their own; floats are operands in memory.
    size_t most = std::max<int64_t>(1, shape.accumulators() / (count + shape.state.isQuantized()));
    size_t passes = llvm::divideCeil(pieces.size(), most), together = llvm::divideCeil(pieces.size(), passes);
    for (size_t start = 0; start < pieces.size(); start += together)
      emitValuePieces(ArrayRef(pieces).slice(start, std::min(together, pieces.size() - start)));
  }

  void emitValuePieces(ArrayRef<Piece> pieces) {
    Values sums;
    for (int64_t row = 0; row < count; ++row) {
      Value rescale = scalar(buffers.rescale, row);
      for (Piece piece : pieces) {
        Value old = e.loadVector(buffers.accumulator, {folded(row), e.index(piece.offset)}, piece.width);
        sums.push_back(arith::MulFOp::create(e.builder, e.loc, old, e.broadcast(rescale, piece.width)));
      }
    }
    sums = e.loop(page.from, page.to, 1, sums, [&](Value slot, ValueRange carried) {
      Values next(carried), values;
      for (Piece piece : pieces) {
        if (first == 0 && page.next.value && piece.offset * elementBytes % cacheLine == 0)
          prefetch(page.next.value, {page.head, slot, e.index(piece.offset)});
        values.push_back(loadValue(slot, piece));
      }
      for (int64_t row = 0; row < count; ++row) {
        Value weight = e.load(buffers.scores, {folded(row), slot});
        for (auto [i, piece] : llvm::enumerate(pieces)) {
          Value &sum = next[row * pieces.size() + i];
          sum = e.fma(e.broadcast(weight, piece.width), values[i], sum);
        }
      }
      return next;
    });
    for (int64_t row = 0; row < count; ++row)
      for (auto [i, piece] : llvm::enumerate(pieces))
        e.storeVector(sums[row * pieces.size() + i], buffers.accumulator, {folded(row), e.index(piece.offset)});
  }

  Value loadValue(Value slot, Piece piece) {
    Value value = e.loadVector(page.block.value, {page.head, slot, e.index(piece.offset)}, piece.width);
    if (!shape.state.isQuantized())
      return value;
    Value group = e.index(piece.offset / kvrt::StateType::groupFeatures);
    Value scale = e.load(page.block.valueScales, {page.head, group, e.index(0), slot});
    Value zero = e.load(page.block.valueScales, {page.head, group, e.index(1), slot});
    return e.fma(value, e.broadcast(scale, piece.width), e.broadcast(zero, piece.width));
  }

  void prefetchScales(Value scales) {
    ArrayRef<int64_t> extents = cast<MemRefType>(scales.getType()).getShape();
    int64_t floats = cacheLine / sizeof(float), block = extents[3], floatsOfHead = extents[1] * extents[2] * block;
    for (int64_t at = 0; at < floatsOfHead; at += floats)
      prefetch(scales, {page.head, e.index(at / block / 2), e.index(at / block % 2), e.index(at % block)});
  }

  // Locality 2: into the second-level cache, which measured faster than the first.
  void prefetch(Value memref, ValueRange indices) {
    memref::PrefetchOp::create(e.builder, e.loc, memref, indices, /*isWrite=*/false, /*localityHint=*/2,
                               /*isDataCache=*/true);
  }

  KernelEmitter &e;
  const AttendShape &shape;
  const AttendBuffers &buffers;
  ArrayRef<AttendRow> rows;
  const AttendPage &page;
  int64_t first, count, lanes, elementBytes;
};

} // namespace

SmallVector<Piece> quire::cpu::codeGroups(int64_t features) {
  SmallVector<Piece> groups;
  for (int64_t first = 0; first < features; first += kvrt::StateType::groupFeatures)
    groups.push_back({first, std::min(kvrt::StateType::groupFeatures, features - first)});
  return groups;
}

void quire::cpu::emitAttendTile(KernelEmitter &emitter, const AttendShape &shape, const AttendBuffers &buffers,
                                ArrayRef<AttendRow> rows, const AttendPage &page) {
  int64_t folded = rows.size() * shape.group, limit = shape.accumulators() / 2;
  int64_t tiles = (folded + limit - 1) / limit;
  for (int64_t first = 0; tiles > 0; --tiles) {
    int64_t count = (folded - first + tiles - 1) / tiles;
    Tile(emitter, shape, buffers, rows, page, first, count).emit();
    first += count;
  }
}
