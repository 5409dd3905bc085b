// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversion of `kvrt` to the LLVM dialect.
#ifndef QUIRE_LIB_CONVERSION_KVRTTOLLVM_KVRTTOLLVM_H
#define QUIRE_LIB_CONVERSION_KVRTTOLLVM_KVRTTOLLVM_H

#include "dialects/KVRT/KVRT.h"

#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace quire::kvrt {

#define GEN_PASS_DECL
#include "lib/Conversion/KVRTToLLVM/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "lib/Conversion/KVRTToLLVM/Passes.h.inc"

/// A batch is a pointer to quire_step, a state the struct (base, bytes between blocks, layer).
void populateKVRTToLLVMTypes(mlir::LLVMTypeConverter &converter);

/// Patterns for calls of the runtime, and for views. Entries of weights.bin are looked up through `tables`.
void populateRuntimeCallPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns);
void populateViewPatterns(const mlir::LLVMTypeConverter &converter, mlir::RewritePatternSet &patterns,
                          mlir::SymbolTableCollection &tables);

/// Makes `model` the function quire_model_query and erases it. The module's functions are in the LLVM dialect.
llvm::LogicalResult emitModelQuery(ModelOp model);

} // namespace quire::kvrt

#endif // QUIRE_LIB_CONVERSION_KVRTTOLLVM_KVRTTOLLVM_H
