// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a request asks for and what came of it.
#ifndef QUIRE_RUNTIME_SERVING_REQUEST_H
#define QUIRE_RUNTIME_SERVING_REQUEST_H

#include <cstdint>
#include <string>
#include <vector>

namespace quire::serving {

/// How a token is chosen from a row of logits.
struct Sampling {
  double temperature = 0; // 0: the largest logit, lowest index on ties
  int64_t topK = 0;       // 0: all
  double topP = 1;
  uint64_t seed = 0;
};

struct Request {
  enum class IdKind { None, Integer, Text };

  int64_t line = 0; // in the request file, from 1
  IdKind idKind = IdKind::None;
  std::string id; // as text; empty if the line has no valid one
  std::string tenant; // empty: none named; only requests of the same tenant share prefixes
  std::vector<int64_t> prompt;
  int64_t maxNewTokens = 0;
  std::vector<int64_t> stop;
  std::vector<int64_t> paragraphs; // where those of a document end in the prompt, ascending
  std::vector<int64_t> turns; // where turns of a dialogue end in the prompt, ascending
  Sampling sampling;
  std::string error; // not empty: refused before it ran
};

enum class FinishReason { Length, Stop, Error };

struct Result {
  FinishReason reason = FinishReason::Error;
  std::string error;
  std::vector<int64_t> tokens; // a stop token is the last of them
  /// From the start of the run to the first token; negative: there was none.
  double firstTokenMs = -1;
  /// Mean over the tokens after the first; negative: there was none.
  double decodeMsPerToken = -1;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_REQUEST_H
