// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors, movement, arithmetic and products of the evaluator against values computed by hand or by the plainest loop.
#include "lib/Analysis/Evaluate/Kernels.h"
#include "lib/Analysis/Evaluate/FloatFormats.h"
#include "llvm/ADT/APFloat.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace llvm;
using namespace quire::eval;

namespace {

Tensor floats(Ints shape, std::vector<float> values) {
  return Tensor::adopt(ElementKind::F32, shape, std::move(values));
}
Tensor ints(Ints shape, std::vector<int64_t> values) {
  return Tensor::adopt(ElementKind::I64, shape, std::move(values));
}

Tensor valid(Result result) {
  if (!result) {
    ADD_FAILURE() << toString(result.takeError());
    return Tensor();
  }
  return *result;
}
std::string textOfError(Result result) { return result ? "" : toString(result.takeError()); }
std::vector<float> values(const Tensor &tensor) {
  Numbers<float> numbers(tensor);
  return {numbers.all().begin(), numbers.all().end()};
}
std::vector<float> randomFloats(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float &value : out)
    value = normal(generator);
  return out;
}

TEST(FloatFormats, HalvesAgreeWithLLVM) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    APFloat number(APFloat::IEEEhalf(), APInt(16, bits));
    bool lost = false;
    number.convert(APFloat::IEEEsingle(), APFloat::rmNearestTiesToEven, &lost);
    float expected = number.convertToFloat(), got = halfToFloat(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got));
      continue;
    }
    ASSERT_EQ(floatToBits(got), floatToBits(expected)) << bits;
    ASSERT_EQ(floatToHalf(got), bits);
  }
  std::mt19937 generator(1);
  for (int i = 0; i < 100000; ++i) {
    float value = bitsToFloat(static_cast<uint32_t>(generator()));
    if (std::isnan(value))
      continue;
    APFloat number(value);
    bool lost = false;
    number.convert(APFloat::IEEEhalf(), APFloat::rmNearestTiesToEven, &lost);
    ASSERT_EQ(floatToHalf(value), number.bitcastToAPInt().getZExtValue()) << value;
    APFloat brain(value);
    brain.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &lost);
    ASSERT_EQ(floatToBfloat(value), brain.bitcastToAPInt().getZExtValue()) << value;
  }
}

TEST(FloatFormats, EightBitsSaturateOrNot) {
  EXPECT_EQ(decodeNarrow(ElementKind::F8E4M3FN, encodeNarrow(ElementKind::F8E4M3FN, 1e9f, true)), 448.0f);
  EXPECT_TRUE(std::isnan(decodeNarrow(ElementKind::F8E4M3FN, encodeNarrow(ElementKind::F8E4M3FN, 1e9f, false))));
  EXPECT_TRUE(std::isinf(decodeNarrow(ElementKind::F8E5M2, encodeNarrow(ElementKind::F8E5M2, 1e9f, false))));
  EXPECT_EQ(decodeNarrow(ElementKind::F4E2M1, encodeNarrow(ElementKind::F4E2M1, -100.0f, true)), -6.0f);
}

TEST(Tensors, FourBitElementsArePackedLowNibbleFirst) {
  Tensor packed = storeAs(ElementKind::I4, {3}, std::vector<int64_t>{-1, 7, -8});
  EXPECT_EQ(packed.byteCount(), 2);
  EXPECT_EQ(static_cast<uint8_t>(packed.bytes()[0]), 0x7f);
  EXPECT_EQ(static_cast<uint8_t>(packed.bytes()[1]), 0x08);
  EXPECT_EQ(integersOf(packed), (SmallVector<int64_t, 8>{-1, 7, -8}));
  EXPECT_EQ(integersOf(valid(transpose(packed, std::nullopt))), (SmallVector<int64_t, 8>{-1, 7, -8}));
}

TEST(Tensors, CastsFollowTheSpecification) {
  Tensor x = floats({4}, {-1.7f, 2.5f, 300.0f, std::nanf("")});
  EXPECT_EQ(integersOf(valid(castTo(floats({3}, {-1.7f, 2.5f, 300.0f}), ElementKind::I64))),
            (SmallVector<int64_t, 8>{-1, 2, 300}));
  EXPECT_EQ(integersOf(valid(castTo(x, ElementKind::Bool))), (SmallVector<int64_t, 8>{1, 1, 1, 1}));
  EXPECT_EQ(integersOf(valid(castTo(ints({2}, {300, -1}), ElementKind::U8))), (SmallVector<int64_t, 8>{44, 255}));
}

