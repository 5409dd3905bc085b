// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model whose stored rows tell which tokens they are of, so that each step proves every byte that it reads.
#ifndef QUIRE_TEST_UNIT_RUNTIME_MARKMODEL_H
#define QUIRE_TEST_UNIT_RUNTIME_MARKMODEL_H

#include "quire/model.h"

#include <cstdint>
#include <string>
#include <vector>

namespace quire::test {

constexpr int64_t markBlockTokens = 4;
constexpr int64_t markLayers = 3;
constexpr int64_t markPositions = 32;
constexpr int64_t markVocabulary = 64;

/// All tokens of a sequence up to one of them, and whose they are, in one number.
uint64_t markHistory(uint64_t before, int64_t token);

/// What marks are made of, so that they come back from a codec as they are.
enum class MarkForm {
  Bits,    // any: no codec
  Fp8,     // two numbers that E4M3 has
  OneOfTwo // a number and 0
};
/// Of all marks of this process from now on.
void setMarkForm(MarkForm form);

/// K (`value` false) and V of a position are one number each in every layer.
uint64_t markOf(uint64_t history, int64_t layer, bool value);
/// In a block of the layer at this address, its `slot`-th position.
void writeMarks(char *block, int64_t layer, int64_t slot, uint64_t history);
bool holdsMarks(const char *block, int64_t layer, int64_t slot, uint64_t history);

/// What the model does in its next step, and what it finds.
struct alignas(64) MarkScript {
  /// [sequences] histories of all places, new ones included.
  std::vector<const uint64_t *> histories;
  std::vector<int64_t> positions; // [sequences] of the first new rows
  uint64_t choices = 0;        // which prefetches, and when
  int64_t layersPerPage = 1;   // layers of one page may be acquired together
  int64_t abortIn = -1;        // layer that it acquires and does not release; none: -1
  std::string mismatch;        // the first row that it read and that is not as it was written, or that has another position
};

/// The model; its weights are the script.
const quire_model_info &markInfo();

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_MARKMODEL_H
