// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Normalisations and the fused forms of them that ONNX Runtime's optimizer writes. Sums run in double.
#include "FloatFormats.h"
#include "Kernels.h"
#include <cmath>

using namespace llvm;

namespace quire::eval {

namespace {
struct RowMoments {
  double mean, inverse;
};
} // namespace

template <typename T>
static RowMoments momentsOf(const T *row, int64_t n, double epsilon, bool centered) {
  double sum = 0, squares = 0;
  if (centered)
    for (int64_t i = 0; i < n; ++i)
      sum += static_cast<double>(row[i]);
  double mean = centered ? sum / static_cast<double>(n) : 0.0;
  for (int64_t i = 0; i < n; ++i) {
    double d = static_cast<double>(row[i]) - mean;
    squares += d * d;
  }
  return {mean, 1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon)};
}

/// Y, mean and inverse deviation of rows of `n`; scale and bias broadcast over the rows when they are shorter.
template <typename T>
static Tensors normalizeRows(const Tensor &x, const Tensor &scale, Operand bias, int64_t axis, double epsilon,
                             bool centered) {
  Numbers<T> in(x), factors(scale), offsets(bias ? *bias : Tensor::zeros(scale.kind(), {0}));
  int64_t n = countOf(x.shape().drop_front(axis)), rows = countOf(x.shape().take_front(axis));
  std::vector<T> out(in.size()), means(static_cast<size_t>(rows)), inverses(static_cast<size_t>(rows));
  // Scale and bias may have any shape that broadcasts to x.
  Expected<Tensor> full = factors.size() == static_cast<size_t>(n) ? scale : expand(scale, x.shape());
  Numbers<T> spread(cantFail(std::move(full)));
  bool perElement = spread.size() != static_cast<size_t>(n);
  for (int64_t row = 0; row < rows; ++row) {
    const T *from = in.data() + row * n;
    RowMoments moments = momentsOf(from, n, epsilon, centered);
    for (int64_t i = 0; i < n; ++i) {
      double normal = (static_cast<double>(from[i]) - moments.mean) * moments.inverse;
      double value = normal * static_cast<double>(spread[perElement ? row * n + i : i]);
      if (bias)
        value += static_cast<double>(offsets[i % static_cast<int64_t>(offsets.size())]);
      out[row * n + i] = static_cast<T>(value);
    }
    means[row] = static_cast<T>(moments.mean);
    inverses[row] = static_cast<T>(moments.inverse);
  }
  Shape reduced(x.shape());
  for (size_t i = axis; i < reduced.size(); ++i)
    reduced[i] = 1;
  ElementKind stash = x.kind() == ElementKind::F64 ? ElementKind::F64 : ElementKind::F32;
  return {storeAs(x.kind(), x.shape(), std::move(out)), storeAs(stash, reduced, std::move(means)),
          storeAs(stash, reduced, std::move(inverses))};
}

static Results normalize(const Tensor &x, const Tensor &scale, Operand bias, int64_t axis, double epsilon,
                         bool centered) {
  Expected<int64_t> normal = normalAxis(axis, x.rank());
  if (!normal)
    return normal.takeError();
  Expected<Shape> spread = broadcastShape({x.shape(), scale.shape()});
  if (!spread)
    return spread.takeError();
  if (Ints(*spread) != x.shape())
    return fail("expected a scale that broadcasts to " + textOf(x.shape()) + ", but got " + textOf(scale.shape()));
  int64_t n = countOf(x.shape().drop_front(*normal));
  if (n == 0)
    return fail("expected elements to normalise, but got shape " + textOf(x.shape()));
  if (bias && n % std::max<int64_t>(bias->count(), 1))
    return fail("expected a bias of " + Twine(n) + " elements, but got " + textOf(bias->shape()));
  if (x.kind() == ElementKind::F64)
    return normalizeRows<double>(x, scale, bias, *normal, epsilon, centered);
  return normalizeRows<float>(x, scale, bias, *normal, epsilon, centered);
}

Results layerNormalization(const Tensor &x, const Tensor &scale, Operand bias, int64_t axis, double epsilon) {
  return normalize(x, scale, bias, axis, epsilon, true);
}

Results rmsNormalization(const Tensor &x, const Tensor &scale, int64_t axis, double epsilon) {
  Results all = normalize(x, scale, nullptr, axis, epsilon, false);
  if (!all)
    return all;
  return Tensors{(*all)[0], (*all)[2]};
}

Results skipLayerNormalization(const Tensor &x, const Tensor &skip, const Tensor &gamma, Operand beta, Operand bias,
                               const SkipNormAttributes &attributes) {
  Tensor sum;
  // Summed in f32 and rounded once for the output; the normalisation sees the unrounded sum.
  Tensor wide[3];
  Operand parts[3] = {&x, &skip, bias};
  for (int i = 0; i < 3; ++i)
    if (parts[i]) {
      Result part = castTo(*parts[i], ElementKind::F32);
      if (!part)
        return part.takeError();
      wide[i] = *part;
    }
  Result total = binary(BinaryKind::Add, wide[0], wide[1]);
  if (total && bias)
    total = binary(BinaryKind::Add, *total, wide[2]);
  if (!total)
    return total.takeError();
  Results normal = normalize(*total, gamma, beta, -1, attributes.epsilon, !attributes.simplified);
  if (!normal)
    return normal;
  Result out = castTo((*normal)[0], x.kind()), rounded = castTo(*total, x.kind());
  if (!out)
    return out.takeError();
  if (!rounded)
    return rounded.takeError();
  return Tensors{*out, (*normal)[1], (*normal)[2], *rounded};
}

