// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of quire-run.
#ifndef QUIRE_TOOLS_QUIRE_RUN_COMMANDLINE_H
#define QUIRE_TOOLS_QUIRE_RUN_COMMANDLINE_H

#include "serving/Run.h"

namespace quire::serving {

/// What to do after parsing.
enum class Action { Run, Describe, PrintConfig, HelpConfig, ConfigTable, Help, Version, Refuse };

/// Refuse: the mistake was reported on standard error.
Action parseCommandLine(int argc, char **argv, RunOptions &out);

extern const char helpText[];

} // namespace quire::serving

#endif // QUIRE_TOOLS_QUIRE_RUN_COMMANDLINE_H
