// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes from `onnx` to linalg on tensors.
#ifndef QUIRE_LIB_CONVERSION_ONNXTOLINALG_PASSES
#define QUIRE_LIB_CONVERSION_ONNXTOLINALG_PASSES

include "mlir/Pass/PassBase.td"

def ConvertONNXToLinalg : Pass<"convert-onnx-to-linalg", "::mlir::ModuleOp"> {
  let summary = "token-wise `onnx` operators become linalg on tensors and products over packed weights";
  let description = [{
    Expects the step after `convert-kv-to-kvrt`: every tensor is ranked and has one `?` at most, the rows. MatMul and Gemm with a matrix from
    an initializer become `kvrt.product` and a `kvrt.packed` symbol; other uses of an initializer read a `kvrt.raw` symbol in the form
    of the file. Everything else becomes `linalg.generic`, slices and reshapes. Arithmetic on 16-bit floats runs in f32 and is rounded to the
    operator's type, operator by operator. An operator without a rule is an error at its location.
  }];
  let options = [
    Option<"panelColumns", "panel-columns", "int64_t", /*default=*/"16", "columns of a panel of a packed weight (nr)">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect", "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect",
                           "::quire::kvrt::KVRTDialect"];
}

#endif // QUIRE_LIB_CONVERSION_ONNXTOLINALG_PASSES
