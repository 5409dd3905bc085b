// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lengths of sequences, requests, and page traces, the same for a seed on every machine.
#ifndef QUIRE_BENCHMARKS_KV_WORKLOADS_H
#define QUIRE_BENCHMARKS_KV_WORKLOADS_H

#include "core/Random.h"
#include "residency/Replay.h"
#include "residency/Trace.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace quire::kvbench {

class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}

  /// In [0, 1).
  double uniform() { return static_cast<double>(runtime::splitMix(state_) >> 11) * 0x1p-53; }
  /// In [0, count).
  uint64_t below(uint64_t count) { return static_cast<uint64_t>(uniform() * static_cast<double>(count)); }
  double normal();
  double exponential(double mean);

private:
  uint64_t state_;
};

//===----------------------------------------------------------------------===//
// Lengths
//===----------------------------------------------------------------------===//

/// Of a sequence, as parts of the longest one. Chat: log-normal with mean 500 tokens and sigma 0.8, cut at the longest.
enum class Lengths { Fixed, From0, From20, From40, Chat };
constexpr Lengths allLengths[] = {Lengths::Fixed, Lengths::From0, Lengths::From20, Lengths::From40, Lengths::Chat};

/// "fixed", "U(0,1]", "U[0.2,1]", "U[0.4,1]", "chat".
const char *lengthsName(Lengths lengths);
/// 1 to `most` tokens.
int64_t drawLength(Lengths lengths, int64_t most, Random &random);
/// Mean of what drawLength gives, but for rounding up to whole tokens.
double meanLength(Lengths lengths, int64_t most);

/// Slots of a contiguous cache that doubles whenever it is full, from 16 on and up to `most`.
int64_t doublingSlots(int64_t tokens, int64_t most);
/// Tokens that it copied on the way.
int64_t doublingCopies(int64_t tokens, int64_t most);

//===----------------------------------------------------------------------===//
// Traces
//===----------------------------------------------------------------------===//

/// What a trace of one or more sequences looks like.
struct TraceShape {
  uint32_t blocks = 128;
  uint32_t groups = 4; // of layers; a page is one block of one group
  uint32_t steps = 64;
  uint64_t pageBytes = 64 << 10;
  int64_t pageNs = 40'000; // that a step computes on a page

  uint32_t pages() const { return blocks * groups; }
};

/// Every step reads every page, group by group: decoding with dense attention.
runtime::Trace denseTrace(const TraceShape &shape);

/// Every step reads `topk` blocks in each group: the first, the last two, and others of which a share `sticky` stays
/// from step to step and the rest follow Zipf's law; pages read are observed with a mass that falls with their rank.
struct SparseAttention {
  uint32_t topk = 16;
  double sticky = 0.8;
};
runtime::Trace sparseTrace(const TraceShape &shape, const SparseAttention &attention, uint64_t seed);

/// As a sparse trace, but of attention that is computed, over keys and queries that are made up: a step's query in a group looks for the keys of
/// `interests` blocks, half of them the same in all groups; each is kept in the next step with probability `sticky`, and is
/// followed by another one by Zipf's law. Keys of a block have a share `alike` of their variance in common. What is read is the first block, the
/// last two, and those to which the query gives most, by their places; what is observed is the share of the attention.
struct KeyedAttention {
  uint32_t topk = 16;
  uint32_t interests = 8;
  double sticky = 0.8;
  double alike = 0.5;
  int64_t blockTokens = 16;
  int64_t channels = 64;
};
struct KeyedTrace {
  runtime::Trace trace;
  /// Before the first page of each group is read: the `topk` blocks with the greatest bounds by digests, for the query that then reads.
  std::vector<runtime::NamedPages> named;
};
KeyedTrace keyedTrace(const TraceShape &shape, const KeyedAttention &attention, uint64_t seed);

/// `turns` turns: each one writes its share of the blocks while it reads all before it, and then decodes; a decode step
/// reads block 0, all blocks of the last `recentTurns` turns, and in each group one older block, by Zipf's law from the
/// newest.
struct Dialogue {
  uint32_t turns = 20;
  uint32_t recentTurns = 3;
};
runtime::Trace dialogueTrace(const TraceShape &shape, const Dialogue &dialogue, uint64_t seed);

/// A document is written once, front to back, each chunk of 8 blocks reading the two chunks before it; then `steps`
/// decode steps in questions of 16 steps, each about `topk` blocks that lie together in 4 places, and the first block.
runtime::Trace documentTrace(const TraceShape &shape, uint32_t topk, uint64_t seed);

} // namespace quire::kvbench

#endif // QUIRE_BENCHMARKS_KV_WORKLOADS_H
