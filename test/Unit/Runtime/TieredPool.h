// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pools with a slow tier whose transfers come in an order that a seed decides, and that fails on demand.
#ifndef QUIRE_TEST_UNIT_RUNTIME_TIEREDPOOL_H
#define QUIRE_TEST_UNIT_RUNTIME_TIEREDPOOL_H

#include "TestPool.h"
#include "abi/Handles.h"
#include "tier/Mover.h"

#include <functional>

namespace quire::test {

/// Keeps pages in a map by slot, with their tags; checks what the pager asks for.
class MemoryTier final : public runtime::Tier {
public:
  MemoryTier(uint32_t slots, uint64_t pageBytes) : Tier("test", slots, pageBytes), pages_(slots), tags_(slots) {}

  /// Asked before each transfer; not QUIRE_OK: it fails so, and does nothing.
  std::function<quire_status(const runtime::Transfer &)> fault;
  int64_t loads = 0, stores = 0, erasures = 0;

  void run(runtime::Transfer *const *transfers, size_t count) override;
  /// Whether `byte` fills a page-long stretch of any slot.
  bool holds(const std::vector<char> &needle) const;

private:
  std::vector<std::vector<char>> pages_; // empty: no content
  std::vector<uint64_t> tags_;
};

struct TieredSettings {
  int64_t fastPages = 8;
  uint32_t slowPages = 60;
  std::vector<uint32_t> lowerPages; // of tiers below that one
  uint64_t seed = 1;
  runtime::PolicyKind policy = runtime::PolicyKind::Scan;
  int64_t window = 3;
  runtime::Prefetching prefetch;
  int64_t layersPerPage = 1;
  bool digests = false;
  bool poison = true;
  bool zeroOnFree = false;
  bool prefixCache = false;
  runtime::Codec codec = runtime::Codec::None;
  bool stableVa = false;
  int64_t deadlineNs = 0; // 0: the pool's own
  bool thread = false; // a mover with a thread and the system's clock
};

struct TieredPool {
  serving::PoolPointer pool;
  MemoryTier *tier = nullptr;      // the pool's, the upper one
  std::vector<MemoryTier *> tiers; // all of them
  runtime::Pager *pager() const { return pool->pool->pager(); }
};

TieredPool makeTieredPool(const TieredSettings &settings, const quire_model_info &info = toyInfo());

/// One step that appends `tokens` to a sequence which holds `known`, and then to `known`. The logits are the toy's, unless
/// not `exact`: keys and values were rounded.
inline void appendStep(quire_executor *executor, quire_sequence sequence, const std::vector<int64_t> &tokens, std::vector<int64_t> &known,
                       bool exact = true) {
  int64_t count = static_cast<int64_t>(tokens.size()), last = count - 1;
  std::vector<float> logits(static_cast<size_t>(toyInfo().vocabulary));
  quire_batch batch = {sizeof(batch), 1, &sequence, &count, tokens.data(), &last, 1};
  ASSERT_EQ(quire_executor_step(executor, &batch, logits.data()), QUIRE_OK) << quire_last_error();
  known.insert(known.end(), tokens.begin(), tokens.end());
  if (exact) {
    ASSERT_EQ(logits, toyLogits(known));
  }
}

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_TIEREDPOOL_H
