// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface: pools of pages of several sizes.
#include "abi/Handles.h"
#include "pool/SizedPool.h"

using namespace quire::runtime;

struct quire_sized_pool {
  std::unique_ptr<SizedPool> pool;
};

static long long ll(int64_t value) { return value; }

static Status readSizedOptions(const quire_sized_pool_options &given, SizedPool::Options &out) {
  if (given.sizes < QUIRE_SIZES_GROW || given.sizes > QUIRE_SIZES_DOCUMENT)
    return failure(QUIRE_INVALID_ARGUMENT, "sizes: expected 0 or 1, but got %lld", ll(given.sizes));
  if (given.max_pages < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "max_pages: expected at least 0, but got %lld", ll(given.max_pages));
  auto take = [](auto &to, auto value) {
    if (value != 0)
      to = static_cast<std::decay_t<decltype(to)>>(value);
  };
  out.tokenBytes = given.token_bytes;
  out.grows = given.sizes == QUIRE_SIZES_GROW;
  take(out.bytes, given.bytes);
  take(out.growth.base, given.base);
  take(out.growth.cap, given.max);
  take(out.growth.doubleEvery, given.double_every < 0 ? INT64_MAX : given.double_every);
  take(out.classes.chapter, given.chapter_page);
  take(out.classes.paragraph, given.paragraph_page);
  take(out.mostPages, given.max_pages);
  return success();
}

extern "C" {

quire_status quire_sized_pool_create(const quire_sized_pool_options *options, quire_sized_pool **out) {
  if (!options || !out)
    return nullArgument("options and out");
  return guarded([&] {
    quire_sized_pool_options given;
    if (!readOptions(options, given))
      return badStructSize();
    SizedPool::Options wanted;
    QUIRE_TRY(readSizedOptions(given, wanted));
    auto made = std::make_unique<quire_sized_pool>();
    QUIRE_TRY(SizedPool::create(wanted, made->pool));
    *out = made.release();
    return success();
  });
}

void quire_sized_pool_destroy(quire_sized_pool *pool) { delete pool; }

quire_status quire_sized_sequence_create(quire_sized_pool *pool, quire_sized_sequence *out) {
  return pool && out ? guarded([&] { return pool->pool->createSequence(*out); }) : nullArgument("pool and out");
}

quire_status quire_sized_sequence_release(quire_sized_pool *pool, quire_sized_sequence sequence) {
  return pool ? guarded([&] { return pool->pool->releaseSequence(sequence); }) : nullArgument("pool");
}

quire_status quire_sized_sequence_append(quire_sized_pool *pool, quire_sized_sequence sequence, int64_t tokens) {
  return pool ? guarded([&] { return pool->pool->append(sequence, tokens); }) : nullArgument("pool");
}

quire_status quire_sized_sequence_truncate(quire_sized_pool *pool, quire_sized_sequence sequence, int64_t length) {
  return pool ? guarded([&] { return pool->pool->truncate(sequence, length); }) : nullArgument("pool");
}

quire_status quire_sized_sequence_hold(quire_sized_pool *pool, quire_sized_sequence sequence) {
  return pool ? guarded([&] { return pool->pool->hold(sequence); }) : nullArgument("pool");
}

quire_status quire_sized_sequence_let_go(quire_sized_pool *pool, quire_sized_sequence sequence) {
  return pool ? guarded([&] { return pool->pool->letGo(sequence); }) : nullArgument("pool");
}

quire_status quire_sized_sequence_get_stats(const quire_sized_pool *pool, quire_sized_sequence sequence, quire_sized_sequence_stats *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    const SizedPages *pages;
    QUIRE_TRY(std::as_const(*pool->pool).find(sequence, pages));
    quire_sized_sequence_stats stats = {0, pages->length(), static_cast<int64_t>(pages->pages().size()), pages->slots(), pages->bytes(),
                                        static_cast<int64_t>(pages->generation())};
    return writeResult(stats, out) ? success() : badStructSize();
  });
}

quire_status quire_sized_sequence_page(const quire_sized_pool *pool, quire_sized_sequence sequence, int64_t page, quire_sized_page *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return guarded([&] {
    const SizedPages *pages;
    QUIRE_TRY(std::as_const(*pool->pool).find(sequence, pages));
    int64_t count = static_cast<int64_t>(pages->pages().size());
    if (page < 0 || page >= count)
      return failure(QUIRE_INVALID_ARGUMENT, "expected one of the sequence's %lld pages, but got number %lld", ll(count), ll(page));
    const SizedPages::Page &found = pages->pages()[static_cast<size_t>(page)];
    return writeResult(quire_sized_page{0, pool->pool->addressOf(found), found.bytes, found.first, found.slots}, out) ? success() : badStructSize();
  });
}

quire_status quire_sized_sequence_locate(const quire_sized_pool *pool, quire_sized_sequence sequence, int64_t position, int64_t *page,
                                         int64_t *slot) {
  if (!pool || !page || !slot)
    return nullArgument("pool, page and slot");
  return guarded([&] {
    const SizedPages *pages;
    QUIRE_TRY(std::as_const(*pool->pool).find(sequence, pages));
    if (position < 0 || position >= pages->slots())
      return failure(QUIRE_INVALID_ARGUMENT, "expected a position below %lld, but got %lld", ll(pages->slots()), ll(position));
    SizedPages::Place place = pages->locate(position);
    *page = static_cast<int64_t>(place.page);
    *slot = place.slot;
    return success();
  });
}

quire_status quire_sized_pool_compact(quire_sized_pool *pool, quire_compaction *out) {
  if (!pool)
    return nullArgument("pool");
  return guarded([&] {
    if (quire_compaction ignored; out && !readOptions(out, ignored))
      return badStructSize();
    Compaction done = pool->pool->compact();
    if (out)
      writeResult(quire_compaction{0, static_cast<int64_t>(done.pages), static_cast<int64_t>(done.bytes)}, out);
    return success();
  });
}

quire_status quire_sized_pool_get_stats(const quire_sized_pool *pool, quire_sized_pool_stats *out) {
  if (!pool || !out)
    return nullArgument("pool and out");
  return writeResult(pool->pool->stats(), out) ? QUIRE_OK : report(badStructSize());
}

quire_status quire_sized_pool_validate(const quire_sized_pool *pool) {
  return pool ? guarded([&] { return pool->pool->validate(); }) : nullArgument("pool");
}

} // extern "C"
