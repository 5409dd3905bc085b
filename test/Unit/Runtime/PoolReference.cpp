// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rules of a pool, written a second time and without memory.
#include "PoolReference.h"

#include "MarkModel.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace quire::test {

static int64_t blocksFor(int64_t tokens) { return (tokens + markBlockTokens - 1) / markBlockTokens; }

bool PoolReference::Tenant::operator==(const quire_tenant_stats &stats) const {
  return queries == stats.queries && queryTokens == stats.query_tokens && hitTokens == stats.hit_tokens &&
         cached == stats.blocks_cached && published == stats.blocks_published && merged == stats.blocks_merged &&
         evicted == stats.blocks_evicted && expired == stats.blocks_expired;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

int64_t PoolReference::reclaimable() const {
  if (room_ != INT64_MAX)
    return reclaimable_;
  return std::count_if(cached_.begin(), cached_.end(), [this](uint32_t name) { return blocks_[name].idle; });
}

int64_t PoolReference::free() const { return std::max<int64_t>(0, std::min(limit_ - inUse_, room_)); }

uint32_t PoolReference::newBlock() {
  blocks_.emplace_back();
  ++inUse_;
  return static_cast<uint32_t>(blocks_.size() - 1);
}

bool PoolReference::isUsed(uint32_t name) const {
  return blocks_[name].references() > 1 || std::any_of(cached_.begin(), cached_.end(), [&](uint32_t child) { return blocks_[child].parent == name && isUsed(child); });
}

void PoolReference::lessUse(uint32_t name) {
  if (blocks_[name].references() == 0) {
    --inUse_;
    onEnd(name);
    return;
  }
  for (uint32_t at = name; at != none && blocks_[at].cached && !blocks_[at].idle && !isUsed(at); at = blocks_[at].parent) {
    blocks_[at].idle = true;
    blocks_[at].order = ++order_;
    blocks_[at].since = now_;
  }
}

void PoolReference::moreUse(uint32_t name) {
  ++blocks_[name].tables;
  for (uint32_t at = name; at != none && blocks_[at].cached; at = blocks_[at].parent)
    blocks_[at].idle = false;
}

/// Last block first.
void PoolReference::dropBlocks(Sequence &sequence, int64_t keep) {
  while (static_cast<int64_t>(sequence.blocks.size()) > keep) {
    uint32_t name = sequence.blocks.back();
    sequence.blocks.pop_back();
    --blocks_[name].tables;
    lessUse(name);
  }
}

void PoolReference::takeBlocks(int64_t count, std::vector<uint32_t> &out) {
  evict(std::max<int64_t>(0, count - free()));
  for (int64_t i = 0; i < count; ++i)
    out.push_back(newBlock());
  reserveHits_ += std::max<int64_t>(0, std::min(count, reserve_ - available()));
}

void PoolReference::setLimit(int64_t asked, int64_t made) {
  evict(inUse_ - asked);
  limit_ = made;
}

bool PoolReference::holdsBlocks(size_t except) const {
  for (size_t i = 0; i < sequences_.size(); ++i)
    if (i != except && !sequences_[i].blocks.empty())
      return true;
  return false;
}

int64_t PoolReference::roomFor(size_t at, bool besideOthers) const {
  bool limited = !sequences_[at].admitted && (besideOthers || holdsBlocks(at));
  return std::max<int64_t>(0, available() - (limited ? reserve_ : 0));
}

int64_t PoolReference::roomForCaller() const {
  return std::max<int64_t>(0, available() - (holdsBlocks(SIZE_MAX) ? reserve_ : 0));
}

/// Those that are idle for the longest time, but none before the ones after it.
void PoolReference::evict(int64_t count) {
  for (; count > 0; --count) {
    uint32_t oldest = none;
    for (uint32_t name : cached_) {
      const Block &block = blocks_[name];
      if (block.idle && block.children == 0 && (oldest == none || block.order < blocks_[oldest].order))
        oldest = name;
    }
    if (oldest == none)
      return;
    ++tenants_[blocks_[oldest].tenant].evicted;
    dropEntry(oldest);
  }
}

void PoolReference::dropEntry(uint32_t name) {
  Block &block = blocks_[name];
  if (block.parent != none)
    --blocks_[block.parent].children;
  --tenants_[block.tenant].cached;
  block.cached = block.idle = false;
  cached_.erase(std::find(cached_.begin(), cached_.end(), name));
  lessUse(name);
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

quire_status PoolReference::mayUse(const Sequence &sequence) const {
  return acting_ && sequence.tenant != acting_ ? QUIRE_INVALID_ARGUMENT : QUIRE_OK;
}

quire_status PoolReference::canCreate(uint32_t tenant) const {
  if (tenant && tenants_[tenant].handle == 0)
    return QUIRE_STALE_HANDLE;
  return acting_ && tenant && tenant != acting_ ? QUIRE_INVALID_ARGUMENT : QUIRE_OK;
}

void PoolReference::create(uint32_t tenant, quire_sequence handle) {
  Sequence made;
  made.handle = handle;
  made.tenant = tenant ? tenant : acting_;
  sequences_.push_back(std::move(made));
}

void PoolReference::release(size_t at) {
  dropBlocks(sequences_[at], 0);
  sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(at));
}

quire_status PoolReference::canFork(size_t at, int64_t length) const {
  quire_status status = mayUse(sequences_[at]);
  return status == QUIRE_OK && length > sequences_[at].length() ? QUIRE_INVALID_ARGUMENT : status;
}

void PoolReference::fork(size_t at, int64_t length, quire_sequence handle) {
  Sequence made;
  const Sequence &from = sequences_[at];
  made.handle = handle;
  made.tenant = from.tenant;
  made.tokens.assign(from.tokens.begin(), from.tokens.begin() + length);
  made.history.assign(from.history.begin(), from.history.begin() + length);
  made.positions.assign(from.positions.begin(), from.positions.begin() + length);
  made.next = length == 0 ? 0 : made.positions.back() + 1;
  made.blocks.assign(from.blocks.begin(), from.blocks.begin() + blocksFor(length));
  made.admitted = from.admitted;
  for (uint32_t name : made.blocks)
    moreUse(name);
  sequences_.push_back(std::move(made));
}

void PoolReference::truncate(size_t at, int64_t length) {
  Sequence &sequence = sequences_[at];
  dropBlocks(sequence, blocksFor(length));
  sequence.tokens.resize(static_cast<size_t>(length));
  sequence.history.resize(static_cast<size_t>(length));
  sequence.positions.resize(static_cast<size_t>(length));
  sequence.next = length == 0 ? 0 : sequence.positions.back() + 1;
  sequence.hitTokens = std::min(sequence.hitTokens, length);
  sequence.pins.resize(std::min(sequence.pins.size(), sequence.blocks.size()));
  while (!sequence.turns.empty() && sequence.turns.back() > length)
    sequence.turns.pop_back();
}

bool PoolReference::endsShared(const Sequence &sequence) const {
  size_t last = static_cast<size_t>(sequence.length() / markBlockTokens);
  return last < sequence.blocks.size() && blocks_[sequence.blocks[last]].references() > 1;
}

quire_status PoolReference::cost(size_t at, int64_t tokens, int64_t &blocks) const {
  const Sequence &sequence = sequences_[at];
  if (mayUse(sequence) != QUIRE_OK)
    return mayUse(sequence);
  if (tokens > markPositions - sequence.next)
    return QUIRE_TOO_LONG;
  int64_t held = static_cast<int64_t>(sequence.blocks.size());
  blocks = std::max<int64_t>(0, blocksFor(sequence.length() + tokens) - held) + (tokens > 0 && endsShared(sequence));
  return QUIRE_OK;
}

quire_status PoolReference::canReserve(size_t at, int64_t tokens) const {
  int64_t blocks;
  quire_status status = cost(at, tokens, blocks);
  return status == QUIRE_OK && blocks > roomFor(at, false) ? QUIRE_OUT_OF_BLOCKS : status;
}

void PoolReference::reserve(size_t at, int64_t tokens) {
  Sequence &sequence = sequences_[at];
  int64_t blocks;
  cost(at, tokens, blocks);
  bool copies = tokens > 0 && endsShared(sequence);
  sequence.admitted |= blocks > 0;
  std::vector<uint32_t> taken;
  takeBlocks(blocks, taken);
  for (uint32_t name : taken)
    blocks_[name].tables = 1;
  if (copies) {
    uint32_t &last = sequence.blocks[static_cast<size_t>(sequence.length() / markBlockTokens)];
    uint32_t shared = std::exchange(last, taken.back());
    taken.pop_back();
    --blocks_[shared].tables;
    lessUse(shared);
    ++copies_;
  }
  sequence.blocks.insert(sequence.blocks.end(), taken.begin(), taken.end());
}

quire_status PoolReference::canCommit(size_t at, int64_t tokens) const {
  const Sequence &sequence = sequences_[at];
  if (mayUse(sequence) != QUIRE_OK)
    return mayUse(sequence);
  int64_t room = static_cast<int64_t>(sequence.blocks.size()) * markBlockTokens - sequence.length();
  return tokens > room || (tokens > 0 && endsShared(sequence)) ? QUIRE_INVALID_ARGUMENT : QUIRE_OK;
}

std::vector<uint64_t> PoolReference::historyWith(size_t at, const std::vector<int64_t> &tokens) const {
  std::vector<uint64_t> history = sequences_[at].history;
  uint64_t last = history.empty() ? tenants_[sequences_[at].tenant].history : history.back();
  // What attends to fewer tokens is no prefix of what attends to all.
  if (int64_t dropped = sequences_[at].next - sequences_[at].length(); dropped > 0 && !tokens.empty())
    last = markHistory(last, markVocabulary + dropped);
  for (int64_t token : tokens)
    history.push_back(last = markHistory(last, token));
  return history;
}

void PoolReference::commit(size_t at, const std::vector<int64_t> &tokens) {
  Sequence &sequence = sequences_[at];
  sequence.history = historyWith(at, tokens);
  sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  while (sequence.positions.size() < sequence.tokens.size())
    sequence.positions.push_back(sequence.next++);
  if (tokens.empty())
    return;
  if (!sequence.counted && sequence.queryTokens >= 0) {
    Tenant &tenant = tenants_[sequence.tenant];
    ++tenant.queries;
    tenant.queryTokens += sequence.queryTokens;
    tenant.hitTokens += sequence.hitTokens;
    sequence.counted = true;
  }
  sequence.queryTokens = -1;
}

//===----------------------------------------------------------------------===//
// What stays
//===----------------------------------------------------------------------===//

quire_status PoolReference::canName(size_t at, int64_t begin, int64_t end) const {
  const Sequence &sequence = sequences_[at];
  bool stored = mayUse(sequence) == QUIRE_OK && 0 <= begin && begin <= end && end <= sequence.length();
  return stored ? QUIRE_OK : QUIRE_INVALID_ARGUMENT;
}

void PoolReference::pin(size_t at, int64_t begin, int64_t end) {
  Sequence &sequence = sequences_[at];
  sequence.pins.resize(sequence.blocks.size());
  for (int64_t i = begin / markBlockTokens; i * markBlockTokens < end && begin < end; ++i)
    ++sequence.pins[static_cast<size_t>(i)];
}

quire_status PoolReference::canUnpin(size_t at, int64_t begin, int64_t end) const {
  if (canName(at, begin, end) != QUIRE_OK)
    return QUIRE_INVALID_ARGUMENT;
  const std::vector<int64_t> &pins = sequences_[at].pins;
  for (int64_t i = begin / markBlockTokens; i * markBlockTokens < end && begin < end; ++i)
    if (i >= static_cast<int64_t>(pins.size()) || pins[static_cast<size_t>(i)] == 0)
      return QUIRE_INVALID_ARGUMENT;
  return QUIRE_OK;
}

void PoolReference::unpin(size_t at, int64_t begin, int64_t end) {
  for (int64_t i = begin / markBlockTokens; i * markBlockTokens < end && begin < end; ++i)
    --sequences_[at].pins[static_cast<size_t>(i)];
}

quire_status PoolReference::canEndTurn(size_t at, int64_t end) const {
  const std::vector<int64_t> &turns = sequences_[at].turns;
  bool later = end > (turns.empty() ? 0 : turns.back());
  return later ? canName(at, 0, end) : QUIRE_INVALID_ARGUMENT;
}

/// A sequence without turns is no dialogue.
bool PoolReference::staysByRule(const Sequence &sequence, size_t block) const {
  const std::vector<int64_t> &turns = sequence.turns, &important = dialogue_.importantPages;
  if (turns.empty())
    return false;
  auto at = static_cast<int64_t>(block), count = static_cast<int64_t>(turns.size());
  int64_t before = count - dialogue_.recentTurns; // turns that are not recent
  int64_t recent = before > 0 ? turns[static_cast<size_t>(before - 1)] / markBlockTokens : 0;
  return (dialogue_.recentTurns > 0 && at >= recent) || at >= static_cast<int64_t>(sequence.blocks.size()) - dialogue_.recentPages ||
         std::find(important.begin(), important.end(), at) != important.end();
}

std::vector<int64_t> PoolReference::pins() const {
  std::vector<int64_t> sums(blocks_.size());
  for (const Sequence &sequence : sequences_)
    for (size_t i = 0; i < sequence.blocks.size(); ++i)
      sums[sequence.blocks[i]] += (i < sequence.pins.size() ? sequence.pins[i] : 0) + staysByRule(sequence, i);
  return sums;
}

//===----------------------------------------------------------------------===//
// Fewer tokens
//===----------------------------------------------------------------------===//

/// The best of the tokens in whole blocks of the range, as many as fill blocks, in their order.
std::vector<int64_t> PoolReference::survivorsOf(const Pruning &pruning) const {
  std::vector<int64_t> tokens;
  int64_t begin = blocksFor(pruning.begin) * markBlockTokens, end = pruning.end / markBlockTokens * markBlockTokens;
  for (int64_t token = begin; token < end; ++token)
    tokens.push_back(token);
  auto score = [&](int64_t token) { return pruning.keepsFirst && token == 0 ? 1e9f : pruning.scores[static_cast<size_t>(token - pruning.begin)]; };
  std::sort(tokens.begin(), tokens.end(), [&](int64_t a, int64_t b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });
  auto count = static_cast<int64_t>(tokens.size()), kept = static_cast<int64_t>(std::ceil((1 - pruning.ratio) * static_cast<double>(count) - 1e-6));
  kept = std::max<int64_t>(kept, pruning.keepsFirst && begin == 0 && count > 0);
  tokens.resize(static_cast<size_t>(blocksFor(kept) * markBlockTokens));
  std::sort(tokens.begin(), tokens.end());
  return tokens;
}

namespace {

/// Of a sequence's blocks [first, last), those from `moved` on are given up for `fresh` new ones.
struct Exchange {
  size_t first, last, moved, fresh;
  size_t freed() const { return last - moved - fresh; }
};

} // namespace

static Exchange exchangeOf(const PoolReference::Pruning &pruning, const std::vector<int64_t> &survivors) {
  auto first = static_cast<size_t>(blocksFor(pruning.begin)), last = static_cast<size_t>(pruning.end / markBlockTokens);
  last = std::max(first, last);
  size_t same = 0, block = static_cast<size_t>(markBlockTokens);
  while (same < survivors.size() && survivors[same] == static_cast<int64_t>(first * block + same))
    ++same;
  return {first, last, first + same / block, survivors.size() / block - same / block};
}

quire_status PoolReference::canPrune(size_t at, const Pruning &pruning) const {
  if (canName(at, pruning.begin, pruning.end) != QUIRE_OK || pruning.ratio > 1)
    return QUIRE_INVALID_ARGUMENT;
  Exchange exchange = exchangeOf(pruning, survivorsOf(pruning));
  if (exchange.freed() == 0)
    return QUIRE_OK;
  const Sequence &sequence = sequences_[at];
  for (size_t i = exchange.first; i < exchange.last; ++i)
    if ((i < sequence.pins.size() && sequence.pins[i] > 0) || staysByRule(sequence, i))
      return QUIRE_INVALID_ARGUMENT;
  return static_cast<int64_t>(exchange.fresh) > available() ? QUIRE_OUT_OF_BLOCKS : QUIRE_OK;
}

std::vector<uint32_t> PoolReference::sourcesOf(size_t at, const Pruning &pruning) const {
  std::vector<int64_t> survivors = survivorsOf(pruning);
  Exchange exchange = exchangeOf(pruning, survivors);
  std::vector<uint32_t> sources;
  for (size_t i = (exchange.moved - exchange.first) * static_cast<size_t>(markBlockTokens); exchange.freed() > 0 && i < survivors.size(); ++i)
    sources.push_back(sequences_[at].blocks[static_cast<size_t>(survivors[i] / markBlockTokens)]);
  return sources;
}

int64_t PoolReference::prune(size_t at, const Pruning &pruning) {
  std::vector<int64_t> survivors = survivorsOf(pruning);
  Exchange exchange = exchangeOf(pruning, survivors);
  if (exchange.freed() == 0)
    return 0;
  Sequence &sequence = sequences_[at], before = sequence;
  std::vector<uint32_t> fresh;
  takeBlocks(static_cast<int64_t>(exchange.fresh), fresh);
  for (uint32_t name : fresh)
    blocks_[name].tables = 1;
  auto stays = [&](int64_t token) {
    bool outside = token < static_cast<int64_t>(exchange.first) * markBlockTokens || token >= static_cast<int64_t>(exchange.last) * markBlockTokens;
    return outside || std::binary_search(survivors.begin(), survivors.end(), token);
  };
  sequence.tokens.clear();
  sequence.history.clear();
  sequence.positions.clear();
  sequence.turns.clear();
  for (int64_t token = 0; token < before.length(); ++token) {
    if (stays(token)) {
      sequence.tokens.push_back(before.tokens[static_cast<size_t>(token)]);
      sequence.history.push_back(before.history[static_cast<size_t>(token)]);
      sequence.positions.push_back(before.positions[static_cast<size_t>(token)]);
    }
    int64_t last = sequence.turns.empty() ? 0 : sequence.turns.back();
    if (std::count(before.turns.begin(), before.turns.end(), token + 1) > 0 && sequence.length() > last)
      sequence.turns.push_back(sequence.length());
  }
  auto range = [&](auto &list) {
    auto end = [&](size_t index) { return list.begin() + static_cast<std::ptrdiff_t>(std::min(index, list.size())); };
    list.erase(end(exchange.moved), end(exchange.last));
  };
  range(sequence.blocks);
  range(sequence.pins);
  sequence.blocks.insert(sequence.blocks.begin() + static_cast<std::ptrdiff_t>(exchange.moved), fresh.begin(), fresh.end());
  if (sequence.pins.size() > exchange.moved)
    sequence.pins.insert(sequence.pins.begin() + static_cast<std::ptrdiff_t>(exchange.moved), fresh.size(), 0);
  sequence.hitTokens = std::min(sequence.hitTokens, static_cast<int64_t>(exchange.first) * markBlockTokens);
  for (size_t i = exchange.last; i-- > exchange.moved;) {
    --blocks_[before.blocks[i]].tables;
    lessUse(before.blocks[i]);
  }
  prunedBlocks_ += static_cast<int64_t>(exchange.freed());
  return static_cast<int64_t>(exchange.freed());
}

//===----------------------------------------------------------------------===//
// Prefixes
//===----------------------------------------------------------------------===//

uint32_t PoolReference::find(uint32_t tenant, uint32_t parent, uint64_t history) const {
  for (uint32_t name : cached_) {
    const Block &block = blocks_[name];
    if (block.tenant == tenant && block.parent == parent && block.history == history)
      return name;
  }
  return none;
}

quire_status PoolReference::canShare(size_t at) const {
  const Sequence &sequence = sequences_[at];
  bool works = mayUse(sequence) == QUIRE_OK && sequence.isWhole() && options_.prefixCache && sequence.tenant != 0;
  return works ? QUIRE_OK : QUIRE_INVALID_ARGUMENT;
}

quire_status PoolReference::canMatch(size_t at) const {
  return canShare(at) == QUIRE_OK && sequences_[at].blocks.empty() ? QUIRE_OK : QUIRE_INVALID_ARGUMENT;
}

bool PoolReference::match(size_t at, const std::vector<int64_t> &prompt, const IsLost &isLost, int64_t found) {
  Sequence &sequence = sequences_[at];
  int64_t count = static_cast<int64_t>(prompt.size()), usable = std::min(count, markPositions);
  std::vector<uint64_t> history = historyWith(at, prompt);
  uint32_t parent = none;
  while (sequence.length() + markBlockTokens < usable && !(options_.collisions && sequence.length() == found)) {
    auto end = static_cast<size_t>(sequence.length() + markBlockTokens);
    uint32_t name = find(sequence.tenant, parent, history[end - 1]);
    if (name == none || isLost(blocks_[name]))
      break;
    moreUse(name);
    sequence.blocks.push_back(name);
    sequence.tokens.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(end));
    sequence.history.assign(history.begin(), history.begin() + static_cast<std::ptrdiff_t>(end));
    parent = name;
  }
  while (sequence.next < sequence.length())
    sequence.positions.push_back(sequence.next++);
  sequence.queryTokens = count;
  sequence.hitTokens = sequence.length();
  return sequence.length() == found;
}

