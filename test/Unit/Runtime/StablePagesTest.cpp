// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory under addresses that stay: what is committed, what goes back, and in how many calls.
#include "SystemPages.h"
#include "residency/StablePages.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace quire::runtime {
namespace {

constexpr uint32_t blocks = 6;

/// Two groups; pages of two pages of the system each, the second of which is not full.
PageGeometry geometryOf(uint64_t pageBytes = MappedMemory::systemPage() + 64) {
  PageGeometry geometry;
  geometry.groups = 2;
  geometry.pageBytes = pageBytes;
  geometry.separate(MappedMemory::systemPage());
  return geometry;
}

class StablePagesTest : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_TRUE(StablePages::create(geometry_, blocks, 4, pages_).ok()); }

  uint64_t resident() const { return test::residentBytes(pages_->group(0), 2 * (blocks + 1) * geometry_.pageStride); }
  void touch(uint32_t page) { std::memset(pages_->address(page), 7, geometry_.pageBytes); }
  bool isBlank(uint32_t page) const {
    const char *bytes = pages_->address(page);
    return std::all_of(bytes, bytes + geometry_.pageStride, [](char byte) { return byte == 0; });
  }

  PageGeometry geometry_ = geometryOf();
  std::unique_ptr<StablePages> pages_;
};

TEST_F(StablePagesTest, EachPageHasAPlaceAndEachGroupAGrave) {
  EXPECT_EQ(geometry_.pageStride, 2 * MappedMemory::systemPage());
  for (uint32_t group = 0; group < 2; ++group)
    for (uint32_t block = 0; block < blocks; ++block)
      EXPECT_EQ(pages_->address(group * blocks + block), pages_->group(group) + block * geometry_.pageStride);
  EXPECT_EQ(pages_->graveIndex(), blocks);
  EXPECT_EQ(pages_->group(1), pages_->group(0) + (blocks + 1) * geometry_.pageStride);
}

TEST_F(StablePagesTest, TheFirstBlocksHaveMemoryFromTheBeginning) {
  EXPECT_EQ(pages_->bytesWithMemory(), 4 * geometry_.pageStride);
  EXPECT_EQ(resident(), 4 * geometry_.pageStride);
  for (uint32_t page : {0u, 1u, blocks, blocks + 1})
    EXPECT_EQ(test::residentBytes(pages_->address(page), geometry_.pageStride), geometry_.pageStride) << page;
  EXPECT_TRUE(pages_->validate(0, 4).ok());
}

TEST_F(StablePagesTest, SparePagesKeepTheirMemoryUntilOthersWantIt) {
  pages_->use(0);
  touch(0);
  pages_->spare(0);
  ASSERT_TRUE(pages_->keepTo(4).ok());
  pages_->use(0);
  EXPECT_FALSE(isBlank(0)) << "it came back before anybody else wanted memory";
  EXPECT_EQ(pages_->calls(), 0u);
  pages_->use(3);
  EXPECT_EQ(pages_->validate(2, 4).text(), "5 pages have memory, but the fast tier is one of 4");
  ASSERT_TRUE(pages_->keepTo(4).ok());
  touch(3);
  EXPECT_EQ(pages_->calls(), 1u);
  EXPECT_EQ(pages_->bytesGivenBack(), geometry_.pageStride);
  EXPECT_EQ(resident(), 4 * geometry_.pageStride);
  EXPECT_TRUE(pages_->validate(2, 4).ok());
}

TEST_F(StablePagesTest, NeighboursGoBackInOneCall) {
  for (uint32_t page : {0u, 1u, blocks, blocks + 1})
    pages_->use(page);
  for (uint32_t page : {blocks + 1, 1u, 0u, blocks}) {
    touch(page);
    pages_->spare(page);
  }
  for (uint32_t page : {2u, 3u, 4u, 5u})
    pages_->use(page);
  ASSERT_TRUE(pages_->keepTo(4).ok());
  EXPECT_EQ(pages_->calls(), 2u) << "a run in each group; the grave lies between the groups";
  EXPECT_EQ(pages_->bytesGivenBack(), 4 * geometry_.pageStride);
  EXPECT_TRUE(pages_->validate(4, 4).ok());
  for (uint32_t page : {0u, 1u, blocks, blocks + 1})
    EXPECT_TRUE(isBlank(page)) << page;
}

TEST_F(StablePagesTest, OnlyPagesWithMemoryAreSearched) {
  const char needle[] = "needle";
  pages_->use(0);
  std::memcpy(pages_->address(0) + 100, needle, sizeof(needle));
  EXPECT_TRUE(pages_->holds(needle, sizeof(needle)));
  pages_->spare(0);
  EXPECT_TRUE(pages_->holds(needle, sizeof(needle)));
  ASSERT_TRUE(pages_->keepTo(0).ok());
  EXPECT_FALSE(pages_->holds(needle, sizeof(needle)));
  EXPECT_EQ(resident(), 0u);
}

TEST_F(StablePagesTest, FillingCommitsWhatIsMissing) {
  ASSERT_TRUE(pages_->keepTo(1).ok());
  pages_->use(4);
  ASSERT_TRUE(pages_->fillTo(4).ok());
  EXPECT_EQ(pages_->bytesWithMemory(), 4 * geometry_.pageStride);
  EXPECT_TRUE(pages_->validate(1, 4).ok());
  EXPECT_EQ(resident(), 3 * geometry_.pageStride) << "the used one was not touched yet";
  ASSERT_TRUE(pages_->fillTo(100).ok());
  EXPECT_EQ(pages_->bytesWithMemory(), 2 * blocks * geometry_.pageStride) << "there are no more";
}

