// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Movers against a plain model of their order: each transfer handed back once, nothing overtakes where it must not.
#include "TestTier.h"

#include "tier/FaultTier.h"
#include "tier/HostTier.h"
#include "tier/Mover.h"
#include "tier/ThrottledTier.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace quire::runtime;
using namespace quire::test;

#ifndef QUIRE_CHECK_INVARIANTS
extern std::atomic<int64_t> allocations; // ExecutorTest.cpp
#endif

namespace {

using Urgency = Mover::Urgency;

bool conflicting(const Transfer &a, const Transfer &b) {
  return a.slot == b.slot && !(a.kind == Transfer::Kind::Load && b.kind == Transfer::Kind::Load);
}

/// Notes the order of transfers and holds them up while the gate is closed.
class RecordingTier final : public Tier {
public:
  explicit RecordingTier(uint32_t slots) : Tier("recording", slots, 64) {}

  void run(Transfer *const *transfers, size_t count) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++entered_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < i; ++j)
        overlap_ |= conflicting(*transfers[i], *transfers[j]);
      order_.push_back(transfers[i]);
    }
    largest_ = std::max(largest_, count);
  }
  void setOpen(bool open) {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = open;
    changed_.notify_all();
  }
  void awaitEntered(size_t times) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return entered_ >= times; });
  }
  std::vector<Transfer *> order() {
    std::lock_guard<std::mutex> lock(mutex_);
    return order_;
  }
  bool overlap() {
    std::lock_guard<std::mutex> lock(mutex_);
    return overlap_;
  }
  size_t largest() {
    std::lock_guard<std::mutex> lock(mutex_);
    return largest_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Transfer *> order_;
  size_t entered_ = 0, largest_ = 0;
  bool open_ = true, overlap_ = false;
};

/// The promises of Mover.h, with lists that are searched.
class Model {
public:
  void push(Transfer *transfer, Urgency urgency) {
    age_.push_back(transfer);
    raiseBefore(transfer, urgency);
    list(urgency).push_back(transfer);
  }
  void promote(Transfer *transfer) {
    Urgency urgency;
    if (!find(transfer, urgency) || urgency == Urgency::Demand)
      return;
    raiseBefore(transfer, Urgency::Demand);
    drop(transfer);
    list(Urgency::Demand).push_back(transfer);
  }
  bool remove(Transfer *transfer) {
    Urgency urgency;
    if (!find(transfer, urgency))
      return false;
    drop(transfer);
    age_.erase(std::find(age_.begin(), age_.end(), transfer));
    return true;
  }
  /// All that is left, in the order of a mover that waits for nothing.
  std::vector<Transfer *> order() const {
    std::vector<Transfer *> all;
    for (const std::deque<Transfer *> &some : lists_)
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }
  /// A mover that chooses within a class may run it now.
  bool mayRun(Transfer *transfer) const {
    Urgency urgency;
    if (!find(transfer, urgency))
      return false;
    for (size_t i = 0; i < static_cast<size_t>(urgency); ++i)
      if (!lists_[i].empty())
        return false;
    for (Transfer *earlier : age_) {
      if (earlier == transfer)
        return true;
      if (conflicting(*earlier, *transfer))
        return false;
    }
    return true;
  }

private:
  std::deque<Transfer *> &list(Urgency urgency) { return lists_[static_cast<size_t>(urgency)]; }
  bool find(Transfer *transfer, Urgency &urgency) const {
    for (size_t i = 0; i < 3; ++i)
      if (std::count(lists_[i].begin(), lists_[i].end(), transfer)) {
        urgency = static_cast<Urgency>(i);
        return true;
      }
    return false;
  }
  void drop(Transfer *transfer) {
    for (std::deque<Transfer *> &some : lists_)
      some.erase(std::remove(some.begin(), some.end(), transfer), some.end());
  }
  void raiseBefore(Transfer *transfer, Urgency urgency) {
    std::vector<Transfer *> needed = {transfer};
    std::vector<Transfer *> before(age_.begin(), std::find(age_.begin(), age_.end(), transfer));
    for (auto i = before.rbegin(); i != before.rend(); ++i)
      if (std::any_of(needed.begin(), needed.end(), [&](Transfer *later) { return conflicting(**i, *later); }))
        needed.push_back(*i);
    for (auto i = needed.rbegin(); i + 1 != needed.rend(); ++i) {
      Urgency now;
      if (find(*i, now) && now > urgency) {
        drop(*i);
        list(urgency).push_back(*i);
      }
    }
  }
  std::deque<Transfer *> lists_[3];
  std::vector<Transfer *> age_; // waiting, the oldest first
};

