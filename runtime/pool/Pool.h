// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The KV pool: one arena per layer, blocks shared by all layers, and sequences with block tables.
#ifndef QUIRE_RUNTIME_POOL_POOL_H
#define QUIRE_RUNTIME_POOL_POOL_H

#include "compress/Codec.h"
#include "compress/IdleTracker.h"
#include "compress/Prune.h"
#include "core/Invariants.h"
#include "core/MappedMemory.h"
#include "core/Status.h"
#include "pool/BlockAllocator.h"
#include "pool/Compact.h"
#include "residency/Pager.h"
#include "share/PrefixCache.h"
#include "share/Tenants.h"
#include "tier/TierOptions.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace quire::runtime {

/// Single writer: no call may overlap another on the same pool.
class Pool {
public:
  struct Options {
    uint64_t bytes = uint64_t(256) << 20;
    BlockAllocator::Options order;
    bool poison = false;
    bool zeroOnFree = false;
    bool exportable = false;
    bool stableVa = false;
    bool prefixCache = false;
    PrefixCache::Options prefix;

    /// With a slow tier `bytes` is the size of the fast one. Makes the tier and
    /// what moves pages, for pages of that size; without it everything is in memory.
    std::function<Status(uint64_t pageBytes, std::unique_ptr<Tier> &tier, std::unique_ptr<Mover> &mover)> slowTier;
    /// What the above will make, as numbers; null: it is not asked.
    std::function<Status(uint64_t pageBytes, TierPlan &out)> slowPlan;
    Codec codec = Codec::None; // of the slow tier's pages, whose size is then that of encoded ones
    std::shared_ptr<Clock> clock; // of the above; null: the system's
    int64_t layersPerPage = 1;
    bool digests = false; // of keys, with a slow tier: for prefetchByQuery
    Pager::Options paging; // fastBytes, poison and zeroOnFree are those above
  };

  /// Of the reserve; all of it only grows.
  struct ReserveCounters {
    int64_t hits = 0;      // blocks taken out of it
    int64_t peak = 0;      // most of it in use
    int64_t exhausted = 0; // takings that failed although they might use it
  };

  /// What stays in the fast tier of a sequence with turns.
  struct DialogueRules {
    int64_t recentTurns = 0;
    int64_t recentPages = 0;
    std::vector<int64_t> importantPages; // from the beginning of the sequence
  };

  struct SequenceOptions {
    quire_tenant tenant = 0; // 0: the one that the pool acts for
    bool resumed = false;    // counted before
  };

  /// What a pool will have.
  struct Plan {
    uint64_t blocks = 0;
    uint64_t stepBlocks = 0; // of a layer, in one step
    // With a slow tier.
    uint64_t pageBytes = 0;
    uint64_t fastPages = 0;
    uint64_t slowPages = 0;
  };

  static Status create(const quire_model_info &info, const Options &options, std::unique_ptr<Pool> &out);
  /// Numbers alone: nothing is made, and the machine is not asked whether it has so much. A slow tier needs its slowPlan, and
  /// is refused as by create(); without one there may be no blocks.
  static Status plan(const quire_model_info &info, const Options &options, Plan &out);

  // Geometry.
  int64_t blockTokens() const { return blockTokens_; }
  int64_t blockBytes() const { return blockBytes_; }
  int64_t blocksTotal() const { return allocator_.total(); }
  int64_t blocksFree() const;
  int64_t blocksUsed() const { return allocator_.usedCount(); }
  int64_t blocksLimit() const { return pager_ ? pager_->blockLimit() : blocksTotal() - allocator_.withheldCount(); }
  /// Most blocks that the sequences of one step may have together.
  int64_t stepBlocks() const { return pager_ ? pager_->stepBlocks() : blocksLimit(); }
  /// Null: all blocks are in memory.
  Pager *pager() const { return pager_.get(); }
  /// That would be free without the cached blocks that nobody uses: as many as
  /// these, but fewer once the slow tier takes nothing new.
  int64_t blocksReclaimable() const;
  int64_t blocksAvailable() const { return blocksFree() + blocksReclaimable(); }
  int64_t blocksPeak() const { return allocator_.peak(); }
  int64_t allocations() const { return static_cast<int64_t>(allocator_.allocations()); }
  int64_t sequenceCount() const { return sequenceCount_; }
  int64_t copiedBytes() const { return copiedBytes_; }
  int64_t maxPositions() const { return maxPositions_; }
  int64_t blocksFor(int64_t tokens) const { return (tokens + blockTokens_ - 1) / blockTokens_; }

  int64_t layerCount() const { return static_cast<int64_t>(layers_.size()); }
  /// Without a pager.
  char *layerBase(int64_t layer) const { return layers_[layer].base; }
  int64_t layerBlockBytes(int64_t layer) const { return layers_[layer].blockBytes; }

