// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scores, softmax step and weighted sum of a few pages, for a few folded rows at a time. See docs/Rationale/AttentionKernel.md.
#include "lib/Target/CPU/AttendTile.h"
#include "lib/Target/CPU/SmallFloats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace quire;
using namespace quire::cpu;

namespace {

constexpr int64_t cacheLine = 64;
constexpr int64_t mostPages = 4; // side by side: each has addresses in registers

// Features of V that are one vector, and where their elements begin in a row: in bytes of two codes, which half they are.
struct ValuePiece {
  Piece features;
  int64_t place;
  bool upper;
};

// Both halves of a byte are neighbours, so that the bytes are loaded once.
SmallVector<ValuePiece> valuePieces(const AttendShape &shape) {
  SmallVector<ValuePiece> pieces;
  if (!shape.state.isHalved()) {
    for (Piece piece : cutIntoVectors(shape.state.getValue(), shape.valueLanes()))
      pieces.push_back({piece, piece.offset, false});
    return pieces;
  }
  for (Piece group : codeGroups(shape.state.getValue())) {
    int64_t pairs = group.width / 2, half = llvm::divideCeil(group.width, 2), place = group.offset / 2;
    for (Piece piece : cutIntoVectors(pairs, shape.valueLanes())) {
      pieces.push_back({{group.offset + piece.offset, piece.width}, place + piece.offset, false});
      pieces.push_back({{group.offset + half + piece.offset, piece.width}, place + piece.offset, true});
    }
    if (half > pairs)
      pieces.push_back({{group.offset + pairs, 1}, place + pairs, false});
  }
  return pieces;
}

class Tile {
public:
  using Values = KernelEmitter::Values;

  // Folded rows [first, first + count) of the KV head that is number `inTask` of the task, null where it has only one.
  Tile(KernelEmitter &emitter, const AttendShape &shape, const AttendBuffers &buffers, ArrayRef<AttendRow> rows,
       const AttendPages &pages, Value inTask, int64_t first, int64_t count)
      : e(emitter), shape(shape), buffers(buffers), rows(rows), pages(pages), head(pages.headOf(inTask)),
        base(inTask ? e.mul(inTask, shape.group) : Value()), first(first), count(count), lanes(shape.lanes()),
        elementBytes(shape.state.getKeyPageType().getElementTypeBitWidth() / 8) {}

  // The step of the softmax: what lies in `scores` are weights then.
  void emitStep() {
    int64_t groups = shape.state.getBlock() / lanes;
    // A group may take several registers. Of bytes of two codes, each half has sums of its own, and the bytes stay in a register.
    int64_t halves = 1 + shape.state.isHalved();
    int64_t registers = std::max<int64_t>(1, lanes * 4 / shape.vectorBytes) * halves * (count + shape.widening());
    int64_t together = std::gcd(groups, fitting(registers));
    Value low = e.mul(e.div(pages.from, lanes * together), together);
    Value high = e.mul(e.ceilDiv(pages.to, lanes * together), together);
    if (int64_t several = std::gcd(shape.tilePages, std::clamp<int64_t>(fitting(registers) / groups, 1, mostPages)); several > 1)
      emitScoresOfPages(several, groups);
    else
      emitScoresOfPage(low, high, together);
    emitMaximum(low, high);
    emitWeights(low, high);
    if (buffers.pageSums)
      e.ifThen(pages.watched, [&] { emitPageSums(low, high); });
  }

  // accumulator = accumulator * rescale + weights . value, over the slots that some row sees, in ascending order.
  void emitValues(bool asked = true) {
    eachPieces([&](ArrayRef<ValuePiece> pieces) {
      Values sums = rescaled(pieces);
      sums = eachPage(sums, [&](Value page, ValueRange ofPages) {
        if (!asked)
          current.asked.clear();
        return emitSlots(page, pieces, ofPages);
      });
      keep(pieces, sums);
    });
  }

  // The same in two steps, the second one for each page in ascending order.
  void emitRescale() {
    eachPieces([&](ArrayRef<ValuePiece> pieces) { keep(pieces, rescaled(pieces)); });
  }
  void emitValuesOfPage(Value page, const AttendPage &parts) {
    current = parts;
    eachPieces([&](ArrayRef<ValuePiece> pieces) { keep(pieces, emitSlots(page, pieces, accumulated(pieces))); });
  }

private:
  // Which power of two of what takes so many registers they have room for.
  int64_t fitting(int64_t registers) const {
    return static_cast<int64_t>(llvm::bit_floor(uint64_t(std::max<int64_t>(1, shape.accumulators() / registers))));
  }