Transfer::Kind kindOf(uint64_t random) {
  return random % 5 < 2 ? Transfer::Kind::Load : random % 5 < 4 ? Transfer::Kind::Store : Transfer::Kind::Erase;
}

/// Takes everything; false after ten seconds.
bool drain(Mover &mover, Clock &clock, std::multiset<Transfer *> &taken) {
  int64_t deadline = clock.now() + int64_t(10000000000);
  while (mover.pending()) {
    if (!mover.wait(deadline))
      return false;
    Transfer *some[7];
    size_t count = mover.take(some, 7);
    taken.insert(some, some + count);
  }
  return true;
}

TEST(ThreadMover, OrderIsThatOfTheModel) {
  SystemClock clock;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    uint64_t random = seed;
    RecordingTier tier(1000);
    tier.setOpen(false);
    auto mover = createThreadMover(clock, 64);
    std::deque<Transfer> transfers;
    transfers.push_back(transferOf(Transfer::Kind::Load, 999, nullptr, 0));
    Transfer *first = &transfers.front();
    mover->submit(tier, &first, 1, Urgency::Demand);
    tier.awaitEntered(1);
    Model model;
    std::multiset<Transfer *> expected = {first}, taken;
    uint64_t slots = 1 + splitMix(random) % 12;
    for (int i = 0; i < 60; ++i) {
      uint64_t action = splitMix(random) % 8;
      Transfer *any = &transfers[splitMix(random) % transfers.size()];
      if (action < 5) {
        Urgency urgency = static_cast<Urgency>(splitMix(random) % 3);
        Transfer *batch[3];
        size_t count = 1 + splitMix(random) % 3;
        for (size_t j = 0; j < count; ++j) {
          transfers.push_back(transferOf(kindOf(splitMix(random)), static_cast<uint32_t>(splitMix(random) % slots), nullptr, 0));
          batch[j] = &transfers.back();
          model.push(batch[j], urgency);
          expected.insert(batch[j]);
        }
        mover->submit(tier, batch, count, urgency);
      } else if (action < 7) {
        mover->promote(*any);
        model.promote(any);
      } else {
        bool cancelled = mover->cancel(*any);
        ASSERT_EQ(cancelled, model.remove(any)) << "seed " << seed;
        if (cancelled)
          expected.erase(any);
      }
      ASSERT_EQ(mover->pending(), expected.size());
    }
    tier.setOpen(true);
    ASSERT_TRUE(drain(*mover, clock, taken));
    EXPECT_EQ(taken, expected) << "seed " << seed;
    std::vector<Transfer *> order = model.order();
    order.insert(order.begin(), first);
    ASSERT_EQ(tier.order(), order) << "seed " << seed;
    EXPECT_FALSE(tier.overlap()) << "seed " << seed;
    EXPECT_FALSE(mover->wait(INT64_MAX)) << "nothing is under way";
  }
}

/// Transfers of a batch run together, so that all have its times.
TEST(Movers, TransfersKnowWhenTheyRan) {
  for (bool thread : {true, false}) {
    VirtualClock clock;
    clock.sleepUntil(1000);
    Status status;
    HostTierOptions options;
    options.slots = 8;
    options.pageBytes = 4096;
    ThrottledTier tier(HostTier::create(options, status), {300000, 4096000000}, clock); // 1 us a page
    ASSERT_TRUE(status.ok()) << status.text();
    auto mover = thread ? createThreadMover(clock, 8) : createSteppedMover(clock, 8, 1);
    TestPage page(4096);
    Transfer stores[3];
    Transfer *batch[3];
    for (uint32_t i = 0; i < 3; ++i) {
      stores[i].kind = Transfer::Kind::Store;
      stores[i].slot = i;
      stores[i].page = page.data();
      batch[i] = &stores[i];
    }
    mover->submit(tier, batch, 3, Urgency::Demand);
    std::multiset<Transfer *> taken;
    ASSERT_TRUE(drain(*mover, clock, taken));
    ASSERT_EQ(taken.size(), 3u);
    std::sort(batch, batch + 3, [](const Transfer *a, const Transfer *b) { return a->begun < b->begun; });
    for (int64_t i = 0; i < 3; ++i) { // without a thread each is a batch
      EXPECT_EQ(batch[i]->begun, thread ? 1000 : 1000 + i * 301000) << thread;
      EXPECT_EQ(batch[i]->ended, thread ? 304000 : batch[i]->begun + 301000) << thread;
    }
  }
}

