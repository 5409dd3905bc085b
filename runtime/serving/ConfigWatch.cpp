// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One stat a step; the file is read when it is another one or has changed.
#include "serving/ConfigWatch.h"

#include "serving/Tuning.h"

#include <cstdio>

#include <sys/stat.h>

namespace quire::serving {

std::optional<ConfigWatch::State> ConfigWatch::stateOf(const std::string &path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0)
    return std::nullopt;
  return State{S_ISREG(found.st_mode), found.st_dev, found.st_ino, found.st_size, found.st_mtim.tv_sec, found.st_mtim.tv_nsec, found.st_ctim.tv_sec, found.st_ctim.tv_nsec};
}

ConfigWatch::ConfigWatch(const RunOptions &options, quire_pool *pool)
    : path_(options.config), pool_(pool), file_(options.configured), current_(effectiveConfig(options)) {
  if (!path_.empty())
    seen_ = stateOf(path_);
  if (seen_ && !std::get<0>(*seen_))
    path_.clear(); // a pipe was read to its end
}

void ConfigWatch::look() {
  if (path_.empty())
    return;
  std::optional<State> now = stateOf(path_);
  if (!now || now == seen_)
    return; // also while an editor replaces the file
  seen_ = now;
  if (!std::get<0>(*now)) { // to open a pipe would wait for its writer in the middle of a run
    std::fprintf(stderr, "quire-run: warning: %s: expected a regular file, but got something else; the run goes on as before\n", path_.c_str());
    return;
  }
  config::Reload read;
  runtime::Status status = config::reload(path_, file_, current_, read);
  if (!status.ok()) {
    std::fprintf(stderr, "quire-run: warning: %s; the run goes on as before\n", status.text().c_str());
    return;
  }
  if (tunePool(pool_, read.config) != QUIRE_OK) {
    std::fprintf(stderr, "quire-run: warning: %s: %s; the run goes on as before\n", path_.c_str(), quire_last_error());
    return;
  }
  for (const config::Change &change : read.changes) {
    if (change.reloadable)
      std::fprintf(stderr, "quire-run: %s: %s -> %s\n", change.key.c_str(), change.before.c_str(), change.after.c_str());
    else if (!fixedTold_)
      std::fprintf(stderr, "quire-run: warning: %s needs a new run; it stays %s\n", change.key.c_str(),
                   change.before.c_str());
    fixedTold_ |= !change.reloadable;
  }
  current_ = read.config;
  file_ = read.file;
}

} // namespace quire::serving
