// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replacement policies against textbook versions, reference sets and theory.
#include "AllocationCount.h"
#include "PageTraces.h"
#include "residency/Optimal.h"
#include "residency/Policy.h"

#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <map>
#include <set>

using namespace quire::runtime;
using namespace quire::test;

namespace {

constexpr PolicyKind allKinds[] = {PolicyKind::Lru, PolicyKind::Scan, PolicyKind::Importance, PolicyKind::Arc};

class Everything final : public Evictable {
public:
  bool mayEvict(uint32_t) const override { return true; }
};

class AllBut final : public Evictable {
public:
  std::set<uint32_t> refused;
  mutable uint64_t asked = 0;
  bool mayEvict(uint32_t page) const override {
    ++asked;
    return refused.count(page) == 0;
  }
};

/// A cache that only demands use.
class Cache {
public:
  Cache(PolicyKind kind, uint32_t pages, uint32_t capacity)
      : policy(createPolicy(kind, pages, capacity)), capacity_(capacity) {}

  std::unique_ptr<Policy> policy;
  std::set<uint32_t> resident;

  /// True: a hit. `out`: the victim, or none.
  bool use(uint32_t page, uint32_t &out) {
    out = Policy::none;
    if (resident.count(page)) {
      policy->touched(page);
      return true;
    }
    policy->missed(page);
    if (resident.size() == capacity_) {
      out = policy->victim(Everything());
      EXPECT_EQ(resident.erase(out), 1u);
      policy->removed(out, true);
    }
    policy->inserted(page, true);
    resident.insert(page);
    return false;
  }

private:
  size_t capacity_;
};

/// The paper's figure 4, word for word. Returns whether x was a hit.
class TextbookArc {
public:
  explicit TextbookArc(size_t c) : c_(c) {}
  std::list<uint32_t> t1, t2, b1, b2; // least recently used in front
  double p = 0;

  bool request(uint32_t x) {
    if (take(t1, x) || take(t2, x)) {
      t2.push_back(x);
      return true;
    }
    double size1 = static_cast<double>(b1.size()), size2 = static_cast<double>(b2.size());
    if (has(b1, x)) {
      p = std::min<double>(static_cast<double>(c_), p + (size1 >= size2 ? 1 : size2 / size1));
      replace(false);
      take(b1, x);
      t2.push_back(x);
    } else if (has(b2, x)) {
      p = std::max(0.0, p - (size2 >= size1 ? 1 : size1 / size2));
      replace(true);
      take(b2, x);
      t2.push_back(x);
    } else {
      size_t l1 = t1.size() + b1.size(), all = l1 + t2.size() + b2.size();
      if (l1 == c_) {
        if (t1.size() < c_) {
          b1.pop_front();
          replace(false);
        } else {
          t1.pop_front();
        }
      } else if (all >= c_) {
        if (all == 2 * c_)
          b2.pop_front();
        replace(false);
      }
      t1.push_back(x);
    }
    return false;
  }

private:
  static bool has(const std::list<uint32_t> &list, uint32_t x) { return std::find(list.begin(), list.end(), x) != list.end(); }
  static bool take(std::list<uint32_t> &list, uint32_t x) {
    auto found = std::find(list.begin(), list.end(), x);
    if (found == list.end())
      return false;
    list.erase(found);
    return true;
  }
  void replace(bool inB2) {
    double size = static_cast<double>(t1.size());
    if (!t1.empty() && (size > p || (inB2 && size == p))) {
      b1.push_back(t1.front());
      t1.pop_front();
    } else {
      b2.push_back(t2.front());
      t2.pop_front();
    }
  }
  size_t c_;
};

uint32_t mixedPage(std::mt19937_64 &random, uint32_t i, uint32_t pages) {
  switch (random() % 4) {
  case 0:
    return i % pages; // scan
  case 1:
    return static_cast<uint32_t>(random() % pages);
  default:
    return static_cast<uint32_t>(random() % (pages / 5 + 1)); // hot
  }
}

} // namespace

TEST(Policy, NamesGoBothWays) {
  for (PolicyKind kind : allKinds) {
    PolicyKind found;
    ASSERT_TRUE(policyFromName(policyName(kind), found));
    EXPECT_EQ(found, kind);
  }
  PolicyKind found;
  EXPECT_FALSE(policyFromName("opt", found));
  EXPECT_FALSE(policyFromName("", found));
}

