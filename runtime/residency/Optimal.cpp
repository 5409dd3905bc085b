// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Belady's algorithm over traces.
#include "residency/Optimal.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace quire::runtime {

using Kind = TraceEvent::Kind;

static constexpr uint64_t never = UINT64_MAX;

/// For each event that uses a page: the index of the page's next use.
static std::vector<uint64_t> nextUses(const Trace &trace, const std::vector<PageUse> &uses) {
  const std::vector<TraceEvent> &events = trace.events();
  std::vector<uint64_t> next(events.size(), never), upcoming(trace.pages, never);
  for (size_t i = events.size(); i-- > 0;) {
    if (events[i].kind == Kind::Free)
      upcoming[events[i].page] = never;
    if (uses[i] != PageUse::None)
      next[i] = std::exchange(upcoming[events[i].page], i);
  }
  return next;
}

namespace {

struct Page {
  uint64_t next = never;
  bool isResident = false, hasContent = false, isDirty = false;
};

class Cache {
public:
  Cache(const Trace &trace, uint32_t fastPages) : bytes_(trace.pageBytes), room_(fastPages), pages_(trace.pages) {}

  OptimalCounts counts;

  void use(uint32_t number, PageUse how, uint64_t next) {
    Page &page = pages_[number];
    if (page.hasContent || how != PageUse::Write) {
      ++counts.demands;
      ++(page.isResident ? counts.hits : counts.misses);
      counts.bytesIn += page.isResident ? 0 : bytes_;
    }
    if (!page.isResident) {
      if (resident_ == room_)
        evict();
      page.isResident = true;
      ++resident_;
    }
    page.hasContent = true;
    page.isDirty |= how != PageUse::Read;
    page.next = next;
    farthest_.emplace(next, number);
  }

  void free(uint32_t number) {
    resident_ -= pages_[number].isResident;
    pages_[number] = Page();
  }

private:
  void evict() {
    for (;;) {
      auto [next, number] = farthest_.top();
      farthest_.pop();
      Page &page = pages_[number];
      if (!page.isResident || page.next != next)
        continue; // it was used, evicted or freed since
      counts.bytesOut += page.isDirty ? bytes_ : 0;
      page.isResident = page.isDirty = false;
      --resident_;
      return;
    }
  }

  uint64_t bytes_;
  uint32_t room_, resident_ = 0;
  std::vector<Page> pages_;
  std::priority_queue<std::pair<uint64_t, uint32_t>> farthest_;
};

} // namespace

OptimalCounts optimal(const Trace &trace, uint32_t fastPages) {
  std::vector<PageUse> uses = usesOf(trace);
  std::vector<uint64_t> next = nextUses(trace, uses);
  Cache cache(trace, std::max<uint32_t>(fastPages, 1));
  for (size_t i = 0; i < next.size(); ++i) {
    const TraceEvent &event = trace.events()[i];
    if (uses[i] != PageUse::None)
      cache.use(event.page, uses[i], next[i]);
    else if (event.kind == Kind::Free)
      cache.free(event.page);
  }
  return cache.counts;
}

static bool isUse(const TraceEvent &event) { return event.kind == Kind::Demand || event.kind == Kind::Write; }

uint32_t mostLivePages(const Trace &trace) {
  std::vector<bool> isLive(trace.pages, false);
  std::vector<bool> isWritten(trace.pages, false);
  uint32_t live = 0, most = 0;
  // A page that is demanded before it is written was there at the start.
  for (const TraceEvent &event : trace.events()) {
    if (event.kind == Kind::Demand && !isWritten[event.page] && !isLive[event.page]) {
      isLive[event.page] = true;
      ++live;
    }
    if (isUse(event) || event.kind == Kind::Free)
      isWritten[event.page] = true;
  }
  most = live;
  for (const TraceEvent &event : trace.events()) {
    if (event.kind == Kind::Step)
      continue;
    bool was = isLive[event.page], is = isUse(event) || (was && event.kind != Kind::Free);
    isLive[event.page] = is;
    live += is;
    live -= was;
    most = std::max(most, live);
  }
  return most;
}

} // namespace quire::runtime
