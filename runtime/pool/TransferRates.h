// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Measures how fast pages of several sizes move, for the choice of a block size.
#ifndef QUIRE_RUNTIME_POOL_TRANSFERRATES_H
#define QUIRE_RUNTIME_POOL_TRANSFERRATES_H

#include "pool/Geometry.h"
#include "tier/Clock.h"
#include "tier/Tier.h"

#include <functional>
#include <memory>
#include <vector>

namespace quire::runtime {

/// Powers of two in [least, most].
std::vector<uint64_t> blockSizes(uint64_t least = leastBlockBytes, uint64_t most = mostBlockBytes);

struct RateOptions {
  uint64_t bytes = uint64_t(16) << 20;       // moved at each size and repetition, at least one page
  uint64_t sourceBytes = uint64_t(64) << 20; // that copies read from, more than the caches hold
  int repetitions = 3;                       // the fastest counts
};

/// memcpy from random places. Takes memory; not for a step's path.
Status measureCopy(const std::vector<uint64_t> &sizes, const RateOptions &options, std::vector<SizeRate> &out);

/// Loads of pages that were stored before, as a batch for each repetition; `make` gives
/// an empty tier of a page size. Runs transfers on the calling thread, so no mover may
/// use the tiers.
Status measureTier(const std::vector<uint64_t> &sizes, const RateOptions &options, const Clock &clock,
                   const std::function<std::unique_ptr<Tier>(uint64_t pageBytes)> &make, std::vector<SizeRate> &out);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_TRANSFERRATES_H
