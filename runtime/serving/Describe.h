// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a model folder says of itself, and what fits into a KV budget.
#ifndef QUIRE_RUNTIME_SERVING_DESCRIBE_H
#define QUIRE_RUNTIME_SERVING_DESCRIBE_H

#include "model/Manifest.h"
#include "pool/Pool.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quire::serving {

/// A pool for the model, in numbers.
struct Budget {
  uint64_t kvBytes = 0;
  uint64_t slowBytes = 0; // of all slow tiers; 0: there is none, and no pages
  int64_t blockBytes = 0;
  int64_t blockTokens = 0;
  runtime::Pool::Plan plan;
  std::vector<std::pair<int64_t, int64_t>> sequences; // length, how many fit

  int64_t tokens() const { return static_cast<int64_t>(plan.blocks) * blockTokens; }
  /// Sequences of that length that one step may have.
  int64_t inStep(int64_t length) const { return static_cast<int64_t>(plan.stepBlocks) / ((length + blockTokens - 1) / blockTokens); }
};

/// Refuses slow tiers as a pool does, but does not ask what the machine has room for. Null: no slow tier. Those whose pages
/// depend on measured transfers are refused, since nothing is made.
runtime::Status readBudget(const runtime::Manifest &manifest, uint64_t kvBytes, const quire_slow_tier_options *slow, bool stableVa, Budget &out);

/// For people.
std::string describeText(const std::string &folder, const runtime::Manifest &manifest, const Budget &budget);

/// For programs: one JSON object and a newline.
std::string describeJson(const std::string &folder, const runtime::Manifest &manifest, const Budget &budget);

/// "256 MiB", "1.5 GiB", "300 B".
std::string readableBytes(uint64_t bytes);

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_DESCRIBE_H
