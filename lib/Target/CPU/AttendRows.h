// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What rows of attention see, the parts that it is cut into, and how results over parts become one. See docs/Rationale/AttentionParts.md.
#ifndef QUIRE_LIB_TARGET_CPU_ATTENDROWS_H
#define QUIRE_LIB_TARGET_CPU_ATTENDROWS_H

#include "lib/Target/CPU/AttendTile.h"
#include "lib/Target/CPU/Passes.h"
#include "lib/Target/CPU/StepFields.h"

namespace quire::cpu {

/// The keys that a row sees are cut into this many parts at most, and one more where a window begins inside a part.
constexpr int64_t mostAttendParts = 32;
/// A step with as many tasks leaves no thread without work, and each part need not be one.
constexpr int64_t enoughAttendTasks = 32;

// Tasks for each thread that share the work out evenly enough.
constexpr int64_t tasksPerThread = 4;
/// Results over parts that are kept at most.
constexpr int64_t mostAttendPlaces = 512;

/// What is static in the kernels of one kvrt.attend.
struct AttendPlan : AttendShape {
  AttendPlan(kvrt::AttendOp op, const LowerAttendOptions &options);

  /// The most keys that a row sees; 0: as many as there are.
  int64_t mostSeen() const { return window && chunk ? std::min(window, chunk) : std::max(window, chunk); }

  int64_t heads, window, chunk, prefetchPages;
  int64_t partPages;   // pages of a part of the smallest size
  int64_t tileRows;    // rows that are handled together
  int64_t taskHeads;   // KV heads of a task whose rows are handled one by one, at most
  int64_t askedHeads;  // as many at most where the values of a page are asked for
  int64_t streamHeads; // from as many on they need not be; more than `taskHeads`: they always are
  int64_t asks;        // how often the values of a page are asked for, where one row is handled; once where several are
  int64_t taskRows;    // rows of a task when there are many
  int64_t places;      // for results over parts; 0: rows are never cut
  bool causal, sinks, observe;
  bool breakHeads, breakBlock, breakParts; // wrong on purpose
};

/// Parts [first, end) of the keys that a row sees: part i has pages [i * pages, (i + 1) * pages) of the sequence. Indices.
struct RowParts {
  mlir::Value pages, first, end;
};

/// What folded rows have so far: buffers as in AttendBuffers.
struct AttendResult {
  mlir::Value accumulator, maximum, sum;
};

/// Emits what the kernels of one kvrt.attend and the loop around them share.
class AttendRows {
public:
  using Value = mlir::Value;

  AttendRows(KernelEmitter &emitter, const AttendPlan &plan, Value batch);

  /// Rows of one task of this step: one when sequences have few new rows each.
  Value emitTaskRows();
  Value sequenceOf(Value row) { return e.loadIndex(sequences, {row}); }
  Value endOf(Value sequence) { return e.loadIndex(starts, {e.add(sequence, 1)}); }
  /// Tokens of a sequence after the step.
  Value lengthOf(Value sequence);
  /// Which keys a row sees: an interval. Both ends ascend with the rows of a sequence.
  AttendRow seenFrom(Value row, Value length);
  /// The parts of it, one at least. They depend on the row's place and, without causal, on the sequence's length.
  RowParts partsOf(const AttendRow &seen);

  /// A result of `folded` rows on the stack.
  AttendResult stackResult(int64_t folded);
  /// Nothing seen so far.
  void emitStart(const AttendResult &result, Value at);
  /// Adds the result over one more part. Adding to nothing gives the part's bits, adding nothing changes none.
  void emitMerge(const AttendResult &result, Value at, Value maximum, Value sum,
                 llvm::function_ref<Value(Value offset, int64_t width)> accumulator);
  /// output[row, queryHead] = accumulator / sum, 0 when nothing was seen. A sink is one more part, without a value.
  void emitFinish(const AttendResult &result, Value at, Value row, Value queryHead, Value slopes, Value sinks, Value output);

  StepFields step;

private:
  Value sinkScore(Value row, Value queryHead, Value slopes, Value sinks);
  Value expOfDifference(Value a, Value b);

  KernelEmitter &e;
  const AttendPlan &plan;
  Value sequences, starts, places, pastLengths;
};

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_ATTENDROWS_H
