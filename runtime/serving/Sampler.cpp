// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Greedy choice, temperature, top-k and top-p.
#include "serving/Sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace quire::serving {

/// Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011).
double uniformAt(uint64_t seed, uint64_t index) {
  uint32_t c[4] = {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, 0};
  uint32_t k[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t(0xD2511F53u) * c[0];
    uint64_t b = uint64_t(0xCD9E8D57u) * c[2];
    uint32_t next[4] = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(b),
                        static_cast<uint32_t>(a >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(a)};
    std::copy(next, next + 4, c);
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  uint64_t bits = (uint64_t(c[0]) << 32 | c[1]) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

int64_t Sampler::choose(const float *logits, int64_t vocabulary, const Sampling &sampling, uint64_t index) {
  int64_t best = 0;
  for (int64_t i = 0; i < vocabulary; ++i) {
    if (std::isnan(logits[i]))
      return -1;
    if (logits[i] > logits[best])
      best = i;
  }
  // An infinite maximum leaves nothing to weigh.
  if (sampling.temperature == 0 || std::isinf(logits[best]))
    return best;
  candidates_.resize(static_cast<size_t>(vocabulary));
  std::iota(candidates_.begin(), candidates_.end(), int64_t(0));
  return draw(logits, logits[best], sampling, index);
}

int64_t Sampler::draw(const float *logits, float largest, const Sampling &sampling, uint64_t index) {
  auto likelier = [logits](int64_t a, int64_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; };
  size_t kept = candidates_.size();
  if (sampling.topK > 0 && static_cast<uint64_t>(sampling.topK) < kept) {
    kept = static_cast<size_t>(sampling.topK);
    std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(kept), candidates_.end(),
                     likelier);
    candidates_.resize(kept);
  }
  bool ordered = sampling.topP < 1 || sampling.topK > 0;
  if (ordered)
    std::sort(candidates_.begin(), candidates_.end(), likelier);
  weights_.resize(kept);
  double total = 0;
  for (size_t i = 0; i < kept; ++i) {
    double distance = static_cast<double>(logits[candidates_[i]]) - static_cast<double>(largest);
    weights_[i] = std::exp(distance / sampling.temperature);
    total += weights_[i];
  }
  if (sampling.topP < 1) {
    double limit = sampling.topP * total, sum = 0;
    size_t end = 0;
    while (end < kept && (end == 0 || sum < limit))
      sum += weights_[end++];
    kept = end;
    total = sum;
  }
  double target = uniformAt(sampling.seed, index) * total, sum = 0;
  int64_t last = candidates_[0];
  for (size_t i = 0; i < kept; ++i) {
    if (weights_[i] == 0)
      continue;
    last = candidates_[i];
    sum += weights_[i];
    if (target < sum)
      break;
  }
  return last; // rounding may leave the target at the sum of all
}

} // namespace quire::serving
