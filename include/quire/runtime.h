/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * The runtime's C interface: paged KV pool, sequences with block tables, model loading, and steps over ragged batches.
 *
 * Terms. A *token position* is one row of K and V in every layer. A *block* holds `block_tokens` consecutive positions of one
 * sequence, but for those that were dropped (quire_sequence_prune); its number is the same in all layers. A *block table* lists the blocks of a
 * sequence in order of position.
 * A *step* runs the model once over the new tokens of several sequences.
 *
 * Conventions.
 * - Functions that can fail return quire_status; results come through the last parameters, which are written on success only.
 * - A failed call changes nothing (quire_executor_step included), and leaves a text for quire_last_error() on its thread.
 * - Option and result structures start with `struct_size`; set it to sizeof the structure. Fields beyond it take defaults
 *   (options) or stay unwritten (results), so that programs built against an older header keep working. Zero an option
 *   structure to get its defaults. A NULL options pointer means all defaults.
 * - Sizes are bytes, times nanoseconds, lengths tokens, unless a name says otherwise.
 * - Handles (quire_sequence, quire_block) carry a generation: using one after its release gives QUIRE_STALE_HANDLE.
 * - Threads: a pool and everything made from it (sequences, blocks, executors) belong to one thread at a time; the caller
 *   serialises. A model is immutable and may be shared. Different pools are independent. No function is safe in a signal handler.
 * - Ownership: `..._create` and `quire_model_load` give an object that the matching `..._destroy` ends; destroying NULL is
 *   allowed. Executors keep their model and pool alive, so the order of destruction does not matter.
 * - Nothing here throws, exits or prints.
 */
#ifndef QUIRE_RUNTIME_H
#define QUIRE_RUNTIME_H

#include "quire/model.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*===----------------------------------------------------------------------===*
 * Errors
 *===----------------------------------------------------------------------===*/

typedef enum quire_status {
  QUIRE_OK = 0,
  QUIRE_INVALID_ARGUMENT = 1, /* the call breaks its contract */
  QUIRE_STALE_HANDLE = 2,     /* the sequence or block was released */
  QUIRE_OUT_OF_BLOCKS = 3,    /* the pool has fewer free blocks than needed; release some and repeat */
  QUIRE_OUT_OF_MEMORY = 4,    /* the system gave no memory, or has less than was asked for */
  QUIRE_TOO_LONG = 5,         /* beyond the model's max_positions */
  QUIRE_IO_ERROR = 6,         /* a file cannot be opened or read */
  QUIRE_BAD_ARTEFACT = 7,     /* a file of the model is missing, truncated, edited or malformed */
  QUIRE_WRONG_VERSION = 8,    /* the model was written for another version of the format or the ABI */
  QUIRE_UNSUPPORTED_CPU = 9,  /* the model needs instructions that this machine lacks */
  QUIRE_INVARIANT_BROKEN = 10, /* a defect of the runtime or of the model's code was caught */
  QUIRE_NO_SPACE = 11,         /* the slow tier's device is full, below its quota */
  QUIRE_PAGE_LOST = 12         /* stored K and V cannot be read back, or not as they were written; see the call */
} quire_status;

/* Name of a status, such as "out of blocks". Never NULL; the memory is static. */
const char *quire_status_name(quire_status status);

/* What the last failed call on this thread had to say. Never NULL; valid until the next failing call on this thread. */
const char *quire_last_error(void);

/* Version of this library, such as "0.1.0". Static memory. */
const char *quire_runtime_version(void);

/*===----------------------------------------------------------------------===*
 * Machine and files
 *===----------------------------------------------------------------------===*/

/* 1: this machine (CPU and operating system) has the feature, 0: it lacks it, -1: the name is not known. Names are LLVM's,
 * such as "avx2" or "avx512vnni". */
int quire_cpu_has_feature(const char *name);

/* The checksum that manifests record (XXH3, 64 bits, seed 0) over a whole file, and the file's size. */
quire_status quire_checksum_file(const char *path, uint64_t *hash, uint64_t *bytes);

/*===----------------------------------------------------------------------===*
 * Models
 *===----------------------------------------------------------------------===*/

typedef struct quire_model quire_model;

/* Loads the folder that `quirec` wrote. Everything is checked before any of its code runs: format version, CPU features, sizes
 * and checksums of all files, and that manifest and code agree. The checks find damage, not malice: a model is code. */
quire_status quire_model_load(const char *folder, quire_model **out);

/* Wraps code and weights that are already in this process. Both are borrowed and must outlive the model; `weights` is aligned
 * to 64 bytes and has info->weights_bytes bytes. */
quire_status quire_model_from_info(const quire_model_info *info, const void *weights, quire_model **out);

/* What the model says of itself; valid as long as the model. */
const quire_model_info *quire_model_get_info(const quire_model *model);

/* Bytes of one block over all layers. */
int64_t quire_model_block_bytes(const quire_model_info *info);

/* K and V of one token and one KV head in a block of a layer, as numbers. `info` is a model's, `block` is what quire_pool_block_address or quire_pool_pin gave, `token`
 * counts in the block, `key` has key_dim and `value` value_dim numbers. Storing rounds to the layer's element type; elements I8 and I4 are codes with
 * the least number as zero and a 255th or a 15th of the range as scale. What elements FP8 do not reach becomes NaN. */
quire_status quire_block_load_row(const quire_model_info *info, int64_t layer, const void *block, int64_t head,
                                  int64_t token, float *key, float *value);
quire_status quire_block_store_row(const quire_model_info *info, int64_t layer, void *block, int64_t head, int64_t token,
                                   const float *key, const float *value);

void quire_model_destroy(quire_model *model);

