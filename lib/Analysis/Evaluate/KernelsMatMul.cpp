// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products: the blocked product that everything uses, MatMul, Gemm, FusedMatMul, integer products and Einsum.
#include "Kernels.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cmath>
#include <map>

using namespace llvm;

#if defined(__x86_64__) && defined(__has_attribute) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define QUIRE_BY_CPU __attribute__((target_clones("avx512f", "arch=haswell", "default")))
#else
#define QUIRE_BY_CPU
#endif

namespace quire::eval {

namespace {
constexpr int64_t columnsPerBlock = 64, depthPerBlock = 64, rowsPerBlock = 4;
}

/// sums[r][j] = the product of `rows` rows of a and up to 64 columns of b over up to 64 steps of k, in f32.
QUIRE_BY_CPU static void multiplyBlock(int64_t rows, int64_t columns, int64_t depth, const float *a, int64_t lda,
                                       const float *b, int64_t ldb, float *sums) {
  if (columns == columnsPerBlock && rows == rowsPerBlock) {
    for (int64_t half = 0; half < columnsPerBlock; half += 16) {
      float acc[rowsPerBlock][16] = {};
      for (int64_t p = 0; p < depth; ++p) {
        const float *row = b + p * ldb + half;
        for (int64_t r = 0; r < rowsPerBlock; ++r) {
          float factor = a[r * lda + p];
          for (int64_t j = 0; j < 16; ++j)
            acc[r][j] += factor * row[j];
        }
      }
      for (int64_t r = 0; r < rowsPerBlock; ++r)
        for (int64_t j = 0; j < 16; ++j)
          sums[r * columnsPerBlock + half + j] = acc[r][j];
    }
    return;
  }
  std::fill(sums, sums + rows * columnsPerBlock, 0.0f);
  for (int64_t p = 0; p < depth; ++p) {
    const float *row = b + p * ldb;
    for (int64_t r = 0; r < rows; ++r) {
      float factor = a[r * lda + p];
      float *out = sums + r * columnsPerBlock;
      for (int64_t j = 0; j < columns; ++j)
        out[j] += factor * row[j];
    }
  }
}

static void multiplyColumns(int64_t m, int64_t from, int64_t to, int64_t k, const float *a, int64_t lda, const float *b,
                            int64_t ldb, float *c, int64_t ldc) {
  double total[rowsPerBlock * columnsPerBlock];
  float sums[rowsPerBlock * columnsPerBlock];
  for (int64_t j = from; j < to; j += columnsPerBlock) {
    int64_t columns = std::min(columnsPerBlock, to - j);
    for (int64_t i = 0; i < m; i += rowsPerBlock) {
      int64_t rows = std::min(rowsPerBlock, m - i);
      std::fill(total, total + rows * columnsPerBlock, 0.0);
      for (int64_t p = 0; p < k; p += depthPerBlock) {
        multiplyBlock(rows, columns, std::min(depthPerBlock, k - p), a + i * lda + p, lda, b + p * ldb + j, ldb, sums);
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t q = 0; q < columns; ++q)
            total[r * columnsPerBlock + q] += sums[r * columnsPerBlock + q];
      }
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t q = 0; q < columns; ++q)
          c[(i + r) * ldc + j + q] += static_cast<float>(total[r * columnsPerBlock + q]);
    }
  }
}

void gemm(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
          int64_t ldc) {
  int64_t blocks = (n + columnsPerBlock - 1) / columnsPerBlock;
  parallelRanges(blocks, m * n * k, [&](int64_t begin, int64_t end) {
    multiplyColumns(m, begin * columnsPerBlock, std::min(n, end * columnsPerBlock), k, a, lda, b, ldb, c, ldc);
  });
}

void gemm(int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, const double *b, int64_t ldb, double *c,
          int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      double factor = a[i * lda + p];
      for (int64_t j = 0; j < n; ++j)
        c[i * ldc + j] += factor * b[p * ldb + j];
    }
}

