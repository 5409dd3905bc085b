// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One workload under every kind of fault at every transfer of its slow tier: never a wrong byte, a standstill, or a slot that is lost.
#include "PoolChild.h"

#include <gtest/gtest.h>

using namespace quire::test;
using quire::runtime::Fault;
using quire::runtime::Transfer;

namespace {

#ifdef QUIRE_CHECK_INVARIANTS
constexpr uint64_t stride = 7; // of the transfers that a fault begins at
#else
constexpr uint64_t stride = 1;
#endif

/// What a server does: prompts that begin alike, steps, forks, ends; it goes on after pages were lost.
Program workload(uint8_t tier) {
  Program program;
  program[ShapeField::Tier] = tier;
  program[ShapeField::Fast] = 3;
  program[ShapeField::Slow] = 24;
  program[ShapeField::Window] = 3;
  program[ShapeField::PrefixCache] = 1;
  program[ShapeField::ZeroOnFree] = 1;
  program[ShapeField::Seed] = 5;
  auto add = [&](OpKind kind, int a, int b = 0, int c = 0) {
    program.ops.push_back({kind, static_cast<uint8_t>(a), static_cast<uint8_t>(b), static_cast<uint8_t>(c)});
  };
  add(OpKind::NewTenant, 1, 1);
  for (int round = 0; round < 5; ++round) {
    add(OpKind::Create, 1);
    add(OpKind::Match, 0, 0, 20);
    for (int i = 0; i < 4; ++i)
      add(OpKind::Step, 1 << (round + i) % 3 | 1, 5 + i, 17 * i + round);
    add(OpKind::Recover, 0);
    add(OpKind::Publish, round, 0, 0);
    add(OpKind::Fork, round, 9, 1);
    add(OpKind::Step, 3, 2, round);
    add(OpKind::Step, 4, 3, 0);
    add(OpKind::Read, round);
    add(OpKind::Recover, 0);
    add(OpKind::Truncate, 1, 6);
    if (round > 1)
      add(OpKind::Release, 1);
  }
  return program;
}

struct Case {
  Fault::Kind kind;
  Transfer::Kind on;
  uint64_t count;
};

bool makesSense(const Case &one) {
  bool ofStores = one.kind == Fault::Kind::NoSpace || one.kind == Fault::Kind::TornStore || one.kind == Fault::Kind::SwapSlots;
  bool ofBytes = one.kind == Fault::Kind::FlipPage || one.kind == Fault::Kind::FlipHeader;
  return !(ofStores && one.on != Transfer::Kind::Store) && !(ofBytes && one.on == Transfer::Kind::Erase);
}

class PoolFaults : public ::testing::TestWithParam<uint8_t> {};

} // namespace

TEST_P(PoolFaults, AtEveryTransfer) {
  Program program = workload(GetParam());
  RunCounts whole;
  ASSERT_EQ(runProgram(program, whole), "");
  ASSERT_GT(whole.loads, 20u);
  ASSERT_GT(whole.stores, 20u);
  ASSERT_GT(whole.hits, 0u);
  uint64_t lost = 0, swept = 0;
  for (size_t kind = 0; kind < Fault::kinds; ++kind)
    for (Transfer::Kind on : {Transfer::Kind::Load, Transfer::Kind::Store, Transfer::Kind::Erase})
      for (uint64_t count : {uint64_t(1), uint64_t(5), Fault::always}) {
        Case one{Fault::Kind(kind), on, count};
        uint64_t happened = makesSense(one) ? 1 : 0;
        for (uint64_t first = 0; happened; first += stride) {
          Fault fault;
          fault.kind = one.kind;
          fault.on = on;
          fault.first = first;
          fault.count = count;
          fault.ns = faultNs;
          RunCounts counts;
          ASSERT_EQ(runInChild(program, counts, {}, 120, {fault}), "") << "fault " << kind << " on " << int(on) << ", " << count << " from " << first;
          happened = counts.injected;
          lost += counts.lost;
          ++swept;
        }
      }
  EXPECT_GT(lost, 0u);
  RecordProperty("swept", static_cast<int>(swept));
}

INSTANTIATE_TEST_SUITE_P(Tiers, PoolFaults, ::testing::Values(uint8_t(1), uint8_t(2)), [](const auto &info) { return info.param == 1 ? "memory" : "file"; });
