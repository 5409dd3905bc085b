// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allocations through operator new of the test program, on all threads; not counted with checks or sanitizers.
#ifndef QUIRE_TEST_UNIT_RUNTIME_ALLOCATIONCOUNT_H
#define QUIRE_TEST_UNIT_RUNTIME_ALLOCATIONCOUNT_H

#include <atomic>
#include <cstdint>

#ifndef QUIRE_CHECK_INVARIANTS // the checks allocate, and sanitizers have an operator new of their own
extern std::atomic<int64_t> allocations;
#endif

#endif // QUIRE_TEST_UNIT_RUNTIME_ALLOCATIONCOUNT_H
