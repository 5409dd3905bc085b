// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which blocks a step attended to: room for what compiled attention leaves, and the shares that follow from it.
#ifndef QUIRE_RUNTIME_EXEC_OBSERVATION_H
#define QUIRE_RUNTIME_EXEC_OBSERVATION_H

#include "core/MappedMemory.h"
#include "core/Status.h"
#include "quire/model.h"

#include <vector>

namespace quire::runtime {

/// Shares are of the last new row of each sequence, over the keys that it sees, without sinks; the mean over query heads. Those of a sequence and layer sum
/// up to 1. Memory is reserved once; pages of it become real when steps use them.
class Observation {
public:
  /// For steps of up to `sequences` sequences with up to `blocks` blocks each.
  Status create(const quire_model_info &info, int64_t sequences, int64_t blocks);

  /// The step begins: shares of the step before are gone. QUIRE_INVALID_ARGUMENT: larger than what it was made for.
  Status beginStep(int64_t sequences, int64_t stride);
  /// What quire_kv_view::observed is for the layer; null: it is not observed.
  float *begin(int64_t layer);
  /// The layer was attended. Its shares: [sequences][stride]; null: it is not observed.
  const float *end(int64_t layer);

  /// Shares of the last step, null before end(layer).
  const float *shares(int64_t layer) const;
  int64_t sequences() const { return sequences_; }
  int64_t stride() const { return stride_; }

private:
  const quire_model_info *info_ = nullptr;
  MappedMemory left_;   // float [sequences][query heads][stride][sum, maximum], of one layer
  MappedMemory shares_; // float [layers][sequences][stride]
  std::vector<char> ended_; // [layers], in this step
  int64_t sequences_ = 0, stride_ = 0, cells_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_EXEC_OBSERVATION_H