  // Blocks held by the caller.
  Status allocate(int64_t count, quire_block *out);
  Status retain(quire_block block);
  Status release(quire_block block);
  Status index(quire_block block, int32_t &out) const;

  /// Sums over all steps of all sequences: tokens of the sequence after the step, and positions in its blocks.
  struct Filling {
    uint64_t tokens = 0;
    uint64_t positions = 0;
  };
  const Filling &filling() const { return filling_; }
  /// Memory beside the arena.
  uint64_t tableBytes() const;

  /// Resize.cpp; contract as in quire/runtime.h.
  Status resizeFast(uint64_t bytes);

  /// CompactBlocks.cpp; contract as in quire/runtime.h.
  Status compact(Compaction &done);
  const Compaction &compacted() const { return compacted_; }
  /// Memory of withheld blocks that is the system's again.
  struct GivenBack {
    uint64_t now = 0;
    uint64_t compacted = 0; // that would be after compact()
  };
  GivenBack givenBack() const;

  /// Time of handing blocks out and of giving a reference back; nothing is recorded,
  /// and no clock read, unless it is switched on.
  struct Latencies {
    Histogram allocate, free;
  };
  void timeBlocks(bool on) { timed_ = on; }
  bool blocksAreTimed() const { return timed_; }
  const Latencies &latencies() const { return latencies_; }

  /// 0 events: ends the record.
  Status startTrace(int64_t events);
  const Trace *trace() const { return trace_.get(); }
  /// Whether the replacement of pages, their prefetching or a trace has use for what blocks are attended to.
  bool wantsAttention() const {
    return pager_ && (trace_ || pager_->policyKind() == PolicyKind::Importance || pager_->prefetching().looksAtAttention());
  }
  /// QUIRE_INVALID_ARGUMENT: it looks at attention that the model does not tell.
  Status checkPrefetch(const Prefetching &prefetch) const;

  /// Whether there is such a block.
  Status checkPlace(int64_t layer, int32_t index) const;
  /// Contract as in quire/runtime.h.
  Status address(int64_t layer, int32_t index, char *&out) const;

  // One page by hand; contracts as in quire/runtime.h.
  Status pin(int64_t layer, int32_t index, bool write, char *&address);
  Status unpin(int64_t layer, int32_t index);

  // Sequences; contracts as in quire/runtime.h.
  Status createSequence(const SequenceOptions &options, quire_sequence &out);
  Status releaseSequence(quire_sequence sequence);
  Status fork(quire_sequence sequence, int64_t length, quire_sequence &out);
  Status reserve(quire_sequence sequence, int64_t tokens);
  Status commit(quire_sequence sequence, int64_t tokens);
  Status truncate(quire_sequence sequence, int64_t length);
  Status length(quire_sequence sequence, int64_t &out) const;
  Status table(quire_sequence sequence, const int32_t *&blocks, int64_t &count) const;

  /// First token whose K and V are lost, or the length.
  Status intactLength(quire_sequence sequence, int64_t &out) const;
  // Sharing (Sharing.cpp); contracts as in quire/runtime.h.
  Status createTenant(const void *name, size_t bytes, int64_t timeToLive, quire_tenant &out);
  Status destroyTenant(quire_tenant tenant);
  Status tenant(quire_tenant handle, const Tenant *&out) const;
  const Tenants &tenants() const { return tenants_; }
  /// Slot of the sequence's tenant; the sequence is alive.
  uint32_t tenantOf(quire_sequence sequence) const { return sequences_[static_cast<uint32_t>(sequence)].tenant; }
  Status actAs(quire_tenant tenant);
  Status advance(int64_t now, int64_t &dropped);
  Status matchPrefix(quire_sequence sequence, const int64_t *tokens, int64_t count, int64_t &matched);
  Status publish(quire_sequence sequence, const int64_t *tokens, int64_t count);
  Status moveSequence(quire_sequence sequence, quire_sequence &out);
  Status exportArena(int &descriptor) const { return arena_.openShared(descriptor); }
  uint64_t blockOffset(int64_t layer, int32_t index) const {
    return static_cast<uint64_t>(layers_[layer].base - arena_.data() + index * layers_[layer].blockBytes);
  }

  /// Free blocks that reserve(sequence, tokens) would take.
  Status reserveCost(quire_sequence sequence, int64_t tokens, int64_t &blocks) const;

  // What is to stay in the fast tier (Pins.cpp); contracts as in quire/runtime.h.
  Status pinRange(quire_sequence sequence, int64_t begin, int64_t end);
  Status unpinRange(quire_sequence sequence, int64_t begin, int64_t end);
  Status endTurn(quire_sequence sequence, int64_t end);
  void setDialogue(DialogueRules rules);
  Status unload(quire_sequence sequence, int64_t begin, int64_t end);
  Status setImportance(quire_sequence sequence, int64_t begin, int64_t end, float importance);
  struct Query {
    int64_t layer = 0;
    const float *heads = nullptr; // [headCount][key_dim]
    int64_t headCount = 0;
  };
  Status prefetchByQuery(quire_sequence sequence, const Query &query, int64_t count, int64_t *places, double *bounds, int64_t &found);

