// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Settings of a slow tier between their three forms.
#include "serving/SlowTierSettings.h"

#include "config/Keys.h"
#include "core/Quantities.h"
#include "tier/TierOptions.h"

namespace quire::serving {

using config::SlowKind;

static constexpr struct {
  config::ReplacePolicy configured;
  quire_replacement wanted;
} replacements[] = {{config::ReplacePolicy::Scan, QUIRE_REPLACE_SCAN},
                    {config::ReplacePolicy::Lru, QUIRE_REPLACE_LRU},
                    {config::ReplacePolicy::Importance, QUIRE_REPLACE_IMPORTANCE},
                    {config::ReplacePolicy::Arc, QUIRE_REPLACE_ARC}};

static const char *codecOf(const SlowTierSettings &settings) {
  switch (settings.quant) {
  case config::Quant::None:
    if (settings.sparseRatio != 1)
      return settings.sparseIndex == config::SparseIndex::Index ? "sparse_8_1_index" : "sparse_8_1_bitmap";
    break;
  case config::Quant::Int8:
    return "int8_g128";
  case config::Quant::Int4:
    return "int4_g128";
  case config::Quant::Fp8:
    return "fp8_e4m3";
  }
  return nullptr;
}

SlowTierSettings::Description SlowTierSettings::describe() const {
  Description described;
  int32_t checks = checksum ? 0 : -1;
  for (size_t i = 1; i < tiers.size(); ++i)
    described.lower.push_back({sizeof(quire_lower_tier_options), tiers[i].where.c_str(), tiers[i].bytes, checks, nullptr});
  for (size_t i = 1; i < described.lower.size(); ++i)
    described.lower[i - 1].lower = &described.lower[i];
  quire_slow_tier_options &out = described.options;
  out = {};
  out.struct_size = sizeof(out);
  out.where = wanted() ? tiers.front().where.c_str() : "none";
  out.bytes = wanted() ? tiers.front().bytes : 0;
  out.lower = described.lower.empty() ? nullptr : described.lower.data();
  out.replacement = replacement;
  out.checksum = checks;
  out.prefetch_window = prefetchWindow == 0 ? -1 : prefetchWindow;
  out.layers_per_page = pages == config::AutoBlock::Off ? layersPerPage : 0;
  out.page_rule = pages == config::AutoBlock::L2 ? QUIRE_PAGES_BY_CACHE : pages == config::AutoBlock::Io ? QUIRE_PAGES_BY_TRANSFER : QUIRE_PAGES_OF_ONE_LAYER;
  out.codec = codecOf(*this);
  return described;
}

void SlowTierSettings::take(const config::Config &config) {
  const auto &slow = config.memory.slow;
  tiers.clear();
  switch (slow.kind) {
  case SlowKind::None:
    break;
  case SlowKind::Memory:
    tiers.push_back({"memory", slow.bytes});
    break;
  case SlowKind::File:
    tiers.push_back({"file:" + slow.path, slow.bytes});
    break;
  case SlowKind::Throttled:
    tiers.push_back({"throttled:" + runtime::printDuration(slow.latency) + "," + runtime::printBandwidth(slow.bandwidth), slow.bytes});
    break;
  }
  for (const std::string &text : config.memory.slower) {
    Tier tier;
    if (config::splitTier(text, tier.where, tier.bytes)) // was checked when it was read
      tiers.push_back(std::move(tier));
  }
  checksum = slow.checksum != config::Checksum::None;
  layersPerPage = config.block.layersPerBlock;
  pages = config.block.automatic;
  quant = config.compress.quant;
  sparseRatio = config.compress.sparse.ratio;
  sparseIndex = config.compress.sparse.index;
  prefetchWindow = config.prefetch.windowSize;
  for (const auto &[configured, policy] : replacements)
    if (configured == config.replace.policy)
      replacement = policy;
}

void SlowTierSettings::give(config::Config &config) const {
  auto &slow = config.memory.slow;
  runtime::TierOptions tier;
  if (wanted() && !runtime::parseTier(tiers.front().where, tier).ok())
    return; // was refused when it was read
  using Kind = runtime::TierOptions::Kind;
  slow.kind = tier.kind == Kind::None     ? SlowKind::None
              : tier.kind == Kind::Memory ? SlowKind::Memory
              : tier.kind == Kind::File   ? SlowKind::File
                                          : SlowKind::Throttled;
  slow.path = tier.path;
  slow.latency = tier.throttle.latency;
  slow.bandwidth = tier.throttle.bandwidth;
  slow.bytes = wanted() ? tiers.front().bytes : 0;
  config.memory.slower.clear();
  for (size_t i = 1; i < tiers.size(); ++i)
    config.memory.slower.push_back(tiers[i].where + " " + runtime::printSize(tiers[i].bytes));
  slow.checksum = checksum ? config::Checksum::Xxh3 : config::Checksum::None;
  config.block.layersPerBlock = layersPerPage;
  config.block.automatic = pages;
  config.compress.quant = quant;
  config.compress.sparse.ratio = sparseRatio;
  config.compress.sparse.index = sparseIndex;
  config.prefetch.windowSize = prefetchWindow;
  for (const auto &[configured, policy] : replacements)
    if (policy == replacement)
      config.replace.policy = configured;
}

} // namespace quire::serving