TEST(Loops, BroadcastsLikeNumPy) {
  Tensor a = ints({2, 1, 3}, {0, 1, 2, 10, 11, 12}), b = ints({2, 1}, {100, 200});
  Tensor sum = valid(binary(BinaryKind::Add, a, b));
  EXPECT_EQ(Shape(sum.shape()), Shape({2, 2, 3}));
  EXPECT_EQ(integersOf(sum), (SmallVector<int64_t, 8>{100, 101, 102, 200, 201, 202, 110, 111, 112, 210, 211, 212}));
  EXPECT_EQ(textOfError(binary(BinaryKind::Add, ints({2}, {1, 2}), ints({3}, {1, 2, 3}))),
            "expected shapes that broadcast, but got [2] and [3]");
  EXPECT_EQ(valid(binary(BinaryKind::Mul, ints({0, 3}, {}), ints({1, 3}, {1, 2, 3}))).count(), 0);
}

TEST(Math, IntegerDivisionAndRemainders) {
  Tensor a = ints({4}, {7, -7, 7, -7}), b = ints({4}, {3, 3, -3, -3});
  EXPECT_EQ(integersOf(valid(binary(BinaryKind::Div, a, b))), (SmallVector<int64_t, 8>{2, -2, -2, 2}));
  EXPECT_EQ(integersOf(valid(binary(BinaryKind::Mod, a, b))), (SmallVector<int64_t, 8>{1, 2, -2, -1}));
  EXPECT_EQ(integersOf(valid(binary(BinaryKind::FMod, a, b))), (SmallVector<int64_t, 8>{1, -1, 1, -1}));
  EXPECT_EQ(textOfError(binary(BinaryKind::Div, a, ints({1}, {0}))), "integer division by zero");
}

TEST(Shapes, SlicesClampAndStepBackwards) {
  Tensor x = ints({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(integersOf(valid(slice(x, {-1}, {INT64_MIN}, Ints({1}), Ints({-2})))),
            (SmallVector<int64_t, 8>{3, 1, 7, 5}));
  EXPECT_EQ(integersOf(valid(slice(x, {1}, {INT64_MAX}, Ints({0}), std::nullopt))),
            (SmallVector<int64_t, 8>{4, 5, 6, 7}));
  EXPECT_EQ(valid(slice(x, {3}, {1}, Ints({1}), std::nullopt)).count(), 0);
}

TEST(Shapes, ReshapeCopiesZerosAndInfersOneExtent) {
  Tensor x = ints({2, 0, 3}, {});
  EXPECT_NE(textOfError(reshape(x, {0, 0, -1}, false)), "");
  EXPECT_EQ(Shape(valid(reshape(x, {0, 0, 5}, false)).shape()), Shape({2, 0, 5}));
  EXPECT_EQ(Shape(valid(reshape(ints({2, 3}, {1, 2, 3, 4, 5, 6}), {-1, 2}, false)).shape()), Shape({3, 2}));
  EXPECT_NE(textOfError(reshape(ints({2, 3}, {1, 2, 3, 4, 5, 6}), {4, -1}, false)), "");
}

TEST(Index, ScatterReducesInOrder) {
  Tensor x = floats({3}, {1, 2, 3}), indices = ints({2, 1}, {1, 1}), updates = floats({2}, {10, 20});
  EXPECT_EQ(values(valid(scatterND(x, indices, updates, Reduction::None))), (std::vector<float>{1, 20, 3}));
  EXPECT_EQ(values(valid(scatterND(x, indices, updates, Reduction::Add))), (std::vector<float>{1, 32, 3}));
  EXPECT_EQ(values(valid(scatterND(x, indices, updates, Reduction::Max))), (std::vector<float>{1, 20, 3}));
  EXPECT_EQ(textOfError(scatterND(x, ints({1, 1}, {3}), floats({1}, {0}), Reduction::None)),
            "expected an index in [-3,3), but got 3");
}

TEST(Index, TensorScatterWrapsInCircularMode) {
  Tensor past = floats({1, 1, 3, 1}, {1, 2, 3}), update = floats({1, 1, 2, 1}, {8, 9}), at = ints({1}, {2});
  EXPECT_EQ(values(valid(tensorScatter(past, update, &at, -2, true))), (std::vector<float>{9, 2, 8}));
  EXPECT_EQ(textOfError(tensorScatter(past, update, &at, -2, false)), "expected write positions below 3, but got 3");
}

TEST(Reduce, SumsOfManyFloatsStayExact) {
  std::vector<float> many(1 << 20, 0.1f);
  Tensor x = floats({1 << 20}, many);
  float expected = static_cast<float>(0.1f * double(1 << 20));
  EXPECT_EQ(values(valid(reduce(ReduceKind::Sum, x, std::nullopt, false, false)))[0], expected);
}

TEST(Reduce, TopKKeepsTheOrderOfEquals) {
  auto results = topK(floats({5}, {1, 3, 3, 2, 3}), 3, 0, true);
  ASSERT_TRUE(static_cast<bool>(results));
  EXPECT_EQ(integersOf((*results)[1]), (SmallVector<int64_t, 8>{1, 2, 4}));
}

class GemmSizes : public testing::TestWithParam<std::tuple<int64_t, int64_t, int64_t>> {};

TEST_P(GemmSizes, AgreesWithDouble) {
  auto [m, n, k] = GetParam();
  std::vector<float> a = randomFloats(static_cast<size_t>(m * k), 1), b = randomFloats(static_cast<size_t>(k * n), 2);
  std::vector<float> c(static_cast<size_t>(m * n), 0.5f);
  gemm(m, n, k, a.data(), k, b.data(), n, c.data(), n);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0.5, size = 0.5;
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(a[i * k + p]) * b[p * n + j];
        size += std::fabs(static_cast<double>(a[i * k + p]) * b[p * n + j]);
      }
      ASSERT_NEAR(c[i * n + j], sum, 1e-6 * size) << i << "," << j;
    }
}
INSTANTIATE_TEST_SUITE_P(Shapes, GemmSizes,
                         testing::Values(std::tuple(1, 1, 1), std::tuple(1, 64, 64), std::tuple(3, 65, 129),
                                         std::tuple(4, 64, 63), std::tuple(5, 130, 7), std::tuple(17, 257, 300),
                                         std::tuple(64, 512, 256), std::tuple(2, 3, 0)));

