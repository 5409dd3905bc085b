// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Least recently used, and its opposite for scans; names and creation of all policies.
#include "residency/PolicyKinds.h"

#include "residency/PageLists.h"

namespace quire::runtime {

namespace {

class Lru final : public Policy {
public:
  Lru(uint32_t pages, uint32_t capacity) : order_(pages, 1), resident_(pages, capacity) {}

  void inserted(uint32_t page, bool) override {
    resident_.add(page);
    order_.pushBack(0, page);
  }

  void touched(uint32_t page) override {
    if (resident_.contains(page))
      order_.moveToBack(0, page);
  }

  void removed(uint32_t page, bool) override {
    if (!resident_.contains(page))
      return;
    resident_.remove(page);
    order_.remove(page);
  }

  uint32_t victim(const Evictable &allowed) override {
    uint32_t left = exactSearch;
    for (uint32_t page = order_.front(0); page != none; page = order_.next(page)) {
      if (left-- == 0)
        return resident_.sweep(allowed);
      if (allowed.mayEvict(page))
        return page;
    }
    return none;
  }

private:
  PageLists order_;
  ResidentPages resident_;
};

class Scan final : public Policy {
public:
  Scan(uint32_t pages, uint32_t capacity) : order_(pages, 2), resident_(pages, capacity) {}

  void inserted(uint32_t page, bool wanted) override {
    resident_.add(page);
    order_.pushBack(wanted ? Read : Unread, page);
  }

  void touched(uint32_t page) override {
    if (resident_.contains(page))
      order_.moveToBack(Read, page);
  }

  void removed(uint32_t page, bool) override {
    if (!resident_.contains(page))
      return;
    resident_.remove(page);
    order_.remove(page);
  }

  uint32_t victim(const Evictable &allowed) override {
    uint32_t left = exactSearch;
    for (uint8_t list : {Read, Unread})
      for (uint32_t page = order_.back(list); page != none; page = order_.previous(page)) {
        if (left-- == 0)
          return resident_.sweep(allowed);
        if (allowed.mayEvict(page))
          return page;
      }
    return none;
  }

private:
  static constexpr uint8_t Read = 0, Unread = 1; // a page that came by a prefetch is unread until its demand

  PageLists order_;
  ResidentPages resident_;
};

constexpr std::string_view names[] = {"lru", "scan", "importance", "arc"};

} // namespace

std::unique_ptr<Policy> createPolicy(PolicyKind kind, uint32_t pages, uint32_t capacity) {
  switch (kind) {
  case PolicyKind::Lru:
    return std::make_unique<Lru>(pages, capacity);
  case PolicyKind::Scan:
    return std::make_unique<Scan>(pages, capacity);
  case PolicyKind::Importance:
    return createImportance(pages, capacity);
  case PolicyKind::Arc:
    return createArc(pages, capacity);
  }
  return nullptr;
}

const char *policyName(PolicyKind kind) { return names[static_cast<size_t>(kind)].data(); }

bool policyFromName(std::string_view name, PolicyKind &out) {
  for (PolicyKind kind : {PolicyKind::Lru, PolicyKind::Scan, PolicyKind::Importance, PolicyKind::Arc})
    if (name == policyName(kind)) {
      out = kind;
      return true;
    }
  return false;
}

} // namespace quire::runtime
