// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Times steps of a compiled model.
#include "bench/Cells.h"
#include "bench/Serve.h"
#include "serving/OutputFile.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>

#include <getopt.h>

using namespace quire;

static const char helpText[] =
    R"(usage: quire-bench MODEL.quire [--decode=CELLS] [--prefill=LENGTHS] [options]
       quire-bench MODEL.quire --serve [--threads=N]

Times a model that quirec compiled. Sequences are filled with random keys and values, so that no prompt has to be run for
them; token ids are random as well. Times are wall clock, medians over the steps; compare only what ran side by side.

  --decode=CELLS       one step of one token for each sequence. Cells, by commas: 8x1024 is eight sequences of 1024 tokens
                       each, 836+1557+4095 are three of these lengths (one and eight of 1024 tokens, or of
                       what the model allows, when neither option is given)
  --prefill=LENGTHS    one new sequence of so many tokens, with the logits of its last; by commas
  --steps=N            timed steps of a decode cell (20)
  --repetitions=N      timed runs of a prefill cell (3)
  --prefill-chunk=N    tokens of one prefill step, at most (512)
  --threads=N          threads of a step (all cores that this process may use)
  --json               results as JSON
  --output=FILE        results; - or nothing: standard output
  --serve              read operations as JSON lines from standard input and answer each with a line, so that programs can
                       alternate between engines: {"op":"setup","ctx":[1024,512]} {"op":"steps","n":8} {"op":"prefill",
                       "n":512} {"op":"free"} {"op":"mem"} {"op":"quit"}
  --help, --version

Exit codes: 0 done; 1 bad usage or bad input.
)";

namespace {
struct Arguments {
  bench::SessionOptions session;
  std::vector<bench::Cell> cells;
  int64_t steps = 20, repetitions = 3;
  bool serves = false, isJson = false;
  std::string output = "-";
};

enum Option { Decode = 256, Prefill, Steps, Repetitions, Chunk, Threads, AsJson, Output, Serve, Help, Version };
} // namespace

static int complain(const std::string &text) {
  std::fprintf(stderr, "quire-bench: error: %s\n", text.c_str());
  return 1;
}

static bool readCount(const char *name, int64_t high, int64_t &out) {
  char *end;
  long long value = std::strtoll(optarg, &end, 10);
  if (end == optarg || *end || value < 1 || value > high) {
    complain(std::string("--") + name + ": expected a number of 1 to " + std::to_string(high) + ", but got '" + optarg + "'");
    return false;
  }
  out = value;
  return true;
}

static bool readCells(bool isPrefill, std::vector<bench::Cell> &out) {
  std::string list = optarg;
  for (size_t at = 0; at <= list.size();) {
    size_t comma = std::min(list.find(',', at), list.size());
    std::string text = list.substr(at, comma - at);
    bench::Cell cell;
    if (!(isPrefill ? bench::parsePrefillCell(text, cell) : bench::parseDecodeCell(text, cell))) {
      complain(isPrefill ? "--prefill: expected lengths such as 512,2048, but got '" + list + "'"
                         : "--decode: expected cells such as 8x1024 or 100+200, but got '" + list + "'");
      return false;
    }
    out.push_back(cell);
    at = comma + 1;
  }
  return true;
}

static bool readOption(int code, Arguments &out) {
  switch (code) {
  case Decode:
    return readCells(false, out.cells);
  case Prefill:
    return readCells(true, out.cells);
  case Steps:
    return readCount("steps", 1000000, out.steps);
  case Repetitions:
    return readCount("repetitions", 1000000, out.repetitions);
  case Chunk:
    return readCount("prefill-chunk", 1000000, out.session.prefillChunk);
  case Threads:
    return readCount("threads", 1024, out.session.threads);
  case AsJson:
    out.isJson = true;
    return true;
  case Output:
    out.output = optarg;
    return true;
  case Serve:
    out.serves = true;
    return true;
  default: // getopt_long has said what is wrong
    return false;
  }
}

static int run(const Arguments &arguments) {
  bench::Session session;
  if (!session.load(arguments.session))
    return complain(session.error());
  if (arguments.serves) {
    bench::serve(session, std::cin, std::cout);
    return std::cout.flush() ? 0 : complain("standard output cannot be written");
  }
  std::vector<bench::Cell> cells = arguments.cells;
  if (cells.empty())
    for (int64_t sequences : {1, 8})
      cells.push_back(bench::defaultCell(session, sequences));
  std::vector<bench::CellResult> results;
  for (const bench::Cell &cell : cells) {
    results.emplace_back();
    if (!bench::measure(session, cell, cell.isPrefill ? arguments.repetitions : arguments.steps, results.back()))
      return complain(cell.name + ": " + session.error());
  }
  std::string text = arguments.isJson ? bench::resultsJson(arguments.session.model, session, results)
                                      : bench::resultsText(session, results);
  serving::OutputFile file;
  if (!file.open(arguments.output) || !file.write(text.data(), text.size()) || !file.finish())
    return complain(file.error());
  return 0;
}

int main(int argc, char **argv) {
  const option options[] = {{"decode", required_argument, nullptr, Decode},
                            {"prefill", required_argument, nullptr, Prefill},
                            {"steps", required_argument, nullptr, Steps},
                            {"repetitions", required_argument, nullptr, Repetitions},
                            {"prefill-chunk", required_argument, nullptr, Chunk},
                            {"threads", required_argument, nullptr, Threads},
                            {"json", no_argument, nullptr, AsJson},
                            {"output", required_argument, nullptr, Output},
                            {"serve", no_argument, nullptr, Serve},
                            {"help", no_argument, nullptr, Help},
                            {"version", no_argument, nullptr, Version},
                            {nullptr, 0, nullptr, 0}};
  Arguments arguments;
  int code;
  try {
    while ((code = ::getopt_long(argc, argv, "h", options, nullptr)) != -1) {
      if (code == Help || code == 'h') {
        std::fputs(helpText, stdout);
        return 0;
      }
      if (code == Version) {
        std::printf("quire-bench %s\n", quire_runtime_version());
        return 0;
      }
      if (!readOption(code, arguments)) {
        std::fputs("try 'quire-bench --help'\n", stderr);
        return 1;
      }
    }
    if (optind + 1 != argc)
      return complain("expected one model folder; try 'quire-bench --help'");
    arguments.session.model = argv[optind];
    if (arguments.serves && (!arguments.cells.empty() || arguments.isJson))
      return complain("--serve takes its cells from standard input");
    return run(arguments);
  } catch (const std::exception &error) { // memory
    return complain(error.what());
  }
}
