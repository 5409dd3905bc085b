// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pools of pages of several sizes through the C interface: content through growth, release and compaction, holds, sizes, refusals.
#include "ToyFolder.h"
#include "quire/config.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>

using namespace quire::test;

namespace {

struct Destroy {
  void operator()(quire_sized_pool *pool) const { quire_sized_pool_destroy(pool); }
};
using PoolPointer = std::unique_ptr<quire_sized_pool, Destroy>;

quire_sized_pool_options optionsOf(uint64_t bytes, uint64_t tokenBytes, int64_t sizes = QUIRE_SIZES_GROW) {
  quire_sized_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = bytes;
  options.token_bytes = tokenBytes;
  options.sizes = sizes;
  return options;
}

PoolPointer made(const quire_sized_pool_options &options) {
  quire_sized_pool *pool = nullptr;
  EXPECT_EQ(quire_sized_pool_create(&options, &pool), QUIRE_OK) << quire_last_error();
  return PoolPointer(pool);
}

template <typename Out, typename Call>
Out resultOf(Call call) {
  Out out = {};
  out.struct_size = sizeof(out);
  EXPECT_EQ(call(&out), QUIRE_OK) << quire_last_error();
  return out;
}

quire_sized_pool_stats statsOf(const PoolPointer &pool) {
  return resultOf<quire_sized_pool_stats>([&](quire_sized_pool_stats *out) { return quire_sized_pool_get_stats(pool.get(), out); });
}

quire_sized_sequence_stats statsOf(const PoolPointer &pool, quire_sized_sequence sequence) {
  return resultOf<quire_sized_sequence_stats>([&](quire_sized_sequence_stats *out) { return quire_sized_sequence_get_stats(pool.get(), sequence, out); });
}

quire_sized_page pageOf(const PoolPointer &pool, quire_sized_sequence sequence, int64_t page) {
  return resultOf<quire_sized_page>([&](quire_sized_page *out) { return quire_sized_sequence_page(pool.get(), sequence, page, out); });
}

quire_sized_sequence newSequence(const PoolPointer &pool) {
  quire_sized_sequence sequence = 0;
  EXPECT_EQ(quire_sized_sequence_create(pool.get(), &sequence), QUIRE_OK);
  return sequence;
}

} // namespace

TEST(SizedPool, PagesGrowAsTheirSequence) {
  PoolPointer pool = made(optionsOf(64 << 20, 1024));
  quire_sized_sequence sequence = newSequence(pool);
  for (int i = 0; i < 50; ++i)
    ASSERT_EQ(quire_sized_sequence_append(pool.get(), sequence, 100), QUIRE_OK) << quire_last_error();
  quire_sized_sequence_stats stats = statsOf(pool, sequence);
  EXPECT_EQ(stats.length, 5000);
  for (int64_t i = 0; i < stats.pages; ++i) {
    quire_sized_page page = pageOf(pool, sequence, i);
    EXPECT_EQ(page.bytes, uint64_t(4096) << (page.first / 1024));
    EXPECT_EQ(page.slots, static_cast<int64_t>(page.bytes / 1024));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(page.address) % page.bytes, 0u);
  }
  quire_sized_pool_options never = optionsOf(64 << 20, 1024);
  never.double_every = -1;
  PoolPointer flat = made(never);
  quire_sized_sequence other = newSequence(flat);
  ASSERT_EQ(quire_sized_sequence_append(flat.get(), other, 4000), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(flat, other).pages, 1000);
}

TEST(SizedPool, ChaptersAndParagraphs) {
  PoolPointer pool = made(optionsOf(64 << 20, 4096, QUIRE_SIZES_DOCUMENT));
  quire_sized_sequence sequence = newSequence(pool);
  ASSERT_EQ(quire_sized_sequence_append(pool.get(), sequence, 600), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool, sequence).pages, 8);
  EXPECT_EQ(pageOf(pool, sequence, 1).bytes, 1u << 20);
  EXPECT_EQ(pageOf(pool, sequence, 2).bytes, 64u << 10);
  ASSERT_EQ(quire_sized_sequence_truncate(pool.get(), sequence, 256), QUIRE_OK);
  EXPECT_EQ(statsOf(pool, sequence).pages, 1);
  EXPECT_EQ(statsOf(pool).bytes_free, 63u << 20);
}