  Value folded(int64_t row) { return base ? e.add(base, first + row) : e.index(first + row); }
  Value scalar(Value buffer, int64_t row) { return e.load(buffer, {folded(row)}); }

  // body(page, carried) for each page of the tile, in order, with `current` as its parts.
  Values eachPage(ValueRange initial, function_ref<Values(Value, ValueRange)> body) {
    auto onPage = [&](Value page, ValueRange carried) {
      current = pages.page(page);
      return body(page, carried);
    };
    if (shape.tilePages == 1)
      return onPage(e.index(0), initial);
    return e.loop(pages.first, pages.last, 1, initial, onPage);
  }

  // body(in the page, in the tile, carried) for the units [low, high) of the tile that lie in the page, which has `units` of them.
  Values eachSlot(Value page, int64_t units, Value low, Value high, int64_t step, ValueRange initial,
                  function_ref<Values(Value, Value, ValueRange)> body) {
    if (shape.tilePages == 1)
      return e.loop(low, high, step, initial, [&](Value at, ValueRange carried) { return body(at, at, carried); });
    Value begin = e.mul(page, units);
    return e.loop(e.max(low, begin), e.min(high, e.add(begin, units)), step, initial,
                  [&](Value at, ValueRange carried) { return body(e.sub(at, begin), at, carried); });
  }

  // `lanes` keys, and where their scores lie.
  struct Keys {
    AttendPage page;
    Value group, inTile; // which group of lanes they are, of the page and of the tile
  };

  void emitScoresOfPage(Value low, Value high, int64_t together) {
    eachPage({}, [&](Value page, ValueRange) -> Values {
      if (first == 0)
        prefetchScales(current.ahead);
      return eachSlot(page, shape.state.getBlock() / lanes, low, high, together, {},
                      [&](Value group, Value inTile, ValueRange) -> Values {
                        SmallVector<Keys> keys;
                        for (int64_t g = 0; g < together; ++g)
                          keys.push_back({current, e.add(group, g), e.add(inTile, g)});
                        emitScores(keys);
                        return {};
                      });
    });
  }

  // Where a page has fewer groups than the registers have room for, several pages at once: a chain of additions alone waits for each of them.
  // The last page stands for those that are missing.
  void emitScoresOfPages(int64_t several, int64_t groups) {
    Value last = e.sub(pages.last, e.index(1));
    e.loop(pages.first, pages.last, several, [&](Value start) {
      SmallVector<Keys> keys;
      for (int64_t p = 0; p < several; ++p) {
        Value page = e.min(e.add(start, p), last), begin = e.mul(page, groups);
        AttendPage parts = pages.page(page);
        if (first == 0)
          prefetchScales(parts.ahead);
        for (int64_t g = 0; g < groups; ++g)
          keys.push_back({parts, e.index(g), e.add(begin, g)});
      }
      emitScores(keys);
    });
  }

  // scores = query . key; the products of a key are added in ascending feature order.
  void emitScores(ArrayRef<Keys> keys) {
    Values scores;
    if (!shape.state.isQuantized()) {
      scores = sumProducts(keys, {0, shape.state.getKey()});
    } else {
      scores.assign(count * keys.size(), e.zeros(lanes));
      for (auto [index, features] : llvm::enumerate(codeGroups(shape.state.getKey())))
        addCodes(keys, index, shape.state.isHalved() ? sumHalves(keys, features) : sumProducts(keys, features), scores);
    }
    for (int64_t row = 0; row < count; ++row)
      for (auto [i, group] : llvm::enumerate(keys))
        e.storeVector(scores[row * keys.size() + i], buffers.scores, {folded(row), e.mul(group.inTile, lanes)});
  }

  Values sumProducts(ArrayRef<Keys> keys, Piece features) {
    int64_t unroll = std::gcd(features.width, std::max<int64_t>(2, cacheLine / (lanes * elementBytes)));
    if (isa<Float8E4M3FNType>(shape.state.getElement())) // which takes so many operations that more of them at a time would not stay in registers
      unroll = std::gcd(features.width, int64_t(2));
    Values sums(count * keys.size(), e.zeros(lanes));
    return e.loop(e.index(features.offset), e.index(features.offset + features.width), unroll, sums,
                  [&](Value feature, ValueRange carried) {
                    Values next(carried);
                    for (int64_t u = 0; u < unroll; ++u)
                      scoreStep(keys, e.add(feature, u), u, next);
                    return next;
                  });
  }

