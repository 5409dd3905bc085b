// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whose sequences and blocks these are: tenants with their salts, counters and retention.
#ifndef QUIRE_RUNTIME_SHARE_TENANTS_H
#define QUIRE_RUNTIME_SHARE_TENANTS_H

#include "core/Status.h"
#include "share/BlockKey.h"

#include <cstdint>
#include <vector>

namespace quire::runtime {

/// All of it only grows, but for the number of cached blocks.
struct TenantCounters {
  int64_t queries = 0;         // sequences that asked for a prefix and then stored tokens
  int64_t queryTokens = 0;     // that they asked for
  int64_t hitTokens = 0;       // that they got
  int64_t blocksCached = 0;    // now
  int64_t blocksPublished = 0;
  int64_t blocksMerged = 0;    // a sequence's own that gave way to equal cached ones
  int64_t blocksEvicted = 0;   // for want of free ones
  int64_t blocksExpired = 0;   // idle for longer than the tenant's time to live
  int64_t collisions = 0;      // keys that another content had; counted as misses
};

struct Tenant {
  uint32_t generation = 1;
  bool live = false;
  Salt salt = {};
  int64_t timeToLive = 0; // ns; 0: no limit
  int64_t sequences = 0;  // alive
  int64_t blocks = 0;     // handles of the caller's that were allocated for it, each block once
  TenantCounters counters;
};

/// Slot 0 stands for "no tenant" and is never alive.
class Tenants {
public:
  static constexpr uint32_t nobody = 0;

  Tenants() : tenants_(1) {}
  ~Tenants();

  /// `name` null: a tenant that nobody else can become. The same name twice at a
  /// time is refused.
  Status create(const void *name, size_t bytes, int64_t timeToLive, quire_tenant &out);
  /// Ends it and zeroes its salt; it has no sequences or blocks any more.
  void destroy(uint32_t slot);

  /// 0 gives nobody.
  Status find(quire_tenant handle, uint32_t &slot) const;

  Tenant &operator[](uint32_t slot) { return tenants_[slot]; }
  const Tenant &operator[](uint32_t slot) const { return tenants_[slot]; }
  uint32_t size() const { return static_cast<uint32_t>(tenants_.size()); }

private:
  std::vector<Tenant> tenants_;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_SHARE_TENANTS_H
