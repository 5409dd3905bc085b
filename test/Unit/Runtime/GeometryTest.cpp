// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for block sizes on known numbers, and the measurements that feed them.
#include "pool/Geometry.h"
#include "pool/TransferRates.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

using namespace quire::runtime;

namespace {

constexpr uint64_t KiB = 1024, MiB = 1024 * KiB;

TEST(Geometry, BlocksByCache) {
  EXPECT_EQ(blockBytesByCache(32 * MiB, 4), 4 * MiB);
  EXPECT_EQ(blockBytesByCache(2 * MiB, 4), 256 * KiB);
  EXPECT_EQ(blockBytesByCache(2 * MiB, 3), 256 * KiB) << "341 KiB rounded down";
  EXPECT_EQ(blockBytesByCache(64 * MiB, 1), 4 * MiB) << "the most";
  EXPECT_EQ(blockBytesByCache(1 * MiB, 1000), 4 * KiB) << "the least";
  EXPECT_EQ(blockBytesByCache(0, 4), 0u) << "an unknown cache";
  EXPECT_EQ(blockBytesByCache(2 * MiB, 0), 0u);
  EXPECT_EQ(clampPow2(0, 1, 8), 1u);
  EXPECT_EQ(clampPow2(UINT64_MAX, 1, uint64_t(1) << 63), uint64_t(1) << 63);
}

/// A temporary folder in the form of sysfs.
class CacheFolder {
public:
  CacheFolder() {
    std::string name = ::testing::TempDir() + "quire-cache-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~CacheFolder() { std::filesystem::remove_all(path); }
  void add(int index, const std::string &level, const std::string &type, const std::string &size) {
    std::string cache = path + "/index" + std::to_string(index);
    std::filesystem::create_directory(cache);
    std::ofstream(cache + "/level") << level << "\n";
    std::ofstream(cache + "/type") << type << "\n";
    std::ofstream(cache + "/size") << size << "\n";
  }
  std::string path;
};

TEST(Geometry, CacheSizeFromTheSystem) {
  CacheFolder folder;
  EXPECT_EQ(level2CacheBytesFrom(folder.path), 0u);
  folder.add(0, "1", "Data", "32K");
  EXPECT_EQ(level2CacheBytesFrom(folder.path), 0u);
  folder.add(1, "2", "Instruction", "64K");
  folder.add(2, "2", "Unified", "1280K");
  EXPECT_EQ(level2CacheBytesFrom(folder.path), 1280 * KiB);
  folder.add(2, "2", "Unified", "2M");
  EXPECT_EQ(level2CacheBytesFrom(folder.path), 2 * MiB);
  for (const char *odd : {"", "many", "12X", "99999999999999999999K"}) {
    folder.add(2, "2", "Unified", odd);
    EXPECT_EQ(level2CacheBytesFrom(folder.path), 0u) << odd;
  }
  uint64_t here = level2CacheBytes();
  EXPECT_TRUE(here == 0 || (here >= 64 * KiB && here <= 1024 * MiB)) << here;
}

const SizeRate measured[] = {{4 * KiB, 2.2e9},   {16 * KiB, 3.9e9}, {64 * KiB, 3.7e9},
                             {256 * KiB, 4.4e9}, {1 * MiB, 4.5e9},  {4 * MiB, 4.6e9}};

TEST(Geometry, BlocksByTransfer) {
  EXPECT_EQ(blockBytesByTransfer(measured, 6), 16 * KiB);
  EXPECT_EQ(blockBytesByTransfer(measured, 6, 0.95), 256 * KiB);
  EXPECT_EQ(blockBytesByTransfer(measured, 6, 1), 4 * MiB);
  EXPECT_EQ(blockBytesByTransfer(measured, 0), 0u);
}

TEST(Geometry, WasteIsHalfABlock) {
  EXPECT_EQ(expectedWasteTokens(1), 0);
  EXPECT_EQ(expectedWasteTokens(16), 7.5);
  // Against lengths drawn at random.
  std::mt19937 random(2);
  double unused = 0;
  for (int i = 0; i < 100000; ++i)
    unused += 15 - (random() % 4096 + 15) % 16;
  EXPECT_NEAR(unused / 100000, expectedWasteTokens(16), 0.05);
  EXPECT_EQ(blockTokensByWaste(90, 0.1), 21) << "10 slots beside 90 tokens";
  EXPECT_EQ(blockTokensByWaste(90, 0), 1);
  EXPECT_EQ(blockTokensByWaste(0, 0.1), 1);
  for (double mean : {3.0, 500.0, 4000.0})
    for (double share : {0.01, 0.05, 0.2}) {
      int64_t tokens = blockTokensByWaste(mean, share);
      EXPECT_LE(expectedWasteTokens(tokens) / (mean + expectedWasteTokens(tokens)), share + 1e-12);
      EXPECT_GT(expectedWasteTokens(tokens + 1) / (mean + expectedWasteTokens(tokens + 1)), share);
    }
}

TEST(Geometry, BlocksByMetadata) {
  EXPECT_EQ(blockBytesByMetadata(128), 2560u);
  EXPECT_EQ(blockBytesByMetadata(24, 0.01), 2400u);
  EXPECT_EQ(blockBytesByMetadata(0), 0u);
}

GeometryRequest requestOf(uint64_t tokenBytes) {
  GeometryRequest request;
  request.tokenBytes = tokenBytes;
  request.l2Bytes = 2 * MiB;
  request.concurrency = 4;
  request.rates = measured;
  request.rateCount = 6;
  request.meanTokens = 1000;
  return request;
}

TEST(Geometry, AllRulesTogether) {
  GeometryChoice choice = chooseGeometry(requestOf(1 * KiB));
  EXPECT_EQ(choice.byCache, 256);
  EXPECT_EQ(choice.byTransfer, 16);
  EXPECT_EQ(choice.byMetadata, 1);
  EXPECT_EQ(choice.byWaste, 128) << "223 tokens";
  EXPECT_EQ(choice.blockTokens, 16) << "the smallest that moves well";
  EXPECT_EQ(choice.blockBytes, 16 * KiB);
  EXPECT_EQ(choice.decided, GeometryRule::Transfer);

  GeometryRequest request = requestOf(1 * KiB);
  request.rateCount = 0;
  choice = chooseGeometry(request);
  EXPECT_EQ(choice.decided, GeometryRule::Waste) << "256 by the cache, but 128 by waste";
  EXPECT_EQ(choice.blockTokens, 128);

  request.meanTokens = 0;
  choice = chooseGeometry(request);
  EXPECT_EQ(choice.decided, GeometryRule::Cache);
  EXPECT_EQ(choice.blockTokens, 256);

  request.l2Bytes = 0;
  request.metadataBytes = 4096;
  choice = chooseGeometry(request);
  EXPECT_EQ(choice.decided, GeometryRule::Metadata);
  EXPECT_EQ(choice.blockTokens, 128) << "80 KiB, rounded up";

  request.metadataBytes = 0;
  choice = chooseGeometry(request);
  EXPECT_EQ(choice.decided, GeometryRule::Least);
  EXPECT_EQ(choice.blockTokens, 1);
  request.lanes = 16;
  choice = chooseGeometry(request);
  EXPECT_EQ(choice.decided, GeometryRule::Lanes);
  EXPECT_EQ(choice.blockTokens, 16);
  EXPECT_STREQ(geometryRuleName(choice.decided), "lanes");
}

TEST(Geometry, TokensLargerThanBlocks) {
  GeometryChoice choice = chooseGeometry(requestOf(819200)); // all layers of a 13B shape
  EXPECT_EQ(choice.blockTokens, 1);
  EXPECT_EQ(choice.byCache, 1);
  EXPECT_EQ(choice.blockBytes, 819200u);
}

TEST(Geometry, AdaptiveGrowth) {
  EXPECT_EQ(adaptiveBlockBytes(4 * KiB, 4 * MiB, 0), 4 * KiB);
  EXPECT_EQ(adaptiveBlockBytes(4 * KiB, 4 * MiB, 1023), 4 * KiB);
  EXPECT_EQ(adaptiveBlockBytes(4 * KiB, 4 * MiB, 1024), 8 * KiB);
  EXPECT_EQ(adaptiveBlockBytes(4 * KiB, 4 * MiB, 10240), 4 * MiB);
  EXPECT_EQ(adaptiveBlockBytes(4 * KiB, 4 * MiB, 32768), 4 * MiB) << "16 TiB without a cap";
  EXPECT_EQ(adaptiveBlockBytes(4 * KiB, 4 * MiB, INT64_MAX), 4 * MiB);
  EXPECT_EQ(adaptiveBlockBytes(4 * KiB, 4 * MiB, 64 * 1024), 4 * MiB) << "more doublings than bits";
  EXPECT_EQ(adaptiveBlockBytes(8 * MiB, 4 * MiB, 0), 4 * MiB);
  EXPECT_EQ(adaptiveBlockBytes(1, uint64_t(1) << 63, 63 * 1024), uint64_t(1) << 63);
}

TEST(Geometry, PagesOfDocuments) {
  PageClasses classes;
  EXPECT_EQ(tokensInPage(classes.chapter, 20480), 51);
  EXPECT_EQ(tokensInPage(classes.paragraph, 20480), 3);
  EXPECT_EQ(tokensInPage(classes.chapter, 4096), 256);
  EXPECT_EQ(tokensInPage(classes.paragraph, 4096), 16);
  EXPECT_EQ(documentPageBytes(classes, 4096, 1000), classes.chapter);
  EXPECT_EQ(documentPageBytes(classes, 4096, 240), classes.paragraph);
  EXPECT_EQ(documentPageBytes(classes, 4096, 241), classes.chapter) << "16 paragraphs are as large";
  EXPECT_EQ(documentPageBytes(classes, 20480, 46), classes.chapter) << "51 tokens, although 16 paragraphs hold 48";
  EXPECT_EQ(documentPageBytes(classes, 20480, 45), classes.paragraph);
  EXPECT_EQ(documentPageBytes(classes, 100000, 1), classes.chapter) << "a paragraph holds no token";
}

TEST(TransferRates, CopiesOfAllSizes) {
  RateOptions options;
  options.bytes = 1 * MiB;
  options.sourceBytes = 4 * MiB;
  options.repetitions = 2;
  std::vector<uint64_t> sizes = blockSizes(4 * KiB, 64 * KiB);
  ASSERT_EQ(sizes.size(), 5u);
  EXPECT_EQ(blockSizes().size(), 11u) << "4 KiB to 4 MiB";
  std::vector<SizeRate> rates;
  ASSERT_TRUE(measureCopy(sizes, options, rates).ok());
  ASSERT_EQ(rates.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(rates[i].bytes, sizes[i]);
    EXPECT_GT(rates[i].bytesPerSecond, 1e6);
  }
}

/// Advances with each batch: 100 us for each transfer, and 1 GB/s.
class SlowClock final : public Clock {
public:
  int64_t now() const override { return time; }
  void sleepUntil(int64_t until) override { time = std::max(time, until); }
  int64_t time = 0;
};

class SlowTier final : public Tier {
public:
  SlowTier(uint64_t pageBytes, uint32_t slots, SlowClock &clock) : Tier("slow", slots, pageBytes), clock_(clock) {}
  void run(Transfer *const *transfers, size_t count) override {
    for (size_t i = 0; i < count; ++i) {
      if (transfers[i]->kind == Transfer::Kind::Load && tags_[transfers[i]->slot] != transfers[i]->tag)
        transfers[i]->status = failure(QUIRE_PAGE_LOST, "another content");
      if (transfers[i]->kind == Transfer::Kind::Store)
        tags_[transfers[i]->slot] = transfers[i]->tag;
      clock_.time += 100000 + static_cast<int64_t>(pageBytes());
    }
  }

private:
  SlowClock &clock_;
  uint64_t tags_[64] = {};
};

TEST(TransferRates, LoadsFromATier) {
  SlowClock clock;
  RateOptions options;
  options.bytes = 2 * MiB;
  std::vector<SizeRate> rates;
  auto make = [&](uint64_t pageBytes) { return std::make_unique<SlowTier>(pageBytes, 64, clock); };
  ASSERT_TRUE(measureTier(blockSizes(), options, clock, make, rates).ok());
  ASSERT_EQ(rates.size(), 11u);
  for (const SizeRate &rate : rates)
    EXPECT_NEAR(rate.bytesPerSecond, static_cast<double>(rate.bytes) * 1e9 / (100000 + static_cast<double>(rate.bytes)),
                1);
  EXPECT_EQ(blockBytesByTransfer(rates.data(), rates.size()), 512 * KiB) << "84 % of 1 GB/s, where 256 KiB give 72 %";

  auto full = [&](uint64_t pageBytes) { return std::make_unique<SlowTier>(pageBytes, 0, clock); };
  EXPECT_EQ(measureTier({4096}, options, clock, full, rates).code(), QUIRE_NO_SPACE);
  auto wrong = [&](uint64_t) { return std::make_unique<SlowTier>(8192, 4, clock); };
  EXPECT_EQ(measureTier({4096}, options, clock, wrong, rates).code(), QUIRE_INVALID_ARGUMENT);
}

} // namespace
