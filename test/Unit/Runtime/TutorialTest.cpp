// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The commands of the tutorials about the runtime, run as they stand.
#include "ToyFolder.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

using namespace quire::test;
using nlohmann::json;

namespace {

/// What stands between "```sh" and "```".
std::string commandsOf(const std::string &page) {
  std::istringstream lines(readFile(page));
  std::string out;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("```", 0) == 0)
      inside = line == "```sh";
    else if (inside)
      out += line + "\n";
  }
  return out;
}

class Tutorial : public ::testing::Test {
protected:
  void follow(const std::string &name) {
    writeToyFolder(temporary / "model.quire", QUIRE_TOY_MODEL);
    std::string commands = commandsOf(std::string(QUIRE_TUTORIALS) + "/" + name);
    ASSERT_NE(commands, "");
    writeFile(temporary / "commands", commands);
    std::string tools = std::filesystem::path(QUIRE_RUN).parent_path();
    std::string line =
        "cd '" + std::string(temporary / ".") + "' && PATH='" + tools + "':\"$PATH\" bash -eu commands > said 2>&1";
    EXPECT_EQ(std::system(line.c_str()), 0) << readFile(temporary / "said");
    statistics = json::parse(readFile(temporary / "stats.json"));
  }

  TemporaryFolder temporary;
  json statistics;
};

} // namespace

TEST_F(Tutorial, Dialogue) {
  follow("dialogue.md");
  EXPECT_GT(statistics["tiers"]["pins"]["budget_blocks"], 0);
  EXPECT_GT(statistics["tiers"]["demands"]["misses"], 0) << "everything fitted into memory";
  EXPECT_NE(readFile(temporary / "said").find("hit_rate"), std::string::npos);
}

TEST_F(Tutorial, Document) {
  follow("document.md");
  EXPECT_GE(statistics["tiers"]["write_backs"], 4 * 2 * 3) << "four paragraphs of two blocks in three layers";
  EXPECT_GT(statistics["tiers"]["demands"]["misses"], 0);
}
