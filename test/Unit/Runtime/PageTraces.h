// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Traces for tests of residency: dense scans, sparse steps, random uses with removals.
#ifndef QUIRE_TEST_UNIT_RUNTIME_PAGETRACES_H
#define QUIRE_TEST_UNIT_RUNTIME_PAGETRACES_H

#include "residency/Trace.h"

#include <algorithm>
#include <random>
#include <vector>

namespace quire::test {

using runtime::Trace;
using runtime::TraceEvent;

inline TraceEvent event(TraceEvent::Kind kind, uint32_t page, int64_t ns = 0) {
  TraceEvent made{};
  made.kind = kind;
  made.page = page;
  made.ns = ns;
  return made;
}

inline Trace emptyTrace(uint32_t pages, size_t capacity) {
  Trace trace(capacity);
  trace.pages = pages;
  trace.pageBytes = 65536;
  return trace;
}

/// Every step reads pages 0 .. pages-1, `pageNs` each.
inline Trace denseTrace(uint32_t pages, uint32_t steps, int64_t pageNs = 0) {
  Trace trace = emptyTrace(pages, size_t(steps) * (pages + 1));
  int64_t now = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    trace.record(event(TraceEvent::Kind::Step, 1, now));
    for (uint32_t page = 0; page < pages; ++page, now += pageNs)
      trace.record(event(TraceEvent::Kind::Demand, page, now));
  }
  return trace;
}

/// Every step reads `topk` pages: the first, the last two, and others of which a
/// share `sticky` stay from step to step and the rest follow Zipf's law. Each page
/// read is observed with a mass that falls with its rank.
inline Trace sparseTrace(uint32_t pages, uint32_t steps, uint32_t topk, double sticky, uint64_t seed, int64_t pageNs = 0) {
  Trace trace = emptyTrace(pages, size_t(steps) * (2 * topk + 1));
  std::mt19937_64 random(seed);
  std::vector<uint32_t> ranks(pages), chosen;
  for (uint32_t i = 0; i < pages; ++i)
    ranks[i] = i;
  std::shuffle(ranks.begin(), ranks.end(), random);
  std::vector<double> weights(pages);
  for (uint32_t i = 0; i < pages; ++i)
    weights[ranks[i]] = 1.0 / (i + 1);
  std::discrete_distribution<uint32_t> zipf(weights.begin(), weights.end());
  std::uniform_real_distribution<double> share(0, 1);
  int64_t now = 0;
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<uint32_t> next = {0, pages - 2, pages - 1};
    auto has = [&](uint32_t page) { return std::find(next.begin(), next.end(), page) != next.end(); };
    for (uint32_t page : chosen)
      if (!has(page) && next.size() < topk && share(random) < sticky)
        next.push_back(page);
    while (next.size() < topk)
      if (uint32_t page = zipf(random); !has(page))
        next.push_back(page);
    chosen = next;
    std::sort(next.begin(), next.end());
    trace.record(event(TraceEvent::Kind::Step, 1, now));
    for (uint32_t page : next) {
      trace.record(event(TraceEvent::Kind::Demand, page, now));
      TraceEvent observed = event(TraceEvent::Kind::Observe, page, now += pageNs);
      observed.mass = static_cast<float>(std::min(1.0, weights[page]));
      trace.record(observed);
    }
  }
  return trace;
}

/// Reads, writes of old and new pages, and ends of pages.
inline Trace randomTrace(uint32_t pages, size_t events, uint64_t seed) {
  Trace trace = emptyTrace(pages, events);
  std::mt19937_64 random(seed);
  std::vector<bool> isLive(pages, false);
  uint32_t span = 1 + static_cast<uint32_t>(random() % pages);
  while (trace.events().size() < events) {
    uint64_t what = random() % 100;
    uint32_t page = static_cast<uint32_t>(random() % (random() % 3 ? span : pages));
    if (what < 3)
      trace.record(event(TraceEvent::Kind::Step, 1));
    else if (what < 8 && isLive[page])
      trace.record(event(TraceEvent::Kind::Free, page)), isLive[page] = false;
    else if (isLive[page] && what < 85)
      trace.record(event(TraceEvent::Kind::Demand, page));
    else
      trace.record(event(TraceEvent::Kind::Write, page)), isLive[page] = true;
  }
  return trace;
}

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_PAGETRACES_H