  // Fewer tokens (Pruning.cpp); contracts as in quire/runtime.h.
  struct Pruning {
    double ratio = 0;
    const float *scores = nullptr;
    std::vector<PositionRange> keep;
  };
  struct Pruned {
    int64_t tokens = 0;
    int64_t blocks = 0;
  };
  Status prune(quire_sequence sequence, int64_t begin, int64_t end, const Pruning &pruning, Pruned &done);
  Status positions(quire_sequence sequence, const int64_t *&out, int64_t &next) const;
  const Pruned &pruned() const { return pruned_; }
  /// Whether the place of each token is its position: what is stored is a prefix that others may have.
  Status checkWhole(quire_sequence sequence) const;

  // Blocks that no step uses (Idle.cpp).
  void setIdleSteps(int64_t steps);
  int64_t idleSteps() const { return idleSteps_; }
  int64_t idleBlocks() const { return idleBlocks_; }
  /// After a step, which used the blocks of these lengths of the tables.
  void endStep(const int32_t *tables, int64_t stride, const int64_t *pastLens, const int64_t *tokenCounts, int64_t sequences);

  // The reserve (Reserve.cpp). A sequence is new until it has reserved blocks; new
  // ones may not take the last reserveBlocks() while others have blocks.
  void setReserve(double ratio);
  double reserveRatio() const { return reserveRatio_; }
  int64_t reserveBlocks() const { return reserveBlocks_; }
  /// Blocks that the ratio is a share of.
  int64_t reserveBase() const { return pager_ ? pager_->fastPages() / pager_->geometry().groups : blocksLimit(); }
  const ReserveCounters &reserveCounters() const { return reserveCounters_; }
  /// Blocks that the sequence may take; `besideOthers`: others take some with it.
  Status roomFor(quire_sequence sequence, bool besideOthers, int64_t &blocks) const;
  /// QUIRE_OUT_OF_BLOCKS with the reason.
  Status checkRoom(int64_t wanted, int64_t room);

  /// The invariants of docs/Runtime.md.
  Status validate() const;

private:
  struct Layer {
    char *base;
    int64_t blockBytes;
  };

  /// Pins that a sequence has given to one of its blocks.
  struct Hold {
    uint16_t byHand = 0;
    bool byRule = false;
    int32_t pins() const { return byHand + byRule; }
  };

  struct Sequence {
    uint32_t generation = 1;
    bool live = false;
    bool admitted = false; // has reserved blocks, or its source had
    int64_t length = 0;
    std::vector<int32_t> blocks;
    std::vector<Hold> holds;    // of the first blocks; none of the others
    std::vector<int64_t> turns; // their ends, ascending
    std::vector<int64_t> positions; // of its tokens; empty: 0, 1, 2, ...
    int64_t dropped = 0;            // positions that no token has, before the next one
    uint32_t tenant = Tenants::nobody;
    // Of a query for a prefix that is not counted yet.
    bool counted = false;
    int64_t queryTokens = -1; // negative: none
    int64_t hitTokens = 0;
  };

  static constexpr unsigned char poisonByte = 0xFF;

  Pool(uint32_t blocks, const Options &options);

