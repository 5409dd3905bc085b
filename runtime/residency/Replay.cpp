// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The simulation behind replay().
#include "residency/Replay.h"

#include <algorithm>
#include <deque>
#include <memory>

namespace quire::runtime {

using Kind = TraceEvent::Kind;

static constexpr int64_t maxNs = 100'000'000'000; // of one load: sums stay within int64_t

namespace {

struct Page {
  enum class Place : uint8_t { Slow, Queued, Loading, Fast };
  Place place = Place::Slow;
  bool hasContent = false;
  bool isDirty = false;     // its content is not in the slow tier
  bool isPrefetched = false; // and was not demanded since
  bool wasPushedOut = false; // by a prefetch
  int64_t arrival = 0;      // Loading
};

class Simulation final : private Evictable {
public:
  Simulation(const Trace &trace, const ReplayOptions &options)
      : trace_(trace), options_(options), policy_(createPolicy(options.policy, trace.pages, std::min(options.fastPages, trace.pages))),
        order_(trace.pages), uses_(usesOf(trace)), pages_(trace.pages), mass_(trace.pages, 0), chosen_(std::max<size_t>(trace.pages, 1)),
        transferNs_(static_cast<int64_t>(static_cast<double>(trace.pageBytes) * 1e9 / options.bandwidth)) {
    std::vector<bool> isSeen(trace.pages, false);
    for (const TraceEvent &event : trace.events()) // what is read before it is written was there before
      if ((event.kind == Kind::Demand || event.kind == Kind::Write) && !isSeen[event.page]) {
        isSeen[event.page] = true;
        pages_[event.page].hasContent = event.kind == Kind::Demand;
      }
  }

  void run(ReplayResult &out);

private:
  enum class Cause { Demand, Write, Prefetch };

  bool mayEvict(uint32_t page) const override { return page != pinned_ && isReady(page); }

  /// For a prefetch of named pages: none of them gives way.
  class Others final : public Evictable {
  public:
    explicit Others(const Simulation &simulation) : simulation_(simulation) {}
    bool mayEvict(uint32_t page) const override {
      const std::vector<uint32_t> &named = simulation_.named_->pages;
      return simulation_.mayEvict(page) && std::find(named.begin(), named.end(), page) == named.end();
    }

  private:
    const Simulation &simulation_;
  };

  bool isReady(uint32_t number) const {
    const Page &page = pages_[number];
    return page.place == Page::Place::Fast || (page.place == Page::Place::Loading && page.arrival <= now_);
  }

  void waitUntil(int64_t time) {
    if (time <= now_)
      return;
    c_.stallNs += static_cast<uint64_t>(time - now_);
    now_ = time;
    pump();
  }

  void begin(uint32_t page);
  void pump();
  void unqueue(uint32_t page);
  void evict(uint32_t page, Cause cause);
  void makeRoom(Cause cause);
  void demand(uint32_t page);
  void use(uint32_t page, PageUse how);
  void insertNew(uint32_t page);
  void free(uint32_t page);
  void used(uint32_t page);
  bool prefetch(uint32_t page, uint64_t distance);
  void prefetchAhead(uint32_t page);
  void prefetchHot();
  void name(size_t event);
  void prefetchNamed();
  void beginStep();

  bool does(PrefetchKind kind) const { return options_.prefetch == kind || options_.prefetch == PrefetchKind::Hybrid; }

