// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Blocks that are kept for sequences which have begun: new ones may not take them while others have blocks.
#include "pool/Pool.h"

#include <algorithm>

namespace quire::runtime {

static long long ll(int64_t value) { return static_cast<long long>(value); }

/// Rounded down, so that a pool of few blocks keeps none.
void Pool::setReserve(double ratio) {
  reserveRatio_ = ratio;
  reserveBlocks_ = static_cast<int64_t>(ratio * static_cast<double>(reserveBase()));
}

bool Pool::holdsBlocks(const Sequence *except) const {
  return std::any_of(sequences_.begin(), sequences_.end(),
                     [&](const Sequence &sequence) { return &sequence != except && !sequence.blocks.empty(); });
}

Status Pool::roomFor(quire_sequence handle, bool besideOthers, int64_t &blocks) const {
  const Sequence *sequence;
  QUIRE_TRY(find(handle, sequence));
  bool limited = reserveBlocks_ > 0 && !sequence->admitted && (besideOthers || holdsBlocks(sequence));
  blocks = std::max<int64_t>(0, blocksAvailable() - (limited ? reserveBlocks_ : 0));
  return success();
}

Status Pool::checkRoom(int64_t wanted, int64_t room) {
  if (wanted <= room)
    return success();
  int64_t available = blocksAvailable();
  if (wanted <= available)
    return failure(QUIRE_OUT_OF_BLOCKS,
                   "%lld new blocks wanted, but of %lld free ones %lld are reserved for sequences that run", ll(wanted),
                   ll(available), ll(reserveBlocks_));
  reserveCounters_.exhausted += room == available;
  return failure(QUIRE_OUT_OF_BLOCKS, "%lld blocks wanted, but %lld of %lld are free", ll(wanted), ll(available),
                 ll(blocksLimit()));
}

void Pool::noteTaken(int64_t count) {
  int64_t used = reserveBlocks_ - blocksAvailable();
  if (used <= 0)
    return;
  reserveCounters_.hits += std::min(count, used);
  reserveCounters_.peak = std::max(reserveCounters_.peak, used);
}

} // namespace quire::runtime
