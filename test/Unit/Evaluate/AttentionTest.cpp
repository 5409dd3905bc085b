// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention kernels against the definition in double: heads, windows, caches and masks.
#include "lib/Analysis/Evaluate/Kernels.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace llvm;
using namespace quire::eval;

namespace {

Tensor randomTensor(Ints shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(countOf(shape)));
  for (float &value : out)
    value = normal(generator);
  return Tensor::adopt(ElementKind::F32, shape, std::move(out));
}

Tensors valid(Results results) {
  if (!results) {
    ADD_FAILURE() << toString(results.takeError());
    return {};
  }
  return *results;
}

/// Softmax(scale * q k^T) v in double, where `visible(i, j)` tells which keys count; tensors are [1, heads, rows,
/// size].
std::vector<double> defined(const Tensor &q, const Tensor &k, const Tensor &v,
                            std::function<bool(int64_t, int64_t)> visible, double softcap = 0) {
  Numbers<double> qs(q), ks(k), vs(v);
  int64_t heads = q.shape()[1], group = heads / k.shape()[1], queries = q.shape()[2], keys = k.shape()[2],
          size = q.shape()[3], width = v.shape()[3];
  std::vector<double> out(static_cast<size_t>(heads * queries * width), 0.0);
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < queries; ++i) {
      std::vector<double> weight(static_cast<size_t>(keys), 0.0);
      double sum = 0;
      for (int64_t j = 0; j < keys; ++j) {
        if (!visible(i, j))
          continue;
        double score = 0;
        for (int64_t d = 0; d < size; ++d)
          score += qs[(h * queries + i) * size + d] * ks[(h / group * keys + j) * size + d];
        score /= std::sqrt(static_cast<double>(size));
        weight[j] = std::exp(softcap > 0 ? softcap * std::tanh(score / softcap) : score);
        sum += weight[j];
      }
      for (int64_t j = 0; j < keys && sum > 0; ++j)
        for (int64_t d = 0; d < width; ++d)
          out[(h * queries + i) * width + d] += weight[j] / sum * vs[(h / group * keys + j) * width + d];
    }
  return out;
}

