// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Intrusive lists over page numbers, and the compact set of the resident ones.
#ifndef QUIRE_RUNTIME_RESIDENCY_PAGELISTS_H
#define QUIRE_RUNTIME_RESIDENCY_PAGELISTS_H

#include "residency/Policy.h"

#include <cassert>
#include <cstdint>
#include <vector>

namespace quire::runtime {

/// Lists 0 .. lists-1, each page in at most one of them. Every operation is O(1).
class PageLists {
public:
  static constexpr uint8_t noList = UINT8_MAX;
  static constexpr uint32_t none = UINT32_MAX;

  PageLists(uint32_t pages, uint8_t lists) : pages_(pages), links_(size_t(pages) + lists), list_(pages, noList), sizes_(lists, 0) {
    for (uint8_t list = 0; list < lists; ++list)
      links_[head(list)] = {head(list), head(list)};
  }

  uint8_t listOf(uint32_t page) const { return list_[page]; }
  uint32_t size(uint8_t list) const { return sizes_[list]; }

  /// The coldest page is at the front.
  uint32_t front(uint8_t list) const { return shown(links_[head(list)].next); }
  uint32_t back(uint8_t list) const { return shown(links_[head(list)].previous); }
  uint32_t next(uint32_t page) const { return shown(links_[page].next); }
  uint32_t previous(uint32_t page) const { return shown(links_[page].previous); }

  void pushBack(uint8_t list, uint32_t page) {
    assert(list_[page] == noList);
    size_t end = head(list);
    links_[page] = {links_[end].previous, static_cast<uint32_t>(end)};
    links_[links_[end].previous].next = page;
    links_[end].previous = page;
    list_[page] = list;
    ++sizes_[list];
  }

  /// No effect on a page that is in no list.
  void remove(uint32_t page) {
    if (list_[page] == noList)
      return;
    links_[links_[page].previous].next = links_[page].next;
    links_[links_[page].next].previous = links_[page].previous;
    --sizes_[list_[page]];
    list_[page] = noList;
  }

  void moveToBack(uint8_t list, uint32_t page) {
    remove(page);
    pushBack(list, page);
  }

private:
  struct Link {
    uint32_t previous = none, next = none;
  };

  uint32_t head(uint8_t list) const { return pages_ + list; }
  uint32_t shown(uint32_t link) const { return link < pages_ ? link : none; }

  uint32_t pages_;
  std::vector<Link> links_; // of pages, then of the lists' ends
  std::vector<uint8_t> list_;
  std::vector<uint32_t> sizes_;
};

/// Resident pages in no particular order, for searches that any of them ends.
class ResidentPages {
public:
  ResidentPages(uint32_t pages, uint32_t capacity) : place_(pages, Policy::none) { members_.reserve(capacity); }

  bool contains(uint32_t page) const { return place_[page] != Policy::none; }
  size_t size() const { return members_.size(); }

  void add(uint32_t page) {
    assert(!contains(page) && members_.size() < members_.capacity());
    place_[page] = static_cast<uint32_t>(members_.size());
    members_.push_back(page);
  }

  void remove(uint32_t page) {
    uint32_t place = place_[page], last = members_.back();
    members_[place] = last;
    place_[last] = place;
    members_.pop_back();
    place_[page] = Policy::none;
  }

  /// Asks every page, beginning after the one that the last call ended at.
  uint32_t sweep(const Evictable &allowed) {
    for (size_t asked = 0; asked < members_.size(); ++asked) {
      next_ = next_ < members_.size() ? next_ : 0;
      uint32_t page = members_[next_++];
      if (allowed.mayEvict(page))
        return page;
    }
    return Policy::none;
  }

private:
  std::vector<uint32_t> members_, place_;
  size_t next_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_RESIDENCY_PAGELISTS_H
