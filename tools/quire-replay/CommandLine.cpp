// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options by getopt_long, numbers strictly.
#include "CommandLine.h"

#include "core/Quantities.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>

#include <getopt.h>

namespace quire::runtime {

const char helpText[] =
    R"(usage: quire-replay TRACE.json [--policy=LIST] [--fast=SIZE] [--prefetch=STRATEGY] [options]

Runs a recorded page trace again, against other replacement policies, sizes of the fast tier and ways to prefetch. The file
is the one that a run with a slow tier records; Perfetto and chrome://tracing show it.

  quire-replay trace.json                                  all policies, with the fast tier of the recorded run
  quire-replay trace.json --policy=lru,scan,opt --fast=50% half of the pages that were alive at once
  quire-replay trace.json --policy=scan --fast=64MiB --prefetch=sequential --window=5 --doctor

  --policy=LIST        by commas: lru, scan, importance, arc, opt (all)
                       lru         least recently used; finds nothing on a cyclic scan that is larger than the fast tier
                       scan        most recently read first: the best choice for dense attention, which is a cyclic scan
                       importance  smallest moving average of attention mass first; needs a trace with attention mass
                       arc         adaptive replacement cache
                       opt         Belady: knows the future, so no policy can do better
  --fast=SIZE          pages in the fast tier: 50% of the pages alive at most, a number of pages, or bytes with a unit such
                       as 64MiB (what the trace says, or else 50%)
  --prefetch=STRATEGY  none, sequential (the next pages in the order of the step before), layer_ahead (the same blocks in the
                       next layer), seed_hotspot (most attention mass in the last step), hybrid (these three) (none)
  --window=N           pages asked for ahead, and transfers under way, at most (3)
  --topk=N             seed_hotspot: pages for each group of layers (2)
  --latency-us=N       of a load from the slow tier (100)
  --bandwidth=RATE     of the slow tier, a size a second (2GB/s)
  --compute-us=N       of each demanded page (what the trace says)
  --doctor             say what is wrong with each run, and what to change
  --json               results as JSON
  --help, --version

Columns: hits found their page; late ones found it on its way; misses found neither. gap: loads above the fewest possible
(opt), for each demand. stall: simulated time that steps wait for pages; an estimate to compare runs by. The line
'recorded' is what the run did that the trace is of, with its own fast tier, prefetches and pins: measured, not simulated.
Exit codes: 0 done; 1 bad usage or bad input.
)";

namespace {
enum Option { Policies = 256, Fast, Prefetch, Window, TopK, Latency, Bandwidth, Compute, DoctorToo, AsJson, Help, Version };

const option longOptions[] = {{"policy", required_argument, nullptr, Policies},
                              {"fast", required_argument, nullptr, Fast},
                              {"prefetch", required_argument, nullptr, Prefetch},
                              {"window", required_argument, nullptr, Window},
                              {"topk", required_argument, nullptr, TopK},
                              {"latency-us", required_argument, nullptr, Latency},
                              {"bandwidth", required_argument, nullptr, Bandwidth},
                              {"compute-us", required_argument, nullptr, Compute},
                              {"doctor", no_argument, nullptr, DoctorToo},
                              {"json", no_argument, nullptr, AsJson},
                              {"help", no_argument, nullptr, Help},
                              {"version", no_argument, nullptr, Version},
                              {nullptr, 0, nullptr, 0}};
} // namespace

static bool refuse(const char *name, const std::string &expected) {
  std::fprintf(stderr, "quire-replay: error: --%s: expected %s, but got '%s'\n", name, expected.c_str(), optarg);
  return false;
}

static bool parseNumber(std::string_view text, uint64_t &out) {
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && rest == text.data() + text.size();
}

static bool readCount(const char *name, uint64_t low, uint64_t high, uint64_t &out) {
  return (parseNumber(optarg, out) && out >= low && out <= high) ||
         refuse(name, "a number of " + std::to_string(low) + " to " + std::to_string(high));
}

static bool readPolicies(ReplayArguments &out) {
  out.policies.clear();
  out.withOptimum = false;
  std::string list = optarg;
  for (size_t at = 0; at <= list.size();) {
    size_t comma = std::min(list.find(',', at), list.size());
    std::string name = list.substr(at, comma - at);
    at = comma + 1;
    PolicyKind kind;
    if (name == "opt")
      out.withOptimum = true;
    else if (!policyFromName(name, kind))
      return refuse("policy", "lru, scan, importance, arc or opt, by commas");
    else if (std::find(out.policies.begin(), out.policies.end(), kind) == out.policies.end())
      out.policies.push_back(kind);
  }
  return true;
}

static bool readFast(FastSize &out) {
  std::string_view text = optarg;
  if (!text.empty() && text.back() == '%') {
    out.unit = FastSize::Unit::Percent;
    if (parseNumber(text.substr(0, text.size() - 1), out.value) && out.value >= 1 && out.value <= 100)
      return true;
  } else if (parseNumber(text, out.value)) {
    out.unit = FastSize::Unit::Pages;
    if (out.value >= 2 && out.value <= Trace::maxPages)
      return true;
  } else if (parseSize(text, out.value)) {
    out.unit = FastSize::Unit::Bytes;
    return true;
  }
  return refuse("fast", "1% to 100%, at least 2 pages, or bytes with a unit such as 64MiB");
}

static bool readOption(int code, ReplayArguments &out) {
  uint64_t value = 0;
  switch (code) {
  case Policies:
    return readPolicies(out);
  case Fast:
    return readFast(out.fast);
  case Prefetch:
    return prefetchFromName(optarg, out.options.prefetch) ||
           refuse("prefetch", "none, sequential, layer_ahead, seed_hotspot or hybrid");
  case Window:
  case TopK: {
    bool isRead = readCount(code == Window ? "window" : "topk", 1, 1000000, value);
    (code == Window ? out.options.window : out.options.topk) = static_cast<uint32_t>(value);
    return isRead;
  }
  case Latency:
  case Compute: {
    bool isRead = readCount(code == Latency ? "latency-us" : "compute-us", 0, 100000000, value);
    (code == Latency ? out.options.latencyNs : out.options.computeNs) = static_cast<int64_t>(value * 1000);
    return isRead;
  }
  case Bandwidth:
    if (!(parseBandwidth(optarg, value) || parseSize(optarg, value)) || value == 0)
      return refuse("bandwidth", "a size a second such as 2GB/s");
    out.options.bandwidth = static_cast<double>(value);
    return true;
  case DoctorToo:
    return out.withDoctor = true;
  case AsJson:
    return out.isJson = true;
  default: // getopt_long has said what is wrong
    return false;
  }
}

static Action refuseUsage(const char *text) {
  if (text)
    std::fprintf(stderr, "quire-replay: error: %s\n", text);
  std::fputs("try 'quire-replay --help'\n", stderr);
  return Action::Refuse;
}

Action parseCommandLine(int argc, char **argv, ReplayArguments &out) {
  int code;
  while ((code = ::getopt_long(argc, argv, "h", longOptions, nullptr)) != -1) {
    if (code == Help || code == 'h')
      return Action::Help;
    if (code == Version)
      return Action::Version;
    if (!readOption(code, out))
      return refuseUsage(nullptr);
  }
  if (optind == argc)
    return refuseUsage("expected a trace, but got none");
  if (optind + 1 < argc)
    return refuseUsage("expected one trace, but got several");
  out.trace = argv[optind];
  return Action::Run;
}

} // namespace quire::runtime
