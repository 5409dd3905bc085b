// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Append and attention of a ragged step against double, and the same bits however a sequence is batched or cut.
#include "test/Unit/Target/AttendFixture.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace quire;
using namespace quire::test;

namespace {

AttendCase heads(const char *name, int64_t query, int64_t kv, int64_t key, int64_t value) {
  AttendCase c;
  c.name = name;
  c.queryHeads = query;
  c.heads = kv;
  c.key = key;
  c.value = value;
  return c;
}

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

  // Alone, a sequence gives the same bits; cut into single rows, a causal one does too. A step of one thread may have all KV heads in a task,
  // one of two in two.
  size_t row = 0;
  for (const Piece &piece : pieces) {
    const float *together = actual.data() + row * fixture.rowSize();
    row += piece.rows;
    for (int64_t told : {31, 2, 1}) {
      fixture.runtime.toldThreads = told;
      std::vector<float> alone = fixture.run({piece});
      EXPECT_EQ(std::memcmp(alone.data(), together, alone.size() * sizeof(float)), 0) << "sequence " << piece.id << ", told " << told << " threads";
    }
    if (!fixture.c.causal || piece.past > 1000)
      continue;
    for (int64_t i = 0; i < piece.rows; ++i) {
      std::vector<float> single = fixture.run({{piece.id, piece.past + i, 1}});
      EXPECT_EQ(std::memcmp(single.data(), together + i * fixture.rowSize(), single.size() * sizeof(float)), 0)
          << "sequence " << piece.id << ", row " << i;
    }
  }
}

// Where a row is stored and what it sees follows from its place; its position is for the rest of the graph. With windows, chunks and slopes they are the same.
TEST(AttendPlaces, PositionsDoNotMatter) {
  AttendCase c = heads("places", 4, 2, 64, 64);
  c.sinks = true;
  c.softcap = 30.0f;
  for (bool causal : {true, false}) {
    c.causal = causal;
    AttendFixture fixture(c);
    ASSERT_NE(fixture.model.info, nullptr);
    std::vector<Piece> pieces = {{0, 0, 1}, {1, 33, 1}, {2, 20, 30}, {3, 700, 2}};
    std::vector<float> before = fixture.run(pieces);
    fixture.runtime.dropped = 1000; // of each sequence: no table has so many blocks
    std::vector<float> after = fixture.run(pieces);
    fixture.checkPages();
    EXPECT_EQ(std::memcmp(before.data(), after.data(), before.size() * sizeof(float)), 0);
    std::vector<double> expected = fixture.expected(pieces);
    for (size_t i = 0; i < after.size(); ++i)
      ASSERT_NEAR(after[i], expected[i], 5e-6) << "element " << i;
  }
}

// Elements of few bits cannot hold every number. What cannot be held is not a number when it is read, and so is what else shares its scale.
TEST(AttendNarrow, KeepsThatSomethingWasNotHeld) {
  struct Strange {
    const char *element;
    float number;
    size_t features; // of V that are lost
  };
  for (const Strange &strange : {Strange{"i8", INFINITY, 128}, {"i4", -INFINITY, 128}, {"i4", NAN, 128}, {"f8E4M3FN", INFINITY, 1}, {"f8E4M3FN", NAN, 1},
                                 {"f8E4M3FN", -449.0f, 1}, {"f8E5M2", -INFINITY, 1}, {"f8E5M2", NAN, 1}, {"f8E5M2", 57345.0f, 1}})
    for (int kind : {0, 1}) {
      SCOPED_TRACE(std::string(strange.element) + " " + std::to_string(strange.number) + " in " + (kind ? "V" : "K"));
      AttendCase c;
      c.queryHeads = c.heads = 2;
      c.key = c.value = 160;
      c.element = strange.element;
      c.strangeKind = kind;
      c.strangePosition = 20;
      c.strange = strange.number;
      AttendFixture fixture(c);
      std::vector<Piece> pieces = {{0, 20, 1}, {1, 3, 30}, {2, 5, 2}};
      std::vector<float> actual = fixture.run(pieces);
      std::vector<double> expected = fixture.expected(pieces);
      size_t lost = 0;
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << "element " << i;
        lost += std::isnan(actual[i]);
      }
      // Rows that see position 20: one of the first sequence, 13 of the second.
      EXPECT_EQ(lost, 14u * 2 * (kind == 0 ? 160 : strange.features));
    }
}

// The largest numbers of each format are held, and read as they are.
TEST(AttendNarrow, HoldsTheLargestNumbers) {
  for (auto [element, number] : {std::pair("f8E4M3FN", -448.0f), std::pair("f8E5M2", 57344.0f)}) {
    AttendCase c;
    c.queryHeads = c.heads = c.key = 1;
    c.value = 8;
    c.element = element;
    c.strangeKind = 1;
    c.strange = number;
    AttendFixture fixture(c);
    EXPECT_EQ(fixture.run({{0, 0, 1}})[3], number) << element;
  }
}

