// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Configuration files: every key, every kind of mistake with its place, printing, comparison and reload.
#include "ToyFolder.h"
#include "config/Keys.h"
#include "core/Quantities.h"

#include <gtest/gtest.h>

using namespace quire::config;
using namespace quire::runtime;
using namespace quire::test;
using quire::runtime::Status;

namespace {

std::string errorOf(const std::string &text, Keys keys = Keys::All) {
  Config config;
  Status status = parseConfig(text, "f.yaml", config, keys);
  EXPECT_TRUE(status.ok() || diff(config, Config()).empty()) << "a failed call changes nothing";
  EXPECT_TRUE(status.ok() || status.code() == QUIRE_INVALID_ARGUMENT);
  return status.ok() ? "none" : status.text();
}

Config parsed(const std::string &text, Keys keys = Keys::All) {
  Config config;
  Status status = parseConfig(text, "f.yaml", config, keys);
  EXPECT_TRUE(status.ok()) << status.text();
  return config;
}

/// The name's sections and key, with a value, in one line.
std::string assignment(const std::string &name, const std::string &value) {
  std::string text, closing;
  size_t begin = 0;
  for (size_t dot; (dot = name.find('.', begin)) != std::string::npos; begin = dot + 1) {
    text += name.substr(begin, dot - begin) + ": {";
    closing += "}";
  }
  return text + name.substr(begin) + ": " + value + closing + "\n";
}

/// A value of the key that is not its default; only choices with one name have none.
std::string otherValue(const Key &key) {
  switch (key.type) {
  case Key::Type::Size:
    return printSize(std::get<uint64_t>(key.get(Config())) + 64);
  case Key::Type::Rate:
    return "3GB/s";
  case Key::Type::Time:
    return "7ms";
  case Key::Type::Count:
    if (std::string(key.name) == "compress.sparse.ratio")
      return "8"; // no others
    return std::to_string(std::get<int64_t>(key.get(Config())) + 1);
  case Key::Type::Ratio:
    return "0.125";
  case Key::Type::Switch:
    return std::get<bool>(key.get(Config())) ? "false" : "true";
  case Key::Type::Choice:
    return key.names[std::get<int64_t>(key.get(Config())) == 0 ? key.names.size() - 1 : 0];
  case Key::Type::Path:
    return "\"/tmp/k v: \\\"#\\\\\"";
  case Key::Type::Counts:
    return "[0, 5]";
  case Key::Type::Tiers:
    return "[\"file:/tmp/k v 3GiB\", \"throttled:1ms,1GB/s 12MiB\"]";
  }
  return {};
}

} // namespace

TEST(Config, DefaultsAreValuesOfTheirKeys) {
  Config config;
  for (const Key &key : allKeys()) {
    if (key.type == Key::Type::Path)
      continue;
    EXPECT_EQ(printValue(key, key.get(config)), key.initial) << key.name;
    Config again = parsed(assignment(key.name, key.initial));
    EXPECT_TRUE(diff(again, config).empty()) << key.name;
    EXPECT_NE(std::string(key.description), "") << key.name;
  }
  EXPECT_EQ(config.memory.fastBytes, 256u << 20);
  EXPECT_EQ(config.prefetch.windowSize, 3);
  EXPECT_EQ(config.dialogue.importantPages, std::vector<int64_t>{0});
}

TEST(Config, EveryKeyIsReadPrintedAndCompared) {
  for (const Key &key : allKeys()) {
    std::string value = otherValue(key);
    if (std::string(key.name) == "memory.slow.kind" || std::string(key.name) == "memory.slower")
      continue; // needs others: below
    Config config = parsed(assignment(key.name, value));
    std::vector<Change> changes = diff(Config(), config);
    if (key.names.size() == 1) {
      EXPECT_TRUE(changes.empty()) << key.name;
      continue;
    }
    ASSERT_EQ(changes.size(), 1u) << key.name;
    EXPECT_EQ(changes[0].key, key.name);
    EXPECT_EQ(changes[0].after, value);
    EXPECT_EQ(changes[0].reloadable, key.reloadable);
    EXPECT_TRUE(diff(parsed(printConfig(config, Keys::All)), config).empty()) << printConfig(config, Keys::All);
  }
}

