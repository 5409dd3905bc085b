// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The bytes that a tier keeps for a slot, beneath all checks: for tests that damage them.
#ifndef QUIRE_RUNTIME_TIER_STOREDSLOTS_H
#define QUIRE_RUNTIME_TIER_STOREDSLOTS_H

#include "core/Status.h"

#include <cstdint>

namespace quire::runtime {

/// A slot is stored as a header and the page, which lies at its end. Mover's
/// thread.
class StoredSlots {
public:
  virtual ~StoredSlots() = default;
  virtual uint64_t storedHeaderBytes() const = 0;
  /// Header, what lies between, and page.
  virtual uint64_t storedBytes() const = 0;
  virtual Status readStored(uint32_t slot, char *out) = 0;
  virtual Status writeStored(uint32_t slot, const char *bytes) = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_STOREDSLOTS_H
