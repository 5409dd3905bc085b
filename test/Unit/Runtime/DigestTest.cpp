// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bounds of keys against all scores in f64, and pools that fetch by them.
#include "AllocationCount.h"
#include "CodecPages.h"
#include "TieredPool.h"
#include "compress/StoredRows.h"
#include "residency/Digests.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

using namespace quire;
using namespace quire::runtime;
using namespace quire::test;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Two KV heads with keys of several groups of codes and lanes.
quire_model_layer keyLayer(int64_t element, int64_t tokens, int64_t lanes, int64_t keyDim = 144) {
  quire_model_layer layer = layerOf({2, keyDim, 8, element, lanes, tokens});
  if (element == QUIRE_ELEMENT_I8) {
    layer.value_offset = 2 * tokens * keyDim + 2 * ((keyDim + 127) / 128) * 2 * tokens * 4;
    layer.block_bytes = layer.value_offset + 2 * tokens * 8 + 2 * 2 * tokens * 4;
  }
  return layer;
}

/// The product in f64, channel by channel.
double scoreOf(const float *query, const float *key, int64_t channels) {
  double sum = 0;
  for (int64_t c = 0; c < channels; ++c)
    sum += static_cast<double>(query[c]) * static_cast<double>(key[c]);
  return sum;
}

/// The largest score of any query head, for keys of a token [heads][channels].
double largestScore(const std::vector<float> &query, int64_t queryHeads, const std::vector<float> &keys, const KeyShape &shape) {
  double most = -infinite;
  for (int64_t head = 0; head < queryHeads; ++head)
    most = std::max(most, scoreOf(&query[static_cast<size_t>(head * shape.channels)], &keys[static_cast<size_t>(head / (queryHeads / shape.heads) * shape.channels)], shape.channels));
  return most;
}

std::vector<float> normals(std::mt19937_64 &random, size_t count) {
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float &value : out)
    value = normal(random);
  return out;
}

} // namespace

//===----------------------------------------------------------------------===//
// One digest
//===----------------------------------------------------------------------===//

TEST(Digests, BoundEveryScoreOfAStoredPage) {
  std::mt19937_64 random(6);
  for (int64_t element : {QUIRE_ELEMENT_F32, QUIRE_ELEMENT_F16, QUIRE_ELEMENT_BF16, QUIRE_ELEMENT_I8})
    for (int64_t tokens : {1, 16})
      for (int64_t sharing : {1, 3}) {
        quire_model_layer layer = keyLayer(element, tokens, tokens == 1 ? 1 : 8);
        KeyShape shape{2, layer.key_dim};
        std::vector<char> block(static_cast<size_t>(layer.block_bytes), '\xff');
        std::vector<std::vector<float>> stored;
        int64_t filled = tokens == 1 ? 1 : 11; // what lies behind has no influence
        for (int64_t token = 0; token < filled; ++token) {
          stored.emplace_back(shape.values());
          for (int64_t head = 0; head < 2; ++head) {
            StoredRow row{&layer, tokens, false, head, token};
            storeRow(row, normals(random, static_cast<size_t>(shape.channels)).data(), block.data());
            loadRow(row, block.data(), &stored.back()[static_cast<size_t>(head * shape.channels)]);
          }
        }
        std::vector<float> digest(shape.digestValues()), key(static_cast<size_t>(shape.channels));
        digestBlock(layer, tokens, block.data(), filled, key.data(), digest.data());
        for (int round = 0; round < 50; ++round) {
          std::vector<float> query = normals(random, static_cast<size_t>(2 * sharing * shape.channels));
          query[3] = 0;
          double most = -infinite, bound = digestBound(shape, query.data(), 2 * sharing, digest.data());
          for (const std::vector<float> &keys : stored)
            most = std::max(most, largestScore(query, 2 * sharing, keys, shape));
          if (tokens == 1)
            ASSERT_EQ(bound, most) << "element " << element;
          else
            ASSERT_GT(bound, most) << "element " << element;
        }
      }
}

