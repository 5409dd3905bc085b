// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks and sequences against a reference model over random operations, and the allocator's single rules.
#include "TestPool.h"
#include "core/MappedMemory.h"
#include "pool/BlockAllocator.h"

#include <functional>
#include <map>
#include <random>
#include <set>

using namespace quire::test;

namespace quire::runtime {

struct BlockAllocatorDamage {
  BlockAllocator &allocator;
  void refer(uint32_t block, uint32_t references) { allocator.blocks_[block].references = references; }
  void link(uint32_t block, uint32_t next) { allocator.blocks_[block].next = next; }
  void countWithheld(uint32_t count) { allocator.withheldCount_ = count; }
  void countFree(uint32_t count) { allocator.freeCount_ = count; }
  void ageTo(uint32_t block, uint32_t generation) { allocator.blocks_[block].generation = generation; }
};

} // namespace quire::runtime

namespace {

/// What the pool must look like: every sequence owns the values of its tokens.
struct ReferenceSequence {
  std::vector<uint32_t> values;
};

class ModelCheck {
public:
  ModelCheck(const PoolSettings &settings, uint64_t seed)
      : settings_(settings), pool_(makePool(settings)), random_(seed), blockTokens_(toyInfo().block_tokens) {}

  void run(int64_t operations) {
    for (int64_t i = 0; i < operations && !::testing::Test::HasFatalFailure(); ++i) {
      switch (pick(10)) {
      case 0:
        create();
        break;
      case 1:
        release();
        break;
      case 2:
        fork();
        break;
      case 3:
        truncate();
        break;
      case 4:
        allocateBlocks();
        break;
      case 5:
        changeBlocks();
        break;
      default:
        append();
      }
      if (i % 16 == 0)
        verify();
    }
    verify();
    drain();
  }

private:
  size_t pick(size_t below) { return static_cast<size_t>(random_() % below); }

  bool pickSequence(quire_sequence &out) {
    if (sequences_.empty())
      return false;
    auto found = sequences_.begin();
    std::advance(found, pick(sequences_.size()));
    out = found->first;
    return true;
  }

  uint32_t *place(quire_sequence sequence, int64_t position, int64_t layer) {
    const int32_t *blocks;
    int64_t count;
    void *address = nullptr;
    EXPECT_EQ(quire_sequence_table(pool_.get(), sequence, &blocks, &count), QUIRE_OK);
    EXPECT_LT(position / blockTokens_, count);
    EXPECT_EQ(quire_pool_block_address(pool_.get(), layer, blocks[position / blockTokens_], &address), QUIRE_OK);
    return static_cast<uint32_t *>(address) + position % blockTokens_;
  }

  void create() {
    if (sequences_.size() > 12)
      return;
    quire_sequence sequence;
    ASSERT_EQ(quire_sequence_create(pool_.get(), &sequence), QUIRE_OK);
    ASSERT_TRUE(ever_.insert(sequence).second) << "a handle came twice";
    sequences_[sequence];
  }

  void release() {
    quire_sequence sequence;
    if (!pickSequence(sequence))
      return;
    ASSERT_EQ(quire_sequence_release(pool_.get(), sequence), QUIRE_OK);
    sequences_.erase(sequence);
    ASSERT_EQ(quire_sequence_release(pool_.get(), sequence), QUIRE_STALE_HANDLE);
  }

  void fork() {
    quire_sequence sequence, copy;
    if (!pickSequence(sequence) || sequences_.size() > 12)
      return;
    std::vector<uint32_t> &values = sequences_[sequence].values;
    size_t length = pick(values.size() + 1);
    ASSERT_EQ(quire_sequence_fork(pool_.get(), sequence, static_cast<int64_t>(length), &copy), QUIRE_OK);
    ASSERT_TRUE(ever_.insert(copy).second);
    sequences_[copy].values.assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(length));
  }

  void truncate() {
    quire_sequence sequence;
    if (!pickSequence(sequence))
      return;
    std::vector<uint32_t> &values = sequences_[sequence].values;
    size_t length = pick(values.size() + 1);
    ASSERT_EQ(quire_sequence_truncate(pool_.get(), sequence, static_cast<int64_t>(length)), QUIRE_OK);
    values.resize(length);
  }

