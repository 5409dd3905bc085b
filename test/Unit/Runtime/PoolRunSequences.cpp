// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of programs on sequences and prefixes.
#include "PoolRun.h"

#include <algorithm>

namespace quire::test {

static constexpr size_t mostSequences = 8;

/// Most choices are of one stream, and streams begin alike in parts, so that prefixes are shared.
static int64_t streamToken(int64_t choice, int64_t position) {
  int64_t stream = std::max<int64_t>(0, choice % 8 - 4);
  return (position * 7 + (position >= 6 ? stream * 11 : stream / 2 * 5)) % markVocabulary;
}

std::vector<int64_t> PoolRun::nextTokens(size_t index, int64_t count, int64_t choice) const {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(streamToken(choice, at(index).length() + i));
  return tokens;
}

void PoolRun::create(const Op &op) {
  if (reference_->sequences().size() >= mostSequences)
    return;
  std::vector<uint32_t> live = liveTenants();
  size_t choice = op.a % (live.size() + 1);
  uint32_t tenant = choice ? live[choice - 1] : 0;
  quire_sequence_options options = {sizeof(options), tenant ? reference_->tenants()[tenant].handle : 0, 0};
  quire_sequence made = 0;
  if (ended(reference_->canCreate(tenant), quire_sequence_create_with(pool_.get(), &options, &made)))
    reference_->create(tenant, made);
}

void PoolRun::release(size_t index) {
  quire_sequence handle = at(index).handle;
  if (!ended(reference_->mayUse(at(index)), quire_sequence_release(pool_.get(), handle)))
    return;
  reference_->release(index);
  endedSequences_.push_back(handle);
}

void PoolRun::move(const Op &op) {
  size_t index = pick(op.a);
  quire_sequence handle = at(index).handle, made = 0;
  if (!ended(reference_->mayUse(at(index)), quire_sequence_move(pool_.get(), handle, &made)))
    return;
  reference_->move(index, made);
  endedSequences_.push_back(handle);
}

void PoolRun::fork(const Op &op) {
  size_t index = pick(op.a);
  if (reference_->sequences().size() >= mostSequences)
    return;
  int64_t length = op.c % 4 ? lengthOf(op, at(index).length()) : at(index).length();
  quire_sequence made = 0;
  if (ended(reference_->canFork(index, length), quire_sequence_fork(pool_.get(), at(index).handle, length, &made)))
    reference_->fork(index, length, made);
}

void PoolRun::truncate(size_t index, int64_t length) {
  if (ended(reference_->canFork(index, length), quire_sequence_truncate(pool_.get(), at(index).handle, length)))
    reference_->truncate(index, length);
}

bool PoolRun::reserveFor(size_t index, int64_t tokens) {
  const PoolReference::Sequence &sequence = at(index);
  bool fits = true;
  if (tokens > 0 && reference_->endsShared(sequence)) // the copy needs both blocks
    fits = fitsPinned({sequence.blocks[static_cast<size_t>(sequence.length() / markBlockTokens)], PoolReference::none});
  quire_status expected = reference_->canReserve(index, tokens);
  quire_status status = quire_sequence_reserve(pool_.get(), sequence.handle, tokens);
  bool done = endedPaging(expected, status, fits);
  syncEvictions();
  if (done)
    reference_->reserve(index, tokens);
  return done;
}

/// Sometimes with the commit of what is reserved already, and nothing written.
void PoolRun::reserve(const Op &op) {
  size_t index = pick(op.a);
  if (op.c % 8 != 7) {
    reserveFor(index, op.b % 12);
    return;
  }
  int64_t tokens = markPositions + 1; // more than any reservation
  ended(reference_->canCommit(index, tokens), quire_sequence_commit(pool_.get(), at(index).handle, tokens));
}

void PoolRun::write(const Op &op) {
  size_t index = pick(op.a);
  std::vector<int64_t> tokens = nextTokens(index, 1 + op.b % 6, op.c);
  auto count = static_cast<int64_t>(tokens.size());
  int64_t past = at(index).length();
  // Without a reservation of its own it writes into one that was made before, if there is one.
  bool reserved = op.c >= 192 && reference_->canCommit(index, count) == QUIRE_OK;
  if (!reserved && !reserveFor(index, count))
    return;
  std::vector<uint64_t> history = reference_->historyWith(index, tokens);
  for (int64_t block = past / markBlockTokens; block * markBlockTokens < past + count; ++block)
    for (int64_t layer = 0; layer < markLayers; ++layer) {
      uint32_t name = at(index).blocks[static_cast<size_t>(block)];
      if (!writeBlock(name, (layer + op.b) % markLayers, history, std::max(past, block * markBlockTokens), std::min(past + count, (block + 1) * markBlockTokens)))
        return;
    }
  if (ended(reference_->canCommit(index, count), quire_sequence_commit(pool_.get(), at(index).handle, count)))
    reference_->commit(index, tokens);
}

//===----------------------------------------------------------------------===//
// Prefixes
//===----------------------------------------------------------------------===//

/// Into an empty sequence, if there is one.
void PoolRun::match(const Op &op) {
  std::vector<size_t> empty;
  for (size_t i = 0; i < reference_->sequences().size(); ++i)
    if (at(i).blocks.empty())
      empty.push_back(i);
  size_t index = empty.empty() ? pick(op.a) : empty[op.a % empty.size()];
  std::vector<int64_t> prompt;
  if (op.b % 8 >= 6)
    prompt = at(pick(op.b / 8)).tokens;
  for (auto count = static_cast<size_t>(op.c % (markPositions + 6)); prompt.size() < count;)
    prompt.push_back(streamToken(op.b % 8, static_cast<int64_t>(prompt.size())));
  int64_t found = -1;
  quire_status status = quire_sequence_match_prefix(pool_.get(), at(index).handle, prompt.data(), static_cast<int64_t>(prompt.size()), &found);
  if (!ended(reference_->canMatch(index), status))
    return;
  auto isLost = [this](const PoolReference::Block &block) { return pool_.pager() && pool_.pager()->lost(static_cast<uint32_t>(block.index)); };
  if (!reference_->match(index, prompt, isLost, found))
    fail("a prefix of " + std::to_string(found) + " tokens was found, but it is " + std::to_string(at(index).length()));
}

/// A block that is held for the sequence takes what has ended in the meantime when it is merged, so that pages may turn out to be lost on the way: those whose
/// load has failed, in time for the blocks that come after the one that was under way when the pool was told.
void PoolRun::publish(const Op &op) {
  size_t index = pick(op.a);
  const PoolReference::Sequence &sequence = at(index);
  std::vector<int64_t> tokens = sequence.tokens;
  if (op.c == 255)
    tokens.push_back(0);
  else
    tokens.resize(tokens.size() - std::min<size_t>(tokens.size(), op.c % 8));
  auto count = static_cast<int64_t>(tokens.size());
  std::vector<bool> lostBefore = lostBlocks();
  auto steps = [&] {
    quire_tenant_stats stats = {};
    stats.struct_size = sizeof(stats);
    quire_tenant_get_stats(pool_.get(), reference_->tenants()[sequence.tenant].handle, &stats);
    return stats.blocks_published + stats.blocks_merged;
  };
  bool collisions = program_[ShapeField::HashBits] != 0;
  int64_t before = steps();
  struct Told {
    uint64_t tag = 0;
    int64_t after = 0; // steps
  };
  std::map<uint32_t, Told> told; // by page: of its last content
  pool_.watchLosses([&](uint32_t page, uint64_t tag) {
    if (Told &last = told[page]; tag >= last.tag)
      last = {tag, steps() - before};
  });
  bool done = ended(reference_->canPublish(index, count), quire_sequence_publish(pool_.get(), sequence.handle, tokens.data(), count));
  pool_.watchLosses(nullptr);
  if (!done)
    return;
  std::vector<int64_t> lostAfter(lostBefore.size(), INT64_MAX); // so many steps
  std::vector<bool> lostNow = lostBlocks();
  for (auto [page, last] : told)
    if (size_t block = page % lostAfter.size(); lostNow[block])
      lostAfter[block] = std::min(lostAfter[block], last.after + 1);
  for (size_t block = 0; block < lostBefore.size(); ++block)
    if (lostNow[block] && !lostBefore[block] && lostAfter[block] == INT64_MAX)
      return fail("block " + std::to_string(block) + " was lost although no load of it has failed");
  auto isLost = [&](const PoolReference::Block &block, int64_t step) {
    auto number = static_cast<size_t>(block.index);
    return lostBefore[number] || step >= lostAfter[number];
  };
  reference_->publish(index, count, isLost, collisions ? steps() - before : INT64_MAX);
}

std::vector<bool> PoolRun::lostBlocks() const {
  std::vector<bool> lost(static_cast<size_t>(pool_.inner().blocksTotal()));
  for (size_t block = 0; pool_.pager() && block < lost.size(); ++block)
    lost[block] = pool_.pager()->lost(static_cast<uint32_t>(block));
  return lost;
}

/// What a scheduler does after QUIRE_PAGE_LOST.
void PoolRun::recover() {
  for (size_t i = 0; i < reference_->sequences().size() && good(); ++i) {
    int64_t intact = 0;
    if (ended(reference_->mayUse(at(i)), quire_sequence_intact(pool_.get(), at(i).handle, &intact)) && intact < at(i).length())
      truncate(i, intact);
  }
}

} // namespace quire::test
