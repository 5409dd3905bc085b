// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The command line of quire-replay: options, output, exit codes.
#include "PageTraces.h"
#include "ToyFolder.h"
#include "core/Quantities.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace quire::runtime;
using namespace quire::test;
using nlohmann::json;

namespace {

class QuireReplay : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(::access(QUIRE_REPLAY, X_OK), 0) << QUIRE_REPLAY << " is not built";
    Trace trace = denseTrace(40, 20, 10'000);
    trace.fastPages = 30;
    ASSERT_TRUE(trace.write(path()).ok());
  }

  std::string path() const { return temporary / "trace.json"; }

  int run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), QUIRE_REPLAY);
    std::vector<char *> argv;
    for (std::string &a : arguments)
      argv.push_back(a.data());
    argv.push_back(nullptr);
    std::string outPath = temporary / "stdout", errPath = temporary / "stderr";
    pid_t child = ::fork();
    if (child == 0) {
      ::dup2(::open(outPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), 1);
      ::dup2(::open(errPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666), 2);
      ::execv(QUIRE_REPLAY, argv.data());
      ::_exit(127);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    out = readFile(outPath);
    err = readFile(errPath);
    return WEXITSTATUS(status);
  }

  TemporaryFolder temporary;
  std::string out, err;
};

} // namespace

TEST_F(QuireReplay, HelpTeaches) {
  EXPECT_EQ(run({"--help"}), 0);
  for (const char *word : {"--policy", "--fast", "--prefetch", "--window", "--json", "--doctor", "Belady", "Exit codes", "quire-replay trace.json --policy=lru,scan,opt"})
    EXPECT_NE(out.find(word), std::string::npos) << word;
  EXPECT_EQ(run({"--version"}), 0);
  EXPECT_EQ(out.rfind("quire-replay ", 0), 0u);
}

TEST_F(QuireReplay, AllPoliciesWithTheFastTierOfTheTrace) {
  EXPECT_EQ(run({path()}), 0) << err;
  EXPECT_NE(out.find("820 events; 40 pages of 64KiB alive at most, 30 of them in the fast tier; prefetch none\n"), std::string::npos) << out;
  for (const char *policy : {"\nlru ", "\nscan ", "\nimportance ", "\narc ", "\nopt "})
    EXPECT_NE(out.find(policy), std::string::npos) << policy;
}

/// Simulated policies do not fetch what the run fetched, so theirs are other numbers.
TEST_F(QuireReplay, TheRecordedRunHasItsOwnLine) {
  EXPECT_EQ(run({path(), "--json"}), 0) << err;
  EXPECT_FALSE(json::parse(out).contains("recorded")) << "the demands of this trace have no outcomes";
  Trace trace(100);
  trace.pages = 4;
  trace.pageBytes = 4096;
  trace.fastPages = 2;
  trace.numbering = {4, 1, true};
  using Kind = TraceEvent::Kind;
  using Outcome = TraceEvent::Outcome;
  int64_t ns = 0;
  auto note = [&](Kind kind, uint32_t page, Outcome outcome = Outcome::None) {
    TraceEvent event;
    event.kind = kind;
    event.outcome = outcome;
    event.page = page;
    event.ns = ns += 1000;
    trace.record(event);
  };
  for (uint32_t page : {0u, 1u, 2u, 3u})
    note(Kind::Write, page);
  for (Outcome outcome : {Outcome::Miss, Outcome::Late}) { // 0 1 2 0 1 2 with room for two of them
    note(Kind::Step, 1);
    note(Kind::Demand, 0, Outcome::Miss);
    trace.waited(2500000);
    note(Kind::Prefetch, 2);
    note(Kind::Demand, 1, Outcome::Hit);
    note(Kind::Demand, 2, outcome);
  }
  ASSERT_TRUE(trace.write((temporary / "recorded.json").string()).ok());
  EXPECT_EQ(run({(temporary / "recorded.json").string(), "--policy=lru", "--fast=4", "--json"}), 0) << err;
  // The best that two pages can do: 0 stays while the others are written, 1 and 2 are loaded, and 1 once more.
  EXPECT_EQ(json::parse(out)["recorded"],
            json::parse(R"({"fast_pages":2,"demands":6,"hits":2,"late":1,"misses":3,"prefetch_issued":2,"stall_ns":5000000,"opt_misses":3,"gap_to_optimum":0.3333333333333333})")) << out;
  EXPECT_EQ(json::parse(out)["runs"][0]["metrics"]["gap_to_optimum"], 0.0) << "four pages hold all of them";
  EXPECT_EQ(run({(temporary / "recorded.json").string(), "--policy=lru"}), 0) << err;
  EXPECT_NE(out.find("\nrecorded              2         1           3     0.333    0.333           5        0.0        5.000\nlru "), std::string::npos) << out;
}

