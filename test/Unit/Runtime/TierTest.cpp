// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clocks, the tier in memory, the throttled one, planned faults, and tiers from text.
#include "TestTier.h"
#include "ToyFolder.h"

#include "core/Quantities.h"
#include "tier/FaultTier.h"
#include "tier/HostTier.h"
#include "tier/TierOptions.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

using namespace quire::runtime;
using namespace quire::test;

namespace {

constexpr int64_t microsecond = 1000, millisecond = 1000000;

std::unique_ptr<HostTier> hostTier(uint32_t slots, uint64_t pageBytes, bool checksum) {
  HostTierOptions options;
  options.slots = slots;
  options.pageBytes = pageBytes;
  options.checksum = checksum;
  Status status;
  std::unique_ptr<HostTier> tier = HostTier::create(options, status);
  EXPECT_TRUE(status.ok()) << status.text();
  return tier;
}

TEST(Clock, SystemSleepsUntilThen) {
  SystemClock clock;
  int64_t begin = clock.now();
  clock.sleepUntil(begin + 3 * millisecond);
  EXPECT_GE(clock.now(), begin + 3 * millisecond);
  clock.sleepUntil(begin); // passed: returns at once
  clock.sleepUntil(-5);
}

TEST(Clock, VirtualMovesForwardOnly) {
  VirtualClock clock;
  EXPECT_EQ(clock.now(), 0);
  clock.sleepUntil(int64_t(3600) * 1000000000);
  EXPECT_EQ(clock.now(), int64_t(3600) * 1000000000);
  clock.sleepUntil(7);
  EXPECT_EQ(clock.now(), int64_t(3600) * 1000000000);
}

class Host : public ::testing::TestWithParam<bool> {};

TEST_P(Host, KeepsPagesBySlotAndTag) {
  auto tier = hostTier(4, 1000, GetParam());
  EXPECT_EQ(load(*tier, 0, 1).code(), QUIRE_PAGE_LOST);
  for (uint32_t slot = 0; slot < 4; ++slot)
    EXPECT_TRUE(store(*tier, slot, 10 + slot).ok());
  for (uint32_t slot = 0; slot < 4; ++slot)
    EXPECT_TRUE(load(*tier, slot, 10 + slot).ok());
  EXPECT_TRUE(store(*tier, 2, 77).ok());
  EXPECT_TRUE(load(*tier, 2, 77).ok());
  EXPECT_EQ(load(*tier, 3, 99).code(), QUIRE_PAGE_LOST);
  EXPECT_EQ(load(*tier, 3, 13).code(), QUIRE_PAGE_LOST) << "refused content must not come back";
  EXPECT_TRUE(load(*tier, 1, 11).ok()) << "another slot is not concerned";
  EXPECT_TRUE(store(*tier, 3, 14).ok());
  EXPECT_TRUE(load(*tier, 3, 14).ok());
  EXPECT_EQ(load(*tier, 4, 0).code(), QUIRE_INVALID_ARGUMENT);
}

TEST_P(Host, EraseLeavesZeros) {
  auto tier = hostTier(2, 4096, GetParam());
  ASSERT_TRUE(store(*tier, 1, 5).ok());
  ASSERT_TRUE(erase(*tier, 1).ok());
  EXPECT_EQ(load(*tier, 1, 5).code(), QUIRE_PAGE_LOST);
  std::vector<char> stored(tier->storedBytes(), 1);
  ASSERT_TRUE(tier->readStored(1, stored.data()).ok());
  EXPECT_EQ(stored, std::vector<char>(tier->storedBytes(), 0));
}

INSTANTIATE_TEST_SUITE_P(Checksum, Host, ::testing::Bool());

TEST(HostTierTest, ChecksumFindsEveryFlippedByte) {
  auto tier = hostTier(2, 300, true);
  for (uint64_t byte = 0; byte < tier->storedBytes(); ++byte) {
    ASSERT_TRUE(store(*tier, 0, 5).ok());
    std::vector<char> stored(tier->storedBytes());
    ASSERT_TRUE(tier->readStored(0, stored.data()).ok());
    stored[byte] = static_cast<char>(stored[byte] ^ 4);
    ASSERT_TRUE(tier->writeStored(0, stored.data()).ok());
    EXPECT_EQ(load(*tier, 0, 5).code(), QUIRE_PAGE_LOST) << byte;
  }
}

TEST(HostTierTest, MoreThanTheMachineHasIsRefused) {
  HostTierOptions options;
  options.slots = UINT32_MAX - 1;
  options.pageBytes = uint64_t(1) << 33;
  Status status;
  EXPECT_EQ(HostTier::create(options, status), nullptr);
  EXPECT_EQ(status.code(), QUIRE_OUT_OF_MEMORY);
  options.pageBytes = uint64_t(1) << 24;
  EXPECT_EQ(HostTier::create(options, status), nullptr);
  EXPECT_EQ(status.code(), QUIRE_OUT_OF_MEMORY);
}

TEST(ThrottledTierTest, LatenciesOverlapAndBandwidthIsShared) {
  VirtualClock clock;
  Throttle throttle;
  throttle.latency = 100 * microsecond;
  throttle.bandwidth = 1000000000; // 1 byte a ns
  ThrottledTier tier(hostTier(8, 50000, false), throttle, clock);
  TestPage pages[4] = {TestPage(50000), TestPage(50000), TestPage(50000), TestPage(50000)};
  std::vector<Transfer> transfers;
  std::vector<Transfer *> pointers;
  for (uint32_t i = 0; i < 4; ++i) {
    pages[i].fill(i);
    transfers.push_back(transferOf(Transfer::Kind::Store, i, pages[i].data(), i));
  }
  for (Transfer &transfer : transfers)
    pointers.push_back(&transfer);
  tier.run(pointers.data(), 4);
  EXPECT_EQ(clock.now(), 100 * microsecond + 4 * 50 * microsecond);
  tier.run(pointers.data(), 1);
  EXPECT_EQ(clock.now(), (300 + 150) * microsecond);
  // Idle time earns nothing.
  clock.sleepUntil(1000 * millisecond);
  EXPECT_TRUE(load(tier, 3, 3).ok());
  EXPECT_EQ(clock.now(), 1000 * millisecond + 150 * microsecond);
  EXPECT_TRUE(erase(tier, 3).ok());
  EXPECT_EQ(clock.now(), 1000 * millisecond + 250 * microsecond);
  tier.run(pointers.data(), 0);
  EXPECT_EQ(clock.now(), 1000 * millisecond + 250 * microsecond);
}

TEST(ThrottledTierTest, TimeEndsWithTheClock) {
  VirtualClock clock;
  clock.sleepUntil(INT64_MAX - microsecond);
  ThrottledTier tier(hostTier(1, 1000, false), Throttle(), clock);
  EXPECT_TRUE(store(tier, 0, 1).ok());
  EXPECT_EQ(clock.now(), INT64_MAX);
}

TEST(ThrottledTierTest, TakesAtLeastTheModelledTime) {
  SystemClock clock;
  Throttle throttle;
  throttle.latency = 2 * millisecond;
  throttle.bandwidth = 1000000;
  ThrottledTier tier(hostTier(2, 1000, false), throttle, clock);
  int64_t begin = clock.now();
  EXPECT_TRUE(store(tier, 0, 1).ok());
  EXPECT_GE(clock.now() - begin, 3 * millisecond);
}

Fault fault(Fault::Kind kind, Transfer::Kind on, uint64_t first = 0, uint64_t count = 1, int64_t ns = 0) {
  Fault made;
  made.kind = kind;
  made.on = on;
  made.first = first;
  made.count = count;
  made.ns = ns;
  return made;
}

class Faults : public ::testing::Test {
protected:
  FaultTier &with(std::vector<Fault> faults, uint64_t seed = 1) {
    tier = std::make_unique<FaultTier>(hostTier(4, 512, true), FaultPlan{seed, std::move(faults)}, clock);
    return *tier;
  }
  VirtualClock clock;
  std::unique_ptr<FaultTier> tier;
};

TEST_F(Faults, ErrorsComeWhenPlannedAndGo) {
  with({fault(Fault::Kind::IoError, Transfer::Kind::Load, 1), fault(Fault::Kind::ShortTransfer, Transfer::Kind::Load, 2),
        fault(Fault::Kind::NoSpace, Transfer::Kind::Store, 2), fault(Fault::Kind::IoError, Transfer::Kind::Erase, 0)});
  EXPECT_TRUE(store(*tier, 0, 1).ok());
  EXPECT_TRUE(load(*tier, 0, 1).ok());
  EXPECT_EQ(load(*tier, 0, 1).code(), QUIRE_IO_ERROR);
  EXPECT_EQ(load(*tier, 0, 1).code(), QUIRE_IO_ERROR);
  EXPECT_TRUE(load(*tier, 0, 1).ok()) << "the slot must be as it was";
  EXPECT_TRUE(store(*tier, 1, 2).ok());
  EXPECT_EQ(store(*tier, 1, 3).code(), QUIRE_NO_SPACE);
  EXPECT_EQ(load(*tier, 1, 2).code(), QUIRE_PAGE_LOST) << "a store that failed leaves no content";
  EXPECT_EQ(erase(*tier, 0).code(), QUIRE_IO_ERROR);
  EXPECT_TRUE(erase(*tier, 0).ok());
  EXPECT_EQ(tier->injected(Fault::Kind::IoError), 2u);
  EXPECT_EQ(tier->injected(Fault::Kind::NoSpace), 1u);
}

TEST_F(Faults, AlwaysIsAlways) {
  with({fault(Fault::Kind::IoError, Transfer::Kind::Load, 1, Fault::always)});
  EXPECT_TRUE(store(*tier, 0, 1).ok());
  EXPECT_TRUE(load(*tier, 0, 1).ok());
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(load(*tier, 0, 1).code(), QUIRE_IO_ERROR);
}

TEST_F(Faults, OneMoreCountsFromNow) {
  with({});
  EXPECT_TRUE(store(*tier, 0, 1).ok());
  EXPECT_TRUE(load(*tier, 0, 1).ok());
  tier->add(fault(Fault::Kind::IoError, Transfer::Kind::Load, 1));
  EXPECT_TRUE(load(*tier, 0, 1).ok());
  EXPECT_EQ(load(*tier, 0, 1).code(), QUIRE_IO_ERROR);
  EXPECT_TRUE(load(*tier, 0, 1).ok());
}

TEST_F(Faults, SilentDamageIsLostNeverWrong) {
  for (Fault::Kind kind : {Fault::Kind::FlipPage, Fault::Kind::FlipHeader, Fault::Kind::TornStore, Fault::Kind::SwapSlots})
    for (Transfer::Kind on : {Transfer::Kind::Store, Transfer::Kind::Load})
      for (uint64_t seed = 0; seed < 50; ++seed) {
        bool onStore = on == Transfer::Kind::Store;
        if (!onStore && (kind == Fault::Kind::TornStore || kind == Fault::Kind::SwapSlots))
          continue;
        with({fault(kind, on, onStore ? 4 : 0)}, seed);
        for (uint32_t slot = 0; slot < 4; ++slot)
          ASSERT_TRUE(store(*tier, slot, slot).ok());
        ASSERT_TRUE(store(*tier, 2, 50).ok());
        Status status = load(*tier, 2, 50);
        // A store may be torn behind its last changed byte.
        bool whole = kind == Fault::Kind::TornStore && status.ok();
        EXPECT_TRUE(whole || status.code() == QUIRE_PAGE_LOST) << int(kind) << " " << seed << " " << status.text();
        EXPECT_EQ(tier->injected(kind), 1u);
        int lost = 0;
        for (uint32_t slot : {0u, 1u, 3u}) {
          Status other = load(*tier, slot, slot);
          EXPECT_TRUE(other.ok() || other.code() == QUIRE_PAGE_LOST) << other.text();
          lost += !other.ok();
        }
        EXPECT_EQ(lost, kind == Fault::Kind::SwapSlots ? 1 : 0);
      }
}

TEST_F(Faults, DelaysOnTheClock) {
  with({fault(Fault::Kind::Delay, Transfer::Kind::Store, 0, 1, 5 * millisecond),
        fault(Fault::Kind::Stuck, Transfer::Kind::Store, 1, 1, 1000 * millisecond)});
  EXPECT_TRUE(store(*tier, 0, 1).ok());
  EXPECT_EQ(clock.now(), 5 * millisecond);
  EXPECT_EQ(store(*tier, 0, 1).code(), QUIRE_IO_ERROR);
  EXPECT_EQ(clock.now(), 1005 * millisecond);
  EXPECT_TRUE(store(*tier, 0, 1).ok());
}

TEST_F(Faults, StuckUntilReleased) {
  with({fault(Fault::Kind::Stuck, Transfer::Kind::Store)});
  std::atomic<bool> done{false};
  Status status;
  std::thread thread([&] {
    status = store(*tier, 0, 1);
    done.store(true);
  });
  while (!tier->stuck())
    std::this_thread::yield();
  EXPECT_FALSE(done.load());
  tier->release();
  thread.join();
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(load(*tier, 0, 1).ok());
}

TEST_F(Faults, TheSeedDecides) {
  auto outcomes = [this](uint64_t seed) {
    Fault sometimes = fault(Fault::Kind::IoError, Transfer::Kind::Store, 0, Fault::always);
    sometimes.probability = 0.5;
    with({sometimes}, seed);
    std::vector<int> codes;
    for (uint64_t i = 0; i < 64; ++i)
      codes.push_back(store(*tier, i % 4, i).code());
    return codes;
  };
  std::vector<int> one = outcomes(1);
  EXPECT_EQ(one, outcomes(1));
  EXPECT_NE(one, outcomes(2));
  auto failed = std::count(one.begin(), one.end(), QUIRE_IO_ERROR);
  EXPECT_GT(failed, 16);
  EXPECT_LT(failed, 48);
}

TEST(Quantities, AreReadStrictly) {
  uint64_t size = 3;
  EXPECT_TRUE(parseSize("256MiB", size));
  EXPECT_EQ(size, uint64_t(256) << 20);
  EXPECT_TRUE(parseSize("18446744073709551615", size));
  EXPECT_EQ(size, UINT64_MAX);
  for (const char *bad : {"", "MiB", "1 MiB", "-1", "+1", "1mib", "18446744073709551616", "99999999999999TiB", "1.5GiB", "0x10"})
    EXPECT_FALSE(parseSize(bad, size)) << bad;
  EXPECT_EQ(size, UINT64_MAX);
  int64_t time = 3;
  EXPECT_TRUE(parseDuration("100us", time));
  EXPECT_EQ(time, 100000);
  EXPECT_TRUE(parseDuration("2s", time));
  EXPECT_EQ(time, 2000000000);
  EXPECT_TRUE(parseDuration("0", time));
  EXPECT_EQ(time, 0);
  for (const char *bad : {"", "5", "us", "1m", "9223372036854775808ns", "10000000000s"})
    EXPECT_FALSE(parseDuration(bad, time)) << bad;
  EXPECT_TRUE(parseBandwidth("2GB/s", size));
  EXPECT_EQ(size, 2000000000u);
  EXPECT_TRUE(parseBandwidth("1MiB/s", size));
  EXPECT_EQ(size, 1048576u);
  for (const char *bad : {"", "/s", "2GB", "2Gbit/s", "0GB/s", "2GB/ms"})
    EXPECT_FALSE(parseBandwidth(bad, size)) << bad;
}

TEST(TierText, NamesTiers) {
  TierOptions options;
  ASSERT_TRUE(parseTier("memory", options).ok());
  EXPECT_EQ(options.kind, TierOptions::Kind::Memory);
  ASSERT_TRUE(parseTier("file:/var/tmp/a:b,c", options).ok());
  EXPECT_EQ(options.kind, TierOptions::Kind::File);
  EXPECT_EQ(options.path, "/var/tmp/a:b,c");
  ASSERT_TRUE(parseTier("throttled", options).ok());
  EXPECT_EQ(options.kind, TierOptions::Kind::Throttled);
  EXPECT_EQ(options.throttle.latency, 100 * microsecond);
  EXPECT_EQ(options.throttle.bandwidth, 2000000000u);
  ASSERT_TRUE(parseTier("throttled:5ms,300MB/s", options).ok());
  EXPECT_EQ(options.throttle.latency, 5 * millisecond);
  EXPECT_EQ(options.throttle.bandwidth, 300000000u);
  EXPECT_TRUE(parseTier("throttled:60s,1TiB/s", options).ok()) << "the bounds of the configuration";
  ASSERT_TRUE(parseTier("none", options).ok());
  EXPECT_EQ(options.kind, TierOptions::Kind::None);
}

TEST(TierText, ErrorsNameThePart) {
  const char *cases[][2] = {
      {"", "expected none, memory, file:PATH or throttled[:LATENCY,BANDWIDTH], but got ''"},
      {"disk", "expected none, memory, file:PATH or throttled[:LATENCY,BANDWIDTH], but got 'disk'"},
      {"file", "expected file:PATH, but got 'file'"},
      {"file:", "expected file:PATH, but got 'file:'"},
      {"memory:1GiB", "expected nothing after the name of this tier, but got '1GiB'"},
      {"none:", "expected nothing after the name of this tier, but got ''"},
      {"throttled:", "expected LATENCY,BANDWIDTH such as 100us,2GB/s, but got ''"},
      {"throttled:100us", "expected LATENCY,BANDWIDTH such as 100us,2GB/s, but got '100us'"},
      {"throttled:100,2GB/s", "expected a latency such as 100us (ns, us, ms, s), but got '100'"},
      {"throttled:100us,2GB", "expected a bandwidth such as 2GB/s, but got '2GB'"},
      {"throttled:100us,2GB/s,", "expected a bandwidth such as 2GB/s, but got '2GB/s,'"},
      {"throttled:60001ms,2GB/s", "expected a latency of at most 60s, but got '60001ms'"},
      {"throttled:9223372036854775807ns,2GB/s", "expected a latency of at most 60s, but got '9223372036854775807ns'"},
      {"throttled:100us,1025GiB/s", "expected a bandwidth of at most 1TiB/s, but got '1025GiB/s'"},
  };
  for (auto &[text, error] : cases) {
    TierOptions options;
    options.kind = TierOptions::Kind::Memory;
    Status status = parseTier(text, options);
    EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT) << text;
    EXPECT_EQ(status.text(), error);
    EXPECT_EQ(options.kind, TierOptions::Kind::Memory) << "changed by '" << text << "'";
  }
}

