// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Options by getopt_long, numbers strictly.
#include "CommandLine.h"

#include "core/Quantities.h"
#include "serving/OutputPaths.h"
#include "tier/TierOptions.h"

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <getopt.h>

namespace quire::serving {

const char helpText[] =
    R"(usage: quire-run MODEL.quire --requests=IN.jsonl --output=OUT.jsonl [options]
       quire-run MODEL.quire --describe [--json] [--kv-bytes=SIZE] [--slow-tier=TIER --slow-bytes=SIZE]
       quire-run --print-config [--config=FILE] [options]

Serves generation requests with a model that quirec compiled: many sequences of different lengths share each step, their
keys and values lie in blocks of one pool.

Requests: one JSON object a line. 'id' and 'prompt' are required.
  {"id": "a1", "prompt": [12, 7, 99], "max_new_tokens": 64}
  {"id": 2, "prompt": [5], "stop": [0], "temperature": 0.8, "top_k": 40, "top_p": 0.95, "seed": 7}
'turns' and 'paragraphs' say where such end in the prompt, [20, 45]: for what stays in the fast tier, and what leaves it.
Without a temperature the likeliest token is taken. Without max_new_tokens: 128, or what the model's positions allow. A bad
line is an error of that request alone. Results: one line each, in the order in which requests finish.
  {"id":"a1","tokens":[4,8],"finish_reason":"length","prompt_tokens":3,"ttft_ms":1.2,"decode_ms_per_token":0.4}

  --requests=FILE      requests; - or nothing: standard input
  --output=FILE        results, appears when the run ends; - or nothing: standard output, as they come
  --logits=DIR         also write DIR/ID.npy, float32 [new tokens, vocabulary]: row i is what token i was chosen from
  --max-batch=N        sequences in one step, at most (8)
  --prefill-chunk=N    prompt tokens in one step over all its sequences, at most (512)
  --mixed-chunk=N      the same in a step where other sequences decode: bounds the time between two of their tokens (64)
  --kv-bytes=SIZE      budget for keys and values, such as 256MiB or 2GiB (256MiB)
  --slow-tier=TIER     under it: none, memory, file:PATH (a new file), throttled or throttled:LATENCY,BANDWIDTH, such as
                       throttled:100us,2GB/s; keys and values that a step does not need at the moment go there (none).
                       Once more: the tier below that one, for what it has no room for
  --slow-bytes=SIZE    budget of the slow tier; --kv-bytes is then the fast one. With compress.quant or compress.sparse in the
                       configuration it holds more pages, and what comes back is not exact. Once for each --slow-tier,
                       in their order
  --replace=POLICY     which page gives way: scan, lru, importance, arc (scan)
  --prefetch-window=N  pages of each sequence on their way ahead of need; 0: none (3)
  --doctor             say at the end what the pages did and what to change (standard error)
  --trace=FILE         record what steps asked of their pages, for quire-replay and Perfetto; needs --slow-tier
  --threads=N          threads of a step (all cores that this process may use)
  --prefix-cache[=on|off]
                       store and compute once what prompts have in common; only requests of the same 'tenant' share (off)
  --config=FILE        take options from a YAML file, before those of the command line; --help-config lists its keys
  --print-config       print the configuration that a run would have, and exit
  --stats=FILE         what happened, as JSON: blocks, batches, preemptions, one entry a step
  --metrics=FILE       counters, gauges and latencies at the end, as the text that Prometheus reads
  --describe           print shapes, sizes, needed CPU features, and how many sequences fit into these budgets, and into one
                       step of them; --json: as JSON
  --shuffle-blocks=SEED, --poison-free-blocks
                       for tests: hand out blocks in a random order; fill free blocks with NaN
  --help-config[=markdown]
                       the keys of a configuration; as the table of docs/Runtime.md
  --help, --version

Interrupting (Ctrl-C) ends the run after the current step and keeps the results that are finished.
Exit codes: 0 done, also if single requests failed; 1 bad usage, bad input, or every request failed; 130 or 143 interrupted.
)";

