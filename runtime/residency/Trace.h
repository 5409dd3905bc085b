// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The record of what a run asked of its pages, for replay with other policies and for viewers of trace events.
#ifndef QUIRE_RUNTIME_RESIDENCY_TRACE_H
#define QUIRE_RUNTIME_RESIDENCY_TRACE_H

#include "core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace quire::runtime {

struct TraceEvent {
  enum class Kind : uint8_t {
    Step,     // begins; page: its number of rows
    Demand,   // page read by the step
    Write,    // page written by the step, new or not
    Prefetch, // page asked for
    Load,     // page moved into the fast tier; `duration`
    Store,    // page written back; `duration`
    Evict,    // page gave way
    Free      // page's owner ended: content gone
  };
  enum class Outcome : uint8_t { None, Hit, Late, Miss };
  Kind kind;
  Outcome outcome = Outcome::None;
  uint32_t page = 0;
  uint32_t layer = 0;    // first of the page's layers
  int64_t ns = 0;        // since the trace began
  int64_t duration = 0;
};

/// At most `capacity` events, those after are counted only. Recording allocates
/// nothing.
class Trace {
public:
  explicit Trace(size_t capacity) { events_.reserve(capacity); }

  void record(const TraceEvent &event) {
    if (events_.size() < events_.capacity())
      events_.push_back(event);
    else
      ++dropped_;
  }
  const std::vector<TraceEvent> &events() const { return events_; }
  uint64_t dropped() const { return dropped_; }

  // Geometry that a replay needs.
  uint32_t pages = 0;
  uint64_t pageBytes = 0;
  uint32_t fastPages = 0;

  /// Trace event JSON, which Perfetto and chrome://tracing open. Written to a
  /// temporary name and renamed.
  Status write(const std::string &path) const;
  static Status read(const std::string &path, Trace &out);

private:
  std::vector<TraceEvent> events_;
  uint64_t dropped_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_TRACE_H
