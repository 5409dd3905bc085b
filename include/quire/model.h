/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The contract between compiled model code and the runtime: one exported symbol, one step structure, one table of calls.
 *
 * A model's shared object exports `quire_model_query` and imports nothing but libm. Everything it needs from the runtime
 * arrives through `quire_step::runtime`. All integers are 64 bits wide, so that generated code reads field i at byte 8*i.
 */
#ifndef QUIRE_MODEL_H
#define QUIRE_MODEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a field of a structure below is added, moved or given another meaning. */
#define QUIRE_MODEL_ABI_VERSION 4

/* How one KV element is stored. I8 and I4 are unsigned codes c of the number zero + scale * c. Each QUIRE_CODE_GROUP features of a row of K or V, the
 * last ones fewer, are a group with an f32 scale and zero of its own. The codes of a group of n elements I4 take (n + 1) / 2 bytes: byte i has that of
 * its feature i in the lower half and that of its feature i + (n + 1) / 2, 0 where there is none, in the upper half.
 *
 * FP8_E4M3 and FP8_E5M2 are the formats of the OCP 8-bit Floating Point Specification 1.0, without scale. Numbers are rounded to the nearest, ties to
 * even. What the format does not reach (beyond 448 and 57344), infinities and NaN are stored as 0x7f, which is NaN in both: no number is replaced by
 * another one in silence. */
typedef enum quire_element {
  QUIRE_ELEMENT_F32 = 0,
  QUIRE_ELEMENT_F16 = 1,
  QUIRE_ELEMENT_BF16 = 2,
  QUIRE_ELEMENT_I8 = 3,
  QUIRE_ELEMENT_I4 = 4,
  QUIRE_ELEMENT_FP8_E4M3 = 5,
  QUIRE_ELEMENT_FP8_E5M2 = 6
} quire_element;

#define QUIRE_CODE_GROUP 128

/* Where the blocks of one layer lie during a step. Places [i * block_tokens, (i + 1) * block_tokens) of sequence s are in
 * block b = tables[s * table_stride + i], which starts at base + b * block_stride (bytes). Layers may have different tables:
 * each has its own part of the pages in memory. The runtime owns the memory; the view is valid from `acquire` to `release` of
 * that layer.
 *
 * `observed`, if not NULL, is room for what the last new row of each sequence attends to: of each of its blocks and each query head the sum of
 * exp(score - maximum) over the visible keys, and that maximum, which is not the same for all blocks. Blocks that the row does not see are left as they
 * are. Before `acquire` returns all of it is 0. */
typedef struct quire_kv_view {
  char *base;
  int64_t block_stride;
  const int32_t *tables; /* [sequences][table_stride] */
  float *observed;       /* [sequences][query_heads][table_stride][sum, maximum] */
} quire_kv_view;

/* A piece of a parallel loop: runs iterations [begin, end). */
typedef void (*quire_task_fn)(void *env, int64_t begin, int64_t end);

/* The calls that model code makes. Each operation of the `kvrt` dialect that is a call is one entry here. `context` is
 * `quire_step::context`. None of them allocates from the heap or blocks on I/O that was not requested before. */
typedef struct quire_runtime_table {
  int64_t struct_size;
  int64_t abi_version;
  /* Runs fn over [0, count) in chunks of at least `grain` iterations, on any threads, in any order; returns when all ran. */
  void (*parallel)(void *context, int64_t count, int64_t grain, quire_task_fn fn, void *env);
  /* Makes the blocks of `layer` resident for this step and says where they are. */
  void (*acquire)(void *context, int64_t layer, quire_kv_view *out);
  /* The step is done with the blocks of `layer`. */
  void (*release)(void *context, int64_t layer);
  /* Asks that the blocks of `layer` be resident soon: `count` blocks of every sequence from block `first` on; count < 0: all. */
  void (*prefetch)(void *context, int64_t layer, int64_t first, int64_t count);
} quire_runtime_table;

