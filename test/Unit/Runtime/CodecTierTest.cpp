// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slow tiers that store pages encoded: what comes back is what the codec makes of a page, once.
#include "CodecPages.h"
#include "TieredPool.h"
#include "tier/CodecTier.h"

#include <cmath>

using namespace quire;
using namespace quire::test;
using namespace quire::runtime;

namespace {

const BlockShape shape = {2, 64, 64, QUIRE_ELEMENT_F32, 1, 16};
constexpr Codec codecs[] = {Codec::Int8G128, Codec::Int4G128, Codec::Fp8E4M3, Codec::Sparse8Bitmap, Codec::Sparse8Index};

/// Layers of one shape.
struct ShapedInfo {
  explicit ShapedInfo(int64_t count, int64_t element = QUIRE_ELEMENT_F32) : layers(static_cast<size_t>(count), layerOf(shape)), info(toyInfo()) {
    for (quire_model_layer &layer : layers)
      layer.element = element;
    info.block_tokens = shape.blockTokens;
    info.layer_count = count;
    info.layers = layers.data();
  }
  std::vector<quire_model_layer> layers;
  quire_model_info info;
};

TestBlock sampleBlock(int64_t tokens, uint64_t seed) {
  TestBlock block(shape);
  block.fill(tokens, [seed](Place place) { return sampleValue(place, seed); });
  return block;
}

/// What the codec makes of the stored tokens, once.
TestBlock decodedOnce(Codec codec, const TestBlock &block, int64_t tokens) {
  std::vector<char> bytes(static_cast<size_t>(encodedBytes(codec, block.layer(), shape.blockTokens)));
  EXPECT_EQ(encode(codec, block.layer(), shape.blockTokens, block.data(), tokens, bytes.data()), EncodeResult::Encoded);
  TestBlock made(shape);
  decode(codec, block.layer(), shape.blockTokens, bytes.data(), made.data());
  return made;
}

void expectTokens(const TestBlock &got, const TestBlock &wanted, int64_t tokens) {
  int64_t wrong = 0;
  wanted.forEach(tokens, [&](Place place) { wrong += got.getBits(place) != wanted.getBits(place); });
  EXPECT_EQ(wrong, 0);
}

struct DirectTier {
  DirectTier(Codec codec, uint32_t slots) : shaped(1) {
    EXPECT_TRUE(PageGeometry::make(shaped.info, 1, geometry).ok());
    uint64_t bytes = 0;
    EXPECT_TRUE(CodecTier::slotBytes(codec, shaped.info, geometry, bytes).ok());
    auto memory = std::make_unique<MemoryTier>(slots, bytes);
    inner = memory.get();
    tier = std::make_unique<CodecTier>(std::move(memory), codec, shaped.info, geometry);
  }
  ShapedInfo shaped;
  PageGeometry geometry;
  MemoryTier *inner;
  std::unique_ptr<CodecTier> tier;
};

Transfer transferOf(Transfer::Kind kind, uint32_t slot, char *page, int64_t tokens = 0) {
  Transfer made;
  made.kind = kind;
  made.slot = slot;
  made.page = page;
  made.tag = slot + 1;
  made.tokens = tokens;
  return made;
}

Status runOne(Tier &tier, Transfer transfer) {
  Transfer *list = &transfer;
  tier.run(&list, 1);
  return transfer.status;
}

} // namespace

TEST(CodecTier, PagesComeBackAsTheCodecHasThem) {
  for (Codec codec : codecs) {
    SCOPED_TRACE(codecName(codec));
    DirectTier direct(codec, 40);
    EXPECT_LT(direct.tier->storedPageBytes(), direct.tier->pageBytes() / 2);
    EXPECT_TRUE(direct.tier->lossy());
    // More than one batch; unstored positions hold NaN.
    std::vector<TestBlock> blocks;
    std::vector<Transfer> transfers;
    for (uint32_t slot = 0; slot < 40; ++slot)
      blocks.push_back(sampleBlock(1 + slot % 16, slot));
    for (uint32_t slot = 0; slot < 40; ++slot)
      transfers.push_back(transferOf(Transfer::Kind::Store, slot, blocks[slot].data(), 1 + slot % 16));
    std::vector<Transfer *> list;
    for (Transfer &transfer : transfers)
      list.push_back(&transfer);
    direct.tier->run(list.data(), list.size());
    for (uint32_t slot = 0; slot < 40; ++slot) {
      ASSERT_TRUE(transfers[slot].status.ok()) << transfers[slot].status.text();
      TestBlock got(shape);
      transfers[slot] = transferOf(Transfer::Kind::Load, slot, got.data());
      direct.tier->run(&list[slot], 1);
      ASSERT_TRUE(transfers[slot].status.ok());
      expectTokens(got, decodedOnce(codec, blocks[slot], 1 + slot % 16), 1 + slot % 16);
    }
    EXPECT_EQ(direct.inner->stores, 40);
    EXPECT_EQ(runOne(*direct.tier, transferOf(Transfer::Kind::Erase, 3, nullptr)).code(), QUIRE_OK);
    EXPECT_EQ(direct.inner->erasures, 1);
    EXPECT_EQ(runOne(*direct.tier, transferOf(Transfer::Kind::Load, 3, blocks[3].data())).code(), QUIRE_PAGE_LOST);
  }
}

