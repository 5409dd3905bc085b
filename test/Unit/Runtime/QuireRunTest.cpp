// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of quire-run: files, exit codes, interruption.
#include "StartedQuireRun.h"
#include "ToyReference.h"
#include "doctor/Metrics.h"
#include "doctor/ReplayReport.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

using namespace quire::test;
using nlohmann::json;

namespace {

const char requests[] = R"({"id": 0, "prompt": [1], "max_new_tokens": 24}
{"id": "b", "prompt": [9, 8, 7], "max_new_tokens": 24}

{"id": "bad", "prompt": [9, 800, 7]}
not json
{"id": "c", "prompt": [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4], "max_new_tokens": 10}
)";

} // namespace

TEST_F(QuireRun, ServesRequests) {
  writeFile(file("in.jsonl"), requests);
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output", file("out.jsonl"), "--logits", file("logits"),
                 "--stats=" + file("s.json"), "--shuffle-blocks=7", "--poison-free-blocks", "--threads=2",
                 "--max-batch=8", "--kv-bytes=64KiB", "--prefill-chunk=6"}),
            0)
      << errors();
  std::map<std::string, json> found = results();
  ASSERT_EQ(found.size(), 5u);
  EXPECT_EQ(found["0"]["tokens"].get<std::vector<int64_t>>(), toyGreedy({1}, 24));
  EXPECT_EQ(found["b"]["tokens"].get<std::vector<int64_t>>(), toyGreedy({9, 8, 7}, 24));
  EXPECT_EQ(found["c"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(std::vector<int64_t>(17, 4), 10));
  EXPECT_EQ(found["c"]["prompt_tokens"], 17);
  EXPECT_EQ(found["bad"]["finish_reason"], "error");
  EXPECT_EQ(found["bad"]["error"], "line 4: prompt[1]: expected an integer of 0 to 96, but got 800");
  EXPECT_EQ(found["null"]["error"].get<std::string>().rfind("line 5: not valid JSON", 0), 0u);
  EXPECT_NE(errors().find("2 of 5 requests ended in errors"), std::string::npos) << errors();
  EXPECT_EQ(std::filesystem::file_size(file("logits/0.npy")), 128u + 24 * 97 * 4);
  EXPECT_FALSE(std::filesystem::exists(file("logits/bad.npy")));
  json stats = json::parse(readFile(file("s.json")));
  EXPECT_EQ(stats["max_sequences_in_step"], 3);
  EXPECT_EQ(stats["blocks_total"], 65536 / 3200);
  EXPECT_LE(stats["max_prefill_tokens_in_step"], 6);
  EXPECT_EQ(stats["final_block_tables"].size(), 3u);
}

TEST_F(QuireRun, ReadsAndWritesStandardStreams) {
  writeFile(file("in.jsonl"), "{\"id\": 1, \"prompt\": [2], \"max_new_tokens\": 3}\n");
  EXPECT_EQ(run({model(), "--requests", file("in.jsonl")}), 0) << errors();
  EXPECT_EQ(results("stdout")["1"]["tokens"].get<std::vector<int64_t>>(), toyGreedy({2}, 3));
  std::string said = errors(); // one line for people, apart from the results
  EXPECT_EQ(said.rfind("quire-run: 1 request, 3 new tokens in ", 0), 0u) << said;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(QuireRun, EmptyRequestFile) {
  writeFile(file("in.jsonl"), "\n");
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl")}), 0);
  EXPECT_EQ(readFile(file("out.jsonl")), "");
}

TEST_F(QuireRun, PrefixCache) {
  std::string lines;
  std::vector<int64_t> prompt(40, 3);
  for (int i = 0; i < 6; ++i) {
    prompt.back() = i;
    lines += json{{"id", i}, {"prompt", prompt}, {"max_new_tokens", 5}, {"tenant", i < 5 ? "a" : "b"}}.dump() + "\n";
  }
  writeFile(file("in.jsonl"), lines);
  auto serve = [&](const std::string &flag) {
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--stats=" + file("s.json"),
                   "--max-batch=1", "--kv-bytes=64KiB", flag}),
              0)
        << errors();
    std::map<std::string, json> found = results();
    for (int i = 0; i < 6; ++i) {
      prompt.back() = i;
      EXPECT_EQ(found[std::to_string(i)]["tokens"].get<std::vector<int64_t>>(), toyGreedy(prompt, 5)) << flag;
    }
    return json::parse(readFile(file("s.json")));
  };
  auto prefill = [](const json &stats) {
    int64_t tokens = 0;
    for (const json &step : stats["steps"])
      tokens += step["tokens"].get<int64_t>();
    return tokens;
  };
  json without = serve("--prefix-cache=off"), with = serve("--prefix-cache");
  EXPECT_FALSE(without.contains("prefix"));
  EXPECT_EQ(with["prefix"]["queries"], 6);
  EXPECT_EQ(with["prefix"]["hit_tokens"], 4 * 32); // the first of each tenant finds nothing
  EXPECT_EQ(prefill(with), prefill(without) - 4 * 32);
  expectRefused({model(), "--prefix-cache=yes"}, "--prefix-cache: expected on or off, but got 'yes'");
}

