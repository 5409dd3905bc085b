// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prefixes: found by tokens, given by reference, never across tenants, evicted from their ends.
#include "SharingPool.h"

#include <map>
#include <random>

using namespace quire::runtime;
using namespace quire::test;

namespace {

/// Stores, publishes and releases: the tokens stay in the cache only.
void leaveBehind(SharingPool &pool, quire_tenant tenant, const std::vector<int64_t> &tokens) {
  quire_sequence sequence = pool.sequence(tenant);
  ASSERT_TRUE(pool.store(sequence, tenant, tokens));
  pool.publish(sequence, tokens);
  pool.release(sequence);
}

int64_t lookUp(SharingPool &pool, quire_tenant tenant, const std::vector<int64_t> &tokens) {
  quire_sequence sequence = pool.sequence(tenant);
  int64_t matched = pool.match(sequence, tokens);
  pool.release(sequence);
  return matched;
}

} // namespace

TEST(PrefixCache, SharesWholeBlocksByReference) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  std::vector<int64_t> tokens = tokensFrom(100, 40);
  quire_sequence first = pool.sequence(tenant), second = pool.sequence(tenant);
  ASSERT_TRUE(pool.store(first, 1, tokens));
  pool.publish(first, tokens);
  EXPECT_EQ(pool.match(second, tokens), 32);
  EXPECT_EQ(pool.table(second), (std::vector<int32_t>{pool.table(first)[0], pool.table(first)[1]}));
  EXPECT_EQ(statsOf(pool.get()).blocks_free, 13);
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, 0);
  ASSERT_TRUE(pool.store(second, 1, tokens));
  pool.expectHolds(second, 1, tokens);
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, 0);
}

TEST(PrefixCache, LeavesOneTokenToCompute) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  leaveBehind(pool, tenant, tokensFrom(0, 32));
  EXPECT_EQ(lookUp(pool, tenant, tokensFrom(0, 33)), 32);
  EXPECT_EQ(lookUp(pool, tenant, tokensFrom(0, 32)), 16);
  EXPECT_EQ(lookUp(pool, tenant, tokensFrom(0, 17)), 16);
  EXPECT_EQ(lookUp(pool, tenant, tokensFrom(0, 16)), 0);
  EXPECT_EQ(lookUp(pool, tenant, tokensFrom(0, 1)), 0);
}

TEST(PrefixCache, TokensAtAnotherPlaceAreNotFound) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  leaveBehind(pool, tenant, tokensFrom(0, 48));
  EXPECT_EQ(lookUp(pool, tenant, tokensFrom(16, 32)), 0); // the second block's, at the beginning
  std::vector<int64_t> other = tokensFrom(0, 48);
  other[20] = 7;
  EXPECT_EQ(lookUp(pool, tenant, other), 16);
}

TEST(PrefixCache, NeverAcrossTenants) {
  SharingPool pool;
  quire_tenant a = pool.tenant("a"), b = pool.tenant("b");
  leaveBehind(pool, a, tokensFrom(0, 48));
  EXPECT_EQ(lookUp(pool, a, tokensFrom(0, 48)), 32); // the paired positive case
  EXPECT_EQ(lookUp(pool, b, tokensFrom(0, 48)), 0);
  quire_tenant unnamed[2];
  for (quire_tenant &tenant : unnamed)
    ASSERT_EQ(quire_tenant_create(pool.get(), nullptr, &tenant), QUIRE_OK);
  leaveBehind(pool, unnamed[0], tokensFrom(0, 48));
  EXPECT_EQ(lookUp(pool, unnamed[0], tokensFrom(0, 48)), 32);
  EXPECT_EQ(lookUp(pool, unnamed[1], tokensFrom(0, 48)), 0);
}

// Every key is one of 256, of one, or of two: what the keys say is never believed.
TEST(PrefixCache, ForcedCollisionsAreMisses) {
  for (unsigned bits : {0u, 1u, 8u}) {
    Pool::Options options;
    options.prefix.hashBits = bits;
    SharingPool pool(options, 160);
    quire_tenant a = pool.tenant("a"), b = pool.tenant("b");
    int64_t hits = 0;
    for (int64_t i = 0; i < 120; ++i) {
      quire_sequence sequence = pool.sequence(i % 2 ? a : b);
      std::vector<int64_t> tokens = tokensFrom(1000 * i, 17);
      EXPECT_EQ(pool.match(sequence, tokens), 0) << i;
      ASSERT_TRUE(pool.store(sequence, i % 2 ? a : b, tokens));
      pool.publish(sequence, tokens);
      pool.release(sequence);
      int64_t matched = lookUp(pool, i % 2 ? a : b, tokens);
      EXPECT_TRUE(matched == 0 || matched == 16);
      EXPECT_EQ(lookUp(pool, i % 2 ? b : a, tokens), 0);
      hits += matched > 0;
    }
    EXPECT_LE(hits, 1 << bits);
    EXPECT_GE(hits, bits == 8 ? 60 : 1);
    EXPECT_GT(pool.stats(a).collisions + pool.stats(b).collisions, 0);
  }
}

