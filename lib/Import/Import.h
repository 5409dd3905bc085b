// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads an ONNX file into a module of the `onnx` dialect.

#ifndef QUIRE_LIB_IMPORT_IMPORT_H
#define QUIRE_LIB_IMPORT_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace quire {

struct ImportOptions {
  /// Tensors of more bytes become `onnx.initializer`; their bytes stay in the file.
  int64_t maxConstantBytes = 1024;
  /// The most nodes, after model functions are inlined.
  int64_t maxNodes = 1'000'000;
};

/// Imports the file at `path`. Errors go to the context's diagnostic engine, as "file: node 'name' (Operator): reason".
/// Weights are neither read nor copied: initializers name the file, relative to the folder of the model, and the place.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(llvm::StringRef path, mlir::MLIRContext &context,
                                                              const ImportOptions &options = {});

/// As above, from bytes in memory that came from a file at `path`; external data is looked up beside it.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> importOnnxBytes(llvm::StringRef bytes, llvm::StringRef path,
                                                                   mlir::MLIRContext &context,
                                                                   const ImportOptions &options = {});

} // namespace quire

#endif // QUIRE_LIB_IMPORT_IMPORT_H
