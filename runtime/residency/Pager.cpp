// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Creation, pages by hand, and the demands of steps.
#include "residency/PagerAllowed.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace quire::runtime {

/// Part of the fast pages that is not counted as room, so that there is always
/// a page to exchange others with.
static constexpr uint32_t spareShare = 16;

size_t Pager::transfersFor(uint64_t fastPages) { return static_cast<size_t>(fastPages) + spareFlights; }

Pager::Pager(const PageGeometry &geometry, const Options &options, uint32_t blocks, uint32_t fastPages,
             std::unique_ptr<Tier> slow, std::unique_ptr<Mover> mover, Clock &clock)
    : geometry_(geometry), options_(options), blocks_(blocks), clock_(clock), slow_(std::move(slow)),
      mover_(std::move(mover)), policy_(createPolicy(options.policy, blocks * geometry.groups, fastPages)),
      fastSlots_(fastPages, {}), pages_(size_t(blocks) * geometry.groups), flights_(transfersFor(fastPages)),
      finished_(64), blockStep_(blocks) {
  for (size_t i = flights_.size(); i > 0; --i)
    freeFlights_.push_back(static_cast<uint32_t>(i - 1));
  taken_.reserve(1);
  batch_.reserve(flights_.size());
  for (auto *list : {&held_, &loads_, &fresh_, &written_, &sealed_, &slots_})
    list->reserve(fastPages);
  unerased_.reserve(slow_->slots().total());
}

Pager::~Pager() { mover_.reset(); }

Status Pager::create(const PageGeometry &geometry, const Options &options, std::unique_ptr<Tier> slow,
                     std::unique_ptr<Mover> mover, Clock &clock, std::unique_ptr<Pager> &out) {
  uint64_t fast = std::min<uint64_t>(options.fastBytes / geometry.pageBytes, INT32_MAX / 2);
  uint64_t spare = std::max<uint64_t>(1, fast / spareShare);
  uint64_t pages = fast > spare ? fast - spare + slow->slots().total() : 0;
  uint64_t blocks = std::min<uint64_t>(pages / geometry.groups, (UINT32_MAX - 1) / geometry.groups);
  blocks = std::min<uint64_t>(blocks, INT32_MAX);
  if (blocks == 0)
    return failure(QUIRE_OUT_OF_BLOCKS,
                   "a fast tier of %llu bytes and a slow one of %llu hold no block: it takes %u pages of %llu bytes",
                   static_cast<unsigned long long>(options.fastBytes),
                   static_cast<unsigned long long>(slow->slots().total() * geometry.pageBytes), geometry.groups,
                   static_cast<unsigned long long>(geometry.pageBytes));
  std::unique_ptr<Pager> pager(new Pager(geometry, options, static_cast<uint32_t>(blocks), static_cast<uint32_t>(fast),
                                         std::move(slow), std::move(mover), clock));
  QUIRE_TRY(pager->arena_.map((fast + 1) * geometry.pageBytes, MappedMemory::Pages::Huge));
  QUIRE_TRY(pager->arena_.populate());
  if (options.poison)
    std::memset(pager->arena_.data(), 0xFF, fast * geometry.pageBytes);
  out = std::move(pager);
  return success();
}

int64_t Pager::roomBlocks() const {
  if (!full_)
    return INT64_MAX;
  return (fastSlots_.freeCount() + static_cast<int64_t>(shadowed_)) / geometry_.groups;
}

uint64_t Pager::metadataBytes() const {
  return pages_.size() * sizeof(Page) + blockStep_.size() * sizeof(uint32_t) + flights_.size() * sizeof(Flight) +
         (uint64_t(fastSlots_.total()) + slow_->slots().total()) * BlockAllocator::bytesPerBlock();
}

void Pager::setTrace(Trace *trace) {
  trace_ = trace;
  traceStart_ = clock_.now();
  if (!trace)
    return;
  trace->pages = static_cast<uint32_t>(pages_.size());
  trace->pageBytes = geometry_.pageBytes;
  trace->fastPages = fastPages();
  trace->numbering = {blocks_, geometry_.groups, true};
}

void Pager::note(TraceEvent::Kind kind, uint32_t page, TraceEvent::Outcome outcome) {
  if (!trace_)
    return;
  TraceEvent event;
  event.kind = kind;
  event.outcome = outcome;
  event.page = page;
  event.layer = kind == TraceEvent::Kind::Step ? 0 : groupOf(page) * geometry_.layersPerPage;
  event.ns = clock_.now() - traceStart_;
  trace_->record(event);
}

