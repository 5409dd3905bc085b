// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Processes that die between any two operations and before any transfer: the next one takes over the slow tier's file, finds
// nothing of theirs in it, and works.
#include "PoolChild.h"
#include "ToyFolder.h"

#include <csignal>
#include <cstring>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace quire::test;
using namespace quire::runtime;

namespace {

constexpr uint64_t never = UINT64_MAX;

/// When a process dies. Counted from 0.
struct Death {
  uint64_t afterOperation = never, beforeTransfer = never;
};

/// Runs `program` in a process that dies; gives its file the name of this one's. False: it lived to the end.
bool dies(const Program &program, Death death) {
  pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    RunCounts counts;
    uint64_t operations = 0, transfers = 0;
    std::string error = runProgram(program, counts, [&](const Op &, PoolUnderTest &pool, const PoolReference &) {
      if (operations == 0)
        pool.watch([&] {
          if (transfers++ == death.beforeTransfer)
            ::raise(SIGKILL);
        });
      if (operations++ == death.afterOperation)
        ::raise(SIGKILL);
    });
    ::_exit(error.empty() ? 0 : 1);
  }
  int result = 0;
  EXPECT_EQ(::waitpid(child, &result, 0), child);
  bool killed = WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL;
  EXPECT_TRUE(killed || (WIFEXITED(result) && WEXITSTATUS(result) == 0)) << result;
  if (killed)
    EXPECT_EQ(::rename(slotFileOf(child).c_str(), slotFileOf(::getpid()).c_str()), 0) << std::strerror(errno);
  return killed;
}

/// The bytes of K and V that a file has.
uint64_t bytesLeft(const std::string &path) {
  std::string bytes = readFile(path);
  return static_cast<uint64_t>(std::count_if(bytes.begin() + std::min<ptrdiff_t>(sectorBytes, bytes.size()), bytes.end(), [](char byte) { return byte != 0; }));
}

/// A pool over what a dead process left.
void takeOver(const Program &program) {
  {
    PoolUnderTest pool(program);
    ASSERT_EQ(pool.open(), "");
    EXPECT_EQ(bytesLeft(slotFileOf(::getpid())), 0u) << "what a dead process stored can be read";
    EXPECT_TRUE(pool.slowIsBlank());
    EXPECT_EQ(quire_pool_validate(pool.get()), QUIRE_OK) << quire_last_error();
  }
  RunCounts counts;
  EXPECT_EQ(runProgram(program, counts), "");
  EXPECT_GT(counts.loads, 20u);
}

} // namespace

TEST(PoolCrash, BetweenOperations) {
  Program program = serverProgram(2);
  uint64_t left = 0;
  for (uint64_t operation = 0; dies(program, {operation, never}); ++operation) {
    left += bytesLeft(slotFileOf(::getpid()));
    ASSERT_NO_FATAL_FAILURE(takeOver(program)) << "after operation " << operation;
    ASSERT_FALSE(HasFailure()) << "after operation " << operation;
  }
  EXPECT_GT(left, 0u) << "there was nothing to hide";
}

TEST(PoolCrash, BeforeTransfers) {
  Program program = serverProgram(2);
  uint64_t deaths = 0;
  for (uint64_t transfer = 0; dies(program, {never, transfer}); transfer += sweepStride, ++deaths) {
    ASSERT_NO_FATAL_FAILURE(takeOver(program)) << "before transfer " << transfer;
    ASSERT_FALSE(HasFailure()) << "before transfer " << transfer;
  }
  EXPECT_GT(deaths, 10u);
}

/// A pool that is alive keeps its file.
TEST(PoolCrash, OfNobody) {
  Program program = serverProgram(2);
  PoolUnderTest first(program), second(program);
  ASSERT_EQ(first.open(), "");
  EXPECT_NE(second.open().find("another pool uses this file as its slow tier"), std::string::npos);
  EXPECT_EQ(quire_pool_validate(first.get()), QUIRE_OK) << quire_last_error();
}