TEST_F(QuireRun, Configuration) {
  writeFile(file("c.yaml"), "memory: {fast_bytes: 64KiB}\nserving: {max_batch: 2, threads: 1}\nshare: {prefix_cache: true}\n"
                            "security: {ttl: 1h, zero_on_free: true}\n");
  std::string config = "--config=" + file("c.yaml");
  EXPECT_EQ(run({"--threads=2", "--print-config", config}), 0) << errors();
  std::string printed = readFile(file("stdout"));
  EXPECT_EQ(printed, "memory:\n  fast_bytes: 64KiB\n  slow:\n    kind: none\n    bytes: 0\n    checksum: xxh3\n    latency: 100us\n    bandwidth: 2GB/s\n  slower: []\n  reserve_ratio: 0.1\n  stable_va: false\n"
                     "block:\n  tokens: 0\n  layers_per_block: 1\n  auto: off\nreplace:\n  policy: scan\n  chain_order: tail_first\n"
                     "prefetch:\n  window_size: 3\n  strategy: sequential\n  topk: 2\n  predictor: layer_ahead\n  max_inflight: 8MiB\n"
                     "dialogue:\n  recent_turns: 3\n  recent_pages: 3\n  important_pages: [0]\n  pin_budget: 0.25\n  compression:\n    method: none\n    ratio: 0.5\n"
                     "document:\n  importance: tfidf\n  unload_processed: true\n" "compress:\n  quant: none\n  sparse:\n    ratio: 1\n    index: bitmap\n  after_idle_steps: 64\n"
                     "share:\n  prefix_cache: true\n"
                     "security:\n  tenant_salt: required\n  zero_on_free: true\n  ttl: 1h\n"
                     "doctor:\n  page_table_max: 0.05\n  min_hit: 0.9\n  frag_max: 0.1\n"
                     "serving:\n  max_batch: 2\n  prefill_chunk: 512\n  mixed_chunk: 64\n  threads: 2\n");
  writeFile(file("c.yaml"), printed);
  EXPECT_EQ(run({"--print-config", config}), 0) << errors();
  EXPECT_EQ(readFile(file("stdout")), printed);

  writeFile(file("in.jsonl"), requests);
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--stats=" + file("s.json"), config}), 0)
      << errors();
  json stats = json::parse(readFile(file("s.json")));
  EXPECT_EQ(stats["blocks_total"], 65536 / 3200);
  EXPECT_EQ(stats["max_sequences_in_step"], 2);
  EXPECT_EQ(stats["threads"], 2);
  EXPECT_TRUE(stats.contains("prefix"));

  EXPECT_EQ(run({"--help-config=markdown"}), 0);
  EXPECT_NE(readFile(file("stdout")).find("| `prefetch.window_size` |"), std::string::npos);
  EXPECT_EQ(run({"--help-config"}), 0);
  std::string help = readFile(file("stdout"));
  EXPECT_NE(help.find("\nprefetch.window_size\n    pages of each sequence that may be on their way ahead of need; 0: none\n"
                      "    count: 0 to 1024; default: 3; can change at run time\n"),
            std::string::npos)
      << help;
  EXPECT_EQ(help.find_first_of("|`"), std::string::npos);
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 100u) << line;
  expectRefused({"--help-config=html"}, "--help-config: expected nothing or markdown, but got 'html'");
  writeFile(file("c.yaml"), "serving:\n  max_batch: 0\n");
  expectRefused({"--print-config", config}, file("c.yaml") + ":2:14: serving.max_batch: expected a whole number of 1 to 1000000, but got '0'");
  writeFile(file("c.yaml"), "prefetch:\n  predictor: digest\n");
  expectRefused({model(), config}, file("c.yaml") + ":2:14: not implemented: prefetch.predictor: digest");
  expectRefused({model(), config, config}, "--config: expected one file");
  expectRefused({model(), "--config=" + file("none")}, "none: No such file");
}

TEST_F(QuireRun, OldTurnsArePruned) {
  json request = {{"id", 1}, {"max_new_tokens", 4}, {"turns", {40, 80, 100}}};
  for (int i = 0; i < 104; ++i)
    request["prompt"].push_back(i * i * 29 % 97);
  writeFile(file("in.jsonl"), request.dump() + "\n");
  writeFile(file("c.yaml"), "dialogue: {recent_turns: 1, recent_pages: 1, important_pages: [], compression: {method: pruning, ratio: 0.5}}\n");
  std::vector<std::string> all = {model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--stats=" + file("s.json"), "--config=" + file("c.yaml")};
  EXPECT_EQ(run(all), 0) << errors();
  // The first turn fills two blocks, of which one goes. Then the rest of it and the second turn fill three, and 24 tokens need two.
  EXPECT_EQ(json::parse(readFile(file("s.json")))["pruned"], json({{"tokens", 32}, {"blocks", 2}}));
  writeToyFolder(temporary / "places.quire", QUIRE_TOY_MODEL_PLACES);
  all[0] = temporary / "places.quire";
  expectRefused(all, "dialogue.compression.method: expected none, but got pruning: layer 0 of the model takes the place of a key for its position");
}

/// The thresholds of the configuration reach the doctor.
TEST_F(QuireRun, DoctorSpeaksByTheConfiguration) {
  writeFile(file("in.jsonl"), requests);
  auto findings = [&](const std::string &doctor) {
    writeFile(file("c.yaml"), "doctor: " + doctor + "\n");
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=12KB", "--slow-tier=memory",
                   "--slow-bytes=1MiB", "--doctor", "--prefetch-window=0", "--config=" + file("c.yaml")}),
              0)
        << errors();
    return errors();
  };
  std::string strict = findings("{min_hit: 1, page_table_max: 0}"), lax = findings("{min_hit: 0, page_table_max: 1}");
  EXPECT_NE(strict.find("low-hit-rate"), std::string::npos) << strict;
  EXPECT_NE(strict.find("above 0.00"), std::string::npos) << strict;
  EXPECT_EQ(lax.find("low-hit-rate"), std::string::npos) << lax;
  EXPECT_EQ(lax.find("table-time"), std::string::npos) << lax;
}

/// What a run measured is there when its sequences are gone, and what it could not measure has a reason.
TEST_F(QuireRun, DoctorHasTheNumbersOfTheRun) {
  writeFile(file("in.jsonl"), requests);
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=12KB", "--slow-tier=throttled:50us,1GB/s",
                 "--slow-bytes=1MiB", "--doctor"}),
            0)
      << errors();
  std::map<std::string, std::string> metrics;
  std::istringstream lines(errors());
  for (std::string line; std::getline(lines, line) && !line.empty();)
    metrics[line.substr(0, line.find(' '))] = line.substr(24);
  for (const char *name : {"hit_rate", "internal_fragmentation", "slow_use", "stall_share"})
    EXPECT_GT(std::atof(metrics[name].c_str()), 0) << name << ": " << errors();
  EXPECT_LT(std::stod(metrics["internal_fragmentation"]), 1) << errors();
  EXPECT_EQ(metrics["gap_to_optimum"], "none: no trace was recorded (--trace, quire_pool_trace), or not all of it");
  EXPECT_EQ(metrics["codec_error"], "none: the slow tier has no codec");
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=12KB", "--slow-tier=memory", "--slow-bytes=1MiB", "--doctor", "--trace=" + file("t.json")}), 0);
  quire::runtime::Trace trace(0);
  ASSERT_TRUE(quire::runtime::Trace::read(file("t.json"), trace).ok());
  auto recorded = quire::runtime::recordedRun(trace); // the line that quire-replay prints
  ASSERT_TRUE(recorded);
  EXPECT_GT(recorded->counters.prefetchIssued, 0u);
  std::string gap = quire::runtime::shown(quire::runtime::gapToOptimum(recorded->counters, recorded->optimalMisses));
  EXPECT_NE(errors().find("\ngap_to_optimum          " + gap + "\n"), std::string::npos) << gap << errors();
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--doctor"}), 0);
  EXPECT_NE(errors().find("\nslow_use                none: there is no slow tier\n"), std::string::npos) << errors();
}