template <typename T>
static void product(int64_t m, int64_t n, int64_t k, const T *a, const T *b, T *c) {
  if constexpr (std::is_floating_point_v<T>) {
    gemm(m, n, k, a, k, b, n, c, n);
  } else {
    for (int64_t i = 0; i < m; ++i)
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < n; ++j)
          c[i * n + j] += a[i * k + p] * b[p * n + j];
  }
}

/// The shapes of a NumPy matmul: batch extents and offsets, m, n, k, and the shape of the result.
struct MatMulPlan {
  Shape batch, result;
  Shape aBatch, bBatch;
  int64_t m = 1, n = 1, k = 1;
};

static Expected<MatMulPlan> planMatMul(const Tensor &a, const Tensor &b) {
  if (a.rank() == 0 || b.rank() == 0)
    return fail("expected operands of rank 1 or more, but got a scalar");
  MatMulPlan plan;
  Shape left(a.shape()), right(b.shape());
  if (a.rank() == 1)
    left.insert(left.begin(), 1);
  if (b.rank() == 1)
    right.push_back(1);
  plan.m = left[left.size() - 2];
  plan.k = left.back();
  plan.n = right.back();
  if (right[right.size() - 2] != plan.k)
    return fail("expected inner extents that agree, but got " + textOf(a.shape()) + " and " + textOf(b.shape()));
  plan.aBatch.assign(left.begin(), left.end() - 2);
  plan.bBatch.assign(right.begin(), right.end() - 2);
  Expected<Shape> batch = broadcastShape({Ints(plan.aBatch), Ints(plan.bBatch)});
  if (!batch)
    return batch.takeError();
  plan.batch = *batch;
  plan.result = plan.batch;
  if (a.rank() > 1)
    plan.result.push_back(plan.m);
  if (b.rank() > 1)
    plan.result.push_back(plan.n);
  return plan;
}

template <typename T>
static std::vector<T> multiplyPlanned(const MatMulPlan &plan, const T *a, const T *b) {
  std::vector<T> out(static_cast<size_t>(countOf(plan.result)), T{});
  if (out.empty() || plan.k == 0)
    return out;
  if (countOf(plan.bBatch) == 1) { // one right matrix: all rows of a at once
    product<T>(countOf(plan.batch) * plan.m, plan.n, plan.k, a, b, out.data());
    return out;
  }
  BroadcastLoop loop(plan.batch, {plan.aBatch, plan.bBatch});
  loop.run([&](int64_t at, const int64_t *offsets, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      product<T>(plan.m, plan.n, plan.k, a + (offsets[0] + i * loop.step(0)) * plan.m * plan.k,
                 b + (offsets[1] + i * loop.step(1)) * plan.k * plan.n, out.data() + (at + i) * plan.m * plan.n);
  });
  return out;
}

Result matMul(const Tensor &a, const Tensor &b, double alpha) {
  if (a.kind() != b.kind())
    return fail("expected operands of one element type, but got " + nameOf(a.kind()) + " and " + nameOf(b.kind()));
  Expected<MatMulPlan> plan = planMatMul(a, b);
  if (!plan)
    return plan.takeError();
  return dispatchCompute(a.kind(), [&](auto type) -> Result {
    using T = decltype(type);
    Numbers<T> left(a), right(b);
    std::vector<T> out = multiplyPlanned<T>(*plan, left.data(), right.data());
    if (alpha != 1.0)
      for (T &value : out)
        value = static_cast<T>(value * static_cast<T>(alpha));
    return storeAs(a.kind(), plan->result, std::move(out));
  });
}

Result swapLastTwo(const Tensor &x) {
  if (x.rank() < 2)
    return x;
  Shape order;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    order.push_back(axis);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transpose(x, Ints(order));
}

/// [s0, s1, ..., m, k] with the batch dimension s0 moved before the last one: the layout that transBatch stands for.
static Result moveBatch(const Tensor &x, bool trans) {
  if (x.rank() < 3)
    return x;
  // Without trans the operand is [m, b..., k]; with it, [k, b..., m] as the swapped spelling of the same.
  Shape order;
  for (int64_t axis = 1; axis + 1 < x.rank(); ++axis)
    order.push_back(axis);
  order.push_back(0);
  order.push_back(x.rank() - 1);
  Result moved = transpose(x, Ints(order));
  return !moved || !trans ? std::move(moved) : swapLastTwo(*moved);
}

