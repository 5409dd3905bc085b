// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Experiments against arithmetic, and the command line of quire-kv-experiments.
#include "Experiment.h"
#include "ShapeModel.h"
#include "Workloads.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>

#include <sys/wait.h>

using namespace quire::kvbench;

namespace {

Options small() {
  Options options;
  options.quick = true;
  options.repeats = 2;
  return options;
}

/// Exit code; standard output and error together in `text`.
int run(const std::string &arguments, std::string &text) {
  std::FILE *pipe = ::popen((std::string(QUIRE_KV_EXPERIMENTS) + " " + arguments + " 2>&1").c_str(), "r");
  text.clear();
  char buffer[4096];
  while (size_t count = std::fread(buffer, 1, sizeof(buffer), pipe))
    text.append(buffer, count);
  return WEXITSTATUS(::pclose(pipe));
}

} // namespace

TEST(Statistics, QuartilesAreInterpolated) {
  Json values = spread({5, 1, 3, 2, 4});
  EXPECT_EQ(values["median"], 3);
  EXPECT_EQ(values["q1"], 2);
  EXPECT_EQ(values["q3"], 4);
  EXPECT_EQ(medianOf({1, 2}), 1.5);
  EXPECT_TRUE(claim("in between", 2, 1, 3)["holds"]);
  EXPECT_FALSE(claim("below", 0.5, 1, 3)["holds"]);
}

/// saved = 1 - E[ceil(L / B) B] / Lmax, but for the bytes of tables; the seeds are those of the experiment. Groups of 128 codes
/// and a scale take 132 of 256 bytes in int8.
TEST(E1, SavesWhatTheFormulasSay) {
  Options options = small();
  options.repeats = 1;
  Json result = savings(options);
  int64_t sequences = result["parameters"]["sequences"];
  ASSERT_EQ(result["rows"].size(), 2u * 2u * std::size(allLengths));
  size_t checked = 0;
  for (const Json &row : result["rows"])
    for (Lengths lengths : allLengths) {
      if (row["lengths"] != lengthsName(lengths))
        continue;
      int64_t most = row["longest"], block = row["block_tokens"];
      Random random(options.seed);
      double slots = 0;
      for (int64_t i = 0; i < sequences; ++i)
        slots += static_cast<double>((drawLength(lengths, most, random) + block - 1) / block * block);
      double expected = 1 - slots / static_cast<double>(sequences * most);
      EXPECT_NEAR(row["saved"]["median"], expected, 1e-3) << row["lengths"];
      EXPECT_LE(row["saved"]["median"], expected); // tables are counted
      ++checked;
    }
  EXPECT_EQ(checked, result["rows"].size());
  for (const Json &row : result["rows"]) {
    double used = 1 - row["saved"]["median"].get<double>();
    EXPECT_NEAR(row["saved_int8"], 1 - used * 132 / 256, 1e-9);
    EXPECT_NEAR(row["saved_int4"], 1 - used * 68 / 256, 1e-9);
    EXPECT_NEAR(row["saved_fp8"], 1 - used / 2, 1e-9);
  }
  for (const Json &row : result["growth"])
    EXPECT_NEAR(row["saved"], row["expected"], 0.01);
}

TEST(E2, EightRegionsLeaveNothingToGain) {
  Json result = throughput(small());
  size_t seen = 0;
  for (const Json &row : result["rows"])
    if (row["arena"] == 8.0 && row["cost"] == "constant") {
      EXPECT_NEAR(row["speedup"]["median"], 1, 0.01) << row["lengths"];
      ++seen;
    }
  EXPECT_EQ(seen, std::size(allLengths));
}

/// Of the predictors on sparse attention only digests know the query; none of them changes what is read.
TEST(E5, PredictorsSideBySide) {
  Json result = prefetching(small()), again = prefetching(small());
  EXPECT_EQ(result, again);
  std::map<std::string, std::map<int, Json>> rows; // sparse, 2 GB/s, by strategy and window
  size_t sparse = 0;
  for (const Json &row : result["rows"]) {
    EXPECT_NE(row["trace"] == "dense" && row["strategy"] == "digest", true);
    sparse += row["trace"] == "sparse";
    if (row["window"] == 0) {
      EXPECT_EQ(row["time"]["median"], 1.0);
      EXPECT_EQ(row["bytes"]["median"], 1.0);
      EXPECT_TRUE(row["accuracy"].is_null());
    }
    if (row["trace"] == "sparse" && row["bandwidth"] == 2e9)
      rows[row["strategy"]][row["window"]] = row;
  }
  EXPECT_EQ(sparse, 5u * 6 * 5);
  ASSERT_EQ(rows.size(), 5u);
  for (int window : {1, 2, 3, 5, 8}) {
    const Json &digest = rows["digest"][window];
    EXPECT_GT(digest["coverage"]["median"], rows["layer_ahead"][window]["coverage"]["median"]) << window;
    EXPECT_GT(digest["coverage"]["median"], rows["seed_hotspot"][window]["coverage"]["median"]) << window;
    EXPECT_GT(digest["accuracy"]["median"], rows["layer_ahead"][window]["accuracy"]["median"]) << window;
    EXPECT_LT(digest["time"]["median"], 1.0) << window;
    EXPECT_LE(digest["stall_share"]["median"], rows["digest"][0]["stall_share"]["median"]) << window;
  }
}