// The sample of a whole file.
TEST(Config, AWholeFile) {
  Config config = parsed(R"(# comment
memory:   {fast_bytes: 512MiB, slow: {kind: file, path: /var/tmp/kv, bytes: 8GiB, checksum: xxh3}, reserve_ratio: 0.10}
block:    {tokens: 16, layers_per_block: 1, auto: l2, adaptive: {base: 4KiB, double_every: 1024, max: 4MiB}}
replace:  {policy: arc, chain_order: tail_first}
prefetch: {window_size: 3, strategy: hybrid, topk: 2, predictor: layer_ahead, max_inflight: 8MiB}
dialogue:
  recent_turns: 3
  recent_pages: 3
  important_pages: [0, 7]
  pin_budget: 0.25
  compression: {method: pruning, ratio: 0.5}
document: {chapter_page: 1MiB, paragraph_page: 64KiB, importance: tfidf, unload_processed: true}
compress: {quant: none, sparse: {ratio: 8, index: index}, after_idle_steps: 64}
security: {tenant_salt: required, zero_on_free: true, ttl: 3600s}
doctor:   {page_table_max: 0.05, min_hit: 0.9, frag_max: 0.10}
)");
  EXPECT_EQ(config.memory.fastBytes, 512u << 20);
  EXPECT_EQ(config.memory.slow.kind, SlowKind::File);
  EXPECT_EQ(config.memory.slow.path, "/var/tmp/kv");
  EXPECT_EQ(config.memory.slow.bytes, uint64_t(8) << 30);
  EXPECT_EQ(config.block.automatic, AutoBlock::L2);
  EXPECT_EQ(config.block.adaptive.doubleEvery, 1024);
  EXPECT_EQ(config.replace.policy, ReplacePolicy::Arc);
  EXPECT_EQ(config.prefetch.predictor, Predictor::LayerAhead);
  EXPECT_EQ(config.dialogue.importantPages, (std::vector<int64_t>{0, 7}));
  EXPECT_EQ(config.dialogue.compression.method, CompressionMethod::Pruning);
  EXPECT_EQ(config.compress.quant, Quant::None);
  EXPECT_EQ(config.compress.sparse.ratio, 8);
  EXPECT_EQ(config.compress.sparse.index, SparseIndex::Index);
  EXPECT_EQ(config.blockTokensPlace, "f.yaml:3:20");
  EXPECT_TRUE(config.security.zeroOnFree);
  EXPECT_EQ(config.security.ttl, 3600000000000);
  EXPECT_TRUE(diff(parsed(printConfig(config, Keys::All)), config).empty());
}

TEST(Config, TiersBelowTheFirst) {
  Config config = parsed("memory: {slow: {kind: memory, bytes: 256MiB}, slower: [\"file:/var/tmp/k v 1GiB\", throttled 2GiB]}\n");
  EXPECT_EQ(config.memory.slower, (std::vector<std::string>{"file:/var/tmp/k v 1GiB", "throttled 2GiB"}));
  EXPECT_TRUE(diff(parsed(printConfig(config, Keys::All)), config).empty()) << printConfig(config, Keys::All);
  std::string where;
  uint64_t bytes = 0;
  ASSERT_TRUE(splitTier(config.memory.slower[0], where, bytes));
  EXPECT_EQ(where, "file:/var/tmp/k v");
  EXPECT_EQ(bytes, uint64_t(1) << 30);
  std::string many = "memory: {slow: {kind: memory, bytes: 1MiB}, slower: [memory 1MiB";
  for (int i = 1; i < 15; ++i)
    many += ", memory 1MiB";
  EXPECT_EQ(errorOf(many + "]}\n"), "none");
  EXPECT_NE(errorOf(many + ", memory 1MiB]}\n").find("at most 15 of them"), std::string::npos);
}