/*===----------------------------------------------------------------------===*
 * Pool of blocks
 *===----------------------------------------------------------------------===*/

typedef struct quire_pool quire_pool;

/* A counted reference to one block. 0 is never valid. */
typedef uint64_t quire_block;

typedef struct quire_pool_options {
  size_t struct_size;
  uint64_t bytes;        /* budget for KV: the pool has floor(bytes / block bytes) blocks; 0: 256 MiB */
  int32_t shuffle;       /* not 0: blocks are handed out in a pseudo-random order, for tests */
  int32_t poison;        /* not 0: free blocks are filled with 0xFF bytes (NaN in every float format), for tests */
  uint64_t shuffle_seed; /* the order depends on nothing else */
  int32_t zero_on_free;  /* not 0: a block is filled with 0 when it becomes free; with `poison`, with 0xFF */
  int32_t prefix_cache;  /* not 0: blocks can be published and found by prefix */
  int32_t exportable;    /* not 0: the arena is a file in memory (memfd) that quire_pool_export shares */
  const struct quire_slow_tier_options *slow; /* NULL: all blocks are in memory */
  /* not 0: the address of a block in each layer, which quire_pool_pin and quire_pool_block_address give, is the same as long as the block lives,
   * also when its pages leave and come back. With a slow tier each page then takes whole pages of the system out of `bytes`; without one it keeps
   * quire_pool_compact from moving blocks. */
  int32_t stable_va;
} quire_pool_options;

/* Which page gives way when one is wanted. */
typedef enum quire_replacement {
  QUIRE_REPLACE_SCAN = 0,       /* the one used last: attention reads all pages of a layer, layer after layer, in a cycle */
  QUIRE_REPLACE_LRU = 1,        /* the one unused for longest; hits 0 in a cycle that is larger than the fast tier */
  QUIRE_REPLACE_IMPORTANCE = 2, /* the one with the least attention mass lately */
  QUIRE_REPLACE_ARC = 3         /* adaptive: between what was used once and what was used often */
} quire_replacement;

/* How many layers share a page, if layers_per_page is 0. The tokens of a block are the compiled model's. */
typedef enum quire_page_rule {
  QUIRE_PAGES_OF_ONE_LAYER = 0,
  QUIRE_PAGES_BY_CACHE = 1,   /* the most whose page is within the L2 cache of a core / (2 * concurrency), and within 4 KiB and 4 MiB */
  QUIRE_PAGES_BY_TRANSFER = 2 /* the fewest whose pages move with 80 % of the best speed of all choices, in batches of 32, measured on the tier */
} quire_page_rule;
/* A slow tier under another one. Pages that give way go to the uppermost tier with a free slot and are read back
 * from there; a tier that is full or that fails sends the next ones to the tiers below it. */
typedef struct quire_lower_tier_options {
  size_t struct_size;
  const char *where; /* as in quire_slow_tier_options; the file of each tier is its own */
  uint64_t bytes;
  int32_t checksum;  /* as there */
  const struct quire_lower_tier_options *lower; /* the tier below this one; NULL: this is the last */
} quire_lower_tier_options;

/* A second, slow tier under the pool's memory, which `bytes` of quire_pool_options then is: the fast tier. A *page* is one block
 * of `layers_per_page` layers; pages move between the tiers while steps run. The pool has as many blocks as all tiers
 * hold, less a sixteenth of the fast one, but at most what the slow ones add. With a codec it has those of the slow tiers only;
 * if these are fewer than those of the fast one alone, that is refused with QUIRE_INVALID_ARGUMENT. So are files larger than the free space of their file system, and, with QUIRE_OUT_OF_MEMORY, tables
 * that do not fit into the memory that is available. */
typedef struct quire_slow_tier_options {
  size_t struct_size;
  const char *where; /* "memory", "file:PATH", "throttled" or "throttled:LATENCY,BANDWIDTH", such as throttled:100us,2GB/s */
  uint64_t bytes;
  int32_t replacement;     /* quire_replacement */
  int32_t checksum;        /* 0: as the tier has it (on for files), 1: on, -1: off */
  int64_t prefetch_window; /* pages of each sequence that may be on their way ahead of need; 0: 3, -1: none */
  int64_t layers_per_page; /* 0: 1 */
  int64_t deadline;        /* nanoseconds that a step waits for a page before it counts as lost; 0: 30 s */
  /* Lossy: pages are stored encoded, and come back as the codec has them; a page that never left keeps its bits. "int8_g128",
   * "int4_g128", "fp8_e4m3", "fp8_e5m2", "sparse_8_1_bitmap", "sparse_8_1_index"; NULL, "none": as they are. The pool then has as
   * many blocks as the slow tier holds. Not for elements of 8 bits or fewer. */
  const char *codec;
  int64_t page_rule;   /* quire_page_rule; 1, 2, 4 and so on or all layers */
  int64_t concurrency; /* sequences of a step, for the rule by cache; 0: 8 */
  const quire_lower_tier_options *lower; /* the tier below this one, all with the same codec; NULL: none */
  int32_t digests; /* not 0: bounds of the keys of each page stay in memory, for quire_sequence_prefetch_by_query: 8 bytes for each
                      channel of a KV head, layer and block */
} quire_slow_tier_options;

