// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks in use move together, so that the memory of those that a smaller size gave up goes back to the system.
#include "pool/Pool.h"

#include <cstring>
#include <numeric>

namespace quire::runtime {

/// Where each block goes: the highest into the lowest that nobody uses. The caller knows the numbers of some,
/// and the addresses of those that are pinned by hand.
std::vector<uint32_t> Pool::planCompaction() const {
  std::vector<uint32_t> to(allocator_.total());
  std::iota(to.begin(), to.end(), 0u);
  uint32_t low = 0, high = allocator_.total();
  for (;;) {
    while (low < high && allocator_.references(low) != 0)
      ++low;
    while (low < high && (allocator_.references(high - 1) == 0 || callerReferences_[high - 1] != 0 || handPins_[high - 1] != 0))
      --high;
    if (low == high)
      return to;
    to[--high] = low++;
  }
}

/// The last ones that will not be in use, as many as are withheld now.
std::vector<bool> Pool::withheldAfter(const std::vector<uint32_t> &to) const {
  std::vector<bool> used(to.size()), withheld(to.size());
  for (uint32_t block = 0; block < to.size(); ++block)
    if (allocator_.references(block) != 0)
      used[to[block]] = true;
  uint32_t left = allocator_.withheldCount();
  for (size_t block = to.size(); left > 0;)
    if (!used[--block]) {
      withheld[block] = true;
      --left;
    }
  return withheld;
}

Status Pool::compact(Compaction &done) {
  QUIRE_TRY(serverOnly());
  done = {};
  if (pager_)
    return success();
  if (arena_.isShared())
    return failure(QUIRE_INVALID_ARGUMENT, "blocks of a pool with exportable do not move: other processes read them");
  if (stableVa_)
    return failure(QUIRE_INVALID_ARGUMENT, "blocks of a pool with stable_va do not move");
  std::vector<uint32_t> to = planCompaction();
  std::vector<bool> withheld = withheldAfter(to);
  QUIRE_TRY(bringBackAllBut(withheld));
  if (prefix_)
    prefix_->renumber(to);
  for (Sequence &sequence : sequences_)
    for (int32_t &block : sequence.blocks)
      block = static_cast<int32_t>(to[static_cast<size_t>(block)]);
  for (uint32_t block = allocator_.total(); block-- > 0;)
    if (to[block] != block) {
      moveBlock(block, to[block]);
      ++done.pages;
    }
  for (uint32_t block = 0; block < allocator_.total(); ++block)
    if (withheld[block] && !allocator_.isWithheld(block))
      withhold(block);
  if (allocator_.withheldCount() > 0)
    giveBackRuns();
  done.bytes = done.pages * static_cast<uint64_t>(blockBytes_);
  compacted_.pages += done.pages;
  compacted_.bytes += done.bytes;
  checkInvariants();
  return success();
}

/// All or nothing: it may fail, since their memory is the system's.
Status Pool::bringBackAllBut(const std::vector<bool> &withheld) {
  std::vector<uint32_t> back;
  back.reserve(allocator_.withheldCount());
  Status status;
  for (uint32_t block = 0; block < allocator_.total() && status.ok(); ++block)
    if (allocator_.isWithheld(block) && !withheld[block]) {
      status = bringBack(block);
      if (status.ok())
        back.push_back(block);
    }
  if (status.ok())
    return status;
  for (uint32_t block : back)
    withhold(block);
  giveBackRuns();
  return status;
}

void Pool::moveBlock(uint32_t from, uint32_t to) {
  for (const Layer &layer : layers_)
    std::memcpy(layer.base + to * layer.blockBytes, layer.base + from * layer.blockBytes, static_cast<size_t>(layer.blockBytes));
  written_[to] = written_[from];
  allocator_.move(from, to);
  if (poison_ || zeroOnFree_)
    eraseBlock(from);
}

uint64_t Pool::bytesGivenBack(const std::vector<bool> &withheld) const {
  uint64_t bytes = 0;
  forEachRun(withheld, [&](size_t offset, size_t size) { bytes += MappedMemory::wholePages(offset, size); });
  return bytes;
}

Pool::GivenBack Pool::givenBack() const {
  if (allocator_.withheldCount() == 0)
    return {};
  uint64_t now = bytesGivenBack(withheldBlocks());
  return {now, stableVa_ ? now : bytesGivenBack(withheldAfter(planCompaction()))};
}

} // namespace quire::runtime
