// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Emits the loops of one linalg operation on buffers, for one row, with vectors along its innermost contiguous axis.
#ifndef QUIRE_LIB_TRANSFORMS_BUFFERS_LOOPEMITTER_H
#define QUIRE_LIB_TRANSFORMS_BUFFERS_LOOPEMITTER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/IRMapping.h"

namespace quire {

/// How the loops of an operation run.
class LoopPlan {
public:
  /// The most elements of a vector.
  static constexpr int64_t maxWidth = 16;

  /// `initial`: what a reduction starts from; null: from the contents of its output.
  explicit LoopPlan(mlir::linalg::GenericOp op, mlir::Value initial = {});

  mutable mlir::linalg::GenericOp op; // a handle: its accessors are not const
  mlir::Value initial;
  llvm::SmallVector<int64_t> extents;
  /// The loop over rows, of unknown extent; -1: none.
  int64_t rowLoop = -1;
  /// The loop that runs in vectors; -1: none.
  int64_t vectorLoop = -1;
  /// The operation that combines the output with an element, when the vector loop is a reduction.
  mlir::Operation *combiner = nullptr;

  bool isReduction(int64_t loop) const { return op.getIteratorTypesArray()[loop] == mlir::utils::IteratorType::reduction; }
  /// True when it touches of every buffer with rows only the row it is at.
  bool isRowLocal() const;
  /// Element computations for one row; a call of a function of math counts for ten.
  int64_t workOfRow() const;
  /// Takes the first parallel loop of more than one iteration for the rows. False if there is none.
  bool takeOuterLoopForRows();

private:
  void chooseVectorLoop();
  bool canVectorize() const;
};

/// Emits the loops of `plan` at the builder's place; `row` is the index of the row loop, null when there is none.
void emitLoops(mlir::OpBuilder &builder, const LoopPlan &plan, mlir::Value row);

} // namespace quire

#endif // QUIRE_LIB_TRANSFORMS_BUFFERS_LOOPEMITTER_H
