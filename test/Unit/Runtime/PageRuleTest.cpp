// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many layers share a page, where a rule decides.
#include "pool/PageRule.h"
#include "pool/Geometry.h"
#include "TestPool.h"
#include "tier/TierOptions.h"

using namespace quire;
using namespace quire::runtime;
using namespace quire::test;

namespace {

/// Layers of 64 KiB a block.
struct WideModel {
  explicit WideModel(int64_t count) : layers(static_cast<size_t>(count), {8, 64, 64, QUIRE_ELEMENT_F32, 16, 32768, 65536, 0, 0, 0}), info(toyInfo()) {
    info.layers = layers.data();
    info.layer_count = count;
    info.block_tokens = 16;
  }
  std::vector<quire_model_layer> layers;
  quire_model_info info;
};

int64_t byCache(const quire_model_info &info, uint64_t l2Bytes, int64_t concurrency) {
  int64_t layers = 0;
  EXPECT_TRUE(layersByCache(info, l2Bytes, concurrency, layers).ok());
  return layers;
}

int64_t byTransfer(const quire_model_info &info, int64_t latency, Codec codec = Codec::None) {
  VirtualClock clock;
  TierOptions options;
  options.kind = TierOptions::Kind::Throttled;
  options.throttle.latency = latency;
  options.throttle.bandwidth = uint64_t(2) << 30;
  options.commit = false;
  auto make = [&](uint64_t pageBytes, uint64_t pages) {
    Status status;
    std::unique_ptr<Tier> tier = createTier(options, pageBytes, pages * pageBytes, clock, status);
    EXPECT_TRUE(status.ok()) << status.text();
    return tier;
  };
  int64_t layers = 0;
  Status status = layersByTransfer(info, codec, clock, make, layers);
  EXPECT_TRUE(status.ok()) << status.text();
  return layers;
}

} // namespace

TEST(PageRule, ChoicesArePowersOfTwoAndAll) {
  EXPECT_EQ(layerChoices(WideModel(1).info), (std::vector<int64_t>{1}));
  EXPECT_EQ(layerChoices(WideModel(4).info), (std::vector<int64_t>{1, 2, 4}));
  EXPECT_EQ(layerChoices(WideModel(6).info), (std::vector<int64_t>{1, 2, 4, 6}));
}

TEST(PageRule, ByCacheAPageIsWithinItsShare) {
  WideModel model(6);
  EXPECT_EQ(byCache(model.info, uint64_t(2) << 20, 4), 4) << "256 KiB";
  EXPECT_EQ(byCache(model.info, uint64_t(2) << 20, 8), 2);
  EXPECT_EQ(byCache(model.info, uint64_t(2) << 20, 1000), 1) << "not even one";
  EXPECT_EQ(byCache(model.info, uint64_t(32) << 20, 1), 6) << "all of them";
  EXPECT_EQ(byCache(model.info, 0, 4), 1) << "nobody knows the cache";
}

/// Batches of 32 pages take the latency and their bytes at 2 GiB/s, 1 ms for a layer.
TEST(PageRule, ByTransferTheFewestThatAreFast) {
  WideModel model(8);
  EXPECT_EQ(byTransfer(model.info, 0), 1);
  EXPECT_EQ(byTransfer(model.info, 1000000), 4) << "0.50, 0.67, 0.80 and 0.89 of the bandwidth";
  EXPECT_EQ(byTransfer(model.info, 100000000), 8) << "all waiting: half as many layers have half of the speed";
  EXPECT_EQ(byTransfer(model.info, 1000000, Codec::Int8G128), 8) << "pages of a quarter of the bytes";
}

TEST(PageRule, PoolsSayWhatWasChosen) {
  auto make = [](quire_slow_tier_options &slow, quire_paging_stats &stats) {
    slow.struct_size = sizeof(slow);
    slow.where = "memory";
    slow.bytes = 1 << 20;
    quire_pool_options options = {};
    options.struct_size = sizeof(options);
    options.bytes = 1 << 20;
    options.slow = &slow;
    quire_pool *pool = nullptr;
    quire_status status = quire_pool_create(&toyInfo(), &options, &pool);
    serving::PoolPointer owned(pool);
    stats = {};
    stats.struct_size = sizeof(stats);
    if (status == QUIRE_OK)
      EXPECT_EQ(quire_pool_get_paging_stats(pool, &stats), QUIRE_OK);
    return status;
  };
  quire_paging_stats stats;
  quire_slow_tier_options slow = {};
  ASSERT_EQ(make(slow, stats), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(stats.layers_per_page, 1);
  slow.page_rule = QUIRE_PAGES_BY_TRANSFER;
  slow.codec = "int8_g128";
  ASSERT_EQ(make(slow, stats), QUIRE_OK) << quire_last_error();
  EXPECT_TRUE(stats.layers_per_page >= 1 && stats.layers_per_page <= 3) << stats.layers_per_page;
  slow.page_rule = QUIRE_PAGES_BY_CACHE;
  slow.codec = nullptr;
  ASSERT_EQ(make(slow, stats), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(stats.layers_per_page, level2CacheBytes() ? 3 : 1) << "3,200 bytes are less than any share";
  slow.layers_per_page = 2;
  ASSERT_EQ(make(slow, stats), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(stats.layers_per_page, 2) << "what is given goes before rules";
  slow.page_rule = 3;
  EXPECT_EQ(make(slow, stats), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "slow tier: page_rule is out of range: 3");
  slow.page_rule = 0;
  slow.concurrency = -1;
  EXPECT_EQ(make(slow, stats), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "slow tier: concurrency is out of range: -1");
}
