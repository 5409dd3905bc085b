// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of programs on what stays in memory, on the memory's size, and on what others are told of it.
#include "PoolRun.h"

#include <algorithm>
#include <set>

#include <sys/mman.h>
#include <unistd.h>

namespace quire::test {

void PoolRun::executeOnRanges(const Op &op) {
  switch (op.kind) {
  case OpKind::PinRange:
  case OpKind::UnpinRange:
    return pinRange(op);
  case OpKind::EndTurn:
    return endTurn(op);
  case OpKind::Unload:
    return unload(op);
  case OpKind::Prune:
    return prune(op);
  case OpKind::Ask:
    return ask(op);
  default:
    return weigh(op);
  }
}

//===----------------------------------------------------------------------===//
// What stays and what leaves
//===----------------------------------------------------------------------===//

/// One token more than there is now and then.
static std::pair<int64_t, int64_t> rangeOf(const Op &op, int64_t length) {
  int64_t begin = op.b % (length + 1);
  return {begin, op.c == 255 ? length + 1 : begin + op.c % (length - begin + 1)};
}

void PoolRun::pinRange(const Op &op) {
  size_t index = pick(op.a);
  auto [begin, end] = rangeOf(op, at(index).length());
  bool pins = op.kind == OpKind::PinRange;
  quire_status expected = pins ? reference_->canName(index, begin, end) : reference_->canUnpin(index, begin, end);
  quire_sequence handle = at(index).handle;
  if (!ended(expected, pins ? quire_sequence_pin(pool_.get(), handle, begin, end) : quire_sequence_unpin(pool_.get(), handle, begin, end)))
    return;
  if (pins)
    reference_->pin(index, begin, end);
  else
    reference_->unpin(index, begin, end);
}

void PoolRun::endTurn(const Op &op) {
  size_t index = pick(op.a);
  int64_t end = op.c % 4 ? lengthOf(op, at(index).length()) : at(index).length();
  if (ended(reference_->canEndTurn(index, end), quire_sequence_end_turn(pool_.get(), at(index).handle, end)))
    reference_->endTurn(index, end);
}

void PoolRun::dialogue(const Op &op) {
  PoolReference::Dialogue rules;
  rules.recentTurns = op.a >= 240 ? -1 : op.a % 4;
  rules.recentPages = op.b % 3;
  for (int64_t page = 0; page < 8; ++page)
    if (op.c >> page & 1)
      rules.importantPages.push_back(page);
  quire_dialogue_options options = {sizeof(options), rules.recentTurns, rules.recentPages, rules.importantPages.data(),
                                    static_cast<int64_t>(rules.importantPages.size())};
  if (ended(op.a >= 240 ? QUIRE_INVALID_ARGUMENT : QUIRE_OK, quire_pool_set_dialogue(pool_.get(), &options)))
    reference_->setDialogue(std::move(rules));
}

/// The slow tier may be full, which is no fault.
void PoolRun::unload(const Op &op) {
  size_t index = pick(op.a);
  auto [begin, end] = rangeOf(op, at(index).length());
  quire_status expected = reference_->canName(index, begin, end);
  quire_status status = quire_sequence_unload(pool_.get(), at(index).handle, begin, end);
  if (expected == QUIRE_OK && status == QUIRE_NO_SPACE && pool_.pager() && pool_.pager()->slow().slots().freeCount() == 0)
    expected = status;
  if (!endedPaging(expected, status, true) || !pool_.pager())
    return;
  for (int64_t i = (begin + markBlockTokens - 1) / markBlockTokens; i < end / markBlockTokens; ++i)
    if (!pool_.pager()->isUnloaded(static_cast<uint32_t>(reference_->blocks()[at(index).blocks[static_cast<size_t>(i)]].index)))
      return fail("a block that was unloaded is still there");
}

void PoolRun::weigh(const Op &op) {
  size_t index = pick(op.a);
  auto [begin, end] = rangeOf(op, at(index).length());
  float importance = op.a == 255 ? 1.5f : static_cast<float>(op.a) / 255;
  quire_status expected = op.a == 255 ? QUIRE_INVALID_ARGUMENT : reference_->canName(index, begin, end);
  ended(expected, quire_sequence_set_importance(pool_.get(), at(index).handle, begin, end, importance));
}

/// No key of a named block has a larger score than its bound, and no block that is not named a larger one than the last bound.
void PoolRun::ask(const Op &op) {
  size_t index = pick(op.a);
  int64_t layer = op.b % markLayers, count = op.c % 6, found = -1;
  const quire_model_info &info = markInfo();
  int64_t channels = info.layers[layer].key_dim, heads = info.layers[layer].kv_heads;
  std::vector<float> query, key(static_cast<size_t>(channels)), value(static_cast<size_t>(info.layers[layer].value_dim));
  for (int64_t i = 0; i < heads * channels; ++i)
    query.push_back(static_cast<float>((op.a + 3 * op.b + 7 * i) % 11 - 5));
  int64_t places[6];
  double bounds[6];
  quire_status expected = pool_.pager() ? reference_->canName(index, 0, 0) : QUIRE_INVALID_ARGUMENT;
  if (!endedPaging(expected, quire_sequence_prefetch_by_query(pool_.get(), at(index).handle, layer, query.data(), heads, count, places, bounds, &found), true))
    return;
  int64_t length = at(index).length(), blocks = (length + markBlockTokens - 1) / markBlockTokens;
  if (found != std::min(count, blocks))
    return fail(std::to_string(found) + " blocks are named");
  std::vector<char> block(static_cast<size_t>(info.layers[layer].block_bytes));
  for (int64_t position = 0; position < length && found > 0 && good(); ++position) {
    const int64_t *named = std::find(places, places + found, position / markBlockTokens);
    double bound = bounds[std::min<int64_t>(named - places, found - 1)];
    writeMarks(block.data(), layer, position % markBlockTokens, at(index).history[static_cast<size_t>(position)]);
    for (int64_t head = 0; head < heads; ++head) {
      quire_block_load_row(&info, layer, block.data(), head, position % markBlockTokens, key.data(), value.data());
      double score = 0;
      for (int64_t c = 0; c < channels; ++c)
        score += static_cast<double>(query[static_cast<size_t>(head * channels + c)]) * static_cast<double>(key[static_cast<size_t>(c)]);
      if (score > bound)
        fail("position " + std::to_string(position) + " has a score of " + std::to_string(score) + " above " + std::to_string(bound));
    }
  }
}

//===----------------------------------------------------------------------===//
// Fewer tokens and other places
//===----------------------------------------------------------------------===//

/// The first token of the sequence may be one to keep. A new block and one of the old ones are wanted at a time.
void PoolRun::prune(const Op &op) {
  static constexpr double ratios[] = {0.5, 0.75, 0.3, 1, 0.5, 0.5, 0.9, 1.5};
  size_t index = pick(op.a);
  auto [begin, end] = rangeOf(op, at(index).length());
  PoolReference::Pruning pruning;
  pruning.begin = begin;
  pruning.end = end;
  pruning.ratio = ratios[op.a / 8 % 8];
  pruning.keepsFirst = op.b % 4 == 0;
  for (int64_t i = begin; i < end; ++i)
    pruning.scores.push_back(static_cast<float>(markHistory(op.c, i) % 7));
  const int64_t keep[] = {0, 1};
  quire_prune_options options = {sizeof(options), pruning.ratio, pruning.scores.data(), keep, pruning.keepsFirst};
  quire_pruning done = {sizeof(done), 0, 0};
  quire_status expected = reference_->canPrune(index, pruning);
  bool fits = true;
  if (expected == QUIRE_OK)
    for (uint32_t name : reference_->sourcesOf(index, pruning))
      fits = fits && fitsPinned({name, PoolReference::none});
  bool ends = endedPaging(expected, quire_sequence_prune(pool_.get(), at(index).handle, begin, end, &options, &done), fits);
  syncEvictions();
  if (!ends)
    return;
  int64_t blocks = reference_->prune(index, pruning);
  if (done.blocks != blocks || done.tokens != blocks * markBlockTokens)
    fail(std::to_string(done.blocks) + " blocks were pruned, but " + std::to_string(blocks) + " should be");
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// Blocks of a pool whose memory has so many pages, or blocks: a sixteenth of the pages is to exchange others with.
int64_t PoolRun::limitOf(int64_t units) const {
  const runtime::Pager *pager = pool_.pager();
  if (!pager)
    return units;
  if (degraded_) // slots of the slow tier may have failed
    return pager->blockLimitOf(static_cast<uint64_t>(units));
  int64_t spare = std::max<int64_t>(1, units / 16), slow = pager->slow().slots().total();
  int64_t fast = pool_.codec() == runtime::Codec::None ? units - spare : 0; // with a codec each page has a slow slot
  return std::min(pool_.inner().blocksTotal(), units > spare ? (fast + slow) / groups() : 0);
}

void PoolRun::applyTuning() {
  reference_->setReserve(static_cast<int64_t>(tuning_.reserve_ratio * static_cast<double>(units_ / (pool_.pager() ? groups() : 1))));
}

void PoolRun::resize(const Op &op) {
  int64_t units = op.b % 3 ? unitsAtFirst_ : op.a % (unitsAtFirst_ + 2), limit = limitOf(units);
  uint64_t unit = pool_.pager() ? pool_.pager()->geometry().pageStride : static_cast<uint64_t>(pool_.inner().blockBytes());
  const char *end = pool_.pager() && !pool_.stableVa() ? pool_.pager()->arenaBegin() + static_cast<uint64_t>(units) * unit : nullptr;
  bool held = end && std::any_of(pins_.begin(), pins_.end(), [&](const Pinned &pin) { return pin.address >= end; });
  bool sealed = pool_.exportable() && units < unitsAtFirst_;
  bool wrong = reference_->acting() || limit == 0 || units > unitsAtFirst_ || held || sealed;
  quire_status expected = wrong ? QUIRE_INVALID_ARGUMENT : reference_->canLimit(limit);
  std::set<std::pair<int64_t, uint32_t>> pages; // with addresses that stay, what is held stays as well
  for (const Pinned &pin : pins_)
    pages.insert({pin.layer / pool_.layersPerPage(), pin.block});
  bool fits = !pool_.pager() || static_cast<int64_t>(pages.size()) <= units;
  bool done = endedPaging(expected, quire_pool_resize_fast(pool_.get(), static_cast<uint64_t>(units) * unit), fits);
  syncEvictions();
  if (!done)
    return;
  int64_t least = limitOf(units), made = pool_.pager() ? pool_.pager()->blockLimit() : least; // slots may have failed before and after it was set
  if (made < least || made > limit)
    fail("a limit of " + std::to_string(made) + " blocks, expected " + std::to_string(least) + " to " + std::to_string(limit));
  reference_->setLimit(limit, made);
  units_ = units;
  applyTuning();
}

/// The highest blocks that may move go into the lowest places that nobody uses, and keep what they hold.
void PoolRun::compact() {
  bool refused = reference_->acting() || pool_.exportable() || (pool_.stableVa() && !pool_.pager());
  std::vector<uint32_t> owners(static_cast<size_t>(pool_.inner().blocksTotal()), PoolReference::none);
  for (uint32_t name = 0; name < reference_->blocks().size(); ++name)
    if (reference_->blocks()[name].references())
      owners[static_cast<size_t>(reference_->blocks()[name].index)] = name;
  std::vector<std::pair<uint32_t, int32_t>> moves;
  for (size_t low = 0, high = owners.size(); !pool_.pager() && low < high;) {
    uint32_t name = owners[high - 1];
    auto isPinned = [&](const Pinned &pin) { return pin.block == name; };
    if (owners[low] != PoolReference::none)
      ++low;
    else if (name == PoolReference::none || reference_->blocks()[name].handles || std::any_of(pins_.begin(), pins_.end(), isPinned))
      --high;
    else
      moves.emplace_back(owners[--high], static_cast<int32_t>(low++));
  }
  quire_compaction done = {sizeof(done), 0, 0};
  if (!ended(refused ? QUIRE_INVALID_ARGUMENT : QUIRE_OK, quire_pool_compact(pool_.get(), &done)))
    return;
  auto count = static_cast<int64_t>(moves.size());
  if (done.blocks != count || done.bytes != count * pool_.inner().blockBytes())
    return fail(std::to_string(done.blocks) + " blocks moved, but " + std::to_string(count) + " should");
  for (auto [name, index] : moves)
    reference_->see(name, index);
  moved_ += count;
}

/// What is refused changes nothing.
void PoolRun::tune(const Op &op) {
  static constexpr double ratios[] = {0, 0, 0.2, 0.5}, budgets[] = {0.25, 0, 0.5, 1};
  static constexpr int64_t idleSteps[] = {0, 0, 2, 5};
  quire_pool_tuning tuning = tuning_;
  tuning.reserve_ratio = op.a >= 248 ? 0.75 : ratios[op.a % 4];
  tuning.pin_budget = op.b >= 248 ? -0.5 : budgets[op.b % 4];
  tuning.prefetch_strategy = op.c % 4;
  tuning.prefetch_predictor = op.a / 4 % 2;
  tuning.prefetch_topk = 1 + op.a / 8 % 4;
  tuning.idle_steps = pool_.pager() ? idleSteps[op.b / 4 % 4] : 0;
  tuning.prefetch_window = op.c == 255 ? -1 : op.c / 2 % 6;
  tuning.prefetch_bytes = op.c >= 128 ? UINT64_MAX : op.c * 64u;
  tuning.time_blocks = op.c / 16 % 2;
  bool wrong = op.a >= 248 || op.b >= 248 || op.c == 255;
  if (ended(wrong ? QUIRE_INVALID_ARGUMENT : QUIRE_OK, quire_pool_set_tuning(pool_.get(), &tuning)))
    tuning_ = tuning;
  applyTuning();
  quire_pool_tuning found = {};
  found.struct_size = sizeof(found);
  bool same = ended(QUIRE_OK, quire_pool_get_tuning(pool_.get(), &found)) && found.reserve_ratio == tuning_.reserve_ratio && found.time_blocks == tuning_.time_blocks;
  if (pool_.pager())
    same = same && found.pin_budget == tuning_.pin_budget && found.prefetch_strategy == tuning_.prefetch_strategy &&
           found.prefetch_predictor == tuning_.prefetch_predictor && found.prefetch_topk == tuning_.prefetch_topk && found.idle_steps == tuning_.idle_steps &&
           found.prefetch_window == tuning_.prefetch_window && found.prefetch_bytes == tuning_.prefetch_bytes;
  if (!same)
    fail("the pool has another tuning than was set");
}

void PoolRun::setWindow(int64_t pages) {
  if (ended(pages < 0 ? QUIRE_INVALID_ARGUMENT : QUIRE_OK, quire_pool_set_prefetch_window(pool_.get(), pages)))
    tuning_.prefetch_window = pages;
}

//===----------------------------------------------------------------------===//
// What others see
//===----------------------------------------------------------------------===//

/// Another mapping of the arena shows every stored token.
void PoolRun::exportArena() {
  int descriptor = -1;
  if (!ended(pool_.exportable() ? QUIRE_OK : QUIRE_INVALID_ARGUMENT, quire_pool_export(pool_.get(), &descriptor)))
    return;
  auto bytes = static_cast<size_t>(::lseek(descriptor, 0, SEEK_END));
  void *mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (mapped == MAP_FAILED)
    return fail("the arena cannot be mapped");
  uint64_t offset = 0;
  ended(QUIRE_INVALID_ARGUMENT, quire_pool_block_offset(pool_.get(), markLayers, 0, &offset));
  for (const PoolReference::Sequence &sequence : reference_->sequences())
    for (int64_t position = 0; position < sequence.length() && good(); ++position)
      for (int64_t layer = 0; layer < markLayers; ++layer) {
        int32_t block = reference_->blocks()[sequence.blocks[static_cast<size_t>(position / markBlockTokens)]].index;
        if (!ended(QUIRE_OK, quire_pool_block_offset(pool_.get(), layer, block, &offset)))
          break;
        if (!holdsMarks(static_cast<const char *>(mapped) + offset, layer, position % markBlockTokens, sequence.history[static_cast<size_t>(position)]))
          fail("another process sees other bytes at position " + std::to_string(position));
      }
  ::munmap(mapped, bytes);
}

/// What is not compared after every operation.
void PoolRun::reportRest() {
  quire_latency_stats latency = {};
  latency.struct_size = sizeof(latency);
  for (int64_t operation = QUIRE_OPERATION_ALLOCATE; operation <= QUIRE_OPERATION_MAKE_ROOM + 1; ++operation)
    ended(operation > QUIRE_OPERATION_MAKE_ROOM ? QUIRE_INVALID_ARGUMENT : QUIRE_OK, quire_pool_get_latency(pool_.get(), operation, &latency));
  quire_tier_stats tier = {};
  tier.struct_size = sizeof(tier);
  size_t tiers = pool_.pager() ? pool_.pager()->slow().slots().members().size() : 0;
  for (size_t i = 0; i <= tiers; ++i)
    ended(i == tiers ? QUIRE_INVALID_ARGUMENT : QUIRE_OK, quire_pool_get_tier_stats(pool_.get(), static_cast<int64_t>(i), &tier));
  std::string path = slotFileOf(::getpid()) + ".trace";
  ended(traced_ ? QUIRE_OK : QUIRE_INVALID_ARGUMENT, quire_pool_write_trace(pool_.get(), path.c_str()));
  ::unlink(path.c_str());
  void *address = nullptr;
  bool moves = pool_.pager() && !pool_.stableVa();
  if (ended(moves ? QUIRE_INVALID_ARGUMENT : QUIRE_OK, quire_pool_block_address(pool_.get(), 1, 0, &address)) && !pool_.pager() && address != pool_.inner().layerBase(1))
    fail("block 0 of layer 1 lies elsewhere");
  quire_executor_stats stats = {};
  stats.struct_size = sizeof(stats);
  ended(QUIRE_OK, quire_executor_get_stats(pool_.executor(), &stats));
  const quire_trace_event *events = nullptr;
  int64_t count = -1, stride = 0;
  if (ended(QUIRE_OK, quire_executor_trace(pool_.executor(), &events, &count)) && count != 0)
    fail("calls are recorded that nobody asked for");
  const float *shares = nullptr;
  ended(QUIRE_INVALID_ARGUMENT, quire_executor_attention(pool_.executor(), markLayers, &shares, &count, &stride));
}

} // namespace quire::test
