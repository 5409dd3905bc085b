// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program run on a pool and on the reference at the same time, which are compared after every operation.
#ifndef QUIRE_TEST_UNIT_RUNTIME_POOLRUN_H
#define QUIRE_TEST_UNIT_RUNTIME_POOLRUN_H

#include "PoolReference.h"
#include "PoolUnderTest.h"

namespace quire::test {

/// What programs did, so that tests see that they did something. Plain memory, which processes can share.
struct RunCounts {
  uint64_t programs = 0;
  uint64_t operations = 0; // that found something to do
  uint64_t done[opKinds] = {};
  uint64_t succeeded[opKinds + 1] = {}, refused[opKinds + 1] = {}; // calls; the last are those of no operation
  uint64_t ends[QUIRE_PAGE_LOST + 1] = {}; // calls by how they ended
  uint64_t loads = 0, stores = 0;          // of slow tiers
  uint64_t injected = 0;                   // faults that happened
  uint64_t copies = 0, hits = 0, merged = 0, evicted = 0, expired = 0, lost = 0;
  uint64_t reserveHits = 0, pinsGivenUp = 0, compacted = 0, moved = 0; // pages, and blocks, moved together
  uint64_t pruned = 0, idle = 0;        // blocks
  uint64_t returned = 0;                // times that memory of pages went back to the system
  uint64_t encoded = 0, byAttention = 0; // pages that a codec stored; prefetches of pools that look at attention at their end
};

class PoolRun {
public:
  /// Called after each operation, before the comparison: for a test that damages something.
  using Sabotage = std::function<void(const Op &, PoolUnderTest &, const PoolReference &)>;

  /// `faults`: of each pool from its beginning, beside those that the program plans.
  PoolRun(const Program &program, RunCounts &counts, Sabotage sabotage = {}, std::vector<runtime::Fault> faults = {});
  /// Empty: they agreed to the end. Otherwise the operation and what was wrong.
  std::string run();

private:
  struct Pinned {
    uint32_t block;
    int64_t layer;
    const char *address;
  };
  /// All handles may be used while it lives.
  class AsServer {
  public:
    explicit AsServer(const PoolRun &run) : run_(run) { quire_pool_act_as(run_.pool_.get(), 0); }
    ~AsServer() { quire_pool_act_as(run_.pool_.get(), run_.reference_->tenants()[run_.reference_->acting()].handle); }
    AsServer(const AsServer &) = delete;
    AsServer &operator=(const AsServer &) = delete;

  private:
    const PoolRun &run_;
  };
  struct Batch {
    std::vector<size_t> members; // of the reference's sequences
    std::vector<std::vector<int64_t>> tokens;
    std::vector<std::vector<uint64_t>> histories;
  };

  void fail(const std::string &what);
  bool good() const { return error_.empty(); }
  /// Counts the call's end and compares it; true: it succeeded, as it should.
  bool ended(quire_status expected, quire_status status);
  /// The same for a call that needs pages: it may fail as the faults want it, and must if they do not fit.
  bool endedPaging(quire_status expected, quire_status status, bool fits);
  bool begin();
  void execute(const Op &op);
  void executeOnSequences(const Op &op);
  void drain();

  // Checks: PoolRun.cpp.
  void compare();
  /// Also finds out the numbers of new blocks.
  void compareTables();
  void compareAddresses();
  void compareStats();
  void compareTenants();
  void comparePins();
  void compareContent();
  void comparePinned();
  void see(uint32_t name, int32_t index, std::vector<uint32_t> &owners);
  bool isBlank(int32_t index);
  void checkDrained();

  // Operations on sequences: PoolRunSequences.cpp.
  bool any() const { return !reference_->sequences().empty(); }
  size_t pick(uint8_t a) const { return a % reference_->sequences().size(); }
  const PoolReference::Sequence &at(size_t index) const { return reference_->sequences()[index]; }
  /// One more than the length is asked for now and then.
  static int64_t lengthOf(const Op &op, int64_t length) { return op.b == 255 ? length + 1 : op.b % (length + 1); }
  std::vector<int64_t> nextTokens(size_t index, int64_t count, int64_t choice) const;
  void create(const Op &op);
  void release(size_t index);
  void move(const Op &op);
  void fork(const Op &op);
  void truncate(size_t index, int64_t length);
  void reserve(const Op &op);
  void write(const Op &op);
  bool reserveFor(size_t index, int64_t tokens);
  void match(const Op &op);
  void publish(const Op &op);
  std::vector<bool> lostBlocks() const;
  void recover();

