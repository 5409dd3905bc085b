// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps: ragged batches against the contiguous reference, call traces, refused batches, no heap use.
#include "AllocationCount.h"
#include "TestPool.h"

#include <cstdlib>
#include <new>

using namespace quire::test;

#ifndef QUIRE_CHECK_INVARIANTS // the checks allocate, and sanitizers have an operator new of their own
/// Allocations through operator new of this program, on all threads. Other tests count with it.
extern std::atomic<int64_t> allocations;
std::atomic<int64_t> allocations{0};

void *operator new(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void *memory = std::malloc(bytes))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
#endif

namespace {

class Executor : public ::testing::Test {
protected:
  quire_sequence create() {
    quire_sequence sequence = 0;
    EXPECT_EQ(quire_sequence_create(pool.get(), &sequence), QUIRE_OK);
    return sequence;
  }

  quire_status step(const std::vector<quire_sequence> &sequences, const std::vector<std::vector<int64_t>> &tokens,
                    const std::vector<int64_t> &selected) {
    std::vector<int64_t> counts, flat;
    for (const std::vector<int64_t> &t : tokens) {
      counts.push_back(static_cast<int64_t>(t.size()));
      flat.insert(flat.end(), t.begin(), t.end());
    }
    logits.assign(selected.size() * static_cast<size_t>(toyInfo().vocabulary), -1);
    quire_batch batch = {};
    batch.struct_size = sizeof(batch);
    batch.sequence_count = static_cast<int64_t>(sequences.size());
    batch.sequences = sequences.data();
    batch.token_counts = counts.data();
    batch.tokens = flat.data();
    batch.selected = selected.data();
    batch.selected_count = static_cast<int64_t>(selected.size());
    return quire_executor_step(executor.get(), &batch, logits.data());
  }

  std::vector<float> row(size_t index) {
    auto begin = logits.begin() + static_cast<std::ptrdiff_t>(index * static_cast<size_t>(toyInfo().vocabulary));
    return std::vector<float>(begin, begin + toyInfo().vocabulary);
  }

  std::vector<int64_t> tokens(size_t count, int64_t seed) {
    std::vector<int64_t> made;
    for (size_t i = 0; i < count; ++i)
      made.push_back((seed * 31 + static_cast<int64_t>(i) * 17) % toyInfo().token_limit);
    return made;
  }

  quire::serving::ModelPointer model = makeModel();
  quire::serving::PoolPointer pool = makePool({20, true, 3, true});
  quire::serving::ExecutorPointer executor = makeExecutor(model.get(), pool.get(), 3, 256, 8, 1000);
  std::vector<float> logits;
};

} // namespace

