// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Parsing, measuring and printing of cells.
#include "bench/Cells.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace quire::bench {

using Json = nlohmann::ordered_json;

static constexpr int64_t mostSequences = 1 << 16;

static bool readNumber(const std::string &text, size_t &at, int64_t &out) {
  size_t start = at;
  out = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    if (out > (INT32_MAX - 9) / 10)
      return false;
    out = out * 10 + (text[at++] - '0');
  }
  return at > start;
}

bool parseDecodeCell(const std::string &text, Cell &out) {
  out = {text, false, {}};
  size_t at = 0;
  int64_t first;
  if (!readNumber(text, at, first))
    return false;
  if (at < text.size() && text[at] == 'x') {
    int64_t length;
    if (!readNumber(text, ++at, length) || at != text.size() || first < 1 || first > mostSequences)
      return false;
    out.lengths.assign(static_cast<size_t>(first), length);
    return true;
  }
  out.lengths.push_back(first);
  while (at < text.size() && text[at] == '+') {
    if (!readNumber(text, ++at, first))
      return false;
    out.lengths.push_back(first);
  }
  return at == text.size();
}

bool parsePrefillCell(const std::string &text, Cell &out) {
  out = {text, true, {}};
  size_t at = 0;
  int64_t length;
  if (!readNumber(text, at, length) || at != text.size() || length < 1)
    return false;
  out.lengths.push_back(length);
  return true;
}

Cell defaultCell(const Session &session, int64_t sequences) {
  int64_t length = 1024, limit = session.info().max_positions;
  if (limit >= 0)
    length = std::min(length, limit / 2);
  return {std::to_string(sequences) + "x" + std::to_string(length), false, std::vector<int64_t>(static_cast<size_t>(sequences), length)};
}

bool measure(Session &session, const Cell &cell, int64_t repetitions, CellResult &out) {
  out = {cell, {}, 0};
  constexpr int64_t warmUps = 2;
  if (!cell.isPrefill) {
    std::vector<double> ignored;
    if (!session.setup(cell.lengths) || !session.steps(warmUps, ignored))
      return false;
    out.kvBytes = session.kvBytes();
    bool done = session.steps(repetitions, out.seconds);
    session.release();
    return done;
  }
  for (int64_t i = -warmUps; i < repetitions; ++i) {
    double seconds;
    if (!session.prefill(cell.lengths[0], seconds))
      return false;
    if (i >= 0)
      out.seconds.push_back(seconds);
  }
  return true;
}

namespace {
struct Summary {
  explicit Summary(const CellResult &result) {
    std::vector<double> sorted = result.seconds;
    std::sort(sorted.begin(), sorted.end());
    size_t n = sorted.size();
    median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    low = sorted.front();
    high = sorted.back();
    rate = static_cast<double>(result.tokens()) / median;
  }
  double median, low, high, rate;
};
} // namespace

std::string resultsText(const Session &session, const std::vector<CellResult> &results) {
  char line[256];
  std::snprintf(line, sizeof(line), "%-8s %-20s %12s %12s %12s %12s %10s\n", "kind", "cell", "median ms", "least ms",
                "most ms", "tokens/s", "KV MB");
  std::string text = line;
  for (const CellResult &result : results) {
    Summary summary(result);
    std::string name = result.cell.name.size() > 20 ? result.cell.name.substr(0, 17) + "..." : result.cell.name;
    std::snprintf(line, sizeof(line), "%-8s %-20s %12.3f %12.3f %12.3f %12.1f %10.1f\n",
                  result.cell.isPrefill ? "prefill" : "decode", name.c_str(), 1e3 * summary.median, 1e3 * summary.low,
                  1e3 * summary.high, summary.rate, 1e-6 * static_cast<double>(result.kvBytes));
    text += line;
  }
  std::snprintf(line, sizeof(line), "%lld threads; peak memory %.0f MB, of which weights %.0f MB\n",
                static_cast<long long>(session.threads()), 1e-6 * static_cast<double>(processMemory().peak),
                1e-6 * static_cast<double>(session.info().weights_bytes));
  return text + line;
}

std::string resultsJson(const std::string &model, const Session &session, const std::vector<CellResult> &results) {
  Json cells = Json::array();
  for (const CellResult &result : results) {
    Summary summary(result);
    cells.push_back({{"kind", result.cell.isPrefill ? "prefill" : "decode"},
                     {"cell", result.cell.name},
                     {"lengths", result.cell.lengths},
                     {"tokens", result.tokens()},
                     {"median_ms", 1e3 * summary.median},
                     {"least_ms", 1e3 * summary.low},
                     {"most_ms", 1e3 * summary.high},
                     {"tokens_per_second", summary.rate},
                     {"kv_bytes", result.kvBytes},
                     {"seconds", result.seconds}});
  }
  ProcessMemory memory = processMemory();
  Json out = {{"model", model},
              {"threads", session.threads()},
              {"weights_bytes", session.info().weights_bytes},
              {"block_tokens", session.info().block_tokens},
              {"peak_memory_bytes", memory.peak},
              {"cells", cells}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace quire::bench
