// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Describes an exported model without building anything.
#ifndef QUIRE_LIB_DRIVER_INSPECT_H
#define QUIRE_LIB_DRIVER_INSPECT_H

#include "lib/Driver/Report.h"

#include "mlir/IR/BuiltinOps.h"

namespace quire {

/// Inputs by role, states, layers, sizes and operators of an imported module, as text or JSON.
void inspect(mlir::ModuleOp module, const Report &report, bool json, llvm::raw_ostream &os);

} // namespace quire

#endif // QUIRE_LIB_DRIVER_INSPECT_H
