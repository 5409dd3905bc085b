// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs experiments on the runtime and prints their results as JSON.
#include "Experiment.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <exception>

#include <getopt.h>

using namespace quire::kvbench;

static const char helpText[] =
    R"(usage: quire-kv-experiments EXPERIMENT... [options]

Runs experiments on the KV memory system of the runtime, without a compiled model, and prints one JSON object: by experiment its
workload, baseline, formula, parameters, rows and claims. benchmarks/kv/run.py runs all of them, adds what needs compiled models,
and writes the page of results.

  quire-kv-experiments E1                     memory that paging saves
  quire-kv-experiments E4 E5 --repeats=1      replacement and prefetching, one seed
  quire-kv-experiments all --quick            everything, small

  --list         names and titles
  --quick        seconds instead of minutes: shows that it works, and little about the numbers
  --seed=N       of the first repetition; the others have the following ones (1)
  --repeats=N    of what is random or timed (5)
  --costs=FILE   measured times of steps, as benchmarks/kv/run.py writes them: for E2, E3 and E8
  --soak=N       seconds of E13 (10)
  --help
)";

namespace {
enum Option { List = 256, Quick, Seed, Repeats, Costs, Soak, Help };

const option longOptions[] = {
    {"list", no_argument, nullptr, List},         {"quick", no_argument, nullptr, Quick},
    {"seed", required_argument, nullptr, Seed},   {"repeats", required_argument, nullptr, Repeats},
    {"costs", required_argument, nullptr, Costs}, {"soak", required_argument, nullptr, Soak},
    {"help", no_argument, nullptr, Help},         {nullptr, 0, nullptr, 0}};

bool readNumber(const char *name, int64_t least, int64_t &out) {
  auto [rest, error] = std::from_chars(optarg, optarg + std::strlen(optarg), out);
  if (error == std::errc() && *rest == '\0' && out >= least && out <= 1'000'000'000)
    return true;
  std::fprintf(stderr, "quire-kv-experiments: error: --%s: expected a number from %lld, but got '%s'\n", name,
               static_cast<long long>(least), optarg);
  return false;
}

bool readOption(int code, Options &out) {
  int64_t value = 0;
  switch (code) {
  case Quick:
    return out.quick = true;
  case Seed:
    if (!readNumber("seed", 0, value))
      return false;
    out.seed = static_cast<uint64_t>(value);
    return true;
  case Repeats:
    return readNumber("repeats", 1, out.repeats);
  case Costs:
    out.costs = optarg;
    return true;
  case Soak:
    if (!readNumber("soak", 1, value))
      return false;
    out.soakSeconds = static_cast<double>(value);
    return true;
  default: // getopt_long has said what is wrong
    return false;
  }
}

const Experiment *find(const char *name) {
  for (const Experiment &experiment : experiments())
    if (std::strcmp(experiment.name, name) == 0)
      return &experiment;
  return nullptr;
}

int refuse(const std::string &text) {
  if (!text.empty())
    std::fprintf(stderr, "quire-kv-experiments: error: %s\n", text.c_str());
  std::fputs("try 'quire-kv-experiments --help'\n", stderr);
  return 1;
}

int run(const std::vector<const Experiment *> &chosen, const Options &options) {
  Json results = Json::object();
  for (const Experiment *experiment : chosen) {
    Json result = {{"title", experiment->title}, {"quick", options.quick}};
    result.update(experiment->run(options));
    results[experiment->name] = std::move(result);
  }
  std::string text = results.dump(1) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return 0;
  std::fputs("quire-kv-experiments: error: standard output cannot be written\n", stderr);
  return 1;
}
} // namespace

int main(int argc, char **argv) {
  Options options;
  int code;
  while ((code = ::getopt_long(argc, argv, "h", longOptions, nullptr)) != -1) {
    if (code == Help || code == 'h')
      return std::fputs(helpText, stdout) < 0;
    if (code == List) {
      for (const Experiment &experiment : experiments())
        std::printf("%-4s %s\n", experiment.name, experiment.title);
      return 0;
    }
    if (!readOption(code, options))
      return refuse("");
  }
  std::vector<const Experiment *> chosen;
  for (int i = optind; i < argc; ++i)
    if (std::strcmp(argv[i], "all") == 0)
      for (const Experiment &experiment : experiments())
        chosen.push_back(&experiment);
    else if (const Experiment *found = find(argv[i]))
      chosen.push_back(found);
    else
      return refuse(std::string("expected an experiment, but got '") + argv[i] + "'");
  if (chosen.empty())
    return refuse("expected an experiment, but got none");
  try {
    return run(chosen, options);
  } catch (const std::exception &error) { // files of costs, memory
    std::fprintf(stderr, "quire-kv-experiments: error: %s\n", error.what());
    return 1;
  }
}
