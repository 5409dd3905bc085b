// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes weights.bin: every entry once, packed for its kernel.
#ifndef QUIRE_LIB_TARGET_CPU_WEIGHTSWRITER_H
#define QUIRE_LIB_TARGET_CPU_WEIGHTSWRITER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

namespace quire::cpu {

/// Writes the entries (`kvrt.packed`, `kvrt.raw`) of `module` to `outPath`. Their sources are `onnx.initializer` symbols, whose
/// files are relative to `modelFolder`; offsets come from assign-weight-offsets. Sources are mapped, panels are written one by
/// one: memory stays small whatever the model's size.
llvm::LogicalResult writeWeights(mlir::ModuleOp module, llvm::StringRef modelFolder, llvm::StringRef outPath);

} // namespace quire::cpu

#endif // QUIRE_LIB_TARGET_CPU_WEIGHTSWRITER_H