Result fusedMatMul(const Tensor &a, const Tensor &b, bool transA, bool transB, bool transBatchA, bool transBatchB,
                   double alpha) {
  Result left = transBatchA ? moveBatch(a, transA) : transA ? swapLastTwo(a) : Result(a);
  if (!left)
    return left;
  Result right = transBatchB ? moveBatch(b, transB) : transB ? swapLastTwo(b) : Result(b);
  return right ? matMul(*left, *right, alpha) : std::move(right);
}

Result gemmOp(const Tensor &a, const Tensor &b, Operand c, double alpha, double beta, bool transA, bool transB) {
  if (a.rank() != 2 || b.rank() != 2)
    return fail("expected matrices, but got " + textOf(a.shape()) + " and " + textOf(b.shape()));
  Result out = fusedMatMul(a, b, transA, transB, false, false, alpha);
  if (!out || !c || beta == 0.0)
    return out;
  if (beta == 1.0)
    return binary(BinaryKind::Add, *out, *c);
  Result scaled = binary(BinaryKind::Mul, *c, scalarTensor(c->kind(), beta));
  return scaled ? binary(BinaryKind::Add, *out, *scaled) : std::move(scaled);
}

/// x - zero as integers, where zero is a scalar, or has one value per row (axis -2) or column (axis -1).
static Expected<std::vector<int64_t>> withoutZero(const Tensor &x, Operand zero, bool perColumn) {
  Numbers<int64_t> in(x);
  std::vector<int64_t> out(in.all().begin(), in.all().end());
  if (!zero)
    return out;
  Numbers<int64_t> points(*zero);
  int64_t columns = x.extent(-1), rows = x.rank() > 1 ? x.extent(-2) : 1;
  int64_t count = static_cast<int64_t>(points.size());
  if (count != 1 && count != (perColumn ? columns : rows) && zero->rank() < 2)
    return fail("expected one zero point, or one a " + Twine(perColumn ? "column" : "row") + ", but got " +
                Twine(count));
  int64_t perMatrix = zero->rank() < 2 ? 0 : perColumn ? columns : rows;
  for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
    int64_t within = perColumn ? i % columns : i / columns % rows;
    out[i] -= count == 1 ? points[0] : points[perMatrix ? (i / (rows * columns)) * perMatrix % count + within : within];
  }
  return out;
}

Result matMulInteger(const Tensor &a, const Tensor &b, Operand aZero, Operand bZero) {
  Expected<MatMulPlan> plan = planMatMul(a, b);
  if (!plan)
    return plan.takeError();
  Expected<std::vector<int64_t>> left = withoutZero(a, aZero, false);
  if (!left)
    return left.takeError();
  Expected<std::vector<int64_t>> right = withoutZero(b, bZero, true);
  if (!right)
    return right.takeError();
  return storeAs(ElementKind::I32, plan->result, multiplyPlanned<int64_t>(*plan, left->data(), right->data()));
}

//===--- Einsum ---------------------------------------------------------------------------------------------------===//

namespace {
/// One letter per axis; the ellipsis becomes letters of its own ('A' onwards are free since ONNX uses any letters:
/// digits are used).
struct EinsumTerms {
  SmallVector<std::string, 3> inputs;
  std::string output;
};
} // namespace

