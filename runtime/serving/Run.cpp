// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads requests, runs them, writes results; keeps what is finished when a signal ends the run.
#include "serving/Run.h"

#include "model/Manifest.h"
#include "serving/Describe.h"
#include "serving/Engine.h"
#include "serving/OutputFile.h"
#include "serving/RequestReader.h"
#include "serving/ResultWriter.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>

#include <unistd.h>

namespace quire::serving {

static volatile std::sig_atomic_t caughtSignal = 0;

static void onSignal(int signal) {
  caughtSignal = signal;
  std::signal(signal, SIG_DFL); // a second one ends the process at once
}

static int complain(const std::string &text) {
  std::fprintf(stderr, "quire-run: error: %s\n", text.c_str());
  return 1;
}

namespace {

class WritingSink : public ResultSink {
public:
  explicit WritingSink(ResultWriter &writer) : writer_(writer) {}

  bool logits(const Request &request, const float *row) override { return writer_.addLogits(request, row); }

  bool finished(const Request &request, const Result &result) override {
    ++finishedCount;
    failedCount += result.reason == FinishReason::Error;
    return writer_.addResult(request, result);
  }

  size_t finishedCount = 0;
  size_t failedCount = 0;

private:
  ResultWriter &writer_;
};

/// One line on a terminal, rewritten in place; nothing before two seconds.
class ProgressLine {
public:
  explicit ProgressLine(size_t requests) : requests_(requests), shown_(::isatty(STDERR_FILENO) == 1) {}

  ~ProgressLine() {
    if (drawn_)
      std::fputs("\r\033[K", stderr);
  }

  void update(const Scheduler &scheduler, size_t finished) {
    if (!shown_)
      return;
    Clock::time_point now = Clock::now();
    if (now - start_ < std::chrono::seconds(2) || now - last_ < std::chrono::milliseconds(200))
      return;
    last_ = now;
    drawn_ = true;
    double seconds = std::chrono::duration<double>(now - start_).count();
    std::fprintf(stderr, "\r%zu of %zu requests, %zu running, %lld tokens, %.1f tokens/s\033[K", finished, requests_,
                 scheduler.running(), static_cast<long long>(scheduler.generated()),
                 static_cast<double>(scheduler.generated()) / seconds);
    std::fflush(stderr);
  }

private:
  using Clock = std::chrono::steady_clock;
  size_t requests_;
  bool shown_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

} // namespace

static bool readRequests(const std::string &path, const quire_model_info &model, std::vector<Request> &out,
                         std::string &error) {
  std::ifstream file;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) {
      error = path + ": " + std::strerror(errno);
      return false;
    }
  }
  std::istream &input = path == "-" ? std::cin : file;
  RequestReader reader(model);
  std::string line;
  Request request;
  while (std::getline(input, line))
    if (reader.read(line, request))
      out.push_back(std::move(request));
  if (input.bad()) {
    error = path + ": cannot be read";
    return false;
  }
  return true;
}

static bool writeStatistics(const std::string &path, const Statistics &statistics, std::string &error) {
  OutputFile file;
  std::string text = statisticsJson(statistics);
  if (file.open(path) && file.write(text.data(), text.size()) && file.finish())
    return true;
  error = file.error();
  return false;
}

static quire_status makePool(const RunOptions &options, const quire_model_info &info, PoolPointer &out) {
  quire_pool_options wanted = {};
  wanted.struct_size = sizeof(wanted);
  wanted.bytes = options.kvBytes;
  wanted.poison = options.poison;
  wanted.shuffle = options.shuffleSeed.has_value();
  wanted.shuffle_seed = options.shuffleSeed.value_or(0);
  quire_pool *pool = nullptr;
  quire_status status = quire_pool_create(&info, &wanted, &pool);
  out.reset(pool);
  return status;
}