typedef struct quire_pool_stats {
  size_t struct_size;
  int64_t blocks_total;
  int64_t blocks_free;
  int64_t blocks_peak; /* most blocks in use at any time */
  int64_t block_bytes; /* over all layers */
  int64_t block_tokens;
  int64_t sequences;    /* alive */
  int64_t allocations;  /* blocks handed out since creation */
  int64_t copied_bytes; /* stored KV copied between blocks (a fork that grows inside a shared block) */
  int64_t step_blocks;  /* most blocks that the sequences of one step may have together; with a slow tier fewer than all */
  int64_t blocks_reclaimable; /* cached prefixes that nobody uses: not free, but handed out when free ones are short; of those, what
                                 gives room once the slow tier is full */
  int64_t reserve_blocks;     /* the last ones, which sequences that are new may not take; see quire_pool_tuning */
  int64_t reserve_hits;       /* blocks taken out of these */
  int64_t reserve_peak;       /* most of them in use at any time */
  int64_t reserve_exhausted;  /* how often none was left for who might take them */
  int64_t blocks_limit;       /* most that can be in use: blocks_total, or fewer after quire_pool_resize_fast */
  int64_t compacted_blocks;   /* that quire_pool_compact has moved */
  int64_t compacted_bytes;    /* of them */
  int64_t pruned_tokens;      /* that quire_sequence_prune has dropped */
  int64_t pruned_blocks;      /* that sequences have fewer by it */
} quire_pool_stats;

/* What a slow tier did since the pool was made. Words are defined in docs/Runtime.md, "Tiers". All zero without one. */
typedef struct quire_paging_stats {
  size_t struct_size;
  int64_t page_bytes;
  int64_t fast_pages;
  int64_t slow_pages;
  int64_t metadata_bytes; /* of the page table */
  int64_t demands, hits, late, misses, polluted_misses;
  int64_t prefetch_issued, prefetch_redundant, prefetch_useful, prefetch_timely, prefetch_dropped;
  int64_t evicted_for_demand, evicted_for_prefetch, evicted_for_write;
  int64_t seals, write_backs;
  int64_t bytes_in_demand, bytes_in_prefetch, bytes_out;
  int64_t retries, pages_lost, no_space;
  int64_t stall_ns, table_ns, step_ns, steps;
  int64_t pinned_blocks, pin_budget_blocks; /* of quire_sequence_pin and of dialogues: that are held now, and at most */
  int64_t pins_given_up;                    /* blocks that were held no longer, beyond the budget or for a step */
  int64_t erasures_failed;                  /* slots of the slow tier that could not be erased: they are never used again and may hold what they held */
  int64_t stored_page_bytes;                /* of a page in the slow tier: fewer than page_bytes with a codec. Bytes above are of whole pages */
  int64_t pages_refused;                    /* stores of pages that the codec does not take; they stay in the fast tier */
  int64_t codec_samples;                    /* pages that were compared when they were encoded, every 16th */
  double codec_error;                       /* of these: norm of all differences / norm of all K and V */
  int64_t layers_per_page;                  /* as given, or as page_rule chose */
  int64_t idle_blocks;                      /* sent to the slow tier since no step used them, see idle_steps of quire_pool_tuning */
  int64_t pages_refused_held;               /* pages in the fast tier now that cannot leave it, since the codec did not take them */
  int64_t slow_tiers;                       /* see quire_pool_get_tier_stats */
  int64_t digest_bytes;                     /* of bounds of keys, part of metadata_bytes */
  int64_t digests_made;                     /* of pages: when they are written back, and when they are asked for */
  int64_t fast_page_stride;                 /* what a page takes of the fast tier: page_bytes, with stable_va in whole pages of the system */
  int64_t fast_bytes_with_memory;           /* of the fast tier: all of it; with stable_va what pages have now, which is no more */
  int64_t memory_returns;                   /* system calls that gave memory of pages back, for stable_va */
  int64_t memory_bytes_returned;            /* by them */
} quire_paging_stats;

/* What one of the slow tiers did since the pool was made; the tiers add up to what quire_paging_stats has. */
typedef struct quire_tier_stats {
  size_t struct_size;
  const char *name;       /* "memory", "file" or "throttled"; valid as long as the pool */
  int64_t pages;          /* that it holds at most */
  int64_t pages_used;     /* slots that have a page, or are being erased */
  int64_t pages_given_up; /* slots that failed: they are never used again */
  int64_t closed;         /* 1: it is full below its quota, or fails, and takes no new pages */
  int64_t pages_in;       /* loads that succeeded */
  int64_t pages_out;      /* write-backs */
  int64_t retries, pages_lost, no_space, erasures_failed;
} quire_tier_stats;

/* Makes a pool for models of this shape. The arena is one mapping of the budget's size, in huge pages where the system has them,
 * never moved, never grown; all of it is committed here, so that no step waits for memory. (With a slow tier and `stable_va` it has an address for every
 * page of all tiers, and the budget's memory is committed here for the first ones.) Fails with
 * QUIRE_OUT_OF_BLOCKS if the budget holds no block, and with QUIRE_OUT_OF_MEMORY, before it allocates anything, if the pool and
 * its tables are larger than the memory of the machine, or than its control groups allow. `info` is needed during the call only. */
quire_status quire_pool_create(const quire_model_info *info, const quire_pool_options *options, quire_pool **out);

/* Ends the pool with all its sequences and blocks. Executors that use it keep its memory until they end. */
void quire_pool_destroy(quire_pool *pool);

quire_status quire_pool_get_stats(const quire_pool *pool, quire_pool_stats *out);

quire_status quire_pool_get_paging_stats(const quire_pool *pool, quire_paging_stats *out);

/* `tier` counts from 0, the one below the fast tier; QUIRE_INVALID_ARGUMENT if there are not so many. */
quire_status quire_pool_get_tier_stats(const quire_pool *pool, int64_t tier, quire_tier_stats *out);