//===----------------------------------------------------------------------===//
// Demands
//===----------------------------------------------------------------------===//

void Pager::countDemand(uint32_t number) {
  Page &page = pages_[number];
  if (inStep_ && page.step == stepNumber_)
    return;
  page.step = stepNumber_;
  ++counters_.demands;
  bool late = page.state == State::Loading, hit = page.state == State::Resident || page.state == State::Storing;
  counters_.hits += hit;
  counters_.late += late;
  counters_.misses += !hit && !late;
  counters_.prefetchUseful += page.brought;
  counters_.prefetchTimely += page.brought && hit;
  counters_.pollutedMisses += !hit && !late && page.polluted;
  page.polluted = false;
  using Outcome = TraceEvent::Outcome;
  note(TraceEvent::Kind::Demand, number, hit ? Outcome::Hit : late ? Outcome::Late : Outcome::Miss);
}

/// A page that was to leave stays.
void Pager::rescue(uint32_t number) {
  Page &page = pages_[number];
  if (!page.leaving)
    return;
  page.leaving = false;
  --leaving_;
  policy_->inserted(number, true);
}

/// Pins the page and puts it on the lists of what it still needs.
void Pager::want(uint32_t number, bool content, bool written) {
  Page &page = pages_[number];
  if (!content && (page.state == State::Lost || page.state == State::Slow)) { // of a step that was not committed
    if (page.slow != none)
      freeSlow(page.slow);
    page.slow = none;
    become(page, State::Absent);
  }
  if (content)
    countDemand(number);
  ++page.pins;
  held_.push_back(number);
  if (written)
    written_.push_back(number);
  switch (page.state) {
  case State::Absent:
    if (content)
      fail(failure(QUIRE_INVARIANT_BROKEN, "block %u is read, but was never written", blockOf(number)));
    else
      fresh_.push_back(number);
    break;
  case State::Slow:
    policy_->missed(number);
    loads_.push_back(number);
    break;
  case State::Loading:
    prefetching_ -= page.brought;
    mover_->promote(flights_[page.transfer].transfer);
    break;
  case State::Storing:
    rescue(number);
    break;
  case State::Resident:
    policy_->touched(number);
    break;
  case State::Lost:
    fail(failure(QUIRE_PAGE_LOST, "block %u cannot be read back", blockOf(number)));
    break;
  }
  page.brought = false;
}

/// Brings in what want() has listed, and waits for it.
void Pager::bringIn() {
  Status room = obtain(loads_.size() + fresh_.size());
  if (!room.ok()) {
    fail(std::move(room));
    loads_.clear();
    fresh_.clear();
  }
  counters_.bytesInDemand += loads_.size() * geometry_.pageBytes;
  for (uint32_t number : loads_) {
    startLoad(number, slots_.back());
    slots_.pop_back();
  }
  flush(Mover::Urgency::Demand);
  for (uint32_t number : fresh_) {
    pages_[number].fast = slots_.back();
    slots_.pop_back();
    become(pages_[number], State::Resident);
    pages_[number].dirty = true;
    ++counters_.seals;
    policy_->inserted(number, true);
  }
  int64_t deadline = 0;
  for (uint32_t number : held_) {
    if (pages_[number].state == State::Loading) {
      if (deadline == 0)
        deadline = clock_.now() + options_.deadlineNs;
      if (!waitFor(number, deadline))
        abandon(number);
    }
    // Also one that was lost while this waited for another.
    if (pages_[number].state == State::Lost)
      fail(failure(QUIRE_PAGE_LOST, "block %u cannot be read back", blockOf(number)));
  }
  for (uint32_t number : written_)
    if (pages_[number].state == State::Resident || pages_[number].state == State::Storing)
      change(number);
}

/// The page is about to be written: its slow slot will be old.
void Pager::change(uint32_t number) {
  Page &page = pages_[number];
  note(TraceEvent::Kind::Write, number);
  if (page.state == State::Storing && !waitFor(number, clock_.now() + options_.deadlineNs))
    return fail(failure(QUIRE_PAGE_LOST, "block %u: its write-back does not end", blockOf(number)));
  counters_.seals += !page.dirty;
  page.dirty = true;
}

