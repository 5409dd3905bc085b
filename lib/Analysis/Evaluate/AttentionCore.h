// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every attention operator shares: heads laid out as [batch, heads, rows, size], scores, softmax and the weighted
// sum.
#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_ATTENTIONCORE_H
#define QUIRE_LIB_ANALYSIS_EVALUATE_ATTENTIONCORE_H

#include "Kernels.h"
#include <cmath>
#include <limits>

namespace quire::eval {

/// Compute values as [batch, heads, rows, size].
template <typename T>
struct Heads {
  int64_t batch = 0, heads = 0, rows = 0, size = 0;
  std::vector<T> values;

  Heads() = default;
  Heads(int64_t batch, int64_t heads, int64_t rows, int64_t size)
      : batch(batch), heads(heads), rows(rows), size(size), values(static_cast<size_t>(batch * heads * rows * size)) {}
  T *at(int64_t b, int64_t h, int64_t row = 0) { return values.data() + ((b * heads + h) * rows + row) * size; }
  const T *at(int64_t b, int64_t h, int64_t row = 0) const {
    return values.data() + ((b * heads + h) * rows + row) * size;
  }
  Shape shape() const { return Shape({batch, heads, rows, size}); }
};

/// [batch, rows, ...] where row r holds head h at first + h*step; a bias of heads*size values may be added.
template <typename T>
Heads<T> splitHeads(const T *data, int64_t batch, int64_t rows, int64_t rowSize, int64_t heads, int64_t size,
                    int64_t first, int64_t step, const T *bias = nullptr) {
  Heads<T> out(batch, heads, rows, size);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t h = 0; h < heads; ++h) {
        const T *from = data + (b * rows + r) * rowSize + first + h * step;
        T *to = out.at(b, h, r);
        for (int64_t i = 0; i < size; ++i)
          to[i] = bias ? from[i] + bias[h * size + i] : from[i];
      }
  return out;
}

/// 4-D tensors as they are, 3-D ones [batch, rows, heads*size] split.
template <typename T>
Heads<T> headsOf(const Tensor &x, int64_t heads) {
  Numbers<T> in(x);
  if (x.rank() == 4) {
    Heads<T> out(x.shape()[0], x.shape()[1], x.shape()[2], x.shape()[3]);
    out.values.assign(in.all().begin(), in.all().end());
    return out;
  }
  int64_t size = x.shape()[2] / heads;
  return splitHeads<T>(in.data(), x.shape()[0], x.shape()[1], x.shape()[2], heads, size, 0, size);
}

/// Rows of `a`, then rows of `b`.
template <typename T>
Heads<T> joinRows(const Heads<T> &a, const Heads<T> &b) {
  Heads<T> out(b.batch, b.heads, a.rows + b.rows, b.size);
  for (int64_t n = 0; n < b.batch; ++n)
    for (int64_t h = 0; h < b.heads; ++h) {
      std::copy_n(a.at(n, h), a.rows * a.size, out.at(n, h));
      std::copy_n(b.at(n, h), b.rows * b.size, out.at(n, h, a.rows));
    }
  return out;
}

/// [batch, rows, heads*size] in row-major order.
template <typename T>
std::vector<T> mergeHeads(const Heads<T> &x) {
  std::vector<T> out(x.values.size());
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t r = 0; r < x.rows; ++r)
        std::copy_n(x.at(b, h, r), x.size, out.data() + ((b * x.rows + r) * x.heads + h) * x.size);
  return out;
}

/// Softmax of a row in place with one more exponent in the denominator where `sink` is given. A row of -inf becomes
/// zeros.
template <typename T>
void softmaxInPlace(T *row, int64_t n, std::optional<T> sink = std::nullopt) {
  T largest = sink.value_or(-std::numeric_limits<T>::infinity());
  for (int64_t i = 0; i < n; ++i)
    largest = std::max(largest, row[i]);
  if (!(largest > -std::numeric_limits<T>::infinity())) {
    std::fill_n(row, n, T(0));
    return;
  }
  double sum = sink ? std::exp(static_cast<double>(*sink - largest)) : 0.0;
  for (int64_t i = 0; i < n; ++i) {
    row[i] = std::exp(row[i] - largest);
    sum += static_cast<double>(row[i]);
  }
  T scale = static_cast<T>(1.0 / sum);
  for (int64_t i = 0; i < n; ++i)
    row[i] *= scale;
}

/// For each query row: dot products with all key rows (times `scale`), `weigh(b, head, query, row)` which turns them
/// into weights in place, and the weighted sum of the value rows. Query head h reads key head h / (heads / key heads).
template <typename T, typename Weigh>
Heads<T> attend(const Heads<T> &q, const Heads<T> &k, const Heads<T> &v, T scale, Weigh weigh) {
  Heads<T> out(q.batch, q.heads, q.rows, v.size);
  int64_t group = q.heads / k.heads, keys = k.rows;
  std::vector<T> flipped(static_cast<size_t>(k.size * keys)), scores(static_cast<size_t>(q.rows * keys)), scaled;
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t h = 0; h < q.heads; ++h) {
      if (h % group == 0) {
        const T *from = k.at(b, h / group);
        for (int64_t j = 0; j < keys; ++j)
          for (int64_t d = 0; d < k.size; ++d)
            flipped[d * keys + j] = from[j * k.size + d];
      }
      scaled.assign(q.at(b, h), q.at(b, h) + q.rows * q.size);
      for (T &value : scaled)
        value *= scale;
      std::fill(scores.begin(), scores.end(), T(0));
      gemm(q.rows, keys, q.size, scaled.data(), q.size, flipped.data(), keys, scores.data(), keys);
      for (int64_t i = 0; i < q.rows; ++i)
        weigh(b, h, i, scores.data() + i * keys);
      gemm(q.rows, v.size, keys, scores.data(), keys, v.at(b, h / group), v.size, out.at(b, h), v.size);
    }
  return out;
}

/// Rotates the first `dim` elements of a head by the angles of one position: `cosine` and `sine` hold dim/2 values.
template <typename T>
void rotate(T *x, const T *cosine, const T *sine, int64_t dim, bool interleaved) {
  int64_t half = dim / 2;
  for (int64_t i = 0; i < half; ++i) {
    int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + half;
    T a = x[first], b = x[second];
    x[first] = cosine[i] * a - sine[i] * b;
    x[second] = sine[i] * a + cosine[i] * b;
  }
}

} // namespace quire::eval

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_ATTENTIONCORE_H
