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

/// Random blocks of a layer that all its blocks are copies of.
static constexpr size_t patternBlocks = 64;

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

bool Session::makePattern(int64_t layer, std::vector<char> &out) {
  const quire_model_layer &shape = info().layers[layer];
  std::uniform_real_distribution<float> number(-1.0f, 1.0f);
  std::vector<float> key(static_cast<size_t>(shape.key_dim)), value(static_cast<size_t>(shape.value_dim));
  out.assign(patternBlocks * static_cast<size_t>(shape.block_bytes), 0);
  for (char *block = out.data(); block < out.data() + out.size(); block += shape.block_bytes)
    for (int64_t head = 0; head < shape.kv_heads; ++head)
      for (int64_t token = 0; token < info().block_tokens; ++token) {
        for (std::vector<float> *row : {&key, &value})
          for (float &x : *row)
            x = number(random_);
        if (quire_block_store_row(&info(), layer, block, head, token, key.data(), value.data()) != QUIRE_OK)
          return failed("filling blocks");
      }
  return true;
}

bool Session::fill(Engine &engine, const std::vector<int64_t> &lengths) {
  for (size_t s = 0; s < lengths.size(); ++s)
    if (lengths[s] > 0 && (quire_sequence_reserve(engine.pool.get(), engine.sequences[s], lengths[s]) != QUIRE_OK ||
                           quire_sequence_commit(engine.pool.get(), engine.sequences[s], lengths[s]) != QUIRE_OK))
      return failed("reserving blocks");
  std::vector<char> pattern;
  for (int64_t layer = 0; layer < info().layer_count; ++layer) {
    const quire_model_layer &shape = info().layers[layer];
    if ((layer == 0 || std::memcmp(&shape, &shape - 1, sizeof(shape)) != 0) && !makePattern(layer, pattern))
      return false;
    size_t next = 0, bytes = static_cast<size_t>(shape.block_bytes);
    for (quire_sequence sequence : engine.sequences) {
      const int32_t *blocks;
      int64_t count;
      quire_sequence_table(engine.pool.get(), sequence, &blocks, &count);
      for (int64_t i = 0; i < count; ++i) {
        void *to;
        if (quire_pool_block_address(engine.pool.get(), layer, blocks[i], &to) != QUIRE_OK)
          return failed("filling blocks");
        std::memcpy(to, pattern.data() + next++ % patternBlocks * bytes, bytes);
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
