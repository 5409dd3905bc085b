// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading constants, and comparing whole tables with closed forms.

#include "lib/Analysis/Element/ConstantTables.h"
#include "lib/Analysis/Element/Interp.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Endian.h"
#include <cmath>

using namespace llvm;
using namespace mlir;

namespace quire {

/// Tables up to this size are folded at constant indices and evaluated.
static constexpr size_t smallTable = 4096;
/// Larger weights are never read: no mask or position table is larger.
static constexpr int64_t largestRead = 1 << 22;

ElementType elementTypeOf(Type type) {
  Type e = getElementTypeOrSelf(type);
  if (e.isInteger(1))
    return ElementType::Bool;
  return isa<IntegerType, IndexType>(e) ? ElementType::Int
                                        : ElementType::Float;
}

static std::optional<ConstantTable> emptyTable(ShapedType type) {
  if (!type.hasStaticShape())
    return std::nullopt;
  ConstantTable t;
  t.shape.assign(type.getShape().begin(), type.getShape().end());
  t.type = elementTypeOf(type);
  return t;
}

static double toDouble(APFloat f) {
  bool lossy;
  f.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  return f.convertToDouble();
}

std::optional<ConstantTable> tableOf(ElementsAttr attr) {
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense)
    return std::nullopt;
  std::optional<ConstantTable> t = emptyTable(dense.getType());
  if (!t)
    return std::nullopt;
  Type e = dense.getElementType();
  if (auto i = dyn_cast<IntegerType>(e)) {
    bool zeroExtend = i.isUnsigned() || i.getWidth() == 1;
    if (i.getWidth() > 64)
      return std::nullopt;
    for (APInt v : dense.getValues<APInt>()) {
      if (zeroExtend && v.getActiveBits() > 63)
        return std::nullopt;
      t->ints.push_back(zeroExtend ? int64_t(v.getZExtValue())
                                   : v.getSExtValue());
    }
    return t;
  }
  if (!isa<FloatType>(e))
    return std::nullopt;
  for (APFloat v : dense.getValues<APFloat>())
    t->reals.push_back(toDouble(v));
  return t;
}

template <typename T>
static void readAll(ArrayRef<char> bytes, std::vector<int64_t> &out) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T))
    out.push_back(int64_t(
        support::endian::read<T, endianness::little>(bytes.data() + i)));
}

/// Weights have millions of elements: an APFloat for each takes half a minute.
static bool readReals(FloatType type, ArrayRef<char> bytes,
                      std::vector<double> &out) {
  out.resize(bytes.size() / std::max(type.getWidth() / 8, 1u));
  using namespace support::endian;
  if (type.isF32() || type.isF64()) {
    for (auto [i, real] : llvm::enumerate(out))
      real = type.isF32()
                 ? llvm::bit_cast<float>(read32le(bytes.data() + 4 * i))
                 : llvm::bit_cast<double>(read64le(bytes.data() + 8 * i));
    return true;
  }
  if (type.getWidth() != 16)
    return false;
  std::vector<double> ofBits; // of every number there is
  for (uint64_t bits = 0; bits <= UINT16_MAX; ++bits)
    ofBits.push_back(
        toDouble(APFloat(type.getFloatSemantics(), APInt(16, bits))));
  for (auto [i, real] : llvm::enumerate(out))
    real = ofBits[read16le(bytes.data() + 2 * i)];
  return true;
}

