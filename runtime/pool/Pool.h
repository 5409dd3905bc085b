// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The KV pool: one arena per layer, blocks shared by all layers, and sequences with block tables.
#ifndef QUIRE_RUNTIME_POOL_POOL_H
#define QUIRE_RUNTIME_POOL_POOL_H

#include "core/MappedMemory.h"
#include "core/Status.h"
#include "pool/BlockAllocator.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace quire::runtime {

/// Single writer: no call may overlap another on the same pool.
class Pool {
public:
  struct Options {
    uint64_t bytes = uint64_t(256) << 20;
    BlockAllocator::Options order;
    bool poison = false;
  };

  static Status create(const quire_model_info &info, const Options &options, std::unique_ptr<Pool> &out);

  // Geometry.
  int64_t blockTokens() const { return blockTokens_; }
  int64_t blockBytes() const { return blockBytes_; }
  int64_t blocksTotal() const { return allocator_.total(); }
  int64_t blocksFree() const { return allocator_.freeCount(); }
  int64_t blocksPeak() const { return allocator_.peak(); }
  int64_t allocations() const { return static_cast<int64_t>(allocator_.allocations()); }
  int64_t sequenceCount() const { return sequenceCount_; }
  int64_t copiedBytes() const { return copiedBytes_; }
  int64_t maxPositions() const { return maxPositions_; }
  int64_t blocksFor(int64_t tokens) const { return (tokens + blockTokens_ - 1) / blockTokens_; }

  int64_t layerCount() const { return static_cast<int64_t>(layers_.size()); }
  char *layerBase(int64_t layer) const { return layers_[layer].base; }
  int64_t layerBlockBytes(int64_t layer) const { return layers_[layer].blockBytes; }

  // Blocks held by the caller.
  Status allocate(int64_t count, quire_block *out);
  Status retain(quire_block block);
  Status release(quire_block block);
  Status index(quire_block block, int32_t &out) const;

  // Sequences; contracts as in quire/runtime.h.
  Status createSequence(quire_sequence &out);
  Status releaseSequence(quire_sequence sequence);
  Status fork(quire_sequence sequence, int64_t length, quire_sequence &out);
  Status reserve(quire_sequence sequence, int64_t tokens);
  Status commit(quire_sequence sequence, int64_t tokens);
  Status truncate(quire_sequence sequence, int64_t length);
  Status length(quire_sequence sequence, int64_t &out) const;
  Status table(quire_sequence sequence, const int32_t *&blocks, int64_t &count) const;

  /// Free blocks that reserve(sequence, tokens) would take.
  Status reserveCost(quire_sequence sequence, int64_t tokens, int64_t &blocks) const;

  /// Invariants I1 to I4 and I6 of docs/Runtime.md.
  Status validate() const;

private:
  struct Layer {
    char *base;
    int64_t blockBytes;
  };

  struct Sequence {
    uint32_t generation = 1;
    bool live = false;
    int64_t length = 0;
    std::vector<int32_t> blocks;
  };

  Pool(uint32_t blocks, const Options &options);

  Status find(quire_sequence handle, const Sequence *&out) const;
  Status find(quire_sequence handle, Sequence *&out);
  Status findBlock(quire_block handle, uint32_t &out) const;
  /// Whether writing position `length` would change a block that others read.
  bool endsInSharedBlock(const Sequence &sequence) const;
  void dropBlocks(Sequence &sequence, int64_t keep);
  void dropReference(uint32_t block);
  void fill(uint32_t block, unsigned char byte);
  void copyBlock(uint32_t from, uint32_t to);
  Status validateSequences(std::vector<uint64_t> &counted) const;
  /// Debug builds validate after every operation that changes something.
  void checkInvariants() const;

  int64_t blockTokens_ = 0;
  int64_t blockBytes_ = 0;
  int64_t maxPositions_ = -1;
  bool poison_ = false;
  MappedMemory arena_;
  std::vector<Layer> layers_;
  BlockAllocator allocator_;
  std::vector<uint32_t> callerReferences_; // [blocks], those through quire_block
  std::vector<Sequence> sequences_;
  std::vector<uint32_t> freeSlots_;
  int64_t sequenceCount_ = 0;
  int64_t copiedBytes_ = 0;
};

} // namespace quire::runtime

#endif // QUIRE_RUNTIME_POOL_POOL_H
