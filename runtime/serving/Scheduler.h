// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Continuous batching: which sequences take part in a step, with how many tokens, and who gives way when the pool is
// full.
#ifndef QUIRE_RUNTIME_SERVING_SCHEDULER_H
#define QUIRE_RUNTIME_SERVING_SCHEDULER_H

#include "quire/runtime.h"
#include "serving/Prefixes.h"
#include "serving/Request.h"
#include "serving/Sampler.h"
#include "serving/Statistics.h"
#include "serving/Turns.h"

#include <chrono>
#include <deque>
#include <vector>

namespace quire::serving {

/// Where tokens and results go. False stops the run.
class ResultSink {
public:
  virtual ~ResultSink() = default;
  /// The row that the request's next token is chosen from.
  virtual bool logits(const Request &request, const float *row) = 0;
  virtual bool finished(const Request &request, const Result &result) = 0;
};

struct SchedulerLimits {
  int64_t maxBatch = 8;       // sequences of a step
  int64_t prefillChunk = 512; // prompt tokens of a step, over all its sequences
  int64_t mixedChunk = 64;    // the same in a step where other sequences decode: what bounds the time between two tokens
  bool prefixCache = false;   // prompts that begin alike are stored once; the pool has `prefix_cache`
  int64_t prefixTimeToLive = 0; // ns without users after which a prefix is dropped; 0: none
};

/// What happens to paragraphs of a prompt once they are stored; nothing without a slow tier.
struct DocumentRules {
  bool unload = false; // they leave the fast tier
  bool weigh = false;  // by TF-IDF, for the importance policy
};

/// Requests are served in order of arrival: admission stops at the first one
/// whose prompt finds no room (the pool's reserve is none while others run), and
/// the youngest running one gives way. So the oldest always proceeds, and every request that fits alone completes. What a
/// request generates depends on nothing but itself. Those that gave way come
/// back before new ones begin, so at most limits.maxBatch requests have begun
/// and not finished.
class Scheduler {
public:
  enum class Progress { Stepped, Idle, Failed };

  /// The executor allows steps of limits.maxBatch sequences and
  /// limits.maxBatch + limits.prefillChunk tokens.
  Scheduler(const quire_model_info &model, quire_pool *pool, quire_executor *executor, const SchedulerLimits &limits,
            ResultSink &sink);
  ~Scheduler();
  Scheduler(const Scheduler &) = delete;
  Scheduler &operator=(const Scheduler &) = delete;

  /// Queues a request. Refused ones get their result at once; false if the sink
  /// failed.
  bool add(Request request);

  /// From the next step on.
  void setDocumentRules(const DocumentRules &rules) { documents_ = rules; }

  /// From the next step on. The pool's rules for dialogues say the same; it is of a model that lets it prune.
  void setTurnRules(TurnRules rules) { turnRules_ = std::move(rules); }

  /// One step of the model, or Idle when nothing is left.
  Progress step();

  /// Complete after the last step.
  const Statistics &statistics();

  size_t unfinished() const { return waiting_.size() + running_.size(); }
  size_t running() const { return running_.size(); }
  int64_t generated() const { return generated_; }
  /// Why step() or add() failed.
  const std::string &error() const { return error_; }

private:
  using Clock = std::chrono::steady_clock;

  struct Active {
    Request request;
    Result result;
    quire_sequence sequence = 0; // 0: holds no blocks
    int64_t stored = 0;          // tokens that went into the pool
    int64_t recorded = 0;        // blocks of its table that the statistics know of
    int64_t published = 0;       // full blocks that others may find
    Turns turns;
    size_t paragraphs = 0;       // of the request that were processed
    std::vector<float> weights;  // of its paragraphs, once one was processed
    int64_t prefillEnd = 0;      // tokens before this one are appended in chunks
    int64_t losses = 0;          // how often stored tokens were lost
    bool preempted = false;
    Clock::time_point firstToken, lastToken;

    int64_t known() const { return static_cast<int64_t>(request.prompt.size() + result.tokens.size()); }
    int64_t pending() const { return known() - stored; }
    int64_t places() const { return stored - turns.dropped(); } // tokens in the pool
    int64_t token(int64_t index) const;
  };

  struct Part {
    size_t active;  // index into requests_
    int64_t tokens; // new ones in this step
  };

  bool refuse(Active &active, const std::string &text);
  bool fits(const Active &active, std::string &why) const;
  bool growRunning(bool &preempted);
  bool pruneRunning(bool &preempted);
  bool pruneOne(size_t index, bool &preempted);
  bool growOne(size_t position, bool &preempted, bool &kept);
  void preemptYoungest();
  int64_t prefillBudget() const;
  void planRunning(int64_t &budget, int64_t &prefill);
  bool admit(int64_t &budget, int64_t &prefill);
  bool takePart(size_t index, int64_t tokens);
  bool runStep(int64_t prefill);
  bool recover(quire_status status);
  bool giveUpLost(size_t index, const std::string &text);
  bool tooLongForStep();
  bool takeToken(size_t index, const float *row);
  bool finish(size_t active, FinishReason reason, const std::string &text);
  bool openShared(Active &active);
  bool publishBlocks(Active &active);
  bool endParagraphs(Active &active);
  void recordBlocks(Active &active);
  void recordBlocksAnew(Active &active);
  void knownTokens(const Active &active, int64_t count);
  void releaseBlocks(Active &active);
  bool broken(const char *what);
  quire_pool_stats poolStats() const;
  int64_t blocksFor(int64_t tokens) const { return (tokens + model_.block_tokens - 1) / model_.block_tokens; }

  const quire_model_info &model_;
  quire_pool *pool_;
  quire_executor *executor_;
  SchedulerLimits limits_;
  ResultSink &sink_;
  Sampler sampler_;
  Clock::time_point start_ = Clock::now();

  std::deque<Active> requests_; // all; stable addresses
  std::deque<size_t> waiting_;  // by arrival; older ones than these all run or are done
  std::vector<size_t> running_; // by arrival
  std::vector<Part> parts_;     // of the step
  int64_t stepRoom_ = 0;        // blocks that the step may still have
  bool tight_ = false;          // the last step found no space, so nobody is admitted beside those that run
  size_t turn_ = 0;             // position in running_ that is served first when not all fit into a step
  std::vector<quire_sequence> sequences_;
  std::vector<int64_t> counts_, tokens_, selected_;
  std::vector<size_t> selectedOwner_;
  std::vector<float> logits_;
  int64_t blocksTotal_ = 0;
  int64_t stepBlocks_ = 0; // at most, of the sequences of one step
  int64_t blockBytes_ = 0; // over all layers
  int64_t generated_ = 0;
  DocumentRules documents_;
  TurnRules turnRules_;
  Prefixes prefixes_;
  std::vector<int64_t> stored_; // tokens of the sequence that is published or pruned
  Statistics statistics_;
  std::string error_;
};

} // namespace quire::serving

#endif // QUIRE_RUNTIME_SERVING_SCHEDULER_H
