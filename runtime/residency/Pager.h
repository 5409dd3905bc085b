// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which pages lie in the fast arena, and how they get there and leave: the page table of a pool with a slow tier.
#ifndef QUIRE_RUNTIME_RESIDENCY_PAGER_H
#define QUIRE_RUNTIME_RESIDENCY_PAGER_H

#include "core/MappedMemory.h"
#include "doctor/Histogram.h"
#include "residency/Counters.h"
#include "residency/Digests.h"
#include "residency/PageGeometry.h"
#include "residency/PinnedBlocks.h"
#include "residency/Policy.h"
#include "residency/Prefetch.h"
#include "residency/StablePages.h"
#include "residency/Trace.h"
#include "tier/Mover.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace quire::runtime {

/// A page is one block of one group of layers. It has at most one slot of the
/// fast arena and at most one of the slow tier; while it has both and is not
/// dirty, they hold the same. Belongs to the pool's thread; only the mover works
/// beside it, on pages that are Loading or Storing.
class Pager {
public:
  struct Options {
    uint64_t fastBytes = 0;
    PolicyKind policy = PolicyKind::Scan;
    int64_t prefetchWindow = 3; // pages of each sequence that prefetches may have under way
    Prefetching prefetch;
    int64_t deadlineNs = int64_t(30) * 1000000000; // of a transfer that a step waits for
    bool poison = false;     // free slots of the arena are filled with 0xFF bytes
    bool zeroOnFree = false; // what pages leave behind is overwritten, in both tiers
    bool stable = false;     // each page has an address of its own; the geometry's pages are separate
  };

  /// What a step is about to read and write. Arrays are borrowed until endStep.
  struct Step {
    int64_t sequences = 0;
    const int32_t *blocks = nullptr; // [sequences][stride] block numbers
    int64_t stride = 0;
    const int64_t *pastLens = nullptr;    // [sequences]
    const int64_t *tokenCounts = nullptr; // [sequences]
    int32_t *slots = nullptr;             // [sequences][stride] out, by acquire
    const uint32_t *tenants = nullptr;    // [sequences] who the demands are counted for; null: nobody
  };

  struct Latencies {
    Histogram acquireHit;  // of a layer, all pages of which were there
    Histogram acquireMiss; // of the others
    Histogram makeRoom;    // from the first page that had to give way until all had
  };

  /// Transfers under way at any time, at most.
  static size_t transfersFor(uint64_t fastPages);

  /// The pool has as many blocks as both tiers hold, but for some pages that
  /// are kept free to exchange others. If the slow tier is lossy, as many as that one
  /// holds: a page keeps its slow slot while it is unchanged, so that it is never
  /// encoded twice. QUIRE_OUT_OF_BLOCKS: not one fits. QUIRE_INVALID_ARGUMENT: fewer
  /// than the fast tier alone would hold.
  static Status create(const PageGeometry &geometry, const Options &options, std::unique_ptr<Tier> slow,
                       std::unique_ptr<Mover> mover, Clock &clock, std::unique_ptr<Pager> &out);
  ~Pager();

