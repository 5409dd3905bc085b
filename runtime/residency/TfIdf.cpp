// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Term frequency and inverse document frequency over token ids.
#include "residency/TfIdf.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace quire::runtime {

void tfidf(const int64_t *tokens, const int64_t *ends, size_t paragraphs, float *scores) {
  struct Term {
    size_t paragraphs = 0;
    size_t last = SIZE_MAX; // that was counted
  };
  std::unordered_map<int64_t, Term> terms;
  for (size_t i = 0; i < paragraphs; ++i)
    for (int64_t at = i ? ends[i - 1] : 0; at < ends[i]; ++at) {
      Term &term = terms[tokens[at]];
      term.paragraphs += term.last != i;
      term.last = i;
    }
  float largest = 0;
  for (size_t i = 0; i < paragraphs; ++i) {
    int64_t begin = i ? ends[i - 1] : 0;
    double sum = 0;
    for (int64_t at = begin; at < ends[i]; ++at)
      sum += std::log(static_cast<double>(paragraphs) / static_cast<double>(terms[tokens[at]].paragraphs));
    scores[i] = ends[i] > begin ? static_cast<float>(sum / static_cast<double>(ends[i] - begin)) : 0;
    largest = std::max(largest, scores[i]);
  }
  for (size_t i = 0; i < paragraphs && largest > 0; ++i)
    scores[i] /= largest;
}

} // namespace quire::runtime