/* What is fetched ahead of need. */
typedef enum quire_prefetch {
  QUIRE_PREFETCH_NONE = 0,
  QUIRE_PREFETCH_SEQUENTIAL = 1, /* along the order in which steps read: the pages of the next layer */
  QUIRE_PREFETCH_HOTSPOT = 2,    /* those pages of the next layer that the predictor names, the hottest first */
  QUIRE_PREFETCH_HYBRID = 3      /* these first, then the others in their order */
} quire_prefetch;

/* Whose attention names the hot pages of a layer, prefetch_topk of each sequence. Needs a model with observed layers. */
typedef enum quire_predictor {
  QUIRE_PREDICT_LAYER_AHEAD = 0, /* that of the layer before it, in the same step; known when that layer is released */
  QUIRE_PREDICT_SEED_HOTSPOT = 1 /* its own, when it was attended to last: in the step before, as a rule */
} quire_predictor;

/* What may change while a pool is in use, from the next call or step on. */
typedef struct quire_pool_tuning {
  size_t struct_size;
  /* Share of the pool's blocks (with a slow tier: of those that the fast one holds), rounded down, that a new sequence may not
   * take, nor quire_pool_allocate, while other sequences have blocks: they are for those that grow, and for copies of shared
   * blocks. A sequence is new until it has reserved blocks or taken part in a step. 0 to 0.5; 0 in a new pool. */
  double reserve_ratio;
  /* Share of the fast tier that pinned ranges may take, see quire_sequence_pin. 0 to 1; 0.25 in a new pool. */
  double pin_budget;
  int64_t prefetch_strategy; /* quire_prefetch; sequential in a new pool */
  int64_t prefetch_window;   /* as quire_pool_set_prefetch_window */
  /* Most bytes that may be on their way ahead of need at any time; a page that is larger is not fetched. UINT64_MAX, no
   * limit, in a new pool. Within both limits a batch shares: each sequence has a window in proportion to the pages that it has
   * yet to get, and together they are at most prefetch_window times the sequences. */
  uint64_t prefetch_bytes;
  int64_t time_blocks; /* not 0: quire_pool_get_latency knows handing out and giving back too; costs two readings of a clock each */
  int64_t prefetch_predictor; /* quire_predictor, for hotspot and hybrid; layer_ahead in a new pool */
  int64_t prefetch_topk;      /* blocks that it names for each sequence and layer, at least 1; 2 in a new pool */
  /* Full blocks that no step of an executor used for so many steps leave for the slow tier, at most 16 after a step, but for those that are
   * pinned; a step that reads them brings them back. With a codec they are compressed by it, which is lossy as it says. 0: never, as in a new
   * pool. */
  int64_t idle_steps;
} quire_pool_tuning;

quire_status quire_pool_get_tuning(const quire_pool *pool, quire_pool_tuning *out);
/* All or nothing; fields beyond struct_size stay. Get, change, set. */
quire_status quire_pool_set_tuning(quire_pool *pool, const quire_pool_tuning *tuning);

/* Pages of each sequence that may be on their way ahead of need; from the next step on. Without a slow tier nothing. */
quire_status quire_pool_set_prefetch_window(quire_pool *pool, int64_t pages);

/* What takes time in a pool. Those of pages need a slow tier. */
typedef enum quire_operation {
  QUIRE_OPERATION_ALLOCATE = 0,     /* handing out blocks, evictions of prefixes included; only with time_blocks */
  QUIRE_OPERATION_FREE = 1,         /* giving back one reference to a block; only with time_blocks */
  QUIRE_OPERATION_ACQUIRE_HIT = 2,  /* of a layer, all pages of which were in memory */
  QUIRE_OPERATION_ACQUIRE_MISS = 3, /* of the others, until all were */
  QUIRE_OPERATION_MAKE_ROOM = 4     /* from the first page that had to give way until all had */
} quire_operation;

typedef struct quire_latency_stats {
  size_t struct_size;
  int64_t count, sum_ns;
  int64_t p50_ns, p99_ns, max_ns; /* at most an eighth too large; 0 while nothing was recorded */
} quire_latency_stats;

quire_status quire_pool_get_latency(const quire_pool *pool, int64_t operation, quire_latency_stats *out); /* operation: a quire_operation */

/* Records what steps ask of their pages from now on, `events` of them at most; 0 ends it. An error without a slow tier. */
quire_status quire_pool_trace(quire_pool *pool, int64_t events);
/* Writes the record as trace event JSON, which quire-replay, Perfetto and chrome://tracing read; to a temporary name, then
 * renamed. A device or a pipe is written to as it is, a link keeps leading to the file. */
quire_status quire_pool_write_trace(const quire_pool *pool, const char *path);

typedef struct quire_doctor_options {
  size_t struct_size;
  int32_t json;        /* not 0: JSON instead of text */
  int64_t preemptions; /* of the caller's scheduling, for the rules about room */
  /* When to speak; 0: the default, negative: 0. */
  double page_table_max; /* share of a step's time, and of the bytes of K and V, that page tables take (0.05) */
  double min_hit;        /* share of demands that find their page (0.9) */
  double frag_max;       /* share of allocated bytes without tokens (0.1) */
} quire_doctor_options;

/* Metrics of the pool and what to change, each with the number that led to it; docs/Runtime.md has the rules. With a trace
 * also the distance to the best possible replacement. The text is the pool's, until the next call of this or
 * quire_metrics. */
quire_status quire_doctor(quire_pool *pool, const quire_doctor_options *options, const char **text);

/* Counters, gauges of blocks, and latencies in the text format that Prometheus scrapes. What a tenant's sequences caused has the number of the tenant
 * (the lower half of its handle) as label, what is nobody's in particular has none. */
quire_status quire_metrics(quire_pool *pool, const char **text);