namespace {

enum Option {
  Requests = 256,
  Output,
  Logits,
  MaxBatch,
  KvBytes,
  PrefillChunk,
  MixedChunk,
  ShuffleBlocks,
  PoisonFreeBlocks,
  SlowTier,
  SlowBytes,
  Replace,
  PrefetchWindow,
  Doctor,
  TraceFile,
  Threads,
  Stats,
  Metrics,
  Describe,
  Json,
  PrefixCache,
  ConfigFile,
  PrintConfig,
  HelpConfig,
  Help,
  Version
};

const option longOptions[] = {
    {"requests", required_argument, nullptr, Requests},
    {"output", required_argument, nullptr, Output},
    {"logits", required_argument, nullptr, Logits},
    {"max-batch", required_argument, nullptr, MaxBatch},
    {"kv-bytes", required_argument, nullptr, KvBytes},
    {"prefill-chunk", required_argument, nullptr, PrefillChunk},
    {"mixed-chunk", required_argument, nullptr, MixedChunk},
    {"shuffle-blocks", required_argument, nullptr, ShuffleBlocks},
    {"poison-free-blocks", no_argument, nullptr, PoisonFreeBlocks},
    {"slow-tier", required_argument, nullptr, SlowTier},
    {"slow-bytes", required_argument, nullptr, SlowBytes},
    {"replace", required_argument, nullptr, Replace},
    {"prefetch-window", required_argument, nullptr, PrefetchWindow},
    {"doctor", no_argument, nullptr, Doctor},
    {"trace", required_argument, nullptr, TraceFile},
    {"threads", required_argument, nullptr, Threads},
    {"stats", required_argument, nullptr, Stats},
    {"metrics", required_argument, nullptr, Metrics},
    {"describe", no_argument, nullptr, Describe},
    {"json", no_argument, nullptr, Json},
    {"prefix-cache", optional_argument, nullptr, PrefixCache},
    {"config", required_argument, nullptr, ConfigFile},
    {"print-config", no_argument, nullptr, PrintConfig},
    {"help-config", optional_argument, nullptr, HelpConfig},
    {"help", no_argument, nullptr, Help},
    {"version", no_argument, nullptr, Version},
    {nullptr, 0, nullptr, 0},
};

} // namespace

static bool parseNumber(const char *text, uint64_t &out, const char **rest) {
  if (!std::isdigit(static_cast<unsigned char>(*text)))
    return false;
  char *end;
  errno = 0;
  out = std::strtoull(text, &end, 10);
  *rest = end;
  return errno == 0;
}

static bool refuse(const char *name, const char *expected, const char *got) {
  std::fprintf(stderr, "quire-run: error: --%s: expected %s, but got '%s'\n", name, expected, got);
  return false;
}

static bool readCount(const char *name, const char *text, uint64_t low, int64_t high, int64_t &out) {
  uint64_t value;
  const char *rest;
  if (!parseNumber(text, value, &rest) || *rest || value < low || value > static_cast<uint64_t>(high)) {
    char expected[64];
    std::snprintf(expected, sizeof(expected), "a number of %llu to %lld", static_cast<unsigned long long>(low), static_cast<long long>(high));
    return refuse(name, expected, text);
  }
  out = static_cast<int64_t>(value);
  return true;
}

static bool readSeed(const char *text, RunOptions &out) {
  uint64_t value;
  const char *rest;
  if (!parseNumber(text, value, &rest) || *rest)
    return refuse("shuffle-blocks", "a number", text);
  out.shuffleSeed = value;
  return true;
}

/// Tiers and budgets in the order in which they come.
struct GivenTiers {
  std::vector<std::string> places;
  std::vector<uint64_t> sizes;
};

static bool readSlowTier(const char *text, GivenTiers &out) {
  runtime::TierOptions read;
  runtime::Status status = runtime::parseTier(text, read);
  if (!status.ok())
    std::fprintf(stderr, "quire-run: error: --slow-tier: %s\n", status.text().c_str());
  out.places.push_back(text);
  return status.ok();
}

