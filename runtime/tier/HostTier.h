// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A slow tier in anonymous memory of this process.
#ifndef QUIRE_RUNTIME_TIER_HOSTTIER_H
#define QUIRE_RUNTIME_TIER_HOSTTIER_H

#include "core/MappedMemory.h"
#include "tier/StoredSlots.h"
#include "tier/Tier.h"

#include <memory>
#include <vector>

namespace quire::runtime {

struct HostTierOptions {
  uint32_t slots = 0;
  uint64_t pageBytes = 0;
  bool checksum = false; // of page, slot and tag, checked by loads
  bool commit = true;    // all memory at creation, so that no store waits for it
};

class HostTier final : public Tier, public StoredSlots {
public:
  /// Null with a status: QUIRE_OUT_OF_MEMORY, also when the machine has less.
  static std::unique_ptr<HostTier> create(const HostTierOptions &options, Status &status);

  /// Beside what TierSlots takes.
  static constexpr uint64_t tableBytesPerSlot() { return sizeof(Entry); }

  void run(Transfer *const *transfers, size_t count) override;

  uint64_t storedHeaderBytes() const override { return sizeof(Entry); }
  uint64_t storedBytes() const override { return sizeof(Entry) + pageBytes(); }
  Status readStored(uint32_t slot, char *out) override;
  Status writeStored(uint32_t slot, const char *bytes) override;

private:
  enum Held : uint64_t { Nothing, Page, Lost };
  struct Entry {
    uint64_t held = Nothing;
    uint64_t tag = 0;
    uint64_t checksum = 0;
  };

  explicit HostTier(const HostTierOptions &options);
  char *place(uint32_t slot) const { return memory_.data() + slot * pageBytes(); }
  uint64_t checksumOfSlot(uint32_t slot, uint64_t tag, const char *page) const;
  Status runOne(const Transfer &transfer);
  Status load(const Transfer &transfer);

  MappedMemory memory_;
  std::vector<Entry> entries_; // mover's thread
  bool checksum_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_HOSTTIER_H