/* Makes the pool's memory, with a slow tier the fast one, as large as this: at most as large as it was made, and at least one block.
 * Made smaller, the memory of free blocks goes back to the system, as far as these fill whole pages of it; with a slow tier pages
 * move there and together first, which waits for it. Larger again, memory is committed. blocks_limit, step_blocks and
 * reserve_blocks follow; block numbers and content stay. Not during a step, nor for a tenant. On failure the size is as
 * before: QUIRE_OUT_OF_BLOCKS if more blocks are in use than there would be (cached prefixes without users give way, but only
 * if that is enough), QUIRE_NO_SPACE if the slow tier takes nothing, QUIRE_OUT_OF_MEMORY, QUIRE_INVALID_ARGUMENT for another size, for
 * a pool with `exportable`, or if a page that quire_pool_pin holds lies in what would go (with `stable_va` it stays, and takes its part of what is left). After QUIRE_NO_SPACE cached blocks that gave way
 * are gone. */
quire_status quire_pool_resize_fast(quire_pool *pool, uint64_t bytes);

typedef struct quire_compaction {
  size_t struct_size;
  int64_t blocks; /* that moved */
  int64_t bytes;  /* of them, over all layers */
} quire_compaction;

/* Moves blocks of sequences and of cached prefixes, the highest into the lowest places that nobody uses, until none can move. What
 * quire_pool_resize_fast gave up then lies together, so that its memory goes back to the system also where blocks are smaller than a page of
 * that. Handles and content stay, numbers in block tables change, and the number that a block leaves gets another generation. Blocks that
 * quire_pool_allocate gave out and those with a page that quire_pool_pin holds stay where they are. With a slow tier nothing
 * moves: its pages go together when the size changes. Not during a step, nor for a tenant. `out` may be NULL.
 * QUIRE_INVALID_ARGUMENT for a pool with `exportable`, whose blocks other processes read, or with `stable_va` and no slow tier; QUIRE_OUT_OF_MEMORY. O(blocks). */
quire_status quire_pool_compact(quire_pool *pool, quire_compaction *out);

/* Finishes every transfer that is under way. */
quire_status quire_pool_settle(quire_pool *pool);

/* Checks every invariant of the pool (see docs/Runtime.md); O(blocks). Debug builds do so after every operation and abort. */
quire_status quire_pool_validate(const quire_pool *pool);

/* All or nothing: `count` blocks with one reference each, or QUIRE_OUT_OF_BLOCKS. O(count). For callers that keep block tables
 * of their own; sequences below need none of these. */
quire_status quire_pool_allocate(quire_pool *pool, int64_t count, quire_block *out);
quire_status quire_block_retain(quire_pool *pool, quire_block block);
quire_status quire_block_release(quire_pool *pool, quire_block block);

/* The number that goes into block tables. */
quire_status quire_block_index(const quire_pool *pool, quire_block block, int32_t *out);

/* Where block number `index` of `layer` lies; its size is that layer's block_bytes. Valid as long as the pool, but see quire_pool_compact. With a slow
 * tier blocks move: an error; see quire_pool_pin. Unless the pool has stable_va: then the address is the block's as long as it lives, and what lies
 * there is the block's content only while quire_pool_pin holds it: nobody may write there otherwise, and what is read means nothing. */
quire_status quire_pool_block_address(const quire_pool *pool, int64_t layer, int32_t index, void **out);

/* Brings block number `index` of `layer`, which is in use, into memory, as the layers that share a page with it, and keeps it there, and where
 * it is, until quire_pool_unpin has been called as often or the block is free. `write` not 0: the caller will write to it; otherwise a block without content is
 * an error. Waits for the slow tier. Not during a step. QUIRE_PAGE_LOST, QUIRE_NO_SPACE. */
quire_status quire_pool_pin(quire_pool *pool, int64_t layer, int32_t index, int32_t write, void **address);
quire_status quire_pool_unpin(quire_pool *pool, int64_t layer, int32_t index);

/*===----------------------------------------------------------------------===*
 * Sequences
 *===----------------------------------------------------------------------===*/

/* One sequence of tokens and its block table. 0 is never valid. */
typedef uint64_t quire_sequence;

/* An empty sequence; takes no block. */
quire_status quire_sequence_create(quire_pool *pool, quire_sequence *out);

/* Gives all blocks back. */
quire_status quire_sequence_release(quire_pool *pool, quire_sequence sequence);

/* A new sequence with the first `length` tokens of this one. Blocks are shared; a shared block is copied by the first of its
 * owners that writes into it. */
quire_status quire_sequence_fork(quire_pool *pool, quire_sequence sequence, int64_t length, quire_sequence *out);

/* Makes room for `tokens` more than the length, in blocks that no other sequence shares. All or nothing; QUIRE_OUT_OF_BLOCKS
 * or QUIRE_TOO_LONG. Repeating it is free. With a slow tier also QUIRE_PAGE_LOST or QUIRE_NO_SPACE, if a shared block cannot be
 * copied. What is lost is found out before any cached block gives way; cached blocks that gave way for a copy that then finds
 * no room are gone. */
quire_status quire_sequence_reserve(quire_pool *pool, quire_sequence sequence, int64_t tokens);

/* Declares `tokens` reserved positions written. quire_executor_step does this itself. */
quire_status quire_sequence_commit(quire_pool *pool, quire_sequence sequence, int64_t tokens);

/* Shortens to `length` tokens and gives back the blocks that hold none of them, unused reservations included. */
quire_status quire_sequence_truncate(quire_pool *pool, quire_sequence sequence, int64_t length);

/* Tokens stored. */
quire_status quire_sequence_length(const quire_pool *pool, quire_sequence sequence, int64_t *out);

/* Tokens before the first one whose K and V were lost, or the length. After QUIRE_PAGE_LOST truncate to it and append the
 * rest of the tokens again, in every sequence that shares the block. */
