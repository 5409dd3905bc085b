// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as a request file: never a crash, and what is accepted keeps every promise of a request.
#include "quire/model.h"
#include "serving/RequestReader.h"
#include "serving/ResultWriter.h"

#include <cstdint>
#include <cstdlib>
#include <set>

using namespace quire::serving;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  quire_model_info model = {};
  model.vocabulary = 50;
  model.token_limit = 100;
  model.max_positions = size & 1 ? 64 : -1;
  RequestReader reader(model);
  std::set<std::string> ids;
  std::string_view text(reinterpret_cast<const char *>(data), size);
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    Request request;
    if (!reader.read(line, request))
      continue;
    Result result;
    result.error = request.error;
    require(resultLine(request, result).find('\n') == std::string::npos);
    if (!request.error.empty())
      continue;
    require(!request.id.empty() && request.id.size() <= 64 && request.id.find('/') == std::string::npos);
    require(ids.insert(request.id).second);
    require(!request.prompt.empty() && request.maxNewTokens >= 1);
    for (int64_t token : request.prompt)
      require(token >= 0 && token < model.token_limit);
    for (int64_t token : request.stop)
      require(token >= 0 && token < model.vocabulary);
    if (model.max_positions > 0)
      require(static_cast<int64_t>(request.prompt.size()) + request.maxNewTokens <= model.max_positions);
    require(request.sampling.temperature >= 0 && request.sampling.topK >= 0);
    require(request.sampling.topP > 0 && request.sampling.topP <= 1);
  }
  return 0;
}
