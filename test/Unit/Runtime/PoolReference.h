// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a pool must look like: sequences with all their tokens, whose blocks are names without memory.
#ifndef QUIRE_TEST_UNIT_RUNTIME_POOLREFERENCE_H
#define QUIRE_TEST_UNIT_RUNTIME_POOLREFERENCE_H

#include "quire/runtime.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace quire::test {

/// Questions (const) say how a call must end; changes are told once it has ended so. A block here is a
/// name; the pool's number of it is found out when it first shows, and never changes while it lives.
class PoolReference {
public:
  static constexpr uint32_t none = UINT32_MAX;

  struct Block {
    int32_t index = -1;  // the pool's number; negative: not seen yet
    uint32_t tables = 0; // sequences that have it
    uint32_t handles = 0;
    // As a cached prefix.
    bool cached = false;
    bool idle = false; // nobody uses it, nor any that comes after it
    uint32_t tenant = 0;
    uint32_t parent = none;
    uint32_t children = 0;
    uint64_t history = 0;
    uint64_t order = 0; // of becoming idle
    int64_t since = 0;

    uint32_t references() const { return tables + handles + cached; }
  };

  struct Sequence {
    quire_sequence handle = 0;
    uint32_t tenant = 0;
    std::vector<int64_t> tokens;
    std::vector<uint64_t> history; // one for each token
    std::vector<uint32_t> blocks;
    bool counted = false;
    int64_t queryTokens = -1; // of a query that no commit followed
    int64_t hitTokens = 0;
    bool admitted = false;      // has reserved blocks, or its source had
    std::vector<int64_t> pins;  // by hand, of its first blocks
    std::vector<int64_t> turns; // their ends
    std::vector<int64_t> positions; // one for each token
    int64_t next = 0;               // position of the next token

    int64_t length() const { return static_cast<int64_t>(tokens.size()); }
    bool isWhole() const { return next == length(); }
  };

  /// A block of the caller's.
  struct Held {
    quire_block handle = 0;
    uint32_t block = 0;
    uint32_t tenant = 0;
    uint64_t history = 0; // of what is stored in all its positions and layers; 0: nothing
  };

  struct Tenant {
    quire_tenant handle = 0; // 0: nobody, or ended
    uint64_t history = 0;    // before the first token
    int64_t timeToLive = 0;
    std::string name; // empty: unlike all others
    int64_t queries = 0, queryTokens = 0, hitTokens = 0;
    int64_t cached = 0, published = 0, merged = 0, evicted = 0, expired = 0;
    bool operator==(const quire_tenant_stats &stats) const;
  };

  struct Options {
    int64_t blocks = 0;
    bool prefixCache = false;
    bool collisions = false; // keys may be equal: prefixes that are cached need not be found
  };

  /// What stays of sequences with turns.
  struct Dialogue {
    int64_t recentTurns = 0, recentPages = 0;
    std::vector<int64_t> importantPages;
  };

  struct Pruning {
    int64_t begin = 0, end = 0;
    double ratio = 0;
    std::vector<float> scores; // [end - begin]
    bool keepsFirst = false;   // token 0 of the sequence
  };

  explicit PoolReference(const Options &options) : options_(options), tenants_(1), limit_(options.blocks) {}

  const std::vector<Sequence> &sequences() const { return sequences_; }
  const std::vector<Held> &held() const { return held_; }
  const std::vector<Tenant> &tenants() const { return tenants_; }
  const std::vector<Block> &blocks() const { return blocks_; } // by name
  /// Names of cached prefixes.
  const std::vector<uint32_t> &cached() const { return cached_; }
  int64_t inUse() const { return inUse_; }
  uint32_t acting() const { return acting_; }
  int64_t copies() const { return copies_; } // blocks
  int64_t now() const { return now_; }

  int64_t free() const;
  int64_t reclaimable() const;
  int64_t available() const { return free() + reclaimable(); }
  /// Blocks that a reservation may take, beside the others of a step or alone.
  int64_t roomFor(size_t at, bool besideOthers) const;
  int64_t roomForCaller() const;
  int64_t limit() const { return limit_; }
  int64_t reserveBlocks() const { return reserve_; }
  int64_t reserveHits() const { return reserveHits_; }
  void setReserve(int64_t blocks) { reserve_ = blocks; }
  /// Of a pool that may become so large: what has to give way, and then the size.
  quire_status canLimit(int64_t blocks) const { return inUse_ - reclaimable() > blocks ? QUIRE_OUT_OF_BLOCKS : QUIRE_OK; }
  /// Cached blocks gave way until there were no more than `asked`; `made` are fewer if slots of the slow tier failed meanwhile.
  void setLimit(int64_t asked, int64_t made);
  /// What a pool says whose slow tier takes nothing new. INT64_MAX: there is room for all.
  void setRoom(int64_t free, int64_t reclaimable) {
    room_ = free;
    reclaimable_ = reclaimable;
  }
  /// The pool's number of a block.
  void see(uint32_t name, int32_t index) { blocks_[name].index = index; }
  /// Called when a block has lost its last reference.
  std::function<void(uint32_t name)> onEnd;