quire_status quire_sequence_intact(const quire_pool *pool, quire_sequence sequence, int64_t *out);

/* The block table: *blocks points to *count numbers, valid until the next call that changes the sequence, or quire_pool_compact. */
quire_status quire_sequence_table(const quire_pool *pool, quire_sequence sequence, const int32_t **blocks,
                                  int64_t *count);

/* Ranges that stay in the fast tier. Tokens [begin, end) of a sequence, which are stored, mean all blocks that hold any of
 * them, in all layers. Pins are counted: a block is pinned until each pin is taken back, or its sequence no longer has it.
 * Copies on write and merged prefixes take the pins along; forks do not. Pages that are in the slow tier are fetched, without
 * waiting, as far as there is room; others come with the next step that reads them. Beyond pin_budget of quire_pool_tuning the
 * blocks whose pin is the oldest are given up (they may leave until they are pinned again), and so they are when a step finds
 * no other page to take the place of: a step always gets its pages. Without a slow tier all of this only counts. */
quire_status quire_sequence_pin(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end);
quire_status quire_sequence_unpin(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end);

/* What stays in the fast tier of a dialogue, which is a sequence with turns: pinned as above, while it is true. */
typedef struct quire_dialogue_options {
  size_t struct_size;
  int64_t recent_turns;           /* the last turns that ended, and what follows them; 0: none */
  int64_t recent_pages;           /* the last blocks, whatever their turn */
  const int64_t *important_pages; /* [important_count] blocks, counted from the beginning, such as a system prompt's */
  int64_t important_count;
} quire_dialogue_options;

/* For all sequences of the pool, from now on. NULL: nothing, as in a new pool. */
quire_status quire_pool_set_dialogue(quire_pool *pool, const quire_dialogue_options *options);

/* Says that the tokens before `end`, after the turn before, are a turn. They are stored. quire_sequence_truncate takes back the
 * turns that it shortens. Important pages are the last to be given up. */
quire_status quire_sequence_end_turn(quire_pool *pool, quire_sequence sequence, int64_t end);

/* Sends what was processed to the slow tier now: the blocks that hold tokens of [begin, end) only, in all layers, but for those
 * that are pinned. Waits for the slow tier. A step that reads them brings them back, to the bit. QUIRE_NO_SPACE if it takes no
 * more; what has gone by then is gone. Without a slow tier nothing happens. */
quire_status quire_sequence_unload(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end);

/* Says how important the blocks that hold any token of [begin, end) are, 0 to 1, as an observation of a step's attention mass:
 * QUIRE_REPLACE_IMPORTANCE keeps a moving average of these, and gives up the least first. The other policies ignore it. */
quire_status quire_sequence_set_importance(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end,
                                           float importance);

/* For callers that compute attention themselves, and of a few blocks only: the `count` blocks of the sequence whose keys can have the largest
 * scores for a query of `layer`, which is [query_heads][key_dim]; as many of its heads share each KV head, the first ones the first. places[i] is a
 * place in the block table, the largest bound first; bounds[i], which may be NULL, is at least the product of any query head with any key of
 * the block: the largest sum over channels of the query's value times the channel's smallest or largest key. Blocks before the window of the
 * layer are not named. *found are at most `count`.
 *
 * Those of them that are in the slow tier are on their way into the fast one when the call returns, as far as prefetch_bytes of
 * quire_pool_tuning allow; none of the named ones gives way to another. quire_pool_pin then finds them. Bounds are of the keys as they were
 * written: with a codec what comes back can be beyond them. A block that is not full may also be bounded by what lies behind its
 * tokens, if it was written by hand, and one that may be written by hand at the moment (quire_pool_pin) is read anew. The pool has a slow tier with `digests`. Not during
 * a step. QUIRE_PAGE_LOST if a block cannot be read back. Allocates nothing from the heap. */
quire_status quire_sequence_prefetch_by_query(quire_pool *pool, quire_sequence sequence, int64_t layer, const float *query,
                                              int64_t query_heads, int64_t count, int64_t *places, double *bounds, int64_t *found);

/* Which tokens of a range stay when it is pruned. */
typedef struct quire_prune_options {
  size_t struct_size;
  double ratio;        /* share of the tokens that goes, 0 to 1 */
  const float *scores; /* [end - begin] importance of each token of the range: the largest stay, of equal ones the first; NaN is least */
  const int64_t *keep; /* [keep_count][2] tokens [first, last) of the sequence that stay in any case */
  int64_t keep_count;
} quire_prune_options;

typedef struct quire_pruning {
  size_t struct_size;
  int64_t tokens; /* that the sequence has fewer */
  int64_t blocks; /* likewise */
} quire_pruning;

/* Lossy: drops tokens of a sequence for good. Of the blocks that hold tokens of [begin, end) only, (1 - ratio) of the tokens stay, or more, so that
 * they fill whole blocks; these survivors move together into new blocks, in their order, and the blocks that they were in are given back. So
 * blocks are free afterwards, and others that share the old ones keep them. Later tokens follow without a gap: the sequence is shorter, turns end
 * earlier, and quire_sequence_positions says which position each token had. K keeps the rotation of that. Steps go on with the next position, at the
 * next free place, and attend to what is left.
 *
 * quire_sequence_publish refuses a sequence that was pruned, until quire_sequence_truncate has taken it back to tokens before the first that was
 * dropped. QUIRE_INVALID_ARGUMENT if a layer of the pool's model has place_is_position (so do steps of such a model over a sequence that was pruned
 * in a pool of another one), and if one of the blocks is pinned by its sequence; QUIRE_OUT_OF_BLOCKS if there is no room
 * for the survivors beside what they were in; with a slow tier QUIRE_PAGE_LOST and QUIRE_NO_SPACE. On failure nothing has changed, but
 * cached blocks that gave way are gone. `out` may be NULL. */
