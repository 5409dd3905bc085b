// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A module compiled through the CPU pipeline, loaded, and run with a runtime that exists for tests only.
#ifndef QUIRE_TEST_UNIT_TARGET_COMPILEDMODEL_H
#define QUIRE_TEST_UNIT_TARGET_COMPILEDMODEL_H

#include "lib/Target/CPU/CpuTarget.h"
#include "quire/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace quire::test {

/// Compiles `text` (a module of buffers and kernels) and loads the shared object.
class CompiledModel {
public:
  CompiledModel(const std::string &text, const cpu::CpuTarget &target = cpu::CpuTarget::host());
  ~CompiledModel();
  CompiledModel(const CompiledModel &) = delete;
  CompiledModel &operator=(const CompiledModel &) = delete;

  /// Null when compilation or loading failed; then the failure has been reported to the test.
  const quire_model_info *info = nullptr;
  /// The shared object, until the model is destroyed.
  std::string path;

private:
  void *handle = nullptr;
};

/// The text of the module after the CPU pipeline, as assembly.
std::string assemblyOf(const std::string &text, const cpu::CpuTarget &target);

/// The loops of one basic block in `assembly` that have fused multiply-adds.
std::vector<std::string> multiplyAddLoopsOf(const std::string &assembly);
/// Whether a loop moves a vector register to or from a fixed place on the stack.
bool spillsVectors(const std::string &loop);
/// Whether a loop moves a vector register to a fixed place on the stack: what it computes, not a constant that it reads from there.
bool spillsResults(const std::string &loop);

/// What emitSharedObject says of the module, to `path` or a temporary file; empty when it succeeds.
std::string emissionError(const std::string &text, const cpu::CpuTarget &target, const std::string &path = {});

/// What the calls of a step did.
struct CallLog {
  std::vector<std::string> calls;
};

/// One sequence of a step.
struct SequenceRows {
  int64_t past;
  int64_t rows;
  std::vector<int32_t> blocks; // its block table
};

/// Runs steps of a model over arenas that the test owns, one per layer.
class TestRuntime {
public:
  explicit TestRuntime(const quire_model_info *info) : info(info), arenas(info ? info->layer_count : 0) {}

  /// `blocks` blocks for every layer, every byte of them `fill`.
  void allocate(int64_t blocks, char fill);
  /// Runs one step; the logits of `selected` rows.
  std::vector<float> step(const std::vector<SequenceRows> &sequences, const std::vector<int64_t> &selected,
                          const char *weights);

  const quire_model_info *info;
  std::vector<std::vector<char>> arenas;
  int64_t dropped = 0; // tokens of each sequence, before those of the step: positions are so much more than places
  int64_t toldThreads = 31; // what the step is told; a prime, so that few tasks never share out evenly
  std::vector<int32_t> tables; // of the step, the same for all layers
  std::vector<float> observed; // what attention is observed into, for any layer; empty: it is not
  CallLog log;
  /// Iterations of a piece beyond the grain; 1 splits as finely as is allowed.
  int64_t pieceGrains = 1;
  /// Threads that share the pieces of a loop.
  int64_t threads = 1;
  /// The iterations of every loop of the last step.
  std::vector<int64_t> loops;
};

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_TARGET_COMPILEDMODEL_H
