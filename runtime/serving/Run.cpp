// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads requests, runs them, writes results; keeps what is finished when a signal ends the run.
#include "serving/Run.h"

#include "model/Manifest.h"
#include "serving/ConfigWatch.h"
#include "serving/Describe.h"
#include "serving/Engine.h"
#include "serving/FileLimit.h"
#include "serving/OutputFile.h"
#include "serving/ProgressLine.h"
#include "serving/RequestReader.h"
#include "serving/ResultWriter.h"
#include "serving/Tuning.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

namespace quire::serving {

static volatile std::sig_atomic_t caughtSignal = 0;

/// A trace of so many events is some 200 MB of text.
static constexpr int64_t maxTraceEvents = 2000000;

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
    if (result.reason == FinishReason::Error && failedCount++ == 0)
      firstError = result.error;
    return writer_.addResult(request, result);
  }

  size_t finishedCount = 0;
  size_t failedCount = 0;
  std::string firstError;

private:
  ResultWriter &writer_;
};

struct Outputs {
  ResultWriter results;  // destroyed last: the other file may lie in a folder that it made
  OutputFile statistics; // open if wanted
  OutputFile metrics;    // likewise
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

/// Opened before the first step: a path that cannot be written is no reason to lose a whole run. What was opened leaves
/// no trace if the run is refused after all.
static bool openOutputs(const RunOptions &options, int64_t vocabulary, Outputs &out, std::string &error) {
  if (!out.results.open(options.output, options.logits, vocabulary)) {
    error = out.results.error();
    return false;
  }
  if (!options.stats.empty() && !out.statistics.open(options.stats)) {
    error = out.statistics.error();
    return false;
  }
  if (!options.metrics.empty() && !out.metrics.open(options.metrics)) {
    error = out.metrics.error();
    return false;
  }
  OutputFile trace; // the pool writes it at the end
  if (!options.trace.empty() && !trace.open(options.trace)) {
    error = trace.error();
    return false;
  }
  return true;
}

/// "" if the configuration's block.tokens are the model's, and it has the layers of a page.
static std::string conflictOfBlocks(const RunOptions &options, const quire_model_info &info) {
  const config::Config &configured = options.configured;
  int64_t wanted = configured.block.tokens, layers = configured.block.layersPerBlock;
  if (wanted != 0 && wanted != info.block_tokens)
    return configured.blockTokensPlace + ": block.tokens: expected " + std::to_string(info.block_tokens) + ", a constant of " + options.model + ", but got " +
           std::to_string(wanted) + "; compile the model by quirec --block-tokens=" + std::to_string(wanted);
  if (layers > info.layer_count)
    return configured.layersPerBlockPlace + ": block.layers_per_block: expected 1 to " + std::to_string(info.layer_count) + ", the layers of " + options.model +
           ", but got " + std::to_string(layers);
  return {};
}

static quire_status makePool(const RunOptions &options, const quire_model_info &info, PoolPointer &out) {
  quire_pool_options wanted = {};
  wanted.struct_size = sizeof(wanted);
  wanted.bytes = options.kvBytes;
  wanted.poison = options.poison;
  wanted.zero_on_free = options.zeroOnFree;
  wanted.stable_va = options.configured.memory.stableVa;
  wanted.prefix_cache = options.limits.prefixCache;
  wanted.shuffle = options.shuffleSeed.has_value();
  wanted.shuffle_seed = options.shuffleSeed.value_or(0);
  SlowTierSettings::Description slow = options.slow.describe();
  slow.options.concurrency = options.limits.maxBatch;
  if (options.slow.wanted())
    wanted.slow = &slow.options;
  quire_pool *pool = nullptr;
  quire_status status = quire_pool_create(&info, &wanted, &pool);
  out.reset(pool);
  if (status == QUIRE_OK)
    status = tunePool(pool, effectiveConfig(options));
  if (status == QUIRE_OK && !options.trace.empty())
    status = quire_pool_trace(pool, maxTraceEvents);
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

/// The logits of each begun request are an open file.
static bool checkFileLimit(const RunOptions &options, const SchedulerLimits &limits, std::string &error) {
  if (options.logits.empty())
    return true;
  int64_t needed = limits.maxBatch + otherFiles, allowed = allowOpenFiles(needed);
  if (needed <= allowed)
    return true;
  error = "--logits: expected a limit of at least " + std::to_string(needed) + " open files for a batch of " +
          std::to_string(limits.maxBatch) + " requests, but got " + std::to_string(allowed) +
          "; lower --max-batch or raise 'ulimit -n'";
  return false;
}

/// Runs until all is done, something fails (false) or a signal comes.
static bool serveAll(Scheduler &scheduler, std::vector<Request> &requests, const WritingSink &sink,
                     ConfigWatch &config, ProgressLine &progress) {
  progress.requests = requests.size();
  progress.serving = true;
  for (Request &request : requests)
    if (!scheduler.add(std::move(request)))
      return false;
  while (!caughtSignal) {
    config.look();
    scheduler.setDocumentRules(documentRules(config.current()));
    scheduler.setTurnRules(turnRules(config.current()));
    Scheduler::Progress state = scheduler.step();
    if (state != Scheduler::Progress::Stepped)
      return state == Scheduler::Progress::Idle;
    progress.finished = sink.finishedCount;
    progress.running = scheduler.running();
    progress.tokens = scheduler.generated();
  }
  return true;
}

/// Names results and statistics; what is finished is kept, whatever ended the
/// run. False with the first reason.
static bool keepResults(Outputs &outputs, Scheduler &scheduler, std::string &error) {
  if (!outputs.results.finish() && error.empty())
    error = outputs.results.error();
  OutputFile &file = outputs.statistics;
  if (file.isOpen()) {
    std::string text = statisticsJson(scheduler.statistics());
    if (!(file.write(text.data(), text.size()) && file.finish()) && error.empty())
      error = file.error();
  }
  return error.empty();
}

static bool writeMetrics(quire_pool *pool, OutputFile &file, std::string &error) {
  const char *text = nullptr;
  if (quire_metrics(pool, &text) != QUIRE_OK)
    error = quire_last_error();
  else if (!(file.write(text, std::strlen(text)) && file.finish()))
    error = file.error();
  return error.empty();
}

/// The metrics, the trace and the doctor's report.
static bool reportPages(const RunOptions &options, const config::Config &config, quire_pool *pool,
                        const Statistics &statistics, OutputFile &metrics, std::string &error) {
  if (metrics.isOpen() && !writeMetrics(pool, metrics, error))
    return false;
  if (!options.trace.empty() && quire_pool_write_trace(pool, options.trace.c_str()) != QUIRE_OK) {
    error = quire_last_error();
    return false;
  }
  if (!options.doctor)
    return true;
  quire_doctor_options wanted = doctorOptions(config, statistics.preemptions);
  const char *text = nullptr;
  if (quire_doctor(pool, &wanted, &text) != QUIRE_OK) {
    error = quire_last_error();
    return false;
  }
  std::fputs(text, stderr);
  return true;
}

int runRequests(const RunOptions &options) {
  auto progress = std::make_unique<ProgressLine>();
  auto refuse = [&](const std::string &text) {
    progress.reset(); // clears its line
    return complain(text);
  };
  quire_model *loaded = nullptr;
  if (quire_model_load(options.model.c_str(), &loaded) != QUIRE_OK)
    return refuse(quire_last_error());
  ModelPointer model(loaded);
  const quire_model_info &info = *quire_model_get_info(loaded);
  std::vector<Request> requests;
  std::string error = conflictOfBlocks(options, info);
  if (!error.empty())
    return refuse(error);
  if (!readRequests(options.requests, info, requests, error))
    return refuse(error);
  SchedulerLimits limits = usefulLimits(options, requests);
  if (!checkModel(effectiveConfig(options), info, error) || !checkFileLimit(options, limits, error))
    return refuse(error);
  PoolPointer pool;
  ExecutorPointer executor;
  if (makePool(options, info, pool) != QUIRE_OK ||
      makeExecutor(options, limits, loaded, pool.get(), executor) != QUIRE_OK)
    return refuse(quire_last_error());

  Outputs outputs;
  if (!openOutputs(options, info.vocabulary, outputs, error))
    return refuse(error);
  WritingSink sink(outputs.results);
  ConfigWatch config(options, pool.get());
  Scheduler scheduler(info, pool.get(), executor.get(), limits, sink);
  std::signal(SIGINT, onSignal);
  std::signal(SIGTERM, onSignal);
  std::signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of that write
  size_t count = requests.size();
  auto begin = std::chrono::steady_clock::now();
  if (!serveAll(scheduler, requests, sink, config, *progress))
    error = scheduler.error().empty() ? outputs.results.error() : scheduler.error();
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  progress.reset();
  if (!keepResults(outputs, scheduler, error))
    return complain(error);
  if (!reportPages(options, config.current(), pool.get(), scheduler.statistics(), outputs.metrics, error))
    return complain(error);
  std::string line = statisticsLine(scheduler.statistics(), static_cast<int64_t>(sink.finishedCount), scheduler.generated(), seconds);
  if (!line.empty())
    std::fprintf(stderr, "quire-run: %s\n", line.c_str());
  if (caughtSignal) {
    std::fprintf(stderr, "quire-run: interrupted: %zu of %zu requests are finished and kept\n", sink.finishedCount,
                 count);
    return 128 + caughtSignal;
  }
  if (sink.failedCount > 0 && sink.failedCount == count)
    return complain("every request ended in an error, see 'error' in their results; the first: " + sink.firstError);
  if (sink.failedCount)
    std::fprintf(stderr, "quire-run: warning: %zu of %zu requests ended in errors, see 'error' in their results\n",
                 sink.failedCount, count);
  return 0;
}

void applyConfig(const config::Config &config, RunOptions &options) {
  options.configured = config;
  options.kvBytes = config.memory.fastBytes;
  options.limits.maxBatch = config.serving.maxBatch;
  options.limits.prefillChunk = config.serving.prefillChunk;
  options.limits.mixedChunk = config.serving.mixedChunk;
  options.limits.prefixCache = config.share.prefixCache;
  options.limits.prefixTimeToLive = config.security.ttl;
  options.threads = config.serving.threads;
  options.zeroOnFree = config.security.zeroOnFree;
  options.slow.take(config);
}

config::Config effectiveConfig(const RunOptions &options) {
  config::Config config = options.configured;
  config.memory.fastBytes = options.kvBytes;
  config.serving.maxBatch = options.limits.maxBatch;
  config.serving.prefillChunk = options.limits.prefillChunk;
  config.serving.mixedChunk = options.limits.mixedChunk;
  config.share.prefixCache = options.limits.prefixCache;
  config.security.ttl = options.limits.prefixTimeToLive;
  config.serving.threads = options.threads;
  config.security.zeroOnFree = options.zeroOnFree;
  options.slow.give(config);
  return config;
}

int runDescribe(const RunOptions &options) {
  runtime::Manifest manifest;
  runtime::Status status = runtime::readManifest(options.model, manifest);
  if (!status.ok())
    return complain(status.text());
  SlowTierSettings::Description slow = options.slow.describe();
  slow.options.concurrency = options.limits.maxBatch;
  Budget budget;
  status = readBudget(manifest, options.kvBytes, options.slow.wanted() ? &slow.options : nullptr, options.configured.memory.stableVa, budget);
  if (!status.ok())
    return complain(status.text());
  std::string text = options.json ? describeJson(options.model, manifest, budget) : describeText(options.model, manifest, budget);
  OutputFile file;
  if (!file.open(options.output) || !file.write(text.data(), text.size()) || !file.finish())
    return complain(file.error());
  return 0;
}

} // namespace quire::serving
