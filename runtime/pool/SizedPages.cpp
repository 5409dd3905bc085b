// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Growth and translation of pages of several sizes.
#include "pool/SizedPages.h"

#include <algorithm>
#include <cassert>

namespace quire::runtime {

static unsigned long long ull(uint64_t value) { return value; }

SizedPages::SizedPages(Buddy &extents, uint64_t tokenBytes, size_t mostPages)
    : extents_(extents), tokenBytes_(tokenBytes) {
  assert(tokenBytes > 0);
  pages_.reserve(mostPages);
}

/// `nextBytes(missing)`: size of the next page when so many tokens have no slot.
template <typename NextBytes>
Status SizedPages::grow(int64_t tokens, NextBytes nextBytes) {
  if (tokens < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "expected tokens to append, but got %lld", static_cast<long long>(tokens));
  size_t before = pages_.size();
  Status status;
  while (status.ok() && slots() < length_ + tokens) {
    uint64_t bytes = extents_.extentBytes(nextBytes(length_ + tokens - slots()));
    uint64_t offset = Buddy::none;
    if (bytes < tokenBytes_)
      status =
          failure(QUIRE_INVALID_ARGUMENT, "a page of %llu bytes holds no token of %llu", ull(bytes), ull(tokenBytes_));
    else if (pages_.size() == pages_.capacity())
      status = failure(QUIRE_TOO_LONG, "expected at most %zu pages", pages_.capacity());
    else if ((offset = extents_.allocate(bytes)) == Buddy::none)
      status = failure(QUIRE_OUT_OF_BLOCKS, "no free extent of %llu bytes", ull(bytes));
    if (!status.ok())
      break;
    pages_.push_back({offset, bytes, slots(), tokensInPage(bytes, tokenBytes_)});
    bytes_ += bytes;
  }
  if (status.ok()) {
    length_ += tokens;
    return status;
  }
  for (; pages_.size() > before; pages_.pop_back()) {
    bytes_ -= pages_.back().bytes;
    extents_.release(pages_.back().offset);
  }
  return status;
}

Status SizedPages::append(int64_t tokens, const GrowthRule &rule) {
  if (rule.cap < extents_.unit() || rule.base < 1 || rule.doubleEvery < 1)
    return failure(QUIRE_INVALID_ARGUMENT, "expected a cap of at least %llu bytes, but got %llu", ull(extents_.unit()),
                   ull(rule.cap));
  uint64_t cap = clampPow2(rule.cap, 1, uint64_t(1) << 63);
  uint64_t least = std::min(cap, extents_.extentBytes(tokenBytes_));
  return grow(tokens, [&](int64_t) {
    return std::max(least, clampPow2(adaptiveBlockBytes(rule.base, cap, slots(), rule.doubleEvery), 1, cap));
  });
}

Status SizedPages::append(int64_t tokens, const PageClasses &classes) {
  return grow(tokens, [&](int64_t missing) { return documentPageBytes(classes, tokenBytes_, missing); });
}

void SizedPages::truncate(int64_t length) {
  assert(length >= 0 && length <= length_);
  length_ = length;
  for (; !pages_.empty() && pages_.back().first >= length; pages_.pop_back()) {
    bytes_ -= pages_.back().bytes;
    extents_.release(pages_.back().offset);
  }
}

void SizedPages::relocate(size_t page, uint64_t offset) {
  assert(!isHeld() && extents_.sizeAt(offset) == pages_[page].bytes);
  extents_.release(pages_[page].offset);
  pages_[page].offset = offset;
  ++generation_;
}

SizedPages::Place SizedPages::locate(int64_t position) const {
  assert(position >= 0 && position < slots());
  auto after = std::upper_bound(pages_.begin(), pages_.end(), position,
                                [](int64_t value, const Page &page) { return value < page.first; });
  size_t page = static_cast<size_t>(after - pages_.begin()) - 1;
  return {page, position - pages_[page].first};
}

Status SizedPages::validate() const {
  int64_t first = 0;
  uint64_t bytes = 0;
  for (const Page &page : pages_) {
    if (page.first != first || page.slots < 1 || page.slots != tokensInPage(page.bytes, tokenBytes_))
      return failure(QUIRE_INVARIANT_BROKEN, "page of position %lld: wrong slots", static_cast<long long>(first));
    if (extents_.sizeAt(page.offset) != page.bytes)
      return failure(QUIRE_INVARIANT_BROKEN, "page of position %lld: not an extent", static_cast<long long>(first));
    first += page.slots;
    bytes += page.bytes;
  }
  if (length_ > first || (!pages_.empty() && length_ <= pages_.back().first) || bytes != bytes_)
    return failure(QUIRE_INVARIANT_BROKEN, "%lld tokens in pages of %lld slots", static_cast<long long>(length_),
                   static_cast<long long>(first));
  return success();
}

} // namespace quire::runtime
