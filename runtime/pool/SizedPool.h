// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory with pages of several sizes, and the sequences that have them.
#ifndef QUIRE_RUNTIME_POOL_SIZEDPOOL_H
#define QUIRE_RUNTIME_POOL_SIZEDPOOL_H

#include "core/Invariants.h"
#include "core/MappedMemory.h"
#include "pool/Compact.h"
#include "pool/SizedPages.h"

#include "quire/sized.h"

#include <memory>
#include <optional>
#include <vector>

namespace quire::runtime {

/// Contracts as in quire/sized.h. Single writer.
class SizedPool {
public:
  struct Options {
    uint64_t bytes = uint64_t(256) << 20;
    uint64_t tokenBytes = 0;
    bool grows = true;      // by `growth`; otherwise by `classes`
    GrowthRule growth;
    PageClasses classes;
    size_t mostPages = 4096;
  };

  static Status create(const Options &options, std::unique_ptr<SizedPool> &out);

  Status createSequence(quire_sized_sequence &out);
  Status releaseSequence(quire_sized_sequence handle);
  Status append(quire_sized_sequence handle, int64_t tokens);
  Status truncate(quire_sized_sequence handle, int64_t length);
  Status hold(quire_sized_sequence handle);
  Status letGo(quire_sized_sequence handle);
  Status find(quire_sized_sequence handle, const SizedPages *&out) const;
  Compaction compact();

  char *addressOf(const SizedPages::Page &page) const { return arena_.data() + page.offset; }
  quire_sized_pool_stats stats() const;
  Status validate() const;

private:
  struct Slot {
    uint32_t generation = 1;
    std::unique_ptr<SizedPages> pages; // null: free
  };

  SizedPool(const Options &options, uint64_t unit) : options_(options), extents_(options.bytes, unit) {}
  Status find(quire_sized_sequence handle, SizedPages *&out);
  void checkInvariants() const { expectInvariants(*this); }

  Options options_;
  Buddy extents_;
  MappedMemory arena_;
  std::vector<Slot> slots_; // end before the extents
  std::vector<uint32_t> freeSlots_;
  Compaction compacted_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_SIZEDPOOL_H