quire_status PoolReference::canPublish(size_t at, int64_t count) const {
  return canShare(at) == QUIRE_OK && count <= sequences_[at].length() ? QUIRE_OK : QUIRE_INVALID_ARGUMENT;
}

void PoolReference::publish(size_t at, int64_t count, const IsLostAfter &isLost, int64_t most) {
  Sequence &sequence = sequences_[at];
  Tenant &tenant = tenants_[sequence.tenant];
  size_t blocks = static_cast<size_t>(count / markBlockTokens), done = 0;
  while (done < blocks && blocks_[sequence.blocks[done]].cached)
    ++done;
  for (int64_t steps = 0; done < blocks && steps < most; ++done, ++steps) {
    uint32_t own = sequence.blocks[done], parent = done ? sequence.blocks[done - 1] : none;
    uint64_t history = sequence.history[(done + 1) * markBlockTokens - 1];
    uint32_t found = find(sequence.tenant, parent, history);
    if (found != none) {
      if (isLost(blocks_[found], steps))
        return;
      moreUse(found);
      sequence.blocks[done] = found;
      --blocks_[own].tables;
      lessUse(own);
      ++tenant.merged;
      continue;
    }
    Block &block = blocks_[own];
    block.cached = true;
    block.tenant = sequence.tenant;
    block.parent = parent;
    block.history = history;
    cached_.push_back(own);
    if (parent != none)
      ++blocks_[parent].children;
    ++tenant.published;
    ++tenant.cached;
  }
}

