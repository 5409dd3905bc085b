// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One line on a terminal that says what takes long.
#include "lib/Driver/Progress.h"

#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>

namespace quire {

Progress::Progress() : terminal(llvm::sys::Process::StandardErrIsDisplayed()) {
  if (terminal)
    thread = std::thread([this] { show(); });
}

Progress::~Progress() {
  if (!thread.joinable())
    return;
  clear();
  {
    std::lock_guard<std::mutex> lock(mutex);
    stop = true;
  }
  wake.notify_all();
  thread.join();
}

void Progress::step(llvm::StringRef name) {
  std::lock_guard<std::mutex> lock(mutex);
  current = name.str();
}

void Progress::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  current.clear();
  if (shown)
    llvm::errs() << "\r\033[K";
  shown = false;
}

void Progress::show() {
  auto start = std::chrono::steady_clock::now();
  std::unique_lock<std::mutex> lock(mutex);
  while (!wake.wait_for(lock, std::chrono::milliseconds(500), [this] { return stop; })) {
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start).count();
    if (seconds < 2 || current.empty())
      continue;
    llvm::errs() << "\r\033[K" << current << " ... " << seconds << " s";
    shown = true;
  }
}

} // namespace quire