  const PageGeometry &geometry() const { return geometry_; }
  uint32_t blocks() const { return blocks_; }
  uint32_t fastPages() const { return fastLimit_; }
  /// Most distinct blocks of a step.
  int64_t stepBlocks() const { return fastPages(); }
  /// Null: pages have the addresses of the slots that they are in.
  const StablePages *stable() const { return stable_.get(); }
  uint64_t fastBytesWithMemory() const { return stable_ ? stable_->bytesWithMemory() : fastPages() * geometry_.pageStride; }
  uint32_t fastPagesFree() const { return fastSlots_.freeCount(); }
  /// A slow tier takes nothing new: its device is full, or refuses.
  bool full() const { return !slow_->slots().allOpen(); }
  /// Blocks that may still get content, if `more` fast slots were free: INT64_MAX, but
  /// fewer once a slow tier is full.
  int64_t roomBlocks(int64_t more) const;
  /// Fast slots that would be more in roomBlocks without the block.
  int64_t slotsWithout(uint32_t block) const;
  const PagerCounters &counters() const { return counters_; }
  /// Pages that stay in the fast tier, since the slow one's codec does not take them.
  size_t refusedPages() const { return refused_; }
  const AttentionSpread &attention() const { return attention_; }
  const Latencies &latencies() const { return latencies_; }
  /// Counts demands and prefetches of this tenant, from 0.
  void openTenant(uint32_t tenant);
  const PagerCounters &tenantCounters(uint32_t tenant) const { return tenantCounters_[tenant]; }
  const Tier &slow() const { return *slow_; }
  int64_t slowBusyNs() const { return mover_->busyNs(); }
  /// Of a member of slow().slots().
  const TierCounters &tierCounters(size_t member) const { return tierCounters_[member]; }
  /// Bytes of tables of a pager, before it is made: for each page of a block its entry and what its policy keeps, for
  /// each block its use by steps and its pins, for each slot of both tiers its place in the free list.
  static uint64_t tableBytes(const PageGeometry &geometry, uint64_t blocks, uint64_t fastPages, uint64_t slowSlots, bool stable);
  static uint64_t fastPagesOf(const PageGeometry &geometry, uint64_t bytes);
  struct Slow {
    uint64_t pages = 0;
    uint64_t storedPageBytes = 0;
    bool lossy = false;
  };
  /// Blocks of a pool with such tiers; fails as create() does.
  static Status countBlocks(const PageGeometry &geometry, uint64_t fastBytes, const Slow &slow, uint64_t &out);
  /// Of the page table, transfers included.
  uint64_t metadataBytes() const;
  void setTrace(Trace *trace);
  void setZeroOnFree() { options_.zeroOnFree = true; }
  void setPrefetchWindow(int64_t pages) { options_.prefetchWindow = pages; }
  int64_t prefetchWindow() const { return options_.prefetchWindow; }
  /// Not during a step. What attention looked at is known from the next step on.
  void setPrefetch(const Prefetching &prefetch);
  const Prefetching &prefetching() const { return options_.prefetch; }
  /// Steps of so many sequences allocate nothing.
  void prepare(int64_t sequences);
  PolicyKind policyKind() const { return options_.policy; }

  /// The block's owner ended: its content is gone.
  void discard(uint32_t block);
  /// Brings each of the block's pages in once, so that what is lost is known. They
  /// may leave again at once.
  Status read(uint32_t block);
  /// Copies the content of a block; on failure `to` has none.
  Status copy(uint32_t from, uint32_t to);

  /// Blocks that stay in the fast tier with all their pages, while their share of it
  /// allows. Not during a step. A step that finds no other page to take the place
  /// of gives up the oldest. See PinnedBlocks.
  void setPinBudget(double share);
  double pinBudget() const { return pinShare_; }
  void pinBlock(uint32_t block, uint32_t times);
  void unpinBlock(uint32_t block, uint32_t times);
  const PinnedBlocks &pinned() const { return pinned_; }
  /// Sends the block's pages to the slow tier, but for those that are pinned; does not
  /// wait for the last. QUIRE_NO_SPACE: it takes no more. Not during a step.
  Status unload(uint32_t block);
  /// Whether none of its pages, but for those that are pinned, is in the fast tier.
  bool isUnloaded(uint32_t block) const;
  /// Attention mass of a step, or what stands for it, for the importance policy.
  void observe(uint32_t block, float mass);

  /// One page by hand, pinned until unpin comes as often. A page without
  /// content is an error unless it is to be written.
  Status pin(uint32_t group, uint32_t block, bool write, char *&address);
  Status unpin(uint32_t group, uint32_t block);

  /// QUIRE_OUT_OF_BLOCKS if so many blocks of a step do not fit together, one group
  /// at a time.
  Status checkStep(int64_t distinct) const;
  /// The same. QUIRE_NO_SPACE: they would fit, but not beside pages that the codec refused.
  Status beginStep(const Step &step);
  /// The model's calls, between begin and end. A page that cannot be brought in
  /// is replaced by one of zeroes, and endStep says so. False: the call breaks
  /// the order acquire, release.
  bool acquire(int64_t layer, quire_kv_view &out);
  bool release(int64_t layer);
  /// Between acquire and release of a layer: the share of the attention to it that each block had, [sequences][stride] of the step. A page counts for the most
  /// that a sequence and a layer gave it.
  void observe(const float *shares);
  /// A layer past the last one stands for the first ones of the next step. With the predictor layer_ahead a call while a layer is held, or before the
  /// layer ahead of it was, is put off until the next release, when that layer's shares are known. False: nothing had to move.
  bool prefetch(int64_t layer, int64_t first, int64_t count);
  /// Some page was replaced: several rows may write to the same place.
  bool failed() const { return !failure_.ok(); }
  /// QUIRE_PAGE_LOST, QUIRE_NO_SPACE: what the step computed is worthless.
  Status endStep();