//===----------------------------------------------------------------------===//
// The caller's blocks, tenants, time
//===----------------------------------------------------------------------===//

quire_status PoolReference::mayUse(const Held &held) const {
  return acting_ && held.tenant != acting_ ? QUIRE_INVALID_ARGUMENT : QUIRE_OK;
}

void PoolReference::allocate(const std::vector<quire_block> &handles) {
  std::vector<uint32_t> taken;
  takeBlocks(static_cast<int64_t>(handles.size()), taken);
  for (size_t i = 0; i < handles.size(); ++i) {
    blocks_[taken[i]].handles = 1;
    held_.push_back({handles[i], taken[i], acting_, 0});
  }
}

bool PoolReference::drop(size_t at) {
  uint32_t name = held_[at].block;
  bool last = --blocks_[name].handles == 0;
  if (last)
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(at));
  lessUse(name);
  return last;
}

quire_status PoolReference::canMakeTenant(const std::string &name) const {
  bool known = !name.empty() && std::any_of(tenants_.begin(), tenants_.end(), [&](const Tenant &tenant) { return tenant.handle && tenant.name == name; });
  return acting_ || known ? QUIRE_INVALID_ARGUMENT : QUIRE_OK;
}

void PoolReference::makeTenant(const std::string &name, int64_t timeToLive, quire_tenant handle) {
  Tenant made;
  made.handle = handle;
  made.history = markHistory(handle, static_cast<int64_t>(tenants_.size()));
  made.timeToLive = timeToLive;
  made.name = name;
  tenants_.push_back(std::move(made));
}

