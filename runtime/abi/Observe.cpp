// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: traces, the doctor, metrics.
#include "abi/Handles.h"
#include "doctor/Doctor.h"
#include "doctor/Prometheus.h"
#include "residency/Optimal.h"

#include <cmath>

using namespace quire::runtime;

/// Longer traces make the doctor slow.
static constexpr size_t maxReplayedEvents = size_t(1) << 22;

/// Share of demands that came in the order of the step before, and the misses of the best policy.
static void readTrace(const Trace &trace, Vitals &out) {
  if (trace.events().empty() || trace.dropped() > 0 || trace.events().size() > maxReplayedEvents)
    return;
  AccessOrder order(trace.pages);
  for (const TraceEvent &event : trace.events()) {
    if (event.kind == TraceEvent::Kind::Step)
      order.beginStep();
    else if (event.kind == TraceEvent::Kind::Demand)
      order.used(event.page);
    else if (event.kind == TraceEvent::Kind::Free)
      order.forget(event.page);
  }
  if (order.predictions() > 0)
    out.repeatedOrder = static_cast<double>(order.fulfilled()) / static_cast<double>(order.predictions());
  out.optimalMisses = optimal(trace, trace.fastPages).misses;
}

static Vitals vitalsOf(const Pool &pool, const quire_doctor_options &options) {
  Vitals vitals;
  vitals.blockTokens = static_cast<uint64_t>(pool.blockTokens());
  uint64_t used = static_cast<uint64_t>(pool.blocksTotal() - pool.blocksFree());
  uint64_t block = static_cast<uint64_t>(pool.blockBytes());
  vitals.allocatedBytes = used * block;
  vitals.liveBytes = vitals.allocatedBytes - static_cast<uint64_t>(pool.emptyPositions()) * block / vitals.blockTokens;
  vitals.freeBytes = vitals.largestFreeBytes = static_cast<uint64_t>(pool.blocksFree()) * block;
  vitals.tableBytes = pool.tableBytes();
  vitals.kvBytes = static_cast<uint64_t>(pool.blocksTotal()) * block;
  vitals.preemptions = static_cast<uint64_t>(std::max<int64_t>(0, options.preemptions));
  const Pager *pager = pool.pager();
  if (!pager)
    return vitals;
  vitals.counters = pager->counters();
  if (const AttentionSpread &spread = pager->attention(); spread.samples > 0) {
    vitals.attentionEntropy = spread.entropy / static_cast<double>(spread.samples);
    vitals.attentionPages = std::exp(spread.logBlocks / static_cast<double>(spread.samples));
  }
  vitals.policy = pager->policyKind();
  vitals.prefetch = pager->prefetchWindow() > 0 ? PrefetchKind::LayerAhead : PrefetchKind::None;
  vitals.window = static_cast<uint32_t>(pager->prefetchWindow());
  vitals.fastBytes = pager->fastPages() * pager->geometry().pageBytes;
  vitals.slowBytes = pager->slow().slots().total() * pager->geometry().pageBytes;
  if (const Trace *trace = pool.trace())
    readTrace(*trace, vitals);
  return vitals;
}

extern "C" {

quire_status quire_pool_set_prefetch_window(quire_pool *pool, int64_t pages) {
  if (!pool)
    return nullArgument("pool");
  if (pages < 0 || pages > INT32_MAX)
    return report(failure(QUIRE_INVALID_ARGUMENT, "expected a window of at least 0 pages, but got %lld",
                          static_cast<long long>(pages)));
  if (Pager *pager = pool->pool->pager())
    pager->setPrefetchWindow(pages);
  return QUIRE_OK;
}

quire_status quire_pool_trace(quire_pool *pool, int64_t events) {
  return pool ? guarded([&] { return pool->pool->startTrace(events); }) : nullArgument("pool");
}

quire_status quire_pool_write_trace(const quire_pool *pool, const char *path) {
  if (!pool || !path)
    return nullArgument("pool and path");
  return guarded([&] {
    const Trace *trace = pool->pool->trace();
    return trace ? trace->write(path) : failure(QUIRE_INVALID_ARGUMENT, "nothing is being recorded");
  });
}

quire_status quire_doctor(quire_pool *pool, const quire_doctor_options *options, const char **text) {
  if (!pool || !text)
    return nullArgument("pool and text");
  return guarded([&] {
    quire_doctor_options given;
    if (!readOptions(options, given))
      return badStructSize();
    Vitals vitals = vitalsOf(*pool->pool, given);
    std::vector<Finding> findings = diagnose(vitals);
    pool->text = given.json ? doctorJson(vitals, findings) : doctorText(vitals, findings);
    *text = pool->text.c_str();
    return success();
  });
}

quire_status quire_metrics(quire_pool *pool, const char **text) {
  if (!pool || !text)
    return nullArgument("pool and text");
  return guarded([&] {
    const Pager *pager = pool->pool->pager();
    PagerCounters none;
    std::string tier = pager ? pager->slow().name() : std::string();
    pool->text = prometheusText({{tier, "", pager ? &pager->counters() : &none}}, {});
    *text = pool->text.c_str();
    return success();
  });
}

} // extern "C"
