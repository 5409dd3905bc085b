// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the files of a run are different files.
#ifndef QUIRE_RUNTIME_SERVING_OUTPUTPATHS_H
#define QUIRE_RUNTIME_SERVING_OUTPUTPATHS_H

#include "serving/Run.h"

#include <string>

namespace quire::serving {

/// Whether two outputs would be written to the same file or stream, however
/// their paths are spelled. Neither needs to exist. Terminals, sockets and
/// /dev/null may be shared.
bool isSameOutput(const std::string &a, const std::string &b);

/// Empty, or which two options name the same path.
std::string conflictOfPaths(const RunOptions &options);

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_OUTPUTPATHS_H
