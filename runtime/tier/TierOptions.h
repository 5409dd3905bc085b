// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which slow tier a pool has, from text and from structures.
#ifndef QUIRE_RUNTIME_TIER_TIEROPTIONS_H
#define QUIRE_RUNTIME_TIER_TIEROPTIONS_H

#include "tier/FileIo.h"
#include "tier/SlotFile.h"
#include "tier/ThrottledTier.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace quire::runtime {

struct TierOptions {
  enum class Kind : uint8_t { None, Memory, File, Throttled };
  Kind kind = Kind::None;

  // Memory, and below Throttled.
  bool memoryChecksum = false;
  bool commit = true; // all memory at creation

  // File.
  std::string path;
  bool fileChecksum = true;
  bool direct = true;
  FileIoKind io = FileIoKind::Auto;
  SlotFile::Mode mode = SlotFile::Mode::Create;
  bool keep = false;
  uint64_t geometry = 0;

  Throttle throttle;
};

/// none | memory | file:PATH | throttled[:LATENCY,BANDWIDTH], as in
/// "throttled:100us,2GB/s". Sets the kind and what the text names; on failure,
/// which names the part that is wrong, changes nothing.
Status parseTier(std::string_view text, TierOptions &out);

/// A tier and its bytes, a file's headers included.
struct TierQuota {
  TierOptions tier;
  uint64_t bytes = 0;
};

/// What tiers will be made of.
struct TierPlan {
  uint64_t slots = 0;
  uint64_t memoryBytes = 0; // of pages, and of the tiers' own tables
};

/// For pages of that size, before anything is made, and whatever the machine has room for. Adds up over tiers that lie one
/// under the other. QUIRE_INVALID_ARGUMENT: a quota holds no page, or the numbers are too large. Errors name the tier and the
/// option to change.
Status planTiers(const std::vector<TierQuota> &tiers, uint64_t pageBytes, TierPlan &out);

/// QUIRE_INVALID_ARGUMENT: files do not fit into the free space of their file systems.
Status checkFreeSpace(const std::vector<TierQuota> &tiers, uint64_t pageBytes);

/// As createTier(), for tiers of which each lies under the one before.
std::unique_ptr<Tier> createTiers(const std::vector<TierQuota> &tiers, uint64_t pageBytes, Clock &clock, Status &status);

/// With as many slots as `quotaBytes` hold, a file's headers included. Null with
/// QUIRE_OK: no tier was asked for. Null with QUIRE_INVALID_ARGUMENT: the quota holds
/// no page; other failures are those of the tiers. `clock` outlives the tier.
std::unique_ptr<Tier> createTier(const TierOptions &options, uint64_t pageBytes, uint64_t quotaBytes, Clock &clock,
                                 Status &status);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_TIEROPTIONS_H
