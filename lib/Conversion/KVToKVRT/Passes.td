// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The pass from KV states as values to handles of the runtime.
#ifndef QUIRE_LIB_CONVERSION_KVTOKVRT_PASSES
#define QUIRE_LIB_CONVERSION_KVTOKVRT_PASSES

include "mlir/Pass/PassBase.td"

def ConvertKVToKVRT : Pass<"convert-kv-to-kvrt", "::mlir::ModuleOp"> {
  let summary = "paged KV states become handles, the step's inputs and outputs become reads and writes of the step structure";
  let description = [{
    `@step(%ids, %batch: !kv.batch, states...) -> (logits, states...)` becomes `@step(%batch: !kvrt.batch)`. The states, in the order of the
    arguments, are the layers 0, 1, ... A layer is acquired before its first append or attend and released after its last. The logits are
    written in f32. `kvrt.model` is added; its limits come from `kv.entry`.
  }];
  let options = [
    Option<"lanes", "lanes", "int64_t", /*default=*/"8", "tokens that lie side by side in a K block; divides the block">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect",
                           "::quire::kvrt::KVRTDialect"];
}

#endif // QUIRE_LIB_CONVERSION_KVTOKVRT_PASSES