// A token that is alone attends to itself only, so that the output is what is stored of its V. Bits of numbers are taken from a list of all upper halves,
// which has every tie, with two lower halves, and what comes out must have the bits that the runtime's conversions give.
TEST(AttendNarrow, ConvertsAsTheRuntimeDoes) {
  constexpr int64_t features = 256, heads = 4, tokens = 128;
  cpu::CpuTarget withoutHalf = cpu::CpuTarget::named("x86-64", {"+avx2", "+fma"});
  EXPECT_FALSE(withoutHalf.convertsHalf());
  EXPECT_TRUE(cpu::CpuTarget::named("haswell").convertsHalf());
  for (const char *element : {"f8E4M3FN", "f8E5M2"})
    for (bool half : {true, false}) {
      SCOPED_TRACE(std::string(element) + (half ? " by f16" : ""));
      AttendCase c;
      c.queryHeads = c.heads = heads;
      c.key = 4;
      c.value = features;
      c.element = element;
      c.values = [](int64_t sequence, int64_t head, int64_t feature) {
        uint32_t number = static_cast<uint32_t>((sequence * heads + head) * features + feature), bits = number << 16 | number >> 16;
        float value;
        std::memcpy(&value, &bits, 4);
        return value;
      };
      if (!half)
        c.target = withoutHalf;
      AttendFixture fixture(c);
      ASSERT_NE(fixture.model.info, nullptr);
      std::vector<Piece> pieces;
      for (int64_t id = 0; id < tokens; ++id)
        pieces.push_back({id, 0, 1});
      std::vector<float> actual = fixture.run(pieces);
      fixture.checkPages();
      std::vector<double> expected = fixture.expected(pieces);
      size_t numbers = 0;
      for (size_t i = 0; i < actual.size(); ++i) {
        ASSERT_EQ(std::isnan(actual[i]), std::isnan(expected[i])) << "element " << i;
        if (!std::isnan(actual[i]))
          ASSERT_EQ(actual[i], static_cast<float>(expected[i])) << "element " << i;
        numbers += !std::isnan(actual[i]);
      }
      EXPECT_GT(numbers, actual.size() / 2);
      EXPECT_LT(numbers, actual.size());
    }
}

// What observed attention leaves of each block are the shares of the last rows, whether keys are cut into parts or not.
class AttendObserved : public testing::TestWithParam<const char *> {};

