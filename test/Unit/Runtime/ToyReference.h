// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The toy decoder with contiguous state, one sequence at a time: the oracle of these tests.
#ifndef QUIRE_TEST_UNIT_RUNTIME_TOYREFERENCE_H
#define QUIRE_TEST_UNIT_RUNTIME_TOYREFERENCE_H

#include "quire/model.h"

#include <cstdint>
#include <vector>

namespace quire::test {

/// Logits after the last token.
std::vector<float> toyLogits(const std::vector<int64_t> &tokens);

/// Greedy continuation.
std::vector<int64_t> toyGreedy(std::vector<int64_t> prompt, int64_t count);

/// The toy model of this program, and its weights.
const quire_model_info &toyInfo();
const void *toyWeights();

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_TOYREFERENCE_H
