// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs of operations on a pool: random ones, as text that can be run again, and as bytes for a fuzzer.
#ifndef QUIRE_TEST_UNIT_RUNTIME_POOLPROGRAM_H
#define QUIRE_TEST_UNIT_RUNTIME_POOLPROGRAM_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::test {

/// What the pool is like. A field is one byte, and every value of it means something.
enum class ShapeField : uint8_t {
  Tier,       // 0: all in memory, 1: host memory below, 2: a file below, 3: memory and a file below that; 4 more: faults hit the lower of the two
  Blocks,     // in memory
  Fast, Slow, // pages of the tiers
  Layers,     // of a page
  Policy,
  Window,     // of prefetches
  Poison, ZeroOnFree, Shuffle, PrefixCache,
  HashBits,   // of prefixes; 0: all
  Seed,       // of the order of blocks and of transfers
  Export,     // without a slow tier: other processes may read
  Codec,      // of a slow tier's pages; 0: none, 1: fp8, 2: sparse
  StableVa
};
constexpr size_t shapeFields = 16;

/// Arguments a, b and c are bytes; what they choose from is what there is, by remainder, so that
/// every program can be run. Sequences are counted by age.
enum class OpKind : uint8_t {
  Create,        // tenant a
  Release,       // sequence a
  Move,          // sequence a
  Fork,          // sequence a at length b
  Truncate,      // sequence a to length b
  Reserve,       // for sequence a, b tokens
  Write,         // b tokens of stream c into sequence a, page by page by hand
  Step,          // sequences of mask a, tokens by b, script c
  Abort,         // as Step, but the model's code ends inside a layer
  Invoke,        // one row after sequence a, by explicit tables, not committed
  Read,          // all of sequence a, page by page by hand
  Pin, Unpin,    // a block of sequence a, layer b
  Match,         // prompt b of c tokens into an empty sequence
  Publish,       // sequence a, all but c tokens
  Allocate,      // a blocks for the caller
  Retain, Drop,  // block a of the caller's
  Fill,          // block a of the caller's
  NewTenant,     // name a, time to live b
  EndTenant,     // tenant a
  ActAs,         // tenant a
  Advance,       // time by a
  Window,        // of prefetches: a
  Settle,
  Trace,         // a events
  Report,
  Stale,         // handle a of those that ended, call b
  Fault,         // kind a on transfers b, after c more
  Recover,       // all sequences go back to what is intact
  Crash,         // the pool ends as it is; file by a; a new one begins
  PinRange,      // tokens of sequence a, from b, c of them
  UnpinRange,    // likewise
  EndTurn,       // of sequence a at b
  Dialogue,      // a turns, b pages, important ones by c
  Unload,        // tokens of sequence a, from b, c of them
  Weigh,         // likewise, importance by a
  Resize,        // memory by a, or all of it by b
  Tune,          // reserve by a, budget of pins by b, prefetches by c
  Export,        // and what another process sees
  Compact,
  Prune,         // tokens of sequence a, from b, c of them
  Ask            // for c blocks of sequence a, layer b, by a query
};
constexpr size_t opKinds = 43;

struct Op {
  OpKind kind = OpKind::Create;
  uint8_t a = 0, b = 0, c = 0;
  bool operator==(const Op &other) const {
    return kind == other.kind && a == other.a && b == other.b && c == other.c;
  }
};

struct Program {
  std::array<uint8_t, shapeFields> shape{};
  std::vector<Op> ops;

  uint8_t operator[](ShapeField field) const { return shape[static_cast<size_t>(field)]; }
  uint8_t &operator[](ShapeField field) { return shape[static_cast<size_t>(field)]; }
  bool operator==(const Program &other) const { return shape == other.shape && ops == other.ops; }
};

const char *opName(OpKind kind);

/// The same seed gives the same program. Half of those with a slow tier have faults.
Program randomProgram(uint64_t seed, size_t ops);

/// What a server does: prompts that begin alike, steps, forks, ends; it goes on after pages were lost. `tier` as in the shape.
Program serverProgram(uint8_t tier);

/// One line for the shape and one for each operation. What printing gives, parsing takes;
/// otherwise `error` says which line is wrong.
std::string printProgram(const Program &program);
bool parseProgram(std::string_view text, Program &out, std::string &error);

/// Any bytes are a program: the shape, then four for an operation; missing ones are 0.
Program programFromBytes(const uint8_t *data, size_t size, size_t mostOps);
std::vector<uint8_t> programToBytes(const Program &program);

} // namespace quire::test

#endif // QUIRE_TEST_UNIT_RUNTIME_POOLPROGRAM_H