TEST(Digests, WhatIsNoNumberBoundsNothing) {
  KeyShape shape{1, 3};
  float digest[6];
  const float query[] = {2, 1, -1}, zero[] = {0, 0, 0}, odd[] = {2, NAN, -1};
  auto boundOf = [&](std::initializer_list<float> key, const float *asked) {
    digestReset(shape, digest);
    if (key.size())
      digestAdd(shape, key.begin(), digest);
    return digestBound(shape, asked, 1, digest);
  };
  EXPECT_EQ(boundOf({}, query), -infinite);
  EXPECT_EQ(boundOf({1, -2, 3}, query), -3);
  EXPECT_EQ(boundOf({1, NAN, 3}, query), infinite);
  EXPECT_EQ(boundOf({NAN, -2, 3}, query), infinite) << "also in the first channel";
  EXPECT_EQ(boundOf({INFINITY, -2, INFINITY}, query), infinite) << "infinity less infinity";
  EXPECT_EQ(boundOf({-INFINITY, -2, 3}, query), -infinite);
  EXPECT_EQ(boundOf({INFINITY, NAN, 3}, zero), 0) << "as no score looks there";
  EXPECT_EQ(boundOf({1, -2, 3}, odd), infinite);
}

TEST(Digests, TopIsASortOfBounds) {
  std::mt19937_64 random(7);
  KeyShape shape{2, 5};
  const size_t pages = 40;
  for (int round = 0; round < 100; ++round) {
    std::vector<float> digests(pages * shape.digestValues()), query = normals(random, 4 * 5);
    for (size_t page = 0; page < pages; ++page) {
      float *digest = &digests[page * shape.digestValues()];
      digestReset(shape, digest);
      for (size_t i = 0; i < page % 4; ++i) // the first of four has no key
        digestAdd(shape, normals(random, shape.values()).data(), digest);
    }
    std::vector<double> bounds(pages);
    std::vector<uint32_t> expected, out(pages);
    for (uint32_t page = 0; page < pages; ++page) {
      bounds[page] = digestBound(shape, query.data(), 4, &digests[page * shape.digestValues()]);
      if (page % 4)
        expected.push_back(page);
    }
    std::sort(expected.begin(), expected.end(), [&](uint32_t a, uint32_t b) { return bounds[a] != bounds[b] ? bounds[a] > bounds[b] : a < b; });
    size_t k = random() % (pages + 1);
    expected.resize(std::min(expected.size(), k));
    std::vector<double> room(pages);
    out.resize(digestTop(shape, query.data(), 4, digests.data(), pages, k, room.data(), out.data()));
    ASSERT_EQ(out, expected);
    ASSERT_EQ(room, bounds);
  }
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

namespace {

constexpr int64_t tokensOfBlock = 8, channels = 24, layerCount = 3, queryHeads = 4;

/// One sequence whose keys are written by hand, with a copy of them.
class ByQuery : public ::testing::Test {
protected:
  void make(TieredSettings settings = {}, int64_t element = QUIRE_ELEMENT_F32, int64_t window = 0) {
    settings.digests = true;
    layers.assign(layerCount, keyLayer(element, tokensOfBlock, 4, channels));
    layers[1].window = window;
    info = toyInfo();
    info.block_tokens = tokensOfBlock;
    info.max_positions = -1;
    info.layer_count = layerCount;
    info.layers = layers.data();
    tiered = makeTieredPool(settings, info);
    pool = tiered.pool.get();
    ASSERT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  }

  int32_t blockAt(int64_t place) const {
    const int32_t *table;
    int64_t count;
    EXPECT_EQ(quire_sequence_table(pool, sequence, &table, &count), QUIRE_OK);
    return table[place];
  }

  /// Pins the page of a block and writes keys to tokens [begin, end) of it, and to the copy; the caller unpins.
  void *openAndWrite(int64_t layer, int64_t place, int64_t begin = 0, int64_t end = tokensOfBlock) {
    void *address = nullptr;
    EXPECT_EQ(quire_pool_pin(pool, layer, blockAt(place), 1, &address), QUIRE_OK) << quire_last_error();
    write(address, layer, place, begin, end);
    return address;
  }

  void write(void *address, int64_t layer, int64_t place, int64_t begin = 0, int64_t end = tokensOfBlock) {
    std::vector<float> value(8, 0.0f);
    for (int64_t token = begin; token < end; ++token) {
      std::vector<float> &copy = keys[{layer, place * tokensOfBlock + token}];
      copy = normals(random, 2 * channels);
      float scale = 1 + 0.02f * static_cast<float>(place % 5); // some pages are named more often
      for (int64_t head = 0; head < 2; ++head) {
        float *key = &copy[static_cast<size_t>(head * channels)];
        for (int64_t c = 0; c < channels; ++c)
          key[c] *= scale;
        EXPECT_EQ(quire_block_store_row(&info, layer, address, head, token, key, value.data()), QUIRE_OK) << quire_last_error();
        EXPECT_EQ(quire_block_load_row(&info, layer, address, head, token, key, value.data()), QUIRE_OK);
      }
    }
  }

  void unpin(int64_t layer, int64_t place) { EXPECT_EQ(quire_pool_unpin(pool, layer, blockAt(place)), QUIRE_OK); }

  /// Whole blocks, in all layers.
  void append(int64_t blocks) {
    int64_t length;
    ASSERT_EQ(quire_sequence_length(pool, sequence, &length), QUIRE_OK);
    ASSERT_EQ(quire_sequence_reserve(pool, sequence, blocks * tokensOfBlock), QUIRE_OK) << quire_last_error();
    for (int64_t place = length / tokensOfBlock; place < length / tokensOfBlock + blocks; ++place)
      for (int64_t layer = 0; layer < layerCount; ++layer) {
        openAndWrite(layer, place);
        unpin(layer, place);
      }
    ASSERT_EQ(quire_sequence_commit(pool, sequence, blocks * tokensOfBlock), QUIRE_OK) << quire_last_error();
  }

  void unload(int64_t blocks) {
    ASSERT_EQ(quire_sequence_unload(pool, sequence, 0, blocks * tokensOfBlock), QUIRE_OK) << quire_last_error();
  }

  struct Named {
    std::vector<int64_t> places;
    std::vector<double> bounds;
  };
  Named ask(int64_t layer, const std::vector<float> &query, int64_t count) {
    Named named{std::vector<int64_t>(static_cast<size_t>(count)), std::vector<double>(static_cast<size_t>(count))};
    int64_t found = -1;
    EXPECT_EQ(quire_sequence_prefetch_by_query(pool, sequence, layer, query.data(), queryHeads, count, named.places.data(), named.bounds.data(), &found), QUIRE_OK) << quire_last_error();
    EXPECT_EQ(quire_pool_validate(pool), QUIRE_OK) << quire_last_error();
    named.places.resize(static_cast<size_t>(found));
    named.bounds.resize(static_cast<size_t>(found));
    return named;
  }

  /// What the bound of a block is, from the copy, in f64.
  double boundOf(int64_t layer, int64_t place, const std::vector<float> &query) {
    double most = -infinite;
    for (int64_t head = 0; head < queryHeads; ++head) {
      double sum = 0;
      for (int64_t c = 0; c < channels; ++c) {
        double best = -infinite, q = query[static_cast<size_t>(head * channels + c)];
        for (int64_t token = 0; token < tokensOfBlock; ++token)
          best = std::max(best, q * static_cast<double>(keys[{layer, place * tokensOfBlock + token}][static_cast<size_t>(head / 2 * channels + c)]));
        sum += best;
      }
      most = std::max(most, sum);
    }
    return most;
  }

  /// That the bounds are those of what is written now, and the blocks those with the largest.
  void expectExact(int64_t layer, int64_t blocks, int64_t count) {
    std::vector<float> query = normals(random, queryHeads * channels);
    std::vector<double> bounds;
    for (int64_t place = 0; place < blocks; ++place)
      bounds.push_back(boundOf(layer, place, query));
    std::vector<int64_t> order(static_cast<size_t>(blocks));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      double first = bounds[static_cast<size_t>(a)], second = bounds[static_cast<size_t>(b)];
      return first != second ? first > second : a < b;
    });
    order.resize(static_cast<size_t>(std::min(count, blocks)));
    Named named = ask(layer, query, count);
    ASSERT_EQ(named.places, order);
    for (size_t i = 0; i < order.size(); ++i)
      ASSERT_EQ(named.bounds[i], bounds[static_cast<size_t>(order[i])]) << "block " << order[i];
  }

  quire_paging_stats stats() const {
    quire_paging_stats out = {};
    out.struct_size = sizeof(out);
    EXPECT_EQ(quire_pool_get_paging_stats(pool, &out), QUIRE_OK);
    return out;
  }

  std::mt19937_64 random{11};
  std::vector<quire_model_layer> layers;
  quire_model_info info = {};
  TieredPool tiered;
  quire_pool *pool = nullptr;
  quire_sequence sequence = 0;
  std::map<std::pair<int64_t, int64_t>, std::vector<float>> keys; // by layer and position
};

} // namespace