  const Trace &trace_;
  const ReplayOptions &options_;
  std::unique_ptr<Policy> policy_;
  AccessOrder order_;
  std::vector<PageUse> uses_; // of the trace's events
  std::vector<Page> pages_;
  std::vector<float> mass_;      // of the last step, by page
  std::vector<uint32_t> chosen_; // what a strategy chose
  std::vector<uint32_t> observed_;
  struct Asked {
    uint32_t page;
    int64_t time;
  };
  std::deque<Asked> queue_;       // prefetches that have not begun
  std::vector<uint32_t> loading_; // may have arrived
  PagerCounters c_;
  uint32_t resident_ = 0;         // Queued, Loading and Fast
  uint32_t pinned_ = Policy::none;
  size_t asked_ = 0;              // entries of the order ahead that were asked for
  size_t naming_ = 0;             // of options_.named, the next one
  const NamedPages *named_ = nullptr;
  size_t namedAt_ = 0;            // of its pages, the first that was not asked for
  int64_t transferNs_;
  int64_t now_ = 0, channelFree_ = 0, busyNs_ = 0;
};

} // namespace

/// The transfer takes the channel as soon as that is free.
void Simulation::begin(uint32_t page) {
  int64_t start = std::max(now_, channelFree_);
  channelFree_ = start + transferNs_;
  busyNs_ += transferNs_;
  pages_[page].place = Page::Place::Loading;
  pages_[page].arrival = channelFree_ + options_.latencyNs;
  loading_.push_back(page);
}

/// Begins queued prefetches up to now, and forgets loads that have arrived.
void Simulation::pump() {
  int64_t now = now_;
  while (!queue_.empty() && channelFree_ <= now) {
    Asked next = queue_.front();
    queue_.pop_front();
    now_ = std::max(channelFree_, next.time);
    begin(next.page);
    now_ = now;
    ++c_.prefetchIssued;
    c_.bytesInPrefetch += trace_.pageBytes;
  }
  loading_.erase(std::remove_if(loading_.begin(), loading_.end(),
                                [&](uint32_t page) {
                                  if (pages_[page].place == Page::Place::Loading && pages_[page].arrival > now_)
                                    return false;
                                  if (pages_[page].place == Page::Place::Loading)
                                    pages_[page].place = Page::Place::Fast;
                                  return true;
                                }),
                 loading_.end());
}

void Simulation::unqueue(uint32_t page) {
  queue_.erase(std::find_if(queue_.begin(), queue_.end(), [&](const Asked &asked) { return asked.page == page; }));
}

void Simulation::evict(uint32_t number, Cause cause) {
  Page &page = pages_[number];
  ++(cause == Cause::Demand ? c_.evictedForDemand : cause == Cause::Write ? c_.evictedForWrite : c_.evictedForPrefetch);
  if (page.isDirty) {
    ++c_.writeBacks;
    c_.bytesOut += trace_.pageBytes;
  }
  page.isDirty = page.isPrefetched = false;
  page.wasPushedOut = cause == Cause::Prefetch;
  page.place = Page::Place::Slow;
  --resident_;
  policy_->removed(number, true);
}

/// For demands and writes: cancels prefetches and waits, if it must.
void Simulation::makeRoom(Cause cause) {
  while (resident_ >= options_.fastPages) {
    uint32_t victim = policy_->victim(*this);
    if (victim != Policy::none) {
      evict(victim, cause);
    } else if (!queue_.empty()) {
      uint32_t page = queue_.back().page;
      queue_.pop_back();
      ++c_.prefetchCancelled;
      pages_[page].place = Page::Place::Slow;
      pages_[page].isPrefetched = false;
      --resident_;
      policy_->removed(page, true);
    } else {
      int64_t first = INT64_MAX;
      for (uint32_t page : loading_)
        first = std::min(first, pages_[page].arrival);
      waitUntil(first);
    }
  }
}

void Simulation::used(uint32_t page) {
  size_t before = order_.place();
  order_.used(page);
  size_t passed = order_.place() > before ? order_.place() - before : 0;
  asked_ -= std::min(asked_, passed);
}

void Simulation::demand(uint32_t number) {
  Page &page = pages_[number];
  ++c_.demands;
  bool isResident = page.place != Page::Place::Slow, isHit = isReady(number);
  if (isHit) {
    ++c_.hits;
  } else if (isResident) {
    ++c_.late;
    if (page.place == Page::Place::Queued) {
      unqueue(number);
      begin(number);
      ++c_.prefetchIssued;
      c_.bytesInPrefetch += trace_.pageBytes;
    }
    waitUntil(page.arrival);
  } else {
    ++c_.misses;
    c_.pollutedMisses += page.wasPushedOut;
    policy_->missed(number);
    makeRoom(Cause::Demand);
    begin(number);
    ++resident_;
    c_.bytesInDemand += trace_.pageBytes;
    waitUntil(page.arrival);
    policy_->inserted(number, true);
  }
  if (isResident)
    policy_->touched(number);
  c_.prefetchUseful += page.isPrefetched;
  c_.prefetchTimely += page.isPrefetched && isHit;
  page.isPrefetched = page.wasPushedOut = false;
}

void Simulation::insertNew(uint32_t number) {
  policy_->missed(number);
  makeRoom(Cause::Write);
  pages_[number].place = Page::Place::Fast;
  ++resident_;
  policy_->inserted(number, true);
}

void Simulation::free(uint32_t number) {
  Page &page = pages_[number];
  if (page.place == Page::Place::Queued) {
    unqueue(number);
    ++c_.prefetchCancelled;
  }
  resident_ -= page.place != Page::Place::Slow;
  page = Page();
  policy_->removed(number, false);
  order_.forget(number);
}

/// False: no room, or too many are under way.
bool Simulation::prefetch(uint32_t number, uint64_t distance) {
  Page &page = pages_[number];
  if (!page.hasContent)
    return true;
  if (page.place != Page::Place::Slow) {
    ++c_.prefetchRedundant;
    return true;
  }
  pump();
  uint32_t victim = Policy::none;
  bool isFull = resident_ >= options_.fastPages;
  Others others(*this);
  const Evictable &base = named_ ? static_cast<const Evictable &>(others) : *this;
  if (queue_.size() + loading_.size() >= options_.window ||
      (isFull && (victim = policy_->victim(UsedLater(base, order_, distance))) == Policy::none)) {
    ++c_.prefetchDropped;
    return false;
  }
  if (isFull)
    evict(victim, Cause::Prefetch);
  page.place = Page::Place::Queued;
  page.isPrefetched = true;
  ++resident_;
  policy_->inserted(number, false);
  queue_.push_back({number, now_});
  pump();
  return true;
}

void Simulation::prefetchAhead(uint32_t page) {
  if (does(PrefetchKind::LayerAhead) && trace_.numbering.blocks > 0) {
    const PageNumbering &numbering = trace_.numbering;
    uint32_t block = numbering.blockOf(page), next;
    if (layerAhead(numbering, &block, 1, numbering.groupOf(page), &next) == 1)
      prefetch(next, std::min<uint64_t>(order_.distance(next), order_.length() / numbering.groups + 1));
  }
  if (!does(PrefetchKind::Sequential) || asked_ >= options_.window)
    return;
  size_t count = order_.ahead(asked_, options_.window - asked_, chosen_.data());
  for (size_t i = 0; i < count && prefetch(chosen_[i], order_.distance(chosen_[i])); ++i)
    ++asked_;
}

/// The largest masses of the last step, in each group of layers.
void Simulation::prefetchHot() {
  uint32_t groups = trace_.numbering.blocks > 0 ? trace_.numbering.groups : 1;
  std::vector<float> masses;
  std::vector<uint32_t> members, best(options_.topk);
  for (uint32_t group = 0; group < groups; ++group) {
    masses.clear();
    members.clear();
    for (uint32_t page : observed_)
      if (groups == 1 || trace_.numbering.groupOf(page) == group) {
        members.push_back(page);
        masses.push_back(mass_[page]);
      }
    size_t count = topMass(masses.data(), masses.size(), options_.topk, best.data());
    for (size_t i = 0; i < count; ++i)
      prefetch(members[best[i]], order_.distance(members[best[i]]));
  }
}

void Simulation::name(size_t event) {
  if (options_.prefetch != PrefetchKind::Digest)
    return;
  for (; naming_ < options_.named->size() && (*options_.named)[naming_].event <= event; ++naming_) {
    named_ = &(*options_.named)[naming_];
    namedAt_ = 0;
  }
  pump();
  prefetchNamed();
}

/// What is named is used next, whatever the order of the step before says of it.
void Simulation::prefetchNamed() {
  for (; named_ && namedAt_ < named_->pages.size() && queue_.size() + loading_.size() < options_.window; ++namedAt_) {
    if (!prefetch(named_->pages[namedAt_], 1))
      break;
  }
}

void Simulation::beginStep() {
  ++c_.steps;
  size_t rest = order_.length() - order_.place();
  asked_ -= std::min(asked_, rest);
  order_.beginStep();
  pinned_ = Policy::none;
  if (does(PrefetchKind::SeedHotspot))
    prefetchHot();
  observed_.clear();
}

void Simulation::use(uint32_t number, PageUse how) {
  pump();
  pinned_ = Policy::none;
  Page &page = pages_[number];
  if (page.hasContent || how != PageUse::Write)
    demand(number);
  else
    insertNew(number);
  page.hasContent = true;
  if (how != PageUse::Read) {
    c_.seals += !page.isDirty;
    page.isDirty = true;
  }
  used(number);
  pinned_ = number;
  prefetchAhead(number);
}

void Simulation::run(ReplayResult &out) {
  int64_t last = trace_.events().empty() ? 0 : trace_.events().front().ns;
  for (size_t i = 0; i < trace_.events().size(); ++i) {
    const TraceEvent &event = trace_.events()[i];
    bool isDemand = event.kind == Kind::Demand;
    if (event.kind == Kind::Load || event.kind == Kind::Store || event.kind == Kind::Evict || event.kind == Kind::Prefetch)
      continue; // what the recorded run did about it
    if (options_.computeNs < 0)
      now_ += std::max<int64_t>(event.ns - last, 0);
    last = std::max(last, event.ns + (isDemand ? event.duration : 0));
    name(i);
    switch (event.kind) {
    case Kind::Step:
      beginStep();
      break;
    case Kind::Free:
      free(event.page);
      break;
    case Kind::Observe:
      policy_->observed(event.page, event.mass);
      mass_[event.page] = event.mass;
      observed_.push_back(event.page);
      break;
    default:
      if (uses_[i] != PageUse::None)
        use(event.page, uses_[i]);
    }
    if (options_.computeNs >= 0 && isDemand)
      now_ += options_.computeNs;
  }
  c_.stepNs = static_cast<uint64_t>(now_);
  out.counters = c_;
  out.slowBusyNs = busyNs_;
  if (order_.predictions() > 0)
    out.repeatedOrder = static_cast<double>(order_.fulfilled()) / static_cast<double>(order_.predictions());
}

static bool areNamed(const Trace &trace, const std::vector<NamedPages> &named) {
  for (size_t i = 0; i < named.size(); ++i) {
    if (i > 0 && named[i].event <= named[i - 1].event)
      return false;
    for (uint32_t page : named[i].pages)
      if (page >= trace.pages)
        return false;
  }
  return true;
}

static Status check(const Trace &trace, const ReplayOptions &options) {
  auto refuse = [](const char *text) { return failure(QUIRE_INVALID_ARGUMENT, "%s", text); };
  if (trace.pages == 0)
    return refuse("expected a trace with pages, but got none");
  if (options.fastPages < 2)
    return failure(QUIRE_INVALID_ARGUMENT, "expected at least 2 fast pages, but got %u", options.fastPages);
  double transferNs = static_cast<double>(trace.pageBytes) * 1e9 / options.bandwidth;
  if (!(options.bandwidth > 0) || !(transferNs <= maxNs) || options.latencyNs < 0 || options.latencyNs > maxNs || options.computeNs > maxNs)
    return refuse("expected latency, page bytes by bandwidth, and compute time of 0 to 100 s, but got others");
  if (options.window < 1 && options.prefetch != PrefetchKind::None)
    return refuse("expected a prefetch window of at least 1, but got 0");
  if (options.prefetch == PrefetchKind::Digest && !options.named)
    return refuse("not implemented: replay of digest prefetching, as traces hold neither keys nor queries");
  if (options.prefetch == PrefetchKind::Digest && !areNamed(trace, *options.named))
    return refuse("expected pages of the trace, named by ascending events, but got others");
  if (options.prefetch == PrefetchKind::LayerAhead && (trace.numbering.blocks == 0 || trace.numbering.groups < 2))
    return refuse("expected a trace with several groups of layers for layer_ahead, but got one");
  bool hasMass = std::any_of(trace.events().begin(), trace.events().end(),
                             [](const TraceEvent &event) { return event.kind == Kind::Observe; });
  if (options.prefetch == PrefetchKind::SeedHotspot && !hasMass)
    return refuse("expected a trace with attention mass for seed_hotspot, but got none");
  return success();
}

Status replay(const Trace &trace, const ReplayOptions &options, ReplayResult &out) {
  QUIRE_TRY(check(trace, options));
  out = ReplayResult();
  Simulation(trace, options).run(out);
  out.optimum = optimal(trace, options.fastPages);
  return success();
}

std::optional<PagerCounters> recordedCounters(const Trace &trace) {
  PagerCounters c;
  for (const TraceEvent &event : trace.events()) {
    c.steps += event.kind == Kind::Step;
    c.prefetchIssued += event.kind == Kind::Prefetch;
    if (event.kind != Kind::Demand)
      continue;
    if (event.outcome == TraceEvent::Outcome::None)
      return std::nullopt;
    ++c.demands;
    c.hits += event.outcome == TraceEvent::Outcome::Hit;
    c.late += event.outcome == TraceEvent::Outcome::Late;
    c.misses += event.outcome == TraceEvent::Outcome::Miss;
    c.stallNs += static_cast<uint64_t>(event.duration);
  }
  c.bytesInDemand = c.misses * trace.pageBytes;
  c.bytesInPrefetch = c.prefetchIssued * trace.pageBytes;
  if (c.demands == 0)
    return std::nullopt;
  return c;
}

std::optional<PolicyKind> bestPolicy(const Trace &trace, uint32_t fastPages, PolicyKind present, uint64_t *presentMisses) {
  ReplayOptions options;
  options.fastPages = fastPages;
  std::optional<PolicyKind> best;
  uint64_t fewest = 0;
  for (PolicyKind policy : {present, PolicyKind::Lru, PolicyKind::Scan, PolicyKind::Importance, PolicyKind::Arc}) {
    options.policy = policy;
    if (!check(trace, options).ok())
      return std::nullopt;
    ReplayResult result;
    Simulation(trace, options).run(result);
    if (!best && presentMisses)
      *presentMisses = result.counters.misses;
    if (!best || result.counters.misses < fewest) {
      best = policy;
      fewest = result.counters.misses;
    }
  }
  return best;
}

} // namespace quire::runtime
