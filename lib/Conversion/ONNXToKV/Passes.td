// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From exported graphs to attention with KV state.
#ifndef QUIRE_LIB_CONVERSION_ONNXTOKV_PASSES
#define QUIRE_LIB_CONVERSION_ONNXTOKV_PASSES

include "mlir/Pass/PassBase.td"

def RaiseAttentionPass : Pass<"raise-attention", "::mlir::ModuleOp"> {
  let summary = "finds attention with KV state by meaning and rewrites the model to a ragged step";
  let description = [{
    Reads `@main` symbolically (see the rationale page on raising), pairs each `past` with its `present`, proves masks, positions and that every other value
    is row-wise, and replaces `@main` by `@step` over `kv` operations. All layers or none: when anything is not proved, the module stays as it was, to the bit, and
    every reason is an error at the node it names.
  }];
  let options = [Option<"weightFolder", "weight-folder", "std::string", "", "folder of the model's files; masks that are tables of weights are read from it">,
                 ListOption<"inputRoles", "input-role", "std::string", "NAME=ROLE: what an input of the graph is for, where its uses leave a doubt">];
  let dependentDialects = ["::quire::kv::KVDialect", "::quire::onnx::ONNXDialect"];
}

#endif // QUIRE_LIB_CONVERSION_ONNXTOKV_PASSES
