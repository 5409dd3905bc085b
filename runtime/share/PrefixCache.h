// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which blocks hold which prefixes: an index over block numbers, with the order in which they give way.
#ifndef QUIRE_RUNTIME_SHARE_PREFIXCACHE_H
#define QUIRE_RUNTIME_SHARE_PREFIXCACHE_H

#include "core/Status.h"
#include "share/BlockKey.h"

#include <cstdint>
#include <vector>

namespace quire::runtime {

/// Knows neither reference counts nor memory: the pool keeps one reference for
/// every entry and tells when an entry has other users. Entries form trees: the
/// parent of a block is the block before it. An entry is *used* while it has
/// users or a child that is used, and *idle* afterwards: a sequence may have a
/// block of its own with the parent's tokens. An entry's parent has an entry, so
/// that all idle entries can be given up, leaves first.
/// Nothing allocates after creation.
class PrefixCache {
public:
  static constexpr uint32_t none = UINT32_MAX;

  struct Options {
    /// Bits of a key that count; for tests, which want collisions.
    unsigned hashBits = 256;
  };

  PrefixCache(uint32_t blocks, int64_t blockTokens, const Options &options);
  ~PrefixCache();
  PrefixCache(const PrefixCache &) = delete;
  PrefixCache &operator=(const PrefixCache &) = delete;

  /// Most memory that a block takes here.
  static uint64_t bytesPerBlock(int64_t blockTokens);

  struct Probe {
    BlockKey key;
    uint32_t block = none;  // with these tokens, this parent and this tenant
    bool collision = false; // another content has the key: neither a hit nor a place to insert
  };

  /// Looks for the block of `tokens` ([block tokens]) after `parent` (none: at
  /// position 0). Tokens are compared one by one: the key only finds them.
  Probe find(uint32_t tenant, const Salt &salt, uint32_t parent, const int64_t *tokens) const;

  /// Adds a used block under the key of a probe that found nothing.
  void insert(uint32_t block, uint32_t tenant, uint32_t parent, const int64_t *tokens, const BlockKey &key);

  bool contains(uint32_t block) const { return entries_[block].cached; }
  bool idle(uint32_t block) const { return entries_[block].idle; }
  bool hasUsers(uint32_t block) const { return entries_[block].hasUsers; }
  bool hasTokens(uint32_t block, const int64_t *tokens) const;
  uint32_t parent(uint32_t block) const { return entries_[block].parent; }
  uint32_t tenant(uint32_t block) const { return entries_[block].tenant; }
  uint32_t children(uint32_t block) const { return entries_[block].children; }
  const BlockKey &key(uint32_t block) const { return entries_[block].key; }
  /// Of an idle entry: when it became so.
  int64_t idleSince(uint32_t block) const { return entries_[block].since; }

  /// The first user came; the last one went.
  void addUsers(uint32_t block);
  void dropUsers(uint32_t block, int64_t now);

  /// The idle entry without children that has been so longest; none if nothing
  /// is idle.
  uint32_t victim() const { return heap_.empty() ? none : heap_.front(); }

  /// Drops an idle entry without children and zeroes what it knew.
  void remove(uint32_t block);

  /// Entries move with their blocks: that of block i to to[i], which has none unless it is i.
  void renumber(const std::vector<uint32_t> &to);

  uint32_t count() const { return count_; }
  uint32_t idleCount() const { return idleCount_; }

  /// I5, and that the parts agree.
  Status validate() const;

private:
  struct Entry {
    BlockKey key = {};
    uint64_t order = 0; // rises with every entry that becomes idle
    int64_t since = 0;
    uint32_t parent = none;
    uint32_t children = 0;
    uint32_t usedChildren = 0;
    uint32_t tenant = 0;
    uint32_t heapPlace = none;
    bool cached = false;
    bool hasUsers = false;
    bool idle = false;
  };

  size_t home(const BlockKey &key) const;
  size_t slotOf(uint32_t block) const;
  void forget(uint32_t block);
  void eraseSlot(size_t slot);
  void leaveIdle(uint32_t block);
  void heapAdd(uint32_t block);
  void heapRemove(uint32_t block);
  void heapPut(size_t place, uint32_t block);
  void heapUp(size_t place);
  void heapDown(size_t place);
  bool before(uint32_t a, uint32_t b) const { return entries_[a].order < entries_[b].order; }

  size_t blockTokens_;
  unsigned hashBits_;
  std::vector<Entry> entries_;
  std::vector<int64_t> tokens_; // [blocks][block tokens]
  std::vector<uint32_t> slots_; // open addressing by key, linear; at most half full
  std::vector<uint32_t> heap_;  // idle entries without children, the oldest first
  uint64_t order_ = 0;
  uint32_t count_ = 0;
  uint32_t idleCount_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_SHARE_PREFIXCACHE_H
