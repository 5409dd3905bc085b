// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The index by key and the heap of candidates for eviction.
#include "share/PrefixCache.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace quire::runtime {

static size_t slotCount(uint32_t blocks) {
  size_t slots = 2;
  while (slots < 2 * size_t(blocks))
    slots *= 2;
  return slots;
}

PrefixCache::PrefixCache(uint32_t blocks, int64_t blockTokens, const Options &options)
    : blockTokens_(static_cast<size_t>(blockTokens)), hashBits_(std::min(options.hashBits, 256u)), entries_(blocks),
      tokens_(blocks * blockTokens_), slots_(slotCount(blocks), none) {
  heap_.reserve(blocks);
}

PrefixCache::~PrefixCache() {
  eraseSecret(tokens_.data(), tokens_.size() * sizeof(tokens_[0]));
  for (Entry &entry : entries_)
    eraseSecret(entry.key.data(), entry.key.size());
}

uint64_t PrefixCache::bytesPerBlock(int64_t blockTokens) {
  return sizeof(Entry) + static_cast<uint64_t>(blockTokens) * sizeof(int64_t) + 5 * sizeof(uint32_t); // up to 4 slots
}

size_t PrefixCache::home(const BlockKey &key) const {
  uint64_t first;
  std::memcpy(&first, key.data(), sizeof(first));
  return first & (slots_.size() - 1);
}

bool PrefixCache::hasTokens(uint32_t block, const int64_t *tokens) const {
  return std::equal(tokens, tokens + blockTokens_, tokens_.begin() + static_cast<std::ptrdiff_t>(block * blockTokens_));
}

PrefixCache::Probe PrefixCache::find(uint32_t tenant, const Salt &salt, uint32_t parent, const int64_t *tokens) const {
  Probe probe;
  probe.key = chainKey(salt, parent == none ? nullptr : &entries_[parent].key, tokens, blockTokens_);
  for (unsigned bit = hashBits_; bit < 256; ++bit)
    probe.key[bit / 8] &= static_cast<unsigned char>(~(1u << bit % 8));
  for (size_t slot = home(probe.key); slots_[slot] != none; slot = (slot + 1) & (slots_.size() - 1)) {
    const Entry &entry = entries_[slots_[slot]];
    if (entry.key != probe.key)
      continue;
    if (entry.tenant == tenant && entry.parent == parent && hasTokens(slots_[slot], tokens))
      probe.block = slots_[slot];
    else
      probe.collision = true;
    break;
  }
  return probe;
}

void PrefixCache::insert(uint32_t block, uint32_t tenant, uint32_t parent, const int64_t *tokens, const BlockKey &key) {
  Entry &entry = entries_[block];
  assert(!entry.cached && (parent == none || (entries_[parent].cached && !entries_[parent].idle)));
  entry.key = key;
  entry.tenant = tenant;
  entry.parent = parent;
  entry.cached = entry.hasUsers = true;
  std::copy(tokens, tokens + blockTokens_, tokens_.begin() + static_cast<std::ptrdiff_t>(block * blockTokens_));
  if (parent != none) {
    ++entries_[parent].children;
    ++entries_[parent].usedChildren;
  }
  size_t slot = home(key);
  while (slots_[slot] != none)
    slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = block;
  ++count_;
}

void PrefixCache::addUsers(uint32_t block) {
  assert(entries_[block].cached && !entries_[block].hasUsers);
  entries_[block].hasUsers = true;
  for (uint32_t at = block; at != none && entries_[at].idle; at = entries_[at].parent) {
    leaveIdle(at);
    if (entries_[at].parent != none)
      ++entries_[entries_[at].parent].usedChildren;
  }
}

void PrefixCache::dropUsers(uint32_t block, int64_t now) {
  assert(entries_[block].cached && entries_[block].hasUsers);
  entries_[block].hasUsers = false;
  for (uint32_t at = block; at != none && !entries_[at].hasUsers && entries_[at].usedChildren == 0; at = entries_[at].parent) {
    Entry &entry = entries_[at];
    entry.idle = true;
    entry.since = now;
    entry.order = ++order_;
    ++idleCount_;
    if (entry.children == 0)
      heapAdd(at);
    if (entry.parent != none)
      --entries_[entry.parent].usedChildren;
  }
}

void PrefixCache::leaveIdle(uint32_t block) {
  entries_[block].idle = false;
  --idleCount_;
  if (entries_[block].heapPlace != none)
    heapRemove(block);
}

void PrefixCache::remove(uint32_t block) {
  Entry &entry = entries_[block];
  assert(entry.idle && entry.children == 0);
  leaveIdle(block);
  eraseSlot(slotOf(block));
  if (entry.parent != none) {
    Entry &parent = entries_[entry.parent];
    if (--parent.children == 0 && parent.idle)
      heapAdd(entry.parent);
  }
  forget(block);
  --count_;
}

void PrefixCache::forget(uint32_t block) {
  eraseSecret(&tokens_[block * blockTokens_], blockTokens_ * sizeof(tokens_[0]));
  eraseSecret(entries_[block].key.data(), entries_[block].key.size());
  entries_[block] = Entry();
}

void PrefixCache::renumber(const std::vector<uint32_t> &to) {
  for (uint32_t block = 0; block < entries_.size(); ++block) {
    if (!entries_[block].cached || to[block] == block)
      continue;
    slots_[slotOf(block)] = to[block];
    if (entries_[block].heapPlace != none)
      heap_[entries_[block].heapPlace] = to[block];
    entries_[to[block]] = entries_[block];
    std::copy_n(&tokens_[block * blockTokens_], blockTokens_, &tokens_[to[block] * blockTokens_]);
    forget(block);
  }
  for (Entry &entry : entries_)
    if (entry.parent != none)
      entry.parent = to[entry.parent];
}

