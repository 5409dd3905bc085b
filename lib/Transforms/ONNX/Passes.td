// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes inside the `onnx` level.
#ifndef QUIRE_LIB_TRANSFORMS_ONNX_PASSES
#define QUIRE_LIB_TRANSFORMS_ONNX_PASSES

include "mlir/Pass/PassBase.td"

def DecomposeAttentionPass : Pass<"onnx-decompose-attention", "::mlir::func::FuncOp"> {
  let summary = "spells fused attention operators out in primitive ones";
  let description = [{
    Attention, GroupQueryAttention and MultiHeadAttention become concatenation with the past, rotation, products, mask arithmetic and a softmax. `raise-attention` does
    this on its copy of the function; the pass exists to be looked at and tested.
  }];
  let dependentDialects = ["::quire::onnx::ONNXDialect"];
}

#endif // QUIRE_LIB_TRANSFORMS_ONNX_PASSES