TEST(CodecTier, RefusesWhatTheCodecCannotKeep) {
  DirectTier direct(Codec::Int8G128, 2);
  TestBlock block = sampleBlock(5, 1);
  block.set({false, 1, 4, 7}, INFINITY);
  Status status = runOne(*direct.tier, transferOf(Transfer::Kind::Store, 0, block.data(), 5));
  EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(status.text(), std::string("codec int8_g128 does not take a page: ") + encodeResultName(EncodeResult::NotFinite));
  EXPECT_EQ(direct.inner->stores, 0);
  EXPECT_TRUE(runOne(*direct.tier, transferOf(Transfer::Kind::Store, 0, block.data(), 4)).ok()) << "the value is not stored";
}

TEST(CodecTier, MeasuresWhatIsLost) {
  double last = 0;
  for (Codec codec : {Codec::Int8G128, Codec::Int4G128, Codec::Sparse8Index}) {
    DirectTier direct(codec, 1);
    EXPECT_EQ(direct.tier->codecError().samples, 0u);
    TestBlock block = sampleBlock(16, 3), made = decodedOnce(codec, block, 16);
    for (int i = 0; i < 17; ++i)
      EXPECT_TRUE(runOne(*direct.tier, transferOf(Transfer::Kind::Store, 0, block.data(), 16)).ok());
    CodecError error = direct.tier->codecError();
    EXPECT_EQ(error.samples, 2u);
    double difference = 0, norm = 0;
    block.forEach(16, [&](Place place) {
      difference += (block.get(place) - made.get(place)) * (block.get(place) - made.get(place));
      norm += block.get(place) * block.get(place);
    });
    EXPECT_NEAR(error.relativeL2, std::sqrt(difference / norm), 1e-9);
    EXPECT_GT(error.relativeL2, last);
    last = error.relativeL2;
  }
}

TEST(CodecTier, PagesLoseOnceHoweverOftenTheyTravel) {
  for (Codec codec : codecs) {
    SCOPED_TRACE(codecName(codec));
    ShapedInfo shaped(2);
    TieredSettings settings;
    settings.codec = codec;
    TieredPool tiered = makeTieredPool(settings, shaped.info);
    Pager &pager = *tiered.pager();
    EXPECT_EQ(pager.blocks(), 30u) << "each block has its slots in the slow tier";
    std::vector<TestBlock> blocks;
    char *page;
    for (uint32_t block = 0; block < 30; ++block) {
      blocks.push_back(sampleBlock(16, block));
      for (uint32_t group = 0; group < 2; ++group) {
        ASSERT_TRUE(pager.pin(group, block, true, page).ok());
        std::copy(blocks[block].data(), blocks[block].data() + blocks[block].size(), page);
        ASSERT_TRUE(pager.unpin(group, block).ok());
      }
    }
    ASSERT_TRUE(pager.pin(1, 29, false, page).ok());
    TestBlock last(shape);
    std::copy(page, page + last.size(), last.data());
    EXPECT_EQ(last, blocks[29]) << "it never left";
    ASSERT_TRUE(pager.unpin(1, 29).ok());
    for (uint32_t block = 0; block < 30; ++block)
      ASSERT_TRUE(pager.unload(block).ok());
    pager.settle();
    uint64_t written = pager.counters().writeBacks;
    EXPECT_EQ(written, 60u);
    for (int round = 0; round < 3; ++round)
      for (uint32_t block = 0; block < 30; ++block)
        for (uint32_t group = 0; group < 2; ++group) {
          ASSERT_TRUE(pager.pin(group, block, false, page).ok());
          TestBlock got(shape);
          std::copy(page, page + got.size(), got.data());
          expectTokens(got, decodedOnce(codec, blocks[block], 16), 16);
          ASSERT_TRUE(pager.unpin(group, block).ok());
        }
    EXPECT_EQ(pager.counters().writeBacks, written) << "unchanged pages are never encoded again";
    EXPECT_TRUE(pager.validate().ok()) << pager.validate().text();
  }
}