std::optional<ConstantTable> tableOf(RankedTensorType type,
                                     ArrayRef<char> bytes) {
  std::optional<ConstantTable> t = emptyTable(type);
  if (!t)
    return std::nullopt;
  Type e = type.getElementType();
  unsigned width = e.getIntOrFloatBitWidth();
  size_t want = size_t(type.getNumElements()) * std::max(width / 8, 1u);
  if ((width % 8 && width != 1) || bytes.size() < want)
    return std::nullopt;
  bytes = bytes.take_front(want);
  if (auto i = dyn_cast<IntegerType>(e)) {
    bool u = i.isUnsigned();
    switch (width) {
    case 1:
    case 8:
      u || width == 1 ? readAll<uint8_t>(bytes, t->ints)
                      : readAll<int8_t>(bytes, t->ints);
      return t;
    case 16:
      u ? readAll<uint16_t>(bytes, t->ints) : readAll<int16_t>(bytes, t->ints);
      return t;
    case 32:
      u ? readAll<uint32_t>(bytes, t->ints) : readAll<int32_t>(bytes, t->ints);
      return t;
    case 64:
      readAll<int64_t>(bytes, t->ints);
      return t;
    default:
      return std::nullopt;
    }
  }
  auto f = dyn_cast<FloatType>(e);
  if (!f || !readReals(f, bytes, t->reals))
    return std::nullopt;
  return t;
}

//===----------------------------------------------------------------------===//
// Closed forms
//===----------------------------------------------------------------------===//

namespace {
/// A whole table compared with what masks, ranges and ALiBi look like.
class ClosedForm {
public:
  ClosedForm(Interp &in, StringRef name, const ConstantTable &t)
      : in(in), ctx(in.ctx), name(name), t(t) {
    for (int64_t n : t.shape)
      extents.push_back(ctx.num(n));
    idx = in.generic(extents);
    for (auto [a, n] : llvm::enumerate(t.shape))
      if (n > 1)
        wide.push_back(a);
  }

  Expr find() {
    if (Expr e = range())
      return e;
    if (Expr e = triangle())
      return e;
    return affine();
  }

  SmallVector<Expr, 4> extents, idx;

private:
  /// start + step * i along the only wide axis
  Expr range() {
    if (t.type != ElementType::Int || wide.size() != 1 || t.ints.size() < 3)
      return nullptr;
    int64_t start = t.ints[0];
    __int128 step = __int128(t.ints[1]) - start;
    if (step > INT32_MAX || step < INT32_MIN)
      return nullptr;
    for (size_t i = 1; i < t.ints.size(); ++i)
      if (__int128(t.ints[i]) - t.ints[i - 1] != step)
        return nullptr;
    return ctx.add(ctx.num(start),
                   ctx.mul(ctx.num(int64_t(step)), idx[wide[0]]));
  }

  /// The same triangle or band of two values in every matrix of the last axes
  Expr triangle() {
    unsigned r = t.shape.size();
    if (wide.size() < 2 || r < 2 || t.shape[r - 1] <= 4 ||
        t.shape[r - 1] != t.shape[r - 2])
      return nullptr;
    int64_t n = t.shape[r - 1];
    Coef inside = t.flat(0), outside = t.flat(n - 1);
    if (inside == outside)
      return nullptr;
    int64_t width = 0; // entries of the last row that are inside
    for (int64_t j = 0; j < n; ++j)
      width += t.flat((n - 1) * n + j) == inside;
    for (size_t i = 0; i < t.size(); ++i) {
      int64_t row = int64_t(i) / n % n, col = int64_t(i) % n;
      bool in = col <= row && row - col < width;
      if (!(t.flat(i) == (in ? inside : outside)))
        return nullptr;
    }
    Expr q = idx[r - 2], k = idx[r - 1];
    Expr c = ctx.le(k, q);
    if (width < n)
      c = ctx.band({c, ctx.lt(ctx.sub(q, k), ctx.num(width))});
    boundBy(n);
    if (t.type == ElementType::Bool)
      return inside.isZero() ? ctx.bnot(c) : c;
    return ctx.ite(c, ctx.num(inside), ctx.num(outside));
  }

