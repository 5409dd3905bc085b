// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Strategies of prefetching.
#include "residency/Prefetch.h"

#include "residency/LargestOf.h"

#include <algorithm>
#include <cmath>

namespace quire::runtime {

static constexpr const char *names[] = {"none", "sequential", "seed_hotspot", "digest", "layer_ahead", "hybrid"};

const char *prefetchName(PrefetchKind kind) { return names[static_cast<size_t>(kind)]; }

bool prefetchFromName(std::string_view name, PrefetchKind &out) {
  for (size_t i = 0; i < std::size(names); ++i)
    if (name == names[i]) {
      out = static_cast<PrefetchKind>(i);
      return true;
    }
  return false;
}

//===----------------------------------------------------------------------===//
// Access order
//===----------------------------------------------------------------------===//

AccessOrder::AccessOrder(uint32_t pages) : place_(pages, none), nextPlace_(pages, none) {
  order_.reserve(pages);
  next_.reserve(pages);
}

void AccessOrder::beginStep() {
  if (next_.empty())
    return;
  for (uint32_t page : order_)
    if (page != none)
      place_[page] = none;
  order_.clear();
  for (uint32_t page : next_) {
    if (page == none)
      continue;
    place_[page] = static_cast<uint32_t>(order_.size());
    nextPlace_[page] = none;
    order_.push_back(page);
  }
  next_.clear();
  at_ = 0;
}

void AccessOrder::used(uint32_t page) {
  if (nextPlace_[page] != none)
    return;
  if (!order_.empty()) {
    while (at_ < order_.size() && order_[at_] == none)
      ++at_;
    ++predictions_;
    fulfilled_ += at_ < order_.size() && order_[at_] == page;
    if (place_[page] != none)
      at_ = place_[page] + 1;
  }
  if (next_.size() == next_.capacity()) { // pages were forgotten and came again within the step
    next_.erase(std::remove(next_.begin(), next_.end(), none), next_.end());
    for (size_t i = 0; i < next_.size(); ++i)
      nextPlace_[next_[i]] = static_cast<uint32_t>(i);
  }
  nextPlace_[page] = static_cast<uint32_t>(next_.size());
  next_.push_back(page);
}

void AccessOrder::forget(uint32_t page) {
  if (place_[page] != none)
    order_[place_[page]] = none;
  if (nextPlace_[page] != none)
    next_[nextPlace_[page]] = none;
  place_[page] = nextPlace_[page] = none;
}

uint64_t AccessOrder::distance(uint32_t page) const {
  if (place_[page] == none) // used in this step for the first time: about a step away
    return nextPlace_[page] == none ? never : order_.size() - at_ + nextPlace_[page] + 1;
  size_t place = place_[page];
  return place >= at_ ? place - at_ + 1 : order_.size() - at_ + place + 1;
}

size_t AccessOrder::ahead(size_t skip, size_t most, uint32_t *out) const {
  size_t found = 0;
  for (size_t i = skip; i < order_.size() && found < most; ++i) {
    uint32_t page = order_[(at_ + i) % order_.size()];
    if (page != none)
      out[found++] = page;
  }
  return found;
}

uint64_t blocksWithNext(uint64_t tokens, uint64_t blockTokens) { return tokens / blockTokens + 1; }

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

size_t topMass(const float *mass, size_t count, size_t k, uint32_t *out) { return largestOf(mass, count, k, 0.0f, out); }

size_t layerAhead(const PageNumbering &numbering, const uint32_t *blocks, size_t count, uint32_t group, uint32_t *out) {
  if (group + 1 >= numbering.groups)
    return 0;
  for (size_t i = 0; i < count; ++i)
    out[i] = numbering.page(blocks[i], group + 1);
  return count;
}

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

/// Takes 1 from the largest windows above `least`, until the sum is `total`.
static uint64_t takeBack(uint32_t *windows, size_t count, uint32_t least, uint64_t sum, uint64_t total) {
  while (sum > total) {
    uint32_t largest = *std::max_element(windows, windows + count);
    if (largest <= least)
      break;
    for (size_t i = count; i-- > 0 && sum > total;)
      if (windows[i] == largest) {
        --windows[i];
        --sum;
      }
  }
  return sum;
}

uint64_t batchWindows(const uint32_t *remaining, size_t count, uint32_t window, uint32_t most, uint64_t available,
                      uint32_t *out) {
  uint64_t total = std::min<uint64_t>(uint64_t(window) * count, available), all = 0, sum = 0;
  for (size_t i = 0; i < count; ++i)
    all += remaining[i];
  for (size_t i = 0; i < count; ++i) {
    out[i] = 0;
    if (remaining[i] == 0 || most == 0)
      continue;
    double part = static_cast<double>(total) * remaining[i] / static_cast<double>(all);
    out[i] = static_cast<uint32_t>(std::clamp(std::round(part), 1.0, static_cast<double>(most)));
    sum += out[i];
  }
  sum = takeBack(out, count, 1, sum, total);
  return takeBack(out, count, 0, sum, total);
}

} // namespace quire::runtime
