// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a pool shares between sequences: cached prefixes, and on whose behalf.
#include "pool/Pool.h"

#include <algorithm>

namespace quire::runtime {

static long long ll(int64_t value) { return static_cast<long long>(value); }

Status Pool::serverOnly() const {
  return acting_ == Tenants::nobody ? success()
                                    : failure(QUIRE_INVALID_ARGUMENT, "the pool acts for tenant %u, not for the server", acting_);
}

Status Pool::createTenant(const void *name, size_t bytes, int64_t timeToLive, quire_tenant &out) {
  QUIRE_TRY(serverOnly());
  QUIRE_TRY(tenants_.create(name, bytes, timeToLive, out));
  if (pager_) {
    pager_->openTenant(static_cast<uint32_t>(out));
    pager_->setZeroOnFree(); // pages leave copies in two tiers, which nobody could find later
  }
  checkInvariants();
  return success();
}

Status Pool::tenant(quire_tenant handle, const Tenant *&out) const {
  uint32_t slot;
  QUIRE_TRY(tenants_.find(handle, slot));
  if (slot == Tenants::nobody)
    return failure(QUIRE_INVALID_ARGUMENT, "not a tenant handle of this pool");
  if (acting_ != Tenants::nobody && slot != acting_)
    return failure(QUIRE_INVALID_ARGUMENT, "not the handle of this tenant");
  out = &tenants_[slot];
  return success();
}

Status Pool::actAs(quire_tenant handle) {
  uint32_t slot;
  QUIRE_TRY(tenants_.find(handle, slot));
  acting_ = slot;
  return success();
}

/// Children of an idle entry are idle and became so no later, whence an entry
/// that is wanted is reached from a leaf below it.
template <typename Wanted>
int64_t Pool::dropEntries(Wanted wanted) {
  int64_t dropped = 0;
  for (uint32_t block = 0; block < allocator_.total(); ++block)
    for (uint32_t at = block; at != PrefixCache::none && prefix_->idle(at) && prefix_->children(at) == 0 && wanted(at);
         ++dropped) {
      uint32_t parent = prefix_->parent(at);
      dropEntry(at);
      at = parent;
    }
  return dropped;
}

/// Of an idle block, which becomes free.
void Pool::dropEntry(uint32_t block) {
  --tenants_[prefix_->tenant(block)].counters.blocksCached;
  prefix_->remove(block);
  dropReference(block);
}

Status Pool::destroyTenant(quire_tenant handle) {
  QUIRE_TRY(serverOnly());
  const Tenant *found;
  QUIRE_TRY(tenant(handle, found));
  uint32_t slot = static_cast<uint32_t>(handle);
  if (found->sequences || found->blocks)
    return failure(QUIRE_INVALID_ARGUMENT, "tenant %u has %lld sequences and %lld blocks", slot, ll(found->sequences),
                   ll(found->blocks));
  if (prefix_)
    dropEntries([&](uint32_t block) { return prefix_->tenant(block) == slot; });
  // Whose the content of a free block was is not known, so all of it goes.
  for (uint32_t block = 0; !pager_ && block < allocator_.total(); ++block)
    if (allocator_.references(block) == 0 && written_[block])
      eraseBlock(block);
  tenants_.destroy(slot);
  checkInvariants();
  return success();
}

/// Of an idle block: the next scan is due when it expires.
void Pool::noteExpiry(uint32_t block) {
  int64_t left = tenants_[prefix_->tenant(block)].timeToLive, since = prefix_->idleSince(block);
  if (left > 0)
    nextExpiry_ = std::min(nextExpiry_, left > INT64_MAX - since ? INT64_MAX : since + left);
}

Status Pool::advance(int64_t now, int64_t &dropped) {
  QUIRE_TRY(serverOnly());
  if (now < now_)
    return failure(QUIRE_INVALID_ARGUMENT, "expected a time of at least %lld ns, but got %lld", ll(now_), ll(now));
  now_ = now;
  dropped = 0;
  if (!prefix_ || now < nextExpiry_)
    return success();
  dropped = dropEntries([&](uint32_t block) {
    Tenant &tenant = tenants_[prefix_->tenant(block)];
    bool over = tenant.timeToLive > 0 && now - prefix_->idleSince(block) >= tenant.timeToLive;
    tenant.counters.blocksExpired += over;
    return over;
  });
  nextExpiry_ = INT64_MAX;
  for (uint32_t block = 0; block < allocator_.total(); ++block)
    if (prefix_->idle(block))
      noteExpiry(block);
  checkInvariants();
  return success();
}

void Pool::makeRoom(int64_t count) {
  while (count > blocksFree())
    evict();
}

void Pool::evict() {
  uint32_t block = prefix_->victim();
  ++tenants_[prefix_->tenant(block)].counters.blocksEvicted;
  dropEntry(block);
}

void Pool::countQuery(Sequence &sequence) {
  if (!sequence.counted && sequence.queryTokens >= 0) {
    TenantCounters &counters = tenants_[sequence.tenant].counters;
    ++counters.queries;
    counters.queryTokens += sequence.queryTokens;
    counters.hitTokens += sequence.hitTokens;
    sequence.counted = true;
  }
  sequence.queryTokens = -1;
}

Status Pool::findShared(quire_sequence handle, int64_t count, Sequence *&out) {
  QUIRE_TRY(find(handle, out));
  QUIRE_TRY(checkWhole(handle));
  if (!prefix_)
    return failure(QUIRE_INVALID_ARGUMENT, "expected a pool with prefix_cache");
  if (out->tenant == Tenants::nobody)
    return failure(QUIRE_INVALID_ARGUMENT, "expected a sequence of a tenant");
  if (count < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "expected at least 0 tokens, but got %lld", ll(count));
  return success();
}

Status Pool::matchPrefix(quire_sequence handle, const int64_t *tokens, int64_t count, int64_t &matched) {
  Sequence *sequence;
  QUIRE_TRY(findShared(handle, count, sequence));
  if (!sequence->blocks.empty())
    return failure(QUIRE_INVALID_ARGUMENT, "expected an empty sequence, but got one with %zu blocks",
                   sequence->blocks.size());
  int64_t usable = maxPositions_ >= 0 ? std::min(count, maxPositions_) : count;
  Tenant &tenant = tenants_[sequence->tenant];
  uint32_t parent = PrefixCache::none;
  while (sequence->length + blockTokens_ < usable) {
    PrefixCache::Probe probe = prefix_->find(sequence->tenant, tenant.salt, parent, tokens + sequence->length);
    tenant.counters.collisions += probe.collision;
    if (probe.block == PrefixCache::none || (pager_ && pager_->lost(probe.block)) || !addReference(probe.block))
      break;
    sequence->blocks.push_back(static_cast<int32_t>(probe.block)); // has the capacity
    sequence->length += blockTokens_;
    parent = probe.block;
  }
  sequence->queryTokens = count;
  sequence->hitTokens = sequence->length;
  matched = sequence->length;
  checkInvariants();
  return success();
}

/// False: the key belongs to another content, and the chain cannot go on.
bool Pool::mergeOrInsert(Sequence &sequence, size_t index, const int64_t *tokens) {
  uint32_t own = static_cast<uint32_t>(sequence.blocks[index]);
  uint32_t parent = index ? static_cast<uint32_t>(sequence.blocks[index - 1]) : PrefixCache::none;
  Tenant &tenant = tenants_[sequence.tenant];
  PrefixCache::Probe probe = prefix_->find(sequence.tenant, tenant.salt, parent, tokens);
  if (probe.collision) {
    ++tenant.counters.collisions;
    return false;
  }
  if (probe.block == PrefixCache::none) {
    if (!allocator_.retain(own))
      return false;
    prefix_->insert(own, sequence.tenant, parent, tokens, probe.key);
    ++tenant.counters.blocksPublished;
    ++tenant.counters.blocksCached;
    return true;
  }
  if ((pager_ && pager_->lost(probe.block)) || !addReference(probe.block))
    return false;
  moveHold(sequence, index, static_cast<int32_t>(probe.block));
  sequence.blocks[index] = static_cast<int32_t>(probe.block);
  dropReference(own);
  ++tenant.counters.blocksMerged;
  return true;
}

/// Cached blocks of a sequence's table come first: they are never written again,
/// so that what follows one that is not cached is not either.
Status Pool::publish(quire_sequence handle, const int64_t *tokens, int64_t count) {
  Sequence *sequence;
  QUIRE_TRY(findShared(handle, count, sequence));
  if (count > sequence->length)
    return failure(QUIRE_INVALID_ARGUMENT, "expected at most the %lld tokens that are stored, but got %lld",
                   ll(sequence->length), ll(count));
  size_t blocks = static_cast<size_t>(count / blockTokens_), done = 0;
  size_t step = static_cast<size_t>(blockTokens_);
  for (; done < blocks && prefix_->contains(static_cast<uint32_t>(sequence->blocks[done])); ++done)
    if (!prefix_->hasTokens(static_cast<uint32_t>(sequence->blocks[done]), tokens + done * step))
      return failure(QUIRE_INVALID_ARGUMENT, "block %zu of the sequence was published with other tokens", done);
  while (done < blocks && mergeOrInsert(*sequence, done, tokens + done * step))
    ++done;
  checkInvariants();
  return success();
}

Status Pool::moveSequence(quire_sequence handle, quire_sequence &out) {
  Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  if (++sequence->generation == 0)
    sequence->generation = 1;
  out = uint64_t(sequence->generation) << 32 | static_cast<uint32_t>(handle);
  return success();
}

Status Pool::validateSharing(std::vector<uint64_t> &counted) const {
  if (tenants_.size() == 1) // nobody shares
    return success();
  std::vector<int64_t> sequences(tenants_.size()), blocks(tenants_.size()), cached(tenants_.size());
  for (const Sequence &sequence : sequences_)
    sequences[sequence.tenant] += sequence.live;
  for (uint32_t block = 0; block < allocator_.total(); ++block)
    blocks[blockTenants_[block]] += callerReferences_[block] > 0;
  if (prefix_)
    QUIRE_TRY(prefix_->validate());
  for (uint32_t block = 0; prefix_ && block < allocator_.total(); ++block) {
    if (!prefix_->contains(block))
      continue;
    ++counted[block];
    ++cached[prefix_->tenant(block)];
    if (prefix_->hasUsers(block) != (allocator_.references(block) > 1))
      return failure(QUIRE_INVARIANT_BROKEN, "block %u has %u references, but counts as one with%s users", block,
                     allocator_.references(block), prefix_->hasUsers(block) ? "" : "out");
  }
  for (uint32_t slot = 0; slot < tenants_.size(); ++slot) {
    const Tenant &tenant = tenants_[slot];
    bool agrees = tenant.sequences == sequences[slot] && tenant.blocks == blocks[slot] && tenant.counters.blocksCached == cached[slot];
    if (!agrees || (slot != Tenants::nobody && !tenant.live && (sequences[slot] || blocks[slot] || cached[slot])))
      return failure(QUIRE_INVARIANT_BROKEN, "tenant %u has %lld sequences, %lld blocks and %lld cached ones, but counts others",
                     slot, ll(sequences[slot]), ll(blocks[slot]), ll(cached[slot]));
  }
  return success();
}

} // namespace quire::runtime
