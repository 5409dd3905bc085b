// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One stat a step; the file is read when its time has changed.
#include "serving/ConfigWatch.h"

#include "serving/Tuning.h"

#include <cstdio>

#include <sys/stat.h>

namespace quire::serving {

static struct timespec changedAt(const std::string &path) {
  struct stat found = {};
  return ::stat(path.c_str(), &found) == 0 ? found.st_mtim : timespec{};
}

ConfigWatch::ConfigWatch(const RunOptions &options, quire_pool *pool)
    : path_(options.config), pool_(pool), file_(options.configured), current_(effectiveConfig(options)) {
  if (!path_.empty())
    seen_ = changedAt(path_);
}

void ConfigWatch::look() {
  if (path_.empty())
    return;
  struct timespec now = changedAt(path_);
  if (now.tv_sec == 0 || (now.tv_sec == seen_.tv_sec && now.tv_nsec == seen_.tv_nsec))
    return; // also while an editor replaces the file
  seen_ = now;
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