static Result addRows(const Tensor &sum, const Tensor &table, const Tensor &rows) {
  Result picked = gather(table, rows, 0);
  return picked ? binary(BinaryKind::Add, sum, *picked) : std::move(picked);
}

Results embedLayerNormalization(const Tensor &ids, Operand segments, const Tensor &words, const Tensor &positionTable,
                                Operand segmentTable, const Tensor &gamma, const Tensor &beta, Operand mask,
                                Operand positions, double epsilon) {
  if (ids.rank() != 2)
    return fail("expected ids of shape [batch,sequence], but got " + textOf(ids.shape()));
  Result sum = gather(words, ids, 0);
  if (!sum)
    return sum.takeError();
  std::vector<int64_t> steps(static_cast<size_t>(ids.shape()[1]));
  for (size_t i = 0; i < steps.size(); ++i)
    steps[i] = static_cast<int64_t>(i);
  Tensor where = positions ? *positions : vectorTensor(steps).withShape({1, ids.shape()[1]});
  sum = addRows(*sum, positionTable, where);
  if (sum && segments && segmentTable)
    sum = addRows(*sum, *segmentTable, *segments);
  if (!sum)
    return sum.takeError();
  Results normal = normalize(*sum, gamma, &beta, -1, epsilon, true);
  if (!normal)
    return normal;
  // The mask index is the number of leading ones of each row, zero without a mask.
  std::vector<int32_t> lengths(static_cast<size_t>(ids.shape()[0]), 0);
  if (mask) {
    Numbers<int64_t> bits(*mask);
    for (size_t row = 0; row < lengths.size(); ++row)
      while (lengths[row] < ids.shape()[1] && bits[static_cast<int64_t>(row) * ids.shape()[1] + lengths[row]] == 1)
        ++lengths[row];
  }
  return Tensors{(*normal)[0], Tensor::adopt(ElementKind::I32, {ids.shape()[0]}, std::move(lengths)), *sum};
}

/// Scale and bias of each channel (axis 1) applied to normalised groups of channels.
static Result normalizeGroups(const Tensor &x, const Tensor &scale, const Tensor &bias, int64_t groups,
                              double epsilon) {
  if (x.rank() < 2 || groups < 1 || x.shape()[1] % groups || scale.count() != x.shape()[1] ||
      bias.count() != x.shape()[1])
    return fail("expected [N,C,...] with C a multiple of " + Twine(groups) +
                " and a scale and bias a channel, but got " + textOf(x.shape()));
  int64_t channels = x.shape()[1], inner = countOf(x.shape().drop_front(2)), perGroup = channels / groups * inner;
  auto run = [&](auto type) -> Result {
    using T = decltype(type);
    Numbers<T> in(x), factors(scale), offsets(bias);
    std::vector<T> out(in.size());
    for (int64_t start = 0; start < x.count(); start += perGroup) {
      RowMoments moments = momentsOf(in.data() + start, perGroup, epsilon, true);
      for (int64_t i = start; i < start + perGroup; ++i) {
        int64_t channel = i / inner % channels;
        out[i] = static_cast<T>((static_cast<double>(in[i]) - moments.mean) * moments.inverse *
                                    static_cast<double>(factors[channel]) +
                                static_cast<double>(offsets[channel]));
      }
    }
    return storeAs(x.kind(), x.shape(), std::move(out));
  };
  return x.kind() == ElementKind::F64 ? run(double{}) : run(float{});
}

Result groupNormalization(const Tensor &x, const Tensor &scale, const Tensor &bias, int64_t groups, double epsilon) {
  return normalizeGroups(x, scale, bias, groups, epsilon);
}

Result instanceNormalization(const Tensor &x, const Tensor &scale, const Tensor &bias, double epsilon) {
  return normalizeGroups(x, scale, bias, x.rank() > 1 ? x.shape()[1] : 1, epsilon);
}

Result batchNormalization(const Tensor &x, const Tensor &scale, const Tensor &bias, const Tensor &mean,
                          const Tensor &variance, double epsilon) {
  if (x.rank() < 2 || scale.count() != x.shape()[1] || mean.count() != x.shape()[1])
    return fail("expected [N,C,...] and one statistic a channel, but got " + textOf(x.shape()));
  int64_t channels = x.shape()[1], inner = countOf(x.shape().drop_front(2));
  Numbers<double> in(x), factors(scale), offsets(bias), means(mean), variances(variance);
  std::vector<double> out(in.size());
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t c = i / inner % channels;
    out[i] = (in[i] - means[c]) / std::sqrt(variances[c] + epsilon) * factors[c] + offsets[c];
  }
  return storeAs(x.kind(), x.shape(), std::move(out));
}

Result lpNormalization(const Tensor &x, int64_t axis, int64_t p) {
  Result norm = reduce(p == 1 ? ReduceKind::L1 : ReduceKind::L2, x, Ints({axis}), true, false);
  if (!norm)
    return norm;
  // Rows of zeros stay zero.
  Numbers<double> lengths(*norm);
  std::vector<double> safe(lengths.all().begin(), lengths.all().end());
  for (double &length : safe)
    length = length == 0 ? 1 : length;
  return binary(BinaryKind::Div, x, storeAs(x.kind(), norm->shape(), std::move(safe)));
}

Result biasGelu(const Tensor &x, Operand bias, bool tanhForm) {
  Result sum = bias ? binary(BinaryKind::Add, x, *bias) : Result(x);
  return sum ? unary(tanhForm ? UnaryKind::GeluTanh : UnaryKind::GeluErf, *sum) : std::move(sum);
}

} // namespace quire::eval
