// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Quantised representations: QuantizeLinear and its inverse, MatMulNBits and GatherBlockQuantized.
#include "Kernels.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace quire::eval {

namespace {
/// Which scale belongs to an element: one for all, one a slice of `axis`, or one a block along it.
struct ScaleMap {
  int64_t n = 1, inner = 1, block = 0, blocks = 1;
  bool single = true;
  int64_t at(int64_t flat) const {
    if (single)
      return 0;
    int64_t along = flat / inner % n;
    return block == 0 ? along : (flat / (inner * n) * blocks + along / block) * inner + flat % inner;
  }
};
} // namespace

static Expected<ScaleMap> scaleMap(const Tensor &x, const Tensor &scale, Operand zero, int64_t axis, int64_t block) {
  ScaleMap map;
  if (zero && zero->count() != scale.count())
    return fail("expected one zero point a scale, but got " + textOf(zero->shape()) + " and " + textOf(scale.shape()));
  map.single = scale.count() == 1 && block == 0;
  if (map.single)
    return map;
  Expected<int64_t> normal = normalAxis(axis, x.rank());
  if (!normal)
    return normal.takeError();
  map.n = x.shape()[*normal];
  map.inner = countOf(x.shape().drop_front(*normal + 1));
  map.block = block;
  map.blocks = block ? (map.n + block - 1) / block : 1;
  int64_t expected = block ? countOf(x.shape().take_front(*normal)) * map.blocks * map.inner : map.n;
  if (scale.count() != expected)
    return fail("expected " + Twine(expected) + " scales, but got " + textOf(scale.shape()));
  return map;
}

Result dequantizeLinear(const Tensor &x, const Tensor &scale, Operand zero, int64_t axis, int64_t blockSize,
                        std::optional<ElementKind> outputKind) {
  Expected<ScaleMap> map = scaleMap(x, scale, zero, axis, blockSize);
  if (!map)
    return map.takeError();
  Numbers<double> in(x);
  Numbers<float> factors(scale);
  Numbers<double> points(zero ? *zero : Tensor::zeros(ElementKind::F64, scale.shape()));
  std::vector<float> out(in.size());
  for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
    int64_t which = map->at(i);
    out[i] = static_cast<float>(in[i] - points[which]) * factors[which];
  }
  return storeAs(outputKind.value_or(scale.kind()), x.shape(), std::move(out));
}

/// The smallest and largest integers of a kind.
static std::pair<double, double> limitsOf(ElementKind kind) {
  unsigned bits = bitWidth(kind);
  if (computeClass(kind) == ComputeClass::Unsigned)
    return {0.0, std::ldexp(1.0, static_cast<int>(bits)) - 1};
  return {-std::ldexp(1.0, static_cast<int>(bits) - 1), std::ldexp(1.0, static_cast<int>(bits) - 1) - 1};
}

Result quantizeLinear(const Tensor &x, const Tensor &scale, Operand zero, int64_t axis, int64_t blockSize,
                      ElementKind outputKind, bool saturate) {
  Expected<ScaleMap> map = scaleMap(x, scale, zero, axis, blockSize);
  if (!map)
    return map.takeError();
  Numbers<float> in(x), factors(scale);
  Numbers<double> points(zero ? *zero : Tensor::zeros(ElementKind::F64, scale.shape()));
  std::vector<double> out(in.size());
  bool toFloat = isFloat(outputKind);
  auto [low, high] = toFloat ? std::pair(0.0, 0.0) : limitsOf(outputKind);
  for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
    int64_t which = map->at(i);
    double value = static_cast<double>(in[i] / factors[which]);
    out[i] = toFloat ? value + points[which] : std::clamp(std::nearbyint(value) + points[which], low, high);
  }
  return storeAs(outputKind, x.shape(), std::move(out), saturate);
}

Results dynamicQuantizeLinear(const Tensor &x) {
  Numbers<float> in(x);
  float low = 0, high = 0;
  for (float value : in.all()) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  float scale = (high - low) / 255.0f;
  float divisor = scale == 0 ? 1.0f : scale;
  float zero = std::nearbyint(std::clamp(-low / divisor, 0.0f, 255.0f));
  std::vector<uint8_t> out(in.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] =
        static_cast<uint8_t>(std::clamp(std::nearbyint(in[static_cast<int64_t>(i)] / divisor) + zero, 0.0f, 255.0f));
  return Tensors{Tensor::adopt(ElementKind::U8, x.shape(), std::move(out)), scalarTensor(ElementKind::F32, scale),
                 scalarTensor(ElementKind::U8, zero)};
}

//===--- Weights of n bits ----------------------------------------------------------------------------------------===//

/// Value `index` of a row of packed values, low bits first.
static unsigned packedAt(const uint8_t *row, int64_t index, int64_t bits) {
  int64_t perByte = 8 / bits;
  return (row[index / perByte] >> (bits * (index % perByte))) & ((1u << bits) - 1);
}

/// One zero point a block of one row; the default is the middle of the range.
static Expected<std::vector<float>> blockZeros(Operand zeros, int64_t rows, int64_t blocks, int64_t bits,
                                               ElementKind packedKind) {
  std::vector<float> out(static_cast<size_t>(rows * blocks), static_cast<float>(1 << (bits - 1)));
  if (!zeros)
    return out;
  if (zeros->kind() != packedKind || (bits == 8 && zeros->count() == rows * blocks)) {
    Numbers<float> given(*zeros);
    if (static_cast<int64_t>(given.size()) != rows * blocks)
      return fail("expected " + Twine(rows * blocks) + " zero points, but got " + textOf(zeros->shape()));
    out.assign(given.all().begin(), given.all().end());
    return out;
  }
  int64_t rowBytes = (blocks * bits + 7) / 8;
  if (zeros->count() != rows * rowBytes)
    return fail("expected " + Twine(rows * rowBytes) + " bytes of zero points, but got " + textOf(zeros->shape()));
  const auto *bytes = reinterpret_cast<const uint8_t *>(zeros->bytes());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t b = 0; b < blocks; ++b)
      out[r * blocks + b] = static_cast<float>(packedAt(bytes + r * rowBytes, b, bits));
  return out;
}