static Expected<EinsumTerms> parseEinsum(StringRef equation, Operands operands) {
  std::string text;
  for (char c : equation)
    if (c != ' ')
      text += c;
  auto [left, right] = StringRef(text).split("->");
  bool explicitOutput = StringRef(text).contains("->");
  SmallVector<StringRef, 3> parts;
  left.split(parts, ',');
  if (parts.size() != operands.size())
    return fail("expected " + Twine(parts.size()) + " operands, but got " + Twine(operands.size()));
  EinsumTerms terms;
  size_t widest = 0;
  for (auto [part, operand] : zip_equal(parts, operands)) {
    std::string letters = part.str();
    if (size_t dots = letters.find("..."); dots != std::string::npos) {
      size_t hidden = static_cast<size_t>(operand->rank()) - (letters.size() - 3);
      widest = std::max(widest, hidden);
      std::string names;
      for (size_t i = 0; i < hidden; ++i) // right aligned: the last hidden axis is '0'
        names += static_cast<char>('0' + static_cast<char>(hidden - 1 - i));
      letters.replace(dots, 3, names);
    }
    if (static_cast<int64_t>(letters.size()) != operand->rank())
      return fail("expected rank " + Twine(letters.size()) + " for '" + part + "', but got " +
                  textOf(operand->shape()));
    terms.inputs.push_back(letters);
  }
  std::string hidden;
  for (size_t i = 0; i < widest; ++i)
    hidden += static_cast<char>('0' + static_cast<char>(widest - 1 - i));
  if (explicitOutput) {
    terms.output = right.str();
    if (size_t dots = terms.output.find("..."); dots != std::string::npos)
      terms.output.replace(dots, 3, hidden);
    return terms;
  }
  std::map<char, int> uses;
  for (const std::string &input : terms.inputs)
    for (char c : input)
      ++uses[c];
  terms.output = hidden;
  for (auto [letter, count] : uses)
    if (count == 1 && !isDigit(letter))
      terms.output += letter;
  return terms;
}

Result einsum(StringRef equation, Operands operands) {
  Expected<EinsumTerms> terms = parseEinsum(equation, operands);
  if (!terms)
    return terms.takeError();
  std::map<char, int64_t> extents;
  for (auto [letters, operand] : zip_equal(terms->inputs, operands))
    for (auto [letter, extent] : zip_equal(letters, operand->shape())) {
      int64_t &known = extents.try_emplace(letter, extent).first->second;
      if (known != extent && known != 1 && extent != 1)
        return fail("expected one extent for '" + Twine(letter) + "', but got " + Twine(known) + " and " +
                    Twine(extent));
      known = std::max(known, extent);
    }
  std::string order = terms->output;
  for (auto [letter, extent] : extents)
    if (order.find(letter) == std::string::npos)
      order += letter;
  Shape loop, outShape;
  for (char letter : order)
    loop.push_back(extents.count(letter) ? extents[letter] : 1);
  outShape.assign(loop.begin(), loop.begin() + static_cast<int64_t>(terms->output.size()));
  // Strides of each operand over the loop; a letter that repeats within an operand walks its diagonal.
  SmallVector<Shape, 3> strides;
  for (auto [letters, operand] : zip_equal(terms->inputs, operands)) {
    Shape own = stridesOf(operand->shape()), walk(loop.size(), 0);
    for (size_t axis = 0; axis < letters.size(); ++axis)
      if (operand->shape()[axis] != 1)
        walk[order.find(letters[axis])] += own[axis];
    strides.push_back(walk);
  }
  return dispatchCompute(operands.front()->kind(), [&](auto type) -> Result {
    using T = decltype(type);
    using A = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    SmallVector<Numbers<T>, 3> in;
    for (Operand operand : operands)
      in.emplace_back(*operand);
    std::vector<A> out(static_cast<size_t>(countOf(outShape)), A{});
    int64_t inner = countOf(Ints(loop).drop_front(static_cast<int64_t>(outShape.size())));
    Shape index(loop.size(), 0);
    SmallVector<int64_t, 3> at(in.size(), 0);
    for (int64_t flat = 0, count = countOf(loop); flat < count; ++flat) {
      A value(1);
      for (size_t i = 0; i < in.size(); ++i)
        value *= static_cast<A>(in[i][at[i]]);
      out[flat / inner] += value;
      for (size_t axis = loop.size(); axis-- > 0;) {
        for (size_t i = 0; i < in.size(); ++i)
          at[i] += strides[i][axis];
        if (++index[axis] < loop[axis])
          break;
        for (size_t i = 0; i < in.size(); ++i)
          at[i] -= strides[i][axis] * loop[axis];
        index[axis] = 0;
      }
    }
    return storeAs(operands.front()->kind(), outShape, std::move(out));
  });
}

} // namespace quire::eval
