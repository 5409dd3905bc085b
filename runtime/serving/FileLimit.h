// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many files a run may keep open.
#ifndef QUIRE_RUNTIME_SERVING_FILELIMIT_H
#define QUIRE_RUNTIME_SERVING_FILELIMIT_H

#include <cstdint>

namespace quire::serving {

/// Files that a run has open besides those of its requests, inherited ones
/// included.
constexpr int64_t otherFiles = 16;

/// Raises this process's soft limit of open files to the hard one if it is below
/// `count`; gives the limit then, at most INT64_MAX.
int64_t allowOpenFiles(int64_t count);

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_FILELIMIT_H
