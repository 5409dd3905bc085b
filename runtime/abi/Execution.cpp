// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: executors and steps.
#include "abi/Handles.h"

using namespace quire::runtime;

extern "C" {

quire_status quire_executor_create(quire_model *model, quire_pool *pool, const quire_executor_options *options,
                                   quire_executor **out) {
  if (!model || !pool || !out)
    return nullArgument("model, pool and out");
  return guarded([&] {
    quire_executor_options given;
    if (!readOptions(options, given))
      return badStructSize();
    Executor::Options wanted;
    wanted.threads = given.threads;
    if (given.max_tokens)
      wanted.maxTokens = given.max_tokens;
    if (given.max_sequences)
      wanted.maxSequences = given.max_sequences;
    wanted.traceCapacity = given.trace_capacity;
    wanted.observe = given.observe != 0;
    auto made = std::make_unique<quire_executor>();
    QUIRE_TRY(Executor::create(model->model, pool->pool, wanted, made->executor));
    *out = made.release();
    return success();
  });
}

void quire_executor_destroy(quire_executor *executor) { delete executor; }

quire_status quire_executor_step(quire_executor *executor, const quire_batch *batch, float *logits) {
  if (!executor || !batch)
    return nullArgument("executor and batch");
  return guarded([&] {
    quire_batch known;
    if (!readOptions(batch, known))
      return badStructSize();
    return executor->executor->step(known, logits);
  });
}

quire_status quire_executor_invoke(quire_executor *executor, const quire_explicit_batch *batch, float *logits) {
  if (!executor || !batch)
    return nullArgument("executor and batch");
  return guarded([&] {
    quire_explicit_batch known;
    if (!readOptions(batch, known))
      return badStructSize();
    return executor->executor->invoke(known, logits);
  });
}

quire_status quire_executor_get_stats(const quire_executor *executor, quire_executor_stats *out) {
  if (!executor || !out)
    return nullArgument("executor and out");
  quire_executor_stats stats = {};
  executor->executor->stats(stats);
  return writeResult(stats, out) ? QUIRE_OK : report(badStructSize());
}

quire_status quire_executor_trace(const quire_executor *executor, const quire_trace_event **events, int64_t *count) {
  if (!executor || !events || !count)
    return nullArgument("executor, events and count");
  *count = executor->executor->trace(*events);
  return QUIRE_OK;
}

quire_status quire_executor_attention(const quire_executor *executor, int64_t layer, const float **shares,
                                      int64_t *sequences, int64_t *stride) {
  if (!executor || !shares || !sequences || !stride)
    return nullArgument("executor, shares, sequences and stride");
  const Observation *observation = executor->executor->observation();
  if (!observation)
    return report(failure(QUIRE_INVALID_ARGUMENT, "the executor was made without observe"));
  if (layer < 0 || layer >= executor->executor->pool().layerCount())
    return report(failure(QUIRE_INVALID_ARGUMENT, "layer: expected 0 to %lld, but got %lld",
                          static_cast<long long>(executor->executor->pool().layerCount() - 1),
                          static_cast<long long>(layer)));
  *shares = observation->shares(layer);
  *sequences = observation->sequences();
  *stride = observation->stride();
  return QUIRE_OK;
}

quire_status quire_executor_parallel(quire_executor *executor, int64_t count, int64_t grain, quire_task_fn fn,
                                     void *env) {
  if (!executor || !fn)
    return nullArgument("executor and fn");
  executor->executor->parallel(count, grain, fn, env);
  return QUIRE_OK;
}

} // extern "C"
