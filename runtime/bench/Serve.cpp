// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The line protocol of `quire-bench --serve`.
#include "bench/Serve.h"

#include "core/Json.h"

#include <nlohmann/json.hpp>

#include <istream>
#include <ostream>

namespace quire::bench {

using Line = nlohmann::json;
using Json = nlohmann::ordered_json; // answers

static Json refusal(const std::string &text) { return {{"error", text}}; }

/// A count of 1 to `high` under "n".
static bool readCount(const Line &line, int64_t high, int64_t &out) {
  auto n = line.find("n");
  if (n == line.end() || !n->is_number_integer() || *n < 1 || *n > high)
    return false;
  out = n->get<int64_t>();
  return true;
}

static bool readLengths(const Line &line, std::vector<int64_t> &out) {
  auto lengths = line.find("ctx");
  if (lengths == line.end() || !lengths->is_array())
    return false;
  for (const Line &length : *lengths) {
    if (!length.is_number_integer() || length < 0 || length > INT32_MAX)
      return false;
    out.push_back(length.get<int64_t>());
  }
  return true;
}

static Json answer(Session &session, const std::string &op, const Line &line) {
  constexpr int64_t million = 1000000;
  if (op == "setup") {
    std::vector<int64_t> lengths;
    if (!readLengths(line, lengths))
      return refusal("setup: expected 'ctx', a list of lengths");
    return session.setup(lengths) ? Json{{"kv_bytes", session.kvBytes()}} : refusal(session.error());
  }
  if (op == "steps") {
    int64_t count;
    if (!readCount(line, million, count))
      return refusal("steps: expected 'n', a number of 1 to 1000000");
    std::vector<double> seconds;
    return session.steps(count, seconds) ? Json{{"steps", seconds}} : refusal(session.error());
  }
  if (op == "prefill") {
    int64_t count;
    if (!readCount(line, 1000 * million, count))
      return refusal("prefill: expected 'n', a number of tokens");
    double seconds;
    return session.prefill(count, seconds) ? Json{{"t", seconds}} : refusal(session.error());
  }
  if (op == "free") {
    session.release();
    return Json::object();
  }
  if (op == "mem") {
    ProcessMemory memory = processMemory();
    return {{"VmRSS", memory.resident}, {"VmHWM", memory.peak}};
  }
  return refusal("expected op setup, steps, prefill, free, mem or quit, but got '" + op + "'");
}

void serve(Session &session, std::istream &input, std::ostream &output) {
  std::string text, error;
  Line line;
  while (std::getline(input, text)) {
    if (!runtime::parseJson(text, line, error)) {
      output << refusal(error) << std::endl;
      continue;
    }
    if (!line.is_object() || !line.contains("op") || !line["op"].is_string()) {
      output << refusal("expected a JSON object with 'op'") << std::endl;
      continue;
    }
    std::string op = line["op"];
    if (op == "quit")
      return;
    output << answer(session, op, line).dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
}

} // namespace quire::bench
