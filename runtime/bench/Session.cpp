// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pools of the right size, random contents, timed steps.
#include "bench/Session.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>

namespace quire::bench {

/// Tokens that a sequence may grow by before it is cut back.
static constexpr int64_t stepRoom = 32;

/// Random elements that blocks are copied from, at changing places.
static constexpr size_t patternElements = size_t(1) << 20;

bool Session::fail(const std::string &text) {
  error_ = text;
  return false;
}

bool Session::failed(const char *what) { return fail(std::string(what) + ": " + quire_last_error()); }

bool Session::load(const SessionOptions &options) {
  quire_model *model = nullptr;
  if (quire_model_load(options.model.c_str(), &model) != QUIRE_OK)
    return fail(quire_last_error());
  model_.reset(model);
  options_ = options;
  return true;
}

bool Session::make(const std::vector<int64_t> &lengths, int64_t room, int64_t maxTokens, Engine &out) {
  int64_t blockTokens = info().block_tokens, limit = info().max_positions;
  uint64_t blocks = 0;
  for (int64_t length : lengths) {
    if (limit >= 0 && (length > limit || room > limit - length))
      return fail("a sequence of " + std::to_string(length) + " tokens and " + std::to_string(room) +
                  " more is beyond the model's " + std::to_string(limit) + " positions");
    blocks += static_cast<uint64_t>((length + room + blockTokens - 1) / blockTokens);
  }
  Engine engine;
  quire_pool_options poolOptions = {};
  poolOptions.struct_size = sizeof(poolOptions);
  poolOptions.bytes = blocks * static_cast<uint64_t>(quire_model_block_bytes(&info()));
  quire_pool *pool = nullptr;
  if (quire_pool_create(&info(), &poolOptions, &pool) != QUIRE_OK)
    return failed("making the pool");
  engine.pool.reset(pool);
  quire_executor_options executorOptions = {};
  executorOptions.struct_size = sizeof(executorOptions);
  executorOptions.threads = options_.threads;
  executorOptions.max_sequences = static_cast<int64_t>(lengths.size());
  executorOptions.max_tokens = maxTokens;
  quire_executor *executor = nullptr;
  if (quire_executor_create(model_.get(), pool, &executorOptions, &executor) != QUIRE_OK)
    return failed("making the executor");
  engine.executor.reset(executor);
  quire_executor_stats stats = {};
  stats.struct_size = sizeof(stats);
  quire_executor_get_stats(executor, &stats);
  threads_ = stats.threads;
  for (size_t i = 0; i < lengths.size(); ++i) {
    quire_sequence sequence;
    if (quire_sequence_create(pool, &sequence) != QUIRE_OK)
      return failed("making a sequence");
    engine.sequences.push_back(sequence);
  }
  out = std::move(engine);
  return true;
}

/// `element` as the bits of a value in [-1, 1).
static void appendElement(std::string &out, int64_t element, float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if (element == QUIRE_ELEMENT_F32) {
    out.append(reinterpret_cast<const char *>(&bits), 4);
    return;
  }
  uint16_t half = static_cast<uint16_t>(bits >> 16); // bf16 by truncation
  if (element == QUIRE_ELEMENT_F16) {
    // Small numbers become 0; the others are normal in both formats.
    int32_t exponent = static_cast<int32_t>(bits >> 23 & 0xff) - 127 + 15;
    half = static_cast<uint16_t>(bits >> 16 & 0x8000);
    if (exponent > 0)
      half = static_cast<uint16_t>(half | exponent << 10 | (bits >> 13 & 0x3ff));
  }
  out.append(reinterpret_cast<const char *>(&half), 2);
}

bool Session::fill(Engine &engine, const std::vector<int64_t> &lengths) {
  std::vector<std::string> patterns(3);
  std::uniform_real_distribution<float> value(-1.0f, 1.0f);
  size_t at = 0;
  for (size_t s = 0; s < lengths.size(); ++s) {
    if (lengths[s] > 0 && (quire_sequence_reserve(engine.pool.get(), engine.sequences[s], lengths[s]) != QUIRE_OK ||
                           quire_sequence_commit(engine.pool.get(), engine.sequences[s], lengths[s]) != QUIRE_OK))
      return failed("reserving blocks");
    const int32_t *blocks;
    int64_t count;
    quire_sequence_table(engine.pool.get(), engine.sequences[s], &blocks, &count);
    for (int64_t layer = 0; layer < info().layer_count; ++layer) {
      const quire_model_layer &shape = info().layers[layer];
      std::string &pattern = patterns[static_cast<size_t>(shape.element)];
      while (pattern.size() < patternElements * 2)
        appendElement(pattern, shape.element, value(random_));
      for (int64_t i = 0; i < count; ++i) {
        void *to;
        if (quire_pool_block_address(engine.pool.get(), layer, blocks[i], &to) != QUIRE_OK)
          return failed("filling blocks");
        for (size_t done = 0, bytes = static_cast<size_t>(shape.block_bytes); done < bytes;) {
          size_t piece = std::min(bytes - done, pattern.size() - at);
          std::memcpy(static_cast<char *>(to) + done, pattern.data() + at, piece);
          done += piece;
          at = (at + piece) % pattern.size();
        }
      }
    }
  }
  return true;
}

bool Session::setup(const std::vector<int64_t> &lengths) {
  if (lengths.empty())
    return fail("expected at least one length");
  for (int64_t length : lengths)
    if (length < 0)
      return fail("expected lengths of at least 0, but got " + std::to_string(length));
  release();
  Engine engine;
  if (!make(lengths, stepRoom, static_cast<int64_t>(lengths.size()), engine) || !fill(engine, lengths))
    return false;
  quire_pool_stats stats = {};
  stats.struct_size = sizeof(stats);
  quire_pool_get_stats(engine.pool.get(), &stats);
  kvBytes_ = (stats.blocks_total - stats.blocks_free) * stats.block_bytes;
  lengths_ = lengths;
  decode_ = std::move(engine);
  return true;
}

bool Session::run(Engine &engine, const std::vector<int64_t> &counts, bool wantsLogits, double &seconds) {
  int64_t total = 0;
  selected_.clear();
  for (int64_t count : counts) {
    total += count;
    if (wantsLogits)
      selected_.push_back(total - 1);
  }
  std::uniform_int_distribution<int64_t> id(0, info().token_limit - 1);
  tokens_.resize(static_cast<size_t>(total));
  std::generate(tokens_.begin(), tokens_.end(), [&] { return id(random_); });
  logits_.resize(selected_.size() * static_cast<size_t>(info().vocabulary));
  quire_batch batch = {};
  batch.struct_size = sizeof(batch);
  batch.sequence_count = static_cast<int64_t>(counts.size());
  batch.sequences = engine.sequences.data();
  batch.token_counts = counts.data();
  batch.tokens = tokens_.data();
  batch.selected = selected_.data();
  batch.selected_count = static_cast<int64_t>(selected_.size());
  auto before = std::chrono::steady_clock::now();
  if (quire_executor_step(engine.executor.get(), &batch, logits_.data()) != QUIRE_OK)
    return failed("running a step");
  seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  return true;
}

bool Session::steps(int64_t count, std::vector<double> &seconds) {
  if (decode_.sequences.empty())
    return fail("there are no sequences: set some up first");
  std::vector<int64_t> counts(lengths_.size(), 1);
  seconds.clear();
  auto cutBack = [&] {
    for (size_t s = 0; s < lengths_.size(); ++s)
      if (quire_sequence_truncate(decode_.pool.get(), decode_.sequences[s], lengths_[s]) != QUIRE_OK)
        return failed("shortening a sequence");
    return true;
  };
  for (int64_t i = 0; i < count; ++i) {
    double spent;
    if ((i > 0 && i % stepRoom == 0 && !cutBack()) || !run(decode_, counts, true, spent))
      return false;
    seconds.push_back(spent);
  }
  return cutBack();
}

bool Session::prefill(int64_t count, double &seconds) {
  if (count < 1)
    return fail("expected at least 1 token, but got " + std::to_string(count));
  Engine engine;
  if (!make({0}, count, std::min(count, options_.prefillChunk), engine))
    return false;
  seconds = 0;
  for (int64_t done = 0; done < count;) {
    int64_t piece = std::min(options_.prefillChunk, count - done);
    done += piece;
    double spent;
    if (!run(engine, {piece}, done == count, spent))
      return false;
    seconds += spent;
  }
  return true;
}

void Session::release() {
  decode_ = Engine();
  lengths_.clear();
  kvBytes_ = 0;
}

ProcessMemory processMemory() {
  ProcessMemory memory;
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen("/proc/self/status", "r"), std::fclose);
  char line[256];
  while (file && std::fgets(line, sizeof(line), file.get())) {
    std::sscanf(line, "VmRSS: %" SCNd64 " kB", &memory.resident);
    std::sscanf(line, "VmHWM: %" SCNd64 " kB", &memory.peak);
  }
  memory.resident *= 1024;
  memory.peak *= 1024;
  return memory;
}

} // namespace quire::bench