/// What is fetched first changes no token.
TEST_F(QuireRun, PrefetchesWhatAttentionLooksAt) {
  std::vector<int64_t> prompt(90, 3);
  writeFile(file("in.jsonl"), json({{"id", "a"}, {"prompt", prompt}, {"max_new_tokens", 30}}).dump() + "\n");
  for (const char *keys : {"hotspot, predictor: layer_ahead, topk: 3", "hotspot, predictor: seed_hotspot", "hybrid, predictor: layer_ahead", "hybrid, predictor: seed_hotspot, topk: 1"}) {
    writeFile(file("c.yaml"), "prefetch: {strategy: " + std::string(keys) + "}\n");
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=30KB", "--slow-tier=memory",
                   "--slow-bytes=1MiB", "--stats=" + file("s.json"), "--config=" + file("c.yaml")}),
              0)
        << errors();
    EXPECT_EQ(results()["a"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(prompt, 30)) << keys;
    EXPECT_GT(json::parse(readFile(file("s.json")))["tiers"]["prefetch"]["issued"], 0) << keys;
  }
}

/// Compiled models ask for a layer before they acquire the one ahead of it, whose attention then names what is fetched.
TEST_F(QuireRun, NamesHotPagesByTheLayerAhead) {
  std::string asking = temporary / "asking.quire";
  writeToyFolder(asking, QUIRE_TOY_MODEL_ASKS_FIRST);
  std::vector<int64_t> prompt(90, 3);
  writeFile(file("in.jsonl"), json({{"id", "a"}, {"prompt", prompt}, {"max_new_tokens", 30}}).dump() + "\n");
  for (const char *strategy : {"hotspot", "hybrid"}) {
    writeFile(file("c.yaml"), "prefetch: {strategy: " + std::string(strategy) + "}\n");
    EXPECT_EQ(run({asking, "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=30KB", "--slow-tier=memory",
                   "--slow-bytes=1MiB", "--trace=" + file("t.json"), "--config=" + file("c.yaml")}),
              0)
        << errors();
    EXPECT_EQ(results()["a"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(prompt, 30)) << strategy;
    std::map<int64_t, int64_t> fetched, named; // by layer; named: after the layer ahead was looked at in the same step
    int64_t lookedAt = -1;
    json trace = json::parse(readFile(file("t.json")));
    for (const json &event : trace["traceEvents"])
      if (event["name"] == "step")
        lookedAt = -1;
      else if (event["name"] == "observe")
        lookedAt = event["args"]["layer"];
      else if (event["name"] == "prefetch") {
        int64_t layer = event["args"]["layer"];
        ++fetched[layer];
        named[layer] += lookedAt == layer - 1;
      }
    EXPECT_GT(named[1], 0) << strategy;
    EXPECT_GT(named[2], 0) << strategy;
    EXPECT_EQ(fetched[1], named[1]) << strategy;
    EXPECT_EQ(fetched[2], named[2]) << strategy;
    EXPECT_EQ(fetched[0] > 0, std::string(strategy) == "hybrid") << "nothing was looked at yet: in their order only";
  }
}

/// Addresses that stay change no token; each page takes whole pages of the system.
TEST_F(QuireRun, PagesKeepTheirAddressesOnRequest) {
  std::vector<int64_t> prompt(90, 3);
  writeFile(file("in.jsonl"), json({{"id", "a"}, {"prompt", prompt}, {"max_new_tokens", 30}}).dump() + "\n");
  for (auto [stable, slow] : {std::pair<bool, std::string>(false, "kind: memory"), {true, "kind: memory"}, {true, "kind: throttled, latency: 1us"}, {true, "kind: file, path: " + file("pages")}}) {
    writeFile(file("c.yaml"), std::string("memory: {stable_va: ") + (stable ? "true" : "false") + ", fast_bytes: 40KiB, slow: {" + slow + ", bytes: 1MiB}}\n");
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--stats=" + file("s.json"), "--config=" + file("c.yaml")}), 0)
        << errors();
    EXPECT_EQ(results()["a"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(prompt, 30));
    json memory = json::parse(readFile(file("s.json")))["tiers"]["memory"];
    EXPECT_EQ(memory["page_stride"], stable ? 4096 : 1536);
    EXPECT_EQ(memory["bytes"], stable ? 40960 : 40960 / 1536 * 1536);
    EXPECT_EQ(memory["returns"] > 0, stable);
    EXPECT_EQ(memory["bytes_returned"] > 0, stable);
  }
}

/// Pages in fewer bytes: more of them fit, and the run says how many bytes and how exact.
TEST_F(QuireRun, StoresPagesEncodedOnRequest) {
  writeFile(file("in.jsonl"), json({{"id", "a"}, {"prompt", std::vector<int64_t>(90, 3)}, {"max_new_tokens", 30}}).dump() + "\n");
  // The toy model takes whole numbers only: it notices what is rounded, and the only request fails; not what became 0.
  auto serve = [&](const std::string &form, const std::string &tier = "memory") {
    writeFile(file("c.yaml"), "compress: {" + form + "}\n");
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=34KB", "--slow-tier=" + tier,
                   "--slow-bytes=1MiB", "--stats=" + file("s.json"), "--config=" + file("c.yaml")}),
              form.find("_g128") == std::string::npos ? 0 : 1)
        << errors();
    return json::parse(readFile(file("s.json")))["tiers"];
  };
  json plain = serve("quant: none");
  EXPECT_EQ(plain["codec"]["stored_page_bytes"], plain["page_bytes"]);
  EXPECT_EQ(plain["codec"]["samples"], 0);
  EXPECT_EQ(results()["a"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(std::vector<int64_t>(90, 3), 30));
  double stored = plain["page_bytes"];
  std::map<std::string, double> bytes;
  for (const char *form : {"quant: int8_g128", "sparse: {ratio: 8}", "sparse: {ratio: 8, index: index}", "quant: int4_g128"}) {
    json tiers = serve(form);
    stored = bytes[form] = tiers["codec"]["stored_page_bytes"];
    EXPECT_LT(stored, plain["page_bytes"]) << form;
    EXPECT_GT(tiers["codec"]["samples"], 0) << form;
    EXPECT_GT(tiers["codec"]["error"], 0.0) << form;
    // test/Integration/slow-codec.test compares tokens.
    if (*form == 'q')
      EXPECT_EQ(results()["a"]["error"], "the logits of new token 24 are not numbers") << form;
    else
      EXPECT_NE(results()["a"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(std::vector<int64_t>(90, 3), 30)) << form;
  }
  EXPECT_LT(bytes["quant: int4_g128"], bytes["quant: int8_g128"]);
  for (const std::string &tier : {"file:" + file("pages"), std::string("throttled:1us,1GB/s")})
    EXPECT_EQ(serve("quant: int4_g128", tier)["codec"]["stored_page_bytes"], stored) << tier;
  EXPECT_EQ(run({model(), "--print-config", "--slow-tier=memory", "--slow-bytes=1MiB", "--config=" + file("c.yaml")}), 0);
  EXPECT_NE(readFile(file("stdout")).find("quant: int4_g128"), std::string::npos);
  expectRefused({model(), "--config=" + file("c.yaml")}, "compress.quant needs --slow-tier, or memory.slow.kind");
  writeFile(file("c.yaml"), "compress: {sparse: {ratio: 8, index: index}}\n");
  expectRefused({model(), "--config=" + file("c.yaml")}, "compress.sparse.ratio needs --slow-tier, or memory.slow.kind");
  EXPECT_EQ(run({model(), "--print-config", "--slow-tier=memory", "--slow-bytes=1MiB", "--config=" + file("c.yaml")}), 0);
  EXPECT_NE(readFile(file("stdout")).find("sparse:\n    ratio: 8\n    index: index\n"), std::string::npos);
  writeFile(file("c.yaml"), "compress:\n  quant: fp8\n  sparse: {ratio: 8}\n");
  expectRefused({model(), "--config=" + file("c.yaml")}, file("c.yaml") + ":3:12: compress.sparse.ratio: expected 1 beside a compress.quant, as a page has one form, but got 8");
}

/// A rule for the pages changes no token, and the run says what it chose.
TEST_F(QuireRun, ChoosesLayersOfAPage) {
  std::vector<int64_t> prompt(90, 3);
  writeFile(file("in.jsonl"), json({{"id", "a"}, {"prompt", prompt}, {"max_new_tokens", 30}}).dump() + "\n");
  for (const char *rule : {"off", "l2", "io"})
    for (const std::string &tier : {std::string("memory"), "file:" + file("pages")}) {
      writeFile(file("c.yaml"), "block: {auto: " + std::string(rule) + ", layers_per_block: 2}\n");
      EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=34KB", "--slow-tier=" + tier, "--slow-bytes=1MiB",
                     "--stats=" + file("s.json"), "--config=" + file("c.yaml")}),
                0)
          << errors();
      EXPECT_EQ(results()["a"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(prompt, 30)) << rule;
      int64_t layers = json::parse(readFile(file("s.json")))["tiers"]["layers_per_page"];
      EXPECT_TRUE(*rule == 'o' ? layers == 2 : layers >= 1 && layers <= 3) << rule << ": " << layers;
    }
  writeFile(file("c.yaml"), "block: {auto: waste}\n");
  expectRefused({model(), "--config=" + file("c.yaml")}, file("c.yaml") + ":1:15: block.auto: waste: unused slots depend on the tokens of a block");
}