/* One step of the model over the new tokens of several sequences (a ragged batch), as the runtime describes it to the code.
 * Rows are the tokens of all sequences, one sequence after the other. Arrays are borrowed for the call.
 *
 * The *position* of a row is what the graph computes with: rotation, position tables, scales. Its *place* is where its K and V are stored, and decides which keys
 * it sees. Both count from 0 in the sequence. They are the same unless tokens were dropped from the sequence; then places are less, and both still ascend. */
typedef struct quire_step {
  const int64_t *ids;            /*  0 [tokens] token ids */
  const int64_t *positions;      /*  1 [tokens] position of the row in its sequence, dropped tokens counted */
  const int64_t *sequence_of;    /*  2 [tokens] index of the row's sequence in this step */
  const int64_t *query_starts;   /*  3 [sequences + 1] first row of each sequence; the last entry is `tokens` */
  const int64_t *past_lens;      /*  4 [sequences] tokens stored before this step */
  const int64_t *selected;       /*  5 [selected_count] rows whose logits are wanted, ascending */
  float *logits;                 /*  6 [selected_count][vocabulary] out */
  const char *weights;           /*  7 contents of weights.bin, 64-byte aligned */
  char *scratch;                 /*  8 64-byte aligned; size by the formula of quire_model */
  const quire_runtime_table *runtime; /* 9 */
  void *context;                 /* 10 first argument of every runtime call */
  int64_t tokens;                /* 11 */
  int64_t sequences;             /* 12 */
  int64_t table_stride;          /* 13 entries that a sequence has in a layer's tables */
  int64_t selected_count;        /* 14 */
  int64_t threads;               /* 15 that run parallel loops, the calling one included; results do not depend on it */
  const int64_t *places;         /* 16 [tokens] place of the row in its sequence: past_lens + offset in this step */
} quire_step;

/* One cached attention layer. A block of it holds K of all heads, then V of all heads, then padding:
 *   K: [kv_heads][block_tokens / lanes][key_dim][lanes]     V: [kv_heads][block_tokens][value_dim]
 * With elements I4, key_dim and value_dim stand for the bytes of a row, group after group: (key_dim + 1) / 2. No two tokens share a byte.
 * Scales and zeros of elements I8 and I4 follow K and V, each on the next multiple of 64 bytes: [kv_heads][groups][scale, zero][block_tokens]. */
typedef struct quire_model_layer {
  int64_t kv_heads;
  int64_t key_dim;
  int64_t value_dim;
  int64_t element;     /* quire_element */
  int64_t lanes;       /* tokens that lie side by side in K; divides block_tokens */
  int64_t value_offset; /* bytes from the start of the block to V */
  int64_t block_bytes; /* bytes of one block of this layer, padding included */
  int64_t query_heads; /* of the attention that is observed; 0: none is */
  int64_t window;      /* keys that a row sees at most, its own included; 0: all */
  int64_t place_is_position; /* 1: which keys a row sees, or their scores, follow from the positions of keys, for which the code takes their places; every
                                row then has its place for a position. 0: the order of keys is enough */
} quire_model_layer;

/* What a model says of itself. The memory belongs to the shared object. */
typedef struct quire_model_info {
  int64_t struct_size;
  int64_t abi_version;
  int64_t vocabulary;    /* width of a row of logits */
  int64_t token_limit;   /* token ids are in [0, token_limit) */
  int64_t max_positions; /* tokens a sequence may have; -1: no limit known */
  int64_t block_tokens;
  int64_t layer_count;
  const quire_model_layer *layers; /* [layer_count] */
  int64_t weights_bytes;           /* size of weights.bin */
  /* bytes of scratch for a step: fixed + per_token * tokens + per_selected * selected_count, rounded up to 64 */
  int64_t scratch_fixed;
  int64_t scratch_per_token;
  int64_t scratch_per_selected;
  void (*step)(const quire_step *step);
} quire_model_info;

/* The one symbol that a model's shared object exports. Returns NULL when it does not speak this ABI version. */
const quire_model_info *quire_model_query(int64_t abi_version);
typedef const quire_model_info *(*quire_model_query_fn)(int64_t abi_version);

#ifdef __cplusplus
}
#endif

#endif /* QUIRE_MODEL_H */