TEST_F(ByQuery, BoundsAreOfTheKeysWhereverTheyAre) {
  for (int64_t element : {QUIRE_ELEMENT_F32, QUIRE_ELEMENT_F16, QUIRE_ELEMENT_BF16, QUIRE_ELEMENT_I8})
    for (int64_t layersPerPage : {1, 2}) {
      TieredSettings settings;
      settings.fastPages = 12;
      settings.slowPages = 90;
      settings.layersPerPage = layersPerPage;
      make(settings, element);
      append(20);
      for (int64_t layer = 0; layer < layerCount; ++layer)
        expectExact(layer, 20, 5);
      unload(20);
      for (int64_t layer = 0; layer < layerCount; ++layer)
        expectExact(layer, 20, 20);
    }
}

/// Blocks are written anew, here and after they were away, truncated and appended, while queries ask.
TEST_F(ByQuery, ChangedKeysHaveOtherBounds) {
  TieredSettings settings;
  settings.fastPages = 10;
  settings.policy = PolicyKind::Lru;
  make(settings);
  append(12);
  int64_t blocks = 12;
  for (int round = 0; round < 300; ++round) {
    int64_t place = static_cast<int64_t>(random() % static_cast<uint64_t>(blocks)), layer = static_cast<int64_t>(random() % layerCount);
    switch (random() % 6) {
    case 0:
      openAndWrite(layer, place);
      unpin(layer, place);
      break;
    case 1: { // while it is written it may be asked for
      void *address = openAndWrite(layer, place);
      expectExact(layer, blocks, 4);
      write(address, layer, place, 2, 5);
      expectExact(layer, blocks, blocks);
      write(address, layer, place, 0, 3);
      unpin(layer, place);
      break;
    }
    case 2: { // while it is read it may leave no gap either
      void *address;
      ASSERT_EQ(quire_pool_pin(pool, layer, blockAt(place), 0, &address), QUIRE_OK);
      expectExact(layer, blocks, 3);
      unpin(layer, place);
      break;
    }
    case 3:
      unload(blocks);
      break;
    case 4:
      if (blocks > 6) {
        blocks -= 2;
        ASSERT_EQ(quire_sequence_truncate(pool, sequence, blocks * tokensOfBlock), QUIRE_OK);
      }
      break;
    default:
      if (blocks < 16) {
        append(1);
        ++blocks;
      }
    }
    ASSERT_NO_FATAL_FAILURE(expectExact(layer, blocks, 1 + static_cast<int64_t>(random() % 8)));
  }
  EXPECT_GT(stats().write_backs, 20);
  EXPECT_GT(stats().prefetch_issued, 20);
}

