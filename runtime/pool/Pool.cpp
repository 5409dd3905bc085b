// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Creation of the arena, and blocks and their memory.
#include "pool/Pool.h"

#include "model/ModelInfo.h"
#include "tier/CodecTier.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace quire::runtime {

/// Start of every layer's arena: a cache line, which also suits every vector.
static constexpr uint64_t layerAlignment = 64;

static uint64_t handleOf(uint32_t index, uint32_t generation) { return uint64_t(generation) << 32 | index; }

Pool::Pool(uint32_t blocks, const Options &options)
    : poison_(options.poison), zeroOnFree_(options.zeroOnFree), stableVa_(options.stableVa), allocator_(blocks, options.order),
      callerReferences_(blocks), blockTenants_(blocks), written_(blocks) {}

static uint64_t tableBytesPerBlock(uint64_t prefixBytes) {
  return BlockAllocator::bytesPerBlock() + 2 * sizeof(uint32_t) + sizeof(uint16_t) + sizeof(uint8_t) + prefixBytes;
}

/// Memory is given on first touch, so a pool that can never be filled would only fail in the middle of a run. Its
/// tables are touched at once and may alone be too large.
static Status checkMemory(uint64_t budget, uint64_t blocks, uint64_t blockBytes, uint64_t prefixBytes) {
  uint64_t arena = blocks * blockBytes; // at most the budget
  uint64_t tables = blocks * tableBytesPerBlock(prefixBytes);
  uint64_t memory = physicalMemory();
  if (arena <= memory && tables <= memory - arena)
    return success();
  return failure(QUIRE_OUT_OF_MEMORY,
                 "a kv budget of %llu bytes: expected a pool that fits into the %llu bytes of memory that this process may have, "
                 "but got one of %llu bytes and %llu bytes of tables",
                 static_cast<unsigned long long>(budget), static_cast<unsigned long long>(memory),
                 static_cast<unsigned long long>(arena), static_cast<unsigned long long>(tables));
}

static uint64_t blocksInMemory(const quire_model_info &info, uint64_t bytes) {
  return std::min<uint64_t>(bytes / static_cast<uint64_t>(blockBytesOf(info)), INT32_MAX);
}

Status Pool::create(const quire_model_info &info, const Options &options, std::unique_ptr<Pool> &out) {
  QUIRE_TRY(checkModelInfo(info));
  int64_t blockBytes = blockBytesOf(info);
  uint64_t blocks = blocksInMemory(info, options.bytes);
  std::unique_ptr<Pager> pager;
  std::shared_ptr<Clock> clock = options.clock ? options.clock : std::make_shared<SystemClock>();
  if (options.slowTier && options.exportable)
    return failure(QUIRE_INVALID_ARGUMENT, "not implemented: export of a pool with a slow tier");
  if (options.slowTier) {
    QUIRE_TRY(checkMemory(options.bytes, blocks, static_cast<uint64_t>(blockBytes), 0));
    QUIRE_TRY(createPager(info, options, *clock, pager));
    blocks = pager->blocks();
  }
  if (blocks == 0)
    return failure(QUIRE_OUT_OF_BLOCKS,
                   "a kv budget of %llu bytes holds no block: one block of %lld tokens takes %lld bytes",
                   static_cast<unsigned long long>(options.bytes), static_cast<long long>(info.block_tokens),
                   static_cast<long long>(blockBytes));
  uint64_t prefixBytes = options.prefixCache ? PrefixCache::bytesPerBlock(info.block_tokens) : 0;
  if (!pager)
    QUIRE_TRY(checkMemory(options.bytes, blocks, static_cast<uint64_t>(blockBytes), prefixBytes));
  std::unique_ptr<Pool> pool(new Pool(static_cast<uint32_t>(blocks), options));
  pool->blockTokens_ = info.block_tokens;
  pool->blockBytes_ = blockBytes;
  pool->maxPositions_ = info.max_positions;
  pool->observes_ = std::any_of(info.layers, info.layers + info.layer_count, [](const quire_model_layer &layer) { return layer.query_heads > 0; });
  pool->clock_ = std::move(clock);
  pool->pager_ = std::move(pager);
  pool->shapes_.assign(info.layers, info.layers + info.layer_count);
  if (!pool->pager_)
    pool->handPins_.resize(blocks);
  if (options.prefixCache)
    pool->prefix_ = std::make_unique<PrefixCache>(static_cast<uint32_t>(blocks), info.block_tokens, options.prefix);
  QUIRE_TRY(pool->createArena(info, options.exportable));
  QUIRE_TRY(pool->checkPrefetch(options.paging.prefetch));
  out = std::move(pool);
  return success();
}

