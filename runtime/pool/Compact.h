// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Moves pages of several sizes together, so that what is free is in one piece.
#ifndef QUIRE_RUNTIME_POOL_COMPACT_H
#define QUIRE_RUNTIME_POOL_COMPACT_H

#include "pool/SizedPages.h"

#include <functional>

namespace quire::runtime {

struct Compaction {
  uint64_t pages = 0; // that were moved
  uint64_t bytes = 0;
};

/// Moves each page to the lowest free extent of its size below it, the highest
/// pages first, until none can move. `sequences` are all that have extents of this
/// allocator; those that are held (SizedPages::hold) stay where they are, and the
/// generation of the others goes up if a page of theirs moved. `move(from, to, bytes)`
/// copies between offsets of the range that do not overlap.
Compaction compact(Buddy &extents, const std::vector<SizedPages *> &sequences,
                   const std::function<void(uint64_t from, uint64_t to, uint64_t bytes)> &move);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_COMPACT_H