  // Steps and pages: PoolRunSteps.cpp.
  Batch batchOf(const Op &op) const;
  quire_status expectStep(const Batch &batch) const;
  void step(const Op &op, bool aborts);
  void applyReservations(const Batch &batch, bool all);
  void invoke(const Op &op);
  bool fitsPinned(const std::vector<uint32_t> &blocks, int64_t layer = -1) const;
  int64_t fastPages() const { return pool_.pager() ? units_ : INT64_MAX; }
  char *pinFor(uint32_t name, int64_t layer, bool write);
  void unpinFor(uint32_t name, int64_t layer);
  bool writeBlock(uint32_t name, int64_t layer, const std::vector<uint64_t> &history, int64_t begin, int64_t end);
  void read(size_t index);
  void readHeld(const PoolReference::Held &held);
  void pin(const Op &op);
  void unpin(const Op &op);

  // The caller's blocks, tenants, and the rest: PoolRunPool.cpp.
  void allocate(const Op &op);
  void changeHeld(const Op &op);
  void fill(const Op &op);
  std::vector<uint32_t> liveTenants() const;
  void newTenant(const Op &op);
  void endTenant(uint32_t tenant);
  void actAs(uint32_t tenant);
  void advance(const Op &op);
  void trace(const Op &op);
  void report();
  void reportRest();
  void setWindow(int64_t pages);
  void stale(const Op &op);
  void fault(const Op &op);
  void crash(const Op &op);
  void syncRoom();

  // What stays, sizes, and what others see: PoolRunResidency.cpp.
  void executeOnRanges(const Op &op);
  void pinRange(const Op &op);
  void endTurn(const Op &op);
  void dialogue(const Op &op);
  void unload(const Op &op);
  void weigh(const Op &op);
  void ask(const Op &op);
  void resize(const Op &op);
  void tune(const Op &op);
  void compact();
  void prune(const Op &op);
  void exportArena();
  int64_t groups() const { return (markLayers + pool_.layersPerPage() - 1) / pool_.layersPerPage(); }
  int64_t limitOf(int64_t units) const;
  void applyTuning();
  void syncEvictions();

  Program program_;
  RunCounts &counts_;
  Sabotage sabotage_;
  std::vector<runtime::Fault> faults_;
  PoolUnderTest pool_;
  std::optional<PoolReference> reference_;
  std::vector<Pinned> pins_;
  std::map<std::pair<uint32_t, int64_t>, const char *> addresses_; // of live blocks by name and layer, with stable_va
  std::vector<quire_sequence> endedSequences_;
  std::vector<quire_block> endedBlocks_;
  std::vector<quire_tenant> endedTenants_;
  bool degraded_ = false; // faults were planned: pages may be lost, and stores refused
  bool erasing_ = false;  // what is freed is overwritten
  bool unspaced_ = false; // some call found no room for its pages
  int64_t moved_ = 0;     // blocks of this pool, by compact
  int64_t returned_ = 0;  // its memory_returns when they were last looked at
  int64_t units_ = 0, unitsAtFirst_ = 0; // size of the memory: pages of the fast tier, or blocks
  quire_pool_tuning tuning_ = {};
  bool traced_ = false;
  std::vector<uint64_t> left_; // histories of what was stored at the end
  quire_status last_ = QUIRE_OK; // how the last call ended
  uint64_t calls_ = 0;
  size_t kind_ = opKinds; // of the operation; between two of them opKinds
  std::string doing_;
  std::string error_;
};

/// In this process.
std::string runProgram(const Program &program, RunCounts &counts, const PoolRun::Sabotage &sabotage = {});

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_POOLRUN_H
