// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What passes ask of `kv` ops and layouts instead of their names.
#ifndef QUIRE_DIALECTS_KV_INTERFACES
#define QUIRE_DIALECTS_KV_INTERFACES

include "mlir/IR/OpBase.td"

def KVLayoutAttrInterface : AttrInterface<"KVLayoutAttrInterface"> {
  let cppNamespace = "::quire::kv";
  let description = "How the rows of a state lie in memory.";
  let methods = [
    InterfaceMethod<"tokens of one block; 0 when rows are not in blocks", "int64_t", "getBlockTokens">
  ];
}

def KVConsumeOpInterface : OpInterface<"KVConsumeOpInterface"> {
  let cppNamespace = "::quire::kv";
  let description = [{An op that takes a state over: the operand must not be used afterwards, the tied result is the next state.}];
  let methods = [
    InterfaceMethod<"the operand that is consumed", "::mlir::OpOperand &", "getConsumedState">,
    InterfaceMethod<"the state that takes its place; null when there is none", "::mlir::Value", "getTiedState">
  ];
}

def KVReadOpInterface : OpInterface<"KVReadOpInterface"> {
  let cppNamespace = "::quire::kv";
  let description = [{An op that reads rows of a state and leaves it as it is.}];
  let methods = [
    InterfaceMethod<"the operand that is read", "::mlir::OpOperand &", "getReadState">,
    InterfaceMethod<"true when the op needs the rows; false for a hint that may be dropped", "bool", "needsRows">
  ];
}

#endif // QUIRE_DIALECTS_KV_INTERFACES
