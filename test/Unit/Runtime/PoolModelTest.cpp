// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two million random operations on pools of every shape, compared with unlimited memory after each one. A program that fails
// is made smaller and printed; with the environment variable QUIRE_POOL_PROGRAM=FILE, KnownProgramsAgree runs that one.
#include "PoolChild.h"
#include "ToyFolder.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <thread>

using namespace quire::test;

namespace {

#ifdef QUIRE_CHECK_INVARIANTS // each operation is checked by the runtime as well, and more slowly
constexpr uint64_t operations = 160000, shards = 2; // each large enough to meet every event below
#else
constexpr uint64_t operations = 2000000, shards = 8;
#endif
constexpr uint64_t operationsOfProgram = 500;

/// The message of a failed test.
std::string explain(const Program &program, const std::string &error) {
  RunCounts ignored;
  Program small = shrink(program, [&](const Program &less) { return !runInChild(less, ignored).empty(); });
  return error + "\nsmaller, " + runInChild(small, ignored) + ":\n" + printProgram(small);
}

/// Handles that ended are always refused, and a step whose model breaks off fails; what a program does to the pool from outside never does.
bool canSucceed(OpKind kind) { return kind != OpKind::Stale && kind != OpKind::Abort; }
bool canBeRefused(OpKind kind) { return kind != OpKind::ActAs && kind != OpKind::Settle && kind != OpKind::Fault && kind != OpKind::Crash; }

class PoolModel : public ::testing::TestWithParam<uint64_t> {};

} // namespace

TEST_P(PoolModel, RandomProgramsMatchUnlimitedMemory) {
  Sweep sweep;
  sweep.operations = operationsOfProgram;
  sweep.programs = operations / operationsOfProgram / shards;
  sweep.first = 1 + GetParam() * sweep.programs;
  RunCounts counts;
  Program failing;
  std::string error;
  if (!runSweep(sweep, counts, failing, error))
    FAIL() << explain(failing, error);
  EXPECT_EQ(counts.programs, sweep.programs);
  EXPECT_GT(counts.operations, sweep.programs * sweep.operations * 3 / 4) << "programs that do nothing";
  for (size_t kind = 0; kind < opKinds; ++kind) {
    EXPECT_GT(counts.done[kind], 0u) << opName(OpKind(kind));
    EXPECT_EQ(counts.succeeded[kind] > 0, canSucceed(OpKind(kind))) << opName(OpKind(kind));
    EXPECT_EQ(counts.refused[kind] > 0, canBeRefused(OpKind(kind))) << opName(OpKind(kind));
  }
  for (quire_status status : {QUIRE_OK, QUIRE_INVALID_ARGUMENT, QUIRE_STALE_HANDLE, QUIRE_OUT_OF_BLOCKS, QUIRE_TOO_LONG,
                              QUIRE_INVARIANT_BROKEN, QUIRE_NO_SPACE, QUIRE_PAGE_LOST})
    EXPECT_GT(counts.ends[status], 0u) << quire_status_name(status);
  const std::pair<const char *, uint64_t> rare[] = {
      {"loads", counts.loads}, {"stores", counts.stores}, {"copies", counts.copies}, {"injected", counts.injected}, {"hits", counts.hits},
      {"merged", counts.merged}, {"evicted", counts.evicted}, {"lost", counts.lost}, {"expired", counts.expired},
      {"reserveHits", counts.reserveHits}, {"pinsGivenUp", counts.pinsGivenUp}, {"compacted", counts.compacted}, {"moved", counts.moved},
      {"pruned", counts.pruned}, {"idle", counts.idle}, {"encoded", counts.encoded}, {"byAttention", counts.byAttention},
      {"returned", counts.returned}};
  for (auto [name, count] : rare)
    EXPECT_GT(count, 0u) << name;
}

INSTANTIATE_TEST_SUITE_P(Seeds, PoolModel, ::testing::Range(uint64_t(0), shards));

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

TEST(PoolPrograms, TextAndBytesGiveTheSameProgram) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Program program = randomProgram(seed, 40), parsed;
    EXPECT_EQ(program, randomProgram(seed, 40));
    std::string error;
    ASSERT_TRUE(parseProgram(printProgram(program), parsed, error)) << error;
    EXPECT_EQ(parsed, program);
    std::vector<uint8_t> bytes = programToBytes(program);
    EXPECT_EQ(programFromBytes(bytes.data(), bytes.size(), 1000), program);
    EXPECT_EQ(programFromBytes(bytes.data(), bytes.size() - 1, 7).ops.size(), 7u);
  }
  EXPECT_TRUE(programFromBytes(nullptr, 0, 10).ops.empty());
}

TEST(PoolPrograms, TextThatIsNoProgramIsRefused) {
  Program program = randomProgram(1, 2), parsed;
  std::string shape = printProgram(program), error;
  shape.resize(shape.find('\n') + 1);
  for (const char *bad : {"step 1 2\n", "step 1 2 256\n", "leap 1 2 3\n", "step 1 2 3 4\n", "step 1 2 x\n"}) {
    EXPECT_FALSE(parseProgram(shape + bad, parsed, error)) << bad;
    EXPECT_EQ(error.find("line 2: expected OPERATION BYTE BYTE BYTE"), 0u) << error;
  }
  EXPECT_FALSE(parseProgram("pool tier=1\n", parsed, error));
  EXPECT_EQ(error, "line 1: expected pool FIELD=BYTE..., but got 'pool tier=1'");
}

