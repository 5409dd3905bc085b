// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element types of operands that ONNX allows.
#ifndef QUIRE_LIB_IMPORT_ELEMENTRULES_H
#define QUIRE_LIB_IMPORT_ELEMENTRULES_H

#include "mlir/IR/BuiltinTypes.h"

#include <string>

namespace quire {

/// What is wrong with the element types of an operator of the standard domain; empty if nothing is, or if its rule is not known. Operands that are
/// absent or whose type is not known are left out.
std::string elementMismatch(llvm::StringRef operation, llvm::ArrayRef<mlir::Type> operands);

} // namespace quire

#endif // QUIRE_LIB_IMPORT_ELEMENTRULES_H