TEST(E7, BlocksOfOneSizeNeverRefuseWithRoom) {
  Json result = fragmentation(small());
  EXPECT_EQ(result["rows"][0]["refused_with_room"]["median"], 0.0);
  for (const Json &row : result["strides"]) {
    EXPECT_EQ(row["segment_waste"], row["stride"].get<double>());
    EXPECT_TRUE(row["all_free_blocks_served"]);
  }
}

TEST(E12, NoByteIsWrong) {
  Json result = faults(small());
  double injected = 0;
  for (const Json &row : result["rows"]) {
    EXPECT_EQ(row["wrong_bytes"], 0) << row;
    EXPECT_TRUE(row["whole"]) << row;
    injected += row["injected"].get<double>();
  }
  EXPECT_GT(injected, 1000);
}

class Experiments : public ::testing::TestWithParam<Experiment> {};

TEST_P(Experiments, EachStatesWhatItDoes) {
  Json result = GetParam().run(small());
  for (const char *key : {"workload", "baseline", "formula"})
    EXPECT_GT(result[key].get<std::string>().size(), 10u) << key;
  EXPECT_FALSE(result["rows"].empty());
  EXPECT_FALSE(result["claims"].empty());
  for (const Json &one : result["claims"])
    EXPECT_TRUE(std::isfinite(one["measured"].get<double>())) << one;
}

INSTANTIATE_TEST_SUITE_P(All, Experiments, ::testing::ValuesIn(experiments()), [](const auto &info) { return std::string(info.param.name); });

TEST(MarkModel, SeesAByteThatChanged) {
  Shape shape = {2, 1, 16, QUIRE_ELEMENT_F16, 4};
  ShapeModel model(shape, Work::Mark);
  ShapePool pool(model, {16});
  auto executor = pool.executor(model, 64, 1, 1);
  quire_sequence sequence;
  check(quire_sequence_create(pool.get(), &sequence));
  check(tryStep(executor.get(), {{sequence, 10, 3}}));
  check(tryStep(executor.get(), {{sequence, 1, 3}}));
  EXPECT_EQ(model.wrongBytes(), 0);
  const int32_t *table;
  int64_t count;
  void *address;
  check(quire_sequence_table(pool.get(), sequence, &table, &count));
  check(quire_pool_block_address(pool.get(), 1, table[2], &address));
  static_cast<char *>(address)[5] ^= 1;
  check(tryStep(executor.get(), {{sequence, 1, 3}}));
  EXPECT_EQ(model.wrongBytes(), 8); // whole words
}

TEST(CommandLine, RunsAndRefuses) {
  std::string text;
  EXPECT_EQ(run("--help", text), 0);
  EXPECT_NE(text.find("usage: quire-kv-experiments"), std::string::npos);
  EXPECT_EQ(run("--list", text), 0);
  EXPECT_NE(text.find("E13"), std::string::npos);
  EXPECT_EQ(run("E7 --quick --repeats=1", text), 0);
  EXPECT_EQ(Json::parse(text)["E7"]["quick"], true);
  EXPECT_EQ(run("E99", text), 1);
  EXPECT_NE(text.find("expected an experiment, but got 'E99'"), std::string::npos);
  EXPECT_EQ(run("", text), 1);
  EXPECT_NE(text.find("expected an experiment, but got none"), std::string::npos);
  EXPECT_EQ(run("E1 --repeats=0", text), 1);
  EXPECT_NE(text.find("--repeats: expected a number from 1, but got '0'"), std::string::npos);
  EXPECT_EQ(run("E2 --costs=/nowhere/costs.json", text), 1);
  EXPECT_NE(text.find("/nowhere/costs.json: cannot be read"), std::string::npos);
}
