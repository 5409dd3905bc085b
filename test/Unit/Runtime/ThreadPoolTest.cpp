// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parallel loops: every iteration once, results visible, nested and concurrent calls.
#include "exec/ThreadPool.h"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>

using quire::runtime::ThreadPool;

namespace {

struct Counts {
  std::vector<int64_t> hits; // plain on purpose: the pool must order the writes
  std::atomic<int64_t> smallest{INT64_MAX};
};

void count(void *env, int64_t begin, int64_t end) {
  Counts &counts = *static_cast<Counts *>(env);
  for (int64_t i = begin; i < end; ++i)
    ++counts.hits[static_cast<size_t>(i)];
  int64_t seen = counts.smallest.load();
  if (end != static_cast<int64_t>(counts.hits.size()))
    while (end - begin < seen && !counts.smallest.compare_exchange_weak(seen, end - begin)) {
    }
}

} // namespace

TEST(ThreadPool, RunsEveryIterationOnce) {
  for (int64_t threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t size : {0, 1, 2, 7, 64, 1000, 4099}) {
      for (int64_t grain : {int64_t(-3), int64_t(1), int64_t(5), int64_t(10000)}) {
        Counts counts;
        counts.hits.assign(static_cast<size_t>(size), 0);
        pool.parallel(size, grain, count, &counts);
        EXPECT_EQ(counts.hits, std::vector<int64_t>(static_cast<size_t>(size), 1));
        EXPECT_GE(counts.smallest.load(), std::min(grain, size));
      }
    }
  }
}

TEST(ThreadPool, ManyShortLoops) {
  ThreadPool pool(4);
  Counts counts;
  counts.hits.assign(33, 0);
  for (int i = 0; i < 20000; ++i)
    pool.parallel(33, 1, count, &counts);
  EXPECT_EQ(counts.hits, std::vector<int64_t>(33, 20000));
}

TEST(ThreadPool, LoopsAfterWorkersSleep) {
  ThreadPool pool(3);
  Counts counts;
  counts.hits.assign(8, 0);
  for (int i = 0; i < 200; ++i) {
    pool.parallel(8, 1, count, &counts);
    std::this_thread::sleep_for(std::chrono::microseconds(i % 4 * 40));
  }
  EXPECT_EQ(counts.hits, std::vector<int64_t>(8, 200));
}

TEST(ThreadPool, SlowChunksAreWaitedFor) {
  ThreadPool pool(2);
  struct Env {
    std::atomic<int64_t> done{0};
  } env;
  auto slow = [](void *e, int64_t begin, int64_t end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    static_cast<Env *>(e)->done += end - begin;
  };
  for (int64_t i = 1; i <= 10; ++i) {
    pool.parallel(3, 1, slow, &env);
    EXPECT_EQ(env.done.load(), 3 * i);
  }
}

TEST(ThreadPool, NestedLoopsRunOnTheirThread) {
  ThreadPool pool(3);
  struct Env {
    ThreadPool &pool;
    std::atomic<int64_t> sum{0};
  } env{pool, {}};
  auto inner = [](void *e, int64_t begin, int64_t end) { static_cast<Env *>(e)->sum += end - begin; };
  auto outer = [](void *e, int64_t begin, int64_t end) {
    static constexpr auto run = +[](void *i, int64_t b, int64_t n) { static_cast<Env *>(i)->sum += n - b; };
    for (int64_t i = begin; i < end; ++i)
      static_cast<Env *>(e)->pool.parallel(10, 1, run, e);
  };
  pool.parallel(20, 1, outer, &env);
  EXPECT_EQ(env.sum.load(), 200);
  pool.parallel(5, 1, inner, &env); // and the pool works afterwards
  EXPECT_EQ(env.sum.load(), 205);
}

TEST(ThreadPool, ConcurrentCallersBothFinish) {
  ThreadPool pool(3);
  Counts a, b;
  a.hits.assign(50, 0);
  b.hits.assign(50, 0);
  std::thread other([&] {
    for (int i = 0; i < 3000; ++i)
      pool.parallel(50, 1, count, &b);
  });
  for (int i = 0; i < 3000; ++i)
    pool.parallel(50, 1, count, &a);
  other.join();
  EXPECT_EQ(a.hits, std::vector<int64_t>(50, 3000));
  EXPECT_EQ(b.hits, std::vector<int64_t>(50, 3000));
}

TEST(ThreadPool, CreationAndEndWithoutWork) {
  for (int i = 0; i < 50; ++i)
    ThreadPool pool(1 + i % 4);
}
