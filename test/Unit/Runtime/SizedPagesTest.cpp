// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pages that grow and pages of two sizes: cap, waste, no moves, and random sequences on one range.
#include "pool/SizedPages.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>

using namespace quire::runtime;

namespace {

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB;

void expectValid(const SizedPages &pages) {
  Status status = pages.validate();
  ASSERT_TRUE(status.ok()) << status.text();
}

/// Slots are the tokens and what is left of the last page.
void expectWasteInLastPageOnly(const SizedPages &pages) {
  int64_t slots = 0;
  for (const SizedPages::Page &page : pages.pages()) {
    ASSERT_EQ(page.first, slots);
    slots += page.slots;
  }
  ASSERT_EQ(slots, pages.slots());
  int64_t unused = slots - pages.length();
  ASSERT_GE(unused, 0);
  if (unused > 0) {
    ASSERT_LT(unused, pages.pages().back().slots);
  }
}

TEST(SizedPages, BlocksDoubleUntilTheCap) {
  Buddy buddy(64 * MiB, 4 * KiB);
  SizedPages pages(buddy, 64, 4096);
  GrowthRule rule{4 * KiB, 64 * KiB, 1024};
  for (int i = 0; i < 9000; ++i)
    ASSERT_TRUE(pages.append(1, rule).ok());
  expectValid(pages);
  uint64_t previous = 0;
  for (const SizedPages::Page &page : pages.pages()) {
    EXPECT_EQ(page.bytes, std::min<uint64_t>(rule.cap, rule.base << (page.first / 1024)));
    EXPECT_GE(page.bytes, previous);
    previous = page.bytes;
  }
  EXPECT_EQ(previous, rule.cap);
  expectWasteInLastPageOnly(pages);
}

TEST(SizedPages, AppendingAtOnceAndOneByOneAgree) {
  Buddy buddy(64 * MiB, 4 * KiB);
  SizedPages whole(buddy, 256, 4096), single(buddy, 256, 4096);
  GrowthRule rule;
  ASSERT_TRUE(whole.append(5000, rule).ok());
  for (int i = 0; i < 5000; ++i)
    ASSERT_TRUE(single.append(1, rule).ok());
  ASSERT_EQ(whole.pages().size(), single.pages().size());
  for (size_t i = 0; i < whole.pages().size(); ++i)
    EXPECT_EQ(whole.pages()[i].bytes, single.pages()[i].bytes);
  EXPECT_EQ(whole.bytes(), single.bytes());
}

TEST(SizedPages, PagesNeverMove) {
  Buddy buddy(64 * MiB, 4 * KiB);
  SizedPages pages(buddy, 512, 4096);
  std::vector<uint64_t> offsets;
  const void *storage = pages.pages().data();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(pages.append(17, GrowthRule()).ok());
    for (size_t page = 0; page < offsets.size(); ++page)
      ASSERT_EQ(pages.pages()[page].offset, offsets[page]);
    for (size_t page = offsets.size(); page < pages.pages().size(); ++page)
      offsets.push_back(pages.pages()[page].offset);
  }
  EXPECT_EQ(pages.pages().data(), storage) << "no memory was allocated";
}

TEST(SizedPages, PagesHoldAtLeastOneToken) {
  Buddy buddy(64 * MiB, 4 * KiB);
  SizedPages pages(buddy, 20480, 64);
  ASSERT_TRUE(pages.append(1, GrowthRule()).ok()); // base is 4 KiB
  EXPECT_EQ(pages.pages()[0].bytes, 32 * KiB);
  EXPECT_EQ(pages.pages()[0].slots, 1);
  Status status = pages.append(1, GrowthRule{4 * KiB, 16 * KiB, 1024});
  EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(status.text(), "a page of 16384 bytes holds no token of 20480");
  EXPECT_EQ(pages.append(1, GrowthRule{1, 1, 1024}).code(), QUIRE_INVALID_ARGUMENT) << "below a unit";
  EXPECT_EQ(pages.append(-1, GrowthRule()).code(), QUIRE_INVALID_ARGUMENT);
  ASSERT_TRUE(pages.append(1, GrowthRule{40 * KiB, 50 * KiB, 1024}).ok());
  EXPECT_EQ(pages.pages()[1].bytes, 32 * KiB) << "rounded down below the cap";
}