void Pager::unpinHeld() {
  for (uint32_t number : held_)
    --pages_[number].pins;
  for (auto *list : {&held_, &loads_, &fresh_, &written_, &sealed_})
    list->clear();
}

void Pager::fail(Status status) {
  if (failure_.ok())
    failure_ = std::move(status);
}

bool Pager::lost(uint32_t block) const {
  for (uint32_t group = 0; group < geometry_.groups; ++group)
    if (pages_[pageOf(group, block)].state == State::Lost)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Pages by hand
//===----------------------------------------------------------------------===//

Status Pager::pin(uint32_t group, uint32_t block, bool write, char *&address) {
  if (group >= geometry_.groups || block >= blocks_ || inStep_)
    return failure(QUIRE_INVALID_ARGUMENT, "no page of block %u in group %u, or a step runs", block, group);
  uint32_t number = pageOf(group, block);
  Page &page = pages_[number];
  if (page.state == State::Absent && !write)
    return failure(QUIRE_INVALID_ARGUMENT, "block %u has no content", block);
  if (page.pins == UINT16_MAX)
    return failure(QUIRE_INVALID_ARGUMENT, "block %u is pinned too often", block);
  if (page.state == State::Resident && !write) { // there is nothing to bring in or to wait for
    countDemand(number);
    policy_->touched(number);
    page.brought = false;
    ++page.pins;
    address = slotAddress(page.fast);
    return success();
  }
  failure_ = success();
  want(number, page.state != State::Absent, write);
  bringIn();
  ++page.pins;
  unpinHeld();
  if (!failure_.ok()) {
    --page.pins;
    return failure_;
  }
  address = slotAddress(page.fast);
  return success();
}

Status Pager::unpin(uint32_t group, uint32_t block) {
  if (group >= geometry_.groups || block >= blocks_ || pages_[pageOf(group, block)].pins == 0)
    return failure(QUIRE_INVALID_ARGUMENT, "block %u is not pinned in group %u", block, group);
  --pages_[pageOf(group, block)].pins;
  return success();
}

Status Pager::copy(uint32_t from, uint32_t to) {
  for (uint32_t group = 0; group < geometry_.groups; ++group) {
    if (pages_[pageOf(group, from)].state == State::Absent)
      continue;
    char *source, *target;
    QUIRE_TRY(pin(group, from, false, source));
    Status made = pin(group, to, true, target);
    if (made.ok()) {
      std::memcpy(target, source, geometry_.pageBytes);
      (void)unpin(group, to);
    }
    (void)unpin(group, from);
    if (!made.ok()) {
      discard(to);
      return made;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

Status Pager::beginStep(const Step &step) {
  assert(!inStep_ && held_.empty());
  if (++stepNumber_ == 0)
    stepNumber_ = 1;
  int64_t distinct = 0;
  for (int64_t s = 0; s < step.sequences; ++s) {
    int64_t count = geometry_.blocksFor(step.pastLens[s] + step.tokenCounts[s]);
    for (int64_t i = 0; i < count; ++i) {
      uint32_t &last = blockStep_[static_cast<uint32_t>(step.blocks[s * step.stride + i])];
      distinct += last != stepNumber_;
      last = stepNumber_;
    }
  }
  if (distinct > stepBlocks())
    return failure(QUIRE_OUT_OF_BLOCKS, "a step with %lld blocks, but the fast tier holds %lld pages of a layer",
                   static_cast<long long>(distinct), static_cast<long long>(stepBlocks()));
  step_ = step;
  inStep_ = true;
  failure_ = success();
  stepStart_ = clock_.now();
  ++counters_.steps;
  note(TraceEvent::Kind::Step, static_cast<uint32_t>(step.sequences));
  return success();
}

void Pager::fillSlots(uint32_t group) {
  int32_t grave = static_cast<int32_t>(fastPages());
  for (int64_t s = 0; s < step_.sequences; ++s) {
    const int32_t *blocks = step_.blocks + s * step_.stride;
    int32_t *slots = step_.slots + s * step_.stride;
    int64_t count = geometry_.blocksFor(step_.pastLens[s] + step_.tokenCounts[s]);
    for (int64_t i = 0; i < count; ++i) {
      const Page &page = pages_[pageOf(group, static_cast<uint32_t>(blocks[i]))];
      bool written = (i + 1) * geometry_.blockTokens > step_.pastLens[s];
      bool there = page.state == State::Resident || (page.state == State::Storing && !written);
      slots[i] = there ? static_cast<int32_t>(page.fast) : grave;
    }
    std::fill(slots + count, slots + step_.stride, -1);
  }
}

/// Wants every page of the group that the step reads or writes, once.
void Pager::listPages(uint32_t group) {
  ++acquireNumber_;
  for (int64_t s = 0; s < step_.sequences; ++s) {
    int64_t past = step_.pastLens[s], end = past + step_.tokenCounts[s];
    for (int64_t i = 0; i < geometry_.blocksFor(end); ++i) {
      uint32_t number = pageOf(group, static_cast<uint32_t>(step_.blocks[s * step_.stride + i]));
      int64_t stop = (i + 1) * geometry_.blockTokens;
      bool written = stop > past;
      if (pages_[number].acquired != acquireNumber_)
        want(number, i * geometry_.blockTokens < past, written);
      else if (written)
        written_.push_back(number);
      pages_[number].acquired = acquireNumber_;
      if (written && stop <= end)
        sealed_.push_back(number);
    }
  }
}

bool Pager::acquire(int64_t layer, quire_kv_view &out) {
  uint32_t group = geometry_.groupOf(layer);
  out = {slotAddress(fastPages()), 0, step_.slots};
  if (!inStep_ || (holds_ > 0 && group != group_))
    return false;
  out = {arena_.data() + geometry_.layerStart[static_cast<size_t>(layer)], static_cast<int64_t>(geometry_.pageBytes),
         step_.slots};
  if (holds_++ > 0)
    return true;
  int64_t begun = clock_.now();
  group_ = current_ = group;
  drain();
  listPages(group);
  int64_t listed = clock_.now();
  bringIn();
  int64_t there = clock_.now();
  if (trace_)
    trace_->waited(there - listed);
  fillSlots(group);
  counters_.stallNs += static_cast<uint64_t>(there - listed);
  counters_.tableNs += static_cast<uint64_t>(listed - begun + clock_.now() - there);
  return true;
}

/// Pages that will not change again are written back early while memory is
/// short, so that they can give way at once later.
bool Pager::release(int64_t layer) {
  if (holds_ == 0 || geometry_.groupOf(layer) != group_)
    return false;
  if (--holds_ > 0)
    return true;
  int64_t begun = clock_.now();
  drain();
  if (fastSlots_.freeCount() < fastSlots_.total() / 4)
    for (uint32_t number : sealed_)
      if (pages_[number].state == State::Resident && pages_[number].dirty)
        startStore(number, false);
  flush(Mover::Urgency::WriteBack);
  unpinHeld();
  group_ = none;
  counters_.tableNs += static_cast<uint64_t>(clock_.now() - begun);
  return true;
}

/// Without waiting, and at no cost to a page that is wanted earlier.
bool Pager::prefetchPage(uint32_t number) {
  uint32_t slot;
  if (!takeFast(slot)) {
    uint32_t victim = policy_->victim(Allowed(*this, false, groupOf(number)));
    if (victim == none)
      return false;
    if (pages_[victim].dirty) {
      counters_.evictedForPrefetch += startStore(victim, true);
      return false;
    }
    pages_[victim].polluted = true;
    ++counters_.evictedForPrefetch;
    evict(victim);
    if (!takeFast(slot))
      return false;
  }
  note(TraceEvent::Kind::Prefetch, number);
  pages_[number].brought = true;
  startLoad(number, slot);
  ++prefetching_;
  ++counters_.prefetchIssued;
  counters_.bytesInPrefetch += geometry_.pageBytes;
  return true;
}

bool Pager::prefetch(int64_t layer, int64_t first, int64_t count) {
  if (!inStep_ || layer < 0 || options_.prefetchWindow <= 0)
    return false;
  uint32_t group = geometry_.groupOf(layer % geometry_.layers());
  if (group == group_ && holds_ > 0)
    return false;
  int64_t begun = clock_.now();
  drain();
  bool moved = false;
  int64_t window = options_.prefetchWindow;
  size_t limit = static_cast<size_t>(window * step_.sequences);
  int64_t longest = 0;
  for (int64_t s = 0; s < step_.sequences; ++s)
    longest = std::max(longest, geometry_.blocksFor(step_.pastLens[s]));
  int64_t end = count < 0 ? longest : std::min(longest, first + count);
  for (int64_t i = first; i < end && prefetching_ < limit; ++i)
    for (int64_t s = 0; s < step_.sequences && prefetching_ < limit; ++s) {
      if (i >= geometry_.blocksFor(step_.pastLens[s]))
        continue;
      uint32_t number = pageOf(group, static_cast<uint32_t>(step_.blocks[s * step_.stride + i]));
      if (pages_[number].state != State::Slow)
        ++counters_.prefetchRedundant;
      else if (prefetchPage(number))
        moved = true;
      else
        ++counters_.prefetchDropped;
    }
  flush(Mover::Urgency::Prefetch);
  counters_.tableNs += static_cast<uint64_t>(clock_.now() - begun);
  return moved;
}

Status Pager::endStep() {
  if (holds_ > 0) {
    unpinHeld();
    holds_ = 0;
    group_ = none;
  }
  inStep_ = false;
  counters_.stepNs += static_cast<uint64_t>(clock_.now() - stepStart_);
  if (!failure_.ok())
    std::memset(slotAddress(fastPages()), 0, geometry_.pageBytes);
  return failure_;
}

//===----------------------------------------------------------------------===//
// Invariants
//===----------------------------------------------------------------------===//

/// Each slot has one page at most, and each taken one a page, a transfer without page, or a defect.
Status Pager::validateSlots() const {
  std::vector<uint8_t> fast(fastSlots_.total()), slow(slow_->slots().total()), flying(flights_.size(), 1);
  for (uint32_t index : freeFlights_)
    flying[index] = 0;
  size_t usedFast = 0, usedSlow = 0;
  auto count = [](std::vector<uint8_t> &users, uint32_t slot, size_t &used) {
    used += slot != none;
    return slot == none || users[slot]++ == 0;
  };
  for (const Page &page : pages_)
    if (!count(fast, page.fast, usedFast) || !count(slow, page.slow, usedSlow))
      return failure(QUIRE_INVARIANT_BROKEN, "a slot has two pages");
  for (size_t index = 0; index < flights_.size(); ++index)
    if (flying[index] && flights_[index].page == none &&
        (!count(fast, flights_[index].fast, usedFast) || !count(slow, flights_[index].transfer.slot, usedSlow)))
      return failure(QUIRE_INVARIANT_BROKEN, "a slot has a page and a transfer of another");
  if (usedFast != fastSlots_.total() - fastSlots_.freeCount())
    return failure(QUIRE_INVARIANT_BROKEN, "%zu fast slots in use, but %u taken", usedFast,
                   fastSlots_.total() - fastSlots_.freeCount());
  usedSlow += unerased_.size();
  if (usedSlow + quarantined_ != slow_->slots().total() - slow_->slots().freeCount())
    return failure(QUIRE_INVARIANT_BROKEN, "%zu slow slots in use and %u given up, but %u taken", usedSlow,
                   quarantined_, slow_->slots().total() - slow_->slots().freeCount());
  return success();
}

Status Pager::validate() const {
  QUIRE_TRY(fastSlots_.validate());
  QUIRE_TRY(slow_->slots().validate());
  QUIRE_TRY(validateSlots());
  size_t shadowed = 0, leaving = 0, prefetching = 0;
  for (size_t number = 0; number < pages_.size(); ++number) {
    const Page &page = pages_[number];
    bool moving = page.state == State::Loading || page.state == State::Storing;
    bool inFast = moving || page.state == State::Resident;
    if (inFast != (page.fast != none) || moving != (page.transfer != none) ||
        (page.state == State::Slow && (page.slow == none || page.dirty)))
      return failure(QUIRE_INVARIANT_BROKEN, "page %zu: its state does not agree with its slots", number);
    shadowed += page.state == State::Resident && page.slow != none;
    leaving += page.leaving;
    prefetching += page.state == State::Loading && page.brought;
  }
  if (shadowed != shadowed_ || leaving != leaving_ || prefetching != prefetching_)
    return failure(QUIRE_INVARIANT_BROKEN,
                   "%zu pages in both tiers, %zu leaving, %zu prefetched, but %zu, %zu and %zu counted", shadowed,
                   leaving, prefetching, shadowed_, leaving_, prefetching_);
  if (counters_.hits + counters_.late + counters_.misses != counters_.demands)
    return failure(QUIRE_INVARIANT_BROKEN, "hits, late ones and misses are not all demands");
  if (counters_.writeBacks > counters_.seals)
    return failure(QUIRE_INVARIANT_BROKEN, "more write-backs than pages that changed");
  return success();
}

} // namespace quire::runtime