TEST(SteppedMover, EveryStepIsOneOfTheModel) {
  std::vector<Transfer *> none;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    VirtualClock clock;
    uint64_t random = seed;
    RecordingTier tier(1000);
    auto mover = createSteppedMover(clock, 16, seed); // grows
    Model model;
    std::deque<Transfer> transfers;
    std::multiset<Transfer *> expected, taken;
    uint64_t slots = 1 + splitMix(random) % 12;
    size_t seen = 0;
    auto follow = [&] {
      std::vector<Transfer *> order = tier.order();
      for (; seen < order.size(); ++seen) {
        ASSERT_TRUE(model.mayRun(order[seen])) << "seed " << seed;
        model.remove(order[seen]);
      }
    };
    for (int i = 0; i < 200; ++i) {
      uint64_t action = splitMix(random) % 10;
      Transfer *any = transfers.empty() ? nullptr : &transfers[splitMix(random) % transfers.size()];
      if (action < 4 || !any) {
        transfers.push_back(transferOf(kindOf(splitMix(random)), static_cast<uint32_t>(splitMix(random) % slots), nullptr, 0));
        Transfer *one = &transfers.back();
        Urgency urgency = static_cast<Urgency>(splitMix(random) % 3);
        model.push(one, urgency);
        expected.insert(one);
        mover->submit(tier, &one, 1, urgency);
      } else if (action < 6) {
        mover->promote(*any);
        model.promote(any);
      } else if (action < 7) {
        bool cancelled = mover->cancel(*any);
        ASSERT_EQ(cancelled, model.remove(any)) << "seed " << seed;
        if (cancelled)
          expected.erase(any);
      } else if (action < 9) {
        Transfer *some[3];
        size_t count = mover->take(some, 3);
        follow();
        taken.insert(some, some + count);
      } else {
        bool ready = mover->wait(INT64_MAX);
        follow();
        EXPECT_EQ(ready, taken.size() < expected.size());
      }
      ASSERT_EQ(mover->pending() + taken.size(), expected.size());
    }
    ASSERT_TRUE(drain(*mover, clock, taken));
    follow();
    EXPECT_EQ(taken, expected) << "seed " << seed;
    EXPECT_TRUE(model.order().empty());
  }
}

TEST(SteppedMover, SeedDecidesTheOrder) {
  auto order = [](uint64_t seed) {
    VirtualClock clock;
    RecordingTier tier(100);
    auto mover = createSteppedMover(clock, 32, seed);
    std::deque<Transfer> transfers;
    for (uint32_t i = 0; i < 32; ++i) {
      transfers.push_back(transferOf(Transfer::Kind::Load, i, nullptr, 0));
      Transfer *one = &transfers.back();
      mover->submit(tier, &one, 1, Urgency::Prefetch);
    }
    std::multiset<Transfer *> taken;
    EXPECT_TRUE(drain(*mover, clock, taken));
    std::vector<uint32_t> slots;
    for (Transfer *transfer : tier.order())
      slots.push_back(transfer->slot);
    return slots;
  };
  EXPECT_EQ(order(5), order(5));
  EXPECT_NE(order(5), order(6));
}

TEST(SteppedMover, TakeRunsSometimes) {
  VirtualClock clock;
  RecordingTier tier(8);
  auto mover = createSteppedMover(clock, 1, 3);
  Transfer transfer = transferOf(Transfer::Kind::Load, 0, nullptr, 0), *one = &transfer;
  int ran = 0;
  for (int i = 0; i < 1000; ++i) {
    mover->submit(tier, &one, 1, Urgency::Demand);
    Transfer *out;
    if (mover->take(&out, 1))
      ++ran;
    else
      ASSERT_TRUE(mover->cancel(transfer));
  }
  EXPECT_GT(ran, 400);
  EXPECT_LT(ran, 600);
}

std::unique_ptr<HostTier> hostTier(uint32_t slots, uint64_t pageBytes) {
  HostTierOptions options;
  options.slots = slots;
  options.pageBytes = pageBytes;
  options.checksum = true;
  Status status;
  return HostTier::create(options, status);
}

FaultPlan stuckLoads(int64_t ns) {
  Fault fault;
  fault.kind = Fault::Kind::Stuck;
  fault.ns = ns;
  return FaultPlan{0, {fault}};
}