void expectNear(const Tensor &got, const std::vector<double> &want) {
  Numbers<double> numbers(got);
  ASSERT_EQ(numbers.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(numbers[static_cast<int64_t>(i)], want[i], 2e-6) << i;
}

struct HeadCase {
  int64_t heads, kvHeads, size, valueSize, queries, past;
};
class OnnxAttention : public testing::TestWithParam<HeadCase> {};

TEST_P(OnnxAttention, CausalWithPastIsBottomRight) {
  HeadCase c = GetParam();
  Tensor q = randomTensor({1, c.heads, c.queries, c.size}, 1), k = randomTensor({1, c.kvHeads, c.queries, c.size}, 2),
         v = randomTensor({1, c.kvHeads, c.queries, c.valueSize}, 3),
         pastK = randomTensor({1, c.kvHeads, c.past, c.size}, 4),
         pastV = randomTensor({1, c.kvHeads, c.past, c.valueSize}, 5);
  AttentionAttributes attributes;
  attributes.isCausal = true;
  attributes.softcap = 3;
  Tensors out = valid(attention(q, k, v, nullptr, &pastK, &pastV, nullptr, attributes));
  ASSERT_EQ(out.size(), 4u);
  EXPECT_EQ(out[1].shape()[2], c.past + c.queries);
  expectNear(out[0], defined(
                         q, out[1], out[2], [&](int64_t i, int64_t j) { return j <= c.past + i; }, 3));
}
INSTANTIATE_TEST_SUITE_P(Heads, OnnxAttention,
                         testing::Values(HeadCase{4, 4, 32, 32, 3, 5}, HeadCase{8, 2, 64, 64, 1, 17},
                                         HeadCase{9, 3, 80, 80, 7, 0}, HeadCase{28, 4, 16, 16, 2, 3},
                                         HeadCase{4, 1, 96, 96, 5, 9}, HeadCase{2, 2, 192, 128, 3, 4}));

TEST(OnnxAttention, FullyMaskedRowsAreZero) {
  Tensor q = randomTensor({1, 1, 2, 8}, 1), k = randomTensor({1, 1, 3, 8}, 2), v = randomTensor({1, 1, 3, 8}, 3);
  Tensor mask = Tensor::adopt(ElementKind::Bool, {2, 3}, std::vector<uint8_t>{0, 0, 0, 1, 0, 1});
  Tensors out = valid(attention(q, k, v, &mask, nullptr, nullptr, nullptr, {}));
  expectNear(out[0], defined(q, k, v, [](int64_t i, int64_t j) { return i == 1 && j != 1; }));
}

TEST(OnnxAttention, NonpadLengthsBoundKeysAndMoveTheCausalRule) {
  Tensor q = randomTensor({1, 2, 2, 8}, 1), k = randomTensor({1, 2, 6, 8}, 2), v = randomTensor({1, 2, 6, 8}, 3);
  Tensor lengths = vectorTensor({4});
  AttentionAttributes attributes;
  attributes.isCausal = true;
  Tensors out = valid(attention(q, k, v, nullptr, nullptr, nullptr, &lengths, attributes));
  expectNear(out[0], defined(q, k, v, [](int64_t i, int64_t j) { return j <= 2 + i && j < 4; }));
}

/// GroupQueryAttention fed at once, or a prompt and single tokens, gives the same rows.
class GroupQuery : public testing::TestWithParam<std::tuple<int64_t, bool>> {};

TEST_P(GroupQuery, StepsAgreeWithOneCall) {
  auto [window, shared] = GetParam();
  constexpr int64_t heads = 4, kvHeads = 2, size = 16, total = 9, prompt = 5, capacity = 12;
  Tensor packed = randomTensor({1, total, (heads + 2 * kvHeads) * size}, 7);
  Tensor cosine = randomTensor({32, size / 2}, 8), sine = randomTensor({32, size / 2}, 9);
  GroupQueryAttributes attributes;
  attributes.heads = heads;
  attributes.kvHeads = kvHeads;
  attributes.localWindow = window;
  attributes.doRotary = true;
  auto call = [&](int64_t from, int64_t to, Operand pastK, Operand pastV) {
    Result part = slice(packed, {from}, {to}, Ints({1}), std::nullopt);
    Tensor query = cantFail(std::move(part)),
           last = Tensor::adopt(ElementKind::I32, {1}, std::vector<int32_t>{static_cast<int32_t>(to - 1)});
    Tensor length = Tensor::adopt(ElementKind::I32, {}, std::vector<int32_t>{static_cast<int32_t>(to)});
    GroupQueryOperands operands;
    operands.query = &query;
    operands.pastKey = pastK;
    operands.pastValue = pastV;
    operands.seqlensK = &last;
    operands.totalLength = &length;
    operands.cosCache = &cosine;
    operands.sinCache = &sine;
    return valid(groupQueryAttention(operands, attributes));
  };
  Tensors whole = call(0, total, nullptr, nullptr);
  Tensor empty = Tensor::zeros(ElementKind::F32, {1, kvHeads, shared ? capacity : 0, size});
  Tensors step = call(0, prompt, &empty, &empty);
  Numbers<double> expected(whole[0]);
  for (int64_t at = prompt; at < total; ++at) {
    step = call(at, at + 1, &step[1], &step[2]);
    EXPECT_EQ(step[1].shape()[2], shared ? capacity : at + 1);
    Numbers<double> got(step[0]);
    for (int64_t i = 0; i < heads * size; ++i)
      ASSERT_NEAR(got[i], expected[at * heads * size + i], 2e-6);
  }
}
INSTANTIATE_TEST_SUITE_P(Forms, GroupQuery, testing::Combine(testing::Values(-1, 3, 100), testing::Bool()));

TEST(LinearAttention, StepsAgreeWithOneCall) {
  Tensor q = randomTensor({1, 6, 8}, 1), k = randomTensor({1, 6, 8}, 2), v = randomTensor({1, 6, 4}, 3),
         decay = cantFail(unary(UnaryKind::Neg, cantFail(unary(UnaryKind::Abs, randomTensor({1, 6, 2}, 4))))),
         beta = cantFail(unary(UnaryKind::Sigmoid, randomTensor({1, 6, 2}, 5)));
  Tensors whole = valid(linearAttention(q, k, v, nullptr, &decay, &beta, 2, 2, 0, UpdateRule::GatedDelta));
  Tensor state;
  Numbers<double> expected(whole[0]);
  for (int64_t t = 0; t < 6; ++t) {
    auto row = [&](const Tensor &x) { return cantFail(slice(x, {t}, {t + 1}, Ints({1}), std::nullopt)); };
    Tensor d = row(decay), b = row(beta);
    Tensors step = valid(
        linearAttention(row(q), row(k), row(v), state ? &state : nullptr, &d, &b, 2, 2, 0, UpdateRule::GatedDelta));
    state = step[1];
    Numbers<double> got(step[0]);
    for (int64_t i = 0; i < 4; ++i)
      ASSERT_NEAR(got[i], expected[t * 4 + i], 1e-6);
  }
}

} // namespace
