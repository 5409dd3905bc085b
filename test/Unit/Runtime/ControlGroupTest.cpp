// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Limits of control groups, from files as systems have them.
#include "ToyFolder.h"
#include "core/ControlGroup.h"
#include "core/MappedMemory.h"

#include <gtest/gtest.h>

#include <filesystem>

using namespace quire::runtime;
using namespace quire::test;

namespace {

class ControlGroup : public ::testing::Test {
protected:
  void write(const std::string &path, const std::string &text) {
    std::filesystem::path full = temporary / path;
    std::filesystem::create_directories(full.parent_path());
    writeFile(full.string(), text);
  }

  void expect(uint64_t limit, uint64_t available) {
    GroupMemory found = groupMemory((temporary / "").string());
    EXPECT_EQ(found.limit, limit);
    EXPECT_EQ(found.available, available);
  }

  TemporaryFolder temporary;
};

} // namespace

TEST_F(ControlGroup, NoneIsNoLimit) {
  expect(UINT64_MAX, UINT64_MAX);
  write("proc/self/cgroup", "0::/\nnonsense\n3:\n");
  expect(UINT64_MAX, UINT64_MAX);
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory.current", "5000\n");
  expect(UINT64_MAX, UINT64_MAX);
}

TEST_F(ControlGroup, TheLeastOfAllLevelsCounts) {
  write("proc/self/cgroup", "0::/jobs/one/inner\n");
  write("sys/fs/cgroup/jobs/one/inner/memory.max", "max\n");
  write("sys/fs/cgroup/jobs/one/memory.max", "9000\n");
  write("sys/fs/cgroup/jobs/one/memory.current", "5000\n");
  write("sys/fs/cgroup/jobs/one/memory.stat", "anon 4000\nfile 1000\ninactive_file 700\nactive_file 300\n");
  expect(9000, 4700);
  write("sys/fs/cgroup/jobs/memory.max", "10000\n"); // a larger limit of which less is left
  write("sys/fs/cgroup/jobs/memory.current", "9500\n");
  expect(9000, 500);
  write("sys/fs/cgroup/jobs/memory.current", "11000\n");
  expect(9000, 0);
}

/// Containers: the path is that of the system outside, and what is mounted is the container's group.
TEST_F(ControlGroup, APathThatIsNotMountedMeansTheMount) {
  for (const char *path : {"/docker/0a1b2c", "/../../outside"}) {
    write("proc/self/cgroup", std::string("0::") + path + "\n");
    write("sys/fs/cgroup/memory.max", "6000\n");
    write("sys/fs/cgroup/memory.current", "1000\n");
    expect(6000, 5000);
  }
}

TEST_F(ControlGroup, VersionOneAndBothTogether) {
  write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/jobs\n0::/\n");
  write("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "8000\n");
  write("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "3000\n");
  write("sys/fs/cgroup/memory/jobs/memory.stat", "inactive_file 100\ntotal_inactive_file 500\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // what it has for none
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n");
  expect(8000, 5500);
  write("sys/fs/cgroup/unified/memory.max", "7000\n");
  expect(7000, 5500);
}

TEST_F(ControlGroup, TheMachineIsWhatTheGroupsLeaveOfIt) {
  GroupMemory groups = groupMemory();
  EXPECT_LE(physicalMemory(), groups.limit);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "5000\n");
  write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(physicalMemory((temporary / "").string()), 5000u);
  EXPECT_EQ(availableMemory((temporary / "").string()), 3000u) << "and what the system has available is not known there";
  write("proc/meminfo", "MemTotal: 8 kB\nMemAvailable: 2 kB\n");
  EXPECT_EQ(availableMemory((temporary / "").string()), 2048u);
}