  // The same where two features share a byte: the lower halves are one chain of additions, the upper ones another.
  Values sumHalves(ArrayRef<Keys> keys, Piece features) {
    int64_t pairs = features.width / 2, half = llvm::divideCeil(features.width, 2), place = features.offset / 2;
    int64_t unroll = std::gcd(pairs, std::max<int64_t>(2, cacheLine / lanes));
    size_t chains = count * keys.size();
    Values sums(2 * chains, e.zeros(lanes));
    auto addHalf = [&](const Values &bytes, bool upper, Value feature, Values &all) {
      Values numbers, ofHalf(all.begin() + upper * chains, all.begin() + (upper + 1) * chains);
      for (Value raw : bytes)
        numbers.push_back(e.halfOf(raw, upper));
      addProducts(numbers, feature, ofHalf);
      llvm::copy(ofHalf, all.begin() + upper * chains);
    };
    if (pairs)
      sums = e.loop(e.index(0), e.index(pairs), unroll, sums, [&](Value start, ValueRange carried) {
        Values next(carried);
        for (int64_t u = 0; u < unroll; ++u) {
          Value at = e.add(start, u);
          Values bytes = loadKeys(keys, e.add(at, place), u);
          addHalf(bytes, false, e.add(at, features.offset), next);
          addHalf(bytes, true, e.add(at, features.offset + half), next);
        }
        return next;
      });
    if (half > pairs)
      addHalf(loadKeys(keys, e.index(place + pairs), pairs), false, e.index(features.offset + pairs), sums);
    Values both;
    for (size_t i = 0; i < chains; ++i)
      both.push_back(arith::AddFOp::create(e.builder, e.loc, sums[i], sums[chains + i]));
    return both;
  }

  // query . (zero + scale * code) = scale * (query . code) + zero * (sum of the query).
  void addCodes(ArrayRef<Keys> keys, int64_t features, const Values &sums, Values &scores) {
    for (auto [i, group] : llvm::enumerate(keys)) {
      Value slot = e.mul(group.group, lanes), scales = group.page.block.keyScales;
      Value scale = e.loadVector(scales, {head, e.index(features), e.index(0), slot}, lanes);
      Value zero = e.loadVector(scales, {head, e.index(features), e.index(1), slot}, lanes);
      for (int64_t row = 0; row < count; ++row) {
        Value querySum = e.broadcast(e.load(buffers.querySums, {folded(row), e.index(features)}), lanes);
        Value &score = scores[row * keys.size() + i];
        score = e.fma(scale, sums[row * keys.size() + i], e.fma(zero, querySum, score));
      }
    }
  }

  void scoreStep(ArrayRef<Keys> keys, Value feature, int64_t unrolled, Values &sums) {
    Values numbers = loadKeys(keys, feature, unrolled);
    if (shape.widens())
      for (Value &raw : numbers)
        raw = numberOf(raw);
    addProducts(numbers, feature, sums);
  }

  // What lies at a place of the features: numbers, or elements as they are where they need registers to become numbers.
  Values loadKeys(ArrayRef<Keys> keys, Value place, int64_t unrolled) {
    int64_t loadBytes = lanes * elementBytes;
    Values loaded;
    for (const Keys &group : keys) {
      if (first == 0 && group.page.ahead.key && unrolled * loadBytes % cacheLine == 0)
        for (int64_t byte = 0; byte < loadBytes; byte += cacheLine)
          prefetch(group.page.ahead.key, {head, group.group, place, e.index(byte / elementBytes)});
      SmallVector<Value> indices = {head, group.group, place, e.index(0)};
      loaded.push_back(shape.widens() ? e.loadRaw(group.page.block.key, indices, lanes) : e.loadVector(group.page.block.key, indices, lanes));
    }
    return loaded;
  }

  Value numberOf(Value raw) {
    return shape.state.isQuantized() ? e.numberOf(raw) : widenSmallFloat(e, raw, shape.convertsHalf);
  }