TEST(Config, EmptyFilesAreDefaults) {
  for (const char *text : {"", "\n", "# nothing\n", "---\n", "{}\n", "memory: {}\n", "memory:\n  slow: {}\n"})
    EXPECT_EQ(errorOf(text), "none") << text;
}

TEST(Config, MistakesAreNamedWithLineAndColumn) {
  struct {
    const char *text, *error;
  } cases[] = {
      {"prefetch:\n  window: 3\n", "f.yaml:2:3: unknown key 'prefetch.window': expected window_size, strategy, topk, predictor, max_inflight"},
      {"memroy: {}\n", "f.yaml:1:1: unknown key 'memroy': expected memory, block, replace, prefetch, dialogue, document, compress, share, security, doctor, serving"},
      {"memory.fast_bytes: 1\n", "f.yaml:1:1: unknown key 'memory.fast_bytes': expected memory, block, replace, prefetch, dialogue, document, compress, share, security, doctor, serving"},
      {"memory:\n  fast_bytes: many\n", "f.yaml:2:15: memory.fast_bytes: expected a size (KiB, MiB, GiB, TiB, or KB, MB, GB, TB) of 1 to 1024TiB, but got 'many'"},
      {"memory: {fast_bytes: 0}\n", "f.yaml:1:22: memory.fast_bytes: expected a size (KiB, MiB, GiB, TiB, or KB, MB, GB, TB) of 1 to 1024TiB, but got '0'"},
      {"memory: {fast_bytes: }\n", "f.yaml:1:22: memory.fast_bytes: expected a size (KiB, MiB, GiB, TiB, or KB, MB, GB, TB) of 1 to 1024TiB, but got nothing"},
      {"memory: {fast_bytes: [1]}\n", "f.yaml:1:22: memory.fast_bytes: expected a size (KiB, MiB, GiB, TiB, or KB, MB, GB, TB) of 1 to 1024TiB, but got a list"},
      {"memory: 5\n", "f.yaml:1:9: memory: expected a map, but got '5'"},
      {"memory: [5]\n", "f.yaml:1:9: memory: expected a map, but got a list"},
      {"prefetch: {topk: {a: 1}}\n", "f.yaml:1:18: prefetch.topk: expected a whole number of 1 to 65536, but got a map"},
      {"prefetch: {window_size: -1}\n", "f.yaml:1:25: prefetch.window_size: expected a whole number of 0 to 1024, but got '-1'"},
      {"prefetch: {window_size: 3.5}\n", "f.yaml:1:25: prefetch.window_size: expected a whole number of 0 to 1024, but got '3.5'"},
      {"prefetch: {window_size: \"3\"}\n", "f.yaml:1:25: prefetch.window_size: expected a whole number of 0 to 1024, but got a text"},
      {"prefetch: {strategy: best}\n", "f.yaml:1:22: prefetch.strategy: expected none, sequential, hotspot or hybrid, but got 'best'"},
      {"doctor:\n  min_hit: 1.5\n", "f.yaml:2:12: doctor.min_hit: expected a number of 0 to 1, but got '1.5'"},
      {"doctor:\n  min_hit: nan\n", "f.yaml:2:12: doctor.min_hit: expected a number of 0 to 1, but got 'nan'"},
      {"security: {ttl: 3600}\n", "f.yaml:1:17: security.ttl: expected a time (ns, us, ms, s, min, h) of 0s to 8784h, but got '3600'"},
      {"security: {zero_on_free: yes}\n", "f.yaml:1:26: security.zero_on_free: expected true or false, but got 'yes'"},
      {"dialogue: {important_pages: 0}\n", "f.yaml:1:29: dialogue.important_pages: expected a list, but got '0'"},
      {"dialogue: {important_pages: [0, x]}\n", "f.yaml:1:33: dialogue.important_pages: expected a whole number of 0 to 1000000000, but got 'x'"},
      {"dialogue: {important_pages: [[0]]}\n", "f.yaml:1:30: dialogue.important_pages: expected a whole number of 0 to 1000000000, but got a list"},
      {"memory: {slow: {path: \"\"}}\n", "f.yaml:1:23: memory.slow.path: expected text of 1 to 4096 bytes, but got ''"},
      {"memory: {slow: {path: \"a\\nb\"}}\n", "f.yaml:1:23: memory.slow.path: expected text of 1 to 4096 bytes, but got 'a?b'"},
      {"share: {prefix_cache: true}\nshare: {}\n", "f.yaml:2:1: key share comes twice"},
      {"share: {prefix_cache: true, prefix_cache: true}\n", "f.yaml:1:29: key share.prefix_cache comes twice"},
      {"- memory\n", "f.yaml:1:1: expected a map, but got a list"},
      {"memory\n", "f.yaml:1:1: expected a map, but got 'memory'"},
      {"? [a]\n: b\n", "f.yaml:1:3: expected a key, but got a list"},
      {"<<: {memory: 1}\n", "f.yaml:1:1: unknown key '<<': expected memory, block, replace, prefetch, dialogue, document, compress, share, security, doctor, serving"},
      {"prefetch: {topk: !!int 3}\n", "f.yaml:1:18: expected a value without a tag, but got 'tag:yaml.org,2002:int'"},
      {"prefetch: {topk: &a 3}\n", "f.yaml:1:18: expected a value, but got an anchor; write it out"},
      {"prefetch: &a {topk: 3}\n", "f.yaml:1:11: expected a value, but got an anchor; write it out"},
      {"memory: {slow: {kind: file, bytes: 1GiB}}\n", "f.yaml:1:17: memory.slow.kind: expected memory.slow.path beside kind file, but got none"},
      {"memory: {slow: {kind: memory}}\n", "f.yaml:1:17: memory.slow.kind: expected memory.slow.bytes beside a kind, but got none"},
      {"memory: {slower: [\"memory 1GiB\"]}\n", "f.yaml:1:10: memory.slower: expected memory.slow.kind beside it, but got none"},
      {"memory: {slower: memory 1GiB}\n", "f.yaml:1:18: memory.slower: expected a list, but got 'memory 1GiB'"},
      {"memory: {slower: [memory]}\n", "f.yaml:1:19: memory.slower: expected TIER SIZE, as in \"file:/var/tmp/kv 1GiB\", at most 15 of them, but got 'memory'"},
      {"memory: {slower: [none 1GiB]}\n", "f.yaml:1:19: memory.slower: expected TIER SIZE, as in \"file:/var/tmp/kv 1GiB\", at most 15 of them, but got 'none 1GiB'"},
      {"memory: {slower: [\"file: 1GiB\"]}\n", "f.yaml:1:19: memory.slower: expected TIER SIZE, as in \"file:/var/tmp/kv 1GiB\", at most 15 of them, but got 'file: 1GiB'"},
      {"memory: {slower: [memory 0]}\n", "f.yaml:1:19: memory.slower: expected TIER SIZE, as in \"file:/var/tmp/kv 1GiB\", at most 15 of them, but got 'memory 0'"},
      {"block:\n  adaptive:\n    max: 1KiB\n", "f.yaml:3:5: block.adaptive.base: expected at most block.adaptive.max, but got more"},
      {"compress:\n  sparse: {index: index, ratio: 4}\n", "f.yaml:2:26: compress.sparse.ratio: expected 1 or 8, as sparse pages keep one of 8 elements, but got 4"},
      {"compress: {sparse: {ratio: 65}}\n", "f.yaml:1:28: compress.sparse.ratio: expected a whole number of 1 to 64, but got '65'"},
      {"compress: {sparse: {index: bits}}\n", "f.yaml:1:28: compress.sparse.index: expected bitmap or index, but got 'bits'"},
      {"compress: {quant: fp8, sparse: {ratio: 8}}\n", "f.yaml:1:33: compress.sparse.ratio: expected 1 beside a compress.quant, as a page has one form, but got 8"},
      {"document: {paragraph_page: 2MiB}\n", "f.yaml:1:12: document.paragraph_page: expected at most document.chapter_page, but got more"},
      {"{}\n---\n{}\n", "f.yaml:2:1: expected one document, but got another"},
  };
  for (const auto &c : cases)
    EXPECT_EQ(errorOf(c.text), c.error) << c.text;
}

