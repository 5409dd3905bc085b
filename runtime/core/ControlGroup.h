// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What control groups of the system leave of the machine's memory to this process.
#ifndef QUIRE_RUNTIME_CORE_CONTROLGROUP_H
#define QUIRE_RUNTIME_CORE_CONTROLGROUP_H

#include <cstdint>
#include <string>

namespace quire::runtime {

struct GroupMemory {
  uint64_t limit = UINT64_MAX;     // UINT64_MAX: none, or not known
  uint64_t available = UINT64_MAX; // of it now; cached files that nobody used lately count as available
};

/// The least of the process's group and of those that it lies in, of both versions (memory.max, memory.limit_in_bytes). `root` is put before
/// the paths of the system: /proc/self/cgroup and /sys/fs/cgroup.
GroupMemory groupMemory(const std::string &root = "");

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_CORE_CONTROLGROUP_H
