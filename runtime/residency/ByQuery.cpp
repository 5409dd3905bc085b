// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prefetching of the pages whose keys a query can score highest, by their digests.
#include "residency/PagerAllowed.h"

#include "residency/LargestOf.h"

#include <limits>

namespace quire::runtime {

static constexpr double noKey = -std::numeric_limits<double>::infinity();

void Pager::keepDigests(std::unique_ptr<PageDigests> digests) {
  digests_ = std::move(digests);
  bounds_.resize(blocks_);
  best_.resize(blocks_);
}

/// Sets bounds_ of places [begin, end). A page that left has a digest from then; one that is here gets it now, and keeps it unless somebody
/// may be writing to it by hand.
Status Pager::boundBlocks(const Query &query, int64_t begin, int64_t end) {
  uint32_t group = geometry_.groupOf(query.layer);
  for (int64_t i = begin; i < end; ++i) {
    uint32_t block = static_cast<uint32_t>(query.blocks[i]), number = pageOf(group, block);
    const Page &page = pages_[number];
    double &bound = bounds_[static_cast<size_t>(i - begin)];
    bound = noKey;
    if (page.state == State::Lost)
      return failure(QUIRE_PAGE_LOST, "block %u cannot be read back", block);
    if (page.state == State::Absent)
      continue;
    bool isHere = page.state == State::Resident || page.state == State::Storing, mayChange = page.state == State::Resident && page.dirty && page.pins > 0;
    if (isHere && (mayChange || !digests_->knows(group, block)))
      digests_->make(group, block, addressOf(number), page.tokens);
    bound = digestBound(digests_->shape(query.layer), query.heads, query.headCount, digests_->of(query.layer, block));
    if (mayChange)
      digests_->forget(group, block);
  }
  return success();
}

/// The pages in best_.
void Pager::fetchNamed() {
  uint64_t most = options_.prefetch.bytes / geometry_.pageBytes;
  bool room = true;
  for (size_t i = 0; i < bestCount_; ++i)
    rescue(best_[i]);
  for (size_t i = 0; i < bestCount_; ++i) {
    if (pages_[best_[i]].state != State::Slow) {
      ++counters_.prefetchRedundant;
      continue;
    }
    Fetch fetch = room && prefetching_ < most ? prefetchPage(best_[i]) : Fetch::NoRoom;
    counters_.prefetchDropped += fetch != Fetch::Begun;
    room = fetch != Fetch::NoRoom;
  }
  flush(Mover::Urgency::Prefetch);
}

Status Pager::fetchByQuery(const Query &query, int64_t count, int64_t *places, double *bounds, int64_t &found) {
  if (inStep_)
    return failure(QUIRE_INVALID_ARGUMENT, "expected no step that runs, but got one");
  drain();
  uint32_t group = geometry_.groupOf(query.layer);
  int64_t begin = geometry_.firstInWindow(query.window, std::max<int64_t>(0, query.tokens - 1)), end = geometry_.blocksFor(query.tokens);
  QUIRE_TRY(boundBlocks(query, begin, end));
  size_t most = static_cast<size_t>(std::min<int64_t>(count, end - begin));
  bestCount_ = largestOf(bounds_.data(), static_cast<size_t>(end - begin), most, noKey, best_.data());
  for (size_t i = 0; i < bestCount_; ++i) {
    int64_t place = begin + best_[i];
    places[i] = place;
    if (bounds)
      bounds[i] = bounds_[best_[i]];
    best_[i] = pageOf(group, static_cast<uint32_t>(query.blocks[place]));
  }
  found = static_cast<int64_t>(bestCount_);
  tenant_ = query.tenant;
  fetchNamed();
  tenant_ = 0;
  bestCount_ = 0;
  return success();
}

/// What may be asked for while it is away has a digest.
Status Pager::validateDigests() const {
  for (uint32_t number = 0; digests_ && number < pages_.size(); ++number) {
    State state = pages_[number].state;
    if ((state == State::Slow || state == State::Loading || state == State::Storing) && !digests_->knows(groupOf(number), blockOf(number)))
      return failure(QUIRE_INVARIANT_BROKEN, "page %u is away without a digest", number);
  }
  return success();
}

} // namespace quire::runtime
