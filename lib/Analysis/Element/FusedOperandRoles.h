// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Roles of inputs that only fused operators tell, before these are decomposed.

#ifndef QUIRE_ANALYSIS_ELEMENT_FUSEDOPERANDROLES_H
#define QUIRE_ANALYSIS_ELEMENT_FUSEDOPERANDROLES_H

#include "lib/Analysis/Element/InputRole.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace quire {

/// Adds the roles of arguments that feed an operand of known meaning, such as
/// `nonpad_kv_seqlen`; roles that are given already stay.
void addRolesOfFusedOperands(mlir::func::FuncOp original,
                             llvm::StringMap<InputRole> &roles);

} // namespace quire

#endif // QUIRE_ANALYSIS_ELEMENT_FUSEDOPERANDROLES_H