TEST(Policy, LruAndScanAreTheListsOfTheTextbook) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    uint32_t pages = 40, capacity = 2 + static_cast<uint32_t>(random() % 30);
    for (PolicyKind kind : {PolicyKind::Lru, PolicyKind::Scan}) {
      Cache cache(kind, pages, capacity);
      std::list<uint32_t> order;
      for (uint32_t i = 0; i < 3000; ++i) {
        uint32_t page = mixedPage(random, i, pages), victim, expected = Policy::none;
        auto found = std::find(order.begin(), order.end(), page);
        bool isHit = found != order.end();
        if (isHit) {
          order.erase(found);
        } else if (order.size() == capacity) {
          expected = kind == PolicyKind::Lru ? order.front() : order.back();
          order.remove(expected);
        }
        order.push_back(page);
        ASSERT_EQ(cache.use(page, victim), isHit);
        ASSERT_EQ(victim, expected);
      }
    }
  }
}

TEST(Policy, ArcIsThatOfThePaper) {
  for (uint64_t seed = 0; seed < 25; ++seed) {
    std::mt19937_64 random(seed);
    uint32_t pages = 20 + static_cast<uint32_t>(random() % 100), capacity = 1 + static_cast<uint32_t>(random() % 30);
    Cache cache(PolicyKind::Arc, pages, capacity);
    TextbookArc textbook(capacity);
    uint64_t hits = 0;
    for (uint32_t i = 0; i < 3000; ++i) {
      uint32_t page = mixedPage(random, i, pages), victim;
      bool isHit = textbook.request(page);
      hits += isHit;
      ASSERT_EQ(cache.use(page, victim), isHit) << "seed " << seed << ", request " << i;
      std::set<uint32_t> resident(textbook.t1.begin(), textbook.t1.end());
      resident.insert(textbook.t2.begin(), textbook.t2.end());
      ASSERT_EQ(cache.resident, resident) << "seed " << seed << ", request " << i;
    }
    EXPECT_GT(hits, 0u);
  }
}

TEST(Policy, ArcKeepsWhatIsUsedOftenThroughAScan) {
  Cache arc(PolicyKind::Arc, 1000, 20), lru(PolicyKind::Lru, 1000, 20);
  uint64_t arcHits = 0, lruHits = 0;
  uint32_t victim;
  for (uint32_t round = 0; round < 40; ++round) {
    for (uint32_t twice = 0; twice < 2; ++twice)
      for (uint32_t page = 0; page < 10; ++page) {
        bool arcHit = arc.use(page, victim), lruHit = lru.use(page, victim);
        arcHits += arcHit && twice == 0;
        lruHits += lruHit && twice == 0;
      }
    for (uint32_t i = 0; i < 24; ++i) {
      arc.use(10 + (round * 24 + i) % 990, victim);
      lru.use(10 + (round * 24 + i) % 990, victim);
    }
  }
  EXPECT_EQ(lruHits, 0u);
  EXPECT_EQ(arcHits, 390u); // all but those of the first round
}

/// Averages kept by the definition: in each step all of them decay, then those
/// that were read take their mass.
TEST(Policy, ImportanceIsAMovingAverageWithTiesByLru) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    const uint32_t pages = 24, capacity = 10;
    Cache cache(PolicyKind::Importance, pages, capacity);
    std::map<uint32_t, double> average;
    std::map<uint32_t, uint64_t> used;
    uint64_t uses = 0;
    for (uint32_t step = 0; step < 300; ++step) {
      std::vector<uint32_t> reads = {0}; // read by every step, as a first block is
      for (uint32_t i = 0; i < 6; ++i)
        if (uint32_t page = static_cast<uint32_t>(random() % pages); std::find(reads.begin(), reads.end(), page) == reads.end())
          reads.push_back(page);
      for (uint32_t page : reads) {
        std::set<uint32_t> before = cache.resident;
        uint32_t victim;
        cache.use(page, victim);
        if (victim != Policy::none)
          for (uint32_t other : before) {
            double mine = average[victim], its = average[other];
            if (mine == 0 && its == 0) {
              EXPECT_LE(used[victim], used[other]);
            } else {
              EXPECT_LE(mine, its * (1 + 1e-9)) << victim << " before " << other;
            }
          }
        used[page] = ++uses;
      }
      for (auto &[page, value] : average)
        value *= 0.75;
      for (uint32_t page : reads)
        if (page < pages / 2) { // the rest is never observed
          float mass = static_cast<float>(random() % 1000) / 1000;
          cache.policy->observed(page, mass);
          average[page] += 0.25 * mass;
        }
    }
  }
}

