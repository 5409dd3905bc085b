// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forks, hand-over and export: what moves no bytes, counted.
#include "SharingPool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace quire::runtime;
using namespace quire::test;

// n = 4 answers to one prompt: only the block in which the prompt ends is copied.
TEST(ZeroCopy, ForksCopyAtMostTheLastBlock) {
  for (int64_t prompt : {32, 40}) {
    SharingPool pool;
    std::vector<int64_t> tokens = tokensFrom(0, prompt);
    quire_sequence source = pool.sequence(0), forks[4];
    ASSERT_TRUE(pool.store(source, 1, tokens));
    for (quire_sequence &fork : forks)
      ASSERT_EQ(quire_sequence_fork(pool.get(), source, prompt, &fork), QUIRE_OK);
    EXPECT_EQ(statsOf(pool.get()).copied_bytes, 0);
    EXPECT_EQ(statsOf(pool.get()).blocks_free, 16 - (prompt + 15) / 16);
    std::vector<std::vector<int64_t>> texts;
    for (int64_t i = 0; i < 4; ++i) {
      texts.push_back(tokens);
      for (int64_t j = 0; j < 10; ++j)
        texts.back().push_back(1000 * i + j);
      ASSERT_TRUE(pool.store(forks[i], 1, texts.back()));
    }
    int64_t copies = prompt % blockTokens ? 4 : 0;
    EXPECT_EQ(statsOf(pool.get()).copied_bytes, copies * quire_model_block_bytes(&toyInfo()));
    pool.expectHolds(source, 1, tokens);
    for (size_t i = 0; i < 4; ++i) {
      pool.expectHolds(forks[i], 1, texts[i]);
      for (int64_t block = 0; block < prompt / blockTokens; ++block)
        EXPECT_EQ(pool.table(forks[i])[static_cast<size_t>(block)], pool.table(source)[static_cast<size_t>(block)]);
    }
  }
}

// A beam that ends gives its copy back; the best one is forked again, without bytes for full blocks.
TEST(ZeroCopy, BeamsReplaceEachOther) {
  SharingPool pool;
  std::vector<int64_t> tokens = tokensFrom(0, 32);
  quire_sequence best = pool.sequence(0);
  ASSERT_TRUE(pool.store(best, 1, tokens));
  for (int round = 0; round < 6; ++round) {
    quire_sequence other = 0;
    ASSERT_EQ(quire_sequence_fork(pool.get(), best, static_cast<int64_t>(tokens.size()), &other), QUIRE_OK);
    std::vector<int64_t> left = tokens;
    for (int i = 0; i < 16; ++i) {
      left.push_back(1);
      tokens.push_back(2 + round);
    }
    ASSERT_TRUE(pool.store(best, 1, left) && pool.store(other, 1, tokens));
    pool.release(best);
    best = other;
    pool.expectHolds(best, 1, tokens);
  }
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, 0);
  EXPECT_EQ(statsOf(pool.get()).blocks_free, 8);
}

TEST(ZeroCopy, HandOverLeavesTheOldHandleStale) {
  SharingPool pool;
  quire_sequence sequence = pool.sequence(0), moved = 0;
  ASSERT_TRUE(pool.store(sequence, 1, tokensFrom(0, 20)));
  std::vector<int32_t> blocks = pool.table(sequence);
  ASSERT_EQ(quire_sequence_move(pool.get(), sequence, &moved), QUIRE_OK);
  EXPECT_EQ(pool.table(moved), blocks);
  EXPECT_EQ(quire_sequence_release(pool.get(), sequence), QUIRE_STALE_HANDLE);
  EXPECT_EQ(statsOf(pool.get()).sequences, 1);
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, 0);
  pool.expectHolds(moved, 1, tokensFrom(0, 20));
}

