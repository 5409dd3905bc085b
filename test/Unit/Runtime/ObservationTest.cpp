// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What steps attend to: shares by block, to the caller, the policy, the trace and the doctor.
#include "TieredPool.h"
#include "ToyModel.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace quire::test;

namespace {

quire::serving::ExecutorPointer makeObserver(quire_model *model, quire_pool *pool, bool observe) {
  quire_executor_options options = {};
  options.struct_size = sizeof(options);
  options.threads = 2;
  options.max_sequences = 4;
  options.observe = observe;
  quire_executor *executor = nullptr;
  EXPECT_EQ(quire_executor_create(model, pool, &options, &executor), QUIRE_OK) << quire_last_error();
  return quire::serving::ExecutorPointer(executor);
}

/// One step with the given numbers of new tokens.
void step(quire_executor *executor, const std::vector<quire_sequence> &sequences, const std::vector<int64_t> &counts) {
  std::vector<int64_t> tokens;
  for (int64_t count : counts)
    tokens.resize(tokens.size() + static_cast<size_t>(count), 3);
  quire_batch batch = {sizeof(batch), static_cast<int64_t>(sequences.size()), sequences.data(), counts.data(), tokens.data(), nullptr, 0};
  ASSERT_EQ(quire_executor_step(executor, &batch, nullptr), QUIRE_OK) << quire_last_error();
}

quire_sequence create(quire_pool *pool) {
  quire_sequence sequence = 0;
  EXPECT_EQ(quire_sequence_create(pool, &sequence), QUIRE_OK);
  return sequence;
}

/// The toy's share of block `i` of a sequence of `length` tokens: the mean of its two heads.
double share(int64_t length, int64_t i) {
  int64_t block = TOY_BLOCK_TOKENS, blocks = (length + block - 1) / block;
  auto keys = [&](int64_t b) { return static_cast<double>(std::min(block, length - b * block)); };
  double sum = 0;
  for (int64_t b = 0; b < blocks; ++b)
    sum += keys(b) * std::exp(static_cast<double>(b));
  return i < blocks ? 0.5 * keys(i) / static_cast<double>(length) + 0.5 * keys(i) * std::exp(static_cast<double>(i)) / sum : 0.0;
}

TEST(Observation, SharesOfEachSequenceAndLayer) {
  auto model = makeModel();
  auto pool = makePool();
  auto executor = makeObserver(model.get(), pool.get(), true);
  quire_sequence a = create(pool.get()), b = create(pool.get());
  const int64_t block = TOY_BLOCK_TOKENS;
  step(executor.get(), {a, b}, {3 * block - 2, 1});
  step(executor.get(), {b, a}, {block, 1}); // the last step counts, in its order
  for (int64_t layer = 0; layer < TOY_LAYERS; ++layer) {
    const float *shares = nullptr;
    int64_t sequences = 0, stride = 0;
    ASSERT_EQ(quire_executor_attention(executor.get(), layer, &shares, &sequences, &stride), QUIRE_OK);
    ASSERT_NE(shares, nullptr);
    ASSERT_EQ(sequences, 2);
    ASSERT_EQ(stride, 3);
    for (int64_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(shares[i], share(block + 1, i), 1e-6) << i;
      EXPECT_NEAR(shares[3 + i], share(3 * block - 1, i), 1e-6) << i;
    }
  }
}

TEST(Observation, IsAnErrorWhereNothingIsObserved) {
  auto model = makeModel();
  auto pool = makePool();
  auto executor = makeObserver(model.get(), pool.get(), false);
  const float *shares = nullptr;
  int64_t sequences, stride;
  EXPECT_EQ(quire_executor_attention(executor.get(), 0, &shares, &sequences, &stride), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "the executor was made without observe");
  executor = makeObserver(model.get(), pool.get(), true);
  EXPECT_EQ(quire_executor_attention(executor.get(), TOY_LAYERS, &shares, &sequences, &stride), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "layer: expected 0 to 2, but got 3");
  EXPECT_EQ(quire_executor_attention(executor.get(), 0, nullptr, &sequences, &stride), QUIRE_INVALID_ARGUMENT);
  shares = reinterpret_cast<const float *>(&sequences);
  ASSERT_EQ(quire_executor_attention(executor.get(), 0, &shares, &sequences, &stride), QUIRE_OK);
  EXPECT_EQ(shares, nullptr) << "before the first step";
}

TEST(Observation, AStepBeyondWhatThePoolHoldsIsRefused) {
  auto model = makeModel();
  auto pool = makePool({4});
  auto executor = makeObserver(model.get(), pool.get(), true);
  int32_t table[64] = {0};
  int64_t count = 1, token = 1, past = 0;
  quire_explicit_batch batch = {sizeof(batch), 1, &count, &token, &past, table, 64, nullptr, 0};
  EXPECT_EQ(quire_executor_invoke(executor.get(), &batch, nullptr), QUIRE_INVALID_ARGUMENT);
  EXPECT_STREQ(quire_last_error(), "table_stride: 64 entries of 1 sequences are more than the pool has");
}

/// A sequence whose last block has most of the attention, in a fast tier that holds a part of it.
TieredPool importancePool() {
  TieredSettings settings;
  settings.policy = quire::runtime::PolicyKind::Importance;
  settings.window = 0;
  return makeTieredPool(settings);
}

TEST(Observation, ImportanceKeepsWhatIsAttendedTo) {
  auto model = makeModel();
  TieredPool tiered = importancePool();
  auto executor = makeObserver(model.get(), tiered.pool.get(), false); // on by the policy
  quire_sequence sequence = create(tiered.pool.get());
  for (int i = 0; i < 6 * TOY_BLOCK_TOKENS; ++i)
    step(executor.get(), {sequence}, {1});
  const float *shares = nullptr;
  int64_t sequences, stride;
  ASSERT_EQ(quire_executor_attention(executor.get(), 0, &shares, &sequences, &stride), QUIRE_OK);
  ASSERT_EQ(stride, 6);
  EXPECT_NEAR(shares[5], share(6 * TOY_BLOCK_TOKENS, 5), 1e-6);
  const quire::runtime::AttentionSpread &spread = tiered.pager()->attention();
  EXPECT_GT(spread.samples, 0u);
  EXPECT_GT(spread.entropy, 0);
  EXPECT_LT(spread.entropy, spread.logBlocks);
  const char *text = nullptr;
  quire_doctor_options options = {};
  options.struct_size = sizeof(options);
  options.json = 1;
  ASSERT_EQ(quire_doctor(tiered.pool.get(), &options, &text), QUIRE_OK);
  EXPECT_NE(std::string(text).find("\"attention_uniformity\": 0."), std::string::npos) << text;
}

TEST(Observation, TracesHaveTheSharesOfPages) {
  auto model = makeModel();
  TieredPool tiered = makeTieredPool({});
  ASSERT_EQ(quire_pool_trace(tiered.pool.get(), 100000), QUIRE_OK);
  auto executor = makeObserver(model.get(), tiered.pool.get(), false); // on by the trace
  quire_sequence sequence = create(tiered.pool.get());
  const int64_t length = 2 * TOY_BLOCK_TOKENS;
  step(executor.get(), {sequence}, {length});
  std::vector<float> masses;
  for (const auto &event : tiered.pool->pool->trace()->events())
    if (event.kind == quire::runtime::TraceEvent::Kind::Observe)
      masses.push_back(event.mass);
  ASSERT_EQ(masses.size(), size_t(2 * TOY_LAYERS));
  for (size_t i = 0; i < masses.size(); ++i)
    EXPECT_NEAR(masses[i], share(length, static_cast<int64_t>(i % 2)), 1e-6);
}

} // namespace