/// Pools begin with the class that offers the settings of tests; what needs no pool has tests of its own.
TEST(PoolPrograms, CallAllOfTheInterface) {
  std::string sources;
  for (const char *file : {"PoolRun.cpp", "PoolRunPool.cpp", "PoolRunResidency.cpp", "PoolRunSequences.cpp", "PoolRunSteps.cpp", "PoolUnderTest.cpp"})
    sources += readFile(std::filesystem::path(QUIRE_POOL_PROGRAMS).parent_path() / file);
  std::string header = readFile(QUIRE_RUNTIME_HEADER);
  const std::set<std::string> elsewhere = {"quire_pool_create", "quire_pool_destroy", "quire_executor_destroy", "quire_sequence_create", "quire_executor_parallel",
                                           "quire_block_load_row", "quire_block_store_row"};
  std::regex call("\\b(quire_(pool|sequence|block|tenant|executor)_\\w+|quire_doctor|quire_metrics)\\(");
  size_t functions = 0;
  for (std::sregex_iterator match(header.begin(), header.end(), call), end; match != end; ++match) {
    std::string name = (*match)[1];
    ++functions;
    EXPECT_TRUE(elsewhere.count(name) || sources.find(name + "(") != std::string::npos) << name << " is in no program";
  }
  EXPECT_GT(functions, 50u);
}

//===----------------------------------------------------------------------===//
// Seeded bugs
//===----------------------------------------------------------------------===//

namespace {

/// A truncation damages what two sequences share.
void damageShared(const Op &op, PoolUnderTest &pool, const PoolReference &reference) {
  for (const PoolReference::Block &block : reference.blocks())
    if (op.kind == OpKind::Truncate && block.tables > 1)
      pool.inner().layerBase(0)[block.index * pool.inner().layerBlockBytes(0)] ^= 1;
}

Program failingWith(const PoolRun::Sabotage &sabotage) {
  RunCounts counts;
  for (uint64_t seed = 1;; ++seed) {
    Program program = randomProgram(seed, 100);
    program[ShapeField::Tier] = 0;
    if (!runInChild(program, counts, sabotage).empty())
      return program;
  }
}

} // namespace

TEST(PoolPrograms, ASeededBugIsFoundAndMadeSmall) {
  RunCounts counts;
  Program program = failingWith(damageShared);
  EXPECT_EQ(runInChild(program, counts), "") << "it fails for another reason";
  auto fails = [&](const Program &less) { return !runInChild(less, counts, damageShared).empty(); };
  Program small = shrink(program, fails);
  ASSERT_EQ(small.ops.size(), 4u) << printProgram(small);
  EXPECT_EQ(small.ops[0].kind, OpKind::Create);
  EXPECT_TRUE(small.ops[1].kind == OpKind::Step || small.ops[1].kind == OpKind::Write) << printProgram(small);
  EXPECT_EQ(small.ops[2].kind, OpKind::Fork);
  EXPECT_EQ(small.ops[3].kind, OpKind::Truncate);
  EXPECT_EQ(runInChild(small, counts, damageShared), "operation 3, truncate: position 0 of a sequence holds other bytes in layer 0");
  for (size_t i = 0; i < small.ops.size(); ++i) {
    Program less = small;
    less.ops.erase(less.ops.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(fails(less)) << opName(small.ops[i].kind) << " is not needed";
  }
  Program parsed;
  std::string error;
  ASSERT_TRUE(parseProgram(printProgram(small), parsed, error)) << error;
  EXPECT_TRUE(fails(parsed)) << "the printed program can be run again";
}

TEST(PoolPrograms, DeathAndStandstillAreFailures) {
  RunCounts counts;
  Program program = randomProgram(3, 5);
  EXPECT_EQ(runInChild(program, counts), "");
  EXPECT_EQ(runInChild(program, counts, [](const Op &, PoolUnderTest &, const PoolReference &) { std::abort(); }), "the process ended by signal Aborted");
  EXPECT_EQ(runInChild(program, counts, [](const Op &, PoolUnderTest &, const PoolReference &) { std::_Exit(7); }), "the process ended with 7");
  auto stand = [](const Op &, PoolUnderTest &, const PoolReference &) {
    for (;;)
      std::this_thread::sleep_for(std::chrono::seconds(1));
  };
  EXPECT_EQ(runInChild(program, counts, stand, 1), "it does not end");
}

TEST(PoolPrograms, KnownProgramsAgree) {
  std::vector<std::filesystem::path> files;
  if (const char *file = std::getenv("QUIRE_POOL_PROGRAM"))
    files.push_back(file);
  else
    for (const auto &entry : std::filesystem::directory_iterator(QUIRE_POOL_PROGRAMS))
      files.push_back(entry.path());
  ASSERT_FALSE(files.empty());
  for (const std::filesystem::path &file : files) {
    Program program;
    std::string error;
    ASSERT_TRUE(parseProgram(readFile(file), program, error)) << file << ": " << error;
    RunCounts counts;
    EXPECT_EQ(runProgram(program, counts), "") << file;
  }
}