/// A configuration may say the model's tokens of a block, and no others.
TEST_F(QuireRun, BlocksAreThoseOfTheModel) {
  writeFile(file("in.jsonl"), "{\"id\": 1, \"prompt\": [2], \"max_new_tokens\": 3}\n");
  for (const char *tokens : {"0", "16"}) {
    writeFile(file("c.yaml"), "block: {tokens: " + std::string(tokens) + "}\n");
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--config=" + file("c.yaml")}), 0) << errors();
    EXPECT_EQ(results()["1"]["tokens"].get<std::vector<int64_t>>(), toyGreedy({2}, 3));
  }
  writeFile(file("c.yaml"), "block:\n  tokens: 32\n");
  expectRefused({model(), "--requests=" + file("in.jsonl"), "--config=" + file("c.yaml")},
                file("c.yaml") + ":2:11: block.tokens: expected 16, a constant of " + model() + ", but got 32; compile the model by quirec --block-tokens=32");
  writeFile(file("c.yaml"), "block:\n  tokens: 16\n  layers_per_block: 100\n");
  expectRefused({model(), "--requests=" + file("in.jsonl"), "--config=" + file("c.yaml")},
                file("c.yaml") + ":3:21: block.layers_per_block: expected 1 to " + std::to_string(TOY_LAYERS) + ", the layers of " + model() + ", but got 100");
  writeFile(file("c.yaml"), "document:\n  chapter_page: 1MiB\n");
  expectRefused({model(), "--config=" + file("c.yaml")}, file("c.yaml") + ":2:3: document.chapter_page: blocks of a compiled model have one size");
}

/// A cached prefix that nobody reads is compressed, although there is room.
TEST_F(QuireRun, CompressesWhatIsIdle) {
  std::vector<int64_t> first(70, 3), second(20, 5);
  writeFile(file("in.jsonl"), json({{"id", "a"}, {"prompt", first}, {"max_new_tokens", 2}}).dump() + "\n" +
                                  json({{"id", "b"}, {"prompt", second}, {"max_new_tokens", 30}}).dump() + "\n");
  for (const char *keys : {"quant: int8_g128, after_idle_steps: 0", "quant: int8_g128, after_idle_steps: 5", "sparse: {ratio: 8}, after_idle_steps: 5", "after_idle_steps: 5"}) {
    writeFile(file("c.yaml"), "compress: {" + std::string(keys) + "}\nshare: {prefix_cache: true}\n");
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=256KiB", "--slow-tier=memory",
                   "--slow-bytes=1MiB", "--max-batch=1", "--stats=" + file("s.json"), "--config=" + file("c.yaml")}),
              0)
        << errors();
    EXPECT_EQ(results()["a"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(first, 2));
    EXPECT_EQ(results()["b"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(second, 30));
    json codec = json::parse(readFile(file("s.json")))["tiers"]["codec"];
    bool leaves = std::strstr(keys, "ratio") || std::strstr(keys, "int8_g128, after_idle_steps: 5");
    EXPECT_EQ(codec["idle_blocks"], leaves ? 4 : 0) << "70 tokens have four full blocks: " << keys;
  }
}

