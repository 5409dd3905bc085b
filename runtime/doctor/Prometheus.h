// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Counters and latencies in the text format that Prometheus scrapes.
#ifndef QUIRE_RUNTIME_DOCTOR_PROMETHEUS_H
#define QUIRE_RUNTIME_DOCTOR_PROMETHEUS_H

#include "doctor/Histogram.h"
#include "residency/Counters.h"
#include "share/Tenants.h"

#include <string>
#include <vector>

namespace quire::runtime {

/// Labels with an empty value are left out. Values may be any text.
struct CounterSample {
  std::string tier, tenant;
  const PagerCounters *counters;
};

/// `operation`: what took the time, such as "acquire_hit" or "evict".
struct LatencySample {
  std::string operation, tier;
  const Histogram *histogram;
};

/// One of the slow tiers; `level` counts them from 1, the upper one.
struct TierSample {
  std::string tier, level;
  const TierCounters *counters;
  uint64_t pagesUsed, pages;
  bool closed;
};

/// What prefixes a tenant asked for and got.
struct TenantSample {
  std::string tenant;
  const TenantCounters *counters;
};

/// What is, not what has happened so far.
struct GaugeSample {
  std::string name, help, tier;
  double value;
};

/// Text format 0.0.4: each metric with HELP and TYPE once, then a line for each
/// sample; times in seconds. Samples with equal labels are the caller's mistake.
std::string prometheusText(const std::vector<CounterSample> &counters, const std::vector<LatencySample> &latencies,
                           const std::vector<GaugeSample> &gauges = {}, const std::vector<TierSample> &tiers = {},
                           const std::vector<TenantSample> &tenants = {});

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_DOCTOR_PROMETHEUS_H
