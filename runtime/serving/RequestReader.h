// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads requests from JSON lines, strictly: what it does not understand becomes an error of that request.
#ifndef QUIRE_RUNTIME_SERVING_REQUESTREADER_H
#define QUIRE_RUNTIME_SERVING_REQUESTREADER_H

#include "quire/model.h"
#include "serving/Request.h"

#include <string_view>
#include <unordered_set>

namespace quire::serving {

/// New tokens of a request that does not say how many.
constexpr int64_t defaultMaxNewTokens = 128;

class RequestReader {
public:
  explicit RequestReader(const quire_model_info &model);

  /// Reads the next line of the file (without its newline). False if it is blank
  /// and so no request. Never throws; a bad line gives a request with `error`.
  bool read(std::string_view line, Request &out);

private:
  void parse(std::string_view line, Request &out);
  void checkLength(bool lengthGiven, Request &out) const;

  int64_t tokenLimit_;
  int64_t vocabulary_;
  int64_t maxPositions_;
  int64_t line_ = 0;
  std::unordered_set<std::string> seen_;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_REQUESTREADER_H
