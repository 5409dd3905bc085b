// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as a program of operations on a pool: it always agrees with unlimited memory.
#include "PoolRun.h"

#include <cstdio>
#include <cstdlib>

using namespace quire::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Program program = programFromBytes(data, size, 300);
  RunCounts counts;
  std::string error = runProgram(program, counts);
  if (error.empty())
    return 0;
  std::fprintf(stderr, "%s\n%s", error.c_str(), printProgram(program).c_str());
  std::abort();
}
