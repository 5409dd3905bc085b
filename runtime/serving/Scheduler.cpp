// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scheduling loop.
#include "serving/Scheduler.h"

#include "core/Quantities.h"

#include <algorithm>

namespace quire::serving {

/// A device that loses this much will not become better.
static constexpr int64_t maxLosses = 16;

/// At the end of each error of a request that needs more room than there is.
static constexpr const char *raiseMemory = "; raise memory.fast_bytes (--kv-bytes)";

int64_t Scheduler::Active::token(int64_t index) const {
  size_t i = static_cast<size_t>(index);
  size_t prompt = request.prompt.size();
  return i < prompt ? request.prompt[i] : result.tokens[i - prompt];
}

Scheduler::Scheduler(const quire_model_info &model, quire_pool *pool, quire_executor *executor,
                     const SchedulerLimits &limits, ResultSink &sink)
    : model_(model), pool_(pool), executor_(executor), limits_(limits), sink_(sink),
      prefixes_(pool, limits.prefixCache, limits.prefixTimeToLive) {
  quire_pool_stats stats = poolStats();
  blocksTotal_ = stats.blocks_total;
  stepBlocks_ = stats.step_blocks;
  blockBytes_ = stats.block_bytes;
}

Scheduler::~Scheduler() {
  for (size_t index : running_)
    releaseBlocks(requests_[index]);
}

quire_pool_stats Scheduler::poolStats() const {
  quire_pool_stats stats = {};
  stats.struct_size = sizeof(stats);
  quire_pool_get_stats(pool_, &stats);
  return stats;
}

/// A failure that no request caused.
bool Scheduler::broken(const char *what) {
  error_ = std::string(what) + ": " + quire_last_error();
  return false;
}

/// Whether the request can ever complete in this pool. With stop tokens its
/// length is not known, so only the prompt counts. The last token is not stored.
bool Scheduler::fits(const Active &active, std::string &why) const {
  int64_t stored = static_cast<int64_t>(active.request.prompt.size());
  if (active.request.stop.empty())
    stored += active.request.maxNewTokens - 1;
  int64_t needed = blocksFor(stored);
  if (needed <= std::min(blocksTotal_, stepBlocks_))
    return true;
  if (needed <= blocksTotal_) {
    why = "needs " + std::to_string(needed) + " blocks at once, but the fast tier holds " +
          std::to_string(stepBlocks_) + " of a layer" + raiseMemory;
    return false;
  }
  why = "needs " + std::to_string(needed) + " blocks of " + std::to_string(model_.block_tokens) +
        " tokens, but the pool has " + std::to_string(blocksTotal_) + raiseMemory;
  if (stepBlocks_ == blocksTotal_) // one tier
    why += " to at least " + runtime::printSize(static_cast<uint64_t>(needed * blockBytes_));
  return false;
}

bool Scheduler::refuse(Active &active, const std::string &text) {
  active.result.reason = FinishReason::Error;
  active.result.error = text;
  bool taken = sink_.finished(active.request, active.result);
  active = Active();
  return taken;
}

bool Scheduler::add(Request request) {
  requests_.emplace_back();
  Active &active = requests_.back();
  active.request = std::move(request);
  std::string why = active.request.error;
  if (!why.empty())
    return refuse(active, why);
  if (!fits(active, why))
    return refuse(active, "line " + std::to_string(active.request.line) + ": " + why);
  waiting_.push_back(requests_.size() - 1);
  return true;
}

/// Notes the blocks that the sequence got since the last time.
void Scheduler::recordBlocks(Active &active) {
  const int32_t *blocks = nullptr;
  int64_t count = 0;
  quire_sequence_table(pool_, active.sequence, &blocks, &count);
  if (count == active.recorded)
    return;
  statistics_.blockEvents.push_back({static_cast<int64_t>(statistics_.steps.size()), active.request.id,
                                     std::vector<int32_t>(blocks + active.recorded, blocks + count)});
  active.recorded = count;
}

/// After the table changed otherwise than at its end: for the statistics it is given back and taken anew.
void Scheduler::recordBlocksAnew(Active &active) {
  statistics_.blockEvents.push_back({static_cast<int64_t>(statistics_.steps.size()), active.request.id, {}});
  active.recorded = 0;
  recordBlocks(active);
}

void Scheduler::knownTokens(const Active &active, int64_t count) {
  stored_.clear();
  for (int64_t i = 0; i < count; ++i)
    stored_.push_back(active.token(i));
}

void Scheduler::releaseBlocks(Active &active) {
  if (active.sequence)
    quire_sequence_release(pool_, active.sequence);
  if (active.recorded)
    statistics_.blockEvents.push_back({static_cast<int64_t>(statistics_.steps.size()), active.request.id, {}});
  active.sequence = 0;
  active.stored = 0;
  active.recorded = 0;
  active.published = 0;
  active.turns.rewind(active.request.turns, 0);
  active.paragraphs = 0;
}

/// Gives the request its cached prefix, if such are kept. It ends before the last token that is named.
bool Scheduler::openShared(Active &active) {
  if (!prefixes_.enabled())
    return true;
  knownTokens(active, std::min(active.known(), active.turns.shareable(active.request.turns, turnRules_)));
  if (prefixes_.open(active.request.tenant, active.preempted, stored_, active.sequence, active.stored) != QUIRE_OK)
    return broken("looking for a prefix");
  active.published = active.stored / model_.block_tokens;
  return true;
}

/// Lets others find the blocks that became full, which may change the table. What was computed without tokens that were dropped is nobody else's.
bool Scheduler::publishBlocks(Active &active) {
  int64_t full = active.stored / model_.block_tokens;
  if (!prefixes_.enabled() || full == active.published || active.turns.dropped() > 0)
    return true;
  knownTokens(active, full * model_.block_tokens);
  bool changed = false;
  if (prefixes_.publish(active.sequence, stored_, changed) != QUIRE_OK)
    return broken("publishing a prefix");
  active.published = full;
  if (changed)
    recordBlocksAnew(active);
  return true;
}

/// A slow tier that takes no more is no reason to end a run: what stays is where it was.
bool Scheduler::endParagraphs(Active &active) {
  const std::vector<int64_t> &ends = active.request.paragraphs;
  for (; active.paragraphs < ends.size() && ends[active.paragraphs] <= active.stored; ++active.paragraphs) {
    size_t i = active.paragraphs;
    int64_t begin = Turns::placeOf(pool_, active.sequence, i ? ends[i - 1] : 0), end = Turns::placeOf(pool_, active.sequence, ends[i]);
    if (documents_.weigh && active.weights.empty()) {
      active.weights.resize(ends.size());
      if (quire_tfidf(active.request.prompt.data(), ends.data(), static_cast<int64_t>(ends.size()), active.weights.data()) != QUIRE_OK)
        return broken("weighing paragraphs");
    }
    if (documents_.weigh && quire_sequence_set_importance(pool_, active.sequence, begin, end, active.weights[i]) != QUIRE_OK)
      return broken("weighing a paragraph");
    quire_status status = documents_.unload ? quire_sequence_unload(pool_, active.sequence, begin, end) : QUIRE_OK;
    if (status != QUIRE_OK && status != QUIRE_NO_SPACE)
      return broken("unloading a paragraph");
  }
  return true;
}

void Scheduler::preemptYoungest() {
  size_t index = running_.back();
  running_.pop_back();
  releaseBlocks(requests_[index]);
  requests_[index].preempted = true;
  waiting_.push_front(index);
  ++statistics_.preemptions;
}

/// Makes room for the next token of a running sequence; younger ones give way,
/// then itself (`kept` false). An oldest one without room has the whole pool.
bool Scheduler::growOne(size_t position, bool &preempted, bool &kept) {
  size_t index = running_[position];
  Active &active = requests_[index];
  kept = true;
  for (;;) {
    quire_status status = quire_sequence_reserve(pool_, active.sequence, active.pending());
    if (status == QUIRE_OK)
      return true;
    if (status != QUIRE_OUT_OF_BLOCKS)
      return broken("reserving blocks");
    if (running_.size() == 1) {
      kept = false;
      return finish(index, FinishReason::Error,
                    "the pool of " + std::to_string(blocksTotal_) + " blocks is full after " +
                        std::to_string(active.stored) + " tokens" + raiseMemory);
    }
    bool itself = running_.back() == index;
    preemptYoungest();
    preempted = true;
    if (itself) {
      kept = false;
      return true;
    }
  }
}

/// Makes the sequence of a dialogue shorter where its turns say so. What stays needs room for a moment: the sequence's own reservation goes for it, then younger
/// sequences, then itself. For whether it is done must not depend on others.
bool Scheduler::pruneOne(size_t index, bool &preempted) {
  Active &active = requests_[index];
  knownTokens(active, active.stored);
  for (bool reserved = true;;) {
    bool changed = false;
    quire_status status = active.turns.prune(pool_, active.sequence, active.request.turns, stored_, turnRules_, changed);
    if (status == QUIRE_OK && changed)
      recordBlocksAnew(active);
    if (status == QUIRE_OK)
      return true;
    if (status == QUIRE_PAGE_LOST) {
      std::string text = quire_last_error();
      int64_t stored = active.stored;
      if (!giveUpLost(index, text))
        return false;
      return active.stored != stored || finish(index, FinishReason::Error, text);
    }
    if (status != QUIRE_OUT_OF_BLOCKS && status != QUIRE_NO_SPACE)
      return broken("pruning old turns");
    if (reserved) {
      reserved = false;
      if (quire_sequence_truncate(pool_, active.sequence, active.places()) != QUIRE_OK)
        return broken("giving up a reservation");
      active.recorded = std::min(active.recorded, blocksFor(active.places()));
      continue;
    }
    if (running_.size() == 1)
      return finish(index, FinishReason::Error,
                    "the pool of " + std::to_string(blocksTotal_) + " blocks has no room to prune the first " + std::to_string(active.stored) +
                        " tokens" + raiseMemory);
    bool itself = running_.back() == index;
    preemptYoungest();
    preempted = true;
    if (itself)
      return true;
  }
}

bool Scheduler::pruneRunning(bool &preempted) {
  for (size_t position = 0; position < running_.size();) {
    size_t index = running_[position];
    const Active &active = requests_[index];
    if (active.turns.due(active.request.turns, active.stored) && !pruneOne(index, preempted))
      return false;
    position += position < running_.size() && running_[position] == index;
  }
  return true;
}

bool Scheduler::growRunning(bool &preempted) {
  for (size_t position = 0; position < running_.size();) {
    bool kept;
    if (!growOne(position, preempted, kept))
      return false;
    position += kept;
  }
  return true;
}

/// A step with many prompt tokens takes long, and sequences that decode wait for
/// it; so there are few of them beside decoding ones.
int64_t Scheduler::prefillBudget() const {
  bool decodes = std::any_of(running_.begin(), running_.end(), [&](size_t index) {
    return requests_[index].stored >= requests_[index].prefillEnd;
  });
  return decodes ? std::min(limits_.prefillChunk, limits_.mixedChunk) : limits_.prefillChunk;
}

/// False: the step's sequences and this one are more than the fast tier holds.
bool Scheduler::takePart(size_t index, int64_t tokens) {
  int64_t blocks = blocksFor(requests_[index].places() + tokens);
  if (blocks > stepRoom_)
    return false;
  stepRoom_ -= blocks;
  parts_.push_back({index, tokens});
  return true;
}

/// Decoding sequences take part with one token each, prefilling ones share the
/// budget from the oldest on. Those that do not fit come first next time.
void Scheduler::planRunning(int64_t &budget, int64_t &prefill) {
  stepRoom_ = stepBlocks_;
  size_t first = turn_ < running_.size() ? turn_ : 0;
  turn_ = 0;
  for (size_t i = 0; i < running_.size(); ++i) {
    size_t position = (first + i) % running_.size();
    Active &active = requests_[running_[position]];
    bool prompt = active.stored < active.prefillEnd;
    int64_t tokens = prompt ? std::min(active.pending(), budget) : active.pending();
    tokens = std::min(tokens, active.turns.stop(active.request.turns, active.stored, turnRules_) - active.stored);
    if (tokens == 0)
      continue;
    if (!takePart(running_[position], tokens)) {
      turn_ = position;
      break;
    }
    budget -= prompt ? tokens : 0;
    prefill += prompt ? tokens : 0;
  }
}

bool Scheduler::admit(int64_t &budget, int64_t &prefill) {
  while (!waiting_.empty() && budget > 0 && static_cast<int64_t>(running_.size()) < limits_.maxBatch) {
    size_t index = waiting_.front();
    Active &active = requests_[index];
    if (!openShared(active))
      return false;
    quire_pool_stats pool = poolStats();
    // One that gave way comes back only if it will not have to again at once.
    int64_t spare = running_.empty() ? 0 : std::max<int64_t>(pool.reserve_blocks, active.preempted);
    int64_t needed = blocksFor(active.known()) - blocksFor(active.stored);
    if (needed + spare > pool.blocks_free + pool.blocks_reclaimable) {
      releaseBlocks(active);
      if (!running_.empty())
        return true;
      waiting_.pop_front();
      if (!finish(index, FinishReason::Error,
                  "needs " + std::to_string(needed) + " blocks, but the pool has " + std::to_string(blocksTotal_)))
        return false;
      continue;
    }
    if ((!active.sequence && quire_sequence_create(pool_, &active.sequence) != QUIRE_OK) ||
        quire_sequence_reserve(pool_, active.sequence, active.pending()) != QUIRE_OK)
      return broken("admitting a request");
    waiting_.pop_front();
    running_.push_back(index);
    active.prefillEnd = active.known();
    int64_t tokens = std::min(active.pending(), budget);
    tokens = std::min(tokens, active.turns.stop(active.request.turns, active.stored, turnRules_) - active.stored);
    if (!takePart(index, tokens)) {
      turn_ = running_.size() - 1;
      return true;
    }
    budget -= tokens;
    prefill += tokens;
  }
  return true;
}

/// The sequence whose turn it is has more blocks than a step may have.
bool Scheduler::tooLongForStep() {
  size_t index = running_[turn_];
  return finish(index, FinishReason::Error,
                "after " + std::to_string(requests_[index].stored) + " tokens it needs more than the " +
                    std::to_string(stepBlocks_) + " blocks that the fast tier holds of a layer" + raiseMemory);
}

Scheduler::Progress Scheduler::step() {
  if (waiting_.empty() && running_.empty())
    return Progress::Idle;
  parts_.clear();
  if (prefixes_.advance(std::chrono::nanoseconds(Clock::now() - start_).count()) != QUIRE_OK) {
    broken("dropping old prefixes");
    return Progress::Failed;
  }
  bool preempted = false;
  if (!pruneRunning(preempted) || !growRunning(preempted))
    return Progress::Failed;
  int64_t budget = prefillBudget(), prefill = 0;
  planRunning(budget, prefill);
  if (parts_.empty() && !running_.empty())
    return tooLongForStep() ? Progress::Stepped : Progress::Failed;
  // After a preemption the pool is tight; whoever gave way waits a step.
  bool closed = (preempted && !parts_.empty()) || (tight_ && !running_.empty());
  if (!closed && !admit(budget, prefill))
    return Progress::Failed;
  if (parts_.empty()) // the last ones ended in errors
    return waiting_.empty() && running_.empty() ? Progress::Idle : Progress::Stepped;
  return runStep(prefill) ? Progress::Stepped : Progress::Failed;
}

bool Scheduler::runStep(int64_t prefill) {
  sequences_.clear();
  counts_.clear();
  tokens_.clear();
  selected_.clear();
  selectedOwner_.clear();
  StepRecord record;
  for (const Part &part : parts_) {
    Active &active = requests_[part.active];
    recordBlocks(active);
    sequences_.push_back(active.sequence);
    counts_.push_back(part.tokens);
    for (int64_t i = 0; i < part.tokens; ++i)
      tokens_.push_back(active.token(active.stored + i));
    active.stored += part.tokens;
    record.kvTokens += active.places();
    if (active.pending() == 0) {
      selected_.push_back(static_cast<int64_t>(tokens_.size()) - 1);
      selectedOwner_.push_back(part.active);
    }
  }
  logits_.resize(selected_.size() * static_cast<size_t>(model_.vocabulary));
  quire_batch batch = {};
  batch.struct_size = sizeof(batch);
  batch.sequence_count = static_cast<int64_t>(sequences_.size());
  batch.sequences = sequences_.data();
  batch.token_counts = counts_.data();
  batch.tokens = tokens_.data();
  batch.selected = selected_.data();
  batch.selected_count = static_cast<int64_t>(selected_.size());
  Clock::time_point before = Clock::now();
  quire_status status = quire_executor_step(executor_, &batch, logits_.data());
  if (status == QUIRE_PAGE_LOST || status == QUIRE_NO_SPACE)
    return recover(status);
  if (status != QUIRE_OK)
    return broken("running a step");
  record.ms = std::chrono::duration<double, std::milli>(Clock::now() - before).count();
  tight_ = false;
  record.tokens = static_cast<int64_t>(tokens_.size());
  record.sequences = batch.sequence_count;
  for (const Part &part : parts_) {
    Active &active = requests_[part.active];
    if (!publishBlocks(active))
      return false;
    if (active.turns.tell(pool_, active.sequence, active.request.turns, active.stored) != QUIRE_OK)
      return broken("ending a turn");
    if (!endParagraphs(active))
      return false;
  }
  statistics_.steps.push_back(record);
  statistics_.maxSequencesInStep = std::max(statistics_.maxSequencesInStep, record.sequences);
  statistics_.maxPrefillTokensInStep = std::max(statistics_.maxPrefillTokensInStep, prefill);
  for (size_t i = 0; i < selectedOwner_.size(); ++i) {
    size_t index = selectedOwner_[i];
    const float *row = logits_.data() + i * static_cast<size_t>(model_.vocabulary);
    if (!sink_.logits(requests_[index].request, row) || !takeToken(index, row))
      return false;
  }
  return true;
}

/// After a step that the slow tier spoilt: nothing of it counts. What was lost is
/// appended again, by all that shared it; without space the youngest gives way.
bool Scheduler::recover(quire_status status) {
  std::string text = quire_last_error();
  for (const Part &part : parts_)
    requests_[part.active].stored -= part.tokens;
  if (status == QUIRE_NO_SPACE) {
    tight_ = true;
    if (running_.size() == 1)
      return finish(running_.front(), FinishReason::Error, text);
    preemptYoungest();
    return true;
  }
  std::vector<size_t> running = running_;
  for (size_t index : running)
    if (!giveUpLost(index, text))
      return false;
  return true;
}

/// What the sequence has before its first lost token stays; nothing if tokens were dropped, since what comes later was computed without them and is to be so again.
bool Scheduler::giveUpLost(size_t index, const std::string &text) {
  Active &active = requests_[index];
  int64_t intact = 0;
  if (quire_sequence_intact(pool_, active.sequence, &intact) != QUIRE_OK)
    return broken("looking for lost blocks");
  if (intact == active.places())
    return true;
  if (++active.losses > maxLosses)
    return finish(index, FinishReason::Error, text);
  if (active.turns.dropped() > 0)
    intact = 0;
  if (quire_sequence_truncate(pool_, active.sequence, intact) != QUIRE_OK)
    return broken("giving up lost blocks");
  statistics_.recomputedTokens += active.stored - intact;
  active.stored = intact;
  active.prefillEnd = active.known();
  active.recorded = std::min(active.recorded, blocksFor(intact));
  active.turns.rewind(active.request.turns, intact);
  while (active.paragraphs > 0 && active.request.paragraphs[active.paragraphs - 1] > intact)
    --active.paragraphs;
  return true;
}

/// Chooses the next token and ends the request if that was its last.
bool Scheduler::takeToken(size_t index, const float *row) {
  Active &active = requests_[index];
  int64_t place = static_cast<int64_t>(active.result.tokens.size());
  int64_t token = sampler_.choose(row, model_.vocabulary, active.request.sampling, static_cast<uint64_t>(place));
  if (token < 0)
    return finish(index, FinishReason::Error, "the logits of new token " + std::to_string(place) + " are not numbers");
  Clock::time_point now = Clock::now();
  if (active.result.tokens.empty()) {
    active.firstToken = now;
    statistics_.firstTokenMs.push_back(std::chrono::duration<double, std::milli>(now - start_).count());
  } else {
    double gap = std::chrono::duration<double, std::milli>(now - active.lastToken).count();
    statistics_.largestGapMs = std::max(statistics_.largestGapMs, gap);
  }
  active.lastToken = now;
  active.result.tokens.push_back(token);
  ++generated_;
  const std::vector<int64_t> &stop = active.request.stop;
  if (std::find(stop.begin(), stop.end(), token) != stop.end())
    return finish(index, FinishReason::Stop, {});
  if (place + 1 == active.request.maxNewTokens)
    return finish(index, FinishReason::Length, {});
  if (token >= model_.token_limit)
    return finish(index, FinishReason::Error,
                  "token " + std::to_string(token) + " was chosen, but the model takes ids below " +
                      std::to_string(model_.token_limit));
  return true;
}

bool Scheduler::finish(size_t index, FinishReason reason, const std::string &text) {
  Active &active = requests_[index];
  Result &result = active.result;
  result.reason = reason;
  result.error = text;
  auto ms = [](Clock::duration span) { return std::chrono::duration<double, std::milli>(span).count(); };
  if (!result.tokens.empty())
    result.firstTokenMs = ms(active.firstToken - start_);
  if (result.tokens.size() > 1)
    result.decodeMsPerToken = ms(active.lastToken - active.firstToken) / static_cast<double>(result.tokens.size() - 1);
  const int32_t *blocks = nullptr;
  int64_t count = 0;
  if (active.sequence)
    quire_sequence_table(pool_, active.sequence, &blocks, &count);
  statistics_.finalBlockTables.emplace_back(active.request.id, std::vector<int32_t>(blocks, blocks + count));
  releaseBlocks(active);
  running_.erase(std::remove(running_.begin(), running_.end(), index), running_.end());
  bool taken = sink_.finished(active.request, result);
  // A long run keeps no more of a finished request than its statistics.
  active = Active();
  return taken;
}

const Statistics &Scheduler::statistics() {
  quire_pool_stats pool = poolStats();
  statistics_.blockTokens = pool.block_tokens;
  statistics_.blockBytes = pool.block_bytes;
  statistics_.blocksTotal = pool.blocks_total;
  statistics_.blocksPeak = pool.blocks_peak;
  statistics_.reserveBlocks = pool.reserve_blocks;
  statistics_.reserveHits = pool.reserve_hits;
  statistics_.prunes = turnRules_.prunes;
  statistics_.prunedTokens = pool.pruned_tokens;
  statistics_.prunedBlocks = pool.pruned_blocks;
  quire_paging_stats &paging = statistics_.paging;
  paging.struct_size = sizeof(paging);
  quire_pool_get_paging_stats(pool_, &paging);
  statistics_.slowTiers.resize(static_cast<size_t>(paging.slow_tiers));
  for (size_t i = 0; i < statistics_.slowTiers.size(); ++i) {
    statistics_.slowTiers[i].struct_size = sizeof(quire_tier_stats);
    quire_pool_get_tier_stats(pool_, static_cast<int64_t>(i), &statistics_.slowTiers[i]);
  }
  statistics_.kvCopyBytes = pool.copied_bytes + paging.bytes_in_demand + paging.bytes_in_prefetch + paging.bytes_out;
  const std::pair<quire_operation, quire_latency_stats *> latencies[] = {{QUIRE_OPERATION_ACQUIRE_HIT, &statistics_.acquireHit},
                                                                        {QUIRE_OPERATION_ACQUIRE_MISS, &statistics_.acquireMiss},
                                                                        {QUIRE_OPERATION_MAKE_ROOM, &statistics_.makeRoom}};
  for (auto [operation, out] : latencies) {
    out->struct_size = sizeof(*out);
    quire_pool_get_latency(pool_, operation, out);
  }
  quire_executor_stats executor = {};
  executor.struct_size = sizeof(executor);
  quire_executor_get_stats(executor_, &executor);
  statistics_.prefetchIssued = executor.prefetch_issued;
  statistics_.prefetchRedundant = executor.prefetch_redundant;
  statistics_.threads = executor.threads;
  statistics_.prefix = prefixes_.statistics();
  return statistics_;
}

} // namespace quire::serving
