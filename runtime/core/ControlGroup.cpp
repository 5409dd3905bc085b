// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading of the files of control groups, at the places where systems mount them.
#include "core/ControlGroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace quire::runtime {
namespace {

/// Names of one version's files.
struct Version {
  const char *limit;
  const char *used;
  const char *inactive; // line of memory.stat: cached files that the system takes back first
};

constexpr Version unified = {"/memory.max", "/memory.current", "inactive_file"};
constexpr Version separate = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};

/// False: no such file, or no number in it, as with "max".
bool readNumber(const std::string &path, uint64_t &out) {
  std::ifstream file(path);
  return static_cast<bool>(file >> out);
}

uint64_t readStatistic(const std::string &path, const std::string &name) {
  std::ifstream file(path);
  std::string found;
  uint64_t value;
  while (file >> found >> value)
    if (found == name)
      return value;
  return 0;
}

void take(const std::string &folder, const Version &version, GroupMemory &out) {
  uint64_t limit, used;
  if (!readNumber(folder + version.limit, limit))
    return;
  out.limit = std::min(out.limit, limit);
  if (!readNumber(folder + version.used, used))
    return;
  used -= std::min(used, readStatistic(folder + "/memory.stat", version.inactive));
  out.available = std::min(out.available, limit - std::min(limit, used));
}

/// The group and those above it, up to the mount: inside a container the mount is often the group itself, and the path is one outside.
void takeAll(const std::string &mount, std::string path, const Version &version, GroupMemory &out) {
  if (path.find("..") != std::string::npos) // outside of what the process may see
    path.clear();
  for (;;) {
    while (!path.empty() && path.back() == '/')
      path.pop_back();
    take(mount + path, version, out);
    if (path.empty())
      return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

} // namespace

GroupMemory groupMemory(const std::string &root) {
  GroupMemory out;
  std::ifstream file(root + "/proc/self/cgroup");
  const std::string mounts = root + "/sys/fs/cgroup";
  for (std::string line; std::getline(file, line);) { // NUMBER:CONTROLLERS:PATH
    size_t first = line.find(':'), second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    std::string path = line.substr(second + 1);
    if (second == first + 1) { // version 2 has no controllers here
      takeAll(mounts, path, unified, out);
      takeAll(mounts + "/unified", path, unified, out);
      continue;
    }
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    for (std::string controller; std::getline(controllers, controller, ',');)
      if (controller == "memory")
        takeAll(mounts + "/memory", path, separate, out);
  }
  return out;
}

} // namespace quire::runtime
