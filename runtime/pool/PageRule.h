// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many layers share a page of a pool with a slow tier, where a rule decides.
#ifndef QUIRE_RUNTIME_POOL_PAGERULE_H
#define QUIRE_RUNTIME_POOL_PAGERULE_H

#include "compress/Codec.h"
#include "quire/runtime.h"
#include "tier/Clock.h"
#include "tier/Tier.h"

#include <functional>
#include <memory>

namespace quire::runtime {

/// The tokens of a block are the compiled model's; what is left to choose is the number
/// of layers. 1, 2, 4 and so on, and all of them.
std::vector<int64_t> layerChoices(const quire_model_info &info);

/// The most layers whose page is within blockBytesByCache; at least 1, as where the
/// cache is not known (0).
Status layersByCache(const quire_model_info &info, uint64_t l2Bytes, int64_t concurrency, int64_t &out);

/// The fewest layers whose pages move with blockBytesByTransfer's share of the best
/// speed, in batches as large as those of demands. `make` gives an empty tier of a page
/// size, and room for a number of pages; transfers run on the calling thread.
Status layersByTransfer(const quire_model_info &info, Codec codec, const Clock &clock,
                        const std::function<std::unique_ptr<Tier>(uint64_t pageBytes, uint64_t pages)> &make, int64_t &out);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_PAGERULE_H
