// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A folder with a toy model, and quire-run started on it.
#ifndef QUIRE_TEST_UNIT_RUNTIME_STARTEDQUIRERUN_H
#define QUIRE_TEST_UNIT_RUNTIME_STARTEDQUIRERUN_H

#include "ToyFolder.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace quire::test {

class QuireRun : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(::access(QUIRE_RUN, X_OK), 0) << QUIRE_RUN << " is not built";
    writeToyFolder(model(), QUIRE_TOY_MODEL);
  }

  std::string model() const { return temporary / "toy.quire"; }
  std::string file(const std::string &name) const { return temporary / name; }

  pid_t start(const std::vector<std::string> &arguments) {
    std::vector<std::string> all = {QUIRE_RUN};
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char *> argv;
    for (std::string &a : all)
      argv.push_back(a.data());
    argv.push_back(nullptr);
    pid_t child = ::fork();
    if (child == 0) {
      int out = ::open(file("stdout").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      int err = ::open(file("stderr").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      ::dup2(out, 1);
      ::dup2(err, 2);
      ::close(out);
      ::close(err);
      if (openFiles.rlim_max != RLIM_INFINITY)
        ::setrlimit(RLIMIT_NOFILE, &openFiles);
      ::execv(QUIRE_RUN, argv.data());
      ::_exit(127);
    }
    return child;
  }

  int wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(::wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status) << "\n" << readFile(file("stderr"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  int run(const std::vector<std::string> &arguments) { return wait(start(arguments)); }

  /// Result lines by id.
  std::map<std::string, nlohmann::json> results(const std::string &name = "out.jsonl") {
    std::map<std::string, nlohmann::json> found;
    std::istringstream lines(readFile(file(name)));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json result = nlohmann::json::parse(line);
      found[result["id"].is_string() ? result["id"].get<std::string>() : result["id"].dump()] = result;
    }
    return found;
  }

  std::string errors() { return readFile(file("stderr")); }

  void expectRefused(const std::vector<std::string> &arguments, const std::string &text) {
    EXPECT_EQ(run(arguments), 1);
    EXPECT_NE(errors().find(text), std::string::npos) << "got: " << errors() << "\nexpected: " << text;
  }

  TemporaryFolder temporary;
  rusage usage = {};
  rlimit openFiles = {RLIM_INFINITY, RLIM_INFINITY}; // of the started program; infinity: as here
};

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_STARTEDQUIRERUN_H