quire_status PoolReference::canEndTenant(uint32_t tenant) const {
  if (acting_)
    return QUIRE_INVALID_ARGUMENT;
  if (tenants_[tenant].handle == 0)
    return QUIRE_STALE_HANDLE;
  auto its = [&](const auto &owner) { return owner.tenant == tenant; };
  bool used = std::any_of(sequences_.begin(), sequences_.end(), its) || std::any_of(held_.begin(), held_.end(), its);
  return used ? QUIRE_INVALID_ARGUMENT : QUIRE_OK;
}

int64_t PoolReference::dropEntries(const std::function<bool(const Block &)> &wanted) {
  std::vector<uint32_t> dropped;
  std::copy_if(cached_.begin(), cached_.end(), std::back_inserter(dropped), [&](uint32_t name) { return wanted(blocks_[name]); });
  for (uint32_t name : dropped)
    dropEntry(name);
  return static_cast<int64_t>(dropped.size());
}

void PoolReference::endTenant(uint32_t tenant) {
  dropEntries([&](const Block &block) { return block.tenant == tenant; });
  tenants_[tenant].handle = 0;
}

quire_status PoolReference::canAdvance(int64_t now) const {
  return acting_ || now < now_ ? QUIRE_INVALID_ARGUMENT : QUIRE_OK;
}

int64_t PoolReference::advance(int64_t now) {
  now_ = now;
  return dropEntries([&](const Block &block) {
    Tenant &tenant = tenants_[block.tenant];
    bool over = block.idle && tenant.timeToLive > 0 && now - block.since >= tenant.timeToLive;
    tenant.expired += over;
    return over;
  });
}

} // namespace quire::test