TEST(Config, WhatIsNoYamlIsRefusedWithItsPlace) {
  for (const char *text : {"memory: {fast_bytes: 1", "memory:\n\t- x\n\t\tb: [", "memory: {fast_bytes: 1GiB}}\n", "memory: ]\n", "%YAML 9.9.9\n---\n{}\n", "@\n"}) {
    std::string error = errorOf(text);
    EXPECT_EQ(error.rfind("f.yaml:", 0), 0u) << error;
    EXPECT_NE(error.find(": not valid YAML: "), std::string::npos) << error;
  }
}

TEST(Config, NeitherDepthNorAliasesNorSizeGrow) {
  std::string deep(100000, '['), maps;
  for (int i = 0; i < 100000; ++i)
    maps += "{a: ";
  EXPECT_NE(errorOf(deep), "none");
  EXPECT_NE(errorOf(maps), "none");
  EXPECT_NE(errorOf("dialogue: {important_pages: " + deep), "none");
  // A bomb of aliases ends at its first anchor.
  std::string bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n";
  EXPECT_EQ(errorOf(bomb).rfind("f.yaml:1:1: unknown key 'a'", 0), 0u);
  EXPECT_EQ(errorOf("dialogue: {important_pages: *a}\n").rfind("f.yaml:1:29: ", 0), 0u);
  EXPECT_EQ(errorOf(std::string((1 << 20) + 1, ' ')), "f.yaml: expected at most 1048576 bytes, but got 1048577");
  std::string list = "dialogue: {important_pages: [0";
  for (int i = 0; i < 5000; ++i)
    list += ", 1";
  EXPECT_NE(errorOf(list + "]}\n"), "none");
}

