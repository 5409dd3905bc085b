// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Any bytes as a trace: never a crash, and an accepted one can be replayed and never beats the optimum.
#include "residency/Replay.h"

#include <cstdint>
#include <cstdlib>

using namespace quire::runtime;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Trace trace(0);
  Status status = Trace::parse("trace", std::string_view(reinterpret_cast<const char *>(data), size), trace);
  if (!status.ok()) {
    require(!status.text().empty());
    return 0;
  }
  for (const TraceEvent &event : trace.events())
    require((event.kind == TraceEvent::Kind::Step || event.page < trace.pages) && event.ns >= 0 && event.duration >= 0);
  if (trace.pages > 100000) // only tables that are slow to fill
    return 0;
  ReplayOptions options;
  options.policy = static_cast<PolicyKind>(size % 4);
  options.prefetch = size % 3 == 0 ? PrefetchKind::Hybrid : PrefetchKind::None;
  options.fastPages = 2 + static_cast<uint32_t>(size % 7);
  ReplayResult result;
  if (!replay(trace, options, result).ok())
    return 0;
  const PagerCounters &c = result.counters;
  require(c.hits + c.late + c.misses == c.demands && c.prefetchUseful <= c.prefetchIssued);
  require(result.loads() >= result.optimum.misses);
  return 0;
}