Status Pool::checkPrefetch(const Prefetching &prefetch) const {
  if (observes_ || !prefetch.looksAtAttention())
    return success();
  return failure(QUIRE_INVALID_ARGUMENT, "prefetch strategy: hotspot and hybrid need a model that tells what it attends to, but no layer of this one does");
}

Status Pool::cutPages(const quire_model_info &info, const Options &options, Pages &out) {
  QUIRE_TRY(PageGeometry::make(info, options.layersPerPage, out.geometry));
  if (options.stableVa)
    out.geometry.separate(MappedMemory::systemPage());
  out.slotBytes = out.geometry.pageBytes;
  return options.codec == Codec::None ? success() : CodecTier::slotBytes(options.codec, info, out.geometry, out.slotBytes);
}

Status Pool::plan(const quire_model_info &info, const Options &options, Plan &out) {
  QUIRE_TRY(checkModelInfo(info));
  Plan plan;
  if (!options.slowPlan) {
    plan.blocks = plan.stepBlocks = blocksInMemory(info, options.bytes);
    out = plan;
    return success();
  }
  Pages pages;
  TierPlan slow;
  QUIRE_TRY(cutPages(info, options, pages));
  QUIRE_TRY(options.slowPlan(pages.slotBytes, slow));
  QUIRE_TRY(Pager::countBlocks(pages.geometry, options.bytes, {slow.slots, pages.slotBytes, options.codec != Codec::None}, plan.blocks));
  plan.pageBytes = pages.geometry.pageBytes;
  plan.fastPages = plan.stepBlocks = Pager::fastPagesOf(pages.geometry, options.bytes);
  plan.slowPages = slow.slots;
  out = plan;
  return success();
}

/// A slow tier is cheap for its size, and its tables grow with it: a page of 4 KiB has some 130 bytes of them.
Status Pool::checkPlan(const Options &options, const Pages &pages, uint64_t bytesPerBlock) {
  if (!options.slowPlan)
    return success();
  TierPlan plan;
  QUIRE_TRY(options.slowPlan(pages.slotBytes, plan));
  uint64_t fast = Pager::fastPagesOf(pages.geometry, options.bytes), blocks;
  QUIRE_TRY(Pager::countBlocks(pages.geometry, options.bytes, {plan.slots, pages.slotBytes, options.codec != Codec::None}, blocks));
  uint64_t tables = Pager::tableBytes(pages.geometry, blocks, fast, plan.slots, options.stableVa) + blocks * bytesPerBlock;
  uint64_t bytes = fast * pages.geometry.pageStride + plan.memoryBytes, memory = availableMemory();
  if (bytes <= memory && tables <= memory - bytes)
    return success();
  return failure(QUIRE_OUT_OF_MEMORY,
                 "slow tiers of %llu pages: expected that pages and tables fit into the %llu bytes of memory that are available, but got %llu bytes "
                 "of pages in memory and %llu bytes of tables, %llu for each page; lower memory.slow.bytes (--slow-bytes) or memory.fast_bytes (--kv-bytes)",
                 static_cast<unsigned long long>(plan.slots), static_cast<unsigned long long>(memory), static_cast<unsigned long long>(bytes),
                 static_cast<unsigned long long>(tables), static_cast<unsigned long long>(tables / (fast + plan.slots)));
}

