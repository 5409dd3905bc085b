// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What quire-run --metrics writes: the counts of the run, which its statistics have, too.
#include "StartedQuireRun.h"

using namespace quire::test;
using nlohmann::json;

namespace {

/// Of all samples that have the name, and `label` if it is not empty.
double sumOf(const std::string &text, const std::string &name, const std::string &label = "") {
  std::istringstream lines(text);
  double sum = 0;
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    size_t end = line.find_first_of("{ ");
    if (line.substr(0, end) != name || line.find(label) == std::string::npos)
      continue;
    sum += std::stod(line.substr(line.rfind(' ') + 1));
    ++found;
  }
  EXPECT_GT(found, 0) << name << " " << label;
  return sum;
}

} // namespace

TEST_F(QuireRun, MetricsAreThoseOfTheRun) {
  std::vector<int64_t> shared(70, 3);
  std::string lines;
  for (int i = 0; i < 6; ++i) {
    std::vector<int64_t> prompt = shared;
    prompt.push_back(10 + i);
    lines += json({{"id", i}, {"tenant", i % 2 ? "acme" : "zen"}, {"prompt", prompt}, {"max_new_tokens", 20}}).dump() + "\n";
  }
  writeFile(file("in.jsonl"), lines);
  ASSERT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=20KB", "--slow-tier=memory", "--slow-bytes=1MiB",
                 "--prefix-cache", "--max-batch=2", "--stats=" + file("s.json"), "--metrics=" + file("m.txt")}),
            0)
      << errors();
  std::string text = readFile(file("m.txt"));
  json stats = json::parse(readFile(file("s.json"))), tiers = stats["tiers"];
  EXPECT_GT(tiers["demands"]["misses"], 0);
  EXPECT_EQ(sumOf(text, "quire_demands_total", "outcome=\"miss\""), tiers["demands"]["misses"]);
  EXPECT_EQ(sumOf(text, "quire_demands_total", "outcome=\"hit\""), tiers["demands"]["hits"]);
  EXPECT_EQ(sumOf(text, "quire_write_backs_total"), tiers["write_backs"]);
  EXPECT_EQ(sumOf(text, "quire_slow_tier_pages"), tiers["slow_pages"]);
  EXPECT_EQ(sumOf(text, "quire_block_bytes"), stats["block_bytes"]);
  EXPECT_EQ(sumOf(text, "quire_blocks"), stats["blocks_total"]);
  EXPECT_EQ(sumOf(text, "quire_sequences"), 0);
  EXPECT_EQ(sumOf(text, "quire_blocks_free") + sumOf(text, "quire_blocks_reclaimable"), stats["blocks_total"]);
  EXPECT_GT(sumOf(text, "quire_blocks_reclaimable"), 0) << "what is cached";
  EXPECT_GT(stats["prefix"]["hit_tokens"], 0);
  for (const char *name : {"queries", "query_tokens", "hit_tokens", "blocks_published", "blocks_merged", "blocks_evicted", "blocks_expired"})
    EXPECT_EQ(sumOf(text, "quire_prefix_" + std::string(name) + "_total"), stats["prefix"][name]) << name;
  EXPECT_EQ(sumOf(text, "quire_prefix_queries_total", "tenant=\"1\""), 3) << "in the order in which requests named them";
}

/// Without a slow tier there are no pages, but blocks.
TEST_F(QuireRun, MetricsOfOneTier) {
  writeFile(file("in.jsonl"), "{\"id\": 1, \"prompt\": [2], \"max_new_tokens\": 3}\n");
  ASSERT_EQ(run({model(), "--requests=" + file("in.jsonl"), "--output=" + file("out.jsonl"), "--kv-bytes=64KiB", "--stats=" + file("s.json"), "--metrics=" + file("m.txt")}), 0)
      << errors();
  std::string text = readFile(file("m.txt"));
  EXPECT_EQ(sumOf(text, "quire_blocks"), json::parse(readFile(file("s.json")))["blocks_total"]);
  EXPECT_EQ(sumOf(text, "quire_demands_total"), 0);
  EXPECT_EQ(text.find("quire_prefix_"), std::string::npos) << "nobody is a tenant";
  expectRefused({model(), "--metrics="}, "--metrics: expected a file, but got ''");
  expectRefused({model(), "--config="}, "--config: expected a file, but got ''");
}
