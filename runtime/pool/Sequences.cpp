// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sequences of a pool: block tables that grow, shrink, fork and share.
#include "pool/Pool.h"

#include <algorithm>

namespace quire::runtime {

static long long ll(int64_t value) { return static_cast<long long>(value); }

Status Pool::find(quire_sequence handle, const Sequence *&out) const {
  uint32_t slot = static_cast<uint32_t>(handle);
  uint32_t generation = static_cast<uint32_t>(handle >> 32);
  if (generation == 0 || slot >= sequences_.size())
    return failure(QUIRE_INVALID_ARGUMENT, "not a sequence handle of this pool");
  const Sequence &sequence = sequences_[slot];
  if (!sequence.live || sequence.generation != generation)
    return failure(QUIRE_STALE_HANDLE, "sequence %u was released", slot);
  if (acting_ != Tenants::nobody && sequence.tenant != acting_)
    return failure(QUIRE_INVALID_ARGUMENT, "not a sequence handle of this tenant");
  out = &sequence;
  return success();
}

Status Pool::find(quire_sequence handle, Sequence *&out) {
  const Sequence *found;
  QUIRE_TRY(static_cast<const Pool *>(this)->find(handle, found));
  out = const_cast<Sequence *>(found);
  return success();
}

Status Pool::createSequence(const SequenceOptions &options, quire_sequence &out) {
  uint32_t tenant;
  QUIRE_TRY(tenants_.find(options.tenant, tenant));
  if (acting_ != Tenants::nobody && tenant != Tenants::nobody && tenant != acting_)
    return failure(QUIRE_INVALID_ARGUMENT, "not a sequence of this tenant");
  if (freeSlots_.empty()) {
    if (sequences_.size() >= UINT32_MAX)
      return failure(QUIRE_OUT_OF_MEMORY, "too many sequences");
    // Room for every slot at once, so that releases allocate nothing.
    if (freeSlots_.capacity() <= sequences_.size())
      freeSlots_.reserve(2 * sequences_.size() + 16);
    sequences_.emplace_back();
    freeSlots_.push_back(static_cast<uint32_t>(sequences_.size() - 1));
  }
  uint32_t slot = freeSlots_.back();
  Sequence &sequence = sequences_[slot];
  // The table never grows beyond this, so a step allocates nothing either. One
  // more than a table holds: reserve puts the copy of a shared block at its end.
  int64_t most = blocksTotal();
  if (maxPositions_ >= 0)
    most = std::min(most, blocksFor(maxPositions_));
  sequence.blocks.reserve(static_cast<size_t>(most + 1));
  freeSlots_.pop_back();
  sequence.live = true;
  sequence.admitted = false;
  sequence.length = 0;
  sequence.tenant = tenant == Tenants::nobody ? acting_ : tenant;
  sequence.counted = options.resumed;
  sequence.queryTokens = -1;
  ++tenants_[sequence.tenant].sequences;
  ++sequenceCount_;
  out = uint64_t(sequence.generation) << 32 | slot;
  checkInvariants();
  return success();
}

Status Pool::releaseSequence(quire_sequence handle) {
  Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  dropBlocks(*sequence, 0);
  sequence->turns.clear();
  sequence->positions.clear();
  sequence->dropped = 0;
  sequence->live = false;
  sequence->length = 0;
  if (++sequence->generation == 0)
    sequence->generation = 1;
  freeSlots_.push_back(static_cast<uint32_t>(handle));
  --tenants_[sequence->tenant].sequences;
  --sequenceCount_;
  checkInvariants();
  return success();
}

/// Last block first, so that the next owner of them reads in ascending order.
void Pool::dropBlocks(Sequence &sequence, int64_t keep) {
  while (static_cast<int64_t>(sequence.blocks.size()) > keep) {
    dropLastHold(sequence);
    uint32_t block = static_cast<uint32_t>(sequence.blocks.back());
    sequence.blocks.pop_back();
    dropReference(block);
  }
}

bool Pool::endsInSharedBlock(const Sequence &sequence) const {
  size_t last = static_cast<size_t>(sequence.length / blockTokens_);
  return last < sequence.blocks.size() && allocator_.references(static_cast<uint32_t>(sequence.blocks[last])) > 1;
}

Status Pool::fork(quire_sequence handle, int64_t length, quire_sequence &out) {
  const Sequence *source;
  QUIRE_TRY(static_cast<const Pool *>(this)->find(handle, source));
  if (length < 0 || length > source->length)
    return failure(QUIRE_INVALID_ARGUMENT, "expected a length of 0 to %lld, but got %lld", ll(source->length),
                   ll(length));
  // A reservation beyond the length is writable and therefore never shared.
  size_t shared = static_cast<size_t>(blocksFor(length));
  for (size_t i = 0; i < shared; ++i)
    if (allocator_.references(static_cast<uint32_t>(source->blocks[i])) == UINT32_MAX)
      return failure(QUIRE_INVALID_ARGUMENT, "block %d has too many references", source->blocks[i]);
  std::vector<int64_t> positions;
  if (source->dropped > 0) {
    positions.reserve(mostTokens());
    positions = source->positions;
  }
  quire_sequence copy;
  QUIRE_TRY(createSequence({}, copy));
  const Sequence &from = sequences_[static_cast<uint32_t>(handle)];
  Sequence &to = sequences_[static_cast<uint32_t>(copy)];
  for (size_t i = 0; i < shared; ++i) {
    to.blocks.push_back(from.blocks[i]);
    addReference(static_cast<uint32_t>(from.blocks[i]));
  }
  to.length = length;
  to.positions.swap(positions);
  to.dropped = from.dropped;
  shortenPositions(to);
  to.admitted = from.admitted;
  --tenants_[to.tenant].sequences;
  to.tenant = from.tenant;
  ++tenants_[to.tenant].sequences;
  out = copy;
  checkInvariants();
  return success();
}

Status Pool::reserveCost(quire_sequence handle, int64_t tokens, int64_t &blocks) const {
  const Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  if (tokens < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "expected at least 0 tokens, but got %lld", ll(tokens));
  int64_t limit = maxPositions_ >= 0 ? maxPositions_ : INT64_MAX / 2;
  int64_t next = sequence->length + sequence->dropped;
  if (tokens > limit - next)
    return failure(QUIRE_TOO_LONG, "%lld tokens and %lld more are beyond the model's %lld positions", ll(next), ll(tokens), ll(limit));
  int64_t held = static_cast<int64_t>(sequence->blocks.size());
  blocks = std::max<int64_t>(0, blocksFor(sequence->length + tokens) - held);
  if (tokens > 0 && endsInSharedBlock(*sequence))
    ++blocks;
  return success();
}

Status Pool::reserve(quire_sequence handle, int64_t tokens) {
  int64_t cost;
  QUIRE_TRY(reserveCost(handle, tokens, cost));
  if (cost == 0)
    return success();
  int64_t room;
  QUIRE_TRY(roomFor(handle, false, room));
  QUIRE_TRY(checkRoom(cost, room));
  Sequence &sequence = sequences_[static_cast<uint32_t>(handle)];
  bool copy = endsInSharedBlock(sequence);
  // Cached blocks that give way do not come back, but may be what makes room for the copy: before they go, what is copied
  // must not be lost. The slow tier may have begun to refuse stores meanwhile.
  if (copy && pager_ && cost > blocksFree()) {
    QUIRE_TRY(pager_->read(static_cast<uint32_t>(sequence.blocks[static_cast<size_t>(sequence.length / blockTokens_)])));
    QUIRE_TRY(roomFor(handle, false, room));
    QUIRE_TRY(checkRoom(cost, room));
  }
  takeBlocks(cost, sequence.blocks);
  if (copy) {
    size_t last = static_cast<size_t>(sequence.length / blockTokens_);
    uint32_t shared = static_cast<uint32_t>(sequence.blocks[last]);
    uint32_t own = static_cast<uint32_t>(sequence.blocks.back());
    Status copied = copyBlock(shared, own);
    if (!copied.ok()) {
      dropBlocks(sequence, static_cast<int64_t>(sequence.blocks.size()) - cost);
      return copied;
    }
    sequence.blocks.pop_back();
    moveHold(sequence, last, static_cast<int32_t>(own));
    sequence.blocks[last] = static_cast<int32_t>(own);
    dropReference(shared);
  }
  sequence.admitted = true;
  holdRecent(sequence);
  checkInvariants();
  return success();
}

Status Pool::commit(quire_sequence handle, int64_t tokens) {
  Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  int64_t room = static_cast<int64_t>(sequence->blocks.size()) * blockTokens_ - sequence->length;
  if (tokens < 0 || tokens > room || (tokens > 0 && endsInSharedBlock(*sequence)))
    return failure(QUIRE_INVALID_ARGUMENT, "commit of %lld tokens, but %lld are reserved", ll(tokens),
                   ll(endsInSharedBlock(*sequence) ? 0 : room));
  for (int64_t i = 0; sequence->dropped > 0 && i < tokens; ++i)
    sequence->positions.push_back(sequence->length + sequence->dropped + i);
  sequence->length += tokens;
  if (tokens > 0) {
    countQuery(*sequence);
    filling_.tokens += static_cast<uint64_t>(sequence->length);
    filling_.positions += sequence->blocks.size() * static_cast<uint64_t>(blockTokens_);
  }
  checkInvariants();
  return success();
}

Status Pool::truncate(quire_sequence handle, int64_t length) {
  Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  if (length < 0 || length > sequence->length)
    return failure(QUIRE_INVALID_ARGUMENT, "expected a length of 0 to %lld, but got %lld", ll(sequence->length),
                   ll(length));
  dropBlocks(*sequence, blocksFor(length));
  sequence->length = length;
  shortenPositions(*sequence);
  sequence->hitTokens = std::min(sequence->hitTokens, length);
  while (!sequence->turns.empty() && sequence->turns.back() > length)
    sequence->turns.pop_back();
  holdRecent(*sequence);
  checkInvariants();
  return success();
}

Status Pool::length(quire_sequence handle, int64_t &out) const {
  const Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  out = sequence->length;
  return success();
}

Status Pool::intactLength(quire_sequence handle, int64_t &out) const {
  const Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  out = sequence->length;
  for (int64_t i = 0; pager_ && i < blocksFor(sequence->length); ++i)
    if (pager_->lost(static_cast<uint32_t>(sequence->blocks[static_cast<size_t>(i)]))) {
      out = i * blockTokens_;
      break;
    }
  return success();
}

Status Pool::table(quire_sequence handle, const int32_t *&blocks, int64_t &count) const {
  const Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  blocks = sequence->blocks.data();
  count = static_cast<int64_t>(sequence->blocks.size());
  return success();
}

Status Pool::validateSequences(std::vector<uint64_t> &counted) const {
  int64_t live = 0;
  for (size_t slot = 0; slot < sequences_.size(); ++slot) {
    const Sequence &sequence = sequences_[slot];
    if (!sequence.live && (!sequence.blocks.empty() || sequence.length != 0))
      return failure(QUIRE_INVARIANT_BROKEN, "released sequence %zu holds blocks", slot);
    if (!sequence.live)
      continue;
    ++live;
    QUIRE_TRY(validatePositions(sequence));
    if (sequence.length > static_cast<int64_t>(sequence.blocks.size()) * blockTokens_)
      return failure(QUIRE_INVARIANT_BROKEN, "sequence %zu is longer than its blocks", slot);
    // Blocks past the length are writable: one owner only.
    for (size_t i = static_cast<size_t>(blocksFor(sequence.length)); i < sequence.blocks.size(); ++i)
      if (allocator_.references(static_cast<uint32_t>(sequence.blocks[i])) != 1)
        return failure(QUIRE_INVARIANT_BROKEN, "writable block %d of sequence %zu is shared", sequence.blocks[i], slot);
    for (int32_t block : sequence.blocks)
      ++counted[static_cast<uint32_t>(block)];
  }
  if (live != sequenceCount_)
    return failure(QUIRE_INVARIANT_BROKEN, "%lld sequences alive, but %lld counted", ll(live), ll(sequenceCount_));
  if (freeSlots_.size() + static_cast<size_t>(live) != sequences_.size())
    return failure(QUIRE_INVARIANT_BROKEN, "a sequence slot is lost");
  return success();
}

} // namespace quire::runtime
