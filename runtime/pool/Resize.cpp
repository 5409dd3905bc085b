// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A pool becomes smaller and larger again, within what it was made with.
#include "pool/Pool.h"

namespace quire::runtime {

static long long ll(int64_t value) { return static_cast<long long>(value); }

Status Pool::resizeFast(uint64_t bytes) {
  QUIRE_TRY(serverOnly());
  Status status = pager_ ? resizePages(bytes / pager_->geometry().pageStride) : resizeArena(bytes / static_cast<uint64_t>(blockBytes_));
  setReserve(reserveRatio_);
  checkInvariants();
  return status;
}

/// No more cached blocks give way than have to, and none if that is not enough.
Status Pool::fitInto(int64_t limit) {
  int64_t needed = allocator_.usedCount() - blocksReclaimable();
  if (needed > limit)
    return failure(QUIRE_OUT_OF_BLOCKS, "%lld blocks are in use, but there would be %lld", ll(needed), ll(limit));
  while (allocator_.usedCount() > limit)
    evict();
  return success();
}

Status Pool::resizePages(uint64_t pages) {
  QUIRE_TRY(pager_->checkResize(pages));
  QUIRE_TRY(fitInto(pager_->blockLimitOf(pages)));
  return pager_->resize(pages);
}

/// Block numbers stay, so that what is given up are free blocks, wherever they lie.
Status Pool::resizeArena(uint64_t blocks) {
  if (blocks == 0 || blocks > allocator_.total())
    return failure(QUIRE_INVALID_ARGUMENT, "expected a pool of 1 to %lld blocks, which were reserved, but got %llu",
                   ll(blocksTotal()), static_cast<unsigned long long>(blocks));
  if (arena_.isShared() && static_cast<int64_t>(blocks) < blocksTotal())
    return failure(QUIRE_INVALID_ARGUMENT, "the memory of a pool with exportable cannot go back to the system: it is sealed");
  int64_t limit = static_cast<int64_t>(blocks);
  QUIRE_TRY(fitInto(limit));
  for (uint32_t block = allocator_.total(); blocksLimit() > limit;)
    if (--block; allocator_.references(block) == 0 && !allocator_.isWithheld(block))
      withhold(block);
  giveBackRuns();
  for (uint32_t block = 0; blocksLimit() < limit; ++block)
    if (allocator_.isWithheld(block))
      QUIRE_TRY(bringBack(block));
  return success();
}

/// Whole pages of the system that it shares with used blocks stay, so that what it held is erased.
void Pool::withhold(uint32_t block) {
  allocator_.withhold(block);
  fill(block, 0);
  written_[block] = 0;
}

std::vector<bool> Pool::withheldBlocks() const {
  std::vector<bool> withheld(allocator_.total());
  for (uint32_t block = 0; block < allocator_.total(); ++block)
    withheld[block] = allocator_.isWithheld(block);
  return withheld;
}

/// Neighbours together, since blocks may be smaller than a page of the system.
void Pool::forEachRun(const std::vector<bool> &blocks, const std::function<void(size_t offset, size_t bytes)> &function) const {
  for (size_t begin = 0, end; begin < blocks.size(); begin = end + 1) {
    for (end = begin; end < blocks.size() && blocks[end];)
      ++end;
    for (const Layer &layer : layers_)
      function(static_cast<size_t>(layer.base - arena_.data()) + begin * static_cast<size_t>(layer.blockBytes),
               (end - begin) * static_cast<size_t>(layer.blockBytes));
  }
}

void Pool::giveBackRuns() {
  forEachRun(withheldBlocks(), [this](size_t offset, size_t bytes) { arena_.giveBack(offset, bytes); });
}

Status Pool::bringBack(uint32_t block) {
  for (const Layer &layer : layers_)
    QUIRE_TRY(arena_.commit(static_cast<size_t>(layer.base - arena_.data() + block * layer.blockBytes),
                            static_cast<size_t>(layer.blockBytes)));
  if (poison_)
    fill(block, poisonByte);
  allocator_.bringBack(block);
  return success();
}

} // namespace quire::runtime