quire_status quire_sequence_prune(quire_pool *pool, quire_sequence sequence, int64_t begin, int64_t end,
                                  const quire_prune_options *options, quire_pruning *out);

/* The position that each stored token had, ascending, and in *next the one that the next token has: after quire_sequence_truncate, and in a fork, the
 * one after the last token's. *positions is [length], or NULL if token i has position i; valid until the next call that changes the sequence. */
quire_status quire_sequence_positions(const quire_pool *pool, quire_sequence sequence, const int64_t **positions, int64_t *next);

/* Importance of paragraphs by their words: paragraph i is tokens[ends[i - 1] .. ends[i]), with ends ascending from 0. The mean
 * over its tokens of ln(count / paragraphs that have the token), divided by the largest of all; 0 for all if no token tells them
 * apart. `scores` is [count]. */
quire_status quire_tfidf(const int64_t *tokens, const int64_t *ends, int64_t count, float *scores);

/*===----------------------------------------------------------------------===*
 * Steps
 *===----------------------------------------------------------------------===*/

typedef struct quire_executor quire_executor;

typedef struct quire_executor_options {
  size_t struct_size;
  int64_t threads;        /* that run parallel loops, the caller included; 0: as many as this process may use */
  int64_t max_tokens;     /* rows of a step at most; 0: 1024 */
  int64_t max_sequences;  /* sequences of a step at most; 0: 64 */
  int64_t trace_capacity; /* runtime calls of the model that are recorded, oldest first; 0: none */
  int64_t observe;        /* 1: quire_executor_attention answers. Also done for a pool with a slow tier and the policy
                             `importance`, or with a trace that began before */
} quire_executor_options;

/* Runs steps of a model on a pool of the same shape. All memory of a step is made here. */
quire_status quire_executor_create(quire_model *model, quire_pool *pool, const quire_executor_options *options,
                                   quire_executor **out);
void quire_executor_destroy(quire_executor *executor);

/* New tokens for several sequences: those of sequences[0], then those of sequences[1], and so on. */
typedef struct quire_batch {
  size_t struct_size;
  int64_t sequence_count;
  const quire_sequence *sequences; /* [sequence_count], all different */
  const int64_t *token_counts;     /* [sequence_count], each at least 1 */
  const int64_t *tokens;           /* [sum of token_counts] ids */
  const int64_t *selected;         /* [selected_count] rows whose logits are wanted, ascending */
  int64_t selected_count;
} quire_batch;

/* Reserves what is missing, runs the model, commits. `logits` is [selected_count][vocabulary]. On failure nothing has changed,
 * except that after QUIRE_INVARIANT_BROKEN, QUIRE_PAGE_LOST and QUIRE_NO_SPACE the reservations are kept. With a slow tier
 * also QUIRE_OUT_OF_BLOCKS if the sequences have more blocks than step_blocks, QUIRE_PAGE_LOST if stored K or V could not be
 * read back (see quire_sequence_intact), and QUIRE_NO_SPACE if no page can give way (release a sequence). Allocates nothing from the heap. */
quire_status quire_executor_step(quire_executor *executor, const quire_batch *batch, float *logits);

/* The same with lengths and block tables that the caller keeps; the pool's records are neither read nor changed, so the
 * caller answers for the blocks. Places are positions: it is not for sequences that were pruned. Every entry that a sequence needs (past_lens + its tokens, rounded up to blocks) must be a
 * block number of the pool. */
typedef struct quire_explicit_batch {
  size_t struct_size;
  int64_t sequence_count;
  const int64_t *token_counts; /* [sequence_count], each at least 1 */
  const int64_t *tokens;       /* [sum of token_counts] ids */
  const int64_t *past_lens;    /* [sequence_count] tokens stored before */
  const int32_t *block_tables; /* [sequence_count][table_stride] */
  int64_t table_stride;
  const int64_t *selected; /* [selected_count] rows, ascending */
  int64_t selected_count;
} quire_explicit_batch;

quire_status quire_executor_invoke(quire_executor *executor, const quire_explicit_batch *batch, float *logits);

typedef struct quire_executor_stats {
  size_t struct_size;
  int64_t steps;
  int64_t tokens; /* rows over all steps */
  int64_t threads;
  int64_t scratch_bytes; /* of the largest step allowed */
  int64_t acquires;
  int64_t prefetch_issued;    /* requests that the model made */
  int64_t prefetch_redundant; /* those for blocks that were already resident */
} quire_executor_stats;

quire_status quire_executor_get_stats(const quire_executor *executor, quire_executor_stats *out);

typedef enum quire_trace_kind {
  QUIRE_TRACE_ACQUIRE = 0,
  QUIRE_TRACE_PREFETCH = 1,
  QUIRE_TRACE_RELEASE = 2
} quire_trace_kind;

/* One call of the model into the runtime, in order of the calls. */
typedef struct quire_trace_event {
  int64_t kind; /* quire_trace_kind */
  int64_t layer;
  int64_t step;        /* counts from 0 */
  int64_t nanoseconds; /* since the executor was made */
} quire_trace_event;

/* The recorded calls; valid until the next step. Recording stops when trace_capacity is reached. */
quire_status quire_executor_trace(const quire_executor *executor, const quire_trace_event **events, int64_t *count);

/* Which blocks the last new row of each sequence of the last step attended to: the mean over the layer's query heads of
 * their softmax, without sinks, summed up over each block. `shares` is [sequences][stride], 0 for blocks that the row does
 * not see, in the order of the step's sequences; NULL if the model does not tell. Valid until the next step. */
