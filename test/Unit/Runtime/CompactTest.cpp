// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compaction of pages of several sizes: one free piece, the same content, and readers that are told.
#include "pool/Compact.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

using namespace quire::runtime;

namespace {

constexpr uint64_t unit = 4096, range = 256 * unit, tokenBytes = 64;

/// Sequences of pages on one range of memory; each page is filled with a value of its own.
struct Range {
  std::vector<char> memory = std::vector<char>(range);
  Buddy extents{range, unit};
  std::vector<std::unique_ptr<SizedPages>> sequences;
  std::vector<std::vector<char>> values;

  size_t add(int64_t tokens, const GrowthRule &rule) {
    sequences.push_back(std::make_unique<SizedPages>(extents, tokenBytes, 256));
    values.emplace_back();
    EXPECT_TRUE(sequences.back()->append(tokens, rule).ok());
    for (const SizedPages::Page &page : sequences.back()->pages()) {
      values.back().push_back(static_cast<char>(1 + (sequences.size() * 31 + values.back().size() * 7) % 120));
      std::memset(memory.data() + page.offset, values.back().back(), page.bytes);
    }
    return sequences.size() - 1;
  }

  void end(size_t index) {
    sequences[index]->truncate(0);
    values[index].clear();
  }

  Compaction run() {
    std::vector<SizedPages *> all;
    for (auto &sequence : sequences)
      all.push_back(sequence.get());
    return compact(extents, all, [&](uint64_t from, uint64_t to, uint64_t bytes) {
      EXPECT_TRUE(to + bytes <= from);
      std::memcpy(memory.data() + to, memory.data() + from, bytes);
      std::memset(memory.data() + from, 0, bytes);
    });
  }

  void expectWhole() const {
    EXPECT_TRUE(extents.validate().ok());
    for (size_t i = 0; i < sequences.size(); ++i) {
      Status status = sequences[i]->validate();
      EXPECT_TRUE(status.ok()) << status.text();
      for (size_t page = 0; page < values[i].size(); ++page) {
        const SizedPages::Page &at = sequences[i]->pages()[page];
        std::vector<char> expected(at.bytes, values[i][page]);
        EXPECT_EQ(std::memcmp(memory.data() + at.offset, expected.data(), at.bytes), 0)
            << "sequence " << i << ", page " << page;
      }
    }
  }
};

const GrowthRule small{unit, unit, 1024};

} // namespace

TEST(Compact, MakesOnePieceOfWhatIsFree) {
  Range r;
  for (int i = 0; i < 128; ++i)
    r.add(128, small); // two pages each
  for (size_t i = 0; i < 128; i += 2)
    r.end(i);
  EXPECT_EQ(r.extents.freeBytes(), range / 2);
  EXPECT_EQ(r.extents.largestFree(), 2 * unit);
  EXPECT_EQ(r.extents.allocate(range / 2), Buddy::none);
  std::vector<uint64_t> before;
  for (auto &sequence : r.sequences)
    before.push_back(sequence->generation());
  Compaction done = r.run();
  EXPECT_EQ(done.pages, 64u) << "half of the pages lay in the upper half";
  EXPECT_EQ(done.bytes, 64 * unit);
  EXPECT_EQ(r.extents.externalFragmentation(), 0);
  r.expectWhole();
  for (size_t i = 0; i < 128; ++i)
    EXPECT_EQ(r.sequences[i]->generation() > before[i], i % 2 == 1 && i >= 64) << i;
  EXPECT_NE(r.extents.allocate(range / 2), Buddy::none);
  EXPECT_EQ(r.run().pages, 0u) << "nothing is left to do";
}

TEST(Compact, WhatIsHeldStays) {
  Range r;
  for (int i = 0; i < 64; ++i)
    r.add(256, small);
  for (size_t i = 0; i + 1 < 64; ++i)
    r.end(i);
  SizedPages &last = *r.sequences[63];
  uint64_t generation = last.generation(), offset = last.pages()[0].offset;
  last.hold();
  EXPECT_EQ(r.run().pages, 0u);
  EXPECT_EQ(last.pages()[0].offset, offset);
  EXPECT_EQ(last.generation(), generation);
  last.letGo();
  EXPECT_EQ(r.run().pages, 4u);
  EXPECT_EQ(last.pages()[0].offset + last.pages()[1].offset + last.pages()[2].offset + last.pages()[3].offset,
            6 * unit);
  r.expectWhole();
}

/// Growing pages of many sizes that come and go: content survives, and little is left outside the largest free extent.
TEST(Compact, RandomSizes) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20; ++round) {
    Range r;
    GrowthRule rule{unit, 8 * unit, 64};
    for (int i = 0; i < 40 && r.extents.freeBytes() > 60 * unit; ++i)
      r.add(1 + static_cast<int64_t>(random() % 600), rule);
    for (size_t i = 0; i < r.sequences.size(); ++i)
      if (random() % 2)
        r.end(i);
    uint64_t free = r.extents.freeBytes(), before = r.extents.largestFree();
    r.run();
    EXPECT_EQ(r.extents.freeBytes(), free);
    EXPECT_GE(r.extents.largestFree(), before);
    EXPECT_GE(r.extents.largestFree(), free / 4) << "an extent is a power of two, and aligned";
    r.expectWhole();
  }
}
