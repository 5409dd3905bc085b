// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arithmetic of the toy decoder, shared by its paged form and by the contiguous reference.
#ifndef QUIRE_TEST_UNIT_RUNTIME_TOYMODEL_H
#define QUIRE_TEST_UNIT_RUNTIME_TOYMODEL_H

#include <stdint.h>

/* All state is an integer below this prime: exact in f32, so results do not depend on the order of work. */
#define TOY_PRIME 65521
#define TOY_VOCABULARY 97
#define TOY_QUERY_HEADS 2
#define TOY_LAYERS 3
#ifndef TOY_BLOCK_TOKENS
#define TOY_BLOCK_TOKENS 16
#endif
#ifndef TOY_PLACE_IS_POSITION
#define TOY_PLACE_IS_POSITION 0 /* 1: it says so; it does not need it */
#endif
#ifndef TOY_ASKS_FIRST
#define TOY_ASKS_FIRST 0 /* 1: it asks for a layer's blocks before it acquires the layer ahead of it, as compiled models do */
#endif
#ifndef TOY_MAX_POSITIONS
#define TOY_MAX_POSITIONS 256
#endif

static inline int64_t toyEmbed(int64_t token) { return (token * 7919 + 13) % TOY_PRIME; }

/* Element `d` of head `h` of K (which = 0) or V (which = 1) of a row with state `state` at `position`. */
static inline int64_t toyElement(int64_t state, int64_t position, int64_t layer, int64_t which, int64_t h, int64_t d) {
  return (state * (31 + 2 * d) + position * 101 + layer * 1009 + which * 5003 + h * 257 + d) % TOY_PRIME;
}

/* Takes one stored element into the running state; the order matters. */
static inline int64_t toyMix(int64_t state, int64_t element) { return (state * 33 + element + 7) % TOY_PRIME; }

/* A third of the logits is equal to another one, so that ties are met. */
static inline float toyLogit(int64_t state, int64_t v, int32_t weight) {
  int64_t u = v % 3 == 2 ? v - 1 : v;
  int64_t mixed = (state * (u + 1) * 2657 + u * 97) % TOY_PRIME;
  return (float)(mixed % 4096) / 64.0f + (float)weight;
}

/* Weights: one int32 for each token of the vocabulary. */
static inline int32_t toyWeight(int64_t v) { return (int32_t)((v % 3 == 2 ? v - 1 : v) * 5 % 11); }

#endif /* QUIRE_TEST_UNIT_RUNTIME_TOYMODEL_H */