quire_status quire_executor_attention(const quire_executor *executor, int64_t layer, const float **shares,
                                      int64_t *sequences, int64_t *stride);

/* The loop that models use: runs fn over [0, count) in chunks of at least `grain`, on the executor's threads; returns when all
 * ran. Called from inside such a loop it runs on the calling thread. */
quire_status quire_executor_parallel(quire_executor *executor, int64_t count, int64_t grain, quire_task_fn fn,
                                     void *env);

/*===----------------------------------------------------------------------===*
 * Tenants and shared prefixes
 *===----------------------------------------------------------------------===*/

/* On whose behalf sequences and blocks are kept. 0 is never valid; where a tenant is optional it means none. Only sequences of
 * one tenant share prefixes; everything that a tenant stored uses one model. */
typedef uint64_t quire_tenant;

typedef struct quire_tenant_options {
  size_t struct_size;
  const void *name;        /* what the server knows the tenant by, never what a request says of itself; NULL: unlike all others */
  size_t name_bytes;       /* the salt is derived from the name and from a secret of this process */
  int64_t time_to_live_ns; /* cached blocks that nobody used for so long are dropped, see quire_pool_advance; 0: never */
} quire_tenant_options;

/* QUIRE_INVALID_ARGUMENT if a tenant of this name is alive. */
quire_status quire_tenant_create(quire_pool *pool, const quire_tenant_options *options, quire_tenant *out);

/* Ends a tenant that has no sequences and blocks any more (else QUIRE_INVALID_ARGUMENT): drops what is cached for it and fills
 * every free block that may hold stored K and V with 0 (0xFF with `poison`), so that nothing of it is left in the arena.
 * O(blocks). */
quire_status quire_tenant_destroy(quire_pool *pool, quire_tenant tenant);

typedef struct quire_tenant_stats {
  size_t struct_size;
  int64_t queries;      /* sequences that asked for a prefix, each once, counted when they first commit tokens */
  int64_t query_tokens; /* that they asked for */
  int64_t hit_tokens;   /* that they got */
  int64_t blocks_cached; /* now */
  int64_t blocks_published;
  int64_t blocks_merged;  /* a sequence's own that gave way to equal cached ones */
  int64_t blocks_evicted; /* for want of free ones */
  int64_t blocks_expired; /* by time_to_live_ns */
  int64_t collisions;     /* keys that another content had: misses */
  int64_t sequences;      /* alive */
  /* Of the steps of its sequences, as in quire_paging_stats; a page that several share counts for the first in the step. */
  int64_t demands, hits, late, misses, prefetch_issued;
} quire_tenant_stats;

quire_status quire_tenant_get_stats(const quire_pool *pool, quire_tenant tenant, quire_tenant_stats *out);

/* From now on, calls with this pool act for a tenant: handles of sequences and blocks that are not its own are refused with
 * QUIRE_INVALID_ARGUMENT, and what it makes is its own. 0: for the server, which may use all. Tenants are made and destroyed,
 * and time passes, for the server only. */
quire_status quire_pool_act_as(quire_pool *pool, quire_tenant tenant);

/* Tells the pool the time (nanoseconds since any moment, never less than before; 0 at first) and drops cached blocks that
 * nobody used for their tenant's time to live. *dropped may be NULL. */
quire_status quire_pool_advance(quire_pool *pool, int64_t now_ns, int64_t *dropped);

typedef struct quire_sequence_options {
  size_t struct_size;
  quire_tenant tenant; /* 0: the one that the pool acts for */
  int32_t resumed;     /* not 0: the sequence existed before and was counted then; its query is not counted again */
} quire_sequence_options;

/* As quire_sequence_create, for a tenant. Forks belong to the tenant of their source. */
quire_status quire_sequence_create_with(quire_pool *pool, const quire_sequence_options *options, quire_sequence *out);

/* Puts the longest cached prefix of tokens[0 .. count) into an empty sequence, by reference: no bytes move. It is whole blocks,
 * and at most count - 1 tokens, so that one is left to compute. *matched tokens are then stored. The pool has `prefix_cache`,
 * the sequence has a tenant. Allocates nothing from the heap. */
quire_status quire_sequence_match_prefix(quire_pool *pool, quire_sequence sequence, const int64_t *tokens, int64_t count,
                                         int64_t *matched);

/* Makes the full blocks of the first `count` tokens findable, which are these and are stored. A block that is cached already
 * takes the place of the sequence's own, so the block table may change. Blocks stay cached when their last user is gone, until
 * free ones are short (then those unused for the longest time go, the last of a prefix first), their time to live is over, or
 * the tenant ends. Cached blocks are never written again. Allocates nothing from the heap. */
quire_status quire_sequence_publish(quire_pool *pool, quire_sequence sequence, const int64_t *tokens, int64_t count);

/* Hands a sequence over: all that it holds gets a new handle, the old one is stale. No bytes move. */
quire_status quire_sequence_move(quire_pool *pool, quire_sequence sequence, quire_sequence *out);

/* A descriptor of the arena that another process can map for reading (MAP_SHARED) but not for writing, nor resize; the caller
 * closes it. The process sees every block of every tenant, as it is at that moment: keep the sequences that it reads, and tell
 * it when they change. The pool has `exportable`. */
quire_status quire_pool_export(const quire_pool *pool, int *descriptor);

/* Where block number `index` of `layer` begins in that file. */
quire_status quire_pool_block_offset(const quire_pool *pool, int64_t layer, int32_t index, uint64_t *out);

#ifdef __cplusplus
}
#endif

/* Pages of several sizes. */
#include "quire/sized.h"

#endif /* QUIRE_RUNTIME_H */
