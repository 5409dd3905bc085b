// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The course of a program, and the comparison of the pool with the reference.
#include "PoolRun.h"

#include <algorithm>
#include <cstring>

namespace quire::test {

PoolRun::PoolRun(const Program &program, RunCounts &counts, Sabotage sabotage, std::vector<runtime::Fault> faults)
    : program_(program), counts_(counts), sabotage_(std::move(sabotage)), faults_(std::move(faults)), pool_(program) {}

void PoolRun::fail(const std::string &what) {
  if (error_.empty())
    error_ = doing_ + ": " + what;
}

static bool ofTiers(quire_status status) {
  return status == QUIRE_OUT_OF_BLOCKS || status == QUIRE_NO_SPACE || status == QUIRE_PAGE_LOST;
}

bool PoolRun::ended(quire_status expected, quire_status status) {
  last_ = status;
  ++counts_.ends[status];
  ++(status == QUIRE_OK ? counts_.succeeded : counts_.refused)[kind_];
  ++calls_;
  if (status != expected)
    fail(std::string("expected ") + quire_status_name(expected) + ", but got " + quire_status_name(status) +
         (status == QUIRE_OK ? "" : std::string(": ") + quire_last_error()));
  return status == QUIRE_OK && good();
}

bool PoolRun::endedPaging(quire_status expected, quire_status status, bool fits) {
  if (expected == QUIRE_OK && !fits)
    expected = QUIRE_NO_SPACE;
  unspaced_ |= status == QUIRE_NO_SPACE || status == QUIRE_PAGE_LOST;
  // A cached block that nobody uses may be held, and may give way in the same call.
  bool maybe = expected == QUIRE_NO_SPACE && std::any_of(pins_.begin(), pins_.end(), [&](const Pinned &pin) { return reference_->blocks()[pin.block].idle; });
  return ended((degraded_ && ofTiers(status)) || (maybe && status == QUIRE_OK) ? status : expected, status);
}

bool PoolRun::begin() {
  std::string error = pool_.open();
  if (!error.empty())
    fail(error);
  if (!good())
    return false;
  PoolReference::Options options;
  options.blocks = pool_.inner().blocksTotal();
  options.prefixCache = pool_.prefixCache();
  options.collisions = program_[ShapeField::HashBits] != 0;
  reference_.emplace(options);
  reference_->onEnd = [this](uint32_t name) {
    pins_.erase(std::remove_if(pins_.begin(), pins_.end(), [&](const Pinned &pin) { return pin.block == name; }), pins_.end());
    for (int64_t layer = 0; layer < markLayers; ++layer)
      addresses_.erase({name, layer});
  };
  pins_.clear();
  addresses_.clear();
  endedSequences_.clear();
  endedBlocks_.clear();
  endedTenants_.clear();
  for (const runtime::Fault &fault : faults_)
    pool_.plan(fault);
  degraded_ = !faults_.empty();
  erasing_ = pool_.erases() || pool_.poisons();
  unspaced_ = traced_ = false;
  moved_ = returned_ = 0;
  units_ = unitsAtFirst_ = pool_.pager() ? pool_.pager()->fastPages() : options.blocks;
  tuning_ = {};
  tuning_.struct_size = sizeof(tuning_);
  quire_pool_get_tuning(pool_.get(), &tuning_);
  return true;
}

std::string PoolRun::run() {
  doing_ = "creation";
  ++counts_.programs;
  if (!begin())
    return error_;
  for (size_t i = 0; i < program_.ops.size() && good(); ++i) {
    const Op &op = program_.ops[i];
    doing_ = "operation " + std::to_string(i) + ", " + opName(op.kind);
    uint64_t calls = calls_;
    kind_ = static_cast<size_t>(op.kind);
    syncRoom();
    execute(op);
    kind_ = opKinds;
    counts_.operations += calls_ != calls;
    counts_.done[static_cast<size_t>(op.kind)] += calls_ != calls;
    if (good() && sabotage_)
      sabotage_(op, pool_, *reference_);
    if (good())
      compare();
  }
  if (good())
    drain();
  return error_;
}

std::string runProgram(const Program &program, RunCounts &counts, const PoolRun::Sabotage &sabotage) {
  return PoolRun(program, counts, sabotage).run();
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

void PoolRun::compare() {
  if (quire_pool_validate(pool_.get()) != QUIRE_OK)
    return fail(quire_last_error());
  if (!pool_.record().mismatch.empty())
    return fail(pool_.record().mismatch);
  compareTables();
  if (good() && pool_.stableVa())
    compareAddresses();
  if (good())
    compareStats();
  if (good())
    compareTenants();
  if (good())
    comparePins();
  if (good())
    compareContent();
}

/// A block keeps its number as long as it lives, but for compaction, and no other has it.
void PoolRun::see(uint32_t name, int32_t index, std::vector<uint32_t> &owners) {
  const PoolReference::Block &block = reference_->blocks()[name];
  if (block.index < 0)
    reference_->see(name, index);
  else if (block.index != index)
    return fail("a block of number " + std::to_string(block.index) + " is now " + std::to_string(index));
  uint32_t &owner = owners[static_cast<size_t>(index)];
  if (owner != PoolReference::none && owner != name)
    fail("two blocks have number " + std::to_string(index));
  owner = name;
}

void PoolRun::compareTables() {
  AsServer server(*this);
  std::vector<uint32_t> owners(static_cast<size_t>(pool_.inner().blocksTotal()), PoolReference::none);
  for (uint32_t name : reference_->cached())
    see(name, reference_->blocks()[name].index, owners);
  for (const PoolReference::Held &held : reference_->held()) {
    int32_t index = -1;
    if (quire_block_index(pool_.get(), held.handle, &index) != QUIRE_OK)
      return fail(std::string("a block of the caller's: ") + quire_last_error());
    see(held.block, index, owners);
  }
  for (const PoolReference::Sequence &sequence : reference_->sequences()) {
    int64_t length = -1, count = -1, intact = -1;
    const int32_t *blocks = nullptr;
    if (quire_sequence_length(pool_.get(), sequence.handle, &length) != QUIRE_OK ||
        quire_sequence_intact(pool_.get(), sequence.handle, &intact) != QUIRE_OK ||
        quire_sequence_table(pool_.get(), sequence.handle, &blocks, &count) != QUIRE_OK)
      return fail(std::string("a sequence: ") + quire_last_error());
    const int64_t *positions = nullptr;
    int64_t next = -1;
    if (quire_sequence_positions(pool_.get(), sequence.handle, &positions, &next) != QUIRE_OK)
      return fail(std::string("positions: ") + quire_last_error());
    if (length != sequence.length() || count != static_cast<int64_t>(sequence.blocks.size()))
      return fail("a sequence should have " + std::to_string(sequence.length()) + " tokens in " + std::to_string(sequence.blocks.size()) +
                  " blocks, but has " + std::to_string(length) + " in " + std::to_string(count));
    if (degraded_ ? intact > length || (intact < length && intact % markBlockTokens != 0) : intact != length)
      return fail("a sequence is intact up to " + std::to_string(intact) + " of " + std::to_string(length));
    for (int64_t i = 0; i < length; ++i)
      if ((positions ? positions[i] : i) != sequence.positions[static_cast<size_t>(i)])
        return fail("a sequence has another position " + std::to_string(i));
    if (next != sequence.next)
      return fail("the next position of a sequence is " + std::to_string(next) + ", but should be " + std::to_string(sequence.next));
    for (size_t i = 0; i < sequence.blocks.size(); ++i)
      see(sequence.blocks[i], blocks[i], owners);
  }
}

/// A block keeps its address in each layer as long as it lives, wherever its pages are, and no other lies there. What has memory is within the
/// budget of the fast tier.
void PoolRun::compareAddresses() {
  std::vector<std::pair<const char *, const char *>> places;
  for (uint32_t name = 0; name < reference_->blocks().size(); ++name)
    for (int64_t layer = 0; layer < markLayers && reference_->blocks()[name].references(); ++layer) {
      void *address = nullptr;
      if (quire_pool_block_address(pool_.get(), layer, reference_->blocks()[name].index, &address) != QUIRE_OK)
        return fail(quire_last_error());
      const char *&known = addresses_.insert({{name, layer}, static_cast<const char *>(address)}).first->second;
      if (known != address)
        return fail("a block has another address in layer " + std::to_string(layer));
      places.emplace_back(known, known + pool_.inner().layerBlockBytes(layer));
    }
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i)
    if (places[i].first < places[i - 1].second)
      return fail("two blocks have one address");
  quire_paging_stats stats = {};
  stats.struct_size = sizeof(stats);
  quire_pool_get_paging_stats(pool_.get(), &stats);
  counts_.returned += static_cast<uint64_t>(stats.memory_returns - returned_);
  returned_ = stats.memory_returns;
  if (stats.fast_bytes_with_memory > (pool_.pager() ? units_ : 0) * stats.fast_page_stride)
    fail(std::to_string(stats.fast_bytes_with_memory) + " bytes of pages have memory");
}

void PoolRun::compareStats() {
  AsServer server(*this);
  quire_pool_stats stats = {};
  stats.struct_size = sizeof(stats);
  quire_pool_get_stats(pool_.get(), &stats);
  syncRoom();
  const std::pair<const char *, std::pair<int64_t, int64_t>> pairs[] = {
      {"free blocks", {reference_->free(), stats.blocks_free}},
      {"reclaimable blocks", {reference_->reclaimable(), stats.blocks_reclaimable}},
      {"sequences", {static_cast<int64_t>(reference_->sequences().size()), stats.sequences}},
      {"copied bytes", {reference_->copies() * stats.block_bytes, stats.copied_bytes}},
      {"most blocks", {reference_->limit(), stats.blocks_limit}},
      {"moved blocks", {moved_, stats.compacted_blocks}},
      {"pruned blocks", {reference_->prunedBlocks(), stats.pruned_blocks}},
      {"pruned tokens", {reference_->prunedBlocks() * markBlockTokens, stats.pruned_tokens}},
      {"moved bytes", {moved_ * stats.block_bytes, stats.compacted_bytes}},
      {"most blocks of a step", {pool_.pager() ? units_ : reference_->limit(), stats.step_blocks}},
      {"reserved blocks", {reference_->reserveBlocks(), stats.reserve_blocks}},
      {"blocks out of the reserve", {unspaced_ || degraded_ ? stats.reserve_hits : reference_->reserveHits(), stats.reserve_hits}}};
  for (auto &[what, values] : pairs)
    if (values.first != values.second)
      fail(std::string(what) + ": expected " + std::to_string(values.first) + ", but got " + std::to_string(values.second));
}

void PoolRun::compareTenants() {
  AsServer server(*this);
  for (size_t i = 1; i < reference_->tenants().size(); ++i) {
    const PoolReference::Tenant &tenant = reference_->tenants()[i];
    quire_tenant_stats found = {};
    found.struct_size = sizeof(found);
    if (!tenant.handle)
      continue;
    if (quire_tenant_get_stats(pool_.get(), tenant.handle, &found) != QUIRE_OK)
      return fail(std::string("a tenant: ") + quire_last_error());
    if (!(tenant == found))
      fail("tenant " + std::to_string(i) + ": expected " + std::to_string(tenant.cached) + " cached, " + std::to_string(tenant.published) + " published, " +
           std::to_string(tenant.merged) + " merged, " + std::to_string(tenant.evicted) + " evicted, " + std::to_string(tenant.expired) + " expired, " +
           std::to_string(tenant.queries) + " queries of " + std::to_string(tenant.queryTokens) + ", " + std::to_string(tenant.hitTokens) + " hit, but got " +
           std::to_string(found.blocks_cached) + ", " + std::to_string(found.blocks_published) + ", " + std::to_string(found.blocks_merged) + ", " +
           std::to_string(found.blocks_evicted) + ", " + std::to_string(found.blocks_expired) + ", " + std::to_string(found.queries) + ", " +
           std::to_string(found.query_tokens) + ", " + std::to_string(found.hit_tokens));
  }
}

/// Which of them are held is decided by what steps needed; how many is not.
void PoolRun::comparePins() {
  if (!pool_.pager())
    return;
  std::vector<int64_t> pins = reference_->pins();
  int64_t pinned = 0;
  for (uint32_t name = 0; name < pins.size(); ++name) {
    pinned += pins[name] > 0;
    int32_t index = reference_->blocks()[name].index;
    if (pins[name] > 0 && pool_.pager()->pinned().pins(static_cast<uint32_t>(index)) != pins[name])
      return fail("a block should have " + std::to_string(pins[name]) + " pins, but has " + std::to_string(pool_.pager()->pinned().pins(static_cast<uint32_t>(index))));
  }
  quire_paging_stats stats = {};
  stats.struct_size = sizeof(stats);
  quire_pool_get_paging_stats(pool_.get(), &stats);
  if (stats.pin_budget_blocks != static_cast<int64_t>(tuning_.pin_budget * static_cast<double>(units_)) / groups())
    return fail("the budget of pins is " + std::to_string(stats.pin_budget_blocks));
  if (stats.pinned_blocks > std::min(pinned, stats.pin_budget_blocks) || stats.pinned_blocks + stats.pins_given_up < pinned)
    fail(std::to_string(stats.pinned_blocks) + " of " + std::to_string(pinned) + " pinned blocks are held, and " + std::to_string(stats.pins_given_up) + " were given up");
}

/// In memory everything is read after each operation; with a slow tier only what is held there, as reading
/// the rest would bring it in.
void PoolRun::compareContent() {
  if (pool_.pager())
    return comparePinned();
  std::vector<bool> used(static_cast<size_t>(pool_.inner().blocksTotal()));
  for (const PoolReference::Sequence &sequence : reference_->sequences()) {
    for (uint32_t name : sequence.blocks)
      used[static_cast<size_t>(reference_->blocks()[name].index)] = true;
    for (int64_t position = 0; position < sequence.length(); ++position)
      for (int64_t layer = 0; layer < markLayers; ++layer) {
        int32_t index = reference_->blocks()[sequence.blocks[static_cast<size_t>(position / markBlockTokens)]].index;
        const char *block = pool_.inner().layerBase(layer) + index * pool_.inner().layerBlockBytes(layer);
        if (!holdsMarks(block, layer, position % markBlockTokens, sequence.history[static_cast<size_t>(position)]))
          return fail("position " + std::to_string(position) + " of a sequence holds other bytes in layer " + std::to_string(layer));
      }
  }
  for (const PoolReference::Held &held : reference_->held()) {
    used[static_cast<size_t>(reference_->blocks()[held.block].index)] = true;
    readHeld(held);
  }
  for (uint32_t name : reference_->cached())
    used[static_cast<size_t>(reference_->blocks()[name].index)] = true;
  for (size_t index = 0; erasing_ && index < used.size(); ++index)
    if (!used[index] && !isBlank(static_cast<int32_t>(index)))
      return fail("free block " + std::to_string(index) + " holds something");
}

bool PoolRun::isBlank(int32_t index) {
  auto isAll = [&](char blank) {
    for (int64_t layer = 0; layer < markLayers; ++layer) {
      int64_t bytes = pool_.inner().layerBlockBytes(layer);
      const char *block = pool_.inner().layerBase(layer) + index * bytes;
      if (!std::all_of(block, block + bytes, [blank](char byte) { return byte == blank; }))
        return false;
    }
    return true;
  };
  bool maybeWithheld = reference_->limit() < pool_.inner().blocksTotal();
  return isAll(static_cast<char>(pool_.poisons() ? 0xFF : 0)) || (maybeWithheld && isAll(0));
}

/// A page that is held stays where it is.
void PoolRun::comparePinned() {
  for (const Pinned &pin : pins_)
    for (const PoolReference::Sequence &sequence : reference_->sequences())
      for (size_t i = 0; i < sequence.blocks.size(); ++i) {
        int64_t begin = static_cast<int64_t>(i) * markBlockTokens;
        for (int64_t position = begin; sequence.blocks[i] == pin.block && position < std::min(begin + markBlockTokens, sequence.length()); ++position)
          if (!holdsMarks(pin.address, pin.layer, position - begin, sequence.history[static_cast<size_t>(position)]))
            return fail("a page that is held does not hold position " + std::to_string(position) + " of layer " + std::to_string(pin.layer));
      }
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Everything is read once more and given back; then nothing may be left.
void PoolRun::drain() {
  doing_ = "the end";
  actAs(0);
  for (const Pinned &pin : std::vector<Pinned>(pins_))
    unpinFor(pin.block, pin.layer);
  pins_.clear();
  for (size_t i = 0; i < reference_->sequences().size() && good(); ++i)
    read(i);
  for (size_t i = 0; i < reference_->held().size() && good(); ++i)
    readHeld(reference_->held()[i]);
  for (const PoolReference::Sequence &sequence : reference_->sequences())
    left_.insert(left_.end(), sequence.history.begin(), sequence.history.end());
  while (any() && good())
    release(reference_->sequences().size() - 1);
  while (!reference_->held().empty() && good())
    if (ended(QUIRE_OK, quire_block_release(pool_.get(), reference_->held().back().handle)))
      reference_->drop(reference_->held().size() - 1);
  for (uint32_t tenant : liveTenants())
    endTenant(tenant);
  if (good() && quire_pool_settle(pool_.get()) != QUIRE_OK)
    fail(quire_last_error());
  if (good())
    compare();
  if (good())
    checkDrained();
}

void PoolRun::checkDrained() {
  if (reference_->inUse() != 0)
    return fail("blocks are in use");
  const StoreRecord &record = pool_.record();
  counts_.loads += record.loads;
  counts_.stores += record.stores;
  counts_.copies += static_cast<uint64_t>(reference_->copies());
  counts_.reserveHits += static_cast<uint64_t>(reference_->reserveHits());
  counts_.moved += static_cast<uint64_t>(moved_);
  counts_.pruned += static_cast<uint64_t>(reference_->prunedBlocks());
  counts_.idle += static_cast<uint64_t>(pool_.inner().idleBlocks());
  for (const PoolReference::Tenant &tenant : reference_->tenants()) {
    counts_.hits += static_cast<uint64_t>(tenant.hitTokens);
    counts_.merged += static_cast<uint64_t>(tenant.merged);
    counts_.evicted += static_cast<uint64_t>(tenant.evicted);
    counts_.expired += static_cast<uint64_t>(tenant.expired);
  }
  const runtime::Pager *pager = pool_.pager();
  if (!pager)
    return;
  const runtime::PagerCounters &counters = pager->counters();
  counts_.lost += counters.pagesLost;
  counts_.pinsGivenUp += counters.pinsGivenUp;
  counts_.encoded += pool_.codec() == runtime::Codec::None ? 0 : counters.writeBacks;
  counts_.byAttention += pager->prefetching().looksAtAttention() ? counters.prefetchIssued : 0;
  counts_.compacted += counters.bytesCompacted / pager->geometry().pageBytes;
  counts_.injected += pool_.injected();
  uint64_t page = pager->geometry().pageBytes;
  if (pager->fastPagesFree() != pager->fastPages())
    fail("fast slots are in use");
  if (counters.bytesOut != counters.writeBacks * page)
    fail("bytes written back are not those of the write-backs");
  if (degraded_)
    return;
  if (pager->slow().slots().freeCount() != pager->slow().slots().total())
    fail("slow slots are in use");
  uint64_t began = (counters.bytesInDemand + counters.bytesInPrefetch) / page;
  if (record.loads + counters.prefetchCancelled != began)
    fail("the slow tier has loaded " + std::to_string(record.loads) + " pages, but " + std::to_string(began) + " are counted, of which " +
         std::to_string(counters.prefetchCancelled) + " were cancelled");
  if (record.stores < counters.writeBacks)
    fail("more write-backs are counted than the slow tier has seen");
  if (pool_.erases() && !pool_.slowIsBlank())
    fail("the slow tier still holds something");
  for (uint64_t history : left_)
    for (int64_t layer = 0; layer < markLayers && erasing_; ++layer)
      if (uint64_t mark = markOf(history, layer, false); pager->arenaHolds(&mark, sizeof(mark)))
        return fail("the arena still holds something");
}

} // namespace quire::test
