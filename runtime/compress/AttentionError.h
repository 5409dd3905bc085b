// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a change of stored K and V does to attention: against the original, computed in f64.
#ifndef QUIRE_RUNTIME_COMPRESS_ATTENTIONERROR_H
#define QUIRE_RUNTIME_COMPRESS_ATTENTIONERROR_H

#include "compress/Codec.h"

#include <vector>

namespace quire::runtime {

/// Tokens in slots 0 .. tokens of a sequence's pages.
struct StoredTokens {
  const char *const *pages = nullptr; // [ceil(tokens / blockTokens)]
  int64_t tokens = 0;
};

struct AttentionErrorOptions {
  int64_t queries = 16; // for each head of K and V
  uint64_t seed = 1;
  /// 0: random directions, scaled so that logits have a standard deviation of about 1
  /// and attention is spread out. Otherwise added: a key of the original sequence, so
  /// that its logit is greater by `peak` and attention looks for one token.
  double peak = 0;
};

/// Over the outputs of all queries of all heads and layers.
struct AttentionError {
  double cosineMean = 1;
  double cosineLeast = 1;
  double relativeL2 = 0; // norm of all differences / norm of all original outputs
  double maximum = 0;    // largest difference of one component
  int64_t outputs = 0;   // compared vectors
};

/// softmax(q k / sqrt(key_dim)) v of both, for the same queries. `changed` may have
/// fewer tokens, after pruning: positions do not matter to attention over all stored
/// tokens. NaN in the outputs comes out as NaN. Allocates; for tests and reports.
AttentionError measureAttentionError(const PageLayers &layers, const StoredTokens &original,
                                     const StoredTokens &changed, const AttentionErrorOptions &options = {});

/// Encodes and decodes each page and measures that. The result says whether all pages
/// could be encoded; `error` is written if so.
EncodeResult measureCodecError(Codec codec, const PageLayers &layers, const StoredTokens &original,
                               const AttentionErrorOptions &options, AttentionError &error);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_ATTENTIONERROR_H
