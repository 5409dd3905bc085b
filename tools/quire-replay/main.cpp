// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Replays a page trace with other policies.
#include "CommandLine.h"
#include "doctor/ReplayReport.h"

#include <algorithm>
#include <cstdio>
#include <exception>

using namespace quire::runtime;

static int complain(const std::string &text) {
  std::fprintf(stderr, "quire-replay: error: %s\n", text.c_str());
  return 1;
}

/// In pages.
static uint64_t fastPagesOf(const FastSize &size, const Trace &trace, uint32_t live) {
  switch (size.unit) {
  case FastSize::Unit::OfTrace:
    return trace.fastPages > 0 ? trace.fastPages : live / 2;
  case FastSize::Unit::Percent:
    return live * size.value / 100;
  case FastSize::Unit::Pages:
    return size.value;
  case FastSize::Unit::Bytes:
    return size.value / std::max<uint64_t>(trace.pageBytes, 1);
  }
  return 0;
}

static int run(const ReplayArguments &arguments) {
  Trace trace(0);
  Status status = Trace::read(arguments.trace, trace);
  if (!status.ok())
    return complain(status.text());
  ReplayReport report{&trace, mostLivePages(trace), arguments.options, {}, arguments.withOptimum, {}, arguments.withDoctor, recordedRun(trace)};
  uint64_t fast = fastPagesOf(arguments.fast, trace, report.livePages);
  if (fast < 2)
    return complain("--fast: expected at least 2 pages, but got " + std::to_string(fast));
  report.options.fastPages = static_cast<uint32_t>(std::min<uint64_t>(fast, Trace::maxPages));
  for (PolicyKind policy : arguments.policies) {
    report.options.policy = policy;
    report.runs.push_back({policy, {}});
    status = replay(trace, report.options, report.runs.back().result);
    if (!status.ok())
      return complain(arguments.trace + ": " + status.text());
  }
  if (report.withOptimum)
    report.optimum = optimal(trace, report.options.fastPages);
  std::string text = arguments.isJson ? replayJson(report) : replayText(report);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return complain("standard output cannot be written");
  return 0;
}

int main(int argc, char **argv) {
  ReplayArguments arguments;
  try {
    switch (parseCommandLine(argc, argv, arguments)) {
    case Action::Help:
      std::fputs(helpText, stdout);
      return 0;
    case Action::Version:
      std::printf("quire-replay %s\n", quire_runtime_version());
      return 0;
    case Action::Refuse:
      return 1;
    case Action::Run:
      return run(arguments);
    }
  } catch (const std::exception &error) { // memory
    return complain(error.what());
  }
  return 1;
}
