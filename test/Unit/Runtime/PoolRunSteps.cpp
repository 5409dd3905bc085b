// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Steps of programs, and pages that they hold by hand.
#include "PoolRun.h"

#include <algorithm>
#include <map>
#include <set>

namespace quire::test {

static constexpr size_t mostPins = 5;

//===----------------------------------------------------------------------===//
// What fits into the fast tier
//===----------------------------------------------------------------------===//

/// Whether the blocks' pages of one group at a time fit beside those that are held: of each group, or of
/// one layer's. `none`: a new block.
bool PoolRun::fitsPinned(const std::vector<uint32_t> &blocks, int64_t layer) const {
  std::set<std::pair<int64_t, uint32_t>> held;
  for (const Pinned &pin : pins_)
    held.insert({pin.layer / pool_.layersPerPage(), pin.block});
  for (int64_t group = 0; group * pool_.layersPerPage() < markLayers; ++group) {
    if (layer >= 0 && group != layer / pool_.layersPerPage())
      continue;
    auto wanted = std::count_if(blocks.begin(), blocks.end(), [&](uint32_t name) { return held.count({group, name}) == 0; });
    if (static_cast<int64_t>(held.size()) + wanted > fastPages())
      return false;
  }
  return true;
}

/// Distinct blocks of a step once its reservations are made; `none` stands for each new one. The last of those
/// that share a block has no need to copy it.
static std::vector<uint32_t> blocksOfStep(const PoolReference &reference, const std::vector<size_t> &members,
                                          const std::vector<std::vector<int64_t>> &tokens) {
  std::set<uint32_t> distinct;
  std::map<uint32_t, uint32_t> copies;
  int64_t fresh = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const PoolReference::Sequence &sequence = reference.sequences()[members[i]];
    auto added = static_cast<int64_t>(tokens[i].size());
    auto used = static_cast<size_t>((sequence.length() + added + markBlockTokens - 1) / markBlockTokens);
    size_t copied = reference.endsShared(sequence) ? static_cast<size_t>(sequence.length() / markBlockTokens) : used;
    int64_t cost = 0;
    reference.cost(members[i], added, cost);
    fresh += cost;
    for (size_t block = 0; block < std::min(used, sequence.blocks.size()); ++block) {
      uint32_t name = sequence.blocks[block];
      bool last = block == copied && ++copies[name] == reference.blocks()[name].references();
      fresh -= last;
      if (block != copied || last)
        distinct.insert(name);
    }
  }
  std::vector<uint32_t> blocks(distinct.begin(), distinct.end());
  blocks.insert(blocks.end(), static_cast<size_t>(fresh), PoolReference::none);
  return blocks;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

PoolRun::Batch PoolRun::batchOf(const Op &op) const {
  Batch batch;
  for (size_t i = 0; i < reference_->sequences().size(); ++i)
    if (op.a >> i & 1)
      batch.members.push_back(i);
  if (batch.members.empty())
    batch.members.push_back(pick(op.a));
  for (size_t i = 0; i < batch.members.size(); ++i) {
    int64_t count = 1 + (op.b + 5 * static_cast<int64_t>(i)) % 6;
    batch.tokens.push_back(nextTokens(batch.members[i], count, op.b / 8));
    batch.histories.push_back(reference_->historyWith(batch.members[i], batch.tokens.back()));
  }
  return batch;
}

/// How a step must end whose model does as it should.
quire_status PoolRun::expectStep(const Batch &batch) const {
  int64_t wanted = 0, room = INT64_MAX;
  for (size_t i = 0; i < batch.members.size(); ++i) {
    int64_t cost;
    quire_status status = reference_->cost(batch.members[i], static_cast<int64_t>(batch.tokens[i].size()), cost);
    if (status != QUIRE_OK)
      return status;
    wanted += cost;
    if (cost > 0)
      room = std::min(room, reference_->roomFor(batch.members[i], batch.members.size() > 1));
  }
  std::vector<uint32_t> blocks = blocksOfStep(*reference_, batch.members, batch.tokens);
  if (wanted > room || static_cast<int64_t>(blocks.size()) > fastPages())
    return QUIRE_OUT_OF_BLOCKS;
  for (size_t member : batch.members) {
    const PoolReference::Sequence &sequence = at(member);
    if (reference_->endsShared(sequence) && !fitsPinned({sequence.blocks[static_cast<size_t>(sequence.length() / markBlockTokens)], PoolReference::none}))
      return QUIRE_NO_SPACE;
  }
  return QUIRE_OK;
}

/// A step that failed has kept its reservations, or those before the one that failed.
void PoolRun::applyReservations(const Batch &batch, bool all) {
  for (size_t i = 0; i < batch.members.size(); ++i) {
    const PoolReference::Sequence &sequence = at(batch.members[i]);
    const int32_t *blocks = nullptr;
    int64_t count = 0, cost = 0;
    auto added = static_cast<int64_t>(batch.tokens[i].size());
    reference_->cost(batch.members[i], added, cost);
    if (!all && cost > 0) {
      quire_sequence_table(pool_.get(), sequence.handle, &blocks, &count);
      size_t last = static_cast<size_t>(sequence.length() / markBlockTokens);
      bool grown = count != static_cast<int64_t>(sequence.blocks.size());
      if (!grown && (last >= sequence.blocks.size() || blocks[last] == reference_->blocks()[sequence.blocks[last]].index))
        return;
    }
    reference_->reserve(batch.members[i], added);
  }
}

void PoolRun::step(const Op &op, bool aborts) {
  Batch batch = batchOf(op);
  std::vector<quire_sequence> handles;
  std::vector<int64_t> counts, flat, selected;
  MarkScript &script = pool_.script();
  script.histories.clear();
  script.positions.clear();
  for (size_t i = 0; i < batch.members.size(); ++i) {
    handles.push_back(at(batch.members[i]).handle);
    counts.push_back(static_cast<int64_t>(batch.tokens[i].size()));
    flat.insert(flat.end(), batch.tokens[i].begin(), batch.tokens[i].end());
    selected.push_back(static_cast<int64_t>(flat.size()) - 1);
    script.histories.push_back(batch.histories[i].data());
    script.positions.push_back(at(batch.members[i]).next);
  }
  script.choices = op.c;
  script.abortIn = aborts ? op.c % markLayers : -1;
  script.mismatch.clear();
  quire_status expected = expectStep(batch);
  if (expected == QUIRE_OK && aborts)
    expected = QUIRE_INVARIANT_BROKEN;
  else if (expected == QUIRE_OK && !fitsPinned(blocksOfStep(*reference_, batch.members, batch.tokens)))
    expected = QUIRE_NO_SPACE;
  std::vector<float> logits(selected.size() * markVocabulary);
  quire_batch call = {sizeof(call), static_cast<int64_t>(handles.size()), handles.data(), counts.data(), flat.data(), selected.data(), static_cast<int64_t>(selected.size())};
  quire_status status = quire_executor_step(pool_.executor(), &call, logits.data());
  bool done = endedPaging(expected, status, true);
  if (!good())
    return;
  syncEvictions();
  if (done || status == QUIRE_INVARIANT_BROKEN)
    applyReservations(batch, true);
  else if (status == QUIRE_PAGE_LOST || status == QUIRE_NO_SPACE)
    applyReservations(batch, false);
  if (!done)
    return;
  if (!script.mismatch.empty())
    return fail("the model read other bytes than were written: " + script.mismatch);
  for (size_t i = 0; i < batch.members.size(); ++i)
    reference_->commit(batch.members[i], batch.tokens[i]);
}

/// One row into what is reserved already. Nothing of it counts: the pool's records stay.
void PoolRun::invoke(const Op &op) {
  size_t index = pick(op.a);
  const PoolReference::Sequence &sequence = at(index);
  std::vector<int64_t> tokens = nextTokens(index, 1, op.b);
  if (sequence.length() == markPositions || reference_->canCommit(index, 1) != QUIRE_OK)
    return;
  std::vector<uint64_t> history = reference_->historyWith(index, tokens);
  std::vector<int32_t> table;
  std::vector<uint32_t> used(sequence.blocks.begin(), sequence.blocks.begin() + sequence.length() / markBlockTokens + 1);
  for (uint32_t name : used)
    table.push_back(reference_->blocks()[name].index);
  MarkScript &script = pool_.script();
  script.histories = {history.data()};
  script.positions = {sequence.length()};
  script.choices = op.c;
  script.abortIn = -1;
  script.mismatch.clear();
  int64_t one = 1, past = sequence.length();
  quire_explicit_batch call = {sizeof(call), 1, &one, tokens.data(), &past, table.data(), static_cast<int64_t>(table.size()), nullptr, 0};
  quire_status status = quire_executor_invoke(pool_.executor(), &call, nullptr);
  quire_status expected = static_cast<int64_t>(used.size()) > fastPages() ? QUIRE_OUT_OF_BLOCKS : QUIRE_OK;
  if (endedPaging(expected, status, fitsPinned(used)) && !script.mismatch.empty())
    fail("the model read other bytes than were written: " + script.mismatch);
}

//===----------------------------------------------------------------------===//
// Pages by hand
//===----------------------------------------------------------------------===//

/// Null: it cannot be had, and should not.
char *PoolRun::pinFor(uint32_t name, int64_t layer, bool write) {
  void *address = nullptr;
  quire_status status = quire_pool_pin(pool_.get(), layer, reference_->blocks()[name].index, write, &address);
  if (!endedPaging(QUIRE_OK, status, fitsPinned({name}, layer)))
    return nullptr;
  auto known = addresses_.find({name, layer});
  if (known != addresses_.end() && known->second != address)
    fail("a page is held at another address than its own");
  return static_cast<char *>(address);
}

void PoolRun::unpinFor(uint32_t name, int64_t layer) {
  ended(QUIRE_OK, quire_pool_unpin(pool_.get(), layer, reference_->blocks()[name].index));
}

/// Positions [begin, end), which lie in the block.
bool PoolRun::writeBlock(uint32_t name, int64_t layer, const std::vector<uint64_t> &history, int64_t begin, int64_t end) {
  if (reference_->blocks()[name].index < 0)
    compareTables();
  char *block = pinFor(name, layer, true);
  for (int64_t position = begin; block && position < end; ++position)
    writeMarks(block, layer, position % markBlockTokens, history[static_cast<size_t>(position)]);
  if (block)
    unpinFor(name, layer);
  return block != nullptr;
}

void PoolRun::read(size_t index) {
  const PoolReference::Sequence &sequence = at(index);
  for (int64_t begin = 0; begin < sequence.length() && good(); begin += markBlockTokens)
    for (int64_t layer = 0; layer < markLayers && good(); ++layer) {
      uint32_t name = sequence.blocks[static_cast<size_t>(begin / markBlockTokens)];
      const char *block = pinFor(name, layer, false);
      if (!block)
        continue;
      for (int64_t position = begin; position < std::min(begin + markBlockTokens, sequence.length()); ++position)
        if (!holdsMarks(block, layer, position - begin, sequence.history[static_cast<size_t>(position)]))
          fail("position " + std::to_string(position) + " of a sequence holds other bytes in layer " + std::to_string(layer));
      unpinFor(name, layer);
    }
}

void PoolRun::readHeld(const PoolReference::Held &held) {
  for (int64_t layer = 0; layer < markLayers && held.history != 0 && good(); ++layer) {
    const char *block = pinFor(held.block, layer, false);
    for (int64_t slot = 0; block && slot < markBlockTokens; ++slot)
      if (!holdsMarks(block, layer, slot, held.history))
        fail("a block of the caller's holds other bytes in layer " + std::to_string(layer));
    if (block)
      unpinFor(held.block, layer);
  }
}

/// What holds stored tokens.
void PoolRun::pin(const Op &op) {
  const PoolReference::Sequence &sequence = at(pick(op.a));
  auto stored = static_cast<uint64_t>((sequence.length() + markBlockTokens - 1) / markBlockTokens);
  if (stored == 0 || pins_.size() >= mostPins)
    return;
  uint32_t name = sequence.blocks[op.c % stored];
  int64_t layer = op.b % markLayers;
  if (const char *address = pinFor(name, layer, op.c >= 128))
    pins_.push_back({name, layer, address});
}

/// What is not held cannot be let go.
void PoolRun::unpin(const Op &op) {
  if (!pins_.empty()) {
    size_t index = op.a % pins_.size();
    unpinFor(pins_[index].block, pins_[index].layer);
    pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(index));
    return;
  }
  auto number = static_cast<int32_t>(op.b % pool_.inner().blocksTotal());
  ended(QUIRE_INVALID_ARGUMENT, quire_pool_unpin(pool_.get(), op.a % markLayers, number));
}

} // namespace quire::test
