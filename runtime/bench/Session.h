// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loaded model whose steps are timed on sequences of chosen lengths.
#ifndef QUIRE_RUNTIME_BENCH_SESSION_H
#define QUIRE_RUNTIME_BENCH_SESSION_H

#include "serving/Engine.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace quire::bench {

struct SessionOptions {
  std::string model;
  int64_t threads = 0;        // 0: all that this process may use
  int64_t prefillChunk = 512; // tokens of one prefill step
};

/// Sequences are filled with random K and V, so no prompt is run for them. Token
/// ids are random too, from a fixed seed. Every function returns false on
/// failure, with the reason in error(); nothing is kept of a failed call.
class Session {
public:
  bool load(const SessionOptions &options);

  /// Makes one sequence of each length, with room for `maxSteps` tokens more.
  bool setup(const std::vector<int64_t> &lengths);

  /// `count` steps of one token for every sequence, with the logits of each;
  /// the seconds of each step. Afterwards the lengths are those of setup().
  bool steps(int64_t count, std::vector<double> &seconds);

  /// One new sequence of `count` tokens, with the logits of the last, beside
  /// those of setup().
  bool prefill(int64_t count, double &seconds);

  /// Gives the sequences and their blocks back.
  void release();

  /// Bytes of the blocks that the sequences of setup() hold.
  int64_t kvBytes() const { return kvBytes_; }
  int64_t threads() const { return threads_; }
  const quire_model_info &info() const { return *quire_model_get_info(model_.get()); }
  const std::string &error() const { return error_; }

private:
  /// A pool and what runs on it.
  struct Engine {
    serving::PoolPointer pool;
    serving::ExecutorPointer executor;
    std::vector<quire_sequence> sequences;
  };

  bool fail(const std::string &text);
  bool failed(const char *what);
  bool make(const std::vector<int64_t> &lengths, int64_t room, int64_t maxTokens, Engine &out);
  bool makePattern(int64_t layer, std::vector<char> &out);
  bool fill(Engine &engine, const std::vector<int64_t> &lengths);
  bool run(Engine &engine, const std::vector<int64_t> &counts, bool wantsLogits, double &seconds);

  SessionOptions options_;
  serving::ModelPointer model_;
  Engine decode_;
  std::vector<int64_t> lengths_;
  std::vector<int64_t> tokens_, selected_;
  std::vector<float> logits_;
  std::mt19937_64 random_;
  int64_t kvBytes_ = 0;
  int64_t threads_ = 0;
  std::string error_;
};

/// Resident memory of this process now and at its peak, in bytes; 0 if unknown.
struct ProcessMemory {
  int64_t resident = 0;
  int64_t peak = 0;
};
ProcessMemory processMemory();

} // namespace quire::bench

#endif // QUIRE_RUNTIME_BENCH_SESSION_H