static bool readSlowBytes(const char *text, GivenTiers &out) {
  out.sizes.push_back(0);
  return (runtime::parseSize(text, out.sizes.back()) && out.sizes.back() > 0) || refuse("slow-bytes", runtime::expectedSize, text);
}

/// Tiers of the command line replace those of the configuration, but for budgets that are not named anew. Null, or what is
/// wrong.
static const char *takeTiers(const GivenTiers &given, const config::Config &configured, SlowTierSettings &out) {
  uint64_t configuredBytes = configured.memory.slow.bytes;
  if (!given.places.empty()) {
    if (out.tiers.empty())
      out.tiers.push_back({"", configuredBytes}); // a budget without a kind
    out.tiers.resize(given.places.size());
    for (size_t i = 0; i < given.places.size(); ++i)
      out.tiers[i].where = given.places[i];
  }
  if (out.tiers.size() == 1 && out.tiers.front().where == "none")
    out.tiers.clear();
  for (const SlowTierSettings::Tier &tier : out.tiers)
    if (tier.where == "none")
      return "--slow-tier=none has no tiers beside it";
  if (given.sizes.size() > out.tiers.size())
    return "--slow-bytes needs --slow-tier";
  if (out.tiers.empty() && given.places.empty() && configuredBytes != 0)
    return "memory.slow.bytes needs memory.slow.kind, or --slow-tier";
  if (given.places.empty() && !configured.memory.slow.path.empty() && configured.memory.slow.kind != config::SlowKind::File)
    return "memory.slow.path needs memory.slow.kind: file";
  for (size_t i = 0; i < given.sizes.size(); ++i)
    out.tiers[i].bytes = given.sizes[i];
  return nullptr;
}

static bool readReplacement(const char *text, RunOptions &out) {
  static constexpr std::pair<const char *, quire_replacement> names[] = {{"scan", QUIRE_REPLACE_SCAN},
                                                                         {"lru", QUIRE_REPLACE_LRU},
                                                                         {"importance", QUIRE_REPLACE_IMPORTANCE},
                                                                         {"arc", QUIRE_REPLACE_ARC}};
  for (auto [name, replacement] : names)
    if (std::strcmp(name, text) == 0) {
      out.slow.replacement = replacement;
      return true;
    }
  return refuse("replace", "scan, lru, importance or arc", text);
}

/// Options that make sense together only.
static std::string conflictOfTiers(const RunOptions &options) {
  for (const SlowTierSettings::Tier &tier : options.slow.tiers)
    if (tier.bytes == 0)
      return "--slow-tier needs --slow-bytes";
  if (!options.slow.wanted() && !options.trace.empty())
    return "--trace needs --slow-tier";
  if (const char *key = options.slow.wanted() ? nullptr : options.slow.codecKey())
    return key + std::string(" needs --slow-tier, or memory.slow.kind");
  return {};
}