  /// Whether content of the block cannot be read back.
  bool lost(uint32_t block) const;

  // ByQuery.cpp.
  /// Keeps digests from now on: of each page when it is written back or asked for. Before any page has content.
  void keepDigests(std::unique_ptr<PageDigests> digests);
  const PageDigests *digests() const { return digests_.get(); }
  /// What a sequence has stored, and what its next row looks for in a layer.
  struct Query {
    int64_t layer;
    int64_t window;        // of the layer, which may be less than its page's
    const int32_t *blocks; // of its table
    int64_t tokens;        // stored
    const float *heads;    // [count][channels]
    int64_t headCount;     // a multiple of the layer's KV heads
    uint32_t tenant;       // whose prefetches are counted
  };
  /// Names the `count` blocks whose keys can have the largest scores, the largest first, by their places in the table, with
  /// their bounds, and begins to fetch those that are away: within Prefetching::bytes, and at no cost to one of them. A page that is
  /// pinned by hand, and may be written, is read anew. QUIRE_PAGE_LOST. Not during a step. Returns their number in `found`.
  Status fetchByQuery(const Query &query, int64_t count, int64_t *places, double *bounds, int64_t &found);

  /// Makes the fast tier so large, at most as at first: what it gives up goes back to
  /// the system. Not during a step. On failure it is as large as before.
  Status resize(uint64_t pages);
  /// What of resize() needs no transfer to fail.
  Status checkResize(uint64_t pages) const;
  /// Blocks that have room in both tiers; at most blocks(), after resize fewer.
  int64_t blockLimit() const { return blockLimit_; }
  int64_t blockLimitOf(uint64_t pages) const;

  /// Waits for everything that is under way.
  void settle();
  const char *arenaBegin() const { return arena_.data(); } // without stable()
  /// Of a page, whether it is in the fast tier or not. With stable().
  char *stableAddress(uint32_t group, uint32_t block) const { return stable_->address(pageOf(group, block)); }
  /// Whether these bytes lie anywhere in the fast tier's memory, free slots included.
  bool arenaHolds(const void *bytes, size_t count) const;
  Status validate() const;

private:
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr size_t spareFlights = 64; // transfers beside those that hold a fast slot

  enum class State : uint8_t {
    Absent,   // no content
    Resident, // in its fast slot
    Loading,  // on its way into its fast slot
    Storing,  // in its fast slot, and on its way into its slow slot
    Slow,     // in its slow slot only
    Lost      // content that cannot be read back
  };

  struct Page {
    uint32_t fast = none;
    uint32_t slow = none;
    uint32_t transfer = none; // Loading, Storing
    uint32_t version = 0;     // of the content in the slow slot
    uint32_t step = 0;        // last one that demanded it
    uint32_t acquired = 0;    // last acquire that listed it
    int32_t tokens = 0;       // stored positions
    uint16_t pins = 0;
    State state = State::Absent;
    bool dirty : 1;    // the slow slot is missing or old
    bool leaving : 1;  // Storing: gives up its fast slot afterwards
    bool brought : 1;  // by a prefetch, and not demanded since
    bool polluted : 1; // gave way to a prefetch
    bool refused : 1;  // by the slow tier's codec, and not changed since
    Page() : dirty(false), leaving(false), brought(false), polluted(false), refused(false) {}
  };

  struct Flight {
    Transfer transfer;
    uint32_t page = none; // none: the page's content was discarded meanwhile
    uint32_t home = none; // the page whose address it uses, until it ends
    uint32_t fast = none;
    uint8_t attempts = 0;
  };

  class Allowed;

  Pager(const PageGeometry &geometry, const Options &options, uint32_t blocks, uint32_t fastPages,
        std::unique_ptr<Tier> slow, std::unique_ptr<Mover> mover, Clock &clock);

