// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tenants: handles of one are refused for another, and nothing of one is left behind.
#include "SharingPool.h"

using namespace quire::runtime;
using namespace quire::test;

namespace {

const uint64_t canary = 0xC0FFEE5EC2E7D00Du;

int64_t canaries(SharingPool &pool) {
  const char *begin = pool.inner().layerBase(0);
  size_t bytes = static_cast<size_t>(pool.inner().blocksTotal() * pool.inner().blockBytes());
  int64_t found = 0;
  for (size_t at = 0; at + sizeof(canary) <= bytes; at += sizeof(canary))
    found += std::memcmp(begin + at, &canary, sizeof(canary)) == 0;
  return found;
}

/// Stores tokens and fills their blocks, in all layers.
quire_sequence secret(SharingPool &pool, quire_tenant tenant, const std::vector<int64_t> &tokens) {
  quire_sequence sequence = pool.sequence(tenant);
  EXPECT_TRUE(pool.store(sequence, 1, tokens));
  for (int32_t block : pool.table(sequence))
    for (int64_t layer = 0; layer < pool.inner().layerCount(); ++layer)
      for (int64_t at = 0; at < pool.inner().layerBlockBytes(layer); at += 8)
        std::memcpy(pool.inner().layerBase(layer) + block * pool.inner().layerBlockBytes(layer) + at, &canary, 8);
  return sequence;
}

} // namespace

TEST(Tenant, EndsWithoutATrace) {
  for (bool zero : {false, true}) {
    Pool::Options options;
    options.zeroOnFree = zero;
    SharingPool pool(options);
    quire_tenant tenant = pool.tenant("a"), other = pool.tenant("b");
    quire_sequence sequence = secret(pool, tenant, tokensFrom(0, 60));
    quire_sequence others = pool.sequence(other);
    ASSERT_TRUE(pool.store(others, 2, tokensFrom(0, 30)));
    pool.publish(sequence, tokensFrom(0, 60));
    EXPECT_GT(canaries(pool), 1000);
    EXPECT_EQ(quire_tenant_destroy(pool.get(), tenant), QUIRE_INVALID_ARGUMENT);
    EXPECT_STREQ(quire_last_error(), "tenant 1 has 1 sequences and 0 blocks");
    pool.release(sequence);
    EXPECT_GT(canaries(pool), 1000); // cached
    ASSERT_EQ(quire_tenant_destroy(pool.get(), tenant), QUIRE_OK);
    EXPECT_EQ(canaries(pool), 0);
    pool.expectHolds(others, 2, tokensFrom(0, 30));
    EXPECT_EQ(statsOf(pool.get()).blocks_free, 14);
    quire_tenant_stats stats = {};
    stats.struct_size = sizeof(stats);
    EXPECT_EQ(quire_tenant_get_stats(pool.get(), tenant, &stats), QUIRE_STALE_HANDLE);
    quire_tenant again = pool.tenant("a"); // the same salt, and yet nothing to find
    quire_sequence empty = pool.sequence(again);
    EXPECT_EQ(pool.match(empty, tokensFrom(0, 60)), 0);
    EXPECT_EQ(pool.stats(again).blocks_cached, 0);
  }
}

TEST(Tenant, FreedBlocksAreZeroAtOnce) {
  for (bool poison : {false, true}) {
    Pool::Options options;
    options.zeroOnFree = true;
    options.poison = poison;
    SharingPool pool(options);
    quire_sequence sequence = secret(pool, 0, tokensFrom(0, 60));
    std::vector<int32_t> table = pool.table(sequence);
    ASSERT_EQ(quire_sequence_truncate(pool.get(), sequence, 16), QUIRE_OK);
    EXPECT_EQ(canaries(pool), pool.inner().blockBytes() / 8);
    pool.release(sequence);
    EXPECT_EQ(canaries(pool), 0);
    for (int32_t block : table)
      for (int64_t layer = 0; layer < pool.inner().layerCount(); ++layer)
        for (int64_t at = 0; at < pool.inner().layerBlockBytes(layer); ++at)
          ASSERT_EQ(static_cast<unsigned char>(pool.inner().layerBase(layer)[block * pool.inner().layerBlockBytes(layer) + at]),
                    poison ? 0xFF : 0);
  }
  SharingPool plain; // the option makes the difference
  plain.release(secret(plain, 0, tokensFrom(0, 60)));
  EXPECT_GT(canaries(plain), 1000);
}