  void append() {
    quire_sequence sequence;
    if (!pickSequence(sequence))
      return;
    std::vector<uint32_t> &values = sequences_[sequence].values;
    int64_t tokens = static_cast<int64_t>(pick(40)), length = static_cast<int64_t>(values.size());
    quire_pool_stats before = statsOf(pool_.get());
    std::vector<int32_t> tableBefore = table(sequence);
    quire_status status = quire_sequence_reserve(pool_.get(), sequence, tokens);
    if (length + tokens > toyInfo().max_positions) {
      ASSERT_EQ(status, QUIRE_TOO_LONG);
    }
    if (status != QUIRE_OK) {
      // All or nothing.
      ASSERT_TRUE(status == QUIRE_TOO_LONG || status == QUIRE_OUT_OF_BLOCKS);
      ASSERT_EQ(statsOf(pool_.get()).blocks_free, before.blocks_free);
      ASSERT_EQ(table(sequence), tableBefore);
      refused_ += status == QUIRE_OUT_OF_BLOCKS;
      return;
    }
    for (int64_t i = 0; i < tokens; ++i) {
      uint32_t value = static_cast<uint32_t>(random_());
      for (int64_t layer = 0; layer < toyInfo().layer_count; ++layer)
        *place(sequence, length + i, layer) = value + static_cast<uint32_t>(layer);
      values.push_back(value);
    }
    ASSERT_EQ(quire_sequence_commit(pool_.get(), sequence, tokens), QUIRE_OK);
  }

  void allocateBlocks() {
    size_t count = pick(4);
    std::vector<quire_block> blocks(count, 77);
    int64_t before = statsOf(pool_.get()).blocks_free;
    quire_status status = quire_pool_allocate(pool_.get(), static_cast<int64_t>(count), blocks.data());
    ASSERT_EQ(status, static_cast<int64_t>(count) <= before ? QUIRE_OK : QUIRE_OUT_OF_BLOCKS);
    if (status != QUIRE_OK) {
      ASSERT_EQ(statsOf(pool_.get()).blocks_free, before);
      ASSERT_EQ(blocks, std::vector<quire_block>(count, 77));
      return;
    }
    for (quire_block block : blocks) {
      ASSERT_TRUE(everBlock_.insert(block).second) << "a handle came twice";
      blocks_[block] = 1;
    }
  }

  void changeBlocks() {
    if (blocks_.empty())
      return;
    auto found = blocks_.begin();
    std::advance(found, pick(blocks_.size()));
    quire_block block = found->first;
    if (pick(3) == 0) {
      ASSERT_EQ(quire_block_retain(pool_.get(), block), QUIRE_OK);
      ++found->second;
      return;
    }
    ASSERT_EQ(quire_block_release(pool_.get(), block), QUIRE_OK);
    if (--found->second == 0) {
      blocks_.erase(found);
      int32_t index;
      ASSERT_EQ(quire_block_index(pool_.get(), block, &index), QUIRE_STALE_HANDLE);
      ASSERT_EQ(quire_block_release(pool_.get(), block), QUIRE_STALE_HANDLE);
    }
  }

  std::vector<int32_t> table(quire_sequence sequence) {
    const int32_t *blocks;
    int64_t count;
    EXPECT_EQ(quire_sequence_table(pool_.get(), sequence, &blocks, &count), QUIRE_OK);
    return std::vector<int32_t>(blocks, blocks + count);
  }

  void verify() {
    ASSERT_EQ(quire_pool_validate(pool_.get()), QUIRE_OK) << quire_last_error();
    std::set<int32_t> used;
    for (auto &[sequence, reference] : sequences_) {
      int64_t length;
      ASSERT_EQ(quire_sequence_length(pool_.get(), sequence, &length), QUIRE_OK);
      ASSERT_EQ(length, static_cast<int64_t>(reference.values.size()));
      for (int64_t i = 0; i < length; ++i)
        for (int64_t layer = 0; layer < toyInfo().layer_count; ++layer)
          ASSERT_EQ(*place(sequence, i, layer),
                    reference.values[static_cast<size_t>(i)] + static_cast<uint32_t>(layer));
      for (int32_t block : table(sequence))
        used.insert(block);
    }
    for (auto &[block, references] : blocks_) {
      int32_t index;
      ASSERT_EQ(quire_block_index(pool_.get(), block, &index), QUIRE_OK);
      ASSERT_TRUE(used.insert(index).second) << "a block belongs to two owners";
    }
    quire_pool_stats stats = statsOf(pool_.get());
    ASSERT_EQ(stats.blocks_free, settings_.blocks - static_cast<int64_t>(used.size()));
    ASSERT_EQ(stats.sequences, static_cast<int64_t>(sequences_.size()));
    if (settings_.poison)
      verifyPoison(used);
  }

