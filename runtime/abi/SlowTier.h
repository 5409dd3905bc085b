// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of the C interface that concerns a pool's slow tier: its options and its counters.
#ifndef QUIRE_RUNTIME_ABI_SLOWTIER_H
#define QUIRE_RUNTIME_ABI_SLOWTIER_H

#include "pool/Pool.h"

namespace quire::runtime {

/// Null: no slow tier. Errors name the option.
Status readSlowTier(const quire_model_info &info, const quire_slow_tier_options *given, Pool::Options &out);

/// struct_size is left to the caller.
quire_paging_stats pagingStats(const Pool &pool);

/// The same; QUIRE_INVALID_ARGUMENT: no such tier.
Status tierStats(const Pool &pool, int64_t tier, quire_tier_stats &out);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_ABI_SLOWTIER_H
