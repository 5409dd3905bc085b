// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which pages lie in the fast arena, and how they get there and leave: the page table of a pool with a slow tier.
#ifndef QUIRE_RUNTIME_RESIDENCY_PAGER_H
#define QUIRE_RUNTIME_RESIDENCY_PAGER_H

#include "core/MappedMemory.h"
#include "residency/Counters.h"
#include "residency/PageGeometry.h"
#include "residency/Policy.h"
#include "residency/Trace.h"
#include "tier/Mover.h"

#include <memory>
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
    int64_t deadlineNs = int64_t(30) * 1000000000; // of a transfer that a step waits for
    bool poison = false;     // free slots of the arena are filled with 0xFF bytes
    bool zeroOnFree = false; // what pages leave behind is overwritten, in both tiers
  };

  /// What a step is about to read and write. Arrays are borrowed until endStep.
  struct Step {
    int64_t sequences = 0;
    const int32_t *blocks = nullptr; // [sequences][stride] block numbers
    int64_t stride = 0;
    const int64_t *pastLens = nullptr;    // [sequences]
    const int64_t *tokenCounts = nullptr; // [sequences]
    int32_t *slots = nullptr;             // [sequences][stride] out, by acquire
  };

  /// Transfers under way at any time, at most.
  static size_t transfersFor(uint64_t fastPages);

  /// The pool has as many blocks as both tiers hold, but for some pages that
  /// are kept free to exchange others. QUIRE_OUT_OF_BLOCKS: not one fits.
  static Status create(const PageGeometry &geometry, const Options &options, std::unique_ptr<Tier> slow,
                       std::unique_ptr<Mover> mover, Clock &clock, std::unique_ptr<Pager> &out);
  ~Pager();

  const PageGeometry &geometry() const { return geometry_; }
  uint32_t blocks() const { return blocks_; }
  uint32_t fastPages() const { return fastSlots_.total(); }
  /// Most distinct blocks of a step.
  int64_t stepBlocks() const { return fastPages(); }
  uint32_t fastPagesFree() const { return fastSlots_.freeCount(); }
  /// Blocks that may still get content: INT64_MAX, but fewer once the slow tier's device is full.
  int64_t roomBlocks() const;
  const PagerCounters &counters() const { return counters_; }
  const Tier &slow() const { return *slow_; }
  /// Of the page table, transfers included.
  uint64_t metadataBytes() const;
  void setTrace(Trace *trace);
  void setZeroOnFree() { options_.zeroOnFree = true; }
  void setPrefetchWindow(int64_t pages) { options_.prefetchWindow = pages; }
  int64_t prefetchWindow() const { return options_.prefetchWindow; }
  PolicyKind policyKind() const { return options_.policy; }

  /// The block's owner ended: its content is gone.
  void discard(uint32_t block);
  /// Copies the content of a block; on failure `to` has none.
  Status copy(uint32_t from, uint32_t to);

  /// One page by hand, pinned until unpin comes as often. A page without
  /// content is an error unless it is to be written.
  Status pin(uint32_t group, uint32_t block, bool write, char *&address);
  Status unpin(uint32_t group, uint32_t block);

  /// QUIRE_OUT_OF_BLOCKS if the step's pages of one group do not fit together.
  Status beginStep(const Step &step);
  /// The model's calls, between begin and end. A page that cannot be brought in
  /// is replaced by one of zeroes, and endStep says so. False: the call breaks
  /// the order acquire, release.
  bool acquire(int64_t layer, quire_kv_view &out);
  bool release(int64_t layer);
  /// A layer past the last one stands for the first ones of the next step.
  /// False: nothing had to move.
  bool prefetch(int64_t layer, int64_t first, int64_t count);
  /// Some page was replaced: several rows may write to the same place.
  bool failed() const { return !failure_.ok(); }
  /// QUIRE_PAGE_LOST, QUIRE_NO_SPACE: what the step computed is worthless.
  Status endStep();

  /// Whether content of the block cannot be read back.
  bool lost(uint32_t block) const;

  /// Waits for everything that is under way.
  void settle();
  /// Whether these bytes lie anywhere in the fast arena, free slots included.
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
    uint16_t pins = 0;
    State state = State::Absent;
    bool dirty : 1;    // the slow slot is missing or old
    bool leaving : 1;  // Storing: gives up its fast slot afterwards
    bool brought : 1;  // by a prefetch, and not demanded since
    bool polluted : 1; // gave way to a prefetch
    Page() : dirty(false), leaving(false), brought(false), polluted(false) {}
  };

  struct Flight {
    Transfer transfer;
    uint32_t page = none; // none: the page's content was discarded meanwhile
    uint32_t fast = none;
    uint8_t attempts = 0;
  };

  class Allowed;

  Pager(const PageGeometry &geometry, const Options &options, uint32_t blocks, uint32_t fastPages,
        std::unique_ptr<Tier> slow, std::unique_ptr<Mover> mover, Clock &clock);

  uint32_t pageOf(uint32_t group, uint32_t block) const { return group * blocks_ + block; }
  uint32_t groupOf(uint32_t page) const { return page / blocks_; }
  uint32_t blockOf(uint32_t page) const { return page % blocks_; }
  char *slotAddress(uint32_t slot) const { return arena_.data() + slot * geometry_.pageBytes; }
  /// Groups until the step comes to this one.
  uint32_t distance(uint32_t group) const { return (group + geometry_.groups - current_) % geometry_.groups; }
  void note(TraceEvent::Kind kind, uint32_t page, TraceEvent::Outcome outcome = TraceEvent::Outcome::None);

  // Slots: Slots.cpp.
  void become(Page &page, State state);
  bool takeFast(uint32_t &slot);
  void freeFast(uint32_t slot);
  bool takeSlow(uint32_t &slot);
  void freeSlow(uint32_t slot);
  bool canStore(const Page &page) const;
  void evict(uint32_t number);
  void leave(uint32_t number);
  Status obtain(size_t count);

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
  bool waitFor(uint32_t number, int64_t deadline);

  // Steps: Pager.cpp.
  void countDemand(uint32_t number);
  void want(uint32_t number, bool content, bool written);
  void bringIn();
  void rescue(uint32_t number);
  void change(uint32_t number);
  void unpinHeld();
  void fail(Status status);
  bool prefetchPage(uint32_t number);
  void listPages(uint32_t group);
  void fillSlots(uint32_t group);
  Status validateSlots() const;

  PageGeometry geometry_;
  Options options_;
  uint32_t blocks_;
  Clock &clock_;
  std::unique_ptr<Tier> slow_;
  std::unique_ptr<Mover> mover_; // ends first: it works on the tier, the arena and the flights
  std::unique_ptr<Policy> policy_;
  MappedMemory arena_; // fastPages slots, and one of zeroes
  BlockAllocator fastSlots_;
  std::vector<Page> pages_; // [groups][blocks]
  std::vector<int32_t> taken_;

  std::vector<Flight> flights_;
  std::vector<uint32_t> freeFlights_;
  size_t erasing_ = 0;             // at most spareFlights
  std::vector<uint32_t> unerased_; // slow slots that will be erased
  std::vector<Transfer *> batch_; // begun and not yet with the mover
  std::vector<Transfer *> finished_;
  size_t prefetching_ = 0; // loads under way that no demand waits for
  size_t leaving_ = 0;     // pages that will give up their fast slot
  size_t shadowed_ = 0;    // resident pages with a slow slot
  uint32_t reclaimAt_ = 0;
  uint32_t quarantined_ = 0; // slow slots that are never used again
  uint32_t failedStores_ = 0; // in a row
  bool full_ = false;         // the slow tier takes nothing new

  Step step_;
  bool inStep_ = false;
  int64_t stepStart_ = 0;
  uint32_t stepNumber_ = 0;
  uint32_t acquireNumber_ = 0;
  std::vector<uint32_t> blockStep_; // [blocks] last step that uses the block
  uint32_t group_ = none;           // held
  uint32_t holds_ = 0;              // its layers that are acquired
  uint32_t current_ = 0;            // group that was held last
  std::vector<uint32_t> held_, loads_, fresh_, written_, sealed_, slots_;
  Status failure_;

  PagerCounters counters_;
  Trace *trace_ = nullptr;
  int64_t traceStart_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_PAGER_H