TEST_F(ByQuery, NamedPagesAreThereAndDoNotGiveWayToEachOther) {
  TieredSettings settings;
  settings.fastPages = 9;
  make(settings);
  append(14);
  unload(14);
  std::vector<float> query = normals(random, queryHeads * channels);
  Named named = ask(1, query, 8);
  ASSERT_EQ(named.places.size(), 8u);
  EXPECT_EQ(stats().prefetch_issued, 8);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  int64_t hits = stats().hits, misses = stats().misses;
  auto readAll = [&](const Named &all) {
    for (int64_t place : all.places) {
      void *address;
      ASSERT_EQ(quire_pool_pin(pool, 1, blockAt(place), 0, &address), QUIRE_OK);
      std::vector<float> key(channels), value(8);
      ASSERT_EQ(quire_block_load_row(&info, 1, address, 1, 3, key.data(), value.data()), QUIRE_OK);
      const std::vector<float> &copy = keys[{1, place * tokensOfBlock + 3}];
      EXPECT_TRUE(std::equal(key.begin(), key.end(), copy.begin() + channels));
      unpin(1, place);
    }
  };
  readAll(named);
  EXPECT_EQ(stats().hits, hits + 8);
  EXPECT_EQ(stats().prefetch_useful, 8);
  EXPECT_EQ(stats().misses, misses);
  // Some of what another query names is here already, and stays.
  for (int round = 0; round < 30; ++round) {
    Named next = ask(1, normals(random, queryHeads * channels), 8);
    ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
    readAll(next);
    ASSERT_EQ(stats().misses, misses) << round;
  }
  EXPECT_GT(stats().prefetch_issued, 30);
}

