// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the system says of memory: which of its pages are there.
#ifndef QUIRE_TEST_UNIT_RUNTIME_SYSTEMPAGES_H
#define QUIRE_TEST_UNIT_RUNTIME_SYSTEMPAGES_H

#include "core/MappedMemory.h"

#include <algorithm>
#include <vector>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace quire::test {

/// Of these bytes, from a multiple of its pages on.
inline uint64_t residentBytes(const void *begin, size_t bytes) {
  size_t page = runtime::MappedMemory::systemPage();
  std::vector<unsigned char> resident((bytes + page - 1) / page);
  if (::mincore(const_cast<void *>(begin), bytes, resident.data()) != 0)
    return UINT64_MAX;
  return page * static_cast<uint64_t>(std::count_if(resident.begin(), resident.end(), [](unsigned char there) { return there & 1; }));
}

// By the calls of the system: sanitizers replace those of the library by nothing.

/// What is touched of these bytes stays in memory.
inline bool lockMemory(const void *begin, size_t bytes) { return ::syscall(SYS_mlock2, begin, bytes, MLOCK_ONFAULT) == 0; }
inline bool unlockMemory(const void *begin, size_t bytes) { return ::syscall(SYS_munlock, begin, bytes) == 0; }
/// The same for all that is mapped from now on.
inline bool lockAllMemory() { return ::syscall(SYS_mlockall, MCL_FUTURE | MCL_ONFAULT) == 0; }
inline bool unlockAllMemory() { return ::syscall(SYS_munlockall) == 0; }

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_SYSTEMPAGES_H
