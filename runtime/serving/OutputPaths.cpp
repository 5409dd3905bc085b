// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Identity of files: by device and number where they exist, else by their resolved paths.
#include "serving/OutputPaths.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

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

/// `path` is `folder`, or lies in it.
static bool isInside(const std::string &path, const std::string &folder) {
  std::filesystem::path inner = resolved(path), outer = resolved(folder);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// What a request's logits may be written to (see ResultWriter).
static bool isArrayIn(const std::string &path, const std::string &folder) {
  std::filesystem::path file = resolved(path);
  std::string extension = (file.extension() == ".partial" ? file.stem() : file).extension();
  return extension == ".npy" && isSameOutput(file.parent_path(), folder);
}

std::string conflictOfPaths(const RunOptions &options) {
  struct Named {
    const char *option;
    std::string path;
  };
  constexpr size_t inputs = 2;
  std::vector<Named> all = {{"--requests", options.requests == "-" ? "" : options.requests}, // standard input is no output
                            {"--config", options.config}};
  for (const SlowTierSettings::Tier &tier : options.slow.tiers)
    if (tier.where.rfind("file:", 0) == 0)
      all.push_back({"--slow-tier", tier.where.substr(5)});
  for (const Named &output : {Named{"--output", options.output}, Named{"--stats", options.stats}, Named{"--trace", options.trace}, Named{"--metrics", options.metrics}, Named{"--logits", options.logits}})
    all.push_back(output);
  for (size_t later = inputs; later < all.size(); ++later) {
    const Named &named = all[later];
    if (named.path.empty())
      continue;
    for (size_t earlier = 0; earlier < later; ++earlier)
      if (!all[earlier].path.empty() && collide(all[earlier].path, named.path))
        return std::string(named.option) + ": expected a path of its own, but got that of " + all[earlier].option + ", '" + named.path + "'";
    if (named.path != "-" && isInside(named.path, options.model))
      return std::string(named.option) + ": expected a path outside of the model folder, but got '" + named.path + "'";
  }
  for (const Named &named : all)
    if (!named.path.empty() && named.path != "-" && !options.logits.empty() && isArrayIn(named.path, options.logits))
      return std::string(named.option) + ": expected a path that no array of --logits has, but got '" + named.path + "'";
  return {};
}

} // namespace quire::serving
