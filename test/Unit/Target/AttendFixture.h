// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sequences with made-up keys, values and queries, their pages, a step over them, and attention of them in double.
#ifndef QUIRE_TEST_UNIT_TARGET_ATTENDFIXTURE_H
#define QUIRE_TEST_UNIT_TARGET_ATTENDFIXTURE_H

#include "test/Unit/Target/CompiledModel.h"

#include <functional>
#include <limits>
#include <optional>

namespace quire::test {

struct AttendCase {
  std::string name;
  int64_t queryHeads, heads, key, value;
  std::string element = "f32"; // of the pages
  int64_t block = 16;
  int64_t window = 0, chunk = 0;
  float softcap = 0.0f;
  bool causal = true, alibi = false, sinks = false;
  int64_t longest = 0; // past of one more sequence; 0: none
  int64_t lanes = 0;   // 0: the target's
  int64_t places = 512; // for results over parts; 0: none
  std::string activation = "f32"; // of queries, keys and values as they come
  bool observe = false;
  int strangeKind = -1; // 0: K, 1: V; feature 3 of a position is `strange`
  int64_t strangePosition = 0;
  float strange = std::numeric_limits<float>::infinity();
  std::function<float(int64_t sequence, int64_t head, int64_t feature)> values; // V, if set, of every position
  std::optional<cpu::CpuTarget> target; // nothing: the host's
};

/// One sequence of a case: tokens before the step and in it.
struct Piece {
  int64_t id;
  int64_t past;
  int64_t rows;
};

class AttendFixture {
public:
  static constexpr int64_t maxRows = 160;

  explicit AttendFixture(const AttendCase &parameters);

  /// Runs append and attend over `pieces`, with the past in permuted blocks and everything else not a number.
  std::vector<float> run(const std::vector<Piece> &pieces);
  /// The same in double.
  std::vector<double> expected(const std::vector<Piece> &pieces) const;
  /// The share of each block in what the last row of each piece attends to, of every query head in double: [pieces][heads][stride].
  std::vector<double> expectedShares(const std::vector<Piece> &pieces, int64_t stride) const;
  /// Whether the rows of the last run lie where the runtime puts them, and only they were written.
  void checkPages() const;

  /// Floats of one row of output.
  int64_t rowSize() const { return c.queryHeads * c.value; }
  std::string moduleText() const;

  AttendCase c;
  CompiledModel model;
  TestRuntime runtime;

private:
  enum Kind { keyKind, valueKind, queryKind };
  float datum(Kind kind, int64_t sequence, int64_t position, int64_t head, int64_t feature) const;
  /// Puts K and V of a position into its block of `arena`.
  void store(std::vector<char> &arena, const Piece &piece, int64_t position, int32_t block) const;
  /// What of K or V is stored of a sequence: [heads][positions][features].
  std::vector<float> stored(Kind kind, const Piece &piece) const;
  float sink(int64_t head) const { return 0.25f * head - 1.0f; }
  float slope(int64_t head) const { return 0.5f / (1 + head); }
  std::vector<char> inputs(const std::vector<Piece> &pieces) const;
  /// exp(score - maximum) of each key; `sum` with the sink.
  std::vector<double> weights(const Piece &piece, const std::vector<float> &keys, int64_t position, int64_t head, double &sum) const;
  void attendRow(const Piece &piece, const std::vector<float> &keys, const std::vector<float> &values, int64_t position,
                 int64_t head, double *output) const;

  std::vector<Piece> last;
  std::vector<SequenceRows> lastRows;
  int64_t blockCount = 0;
};

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_TARGET_ATTENDFIXTURE_H
