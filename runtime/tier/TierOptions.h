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

/// With as many slots as `quotaBytes` hold, a file's headers included. Null with
/// QUIRE_OK: no tier was asked for. Null with QUIRE_INVALID_ARGUMENT: the quota holds
/// no page; other failures are those of the tiers. `clock` outlives the tier.
std::unique_ptr<Tier> createTier(const TierOptions &options, uint64_t pageBytes, uint64_t quotaBytes, Clock &clock,
                                 Status &status);

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_TIEROPTIONS_H
