// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns of one request's dialogue: what the pool knows of them, and what is dropped of old ones.
#ifndef QUIRE_RUNTIME_SERVING_TURNS_H
#define QUIRE_RUNTIME_SERVING_TURNS_H

#include "quire/runtime.h"

#include <cstdint>
#include <vector>

namespace quire::serving {

/// What becomes of turns that are not recent any more; the pool's rules say the same of what is recent and important.
struct TurnRules {
  bool prunes = false;
  double ratio = 0.5; // of the tokens of old turns, which go
  int64_t recentTurns = 0;
  int64_t recentPages = 0;
  std::vector<int64_t> importantPages; // blocks up to the last of them stay as they are
};

/// A request's tokens have positions, what is stored of them has places in the sequence.
///
/// Tokens go when a turn has ended, before any later token is stored, so that what is kept and what later tokens attend to depend on the request and the rules
/// alone. What was done is remembered by its position: a sequence that is stored again from its beginning loses the same tokens at the same moments, whatever
/// the rules say meanwhile.
class Turns {
public:
  /// The next tokens, of which `stored` are stored, may be stored together up to this one.
  int64_t stop(const std::vector<int64_t> &ends, int64_t stored, const TurnRules &rules) const;

  /// What others stored is the same for fewer tokens than this.
  int64_t shareable(const std::vector<int64_t> &ends, const TurnRules &rules) const;

  /// Tells the pool which turns are stored.
  quire_status tell(quire_pool *pool, quire_sequence sequence, const std::vector<int64_t> &ends, int64_t stored);

  /// Drops what is to go now that `tokens` are stored, once; `changed`: blocks of the table are others. On failure nothing was done, and it may be
  /// called again.
  quire_status prune(quire_pool *pool, quire_sequence sequence, const std::vector<int64_t> &ends, const std::vector<int64_t> &tokens, const TurnRules &rules,
                     bool &changed);
  /// Whether prune() has something to look at.
  bool due(const std::vector<int64_t> &ends, int64_t stored) const;

  /// Only so many tokens are stored, without gaps.
  void rewind(const std::vector<int64_t> &ends, int64_t stored);

  int64_t dropped() const { return dropped_; }

  /// How many stored tokens come before a position.
  static int64_t placeOf(const quire_pool *pool, quire_sequence sequence, int64_t position);

private:
  struct Pruning {
    int64_t at;         // tokens that were stored
    int64_t begin, end; // places
    double ratio;
  };

  bool repeats() const { return repeated_ < done_.size(); }
  quire_status decide(quire_pool *pool, quire_sequence sequence, const std::vector<int64_t> &ends, const std::vector<int64_t> &tokens, const TurnRules &rules,
                      bool &changed);
  quire_status drop(quire_pool *pool, quire_sequence sequence, const std::vector<int64_t> &tokens, const Pruning &pruning, bool &changed);

  size_t told_ = 0;             // turns that the pool knows, or that nothing is left of
  size_t decided_ = 0;          // turns after which it was decided whether something goes
  std::vector<Pruning> done_;   // in order
  size_t repeated_ = 0;         // of these, in this sequence
  int64_t dropped_ = 0;         // tokens of this sequence
  int64_t treated_ = 0;         // places before this one are not pruned again
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_TURNS_H
