// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replacement by an exponential moving average of the attention mass of pages.
#include "residency/PolicyKinds.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

namespace quire::runtime {

namespace {

/// A page that a step did not read had no mass in it. Steps are told apart by
/// their observations: a second one of the same page begins a new round. All
/// averages decay by the same factor a round, so pages are ordered by
/// log2(average) + round * log2(1 / decay), which only an observation changes.
class Importance final : public Policy {
public:
  Importance(uint32_t pages, uint32_t capacity)
      : score_(pages, nothing), seen_(pages, 0), used_(pages, 0), place_(pages, none), frontier_(exactSearch + 2) {
    heap_.reserve(capacity);
  }

  void inserted(uint32_t page, bool) override {
    assert(place_[page] == none && heap_.size() < heap_.capacity());
    used_[page] = ++uses_;
    place_[page] = static_cast<uint32_t>(heap_.size());
    heap_.push_back(page);
    raise(place_[page]);
  }

  void touched(uint32_t page) override {
    if (place_[page] == none)
      return;
    used_[page] = ++uses_;
    lower(place_[page]);
  }

  void removed(uint32_t page, bool evicted) override {
    if (place_[page] != none) {
      uint32_t place = place_[page], last = heap_.back();
      heap_.pop_back();
      place_[page] = none;
      if (last != page) {
        put(place, last);
        raise(place);
        lower(place_[last]);
      }
    }
    if (!evicted) {
      score_[page] = nothing;
      seen_[page] = 0;
    }
  }

  void observed(uint32_t page, float mass) override {
    if (!(mass >= 0)) // nor NaN
      return;
    if (seen_[page] == round_)
      ++round_;
    seen_[page] = round_;
    double growth = static_cast<double>(round_) * perRound, known = score_[page] - growth;
    double average = (known > -1000 ? std::exp2(known) : 0) + share * std::min(mass, 1.0f);
    double before = score_[page];
    score_[page] = average > 0 ? std::log2(average) + growth : nothing;
    if (place_[page] == none)
      return;
    if (score_[page] < before)
      raise(place_[page]);
    else
      lower(place_[page]);
  }

  uint32_t victim(const Evictable &allowed) override;

private:
  static constexpr double share = 0.25;                                         // of the newest step in the average
  static constexpr double perRound = 0.41503749927884381;                       // log2(1 / (1 - share))
  static constexpr double nothing = -std::numeric_limits<double>::infinity(); // never any mass

  bool before(uint32_t a, uint32_t b) const {
    return score_[a] != score_[b] ? score_[a] < score_[b] : used_[a] < used_[b];
  }

  void put(size_t place, uint32_t page) {
    heap_[place] = page;
    place_[page] = static_cast<uint32_t>(place);
  }

  void raise(size_t place) {
    uint32_t page = heap_[place];
    for (; place > 0 && before(page, heap_[(place - 1) / 2]); place = (place - 1) / 2)
      put(place, heap_[(place - 1) / 2]);
    put(place, page);
  }

  void lower(size_t place) {
    uint32_t page = heap_[place];
    for (;;) {
      size_t child = 2 * place + 1;
      if (child >= heap_.size())
        break;
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child]))
        ++child;
      if (!before(heap_[child], page))
        break;
      put(place, heap_[child]);
      place = child;
    }
    put(place, page);
  }

  std::vector<double> score_;
  std::vector<uint64_t> seen_; // round of the last observation
  std::vector<uint64_t> used_; // order of uses
  std::vector<uint32_t> heap_; // resident pages, the first to go at the front
  std::vector<uint32_t> place_;
  std::vector<uint32_t> frontier_; // places of a search
  uint64_t round_ = 1, uses_ = 0;
  size_t sweep_ = 0;
};

/// Visits the heap in ascending order: the frontier is a heap of places whose
/// parents were refused, and grows by one a visit.
uint32_t Importance::victim(const Evictable &allowed) {
  auto later = [&](uint32_t a, uint32_t b) { return before(heap_[b], heap_[a]); };
  size_t waiting = 0;
  if (!heap_.empty())
    frontier_[waiting++] = 0;
  for (uint32_t asked = 0; waiting > 0 && asked < exactSearch; ++asked) {
    std::pop_heap(frontier_.begin(), frontier_.begin() + waiting, later);
    uint32_t place = frontier_[--waiting];
    if (allowed.mayEvict(heap_[place]))
      return heap_[place];
    for (size_t child = 2 * size_t(place) + 1; child < std::min(2 * size_t(place) + 3, heap_.size()); ++child) {
      frontier_[waiting++] = static_cast<uint32_t>(child);
      std::push_heap(frontier_.begin(), frontier_.begin() + waiting, later);
    }
  }
  if (waiting == 0)
    return none;
  for (size_t asked = 0; asked < heap_.size(); ++asked) {
    sweep_ = sweep_ < heap_.size() ? sweep_ : 0;
    uint32_t page = heap_[sweep_++];
    if (allowed.mayEvict(page))
      return page;
  }
  return none;
}

} // namespace

std::unique_ptr<Policy> createImportance(uint32_t pages, uint32_t capacity) {
  return std::make_unique<Importance>(pages, capacity);
}

} // namespace quire::runtime
