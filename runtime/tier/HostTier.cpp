// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copies between pages and one mapping.
#include "tier/HostTier.h"

#include "core/Checksum.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

namespace quire::runtime {

HostTier::HostTier(const HostTierOptions &options)
    : Tier("memory", options.slots, options.pageBytes), entries_(options.slots), checksum_(options.checksum) {}

std::unique_ptr<HostTier> HostTier::create(const HostTierOptions &options, Status &status) {
  uint64_t bytes, tables = options.slots * (BlockAllocator::bytesPerBlock() + sizeof(Entry));
  if (__builtin_mul_overflow(options.pageBytes, uint64_t(options.slots), &bytes) || bytes > physicalMemory() - std::min(tables, physicalMemory())) {
    status = failure(QUIRE_OUT_OF_MEMORY, "expected a slow tier that fits into the %" PRIu64 " bytes of memory that this process may have, but got %" PRIu32 " slots of %" PRIu64 " bytes", physicalMemory(), options.slots, options.pageBytes);
    return nullptr;
  }
  std::unique_ptr<HostTier> tier(new HostTier(options));
  status = tier->memory_.map(bytes, MappedMemory::Pages::Huge);
  if (status.ok() && options.commit)
    status = tier->memory_.populate();
  return status.ok() ? std::move(tier) : nullptr;
}

void HostTier::run(Transfer *const *transfers, size_t count) {
  for (size_t i = 0; i < count; ++i)
    transfers[i]->status = runOne(*transfers[i]);
}

uint64_t HostTier::checksumOfSlot(uint32_t slot, uint64_t tag, const char *page) const {
  if (!checksum_)
    return 0;
  uint64_t names[2] = {slot, tag};
  return checksumOf(page, pageBytes(), checksumOf(names, sizeof(names)));
}

Status HostTier::runOne(const Transfer &transfer) {
  if (transfer.slot >= entries_.size())
    return failure(QUIRE_INVALID_ARGUMENT, "expected a slot below %zu, but got %" PRIu32, entries_.size(), transfer.slot);
  Entry &entry = entries_[transfer.slot];
  switch (transfer.kind) {
  case Transfer::Kind::Load:
    return load(transfer);
  case Transfer::Kind::Store:
    std::memcpy(place(transfer.slot), transfer.page, pageBytes());
    entry = {Page, transfer.tag, checksumOfSlot(transfer.slot, transfer.tag, transfer.page)};
    return success();
  case Transfer::Kind::Erase:
    if (entry.held != Nothing)
      std::memset(place(transfer.slot), 0, pageBytes());
    entry = {};
    return success();
  }
  return success();
}

Status HostTier::load(const Transfer &transfer) {
  Entry &entry = entries_[transfer.slot];
  if (entry.held != Page)
    return failure(QUIRE_PAGE_LOST, "slot %" PRIu32 " of tier %s holds no content", transfer.slot, name().c_str());
  if (entry.tag != transfer.tag) {
    entry.held = Lost;
    return failure(QUIRE_PAGE_LOST, "slot %" PRIu32 " of tier %s: expected tag %" PRIx64 ", but got %" PRIx64, transfer.slot, name().c_str(), transfer.tag, entry.tag);
  }
  // Of the copy: what is checked is what is handed out.
  std::memcpy(transfer.page, place(transfer.slot), pageBytes());
  if (checksumOfSlot(transfer.slot, entry.tag, transfer.page) != entry.checksum) {
    entry.held = Lost;
    return failure(QUIRE_PAGE_LOST, "slot %" PRIu32 " of tier %s: the checksum does not match", transfer.slot, name().c_str());
  }
  return success();
}

Status HostTier::readStored(uint32_t slot, char *out) {
  std::memcpy(out, &entries_[slot], sizeof(Entry));
  std::memcpy(out + sizeof(Entry), place(slot), pageBytes());
  return success();
}

Status HostTier::writeStored(uint32_t slot, const char *bytes) {
  std::memcpy(&entries_[slot], bytes, sizeof(Entry));
  std::memcpy(place(slot), bytes + sizeof(Entry), pageBytes());
  return success();
}

} // namespace quire::runtime