/// Pages come and go on a thread of their own while queries ask and pages are written anew.
TEST_F(ByQuery, PagesMoveOnAThread) {
  TieredSettings settings;
  settings.fastPages = 10;
  settings.thread = true;
  settings.policy = PolicyKind::Lru;
  make(settings);
  append(12);
  for (int round = 0; round < 60; ++round) {
    int64_t place = static_cast<int64_t>(random() % 12), layer = static_cast<int64_t>(random() % layerCount);
    if (round % 3 == 0)
      unload(12);
    ASSERT_NO_FATAL_FAILURE(expectExact(layer, 12, 6)); // and six of them are on their way
    openAndWrite(layer, place);
    unpin(layer, place);
    ASSERT_NO_FATAL_FAILURE(expectExact(layer, 12, 12));
  }
  EXPECT_GT(stats().prefetch_issued, 60);
}

TEST_F(ByQuery, BytesUnderWayAreLimited) {
  TieredSettings settings;
  settings.fastPages = 9;
  make(settings);
  append(10);
  unload(10);
  quire_pool_tuning tuning = {};
  tuning.struct_size = sizeof(tuning);
  ASSERT_EQ(quire_pool_get_tuning(pool, &tuning), QUIRE_OK);
  tuning.prefetch_bytes = 3 * static_cast<uint64_t>(stats().page_bytes) + 1;
  ASSERT_EQ(quire_pool_set_tuning(pool, &tuning), QUIRE_OK);
  EXPECT_EQ(ask(0, normals(random, queryHeads * channels), 6).places.size(), 6u);
  EXPECT_EQ(stats().prefetch_issued, 3);
}

