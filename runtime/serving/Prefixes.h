// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Shared prefixes of requests: one tenant of the pool for each that requests name.
#ifndef QUIRE_RUNTIME_SERVING_PREFIXES_H
#define QUIRE_RUNTIME_SERVING_PREFIXES_H

#include "quire/runtime.h"
#include "serving/Statistics.h"

#include <map>
#include <string>
#include <vector>

namespace quire::serving {

class Prefixes {
public:
  /// The pool has `prefix_cache` if this is enabled.
  Prefixes(quire_pool *pool, bool enabled, int64_t timeToLiveNs)
      : pool_(pool), enabled_(enabled), timeToLive_(timeToLiveNs) {}
  /// All sequences that open() made are released.
  ~Prefixes();
  Prefixes(const Prefixes &) = delete;
  Prefixes &operator=(const Prefixes &) = delete;

  bool enabled() const { return enabled_; }

  /// A sequence with the longest cached prefix of the tokens. `resumed`: of a
  /// request that had one before.
  quire_status open(const std::string &tenant, bool resumed, const std::vector<int64_t> &tokens, quire_sequence &out,
                    int64_t &matched);

  /// Makes the tokens of a sequence findable. `changed`: blocks of its table gave
  /// way to others.
  quire_status publish(quire_sequence sequence, const std::vector<int64_t> &tokens, bool &changed);

  /// Lets prefixes expire; `nanoseconds` since the run began.
  quire_status advance(int64_t nanoseconds);

  /// Over all tenants.
  PrefixStatistics statistics() const;

private:
  quire_pool *pool_;
  bool enabled_;
  int64_t timeToLive_;
  std::map<std::string, quire_tenant> tenants_; // "": requests that name none
  std::vector<int32_t> table_;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_PREFIXES_H