TEST(PrefixCache, KeysDependOnEveryField) {
  Salt a = deriveSalt("a", 1), b = deriveSalt("b", 1);
  std::vector<int64_t> tokens = tokensFrom(0, 16), others = tokensFrom(1, 16);
  BlockKey root = chainKey(a, nullptr, tokens.data(), 16);
  EXPECT_EQ(root, chainKey(deriveSalt("a", 1), nullptr, tokens.data(), 16));
  EXPECT_NE(root, chainKey(b, nullptr, tokens.data(), 16));
  EXPECT_NE(root, chainKey(a, nullptr, others.data(), 16));
  EXPECT_NE(root, chainKey(a, &root, tokens.data(), 16));
  EXPECT_NE(root, chainKey(a, nullptr, tokens.data(), 15));
  // The lengths are part of it: four tokens that continue a key are not the key's.
  BlockKey zero = {};
  EXPECT_NE(chainKey(a, &zero, tokens.data(), 12), chainKey(a, nullptr, tokens.data(), 16));
  EXPECT_NE(deriveSalt("ab", 2), deriveSalt("ab", 1));
  EXPECT_NE(randomSalt(), randomSalt());
}

TEST(PrefixCache, BlocksStayWhenTheirUsersAreGone) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  leaveBehind(pool, tenant, tokensFrom(0, 40));
  EXPECT_EQ(statsOf(pool.get()).blocks_free, 14);
  EXPECT_EQ(statsOf(pool.get()).blocks_reclaimable, 2);
  quire_sequence sequence = pool.sequence(tenant);
  EXPECT_EQ(pool.match(sequence, tokensFrom(0, 40)), 32);
  EXPECT_EQ(statsOf(pool.get()).blocks_reclaimable, 0);
  pool.expectHolds(sequence, tenant, tokensFrom(0, 32));
}

TEST(PrefixCache, GivesBlocksBackWhenThePoolRunsShort) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  leaveBehind(pool, tenant, tokensFrom(0, 128));
  quire_sequence user = pool.sequence(tenant);
  EXPECT_EQ(pool.match(user, tokensFrom(0, 33)), 32);
  EXPECT_EQ(statsOf(pool.get()).blocks_free, 8);
  EXPECT_EQ(statsOf(pool.get()).blocks_reclaimable, 6);
  quire_block blocks[16];
  EXPECT_EQ(quire_pool_allocate(pool.get(), 15, blocks), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(statsOf(pool.get()).blocks_reclaimable, 6) << "a call that fails changes nothing";
  EXPECT_EQ(quire_pool_allocate(pool.get(), 12, blocks), QUIRE_OK); // 8 free ones, 4 evicted
  EXPECT_EQ(statsOf(pool.get()).blocks_reclaimable, 2);
  EXPECT_EQ(pool.stats(tenant).blocks_evicted, 4);
  pool.release(user);
  EXPECT_EQ(lookUp(pool, tenant, tokensFrom(0, 128)), 64); // the end of the prefix went, its beginning did not
  quire_sequence large = pool.sequence(tenant);
  EXPECT_TRUE(pool.store(large, tenant, tokensFrom(500, 64)));
  EXPECT_EQ(lookUp(pool, tenant, tokensFrom(0, 128)), 0);
  pool.expectHolds(large, tenant, tokensFrom(500, 64));
}

