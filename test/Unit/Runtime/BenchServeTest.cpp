// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The line protocol of quire-bench: one answer a line, whatever the line is.
#include "ToyFolder.h"
#include "bench/Serve.h"

#include <gtest/gtest.h>

#include <sstream>

using namespace quire::test;
using nlohmann::json;

namespace {

class BenchServe : public ::testing::Test {
protected:
  void SetUp() override {
    writeToyFolder(temporary / "toy.quire", QUIRE_TOY_MODEL);
    quire::bench::SessionOptions options;
    options.model = temporary / "toy.quire";
    options.threads = 1;
    ASSERT_TRUE(session.load(options)) << session.error();
  }

  std::vector<json> serve(const std::string &lines) {
    std::istringstream input(lines);
    std::stringstream output;
    quire::bench::serve(session, input, output);
    std::vector<json> answers;
    for (std::string line; std::getline(output, line);)
      answers.push_back(json::parse(line));
    return answers;
  }

  TemporaryFolder temporary;
  quire::bench::Session session;
};

} // namespace

TEST_F(BenchServe, Operations) {
  std::vector<json> answers = serve("{\"op\":\"setup\",\"ctx\":[20,5]}\n{\"op\":\"steps\",\"n\":2}\n"
                                    "{\"op\":\"prefill\",\"n\":3}\n{\"op\":\"free\"}\n{\"op\":\"mem\"}\n"
                                    "{\"op\":\"quit\"}\n{\"op\":\"mem\"}\n");
  ASSERT_EQ(answers.size(), 5u);
  EXPECT_EQ(answers[0]["kv_bytes"], 3 * 3200);
  EXPECT_EQ(answers[1]["steps"].size(), 2u);
  EXPECT_TRUE(answers[2]["t"].is_number());
  EXPECT_EQ(answers[3], json::object());
  EXPECT_GT(answers[4]["VmRSS"], 0);
}

TEST_F(BenchServe, BadLines) {
  std::vector<json> answers = serve("x\n[]\n{\"op\":\"sleep\"}\n{\"op\":\"mem\",\"op\":\"quit\"}\n"
                                    "{\"op\":\"setup\",\"ctx\":[-1]}\n{\"op\":\"steps\",\"n\":0}\n");
  ASSERT_EQ(answers.size(), 6u);
  EXPECT_EQ(answers[0]["error"], "not valid JSON: column 1: expected a value, but got 'x': invalid literal");
  EXPECT_EQ(answers[1]["error"], "expected a JSON object with 'op'");
  EXPECT_EQ(answers[2]["error"], "expected op setup, steps, prefill, free, mem or quit, but got 'sleep'");
  EXPECT_EQ(answers[3]["error"], "key \"op\" comes twice");
  EXPECT_EQ(answers[4]["error"], "setup: expected 'ctx', a list of lengths");
  EXPECT_EQ(answers[5]["error"], "steps: expected 'n', a number of 1 to 1000000");
}

TEST_F(BenchServe, DeepNesting) {
  std::string lists(1 << 20, '['), ends(1 << 20, ']'), objects;
  for (int i = 0; i < 200000; ++i)
    objects += "{\"a\":";
  std::vector<json> answers = serve(lists + "\n" + objects + "\n{\"op\":\"setup\",\"ctx\":" + lists + ends +
                                    "}\n{\"op\":" + lists + ends + "}\n{\"op\":\"free\"}\n");
  ASSERT_EQ(answers.size(), 5u);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(answers[static_cast<size_t>(i)]["error"],
              "expected at most 32 levels of arrays and objects, but got more");
  EXPECT_EQ(answers[4], json::object());
}