Expected<std::vector<float>> dequantizeNBits(const Tensor &b, const Tensor &scales, Operand zeros, Operand groupIndex,
                                             const NBitsAttributes &attributes) {
  int64_t n = attributes.n, k = attributes.k, bits = attributes.bits, block = attributes.blockSize;
  if ((bits != 2 && bits != 4 && bits != 8) || block < 1 || n < 1 || k < 1)
    return fail("expected 2, 4 or 8 bits and a block size, but got " + Twine(bits) + " and " + Twine(block));
  int64_t blocks = (k + block - 1) / block, rowBytes = blocks * (block * bits / 8);
  if (b.kind() != ElementKind::U8 || b.count() != n * rowBytes || scales.count() != n * blocks)
    return fail("expected " + Twine(n * rowBytes) + " bytes of weights and " + Twine(n * blocks) + " scales, but got " +
                textOf(b.shape()) + " and " + textOf(scales.shape()));
  Expected<std::vector<float>> points = blockZeros(zeros, n, blocks, bits, ElementKind::U8);
  if (!points)
    return points.takeError();
  Numbers<float> factors(scales);
  SmallVector<int64_t, 8> groups;
  if (groupIndex)
    groups = integersOf(*groupIndex);
  const auto *bytes = reinterpret_cast<const uint8_t *>(b.bytes());
  std::vector<float> out(static_cast<size_t>(n * k));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c) {
      int64_t which = r * blocks + (groups.empty() ? c / block : groups[c]);
      out[r * k + c] =
          (static_cast<float>(packedAt(bytes + r * rowBytes, c, bits)) - (*points)[which]) * factors[which];
    }
  return out;
}

Result matMulNBits(const Tensor &a, const Tensor &b, const Tensor &scales, Operand zeros, Operand groupIndex,
                   Operand bias, const NBitsAttributes &attributes) {
  if (a.rank() < 1 || a.extent(-1) != attributes.k)
    return fail("expected an operand of " + Twine(attributes.k) + " columns, but got " + textOf(a.shape()));
  Expected<std::vector<float>> weights = dequantizeNBits(b, scales, zeros, groupIndex, attributes);
  if (!weights)
    return weights.takeError();
  int64_t n = attributes.n, k = attributes.k, rows = a.count() / k;
  std::vector<float> flipped(weights->size()), out(static_cast<size_t>(rows * n));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t c = 0; c < k; ++c)
      flipped[c * n + r] = (*weights)[r * k + c];
  Numbers<float> in(a);
  gemm(rows, n, k, in.data(), k, flipped.data(), n, out.data(), n);
  Shape shape(a.shape().drop_back());
  shape.push_back(n);
  Tensor product = storeAs(a.kind(), shape, std::move(out));
  return bias ? binary(BinaryKind::Add, product, *bias) : Result(product);
}

Result gatherBlockQuantized(const Tensor &data, const Tensor &indices, const Tensor &scales, Operand zeros,
                            const GatherQuantAttributes &attributes) {
  // Bytes hold several values along the last axis; the logical shape counts values.
  bool bytePacked = data.kind() == ElementKind::U8;
  Shape shape(data.shape());
  if (bytePacked && !shape.empty())
    shape.back() *= 8 / attributes.bits;
  Expected<int64_t> axis = normalAxis(attributes.quantizeAxis, data.rank());
  if (!axis)
    return axis.takeError();
  int64_t block = attributes.blockSize, n = shape[*axis], inner = countOf(Ints(shape).drop_front(*axis + 1));
  int64_t blocks = (n + block - 1) / block, outer = countOf(Ints(shape).take_front(*axis));
  if (scales.count() != outer * blocks * inner || (bytePacked && inner != 1))
    return fail("expected " + Twine(outer * blocks * inner) + " scales, but got " + textOf(scales.shape()));
  Tensor values = data;
  std::vector<float> points(static_cast<size_t>(scales.count()), 0.0f);
  if (bytePacked) {
    std::vector<uint8_t> each(static_cast<size_t>(countOf(shape)));
    const auto *bytes = reinterpret_cast<const uint8_t *>(data.bytes());
    for (size_t i = 0; i < each.size(); ++i)
      each[i] = static_cast<uint8_t>(packedAt(bytes, static_cast<int64_t>(i), attributes.bits));
    values = Tensor::adopt(ElementKind::U8, shape, std::move(each));
    Expected<std::vector<float>> given = blockZeros(zeros, outer, blocks, attributes.bits, ElementKind::U8);
    if (!given)
      return given.takeError();
    points = *given;
  } else if (zeros) {
    Numbers<float> given(*zeros);
    points.assign(given.all().begin(), given.all().end());
  }
  Tensor zeroTensor = Tensor::adopt(ElementKind::F32, scales.shape(), std::move(points));
  Result full = dequantizeLinear(values, scales, &zeroTensor, *axis, block, std::nullopt);
  return full ? gather(*full, indices, attributes.gatherAxis) : std::move(full);
}

} // namespace quire::eval
