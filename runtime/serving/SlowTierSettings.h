// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a run wants of a slow tier, from options and from a configuration.
#ifndef QUIRE_RUNTIME_SERVING_SLOWTIERSETTINGS_H
#define QUIRE_RUNTIME_SERVING_SLOWTIERSETTINGS_H

#include "config/Config.h"
#include "quire/runtime.h"

#include <cstdint>
#include <string>

namespace quire::serving {

struct SlowTierSettings {
  std::string where = "none"; // as in quire_slow_tier_options
  uint64_t bytes = 0;
  quire_replacement replacement = QUIRE_REPLACE_SCAN;
  int64_t prefetchWindow = 3; // 0: none
  int64_t layersPerPage = 1;
  config::AutoBlock pages = config::AutoBlock::Off; // not Off: instead of layersPerPage
  bool checksum = true; // of files
  config::Quant quant = config::Quant::None;

  bool wanted() const { return where != "none"; }
  /// `out` borrows from this.
  void describe(quire_slow_tier_options &out) const;
  void take(const config::Config &config);
  void give(config::Config &config) const;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_SLOWTIERSETTINGS_H
