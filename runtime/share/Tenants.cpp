// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The table of tenants.
#include "share/Tenants.h"

namespace quire::runtime {

Tenants::~Tenants() {
  for (Tenant &tenant : tenants_)
    eraseSecret(tenant.salt.data(), tenant.salt.size());
}

Status Tenants::create(const void *name, size_t bytes, int64_t timeToLive, quire_tenant &out) {
  if (timeToLive < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "expected a time to live of at least 0 ns, but got %lld",
                   static_cast<long long>(timeToLive));
  Salt salt = name ? deriveSalt(name, bytes) : randomSalt();
  uint32_t slot = nobody;
  for (uint32_t i = 1; i < tenants_.size(); ++i) {
    if (tenants_[i].live && tenants_[i].salt == salt)
      return failure(QUIRE_INVALID_ARGUMENT, "tenant %u has this name already", i);
    if (!tenants_[i].live && slot == nobody)
      slot = i;
  }
  if (slot == nobody) {
    slot = static_cast<uint32_t>(tenants_.size());
    tenants_.emplace_back();
  }
  Tenant &tenant = tenants_[slot];
  uint32_t generation = tenant.generation;
  tenant = Tenant();
  tenant.generation = generation;
  tenant.live = true;
  tenant.salt = salt;
  tenant.timeToLive = timeToLive;
  eraseSecret(salt.data(), salt.size());
  out = uint64_t(generation) << 32 | slot;
  return success();
}

void Tenants::destroy(uint32_t slot) {
  Tenant &tenant = tenants_[slot];
  eraseSecret(tenant.salt.data(), tenant.salt.size());
  tenant.live = false;
  if (++tenant.generation == 0)
    tenant.generation = 1;
}

Status Tenants::find(quire_tenant handle, uint32_t &slot) const {
  slot = static_cast<uint32_t>(handle);
  uint32_t generation = static_cast<uint32_t>(handle >> 32);
  if (handle == 0)
    return success();
  if (generation == 0 || slot == nobody || slot >= tenants_.size())
    return failure(QUIRE_INVALID_ARGUMENT, "not a tenant handle of this pool");
  if (!tenants_[slot].live || tenants_[slot].generation != generation)
    return failure(QUIRE_STALE_HANDLE, "tenant %u was destroyed", slot);
  return success();
}

} // namespace quire::runtime