TEST(SteppedMover, DeadlinePassesFirst) {
  VirtualClock clock;
  FaultTier tier(hostTier(2, 64), stuckLoads(1000000), clock);
  auto mover = createSteppedMover(clock, 4, 1);
  TestPage page(64);
  Transfer transfer = transferOf(Transfer::Kind::Load, 0, page.data(), 0), *one = &transfer;
  mover->submit(tier, &one, 1, Urgency::Demand);
  EXPECT_FALSE(mover->wait(0)) << "a deadline that is now has passed";
  EXPECT_FALSE(mover->wait(500000));
  EXPECT_GE(clock.now(), 500000);
  EXPECT_TRUE(mover->wait(clock.now()));
  ASSERT_EQ(mover->take(&one, 1), 1u);
  EXPECT_EQ(transfer.status.code(), QUIRE_IO_ERROR);
}

TEST(ThreadMover, WaitEndsAtTheDeadline) {
  SystemClock clock;
  FaultTier tier(hostTier(2, 64), stuckLoads(0), clock);
  auto mover = createThreadMover(clock, 4);
  TestPage page(64);
  EXPECT_FALSE(mover->wait(INT64_MAX)) << "nothing is under way";
  Transfer transfer = transferOf(Transfer::Kind::Load, 0, page.data(), 0), *one = &transfer;
  mover->submit(tier, &one, 1, Urgency::Demand);
  int64_t begin = clock.now();
  EXPECT_FALSE(mover->wait(begin + 20000000));
  EXPECT_GE(clock.now() - begin, 20000000);
  while (!tier.stuck())
    std::this_thread::yield();
  EXPECT_FALSE(mover->cancel(transfer)) << "it has begun";
  Transfer *out;
  EXPECT_EQ(mover->take(&out, 1), 0u);
  EXPECT_EQ(mover->pending(), 1u);
  tier.release();
  EXPECT_TRUE(mover->wait(INT64_MAX));
  EXPECT_EQ(mover->take(&out, 1), 1u);
  EXPECT_EQ(out, &transfer);
  EXPECT_EQ(mover->take(&out, 1), 0u);
  EXPECT_FALSE(mover->cancel(transfer)) << "it is the owner's already";
}

TEST(ThreadMover, EndFinishesWhatHasBegunAndDropsTheRest) {
  SystemClock clock;
  RecordingTier tier(16);
  tier.setOpen(false);
  auto mover = createThreadMover(clock, 16);
  std::deque<Transfer> transfers;
  for (uint32_t i = 0; i < 8; ++i)
    transfers.push_back(transferOf(Transfer::Kind::Store, i, nullptr, 0));
  Transfer *one = &transfers[0];
  mover->submit(tier, &one, 1, Urgency::WriteBack);
  tier.awaitEntered(1);
  for (uint32_t i = 1; i < 8; ++i) {
    one = &transfers[i];
    mover->submit(tier, &one, 1, Urgency::Demand);
  }
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    tier.setOpen(true);
  });
  mover.reset();
  later.join();
  EXPECT_EQ(tier.order(), std::vector<Transfer *>{&transfers[0]});
}

TEST(ThreadMover, DemandWaitsForOneBatchAtMost) {
  SystemClock clock;
  RecordingTier tier(1000);
  tier.setOpen(false);
  auto mover = createThreadMover(clock, 256);
  std::deque<Transfer> transfers;
  for (uint32_t i = 0; i < 101; ++i)
    transfers.push_back(transferOf(i ? Transfer::Kind::Store : Transfer::Kind::Load, i, nullptr, 0));
  for (uint32_t i = 1; i < 101; ++i) {
    Transfer *one = &transfers[i];
    mover->submit(tier, &one, 1, Urgency::WriteBack);
  }
  tier.awaitEntered(1);
  Transfer *demand = &transfers[0];
  mover->submit(tier, &demand, 1, Urgency::Demand);
  tier.setOpen(true);
  std::multiset<Transfer *> taken;
  ASSERT_TRUE(drain(*mover, clock, taken));
  std::vector<Transfer *> order = tier.order();
  EXPECT_LE(std::find(order.begin(), order.end(), demand) - order.begin(), 8);
  EXPECT_GT(tier.largest(), 1u);
  EXPECT_LE(tier.largest(), 8u);
}

