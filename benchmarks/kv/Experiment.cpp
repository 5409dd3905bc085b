// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The list of experiments, and their statistics.
#include "Experiment.h"

#include <algorithm>
#include <cmath>

namespace quire::kvbench {

const std::vector<Experiment> &experiments() {
  static const std::vector<Experiment> all = {
      {"E1", "Memory that paging saves", savings},
      {"E2", "Throughput at batch 8 under one memory budget", throughput},
      {"E3", "Time to the first token", firstToken},
      {"E4", "Replacement policies", replacement},
      {"E5", "Prefetching", prefetching},
      {"E6", "Block sizes", blockSizes},
      {"E7", "Fragmentation", fragmentation},
      {"E8", "Reserve", reserves},
      {"E9", "Compression", compression},
      {"E10", "Dialogue", dialogue},
      {"E11", "Document", document},
      {"E12", "Faults of the slow tier", faults},
      {"E13", "Soak", soak},
  };
  return all;
}

static double quantile(const std::vector<double> &sorted, double q) {
  double place = q * static_cast<double>(sorted.size() - 1);
  size_t below = static_cast<size_t>(place), above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

Json spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {{"median", quantile(values, 0.5)}, {"q1", quantile(values, 0.25)}, {"q3", quantile(values, 0.75)}};
}

double medianOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

Json claim(const std::string &text, double measured, double least, double most) {
  return {{"claim", text},
          {"least", least},
          {"most", most},
          {"measured", measured},
          {"holds", measured >= least && measured <= most}};
}

} // namespace quire::kvbench