TEST(TierMaking, QuotaGivesSlots) {
  TemporaryFolder folder;
  VirtualClock clock;
  Status status;
  TierOptions options;
  EXPECT_EQ(createTier(options, 4096, 1, clock, status), nullptr);
  EXPECT_TRUE(status.ok());
  for (const char *text : {"memory", "throttled"}) {
    ASSERT_TRUE(parseTier(text, options).ok());
    auto tier = createTier(options, 5000, 49999, clock, status);
    ASSERT_TRUE(tier) << status.text();
    EXPECT_EQ(tier->name(), text);
    EXPECT_EQ(tier->pageBytes(), 5000u);
    EXPECT_EQ(tier->slots().total(), 9u);
    EXPECT_TRUE(store(*tier, 8, 1).ok());
    EXPECT_TRUE(load(*tier, 8, 1).ok());
    EXPECT_EQ(createTier(options, 5000, 4999, clock, status), nullptr);
    EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
  }
  ASSERT_TRUE(parseTier("file:" + (folder / "kv").string(), options).ok());
  auto tier = createTier(options, 8192, 4096 + 3 * 12288 + 100, clock, status);
  ASSERT_TRUE(tier) << status.text();
  EXPECT_EQ(tier->slots().total(), 3u);
  EXPECT_EQ(std::filesystem::file_size(folder / "kv"), 4096u + 3 * 12288);
  EXPECT_TRUE(store(*tier, 2, 1).ok());
  EXPECT_TRUE(load(*tier, 2, 1).ok());
  tier.reset();
  EXPECT_FALSE(std::filesystem::exists(folder / "kv"));
  EXPECT_EQ(createTier(options, 8192, 4096 + 12287, clock, status), nullptr);
  EXPECT_EQ(status.text(), "slow tier 'file:" + (folder / "kv").string() + "': expected at least 16384 bytes, which one page with the headers of the file takes, but got 16383");
  EXPECT_EQ(createTier(options, 0, 1 << 20, clock, status), nullptr);
  EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
}

} // namespace