TEST(Policy, ImportanceForgetsWithTheOwnerAndNotWithTheEviction) {
  auto policy = createPolicy(PolicyKind::Importance, 4, 4);
  policy->inserted(0, true);
  policy->inserted(1, true);
  policy->observed(0, 0.9f);
  policy->observed(1, 0.5f);
  policy->observed(0, NAN); // no mass
  policy->removed(0, true);
  policy->inserted(0, true);
  EXPECT_EQ(policy->victim(Everything()), 1u);
  policy->removed(0, false);
  policy->inserted(0, true);
  EXPECT_EQ(policy->victim(Everything()), 0u);
}

TEST(Policy, ScanKeepsWhatAPrefetchBroughtUntilItIsRead) {
  auto policy = createPolicy(PolicyKind::Scan, 8, 8);
  policy->inserted(0, true);
  policy->inserted(1, true);
  policy->inserted(2, false);
  policy->inserted(3, false);
  EXPECT_EQ(policy->victim(Everything()), 1u);
  AllBut allowed;
  allowed.refused = {0, 1};
  EXPECT_EQ(policy->victim(allowed), 3u); // of those to come, the last
  policy->touched(2);
  EXPECT_EQ(policy->victim(Everything()), 2u);
}

TEST(Policy, ArcTakesTheFirstTouchOfAPrefetchedPageAsItsFirstUse) {
  auto policy = createPolicy(PolicyKind::Arc, 8, 3);
  policy->inserted(0, true);
  policy->touched(0); // used twice
  policy->inserted(1, false);
  policy->touched(1); // used once
  policy->inserted(2, true);
  EXPECT_EQ(policy->victim(Everything()), 1u);
  policy->touched(1); // twice
  EXPECT_EQ(policy->victim(Everything()), 2u);
}

TEST(Policy, DenseScanMatchesTheory) {
  const uint32_t pages = 100, steps = 30;
  Trace trace = denseTrace(pages, steps);
  for (uint32_t capacity : {2u, 25u, 50u, 75u, 90u, 99u, 100u}) {
    std::map<PolicyKind, uint64_t> hits;
    for (PolicyKind kind : {PolicyKind::Lru, PolicyKind::Scan}) {
      Cache cache(kind, pages, capacity);
      uint32_t victim;
      for (const TraceEvent &e : trace.events())
        if (e.kind == TraceEvent::Kind::Demand)
          hits[kind] += cache.use(e.page, victim);
    }
    OptimalCounts best = optimal(trace, capacity);
    EXPECT_EQ(hits[PolicyKind::Scan], best.hits) << capacity;
    EXPECT_EQ(hits[PolicyKind::Lru], capacity < pages ? 0 : best.hits) << capacity;
    double theory = static_cast<double>(capacity - 1) / (pages - 1);
    EXPECT_NEAR(static_cast<double>(best.hits) / (pages * (steps - 1)), theory, 0.011) << capacity;
  }
}

TEST(Policy, NoPolicyBeatsTheOptimumAndLruHasTheInclusionProperty) {
  for (uint64_t seed = 0; seed < 15; ++seed) {
    Trace trace = sparseTrace(64, 100, 8, 0.5, seed);
    uint64_t lruBefore = 0, optimumBefore = 0;
    for (uint32_t capacity : {2u, 5u, 12u, 30u, 64u}) {
      OptimalCounts best = optimal(trace, capacity);
      EXPECT_EQ(best.hits + best.misses, best.demands);
      EXPECT_GE(best.hits, optimumBefore);
      optimumBefore = best.hits;
      for (PolicyKind kind : allKinds) {
        Cache cache(kind, 64, capacity);
        uint64_t hits = 0;
        uint32_t victim;
        for (const TraceEvent &e : trace.events()) {
          if (e.kind == TraceEvent::Kind::Demand)
            hits += cache.use(e.page, victim);
          if (e.kind == TraceEvent::Kind::Observe)
            cache.policy->observed(e.page, e.mass);
        }
        EXPECT_LE(hits, best.hits) << policyName(kind) << " " << capacity;
        if (kind == PolicyKind::Lru) {
          EXPECT_GE(hits, lruBefore);
          lruBefore = hits;
        }
      }
    }
  }
}

