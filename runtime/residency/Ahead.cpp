// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What steps attend to, and the pages that are fetched ahead of need because of it.
#include "residency/PagerAllowed.h"

#include <algorithm>
#include <cmath>

namespace quire::runtime {

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

void Pager::observe(const float *shares) {
  if (!inStep_ || holds_ == 0)
    return;
  shares_.resize(pages_.size(), 0.0f);
  for (int64_t s = 0; s < step_.sequences; ++s) {
    double entropy = 0;
    int64_t blocks = geometry_.blocksFor(step_.pastLens[s] + step_.tokenCounts[s]);
    for (int64_t i = 0; i < blocks; ++i) {
      float share = shares[s * step_.stride + i];
      uint32_t number = pageAt(group_, s, i);
      if (share > 0 && shares_[number] == 0)
        observed_.push_back(number);
      shares_[number] = std::max(shares_[number], share);
      if (share > 0)
        entropy -= share * std::log(static_cast<double>(share));
    }
    if (blocks < 2)
      continue;
    attention_.entropy += entropy;
    attention_.logBlocks += std::log(static_cast<double>(blocks));
    ++attention_.samples;
  }
}

/// What had no share is not reported: the policy counts it as nothing.
void Pager::reportObserved() {
  if (!mass_.empty() && !observed_.empty()) {
    lookedAt_ = group_;
    for (int64_t s = 0; s < step_.sequences; ++s)
      for (int64_t i = 0, end = geometry_.blocksFor(step_.pastLens[s] + step_.tokenCounts[s]); i < end; ++i) {
        uint32_t number = pageAt(group_, s, i);
        mass_[number] = shares_[number];
      }
  }
  for (uint32_t number : observed_) {
    policy_->observed(number, shares_[number]);
    note(TraceEvent::Kind::Observe, number, TraceEvent::Outcome::None, shares_[number]);
    shares_[number] = 0;
  }
  observed_.clear();
}

//===----------------------------------------------------------------------===//
// Tuning
//===----------------------------------------------------------------------===//

void Pager::setPrefetch(const Prefetching &prefetch) {
  options_.prefetch = prefetch;
  makeRoomToLook();
}

void Pager::prepare(int64_t sequences) {
  if (static_cast<size_t>(sequences) <= windows_.size())
    return;
  windows_.resize(static_cast<size_t>(sequences));
  remaining_.resize(static_cast<size_t>(sequences));
  named_.resize(static_cast<size_t>(sequences));
  makeRoomToLook();
}

/// What is known of the attention ends with the strategies that look at it.
void Pager::makeRoomToLook() {
  if (!options_.prefetch.looksAtAttention())
    return mass_.clear();
  hot_.resize(windows_.size() * topk());
  scores_.resize(blocks_);
  shares_.resize(pages_.size(), 0.0f);
  mass_.resize(pages_.size(), 0.0f);
  observed_.reserve(blocks_);
}

//===----------------------------------------------------------------------===//
// Fetching
//===----------------------------------------------------------------------===//

/// Without waiting, and at no cost to a page that is wanted earlier. Of pages that a query named that are these themselves: when
/// others are wanted, nobody knows.
Pager::Fetch Pager::prefetchPage(uint32_t number) {
  uint32_t slot;
  if (!takeFast(slot)) {
    uint32_t victim = policy_->victim(Allowed(*this, bestCount_ > 0, groupOf(number)));
    if (victim == none)
      return Fetch::NoRoom;
    if (pages_[victim].dirty) {
      counters_.evictedForPrefetch += startStore(victim, true);
      return Fetch::NotYet;
    }
    pages_[victim].polluted = true;
    ++counters_.evictedForPrefetch;
    evict(victim);
    if (!takeFast(slot))
      return Fetch::NotYet;
  }
  note(TraceEvent::Kind::Prefetch, number);
  pages_[number].brought = true;
  startLoad(number, slot);
  ++prefetching_;
  ++counters_.prefetchIssued;
  ++tenantCounters_[tenant_].prefetchIssued;
  counters_.bytesInPrefetch += geometry_.pageBytes;
  return Fetch::Begun;
}

uint32_t Pager::pageAt(uint32_t group, int64_t sequence, int64_t place) const {
  return pageOf(group, static_cast<uint32_t>(step_.blocks[sequence * step_.stride + place]));
}

/// Places of the sequence's block table that have content and that the group reads.
std::pair<int64_t, int64_t> Pager::rangeOf(const Ask &ask, int64_t sequence) const {
  int64_t past = step_.pastLens[sequence], begin = std::max(ask.first, geometry_.firstBlock(ask.group, past));
  return {begin, std::max(begin, std::min(ask.end, geometry_.blocksFor(past)))};
}

bool Pager::isAway(const Ask &ask) const {
  for (int64_t s = 0; s < step_.sequences; ++s)
    for (auto [i, end] = rangeOf(ask, s); i < end; ++i)
      if (pages_[pageAt(ask.group, s, i)].state == State::Slow)
        return true;
  return false;
}

/// Sets named_ and hot_. Before the step has attended to a layer, layer_ahead names nothing.
void Pager::nameHot(const Ask &ask) {
  uint32_t from = options_.prefetch.predictor == PrefetchPredictor::SeedHotspot ? ask.group : lookedAt_;
  for (int64_t s = 0; s < step_.sequences; ++s) {
    auto [begin, end] = rangeOf(ask, s);
    end = std::min(end, begin + static_cast<int64_t>(scores_.size()));
    for (int64_t i = begin; from != none && i < end; ++i)
      scores_[static_cast<size_t>(i - begin)] = mass_[pageAt(from, s, i)];
    uint32_t *hot = hot_.data() + static_cast<size_t>(s) * topk();
    size_t count = from == none ? 0 : topMass(scores_.data(), static_cast<size_t>(end - begin), topk(), hot);
    for (size_t k = 0; k < count; ++k)
      hot[k] += static_cast<uint32_t>(begin);
    named_[static_cast<size_t>(s)] = static_cast<uint32_t>(count);
  }
}

/// Sets windows_, by what each sequence has yet to get. Returns their sum.
uint64_t Pager::shareWindows(const Ask &ask) {
  for (int64_t s = 0; s < step_.sequences; ++s) {
    uint32_t away = 0;
    uint64_t asked = 0;
    auto count = [&](int64_t place) {
      ++asked;
      away += pages_[pageAt(ask.group, s, place)].state == State::Slow;
    };
    auto [begin, end] = rangeOf(ask, s);
    if (options_.prefetch.strategy == PrefetchStrategy::Hotspot)
      for (uint32_t k = 0; k < named_[static_cast<size_t>(s)]; ++k)
        count(hot_[static_cast<size_t>(s) * topk() + k]);
    else
      for (int64_t i = begin; i < end; ++i)
        count(i);
    remaining_[static_cast<size_t>(s)] = away;
    counters_.prefetchRedundant += asked - away;
  }
  uint64_t window = static_cast<uint64_t>(options_.prefetchWindow), sequences = static_cast<uint64_t>(step_.sequences);
  uint64_t most = std::min(window * sequences, options_.prefetch.bytes / geometry_.pageBytes);
  uint64_t left = most - std::min<uint64_t>(most, prefetching_);
  return batchWindows(remaining_.data(), sequences, static_cast<uint32_t>(window), INT32_MAX, left, windows_.data());
}

/// False: there is no room for more.
bool Pager::fetchFor(int64_t sequence, uint32_t number, uint64_t &left, bool &moved) {
  uint32_t &window = windows_[static_cast<size_t>(sequence)];
  if (window == 0 || pages_[number].state != State::Slow)
    return true;
  tenant_ = step_.tenants ? step_.tenants[sequence] : 0;
  Fetch fetch = prefetchPage(number);
  tenant_ = 0;
  bool begun = fetch == Fetch::Begun;
  moved |= begun;
  window -= begun;
  remaining_[static_cast<size_t>(sequence)] -= begun;
  left -= begun;
  return fetch != Fetch::NoRoom;
}

/// In turns, so that no sequence takes all the room: the hottest page of each, then the next one.
bool Pager::fetchAhead(const Ask &ask) {
  int64_t begun = clock_.now();
  drain();
  prepare(step_.sequences);
  const Prefetching &prefetch = options_.prefetch;
  if (prefetch.looksAtAttention())
    nameHot(ask);
  bool moved = false, room = true, within = true;
  uint64_t left = shareWindows(ask);
  for (uint32_t k = 0; prefetch.looksAtAttention() && k < topk() && left > 0 && room; ++k)
    for (int64_t s = 0; s < step_.sequences && left > 0 && room; ++s)
      if (k < named_[static_cast<size_t>(s)])
        room = fetchFor(s, pageAt(ask.group, s, hot_[static_cast<size_t>(s) * topk() + k]), left, moved);
  for (int64_t i = ask.first; prefetch.strategy != PrefetchStrategy::Hotspot && within && left > 0 && room; ++i) {
    within = false;
    for (int64_t s = 0; s < step_.sequences && left > 0 && room; ++s) {
      auto [begin, end] = rangeOf(ask, s);
      within |= i < end;
      if (i >= begin && i < end)
        room = fetchFor(s, pageAt(ask.group, s, i), left, moved);
    }
  }
  for (int64_t s = 0; s < step_.sequences; ++s)
    counters_.prefetchDropped += std::min(windows_[static_cast<size_t>(s)], remaining_[static_cast<size_t>(s)]);
  flush(Mover::Urgency::Prefetch);
  counters_.tableNs += static_cast<uint64_t>(clock_.now() - begun);
  return moved;
}

void Pager::putOff(const Ask &ask) {
  for (Ask &other : putOff_)
    if (other.group == ask.group) {
      other.first = std::min(other.first, ask.first);
      other.end = std::max(other.end, ask.end);
      return;
    }
  putOff_.push_back(ask);
}

void Pager::fetchPutOff() {
  for (const Ask &ask : putOff_)
    fetchAhead(ask);
  putOff_.clear();
}

bool Pager::prefetch(int64_t layer, int64_t first, int64_t count) {
  if (!inStep_ || layer < 0 || first < 0 || !prefetches())
    return false;
  Ask ask{geometry_.groupOf(layer % geometry_.layers()), first, count < 0 || first > INT64_MAX - count ? INT64_MAX : first + count};
  if (ask.group == group_ && holds_ > 0)
    return false;
  bool byLayerAhead = options_.prefetch.looksAtAttention() && options_.prefetch.predictor == PrefetchPredictor::LayerAhead;
  bool isKnown = holds_ == 0 && (ask.group == 0 || released_ == ask.group - 1);
  if (!byLayerAhead || isKnown)
    return fetchAhead(ask);
  putOff(ask);
  return isAway(ask);
}

} // namespace quire::runtime