TEST(Tenant, EvictedAndExpiredBlocksAreZeroToo) {
  Pool::Options options;
  options.zeroOnFree = true;
  SharingPool pool(options, 4);
  quire_tenant tenant = pool.tenant("a", 100);
  for (bool expire : {false, true}) {
    quire_sequence sequence = secret(pool, tenant, tokensFrom(0, 64));
    pool.publish(sequence, tokensFrom(0, 64));
    pool.release(sequence);
    EXPECT_EQ(canaries(pool), 4 * pool.inner().blockBytes() / 8);
    if (expire) {
      int64_t dropped = 0;
      ASSERT_EQ(quire_pool_advance(pool.get(), 100, &dropped), QUIRE_OK);
      EXPECT_EQ(dropped, 4);
    } else {
      quire_block blocks[4];
      ASSERT_EQ(quire_pool_allocate(pool.get(), 4, blocks), QUIRE_OK);
      for (quire_block block : blocks)
        ASSERT_EQ(quire_block_release(pool.get(), block), QUIRE_OK);
    }
    EXPECT_EQ(canaries(pool), 0);
  }
}

TEST(Tenant, TimeToLive) {
  SharingPool pool;
  quire_tenant a = pool.tenant("a", 100), b = pool.tenant("b");
  for (quire_tenant tenant : {a, b}) {
    quire_sequence sequence = pool.sequence(tenant);
    ASSERT_TRUE(pool.store(sequence, tenant, tokensFrom(0, 64)));
    pool.publish(sequence, tokensFrom(0, 64));
    pool.release(sequence);
  }
  quire_sequence user = pool.sequence(a);
  EXPECT_EQ(pool.match(user, tokensFrom(0, 33)), 32);
  int64_t dropped = -1;
  ASSERT_EQ(quire_pool_advance(pool.get(), 99, &dropped), QUIRE_OK);
  EXPECT_EQ(dropped, 0);
  ASSERT_EQ(quire_pool_advance(pool.get(), 100, &dropped), QUIRE_OK);
  EXPECT_EQ(dropped, 2); // what somebody uses stays
  EXPECT_EQ(pool.stats(a).blocks_cached, 2);
  EXPECT_EQ(pool.stats(a).blocks_expired, 2);
  ASSERT_EQ(quire_pool_advance(pool.get(), 150, nullptr), QUIRE_OK);
  pool.release(user); // its time begins
  ASSERT_EQ(quire_pool_advance(pool.get(), 249, &dropped), QUIRE_OK);
  EXPECT_EQ(dropped, 0);
  ASSERT_EQ(quire_pool_advance(pool.get(), 250, &dropped), QUIRE_OK);
  EXPECT_EQ(dropped, 2);
  EXPECT_EQ(pool.stats(a).blocks_cached, 0);
  EXPECT_EQ(pool.stats(b).blocks_cached, 4); // no limit
  ASSERT_EQ(quire_pool_advance(pool.get(), INT64_MAX, &dropped), QUIRE_OK);
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(quire_pool_advance(pool.get(), 249, &dropped), QUIRE_INVALID_ARGUMENT);
  quire_tenant_options negative = {sizeof(negative), "c", 1, -1};
  quire_tenant out = 0;
  EXPECT_EQ(quire_tenant_create(pool.get(), &negative, &out), QUIRE_INVALID_ARGUMENT);
}

