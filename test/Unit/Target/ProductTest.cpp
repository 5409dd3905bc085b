// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products over packed panels: against double, and the same bits for every number of rows.
#include "lib/Target/CPU/FloatFormats.h"
#include "test/Unit/Target/CompiledModel.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace quire;
using namespace quire::test;

namespace {

constexpr int64_t maxRows = 101;

struct ProductCase {
  int64_t k, n;
  const char *weight;
  const char *activation;
  bool bias;
};

int64_t bytesOf(const std::string &element) { return element == "f32" ? 4 : 2; }

void append(std::vector<char> &bytes, const std::string &element, float value) {
  uint16_t narrow = element == "f16" ? cpu::halfFromFloat(value) : cpu::bfloatFromFloat(value);
  const char *from = element == "f32" ? reinterpret_cast<const char *>(&value) : reinterpret_cast<const char *>(&narrow);
  bytes.insert(bytes.end(), from, from + bytesOf(element));
}

float rounded(const std::string &element, float value) {
  if (element == "f16")
    return cpu::floatFromHalf(cpu::halfFromFloat(value));
  return element == "bf16" ? cpu::floatFromBfloat(cpu::bfloatFromFloat(value)) : value;
}

void align(std::vector<char> &bytes) { bytes.resize((bytes.size() + 63) / 64 * 64); }

std::string moduleOf(const ProductCase &c, int64_t nr, int64_t inputOffset, int64_t biasOffset) {
  auto s = [](int64_t value) { return std::to_string(value); };
  std::string panels = s((c.n + nr - 1) / nr) + "x" + s(c.k) + "x" + s(nr) + "x" + c.weight;
  std::string input = s(maxRows) + "x" + s(c.k) + "x" + c.activation, rows = "?x" + s(c.k) + "x" + c.activation;
  std::string strided = "memref<" + rows + ", strided<[" + s(c.k) + ", 1]>>";
  std::string bias = c.bias ? "%b" : "", output = "memref<?x" + s(c.n) + "xf32>";
  return "kvrt.raw @source {source = @source} : tensor<1xf32>\n"
         "kvrt.packed @w {source = @source, layout = #kvrt.panels<nr = " + s(nr) + ">, k = " + s(c.k) + ", n = " + s(c.n) +
         ", offset = 0} : tensor<" + panels + ">\n"
         "kvrt.raw @x {source = @source, offset = " + s(inputOffset) + "} : tensor<" + input + ">\n"
         "kvrt.raw @b {source = @source, offset = " + s(biasOffset) + "} : tensor<" + s(c.n) + "xf32>\n"
         "kvrt.model @step {vocabulary = " + s(c.n) + ", token_limit = 1, max_positions = -1, block_tokens = 16, layers = []}\n"
         "func.func @step(%batch: !kvrt.batch) {\n"
         "  %w = kvrt.weight %batch, @w : memref<" + panels + ">\n"
         "  %all = kvrt.weight %batch, @x : memref<" + input + ">\n"
         "  %b = kvrt.weight %batch, @b : memref<" + s(c.n) + "xf32>\n"
         "  %rows = kvrt.extent %batch[tokens]\n"
         "  %x = memref.subview %all[0, 0] [%rows, " + s(c.k) + "] [1, 1] : memref<" + input + "> to " + strided + "\n"
         "  %y = memref.alloc(%rows) : " + output + "\n"
         "  kvrt.product ins(%x, %w, %batch" + (c.bias ? ", bias %b" : "") + " : " + strided + ", memref<" + panels + ">" +
         (c.bias ? ", memref<" + s(c.n) + "xf32>" : "") + ") outs(%y : " + output + ")\n"
         "  kvrt.write %y to %batch[logits] : " + output + "\n"
         "  return\n}\n";
}

class Product : public testing::TestWithParam<ProductCase> {};

TEST_P(Product, MatchesDoubleAndDoesNotDependOnRows) {
  ProductCase c = GetParam();
  cpu::CpuTarget target = cpu::CpuTarget::host();
  int64_t nr = target.panelWidth();
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> weight(c.k * c.n), input(maxRows * c.k), bias(c.n);
  for (float &value : weight)
    value = rounded(c.weight, uniform(random));
  for (float &value : input)
    value = rounded(c.activation, uniform(random));
  for (float &value : bias)
    value = c.bias ? uniform(random) : 0.0f;

  std::vector<char> bytes;
  for (int64_t panel = 0; panel * nr < c.n; ++panel)
    for (int64_t k = 0; k < c.k; ++k)
      for (int64_t j = panel * nr; j < (panel + 1) * nr; ++j)
        append(bytes, c.weight, j < c.n ? weight[k * c.n + j] : 0.0f);
  align(bytes);
  int64_t inputOffset = bytes.size();
  for (float value : input)
    append(bytes, c.activation, value);
  align(bytes);
  int64_t biasOffset = bytes.size();
  for (float value : bias)
    append(bytes, "f32", value);

  CompiledModel model(moduleOf(c, nr, inputOffset, biasOffset), target);
  ASSERT_NE(model.info, nullptr);
  TestRuntime runtime(model.info);
  std::vector<float> all;
  for (int64_t rows : {maxRows, int64_t(1), int64_t(2), int64_t(3), int64_t(5), int64_t(6), int64_t(7), int64_t(8),
                       int64_t(9), int64_t(11), int64_t(12), int64_t(13), int64_t(15), int64_t(16), int64_t(17), int64_t(48), int64_t(49)}) {
    std::vector<int64_t> selected(rows);
    std::vector<float> output = runtime.step({{0, rows, {}}}, selected, bytes.data());
    if (rows == maxRows)
      all = output;
    else
      EXPECT_EQ(std::memcmp(output.data(), all.data(), output.size() * sizeof(float)), 0) << rows << " rows";
  }
  for (int64_t row = 0; row < maxRows; ++row)
    for (int64_t column = 0; column < c.n; ++column) {
      double exact = bias[column], magnitude = std::abs(exact);
      for (int64_t k = 0; k < c.k; ++k) {
        exact += static_cast<double>(input[row * c.k + k]) * weight[k * c.n + column];
        magnitude += std::abs(static_cast<double>(input[row * c.k + k]) * weight[k * c.n + column]);
      }
      ASSERT_NEAR(all[row * c.n + column], exact, 1e-6 * magnitude + 1e-7) << row << ", " << column;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Product,
                         testing::Values(ProductCase{64, 96, "f32", "f32", false}, ProductCase{1, 1, "f32", "f32", true},
                                         ProductCase{3, 17, "f32", "f32", false}, ProductCase{129, 31, "f32", "f32", true},
                                         ProductCase{70, 100, "f16", "f32", false}, ProductCase{65, 40, "f16", "f16", true},
                                         ProductCase{66, 47, "bf16", "f32", false}, ProductCase{34, 33, "bf16", "bf16", false},
                                         // Deeper than one piece, with and without a rest.
                                         ProductCase{512, 33, "f32", "f32", true}, ProductCase{601, 40, "f32", "f32", false},
                                         ProductCase{1283, 17, "f16", "f16", true}));

// Code for a processor is made of its fused multiply-adds on whole vectors.
TEST(ProductCode, UsesVectorsOfTheTarget) {
  ProductCase c = {64, 96, "f32", "f32", false};
  std::string avx2 = assemblyOf(moduleOf(c, 16, 0, 0), cpu::CpuTarget::named("haswell"));
  EXPECT_NE(avx2.find("vfmadd"), std::string::npos);
  EXPECT_NE(avx2.find("%ymm"), std::string::npos);
  EXPECT_EQ(avx2.find("%zmm"), std::string::npos);
  std::string avx512 = assemblyOf(moduleOf(c, 32, 0, 0), cpu::CpuTarget::named("znver4"));
  EXPECT_NE(avx512.find("%zmm"), std::string::npos);
  for (const std::string &assembly : {avx2, avx512}) {
    std::vector<std::string> loops = multiplyAddLoopsOf(assembly);
    EXPECT_GE(loops.size(), 6u);
    for (const std::string &loop : loops)
      EXPECT_FALSE(spillsVectors(loop)) << loop;
  }
}

} // namespace
