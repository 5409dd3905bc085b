// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The slow tier of tests.
#include "TieredPool.h"

#include "tier/StackedTier.h"

#include <algorithm>

namespace quire::test {

using namespace runtime;

void MemoryTier::run(Transfer *const *transfers, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    Transfer &transfer = *transfers[i];
    quire_status failed = fault ? fault(transfer) : QUIRE_OK;
    transfer.status = Status(failed, failed == QUIRE_OK ? "" : "as the test wants it");
    if (failed != QUIRE_OK)
      continue;
    std::vector<char> &page = pages_[transfer.slot];
    switch (transfer.kind) {
    case Transfer::Kind::Load:
      ++loads;
      if (page.empty() || tags_[transfer.slot] != transfer.tag)
        transfer.status = failure(QUIRE_PAGE_LOST, "slot %u has another content", transfer.slot);
      else
        std::copy(page.begin(), page.end(), transfer.page);
      break;
    case Transfer::Kind::Store:
      ++stores;
      page.assign(transfer.page, transfer.page + pageBytes());
      tags_[transfer.slot] = transfer.tag;
      break;
    case Transfer::Kind::Erase:
      ++erasures;
      page.clear();
      break;
    }
  }
}

bool MemoryTier::holds(const std::vector<char> &needle) const {
  return std::any_of(pages_.begin(), pages_.end(), [&](const std::vector<char> &page) {
    return std::search(page.begin(), page.end(), needle.begin(), needle.end()) != page.end();
  });
}

TieredPool makeTieredPool(const TieredSettings &settings, const quire_model_info &info) {
  TieredPool made;
  PageGeometry geometry;
  EXPECT_TRUE(PageGeometry::make(info, settings.layersPerPage, geometry).ok());
  if (settings.stableVa)
    geometry.separate(MappedMemory::systemPage());
  Pool::Options options;
  options.bytes = static_cast<uint64_t>(settings.fastPages) * geometry.pageStride;
  options.poison = settings.poison;
  options.zeroOnFree = settings.zeroOnFree;
  options.prefixCache = settings.prefixCache;
  options.layersPerPage = settings.layersPerPage;
  options.codec = settings.codec;
  options.digests = settings.digests;
  options.stableVa = settings.stableVa;
  if (settings.deadlineNs != 0)
    options.paging.deadlineNs = settings.deadlineNs;
  options.paging.policy = settings.policy;
  options.paging.prefetchWindow = settings.window;
  options.paging.prefetch = settings.prefetch;
  if (settings.thread)
    options.clock = std::make_shared<SystemClock>();
  else
    options.clock = std::make_shared<VirtualClock>();
  Clock &clock = *options.clock;
  options.slowTier = [&](uint64_t pageBytes, std::unique_ptr<Tier> &tier, std::unique_ptr<Mover> &mover) {
    std::vector<std::unique_ptr<Tier>> tiers;
    std::vector<uint32_t> slots = {settings.slowPages};
    slots.insert(slots.end(), settings.lowerPages.begin(), settings.lowerPages.end());
    for (uint32_t count : slots) {
      auto memory = std::make_unique<MemoryTier>(count, pageBytes);
      made.tiers.push_back(memory.get());
      tiers.push_back(std::move(memory));
    }
    made.tier = made.tiers.front();
    tier = tiers.size() == 1 ? std::move(tiers.front()) : std::make_unique<StackedTier>(std::move(tiers));
    size_t capacity = Pager::transfersFor(static_cast<uint64_t>(settings.fastPages));
    mover = settings.thread ? createThreadMover(clock, capacity) : createSteppedMover(clock, capacity, settings.seed);
    return success();
  };
  std::unique_ptr<Pool> pool;
  Status status = Pool::create(info, options, pool);
  EXPECT_TRUE(status.ok()) << status.text();
  made.pool.reset(new quire_pool{std::move(pool), {}});
  return made;
}

} // namespace quire::test
