// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The record of what a run asked of its pages, for replay with other policies and for viewers of trace events.
#ifndef QUIRE_RUNTIME_RESIDENCY_TRACE_H
#define QUIRE_RUNTIME_RESIDENCY_TRACE_H

#include "core/Status.h"
#include "residency/Prefetch.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::runtime {

struct TraceEvent {
  enum class Kind : uint8_t {
    Step,     // begins; page: its number of rows
    Demand,   // page with content used by the step, before any Write of it; `duration`: waited for it
    Write,    // page written by the step, new or not
    Prefetch, // page asked for
    Load,     // page moved into the fast tier; `duration`
    Store,    // page written back; `duration`
    Evict,    // page gave way
    Free,     // page's owner ended: content gone
    Observe   // `mass`: share of the step's attention that the page had
  };
  enum class Outcome : uint8_t { None, Hit, Late, Miss };
  Kind kind;
  Outcome outcome = Outcome::None;
  uint32_t page = 0;
  uint32_t layer = 0;    // first of the page's layers
  int64_t ns = 0;        // since the trace began
  int64_t duration = 0;
  float mass = 0;
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
  /// The last recorded demand of a step waited so long for its pages.
  void waited(int64_t duration) {
    for (size_t i = events_.size(); dropped_ == 0 && i > 0 && events_[i - 1].kind != TraceEvent::Kind::Step; --i)
      if (events_[i - 1].kind == TraceEvent::Kind::Demand) {
        events_[i - 1].duration = duration;
        break;
      }
  }
  const std::vector<TraceEvent> &events() const { return events_; }
  uint64_t dropped() const { return dropped_; }

  // Geometry that a replay needs.
  uint32_t pages = 0;
  uint64_t pageBytes = 0;
  uint32_t fastPages = 0;
  PageNumbering numbering; // blocks 0: not known

  /// Trace event JSON, which Perfetto and chrome://tracing open: a first line with
  /// the geometry, one event a line, a last line. Written to a temporary name and
  /// renamed.
  Status write(const std::string &path) const;
  /// Reads what write() wrote, line by line; an error names line and field.
  static Status read(const std::string &path, Trace &out);
  /// The same from memory; `name` is for errors.
  static Status parse(const std::string &name, std::string_view text, Trace &out);

  static constexpr uint64_t maxFileBytes = uint64_t(1) << 30;
  static constexpr uint32_t maxPages = uint32_t(1) << 26;

private:
  std::vector<TraceEvent> events_;
  uint64_t dropped_ = 0;
};

enum class PageUse : uint8_t { None, Read, Write, ReadAndWrite };

/// How each event uses its page, which no policy changes. A step that writes a page
/// which it has used before held that page in between: the write is no use of its
/// own (None), the earlier use becomes one that writes.
std::vector<PageUse> usesOf(const Trace &trace);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_TRACE_H