TEST(MatMul, BroadcastsBatchesAndVectors) {
  Tensor a = floats({2, 1, 1, 2}, {1, 2, 3, 4}), b = floats({3, 2, 1}, {1, 0, 0, 1, 1, 1});
  Tensor c = valid(matMul(a, b));
  EXPECT_EQ(Shape(c.shape()), Shape({2, 3, 1, 1}));
  EXPECT_EQ(values(c), (std::vector<float>{1, 2, 3, 3, 4, 7}));
  EXPECT_EQ(valid(matMul(floats({2}, {1, 2}), floats({2}, {3, 4}))).rank(), 0);
  EXPECT_EQ(textOfError(matMul(floats({2}, {1, 2}), floats({3}, {1, 2, 3}))),
            "expected inner extents that agree, but got [2] and [3]");
}

TEST(MatMul, EinsumHandlesDiagonalsAndEllipsis) {
  Tensor m = floats({2, 2}, {1, 2, 3, 4});
  const Tensor *one[] = {&m}, *two[] = {&m, &m};
  EXPECT_EQ(values(valid(einsum("ii->i", one))), (std::vector<float>{1, 4}));
  EXPECT_EQ(values(valid(einsum("ii", one))), (std::vector<float>{5}));
  EXPECT_EQ(values(valid(einsum("...j,jk->...k", two))), values(valid(matMul(m, m))));
}

TEST(Quant, NBitsUnpacksLowBitsFirst) {
  // Two rows of 16 weights in one block each: row 0 counts up, row 1 is all 8 (zero by default).
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 8; ++i)
    bytes.push_back(static_cast<uint8_t>((2 * i) | ((2 * i + 1) << 4)));
  bytes.insert(bytes.end(), 8, 0x88);
  Tensor b = Tensor::adopt(ElementKind::U8, {2, 1, 8}, bytes), scales = floats({2, 1}, {0.5f, 1.0f});
  auto weights = dequantizeNBits(b, scales, nullptr, nullptr, {16, 2, 4, 16});
  ASSERT_TRUE(static_cast<bool>(weights));
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ((*weights)[i], static_cast<float>(i - 8) * 0.5f);
    EXPECT_EQ((*weights)[16 + i], 0.0f);
  }
}

TEST(Quant, DynamicQuantizeRoundTrips) {
  Tensor x = floats({4}, {-1, 0, 1, 3});
  auto results = dynamicQuantizeLinear(x);
  ASSERT_TRUE(static_cast<bool>(results));
  Tensor back = valid(dequantizeLinear((*results)[0], (*results)[1], &(*results)[2], 0, 0, std::nullopt));
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(values(back)[i], values(x)[i], 4.0 / 255);
}

} // namespace