TEST_F(QuireReplay, JsonOfChosenPolicies) {
  EXPECT_EQ(run({path(), "--policy=lru,scan,opt", "--fast=50%", "--json"}), 0) << err;
  json result = json::parse(out);
  EXPECT_EQ(result["fast_pages"], 20);
  ASSERT_EQ(result["runs"].size(), 2u);
  EXPECT_EQ(result["runs"][0]["policy"], "lru");
  EXPECT_EQ(result["runs"][0]["counters"]["hits"], 0);
  EXPECT_EQ(result["runs"][1]["counters"]["hits"], result["opt"]["hits"]);
  EXPECT_EQ(result["runs"][1]["metrics"]["gap_to_optimum"], 0.0);
  EXPECT_FALSE(result["runs"][0].contains("findings"));
  EXPECT_EQ(run({path(), "--policy=scan", "--fast=640KiB", "--json", "--doctor"}), 0);
  result = json::parse(out);
  EXPECT_EQ(result["fast_pages"], 10);
  EXPECT_FALSE(result.contains("opt"));
  EXPECT_TRUE(result["runs"][0].contains("findings"));
}

TEST_F(QuireReplay, PrefetchOptionsReachTheReplay) {
  std::vector<std::string> common = {path(), "--policy=scan", "--fast=20", "--json", "--compute-us=50", "--bandwidth=10GB"};
  auto stall = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    EXPECT_EQ(run(more), 0) << err;
    return json::parse(out)["runs"][0]["counters"]["stall_ns"].get<uint64_t>();
  };
  uint64_t none = stall({}), ahead = stall({"--prefetch=sequential", "--window=5"});
  EXPECT_LT(ahead, none / 2);
  EXPECT_GT(stall({"--latency-us=1000"}), 5 * none);
  EXPECT_EQ(stall({"--bandwidth=1GB"}), stall({"--bandwidth=1GB/s"}));
  EXPECT_GT(stall({"--bandwidth=1GB/s"}), none);
  EXPECT_EQ(run({path(), "--policy=scan", "--fast=20", "--doctor"}), 0) << err;
  EXPECT_NE(out.find("  change: prefetch.strategy: none -> sequential\n"), std::string::npos) << out;
}

TEST_F(QuireReplay, MistakesAreNamedAndExitWithOne) {
  auto error = [&](std::vector<std::string> arguments) {
    EXPECT_EQ(run(arguments), 1);
    EXPECT_EQ(out, "");
    return err.substr(0, err.find('\n'));
  };
  const std::string start = "quire-replay: error: ";
  EXPECT_EQ(error({}), start + "expected a trace, but got none");
  EXPECT_EQ(error({path(), "b"}), start + "expected one trace, but got several");
  EXPECT_EQ(error({path(), "--policy=lru,mru"}), start + "--policy: expected lru, scan, importance, arc or opt, by commas, but got 'lru,mru'");
  EXPECT_EQ(error({path(), "--policy="}), start + "--policy: expected lru, scan, importance, arc or opt, by commas, but got ''");
  for (const char *size : {"0", "1", "0%", "101%", "x", "", "-5", "5MM", "99999999999999999999"})
    EXPECT_EQ(error({path(), std::string("--fast=") + size}),
              start + "--fast: expected 1% to 100%, at least 2 pages, or bytes with a unit such as 64MiB, but got '" + size + "'");
  EXPECT_EQ(error({path(), "--fast=64KiB"}), start + "--fast: expected at least 2 pages, but got 1");
  EXPECT_EQ(error({path(), "--window=0"}), start + "--window: expected a number of 1 to 1000000, but got '0'");
  EXPECT_EQ(error({path(), "--prefetch=all"}), start + "--prefetch: expected none, sequential, layer_ahead, seed_hotspot or hybrid, but got 'all'");
  EXPECT_EQ(error({path(), "--prefetch=digest"}),
            start + path() + ": not implemented: replay of digest prefetching, as traces hold neither keys nor queries");
  EXPECT_EQ(error({path(), "--bandwidth=0"}), start + "--bandwidth: expected a size a second such as 2GB/s, but got '0'");
  EXPECT_EQ(error({path(), "--bandwidth=2GB/m"}), start + "--bandwidth: expected a size a second such as 2GB/s, but got '2GB/m'");
  EXPECT_NE(error({path(), "--what"}).find("unrecognized option"), std::string::npos);
  EXPECT_NE(error({path() + "x"}).find("trace.jsonx: "), std::string::npos);
  writeFile(path(), "{}");
  EXPECT_NE(error({path()}).find("trace.json: line 1: expected a header"), std::string::npos);
}

