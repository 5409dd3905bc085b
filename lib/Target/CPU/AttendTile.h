// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A few pages of attention with a carried maximum, sum and accumulator: what kv.attend_tile means, spelled for a CPU.
#ifndef QUIRE_LIB_TARGET_CPU_ATTENDTILE_H
#define QUIRE_LIB_TARGET_CPU_ATTENDTILE_H

#include "dialects/KVRT/KVRT.h"
#include "lib/Target/CPU/KernelEmitter.h"

namespace quire::cpu {

/// What is static in an attention kernel. A folded row is one query head of one row. Those of a task are numbered row by row, `group` of
/// them a row, where it has one KV head, and head by head where it has several heads of one row.
struct AttendShape {
  kvrt::StateType state;
  int64_t group;       // query heads per KV head
  int64_t tilePages;   // pages that share one step of the softmax, at most
  int64_t vectorBytes; // of a native vector
  float scale, softcap;
  bool alibi;
  bool convertsHalf; // whether the processor converts f16

  int64_t lanes() const { return state.getLanes(); }
  int64_t valueLanes() const { return vectorBytes / 4; }
  /// Elements of 8 bits or fewer become numbers in registers of their own; wider ones are operands in memory.
  bool widens() const { return state.getElement().getIntOrFloatBitWidth() <= 8; }
  /// How many registers a vector takes on that way.
  int64_t widening() const { return !widens() ? 0 : state.isQuantized() ? 1 : 3; }
  /// Accumulators that fit the registers beside operands.
  int64_t accumulators() const { return vectorBytes >= 64 ? 24 : 12; }
};

/// The features of each scale and zero of a row of codes.
llvm::SmallVector<Piece> codeGroups(int64_t features);

/// Buffers of a task, in f32, and the rows' visible keys.
struct AttendBuffers {
  mlir::Value query;       // [folded][key]
  mlir::Value querySums;   // [folded][groups], over the features of each group, where keys are codes
  mlir::Value accumulator; // [folded][value]
  mlir::Value scores;      // [folded][slots of a tile]
  mlir::Value maximum;     // [folded]
  mlir::Value sum;         // [folded]
  mlir::Value rescale;     // [folded]
  mlir::Value pageSums;    // [folded][tilePages], of the weights of each page, where attention is observed
  mlir::Value slopes;      // [query heads], with alibi
};

/// A row of the tile: keys [low, high) are visible from `place`. Indices.
struct AttendRow {
  mlir::Value place, low, high;
};

/// The parts of one block; scales where elements are codes.
struct AttendBlock {
  mlir::Value key, value, keyScales, valueScales;
};

/// The parts of a page, and what to prefetch beside it: keys and scales of a page `ahead`, which may be null, and the values of pages, which are
/// each asked for several times on the way to them, since a processor may drop a prefetch.
struct AttendPage {
  AttendBlock block, ahead;
  llvm::SmallVector<mlir::Value, 4> asked;
};

/// The pages of a tile, numbered in it: [first, last) of them are there. `base` is the first key that the tile has place for; slots, numbered
/// in the tile as well, are seen by some row from `from` to `to`.
struct AttendPages {
  mlir::Value first, last, base, from, to;
  mlir::Value watched; // whether page sums are wanted, where there is a buffer for them
  mlir::Value heads;   // how many KV heads the task has, for one row; null: one, for all rows
  mlir::Value streams; // whether their values in a page are so many that they need not be asked for; null: they are not
  /// The number of a KV head from its number in the task, which is null where there is one.
  llvm::function_ref<mlir::Value(mlir::Value inTask)> headOf;
  llvm::function_ref<AttendPage(mlir::Value page)> page;
};

/// Scores that no real one is below: what the maximum starts from.
constexpr float lowestScore = -3.0e38f;

/// Emits one step over `pages` for the folded rows of `rows`.
void emitAttendTile(KernelEmitter &emitter, const AttendShape &shape, const AttendBuffers &buffers,
                    llvm::ArrayRef<AttendRow> rows, const AttendPages &pages);

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_ATTENDTILE_H
