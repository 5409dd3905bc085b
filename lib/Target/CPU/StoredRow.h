// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A row of K or V on its way into a page: as it is, or as codes of 8 or 4 bits with a scale and a zero for each group of features.
#ifndef QUIRE_LIB_TARGET_CPU_STOREDROW_H
#define QUIRE_LIB_TARGET_CPU_STOREDROW_H

#include "lib/Target/CPU/KernelEmitter.h"

namespace quire::cpu {

/// Emits code for one row of one head: `rows[row, head, features]`.
class StoredRow {
public:
  using Value = mlir::Value;

  StoredRow(KernelEmitter &emitter, Value rows, Value row, Value head, int64_t features, int64_t vectorLanes)
      : e(emitter), rows(rows), row(row), head(head), features(features), vectorLanes(vectorLanes) {}

  /// Finds zero (the least number) and scale (the range by the largest code, 255 or 15) of each group, keeps them in `scales[head, group, .., slot]`, and makes numbers codes
  /// from here on: code = (number - zero) / scale to the nearest. A group with a number that is not finite gets a scale that is not one, so that it is not
  /// lost that there was one.
  void quantize(Value scales, Value slot, int64_t largestCode);

  /// What is stored of feature after feature: body(feature, element).
  void eachFeature(llvm::function_ref<void(Value, Value)> body);
  /// The same, vector by vector.
  void eachVector(llvm::function_ref<void(Value, Value)> body);
  /// The same where two codes share a byte: body(byte, lower, upper), `upper` null where there is none. `width` bytes at a time, or fewer.
  void eachByte(int64_t width, llvm::function_ref<void(Value, Value, Value)> body);

private:
  struct Group {
    Piece features;
    Value zero, inverse; // null: numbers are stored as they are
  };

  llvm::SmallVector<Group> wholeRow() const { return {{{0, features}, {}, {}}}; }
  void quantizeGroup(Piece piece, int64_t index, Value scales, Value slot);
  Value stored(Value numbers, const Group &group);

  KernelEmitter &e;
  Value rows, row, head;
  int64_t features, vectorLanes;
  float largest = 0; // code
  llvm::SmallVector<Group> groups = wholeRow();
};

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_STOREDROW_H