  void verifyPoison(const std::set<int32_t> &used) {
    for (int32_t block = 0; block < settings_.blocks; ++block) {
      if (used.count(block))
        continue;
      for (int64_t layer = 0; layer < toyInfo().layer_count; ++layer) {
        void *address;
        ASSERT_EQ(quire_pool_block_address(pool_.get(), layer, block, &address), QUIRE_OK);
        const unsigned char *bytes = static_cast<unsigned char *>(address);
        int64_t size = toyInfo().layers[layer].block_bytes;
        ASSERT_TRUE(bytes[0] == 0xFF && bytes[size / 2] == 0xFF && bytes[size - 1] == 0xFF)
            << "free block " << block << " is not poisoned";
      }
    }
  }

  void drain() {
    EXPECT_GT(refused_, 0) << "the pool was never full";
    for (auto &[sequence, reference] : sequences_)
      ASSERT_EQ(quire_sequence_release(pool_.get(), sequence), QUIRE_OK);
    for (auto &[block, references] : blocks_)
      for (int i = 0; i < references; ++i)
        ASSERT_EQ(quire_block_release(pool_.get(), block), QUIRE_OK);
    ASSERT_EQ(statsOf(pool_.get()).blocks_free, settings_.blocks);
    ASSERT_EQ(quire_pool_validate(pool_.get()), QUIRE_OK) << quire_last_error();
  }

  PoolSettings settings_;
  quire::serving::PoolPointer pool_;
  std::mt19937_64 random_;
  int64_t blockTokens_;
  std::map<quire_sequence, ReferenceSequence> sequences_;
  std::map<quire_block, int> blocks_;
  std::set<quire_sequence> ever_;
  std::set<quire_block> everBlock_;
  int64_t refused_ = 0;
};

} // namespace

TEST(Allocator, RandomOperationsMatchReference) {
  PoolSettings settings;
  settings.blocks = 24;
  ModelCheck(settings, 1).run(100000);
}

TEST(Allocator, RandomOperationsMatchReferenceShuffled) {
  PoolSettings settings;
  settings.blocks = 17;
  settings.shuffle = true;
  settings.seed = 5;
  ModelCheck(settings, 2).run(100000);
}

static std::vector<int32_t> order(bool shuffle, uint64_t seed, uint32_t total = 64) {
  quire::runtime::BlockAllocator allocator(total, {shuffle, seed});
  std::vector<int32_t> blocks;
  EXPECT_TRUE(allocator.allocate(total, blocks));
  return blocks;
}

TEST(Allocator, OrderDependsOnSeedOnly) {
  std::vector<int32_t> ordered = order(false, 0);
  EXPECT_TRUE(std::is_sorted(ordered.begin(), ordered.end()));
  EXPECT_EQ(order(true, 7), order(true, 7));
  EXPECT_NE(order(true, 7), order(true, 8));
  EXPECT_NE(order(true, 7), ordered);
  std::vector<int32_t> shuffled = order(true, 7);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, ordered);
}

TEST(Allocator, AllocatesAllOrNothing) {
  quire::runtime::BlockAllocator allocator(4, {});
  std::vector<int32_t> blocks = {9};
  EXPECT_FALSE(allocator.allocate(5, blocks));
  EXPECT_EQ(blocks, std::vector<int32_t>{9});
  EXPECT_EQ(allocator.freeCount(), 4u);
  EXPECT_TRUE(allocator.allocate(0, blocks));
  EXPECT_TRUE(allocator.allocate(4, blocks));
  EXPECT_EQ(blocks, (std::vector<int32_t>{9, 0, 1, 2, 3}));
  EXPECT_FALSE(allocator.allocate(1, blocks));
  EXPECT_EQ(allocator.peak(), 4u);
  EXPECT_TRUE(allocator.validate().ok());
}

TEST(Allocator, CountsReferencesAndGenerations) {
  quire::runtime::BlockAllocator allocator(1, {});
  std::vector<int32_t> blocks;
  ASSERT_TRUE(allocator.allocate(1, blocks));
  uint32_t generation = allocator.generation(0);
  EXPECT_TRUE(allocator.retain(0));
  EXPECT_FALSE(allocator.release(0));
  EXPECT_EQ(allocator.generation(0), generation);
  EXPECT_TRUE(allocator.release(0));
  EXPECT_EQ(allocator.generation(0), generation + 1);
}

