// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Creation, and the demands of steps.
#include "residency/PagerAllowed.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

namespace quire::runtime {

static constexpr double defaultPinShare = 0.25;

size_t Pager::transfersFor(uint64_t fastPages) { return static_cast<size_t>(fastPages) + spareFlights; }

Pager::Pager(const PageGeometry &geometry, const Options &options, uint32_t blocks, uint32_t fastPages,
             std::unique_ptr<Tier> slow, std::unique_ptr<Mover> mover, Clock &clock)
    : geometry_(geometry), options_(options), blocks_(blocks), fastLimit_(fastPages), blockLimit_(blocks), clock_(clock), slow_(std::move(slow)),
      mover_(std::move(mover)), policy_(createPolicy(options.policy, blocks * geometry.groups, fastPages)),
      fastSlots_(fastPages, {}), pages_(size_t(blocks) * geometry.groups), pinned_(blocks), flights_(transfersFor(fastPages)),
      finished_(64), blockStep_(blocks) {
  for (size_t i = flights_.size(); i > 0; --i)
    freeFlights_.push_back(static_cast<uint32_t>(i - 1));
  taken_.reserve(1);
  batch_.reserve(flights_.size());
  for (auto *list : {&held_, &loads_, &fresh_, &written_, &sealed_, &slots_})
    list->reserve(fastPages);
  setPinBudget(defaultPinShare);
  putOff_.reserve(geometry.groups);
  setPrefetch(options.prefetch);
  unerased_.reserve(slow_->slots().total());
  failedStores_.resize(slow_->slots().members().size());
  tierCounters_.resize(slow_->slots().members().size());
}

Pager::~Pager() { mover_.reset(); }

uint64_t Pager::fastPagesOf(const PageGeometry &geometry, uint64_t bytes) {
  return std::min<uint64_t>(bytes / geometry.pageStride, INT32_MAX / 2);
}

Status Pager::countBlocks(const PageGeometry &geometry, uint64_t fastBytes, const Slow &slow, uint64_t &out) {
  uint64_t fast = fastPagesOf(geometry, fastBytes);
  uint64_t blocks = std::min<uint64_t>({blocksIn(geometry, fast, slow.pages, slow.lossy), (UINT32_MAX - 1) / geometry.groups, INT32_MAX});
  if (blocks == 0)
    return failure(QUIRE_OUT_OF_BLOCKS,
                   "a fast tier of %llu bytes and a slow one of %llu hold no block: it takes %u pages of %llu bytes",
                   static_cast<unsigned long long>(fastBytes),
                   static_cast<unsigned long long>(slow.pages * geometry.pageBytes), geometry.groups,
                   static_cast<unsigned long long>(geometry.pageBytes));
  if (blocks < fast / geometry.groups)
    return failure(QUIRE_INVALID_ARGUMENT,
                   "a slow tier of %llu pages that a codec makes smaller gives a pool of %llu blocks, but the fast tier of %llu pages alone would be one of %llu; raise memory.slow.bytes "
                   "(--slow-bytes) to %llu pages of %llu bytes, or leave the codec out",
                   static_cast<unsigned long long>(slow.pages), static_cast<unsigned long long>(blocks), static_cast<unsigned long long>(fast),
                   static_cast<unsigned long long>(fast / geometry.groups),
                   static_cast<unsigned long long>(slow.pages + (fast / geometry.groups - blocks) * geometry.groups),
                   static_cast<unsigned long long>(slow.storedPageBytes));
  out = blocks;
  return success();
}

uint64_t Pager::tableBytes(const PageGeometry &geometry, uint64_t blocks, uint64_t fastPages, uint64_t slowSlots, bool stable) {
  return blocks * geometry.groups * (sizeof(Page) + policyBytesPerPage + 2 * sizeof(float) + (stable ? StablePages::tableBytesPerPage(geometry) : 0)) +
         blocks * (sizeof(uint32_t) + PinnedBlocks::bytesPerBlock()) + transfersFor(fastPages) * (sizeof(Flight) + sizeof(Transfer *)) +
         (fastPages + slowSlots) * (BlockAllocator::bytesPerBlock() + sizeof(uint32_t));
}

Status Pager::create(const PageGeometry &geometry, const Options &options, std::unique_ptr<Tier> slow,
                     std::unique_ptr<Mover> mover, Clock &clock, std::unique_ptr<Pager> &out) {
  uint64_t fast = fastPagesOf(geometry, options.fastBytes);
  uint64_t blocks;
  QUIRE_TRY(countBlocks(geometry, options.fastBytes, {slow->slots().total(), slow->storedPageBytes(), slow->lossy()}, blocks));
  std::unique_ptr<Pager> pager(new Pager(geometry, options, static_cast<uint32_t>(blocks), static_cast<uint32_t>(fast),
                                         std::move(slow), std::move(mover), clock));
  if (options.stable) {
    QUIRE_TRY(StablePages::create(geometry, pager->blocks_, static_cast<uint32_t>(fast), pager->stable_));
  } else {
    QUIRE_TRY(pager->arena_.map((fast + 1) * geometry.pageStride, MappedMemory::Pages::Huge));
    QUIRE_TRY(pager->arena_.populate());
    if (options.poison)
      std::memset(pager->arena_.data(), 0xFF, fast * geometry.pageStride);
  }
  out = std::move(pager);
  return success();
}

int64_t Pager::roomBlocks(int64_t more) const {
  if (!full())
    return INT64_MAX;
  return (int64_t(fastSlots_.freeCount()) + slow_->slots().openCount() + static_cast<int64_t>(slow_->lossy() ? 0 : shadowed_) + more) / geometry_.groups;
}

/// One with a slow slot counts as room already, unless it keeps that.
int64_t Pager::slotsWithout(uint32_t block) const {
  int64_t slots = 0;
  for (uint32_t group = 0; group < geometry_.groups; ++group) {
    const Page &page = pages_[pageOf(group, block)];
    slots += page.state == State::Resident && (page.slow == none || slow_->lossy());
  }
  return slots;
}

uint64_t Pager::metadataBytes() const {
  return pages_.size() * (sizeof(Page) + (stable_ ? StablePages::tableBytesPerPage(geometry_) : 0)) + (shares_.size() + mass_.size()) * sizeof(float) + blocks_ * (sizeof(uint32_t) + PinnedBlocks::bytesPerBlock()) + flights_.size() * sizeof(Flight) +
         (uint64_t(fastSlots_.total()) + slow_->slots().total()) * BlockAllocator::bytesPerBlock() + (digests_ ? digests_->bytes() : 0);
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

void Pager::openTenant(uint32_t tenant) {
  if (tenant >= tenantCounters_.size())
    tenantCounters_.resize(tenant + 1);
  tenantCounters_[tenant] = {};
}

void Pager::note(TraceEvent::Kind kind, uint32_t page, TraceEvent::Outcome outcome, float mass) {
  if (!trace_)
    return;
  TraceEvent event;
  event.kind = kind;
  event.outcome = outcome;
  event.page = page;
  event.layer = kind == TraceEvent::Kind::Step ? 0 : groupOf(page) * geometry_.layersPerPage;
  event.ns = clock_.now() - traceStart_;
  event.mass = mass;
  trace_->record(event);
}

/// When it began and how long it took, not when it is noticed. One that had begun before the trace did is cut there.
void Pager::noteTransfer(TraceEvent::Kind kind, uint32_t page, const Transfer &transfer) {
  if (!trace_)
    return;
  TraceEvent event;
  event.kind = kind;
  event.page = page;
  event.layer = groupOf(page) * geometry_.layersPerPage;
  int64_t begun = std::max(transfer.begun, traceStart_);
  event.ns = begun - traceStart_;
  event.duration = std::max<int64_t>(0, transfer.ended - begun);
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
  bool late = page.state == State::Loading, hit = page.state == State::Resident || page.state == State::Storing;
  for (PagerCounters *counters : {&counters_, &tenantCounters_[tenant_]}) {
    ++counters->demands;
    counters->hits += hit;
    counters->late += late;
    counters->misses += !hit && !late;
    counters->prefetchUseful += page.brought;
    counters->prefetchTimely += page.brought && hit;
    counters->pollutedMisses += !hit && !late && page.polluted;
  }
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

/// Gives slots to what want() has listed, loads first: while every slow slot is
/// taken, only a page that came back lets another one go.
void Pager::provideSlots() {
  size_t loads = 0, fresh = 0; // that have one
  while (loads < loads_.size() || fresh < fresh_.size()) {
    Status room = obtain(loads_.size() - loads, fresh_.size() - fresh);
    if (!room.ok())
      return fail(std::move(room));
    for (; loads < loads_.size() && !slots_.empty(); ++loads) {
      counters_.bytesInDemand += geometry_.pageBytes;
      startLoad(loads_[loads], slots_.back());
      slots_.pop_back();
    }
    flush(Mover::Urgency::Demand);
    size_t first = fresh;
    for (; fresh < fresh_.size() && !slots_.empty(); ++fresh) {
      uint32_t number = fresh_[fresh];
      pages_[number].fast = slots_.back();
      slots_.pop_back();
      if (stable_)
        stable_->use(number);
      become(pages_[number], State::Resident);
      pages_[number].dirty = true;
      ++counters_.seals;
      policy_->inserted(number, true);
    }
    keepWithinBudget(true);
    for (; stable_ && options_.poison && first < fresh; ++first)
      std::memset(addressOf(fresh_[first]), 0xFF, geometry_.pageBytes);
  }
}

/// Brings in what want() has listed, and waits for it.
void Pager::bringIn() {
  waitForAddresses();
  provideSlots();
  int64_t deadline = 0;
  for (uint32_t number : held_) {
    if (pages_[number].state == State::Loading) {
      if (deadline == 0)
        deadline = deadlineFromNow();
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
  if (page.state == State::Storing && !waitFor(number, deadlineFromNow()))
    return fail(failure(QUIRE_PAGE_LOST, "block %u: its write-back does not end", blockOf(number)));
  counters_.seals += !page.dirty;
  page.dirty = true;
  if (digests_)
    digests_->forget(groupOf(number), blockOf(number));
  setRefused(page, false);
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
// Steps
//===----------------------------------------------------------------------===//

Status Pager::checkStep(int64_t distinct) const {
  if (distinct > stepBlocks())
    return failure(QUIRE_OUT_OF_BLOCKS, "a step with %lld blocks, but the fast tier holds %lld pages of a layer",
                   static_cast<long long>(distinct), static_cast<long long>(stepBlocks()));
  return success();
}

/// A refused page cannot leave. So the pages of each group have to fit beside the refused ones of others, or the step could not
/// get them one by one.
Status Pager::checkRefused() {
  for (uint32_t group = 0; refused_ > 0 && group < geometry_.groups; ++group) {
    ++acquireNumber_;
    size_t pages = 0, among = 0;
    for (int64_t s = 0; s < step_.sequences; ++s)
      for (int64_t i = geometry_.firstBlock(group, step_.pastLens[s]), end = geometry_.blocksFor(step_.pastLens[s] + step_.tokenCounts[s]); i < end; ++i) {
        Page &page = pages_[pageOf(group, static_cast<uint32_t>(step_.blocks[s * step_.stride + i]))];
        bool again = page.acquired == acquireNumber_;
        page.acquired = acquireNumber_;
        pages += !again;
        among += !again && page.refused;
      }
    if (pages + refused_ - among > fastPages())
      return noRoom(pages);
  }
  return success();
}

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
  QUIRE_TRY(checkStep(distinct));
  step_ = step;
  QUIRE_TRY(checkRefused());
  inStep_ = true;
  failure_ = success();
  lookedAt_ = released_ = none;
  putOff_.clear();
  stepStart_ = clock_.now();
  ++counters_.steps;
  note(TraceEvent::Kind::Step, static_cast<uint32_t>(step.sequences));
  return success();
}

void Pager::fillSlots(uint32_t group) {
  int32_t grave = static_cast<int32_t>(stable_ ? stable_->graveIndex() : graveSlot());
  for (int64_t s = 0; s < step_.sequences; ++s) {
    const int32_t *blocks = step_.blocks + s * step_.stride;
    int32_t *slots = step_.slots + s * step_.stride;
    int64_t count = geometry_.blocksFor(step_.pastLens[s] + step_.tokenCounts[s]);
    int64_t first = geometry_.firstBlock(group, step_.pastLens[s]);
    std::fill(slots, slots + first, -1); // code that reads them leaves its window
    for (int64_t i = first; i < count; ++i) {
      const Page &page = pages_[pageOf(group, static_cast<uint32_t>(blocks[i]))];
      bool written = (i + 1) * geometry_.blockTokens > step_.pastLens[s];
      bool there = page.state == State::Resident || (page.state == State::Storing && !written);
      graveUsed_ |= !there;
      slots[i] = !there ? grave : stable_ ? blocks[i] : static_cast<int32_t>(page.fast);
    }
    std::fill(slots + count, slots + step_.stride, -1);
  }
}

/// Wants every page of the group that the step reads or writes, once.
void Pager::listPages(uint32_t group) {
  ++acquireNumber_;
  for (int64_t s = 0; s < step_.sequences; ++s) {
    int64_t past = step_.pastLens[s], end = past + step_.tokenCounts[s];
    tenant_ = step_.tenants ? step_.tenants[s] : 0;
    for (int64_t i = geometry_.firstBlock(group, past); i < geometry_.blocksFor(end); ++i) {
      uint32_t number = pageOf(group, static_cast<uint32_t>(step_.blocks[s * step_.stride + i]));
      int64_t stop = (i + 1) * geometry_.blockTokens;
      bool written = stop > past;
      if (pages_[number].acquired != acquireNumber_)
        want(number, i * geometry_.blockTokens < past, written);
      else if (written)
        written_.push_back(number);
      if (written)
        pages_[number].tokens = static_cast<int32_t>(std::min(stop, end) - i * geometry_.blockTokens);
      pages_[number].acquired = acquireNumber_;
      if (written && stop <= end)
        sealed_.push_back(number);
    }
  }
  tenant_ = 0;
}

/// Nobody reads what lies before all windows, but a policy that keeps what was not read lately would keep it.
void Pager::dismissOutside(uint32_t group) {
  if (geometry_.windows[group] == 0 || fastSlots_.freeCount() >= fastPages() / 4)
    return;
  for (int64_t s = 0; s < step_.sequences; ++s)
    for (int64_t i = 0, end = geometry_.firstBlock(group, step_.pastLens[s]); i < end; ++i) {
      uint32_t block = static_cast<uint32_t>(step_.blocks[s * step_.stride + i]), number = pageOf(group, block);
      const Page &page = pages_[number];
      if (page.state != State::Resident || page.pins > 0 || page.acquired == acquireNumber_ || pinned_.holds(block))
        continue;
      if (!page.dirty)
        evict(number);
      else if (canStore(page))
        startStore(number, true);
    }
}

bool Pager::acquire(int64_t layer, quire_kv_view &out) {
  uint32_t group = geometry_.groupOf(layer);
  uint64_t stride = geometry_.pageStride;
  char *base = stable_ ? stable_->group(group) : arena_.data();
  if (!inStep_ || (holds_ > 0 && group != group_)) {
    base = stable_ && holds_ > 0 ? stable_->group(group_) : base;
    out = {base + (stable_ ? stable_->graveIndex() : graveSlot()) * stride, 0, step_.slots, nullptr};
    graveUsed_ = true;
    return false;
  }
  out = {base + geometry_.layerStart[static_cast<size_t>(layer)], static_cast<int64_t>(stride), tables_, nullptr};
  if (holds_++ > 0)
    return true;
  int64_t begun = clock_.now();
  putOff_.erase(std::remove_if(putOff_.begin(), putOff_.end(), [group](const Ask &ask) { return ask.group == group; }), putOff_.end());
  group_ = current_ = group;
  drain();
  uint64_t away = counters_.late + counters_.misses;
  listPages(group);
  dismissOutside(group);
  away = counters_.late + counters_.misses - away;
  int64_t listed = clock_.now();
  bringIn();
  int64_t there = clock_.now();
  if (trace_)
    trace_->waited(there - listed);
  bool translates = !stable_ || failed();
  if (translates)
    fillSlots(group);
  out.tables = tables_ = translates ? step_.slots : step_.blocks;
  int64_t ended = clock_.now();
  counters_.stallNs += static_cast<uint64_t>(there - listed);
  counters_.tableNs += static_cast<uint64_t>(listed - begun + ended - there);
  (away ? latencies_.acquireMiss : latencies_.acquireHit).record(static_cast<uint64_t>(ended - begun));
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
  reportObserved();
  drain();
  if (fastSlots_.freeCount() < fastPages() / 4)
    for (uint32_t number : sealed_)
      if (pages_[number].state == State::Resident && pages_[number].dirty)
        startStore(number, false);
  flush(Mover::Urgency::WriteBack);
  unpinHeld();
  if (stable_)
    emptyGrave();
  released_ = std::exchange(group_, none);
  counters_.tableNs += static_cast<uint64_t>(clock_.now() - begun);
  fetchPutOff();
  return true;
}

/// With addresses that stay each group has its own, which has memory as long as the group is held.
void Pager::emptyGrave() {
  if (!graveUsed_)
    return;
  graveUsed_ = false;
  if (stable_)
    stable_->emptyGrave(group_);
  else
    std::memset(slotAddress(graveSlot()), 0, geometry_.pageBytes);
}

Status Pager::endStep() {
  if (holds_ > 0 || !stable_)
    emptyGrave();
  if (holds_ > 0) {
    unpinHeld();
    holds_ = 0;
    group_ = none;
  }
  inStep_ = false;
  counters_.stepNs += static_cast<uint64_t>(clock_.now() - stepStart_);
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
  size_t usedFast = fastSlots_.total() - fastLimit_, usedSlow = 0; // what was given up counts as used
  auto count = [](std::vector<uint8_t> &users, uint32_t slot, size_t &used) {
    used += slot != none;
    return slot == none || users[slot]++ == 0;
  };
  for (const Page &page : pages_) {
    if (!count(fast, page.fast, usedFast) || !count(slow, page.slow, usedSlow))
      return failure(QUIRE_INVARIANT_BROKEN, "a slot has two pages");
    if (page.fast != none && page.fast >= fastLimit_)
      return failure(QUIRE_INVARIANT_BROKEN, "a page lies where the fast tier was given up");
  }
  for (size_t index = 0; index < flights_.size(); ++index)
    if (flying[index] && flights_[index].page == none &&
        (!count(fast, flights_[index].fast, usedFast) || !count(slow, flights_[index].transfer.slot, usedSlow)))
      return failure(QUIRE_INVARIANT_BROKEN, "a slot has a page and a transfer of another");
  if (stable_)
    QUIRE_TRY(stable_->validate(usedFast - (fastSlots_.total() - fastLimit_), fastLimit_));
  if (usedFast != fastSlots_.total() - fastSlots_.freeCount())
    return failure(QUIRE_INVARIANT_BROKEN, "%zu fast slots in use, but %u taken", usedFast,
                   fastSlots_.total() - fastSlots_.freeCount());
  usedSlow += unerased_.size();
  if (usedSlow + quarantined_ != slow_->slots().total() - slow_->slots().freeCount())
    return failure(QUIRE_INVARIANT_BROKEN, "%zu slow slots in use and %u given up, but %u taken", usedSlow,
                   quarantined_, slow_->slots().total() - slow_->slots().freeCount());
  return success();
}

/// What the tiers count adds up to what the pager does.
Status Pager::validateTiers() const {
  TierCounters sum;
  for (const TierCounters &tier : tierCounters_)
    for (auto field : {&TierCounters::pagesOut, &TierCounters::retries, &TierCounters::pagesLost, &TierCounters::noSpace,
                       &TierCounters::erasuresFailed, &TierCounters::givenUp})
      sum.*field += tier.*field;
  if (sum.pagesOut != counters_.writeBacks || sum.retries != counters_.retries || sum.pagesLost != counters_.pagesLost ||
      sum.noSpace != counters_.noSpace || sum.erasuresFailed != counters_.erasuresFailed || sum.givenUp != quarantined_)
    return failure(QUIRE_INVARIANT_BROKEN, "the slow tiers do not count together what the pager does");
  return success();
}

Status Pager::validate() const {
  QUIRE_TRY(fastSlots_.validate());
  QUIRE_TRY(slow_->slots().validate());
  QUIRE_TRY(validateSlots());
  QUIRE_TRY(validatePins());
  QUIRE_TRY(validateTiers());
  QUIRE_TRY(validateDigests());
  size_t shadowed = 0, leaving = 0, prefetching = 0, refused = 0;
  for (size_t number = 0; number < pages_.size(); ++number) {
    const Page &page = pages_[number];
    bool moving = page.state == State::Loading || page.state == State::Storing;
    bool inFast = moving || page.state == State::Resident;
    if (inFast != (page.fast != none) || moving != (page.transfer != none) ||
        (page.state == State::Slow && (page.slow == none || page.dirty)))
      return failure(QUIRE_INVARIANT_BROKEN, "page %zu: its state does not agree with its slots", number);
    shadowed += page.state == State::Resident && page.slow != none;
    leaving += page.leaving;
    refused += page.refused;
    prefetching += page.state == State::Loading && page.brought;
  }
  if (shadowed != shadowed_ || leaving != leaving_ || prefetching != prefetching_)
    return failure(QUIRE_INVARIANT_BROKEN,
                   "%zu pages in both tiers, %zu leaving, %zu prefetched, but %zu, %zu and %zu counted", shadowed,
                   leaving, prefetching, shadowed_, leaving_, prefetching_);
  if (refused != refused_)
    return failure(QUIRE_INVARIANT_BROKEN, "%zu pages that the codec refused, but %zu counted", refused, refused_);
  if (counters_.hits + counters_.late + counters_.misses != counters_.demands)
    return failure(QUIRE_INVARIANT_BROKEN, "hits, late ones and misses are not all demands");
  if (counters_.writeBacks > counters_.seals)
    return failure(QUIRE_INVARIANT_BROKEN, "more write-backs than pages that changed");
  return success();
}

} // namespace quire::runtime