Status Pool::createPager(const quire_model_info &info, const Options &options, Clock &clock,
                         std::unique_ptr<Pager> &out) {
  Pages pages;
  QUIRE_TRY(cutPages(info, options, pages));
  const PageGeometry &geometry = pages.geometry;
  std::unique_ptr<Tier> tier;
  std::unique_ptr<Mover> mover;
  uint64_t prefixBytes = options.prefixCache ? PrefixCache::bytesPerBlock(info.block_tokens) : 0, digestBytes = options.digests ? PageDigests::bytesPerBlock(info) : 0;
  QUIRE_TRY(checkPlan(options, pages, tableBytesPerBlock(prefixBytes) + digestBytes));
  QUIRE_TRY(options.slowTier(pages.slotBytes, tier, mover));
  if (options.codec != Codec::None)
    tier = std::make_unique<CodecTier>(std::move(tier), options.codec, info, geometry);
  Pager::Options paging = options.paging;
  paging.fastBytes = options.bytes;
  paging.poison = options.poison;
  paging.zeroOnFree = options.zeroOnFree;
  paging.stable = options.stableVa;
  QUIRE_TRY(Pager::create(geometry, paging, std::move(tier), std::move(mover), clock, out));
  if (options.digests)
    out->keepDigests(std::make_unique<PageDigests>(info, geometry, out->blocks()));
  return success();
}

/// With a pager only the sizes of the layers.
Status Pool::createArena(const quire_model_info &info, bool exportable) {
  std::vector<uint64_t> offsets;
  uint64_t bytes = 0;
  for (int64_t l = 0; l < info.layer_count; ++l) {
    offsets.push_back(bytes);
    bytes += static_cast<uint64_t>(blocksTotal()) * static_cast<uint64_t>(info.layers[l].block_bytes);
    bytes = (bytes + layerAlignment - 1) & ~(layerAlignment - 1);
  }
  if (!pager_) {
    QUIRE_TRY(exportable ? arena_.mapShared(bytes) : arena_.map(bytes, MappedMemory::Pages::Huge));
    QUIRE_TRY(arena_.populate());
    if (poison_)
      std::memset(arena_.data(), poisonByte, bytes);
  }
  for (int64_t l = 0; l < info.layer_count; ++l)
    layers_.push_back({pager_ ? nullptr : arena_.data() + offsets[static_cast<size_t>(l)], info.layers[l].block_bytes});
  return success();
}

int64_t Pool::blocksFree() const {
  int64_t free = allocator_.freeCount();
  if (!pager_)
    return free;
  return std::max<int64_t>(0, std::min({free, pager_->roomBlocks(0), pager_->blockLimit() - blocksUsed()}));
}

int64_t Pool::blocksReclaimable() const {
  if (!prefix_ || prefix_->idleCount() == 0)
    return 0;
  int64_t idle = prefix_->idleCount();
  if (!pager_ || !pager_->full())
    return idle;
  int64_t slots = 0;
  for (uint32_t block = 0; block < allocator_.total(); ++block)
    if (prefix_->idle(block))
      slots += pager_->slotsWithout(block);
  int64_t free = allocator_.freeCount() + idle, used = blocksTotal() - free;
  int64_t available = std::min({free, pager_->roomBlocks(slots), pager_->blockLimit() - used});
  return std::max<int64_t>(0, available - blocksFree());
}

void Pool::fill(uint32_t block, unsigned char byte) {
  for (const Layer &layer : layers_)
    std::memset(layer.base + block * layer.blockBytes, byte, static_cast<size_t>(layer.blockBytes));
}

Status Pool::copyBlock(uint32_t from, uint32_t to) {
  if (pager_)
    QUIRE_TRY(pager_->copy(from, to));
  else
    for (const Layer &layer : layers_)
      std::memcpy(layer.base + to * layer.blockBytes, layer.base + from * layer.blockBytes,
                  static_cast<size_t>(layer.blockBytes));
  copiedBytes_ += blockBytes_;
  return success();
}

void Pool::eraseBlock(uint32_t block) {
  fill(block, poison_ ? poisonByte : 0);
  written_[block] = 0;
}

