// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What mapped memory promises of its pages.
#include "core/MappedMemory.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include <sys/mman.h>

namespace quire::runtime {
namespace {

size_t residentPages(const MappedMemory &memory) {
  std::vector<unsigned char> resident((memory.size() + 4095) / 4096);
  EXPECT_EQ(::mincore(memory.data(), memory.size(), resident.data()), 0);
  return static_cast<size_t>(std::count_if(resident.begin(), resident.end(), [](unsigned char page) { return page & 1; }));
}

TEST(MappedMemory, PopulateCommitsEveryPage) {
  for (size_t bytes : {size_t(1), size_t(5) << 12, (size_t(300) << 20) + 4097}) {
    MappedMemory memory;
    ASSERT_TRUE(memory.map(bytes, MappedMemory::Pages::Huge).ok());
    EXPECT_EQ(residentPages(memory), 0u) << bytes;
    ASSERT_TRUE(memory.populate().ok());
    EXPECT_EQ(residentPages(memory), (bytes + 4095) / 4096) << bytes;
    EXPECT_TRUE(std::all_of(memory.data(), memory.data() + std::min(bytes, size_t(1) << 20), [](char c) { return c == 0; }));
  }
}

} // namespace
} // namespace quire::runtime
