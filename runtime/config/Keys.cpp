// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every key with its unit, range, default and meaning.
#include "config/Keys.h"

#include "tier/ThrottledTier.h"

#include <type_traits>

namespace quire::config {

using runtime::Throttle;

namespace {

template <typename Field>
Value load(const Field &field) {
  if constexpr (std::is_enum_v<Field>)
    return static_cast<int64_t>(field);
  else
    return field;
}

template <typename Field>
void store(Field &field, const Value &value) {
  if constexpr (std::is_enum_v<Field>)
    field = static_cast<Field>(std::get<int64_t>(value));
  else
    field = std::get<Field>(value);
}

} // namespace

#define FIELD(member)                                                                                                  \
  [](const Config &config) { return load(config.member); },                                                            \
      [](Config &config, const Value &value) { store(config.member, value); }

static constexpr bool fixed = false, reloadable = true;
static constexpr Key::Use pages = Key::Use::Pages, works = Key::Use::Run;
static constexpr double kib = 1024, mib = 1024 * kib, tib = 1024 * 1024 * mib, million = 1e6;
static constexpr double year = 366 * 86400e9;

// clang-format off
const std::vector<Key> &allKeys() {
  using T = Key::Type;
  static const std::vector<Key> keys = {
      {"memory.fast_bytes", T::Size, 1, 1024 * tib, {}, "256MiB", fixed, works,
       "budget of the fast tier for keys and values", FIELD(memory.fastBytes)},
      {"memory.slow.kind", T::Choice, 0, 0, {"none", "memory", "file", "throttled"}, "none", fixed, works,
       "the tier below: none, host memory, a file, or host memory with latency and bandwidth", FIELD(memory.slow.kind)},
      {"memory.slow.path", T::Path, 0, 0, {}, "", fixed, works,
       "the slow tier's file, new or left by a run that was killed; needed by kind file", FIELD(memory.slow.path)},
      {"memory.slow.bytes", T::Size, 0, 1024 * tib, {}, "0", fixed, works,
       "budget of the slow tier", FIELD(memory.slow.bytes)},
      {"memory.slow.checksum", T::Choice, 0, 0, {"xxh3", "none"}, "xxh3", fixed, works,
       "of each page in a file, checked when it comes back", FIELD(memory.slow.checksum)},
      {"memory.slow.latency", T::Time, 0, Throttle::mostLatency, {}, "100us", fixed, works,
       "of each transfer of a throttled tier", FIELD(memory.slow.latency)},
      {"memory.slow.bandwidth", T::Rate, 1, Throttle::mostBandwidth, {}, "2GB/s", fixed, works,
       "of a throttled tier", FIELD(memory.slow.bandwidth)},
      {"memory.slower", T::Tiers, 0, 0, {}, "[]", fixed, works,
       "tiers below that one, in their order, each with its budget; all have its checksums", FIELD(memory.slower)},
      {"memory.reserve_ratio", T::Ratio, 0, 0.5, {}, "0.1", reloadable, works,
       "share of the fast tier's blocks that new sequences leave to those that run, for their growth and for copies on write", FIELD(memory.reserveRatio)},
      {"memory.stable_va", T::Switch, 0, 0, {}, "false", fixed, works,
       "the address of a page stays the same when it leaves and comes back; it then takes whole pages of the system (4 KiB, as a rule) of the fast tier", FIELD(memory.stableVa)},

      {"block.tokens", T::Count, 0, 65536, {}, "0", fixed, works,
       "token positions of a block, which are the compiled model's: another number is refused, 0 is any", FIELD(block.tokens)},
      {"block.layers_per_block", T::Count, 1, 4096, {}, "1", fixed, works,
       "layers whose positions lie in one page", FIELD(block.layersPerBlock)},
      {"block.auto", T::Choice, 0, 0, {"off", "l2", "io", "waste"}, "off", fixed, works,
       "how many layers a page has: block.layers_per_block, by the cache and serving.max_batch, by measured transfers of the slow tier", FIELD(block.automatic),
       {{"waste", false, "unused slots depend on the tokens of a block, a constant of the compiled model; use off, l2 or io, and choose the tokens by quirec --block-tokens=N"}}},
      {"block.adaptive.base", T::Size, 64, tib, {}, "4KiB", fixed, pages,
       "first page of a sequence whose pages grow", FIELD(block.adaptive.base)},
      {"block.adaptive.double_every", T::Count, 0, million, {}, "1024", fixed, pages,
       "tokens after which the page size doubles; 0: never", FIELD(block.adaptive.doubleEvery)},
      {"block.adaptive.max", T::Size, 64, tib, {}, "4MiB", fixed, pages,
       "largest page size", FIELD(block.adaptive.max)},

      {"replace.policy", T::Choice, 0, 0, {"lru", "scan", "importance", "arc"}, "scan", fixed, works,
       "which resident page gives way", FIELD(replace.policy)},
      {"replace.chain_order", T::Choice, 0, 0, {"tail_first"}, "tail_first", fixed, works,
       "which block of a cached prefix gives way first: the last", FIELD(replace.chainOrder)},

      {"prefetch.window_size", T::Count, 0, 1024, {}, "3", reloadable, works,
       "pages of each sequence that may be on their way ahead of need; 0: none", FIELD(prefetch.windowSize)},
      {"prefetch.strategy", T::Choice, 0, 0, {"none", "sequential", "hotspot", "hybrid"}, "sequential", reloadable, works,
       "what is prefetched of a layer: nothing, the next pages, the pages that the predictor names, these and then the next ones", FIELD(prefetch.strategy)},
      {"prefetch.topk", T::Count, 1, 65536, {}, "2", reloadable, works,
       "pages that the predictor names for each sequence and layer", FIELD(prefetch.topk)},
      {"prefetch.predictor", T::Choice, 0, 0, {"digest", "layer_ahead", "seed_hotspot"}, "layer_ahead", reloadable, works,
       "how hot pages are guessed: by bounds of their keys, by what the layer before attended to, by what the layer itself did in the step before", FIELD(prefetch.predictor),
       {{"digest", true, "compiled models do not give their queries to the runtime; use layer_ahead or seed_hotspot, or quire_sequence_prefetch_by_query from C"}}},
      {"prefetch.max_inflight", T::Size, 0, tib, {}, "8MiB", reloadable, works,
       "bytes of prefetches that are on their way at any time, at most", FIELD(prefetch.maxInflight)},

      {"dialogue.recent_turns", T::Count, 0, 65536, {}, "3", reloadable, works,
       "turns of a dialogue that stay in the fast tier, and what follows them; 0: none", FIELD(dialogue.recentTurns)},
      {"dialogue.recent_pages", T::Count, 0, 65536, {}, "3", reloadable, works,
       "last pages of a dialogue that stay in the fast tier, whatever their turn", FIELD(dialogue.recentPages)},
      {"dialogue.important_pages", T::Counts, 0, 1e9, {}, "[0]", reloadable, works,
       "pages of a dialogue that stay in the fast tier, counted from the beginning", FIELD(dialogue.importantPages)},
      {"dialogue.pin_budget", T::Ratio, 0, 1, {}, "0.25", reloadable, works,
       "share of the fast tier that pages which stay may take", FIELD(dialogue.pinBudget)},
      {"dialogue.compression.method", T::Choice, 0, 0, {"none", "pruning"}, "none", fixed, works,
       "what happens to turns that are not recent any more: nothing, or the commonest of their tokens are dropped, which is lossy", FIELD(dialogue.compression.method)},
      {"dialogue.compression.ratio", T::Ratio, 0, 1, {}, "0.5", fixed, works,
       "share of their tokens that pruning drops, less what fills whole blocks", FIELD(dialogue.compression.ratio)},

      {"document.chapter_page", T::Size, 64, tib, {}, "1MiB", fixed, pages,
       "page of a chapter", FIELD(document.chapterPage)},
      {"document.paragraph_page", T::Size, 64, tib, {}, "64KiB", fixed, pages,
       "page of a paragraph", FIELD(document.paragraphPage)},
      {"document.importance", T::Choice, 0, 0, {"tfidf", "none"}, "tfidf", reloadable, works,
       "how paragraphs of a request are weighed for replacement by importance", FIELD(document.importance)},
      {"document.unload_processed", T::Switch, 0, 0, {}, "true", reloadable, works,
       "paragraphs of a request leave the fast tier once they are stored", FIELD(document.unloadProcessed)},

      {"compress.quant", T::Choice, 0, 0, {"none", "int8_g128", "int4_g128", "fp8"}, "none", fixed, works,
       "form of pages in the slow tier; lossy, but for none. fp8 is E4M3", FIELD(compress.quant)},
      {"compress.sparse.ratio", T::Count, 1, 64, {}, "1", fixed, works,
       "elements of which a page in the slow tier keeps one, 8, the others being 0: lossy; 1: all. Not beside compress.quant", FIELD(compress.sparse.ratio)},
      {"compress.sparse.index", T::Choice, 0, 0, {"bitmap", "index"}, "bitmap", fixed, works,
       "how a sparse page says which: by a bit for each, the 8 largest of 64, or by an index of 3 bits, the largest of each 8; index keeps less in fewer bytes", FIELD(compress.sparse.index)},
      {"compress.after_idle_steps", T::Count, 0, 1e9, {}, "64", reloadable, works,
       "steps without use after which full blocks leave for the slow tier, in the form of compress.quant or compress.sparse; without such a form, and with 0, they leave only when their room is wanted", FIELD(compress.afterIdleSteps)},

      {"share.prefix_cache", T::Switch, 0, 0, {}, "false", fixed, works,
       "prompts that begin alike are stored and computed once", FIELD(share.prefixCache)},

      {"security.tenant_salt", T::Choice, 0, 0, {"required"}, "required", fixed, works,
       "prefixes are shared inside a tenant only", FIELD(security.tenantSalt)},
      {"security.zero_on_free", T::Switch, 0, 0, {}, "false", fixed, works,
       "blocks are filled with 0 when they become free", FIELD(security.zeroOnFree)},
      {"security.ttl", T::Time, 0, year, {}, "0s", fixed, works,
       "a cached prefix that nobody used for so long is dropped; 0: never", FIELD(security.ttl)},

      {"doctor.page_table_max", T::Ratio, 0, 1, {}, "0.05", reloadable, works,
       "share of a step's time, or of the bytes of keys and values, for page tables above which advice is given", FIELD(doctor.pageTableMax)},
      {"doctor.min_hit", T::Ratio, 0, 1, {}, "0.9", reloadable, works,
       "share of demands that find their page, below which advice is given", FIELD(doctor.minHit)},
      {"doctor.frag_max", T::Ratio, 0, 1, {}, "0.1", reloadable, works,
       "share of allocated bytes without tokens above which advice is given", FIELD(doctor.fragMax)},

      {"serving.max_batch", T::Count, 1, million, {}, "8", fixed, works,
       "sequences of a step, at most", FIELD(serving.maxBatch)},
      {"serving.prefill_chunk", T::Count, 1, 1000 * million, {}, "512", fixed, works,
       "prompt tokens of a step, at most", FIELD(serving.prefillChunk)},
      {"serving.mixed_chunk", T::Count, 1, 1000 * million, {}, "64", fixed, works,
       "the same in a step where other sequences decode", FIELD(serving.mixedChunk)},
      {"serving.threads", T::Count, 0, 1024, {}, "0", fixed, works,
       "threads of a step; 0: all cores that the process may use", FIELD(serving.threads)},
  };
  return keys;
}
// clang-format on

#undef FIELD

bool checkTogether(const Config &config, const char *&key, std::string &why) {
  auto wrong = [&](const char *name, const std::string &reason) {
    key = name;
    why = reason;
    return false;
  };
  const auto &slow = config.memory.slow;
  if (slow.kind == SlowKind::File && slow.path.empty())
    return wrong("memory.slow.kind", "expected memory.slow.path beside kind file, but got none");
  if (slow.kind != SlowKind::None && slow.bytes == 0)
    return wrong("memory.slow.kind", "expected memory.slow.bytes beside a kind, but got none");
  if (slow.kind == SlowKind::None && !config.memory.slower.empty())
    return wrong("memory.slower", "expected memory.slow.kind beside it, but got none");
  const auto &compress = config.compress;
  if (compress.sparse.ratio != 1 && compress.sparse.ratio != 8)
    return wrong("compress.sparse.ratio", "expected 1 or 8, as sparse pages keep one of 8 elements, but got " + std::to_string(compress.sparse.ratio));
  if (compress.sparse.ratio != 1 && compress.quant != Quant::None)
    return wrong("compress.sparse.ratio", "expected 1 beside a compress.quant, as a page has one form, but got 8");
  if (config.block.adaptive.base > config.block.adaptive.max)
    return wrong("block.adaptive.base", "expected at most block.adaptive.max, but got more");
  if (config.document.paragraphPage > config.document.chapterPage)
    return wrong("document.paragraph_page", "expected at most document.chapter_page, but got more");
  return true;
}

} // namespace quire::config
