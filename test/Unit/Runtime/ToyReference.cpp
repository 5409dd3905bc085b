// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contiguous form of the toy decoder.
#include "ToyReference.h"

#include <algorithm>
#include <array>

namespace quire::test {

static const int64_t toyHeads[TOY_LAYERS] = {2, 1, 3};
static const int64_t toyKeyDim[TOY_LAYERS] = {4, 8, 2};
static const int64_t toyValueDim[TOY_LAYERS] = {4, 2, 6};

void ToySequence::append(int64_t token) {
  positions.push_back(following++);
  int64_t state = toyEmbed(token);
  for (int64_t layer = 0; layer < TOY_LAYERS; ++layer) {
    auto &stored = states[static_cast<size_t>(layer)];
    stored.push_back(state);
    for (size_t p = 0; p < positions.size(); ++p)
      for (int64_t which = 0; which < 2; ++which)
        for (int64_t h = 0; h < toyHeads[layer]; ++h)
          for (int64_t d = 0; d < (which ? toyValueDim : toyKeyDim)[layer]; ++d)
            state = toyMix(state, toyElement(stored[p], positions[p], layer, which, h, d));
  }
  last = state;
}

void ToySequence::keepOnly(const std::vector<int64_t> &kept) {
  size_t count = 0;
  for (size_t p = 0; p < positions.size(); ++p) {
    if (std::find(kept.begin(), kept.end(), positions[p]) == kept.end())
      continue;
    positions[count] = positions[p];
    for (auto &stored : states)
      stored[count] = stored[p];
    ++count;
  }
  positions.resize(count);
  for (auto &stored : states)
    stored.resize(count);
}

std::vector<float> ToySequence::logits() const {
  std::vector<float> logits;
  for (int64_t v = 0; v < TOY_VOCABULARY; ++v)
    logits.push_back(toyLogit(last, v, toyWeight(v)));
  return logits;
}

std::vector<float> toyLogits(const std::vector<int64_t> &tokens) {
  ToySequence sequence;
  for (int64_t token : tokens)
    sequence.append(token);
  return sequence.logits();
}

std::vector<int64_t> toyGreedy(const std::vector<int64_t> &prompt, int64_t count) {
  ToySequence sequence;
  for (int64_t token : prompt)
    sequence.append(token);
  std::vector<int64_t> made;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<float> logits = sequence.logits();
    made.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin()); // the first of equals
    sequence.append(made.back());
  }
  return made;
}

const quire_model_info &toyInfo() { return *quire_model_query(QUIRE_MODEL_ABI_VERSION); }

const void *toyWeights() {
  struct Aligned {
    alignas(64) std::array<int32_t, TOY_VOCABULARY> values;
    Aligned() {
      for (int64_t v = 0; v < TOY_VOCABULARY; ++v)
        values[static_cast<size_t>(v)] = toyWeight(v);
    }
  };
  static const Aligned weights;
  return weights.values.data();
}

} // namespace quire::test
