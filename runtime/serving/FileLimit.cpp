// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RLIMIT_NOFILE.
#include "serving/FileLimit.h"

#include <algorithm>

#include <sys/resource.h>

namespace quire::serving {

int64_t allowOpenFiles(int64_t count) {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return INT64_MAX; // opening will tell
  struct rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  if (limit.rlim_cur < static_cast<rlim_t>(count) && ::setrlimit(RLIMIT_NOFILE, &raised) == 0)
    limit = raised;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX)); // RLIM_INFINITY is the largest
}

} // namespace quire::serving
