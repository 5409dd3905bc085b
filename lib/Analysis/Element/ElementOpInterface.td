// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The transfer rule of an operator on symbolic tensors.

#ifndef QUIRE_ANALYSIS_ELEMENT_ELEMENTOPINTERFACE_TD
#define QUIRE_ANALYSIS_ELEMENT_ELEMENTOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def ElementOpInterface : OpInterface<"ElementOpInterface"> {
  let cppNamespace = "::quire";
  let description = [{
    Gives the extents of every result and its element at a generic index, from those of the operands. An operator without
    this interface makes results that are not provable, so that it is refused and never misread.
  }];
  let methods = [
    InterfaceMethod<[{
      Sets the tensor of every result that is used in `interp`, or fails with a refusal or a restart pending there.
    }], "::llvm::LogicalResult", "interpretElements", (ins "::quire::Interp &":$interp)>
  ];
}

#endif // QUIRE_ANALYSIS_ELEMENT_ELEMENTOPINTERFACE_TD
