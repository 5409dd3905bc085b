// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of quire-replay.
#ifndef QUIRE_TOOLS_QUIRE_REPLAY_COMMANDLINE_H
#define QUIRE_TOOLS_QUIRE_REPLAY_COMMANDLINE_H

#include "residency/Replay.h"

#include <string>
#include <vector>

namespace quire::runtime {

/// Size of the fast tier, before the trace is known.
struct FastSize {
  enum class Unit { OfTrace, Percent, Pages, Bytes };
  Unit unit = Unit::OfTrace;
  uint64_t value = 0;
};

struct ReplayArguments {
  std::string trace;
  std::vector<PolicyKind> policies = {PolicyKind::Lru, PolicyKind::Scan, PolicyKind::Importance, PolicyKind::Arc};
  bool withOptimum = true;
  FastSize fast;
  ReplayOptions options;
  bool isJson = false;
  bool withDoctor = false;
};

/// What to do after parsing.
enum class Action { Run, Help, Version, Refuse };

/// Refuse: the mistake was reported on standard error.
Action parseCommandLine(int argc, char **argv, ReplayArguments &out);

extern const char helpText[];

} // namespace quire::runtime

#endif // QUIRE_TOOLS_QUIRE_REPLAY_COMMANDLINE_H