/// Random sequences, of which each token is written once, with a copy.
TEST(SizedPool, ContentSurvivesGrowthAndCompaction) {
  for (int64_t sizes : {QUIRE_SIZES_GROW, QUIRE_SIZES_DOCUMENT}) {
    constexpr int64_t tokenBytes = 200;
    quire_sized_pool_options options = optionsOf(1 << 20, tokenBytes, sizes);
    options.base = 1 << 10;
    options.double_every = 40;
    options.max = 32 << 10;
    options.chapter_page = 16 << 10;
    options.paragraph_page = 1 << 10;
    PoolPointer pool = made(options);
    std::map<quire_sized_sequence, std::vector<uint64_t>> copies;
    std::map<quire_sized_sequence, int> holds;
    std::mt19937_64 random(5);
    int64_t moved = 0, refused = 0;
    auto at = [&](quire_sized_sequence sequence, int64_t position) {
      int64_t page = -1, slot = -1;
      EXPECT_EQ(quire_sized_sequence_locate(pool.get(), sequence, position, &page, &slot), QUIRE_OK);
      return static_cast<char *>(pageOf(pool, sequence, page).address) + slot * tokenBytes;
    };
    for (int i = 0; i < 4000; ++i) {
      if (copies.size() < 3 || (copies.size() < 12 && random() % 8 == 0)) {
        copies[newSequence(pool)];
        continue;
      }
      auto chosen = copies.begin();
      std::advance(chosen, random() % copies.size());
      auto &[sequence, copy] = *chosen;
      switch (random() % 12) {
      case 0:
        EXPECT_EQ(quire_sized_sequence_release(pool.get(), sequence), QUIRE_OK);
        EXPECT_EQ(quire_sized_sequence_append(pool.get(), sequence, 1), QUIRE_STALE_HANDLE);
        holds.erase(sequence);
        copies.erase(chosen);
        break;
      case 1:
        copy.resize(random() % (copy.size() + 1));
        EXPECT_EQ(quire_sized_sequence_truncate(pool.get(), sequence, static_cast<int64_t>(copy.size())), QUIRE_OK);
        break;
      case 2:
        EXPECT_EQ(quire_sized_sequence_hold(pool.get(), sequence), QUIRE_OK);
        ++holds[sequence];
        break;
      case 3:
        EXPECT_EQ(quire_sized_sequence_let_go(pool.get(), sequence), holds[sequence] > 0 ? QUIRE_OK : QUIRE_INVALID_ARGUMENT);
        holds[sequence] -= holds[sequence] > 0;
        break;
      case 4: {
        std::map<quire_sized_sequence, std::pair<int64_t, const void *>> before;
        for (auto &[other, tokens] : copies)
          if (!tokens.empty())
            before[other] = {statsOf(pool, other).generation, pageOf(pool, other, statsOf(pool, other).pages - 1).address};
        quire_compaction done = {sizeof(done), 0, 0};
        uint64_t bytes = statsOf(pool).bytes_free;
        ASSERT_EQ(quire_sized_pool_compact(pool.get(), &done), QUIRE_OK);
        EXPECT_EQ(statsOf(pool).bytes_free, bytes);
        moved += done.blocks;
        for (auto &[other, was] : before) {
          bool same = statsOf(pool, other).generation == was.first;
          EXPECT_TRUE(same || holds[other] == 0) << "held pages do not move";
          EXPECT_TRUE(!same || pageOf(pool, other, statsOf(pool, other).pages - 1).address == was.second);
        }
        break;
      }
      default: {
        int64_t tokens = static_cast<int64_t>(random() % 120);
        quire_status status = quire_sized_sequence_append(pool.get(), sequence, tokens);
        refused += status == QUIRE_OUT_OF_BLOCKS;
        if (status != QUIRE_OK)
          break;
        for (int64_t k = 0; k < tokens; ++k) {
          copy.push_back(random());
          std::memcpy(at(sequence, static_cast<int64_t>(copy.size()) - 1), &copy.back(), 8);
        }
      }
      }
      ASSERT_EQ(quire_sized_pool_validate(pool.get()), QUIRE_OK) << quire_last_error();
      if (i % 20)
        continue;
      int64_t tokens = 0;
      for (auto &[other, all] : copies) {
        ASSERT_EQ(statsOf(pool, other).length, static_cast<int64_t>(all.size()));
        tokens += static_cast<int64_t>(all.size());
        for (size_t k = 0; k < all.size(); ++k)
          ASSERT_EQ(std::memcmp(at(other, static_cast<int64_t>(k)), &all[k], 8), 0) << k;
      }
      EXPECT_EQ(statsOf(pool).tokens, tokens);
      EXPECT_EQ(statsOf(pool).sequences, static_cast<int64_t>(copies.size()));
    }
    EXPECT_GT(moved, 50);
    EXPECT_GT(refused, 10);
    EXPECT_EQ(statsOf(pool).compacted_pages, moved);
    EXPECT_GT(statsOf(pool).failures_with_room, 0);
  }
}