  Status find(quire_sequence handle, const Sequence *&out) const;
  Status find(quire_sequence handle, Sequence *&out);
  Status findBlock(quire_block handle, uint32_t &out) const;
  /// Whether writing position `length` would change a block that others read.
  bool endsInSharedBlock(const Sequence &sequence) const;
  bool holdsBlocks(const Sequence *except) const;
  void noteTaken(int64_t count);
  Status blocksOfRange(const Sequence &sequence, int64_t begin, int64_t end, size_t &first, size_t &last) const;
  void changePins(int32_t block, int32_t pins);
  void openHolds(Sequence &sequence);
  void holdRecent(Sequence &sequence);
  void dropLastHold(Sequence &sequence);
  void moveHold(Sequence &sequence, size_t index, int32_t to);
  void dropBlocks(Sequence &sequence, int64_t keep);
  /// Every reference comes and goes through these three. There is room for `count`.
  void takeBlocks(int64_t count, std::vector<int32_t> &out);
  bool addReference(uint32_t block);
  void dropReference(uint32_t block);
  void freeReference(uint32_t block);
  /// Evicts until `count` blocks are free, which are available.
  void makeRoom(int64_t count);
  void evict();
  void dropEntry(uint32_t block);
  void noteExpiry(uint32_t block);
  /// Drops the idle entries that `wanted` answers for, children first; a wanted
  /// entry has wanted children only.
  template <typename Wanted>
  int64_t dropEntries(Wanted wanted);
  void eraseBlock(uint32_t block);
  Status fitInto(int64_t limit);
  Status resizePages(uint64_t pages);
  Status resizeArena(uint64_t blocks);
  void withhold(uint32_t block);
  void giveBackRuns();
  Status bringBack(uint32_t block);
  std::vector<bool> withheldBlocks() const;
  void forEachRun(const std::vector<bool> &blocks, const std::function<void(size_t offset, size_t bytes)> &function) const;
  std::vector<uint32_t> planCompaction() const;
  std::vector<bool> withheldAfter(const std::vector<uint32_t> &to) const;
  Status bringBackAllBut(const std::vector<bool> &withheld);
  void moveBlock(uint32_t from, uint32_t to);
  uint64_t bytesGivenBack(const std::vector<bool> &withheld) const;
  Status serverOnly() const;
  Status findShared(quire_sequence handle, int64_t count, Sequence *&out);
  bool mergeOrInsert(Sequence &sequence, size_t index, const int64_t *tokens);
  void countQuery(Sequence &sequence);
  void fill(uint32_t block, unsigned char byte);
  Status copyBlock(uint32_t from, uint32_t to);
  Status checkUnpinned(const Sequence &sequence, size_t first, size_t last) const;
  Status moveSurvivors(const int32_t *from, const PrunePlan &plan, size_t first, int64_t begin, const std::vector<int32_t> &to);
  Status movePage(uint32_t group, const int32_t *from, const int64_t *slots, int32_t to);
  static void shortenPositions(Sequence &sequence);
  /// What a sequence may ever have; with room for as many positions no step allocates.
  size_t mostTokens() const;
  void dropPositions(Sequence &sequence, size_t first, size_t last, const std::vector<int64_t> &survivors);
  struct Pages {
    PageGeometry geometry;
    uint64_t slotBytes = 0; // in the slow tier
  };
  static Status cutPages(const quire_model_info &info, const Options &options, Pages &out);
  static Status checkPlan(const Options &options, const Pages &pages, uint64_t bytesPerBlock);
  static Status createPager(const quire_model_info &info, const Options &options, Clock &clock,
                            std::unique_ptr<Pager> &out);
  Status createArena(const quire_model_info &info, bool exportable);
  Status validateSequences(std::vector<uint64_t> &counted) const;
  Status validateSharing(std::vector<uint64_t> &counted) const;
  Status validatePins() const;
  Status validatePositions(const Sequence &sequence) const;
  /// Debug builds validate after every operation that changes something.
  void checkInvariants() const { expectInvariants(*this); }

  int64_t blockTokens_ = 0;
  int64_t blockBytes_ = 0;
  int64_t maxPositions_ = -1;
  bool observes_ = false; // some layer of the model tells what it attends to
  bool poison_ = false;
  bool zeroOnFree_ = false;
  bool stableVa_ = false;
  MappedMemory arena_;
  std::shared_ptr<Clock> clock_;
  std::unique_ptr<Trace> trace_; // outlives the pager
  std::unique_ptr<Pager> pager_;
  std::vector<Layer> layers_;
  BlockAllocator allocator_;
  std::vector<uint32_t> callerReferences_; // [blocks], those through quire_block
  std::vector<uint16_t> handPins_;         // [blocks], of pin(); without a pager
  Compaction compacted_;                   // since creation
  Pruned pruned_;                          // likewise
  std::vector<quire_model_layer> shapes_;  // of the layers
  std::unique_ptr<IdleTracker> idle_;      // of full blocks that steps used; null: nobody asks
  int64_t idleSteps_ = 0;                  // 0: never
  uint64_t stepsDone_ = 0;
  int64_t idleBlocks_ = 0; // that left
  std::vector<int32_t> taken_;             // by allocate()
  std::vector<Sequence> sequences_;
  std::vector<uint32_t> freeSlots_;
  int64_t sequenceCount_ = 0;
  int64_t copiedBytes_ = 0;
  double reserveRatio_ = 0;
  int64_t reserveBlocks_ = 0;
  ReserveCounters reserveCounters_;
  Filling filling_;
  DialogueRules dialogue_;
  bool timed_ = false;
  Latencies latencies_;

  Tenants tenants_;
  uint32_t acting_ = Tenants::nobody;
  std::vector<uint32_t> blockTenants_; // [blocks], of those with caller references
  std::vector<uint8_t> written_;       // [blocks], may hold stored K and V
  std::unique_ptr<PrefixCache> prefix_;
  int64_t now_ = 0;
  int64_t nextExpiry_ = INT64_MAX; // no idle entry expires before
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_POOL_H
