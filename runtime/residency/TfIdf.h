// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How important the paragraphs of a document are, by their words alone.
#ifndef QUIRE_RUNTIME_RESIDENCY_TFIDF_H
#define QUIRE_RUNTIME_RESIDENCY_TFIDF_H

#include <cstddef>
#include <cstdint>

namespace quire::runtime {

/// Paragraph i is tokens[ends[i-1] .. ends[i]), with ends ascending. Its score is the
/// mean over its tokens of ln(paragraphs / paragraphs that have the token): term
/// frequency times inverse document frequency, summed over its terms. Scores are
/// divided by the largest, so that they are in [0, 1]; all are 0 where no token tells
/// paragraphs apart. An empty paragraph has 0.
void tfidf(const int64_t *tokens, const int64_t *ends, size_t paragraphs, float *scores);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_TFIDF_H
