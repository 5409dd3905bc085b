// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Append and attention of a ragged step against double, and the same bits however a sequence is batched or cut.
#include "test/Unit/Target/AttendFixture.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace quire::test;

namespace {

class Attend : public testing::TestWithParam<AttendCase> {};

std::vector<Piece> piecesOf(const AttendCase &c) {
  std::vector<Piece> pieces = {{0, 0, 1},  {1, c.block - 2, 1},     {2, c.block - 1, 1},    {3, c.block, 1},
                               {4, 5, 13}, {5, 0, 2 * c.block + 1}, {6, 3 * c.block - 2, 5}};
  if (c.longest)
    pieces.push_back({7, c.longest, 2});
  return pieces;
}

TEST_P(Attend, MatchesDouble) {
  AttendFixture fixture(GetParam());
  ASSERT_NE(fixture.model.info, nullptr);
  std::vector<Piece> pieces = piecesOf(fixture.c);
  std::vector<float> actual = fixture.run(pieces);
  fixture.checkPages();
  std::vector<double> expected = fixture.expected(pieces);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 5e-6)
        << "row " << i / fixture.rowSize() << ", column " << i % fixture.rowSize();

  // Alone, a sequence gives the same bits; cut into single rows, a causal one does too.
  size_t row = 0;
  for (const Piece &piece : pieces) {
    const float *together = actual.data() + row * fixture.rowSize();
    row += piece.rows;
    std::vector<float> alone = fixture.run({piece});
    EXPECT_EQ(std::memcmp(alone.data(), together, alone.size() * sizeof(float)), 0) << "sequence " << piece.id;
    if (!fixture.c.causal || piece.past > 1000)
      continue;
    for (int64_t i = 0; i < piece.rows; ++i) {
      std::vector<float> single = fixture.run({{piece.id, piece.past + i, 1}});
      EXPECT_EQ(std::memcmp(single.data(), together + i * fixture.rowSize(), single.size() * sizeof(float)), 0)
          << "sequence " << piece.id << ", row " << i;
    }
  }
}

// A page is read in whole vectors of the target, and the pages to come are prefetched into the second-level cache.
TEST(AttendCode, UsesVectorsOfTheTarget) {
  AttendCase c;
  c.queryHeads = c.heads = 2;
  c.key = c.value = 64;
  c.lanes = 16;
  std::string text = AttendFixture(c).moduleText();
  std::string avx512 = assemblyOf(text, quire::cpu::CpuTarget::named("znver4"));
  EXPECT_NE(avx512.find("vfmadd231ps\t%zmm"), std::string::npos);
  EXPECT_NE(avx512.find("prefetcht1"), std::string::npos);
  std::string avx2 = assemblyOf(text, quire::cpu::CpuTarget::named("haswell"));
  EXPECT_NE(avx2.find("vfmadd231ps\t%ymm"), std::string::npos);
  EXPECT_EQ(avx2.find("%zmm"), std::string::npos);
  for (const std::string &assembly : {avx2, avx512}) {
    std::vector<std::string> loops = multiplyAddLoopsOf(assembly);
    EXPECT_GE(loops.size(), 4u);
    for (const std::string &loop : loops) // but the polynomial of the softmax, which rounds
      if (loop.find("vrndscale") == std::string::npos && loop.find("vround") == std::string::npos)
        EXPECT_FALSE(spillsVectors(loop)) << loop;
  }
}

AttendCase heads(const char *name, int64_t query, int64_t kv, int64_t key, int64_t value) {
  AttendCase c;
  c.name = name;
  c.queryHeads = query;
  c.heads = kv;
  c.key = key;
  c.value = value;
  return c;
}

std::vector<AttendCase> cases() {
  std::vector<AttendCase> all = {
      heads("h4x4_d32", 4, 4, 32, 32),        heads("h8x2_d64", 8, 2, 64, 64),    heads("h9x3_d80", 9, 3, 80, 80),
      heads("h28x4_d128", 28, 4, 128, 128),   heads("mqa8_d96", 8, 1, 96, 96),    heads("h4x2_d112", 4, 2, 112, 112),
      heads("h2x2_d192x128", 2, 2, 192, 128), heads("h2x1_d256", 2, 1, 256, 256), heads("odd_d20x12", 3, 1, 20, 12)};
  all[1].longest = 7810;
  auto variant = [&](const char *name, auto change) {
    AttendCase c = heads(name, 6, 2, 64, 64);
    change(c);
    all.push_back(c);
  };
  variant("window", [](AttendCase &c) { c.window = 20, c.longest = 700; });
  variant("narrow_window_f16_throughout", [](AttendCase &c) { c.window = 7, c.element = c.activation = "f16"; });
  variant("chunk_lanes4", [](AttendCase &c) { c.chunk = 12, c.lanes = 4; });
  variant("alibi_lanes16", [](AttendCase &c) { c.alibi = true, c.lanes = 16; });
  variant("softcap_block32", [](AttendCase &c) { c.softcap = 1.5f, c.block = 32; });
  variant("sinks_bf16", [](AttendCase &c) { c.sinks = true, c.element = "bf16"; });
  variant("all", [](AttendCase &c) { c.sinks = c.alibi = true, c.softcap = 2.0f, c.window = 18, c.longest = 300; });
  variant("bidirectional_block8", [](AttendCase &c) { c.causal = false, c.block = 8; });
  variant("block64_f16", [](AttendCase &c) { c.block = 64, c.element = "f16", c.longest = 1000; });
  variant("bf16_throughout", [](AttendCase &c) { c.element = c.activation = "bf16"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Attend, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<AttendCase> &info) { return info.param.name; });

} // namespace