TEST(CodecTier, RefusedPagesStayAsTheyAreUntilTheyChange) {
  ShapedInfo shaped(1);
  for (bool erase : {false, true}) {
    TieredSettings settings;
    settings.codec = Codec::Int8G128;
    settings.zeroOnFree = erase;
    TieredPool tiered = makeTieredPool(settings, shaped.info);
    Pager &pager = *tiered.pager();
    char *page;
    TestBlock block = sampleBlock(16, 1);
    block.set({true, 0, 0, 0}, NAN);
    for (int round = 0; round < 20; ++round) { // more than the stores in a row that make a tier count as full
      ASSERT_TRUE(pager.pin(0, 0, true, page).ok());
      std::copy(block.data(), block.data() + block.size(), page);
      ASSERT_TRUE(pager.unpin(0, 0).ok());
      ASSERT_TRUE(pager.unload(0).ok());
      pager.settle();
      EXPECT_FALSE(pager.isUnloaded(0));
      EXPECT_EQ(pager.unload(0).code(), QUIRE_NO_SPACE);
    }
    EXPECT_EQ(pager.counters().refused, 20u);
    EXPECT_FALSE(pager.full());
    EXPECT_EQ(pager.slow().slots().freeCount(), pager.slow().slots().total()) << "no slot is given up";
    ASSERT_TRUE(pager.pin(0, 0, true, page).ok());
    EXPECT_EQ(std::vector<char>(page, page + block.size()), std::vector<char>(block.data(), block.data() + block.size()));
    block.set({true, 0, 0, 0}, 1);
    std::copy(block.data(), block.data() + block.size(), page);
    ASSERT_TRUE(pager.unpin(0, 0).ok());
    ASSERT_TRUE(pager.unload(0).ok());
    pager.settle();
    EXPECT_TRUE(pager.isUnloaded(0));
    EXPECT_TRUE(pager.validate().ok()) << pager.validate().text();
  }
}

/// The doctor and the metrics see the codec of a pool and what it does.
TEST(CodecTier, LossesAndRefusalsAreFindings) {
  ShapedInfo shaped(1);
  TieredSettings settings;
  settings.fastPages = 40;
  settings.codec = Codec::Int4G128;
  TieredPool tiered = makeTieredPool(settings, shaped.info);
  Pager &pager = *tiered.pager();
  for (uint32_t number = 0; number < 36; ++number) {
    TestBlock block = sampleBlock(16, number);
    if (number % 6 == 0)
      block.set({true, 0, 0, 0}, NAN);
    char *page;
    ASSERT_TRUE(pager.pin(0, number, true, page).ok());
    std::copy(block.data(), block.data() + block.size(), page);
    ASSERT_TRUE(pager.unpin(0, number).ok());
    ASSERT_TRUE(pager.unload(number).ok());
  }
  pager.settle();
  EXPECT_EQ(pager.counters().refused, 6u);
  const char *text = nullptr;
  ASSERT_EQ(quire_metrics(tiered.pool.get(), &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("\nquire_codec_error_ratio{"), std::string::npos) << text;
  quire_doctor_options options = {};
  options.struct_size = sizeof(options);
  ASSERT_EQ(quire_doctor(tiered.pool.get(), &options, &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("codec-refuses: 0.167 of the pages"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("  change: compress.quant: int4_g128 -> none\n"), std::string::npos) << text;
}

TEST(CodecTier, PoolsSayWhatTheyStoreAndRefuse) {
  ShapedInfo shaped(1);
  quire_slow_tier_options slow = {};
  slow.struct_size = sizeof(slow);
  slow.where = "memory";
  slow.bytes = 1 << 20;
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = 1 << 18;
  options.slow = &slow;
  int64_t slots[2];
  for (const char *codec : {"none", "int8_g128"}) {
    slow.codec = codec;
    quire_pool *pool = nullptr;
    ASSERT_EQ(quire_pool_create(&shaped.info, &options, &pool), QUIRE_OK) << quire_last_error();
    quire_paging_stats stats = {};
    stats.struct_size = sizeof(stats);
    ASSERT_EQ(quire_pool_get_paging_stats(pool, &stats), QUIRE_OK);
    bool encoded = codec != std::string("none");
    slots[encoded] = stats.slow_pages;
    EXPECT_EQ(stats.stored_page_bytes < stats.page_bytes, encoded);
    EXPECT_EQ(stats.slow_pages, (1 << 20) / stats.stored_page_bytes);
    const char *text = nullptr;
    ASSERT_EQ(quire_metrics(pool, &text), QUIRE_OK);
    std::string line = "\nquire_slow_page_bytes{tier=\"memory\"} " + std::to_string(stats.stored_page_bytes) + "\n";
    EXPECT_NE(std::string(text).find(line), std::string::npos) << text;
    quire_pool_destroy(pool);
  }
  EXPECT_GT(slots[1], 3 * slots[0]);
  quire_pool *pool = nullptr;
  slow.codec = "zip";
  EXPECT_EQ(quire_pool_create(&shaped.info, &options, &pool), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "slow tier: no codec zip");
  PageGeometry geometry;
  ASSERT_TRUE(PageGeometry::make(shaped.info, 1, geometry).ok());
  for (auto [element, name] : {std::pair(QUIRE_ELEMENT_I8, "i8"), std::pair(QUIRE_ELEMENT_I4, "i4"), std::pair(QUIRE_ELEMENT_FP8_E4M3, "fp8_e4m3"),
                               std::pair(QUIRE_ELEMENT_FP8_E5M2, "fp8_e5m2")}) {
    ShapedInfo narrow(1, element);
    uint64_t bytes;
    EXPECT_EQ(CodecTier::slotBytes(Codec::Int8G128, narrow.info, geometry, bytes).text(),
              std::string("slow tier: codec int8_g128 takes elements f32, f16 and bf16, but layer 0 has ") + name + " already");
  }
}
