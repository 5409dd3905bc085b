// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pruning: which tokens of sealed blocks stay, where they move so that whole blocks become free, and the moving.
#ifndef QUIRE_RUNTIME_COMPRESS_PRUNE_H
#define QUIRE_RUNTIME_COMPRESS_PRUNE_H

#include "compress/Codec.h"
#include "core/Status.h"

#include <vector>

namespace quire::runtime {

/// Original positions [begin, end) that always stay.
struct PositionRange {
  int64_t begin = 0;
  int64_t end = 0;
};

/// A slot of a block. `block` counts in the list of blocks that was pruned.
struct TokenPlace {
  int32_t block = 0;
  int32_t token = 0;
};
inline bool operator==(TokenPlace a, TokenPlace b) { return a.block == b.block && a.token == b.token; }

struct TokenMove {
  TokenPlace from;
  TokenPlace to;
};

/// ceil((1 - ratio) * count), where ratio is in [0, 1].
int64_t keptTokens(int64_t count, double ratio);

struct PruneRequest {
  /// Full blocks of one sequence that nobody else reads or writes: sealed, and not
  /// shared (or copied before). They are in order of position.
  int64_t blocks = 0;
  int64_t blockTokens = 0;
  const float *scores = nullptr;      // [blocks][blockTokens], larger is more important; NaN is least
  const int64_t *positions = nullptr; // [blocks][blockTokens] ascending; null: firstPosition, + 1, + 2, ...
  int64_t firstPosition = 0;
  double ratio = 0;                    // share of the tokens that goes
  bool wholeBlocks = false;            // more stay, so that they fill the blocks that they take
  const PositionRange *keep = nullptr; // [keepCount]
  int64_t keepCount = 0;
};

struct PrunePlan {
  /// Survivors stay in order of position and close up: survivor i moves to slot i. In
  /// this order each move reads a slot before another is written to it, so that they
  /// run in place. Those that stay where they are are not listed.
  std::vector<TokenMove> moves;
  std::vector<int64_t> positions; // of the survivors, by slot
  std::vector<int32_t> freed;     // blocks that hold none, ascending: always the last ones
  int64_t lastTokens = 0;         // survivors in the last block that stays; 0: no block stays

  /// Makes room for requests up to this size; planning allocates nothing then.
  void reserve(int64_t blocks, int64_t blockTokens);

  std::vector<int32_t> order; // scratch of the planner
};

/// Survivors are the protected tokens and, up to keptTokens of all, those of the highest
/// scores; of equal ones the earliest. So more than that stay only if more are
/// protected, or with wholeBlocks. Freed is what whole blocks allow: blocks - ceil(survivors / blockTokens).
///
/// After a plan was executed, slot numbers are not positions any more. K keeps the
/// rotation of its original position, so attention over the survivors needs no other
/// K, but whatever masks by position (causal, sliding window, distance biases) must take
/// `positions`, and new tokens continue at the sequence's original length.
Status planPrune(const PruneRequest &request, PrunePlan &plan);

/// The survivors of one list of scores: ascending indices into it. As planPrune with
/// one block and nothing protected.
std::vector<int64_t> prune(const std::vector<float> &scores, double ratio);

/// Moves K, in its order of lanes, and V of all layers of the pages. `pages[i]` is block
/// i of the plan. Moves run in the order given.
void movePositions(const PageLayers &layers, char *const *pages, const TokenMove *moves, int64_t count);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_PRUNE_H
