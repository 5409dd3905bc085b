// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the inner tier, then sleeps to the end of the modelled time.
#include "tier/ThrottledTier.h"

#include <algorithm>
#include <utility>

namespace quire::runtime {

ThrottledTier::ThrottledTier(std::unique_ptr<Tier> inner, const Throttle &throttle, Clock &clock)
    : Tier("throttled", inner->slots().total(), inner->pageBytes()), inner_(std::move(inner)), throttle_(throttle),
      clock_(clock) {}

void ThrottledTier::run(Transfer *const *transfers, size_t count) {
  if (count == 0)
    return;
  int64_t begin = clock_.now();
  uint64_t pages = 0;
  for (size_t i = 0; i < count; ++i)
    pages += transfers[i]->kind != Transfer::Kind::Erase;
  inner_->run(transfers, count);
  // The link is idle when a run begins, since runs follow each other.
  auto onLink = static_cast<unsigned __int128>(pages) * pageBytes() * 1000000000 / throttle_.bandwidth;
  auto end = onLink + static_cast<unsigned __int128>(begin) + static_cast<unsigned __int128>(throttle_.latency);
  clock_.sleepUntil(static_cast<int64_t>(std::min<unsigned __int128>(end, INT64_MAX)));
}

} // namespace quire::runtime
