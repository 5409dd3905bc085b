// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass that turns everything into the LLVM dialect.
#ifndef QUIRE_LIB_CONVERSION_KVRTTOLLVM_PASSES_TD
#define QUIRE_LIB_CONVERSION_KVRTTOLLVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertKVRTToLLVM : Pass<"convert-kvrt-to-llvm", "::mlir::ModuleOp"> {
  let summary = "`kvrt` and what stands beside it become the LLVM dialect";
  let description = [{
    Calls of the runtime go through the table of the step. `kvrt.model` becomes the exported function `quire_model_query`; every
    other function is internal. Entries of weights.bin must have offsets; their symbols and initializers are erased.
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

#endif // QUIRE_LIB_CONVERSION_KVRTTOLLVM_PASSES_TD