  quire_status mayUse(const Sequence &sequence) const;
  quire_status canCreate(uint32_t tenant) const;
  void create(uint32_t tenant, quire_sequence handle);
  void release(size_t at);
  void move(size_t at, quire_sequence handle) { sequences_[at].handle = handle; }
  /// Also of truncate.
  quire_status canFork(size_t at, int64_t length) const;
  void fork(size_t at, int64_t length, quire_sequence handle);
  void truncate(size_t at, int64_t length);

  bool endsShared(const Sequence &sequence) const;
  /// Blocks that a reservation takes, if the call is right otherwise.
  quire_status cost(size_t at, int64_t tokens, int64_t &blocks) const;
  quire_status canReserve(size_t at, int64_t tokens) const;
  void reserve(size_t at, int64_t tokens);
  quire_status canCommit(size_t at, int64_t tokens) const;
  void commit(size_t at, const std::vector<int64_t> &tokens);
  /// Of the sequence's tokens and of these after them.
  /// After a sequence was pruned, not those of the same tokens in another one.
  std::vector<uint64_t> historyWith(size_t at, const std::vector<int64_t> &tokens) const;
  /// So many cached blocks give way.
  void evict(int64_t count);

  /// Tokens [begin, end) of a sequence; of the blocks that hold any of them, all are pinned.
  quire_status canName(size_t at, int64_t begin, int64_t end) const;
  void pin(size_t at, int64_t begin, int64_t end);
  quire_status canUnpin(size_t at, int64_t begin, int64_t end) const;
  void unpin(size_t at, int64_t begin, int64_t end);
  quire_status canEndTurn(size_t at, int64_t end) const;
  void endTurn(size_t at, int64_t end) { sequences_[at].turns.push_back(end); }
  void setDialogue(Dialogue rules) { dialogue_ = std::move(rules); }
  /// By name: pins of all sequences, by hand and by the rules.
  std::vector<int64_t> pins() const;

  quire_status canPrune(size_t at, const Pruning &pruning) const;
  /// Blocks that survivors leave for new ones.
  std::vector<uint32_t> sourcesOf(size_t at, const Pruning &pruning) const;
  /// Gives the number of blocks that the sequence has fewer.
  int64_t prune(size_t at, const Pruning &pruning);
  int64_t prunedBlocks() const { return prunedBlocks_; }

  using IsLost = std::function<bool(const Block &)>;
  quire_status canMatch(size_t at) const;
  /// False: the pool has found something else. Where keys collide it may find less.
  bool match(size_t at, const std::vector<int64_t> &prompt, const IsLost &isLost, int64_t found);
  quire_status canPublish(size_t at, int64_t count) const;
  /// `isLost`: of a block, once so many others have become cached or were merged. `most` of them, where keys collide.
  using IsLostAfter = std::function<bool(const Block &, int64_t steps)>;
  void publish(size_t at, int64_t count, const IsLostAfter &isLost, int64_t most);

  quire_status mayUse(const Held &held) const;
  void allocate(const std::vector<quire_block> &handles);
  void retain(size_t at) { ++blocks_[held_[at].block].handles; }
  /// True: it was the caller's last reference.
  bool drop(size_t at);
  void fill(size_t at, uint64_t history) { held_[at].history = history; }

  quire_status canMakeTenant(const std::string &name) const;
  void makeTenant(const std::string &name, int64_t timeToLive, quire_tenant handle);
  quire_status canEndTenant(uint32_t tenant) const;
  void endTenant(uint32_t tenant);
  void actAs(uint32_t tenant) { acting_ = tenant; }
  quire_status canAdvance(int64_t now) const;
  /// Gives the number of cached blocks that are dropped.
  int64_t advance(int64_t now);

private:
  uint32_t newBlock();
  bool holdsBlocks(size_t except) const;
  std::vector<int64_t> survivorsOf(const Pruning &pruning) const;
  bool staysByRule(const Sequence &sequence, size_t block) const;
  void takeBlocks(int64_t count, std::vector<uint32_t> &out);
  /// After a reference was taken away.
  void lessUse(uint32_t name);
  bool isUsed(uint32_t name) const;
  void moreUse(uint32_t name);
  void dropBlocks(Sequence &sequence, int64_t keep);
  void dropEntry(uint32_t name);
  int64_t dropEntries(const std::function<bool(const Block &)> &wanted);
  uint32_t find(uint32_t tenant, uint32_t parent, uint64_t history) const;
  quire_status canShare(size_t at) const;

  Options options_;
  std::vector<Sequence> sequences_; // by age
  std::vector<Held> held_;
  std::vector<Tenant> tenants_; // 0: nobody
  std::vector<Block> blocks_;   // by name; those without references are over
  std::vector<uint32_t> cached_;
  uint32_t acting_ = 0;
  int64_t inUse_ = 0;
  int64_t limit_;
  int64_t reserve_ = 0, reserveHits_ = 0;
  Dialogue dialogue_;
  int64_t room_ = INT64_MAX, reclaimable_ = 0;
  int64_t copies_ = 0;
  int64_t prunedBlocks_ = 0;
  int64_t now_ = 0;
  uint64_t order_ = 0;
};

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_POOLREFERENCE_H
