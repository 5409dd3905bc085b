// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Chooses tokens from logits, reproducibly: the choice depends on the row, the options, the seed and the token's index
// only.
#ifndef QUIRE_RUNTIME_SERVING_SAMPLER_H
#define QUIRE_RUNTIME_SERVING_SAMPLER_H

#include "serving/Request.h"

#include <cstdint>
#include <vector>

namespace quire::serving {

/// A number in [0, 1) with 53 random bits: Philox 4x32-10 with the seed as key
/// and the index as counter.
double uniformAt(uint64_t seed, uint64_t index);

class Sampler {
public:
  /// The token for new token number `index` of a request. -1: a logit is NaN.
  int64_t choose(const float *logits, int64_t vocabulary, const Sampling &sampling, uint64_t index);

private:
  int64_t draw(const float *logits, float largest, const Sampling &sampling, uint64_t index);

  std::vector<int64_t> candidates_;
  std::vector<double> weights_;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_SAMPLER_H
