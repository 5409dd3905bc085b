// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tenants as requests come.
#include "serving/Prefixes.h"

#include <algorithm>

namespace quire::serving {

Prefixes::~Prefixes() {
  for (const auto &[name, tenant] : tenants_)
    quire_tenant_destroy(pool_, tenant);
}

quire_status Prefixes::open(const std::string &name, bool resumed, const std::vector<int64_t> &tokens, quire_sequence &out,
                            int64_t &matched) {
  auto found = tenants_.find(name);
  if (found == tenants_.end()) {
    quire_tenant_options options = {};
    options.struct_size = sizeof(options);
    options.name = name.empty() ? nullptr : name.data();
    options.name_bytes = name.size();
    options.time_to_live_ns = timeToLive_;
    quire_tenant tenant = 0;
    if (quire_status status = quire_tenant_create(pool_, &options, &tenant); status != QUIRE_OK)
      return status;
    found = tenants_.emplace(name, tenant).first;
  }
  quire_sequence_options options = {};
  options.struct_size = sizeof(options);
  options.tenant = found->second;
  options.resumed = resumed;
  if (quire_status status = quire_sequence_create_with(pool_, &options, &out); status != QUIRE_OK)
    return status;
  return quire_sequence_match_prefix(pool_, out, tokens.data(), static_cast<int64_t>(tokens.size()), &matched);
}

quire_status Prefixes::publish(quire_sequence sequence, const std::vector<int64_t> &tokens, bool &changed) {
  const int32_t *blocks = nullptr;
  int64_t count = 0;
  quire_sequence_table(pool_, sequence, &blocks, &count);
  table_.assign(blocks, blocks + count);
  quire_status status = quire_sequence_publish(pool_, sequence, tokens.data(), static_cast<int64_t>(tokens.size()));
  quire_sequence_table(pool_, sequence, &blocks, &count);
  changed = !std::equal(table_.begin(), table_.end(), blocks, blocks + count);
  return status;
}

quire_status Prefixes::advance(int64_t nanoseconds) {
  return enabled_ && timeToLive_ > 0 ? quire_pool_advance(pool_, nanoseconds, nullptr) : QUIRE_OK;
}

PrefixStatistics Prefixes::statistics() const {
  PrefixStatistics sum;
  sum.enabled = enabled_;
  for (const auto &[name, tenant] : tenants_) {
    quire_tenant_stats stats = {};
    stats.struct_size = sizeof(stats);
    quire_tenant_get_stats(pool_, tenant, &stats);
    ++sum.tenants;
    sum.queries += stats.queries;
    sum.queryTokens += stats.query_tokens;
    sum.hitTokens += stats.hit_tokens;
    sum.blocksPublished += stats.blocks_published;
    sum.blocksMerged += stats.blocks_merged;
    sum.blocksEvicted += stats.blocks_evicted;
    sum.blocksExpired += stats.blocks_expired;
  }
  return sum;
}

} // namespace quire::serving