  /// base[..] + slope[..] * i along the last axis: ALiBi buffers
  Expr affine() {
    if (t.type != ElementType::Float || t.shape.empty() || wide.size() > 2 ||
        t.shape.back() <= 16)
      return nullptr;
    int64_t n = t.shape.back(), rows = int64_t(t.reals.size()) / n;
    if (rows > 256)
      return nullptr;
    ConstantTable base, slope;
    base.shape = slope.shape =
        SmallVector<int64_t>(t.shape.begin(), t.shape.end() - 1);
    double most = 0;
    for (int64_t r = 0; r < rows; ++r) {
      ArrayRef<double> row = ArrayRef(t.reals).slice(r * n, n);
      double d = row[1] - row[0];
      for (int64_t i = 1; i < n; ++i)
        if (!(std::abs(row[i] - row[i - 1] - d) <=
              1e-7 + 1e-5 * std::abs(d)))
          return nullptr;
      base.reals.push_back(row[0]);
      slope.reals.push_back(d);
      most = std::max(most, std::abs(d));
    }
    if (most == 0)
      return nullptr;
    ctx.addTable((name + "#base").str(), base);
    ctx.addTable((name + "#slope").str(), slope);
    boundBy(n);
    ArrayRef<Expr> lead = ArrayRef(idx).drop_back();
    return ctx.add(
        ctx.table((name + "#base").str(), ElementType::Float, lead),
        ctx.mul(ctx.table((name + "#slope").str(), ElementType::Float, lead),
                idx.back()));
  }

  void boundBy(int64_t n) {
    in.maxPositions = std::min(in.maxPositions.value_or(INT64_MAX), n);
  }

  Interp &in;
  ExprContext &ctx;
  StringRef name;
  const ConstantTable &t;
  SmallVector<unsigned> wide;
};
} // namespace

SymbolicTensor Interp::constant(StringRef name, ConstantTable table) {
  SymbolicTensor out;
  out.type = table.type;
  ClosedForm form(*this, name, table);
  out.extents = form.extents;
  size_t n = table.size();
  if (n == 0) {
    out.element = ctx.num(0);
    return out;
  }
  auto same = [&](const Coef &a, const Coef &b) {
    return a == b || (a.isFloat && b.isFloat && std::isnan(a.d) &&
                      std::isnan(b.d));
  };
  bool splat = true;
  for (size_t i = 1; splat && i < n; ++i)
    splat = same(table.flat(i), table.flat(0));
  if (splat) {
    out.element = table.type == ElementType::Bool
                      ? ctx.boolean(!table.flat(0).isZero())
                      : ctx.num(table.flat(0));
    return out;
  }
  if (Expr e = form.find()) {
    out.element = e;
    return out;
  }
  for (double v : table.reals)
    if (!std::isfinite(v)) {
      out.element = ctx.bad(("constant '" + name +
                             "' has infinities and no closed form").str());
      return out;
    }
  ElementType type = table.type;
  if (n <= smallTable)
    ctx.addTable(name, std::move(table));
  out.element = ctx.table(name, type, form.idx);
  return out;
}

SymbolicTensor Interp::weight(onnx::WeightOp op) {
  auto [it, isNew] = weights.insert({op.getInitializer(), LoadedWeight()});
  LoadedWeight &w = it->second;
  if (isNew) {
    std::optional<int64_t> before = std::exchange(maxPositions, std::nullopt);
    std::string name = ("@" + op.getInitializer()).str();
    auto type = cast<RankedTensorType>(op.getType());
    std::optional<ConstantTable> table;
    auto init = SymbolTable::lookupNearestSymbolFrom<onnx::InitializerOp>(
        op, op.getInitializerAttr());
    if (init && options.readWeight && type.hasStaticShape() &&
        type.getNumElements() <= largestRead)
      if (auto bytes = options.readWeight(init))
        table = tableOf(type, *bytes);
    if (table) {
      w.tensor = constant(name, std::move(*table));
    } else {
      for (int64_t n : type.getShape())
        w.tensor.extents.push_back(ctx.num(n));
      w.tensor.type = elementTypeOf(type);
      w.tensor.element =
          ctx.table(name, w.tensor.type, generic(w.tensor.extents));
    }
    w.positions = std::exchange(maxPositions, before);
  }
  if (w.positions)
    maxPositions = std::min(maxPositions.value_or(INT64_MAX), *w.positions);
  return w.tensor;
}

} // namespace quire