TEST(Allocator, BudgetBelowOneBlockIsRefused) {
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = static_cast<uint64_t>(quire_model_block_bytes(&toyInfo()) - 1);
  quire_pool *pool = nullptr;
  EXPECT_EQ(quire_pool_create(&toyInfo(), &options, &pool), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(pool, nullptr);
  EXPECT_NE(std::string(quire_last_error()).find("holds no block"), std::string::npos);
}

TEST(Allocator, PoolBeyondTheMachineIsRefused) {
  uint64_t memory = quire::runtime::physicalMemory();
  ASSERT_LT(memory, UINT64_MAX);
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  // The last: what fits alone, but not with its tables.
  for (uint64_t bytes : {UINT64_MAX, 2 * memory, memory + 3200, memory}) {
    options.bytes = bytes;
    quire_pool *pool = nullptr;
    EXPECT_EQ(quire_pool_create(&toyInfo(), &options, &pool), QUIRE_OUT_OF_MEMORY);
    EXPECT_EQ(pool, nullptr);
    std::string text = quire_last_error();
    EXPECT_NE(text.find("a kv budget of " + std::to_string(bytes) + " bytes"), std::string::npos) << text;
    EXPECT_NE(text.find("the " + std::to_string(memory) + " bytes of memory that this process may have"), std::string::npos)
        << text;
    quire_pool_destroy(pool);
  }
}

TEST(Allocator, BlocksIsFloorOfBudget) {
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = static_cast<uint64_t>(3 * quire_model_block_bytes(&toyInfo()) - 1);
  quire_pool *pool = nullptr;
  ASSERT_EQ(quire_pool_create(&toyInfo(), &options, &pool), QUIRE_OK);
  quire::serving::PoolPointer owner(pool);
  EXPECT_EQ(statsOf(pool).blocks_total, 2);
}

/// Each thing that can be wrong with the blocks has a name.
TEST(Allocator, DamageIsFound) {
  using namespace quire::runtime;
  auto textAfter = [](const std::function<void(BlockAllocator &, BlockAllocatorDamage)> &damage) {
    BlockAllocator allocator(6, {});
    std::vector<int32_t> taken;
    EXPECT_TRUE(allocator.allocate(1, taken)); // block 0; 1 to 4 are free
    allocator.withhold(5);
    EXPECT_TRUE(allocator.validate().ok());
    damage(allocator, {allocator});
    return allocator.validate().text();
  };
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.refer(5, 1); }), "block 5 is withheld, but free or referenced");
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.countWithheld(2); }), "1 blocks are withheld, but 2 counted");
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.link(4, 9); }), "free list leads to block 9 of 6");
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.link(4, 2); }), "block 2 is on the free list twice");
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.link(1, 3); }), "block 3 does not link back on the free list");
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.refer(2, 1); }), "block 2 is free, but has 1 references");
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.countFree(3); }), "4 blocks on the free list, but 3 counted");
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.refer(0, 0); }), "block 0 is neither free nor referenced");
  EXPECT_EQ(textAfter([](BlockAllocator &, BlockAllocatorDamage d) { d.ageTo(0, 0); }), "block 0 has no generation");
}

/// Who holds a block holds it under its new number; the old one becomes free, and older.
TEST(Allocator, MovedBlocksTakeTheirReferencesAlong) {
  quire::runtime::BlockAllocator allocator(4, {});
  std::vector<int32_t> taken;
  ASSERT_TRUE(allocator.allocate(3, taken));
  ASSERT_TRUE(allocator.retain(2));
  EXPECT_FALSE(allocator.release(2));
  ASSERT_TRUE(allocator.retain(2));
  EXPECT_TRUE(allocator.release(0));
  uint32_t before = allocator.generation(2), ofTarget = allocator.generation(0);
  allocator.move(2, 0);
  EXPECT_EQ(allocator.references(0), 2u);
  EXPECT_EQ(allocator.references(2), 0u);
  EXPECT_EQ(allocator.generation(2), before + 1);
  EXPECT_EQ(allocator.generation(0), ofTarget);
  EXPECT_EQ(allocator.freeCount(), 2u);
  EXPECT_EQ(allocator.peak(), 3u);
  EXPECT_TRUE(allocator.validate().ok()) << allocator.validate().text();
}
