// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identity of files: by device and number where they exist, else by their resolved paths.
#include "serving/OutputPaths.h"

#include <filesystem>
#include <iterator>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

namespace quire::serving {

static bool identify(const std::string &path, struct stat &out) {
  return (path == "-" ? ::fstat(STDOUT_FILENO, &out) : ::stat(path.c_str(), &out)) == 0;
}

/// Without links, dots and a slash at the end; links are followed as far as the path exists.
static std::filesystem::path resolved(const std::string &path) {
  std::error_code failed;
  std::filesystem::path whole = std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed);
  if (failed)
    return path;
  return whole.has_filename() ? whole : whole.parent_path();
}

bool isSameOutput(const std::string &a, const std::string &b) {
  if (a == "-" && b == "-")
    return true;
  struct stat first, second;
  if (identify(a, first) && identify(b, second))
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino && !S_ISCHR(first.st_mode) &&
           !S_ISSOCK(first.st_mode);
  return a != "-" && b != "-" && resolved(a) == resolved(b);
}

/// Files are written under another name first (see OutputFile), which must be free as well.
static bool collide(const std::string &a, const std::string &b) {
  return isSameOutput(a, b) || (a != "-" && isSameOutput(resolved(a).string() + ".partial", b)) ||
         (b != "-" && isSameOutput(a, resolved(b).string() + ".partial"));
}

std::string conflictOfPaths(const RunOptions &options) {
  struct Named {
    const char *option;
    std::string path;
  };
  const Named all[] = {{"--requests", options.requests == "-" ? "" : options.requests}, // standard input is no output
                       {"--output", options.output},
                       {"--stats", options.stats},
                       {"--logits", options.logits},
                       {"--trace", options.trace}};
  for (size_t later = 1; later < std::size(all); ++later)
    for (size_t earlier = 0; earlier < later; ++earlier)
      if (!all[later].path.empty() && !all[earlier].path.empty() && collide(all[earlier].path, all[later].path))
        return std::string(all[later].option) + ": expected a path of its own, but got that of " + all[earlier].option +
               ", '" + all[later].path + "'";
  return {};
}

} // namespace quire::serving
