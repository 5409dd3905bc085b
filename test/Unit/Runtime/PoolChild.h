// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs in processes of their own, so that an assertion or a standstill is a failure like any other and can be made smaller.
#ifndef QUIRE_TEST_UNIT_RUNTIME_POOLCHILD_H
#define QUIRE_TEST_UNIT_RUNTIME_POOLCHILD_H

#include "PoolRun.h"

namespace quire::test {

/// Empty: it went well. Otherwise what was wrong, or how the process ended; `seconds`: it may take so long.
std::string runInChild(const Program &program, RunCounts &counts, const PoolRun::Sabotage &sabotage = {}, unsigned seconds = 20);

/// Of the transfers at which a test lets something happen: checked builds take longer for each.
#ifdef QUIRE_CHECK_INVARIANTS
constexpr uint64_t sweepStride = 7;
#else
constexpr uint64_t sweepStride = 1;
#endif

/// The same for `fault` from transfer 0, `stride`, twice `stride` on, and so forth, until it does not happen; all in one
/// process. `fault`: the last of them.
std::string sweepFault(const Program &program, runtime::Fault &fault, uint64_t stride, RunCounts &counts, unsigned seconds = 20);

struct Sweep {
  uint64_t first = 0, programs = 0; // seeds
  size_t operations = 0;            // of each program
};
/// All of them in one process; gives the first program that fails, and why. `standstill`: seconds that a
/// program may take.
bool runSweep(const Sweep &sweep, RunCounts &counts, Program &failing, std::string &error, unsigned standstill = 60);

using Fails = std::function<bool(const Program &)>;
/// A smaller program that fails as well: operations are left out, most of them at first and single ones at
/// last (delta debugging), then arguments and shape go towards 0. Nothing of the result can be left out alone.
Program shrink(Program program, const Fails &fails);

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_POOLCHILD_H