TEST(Tenant, HandlesOfAnotherAreRefused) {
  SharingPool pool;
  quire_tenant a = pool.tenant("a"), b = pool.tenant("b");
  quire_pool *p = pool.get();
  ASSERT_EQ(quire_pool_act_as(p, a), QUIRE_OK);
  quire_sequence sequence = 0, out = 0;
  ASSERT_EQ(quire_sequence_create(p, &sequence), QUIRE_OK); // a's
  ASSERT_TRUE(pool.store(sequence, 1, tokensFrom(0, 20)));
  quire_block block = 0;
  ASSERT_EQ(quire_pool_allocate(p, 1, &block), QUIRE_OK);
  ASSERT_EQ(quire_block_retain(p, block), QUIRE_OK);

  ASSERT_EQ(quire_pool_act_as(p, b), QUIRE_OK);
  const int32_t *blocks;
  int64_t number;
  int32_t index;
  EXPECT_EQ(quire_sequence_fork(p, sequence, 20, &out), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "not a sequence handle of this tenant");
  EXPECT_EQ(quire_sequence_release(p, sequence), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_reserve(p, sequence, 1), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_commit(p, sequence, 0), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_truncate(p, sequence, 0), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_length(p, sequence, &number), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_table(p, sequence, &blocks, &number), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_move(p, sequence, &out), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_sequence_publish(p, sequence, tokensFrom(0, 20).data(), 20), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_block_retain(p, block), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "not a block handle of this tenant");
  EXPECT_EQ(quire_block_release(p, block), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_block_index(p, block, &index), QUIRE_INVALID_ARGUMENT);
  quire_sequence_options forA = {sizeof(forA), a, 0};
  EXPECT_EQ(quire_sequence_create_with(p, &forA, &out), QUIRE_INVALID_ARGUMENT);
  quire_tenant_stats stats = {};
  stats.struct_size = sizeof(stats);
  EXPECT_EQ(quire_tenant_get_stats(p, a, &stats), QUIRE_INVALID_ARGUMENT);
  quire_tenant made = 0;
  EXPECT_EQ(quire_tenant_create(p, nullptr, &made), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_tenant_destroy(p, a), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_pool_advance(p, 1, nullptr), QUIRE_INVALID_ARGUMENT);

  ASSERT_EQ(quire_pool_act_as(p, a), QUIRE_OK); // the paired positive case
  EXPECT_EQ(quire_sequence_fork(p, sequence, 20, &out), QUIRE_OK);
  EXPECT_EQ(quire_block_retain(p, block), QUIRE_OK);
  EXPECT_EQ(pool.stats(a).sequences, 2);
  ASSERT_EQ(quire_pool_act_as(p, 0), QUIRE_OK); // the server
  EXPECT_EQ(quire_tenant_destroy(p, a), QUIRE_INVALID_ARGUMENT);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(quire_block_release(p, block), QUIRE_OK);
  pool.release(sequence);
  pool.release(out);
  EXPECT_EQ(quire_tenant_destroy(p, a), QUIRE_OK) << quire_last_error();
}

TEST(Tenant, StepsOfAnotherAreRefused) {
  SharingPool pool;
  quire_tenant a = pool.tenant("a"), b = pool.tenant("b");
  quire_sequence sequence = pool.sequence(a);
  quire::serving::ModelPointer model = makeModel();
  quire::serving::ExecutorPointer executor = makeExecutor(model.get(), pool.get());
  std::vector<float> logits(static_cast<size_t>(toyInfo().vocabulary));
  int64_t count = 1, token = 3, selected = 0;
  quire_batch batch = {sizeof(batch), 1, &sequence, &count, &token, &selected, 1};
  ASSERT_EQ(quire_pool_act_as(pool.get(), b), QUIRE_OK);
  EXPECT_EQ(quire_executor_step(executor.get(), &batch, logits.data()), QUIRE_INVALID_ARGUMENT);
  ASSERT_EQ(quire_pool_act_as(pool.get(), a), QUIRE_OK);
  EXPECT_EQ(quire_executor_step(executor.get(), &batch, logits.data()), QUIRE_OK) << quire_last_error();
}

TEST(Tenant, NamesAndHandles) {
  SharingPool pool;
  quire_tenant a = pool.tenant("a"), out = 0;
  quire_tenant_options again = {sizeof(again), "a", 1, 0};
  EXPECT_EQ(quire_tenant_create(pool.get(), &again, &out), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "tenant 1 has this name already");
  EXPECT_NE(pool.tenant("ab"), a);
  EXPECT_EQ(quire_pool_act_as(pool.get(), a + 40), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_pool_act_as(pool.get(), 7), QUIRE_INVALID_ARGUMENT);
  ASSERT_EQ(quire_tenant_destroy(pool.get(), a), QUIRE_OK);
  EXPECT_EQ(quire_tenant_destroy(pool.get(), a), QUIRE_STALE_HANDLE);
  EXPECT_EQ(quire_tenant_destroy(pool.get(), 0), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(quire_pool_act_as(pool.get(), a), QUIRE_STALE_HANDLE);
  quire_sequence_options stale = {sizeof(stale), a, 0};
  quire_sequence sequence = 0;
  EXPECT_EQ(quire_sequence_create_with(pool.get(), &stale, &sequence), QUIRE_STALE_HANDLE);
  EXPECT_NE(pool.tenant("a"), a);
}
