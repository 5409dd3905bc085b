// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pool of the shape that a program names, over tiers that remember what was stored, fail on demand, and outlive a crash.
#ifndef QUIRE_TEST_UNIT_RUNTIME_POOLUNDERTEST_H
#define QUIRE_TEST_UNIT_RUNTIME_POOLUNDERTEST_H

#include "MarkModel.h"
#include "PoolProgram.h"

#include "abi/Handles.h"
#include "serving/Engine.h"
#include "tier/FaultTier.h"
#include "tier/FileTier.h"
#include "tier/Mover.h"

#include <functional>
#include <map>
#include <optional>

#include <sys/types.h>

namespace quire::test {

/// What a slow tier was given, slot by slot: to be compared with what it gives back.
struct StoreRecord {
  struct Content {
    uint64_t tag = 0;
    std::vector<char> page;
  };
  std::vector<std::optional<Content>> slots;
  std::map<std::pair<uint32_t, uint64_t>, std::vector<char>> ever; // by slot and tag: faults bring old content back
  uint64_t loads = 0, stores = 0; // that succeeded
  std::string mismatch;           // a load that gave other bytes
  std::function<void()> before;   // each transfer
  std::map<uint64_t, unsigned> failedLoads; // by tag: that the pool repeats
  std::function<void(uint32_t page, uint64_t tag)> lost; // a load has ended badly, and the pool is about to hear of it
};

/// Watches what goes through another tier.
class RecordingTier final : public runtime::Tier {
public:
  RecordingTier(std::unique_ptr<runtime::Tier> inner, std::shared_ptr<StoreRecord> record);
  void run(runtime::Transfer *const *transfers, size_t count) override;

private:
  std::unique_ptr<runtime::Tier> inner_;
  std::shared_ptr<StoreRecord> record_;
};

/// Watches what a pool is told of its transfers.
class RecordingMover final : public runtime::Mover {
public:
  RecordingMover(std::unique_ptr<runtime::Mover> inner, std::shared_ptr<StoreRecord> record) : inner_(std::move(inner)), record_(std::move(record)) {}
  void submit(runtime::Tier &tier, runtime::Transfer *const *transfers, size_t count, Urgency urgency) override { inner_->submit(tier, transfers, count, urgency); }
  void promote(runtime::Transfer &transfer) override { inner_->promote(transfer); }
  bool cancel(runtime::Transfer &transfer) override { return inner_->cancel(transfer); }
  size_t take(runtime::Transfer **out, size_t most) override;
  bool wait(int64_t deadline) override { return inner_->wait(deadline); }
  size_t pending() const override { return inner_->pending(); }
  int64_t busyNs() const override { return inner_->busyNs(); }

private:
  std::unique_ptr<runtime::Mover> inner_;
  std::shared_ptr<StoreRecord> record_;
};

/// How long a planned standstill or delay takes: two of them are more than a step waits.
constexpr int64_t faultNs = int64_t(20) * 1000000000;

/// The file of a process's pools, in memory where the system has that.
std::string slotFileOf(pid_t process);

class PoolUnderTest {
public:
  explicit PoolUnderTest(const Program &program);
  ~PoolUnderTest();

  /// Empty, or why there is no pool.
  std::string open();
  /// Ends the pool as it is, with whatever is under way. What a file kept must be what was stored in it; then
  /// the file stays (0), is cut off (1), or is gone (2).
  std::string crash(int file);

  quire_pool *get() const { return pool_.get(); }
  runtime::Pool &inner() const { return *pool_->pool; }
  runtime::Pager *pager() const { return pool_->pool->pager(); }
  quire_executor *executor() const { return executor_.get(); }
  MarkScript &script() { return script_; }
  const StoreRecord &record() const { return *record_; }
  const Program &program() const { return program_; }
  int64_t layersPerPage() const { return layersPerPage_; }
  bool prefixCache() const { return program_[ShapeField::PrefixCache] % 2; }
  bool hasSlowTier() const { return program_[ShapeField::Tier] % 4 != 0; }
  bool exportable() const { return !hasSlowTier() && program_[ShapeField::Export] % 2; }
  runtime::Codec codec() const;
  /// Not with a codec, which wants numbers in pages that somebody writes by hand.
  bool poisons() const { return program_[ShapeField::Poison] % 2 && codec() == runtime::Codec::None; }
  bool stableVa() const { return program_[ShapeField::StableVa] % 2; }
  bool erases() const { return program_[ShapeField::ZeroOnFree] % 2; }

  /// `first` counts from now. With a slow tier.
  void plan(const runtime::Fault &fault);
  /// Calls `hook` before each transfer of this pool.
  void watch(std::function<void()> hook) { record_->before = std::move(hook); }
  /// Calls `hook` with each page whose load this pool will give up, when it is told so; null: nobody.
  void watchLosses(std::function<void(uint32_t page, uint64_t tag)> hook) { record_->lost = std::move(hook); }
  /// Faults that happened.
  uint64_t injected() const;
  /// Whether all slots of the slow tier are as empty as after its creation.
  bool slowIsBlank();

private:
  bool hasMemory() const { return program_[ShapeField::Tier] % 2 != 0; }
  bool hasFile() const { return program_[ShapeField::Tier] % 4 >= 2; }
  uint32_t fastPages() const { return 4 + program_[ShapeField::Fast] % 12; }
  /// Pages that a codec stores each have a slot of their own.
  uint32_t slowSlots() const { return 6 + program_[ShapeField::Slow] % 40 + (codec() == runtime::Codec::None ? 0 : fastPages()); }
  uint32_t memorySlots() const { return hasMemory() ? slowSlots() / (hasFile() ? 3 : 1) : 0; }
  template <typename Inner>
  std::unique_ptr<runtime::Tier> watched(std::unique_ptr<Inner> inner);
  runtime::Status makeTier(uint64_t pageBytes, std::unique_ptr<runtime::Tier> &out);
  runtime::FileTierOptions fileOptions(uint64_t pageBytes) const;
  std::string compareFile(bool damaged);

  Program program_;
  int64_t layersPerPage_;
  uint64_t pageBytes_ = 0; // in the slow tier
  uint64_t lives_ = 0; // pools so far
  bool planned_ = false; // this one has faults
  MarkScript script_;
  std::shared_ptr<runtime::VirtualClock> clock_;
  std::shared_ptr<StoreRecord> record_;
  std::vector<runtime::FaultTier *> faults_;    // the pool's, of each member of its slow tier
  std::vector<runtime::StoredSlots *> stored_;  // the same
  serving::ModelPointer model_;
  serving::PoolPointer pool_;
  serving::ExecutorPointer executor_;
};

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_POOLUNDERTEST_H