TEST(PrefixCache, StepsGetTheBlocksToo) {
  quire_pool_options options = {};
  options.struct_size = sizeof(options);
  options.bytes = static_cast<uint64_t>(4 * quire_model_block_bytes(&toyInfo()));
  options.prefix_cache = 1;
  options.poison = 1;
  quire_pool *made = nullptr;
  ASSERT_EQ(quire_pool_create(&toyInfo(), &options, &made), QUIRE_OK);
  quire::serving::PoolPointer pool(made);
  quire::serving::ModelPointer model = makeModel();
  quire::serving::ExecutorPointer executor = makeExecutor(model.get(), pool.get());
  quire_tenant tenant = 0;
  ASSERT_EQ(quire_tenant_create(pool.get(), nullptr, &tenant), QUIRE_OK);
  std::vector<float> logits(static_cast<size_t>(toyInfo().vocabulary));
  auto prefill = [&](const std::vector<int64_t> &tokens) {
    quire_sequence_options wanted = {sizeof(wanted), tenant, 0};
    quire_sequence sequence = 0;
    EXPECT_EQ(quire_sequence_create_with(pool.get(), &wanted, &sequence), QUIRE_OK);
    int64_t total = static_cast<int64_t>(tokens.size()), matched = 0;
    EXPECT_EQ(quire_sequence_match_prefix(pool.get(), sequence, tokens.data(), total, &matched), QUIRE_OK);
    int64_t count = total - matched, last = count - 1;
    quire_batch batch = {sizeof(batch), 1, &sequence, &count, tokens.data() + matched, &last, 1};
    EXPECT_EQ(quire_executor_step(executor.get(), &batch, logits.data()), QUIRE_OK) << quire_last_error();
    EXPECT_EQ(logits, toyLogits(tokens));
    EXPECT_EQ(quire_sequence_publish(pool.get(), sequence, tokens.data(), total), QUIRE_OK);
    EXPECT_EQ(quire_sequence_release(pool.get(), sequence), QUIRE_OK);
    return matched;
  };
  std::vector<int64_t> shared(40, 5), other(50, 6);
  EXPECT_EQ(prefill(shared), 0);
  shared[36] = 9;
  EXPECT_EQ(prefill(shared), 32);
  EXPECT_EQ(prefill(other), 0); // needs all blocks of the pool
  EXPECT_EQ(prefill(shared), 0);
}

TEST(PrefixCache, WritingIntoACachedBlockCopiesIt) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  std::vector<int64_t> tokens = tokensFrom(0, 32), changed = tokens;
  quire_sequence sequence = pool.sequence(tenant);
  ASSERT_TRUE(pool.store(sequence, tenant, tokens));
  pool.publish(sequence, tokens);
  ASSERT_EQ(quire_sequence_truncate(pool.get(), sequence, 20), QUIRE_OK);
  changed[20] = 99;
  ASSERT_TRUE(pool.store(sequence, tenant, changed));
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, quire_model_block_bytes(&toyInfo()));
  pool.publish(sequence, changed);
  pool.expectHolds(sequence, tenant, changed);
  pool.release(sequence);
  quire_sequence second = pool.sequence(tenant), third = pool.sequence(tenant);
  std::vector<int64_t> longer = tokens, longerChanged = changed;
  longer.push_back(1);
  longerChanged.push_back(1);
  EXPECT_EQ(pool.match(second, longer), 32);
  EXPECT_EQ(pool.match(third, longerChanged), 32);
  pool.expectHolds(second, tenant, tokens);
  pool.expectHolds(third, tenant, changed);
}

TEST(PrefixCache, EqualBlocksOfTwoSequencesBecomeOne) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  std::vector<int64_t> tokens = tokensFrom(0, 40);
  quire_sequence first = pool.sequence(tenant), second = pool.sequence(tenant);
  ASSERT_TRUE(pool.store(first, tenant, tokens) && pool.store(second, tenant, tokens));
  EXPECT_EQ(statsOf(pool.get()).blocks_free, 10);
  pool.publish(first, tokens);
  pool.publish(second, tokens);
  EXPECT_EQ(statsOf(pool.get()).blocks_free, 12);
  EXPECT_EQ(pool.table(first)[0], pool.table(second)[0]);
  EXPECT_EQ(pool.table(first)[1], pool.table(second)[1]);
  EXPECT_NE(pool.table(first)[2], pool.table(second)[2]);
  EXPECT_EQ(pool.stats(tenant).blocks_published, 2);
  EXPECT_EQ(pool.stats(tenant).blocks_merged, 2);
  pool.expectHolds(second, tenant, tokens);
  EXPECT_EQ(statsOf(pool.get()).copied_bytes, 0);
}

