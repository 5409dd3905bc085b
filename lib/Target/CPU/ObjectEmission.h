// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the LLVM dialect to a shared object.
#ifndef QUIRE_LIB_TARGET_CPU_OBJECTEMISSION_H
#define QUIRE_LIB_TARGET_CPU_OBJECTEMISSION_H

#include "lib/Target/CPU/CpuTarget.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace quire::cpu {

/// Optimises `module` (LLVM dialect) for `target` and links it with `ld.lld -shared` to `soPath`. The object exports what the
/// module defines with external linkage and needs libm only. `verbose` prints the linker's command to stderr.
llvm::LogicalResult emitSharedObject(mlir::ModuleOp module, const CpuTarget &target, llvm::StringRef soPath,
                                     bool verbose);

/// The same code as assembly text, for inspection.
llvm::LogicalResult emitAssembly(mlir::ModuleOp module, const CpuTarget &target, llvm::raw_ostream &output);

/// The path of ld.lld, from `folder` or else from PATH.
llvm::FailureOr<std::string> findLinker(llvm::StringRef folder, mlir::Location loc);

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_OBJECTEMISSION_H
