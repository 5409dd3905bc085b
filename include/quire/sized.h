/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 * Pools of pages of several sizes, for callers with kernels of their own: pages that grow with their sequence, or chapters and paragraphs.
 *
 * A compiled model finds a position by a shift, so its blocks have one size; these pools have nothing to do with it. A *page* is
 * a range of bytes that holds whole tokens of one sequence, as many as fit; the pool does not look into it. Where the terms are the same,
 * the conventions are those of quire/runtime.h, which includes this file. */
#ifndef QUIRE_SIZED_H
#define QUIRE_SIZED_H

#include "quire/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_sized_pool quire_sized_pool;

/* One sequence of tokens and its pages. 0 is never valid. */
typedef uint64_t quire_sized_sequence;

/* How large the next page of a sequence is. */
typedef enum quire_page_sizes {
  QUIRE_SIZES_GROW = 0,    /* base, doubled for each double_every tokens that the sequence's pages hold, up to max */
  QUIRE_SIZES_DOCUMENT = 1 /* a chapter, or paragraphs if these hold what is appended in fewer bytes */
} quire_page_sizes;

typedef struct quire_sized_pool_options {
  size_t struct_size;
  uint64_t bytes;          /* of the pool's memory; 0: 256 MiB */
  uint64_t token_bytes;    /* that a token takes in a page; at least 1 */
  int64_t sizes;           /* quire_page_sizes */
  uint64_t base;           /* 0: 4 KiB; this and max are rounded down to powers of two, at least 64 bytes */
  int64_t double_every;    /* 0: 1024, negative: never */
  uint64_t max;            /* 0: 4 MiB */
  uint64_t chapter_page;   /* 0: 1 MiB; this and paragraph_page are rounded up to powers of two, at least 64 bytes */
  uint64_t paragraph_page; /* 0: 64 KiB */
  int64_t max_pages;       /* of a sequence; 0: 4096 */
} quire_sized_pool_options;

/* One mapping of the given size, committed here, never moved and never grown. Pages are extents of powers of two, each at a multiple of its
 * size. A base that holds no token is taken as the least page that holds one. Fails with QUIRE_OUT_OF_MEMORY before it allocates anything
 * if the memory and its tables, 9 bytes for each page of the smallest size, are larger than the machine's. */
quire_status quire_sized_pool_create(const quire_sized_pool_options *options, quire_sized_pool **out);

/* Ends the pool with all its sequences. */
void quire_sized_pool_destroy(quire_sized_pool *pool);

quire_status quire_sized_sequence_create(quire_sized_pool *pool, quire_sized_sequence *out);
/* Gives all pages back. What they hold is not erased. */
quire_status quire_sized_sequence_release(quire_sized_pool *pool, quire_sized_sequence sequence);

/* Makes room for `tokens` more and counts them. Pages that exist stay where they are, and only the last one has room left. All or nothing:
 * QUIRE_OUT_OF_BLOCKS if there is no free extent of a page's size (see failures_with_room), QUIRE_TOO_LONG beyond max_pages. What new pages hold is
 * whatever was there. */
quire_status quire_sized_sequence_append(quire_sized_pool *pool, quire_sized_sequence sequence, int64_t tokens);

/* Shortens to `length` tokens and gives back the pages that hold none of them. */
quire_status quire_sized_sequence_truncate(quire_sized_pool *pool, quire_sized_sequence sequence, int64_t length);

typedef struct quire_sized_sequence_stats {
  size_t struct_size;
  int64_t length; /* tokens */
  int64_t pages;
  int64_t slots;      /* tokens that the pages hold at most */
  uint64_t bytes;     /* of the pages */
  int64_t generation; /* addresses of its pages hold while this is the same: it goes up when one moved */
} quire_sized_sequence_stats;

quire_status quire_sized_sequence_get_stats(const quire_sized_pool *pool, quire_sized_sequence sequence, quire_sized_sequence_stats *out);

typedef struct quire_sized_page {
  size_t struct_size;
  void *address;
  uint64_t bytes;
  int64_t first; /* position of its first token */
  int64_t slots; /* tokens that it holds at most, the i-th at address + i * token_bytes if the caller puts it there */
} quire_sized_page;

/* Page number `page` of the sequence, in order of position. */
quire_status quire_sized_sequence_page(const quire_sized_pool *pool, quire_sized_sequence sequence, int64_t page, quire_sized_page *out);

/* Which page has a position below the sequence's slots, and which slot of it. O(log pages). */
quire_status quire_sized_sequence_locate(const quire_sized_pool *pool, quire_sized_sequence sequence, int64_t position, int64_t *page,
                                         int64_t *slot);

/* Pages of the sequence do not move until quire_sized_sequence_let_go has been called as often. */
quire_status quire_sized_sequence_hold(quire_sized_pool *pool, quire_sized_sequence sequence);
quire_status quire_sized_sequence_let_go(quire_sized_pool *pool, quire_sized_sequence sequence);

/* Moves the highest pages, with what they hold, into the lowest free extents of their size, until none can move. `out` may be NULL; its `blocks`
 * are the pages that moved. Whoever keeps addresses holds the sequence, or compares its generation. */
quire_status quire_sized_pool_compact(quire_sized_pool *pool, quire_compaction *out);

typedef struct quire_sized_pool_stats {
  size_t struct_size;
  uint64_t bytes;           /* of all extents */
  uint64_t bytes_free;
  uint64_t largest_free;    /* extent */
  double fragmentation;     /* 1 - largest_free / bytes_free; 0 when nothing is free */
  int64_t failures_with_room; /* appends that found no extent although as many bytes were free: compact */
  int64_t sequences;        /* alive */
  int64_t pages, tokens, slots; /* of these; slots without a token are wasted */
  int64_t compacted_pages;  /* that quire_sized_pool_compact has moved */
  int64_t compacted_bytes;
  uint64_t table_bytes;     /* beside the pages */
} quire_sized_pool_stats;

quire_status quire_sized_pool_get_stats(const quire_sized_pool *pool, quire_sized_pool_stats *out);

/* Checks every invariant; O(pages + extents). Debug builds do so after every operation and abort. */
quire_status quire_sized_pool_validate(const quire_sized_pool *pool);

#ifdef __cplusplus
}
#endif

#endif /* QUIRE_SIZED_H */
