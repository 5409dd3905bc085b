// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cells of a benchmark, such as "8 sequences of 1024 tokens", and their results as text and JSON.
#ifndef QUIRE_RUNTIME_BENCH_CELLS_H
#define QUIRE_RUNTIME_BENCH_CELLS_H

#include "bench/Session.h"

namespace quire::bench {

/// Decode: one step of one token for each of `lengths`. Prefill: one new
/// sequence of lengths[0] tokens.
struct Cell {
  std::string name;
  bool isPrefill = false;
  std::vector<int64_t> lengths;
};

/// "8x1024" or "836+1557+4095": sequences of these lengths. False if malformed.
bool parseDecodeCell(const std::string &text, Cell &out);
bool parsePrefillCell(const std::string &text, Cell &out);

/// Sequences of 1024 tokens, or of half of the model's positions where those are fewer than 2048.
Cell defaultCell(const Session &session, int64_t sequences);

struct CellResult {
  Cell cell;
  std::vector<double> seconds; // of each step, or of each whole prefill
  int64_t kvBytes = 0;         // held by the sequences
  /// New tokens of one measurement.
  int64_t tokens() const { return cell.isPrefill ? cell.lengths[0] : static_cast<int64_t>(cell.lengths.size()); }
};

/// Two untimed measurements, then `repetitions` timed ones. False with session.error().
bool measure(Session &session, const Cell &cell, int64_t repetitions, CellResult &out);

std::string resultsText(const Session &session, const std::vector<CellResult> &results);
std::string resultsJson(const std::string &model, const Session &session, const std::vector<CellResult> &results);

} // namespace quire::bench

#endif // QUIRE_RUNTIME_BENCH_CELLS_H
