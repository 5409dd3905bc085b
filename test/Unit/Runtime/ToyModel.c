// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A deterministic toy decoder in the form that compiled models have: rows are stored in pages and read back through the
// tables.
#include "ToyModel.h"

#include "quire/model.h"

#include <math.h>

#define PAD(bytes) (((bytes) + 63) / 64 * 64)
#define KEY_BYTES(heads, dim) ((heads) * (dim)*TOY_BLOCK_TOKENS * 4)
#define LAYER(heads, key, value)                                                                                       \
  {                                                                                                                    \
    heads, key, value, QUIRE_ELEMENT_F32, 4, KEY_BYTES(heads, key),                                                    \
        PAD(KEY_BYTES(heads, key) + KEY_BYTES(heads, value)), TOY_QUERY_HEADS, 0, TOY_PLACE_IS_POSITION                                       \
  }

static const quire_model_layer layers[TOY_LAYERS] = {LAYER(2, 4, 4), LAYER(1, 8, 2), LAYER(3, 2, 6)};

typedef struct Environment {
  const quire_step *step;
  int64_t layer;
  quire_kv_view view;
  int64_t *state; /* [tokens]; -1: something that is no stored element was read */
} Environment;

static float *elementAt(const Environment *e, int64_t sequence, int64_t place, int64_t which, int64_t h, int64_t d) {
  const quire_model_layer *l = &layers[e->layer];
  int64_t block = e->view.tables[sequence * e->step->table_stride + place / TOY_BLOCK_TOKENS];
  int64_t slot = place % TOY_BLOCK_TOKENS;
  char *base = e->view.base + block * e->view.block_stride;
  if (which == 0) {
    int64_t group = (h * (TOY_BLOCK_TOKENS / l->lanes) + slot / l->lanes) * l->key_dim + d;
    return (float *)base + group * l->lanes + slot % l->lanes;
  }
  return (float *)(base + l->value_offset) + (h * TOY_BLOCK_TOKENS + slot) * l->value_dim + d;
}

static int64_t width(const quire_model_layer *l, int64_t which) { return which ? l->value_dim : l->key_dim; }

static void storeRows(void *env, int64_t begin, int64_t end) {
  Environment *e = env;
  const quire_model_layer *l = &layers[e->layer];
  for (int64_t row = begin; row < end; ++row) {
    int64_t sequence = e->step->sequence_of[row], place = e->step->places[row];
    for (int64_t which = 0; which < 2; ++which)
      for (int64_t h = 0; h < l->kv_heads; ++h)
        for (int64_t d = 0; d < width(l, which); ++d)
          *elementAt(e, sequence, place, which, h, d) =
              (float)toyElement(e->state[row] < 0 ? 0 : e->state[row], e->step->positions[row], e->layer, which, h, d);
  }
}

static void readRows(void *env, int64_t begin, int64_t end) {
  Environment *e = env;
  const quire_model_layer *l = &layers[e->layer];
  for (int64_t row = begin; row < end; ++row) {
    int64_t sequence = e->step->sequence_of[row], state = e->state[row];
    for (int64_t place = 0; place <= e->step->places[row] && state >= 0; ++place)
      for (int64_t which = 0; which < 2; ++which)
        for (int64_t h = 0; h < l->kv_heads; ++h)
          for (int64_t d = 0; d < width(l, which); ++d) {
            float element = *elementAt(e, sequence, place, which, h, d);
            int whole = element >= 0 && element < TOY_PRIME && element == (float)(int64_t)element;
            state = whole && state >= 0 ? toyMix(state, (int64_t)element) : -1;
          }
    e->state[row] = state;
  }
}

/* Head 0 looks at all keys alike; of head 1 each key of a block has e times the weight of one of the block before. */
static void observe(const Environment *e) {
  const quire_step *step = e->step;
  for (int64_t s = 0; s < step->sequences; ++s) {
    int64_t length = step->places[step->query_starts[s + 1] - 1] + 1;
    for (int64_t h = 0; h < TOY_QUERY_HEADS; ++h)
      for (int64_t i = 0; i * TOY_BLOCK_TOKENS < length; ++i) {
        int64_t keys = length - i * TOY_BLOCK_TOKENS;
        float *to = e->view.observed + ((s * TOY_QUERY_HEADS + h) * step->table_stride + i) * 2;
        to[0] = (float)(keys < TOY_BLOCK_TOKENS ? keys : TOY_BLOCK_TOKENS);
        to[1] = h == 0 ? 5.0f : (float)i;
      }
  }
}

static void toyStep(const quire_step *step) {
  const quire_runtime_table *runtime = step->runtime;
  Environment e = {step, 0, {0, 0, 0, 0}, (int64_t *)step->scratch};
  for (int64_t row = 0; row < step->tokens; ++row)
    e.state[row] = toyEmbed(step->ids[row]);
  if (TOY_ASKS_FIRST)
    runtime->prefetch(step->context, 0, 0, -1);
  for (e.layer = 0; e.layer < TOY_LAYERS; ++e.layer) {
    if (TOY_ASKS_FIRST && e.layer + 1 < TOY_LAYERS)
      runtime->prefetch(step->context, e.layer + 1, 0, -1);
    runtime->acquire(step->context, e.layer, &e.view);
    if (!TOY_ASKS_FIRST && e.layer + 1 < TOY_LAYERS)
      runtime->prefetch(step->context, e.layer + 1, 0, -1);
    runtime->parallel(step->context, step->tokens, 1, storeRows, &e);
    runtime->parallel(step->context, step->tokens, 1, readRows, &e);
    if (e.view.observed)
      observe(&e);
    runtime->release(step->context, e.layer);
  }
  const int32_t *weights = (const int32_t *)step->weights;
  for (int64_t i = 0; i < step->selected_count; ++i) {
    int64_t state = e.state[step->selected[i]];
    for (int64_t v = 0; v < TOY_VOCABULARY; ++v)
      step->logits[i * TOY_VOCABULARY + v] = state < 0 ? NAN : toyLogit(state, v, weights[v]);
  }
}

static const quire_model_info info = {sizeof(quire_model_info),
#ifdef TOY_OLD_INTERFACE
                                      QUIRE_MODEL_ABI_VERSION + 1,
#else
                                       QUIRE_MODEL_ABI_VERSION,
#endif
                                      TOY_VOCABULARY,
                                      TOY_VOCABULARY,
                                      TOY_MAX_POSITIONS,
                                      TOY_BLOCK_TOKENS,
                                      TOY_LAYERS,
                                      layers,
                                      TOY_VOCABULARY * 4,
                                      64,
                                      8,
                                      0,
                                      toyStep};

#ifdef TOY_WITHOUT_QUERY
#define quire_model_query quire_model_not_this_name
const quire_model_info *quire_model_not_this_name(int64_t abi_version);
#endif

const quire_model_info *quire_model_query(int64_t abi_version) {
#ifdef TOY_OLD_INTERFACE
  (void)abi_version;
  return &info;
#else
  return abi_version == QUIRE_MODEL_ABI_VERSION ? &info : 0;
#endif
}