TEST(SizedPages, FailuresChangeNothing) {
  Buddy buddy(1 * MiB, 4 * KiB);
  SizedPages pages(buddy, 1024, 1000), few(buddy, 1024, 3);
  ASSERT_TRUE(pages.append(100, GrowthRule()).ok());
  uint64_t freeBytes = buddy.freeBytes();
  EXPECT_EQ(pages.append(5000, GrowthRule()).code(), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(few.append(13, GrowthRule()).code(), QUIRE_TOO_LONG);
  EXPECT_EQ(buddy.freeBytes(), freeBytes);
  EXPECT_EQ(pages.length(), 100);
  EXPECT_EQ(few.length(), 0);
  expectValid(pages);
  expectValid(few);
}

TEST(SizedPages, ChaptersAndParagraphs) {
  Buddy buddy(64 * MiB, 64 * KiB);
  SizedPages pages(buddy, 4096, 100); // 256 and 16 tokens
  ASSERT_TRUE(pages.append(600, PageClasses()).ok());
  ASSERT_EQ(pages.pages().size(), 2u + 6u) << "two chapters and 88 tokens";
  EXPECT_EQ(pages.pages()[1].bytes, 1 * MiB);
  EXPECT_EQ(pages.pages()[2].bytes, 64 * KiB);
  EXPECT_EQ(pages.locate(255).page, 0u);
  EXPECT_EQ(pages.locate(256).page, 1u);
  EXPECT_EQ(pages.locate(599).page, 7u);
  EXPECT_EQ(pages.locate(599).slot, 7);
  ASSERT_TRUE(pages.append(8, PageClasses()).ok()) << "the last page has room";
  EXPECT_EQ(pages.pages().size(), 8u);
  expectWasteInLastPageOnly(pages);
  expectValid(pages);
  pages.truncate(256);
  EXPECT_EQ(pages.pages().size(), 1u);
  EXPECT_EQ(buddy.freeBytes(), 63 * MiB);
}

TEST(SizedPages, RandomSequencesShareOneRange) {
  Buddy buddy(8 * MiB, 4 * KiB);
  std::vector<std::unique_ptr<SizedPages>> sequences(6);
  std::mt19937 random(11);
  GrowthRule rule{4 * KiB, 128 * KiB, 256};
  uint64_t failures = 0;
  for (int i = 0; i < 100000; ++i) {
    std::unique_ptr<SizedPages> &pages = sequences[random() % sequences.size()];
    if (!pages) {
      uint64_t tokenBytes = 200 + random() % 3000;
      pages = std::make_unique<SizedPages>(buddy, tokenBytes, 300);
    } else if (random() % 200 == 0) {
      pages.reset();
      continue;
    }
    int64_t length = pages->length();
    if (random() % 20 == 0) {
      pages->truncate(length - static_cast<int64_t>(random() % static_cast<uint64_t>(length + 1)));
    } else {
      int64_t tokens = static_cast<int64_t>(random() % (random() % 16 ? 4 : 200));
      Status status =
          random() % 4 ? pages->append(tokens, rule) : pages->append(tokens, PageClasses{64 * KiB, 4 * KiB});
      failures += !status.ok();
      ASSERT_EQ(pages->length(), status.ok() ? length + tokens : length);
    }
    expectWasteInLastPageOnly(*pages);
    expectValid(*pages);
    for (const SizedPages::Page &page : pages->pages())
      ASSERT_LE(page.bytes, rule.cap);
    if (pages->slots() > 0) {
      int64_t position = static_cast<int64_t>(random() % static_cast<uint64_t>(pages->slots()));
      SizedPages::Place place = pages->locate(position);
      ASSERT_EQ(pages->pages()[place.page].first + place.slot, position);
      ASSERT_LT(place.slot, pages->pages()[place.page].slots);
    }
    if (i % 64 == 0) {
      Status status = buddy.validate();
      ASSERT_TRUE(status.ok()) << status.text();
      uint64_t used = 0;
      for (const std::unique_ptr<SizedPages> &other : sequences)
        used += other ? other->bytes() : 0;
      ASSERT_EQ(buddy.totalBytes() - buddy.freeBytes(), used);
    }
  }
  EXPECT_GT(failures, 100u) << "the range was full at times";
  sequences.clear();
  EXPECT_EQ(buddy.largestFree(), 8 * MiB);
}

} // namespace