TEST(SizedPool, WrongSizesAreRefused) {
  auto refused = [](const quire_sized_pool_options &options, quire_status code, const std::string &text) {
    quire_sized_pool *pool = nullptr;
    EXPECT_EQ(quire_sized_pool_create(&options, &pool), code);
    EXPECT_EQ(std::string(quire_last_error()), text);
    EXPECT_EQ(pool, nullptr);
  };
  quire_sized_pool_options options = optionsOf(1 << 20, 0);
  refused(options, QUIRE_INVALID_ARGUMENT, "token_bytes: expected 1 to the 4194304 of the largest page, but got 0");
  options.token_bytes = (4 << 20) + 1;
  refused(options, QUIRE_INVALID_ARGUMENT, "token_bytes: expected 1 to the 4194304 of the largest page, but got 4194305");
  options = optionsOf(1 << 20, 100);
  options.base = 32;
  refused(options, QUIRE_INVALID_ARGUMENT, "base: expected a page of 64 to 1099511627776 bytes, but got 32");
  options.base = 8192;
  options.max = 4096;
  refused(options, QUIRE_INVALID_ARGUMENT, "base: expected at most the 4096 bytes of max, but got 8192");
  options = optionsOf(1 << 20, 100, QUIRE_SIZES_DOCUMENT);
  options.chapter_page = 4096;
  refused(options, QUIRE_INVALID_ARGUMENT, "paragraph_page: expected at most the 4096 bytes of chapter_page, but got 65536");
  options.sizes = 2;
  refused(options, QUIRE_INVALID_ARGUMENT, "sizes: expected 0 or 1, but got 2");
  options = optionsOf(1000, 100);
  refused(options, QUIRE_OUT_OF_BLOCKS, "bytes: expected room for a page of 4096, but got 1000");
  options.max_pages = -1;
  refused(options, QUIRE_INVALID_ARGUMENT, "max_pages: expected at least 0, but got -1");
  options = optionsOf(uint64_t(1) << 42, 100);
  options.base = 64;
  refused(options, QUIRE_INVALID_ARGUMENT, "bytes: expected at most 2147483648 pages of the smallest size, but got 68719476736");
  options = optionsOf(uint64_t(1) << 42, 100);
  quire_sized_pool *pool = nullptr;
  EXPECT_EQ(quire_sized_pool_create(&options, &pool), QUIRE_OUT_OF_MEMORY);
  EXPECT_NE(std::string(quire_last_error()).find("expected a pool that fits into the "), std::string::npos);
  options = {};
  EXPECT_EQ(quire_sized_pool_create(&options, &pool), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sized_pool_create(nullptr, &pool), QUIRE_INVALID_ARGUMENT);
  quire_sized_pool_destroy(nullptr);
}

TEST(SizedPool, WrongCallsChangeNothing) {
  quire_sized_pool_options options = optionsOf(1 << 20, 1024);
  options.max_pages = 5;
  PoolPointer pool = made(options);
  quire_sized_sequence sequence = newSequence(pool);
  ASSERT_EQ(quire_sized_sequence_append(pool.get(), sequence, 10), QUIRE_OK);
  int64_t page = -1, slot = -1;
  quire_sized_page found = {};
  found.struct_size = sizeof(found);
  EXPECT_EQ(quire_sized_sequence_append(pool.get(), sequence, -1), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sized_sequence_append(pool.get(), sequence, 11), QUIRE_TOO_LONG) << "a page holds four";
  EXPECT_EQ(quire_sized_sequence_append(pool.get(), sequence, INT64_MAX), QUIRE_TOO_LONG);
  EXPECT_EQ(std::string(quire_last_error()), "expected fewer tokens than 9223372036854775807, but got more");
  EXPECT_EQ(quire_sized_sequence_truncate(pool.get(), sequence, 11), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(quire_last_error()), "expected a length of 0 to 10, but got 11");
  EXPECT_EQ(quire_sized_sequence_page(pool.get(), sequence, 3, &found), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(quire_last_error()), "expected one of the sequence's 3 pages, but got number 3");
  EXPECT_EQ(quire_sized_sequence_locate(pool.get(), sequence, 12, &page, &slot), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(quire_last_error()), "expected a position below 12, but got 12");
  EXPECT_EQ(quire_sized_sequence_let_go(pool.get(), sequence), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(quire_last_error()), "the sequence is not held");
  EXPECT_EQ(quire_sized_sequence_release(pool.get(), 0), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(quire_last_error()), "not a sequence handle of this pool");
  EXPECT_EQ(statsOf(pool, sequence).length, 10);
  ASSERT_EQ(quire_sized_sequence_release(pool.get(), sequence), QUIRE_OK);
  EXPECT_EQ(quire_sized_sequence_release(pool.get(), sequence), QUIRE_STALE_HANDLE);
  quire_sized_sequence next = newSequence(pool);
  EXPECT_NE(next, sequence);
  EXPECT_EQ(quire_sized_sequence_hold(pool.get(), sequence), QUIRE_STALE_HANDLE);
}