void Pool::takeBlocks(int64_t count, std::vector<int32_t> &out) {
  int64_t begun = timed_ ? clock_->now() : 0;
  makeRoom(count);
  size_t first = out.size();
  allocator_.allocate(static_cast<uint32_t>(count), out);
  for (size_t i = first; i < out.size(); ++i)
    written_[static_cast<size_t>(out[i])] = 1;
  noteTaken(count);
  if (timed_)
    latencies_.allocate.record(static_cast<uint64_t>(clock_->now() - begun));
}

bool Pool::addReference(uint32_t block) {
  if (!allocator_.retain(block))
    return false;
  if (prefix_ && prefix_->contains(block) && !prefix_->hasUsers(block))
    prefix_->addUsers(block);
  return true;
}

void Pool::dropReference(uint32_t block) {
  if (!timed_)
    return freeReference(block);
  int64_t begun = clock_->now();
  freeReference(block);
  latencies_.free.record(static_cast<uint64_t>(clock_->now() - begun));
}

void Pool::freeReference(uint32_t block) {
  if (allocator_.release(block)) {
    if (idle_)
      idle_->forget(block);
    if (pager_) {
      pager_->discard(block);
      return;
    }
    handPins_[block] = 0;
    if (poison_ || zeroOnFree_)
      eraseBlock(block);
    return;
  }
  if (!prefix_ || !prefix_->contains(block) || allocator_.references(block) != 1)
    return;
  prefix_->dropUsers(block, now_);
  if (prefix_->idle(block)) // and perhaps those before it, at the same time
    noteExpiry(block);
}

Status Pool::findBlock(quire_block handle, uint32_t &out) const {
  uint32_t index = static_cast<uint32_t>(handle);
  uint32_t generation = static_cast<uint32_t>(handle >> 32);
  if (generation == 0 || index >= allocator_.total())
    return failure(QUIRE_INVALID_ARGUMENT, "not a block handle of this pool");
  // The caller may hold a reference only through handles, so a block that only
  // sequences use is as stale as a free one.
  if (allocator_.generation(index) != generation || callerReferences_[index] == 0)
    return failure(QUIRE_STALE_HANDLE, "block %u was released", index);
  if (acting_ != Tenants::nobody && blockTenants_[index] != acting_)
    return failure(QUIRE_INVALID_ARGUMENT, "not a block handle of this tenant");
  out = index;
  return success();
}

Status Pool::allocate(int64_t count, quire_block *out) {
  if (count < 0)
    return failure(QUIRE_INVALID_ARGUMENT, "expected a count of at least 0, but got %lld",
                   static_cast<long long>(count));
  QUIRE_TRY(checkRoom(count, std::max<int64_t>(0, blocksAvailable() - (reserveBlocks_ > 0 && holdsBlocks(nullptr) ? reserveBlocks_ : 0))));
  taken_.clear();
  taken_.reserve(static_cast<size_t>(count)); // so that what can throw comes before an eviction
  takeBlocks(count, taken_);
  for (size_t i = 0; i < taken_.size(); ++i) {
    uint32_t block = static_cast<uint32_t>(taken_[i]);
    callerReferences_[block] = 1;
    blockTenants_[block] = acting_;
    ++tenants_[acting_].blocks;
    out[i] = handleOf(block, allocator_.generation(block));
  }
  checkInvariants();
  return success();
}

Status Pool::retain(quire_block handle) {
  uint32_t block;
  QUIRE_TRY(findBlock(handle, block));
  if (!addReference(block))
    return failure(QUIRE_INVALID_ARGUMENT, "block %u has too many references", block);
  ++callerReferences_[block];
  checkInvariants();
  return success();
}

Status Pool::release(quire_block handle) {
  uint32_t block;
  QUIRE_TRY(findBlock(handle, block));
  if (--callerReferences_[block] == 0)
    --tenants_[blockTenants_[block]].blocks;
  dropReference(block);
  checkInvariants();
  return success();
}

Status Pool::index(quire_block handle, int32_t &out) const {
  uint32_t block;
  QUIRE_TRY(findBlock(handle, block));
  out = static_cast<int32_t>(block);
  return success();
}

