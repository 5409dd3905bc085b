// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs two steps of a compiled model and checks that it asks for the next layer's blocks before it lets go of a layer's.
#include "quire/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <vector>

static void check(quire_status status, const char *what) {
  if (status == QUIRE_OK)
    return;
  std::fprintf(stderr, "%s: %s\n", what, quire_last_error());
  std::exit(1);
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: prefetch-order MODEL.quire\n");
    return 1;
  }
  quire_model *model = nullptr;
  check(quire_model_load(argv[1], &model), "load");
  const quire_model_info *info = quire_model_get_info(model);
  quire_pool *pool = nullptr;
  check(quire_pool_create(info, nullptr, &pool), "pool");
  quire_executor_options options{};
  options.struct_size = sizeof options;
  options.trace_capacity = 4096;
  quire_executor *executor = nullptr;
  check(quire_executor_create(model, pool, &options, &executor), "executor");
  quire_sequence sequence = 0;
  check(quire_sequence_create(pool, &sequence), "sequence");
  std::vector<float> logits(info->vocabulary);
  for (int64_t step = 0; step < 2; ++step) {
    int64_t count = 1, token = step, row = 0;
    quire_batch batch{sizeof batch, 1, &sequence, &count, &token, &row, 1};
    check(quire_executor_step(executor, &batch, logits.data()), "step");
  }
  const quire_trace_event *events = nullptr;
  int64_t count = 0;
  check(quire_executor_trace(executor, &events, &count), "trace");
  // For each step and layer: when it was asked for, acquired and released.
  auto find = [&](int64_t step, int64_t layer, int64_t kind) -> int64_t {
    for (int64_t i = 0; i < count; ++i)
      if (events[i].step == step && events[i].layer == layer && events[i].kind == kind)
        return i;
    return -1;
  };
  int failures = 0;
  for (int64_t step = 0; step < 2; ++step)
    for (int64_t layer = 0; layer < info->layer_count; ++layer) {
      int64_t asked = find(step, layer, QUIRE_TRACE_PREFETCH), acquired = find(step, layer, QUIRE_TRACE_ACQUIRE);
      int64_t before = layer ? find(step, layer - 1, QUIRE_TRACE_RELEASE) : count;
      bool good = asked >= 0 && acquired > asked && before > asked && find(step, layer, QUIRE_TRACE_RELEASE) > acquired;
      failures += !good;
      if (!good)
        std::fprintf(stderr, "step %ld, layer %ld: asked at %ld, acquired at %ld, the layer before released at %ld\n", long(step), long(layer), long(asked),
                     long(acquired), long(before));
    }
  std::printf("%ld layers, %d failures\n", long(info->layer_count), failures);
  quire_executor_destroy(executor);
  quire_pool_destroy(pool);
  quire_model_destroy(model);
  return failures ? 1 : 0;
}