/// Turns of a request are held; the tokens are the same.
TEST_F(QuireRun, TurnsOfADialogueStay) {
  std::vector<int64_t> prompt(60, 3), other(90, 5);
  json dialogue = {{"id", "d"}, {"prompt", prompt}, {"turns", {20, 40, 60}}, {"max_new_tokens", 30}};
  json plain = {{"id", "p"}, {"prompt", other}, {"max_new_tokens", 30}};
  writeFile(file("in.jsonl"), dialogue.dump() + "\n" + plain.dump() + "\n");
  auto serve = [&](const std::string &keys) {
    writeFile(file("c.yaml"), keys);
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=30KB", "--slow-tier=memory",
                   "--slow-bytes=1MiB", "--stats=" + file("s.json"), "--config=" + file("c.yaml")}),
              0)
        << errors();
    std::map<std::string, json> found = results();
    EXPECT_EQ(found["d"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(prompt, 30));
    EXPECT_EQ(found["p"]["tokens"].get<std::vector<int64_t>>(), toyGreedy(other, 30));
    return json::parse(readFile(file("s.json")))["tiers"]["pins"];
  };
  json none = serve("dialogue: {recent_turns: 0, recent_pages: 0, important_pages: []}\n");
  EXPECT_EQ(none["given_up"], 0);
  json held = serve("dialogue: {recent_turns: 3, pin_budget: 0.25}\n");
  EXPECT_GT(held["budget_blocks"], 0);
  EXPECT_GT(held["given_up"], 0) << "three turns are more than a quarter of the fast tier";
}

/// One request may fail by itself; a run of which nothing came out has failed.
TEST_F(QuireRun, FailsWhenEveryRequestFails) {
  auto serve = [&](const std::string &lines) {
    writeFile(file("in.jsonl"), lines);
    return run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--stats=" + file("s.json")});
  };
  const std::string good = "{\"id\": \"a\", \"prompt\": [3], \"max_new_tokens\": 2}\n", bad = "{\"id\": \"b\", \"prompt\": [800]}\n";
  EXPECT_EQ(serve(good + bad), 0);
  EXPECT_EQ(serve(bad + "x\n"), 1);
  EXPECT_NE(errors().find("quire-run: error: every request ended in an error, see 'error' in their results; the first: line 1: prompt[0]: expected an integer of 0 to 96, but got 800\n"),
            std::string::npos)
      << errors();
  EXPECT_EQ(results().size(), 2u); // they are kept all the same
  EXPECT_TRUE(json::parse(readFile(file("s.json"))).contains("steps"));
  EXPECT_EQ(serve(""), 0) << "nothing was asked for";
}

TEST_F(QuireRun, BadUsage) {
  writeFile(file("in.jsonl"), requests);
  std::string in = "--requests=" + file("in.jsonl");
  expectRefused({}, "expected a model folder, but got none");
  expectRefused({model(), model(), in}, "expected one model folder");
  expectRefused({model(), "--no-such-flag", in}, "no-such-flag");
  expectRefused({model(), "--max-batch=0", in}, "--max-batch: expected a number of 1 to 1000000, but got '0'");
  expectRefused({model(), "--max-batch=2x", in}, "but got '2x'");
  expectRefused({model(), "--threads=-1", in}, "--threads: expected");
  expectRefused({model(), "--kv-bytes=12QB", in}, "--kv-bytes: expected a size such as 256MiB (KiB, MiB, GiB, TiB, or KB, MB, GB, TB), but got '12QB'");
  expectRefused({model(), "--kv-bytes=99999999999999TiB", in}, "--kv-bytes: expected a size");
  expectRefused({model(), "--kv-bytes=100", in}, "a kv budget of 100 bytes holds no block");
  expectRefused({model(), "--kv-bytes=16TiB", in},
                "a kv budget of 17592186044416 bytes: expected a pool that fits into");
  expectRefused({model(), "--shuffle-blocks=x", in}, "--shuffle-blocks: expected a number");
  expectRefused({model(), "--json", in}, "--json needs --describe");
  expectRefused({model(), "--requests=" + file("none")}, "none: No such file");
  expectRefused({file("none.quire"), in}, "none.quire: No such file");
  expectRefused({model(), in, "--output=" + file("no/out")}, "no/out: No such file");
  EXPECT_FALSE(std::filesystem::exists(file("out.jsonl")));
}

/// However the same path is spelled, and before the model is even looked at.
TEST_F(QuireRun, EveryFileHasAPathOfItsOwn) {
  writeFile(file("in.jsonl"), requests);
  writeFile(file("old"), "old");
  std::filesystem::create_directory(file("sub"));
  std::filesystem::create_directory_symlink(file("sub"), file("link"));
  std::filesystem::create_symlink(file("old"), file("link to old"));
  std::string in = "--requests=" + file("in.jsonl");
  auto conflict = [&](const std::string &output, const std::string &stats) {
    expectRefused({file("no model"), in, "--output=" + output, "--stats=" + stats},
                  "--stats: expected a path of its own, but got that of --output, '" + stats +
                      "'\ntry 'quire-run --help'");
  };
  conflict(file("x"), file("x"));
  conflict(file("x"), file("./sub/../x"));
  conflict(file("sub/x"), file("link/x"));
  conflict(std::filesystem::relative(file("x")), file("x"));
  conflict(file("old"), file("link to old"));
  conflict(file("x"), file("x.partial"));
  conflict(file("x.partial"), file("x"));
  conflict(file("link to old"), file("old.partial"));
  conflict("-", "-");
  conflict("-", file("stdout")); // that is where it goes
  expectRefused({file("no model"), in, "--output=" + file("x"), "--logits=" + file("x/")}, "that of --output, '");
  expectRefused({file("no model"), in, "--stats=" + file("x"), "--logits=" + file("x")}, "that of --stats, '");
  expectRefused({file("no model"), in, "--output=" + file("in.jsonl")}, "--output: expected a path of its own, but got "
                                                                        "that of --requests, '");
  expectRefused({file("no model"), in, "--output="}, "--output: expected a file, but got ''");
  std::string slow = "--slow-tier=file:" + file("x"), bytes = "--slow-bytes=1MiB";
  for (const char *option : {"--output=", "--stats=", "--trace=", "--metrics=", "--logits="})
    expectRefused({file("no model"), in, slow, bytes, option + file("x")}, "that of --slow-tier, '");
  expectRefused({file("no model"), in, slow + ".partial", bytes, "--output=" + file("x")}, "that of --slow-tier, '");
  writeFile(file("c.yaml"), "prefetch: {window_size: 3}\n");
  expectRefused({file("no model"), in, "--config=" + file("c.yaml"), "--output=" + file("c.yaml")}, "that of --config, '");
  EXPECT_FALSE(std::filesystem::exists(file("x")));
  EXPECT_EQ(readFile(file("old")), "old");
  EXPECT_EQ(readFile(file("c.yaml")), "prefetch: {window_size: 3}\n");
  EXPECT_EQ(run({model(), in, "--output=/dev/null", "--stats=/dev/null"}), 0) << errors();
}