/// A program with an older header knows fewer options.
/// Sequences have room for all of their pages from the beginning, and there are no more than the pool has.
TEST(SizedPool, APoolBoundsThePagesOfASequence) {
  for (int64_t most : {int64_t(257), int64_t(1) << 40, INT64_MAX}) {
    quire_sized_pool_options options = optionsOf(1 << 20, 4096);
    options.base = options.max = 4096;
    options.max_pages = most;
    PoolPointer pool = made(options);
    quire_sized_sequence sequence = 0;
    ASSERT_EQ(quire_sized_sequence_create(pool.get(), &sequence), QUIRE_OK) << most << ": " << quire_last_error();
    EXPECT_EQ(quire_sized_sequence_append(pool.get(), sequence, 256), QUIRE_OK);
    EXPECT_EQ(quire_sized_sequence_append(pool.get(), sequence, 1), QUIRE_OUT_OF_BLOCKS) << "it is the pool that is full";
  }
}

TEST(SizedPool, SizesOfAConfiguration) {
  TemporaryFolder folder;
  std::string path = folder / "c.yaml";
  writeFile(path, "block: {tokens: 32, adaptive: {base: 8KiB, double_every: 0}}\ndocument: {paragraph_page: 32KiB}\nprefetch: {window_size: 5}\n");
  quire_sized_pool_options options = optionsOf(7, 8, QUIRE_SIZES_DOCUMENT);
  options.max_pages = 9;
  ASSERT_EQ(quire_config_read_sizes(path.c_str(), &options), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(options.base, 8u << 10);
  EXPECT_EQ(options.double_every, -1) << "never";
  EXPECT_EQ(options.max, 4u << 20);
  EXPECT_EQ(options.chapter_page, 1u << 20);
  EXPECT_EQ(options.paragraph_page, 32u << 10);
  EXPECT_EQ(options.bytes + options.token_bytes + static_cast<uint64_t>(options.max_pages + options.sizes), 7u + 8 + 9 + 1);
  EXPECT_EQ(options.struct_size, sizeof(options));
  options = optionsOf(7, 8);
  options.struct_size = offsetof(quire_sized_pool_options, chapter_page);
  ASSERT_EQ(quire_config_read_sizes(path.c_str(), &options), QUIRE_OK);
  EXPECT_EQ(options.base, 8u << 10);
  EXPECT_EQ(options.paragraph_page, 0u);
  EXPECT_EQ(options.struct_size, offsetof(quire_sized_pool_options, chapter_page));
  writeFile(path, "block:\n  adaptive:\n    double_every: some\n");
  EXPECT_EQ(quire_config_read_sizes(path.c_str(), &options), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(quire_last_error()), path + ":3:19: block.adaptive.double_every: expected a whole number of 0 to 1000000, but got 'some'");
  writeFile(path, "block: {adaptive: {base: 8MiB}}\n");
  EXPECT_EQ(quire_config_read_sizes(path.c_str(), &options), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(std::string(quire_last_error()), path + ":1:20: block.adaptive.base: expected at most block.adaptive.max, but got more");
  EXPECT_EQ(options.base, 8u << 10);
  EXPECT_EQ(quire_config_read_sizes((folder / "none").c_str(), &options), QUIRE_IO_ERROR);
  EXPECT_EQ(quire_config_read_sizes(nullptr, &options), QUIRE_INVALID_ARGUMENT);
}
