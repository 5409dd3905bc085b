// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Full blocks that no step used for long leave the fast tier.
#include "pool/Pool.h"

namespace quire::runtime {

/// That begin to leave after a step, so that it is not held up.
static constexpr size_t mostAtOnce = 16;

/// Without a slow tier there is nowhere to go.
void Pool::setIdleSteps(int64_t steps) {
  idleSteps_ = pager_ ? steps : 0;
  if (idleSteps_ == 0)
    idle_.reset();
  else if (idle_)
    idle_->setIdleSteps(static_cast<uint64_t>(steps));
  else
    idle_ = std::make_unique<IdleTracker>(allocator_.total(), static_cast<uint64_t>(steps));
}

/// The last block of a sequence that is not full would be stored, and with a codec lose something, each time that it grows.
void Pool::endStep(const int32_t *tables, int64_t stride, const int64_t *pastLens, const int64_t *tokenCounts, int64_t sequences) {
  if (!idle_)
    return;
  ++stepsDone_;
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t i = 0; i < (pastLens[s] + tokenCounts[s]) / blockTokens_; ++i)
      idle_->read(static_cast<uint32_t>(tables[s * stride + i]), stepsDone_);
  uint32_t blocks[mostAtOnce];
  size_t count = idle_->take(stepsDone_, blocks, mostAtOnce);
  for (size_t i = 0; i < count; ++i)
    if (!pager_->isUnloaded(blocks[i]) && pager_->unload(blocks[i]).ok())
      ++idleBlocks_;
}

} // namespace quire::runtime
