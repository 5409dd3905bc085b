// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Changes of the configuration file while a run goes on.
#ifndef QUIRE_RUNTIME_SERVING_CONFIGWATCH_H
#define QUIRE_RUNTIME_SERVING_CONFIGWATCH_H

#include "serving/Run.h"

#include <cstdint>
#include <optional>
#include <tuple>

namespace quire::serving {

class ConfigWatch {
public:
  ConfigWatch(const RunOptions &options, quire_pool *pool);

  /// Between steps: takes what has changed and can change. Says on standard error
  /// what was taken, what needs a new run, and what is wrong with the file; a wrong
  /// file changes nothing.
  void look();

  const config::Config &current() const { return current_; }

private:
  /// Whether it is a regular file, device, number, size, and the times of the last changes of content and of the rest: copies keep times of content, and clocks of file systems tick
  /// slowly.
  using State = std::tuple<bool, uint64_t, uint64_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
  static std::optional<State> stateOf(const std::string &path);

  std::string path_; // empty: nothing is watched
  quire_pool *pool_;
  config::Config file_; // what it said last; keys that differ in the current configuration are the command line's
  config::Config current_;
  std::optional<State> seen_;
  bool fixedTold_ = false;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_CONFIGWATCH_H