static quire_status makeExecutor(const RunOptions &options, const SchedulerLimits &limits, quire_model *model,
                                 quire_pool *pool, ExecutorPointer &out) {
  quire_executor_options wanted = {};
  wanted.struct_size = sizeof(wanted);
  wanted.threads = options.threads;
  wanted.max_sequences = limits.maxBatch;
  wanted.max_tokens = limits.maxBatch + limits.prefillChunk;
  quire_executor *executor = nullptr;
  quire_status status = quire_executor_create(model, pool, &wanted, &executor);
  out.reset(executor);
  return status;
}

/// Memory of a step grows with its limits, so they follow what can be used.
static SchedulerLimits usefulLimits(const RunOptions &options, const std::vector<Request> &requests) {
  int64_t tokens = 1;
  for (const Request &request : requests)
    tokens += static_cast<int64_t>(request.prompt.size()) + request.maxNewTokens;
  SchedulerLimits limits = options.limits;
  limits.maxBatch = std::min(limits.maxBatch, std::max<int64_t>(1, static_cast<int64_t>(requests.size())));
  limits.prefillChunk = std::min(limits.prefillChunk, tokens);
  return limits;
}

int runRequests(const RunOptions &options) {
  quire_model *loaded = nullptr;
  if (quire_model_load(options.model.c_str(), &loaded) != QUIRE_OK)
    return complain(quire_last_error());
  ModelPointer model(loaded);
  const quire_model_info &info = *quire_model_get_info(loaded);
  std::vector<Request> requests;
  std::string error;
  if (!readRequests(options.requests, info, requests, error))
    return complain(error);
  SchedulerLimits limits = usefulLimits(options, requests);
  PoolPointer pool;
  ExecutorPointer executor;
  if (makePool(options, info, pool) != QUIRE_OK ||
      makeExecutor(options, limits, loaded, pool.get(), executor) != QUIRE_OK)
    return complain(quire_last_error());

  ResultWriter writer;
  if (!writer.open(options.output, options.logits, info.vocabulary))
    return complain(writer.error());
  WritingSink sink(writer);
  Scheduler scheduler(info, pool.get(), executor.get(), limits, sink);
  std::signal(SIGINT, onSignal);
  std::signal(SIGTERM, onSignal);
  size_t count = requests.size();
  bool good = true;
  for (Request &request : requests)
    good = good && scheduler.add(std::move(request));
  {
    ProgressLine progress(count);
    Scheduler::Progress state = Scheduler::Progress::Stepped;
    while (good && !caughtSignal && state == Scheduler::Progress::Stepped) {
      state = scheduler.step();
      good = state != Scheduler::Progress::Failed;
      progress.update(scheduler, sink.finishedCount);
    }
  }
  // What is finished is kept, whatever ended the run.
  if (!good)
    error = scheduler.error().empty() ? writer.error() : scheduler.error();
  if (!writer.finish() && error.empty())
    error = writer.error();
  if (!options.stats.empty() && !writeStatistics(options.stats, scheduler.statistics(), error) && error.empty())
    error = options.stats + ": cannot be written";
  if (!error.empty())
    return complain(error);
  if (caughtSignal) {
    std::fprintf(stderr, "quire-run: interrupted: %zu of %zu requests are finished and kept\n", sink.finishedCount,
                 count);
    return 128 + caughtSignal;
  }
  if (sink.failedCount)
    std::fprintf(stderr, "quire-run: warning: %zu of %zu requests ended in errors, see 'error' in their results\n",
                 sink.failedCount, count);
  return 0;
}

int runDescribe(const RunOptions &options) {
  runtime::Manifest manifest;
  runtime::Status status = runtime::readManifest(options.model, manifest);
  if (!status.ok())
    return complain(status.text());
  std::string text = options.json ? describeJson(options.model, manifest, options.kvBytes)
                                  : describeText(options.model, manifest, options.kvBytes);
  OutputFile file;
  if (!file.open(options.output) || !file.write(text.data(), text.size()) || !file.finish())
    return complain(file.error());
  return 0;
}

} // namespace quire::serving
