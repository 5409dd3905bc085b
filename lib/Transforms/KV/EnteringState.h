// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which state of the step a state value is a later form of.
#ifndef QUIRE_LIB_TRANSFORMS_KV_ENTERINGSTATE_H
#define QUIRE_LIB_TRANSFORMS_KV_ENTERINGSTATE_H

#include "dialects/KV/KVDialect.h"

namespace quire::kv {

/// The state that entered the step, found back through appends.
inline mlir::Value enteringState(mlir::Value state) {
  while (auto append = state.getDefiningOp<AppendOp>())
    state = append.getState();
  return state;
}

} // namespace quire::kv

#endif // QUIRE_LIB_TRANSFORMS_KV_ENTERINGSTATE_H
