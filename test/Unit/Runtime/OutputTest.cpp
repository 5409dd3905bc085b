// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Result files: temporary names, NumPy layout, JSON lines, descriptions.
#include "ToyFolder.h"
#include "ToyReference.h"
#include "serving/Describe.h"
#include "serving/OutputFile.h"
#include "serving/ResultWriter.h"
#include "serving/Statistics.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include <sys/resource.h>

using namespace quire::serving;
using namespace quire::test;

static Request named(const std::string &id, Request::IdKind kind, int64_t line) {
  Request r;
  r.id = id;
  r.idKind = kind;
  r.line = line;
  r.prompt = {1, 2};
  return r;
}

TEST(OutputFile, AppearsWhenFinished) {
  TemporaryFolder temporary;
  std::string path = temporary / "out";
  {
    OutputFile file;
    ASSERT_TRUE(file.open(path));
    ASSERT_TRUE(file.write("abcdef", 6) && file.rewrite(2, "XY", 2) && file.write("!", 1) && file.flush());
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_EQ(readFile(path + ".partial"), "abXYef!");
    ASSERT_TRUE(file.finish());
  }
  EXPECT_EQ(readFile(path), "abXYef!");
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  {
    OutputFile dropped;
    ASSERT_TRUE(dropped.open(path));
    ASSERT_TRUE(dropped.write("new", 3));
  }
  EXPECT_EQ(readFile(path), "abXYef!"); // the old one stays
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

TEST(OutputFile, LinksStay) {
  TemporaryFolder temporary;
  writeFile(temporary / "file", "old");
  std::filesystem::create_symlink("file", temporary / "link");
  OutputFile file;
  ASSERT_TRUE(file.open(temporary / "link"));
  ASSERT_TRUE(file.write("new", 3) && file.finish()) << file.error();
  EXPECT_TRUE(std::filesystem::is_symlink(temporary / "link"));
  EXPECT_EQ(readFile(temporary / "file"), "new");
  EXPECT_FALSE(std::filesystem::exists(temporary / "file.partial"));
}

TEST(OutputFile, HasOneWriter) {
  TemporaryFolder temporary;
  std::string path = temporary / "out";
  writeFile(path + ".partial", "of a process that was killed");
  OutputFile first;
  ASSERT_TRUE(first.open(path)) << first.error();
  ASSERT_TRUE(first.write("one", 3) && first.flush());
  {
    OutputFile second;
    EXPECT_FALSE(second.open(path));
    EXPECT_EQ(second.error(), path + ": another process is writing it, into '" + path + ".partial'");
  }
  EXPECT_EQ(readFile(path + ".partial"), "one");
  ASSERT_TRUE(first.finish()) << first.error();
  EXPECT_EQ(readFile(path), "one");
  OutputFile third;
  ASSERT_TRUE(third.open(path)) << third.error();
  EXPECT_TRUE(third.write("three", 5) && third.finish());
  EXPECT_EQ(readFile(path), "three");
}

// A limit on the size of files stands for a disk that becomes full.
TEST(OutputFile, KeepsWhatWasFlushed) {
  for (OutputFile::Keep keep : {OutputFile::Keep::Flushed, OutputFile::Keep::Whole}) {
    TemporaryFolder temporary;
    std::string path = temporary / "out", lines(4000, 'x'), more(4000, 'y');
    OutputFile file;
    ASSERT_TRUE(file.open(path, keep));
    ASSERT_TRUE(file.write(lines.data(), lines.size()) && file.flush());
    struct rlimit before, small;
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 6000;
    auto *handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    EXPECT_FALSE(file.write(more.data(), more.size()) && file.flush());
    EXPECT_FALSE(file.finish());
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(file.error(), path + ": File too large");
    EXPECT_EQ(std::filesystem::exists(path), keep == OutputFile::Keep::Flushed);
    if (keep == OutputFile::Keep::Flushed) {
      EXPECT_EQ(readFile(path), lines);
    }
    EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  }
}

TEST(OutputFile, ReportsFailures) {
  TemporaryFolder temporary;
  OutputFile file;
  EXPECT_FALSE(file.open(temporary / "no/such/folder"));
  EXPECT_NE(file.error().find("no/such/folder: No such file"), std::string::npos);
  OutputFile null;
  ASSERT_TRUE(null.open("/dev/null")); // written directly, not replaced
  ASSERT_TRUE(null.write("x", 1) && null.finish());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  OutputFile full;
  ASSERT_TRUE(full.open("/dev/full"));
  full.write("x", 1);
  EXPECT_FALSE(full.finish());
  EXPECT_NE(full.error().find("No space left"), std::string::npos);
}

TEST(ResultWriter, NumpyFile) {
  TemporaryFolder temporary;
  ResultWriter writer;
  ASSERT_TRUE(writer.open(temporary / "out.jsonl", temporary / "logits", 3)) << writer.error();
  Request r = named("x", Request::IdKind::Text, 1);
  float rows[2][3] = {{1, 2, 3}, {4, 5, -6}};
  ASSERT_TRUE(writer.addLogits(r, rows[0]) && writer.addLogits(r, rows[1]));
  EXPECT_FALSE(std::filesystem::exists(temporary / "logits/x.npy"));
  Result result;
  result.reason = FinishReason::Length;
  ASSERT_TRUE(writer.addResult(r, result)) << writer.error();
  std::string file = readFile(temporary / "logits/x.npy");
  ASSERT_EQ(file.size(), 128 + sizeof(rows));
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(file.substr(10, 61), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  ");
  EXPECT_EQ(file[127], '\n');
  EXPECT_EQ(std::memcmp(file.data() + 128, rows, sizeof(rows)), 0);
  // What has no result leaves no file.
  ASSERT_TRUE(writer.addLogits(named("y", Request::IdKind::Text, 2), rows[0]));
  ASSERT_TRUE(writer.finish());
  EXPECT_FALSE(std::filesystem::exists(temporary / "logits/y.npy"));
  EXPECT_FALSE(std::filesystem::exists(temporary / "logits/y.npy.partial"));
}

TEST(ResultWriter, UnfinishedLeavesNothing) {
  TemporaryFolder temporary;
  std::string folder = temporary / "logits";
  {
    ResultWriter writer;
    ASSERT_TRUE(writer.open(folder + "/out.jsonl", folder, 1)) << writer.error();
    float row = 1;
    ASSERT_TRUE(writer.addLogits(named("x", Request::IdKind::Text, 1), &row));
    EXPECT_TRUE(std::filesystem::exists(folder + "/x.npy.partial"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST(ResultWriter, Lines) {
  Result good;
  good.reason = FinishReason::Stop;
  good.tokens = {4, 5};
  good.firstTokenMs = 1.23456;
  good.decodeMsPerToken = 0.5;
  EXPECT_EQ(
      resultLine(named("-3", Request::IdKind::Integer, 1), good),
      R"({"id":-3,"tokens":[4,5],"finish_reason":"stop","prompt_tokens":2,"ttft_ms":1.235,"decode_ms_per_token":0.5})");
  Result bad;
  bad.error = "line 2: \"\xff\"";
  EXPECT_EQ(resultLine(named("", Request::IdKind::None, 2), bad),
            "{\"id\":null,\"tokens\":[],\"finish_reason\":\"error\",\"prompt_tokens\":2,\"ttft_ms\":null,"
            "\"decode_ms_per_token\":null,\"error\":\"line 2: \\\"\xef\xbf\xbd\\\"\"}");
}

TEST(Statistics, Json) {
  Statistics s;
  s.blockTokens = 16;
  s.finalBlockTables = {{"a", {3, 1}}};
  s.steps = {{5, 2, 70, 1.5}};
  s.prefetchIssued = 4;
  s.blockEvents = {{0, "a", {3, 1}}, {1, "a", {}}};
  nlohmann::json read = nlohmann::json::parse(statisticsJson(s));
  EXPECT_EQ(read["engine"], "compiled");
  EXPECT_EQ(read["block_tokens"], 16);
  EXPECT_EQ(read["final_block_tables"]["a"], (std::vector<int>{3, 1}));
  EXPECT_EQ(read["steps"][0]["kv_tokens"], 70);
  EXPECT_EQ(read["steps"][0]["ms"], 1.5);
  EXPECT_EQ(read["prefetch"]["issued"], 4);
  EXPECT_EQ(read["block_events"][0].dump(), R"({"id":"a","step":0,"taken":[3,1]})");
  EXPECT_EQ(read["block_events"][1].dump(), R"({"id":"a","released":true,"step":1})");
  for (const char *key : {"block_bytes", "blocks_total", "blocks_peak", "max_sequences_in_step",
                          "max_prefill_tokens_in_step", "preemptions", "kv_copy_bytes"})
    EXPECT_TRUE(read.contains(key)) << key;
}

TEST(Statistics, EveryKeyIsDocumented) {
  Statistics s;
  s.steps = {{}};
  s.blockEvents = {{0, "a", {1}}, {1, "a", {}}};
  std::string text = readFile(QUIRE_RUNTIME_DOC);
  text = text.substr(text.find("`--stats=FILE`"));
  text = text.substr(0, text.find("\n## "));
  auto expectKeys = [&](const nlohmann::json &object) {
    for (const auto &[key, value] : object.items())
      EXPECT_NE(text.find("`" + key + "`"), std::string::npos) << key;
  };
  nlohmann::json read = nlohmann::json::parse(statisticsJson(s));
  expectKeys(read);
  expectKeys(read["prefetch"]);
  expectKeys(read["steps"][0]);
  expectKeys(read["block_events"][0]);
  expectKeys(read["block_events"][1]);
}

static Budget budgetOf(const quire::runtime::Manifest &manifest, uint64_t bytes) {
  Budget budget;
  EXPECT_TRUE(readBudget(manifest, bytes, nullptr, false, budget).ok());
  return budget;
}

TEST(Describe, TextAndJson) {
  TemporaryFolder temporary;
  writeToyFolder(temporary / "m", QUIRE_TOY_MODEL);
  quire::runtime::Manifest manifest;
  ASSERT_TRUE(quire::runtime::readManifest((temporary / "m").string(), manifest).ok());
  std::string text = describeText("m", manifest, budgetOf(manifest, 3200 * 40));
  for (const char *part : {"200 bytes a token, blocks of 16 tokens, 3200 bytes a block", "40 blocks, 640 tokens",
                           "layer 1", "1 kv heads, key 8, value 2, f32, 4 lanes", "at most 256", "97 logits"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  nlohmann::json read = nlohmann::json::parse(describeJson("m", manifest, budgetOf(manifest, 3200 * 40)));
  EXPECT_EQ(read["kv_bytes_per_token"], 200);
  EXPECT_EQ(read["block_bytes"], 3200);
  EXPECT_EQ(read["layers"].size(), 3u);
  EXPECT_EQ(read["budget"]["blocks"], 40);
  EXPECT_EQ(read["budget"]["fits"][0]["tokens"], 128);
  EXPECT_EQ(read["budget"]["fits"][0]["sequences"], 5);
  EXPECT_EQ(read["budget"]["fits"][0]["in_step"], 5);
  EXPECT_EQ(read["budget"]["fits"][1]["tokens"], 256);
  EXPECT_EQ(read["budget"]["slow_bytes"], 0);
  EXPECT_FALSE(read["budget"].contains("pages"));
  EXPECT_TRUE(read["target"]["runs_here"].get<bool>());
  EXPECT_FALSE(read["machine"]["features"].empty());
  manifest.features.push_back("unknown-feature");
  EXPECT_NE(describeText("m", manifest, budgetOf(manifest, 1)).find("does not run on this machine"), std::string::npos);
}

/// What is described is what a pool has.
TEST(Describe, SlowTiersAreThoseOfAPool) {
  TemporaryFolder temporary;
  writeToyFolder(temporary / "m", QUIRE_TOY_MODEL);
  quire::runtime::Manifest manifest;
  ASSERT_TRUE(quire::runtime::readManifest((temporary / "m").string(), manifest).ok());
  quire_model_info info = manifest.describe();
  std::string path = "file:" + (temporary / "pages").string();
  quire_lower_tier_options lower = {};
  lower.struct_size = sizeof(lower);
  lower.where = path.c_str();
  lower.bytes = 300000;
  quire_slow_tier_options usual = {};
  usual.struct_size = sizeof(usual);
  usual.where = "memory";
  usual.bytes = 100000;
  struct Case {
    const char *name;
    bool stable;
    void (*change)(quire_slow_tier_options &slow, const quire_lower_tier_options &lower);
  };
  const Case cases[] = {{"memory", false, [](auto &, auto &) {}},
                        {"addresses", true, [](auto &, auto &) {}},
                        {"file", false, [](auto &slow, auto &lower) { slow.where = lower.where; }},
                        {"two", false, [](auto &slow, auto &lower) { slow.lower = &lower; }},
                        {"codec", false, [](auto &slow, auto &) { slow.codec = "int8_g128"; }},
                        {"layers", false, [](auto &slow, auto &) { slow.layers_per_page = 2; }},
                        {"cache", false, [](auto &slow, auto &) { slow.page_rule = QUIRE_PAGES_BY_CACHE; }}};
  for (const Case &each : cases) {
    quire_slow_tier_options slow = usual;
    each.change(slow, lower);
    quire_pool_options options = {};
    options.struct_size = sizeof(options);
    options.bytes = 40000;
    options.stable_va = each.stable;
    options.slow = &slow;
    Budget budget;
    ASSERT_TRUE(readBudget(manifest, options.bytes, &slow, each.stable, budget).ok()) << each.name;
    EXPECT_FALSE(std::filesystem::exists(temporary / "pages")) << "describing makes nothing";
    quire_pool *pool = nullptr;
    ASSERT_EQ(quire_pool_create(&info, &options, &pool), QUIRE_OK) << each.name << ": " << quire_last_error();
    quire_pool_stats stats = {};
    quire_paging_stats paging = {};
    stats.struct_size = sizeof(stats);
    paging.struct_size = sizeof(paging);
    ASSERT_EQ(quire_pool_get_stats(pool, &stats), QUIRE_OK);
    ASSERT_EQ(quire_pool_get_paging_stats(pool, &paging), QUIRE_OK);
    quire_pool_destroy(pool);
    auto expect = [&](const char *what, uint64_t described, int64_t had) { EXPECT_EQ(described, static_cast<uint64_t>(had)) << each.name << ": " << what; };
    expect("blocks", budget.plan.blocks, stats.blocks_total);
    expect("blocks of a step", budget.plan.stepBlocks, stats.step_blocks);
    expect("bytes of a page", budget.plan.pageBytes, paging.page_bytes);
    expect("fast pages", budget.plan.fastPages, paging.fast_pages);
    expect("slow pages", budget.plan.slowPages, paging.slow_pages);
    expect("bytes below", budget.slowBytes, slow.lower ? 400000 : 100000);
  }
  Budget budget;
  usual.page_rule = QUIRE_PAGES_BY_TRANSFER;
  EXPECT_EQ(readBudget(manifest, 40000, &usual, false, budget).text(),
            "--describe makes no tier, but block.auto: io chooses pages by measured transfers; give block.layers_per_block or block.auto: l2");
  usual.page_rule = QUIRE_PAGES_OF_ONE_LAYER;
  ASSERT_TRUE(readBudget(manifest, 12 * 1536, &usual, false, budget).ok());
  std::string text = describeText("m", manifest, budget);
  for (const char *part : {"with --kv-bytes of 18 KiB and --slow-bytes of 97.7 KiB: 25 blocks, 400 tokens\n", "  pages             1536 bytes, 12 in the fast tier, 65 in slow ones\n",
                           "  a step            12 blocks of a layer, at most\n", "  128 tokens        3 sequences, 1 in a step\n", "  256 tokens        0 sequences, 0 in a step\n"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  nlohmann::json read = nlohmann::json::parse(describeJson("m", manifest, budget))["budget"];
  EXPECT_EQ(read["pages"].dump(), R"({"bytes":1536,"fast":12,"slow":65})");
  EXPECT_EQ(read["slow_bytes"], 100000);
  EXPECT_EQ(read["step_blocks"], 12);
  EXPECT_EQ(read["fits"][1].dump(), R"({"in_step":0,"sequences":0,"tokens":256})");
}

TEST(Describe, ReadableBytes) {
  EXPECT_EQ(readableBytes(0), "0 B");
  EXPECT_EQ(readableBytes(1023), "1023 B");
  EXPECT_EQ(readableBytes(uint64_t(256) << 20), "256 MiB");
  EXPECT_EQ(readableBytes(1536), "1.5 KiB");
}
