// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of programs on the caller's blocks, tenants, time, faults, and the pool as a whole.
#include "PoolRun.h"

#include <algorithm>

namespace quire::test {

static constexpr size_t mostHeld = 5;
static constexpr size_t mostTenants = 4;

void PoolRun::execute(const Op &op) {
  switch (op.kind) {
  case OpKind::Create:
    return create(op);
  case OpKind::Allocate:
    return allocate(op);
  case OpKind::Retain:
  case OpKind::Drop:
    return changeHeld(op);
  case OpKind::Fill:
    return fill(op);
  case OpKind::NewTenant:
    return newTenant(op);
  case OpKind::EndTenant: {
    std::vector<uint32_t> live = liveTenants();
    return live.empty() ? void() : endTenant(live[op.a % live.size()]);
  }
  case OpKind::ActAs: {
    std::vector<uint32_t> live = liveTenants();
    live.insert(live.begin(), 0);
    return actAs(live[op.a % live.size()]);
  }
  case OpKind::Advance:
    return advance(op);
  case OpKind::Window:
    return setWindow(op.a >= 240 ? -1 : op.a % 6);
  case OpKind::Settle:
    ended(QUIRE_OK, quire_pool_settle(pool_.get()));
    return;
  case OpKind::Trace:
    if (ended(pool_.pager() ? QUIRE_OK : QUIRE_INVALID_ARGUMENT, quire_pool_trace(pool_.get(), op.a)))
      traced_ = op.a > 0;
    return;
  case OpKind::Report:
    return report();
  case OpKind::Stale:
    return stale(op);
  case OpKind::Fault:
    return fault(op);
  case OpKind::Recover:
    return recover();
  case OpKind::Crash:
    return crash(op);
  case OpKind::Dialogue:
    return dialogue(op);
  case OpKind::Resize:
    return resize(op);
  case OpKind::Tune:
    return tune(op);
  case OpKind::Export:
    return exportArena();
  case OpKind::Compact:
    return compact();
  default:
    return any() ? executeOnSequences(op) : void();
  }
}

void PoolRun::executeOnSequences(const Op &op) {
  switch (op.kind) {
  case OpKind::Release:
    return release(pick(op.a));
  case OpKind::Move:
    return move(op);
  case OpKind::Fork:
    return fork(op);
  case OpKind::Truncate:
    return truncate(pick(op.a), lengthOf(op, at(pick(op.a)).length()));
  case OpKind::Reserve:
    return reserve(op);
  case OpKind::Write:
    return write(op);
  case OpKind::Step:
  case OpKind::Abort:
    return step(op, op.kind == OpKind::Abort);
  case OpKind::Invoke:
    return invoke(op);
  case OpKind::Read:
    return read(pick(op.a));
  case OpKind::Pin:
    return pin(op);
  case OpKind::Unpin:
    return unpin(op);
  case OpKind::Match:
    return match(op);
  case OpKind::Publish:
    return publish(op);
  default:
    return executeOnRanges(op);
  }
}

//===----------------------------------------------------------------------===//
// The caller's blocks
//===----------------------------------------------------------------------===//

void PoolRun::allocate(const Op &op) {
  int64_t count = op.a == 255 ? reference_->roomForCaller() + 1 : op.a % 3;
  if (reference_->held().size() + static_cast<size_t>(count) > mostHeld && op.a != 255)
    return;
  std::vector<quire_block> handles(static_cast<size_t>(count));
  quire_status expected = count > reference_->roomForCaller() ? QUIRE_OUT_OF_BLOCKS : QUIRE_OK;
  bool done = endedPaging(expected, quire_pool_allocate(pool_.get(), count, handles.data()), true);
  syncEvictions();
  if (done)
    reference_->allocate(handles);
}

void PoolRun::changeHeld(const Op &op) {
  if (reference_->held().empty())
    return;
  size_t index = op.a % reference_->held().size();
  PoolReference::Held held = reference_->held()[index];
  bool retains = op.kind == OpKind::Retain;
  quire_status status = retains ? quire_block_retain(pool_.get(), held.handle) : quire_block_release(pool_.get(), held.handle);
  if (!ended(reference_->mayUse(held), status))
    return;
  if (retains)
    reference_->retain(index);
  else if (reference_->drop(index))
    endedBlocks_.push_back(held.handle);
}

void PoolRun::fill(const Op &op) {
  if (reference_->held().empty())
    return;
  size_t index = op.a % reference_->held().size();
  uint64_t history = markHistory(reference_->held()[index].handle, op.b);
  reference_->fill(index, 0);
  for (int64_t layer = 0; layer < markLayers; ++layer)
    if (!writeBlock(reference_->held()[index].block, layer, std::vector<uint64_t>(markBlockTokens, history), 0, markBlockTokens))
      return;
  reference_->fill(index, history);
}

//===----------------------------------------------------------------------===//
// Tenants and time
//===----------------------------------------------------------------------===//

std::vector<uint32_t> PoolRun::liveTenants() const {
  std::vector<uint32_t> live;
  for (uint32_t i = 1; i < reference_->tenants().size(); ++i)
    if (reference_->tenants()[i].handle)
      live.push_back(i);
  return live;
}

void PoolRun::newTenant(const Op &op) {
  if (liveTenants().size() >= mostTenants)
    return;
  std::string name = std::array<const char *, 4>{"", "a", "b", "c"}[op.a % 4];
  int64_t timeToLive = op.b % 2 ? 0 : op.b % 60;
  quire_tenant_options options = {sizeof(options), name.empty() ? nullptr : name.data(), name.size(), timeToLive};
  quire_tenant made = 0;
  if (!ended(reference_->canMakeTenant(name), quire_tenant_create(pool_.get(), &options, &made)))
    return;
  reference_->makeTenant(name, timeToLive, made);
}

void PoolRun::endTenant(uint32_t tenant) {
  quire_tenant handle = reference_->tenants()[tenant].handle;
  if (!ended(reference_->canEndTenant(tenant), quire_tenant_destroy(pool_.get(), handle)))
    return;
  reference_->endTenant(tenant);
  endedTenants_.push_back(handle);
  std::vector<bool> used(static_cast<size_t>(pool_.inner().blocksTotal()));
  for (const PoolReference::Block &block : reference_->blocks())
    if (block.references())
      used[static_cast<size_t>(block.index)] = true;
  for (size_t index = 0; !pool_.pager() && index < used.size(); ++index)
    if (!used[index] && !isBlank(static_cast<int32_t>(index)))
      return fail("free block " + std::to_string(index) + " holds something after a tenant has ended");
}

void PoolRun::actAs(uint32_t tenant) {
  if (ended(QUIRE_OK, quire_pool_act_as(pool_.get(), tenant ? reference_->tenants()[tenant].handle : 0)))
    reference_->actAs(tenant);
}

void PoolRun::advance(const Op &op) {
  int64_t now = op.a == 255 ? reference_->now() - 1 : reference_->now() + op.a, dropped = -1;
  if (!ended(reference_->canAdvance(now), quire_pool_advance(pool_.get(), now, &dropped)))
    return;
  int64_t wanted = reference_->advance(now);
  if (dropped != wanted)
    fail(std::to_string(dropped) + " cached blocks were dropped, but " + std::to_string(wanted) + " are too old");
}

//===----------------------------------------------------------------------===//
// The pool as a whole
//===----------------------------------------------------------------------===//

void PoolRun::report() {
  const char *text = nullptr;
  ended(QUIRE_OK, quire_doctor(pool_.get(), nullptr, &text));
  ended(QUIRE_OK, quire_metrics(pool_.get(), &text));
  quire_paging_stats paging = {};
  paging.struct_size = sizeof(paging);
  if (ended(QUIRE_OK, quire_pool_get_paging_stats(pool_.get(), &paging)) && paging.hits + paging.late + paging.misses != paging.demands)
    fail("hits, late ones and misses are not all demands");
  reportRest();
}

/// Handles that ended are refused by every call.
void PoolRun::stale(const Op &op) {
  quire_pool *pool = pool_.get();
  if (!endedSequences_.empty()) {
    quire_sequence handle = endedSequences_[op.a % endedSequences_.size()], made = 0;
    int64_t number = 0, token = 0;
    const int32_t *table = nullptr;
    const int64_t *positions = nullptr;
    const float query = 0;
    quire_prune_options pruning = {sizeof(pruning), 0.5, nullptr, nullptr, 0};
    const std::function<quire_status()> calls[] = {[&] { return quire_sequence_length(pool, handle, &number); },
                                                   [&] { return quire_sequence_table(pool, handle, &table, &number); },
                                                   [&] { return quire_sequence_release(pool, handle); },
                                                   [&] { return quire_sequence_fork(pool, handle, 0, &made); },
                                                   [&] { return quire_sequence_reserve(pool, handle, 1); },
                                                   [&] { return quire_sequence_commit(pool, handle, 0); },
                                                   [&] { return quire_sequence_truncate(pool, handle, 0); },
                                                   [&] { return quire_sequence_move(pool, handle, &made); },
                                                   [&] { return quire_sequence_intact(pool, handle, &number); },
                                                   [&] { return quire_sequence_match_prefix(pool, handle, &token, 1, &number); },
                                                   [&] { return quire_sequence_publish(pool, handle, &token, 1); },
                                                   [&] { return quire_sequence_pin(pool, handle, 0, 0); },
                                                   [&] { return quire_sequence_unpin(pool, handle, 0, 0); },
                                                   [&] { return quire_sequence_end_turn(pool, handle, 1); },
                                                   [&] { return quire_sequence_unload(pool, handle, 0, 0); },
                                                   [&] { return quire_sequence_prune(pool, handle, 0, 0, &pruning, nullptr); },
                                                   [&] { return quire_sequence_positions(pool, handle, &positions, &number); },
                                                   [&] { return quire_sequence_prefetch_by_query(pool, handle, 0, &query, 1, 0, &number, nullptr, &number); },
                                                   [&] { return quire_sequence_set_importance(pool, handle, 0, 0, 0); }};
    ended(QUIRE_STALE_HANDLE, calls[op.b % std::size(calls)]());
  }
  if (!endedBlocks_.empty()) {
    quire_block handle = endedBlocks_[op.a % endedBlocks_.size()];
    int32_t index = 0;
    ended(QUIRE_STALE_HANDLE, op.b % 3 == 0 ? quire_block_retain(pool, handle) : op.b % 3 == 1 ? quire_block_release(pool, handle) : quire_block_index(pool, handle, &index));
  }
  if (!endedTenants_.empty()) {
    quire_tenant handle = endedTenants_[op.a % endedTenants_.size()];
    quire_tenant_stats stats = {};
    stats.struct_size = sizeof(stats);
    ended(QUIRE_STALE_HANDLE, op.b % 2 ? quire_pool_act_as(pool, handle) : quire_tenant_get_stats(pool, handle, &stats));
  }
}

void PoolRun::fault(const Op &op) {
  if (!pool_.pager())
    return;
  using runtime::Fault;
  auto kind = Fault::Kind(op.a % Fault::kinds);
  bool ofStores = kind == Fault::Kind::NoSpace || kind == Fault::Kind::TornStore || kind == Fault::Kind::SwapSlots;
  auto on = ofStores ? runtime::Transfer::Kind::Store : runtime::Transfer::Kind(op.b % 3);
  Fault fault;
  fault.kind = kind;
  fault.on = on;
  fault.first = op.c % 16;
  fault.count = 1 + op.b / 3 % 6;
  fault.ns = faultNs;
  pool_.plan(fault);
  degraded_ = true;
  ++calls_;
  ++counts_.succeeded[kind_];
}

void PoolRun::crash(const Op &op) {
  ++calls_;
  ++counts_.succeeded[kind_];
  std::string error = pool_.crash(op.a % 3);
  if (error.empty())
    begin();
  else
    fail(error);
}

/// Once the slow tier takes nothing new, the pool has less room than blocks that are not in use, and depends
/// on where pages lie.
void PoolRun::syncRoom() {
  const runtime::Pool &pool = pool_.inner();
  if (pool.pager() && pool.pager()->full())
    reference_->setRoom(pool.blocksFree(), pool.blocksReclaimable());
}

/// How many cached blocks gave way does then, too, and so it does when a copy found no room beside pages that are held by hand.
void PoolRun::syncEvictions() {
  if (!degraded_ && last_ != QUIRE_NO_SPACE)
    return;
  AsServer server(*this);
  int64_t evicted = 0, known = 0;
  for (uint32_t tenant : liveTenants()) {
    quire_tenant_stats stats = {};
    stats.struct_size = sizeof(stats);
    quire_tenant_get_stats(pool_.get(), reference_->tenants()[tenant].handle, &stats);
    evicted += stats.blocks_evicted;
    known += reference_->tenants()[tenant].evicted;
  }
  reference_->evict(evicted - known);
  reference_->setRoom(INT64_MAX, 0);
}

} // namespace quire::test
