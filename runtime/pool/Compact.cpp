// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compaction of extents. Each move lowers an offset, so it ends.
#include "pool/Compact.h"

#include <algorithm>

namespace quire::runtime {

namespace {

struct Candidate {
  SizedPages *sequence;
  size_t page;
  uint64_t offset() const { return sequence->pages()[page].offset; }
};

} // namespace

Compaction compact(Buddy &extents, const std::vector<SizedPages *> &sequences,
                   const std::function<void(uint64_t from, uint64_t to, uint64_t bytes)> &move) {
  std::vector<Candidate> candidates;
  for (SizedPages *sequence : sequences)
    for (size_t page = 0; !sequence->isHeld() && page < sequence->pages().size(); ++page)
      candidates.push_back({sequence, page});
  Compaction done;
  for (bool moved = true; moved;) {
    moved = false;
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate &a, const Candidate &b) { return a.offset() > b.offset(); });
    for (const Candidate &candidate : candidates) {
      uint64_t from = candidate.offset(), bytes = candidate.sequence->pages()[candidate.page].bytes;
      uint64_t to = extents.allocateBelow(bytes, from);
      if (to == Buddy::none)
        continue;
      move(from, to, bytes);
      candidate.sequence->relocate(candidate.page, to);
      ++done.pages;
      done.bytes += bytes;
      moved = true;
    }
  }
  return done;
}

} // namespace quire::runtime