TEST_F(StablePagesTest, UsedPagesAreCommittedOnRequest) {
  ASSERT_TRUE(pages_->keepTo(0).ok());
  for (uint32_t page : {3u, 2u, 5u})
    pages_->use(page);
  pages_->spare(5);
  ASSERT_TRUE(pages_->commitUsed().ok());
  EXPECT_EQ(resident(), 2 * geometry_.pageStride) << "the third is used no more";
  EXPECT_TRUE(isBlank(2));
  pages_->use(4);
  pages_->leaveUsed();
  ASSERT_TRUE(pages_->commitUsed().ok());
  EXPECT_EQ(resident(), 2 * geometry_.pageStride) << "the first touch commits it";
  EXPECT_TRUE(pages_->validate(3, 4).ok());
}

TEST_F(StablePagesTest, AGraveIsBlankAgain) {
  for (uint32_t group = 0; group < 2; ++group) {
    std::memset(pages_->group(group) + blocks * geometry_.pageStride, 1, geometry_.pageBytes);
    pages_->emptyGrave(group);
  }
  EXPECT_EQ(resident(), 4 * geometry_.pageStride);
}

/// What the system does not take back is said, and goes back later.
TEST_F(StablePagesTest, LockedMemoryIsNoticed) {
  ASSERT_TRUE(test::lockMemory(pages_->address(1), geometry_.pageStride)) << "the process may lock so little";
  EXPECT_EQ(pages_->keepTo(0).text(), "the fast tier has memory for 2 pages, but should have it for 0: the system does not take that of others back")
      << "it and its neighbour, which were to go back together";
  EXPECT_TRUE(pages_->validate(0, 2).ok());
  ASSERT_TRUE(test::unlockMemory(pages_->address(1), geometry_.pageStride));
  EXPECT_TRUE(pages_->keepTo(0).ok());
  EXPECT_EQ(resident(), 0u);
  ASSERT_TRUE(test::lockMemory(pages_->group(1) + blocks * geometry_.pageStride, geometry_.pageStride));
  std::memset(pages_->group(1) + blocks * geometry_.pageStride, 1, geometry_.pageBytes);
  pages_->emptyGrave(1);
  EXPECT_EQ(pages_->group(1)[blocks * geometry_.pageStride], 0) << "a grave that does not go back is overwritten";
}

TEST(StablePages, AreRefusedWhereAllMemoryIsLocked) {
  if (!test::lockAllMemory())
    GTEST_SKIP() << "the process may not lock its memory";
  std::unique_ptr<StablePages> pages;
  Status status = StablePages::create(geometryOf(), blocks, 4, pages);
  ASSERT_TRUE(test::unlockAllMemory());
  EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(status.text(), "stable_va: expected memory that can go back to the system, but got memory that is locked");
}

TEST(StablePages, ARangeThatIsTooLargeIsRefused) {
  std::unique_ptr<StablePages> pages;
  EXPECT_EQ(StablePages::create(geometryOf(uint64_t(1) << 40), 1024, 4, pages).code(), QUIRE_OUT_OF_MEMORY);
}

/// Flags of the mapping that the address is in, as /proc/self/smaps has them.
std::string flagsOf(const void *address) {
  auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  for (bool found = false; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
      found = begin <= wanted && wanted < end;
    if (found && line.rfind("VmFlags:", 0) == 0)
      return line + " ";
  }
  return {};
}

TEST(StablePages, HugePagesAreForPagesOfTheirSizeOnly) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    GTEST_SKIP() << "the system has no huge pages";
  std::unique_ptr<StablePages> small, odd, huge;
  ASSERT_TRUE(StablePages::create(geometryOf(), blocks, 4, small).ok());
  ASSERT_TRUE(StablePages::create(geometryOf(MappedMemory::hugePage + 4096), blocks, 1, odd).ok());
  ASSERT_TRUE(StablePages::create(geometryOf(MappedMemory::hugePage), blocks, 1, huge).ok());
  EXPECT_NE(flagsOf(small->group(0)).find(" nh "), std::string::npos) << flagsOf(small->group(0));
  EXPECT_NE(flagsOf(odd->group(0)).find(" nh "), std::string::npos) << flagsOf(odd->group(0));
  EXPECT_NE(flagsOf(huge->group(0)).find(" hg "), std::string::npos) << flagsOf(huge->group(0));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(huge->group(1)) % MappedMemory::hugePage, 0u);
  EXPECT_EQ(test::residentBytes(huge->group(0), 2 * (blocks + 1) * MappedMemory::hugePage), MappedMemory::hugePage);
  huge->use(1);
  ASSERT_TRUE(huge->keepTo(1).ok());
  EXPECT_EQ(test::residentBytes(huge->group(0), 2 * (blocks + 1) * MappedMemory::hugePage), 0u);
  huge->address(1)[0] = 1;
  EXPECT_LE(test::residentBytes(huge->group(0), 2 * (blocks + 1) * MappedMemory::hugePage), MappedMemory::hugePage);
}

} // namespace
} // namespace quire::runtime
