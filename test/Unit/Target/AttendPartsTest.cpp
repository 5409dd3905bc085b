// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention over more keys than a part has: against double, and the same bits whether parts are tasks or not.
#include "test/Unit/Target/AttendFixture.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>

using namespace quire::test;

namespace {

constexpr int64_t part = quire::cpu::attendPartTokens;

// 32 parts are the most; beyond, their size doubles.
constexpr int64_t most = 32 * part;

class AttendParts : public testing::TestWithParam<AttendCase> {};

// Causal ones only: elsewhere rows see what comes after them, so that cutting a prompt changes what is asked for.
class AttendPartsOfPrompts : public AttendParts {};

bool sameBits(const std::vector<float> &a, const std::vector<float> &b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Sequences with one new row, by how many keys there are then; those of at most `longest`.
std::vector<Piece> ofLengths(const std::vector<int64_t> &lengths, int64_t longest = 2 * most) {
  std::vector<Piece> pieces;
  for (int64_t length : lengths)
    if (length <= longest)
      pieces.push_back({static_cast<int64_t>(pieces.size()), length - 1, 1});
  return pieces;
}

TEST_P(AttendParts, MatchesDouble) {
  AttendFixture fixture(GetParam());
  ASSERT_NE(fixture.model.info, nullptr);
  for (const Piece &piece : ofLengths({1, part - 1, part, part + 1, 3 * part + 37, most, most + 1}, fixture.c.longest)) {
    std::vector<float> actual = fixture.run({piece});
    std::vector<double> expected = fixture.expected({piece});
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < actual.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 5e-6) << piece.past + 1 << " keys, column " << i;
  }
}

// Parts as tasks, on one thread and on four, all parts in one task, and in a batch that has tasks enough; tasks of one KV head, of some and of
// all, which is what a step of many, two and one thread may have.
TEST_P(AttendParts, GivesTheSameBits) {
  AttendFixture fixture(GetParam());
  AttendCase whole = GetParam();
  whole.places = 0;
  AttendFixture reference(whole);
  ASSERT_NE(fixture.model.info, nullptr);
  ASSERT_NE(reference.model.info, nullptr);
  std::vector<Piece> pieces = ofLengths({1, part, part + 1, 3 * part + 1, most + 1}, whole.longest);
  std::vector<float> together = reference.run(pieces);
  EXPECT_TRUE(sameBits(fixture.run(pieces), together));
  for (auto [threads, grains] : {std::pair(1, 1), {4, 3}}) {
    fixture.runtime.threads = threads;
    fixture.runtime.pieceGrains = grains;
    for (size_t i = 0; i < pieces.size(); ++i) {
      std::vector<float> row(together.begin() + i * fixture.rowSize(), together.begin() + (i + 1) * fixture.rowSize());
      for (int64_t told : {31, 2, 1}) {
        fixture.runtime.toldThreads = told;
        EXPECT_TRUE(sameBits(fixture.run({pieces[i]}), row)) << pieces[i].past + 1 << " keys, " << threads << " threads, told " << told;
      }
    }
  }
}

// A prompt in one step, whose rows share tiles, and row by row; at the end of a part, and where parts get twice the size.
TEST_P(AttendPartsOfPrompts, GiveTheSameBitsHoweverCut) {
  AttendFixture fixture(GetParam());
  ASSERT_NE(fixture.model.info, nullptr);
  for (const Piece &piece : {Piece{0, part - 13, 40}, Piece{1, 2 * part - 3, 7}, Piece{2, most - 9, 14}}) {
    if (piece.past + piece.rows > fixture.c.longest)
      continue;
    std::vector<float> together = fixture.run({piece});
    for (int64_t i = 0; i < piece.rows; ++i) {
      std::vector<float> row(together.begin() + i * fixture.rowSize(), together.begin() + (i + 1) * fixture.rowSize());
      EXPECT_TRUE(sameBits(fixture.run({{piece.id, piece.past + i, 1}}), row)) << "position " << piece.past + i;
    }
  }
}

AttendCase heads(const char *name, int64_t query, int64_t kv, int64_t features) {
  AttendCase c;
  c.name = name;
  c.queryHeads = query;
  c.heads = kv;
  c.key = c.value = features;
  c.longest = 4 * part;
  return c;
}

std::vector<AttendCase> cases() {
  std::vector<AttendCase> all = {heads("mqa8", 8, 1, 64), heads("gqa6x2", 6, 2, 32), heads("mha4", 4, 4, 32), heads("mha9", 9, 9, 64), heads("mha9_block64", 9, 9, 64)};
  all[0].longest = 2 * most;
  all.back().block = 64;
  auto variant = [&](const char *name, auto change) {
    AttendCase c = heads(name, 4, 1, 32);
    change(c);
    all.push_back(c);
  };
  variant("window", [](AttendCase &c) { c.window = 700; });
  variant("narrow_window", [](AttendCase &c) { c.window = 100; });
  variant("wide_window", [](AttendCase &c) { c.window = most + 900, c.longest = 2 * most; });
  variant("chunk", [](AttendCase &c) { c.chunk = 1500; });
  variant("sinks", [](AttendCase &c) { c.sinks = true; });
  variant("softcap", [](AttendCase &c) { c.softcap = 1.5f; });
  variant("alibi", [](AttendCase &c) { c.alibi = true; });
  variant("everything_f16", [](AttendCase &c) {
    c.sinks = c.alibi = true, c.softcap = 2.0f, c.window = 800, c.block = 32, c.element = "f16";
  });
  variant("window_i4", [](AttendCase &c) { c.window = 700, c.element = "i4"; });
  variant("e4m3", [](AttendCase &c) { c.element = "f8E4M3FN"; });
  variant("bidirectional", [](AttendCase &c) { c.causal = false; });
  variant("block_of_48", [](AttendCase &c) { c.block = 48; });
  variant("odd_features", [](AttendCase &c) { c.key = 20, c.value = 12; });
  return all;
}

std::vector<AttendCase> causalCases() {
  std::vector<AttendCase> all = cases();
  all.erase(std::remove_if(all.begin(), all.end(), [](const AttendCase &c) { return !c.causal; }), all.end());
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cases, AttendPartsOfPrompts, testing::ValuesIn(causalCases()),
                         [](const testing::TestParamInfo<AttendCase> &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Cases, AttendParts, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<AttendCase> &info) { return info.param.name; });

// Iterations of the loop over tasks and of the one that merges, when there is one.
std::vector<int64_t> loopsOf(AttendFixture &fixture, const std::vector<Piece> &pieces) {
  fixture.run(pieces);
  std::vector<int64_t> loops = fixture.runtime.loops;
  loops.erase(loops.begin()); // append
  return loops;
}

TEST(AttendPartsLoops, AreAsManyAsHelp) {
  using Loops = std::vector<int64_t>;
  AttendFixture fixture(heads("gqa6x2", 6, 2, 32));
  ASSERT_NE(fixture.model.info, nullptr);
  EXPECT_EQ(loopsOf(fixture, ofLengths({part})), Loops{2});
  EXPECT_EQ(loopsOf(fixture, ofLengths({part + 1})), (Loops{4, 6}));
  EXPECT_EQ(loopsOf(fixture, ofLengths({1, 4 * part})), (Loops{16, 12}));
  EXPECT_EQ(loopsOf(fixture, ofLengths({most})), (Loops{64, 6}));
  EXPECT_EQ(loopsOf(fixture, ofLengths({most + 1})), (Loops{34, 6}));
  // Enough tasks, or too few places.
  EXPECT_EQ(loopsOf(fixture, ofLengths(std::vector<int64_t>(16, part + 1))), Loops{32});
  EXPECT_EQ(loopsOf(fixture, ofLengths(std::vector<int64_t>(9, most))), Loops{18});
  // As many tasks for each thread.
  fixture.runtime.toldThreads = 2;
  EXPECT_EQ(loopsOf(fixture, ofLengths({part + 1})), Loops{2});
  fixture.runtime.toldThreads = 31;
  // A short prompt has few tasks, too.
  EXPECT_EQ(loopsOf(fixture, {{0, 2 * part, 8}}), (Loops{6, 48}));
}

} // namespace