TEST(Config, WhatARunHasNoUseForIsRefused) {
  int64_t refused = 0;
  for (const Key &key : allKeys()) {
    std::string text = assignment(key.name, key.type == Key::Type::Path ? "x" : key.initial), error = errorOf(text, Keys::Implemented);
    if (key.use == Key::Use::Run)
      EXPECT_EQ(error, "none");
    else
      EXPECT_NE(error.find(": " + std::string(key.name) + ": blocks of a compiled model have one size, a constant of its code; choose it by quirec --block-tokens=N, or make pages of "
                                                          "several sizes from C, by quire_sized_pool_create"),
                std::string::npos)
          << error;
    EXPECT_EQ(errorOf(text, Keys::All), "none") << key.name;
    refused += key.use != Key::Use::Run;
  }
  EXPECT_EQ(errorOf("block:\n  adaptive:\n    base: 4KiB\n", Keys::Implemented).rfind("f.yaml:3:5: block.adaptive.base: ", 0), 0u);
  EXPECT_EQ(errorOf("prefetch:\n  predictor: digest\n", Keys::Implemented),
            "f.yaml:2:14: not implemented: prefetch.predictor: digest: compiled models do not give their queries to the runtime; use layer_ahead or seed_hotspot, or "
            "quire_sequence_prefetch_by_query from C");
  EXPECT_EQ(errorOf("block:\n  auto: waste\n", Keys::Implemented),
            "f.yaml:2:9: block.auto: waste: unused slots depend on the tokens of a block, a constant of the compiled model; use off, l2 or io, and choose the tokens by quirec "
            "--block-tokens=N");
  EXPECT_EQ(errorOf("prefetch:\n  strategy: hybrid\n  predictor: seed_hotspot\n", Keys::Implemented), "none");
  EXPECT_EQ(printConfig(Config()).find("chapter_page") == std::string::npos, refused > 0);
  EXPECT_EQ(errorOf(printConfig(Config()), Keys::Implemented), "none");
}

