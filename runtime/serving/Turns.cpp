// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// When old turns lose tokens, and which.
#include "serving/Turns.h"

#include <algorithm>
#include <numeric>

namespace quire::serving {

int64_t Turns::placeOf(const quire_pool *pool, quire_sequence sequence, int64_t position) {
  const int64_t *positions = nullptr;
  int64_t length = 0, next = 0;
  if (quire_sequence_length(pool, sequence, &length) != QUIRE_OK || quire_sequence_positions(pool, sequence, &positions, &next) != QUIRE_OK || !positions)
    return position;
  return std::lower_bound(positions, positions + length, position) - positions;
}

int64_t Turns::stop(const std::vector<int64_t> &ends, int64_t stored, const TurnRules &rules) const {
  if (repeats())
    return done_[repeated_].at;
  if (!rules.prunes)
    return INT64_MAX;
  size_t first = std::max(decided_, static_cast<size_t>(std::min<int64_t>(rules.recentTurns, INT32_MAX)));
  for (size_t turn = first; turn < ends.size(); ++turn)
    if (ends[turn] > stored)
      return ends[turn];
  return INT64_MAX;
}

int64_t Turns::shareable(const std::vector<int64_t> &ends, const TurnRules &rules) const { return stop(ends, 0, rules); }

quire_status Turns::tell(quire_pool *pool, quire_sequence sequence, const std::vector<int64_t> &ends, int64_t stored) {
  // The rules of now would pin what went under those of then.
  for (; !repeats() && told_ < ends.size() && ends[told_] <= stored; ++told_) {
    int64_t before = told_ ? placeOf(pool, sequence, ends[told_ - 1]) : 0, end = placeOf(pool, sequence, ends[told_]);
    if (end == before)
      continue;
    if (quire_status status = quire_sequence_end_turn(pool, sequence, end); status != QUIRE_OK)
      return status;
  }
  return QUIRE_OK;
}

bool Turns::due(const std::vector<int64_t> &ends, int64_t stored) const {
  return repeats() ? done_[repeated_].at == stored : decided_ < ends.size() && ends[decided_] <= stored;
}

quire_status Turns::prune(quire_pool *pool, quire_sequence sequence, const std::vector<int64_t> &ends, const std::vector<int64_t> &tokens, const TurnRules &rules,
                          bool &changed) {
  changed = false;
  auto stored = static_cast<int64_t>(tokens.size());
  if (repeats()) {
    if (done_[repeated_].at != stored)
      return QUIRE_OK;
    if (quire_status status = drop(pool, sequence, tokens, done_[repeated_], changed); status != QUIRE_OK)
      return status;
    ++repeated_;
    return tell(pool, sequence, ends, stored);
  }
  for (; decided_ < ends.size() && ends[decided_] <= stored; ++decided_) // later ones went by while nothing was pruned
    if (ends[decided_] == stored && rules.prunes)
      if (quire_status status = decide(pool, sequence, ends, tokens, rules, changed); status != QUIRE_OK)
        return status;
  return QUIRE_OK;
}

/// Of the blocks before recent turns and recent pages, and after important ones, those that were not looked at before. Where no block would become free, they
/// wait for the next turn.
quire_status Turns::decide(quire_pool *pool, quire_sequence sequence, const std::vector<int64_t> &ends, const std::vector<int64_t> &tokens, const TurnRules &rules,
                           bool &changed) {
  auto recent = static_cast<size_t>(std::min<int64_t>(rules.recentTurns, INT32_MAX));
  if (decided_ < recent)
    return QUIRE_OK;
  quire_pool_stats stats = {};
  stats.struct_size = sizeof(stats);
  if (quire_status status = quire_pool_get_stats(pool, &stats); status != QUIRE_OK)
    return status;
  int64_t block = stats.block_tokens, length = static_cast<int64_t>(tokens.size()) - dropped_;
  int64_t important = 0;
  for (int64_t page : rules.importantPages)
    important = std::max(important, page + 1);
  int64_t blocks = (length + block - 1) / block;
  Pruning pruning{static_cast<int64_t>(tokens.size()), treated_, placeOf(pool, sequence, ends[decided_ - recent]), rules.ratio};
  pruning.begin = important > blocks ? length : std::max(pruning.begin, important * block);
  pruning.end = std::min(pruning.end, std::max<int64_t>(0, blocks - rules.recentPages) * block) / block * block;
  if (pruning.end <= pruning.begin)
    return QUIRE_OK;
  if (quire_status status = drop(pool, sequence, tokens, pruning, changed); status != QUIRE_OK)
    return status;
  if (changed) {
    done_.push_back(pruning);
    repeated_ = done_.size();
  }
  return QUIRE_OK;
}

/// The tokens that are rarest among all of the dialogue so far stay, of equally rare ones the first.
quire_status Turns::drop(quire_pool *pool, quire_sequence sequence, const std::vector<int64_t> &tokens, const Pruning &pruning, bool &changed) {
  std::vector<int64_t> each(tokens.size());
  std::iota(each.begin(), each.end(), int64_t(1));
  std::vector<float> rarity(tokens.size()), scores;
  if (quire_status status = quire_tfidf(tokens.data(), each.data(), static_cast<int64_t>(each.size()), rarity.data()); status != QUIRE_OK)
    return status;
  const int64_t *positions = nullptr;
  int64_t next = 0;
  if (quire_status status = quire_sequence_positions(pool, sequence, &positions, &next); status != QUIRE_OK)
    return status;
  for (int64_t place = pruning.begin; place < pruning.end; ++place)
    scores.push_back(rarity[static_cast<size_t>(positions ? positions[place] : place)]);
  quire_prune_options options = {};
  options.struct_size = sizeof(options);
  options.ratio = pruning.ratio;
  options.scores = scores.data();
  quire_pruning done = {};
  done.struct_size = sizeof(done);
  if (quire_status status = quire_sequence_prune(pool, sequence, pruning.begin, pruning.end, &options, &done); status != QUIRE_OK)
    return status;
  changed = done.blocks > 0;
  dropped_ += done.tokens;
  if (changed)
    treated_ = pruning.end - done.tokens;
  return QUIRE_OK;
}

void Turns::rewind(const std::vector<int64_t> &ends, int64_t stored) {
  while (told_ > 0 && ends[told_ - 1] > stored)
    --told_;
  if (stored == 0) {
    repeated_ = 0;
    dropped_ = 0;
    treated_ = 0;
  }
}

} // namespace quire::serving