TEST_F(ByQuery, OnlyWhatTheNextRowSees) {
  make({}, QUIRE_ELEMENT_F32, 3 * tokensOfBlock);
  append(10);
  std::vector<float> query = normals(random, queryHeads * channels);
  Named named = ask(1, query, 10);
  std::sort(named.places.begin(), named.places.end());
  EXPECT_EQ(named.places, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(ask(0, query, 20).places.size(), 10u) << "a layer without a window";
  EXPECT_TRUE(ask(0, query, 0).places.empty());
}

/// A page has the blocks that any of its layers sees, a layer those that it sees itself.
TEST_F(ByQuery, TheWindowIsTheLayersOwn) {
  TieredSettings settings;
  settings.layersPerPage = 3;
  make(settings, QUIRE_ELEMENT_F32, 3 * tokensOfBlock);
  append(10);
  std::vector<float> query = normals(random, queryHeads * channels);
  Named named = ask(1, query, 10);
  std::sort(named.places.begin(), named.places.end());
  EXPECT_EQ(named.places, (std::vector<int64_t>{7, 8, 9}));
  EXPECT_EQ(ask(2, query, 10).places.size(), 10u);
}

TEST_F(ByQuery, ACodecBoundsWhatWasWritten) {
  TieredSettings settings;
  settings.codec = Codec::Int4G128;
  make(settings);
  append(8);
  unload(8);
  expectExact(2, 8, 8);
  ASSERT_EQ(quire_pool_settle(pool), QUIRE_OK);
  expectExact(2, 8, 8); // what came back is not asked
}

TEST_F(ByQuery, FreedBlocksLeaveNoBounds) {
  TieredSettings settings;
  settings.zeroOnFree = true;
  make(settings);
  append(4);
  unload(4);
  const PageDigests &digests = *tiered.pager()->digests();
  uint32_t block = static_cast<uint32_t>(blockAt(2));
  auto all = [&] { return std::vector<float>(digests.of(1, block), digests.of(1, block) + digests.shape(1).digestValues()); };
  EXPECT_TRUE(digests.knows(1, block));
  std::vector<float> before = all();
  EXPECT_TRUE(std::any_of(before.begin(), before.end(), [](float value) { return value != 0; }));
  ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  EXPECT_FALSE(digests.knows(1, block));
  EXPECT_EQ(all(), std::vector<float>(before.size()));
}

TEST_F(ByQuery, AreCounted) {
  make();
  quire_paging_stats before = stats();
  int64_t blocks = tiered.pager()->blocks();
  EXPECT_EQ(before.digest_bytes, blocks * layerCount * (2 * 2 * channels * 4 + 1));
  EXPECT_GE(before.metadata_bytes, before.digest_bytes);
  EXPECT_EQ(before.digests_made, 0);
  append(2);
  unload(2);
  EXPECT_EQ(stats().digests_made, 2 * layerCount) << "when they leave";
  append(1);
  ask(0, normals(random, queryHeads * channels), 3);
  EXPECT_EQ(stats().digests_made, 2 * layerCount + 1) << "or are asked for";
  ask(0, normals(random, queryHeads * channels), 3);
  EXPECT_EQ(stats().digests_made, 2 * layerCount + 1) << "once";
}

#ifndef QUIRE_CHECK_INVARIANTS
TEST_F(ByQuery, AllocatesNothing) {
  make();
  append(8);
  unload(8);
  std::vector<float> query = normals(random, queryHeads * channels);
  int64_t places[4], found, before = allocations.load();
  ASSERT_EQ(quire_sequence_prefetch_by_query(pool, sequence, 0, query.data(), queryHeads, 4, places, nullptr, &found), QUIRE_OK);
  EXPECT_EQ(allocations.load(), before);
}
#endif

TEST_F(ByQuery, RefusesWhatItCannotDo) {
  make();
  append(4);
  std::vector<float> query(queryHeads * channels, 1.0f);
  int64_t places[4], found = -7;
  auto refused = [&](quire_pool *in, quire_sequence of, int64_t layer, int64_t heads, int64_t count, const std::string &text) {
    EXPECT_EQ(quire_sequence_prefetch_by_query(in, of, layer, query.data(), heads, count, places, nullptr, &found), QUIRE_INVALID_ARGUMENT);
    EXPECT_NE(std::string(quire_last_error()).find(text), std::string::npos) << quire_last_error();
    EXPECT_EQ(found, -7);
  };
  refused(pool, sequence, layerCount, queryHeads, 4, "layer: expected 0 to 2, but got 3");
  refused(pool, sequence, -1, queryHeads, 4, "layer: expected 0 to 2, but got -1");
  refused(pool, sequence, 0, 3, 4, "query_heads: expected a multiple of the layer's 2 KV heads, but got 3");
  refused(pool, sequence, 0, 0, 4, "query_heads: expected a multiple of the layer's 2 KV heads, but got 0");
  refused(pool, sequence, 0, queryHeads, -1, "count: expected at least 0 blocks, but got -1");
  EXPECT_EQ(quire_sequence_prefetch_by_query(pool, sequence, 0, nullptr, queryHeads, 1, places, nullptr, &found), QUIRE_INVALID_ARGUMENT);
  serving::PoolPointer fast = makePool();
  quire_sequence other;
  ASSERT_EQ(quire_sequence_create(fast.get(), &other), QUIRE_OK);
  refused(fast.get(), other, 0, 2, 1, "expected a pool with a slow tier that keeps digests, but got one without");
  ASSERT_EQ(quire_sequence_release(pool, sequence), QUIRE_OK);
  EXPECT_EQ(quire_sequence_prefetch_by_query(pool, sequence, 0, query.data(), queryHeads, 1, places, nullptr, &found), QUIRE_STALE_HANDLE);
}

TEST_F(ByQuery, WhatIsLostIsSaid) {
  make();
  append(4);
  unload(4);
  int64_t loads = 0;
  tiered.tier->fault = [&](const Transfer &transfer) { return transfer.kind == Transfer::Kind::Load && ++loads ? QUIRE_PAGE_LOST : QUIRE_OK; };
  void *address;
  ASSERT_EQ(quire_pool_pin(pool, 0, blockAt(1), 0, &address), QUIRE_PAGE_LOST);
  std::vector<float> query = normals(random, queryHeads * channels);
  int64_t places[4], found;
  EXPECT_EQ(quire_sequence_prefetch_by_query(pool, sequence, 0, query.data(), queryHeads, 4, places, nullptr, &found), QUIRE_PAGE_LOST);
  tiered.tier->fault = {};
  EXPECT_EQ(ask(2, query, 4).places.size(), 4u) << "in another layer nothing is";
}
