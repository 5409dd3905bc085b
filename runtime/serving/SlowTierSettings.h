// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a run wants of a slow tier, from options and from a configuration.
#ifndef QUIRE_RUNTIME_SERVING_SLOWTIERSETTINGS_H
#define QUIRE_RUNTIME_SERVING_SLOWTIERSETTINGS_H

#include "config/Config.h"
#include "quire/runtime.h"

#include <cstdint>
#include <string>
#include <vector>

namespace quire::serving {

struct SlowTierSettings {
  struct Tier {
    std::string where; // as in quire_slow_tier_options
    uint64_t bytes = 0;
  };
  /// For a pool; borrows from the settings.
  struct Description {
    std::vector<quire_lower_tier_options> lower;
    quire_slow_tier_options options;
  };

  std::vector<Tier> tiers; // the upper ones first
  quire_replacement replacement = QUIRE_REPLACE_SCAN;
  int64_t prefetchWindow = 3; // 0: none
  int64_t layersPerPage = 1;
  config::AutoBlock pages = config::AutoBlock::Off; // not Off: instead of layersPerPage
  bool checksum = true; // of files
  config::Quant quant = config::Quant::None;
  int64_t sparseRatio = 1; // 1: no sparse form; otherwise there is no quant
  config::SparseIndex sparseIndex = config::SparseIndex::Bitmap;

  bool wanted() const { return !tiers.empty(); }
  /// The key that asks for another form of pages than their own; null: none does.
  const char *codecKey() const { return quant != config::Quant::None ? "compress.quant" : sparseRatio != 1 ? "compress.sparse.ratio" : nullptr; }
  Description describe() const;
  void take(const config::Config &config);
  void give(config::Config &config) const;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_SLOWTIERSETTINGS_H