/// False after a mistake.
static bool readOption(int code, RunOptions &out, GivenTiers &tiers, Action &action) {
  constexpr int64_t million = 1000000;
  switch (code) {
  case Requests:
    out.requests = optarg;
    return *optarg || refuse("requests", "a file", "");
  case Output:
    out.output = optarg;
    return *optarg || refuse("output", "a file", "");
  case Logits:
    out.logits = optarg;
    return *optarg || refuse("logits", "a folder", "");
  case MaxBatch:
    return readCount("max-batch", optarg, 1, million, out.limits.maxBatch);
  case PrefillChunk:
    return readCount("prefill-chunk", optarg, 1, 1000 * million, out.limits.prefillChunk);
  case MixedChunk:
    return readCount("mixed-chunk", optarg, 1, 1000 * million, out.limits.mixedChunk);
  case KvBytes:
    return (runtime::parseSize(optarg, out.kvBytes) && out.kvBytes > 0) || refuse("kv-bytes", runtime::expectedSize, optarg);
  case ShuffleBlocks:
    return readSeed(optarg, out);
  case PoisonFreeBlocks:
    out.poison = true;
    return true;
  case SlowTier:
    return readSlowTier(optarg, tiers);
  case SlowBytes:
    return readSlowBytes(optarg, tiers);
  case Replace:
    return readReplacement(optarg, out);
  case PrefetchWindow:
    return readCount("prefetch-window", optarg, 0, 1024, out.slow.prefetchWindow);
  case Doctor:
    out.doctor = true;
    return true;
  case TraceFile:
    out.trace = optarg;
    return *optarg || refuse("trace", "a file", "");
  case Threads:
    return readCount("threads", optarg, 1, 1024, out.threads);
  case Stats:
    out.stats = optarg;
    return *optarg || refuse("stats", "a file", "");
  case Metrics:
    out.metrics = optarg;
    return *optarg || refuse("metrics", "a file", "");
  case Describe:
    action = Action::Describe;
    return true;
  case Json:
    out.json = true;
    return true;
  case PrefixCache:
    out.limits.prefixCache = !optarg || std::strcmp(optarg, "on") == 0;
    return out.limits.prefixCache || std::strcmp(optarg, "off") == 0 || refuse("prefix-cache", "on or off", optarg);
  case ConfigFile: // read before all others
    return true;
  case PrintConfig:
    action = Action::PrintConfig;
    return true;
  default: // getopt_long has said what is wrong
    return false;
  }
}

static Action refuseUsage(const char *text) {
  if (text)
    std::fprintf(stderr, "quire-run: error: %s\n", text);
  std::fputs("try 'quire-run --help'\n", stderr);
  return Action::Refuse;
}

/// The file comes first, wherever it is named: the command line has the last word.
static bool readConfigFile(int argc, char **argv, RunOptions &out) {
  const char *path = nullptr;
  int code;
  opterr = 0; // mistakes are told by the second reading
  while ((code = ::getopt_long(argc, argv, "h", longOptions, nullptr)) != -1) {
    if (code == ConfigFile && path)
      return refuse("config", "one file", optarg);
    if (code == ConfigFile && !*optarg)
      return refuse("config", "a file", optarg);
    if (code == ConfigFile)
      path = optarg;
  }
  opterr = 1;
  optind = 0; // begins anew
  config::Config read;
  if (path) {
    runtime::Status status = config::readConfig(path, read);
    if (!status.ok()) {
      std::fprintf(stderr, "quire-run: error: %s\n", status.text().c_str());
      return false;
    }
    applyConfig(read, out);
    out.config = path;
  }
  return true;
}

Action parseCommandLine(int argc, char **argv, RunOptions &out) {
  Action action = Action::Run;
  GivenTiers tiers;
  int code;
  if (!readConfigFile(argc, argv, out))
    return refuseUsage(nullptr);
  while ((code = ::getopt_long(argc, argv, "h", longOptions, nullptr)) != -1) {
    if (code == Help || code == 'h')
      return Action::Help;
    if (code == HelpConfig && (!optarg || std::strcmp(optarg, "markdown") == 0))
      return optarg ? Action::ConfigTable : Action::HelpConfig;
    if (code == HelpConfig)
      return refuse("help-config", "nothing or markdown", optarg), refuseUsage(nullptr);
    if (code == Version)
      return Action::Version;
    if (!readOption(code, out, tiers, action))
      return refuseUsage(nullptr);
  }
  if (const char *wrong = takeTiers(tiers, out.configured, out.slow))
    return refuseUsage(wrong);
  std::string conflict = conflictOfTiers(out);
  if (!conflict.empty())
    return refuseUsage(conflict.c_str());
  if (action == Action::PrintConfig && optind == argc)
    return action;
  if (optind == argc)
    return refuseUsage("expected a model folder, but got none");
  if (optind + 1 < argc)
    return refuseUsage("expected one model folder, but got several");
  out.model = argv[optind];
  if (out.json && action != Action::Describe)
    return refuseUsage("--json needs --describe");
  if (action == Action::Run)
    conflict = conflictOfPaths(out);
  if (!conflict.empty())
    return refuseUsage(conflict.c_str());
  return action;
}

} // namespace quire::serving
