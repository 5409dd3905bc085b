// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A sequence with fewer tokens: survivors of a range move together into blocks of their own.
#include "model/ModelInfo.h"
#include "pool/Pool.h"

#include <algorithm>
#include <numeric>

namespace quire::runtime {

static long long ll(int64_t value) { return static_cast<long long>(value); }

Status Pool::checkUnpinned(const Sequence &sequence, size_t first, size_t last) const {
  for (size_t i = first; i < std::min(last, sequence.holds.size()); ++i)
    if (sequence.holds[i].pins() > 0)
      return failure(QUIRE_INVALID_ARGUMENT, "block %zu of the sequence is pinned", i);
  return success();
}

Status Pool::prune(quire_sequence handle, int64_t begin, int64_t end, const Pruning &pruning, Pruned &done) {
  done = {};
  Sequence *sequence;
  size_t first, last;
  QUIRE_TRY(find(handle, sequence));
  if (int64_t layer = layerOfPositions(shapes_.data(), layerCount()); layer >= 0)
    return failure(QUIRE_INVALID_ARGUMENT, "prune: layer %lld of the model takes the place of a key for its position", ll(layer));
  QUIRE_TRY(blocksOfRange(*sequence, begin, end, first, last));
  first = static_cast<size_t>(blocksFor(begin));
  last = std::max(first, static_cast<size_t>(end / blockTokens_));
  PruneRequest request;
  request.blocks = static_cast<int64_t>(last - first);
  request.blockTokens = blockTokens_;
  request.scores = first == last ? nullptr : pruning.scores + (static_cast<int64_t>(first) * blockTokens_ - begin);
  request.firstPosition = static_cast<int64_t>(first) * blockTokens_;
  request.ratio = pruning.ratio;
  request.wholeBlocks = true;
  request.keep = pruning.keep.data();
  request.keepCount = static_cast<int64_t>(pruning.keep.size());
  PrunePlan plan;
  QUIRE_TRY(planPrune(request, plan));
  if (plan.freed.empty())
    return success();
  QUIRE_TRY(checkUnpinned(*sequence, first, last));
  // Blocks before the first survivor that moves stay.
  size_t same = plan.moves.empty() ? plan.positions.size() / static_cast<size_t>(blockTokens_) : static_cast<size_t>(plan.moves.front().to.block);
  auto fresh = plan.positions.size() / static_cast<size_t>(blockTokens_) - same;
  QUIRE_TRY(checkRoom(static_cast<int64_t>(fresh), blocksAvailable()));
  std::vector<int32_t> taken, old(sequence->blocks.begin() + static_cast<std::ptrdiff_t>(first + same), sequence->blocks.begin() + static_cast<std::ptrdiff_t>(last));
  std::vector<int64_t> positions;
  positions.reserve(mostTokens()); // what can throw comes first
  positions = sequence->positions;
  taken.reserve(fresh);
  takeBlocks(static_cast<int64_t>(fresh), taken);
  if (Status moved = moveSurvivors(sequence->blocks.data() + first, plan, same, request.firstPosition, taken); !moved.ok()) {
    for (int32_t block : taken)
      dropReference(static_cast<uint32_t>(block));
    return moved;
  }
  sequence->positions.swap(positions);
  dropPositions(*sequence, first, last, plan.positions);
  auto at = sequence->blocks.begin() + static_cast<std::ptrdiff_t>(first + same);
  at = std::copy(taken.begin(), taken.end(), at);
  sequence->blocks.erase(at, at + static_cast<std::ptrdiff_t>(old.size() - taken.size()));
  if (size_t holds = sequence->holds.size(); holds > first + same + fresh)
    sequence->holds.erase(sequence->holds.begin() + static_cast<std::ptrdiff_t>(first + same + fresh),
                          sequence->holds.begin() + static_cast<std::ptrdiff_t>(std::min(holds, last)));
  for (size_t i = old.size(); i-- > 0;)
    dropReference(static_cast<uint32_t>(old[i]));
  holdRecent(*sequence);
  done = {static_cast<int64_t>(plan.freed.size()) * blockTokens_, static_cast<int64_t>(plan.freed.size())};
  pruned_.tokens += done.tokens;
  pruned_.blocks += done.blocks;
  checkInvariants();
  return success();
}

/// `survivors` are places of tokens of blocks [first, last). The vector of positions has the capacity.
void Pool::dropPositions(Sequence &sequence, size_t first, size_t last, const std::vector<int64_t> &survivors) {
  auto begin = static_cast<int64_t>(first) * blockTokens_, end = static_cast<int64_t>(last) * blockTokens_;
  std::vector<int64_t> &positions = sequence.positions;
  if (positions.empty()) {
    positions.resize(static_cast<size_t>(sequence.length));
    std::iota(positions.begin(), positions.end(), int64_t(0));
  }
  for (size_t i = 0; i < survivors.size(); ++i)
    positions[static_cast<size_t>(begin) + i] = positions[static_cast<size_t>(survivors[i])];
  auto kept = begin + static_cast<int64_t>(survivors.size()), gone = end - kept;
  positions.erase(positions.begin() + kept, positions.begin() + end);
  for (int64_t &turn : sequence.turns)
    turn = turn >= end     ? turn - gone
           : turn <= begin ? turn
                           : begin + (std::lower_bound(survivors.begin(), survivors.end(), turn) - survivors.begin());
  sequence.turns.erase(std::unique(sequence.turns.begin(), sequence.turns.end()), sequence.turns.end());
  if (!sequence.turns.empty() && sequence.turns.front() == 0) // nothing is left of it
    sequence.turns.erase(sequence.turns.begin());
  sequence.length -= gone;
  sequence.dropped += gone;
  sequence.hitTokens = std::min(sequence.hitTokens, begin);
}

size_t Pool::mostTokens() const {
  int64_t most = blocksTotal() * blockTokens_;
  return static_cast<size_t>(maxPositions_ >= 0 ? std::min(most, maxPositions_) : most);
}

/// After the sequence became shorter: the next position is the one after its last token, and without a gap before that it is whole again.
void Pool::shortenPositions(Sequence &sequence) {
  if (sequence.dropped == 0)
    return;
  sequence.positions.resize(static_cast<size_t>(sequence.length));
  sequence.dropped = sequence.length == 0 ? 0 : sequence.positions.back() + 1 - sequence.length;
  if (sequence.dropped == 0)
    sequence.positions.clear();
}

/// `from` are the blocks of the plan, which begin at token `begin`, `to` new ones for those from `first` on. On failure these have no content that counts.
Status Pool::moveSurvivors(const int32_t *from, const PrunePlan &plan, size_t first, int64_t begin, const std::vector<int32_t> &to) {
  size_t tokens = static_cast<size_t>(blockTokens_);
  std::vector<int64_t> slots(tokens);
  uint32_t groups = pager_ ? pager_->geometry().groups : 1;
  for (size_t i = 0; i < to.size(); ++i) {
    for (size_t slot = 0; slot < tokens; ++slot)
      slots[slot] = plan.positions[(first + i) * tokens + slot] - begin;
    for (uint32_t group = 0; group < groups; ++group)
      QUIRE_TRY(movePage(group, from, slots.data(), to[i]));
  }
  return success();
}

/// Fills a page with tokens of others, or all layers of a block. At most two pages are pinned at a time.
Status Pool::movePage(uint32_t group, const int32_t *from, const int64_t *slots, int32_t to) {
  if (!pager_) {
    for (size_t l = 0; l < layers_.size(); ++l) {
      uint64_t start = 0;
      PageLayers page{&shapes_[l], &start, 1, blockTokens_};
      for (int64_t slot = 0; slot < blockTokens_; ++slot) {
        char *pages[2] = {layers_[l].base + from[slots[slot] / blockTokens_] * layers_[l].blockBytes, layers_[l].base + to * layers_[l].blockBytes};
        TokenMove move{{0, static_cast<int32_t>(slots[slot] % blockTokens_)}, {1, static_cast<int32_t>(slot)}};
        movePositions(page, pages, &move, 1);
      }
    }
    return success();
  }
  const PageGeometry &geometry = pager_->geometry();
  size_t firstLayer = size_t(group) * geometry.layersPerPage;
  auto count = std::min<int64_t>(geometry.layersPerPage, geometry.layers() - static_cast<int64_t>(firstLayer));
  PageLayers page{&shapes_[firstLayer], &geometry.layerStart[firstLayer], count, blockTokens_};
  char *pages[2];
  QUIRE_TRY(pager_->pin(group, static_cast<uint32_t>(to), true, pages[1]));
  Status status;
  for (int64_t slot = 0; slot < blockTokens_ && status.ok();) {
    auto source = static_cast<uint32_t>(from[slots[slot] / blockTokens_]);
    status = pager_->pin(group, source, false, pages[0]);
    if (!status.ok())
      break;
    for (; slot < blockTokens_ && static_cast<uint32_t>(from[slots[slot] / blockTokens_]) == source; ++slot) {
      TokenMove move{{0, static_cast<int32_t>(slots[slot] % blockTokens_)}, {1, static_cast<int32_t>(slot)}};
      movePositions(page, pages, &move, 1);
    }
    (void)pager_->unpin(group, source);
  }
  (void)pager_->unpin(group, static_cast<uint32_t>(to));
  return status;
}

Status Pool::positions(quire_sequence handle, const int64_t *&out, int64_t &next) const {
  const Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  out = sequence->positions.empty() ? nullptr : sequence->positions.data();
  next = sequence->length + sequence->dropped;
  return success();
}

Status Pool::validatePositions(const Sequence &sequence) const {
  const std::vector<int64_t> &positions = sequence.positions;
  int64_t next = sequence.length + sequence.dropped;
  bool fits = positions.size() == static_cast<size_t>(sequence.dropped == 0 ? 0 : sequence.length);
  if (!fits || !std::is_sorted(positions.begin(), positions.end()) || std::adjacent_find(positions.begin(), positions.end()) != positions.end() ||
      (!positions.empty() && positions.back() >= next))
    return failure(QUIRE_INVARIANT_BROKEN, "a sequence of %lld tokens has %zu positions that do not ascend to %lld", ll(sequence.length), positions.size(), ll(next));
  return success();
}

Status Pool::checkWhole(quire_sequence handle) const {
  const Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  if (sequence->dropped > 0)
    return failure(QUIRE_INVALID_ARGUMENT, "%lld tokens of the sequence were pruned: what is stored is no prefix of tokens",
                   ll(sequence->dropped));
  return success();
}

} // namespace quire::runtime
