// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an experiment is given and gives back.
#ifndef QUIRE_BENCHMARKS_KV_EXPERIMENT_H
#define QUIRE_BENCHMARKS_KV_EXPERIMENT_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace quire::kvbench {

using Json = nlohmann::ordered_json;

struct Options {
  bool quick = false;      // seconds instead of minutes: shows that it works, and little about the numbers
  uint64_t seed = 1;       // of the first repetition; the others have the following ones
  int64_t repeats = 5;     // of what is random or timed
  std::string costs;       // file of measured step costs: E2, E3, E8
  double soakSeconds = 10; // E13
};

/// Each returns an object with `workload`, `baseline` and `formula` in words, `parameters`, `rows`, and `claims`.
Json savings(const Options &options);       // E1
Json throughput(const Options &options);    // E2
Json firstToken(const Options &options);    // E3
Json replacement(const Options &options);   // E4
Json prefetching(const Options &options);   // E5
Json blockSizes(const Options &options);    // E6
Json fragmentation(const Options &options); // E7
Json reserves(const Options &options);      // E8
Json compression(const Options &options);   // E9
Json dialogue(const Options &options);      // E10
Json document(const Options &options);      // E11
Json faults(const Options &options);        // E12
Json soak(const Options &options);          // E13

struct Experiment {
  const char *name;
  const char *title;
  Json (*run)(const Options &options);
};
const std::vector<Experiment> &experiments();

/// {"median", "q1", "q3"}: quartiles by linear interpolation. Not empty.
Json spread(std::vector<double> values);
double medianOf(std::vector<double> values);

/// Something that is said about such systems, and what came out here.
Json claim(const std::string &text, double measured, double least, double most);

} // namespace quire::kvbench

#endif // QUIRE_BENCHMARKS_KV_EXPERIMENT_H
