// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layers whose rows see a window: pages before it are neither loaded nor kept.
#include "TieredPool.h"
#include "ToyModel.h"

#include <cstring>

using namespace quire::test;
using quire::runtime::Pager;

namespace {

constexpr int64_t block = TOY_BLOCK_TOKENS;

/// The toy's shape; layers 0 and 2 see `window` keys, layer 1 all of them.
struct WindowedToy {
  explicit WindowedToy(int64_t window) : layers(toyInfo().layers, toyInfo().layers + TOY_LAYERS), info(toyInfo()) {
    layers[0].window = layers[2].window = window;
    info.layers = layers.data();
  }

  std::vector<quire_model_layer> layers;
  quire_model_info info;
};

/// One token more for a sequence: each layer's pages in the window must hold the marks of the steps before.
class Decoder {
public:
  Decoder(TieredPool &tiered, const WindowedToy &toy) : tiered(tiered), toy(toy) {
    EXPECT_EQ(quire_sequence_create(tiered.pool.get(), &sequence), QUIRE_OK);
  }

  void step() {
    ASSERT_EQ(quire_sequence_reserve(tiered.pool.get(), sequence, 1), QUIRE_OK) << quire_last_error();
    const int32_t *blocks = nullptr;
    int64_t count = 0, one = 1;
    ASSERT_EQ(quire_sequence_table(tiered.pool.get(), sequence, &blocks, &count), QUIRE_OK);
    blocks_ = blocks;
    std::vector<int32_t> slots(static_cast<size_t>(count));
    Pager::Step paged;
    paged.sequences = 1;
    paged.blocks = blocks;
    paged.stride = count;
    paged.pastLens = &length;
    paged.tokenCounts = &one;
    paged.slots = slots.data();
    ASSERT_TRUE(tiered.pager()->beginStep(paged).ok());
    for (int64_t layer = 0; layer < TOY_LAYERS; ++layer)
      visit(layer, count);
    ASSERT_TRUE(tiered.pager()->endStep().ok());
    ASSERT_EQ(quire_sequence_commit(tiered.pool.get(), sequence, 1), QUIRE_OK);
    ++length;
  }

  quire_sequence sequence = 0;
  int64_t length = 0;

private:
  void visit(int64_t layer, int64_t count) {
    quire_kv_view view = {};
    ASSERT_TRUE(tiered.pager()->acquire(layer, view));
    int64_t window = toy.layers[static_cast<size_t>(layer)].window;
    int64_t first = window == 0 || length < window ? 0 : (length - window + 1) / block;
    for (int64_t i = 0; i < count; ++i) {
      if (i < first) { // with addresses that stay the table is the sequence's own
        EXPECT_EQ(view.tables[i], tiered.pager()->stable() ? blocks_[i] : -1) << "layer " << layer << ", block " << i;
        continue;
      }
      ASSERT_GE(view.tables[i], 0);
      int64_t *page = reinterpret_cast<int64_t *>(view.base + view.tables[i] * view.block_stride);
      if (i * block < length)
        EXPECT_EQ(*page, (layer + 1) * 1000 + i) << "length " << length;
      else
        *page = (layer + 1) * 1000 + i;
    }
    ASSERT_TRUE(tiered.pager()->release(layer));
  }

  TieredPool &tiered;
  const WindowedToy &toy;
  const int32_t *blocks_ = nullptr;
};

TEST(Window, OnlyPagesInsideAreDemanded) {
  for (bool stable : {false, true}) {
    WindowedToy toy(2 * block);
    TieredSettings settings;
    settings.fastPages = 40;
    settings.stableVa = stable;
    TieredPool tiered = makeTieredPool(settings, toy.info);
    Decoder decoder(tiered, toy);
    for (int64_t i = 0; i < 8 * block; ++i)
      ASSERT_NO_FATAL_FAILURE(decoder.step());
    uint64_t before = tiered.pager()->counters().demands;
    ASSERT_NO_FATAL_FAILURE(decoder.step()); // at a block's start: two old blocks of each window, all eight of layer 1
    EXPECT_EQ(tiered.pager()->counters().demands - before, 2u + 8u + 2u);
  }
}

TEST(Window, PagesThatNobodyWillReadGiveWayFirst) {
  for (quire::runtime::PolicyKind policy : {quire::runtime::PolicyKind::Scan, quire::runtime::PolicyKind::Lru}) {
    WindowedToy toy(2 * block);
    toy.layers[1].window = 2 * block;
    TieredSettings settings;
    settings.fastPages = 16; // nine pages are in windows
    settings.window = 0;
    settings.policy = policy;
    TieredPool tiered = makeTieredPool(settings, toy.info);
    Decoder decoder(tiered, toy);
    for (int64_t i = 0; i < 15 * block; ++i)
      ASSERT_NO_FATAL_FAILURE(decoder.step());
    const quire::runtime::PagerCounters &counters = tiered.pager()->counters();
    EXPECT_EQ(counters.misses + counters.late, 0u);
    EXPECT_EQ(counters.bytesInDemand, 0u);
  }
}

TEST(Window, AShorterForkSeesPagesThatHadLeft) {
  for (bool stable : {false, true}) {
    WindowedToy toy(2 * block);
    TieredSettings settings;
    settings.fastPages = 14;
    settings.stableVa = stable;
    TieredPool tiered = makeTieredPool(settings, toy.info);
    Decoder decoder(tiered, toy);
    for (int64_t i = 0; i < 10 * block; ++i)
      ASSERT_NO_FATAL_FAILURE(decoder.step());
    ASSERT_EQ(quire_sequence_truncate(tiered.pool.get(), decoder.sequence, 3 * block), QUIRE_OK);
    decoder.length = 3 * block;
    ASSERT_NO_FATAL_FAILURE(decoder.step()); // reads what was written ten blocks ago
    EXPECT_EQ(quire_pool_validate(tiered.pool.get()), QUIRE_OK) << quire_last_error();
  }
}

} // namespace