size_t PrefixCache::slotOf(uint32_t block) const {
  size_t slot = home(entries_[block].key);
  while (slots_[slot] != block)
    slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

/// Moves later ones of the run up, so that no search ends too early (Knuth,
/// volume 3, algorithm 6.4R).
void PrefixCache::eraseSlot(size_t hole) {
  size_t mask = slots_.size() - 1;
  for (size_t slot = (hole + 1) & mask; slots_[slot] != none; slot = (slot + 1) & mask) {
    size_t wanted = home(entries_[slots_[slot]].key);
    if (((slot - wanted) & mask) < ((slot - hole) & mask))
      continue; // its search begins after the hole
    slots_[hole] = slots_[slot];
    hole = slot;
  }
  slots_[hole] = none;
}

void PrefixCache::heapPut(size_t place, uint32_t block) {
  heap_[place] = block;
  entries_[block].heapPlace = static_cast<uint32_t>(place);
}

void PrefixCache::heapAdd(uint32_t block) {
  heap_.push_back(block); // capacity is that of all blocks
  heapPut(heap_.size() - 1, block);
  heapUp(heap_.size() - 1);
}

void PrefixCache::heapRemove(uint32_t block) {
  size_t place = entries_[block].heapPlace;
  entries_[block].heapPlace = none;
  uint32_t last = heap_.back();
  heap_.pop_back();
  if (last == block)
    return;
  heapPut(place, last);
  heapUp(place);
  heapDown(entries_[last].heapPlace);
}

void PrefixCache::heapUp(size_t place) {
  uint32_t block = heap_[place];
  for (; place > 0 && before(block, heap_[(place - 1) / 2]); place = (place - 1) / 2)
    heapPut(place, heap_[(place - 1) / 2]);
  heapPut(place, block);
}

void PrefixCache::heapDown(size_t place) {
  uint32_t block = heap_[place];
  for (;;) {
    size_t child = 2 * place + 1;
    if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child]))
      ++child;
    if (child >= heap_.size() || !before(heap_[child], block))
      break;
    heapPut(place, heap_[child]);
    place = child;
  }
  heapPut(place, block);
}

Status PrefixCache::validate() const {
  std::vector<uint32_t> children(entries_.size()), usedChildren(entries_.size());
  uint32_t cached = 0, idle = 0, leaves = 0, listed = 0;
  for (uint32_t block = 0; block < entries_.size(); ++block) {
    const Entry &entry = entries_[block];
    if (!entry.cached) {
      if (entry.idle || entry.hasUsers || entry.parent != none || entry.children || entry.heapPlace != none || entry.key != BlockKey())
        return failure(QUIRE_INVARIANT_BROKEN, "block %u has no prefix entry, but parts of one", block);
      continue;
    }
    ++cached;
    idle += entry.idle;
    leaves += entry.idle && entry.children == 0;
    if (entry.parent != none) {
      if (entry.parent >= entries_.size() || !entries_[entry.parent].cached)
        return failure(QUIRE_INVARIANT_BROKEN, "block %u is cached, but the block before it is not", block);
      if (entries_[entry.parent].tenant != entry.tenant)
        return failure(QUIRE_INVARIANT_BROKEN, "block %u and the block before it have different tenants", block);
      if (!entry.idle && entries_[entry.parent].idle)
        return failure(QUIRE_INVARIANT_BROKEN, "block %u is used, but the block before it is not", block);
      ++children[entry.parent];
      usedChildren[entry.parent] += !entry.idle;
    }
    if (entry.idle != (!entry.hasUsers && entry.usedChildren == 0))
      return failure(QUIRE_INVARIANT_BROKEN, "block %u counts as %s, but has %s users and %u used children", block,
                     entry.idle ? "idle" : "used", entry.hasUsers ? "some" : "no", entry.usedChildren);
    if ((entry.heapPlace != none) != (entry.idle && entry.children == 0) ||
        (entry.heapPlace != none && (entry.heapPlace >= heap_.size() || heap_[entry.heapPlace] != block)))
      return failure(QUIRE_INVARIANT_BROKEN, "block %u has a wrong place among those that may be evicted", block);
    size_t slot = home(entry.key);
    while (slots_[slot] != none && slots_[slot] != block)
      slot = (slot + 1) & (slots_.size() - 1);
    if (slots_[slot] == none)
      return failure(QUIRE_INVARIANT_BROKEN, "the key of block %u does not lead to it", block);
  }
  for (uint32_t block = 0; block < entries_.size(); ++block)
    if (children[block] != entries_[block].children || usedChildren[block] != entries_[block].usedChildren)
      return failure(QUIRE_INVARIANT_BROKEN, "block %u counts %u children, but has %u", block, entries_[block].children,
                     children[block]);
  for (uint32_t block : slots_)
    listed += block != none;
  for (size_t place = 1; place < heap_.size(); ++place)
    if (before(heap_[place], heap_[(place - 1) / 2]))
      return failure(QUIRE_INVARIANT_BROKEN, "the order of eviction is broken at %zu", place);
  if (cached != count_ || listed != count_ || idle != idleCount_ || leaves != heap_.size())
    return failure(QUIRE_INVARIANT_BROKEN, "%u blocks cached and %u idle, but %u and %u counted", cached, idle, count_,
                   idleCount_);
  return success();
}

} // namespace quire::runtime