  uint32_t pageOf(uint32_t group, uint32_t block) const { return group * blocks_ + block; }
  uint32_t groupOf(uint32_t page) const { return page / blocks_; }
  uint32_t blockOf(uint32_t page) const { return page % blocks_; }
  uint32_t graveSlot() const { return fastSlots_.total(); }
  char *slotAddress(uint32_t slot) const { return arena_.data() + slot * geometry_.pageStride; }
  /// Of a page that has or had the fast slot.
  char *addressOf(uint32_t page, uint32_t slot) const { return stable_ ? stable_->address(page) : slotAddress(slot); }
  char *addressOf(uint32_t page) const { return addressOf(page, pages_[page].fast); }
  /// Groups until the step comes to this one.
  uint32_t distance(uint32_t group) const { return (group + geometry_.groups - current_) % geometry_.groups; }
  void note(TraceEvent::Kind kind, uint32_t page, TraceEvent::Outcome outcome = TraceEvent::Outcome::None, float mass = 0);
  void noteTransfer(TraceEvent::Kind kind, uint32_t page, const Transfer &transfer);

  // Resize.cpp.
  static uint64_t blocksIn(const PageGeometry &geometry, uint64_t fastPages, uint64_t slowPages, bool lossy);
  Status shrink(uint32_t pages);
  size_t movePages(uint32_t pages);
  Status grow(uint32_t pages);

  // Slots: Slots.cpp.
  void become(Page &page, State state);
  bool takeFast(uint32_t &slot);
  void freeFast(uint32_t slot, uint32_t page);
  void keepWithinBudget(bool commits);
  void waitForAddresses();
  void emptyGrave();
  bool takeSlow(uint32_t &slot);
  void freeSlow(uint32_t slot);
  bool canStore(const Page &page) const;
  TierCounters &tierOf(uint32_t slowSlot) { return tierCounters_[slow_->slots().memberOf(slowSlot)]; }
  void giveUp(uint32_t slowSlot);
  void evict(uint32_t number);
  void leave(uint32_t number);
  Status obtain(size_t loads, size_t fresh);

  // Transfers: Transfers.cpp.
  uint32_t begin(Transfer::Kind kind, uint32_t number);
  void flush(Mover::Urgency urgency);
  bool startStore(uint32_t number, bool leaving);
  void startLoad(uint32_t number, uint32_t slot);
  void drain();
  void finish(uint32_t index);
  void finishLoad(uint32_t index);
  void finishStore(uint32_t index);
  void finishOrphan(uint32_t index);
  void end(uint32_t index);
  void lose(uint32_t number);
  void abandon(uint32_t number);
  /// At most the last moment that a clock can have.
  int64_t deadlineFromNow() const;
  bool waitFor(uint32_t number, int64_t deadline);

  // Steps: Pager.cpp. By hand: Pins.cpp.
  void countDemand(uint32_t number);
  void want(uint32_t number, bool content, bool written);
  void provideSlots();
  void bringIn();
  void rescue(uint32_t number);
  void change(uint32_t number);
  void unpinHeld();
  void fail(Status status);
  /// Begun; or not, since a page that gives way has to be stored first; or since none may.
  enum class Fetch : uint8_t { Begun, NotYet, NoRoom };
  Fetch prefetchPage(uint32_t number);
  // Ahead.cpp.
  struct Ask {
    uint32_t group;
    int64_t first, end; // in block tables
  };
  uint32_t topk() const { return std::min(options_.prefetch.topk, blocks_); } // nobody names more blocks than there are
  bool prefetches() const { return options_.prefetch.strategy != PrefetchStrategy::None && options_.prefetchWindow > 0; }
  std::pair<int64_t, int64_t> rangeOf(const Ask &ask, int64_t sequence) const;
  uint32_t pageAt(uint32_t group, int64_t sequence, int64_t place) const;
  void makeRoomToLook();
  void putOff(const Ask &ask);
  void fetchPutOff();
  void nameHot(const Ask &ask);
  uint64_t shareWindows(const Ask &ask);
  bool isAway(const Ask &ask) const;
  bool fetchAhead(const Ask &ask);
  bool fetchFor(int64_t sequence, uint32_t number, uint64_t &left, bool &moved);
  // ByQuery.cpp.
  Status boundBlocks(const Query &query, int64_t begin, int64_t end);
  void fetchNamed();
  bool isNamed(uint32_t number) const { return std::find(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(bestCount_), number) != best_.begin() + static_cast<std::ptrdiff_t>(bestCount_); }
  Status validateDigests() const;
  void listPages(uint32_t group);
  void dismissOutside(uint32_t group);
  void reportObserved();
  void fillSlots(uint32_t group);
  void setRefused(Page &page, bool refused);
  Status checkRefused();
  Status noRoom(size_t pages) const;
  Status validateSlots() const;
  Status validateTiers() const;
  Status validatePins() const;

