// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which pages were not read for so many steps that they may be stored in fewer bytes.
#ifndef QUIRE_RUNTIME_COMPRESS_IDLETRACKER_H
#define QUIRE_RUNTIME_COMPRESS_IDLETRACKER_H

#include "core/Status.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::runtime {

/// Page numbers are in [0, pages); steps never go back. Allocates at creation only;
/// every operation is O(1) a page. A page is watched from read() until take() hands it
/// out or forget() ends it; read() watches it again.
class IdleTracker {
public:
  /// `idleSteps`: a page is idle when its last read is at least as many steps ago.
  IdleTracker(uint32_t pages, uint64_t idleSteps);

  void setIdleSteps(uint64_t steps) { idleSteps_ = steps; }
  uint64_t idleSteps() const { return idleSteps_; }
  uint32_t watched() const { return watched_; }

  /// The page was sealed or read in `step`.
  void read(uint32_t page, uint64_t step);
  /// The page ended, or is of no interest. No effect on one that is not watched.
  void forget(uint32_t page);
  /// Idle pages, the longest idle first, at most `most`.
  size_t take(uint64_t step, uint32_t *out, size_t most);

  Status validate() const;

private:
  static constexpr uint32_t none = UINT32_MAX;

  /// On a list in order of lastRead, from head to tail.
  struct Page {
    uint32_t previous = none;
    uint32_t next = none;
    uint64_t lastRead = 0;
    bool watched = false;
  };

  std::vector<Page> pages_;
  uint32_t head_ = none;
  uint32_t tail_ = none;
  uint32_t watched_ = 0;
  uint64_t idleSteps_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_COMPRESS_IDLETRACKER_H