/// Neither the model nor an array of logits is replaced.
TEST_F(QuireRun, FilesLieOutsideOfTheModelAndOfArrays) {
  writeFile(file("in.jsonl"), requests);
  std::string in = "--requests=" + file("in.jsonl"), weights = readFile(model() + "/weights.bin");
  for (const std::string &option : {std::string("--output="), std::string("--stats="), std::string("--trace="), std::string("--metrics="), std::string("--logits=")})
    for (const char *name : {"/weights.bin", "/new", "/../toy.quire/manifest.json", ""})
      expectRefused({model(), in, "--slow-tier=memory", "--slow-bytes=1MiB", option + model() + name}, option.substr(0, option.size() - 1) + ": expected a path outside of the model folder, but got '");
  EXPECT_EQ(readFile(model() + "/weights.bin"), weights);
  std::filesystem::create_directory(file("logits"));
  writeFile(file("logits/a.npy"), requests);
  std::string logits = "--logits=" + file("logits");
  expectRefused({model(), "--requests=" + file("logits/a.npy"), logits}, "--requests: expected a path that no array of --logits has, but got '");
  for (const char *option : {"--output=", "--stats=", "--trace=", "--metrics="})
    for (const char *name : {"logits/b.npy", "logits/b.npy.partial"})
      expectRefused({model(), in, logits, "--slow-tier=memory", "--slow-bytes=1MiB", option + file(name)}, ": expected a path that no array of --logits has, but got '");
  EXPECT_EQ(readFile(file("logits/a.npy")), requests);
  EXPECT_EQ(run({model(), in, logits, "--output=" + file("logits/out.jsonl")}), 0) << errors();
}

/// The parser would take it for the end of the line.
TEST_F(QuireRun, NothingIsHiddenBehindAZeroByte) {
  std::string line = "{\"id\": 1, \"prompt\": [3], \"max_new_tokens\": 2}";
  writeFile(file("in.jsonl"), line + std::string(1, '\0') + " rest\n{\"id\": 2, \"prompt\": [3], \"max_new_tokens\": 2}\n");
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl")}), 0) << errors();
  std::map<std::string, json> found = results();
  EXPECT_EQ(found["null"]["error"], "line 1: not valid JSON: column " + std::to_string(line.size() + 1) + ": expected no byte of value 0");
  EXPECT_EQ(found["2"]["tokens"].size(), 2u);
}

