// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Contiguous form of the toy decoder.
#include "ToyReference.h"

#include "ToyModel.h"

#include <algorithm>
#include <array>

namespace quire::test {

static const int64_t toyHeads[TOY_LAYERS] = {2, 1, 3};
static const int64_t toyKeyDim[TOY_LAYERS] = {4, 8, 2};
static const int64_t toyValueDim[TOY_LAYERS] = {4, 2, 6};

std::vector<float> toyLogits(const std::vector<int64_t> &tokens) {
  std::vector<int64_t> state;
  for (int64_t token : tokens)
    state.push_back(toyEmbed(token));
  for (int64_t layer = 0; layer < TOY_LAYERS; ++layer) {
    std::vector<int64_t> next = state;
    for (size_t row = 0; row < state.size(); ++row)
      for (size_t position = 0; position <= row; ++position)
        for (int64_t which = 0; which < 2; ++which)
          for (int64_t h = 0; h < toyHeads[layer]; ++h)
            for (int64_t d = 0; d < (which ? toyValueDim : toyKeyDim)[layer]; ++d)
              next[row] =
                  toyMix(next[row], toyElement(state[position], static_cast<int64_t>(position), layer, which, h, d));
    state = next;
  }
  std::vector<float> logits;
  for (int64_t v = 0; v < TOY_VOCABULARY; ++v)
    logits.push_back(toyLogit(state.back(), v, toyWeight(v)));
  return logits;
}

std::vector<int64_t> toyGreedy(std::vector<int64_t> prompt, int64_t count) {
  std::vector<int64_t> made;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<float> logits = toyLogits(prompt);
    int64_t token = std::max_element(logits.begin(), logits.end()) - logits.begin(); // the first of equals
    made.push_back(token);
    prompt.push_back(token);
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
