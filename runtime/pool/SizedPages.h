// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pages of one sequence when they differ in size: growing ones, or chapters and paragraphs.
#ifndef QUIRE_RUNTIME_POOL_SIZEDPAGES_H
#define QUIRE_RUNTIME_POOL_SIZEDPAGES_H

#include "pool/Buddy.h"
#include "pool/Geometry.h"

#include <vector>

namespace quire::runtime {

/// Blocks that double: see adaptiveBlockBytes. Sizes that are no powers of two are
/// rounded down to one.
struct GrowthRule {
  uint64_t base = uint64_t(4) << 10;
  uint64_t cap = uint64_t(4) << 20;
  int64_t doubleEvery = 1024;
};

/// Owns extents of a buddy allocator, which must outlive it. Only the last page has
/// unused slots, and what was appended stays in its page; pages move by compact() only.
/// Allocates memory at creation only.
class SizedPages {
public:
  struct Page {
    uint64_t offset; // in the allocator's range
    uint64_t bytes;  // a power of two
    int64_t first;   // position of its first token
    int64_t slots;   // floor(bytes / tokenBytes)
  };
  struct Place {
    size_t page;
    int64_t slot;
  };

  SizedPages(Buddy &extents, uint64_t tokenBytes, size_t mostPages);
  ~SizedPages() { truncate(0); }
  SizedPages(const SizedPages &) = delete;
  SizedPages &operator=(const SizedPages &) = delete;

  int64_t length() const { return length_; }
  int64_t slots() const { return pages_.empty() ? 0 : pages_.back().first + pages_.back().slots; }
  uint64_t bytes() const { return bytes_; }
  const std::vector<Page> &pages() const { return pages_; }

  /// Makes room for `tokens` more and counts them. All or nothing; QUIRE_OUT_OF_BLOCKS,
  /// QUIRE_TOO_LONG (more than mostPages), or QUIRE_INVALID_ARGUMENT where the largest page holds
  /// no token. A page that would hold none is made larger, up to the cap. Classes are
  /// rounded up to powers of two.
  Status append(int64_t tokens, const GrowthRule &rule);
  Status append(int64_t tokens, const PageClasses &classes);

  /// Gives back the pages that hold none of the first `length` tokens.
  void truncate(int64_t length);

  /// O(log pages); `position` is below slots().
  Place locate(int64_t position) const;

  /// Offsets hold while the generation is the same: it goes up when a page moves.
  uint64_t generation() const { return generation_; }
  /// While held, pages do not move; counted.
  void hold() { ++holds_; }
  void letGo() { --holds_; }
  bool isHeld() const { return holds_ > 0; }
  /// The content is at `offset` already, an extent of the page's size that was handed
  /// out; the old one is free again.
  void relocate(size_t page, uint64_t offset);

  Status validate() const;

private:
  template <typename NextBytes>
  Status grow(int64_t tokens, NextBytes nextBytes);

  Buddy &extents_;
  uint64_t tokenBytes_;
  std::vector<Page> pages_;
  int64_t length_ = 0;
  uint64_t bytes_ = 0;
  uint64_t generation_ = 1;
  int64_t holds_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_SIZEDPAGES_H