/// A run that fails later keeps what is finished, so no results means no run.
TEST_F(QuireRun, PathsThatCannotBeWrittenAreRefusedBeforeTheRun) {
  writeFile(file("in.jsonl"), "{\"id\": 1, \"prompt\": [3], \"max_new_tokens\": 2}\n");
  writeFile(file("a file"), "text");
  std::filesystem::create_directory(file("locked"));
  std::filesystem::permissions(file("locked"), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  std::string locked = ::geteuid() == 0 ? "/proc" : file("locked"); // root may write into the other one
  std::string in = "--requests=" + file("in.jsonl"), out = "--output=" + file("out.jsonl");
  auto refused = [&](const std::vector<std::string> &more, const std::string &text) {
    std::vector<std::string> all = {model(), in, out};
    all.insert(all.end(), more.begin(), more.end());
    expectRefused(all, text);
    EXPECT_FALSE(std::filesystem::exists(file("out.jsonl"))) << text;
    EXPECT_FALSE(std::filesystem::exists(file("out.jsonl.partial"))) << text;
    EXPECT_FALSE(std::filesystem::exists(file("logits"))) << text;
  };
  refused({"--logits=" + file("a file")}, "a file: expected a folder, but got a file");
  refused({"--logits=" + file("none/logits")}, "none/logits: No such file or directory");
  refused({"--logits=" + locked}, locked + ": no file can be made in this folder: ");
  std::string logits = "--logits=" + file("logits");
  refused({logits, "--stats=" + file("none/s.json")}, "none/s.json: No such file or directory");
  refused({logits, "--stats=" + locked + "/s.json"}, locked + "/s.json: ");
  refused({logits, "--stats=" + file("locked")}, "locked: Is a directory");
  std::string slow = "--slow-tier=memory", bytes = "--slow-bytes=1MiB";
  refused({logits, slow, bytes, "--trace=" + file("none/t.json")}, "none/t.json: No such file or directory");
  refused({logits, slow, bytes, "--trace=" + locked + "/t.json"}, locked + "/t.json: ");
  refused({logits, "--metrics=" + file("none/m.txt")}, "none/m.txt: No such file or directory");
  refused({logits, "--output=" + file("logits/none/out")}, "logits/none/out: No such file or directory");
  EXPECT_EQ(readFile(file("a file")), "text");
  // What was there stays, and files may lie in the folder that is made for the logits.
  std::filesystem::create_directory(file("kept"));
  expectRefused({model(), in, out, "--logits=" + file("kept"), "--stats=" + file("none/s.json")}, "No such file");
  EXPECT_TRUE(std::filesystem::is_empty(file("kept")));
  EXPECT_EQ(run({model(), in, logits, "--output=" + file("logits/out"), "--stats=" + file("logits/s")}), 0) << errors();
  for (const char *name : {"logits/1.npy", "logits/out", "logits/s"})
    EXPECT_TRUE(std::filesystem::exists(file(name))) << name;
}

TEST_F(QuireRun, DamagedModel) {
  writeFile(model() + "/weights.bin", "short");
  writeFile(file("in.jsonl"), requests);
  expectRefused({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl")},
                "quire-run: error: " + std::filesystem::canonical(model()).string() + "/weights.bin: expected ");
  EXPECT_FALSE(std::filesystem::exists(file("out.jsonl")));
}

TEST_F(QuireRun, HelpVersionDescribe) {
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_NE(readFile(file("stdout")).find("usage: quire-run MODEL.quire"), std::string::npos);
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(readFile(file("stdout")).rfind("quire-run ", 0), 0u);
  EXPECT_EQ(run({model(), "--describe", "--kv-bytes=1MiB"}), 0);
  EXPECT_NE(readFile(file("stdout")).find("with --kv-bytes of 1 MiB: 327 blocks"), std::string::npos);
  EXPECT_EQ(run({model(), "--describe", "--json"}), 0);
  EXPECT_EQ(json::parse(readFile(file("stdout")))["vocabulary"], 97);
  EXPECT_EQ(run({model(), "--describe", "--kv-bytes=20KB", "--slow-tier=memory", "--slow-bytes=30KB", "--slow-tier=file:" + file("x"), "--slow-bytes=70KB"}), 0);
  EXPECT_NE(readFile(file("stdout")).find("with --kv-bytes of 19.5 KiB and --slow-bytes of 97.7 KiB: "), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(file("x")));
  expectRefused({model(), "--describe", "--slow-tier=memory", "--slow-bytes=1KiB"},
                "slow tier 'memory': expected at least 1536 bytes, which one page takes, but got 1024; raise memory.slow.bytes (--slow-bytes)");
}

/// A started request's logits are an open file; the limit must hold them all before one is started.
TEST_F(QuireRun, OpenFilesAreEnoughOrRefused) {
  std::string lines;
  for (int i = 0; i < 64; ++i)
    lines += "{\"id\": " + std::to_string(i) + ", \"prompt\": [" + std::to_string(i) + "], \"max_new_tokens\": 20}\n";
  writeFile(file("in.jsonl"), lines);
  std::vector<std::string> all = {model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"),
                                  "--logits=" + file("logits"), "--max-batch=64"};
  openFiles = {32, 32};
  expectRefused(all, "--logits: expected a limit of at least 80 open files for a batch of 64 requests, but got 32");
  EXPECT_FALSE(std::filesystem::exists(file("out.jsonl")));
  EXPECT_FALSE(std::filesystem::exists(file("logits")));
  auto served = [&](const char *batch, const char *kvBytes) {
    all[4] = batch;
    std::vector<std::string> more = all;
    more.push_back(kvBytes);
    EXPECT_EQ(run(more), 0) << errors();
    EXPECT_EQ(results().size(), 64u);
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(std::filesystem::file_size(file("logits/" + std::to_string(i) + ".npy")), 128u + 20 * 97 * 4);
    std::filesystem::remove_all(file("logits"));
  };
  served("--max-batch=16", "--kv-bytes=4MiB");
  served("--max-batch=16", "--kv-bytes=20000"); // six blocks: requests give way
  openFiles = {32, 80};
  served("--max-batch=64", "--kv-bytes=4MiB");
}

/// The stop token is the last one, and the first of several decides.
TEST_F(QuireRun, StopIds) {
  std::vector<int64_t> all = toyGreedy({9, 8, 7}, 24);
  json line = {{"id", "s"}, {"prompt", {9, 8, 7}}, {"max_new_tokens", 24}, {"stop", {all[11], all[5]}}};
  size_t length = 1;
  while (all[length - 1] != all[11] && all[length - 1] != all[5])
    ++length;
  int64_t absent = 0;
  while (std::find(all.begin(), all.end(), absent) != all.end())
    ++absent;
  json other = {{"id", "o"}, {"prompt", {9, 8, 7}}, {"max_new_tokens", 24}, {"stop", {absent}}};
  writeFile(file("in.jsonl"), line.dump() + "\n" + other.dump() + "\n");
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl")}), 0) << errors();
  std::map<std::string, json> found = results();
  EXPECT_EQ(found["s"]["finish_reason"], "stop");
  EXPECT_EQ(found["s"]["tokens"].get<std::vector<int64_t>>(),
            std::vector<int64_t>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(length)));
  EXPECT_EQ(found["o"]["finish_reason"], "length");
  EXPECT_EQ(found["o"]["tokens"].get<std::vector<int64_t>>(), all);
}

/// A sampled request gives the same tokens alone and in a batch of four, in any place of it.
TEST_F(QuireRun, SamplingDoesNotDependOnTheBatch) {
  auto line = [](const std::string &id, int64_t first, uint64_t seed) {
    return "{\"id\": \"" + id + "\", \"prompt\": [" + std::to_string(first) +
           ", 5, 6], \"max_new_tokens\": 30, \"temperature\": 20, \"top_k\": 60, \"top_p\": 0.95, \"seed\": " +
           std::to_string(seed) + "}\n";
  };
  auto tokens = [&](const std::string &lines) {
    writeFile(file("in.jsonl"), lines);
    EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--max-batch=4",
                   "--stats=" + file("s.json")}),
              0)
        << errors();
    return results()["x"]["tokens"].get<std::vector<int64_t>>();
  };
  std::vector<int64_t> alone = tokens(line("x", 4, 11));
  EXPECT_EQ(alone.size(), 30u);
  EXPECT_NE(alone, toyGreedy({4, 5, 6}, 30));
  EXPECT_NE(alone, tokens(line("x", 4, 12)));
  for (int place = 0; place < 4; ++place) {
    std::string lines;
    for (int i = 0; i < 4; ++i)
      lines += i == place ? line("x", 4, 11) : line(std::to_string(i), i, static_cast<uint64_t>(i));
    EXPECT_EQ(tokens(lines), alone) << "place " << place;
    EXPECT_EQ(json::parse(readFile(file("s.json")))["max_sequences_in_step"], 4);
  }
}

/// Interrupted while it works: what is finished is there under its name.
TEST_F(QuireRun, InterruptKeepsFinishedResults) {
  std::filesystem::remove_all(model());
  writeToyFolder(model(), QUIRE_TOY_MODEL_UNLIMITED);
  writeFile(file("in.jsonl"), "{\"id\": \"quick\", \"prompt\": [2], \"max_new_tokens\": 3}\n"
                              "{\"id\": \"endless\", \"prompt\": [3], \"max_new_tokens\": 1000000}\n");
  for (int signal : {SIGINT, SIGTERM}) {
    pid_t child = start({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"),
                         "--logits=" + file("logits"), "--stats=" + file("s.json")});
    for (int i = 0; i < 1000 && readFile(file("out.jsonl.partial")).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(std::filesystem::exists(file("out.jsonl")));
    EXPECT_FALSE(std::filesystem::exists(file("s.json")));
    ::kill(child, signal);
    EXPECT_EQ(wait(child), 128 + signal);
    std::map<std::string, json> found = results();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found["quick"]["tokens"].get<std::vector<int64_t>>(), toyGreedy({2}, 3));
    EXPECT_TRUE(std::filesystem::exists(file("logits/quick.npy")));
    for (const char *name : {"out.jsonl.partial", "s.json.partial", "logits/endless.npy", "logits/endless.npy.partial"})
      EXPECT_FALSE(std::filesystem::exists(file(name))) << name;
    EXPECT_FALSE(json::parse(readFile(file("s.json")))["steps"].empty());
    EXPECT_NE(errors().find("interrupted: 1 of 2 requests are finished"), std::string::npos) << errors();
    for (const char *name : {"out.jsonl", "s.json", "logits"})
      std::filesystem::remove_all(file(name));
  }
}

