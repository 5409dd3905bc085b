// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shapes of the traces, and options of replays.
#include "Replaying.h"

#include <algorithm>
#include <stdexcept>

namespace quire::kvbench {

using namespace quire::runtime;

const char *traceName(TraceKind kind) {
  static constexpr const char *names[] = {"dense", "sparse", "dialogue", "document"};
  return names[static_cast<size_t>(kind)];
}

TraceShape residencyShape(bool quick) {
  TraceShape shape;
  shape.blocks = quick ? 40 : 120;
  shape.steps = quick ? 20 : 80;
  return shape;
}

Trace traceOf(TraceKind kind, const TraceShape &shape, uint64_t seed) {
  switch (kind) {
  case TraceKind::Dense:
    return denseTrace(shape);
  case TraceKind::Sparse:
    return sparseTrace(shape, {std::max<uint32_t>(8, shape.blocks / 8), 0.8}, seed);
  case TraceKind::Dialogue:
    return dialogueTrace(shape, {}, seed);
  case TraceKind::Document:
    return documentTrace(shape, shape.blocks / 5, seed);
  }
  throw std::logic_error("no such trace");
}

ReplayOptions replayAt(const Trace &trace, double budget) {
  ReplayOptions options;
  options.fastPages = std::max<uint32_t>(2, static_cast<uint32_t>(budget * mostLivePages(trace)));
  return options;
}

ReplayResult replayed(const Trace &trace, const ReplayOptions &options) {
  ReplayResult result;
  Status status = replay(trace, options, result);
  if (!status.ok())
    throw std::runtime_error(status.text());
  return result;
}

int64_t repeatsOf(TraceKind kind, const Options &options) { return kind == TraceKind::Dense ? 1 : options.repeats; }

Json parametersOf(const TraceShape &shape, const Options &options) {
  ReplayOptions tier;
  return {{"blocks", shape.blocks},        {"groups", shape.groups},     {"steps", shape.steps},
          {"page_bytes", shape.pageBytes}, {"compute_ns", shape.pageNs}, {"latency_ns", tier.latencyNs},
          {"bandwidth", tier.bandwidth},   {"repeats", options.repeats}, {"seed", options.seed}};
}

} // namespace quire::kvbench