TEST_P(AttendObserved, SharesMatchDouble) {
  for (bool cut : {false, true}) {
    AttendCase c = heads("observed", 6, 2, 64, 64);
    c.element = GetParam();
    c.observe = c.sinks = c.alibi = true;
    c.window = cut ? 0 : 40;
    AttendFixture fixture(c);
    fixture.runtime.toldThreads = cut ? 31 : 1;
    std::vector<Piece> pieces = {{0, 0, 1}, {1, 33, 1}, {2, 100, 30}, {3, cut ? 1500 : 15, 2}};
    std::vector<float> unobserved = fixture.run(pieces);
    int64_t stride = (pieces[3].past + 17) / 16;
    stride = std::max<int64_t>(stride, 9);
    fixture.runtime.observed.assign(pieces.size() * 6 * stride * 2, 0.0f);
    std::vector<float> output = fixture.run(pieces);
    EXPECT_EQ(output, unobserved);
    std::vector<double> expected = fixture.expectedShares(pieces, stride);
    const float *left = fixture.runtime.observed.data();
    for (size_t row = 0; row < pieces.size() * 6; ++row, left += 2 * stride) {
      double most = -INFINITY, sum = 0.0;
      for (int64_t i = 0; i < stride; ++i)
        most = left[2 * i] > 0 ? std::max<double>(most, left[2 * i + 1]) : most;
      for (int64_t i = 0; i < stride; ++i)
        sum += left[2 * i] > 0 ? left[2 * i] * std::exp(left[2 * i + 1] - most) : 0.0;
      for (int64_t i = 0; i < stride; ++i)
        ASSERT_NEAR(left[2 * i] > 0 ? left[2 * i] * std::exp(left[2 * i + 1] - most) / sum : 0.0, expected[row * stride + i], 1e-5)
            << "row " << row << ", block " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Elements, AttendObserved, testing::Values("f32", "i8", "i4", "f8E4M3FN", "f8E5M2"));

// A page is read in whole vectors of the target, and the pages to come are prefetched into the second-level cache.
TEST(AttendCode, UsesVectorsOfTheTarget) {
  for (const char *element : {"f32", "i8", "i4", "f8E4M3FN", "f8E5M2"}) {
    AttendCase c = heads("code", 2, 2, 64, 64);
    c.element = element;
    c.lanes = 16;
    bool constants = c.element == "i4" || c.element.rfind("f8", 0) == 0; // masks, which the code generator may keep on the stack
    std::string text = AttendFixture(c).moduleText();
    std::string avx512 = assemblyOf(text, quire::cpu::CpuTarget::named("znver4"));
    EXPECT_NE(avx512.find("vfmadd231ps\t%zmm"), std::string::npos);
    EXPECT_NE(avx512.find("prefetcht1"), std::string::npos);
    c.lanes = 8;
    std::string avx2 = assemblyOf(text, quire::cpu::CpuTarget::named("haswell")), avx2Lanes8 = assemblyOf(AttendFixture(c).moduleText(), quire::cpu::CpuTarget::named("haswell"));
    EXPECT_NE(avx2.find("vfmadd231ps\t%ymm"), std::string::npos);
    EXPECT_EQ(avx2.find("%zmm"), std::string::npos);
    for (const std::string &assembly : {avx2, avx2Lanes8, avx512}) {
      std::vector<std::string> loops = multiplyAddLoopsOf(assembly);
      EXPECT_GE(loops.size(), 4u);
      for (const std::string &loop : loops) // but the polynomial of the softmax, which rounds
        if (loop.find("vrndscale") == std::string::npos && loop.find("vround") == std::string::npos)
          EXPECT_FALSE(constants ? spillsResults(loop) : spillsVectors(loop)) << element << "\n" << loop;
    }
  }
}

std::vector<AttendCase> cases() {
  std::vector<AttendCase> all = {
      heads("h4x4_d32", 4, 4, 32, 32),        heads("h8x2_d64", 8, 2, 64, 64),    heads("h9x3_d80", 9, 3, 80, 80),
      heads("h28x4_d128", 28, 4, 128, 128),   heads("mqa8_d96", 8, 1, 96, 96),    heads("h4x2_d112", 4, 2, 112, 112),
      heads("h2x2_d192x128", 2, 2, 192, 128), heads("h2x1_d256", 2, 1, 256, 256), heads("odd_d20x12", 3, 1, 20, 12),
      heads("h9x9_d64", 9, 9, 64, 64)};
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
  // Values of eight heads and more in a block are read without being asked for: nine in a step of one thread, not the five in one of two.
  variant("h9x9_block64", [](AttendCase &c) { c.queryHeads = c.heads = 9, c.block = 64, c.longest = 1000; });
  variant("h9x9_block64_all", [](AttendCase &c) {
    c.queryHeads = c.heads = 9, c.block = 64, c.sinks = c.alibi = true, c.softcap = 2.0f, c.window = 180, c.longest = 700;
  });
  variant("codes", [](AttendCase &c) { c.element = "i8", c.longest = 1000; });
  variant("codes_all", [](AttendCase &c) {
    c.element = "i8", c.sinks = c.alibi = true, c.softcap = 2.0f, c.window = 18, c.longest = 300, c.block = 8, c.lanes = 4;
  });
  variant("codes_f16_lanes16", [](AttendCase &c) { c.element = "i8", c.activation = "f16", c.lanes = 16, c.block = 32; });
  variant("codes_d192x80", [](AttendCase &c) { c.element = "i8", c.key = 192, c.value = 80; });
  variant("codes_d20x264", [](AttendCase &c) { c.element = "i8", c.key = 20, c.value = 264; });
  for (auto [element, label] : {std::pair("i4", "halves"), std::pair("f8E4M3FN", "e4m3"), std::pair("f8E5M2", "e5m2")}) {
    std::string of = label;
    auto narrow = [&, stored = element](const std::string &name, auto change) {
      variant((of + name).c_str(), [&](AttendCase &c) {
        c.element = stored;
        change(c);
      });
    };
    narrow("", [](AttendCase &c) { c.longest = 1000; });
    narrow("_all", [](AttendCase &c) { c.sinks = c.alibi = true, c.softcap = 2.0f, c.window = 18, c.longest = 300, c.block = 8, c.lanes = 4; });
    narrow("_f16_lanes16", [](AttendCase &c) { c.activation = "f16", c.lanes = 16, c.block = 32; });
    narrow("_mqa8_d80", [](AttendCase &c) { c.queryHeads = 8, c.heads = 1, c.key = c.value = 80; });
    narrow("_h9x3_d96_block8", [](AttendCase &c) { c.queryHeads = 9, c.heads = 3, c.key = c.value = 96, c.block = 8; });
    narrow("_mha_d192x128", [](AttendCase &c) { c.queryHeads = c.heads = 2, c.key = 192, c.value = 128; });
    narrow("_d21x265", [](AttendCase &c) { c.key = 21, c.value = 265; });
    narrow("_d1x3", [](AttendCase &c) { c.key = 1, c.value = 3; });
    narrow("_chunk_bidirectional", [](AttendCase &c) { c.chunk = 12, c.causal = false; });
  }
  variant("bf16_throughout", [](AttendCase &c) { c.element = c.activation = "bf16"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, Attend, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<AttendCase> &info) { return info.param.name; });

} // namespace