// Builds without sanitizers check the bound; sanitizers shadow memory, which would count as the run's.
TEST_F(QuireRun, MemoryStaysWithinBudget) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers use memory of their own";
#endif
#endif
  writeFile(file("in.jsonl"), requests);
  EXPECT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=64MiB",
                 "--poison-free-blocks"}),
            0);
  EXPECT_LT(usage.ru_maxrss, (64 + 100) * 1024);
}

TEST_F(QuireRun, TwoTiers) {
  writeFile(file("in.jsonl"), requests);
  auto serve = [&](const std::string &name, std::vector<std::string> options) {
    options.insert(options.begin(), {model(), "--requests=" + file("in.jsonl"), "--output=" + file(name), "--kv-bytes=20KB"});
    EXPECT_EQ(run(options), 0) << errors();
    return readFile(file(name));
  };
  // Times differ.
  auto tokens = [](const std::string &lines) {
    std::map<std::string, json> found;
    std::istringstream input(lines);
    for (std::string line; std::getline(input, line);) {
      json result = json::parse(line);
      found[result["id"].dump()] = result["tokens"];
    }
    return found;
  };
  std::string plain = serve("plain.jsonl", {});
  std::string tiered = serve("tiered.jsonl", {"--slow-tier=file:" + file("pages"), "--slow-bytes=1MiB", "--doctor", "--stats=" + file("s.json"),
                                              "--trace=" + file("t.json")});
  EXPECT_NE(errors().find("hit_rate"), std::string::npos) << errors();
  EXPECT_EQ(tokens(tiered), tokens(plain));
  EXPECT_TRUE(json::parse(readFile(file("s.json"))).contains("tiers"));
  EXPECT_NE(readFile(file("t.json")).find("traceEvents"), std::string::npos);
  std::vector<std::string> two = {"--slow-tier=memory", "--slow-bytes=4KB", "--slow-tier=file:" + file("pages"), "--slow-bytes=1MiB"};
  two.push_back("--kv-bytes=12KB");
  two.push_back("--stats=" + file("two.json"));
  EXPECT_EQ(tokens(serve("two.jsonl", two)), tokens(plain));
  json stats = json::parse(readFile(file("two.json")))["tiers"];
  ASSERT_EQ(stats["slow"].size(), 2u);
  EXPECT_EQ(stats["slow"][0]["name"], "memory");
  EXPECT_EQ(stats["slow"][1]["name"], "file");
  int64_t upper = stats["slow"][0]["out"], lower = stats["slow"][1]["out"];
  EXPECT_GT(upper, 0);
  EXPECT_GT(lower, 0);
  EXPECT_GT(stats["slow"][1]["in"], 0);
  EXPECT_EQ(upper + lower, stats["write_backs"]);
  EXPECT_EQ(stats["slow"][0]["pages"].get<int64_t>() + stats["slow"][1]["pages"].get<int64_t>(), stats["slow_pages"]);
  EXPECT_FALSE(std::filesystem::exists(file("pages"))) << "it goes with the pool";
  two.back() = "--print-config";
  EXPECT_EQ(run(two), 0) << errors();
  std::string printed = readFile(file("stdout"));
  EXPECT_NE(printed.find("  slower: [\"file:" + file("pages") + " 1MiB\"]\n"), std::string::npos) << printed;
  writeFile(file("two.yaml"), printed);
  EXPECT_EQ(run({"--print-config", "--config=" + file("two.yaml")}), 0) << errors();
  EXPECT_EQ(readFile(file("stdout")), printed);
  EXPECT_EQ(run({"--print-config", "--config=" + file("two.yaml"), "--slow-bytes=16KB", "--slow-bytes=2MiB"}), 0) << errors();
  EXPECT_NE(readFile(file("stdout")).find(" 2MiB\"]\n"), std::string::npos) << readFile(file("stdout"));
  EXPECT_EQ(run({"--print-config", "--config=" + file("two.yaml"), "--slow-tier=none"}), 0) << errors();
  EXPECT_NE(readFile(file("stdout")).find("  slower: []\n"), std::string::npos);
  expectRefused({model(), "--slow-tier=memory", "--slow-bytes=1MiB", "--slow-tier=memory"}, "--slow-tier needs --slow-bytes");
  expectRefused({model(), "--slow-tier=memory", "--slow-bytes=1MiB", "--slow-bytes=1MiB"}, "--slow-bytes needs --slow-tier");
  expectRefused({model(), "--slow-tier=memory", "--slow-tier=none", "--slow-bytes=1MiB"}, "--slow-tier=none has no tiers beside it");
  expectRefused({model(), two[0], two[1], two[2], two[3], "--output=" + file("pages")}, "that of --slow-tier, '");
  expectRefused({model(), "--requests=" + file("in.jsonl"), two[2], "--slow-bytes=1024TiB"}, "lower memory.slow.bytes (--slow-bytes)");
  EXPECT_FALSE(std::filesystem::exists(file("pages")));
  expectRefused({model(), "--slow-tier=tape"}, "--slow-tier: ");
  expectRefused({model(), "--slow-tier=memory"}, "--slow-tier needs --slow-bytes");
  expectRefused({model(), "--slow-bytes=1MiB"}, "--slow-bytes needs --slow-tier");
  writeFile(file("tiers.yaml"), "memory: {slow: {bytes: 1MiB}}\n");
  expectRefused({model(), "--config=" + file("tiers.yaml")}, "memory.slow.bytes needs memory.slow.kind, or --slow-tier");
  EXPECT_EQ(run({"--print-config", "--config=" + file("tiers.yaml"), "--slow-tier=memory"}), 0) << errors();
  writeFile(file("tiers.yaml"), "memory: {slow: {kind: memory, bytes: 1MiB, path: " + file("pages") + "}}\n");
  expectRefused({model(), "--config=" + file("tiers.yaml")}, "memory.slow.path needs memory.slow.kind: file");
  EXPECT_EQ(run({"--print-config", "--config=" + file("tiers.yaml"), "--slow-tier=memory"}), 0) << errors();
  expectRefused({model(), "--trace=" + file("t.json")}, "--trace needs --slow-tier");
  expectRefused({model(), "--slow-tier=memory", "--slow-bytes=x"}, "--slow-bytes: expected a size");
  expectRefused({model(), "--replace=mru"}, "--replace: expected scan, lru, importance or arc, but got 'mru'");
  for (const char *window : {"-1", "1025", "x"}) // what prefetch.window_size takes
    expectRefused({model(), std::string("--prefetch-window=") + window}, "--prefetch-window: expected a number of 0 to 1024, but got '" + std::string(window) + "'");
}
