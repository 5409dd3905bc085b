// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions, running sums, TopK and the softmax family.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace llvm;

namespace quire::eval {

/// For each input element in order, the index of the output element that it belongs to.
static std::vector<int64_t> outputIndices(Ints shape, Ints reduced, Shape &kept) {
  kept.assign(shape.begin(), shape.end());
  for (int64_t axis : reduced)
    kept[axis] = 1;
  Shape strides = stridesOf(kept);
  for (int64_t axis : reduced)
    strides[axis] = 0;
  std::vector<int64_t> result(static_cast<size_t>(countOf(shape)));
  SmallVector<int64_t, 6> index(shape.size(), 0);
  int64_t at = 0;
  for (int64_t &slot : result) {
    slot = at;
    for (size_t axis = shape.size(); axis-- > 0;) {
      at += strides[axis];
      if (++index[axis] < shape[axis])
        break;
      at -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

/// Sum and count types: double for floats, so that long sums stay exact to f32; 64-bit integers for integers.
template <typename T>
using Accumulator = std::conditional_t<std::is_floating_point_v<T>, double, T>;

template <typename T>
static std::vector<Accumulator<T>> reduceValues(ReduceKind kind, const Numbers<T> &in, ArrayRef<int64_t> slots,
                                                int64_t outCount) {
  using A = Accumulator<T>;
  auto lowest = std::is_floating_point_v<A> ? -std::numeric_limits<A>::infinity() : std::numeric_limits<A>::lowest();
  auto highest = std::is_floating_point_v<A> ? std::numeric_limits<A>::infinity() : std::numeric_limits<A>::max();
  if constexpr (std::is_integral_v<A>)
    lowest = std::numeric_limits<A>::lowest(), highest = std::numeric_limits<A>::max();
  A start = kind == ReduceKind::Prod  ? A(1)
            : kind == ReduceKind::Max ? lowest
            : kind == ReduceKind::Min ? highest
                                      : A(0);
  std::vector<A> out(static_cast<size_t>(outCount), start);
  auto each = [&](auto step) {
    for (size_t i = 0; i < in.size(); ++i)
      step(out[slots[i]], static_cast<A>(in[i]));
  };
  switch (kind) {
  case ReduceKind::Sum:
  case ReduceKind::Mean:
  case ReduceKind::LogSum:
    each([](A &o, A v) { o += v; });
    break;
  case ReduceKind::Max:
    each([](A &o, A v) { o = v != v ? v : o < v ? v : o; });
    break;
  case ReduceKind::Min:
    each([](A &o, A v) { o = v != v ? v : v < o ? v : o; });
    break;
  case ReduceKind::Prod:
    each([](A &o, A v) { o *= v; });
    break;
  case ReduceKind::SumSquare:
  case ReduceKind::L2:
    each([](A &o, A v) { o += v * v; });
    break;
  case ReduceKind::L1:
    each([](A &o, A v) { o += v < A(0) ? A(0) - v : v; });
    break;
  case ReduceKind::LogSumExp:
    llvm_unreachable("needs the maximum first");
  }
  return out;
}

template <typename T>
static std::vector<double> logSumExp(const Numbers<T> &in, ArrayRef<int64_t> slots, int64_t outCount) {
  std::vector<double> largest(static_cast<size_t>(outCount), -std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < in.size(); ++i)
    largest[slots[i]] = std::max(largest[slots[i]], static_cast<double>(in[i]));
  std::vector<double> sum(largest.size(), 0.0);
  for (double &value : largest)
    if (!std::isfinite(value))
      value = std::isinf(value) && value > 0 ? value : 0.0;
  for (size_t i = 0; i < in.size(); ++i)
    sum[slots[i]] += std::exp(static_cast<double>(in[i]) - largest[slots[i]]);
  for (size_t o = 0; o < sum.size(); ++o)
    sum[o] = largest[o] + std::log(sum[o]);
  return sum;
}

Result reduce(ReduceKind kind, const Tensor &x, std::optional<Ints> axes, bool keepDims, bool noopWithEmptyAxes) {
  Shape reduced;
  if (axes && !axes->empty()) {
    Expected<Shape> normal = normalAxes(*axes, x.rank());
    if (!normal)
      return normal.takeError();
    reduced = *normal;
  } else if (!noopWithEmptyAxes) {
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      reduced.push_back(axis);
  }
  Shape kept;
  std::vector<int64_t> slots = outputIndices(x.shape(), reduced, kept);
  int64_t outCount = countOf(kept);
  int64_t perOutput = outCount ? x.count() / outCount : 0;
  Shape outShape;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (keepDims || !is_contained(reduced, axis))
      outShape.push_back(kept[axis]);
  if (x.kind() == ElementKind::Bool && kind != ReduceKind::Max && kind != ReduceKind::Min)
    return fail("expected numbers, but got " + nameOf(x.kind()));
  return dispatchCompute(x.kind(), [&](auto type) -> Result {
    using T = decltype(type);
    Numbers<T> in(x);
    if (kind == ReduceKind::LogSumExp)
      return storeAs(x.kind(), outShape, logSumExp(in, slots, outCount));
    auto values = reduceValues<T>(kind, in, slots, outCount);
    if (x.kind() == ElementKind::Bool && perOutput == 0)
      values.assign(values.size(), kind == ReduceKind::Max ? 0 : 1);
    using A = typename decltype(values)::value_type;
    for (A &value : values) {
      if (kind == ReduceKind::Mean)
        value = perOutput ? static_cast<A>(value / static_cast<A>(perOutput)) : std::numeric_limits<A>::quiet_NaN();
      else if (kind == ReduceKind::L2)
        value = static_cast<A>(std::sqrt(static_cast<double>(value)));
      else if (kind == ReduceKind::LogSum)
        value = static_cast<A>(std::log(static_cast<double>(value)));
    }
    return storeAs(x.kind(), outShape, std::move(values));
  });
}

/// A tensor seen as [outer, n, inner] around one axis.
struct AxisView {
  int64_t outer = 1, n = 1, inner = 1;
  AxisView(Ints shape, int64_t axis)
      : outer(countOf(shape.take_front(axis))), n(shape.empty() ? 1 : shape[axis]),
        inner(shape.empty() ? 1 : countOf(shape.drop_front(axis + 1))) {}
};

static Expected<AxisView> viewAlong(const Tensor &x, int64_t axis) {
  if (x.rank() == 0)
    return AxisView({}, 0);
  Expected<int64_t> normal = normalAxis(axis, x.rank());
  if (!normal)
    return normal.takeError();
  return AxisView(x.shape(), *normal);
}

Result argExtreme(const Tensor &x, int64_t axis, bool keepDims, bool lastIndex, bool largest) {
  Expected<int64_t> normal = normalAxis(axis, x.rank());
  if (!normal)
    return normal.takeError();
  AxisView view(x.shape(), *normal);
  if (view.n == 0)
    return fail("expected elements along axis " + Twine(axis) + ", but got none");
  std::vector<int64_t> out(static_cast<size_t>(view.outer * view.inner));
  dispatchCompute(x.kind(), [&](auto type) {
    using T = decltype(type);
    Numbers<T> in(x);
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t i = 0; i < view.inner; ++i) {
        int64_t best = 0;
        auto at = [&](int64_t n) { return in[(o * view.n + n) * view.inner + i]; };
        for (int64_t n = 1; n < view.n; ++n) {
          bool better = largest ? at(n) > at(best) : at(n) < at(best);
          if (better || (lastIndex && at(n) == at(best)))
            best = n;
        }
        out[o * view.inner + i] = best;
      }
  });
  Shape shape(x.shape());
  if (keepDims)
    shape[*normal] = 1;
  else
    shape.erase(shape.begin() + *normal);
  return Tensor::adopt(ElementKind::I64, shape, std::move(out));
}

Result cumulative(const Tensor &x, int64_t axis, bool exclusive, bool reverse, bool product) {
  Expected<AxisView> view = viewAlong(x, axis);
  if (!view)
    return view.takeError();
  return dispatchCompute(x.kind(), [&](auto type) -> Result {
    using T = decltype(type);
    Numbers<T> in(x);
    std::vector<Accumulator<T>> out(in.size());
    for (int64_t o = 0; o < view->outer; ++o)
      for (int64_t i = 0; i < view->inner; ++i) {
        Accumulator<T> running(product ? 1 : 0);
        for (int64_t step = 0; step < view->n; ++step) {
          int64_t n = reverse ? view->n - 1 - step : step;
          int64_t at = (o * view->n + n) * view->inner + i;
          Accumulator<T> before = running;
          running = product ? running * in[at] : running + in[at];
          out[at] = exclusive ? before : running;
        }
      }
    return storeAs(x.kind(), x.shape(), std::move(out));
  });
}

Results topK(const Tensor &x, int64_t k, int64_t axis, bool largest) {
  Expected<int64_t> normal = normalAxis(axis, x.rank());
  if (!normal)
    return normal.takeError();
  AxisView view(x.shape(), *normal);
  if (k < 0 || k > view.n)
    return fail("expected k in [0," + Twine(view.n) + "], but got " + Twine(k));
  Shape shape(x.shape());
  shape[*normal] = k;
  std::vector<int64_t> indices(static_cast<size_t>(countOf(shape)));
  Tensor values;
  dispatchCompute(x.kind(), [&](auto type) {
    using T = decltype(type);
    Numbers<T> in(x);
    std::vector<T> best(indices.size());
    std::vector<int64_t> order(static_cast<size_t>(view.n));
    for (int64_t o = 0; o < view.outer; ++o)
      for (int64_t i = 0; i < view.inner; ++i) {
        auto at = [&](int64_t n) { return in[(o * view.n + n) * view.inner + i]; };
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](int64_t l, int64_t r) {
          T a = at(l), b = at(r);
          if (a != a || b != b) // not a number comes first, so that the order is total
            return a != a ? (b == b || l < r) : false;
          return a == b ? l < r : largest ? a > b : a < b;
        });
        for (int64_t n = 0; n < k; ++n) {
          best[(o * k + n) * view.inner + i] = at(order[n]);
          indices[(o * k + n) * view.inner + i] = order[n];
        }
      }
    values = storeAs(x.kind(), shape, std::move(best));
  });
  return Tensors{values, Tensor::adopt(ElementKind::I64, shape, std::move(indices))};
}

template <typename T>
static void softmaxRow(SoftmaxKind kind, const T *in, T *out, int64_t n, int64_t step) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (in[i * step] > in[best * step])
      best = i;
  if (kind == SoftmaxKind::Hardmax) {
    for (int64_t i = 0; i < n; ++i)
      out[i * step] = i == best ? T(1) : T(0);
    return;
  }
  T largest = in[best * step];
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    T e = std::exp(in[i * step] - largest);
    sum += e;
    out[i * step] = e;
  }
  if (kind == SoftmaxKind::LogSoftmax) {
    T shift = static_cast<T>(std::log(sum));
    for (int64_t i = 0; i < n; ++i)
      out[i * step] = in[i * step] - largest - shift;
    return;
  }
  T scale = static_cast<T>(1.0 / sum);
  for (int64_t i = 0; i < n; ++i)
    out[i * step] *= scale;
}

Result softmax(SoftmaxKind kind, const Tensor &x, int64_t axis) {
  Expected<AxisView> view = viewAlong(x, axis);
  if (!view)
    return view.takeError();
  if (!isFloat(x.kind()))
    return fail("expected floating-point elements, but got " + nameOf(x.kind()));
  auto run = [&](auto type) -> Result {
    using T = decltype(type);
    Numbers<T> in(x);
    std::vector<T> out(in.size());
    if (view->n > 0)
      for (int64_t o = 0; o < view->outer; ++o)
        for (int64_t i = 0; i < view->inner; ++i) {
          int64_t at = o * view->n * view->inner + i;
          softmaxRow(kind, in.data() + at, out.data() + at, view->n, view->inner);
        }
    return storeAs(x.kind(), x.shape(), std::move(out));
  };
  return x.kind() == ElementKind::F64 ? run(double{}) : run(float{});
}

} // namespace quire::eval