TEST(Policy, LruHoldsEverythingThatASmallerLruHolds) {
  std::mt19937_64 random(7);
  Cache small(PolicyKind::Lru, 50, 10), large(PolicyKind::Lru, 50, 25);
  for (uint32_t i = 0; i < 5000; ++i) {
    uint32_t page = mixedPage(random, i, 50), victim;
    small.use(page, victim);
    large.use(page, victim);
    ASSERT_TRUE(std::includes(large.resident.begin(), large.resident.end(), small.resident.begin(), small.resident.end()));
  }
}

/// Brute force: tries every choice of victims.
static uint64_t fewestMisses(const std::vector<uint32_t> &reads, size_t at, std::set<uint32_t> resident, uint32_t capacity) {
  uint64_t misses = 0;
  for (; at < reads.size(); ++at) {
    if (resident.count(reads[at]))
      continue;
    ++misses;
    if (resident.size() < capacity) {
      resident.insert(reads[at]);
      continue;
    }
    uint64_t best = UINT64_MAX;
    for (uint32_t victim : resident) {
      std::set<uint32_t> next = resident;
      next.erase(victim);
      next.insert(reads[at]);
      best = std::min(best, fewestMisses(reads, at + 1, next, capacity));
    }
    return misses + best;
  }
  return misses;
}

TEST(Policy, OptimumIsThatOfBruteForce) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    Trace trace = emptyTrace(5, 11);
    std::vector<uint32_t> reads;
    for (int i = 0; i < 11; ++i) {
      reads.push_back(static_cast<uint32_t>(random() % 5));
      trace.record(event(TraceEvent::Kind::Demand, reads.back()));
    }
    uint32_t capacity = 1 + static_cast<uint32_t>(random() % 3);
    EXPECT_EQ(optimal(trace, capacity).misses, fewestMisses(reads, 0, {}, capacity)) << seed;
  }
}

TEST(Policy, OptimumCountsWritesAndEndsOfPages) {
  Trace trace = emptyTrace(3, 20);
  using K = TraceEvent::Kind;
  for (auto [kind, page] : std::vector<std::pair<K, uint32_t>>{
           {K::Write, 0}, {K::Write, 1}, {K::Demand, 0}, {K::Write, 2}, {K::Demand, 0}, {K::Demand, 1},
           {K::Free, 0}, {K::Write, 0}, {K::Write, 2}, {K::Demand, 2}})
    trace.record(event(kind, page));
  OptimalCounts two = optimal(trace, 2), three = optimal(trace, 3);
  EXPECT_EQ(mostLivePages(trace), 3u);
  EXPECT_EQ(three.demands, 4u); // the last write of 2 belongs to the first: the step held it
  EXPECT_EQ(three.misses, 0u);
  EXPECT_EQ(three.bytesOut, 0u);
  EXPECT_EQ(two.misses, 1u); // 1 makes room for 2; 0 makes room for 1, as it ends before it is read again
  EXPECT_EQ(two.demands, 4u);
  OptimalCounts one = optimal(trace, 1);
  EXPECT_EQ(one.misses, 4u);
  EXPECT_EQ(one.demands, 4u);
  EXPECT_EQ(one.bytesIn, 4 * trace.pageBytes);
  EXPECT_EQ(one.bytesOut, 4 * trace.pageBytes); // 0, 1, 2, and what became of 0: each stored once
}

