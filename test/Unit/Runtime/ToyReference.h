// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The toy decoder with contiguous state, one sequence at a time: the oracle of these tests.
#ifndef QUIRE_TEST_UNIT_RUNTIME_TOYREFERENCE_H
#define QUIRE_TEST_UNIT_RUNTIME_TOYREFERENCE_H

#include "ToyModel.h"
#include "quire/model.h"

#include <array>
#include <cstdint>
#include <vector>

namespace quire::test {

/// One sequence. A layer sees what is before a token only, so each token adds one state to each layer.
class ToySequence {
public:
  void append(int64_t token);
  /// As quire_sequence_prune: only these of the tokens stay, named by the positions that they have.
  void keepOnly(const std::vector<int64_t> &kept);
  /// Of the next token.
  int64_t next() const { return following; }
  /// Logits after the last token; at least one was appended.
  std::vector<float> logits() const;

private:
  std::array<std::vector<int64_t>, TOY_LAYERS> states; // what enters a layer, by place
  std::vector<int64_t> positions;                      // by place
  int64_t following = 0;
  int64_t last = 0;                                    // what leaves the last layer
};

/// Logits after the last of `tokens`.
std::vector<float> toyLogits(const std::vector<int64_t> &tokens);

/// Greedy continuation.
std::vector<int64_t> toyGreedy(const std::vector<int64_t> &prompt, int64_t count);

/// The toy model of this program, and its weights.
const quire_model_info &toyInfo();
const void *toyWeights();

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_TOYREFERENCE_H
