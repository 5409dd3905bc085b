// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks of sizes, handles of sequences, and moves of pages.
#include "pool/SizedPool.h"

#include <algorithm>
#include <cstring>

namespace quire::runtime {

static constexpr uint64_t leastPage = 64, mostPage = uint64_t(1) << 40, mostUnits = uint64_t(1) << 31;

static unsigned long long ull(uint64_t value) { return value; }
static long long ll(int64_t value) { return value; }

static Status checkSize(const char *name, uint64_t bytes) {
  if (bytes >= leastPage && bytes <= mostPage)
    return success();
  return failure(QUIRE_INVALID_ARGUMENT, "%s: expected a page of %llu to %llu bytes, but got %llu", name, ull(leastPage), ull(mostPage), ull(bytes));
}

static Status checkOrder(const char *small, uint64_t smaller, const char *large, uint64_t larger) {
  QUIRE_TRY(checkSize(small, smaller));
  QUIRE_TRY(checkSize(large, larger));
  if (smaller <= larger)
    return success();
  return failure(QUIRE_INVALID_ARGUMENT, "%s: expected at most the %llu bytes of %s, but got %llu", small, ull(larger), large, ull(smaller));
}

/// Sets the bytes of the smallest page and of the largest one.
static Status checkSizes(const SizedPool::Options &options, uint64_t &least, uint64_t &most) {
  if (options.grows) {
    QUIRE_TRY(checkOrder("base", options.growth.base, "max", options.growth.cap));
    least = clampPow2(options.growth.base, 1, mostPage);
    most = clampPow2(options.growth.cap, 1, mostPage);
  } else {
    QUIRE_TRY(checkOrder("paragraph_page", options.classes.paragraph, "chapter_page", options.classes.chapter));
    least = options.classes.paragraph;
    most = options.classes.chapter;
  }
  if (options.tokenBytes >= 1 && options.tokenBytes <= most)
    return success();
  return failure(QUIRE_INVALID_ARGUMENT, "token_bytes: expected 1 to the %llu of the largest page, but got %llu", ull(most), ull(options.tokenBytes));
}

static uint64_t ceilPow2(uint64_t value) {
  uint64_t power = 1;
  while (power < value)
    power *= 2;
  return power;
}

Status SizedPool::create(const Options &given, std::unique_ptr<SizedPool> &out) {
  uint64_t least, most;
  QUIRE_TRY(checkSizes(given, least, most));
  Options options = given;
  options.classes = {ceilPow2(given.classes.chapter), ceilPow2(given.classes.paragraph)};
  uint64_t unit = ceilPow2(least), units = options.bytes / unit;
  if (units == 0)
    return failure(QUIRE_OUT_OF_BLOCKS, "bytes: expected room for a page of %llu, but got %llu", ull(unit), ull(options.bytes));
  if (units > mostUnits)
    return failure(QUIRE_INVALID_ARGUMENT, "bytes: expected at most %llu pages of the smallest size, but got %llu", ull(mostUnits), ull(units));
  uint64_t memory = physicalMemory(), arena = units * unit, tables = units * Buddy::bytesPerUnit();
  if (arena > memory || tables > memory - arena)
    return failure(QUIRE_OUT_OF_MEMORY, "expected a pool that fits into the %llu bytes of memory that this process may have, but got one of %llu bytes and %llu bytes of tables", ull(memory),
                   ull(arena), ull(tables));
  // There are no more pages than units, and sequences have room for all of theirs from the beginning.
  options.mostPages = static_cast<size_t>(std::min<uint64_t>(given.mostPages, units + 1));
  std::unique_ptr<SizedPool> pool(new SizedPool(options, unit));
  QUIRE_TRY(pool->arena_.map(arena, MappedMemory::Pages::Huge));
  QUIRE_TRY(pool->arena_.populate());
  out = std::move(pool);
  return success();
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

Status SizedPool::find(quire_sized_sequence handle, const SizedPages *&out) const {
  uint32_t index = static_cast<uint32_t>(handle), generation = static_cast<uint32_t>(handle >> 32);
  if (generation == 0 || index >= slots_.size())
    return failure(QUIRE_INVALID_ARGUMENT, "not a sequence handle of this pool");
  if (slots_[index].generation != generation || !slots_[index].pages)
    return failure(QUIRE_STALE_HANDLE, "sequence %u was released", index);
  out = slots_[index].pages.get();
  return success();
}

Status SizedPool::find(quire_sized_sequence handle, SizedPages *&out) {
  const SizedPages *found;
  QUIRE_TRY(static_cast<const SizedPool *>(this)->find(handle, found));
  out = const_cast<SizedPages *>(found);
  return success();
}

Status SizedPool::createSequence(quire_sized_sequence &out) {
  auto pages = std::make_unique<SizedPages>(extents_, options_.tokenBytes, options_.mostPages);
  if (freeSlots_.empty()) {
    freeSlots_.reserve(slots_.size() + 1); // so that a release cannot fail
    slots_.emplace_back();
    freeSlots_.push_back(static_cast<uint32_t>(slots_.size() - 1));
  }
  uint32_t index = freeSlots_.back();
  freeSlots_.pop_back();
  slots_[index].pages = std::move(pages);
  out = uint64_t(slots_[index].generation) << 32 | index;
  checkInvariants();
  return success();
}

Status SizedPool::releaseSequence(quire_sized_sequence handle) {
  SizedPages *pages;
  QUIRE_TRY(find(handle, pages));
  Slot &slot = slots_[static_cast<uint32_t>(handle)];
  slot.pages.reset();
  if (++slot.generation == 0)
    slot.generation = 1;
  freeSlots_.push_back(static_cast<uint32_t>(handle));
  checkInvariants();
  return success();
}

Status SizedPool::append(quire_sized_sequence handle, int64_t tokens) {
  SizedPages *pages;
  QUIRE_TRY(find(handle, pages));
  Status status = tokens > INT64_MAX - pages->length() ? failure(QUIRE_TOO_LONG, "expected fewer tokens than %lld, but got more", ll(INT64_MAX))
                  : options_.grows                     ? pages->append(tokens, options_.growth)
                                                       : pages->append(tokens, options_.classes);
  checkInvariants();
  return status;
}

Status SizedPool::truncate(quire_sized_sequence handle, int64_t length) {
  SizedPages *pages;
  QUIRE_TRY(find(handle, pages));
  if (length < 0 || length > pages->length())
    return failure(QUIRE_INVALID_ARGUMENT, "expected a length of 0 to %lld, but got %lld", ll(pages->length()), ll(length));
  pages->truncate(length);
  checkInvariants();
  return success();
}

Status SizedPool::hold(quire_sized_sequence handle) {
  SizedPages *pages;
  QUIRE_TRY(find(handle, pages));
  pages->hold();
  return success();
}

Status SizedPool::letGo(quire_sized_sequence handle) {
  SizedPages *pages;
  QUIRE_TRY(find(handle, pages));
  if (!pages->isHeld())
    return failure(QUIRE_INVALID_ARGUMENT, "the sequence is not held");
  pages->letGo();
  return success();
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

Compaction SizedPool::compact() {
  std::vector<SizedPages *> sequences;
  for (const Slot &slot : slots_)
    if (slot.pages)
      sequences.push_back(slot.pages.get());
  Compaction done = runtime::compact(extents_, sequences, [this](uint64_t from, uint64_t to, uint64_t bytes) {
    std::memcpy(arena_.data() + to, arena_.data() + from, bytes);
  });
  compacted_.pages += done.pages;
  compacted_.bytes += done.bytes;
  checkInvariants();
  return done;
}

quire_sized_pool_stats SizedPool::stats() const {
  quire_sized_pool_stats out = {};
  out.bytes = extents_.totalBytes();
  out.bytes_free = extents_.freeBytes();
  out.largest_free = extents_.largestFree();
  out.fragmentation = extents_.externalFragmentation();
  out.failures_with_room = static_cast<int64_t>(extents_.failuresWithRoom());
  out.compacted_pages = static_cast<int64_t>(compacted_.pages);
  out.compacted_bytes = static_cast<int64_t>(compacted_.bytes);
  out.table_bytes = extents_.totalBytes() / extents_.unit() * Buddy::bytesPerUnit() + slots_.size() * (sizeof(Slot) + sizeof(uint32_t));
  for (const Slot &slot : slots_) {
    if (!slot.pages)
      continue;
    ++out.sequences;
    out.pages += static_cast<int64_t>(slot.pages->pages().size());
    out.tokens += slot.pages->length();
    out.slots += slot.pages->slots();
    out.table_bytes += sizeof(SizedPages) + slot.pages->pages().capacity() * sizeof(SizedPages::Page);
  }
  return out;
}

/// Extents that are handed out are the pages of sequences.
Status SizedPool::validate() const {
  QUIRE_TRY(extents_.validate());
  uint64_t used = 0;
  std::vector<uint64_t> offsets;
  for (const Slot &slot : slots_) {
    if (!slot.pages)
      continue;
    QUIRE_TRY(slot.pages->validate());
    used += slot.pages->bytes();
    for (const SizedPages::Page &page : slot.pages->pages())
      offsets.push_back(page.offset);
  }
  std::sort(offsets.begin(), offsets.end());
  if (std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end())
    return failure(QUIRE_INVARIANT_BROKEN, "two pages lie at the same place");
  if (used != extents_.totalBytes() - extents_.freeBytes())
    return failure(QUIRE_INVARIANT_BROKEN, "%llu bytes of pages, but %llu are handed out", ull(used), ull(extents_.totalBytes() - extents_.freeBytes()));
  return success();
}

} // namespace quire::runtime
