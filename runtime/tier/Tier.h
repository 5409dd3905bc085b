// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What lies below the fast arena: stores of equally large slots, and the transfers between them and pages.
#ifndef QUIRE_RUNTIME_TIER_TIER_H
#define QUIRE_RUNTIME_TIER_TIER_H

#include "core/Status.h"
#include "tier/TierSlots.h"

#include <cstdint>
#include <string>
#include <vector>

namespace quire::runtime {

enum class Codec : uint8_t; // compress/Codec.h

/// One page on its way. The owner fills everything but `status` and the times, and leaves the
/// object alone until the mover has handed it back.
struct Transfer {
  enum class Kind : uint8_t { Load, Store, Erase };
  Kind kind = Kind::Load;
  uint32_t slot = 0;    // of the slow tier
  char *page = nullptr; // page bytes in the fast arena; Erase: null
  uint64_t tag = 0;     // names the content; a load of another content is an error
  uint64_t cookie = 0;  // the owner's
  uint32_t group = 0;   // of layers, see PageGeometry; Erase: none
  int64_t tokens = 0;   // Store: the first positions of the block, which are stored
  Status status;        // QUIRE_OK, QUIRE_IO_ERROR (may succeed if repeated), QUIRE_NO_SPACE, QUIRE_PAGE_LOST, QUIRE_INVALID_ARGUMENT (a codec refuses the page)
  uint32_t ticket = 0;  // the mover's
  int64_t begun = 0, ended = 0; // by the mover, in its clock: its batch ran between them
};

/// What a lossy tier made of a sample of the pages that it stored.
struct CodecError {
  uint64_t samples = 0;  // pages
  double relativeL2 = 0; // norm of all differences of K and V / norm of all of them
};

/// Slots are handed out by the owner of the pool; transfers run on the mover's
/// thread, so that nothing here needs a lock: the two touch different members.
class Tier {
public:
  Tier(const std::string &name, uint32_t slots, uint64_t pageBytes) : Tier(name, {{name, slots}}, pageBytes) {}
  Tier(std::string name, std::vector<TierSlots::Member> members, uint64_t pageBytes)
      : name_(std::move(name)), pageBytes_(pageBytes), slots_(std::move(members)) {}
  virtual ~Tier() = default;
  Tier(const Tier &) = delete;
  Tier &operator=(const Tier &) = delete;

  const std::string &name() const { return name_; }
  uint64_t pageBytes() const { return pageBytes_; }
  /// Bytes of a page in its slot.
  virtual uint64_t storedPageBytes() const { return pageBytes_; }
  /// The form of a page in its slot.
  virtual Codec codec() const { return Codec(0); }
  /// Loads give what a codec made of the page that was stored.
  bool lossy() const { return codec() != Codec(0); }
  /// Any thread.
  virtual CodecError codecError() const { return {}; }

  /// Owner's thread.
  TierSlots &slots() { return slots_; }
  const TierSlots &slots() const { return slots_; }

  /// Mover's thread: runs all of them, in any order and together if the device
  /// can, and sets the status of each; no two of them are of one slot, unless both
  /// load. Throws nothing. A store that failed leaves the slot without content; a
  /// load that failed leaves the page undefined. Repeating what the device may cure
  /// is the tier's business, a bounded number of times; movers repeat nothing.
  virtual void run(Transfer *const *transfers, size_t count) = 0;

private:
  std::string name_;
  uint64_t pageBytes_;
  TierSlots slots_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_TIER_TIER_H
