// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Adaptive replacement cache (N. Megiddo, D. S. Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003).
#include "residency/PolicyKinds.h"

#include "residency/PageLists.h"

#include <algorithm>

namespace quire::runtime {

namespace {

/// The lists of the paper: Once and Often hold resident pages that were used once
/// or more, the ghosts remember pages that were evicted from them. Differences:
/// - Room is made by victim(), which may skip pages, before the page is inserted.
///   Ghosts are trimmed at the insertion; without refusals and with missed(), the
///   lists are those of the paper after each request.
/// - A page that a prefetch brought is used once at its first touch, and only then
///   does a ghost of it count.
/// - When a page's owner ends, it leaves every list.
class Arc final : public Policy {
public:
  Arc(uint32_t pages, uint32_t capacity)
      : lists_(pages, 4), resident_(pages, capacity), past_(pages, noList), isUnread_(pages, false), capacity_(capacity) {}

  void missed(uint32_t page) override {
    if (resident_.contains(page))
      return;
    asked_ = page;
    if (past_[page] != noList)
      return;
    past_[page] = ghostOf(page);
    adapt(past_[page]);
    lists_.remove(page);
  }

  void inserted(uint32_t page, bool wanted) override {
    bool wasMissed = past_[page] != noList;
    uint8_t ghost = wasMissed ? past_[page] : ghostOf(page);
    if (wanted && !wasMissed)
      adapt(ghost);
    lists_.remove(page);
    resident_.add(page);
    bool isUsed = wanted || wasMissed;
    lists_.pushBack(isUsed && ghost != noList ? Often : Once, page);
    isUnread_[page] = !isUsed;
    past_[page] = isUsed ? noList : ghost;
    asked_ = none;
    trim();
  }

  void touched(uint32_t page) override {
    if (!resident_.contains(page))
      return;
    bool isFirst = isUnread_[page] && past_[page] == noList;
    adapt(past_[page]);
    past_[page] = noList;
    isUnread_[page] = false;
    lists_.moveToBack(isFirst ? Once : Often, page);
  }

  void removed(uint32_t page, bool evicted) override {
    uint8_t list = lists_.listOf(page), past = past_[page];
    past_[page] = noList;
    if (!resident_.contains(page)) {
      lists_.remove(page);
      return;
    }
    lists_.remove(page);
    resident_.remove(page);
    if (!evicted)
      return;
    if (!isUnread_[page])
      lists_.pushBack(list == Once ? GhostOfOnce : GhostOfOften, page);
    else if (past != noList) // prefetched in vain: what was known before
      lists_.pushBack(past, page);
  }

  uint32_t victim(const Evictable &allowed) override {
    double once = lists_.size(Once);
    bool isOften = asked_ != none && past_[asked_] == GhostOfOften;
    bool fromOnce = once >= 1 && (once > target_ || (isOften && once == target_));
    uint32_t left = exactSearch;
    for (uint8_t list : {fromOnce ? Once : Often, fromOnce ? Often : Once})
      for (uint32_t page = lists_.front(list); page != none; page = lists_.next(page)) {
        if (left-- == 0)
          return resident_.sweep(allowed);
        if (allowed.mayEvict(page))
          return page;
      }
    return none;
  }

private:
  static constexpr uint8_t Once = 0, Often = 1, GhostOfOnce = 2, GhostOfOften = 3, noList = PageLists::noList;

  uint8_t ghostOf(uint32_t page) const {
    uint8_t list = lists_.listOf(page);
    return list == GhostOfOnce || list == GhostOfOften ? list : noList;
  }

  /// A use of a ghost moves the target size of Once towards what would have kept
  /// the page.
  void adapt(uint8_t ghost) {
    double ofOnce = lists_.size(GhostOfOnce), ofOften = lists_.size(GhostOfOften);
    if (ghost == GhostOfOnce)
      target_ = std::min<double>(capacity_, target_ + std::max(1.0, ofOften / std::max(ofOnce, 1.0)));
    else if (ghost == GhostOfOften)
      target_ = std::max(0.0, target_ - std::max(1.0, ofOnce / std::max(ofOften, 1.0)));
  }

  void trim() {
    while (lists_.size(GhostOfOnce) > 0 && lists_.size(Once) + lists_.size(GhostOfOnce) > capacity_)
      lists_.remove(lists_.front(GhostOfOnce));
    while (lists_.size(GhostOfOften) > 0 && resident_.size() + lists_.size(GhostOfOnce) + lists_.size(GhostOfOften) > 2 * size_t(capacity_))
      lists_.remove(lists_.front(GhostOfOften));
  }

  PageLists lists_;
  ResidentPages resident_;
  std::vector<uint8_t> past_;   // ghost list that a missed or an unread page was in
  std::vector<bool> isUnread_;  // prefetched, and not used since
  uint32_t capacity_;
  double target_ = 0;
  uint32_t asked_ = none; // page of the last missed()
};

} // namespace

std::unique_ptr<Policy> createArc(uint32_t pages, uint32_t capacity) { return std::make_unique<Arc>(pages, capacity); }

} // namespace quire::runtime