TEST(Policy, RandomOperationsKeepToTheResidentPages) {
  for (PolicyKind kind : allKinds)
    for (uint64_t seed = 0; seed < 8; ++seed) {
      std::mt19937_64 random(seed);
      const uint32_t pages = 60, capacity = 25;
      auto policy = createPolicy(kind, pages, capacity);
      std::set<uint32_t> resident;
      for (int i = 0; i < 6000; ++i) {
        uint32_t page = static_cast<uint32_t>(random() % pages);
        switch (random() % 8) {
        case 0:
          policy->removed(page, false);
          resident.erase(page);
          break;
        case 1:
          policy->observed(page, static_cast<float>(random() % 100) / 100);
          break;
        case 2:
          policy->touched(page); // no effect if it is not resident
          break;
        case 3:
          policy->missed(page);
          break;
        default: {
          if (resident.count(page)) {
            policy->touched(page);
            break;
          }
          AllBut allowed;
          for (uint32_t member : resident)
            if (random() % 3 == 0)
              allowed.refused.insert(member);
          if (random() % 20 == 0)
            allowed.refused = resident;
          uint32_t victim = policy->victim(allowed);
          if (allowed.refused.size() == resident.size()) {
            ASSERT_EQ(victim, Policy::none);
          } else {
            ASSERT_EQ(resident.count(victim), 1u) << policyName(kind);
            ASSERT_EQ(allowed.refused.count(victim), 0u);
          }
          ASSERT_EQ(policy->victim(allowed), victim) << "an answer changed the next";
          if (resident.size() == capacity && victim != Policy::none) {
            policy->removed(victim, true);
            resident.erase(victim);
          }
          if (resident.size() < capacity) {
            policy->inserted(page, random() % 2 == 0);
            resident.insert(page);
          }
        }
        }
      }
    }
}

TEST(Policy, ALongStretchOfRefusedPagesIsNotWalkedForEachVictim) {
  const uint32_t pages = 40000, few = 10;
  for (PolicyKind kind : allKinds) {
    auto policy = createPolicy(kind, pages, pages);
    AllBut allowed;
    for (uint32_t page = 0; page < pages; ++page) {
      policy->inserted(page, true);
      if (page % (pages / few) != 0)
        allowed.refused.insert(page);
    }
    std::set<uint32_t> given;
    for (uint32_t i = 0; i < few; ++i) {
      uint32_t victim = policy->victim(allowed);
      ASSERT_NE(victim, Policy::none) << policyName(kind);
      EXPECT_TRUE(given.insert(victim).second);
      policy->removed(victim, true);
    }
    // Once around, and the exact search for each: far from pages for each.
    EXPECT_LE(allowed.asked, 2 * pages + few * Policy::exactSearch) << policyName(kind);
    EXPECT_EQ(policy->victim(allowed), Policy::none);
  }
}

TEST(Policy, ExactAmongTheFirstThatAreRefused) {
  const uint32_t pages = 3000;
  for (PolicyKind kind : {PolicyKind::Lru, PolicyKind::Importance, PolicyKind::Arc}) {
    auto policy = createPolicy(kind, pages, pages);
    AllBut allowed;
    for (uint32_t page = 0; page < pages; ++page) {
      policy->inserted(page, true);
      if (page < Policy::exactSearch - 1)
        allowed.refused.insert(page);
    }
    EXPECT_EQ(policy->victim(allowed), Policy::exactSearch - 1) << policyName(kind);
  }
}

#ifndef QUIRE_CHECK_INVARIANTS
TEST(Policy, AllocatesNothingAfterCreation) {
  for (PolicyKind kind : allKinds) {
    const uint32_t pages = 4000, capacity = 2000;
    auto policy = createPolicy(kind, pages, capacity);
    std::vector<bool> resident(pages, false);
    std::mt19937_64 random(1);
    uint32_t count = 0;
    Everything all;
    int64_t before = allocations.load();
    for (int i = 0; i < 100000; ++i) {
      uint32_t page = static_cast<uint32_t>(random() % pages);
      policy->observed(page, 0.5f);
      if (resident[page]) {
        policy->touched(page);
        continue;
      }
      policy->missed(page);
      if (count == capacity) {
        uint32_t victim = policy->victim(all);
        policy->removed(victim, true);
        resident[victim] = false;
        --count;
      }
      policy->inserted(page, i % 2 == 0);
      resident[page] = true;
      ++count;
    }
    EXPECT_EQ(allocations.load(), before) << policyName(kind);
  }
}
#endif