namespace {

/// Runs in the other process; the exit code says what went wrong.
int readFromOutside(int file, size_t bytes, uint64_t offset, const uint64_t *expected, int ready, int changed) {
  void *memory = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    return 1;
  if (::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) != MAP_FAILED)
    return 2;
  if (::ftruncate(file, 0) == 0)
    return 3;
  // Nor does opening the same file once more help.
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  int again = ::open(path, O_RDWR);
  if (again >= 0 && ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) != MAP_FAILED)
    return 4;
  const char *block = static_cast<const char *>(memory) + offset;
  for (int round = 0; round < 2; ++round) {
    if (std::memcmp(block, &expected[round], sizeof(uint64_t)) != 0)
      return 5 + round;
    char byte = 0;
    if (round == 0 && (::write(ready, &byte, 1) != 1 || ::read(changed, &byte, 1) != 1))
      return 7;
  }
  return 0;
}

} // namespace

TEST(ZeroCopy, AnotherProcessReadsBlocksInPlace) {
  Pool::Options options;
  options.exportable = true;
  SharingPool pool(options);
  std::vector<int64_t> tokens = tokensFrom(0, 40);
  quire_sequence sequence = pool.sequence(0);
  ASSERT_TRUE(pool.store(sequence, 1, tokens));
  int file = -1, ready[2], changed[2];
  ASSERT_EQ(quire_pool_export(pool.get(), &file), QUIRE_OK) << quire_last_error();
  ASSERT_TRUE(::pipe(ready) == 0 && ::pipe(changed) == 0);
  uint64_t offset = 0;
  ASSERT_EQ(quire_pool_block_offset(pool.get(), 0, pool.table(sequence)[1], &offset), QUIRE_OK);
  uint64_t expected[2] = {SharingPool::mark(1, tokens, 16), 0x1234567890abcdefu};
  size_t bytes = static_cast<size_t>(pool.inner().blocksTotal() * pool.inner().blockBytes());
  pid_t child = ::fork();
  if (child == 0) {
    ::munmap(pool.inner().layerBase(0), bytes); // only the descriptor is left to it
    ::_exit(readFromOutside(file, bytes, offset, expected, ready[1], changed[0]));
  }
  ::close(ready[1]);
  char byte = 0;
  if (::read(ready[0], &byte, 1) == 1) { // what is stored now is seen without another export
    std::memcpy(pool.place(sequence, 16), &expected[1], sizeof(uint64_t));
    ASSERT_EQ(::write(changed[1], &byte, 1), 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, 0);
  for (int descriptor : {file, ready[0], changed[0], changed[1]})
    ::close(descriptor);
}

TEST(ZeroCopy, ExportedPoolsDecodeAsOthersDo) {
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = 64 << 10;
  options.exportable = 1;
  quire_pool *pool = nullptr;
  ASSERT_EQ(quire_pool_create(&toyInfo(), &options, &pool), QUIRE_OK) << quire_last_error();
  quire::serving::PoolPointer owner(pool);
  quire::serving::ModelPointer model = makeModel();
  quire::serving::ExecutorPointer executor = makeExecutor(model.get(), pool);
  quire_sequence sequence = 0;
  ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  std::vector<int64_t> tokens(20, 3);
  int64_t count = 20, last = 19;
  std::vector<float> logits(static_cast<size_t>(toyInfo().vocabulary));
  quire_batch batch = {sizeof(batch), 1, &sequence, &count, tokens.data(), &last, 1};
  ASSERT_EQ(quire_executor_step(executor.get(), &batch, logits.data()), QUIRE_OK);
  EXPECT_EQ(logits, toyLogits(tokens));
}

TEST(ZeroCopy, OnlyExportablePoolsAreExported) {
  SharingPool pool;
  int file = -1;
  uint64_t offset = 0;
  EXPECT_EQ(quire_pool_export(pool.get(), &file), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(file, -1);
  EXPECT_EQ(quire_pool_block_offset(pool.get(), 3, 0, &offset), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_pool_block_offset(pool.get(), 0, 16, &offset), QUIRE_INVALID_ARGUMENT);
}
