// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The whole of quire-run behind its command line.
#ifndef QUIRE_RUNTIME_SERVING_RUN_H
#define QUIRE_RUNTIME_SERVING_RUN_H

#include "config/Config.h"
#include "serving/Scheduler.h"
#include "serving/SlowTierSettings.h"

#include <cstdint>
#include <optional>
#include <string>

namespace quire::serving {

struct RunOptions {
  std::string model;
  std::string requests = "-"; // standard input
  std::string output = "-";   // standard output
  std::string logits;         // empty: none
  std::string stats;          // empty: none
  SchedulerLimits limits;
  uint64_t kvBytes = uint64_t(256) << 20;
  std::optional<uint64_t> shuffleSeed;
  bool poison = false;
  int64_t threads = 0; // all that the process may use
  bool zeroOnFree = false;
  SlowTierSettings slow;
  std::string trace;  // empty: none
  std::string metrics; // likewise
  std::string config; // the file that is read again when it changes; empty: none
  config::Config configured; // of what has no option of its own
  bool doctor = false;
  bool json = false;
};

/// Takes what a configuration says, and says it as one.
void applyConfig(const config::Config &config, RunOptions &options);
config::Config effectiveConfig(const RunOptions &options);

/// Exit codes: 0 done (requests may have failed by themselves, but not all), 1 bad
/// input or every request failed, 128 + n ended by signal n. Messages go to standard
/// error.
int runRequests(const RunOptions &options);
int runDescribe(const RunOptions &options);

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_RUN_H