TEST(PrefixCache, PublishingAgainAddsWhatIsNew) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  std::vector<int64_t> tokens = tokensFrom(0, 100);
  quire_sequence sequence = pool.sequence(tenant);
  for (int64_t length : {10, 16, 17, 47, 48, 100}) {
    std::vector<int64_t> begin(tokens.begin(), tokens.begin() + length);
    ASSERT_TRUE(pool.store(sequence, tenant, begin));
    pool.publish(sequence, begin);
    EXPECT_EQ(pool.stats(tenant).blocks_cached, length / 16);
  }
}

TEST(PrefixCache, RefusesWhatBreaksTheContract) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  std::vector<int64_t> tokens = tokensFrom(0, 40), others = tokensFrom(1, 40);
  quire_sequence sequence = pool.sequence(tenant), nobodys = pool.sequence(0);
  int64_t matched = -7;
  ASSERT_TRUE(pool.store(sequence, tenant, tokens) && pool.store(nobodys, 0, tokens));
  auto publish = [&](quire_sequence s, const std::vector<int64_t> &t, int64_t count) {
    return quire_sequence_publish(pool.get(), s, t.data(), count);
  };
  EXPECT_EQ(publish(sequence, tokens, 41), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected at most the 40 tokens that are stored, but got 41");
  EXPECT_EQ(publish(sequence, tokens, -1), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(publish(nobodys, tokens, 40), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected a sequence of a tenant");
  EXPECT_EQ(publish(sequence, tokens, 40), QUIRE_OK);
  EXPECT_EQ(publish(sequence, others, 40), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "block 0 of the sequence was published with other tokens");
  EXPECT_EQ(quire_sequence_match_prefix(pool.get(), sequence, tokens.data(), 40, &matched), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected an empty sequence, but got one with 3 blocks");
  EXPECT_EQ(quire_sequence_match_prefix(pool.get(), sequence, nullptr, 40, &matched), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(matched, -7);
  quire::serving::PoolPointer plain = makePool();
  quire_sequence other = 0;
  ASSERT_EQ(quire_sequence_create(plain.get(), &other), QUIRE_OK);
  EXPECT_EQ(quire_sequence_match_prefix(plain.get(), other, tokens.data(), 40, &matched), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "expected a pool with prefix_cache");
}

TEST(PrefixCache, QueriesCountOnceAndWhenTokensAreStored) {
  SharingPool pool;
  quire_tenant tenant = pool.tenant("a");
  std::vector<int64_t> tokens = tokensFrom(0, 40);
  quire_sequence first = pool.sequence(tenant);
  EXPECT_EQ(pool.match(first, tokens), 0);
  EXPECT_EQ(pool.stats(tenant).queries, 0);
  ASSERT_TRUE(pool.store(first, tenant, tokens));
  EXPECT_EQ(pool.stats(tenant).queries, 1);
  pool.publish(first, tokens);
  for (int i = 0; i < 5; ++i) // admissions that find no room
    EXPECT_EQ(lookUp(pool, tenant, tokens), 32);
  EXPECT_EQ(pool.stats(tenant).queries, 1);
  quire_sequence second = pool.sequence(tenant);
  EXPECT_EQ(pool.match(second, tokens), 32);
  ASSERT_EQ(quire_sequence_truncate(pool.get(), second, 0), QUIRE_OK);
  EXPECT_EQ(pool.match(second, tokens), 32);
  ASSERT_TRUE(pool.store(second, tenant, tokens));
  EXPECT_EQ(pool.stats(tenant).queries, 2);
  EXPECT_EQ(pool.stats(tenant).query_tokens, 80);
  EXPECT_EQ(pool.stats(tenant).hit_tokens, 32);
  // One that was counted before it gave way.
  pool.release(second);
  quire_sequence again = pool.sequence(tenant, true);
  EXPECT_EQ(pool.match(again, tokens), 32);
  ASSERT_TRUE(pool.store(again, tenant, tokens));
  EXPECT_EQ(pool.stats(tenant).queries, 2);
  EXPECT_EQ(pool.stats(tenant).hit_tokens, 32);
}

/// The index alone, against lists: which entry gives way, and that no order of calls breaks it.
TEST(PrefixCache, EvictsLikeAListOfLeaves) {
  std::mt19937 random(3);
  constexpr uint32_t blocks = 24;
  PrefixCache cache(blocks, 1, {});
  Salt salt = randomSalt();
  std::map<uint32_t, uint32_t> parents; // of entries
  std::vector<uint32_t> idleOrder;      // the oldest first
  auto hasChild = [&](uint32_t block) {
    return std::any_of(parents.begin(), parents.end(), [&](auto &entry) { return entry.second == block; });
  };
  auto isIdle = [&](uint32_t b) { return std::find(idleOrder.begin(), idleOrder.end(), b) != idleOrder.end(); };
  for (int step = 0; step < 20000; ++step) {
    uint32_t block = random() % blocks, parent = random() % (blocks + 1);
    if (parent == blocks)
      parent = PrefixCache::none;
    if (!cache.contains(block)) {
      if (parent != PrefixCache::none && (!cache.contains(parent) || isIdle(parent)))
        continue;
      int64_t token = random() % 1000;
      PrefixCache::Probe probe = cache.find(1, salt, parent, &token);
      if (probe.block == PrefixCache::none)
        cache.insert(block, 1, parent, &token, probe.key), parents[block] = parent;
    } else if (random() % 3 == 0) {
      uint32_t victim = cache.victim(), expected = PrefixCache::none;
      for (auto at = idleOrder.rbegin(); at != idleOrder.rend(); ++at)
        if (!hasChild(*at))
          expected = *at;
      ASSERT_EQ(victim, expected);
      if (victim != PrefixCache::none) {
        cache.remove(victim);
        parents.erase(victim);
        idleOrder.erase(std::find(idleOrder.begin(), idleOrder.end(), victim));
      }
    } else if (isIdle(block)) { // with all before it
      for (uint32_t at = block; at != PrefixCache::none && isIdle(at); at = parents[at]) {
        cache.addUsers(at);
        idleOrder.erase(std::find(idleOrder.begin(), idleOrder.end(), at));
      }
    } else { // with all below it
      for (bool more = true; more;) {
        more = false;
        for (const auto &entry : parents) {
          uint32_t child = entry.first, at = child;
          bool above = std::any_of(parents.begin(), parents.end(),
                                   [&](auto &e) { return e.second == child && !isIdle(e.first); });
          while (at != block && at != PrefixCache::none)
            at = parents[at];
          if (isIdle(child) || above || at != block)
            continue;
          cache.dropUsers(child, step);
          idleOrder.push_back(child);
          more = true;
        }
      }
    }
    Status status = cache.validate();
    ASSERT_TRUE(status.ok()) << status.text();
    ASSERT_EQ(cache.idleCount(), idleOrder.size());
  }
}

namespace {

/// Random operations on sequences of several tenants, with what each must hold.
struct RandomRun {
  struct Live {
    quire_sequence handle;
    size_t tenant;
    std::vector<int64_t> tokens;
  };

  explicit RandomRun(unsigned seed, unsigned hashBits) : pool(options(seed, hashBits), 24), random(seed) {
    for (int i = 0; i < 3; ++i)
      tenants.push_back(pool.tenant(std::to_string(i), i == 2 ? 40 : 0));
  }
  static Pool::Options options(unsigned seed, unsigned hashBits) {
    Pool::Options options;
    options.prefix.hashBits = hashBits;
    options.zeroOnFree = seed % 3 == 1;
    options.poison = seed % 3 == 2;
    options.order.shuffle = seed % 2;
    return options;
  }
  /// Few different texts, so that prefixes are met again.
  int64_t next(const std::vector<int64_t> &tokens) { return tokens.size() % 24 == 20 ? random() % 2 : static_cast<int64_t>(tokens.size() / 3); }

  void begin() {
    Live live{0, random() % 3, {}};
    live.handle = pool.sequence(tenants[live.tenant], random() % 4 == 0);
    std::vector<int64_t> wanted;
    for (size_t length = 1 + random() % 90; wanted.size() < length;)
      wanted.push_back(next(wanted));
    int64_t matched = pool.match(live.handle, wanted);
    hits += matched > 0;
    live.tokens.assign(wanted.begin(), wanted.begin() + matched);
    sequences.push_back(live);
  }
  void grow(Live &live) {
    std::vector<int64_t> wanted = live.tokens;
    for (size_t more = 1 + random() % 30; more-- && wanted.size() < 256;)
      wanted.push_back(next(wanted));
    if (pool.store(live.handle, live.tenant, wanted))
      live.tokens = wanted;
  }
  void end(size_t i) {
    pool.release(sequences[i].handle);
    sequences.erase(sequences.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void fork(const Live &live) {
    Live copy = live;
    copy.tokens.resize(random() % (copy.tokens.size() + 1));
    ASSERT_EQ(quire_sequence_fork(pool.get(), live.handle, static_cast<int64_t>(copy.tokens.size()), &copy.handle), QUIRE_OK);
    sequences.push_back(copy);
  }
  void truncate(Live &live) {
    live.tokens.resize(random() % (live.tokens.size() + 1));
    ASSERT_EQ(quire_sequence_truncate(pool.get(), live.handle, static_cast<int64_t>(live.tokens.size())), QUIRE_OK);
  }
  void replaceTenant() {
    size_t slot = random() % 3;
    for (size_t i = sequences.size(); i-- > 0;)
      if (sequences[i].tenant == slot)
        end(i);
    ASSERT_EQ(quire_tenant_destroy(pool.get(), tenants[slot]), QUIRE_OK) << quire_last_error();
    tenants[slot] = pool.tenant(std::to_string(slot), slot == 2 ? 40 : 0);
  }
  void act() {
    unsigned kind = random() % 100;
    if (sequences.empty() || (kind < 20 && sequences.size() < 12))
      return begin();
    size_t i = random() % sequences.size();
    Live &live = sequences[i];
    if (kind < 45)
      grow(live);
    else if (kind < 65)
      pool.publish(live.handle, live.tokens);
    else if (kind < 80)
      end(i);
    else if (kind < 85)
      fork(Live(live));
    else if (kind < 91)
      truncate(live);
    else if (kind < 95)
      ASSERT_EQ(quire_sequence_move(pool.get(), live.handle, &live.handle), QUIRE_OK);
    else if (kind < 99)
      ASSERT_EQ(quire_pool_advance(pool.get(), now += random() % 60, nullptr), QUIRE_OK);
    else
      replaceTenant();
  }

  SharingPool pool;
  std::mt19937 random;
  std::vector<quire_tenant> tenants;
  std::vector<Live> sequences;
  int64_t now = 0;
  int64_t hits = 0;
};

} // namespace

TEST(PrefixCache, RandomOperationsNeverMixContents) {
  int64_t hits = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    RandomRun run(seed, seed % 4 == 3 ? 3 : 256);
    for (int step = 0; step < 1500; ++step) {
      run.act();
      ASSERT_EQ(quire_pool_validate(run.pool.get()), QUIRE_OK) << quire_last_error();
      for (const RandomRun::Live &live : run.sequences)
        if (step % 25 == 0 || &live == &run.sequences.back())
          ASSERT_NO_FATAL_FAILURE(run.pool.expectHolds(live.handle, live.tenant, live.tokens)) << seed << " " << step;
    }
    while (!run.sequences.empty())
      run.end(0);
    for (quire_tenant tenant : run.tenants)
      ASSERT_EQ(quire_tenant_destroy(run.pool.get(), tenant), QUIRE_OK);
    EXPECT_EQ(statsOf(run.pool.get()).blocks_free, 24);
    hits += run.hits;
  }
  EXPECT_GT(hits, 100);
}

// One fork takes the cached block for its own, the other keeps its copy of the same tokens. What they share behind it is
// found through the cached one, which has to stay as long.
TEST(PrefixCache, ASharedBlockBehindAMergedOneKeepsItsPrefix) {
  SharingPool pool({}, 8);
  quire_tenant tenant = pool.tenant("a");
  std::vector<int64_t> tokens = tokensFrom(0, 32), longer = tokensFrom(0, 40);
  leaveBehind(pool, tenant, tokensFrom(0, 16));
  quire_sequence first = pool.sequence(tenant), second = 0;
  ASSERT_TRUE(pool.store(first, tenant, tokens));
  ASSERT_EQ(quire_sequence_fork(pool.get(), first, 32, &second), QUIRE_OK);
  pool.publish(first, tokens);
  EXPECT_NE(pool.table(first)[0], pool.table(second)[0]);
  EXPECT_EQ(pool.table(first)[1], pool.table(second)[1]);
  pool.release(first);
  EXPECT_EQ(quire_pool_validate(pool.get()), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(statsOf(pool.get()).blocks_reclaimable, 0) << "both are needed";
  quire_block blocks[8];
  EXPECT_EQ(quire_pool_allocate(pool.get(), 6, blocks), QUIRE_OUT_OF_BLOCKS);
  EXPECT_EQ(lookUp(pool, tenant, longer), 32);
  pool.release(second);
  EXPECT_EQ(statsOf(pool.get()).blocks_reclaimable, 2);
  EXPECT_EQ(quire_pool_allocate(pool.get(), 8, blocks), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(pool.stats(tenant).blocks_evicted, 2);
}
