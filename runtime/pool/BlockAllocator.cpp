// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The intrusive free list of the block allocator.
#include "pool/BlockAllocator.h"

#include "core/Random.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace quire::runtime {

BlockAllocator::BlockAllocator(uint32_t total, const Options &options)
    : blocks_(total), shuffle_(options.shuffle), randomState_(options.seed) {
  assert(total <= INT32_MAX && "block numbers are 32-bit signed in tables");
  std::vector<uint32_t> order(total);
  std::iota(order.begin(), order.end(), 0u);
  if (shuffle_)
    for (uint32_t i = total; i > 1; --i)
      std::swap(order[i - 1], order[random() % i]);
  for (uint32_t block : order)
    pushBack(block);
}

uint64_t BlockAllocator::random() { return splitMix(randomState_); }

void BlockAllocator::pushFront(uint32_t block) {
  Block &b = blocks_[block];
  b.previous = none;
  b.next = head_;
  (head_ == none ? tail_ : blocks_[head_].previous) = block;
  head_ = block;
  ++freeCount_;
}

void BlockAllocator::pushBack(uint32_t block) {
  Block &b = blocks_[block];
  b.next = none;
  b.previous = tail_;
  (tail_ == none ? head_ : blocks_[tail_].next) = block;
  tail_ = block;
  ++freeCount_;
}

uint32_t BlockAllocator::popFront() {
  uint32_t block = head_;
  assert(block != none);
  head_ = blocks_[block].next;
  (head_ == none ? tail_ : blocks_[head_].previous) = none;
  blocks_[block].next = none;
  --freeCount_;
  return block;
}

void BlockAllocator::unlink(uint32_t block) {
  Block &b = blocks_[block];
  assert(b.references == 0 && b.previous != away);
  (b.previous == none ? head_ : blocks_[b.previous].next) = b.next;
  (b.next == none ? tail_ : blocks_[b.next].previous) = b.previous;
  b.previous = b.next = none;
  --freeCount_;
}

void BlockAllocator::withhold(uint32_t block) {
  unlink(block);
  blocks_[block].previous = away;
  ++withheldCount_;
}

void BlockAllocator::bringBack(uint32_t block) {
  assert(isWithheld(block));
  pushBack(block);
  --withheldCount_;
}

bool BlockAllocator::allocate(uint32_t count, std::vector<int32_t> &out) {
  if (count > freeCount_)
    return false;
  out.reserve(out.size() + count); // the only step that can throw comes first
  for (uint32_t i = 0; i < count; ++i) {
    uint32_t block = popFront();
    assert(blocks_[block].references == 0);
    blocks_[block].references = 1;
    out.push_back(static_cast<int32_t>(block));
  }
  allocations_ += count;
  peak_ = std::max(peak_, usedCount());
  return true;
}

bool BlockAllocator::retain(uint32_t block) {
  assert(blocks_[block].references > 0 && "the block is free");
  if (blocks_[block].references == UINT32_MAX)
    return false;
  ++blocks_[block].references;
  return true;
}

bool BlockAllocator::release(uint32_t block) {
  Block &b = blocks_[block];
  assert(b.references > 0 && "the block is free");
  if (--b.references != 0)
    return false;
  if (++b.generation == 0) // a handle has no generation 0
    b.generation = 1;
  // Last in, first out keeps the working set small and warm; the shuffled order
  // lets a block also wait behind all the others.
  if (shuffle_ && (random() & 1))
    pushBack(block);
  else
    pushFront(block);
  return true;
}

void BlockAllocator::move(uint32_t from, uint32_t to) {
  unlink(to);
  blocks_[to].references = std::exchange(blocks_[from].references, 1);
  release(from);
}

Status BlockAllocator::validate() const {
  std::vector<bool> listed(blocks_.size());
  uint32_t count = 0, previous = none;
  for (uint32_t block = head_; block != none; block = blocks_[block].next) {
    if (block >= total())
      return failure(QUIRE_INVARIANT_BROKEN, "free list leads to block %u of %u", block, total());
    if (listed[block])
      return failure(QUIRE_INVARIANT_BROKEN, "block %u is on the free list twice", block);
    if (blocks_[block].previous != previous)
      return failure(QUIRE_INVARIANT_BROKEN, "block %u does not link back on the free list", block);
    if (blocks_[block].references != 0)
      return failure(QUIRE_INVARIANT_BROKEN, "block %u is free, but has %u references", block,
                     blocks_[block].references);
    listed[block] = true;
    previous = block;
    ++count;
  }
  if (previous != tail_)
    return failure(QUIRE_INVARIANT_BROKEN, "the free list does not end at its tail");
  if (count != freeCount_)
    return failure(QUIRE_INVARIANT_BROKEN, "%u blocks on the free list, but %u counted", count, freeCount_);
  uint32_t withheld = 0;
  for (uint32_t block = 0; block < total(); ++block) {
    withheld += isWithheld(block);
    if (isWithheld(block) && (listed[block] || blocks_[block].references != 0))
      return failure(QUIRE_INVARIANT_BROKEN, "block %u is withheld, but free or referenced", block);
    if (!listed[block] && !isWithheld(block) && blocks_[block].references == 0)
      return failure(QUIRE_INVARIANT_BROKEN, "block %u is neither free nor referenced", block);
    if (blocks_[block].generation == 0)
      return failure(QUIRE_INVARIANT_BROKEN, "block %u has no generation", block);
  }
  if (withheld != withheldCount_)
    return failure(QUIRE_INVARIANT_BROKEN, "%u blocks are withheld, but %u counted", withheld, withheldCount_);
  return success();
}

} // namespace quire::runtime