TEST_F(Executor, RaggedStepsMatchContiguousReference) {
  quire_sequence a = create(), b = create(), c = create();
  std::vector<int64_t> ta = tokens(33, 1), tb = tokens(1, 2), tc = tokens(16, 3);
  ASSERT_EQ(step({a, b, c}, {ta, tb, tc}, {32, 33, 49}), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(row(0), toyLogits(ta));
  EXPECT_EQ(row(1), toyLogits(tb));
  EXPECT_EQ(row(2), toyLogits(tc));
  // Decode and prefill mixed, in another order, some rows not asked for.
  tc.push_back(5);
  std::vector<int64_t> more = tokens(20, 9);
  tb.insert(tb.end(), more.begin(), more.end());
  ASSERT_EQ(step({c, b}, {{5}, more}, {0, 20}), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(row(0), toyLogits(tc));
  EXPECT_EQ(row(1), toyLogits(tb));
  int64_t length;
  ASSERT_EQ(quire_sequence_length(pool.get(), b, &length), QUIRE_OK);
  EXPECT_EQ(length, 21);
}

TEST_F(Executor, ForkedSequencesContinueApart) {
  quire_sequence a = create(), b = 0;
  std::vector<int64_t> shared = tokens(21, 4);
  ASSERT_EQ(step({a}, {shared}, {}), QUIRE_OK);
  ASSERT_EQ(quire_sequence_fork(pool.get(), a, 19, &b), QUIRE_OK);
  std::vector<int64_t> ta = shared, tb(shared.begin(), shared.begin() + 19);
  ta.push_back(1);
  tb.push_back(2);
  ASSERT_EQ(step({a, b}, {{1}, {2}}, {0, 1}), QUIRE_OK);
  EXPECT_EQ(row(0), toyLogits(ta));
  EXPECT_EQ(row(1), toyLogits(tb));
}

TEST_F(Executor, ExplicitTablesInAnyOrder) {
  std::vector<int64_t> t = tokens(40, 6);
  std::vector<int32_t> table = {-5, -5, -5, 11, 3, 19}; // row 1 of 2
  table[0] = 7;
  int64_t counts[] = {1, 40}, past[] = {0, 0}, selected[] = {0, 40};
  std::vector<int64_t> ids = {8};
  ids.insert(ids.end(), t.begin(), t.end());
  quire_explicit_batch batch = {};
  batch.struct_size = sizeof(batch);
  batch.sequence_count = 2;
  batch.token_counts = counts;
  batch.tokens = ids.data();
  batch.past_lens = past;
  batch.block_tables = table.data();
  batch.table_stride = 3;
  batch.selected = selected;
  batch.selected_count = 2;
  logits.assign(2 * static_cast<size_t>(toyInfo().vocabulary), -1);
  ASSERT_EQ(quire_executor_invoke(executor.get(), &batch, logits.data()), QUIRE_OK) << quire_last_error();
  EXPECT_EQ(row(0), toyLogits({8}));
  EXPECT_EQ(row(1), toyLogits(t));
  EXPECT_EQ(statsOf(pool.get()).blocks_free, 20); // the pool's records are not touched

  table[4] = 20;
  EXPECT_EQ(quire_executor_invoke(executor.get(), &batch, logits.data()), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "block_tables[1][1]: expected 0 to 19, but got 20");
  table[4] = 3;
  past[0] = 256;
  EXPECT_EQ(quire_executor_invoke(executor.get(), &batch, logits.data()), QUIRE_TOO_LONG);
  past[0] = 48;
  EXPECT_EQ(quire_executor_invoke(executor.get(), &batch, logits.data()), QUIRE_INVALID_ARGUMENT); // stride
}

TEST_F(Executor, NextLayerIsRequestedBeforeThisOneIsReleased) {
  quire_sequence a = create();
  ASSERT_EQ(step({a}, {{1, 2, 3}}, {2}), QUIRE_OK);
  const quire_trace_event *events;
  int64_t count;
  ASSERT_EQ(quire_executor_trace(executor.get(), &events, &count), QUIRE_OK);
  std::vector<std::pair<int64_t, int64_t>> seen;
  for (int64_t i = 0; i < count; ++i) {
    seen.emplace_back(events[i].kind, events[i].layer);
    EXPECT_EQ(events[i].step, 0);
    EXPECT_GE(events[i].nanoseconds, i ? events[i - 1].nanoseconds : 0);
  }
  std::vector<std::pair<int64_t, int64_t>> expected = {
      {QUIRE_TRACE_ACQUIRE, 0},  {QUIRE_TRACE_PREFETCH, 1}, {QUIRE_TRACE_RELEASE, 0}, {QUIRE_TRACE_ACQUIRE, 1},
      {QUIRE_TRACE_PREFETCH, 2}, {QUIRE_TRACE_RELEASE, 1},  {QUIRE_TRACE_ACQUIRE, 2}, {QUIRE_TRACE_RELEASE, 2}};
  EXPECT_EQ(seen, expected);
  quire_executor_stats stats = {};
  stats.struct_size = sizeof(stats);
  ASSERT_EQ(quire_executor_get_stats(executor.get(), &stats), QUIRE_OK);
  EXPECT_EQ(stats.prefetch_issued, 2);
  EXPECT_EQ(stats.prefetch_redundant, 2);
  EXPECT_EQ(stats.steps, 1);
  EXPECT_EQ(stats.tokens, 3);
}

#ifndef QUIRE_CHECK_INVARIANTS
TEST_F(Executor, StepUsesNoHeap) {
  quire_sequence a = create(), b = create();
  std::vector<quire_sequence> sequences = {a, b};
  std::vector<int64_t> counts = {20, 1}, selected = {19, 20}, ids(21, 3);
  logits.resize(2 * static_cast<size_t>(toyInfo().vocabulary));
  quire_batch batch = {};
  batch.struct_size = sizeof(batch);
  batch.sequence_count = 2;
  batch.sequences = sequences.data();
  batch.token_counts = counts.data();
  batch.tokens = ids.data();
  batch.selected = selected.data();
  batch.selected_count = 2;
  int64_t before = allocations.load(), failed = 0;
  for (int i = 0; i < 5; ++i)
    failed += quire_executor_step(executor.get(), &batch, logits.data()) != QUIRE_OK;
  int64_t after = allocations.load();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(after, before);
}

TEST(PrefixCache, UsesNoHeap) {
  PoolSettings settings;
  settings.prefixCache = true;
  quire::serving::PoolPointer pool = makePool(settings);
  quire_tenant tenant = 0;
  ASSERT_EQ(quire_tenant_create(pool.get(), nullptr, &tenant), QUIRE_OK);
  quire_sequence_options options = {sizeof(options), tenant, 0};
  quire_sequence sequence = 0;
  std::vector<int64_t> tokens(160);
  int64_t before = 0, failed = 0, matched = 0;
  for (int64_t round = 0; round < 8; ++round) { // of which most evict
    ASSERT_EQ(quire_sequence_create_with(pool.get(), &options, &sequence), QUIRE_OK);
    before = allocations.load();
    for (size_t i = 0; i < tokens.size(); ++i)
      tokens[i] = i < 40 ? 1 : round;
    failed += quire_sequence_match_prefix(pool.get(), sequence, tokens.data(), 160, &matched) != QUIRE_OK;
    failed += quire_sequence_reserve(pool.get(), sequence, 160 - matched) != QUIRE_OK;
    failed += quire_sequence_commit(pool.get(), sequence, 160 - matched) != QUIRE_OK;
    failed += quire_sequence_publish(pool.get(), sequence, tokens.data(), 160) != QUIRE_OK;
    failed += quire_pool_advance(pool.get(), round, nullptr) != QUIRE_OK;
    failed += quire_sequence_release(pool.get(), sequence) != QUIRE_OK;
    EXPECT_EQ(allocations.load(), before) << round;
    EXPECT_EQ(matched, round ? 32 : 0);
  }
  EXPECT_EQ(failed, 0);
}
#endif

TEST_F(Executor, FailedStepChangesNothing) {
  quire_sequence a = create(), b = create();
  ASSERT_EQ(step({a}, {tokens(200, 1)}, {}), QUIRE_OK);
  int64_t free = statsOf(pool.get()).blocks_free;
  EXPECT_EQ(step({b, a}, {tokens(100, 1), {1}}, {}), QUIRE_OK);
  EXPECT_EQ(statsOf(pool.get()).blocks_free, free - 7);
  // 0 blocks are left: a needs none for 7 more, b needs some.
  EXPECT_EQ(step({a, b}, {tokens(7, 1), tokens(13, 1)}, {}), QUIRE_OUT_OF_BLOCKS);
  int64_t length;
  ASSERT_EQ(quire_sequence_length(pool.get(), a, &length), QUIRE_OK);
  EXPECT_EQ(length, 201);
  EXPECT_EQ(statsOf(pool.get()).blocks_free, free - 7);
}

TEST_F(Executor, RefusesBadBatches) {
  quire_sequence a = create();
  EXPECT_EQ(step({a}, {{97}}, {}), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "tokens[0]: expected 0 to 96, but got 97");
  EXPECT_EQ(step({a}, {{-1}}, {}), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(step({a}, {{}}, {}), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(step({}, {}, {}), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(step({a, a}, {{1}, {2}}, {}), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(step({a}, {{1, 2}}, {1, 0}), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(step({a}, {{1, 2}}, {2}), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(step({a}, {{1, 2}}, {-1}), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(step({a}, {tokens(257, 1)}, {}), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(step({12345}, {{1}}, {}), QUIRE_INVALID_ARGUMENT);
  quire_batch batch = {};
  EXPECT_EQ(quire_executor_step(executor.get(), &batch, nullptr), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "struct_size is not set");
  int64_t length;
  ASSERT_EQ(quire_sequence_length(pool.get(), a, &length), QUIRE_OK);
  EXPECT_EQ(length, 0);
}

TEST_F(Executor, PoolOfAnotherShapeIsRefused) {
  quire_model_info other = toyInfo();
  other.layer_count = 2;
  quire::serving::PoolPointer pool2 = makePool({}, other);
  quire_executor *out = nullptr;
  EXPECT_EQ(quire_executor_create(model.get(), pool2.get(), nullptr, &out), QUIRE_INVALID_ARGUMENT);
  quire_executor_options options = {};
  options.struct_size = sizeof(options);
  options.threads = 5000;
  EXPECT_EQ(quire_executor_create(model.get(), pool.get(), &options, &out), QUIRE_INVALID_ARGUMENT);
}

TEST_F(Executor, UnpairedCallsOfTheModelAreCaught) {
  static quire_model_info info = toyInfo();
  info.weights_bytes = 0;
  quire_sequence a = create();
  auto run = [&](void (*code)(const quire_step *)) {
    info.step = code;
    quire_model *made = nullptr;
    EXPECT_EQ(quire_model_from_info(&info, nullptr, &made), QUIRE_OK);
    quire::serving::ModelPointer owner(made);
    executor = makeExecutor(made, pool.get());
    return step({a}, {{1}}, {});
  };
  EXPECT_EQ(run([](const quire_step *s) {
              quire_kv_view view;
              s->runtime->acquire(s->context, 1, &view);
            }),
            QUIRE_INVARIANT_BROKEN);
  EXPECT_EQ(run([](const quire_step *s) { s->runtime->release(s->context, 0); }), QUIRE_INVARIANT_BROKEN);
  EXPECT_EQ(run([](const quire_step *s) { s->runtime->prefetch(s->context, -1, 0, 1); }), QUIRE_INVARIANT_BROKEN);
  EXPECT_EQ(run([](const quire_step *s) {
              quire_kv_view view;
              s->runtime->acquire(s->context, 3, &view);
            }),
            QUIRE_INVARIANT_BROKEN);
  EXPECT_EQ(run([](const quire_step *) {}), QUIRE_OK);
}