uint64_t Pool::tableBytes() const {
  uint64_t bytes = static_cast<uint64_t>(blocksTotal()) * (BlockAllocator::bytesPerBlock() + sizeof(uint32_t));
  for (const Sequence &sequence : sequences_)
    bytes += sizeof(Sequence) + sequence.blocks.size() * sizeof(int32_t) + sequence.positions.size() * sizeof(int64_t);
  return bytes + (pager_ ? pager_->metadataBytes() : 0);
}

Status Pool::startTrace(int64_t events) {
  if (!pager_)
    return failure(QUIRE_INVALID_ARGUMENT, "a trace records a slow tier, and this pool has none");
  if (events < 0 || events > (int64_t(1) << 28))
    return failure(QUIRE_INVALID_ARGUMENT, "expected 0 to 268435456 events, but got %lld", static_cast<long long>(events));
  pager_->setTrace(nullptr);
  trace_ = events ? std::make_unique<Trace>(static_cast<size_t>(events)) : nullptr;
  pager_->setTrace(trace_.get());
  return success();
}

Status Pool::checkPlace(int64_t layer, int32_t index) const {
  if (layer < 0 || layer >= layerCount() || index < 0 || index >= blocksTotal())
    return failure(QUIRE_INVALID_ARGUMENT, "no block %d of layer %lld", index, static_cast<long long>(layer));
  return success();
}

Status Pool::pin(int64_t layer, int32_t index, bool write, char *&address) {
  QUIRE_TRY(checkPlace(layer, index));
  if (allocator_.references(static_cast<uint32_t>(index)) == 0)
    return failure(QUIRE_INVALID_ARGUMENT, "block %d is free", index);
  if (!pager_) {
    uint16_t &pins = handPins_[static_cast<size_t>(index)];
    if (pins == UINT16_MAX)
      return failure(QUIRE_INVALID_ARGUMENT, "block %d is pinned too often", index);
    ++pins;
    address = layerBase(layer) + index * layerBlockBytes(layer);
    return success();
  }
  const PageGeometry &geometry = pager_->geometry();
  QUIRE_TRY(pager_->pin(geometry.groupOf(layer), static_cast<uint32_t>(index), write, address));
  address += geometry.layerStart[static_cast<size_t>(layer)];
  return success();
}

Status Pool::address(int64_t layer, int32_t index, char *&out) const {
  QUIRE_TRY(checkPlace(layer, index));
  if (!pager_) {
    out = layerBase(layer) + index * layerBlockBytes(layer);
    return success();
  }
  if (!pager_->stable())
    return failure(QUIRE_INVALID_ARGUMENT, "blocks of a pool with a slow tier move: pin them, or make it with stable_va");
  const PageGeometry &geometry = pager_->geometry();
  out = pager_->stableAddress(geometry.groupOf(layer), static_cast<uint32_t>(index)) + geometry.layerStart[static_cast<size_t>(layer)];
  return success();
}

Status Pool::unpin(int64_t layer, int32_t index) {
  QUIRE_TRY(checkPlace(layer, index));
  if (pager_)
    return pager_->unpin(pager_->geometry().groupOf(layer), static_cast<uint32_t>(index));
  uint16_t &pins = handPins_[static_cast<size_t>(index)];
  if (pins == 0)
    return failure(QUIRE_INVALID_ARGUMENT, "block %d is not pinned", index);
  --pins;
  return success();
}

Status Pool::validate() const {
  QUIRE_TRY(allocator_.validate());
  if (pager_)
    QUIRE_TRY(pager_->validate());
  std::vector<uint64_t> counted(callerReferences_.begin(), callerReferences_.end());
  QUIRE_TRY(validateSequences(counted));
  QUIRE_TRY(validateSharing(counted));
  QUIRE_TRY(validatePins());
  for (uint32_t block = 0; block < allocator_.total(); ++block)
    if (counted[block] != allocator_.references(block))
      return failure(QUIRE_INVARIANT_BROKEN, "block %u has %u references, but %llu owners", block,
                     allocator_.references(block), static_cast<unsigned long long>(counted[block]));
  return success();
}

} // namespace quire::runtime
