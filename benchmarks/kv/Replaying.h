// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The traces of the experiments on residency, and their replay over a slow tier of 100 us and 2 GB/s.
#ifndef QUIRE_BENCHMARKS_KV_REPLAYING_H
#define QUIRE_BENCHMARKS_KV_REPLAYING_H

#include "Experiment.h"
#include "Workloads.h"
#include "residency/Replay.h"

namespace quire::kvbench {

enum class TraceKind { Dense, Sparse, Dialogue, Document };
constexpr TraceKind allTraces[] = {TraceKind::Dense, TraceKind::Sparse, TraceKind::Dialogue, TraceKind::Document};
/// "dense", "sparse", "dialogue", "document".
const char *traceName(TraceKind kind);

TraceShape residencyShape(bool quick);
runtime::Trace traceOf(TraceKind kind, const TraceShape &shape, uint64_t seed);

/// `budget`: share of the pages that are alive together.
runtime::ReplayOptions replayAt(const runtime::Trace &trace, double budget);
/// Throws std::runtime_error where the runtime refuses the options.
runtime::ReplayResult replayed(const runtime::Trace &trace, const runtime::ReplayOptions &options);

/// One where nothing is random.
int64_t repeatsOf(TraceKind kind, const Options &options);

Json parametersOf(const TraceShape &shape, const Options &options);

} // namespace quire::kvbench

#endif // QUIRE_BENCHMARKS_KV_REPLAYING_H