/// Random work on pages with content, with the mover's thread at full speed: what a
/// load finds is what the last store before it left.
void runContents(Mover &mover, Clock &clock, uint64_t seed, int operations) {
  constexpr uint32_t slots = 24;
  auto tier = hostTier(slots, 256);
  struct Item {
    Transfer transfer;
    TestPage page{256};
    bool present = false; // what a load must find
  };
  std::vector<std::unique_ptr<Item>> idle;
  std::map<Transfer *, std::unique_ptr<Item>> under;
  std::map<uint32_t, uint64_t> content; // by slot: tag, as of the last submission
  uint64_t random = seed, nextTag = 1;
  auto finish = [&](Transfer *transfer) {
    auto found = under.find(transfer);
    ASSERT_NE(found, under.end()) << "handed back twice, or never submitted";
    Item &item = *found->second;
    if (transfer->kind == Transfer::Kind::Load) {
      ASSERT_EQ(transfer->status.ok(), item.present) << transfer->status.text();
      ASSERT_TRUE(!item.present || item.page.holds(transfer->tag));
    } else {
      ASSERT_TRUE(transfer->status.ok());
    }
    idle.push_back(std::move(found->second));
    under.erase(found);
  };
  for (int i = 0; i < operations; ++i) {
    uint64_t action = splitMix(random) % 16;
    Transfer *any = under.empty() ? nullptr : std::next(under.begin(), static_cast<ptrdiff_t>(splitMix(random) % under.size()))->first;
    if (action < 8 && under.size() < 40) {
      if (idle.empty())
        idle.push_back(std::make_unique<Item>());
      std::unique_ptr<Item> item = std::move(idle.back());
      idle.pop_back();
      auto slot = static_cast<uint32_t>(splitMix(random) % slots);
      Transfer::Kind kind = kindOf(splitMix(random));
      bool load = kind == Transfer::Kind::Load;
      uint64_t tag = load ? (content.count(slot) ? content[slot] : 0) : nextTag++;
      item->transfer = transferOf(kind, slot, kind == Transfer::Kind::Erase ? nullptr : item->page.data(), tag);
      item->present = content.count(slot) != 0;
      if (kind == Transfer::Kind::Store) {
        item->page.fill(tag);
        content[slot] = tag;
      } else if (kind == Transfer::Kind::Erase) {
        content.erase(slot);
      }
      Transfer *one = &item->transfer;
      under[one] = std::move(item);
      mover.submit(*tier, &one, 1, static_cast<Urgency>(splitMix(random) % 3));
    } else if (action < 10 && any) {
      mover.promote(*any);
    } else if (action < 12 && any && any->kind == Transfer::Kind::Load) {
      if (mover.cancel(*any)) {
        auto found = under.find(any);
        idle.push_back(std::move(found->second));
        under.erase(found);
      }
    } else if (action == 15) {
      mover.wait(clock.now() + 1000000);
    } else {
      Transfer *some[5];
      size_t count = mover.take(some, 5);
      for (size_t j = 0; j < count; ++j)
        ASSERT_NO_FATAL_FAILURE(finish(some[j]));
    }
    ASSERT_EQ(mover.pending(), under.size());
  }
  while (mover.pending()) {
    ASSERT_TRUE(mover.wait(clock.now() + int64_t(10000000000)));
    Transfer *some[5];
    size_t count = mover.take(some, 5);
    for (size_t j = 0; j < count; ++j)
      ASSERT_NO_FATAL_FAILURE(finish(some[j]));
  }
  EXPECT_TRUE(under.empty());
}

TEST(ThreadMover, LoadsFindTheLastStore) {
  SystemClock clock;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    auto mover = createThreadMover(clock, 64);
    ASSERT_NO_FATAL_FAILURE(runContents(*mover, clock, seed, 10000)) << seed;
  }
}

TEST(SteppedMover, LoadsFindTheLastStore) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    VirtualClock clock;
    auto mover = createSteppedMover(clock, 64, seed);
    ASSERT_NO_FATAL_FAILURE(runContents(*mover, clock, seed, 5000)) << seed;
  }
}

#ifndef QUIRE_CHECK_INVARIANTS
TEST(ThreadMover, TakesNoMemory) {
  SystemClock clock;
  auto tier = hostTier(64, 256);
  auto mover = createThreadMover(clock, 64);
  std::vector<Transfer> transfers(64);
  std::vector<Transfer *> pointers, out(64);
  TestPage page(256);
  for (uint32_t i = 0; i < 64; ++i) {
    transfers[i] = transferOf(Transfer::Kind::Store, i, page.data(), i);
    pointers.push_back(&transfers[i]);
  }
  int64_t before = allocations.load();
  for (int round = 0; round < 100; ++round) {
    mover->submit(*tier, pointers.data(), 64, static_cast<Urgency>(round % 3));
    while (mover->pending()) {
      mover->wait(INT64_MAX);
      mover->take(out.data(), 64);
    }
  }
  EXPECT_EQ(allocations.load(), before);
}
#endif

} // namespace