  void addProducts(const Values &numbers, Value feature, Values &sums) {
    for (int64_t row = 0; row < count; ++row) {
      Value query = e.broadcast(e.load(buffers.query, {folded(row), feature}), lanes);
      for (auto [i, key] : llvm::enumerate(numbers)) {
        Value &sum = sums[row * numbers.size() + i];
        sum = e.fma(query, key, sum);
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
    return e.add(e.broadcast(e.toI32(e.add(pages.base, slot)), lanes), offsets);
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
      Value queryHead = e.add(e.mul(head, shape.group), (first + row) % shape.group);
      Value slope = e.broadcast(e.load(buffers.slopes, {queryHead}), lanes);
      Value distance = e.sub(positions, e.broadcast(e.toI32(seen.place), lanes));
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
      Value sum = arith::AddFOp::create(e.builder, e.loc, scaled, e.sumOf(sums[row]));
      e.store(sum, buffers.sum, {folded(row)});
    }
  }

  void emitPageSums(Value low, Value high) {
    eachPage({}, [&](Value page, ValueRange) -> Values {
      Values start(count, e.zeros(lanes));
      Values sums = eachSlot(page, shape.state.getBlock() / lanes, low, high, 1, start, [&](Value, Value group, ValueRange carried) {
        Values next;
        for (int64_t row = 0; row < count; ++row) {
          Value weights = e.loadVector(buffers.scores, {folded(row), e.mul(group, lanes)}, lanes);
          next.push_back(arith::AddFOp::create(e.builder, e.loc, carried[row], weights));
        }
        return next;
      });
      for (int64_t row = 0; row < count; ++row)
        e.store(e.sumOf(sums[row]), buffers.pageSums, {folded(row), page});
      return {};
    });
  }

  // As many pieces of the features as the registers hold.
  void eachPieces(function_ref<void(ArrayRef<ValuePiece>)> body) {
    SmallVector<ValuePiece> pieces = valuePieces(shape);
    size_t most = std::max<int64_t>(1, shape.accumulators() / (count + shape.widens() + shape.state.isHalved()));
    size_t unit = shape.state.isHalved() && most > 1 ? 2 : 1; // halves of a byte stay together where there is room
    most -= most % unit;
    size_t passes = llvm::divideCeil(pieces.size(), most), together = llvm::alignTo(llvm::divideCeil(pieces.size(), passes), unit);
    for (size_t start = 0; start < pieces.size(); start += together)
      body(ArrayRef(pieces).slice(start, std::min(together, pieces.size() - start)));
  }

  Values accumulated(ArrayRef<ValuePiece> pieces) {
    Values sums;
    for (int64_t row = 0; row < count; ++row)
      for (const ValuePiece &piece : pieces)
        sums.push_back(e.loadVector(buffers.accumulator, {folded(row), e.index(piece.features.offset)}, piece.features.width));
    return sums;
  }

  Values rescaled(ArrayRef<ValuePiece> pieces) {
    Values sums = accumulated(pieces);
    for (int64_t row = 0; row < count; ++row) {
      Value rescale = scalar(buffers.rescale, row);
      for (auto [i, piece] : llvm::enumerate(pieces)) {
        Value &sum = sums[row * pieces.size() + i];
        sum = arith::MulFOp::create(e.builder, e.loc, sum, e.broadcast(rescale, piece.features.width));
      }
    }
    return sums;
  }

  void keep(ArrayRef<ValuePiece> pieces, const Values &sums) {
    for (int64_t row = 0; row < count; ++row)
      for (auto [i, piece] : llvm::enumerate(pieces))
        e.storeVector(sums[row * pieces.size() + i], buffers.accumulator, {folded(row), e.index(piece.features.offset)});
  }

  Values emitSlots(Value page, ArrayRef<ValuePiece> pieces, ValueRange sums) {
    return eachSlot(page, shape.state.getBlock(), pages.from, pages.to, 1, sums,
                    [&](Value slot, Value inTile, ValueRange carried) { return valueStep(slot, inTile, pieces, carried); });
  }

  Values valueStep(Value slot, Value inTile, ArrayRef<ValuePiece> pieces, ValueRange carried) {
    Values sums(carried), values;
    Value bytes;
    for (auto [i, piece] : llvm::enumerate(pieces)) {
      if (first == 0 && !piece.upper && piece.place * elementBytes % cacheLine == 0)
        for (Value ahead : current.asked)
          prefetch(ahead, {head, slot, e.index(piece.place)});
      SmallVector<Value> indices = {head, slot, e.index(piece.place)};
      if (!shape.widens()) {
        values.push_back(e.loadVector(current.block.value, indices, piece.features.width));
        continue;
      }
      if (!piece.upper || i == 0)
        bytes = e.loadRaw(current.block.value, indices, piece.features.width);
      values.push_back(valueOf(bytes, slot, piece));
    }
    for (int64_t row = 0; row < count; ++row) {
      Value weight = e.load(buffers.scores, {folded(row), inTile});
      for (auto [i, piece] : llvm::enumerate(pieces)) {
        Value &sum = sums[row * pieces.size() + i];
        sum = e.fma(e.broadcast(weight, piece.features.width), values[i], sum);
      }
    }
    return sums;
  }

  Value valueOf(Value raw, Value slot, const ValuePiece &piece) {
    if (!shape.state.isQuantized())
      return numberOf(raw);
    int64_t width = piece.features.width;
    Value code = shape.state.isHalved() ? e.halfOf(raw, piece.upper) : numberOf(raw);
    Value group = e.index(piece.features.offset / kvrt::StateType::groupFeatures);
    Value scale = e.load(current.block.valueScales, {head, group, e.index(0), slot});
    Value zero = e.load(current.block.valueScales, {head, group, e.index(1), slot});
    return e.fma(code, e.broadcast(scale, width), e.broadcast(zero, width));
  }

  void prefetchScales(const AttendBlock &of) {
    for (Value scales : {of.keyScales, of.valueScales}) {
      if (!scales)
        continue;
      ArrayRef<int64_t> extents = cast<MemRefType>(scales.getType()).getShape();
      int64_t floats = cacheLine / sizeof(float), slots = extents[3], floatsOfHead = extents[1] * extents[2] * slots;
      for (int64_t at = 0; at < floatsOfHead; at += floats)
        prefetch(scales, {head, e.index(at / slots / 2), e.index(at / slots % 2), e.index(at % slots)});
    }
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
  const AttendPages &pages;
  Value head, base; // the KV head, and where its folded rows begin, null for 0
  int64_t first, count, lanes, elementBytes;
  AttendPage current; // that is emitted
};

} // namespace

SmallVector<Piece> quire::cpu::codeGroups(int64_t features) {
  SmallVector<Piece> groups;
  for (int64_t first = 0; first < features; first += kvrt::StateType::groupFeatures)
    groups.push_back({first, std::min(kvrt::StateType::groupFeatures, features - first)});
  return groups;
}

// The folded rows of a KV head, as many at a time as there are registers for: body(tile).
static void eachTile(KernelEmitter &emitter, const AttendShape &shape, const AttendBuffers &buffers, ArrayRef<AttendRow> rows,
                     const AttendPages &pages, Value inTask, function_ref<void(Tile &)> body) {
  int64_t folded = rows.size() * shape.group, limit = shape.accumulators() / 2;
  if (shape.state.isHalved()) // two sums for a row and group of lanes, beside bytes and numbers
    limit = std::max<int64_t>(1, shape.accumulators() / (3 * std::max<int64_t>(1, shape.lanes() * 4 / shape.vectorBytes)));
  int64_t tiles = (folded + limit - 1) / limit;
  for (int64_t first = 0; tiles > 0; --tiles) {
    int64_t count = (folded - first + tiles - 1) / tiles;
    Tile tile(emitter, shape, buffers, rows, pages, inTask, first, count);
    body(tile);
    first += count;
  }
}

void quire::cpu::emitAttendTile(KernelEmitter &e, const AttendShape &shape, const AttendBuffers &buffers,
                                ArrayRef<AttendRow> rows, const AttendPages &pages) {
  auto each = [&](Value inTask, function_ref<void(Tile &)> body) { eachTile(e, shape, buffers, rows, pages, inTask, body); };
  if (!pages.heads) {
    each({}, [](Tile &tile) {
      tile.emitStep();
      tile.emitValues();
    });
    return;
  }
  Value none = e.index(0);
  auto eachHead = [&](function_ref<void(Tile &)> body) {
    e.loop(none, pages.heads, 1, [&](Value inTask) { each(inTask, body); });
  };
  // The values of all heads of a page lie together, and are read so.
  auto emitPageByPage = [&] {
    eachHead([](Tile &tile) { tile.emitRescale(); });
    bool isOne = shape.tilePages == 1;
    e.loop(isOne ? none : pages.first, isOne ? e.index(1) : pages.last, 1, [&](Value page) {
      AttendPage parts = pages.page(page);
      eachHead([&](Tile &tile) { tile.emitValuesOfPage(page, parts); });
    });
  };
  eachHead([](Tile &tile) { tile.emitStep(); });
  if (!pages.streams)
    return emitPageByPage();
  // Runs that go on from head to head, one for each page.
  e.ifThen(pages.streams, [&] { eachHead([](Tile &tile) { tile.emitValues(/*asked=*/false); }); }, emitPageByPage);
}
