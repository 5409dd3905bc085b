// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The buddy allocator against a map of units.
#include "pool/Buddy.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

using namespace quire::runtime;

namespace {

void expectValid(const Buddy &buddy) {
  Status status = buddy.validate();
  ASSERT_TRUE(status.ok()) << status.text();
}

TEST(Buddy, ExtentsAreAlignedPowersOfTwo) {
  Buddy buddy(64 * 4096, 4096);
  EXPECT_EQ(buddy.extentBytes(0), 4096u);
  EXPECT_EQ(buddy.extentBytes(4097), 8192u);
  EXPECT_EQ(buddy.extentBytes(UINT64_MAX), 0u);
  uint64_t small = buddy.allocate(1), large = buddy.allocate(5 * 4096);
  EXPECT_EQ(buddy.sizeAt(small), 4096u);
  EXPECT_EQ(buddy.sizeAt(large), 8u * 4096);
  EXPECT_EQ(large % (8 * 4096), 0u);
  EXPECT_EQ(buddy.freeBytes(), 55u * 4096);
  EXPECT_EQ(buddy.sizeAt(large + 4096), 0u) << "inside of an extent";
  EXPECT_EQ(buddy.sizeAt(1), 0u);
  EXPECT_EQ(buddy.sizeAt(uint64_t(1) << 40), 0u);
  expectValid(buddy);
}

TEST(Buddy, WrongReleasesChangeNothing) {
  Buddy buddy(8 * 64, 64);
  uint64_t extent = buddy.allocate(128);
  EXPECT_FALSE(buddy.release(extent + 64));
  EXPECT_FALSE(buddy.release(extent + 128)) << "free";
  EXPECT_FALSE(buddy.release(extent + 1));
  EXPECT_FALSE(buddy.release(8 * 64));
  EXPECT_FALSE(buddy.release(Buddy::none));
  EXPECT_EQ(buddy.freeBytes(), 6u * 64);
  EXPECT_TRUE(buddy.release(extent));
  EXPECT_FALSE(buddy.release(extent)) << "twice";
  EXPECT_EQ(buddy.largestFree(), 8u * 64);
  expectValid(buddy);
}

TEST(Buddy, RangesOfAnySize) {
  for (uint64_t units = 0; units < 70; ++units) {
    Buddy buddy(units * 16 + 15, 16);
    EXPECT_EQ(buddy.totalBytes(), units * 16);
    EXPECT_EQ(buddy.freeBytes(), units * 16);
    expectValid(buddy);
    std::vector<uint64_t> all;
    for (uint64_t i = 0; i < units; ++i)
      all.push_back(buddy.allocate(16));
    EXPECT_EQ(buddy.allocate(16), Buddy::none);
    EXPECT_EQ(buddy.freeBytes(), 0u);
    EXPECT_EQ(buddy.externalFragmentation(), 0);
    uint64_t before = Buddy(units * 16, 16).largestFree();
    for (uint64_t extent : all)
      EXPECT_TRUE(buddy.release(extent));
    EXPECT_EQ(buddy.largestFree(), before) << "all is merged again";
    expectValid(buddy);
  }
}

TEST(Buddy, ExternalFragmentation) {
  Buddy buddy(16 * 16, 16);
  std::vector<uint64_t> all;
  for (int i = 0; i < 16; ++i)
    all.push_back(buddy.allocate(16));
  for (uint64_t extent : all)
    if (extent / 16 % 2 == 0)
      buddy.release(extent);
  EXPECT_EQ(buddy.freeBytes(), 8u * 16);
  EXPECT_EQ(buddy.largestFree(), 16u);
  EXPECT_DOUBLE_EQ(buddy.externalFragmentation(), 1 - 1.0 / 8);
  EXPECT_EQ(buddy.failuresWithRoom(), 0u);
  EXPECT_EQ(buddy.allocate(32), Buddy::none);
  EXPECT_EQ(buddy.failuresWithRoom(), 1u);
  EXPECT_EQ(buddy.allocate(9 * 16), Buddy::none) << "more than is free";
  EXPECT_EQ(buddy.failuresWithRoom(), 1u);
}

/// Which units are taken, and by whom.
class Reference {
public:
  explicit Reference(uint64_t units) : taken_(units) {}

  bool hasRoom(uint64_t units) const {
    for (uint64_t first = 0; first + units <= taken_.size(); first += units)
      if (isFree(first, units))
        return true;
    return false;
  }
  bool isFree(uint64_t first, uint64_t units) const {
    for (uint64_t i = first; i < first + units; ++i)
      if (taken_[i])
        return false;
    return true;
  }
  void mark(uint64_t first, uint64_t units, bool taken) {
    std::fill(taken_.begin() + static_cast<int64_t>(first), taken_.begin() + static_cast<int64_t>(first + units),
              taken);
  }
  uint64_t largest() const {
    uint64_t found = 0;
    for (uint64_t units = 1; units <= taken_.size(); units *= 2)
      found = hasRoom(units) ? units : found;
    return found;
  }

private:
  std::vector<bool> taken_;
};

TEST(Buddy, RandomOperationsAgreeWithTheReference) {
  for (uint64_t units : {64u, 100u}) {
    Buddy buddy(units * 4096, 4096);
    Reference reference(units);
    std::map<uint64_t, uint64_t> live; // first unit -> units
    std::mt19937 random(static_cast<uint32_t>(units));
    for (int i = 0; i < 50000; ++i) {
      bool filling = i / 500 % 2;
      if (live.empty() || random() % 10 < (filling ? 7u : 3u)) {
        uint64_t bytes = 1 + random() % (random() % 4 ? 4 * 4096 : 32 * 4096);
        uint64_t wanted = buddy.extentBytes(bytes) / 4096, offset = buddy.allocate(bytes);
        ASSERT_EQ(offset != Buddy::none, reference.hasRoom(wanted)) << "coalesced as far as possible";
        if (offset == Buddy::none)
          continue;
        ASSERT_EQ(offset % (wanted * 4096), 0u);
        ASSERT_TRUE(reference.isFree(offset / 4096, wanted));
        ASSERT_EQ(buddy.sizeAt(offset), wanted * 4096);
        reference.mark(offset / 4096, wanted, true);
        live[offset / 4096] = wanted;
      } else {
        auto victim = live.begin();
        std::advance(victim, random() % live.size());
        ASSERT_TRUE(buddy.release(victim->first * 4096));
        reference.mark(victim->first, victim->second, false);
        live.erase(victim);
      }
      if (i % 8 == 0) {
        expectValid(buddy);
        ASSERT_EQ(buddy.largestFree(), reference.largest() * 4096);
      }
    }
    for (auto [first, wanted] : live)
      ASSERT_TRUE(buddy.release(first * 4096));
    EXPECT_EQ(buddy.freeBytes(), buddy.totalBytes());
    EXPECT_EQ(buddy.largestFree(), 64u * 4096);
    expectValid(buddy);
  }
}

} // namespace
