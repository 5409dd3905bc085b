// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranges of sequences that stay in the fast tier: by hand, and by the rules for dialogues.
#include "pool/Pool.h"

#include <algorithm>
#include <utility>

namespace quire::runtime {

static long long ll(int64_t value) { return static_cast<long long>(value); }

/// Blocks [first, last) that hold any of the tokens.
Status Pool::blocksOfRange(const Sequence &sequence, int64_t begin, int64_t end, size_t &first, size_t &last) const {
  if (begin < 0 || begin > end || end > sequence.length)
    return failure(QUIRE_INVALID_ARGUMENT, "expected tokens of the %lld that are stored, but got %lld to %lld",
                   ll(sequence.length), ll(begin), ll(end));
  first = static_cast<size_t>(begin / blockTokens_);
  last = begin == end ? first : static_cast<size_t>(blocksFor(end));
  return success();
}

void Pool::changePins(int32_t block, int32_t pins) {
  if (!pager_)
    return;
  if (pins >= 0)
    pager_->pinBlock(static_cast<uint32_t>(block), static_cast<uint32_t>(pins));
  else
    pager_->unpinBlock(static_cast<uint32_t>(block), static_cast<uint32_t>(-pins));
}

/// Room for all blocks that the sequence will ever have, so that no step allocates.
void Pool::openHolds(Sequence &sequence) {
  sequence.holds.reserve(sequence.blocks.capacity());
  sequence.holds.resize(sequence.blocks.size());
}

Status Pool::pinRange(quire_sequence handle, int64_t begin, int64_t end) {
  Sequence *sequence;
  size_t first, last;
  QUIRE_TRY(find(handle, sequence));
  QUIRE_TRY(blocksOfRange(*sequence, begin, end, first, last));
  openHolds(*sequence);
  for (size_t i = first; i < last; ++i)
    if (sequence->holds[i].byHand == UINT16_MAX)
      return failure(QUIRE_INVALID_ARGUMENT, "block %zu of the sequence is pinned too often", i);
  for (size_t i = first; i < last; ++i) {
    ++sequence->holds[i].byHand;
    changePins(sequence->blocks[i], 1);
  }
  checkInvariants();
  return success();
}

Status Pool::unpinRange(quire_sequence handle, int64_t begin, int64_t end) {
  Sequence *sequence;
  size_t first, last;
  QUIRE_TRY(find(handle, sequence));
  QUIRE_TRY(blocksOfRange(*sequence, begin, end, first, last));
  for (size_t i = first; i < last; ++i)
    if (i >= sequence->holds.size() || sequence->holds[i].byHand == 0)
      return failure(QUIRE_INVALID_ARGUMENT, "block %zu of the sequence is not pinned", i);
  for (size_t i = first; i < last; ++i) {
    --sequence->holds[i].byHand;
    changePins(sequence->blocks[i], -1);
  }
  checkInvariants();
  return success();
}

Status Pool::endTurn(quire_sequence handle, int64_t end) {
  Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  int64_t last = sequence->turns.empty() ? 0 : sequence->turns.back();
  if (end <= last || end > sequence->length)
    return failure(QUIRE_INVALID_ARGUMENT,
                   "expected a turn that ends after %lld of the %lld tokens that are stored, but got %lld", ll(last),
                   ll(sequence->length), ll(end));
  openHolds(*sequence);
  sequence->turns.push_back(end);
  holdRecent(*sequence);
  // The youngest pins, so that they are the last to be given up.
  for (int64_t page : dialogue_.importantPages)
    if (static_cast<size_t>(page) < sequence->blocks.size())
      changePins(sequence->blocks[static_cast<size_t>(page)], 0);
  checkInvariants();
  return success();
}

void Pool::setDialogue(DialogueRules rules) {
  dialogue_ = std::move(rules);
  for (Sequence &sequence : sequences_)
    holdRecent(sequence);
  checkInvariants();
}

/// Of a sequence with turns: the last of these and what follows them, the last
/// pages whatever their turn, and the important ones. Of one that lost its turns nothing.
void Pool::holdRecent(Sequence &sequence) {
  if (sequence.turns.empty() && sequence.holds.empty())
    return;
  sequence.holds.resize(sequence.blocks.size());
  int64_t turns = static_cast<int64_t>(sequence.turns.size()), blocks = static_cast<int64_t>(sequence.blocks.size());
  int64_t tail = blocks - std::min(blocks, dialogue_.recentPages);
  if (int64_t recent = dialogue_.recentTurns) {
    int64_t begin = recent < turns ? sequence.turns[static_cast<size_t>(turns - recent - 1)] : 0;
    tail = std::min(tail, begin / blockTokens_);
  }
  const std::vector<int64_t> &important = dialogue_.importantPages;
  for (int64_t i = 0; i < blocks; ++i) {
    bool wanted = turns > 0 && (i >= tail || std::find(important.begin(), important.end(), i) != important.end());
    Hold &hold = sequence.holds[static_cast<size_t>(i)];
    if (wanted != hold.byRule)
      changePins(sequence.blocks[static_cast<size_t>(i)], wanted ? 1 : -1);
    hold.byRule = wanted;
  }
}

/// Blocks that hold other tokens too stay.
Status Pool::unload(quire_sequence handle, int64_t begin, int64_t end) {
  Sequence *sequence;
  size_t first, last;
  QUIRE_TRY(find(handle, sequence));
  QUIRE_TRY(blocksOfRange(*sequence, begin, end, first, last));
  if (!pager_)
    return success();
  first = static_cast<size_t>(blocksFor(begin));
  last = static_cast<size_t>(end / blockTokens_);
  Status status;
  for (size_t i = first; i < last && status.ok(); ++i)
    status = pager_->unload(static_cast<uint32_t>(sequence->blocks[i]));
  pager_->settle();
  checkInvariants();
  for (size_t i = first; i < last && status.ok(); ++i)
    if (!pager_->isUnloaded(static_cast<uint32_t>(sequence->blocks[i])))
      return failure(QUIRE_NO_SPACE, "block %zu of the sequence stays in the fast tier: the slow one takes nothing, or not in time", i);
  return status;
}

Status Pool::setImportance(quire_sequence handle, int64_t begin, int64_t end, float importance) {
  Sequence *sequence;
  size_t first, last;
  QUIRE_TRY(find(handle, sequence));
  QUIRE_TRY(blocksOfRange(*sequence, begin, end, first, last));
  if (!(importance >= 0 && importance <= 1)) // nor NaN
    return failure(QUIRE_INVALID_ARGUMENT, "expected an importance of 0 to 1, but got %g",
                   static_cast<double>(importance));
  for (size_t i = first; pager_ && i < last; ++i)
    pager_->observe(static_cast<uint32_t>(sequence->blocks[i]), importance);
  return success();
}

Status Pool::prefetchByQuery(quire_sequence handle, const Query &query, int64_t count, int64_t *places, double *bounds, int64_t &found) {
  const Sequence *sequence;
  QUIRE_TRY(std::as_const(*this).find(handle, sequence));
  if (!pager_ || !pager_->digests())
    return failure(QUIRE_INVALID_ARGUMENT, "expected a pool with a slow tier that keeps digests, but got one without");
  if (query.layer < 0 || query.layer >= layerCount())
    return failure(QUIRE_INVALID_ARGUMENT, "layer: expected 0 to %lld, but got %lld", ll(layerCount() - 1), ll(query.layer));
  const quire_model_layer &shape = shapes_[static_cast<size_t>(query.layer)];
  int64_t heads = shape.kv_heads;
  if (query.headCount < heads || query.headCount % heads != 0)
    return failure(QUIRE_INVALID_ARGUMENT, "query_heads: expected a multiple of the layer's %lld KV heads, but got %lld", ll(heads), ll(query.headCount));
  if (count < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "count: expected at least 0 blocks, but got %lld", ll(count));
  Status status = pager_->fetchByQuery({query.layer, shape.window, sequence->blocks.data(), sequence->length, query.heads, query.headCount, sequence->tenant}, count, places, bounds, found);
  checkInvariants();
  return status;
}

/// Before the sequence gives up the last of its blocks.
void Pool::dropLastHold(Sequence &sequence) {
  if (sequence.holds.size() < sequence.blocks.size())
    return;
  if (int32_t pins = sequence.holds.back().pins())
    changePins(sequence.blocks.back(), -pins);
  sequence.holds.pop_back();
}

/// Before another block takes the place of the sequence's own.
void Pool::moveHold(Sequence &sequence, size_t index, int32_t to) {
  if (index >= sequence.holds.size())
    return;
  if (int32_t pins = sequence.holds[index].pins()) {
    changePins(sequence.blocks[index], -pins);
    changePins(to, pins);
  }
}

Status Pool::validatePins() const {
  if (!pager_)
    return success();
  std::vector<uint64_t> pins(static_cast<size_t>(blocksTotal()));
  for (const Sequence &sequence : sequences_) {
    if (sequence.holds.size() > sequence.blocks.size())
      return failure(QUIRE_INVARIANT_BROKEN, "a sequence holds blocks that it does not have");
    for (size_t i = 0; i < sequence.holds.size(); ++i)
      pins[static_cast<size_t>(sequence.blocks[i])] += static_cast<uint64_t>(sequence.holds[i].pins());
  }
  for (uint32_t block = 0; block < pins.size(); ++block)
    if (pins[block] != pager_->pinned().pins(block))
      return failure(QUIRE_INVARIANT_BROKEN, "block %u has %u pins, but sequences have %llu", block,
                     pager_->pinned().pins(block), static_cast<unsigned long long>(pins[block]));
  return success();
}

} // namespace quire::runtime
