// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The interface of operations that can be computed on concrete tensors.

#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATEOPINTERFACE_TD
#define QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def EvaluateOpInterface : OpInterface<"EvaluateOpInterface"> {
  let cppNamespace = "::quire";
  let description = [{
    The value of an operation for concrete operands. It is the oracle of the compiler: constant folding, the confirmation of
    what analyses found, and the original model that a certificate compares with.
  }];
  let methods = [
    InterfaceMethod<[{
        Appends one tensor a result. An absent operand is a null pointer; an absent result may be a tensor that is false. The
        error names what was expected and what was found, without the operation.
      }],
      "::llvm::Error", "evaluate",
      (ins "::llvm::ArrayRef<const ::quire::eval::Tensor *>":$operands, "::quire::eval::EvaluateContext &":$context,
           "::llvm::SmallVectorImpl<::quire::eval::Tensor> &":$results)>
  ];
}

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATEOPINTERFACE_TD