TEST(Config, ReloadTakesWhatCanChange) {
  TemporaryFolder folder;
  std::string path = folder / "c.yaml";
  writeFile(path, "prefetch: {window_size: 3}\nblock: {tokens: 16}\n");
  Config current;
  ASSERT_TRUE(readConfig(path, current, Keys::All).ok());
  writeFile(path, "prefetch: {window_size: 5}\nblock: {tokens: 32}\n");
  Reload result;
  ASSERT_TRUE(reload(path, current, current, result, Keys::All).ok());
  ASSERT_EQ(result.changes.size(), 2u);
  EXPECT_EQ(result.changes[0].key, "block.tokens");
  EXPECT_FALSE(result.changes[0].reloadable);
  EXPECT_EQ(result.changes[1].key, "prefetch.window_size");
  EXPECT_EQ(result.changes[1].before + " -> " + result.changes[1].after, "3 -> 5");
  EXPECT_TRUE(result.changes[1].reloadable);
  EXPECT_EQ(result.config.prefetch.windowSize, 5);
  EXPECT_EQ(result.config.block.tokens, 16);
  writeFile(path, "prefetch: {window_size: 5\n");
  Status status = reload(path, current, current, result, Keys::All);
  EXPECT_EQ(status.code(), QUIRE_INVALID_ARGUMENT);
  EXPECT_EQ(status.text().rfind(path + ":", 0), 0u) << status.text();
  EXPECT_EQ(result.config.prefetch.windowSize, 5); // as before
  EXPECT_EQ(reload(folder / "none.yaml", current, current, result).code(), QUIRE_IO_ERROR);
  EXPECT_EQ(readConfig(std::string(folder / "."), current).code(), QUIRE_IO_ERROR);
}

TEST(Config, Quantities) {
  uint64_t bytes;
  int64_t time;
  EXPECT_TRUE(parseSize("256MiB", bytes) && bytes == 256u << 20);
  EXPECT_TRUE(parseSize("2GB", bytes) && bytes == 2000000000u);
  EXPECT_TRUE(parseSize("16777215TiB", bytes));
  for (const char *text : {"", "MiB", "1 MiB", "1mib", "-1", "+1", "1.5GiB", "16777216TiB", "18446744073709551616", "1K"})
    EXPECT_FALSE(parseSize(text, bytes)) << text;
  EXPECT_TRUE(parseDuration("3600s", time) && time == 3600000000000);
  EXPECT_TRUE(parseDuration("2h", time) && time == 7200000000000);
  EXPECT_TRUE(parseDuration("100us", time) && time == 100000);
  for (const char *text : {"", "5", "-1s", "1d", "10000000000s", "s"})
    EXPECT_FALSE(parseDuration(text, time)) << text;
  EXPECT_TRUE(parseBandwidth("2GB/s", bytes) && bytes == 2000000000u);
  for (const char *text : {"2GB", "/s", "2GB/ms"})
    EXPECT_FALSE(parseBandwidth(text, bytes)) << text;
  for (uint64_t value : {uint64_t(0), uint64_t(1), uint64_t(1000), uint64_t(1024), uint64_t(1) << 40, uint64_t(1500000000), UINT64_MAX}) {
    EXPECT_TRUE(parseSize(printSize(value), bytes) && bytes == value) << printSize(value);
    EXPECT_EQ(parseBandwidth(printBandwidth(value), bytes), value != 0);
    EXPECT_TRUE(value == 0 || bytes == value);
    int64_t ns = static_cast<int64_t>(value >> 1);
    EXPECT_TRUE(parseDuration(printDuration(ns), time) && time == ns) << printDuration(ns);
  }
  EXPECT_EQ(printSize(256 << 20), "256MiB");
  EXPECT_EQ(printDuration(3600000000000), "1h");
}

/// Run `quire-run --help-config=markdown` for the table when this fails.
TEST(Config, DocumentationListsEveryKey) {
  EXPECT_NE(readFile(QUIRE_RUNTIME_DOC).find("\n\n" + keyTable() + "\n"), std::string::npos)
      << "the table of keys in " << QUIRE_RUNTIME_DOC << " is not up to date:\n"
      << keyTable();
}
