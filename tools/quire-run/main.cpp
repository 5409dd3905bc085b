// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Serves requests with a compiled model.
#include "CommandLine.h"

#include <cstdio>
#include <exception>

int main(int argc, char **argv) {
  using namespace quire::serving;
  RunOptions options;
  try {
    switch (parseCommandLine(argc, argv, options)) {
    case Action::Help:
      std::fputs(helpText, stdout);
      return 0;
    case Action::Version:
      std::printf("quire-run %s\n", quire_runtime_version());
      return 0;
    case Action::HelpConfig:
      std::fputs(quire::config::keyText().c_str(), stdout);
      return 0;
    case Action::ConfigTable:
      std::fputs(quire::config::keyTable().c_str(), stdout);
      return 0;
    case Action::PrintConfig:
      std::fputs(quire::config::printConfig(effectiveConfig(options)).c_str(), stdout);
      return 0;
    case Action::Refuse:
      return 1;
    case Action::Describe:
      return runDescribe(options);
    case Action::Run:
      return runRequests(options);
    }
  } catch (const std::exception &error) { // memory
    std::fprintf(stderr, "quire-run: error: %s\n", error.what());
  }
  return 1;
}
