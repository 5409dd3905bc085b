// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transfers that are under way for as long as a test wants it.
#ifndef QUIRE_TEST_UNIT_RUNTIME_GATE_H
#define QUIRE_TEST_UNIT_RUNTIME_GATE_H

#include "tier/Tier.h"

#include <condition_variable>
#include <mutex>

namespace quire::test {

/// Holds transfers of a kind back.
class Gate {
public:
  explicit Gate(runtime::Transfer::Kind kind) : kind_(kind) {}
  quire_status pass(const runtime::Transfer &transfer) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (transfer.kind == kind_ && !open_) {
      waiting_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return open_; });
    }
    return QUIRE_OK;
  }
  void open() {
    std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void awaitSomebody() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return waiting_; });
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  runtime::Transfer::Kind kind_;
  bool open_ = false, waiting_ = false;
};

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_GATE_H