  PageGeometry geometry_;
  Options options_;
  uint32_t blocks_;
  uint32_t fastLimit_; // fast slots that are used; the others are nobody's
  int64_t blockLimit_;
  Clock &clock_;
  std::unique_ptr<Tier> slow_;
  std::unique_ptr<Mover> mover_; // ends first: it works on the tier, the arena and the flights
  std::unique_ptr<Policy> policy_;
  MappedMemory arena_; // the fast slots, and one of zeroes; or
  std::unique_ptr<StablePages> stable_;
  BlockAllocator fastSlots_; // with stable_: how many pages may have memory, and nothing of where they lie
  std::vector<Page> pages_; // [groups][blocks]
  std::vector<int32_t> taken_;
  PinnedBlocks pinned_;
  double pinShare_ = 0;

  std::vector<Flight> flights_;
  std::vector<uint32_t> freeFlights_;
  size_t erasing_ = 0;             // at most spareFlights
  std::vector<uint32_t> unerased_; // slow slots that will be erased
  std::vector<Transfer *> batch_; // begun and not yet with the mover
  std::vector<Transfer *> finished_;
  size_t prefetching_ = 0; // loads under way that no demand waits for
  size_t leaving_ = 0;     // pages that will give up their fast slot
  size_t shadowed_ = 0;    // resident pages with a slow slot
  size_t refused_ = 0;     // pages that the slow tier's codec does not take
  uint32_t reclaimAt_ = 0;
  uint32_t quarantined_ = 0; // slow slots that are never used again
  std::vector<uint32_t> failedStores_; // in a row, of each member of the slow tier

  Step step_;
  bool inStep_ = false;
  bool graveUsed_ = false; // something may have been written there
  int64_t stepStart_ = 0;
  uint32_t stepNumber_ = 0;
  uint32_t acquireNumber_ = 0;
  std::vector<uint32_t> blockStep_; // [blocks] last step that uses the block
  uint32_t group_ = none;           // held
  uint32_t holds_ = 0;              // its layers that are acquired
  const int32_t *tables_ = nullptr; // of the held group
  uint32_t current_ = 0;            // group that was held last
  std::vector<float> shares_;      // [pages] of those in observed_; empty: nothing was ever observed
  std::vector<uint32_t> observed_; // pages of the held group with a share
  std::vector<uint32_t> held_, loads_, fresh_, written_, sealed_, slots_;
  std::vector<uint32_t> windows_, remaining_, named_; // [sequences] of a prefetch; named_: of hot_
  std::vector<uint32_t> hot_;   // [sequences][topk] places in the block table, hottest first
  std::vector<float> scores_;   // [blocks] of one sequence
  std::vector<float> mass_;     // [pages] share of the attention when the page's group was held last; empty: nobody asks
  std::vector<Ask> putOff_;     // one of a group
  uint32_t lookedAt_ = none;    // group of the step whose shares came last
  uint32_t released_ = none;    // group of the step that was released last
  std::unique_ptr<PageDigests> digests_; // null: nobody asks
  std::vector<double> bounds_;           // [blocks] of one sequence
  std::vector<uint32_t> best_;           // [blocks] of them: places, then pages
  size_t bestCount_ = 0;                 // while they are fetched: none of them gives way
  Status failure_;

  PagerCounters counters_;
  std::vector<TierCounters> tierCounters_; // of each member of the slow tier
  AttentionSpread attention_;
  std::vector<PagerCounters> tenantCounters_ = std::vector<PagerCounters>(1); // by tenant
  uint32_t tenant_ = 0;                                                      // whose pages are listed
  Latencies latencies_;
  Trace *trace_ = nullptr;
  int64_t traceStart_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_PAGER_H
