// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One line on a terminal that says what takes long.
#ifndef QUIRE_LIB_DRIVER_PROGRESS_H
#define QUIRE_LIB_DRIVER_PROGRESS_H

#include "llvm/ADT/StringRef.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace quire {

/// Shows the current step on standard error once two seconds have passed, and only on a terminal.
class Progress {
public:
  Progress();
  ~Progress();
  void step(llvm::StringRef name);
  /// Removes the line, and shows none until the next step.
  void clear();

private:
  void show();

  bool terminal, stop = false, shown = false;
  std::string current;
  std::mutex mutex;
  std::condition_variable wake;
  std::thread thread;
};

} // namespace quire

#endif // QUIRE_LIB_DRIVER_PROGRESS_H
