// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations without an operator of their own (constants, weights, entries, the unknown) and operators with subgraphs.

#ifndef QUIRE_DIALECTS_ONNX_ONNXCONTROLOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXCONTROLOPS_TD

include "dialects/ONNX/ONNXBase.td"

//===-- Values ------------------------------------------------------------------------------------------------===//

def ONNX_NoneOp : Op<ONNX_Dialect, "none", [Pure, ConstantLike]> {
  let summary = "an absent optional operand";
  let description = [{
    ```mlir
    %none = onnx.none : none
    ```
  }];
  let results = (outs NoneType:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasFolder = 1;
}

def ONNX_ConstantOp : Op<ONNX_Dialect, "constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a constant tensor";
  let description = [{
    Constants above 1 KiB are `onnx.initializer` symbols, save those that the file does not hold as plain bytes.

    ```mlir
    %axes = onnx.constant dense<[0, 2]> : tensor<2xi64>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def ONNX_InitializerOp : Op<ONNX_Dialect, "initializer", [Symbol]> {
  let summary = "a constant whose bytes stay in a file";
  let description = [{
    `bytes` bytes at `offset` of `file`, a path relative to the folder of the model: row-major, little endian, as ONNX
    stores raw data; booleans take a byte, 4-bit elements share one, the lower half first.

    ```mlir
    onnx.initializer @embed {file = "model.onnx.data", offset = 4096 : i64, bytes = 8192 : i64} : tensor<32x64xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$file, ONNX_Int:$offset, ONNX_Int:$bytes,
                       TypeAttrOf<AnyStaticShapeTensor>:$type, OptionalAttr<StrAttr>:$sym_visibility);
  let assemblyFormat = "$sym_name attr-dict `:` $type";
  let hasVerifier = 1;
}

def ONNX_WeightOp : Op<ONNX_Dialect, "weight", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of an initializer";
  let description = [{
    ```mlir
    %w = onnx.weight @embed : tensor<32x64xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$initializer);
  let results = (outs AnyTensor:$result);
  let assemblyFormat = "$initializer attr-dict `:` type($result)";
}

//===-- Structure ---------------------------------------------------------------------------------------------===//

def ONNX_EntryOp : Op<ONNX_Dialect, "entry", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "names the arguments and results of the model's function";
  let description = [{
    `inputs` and `outputs` are the names in the file, one per argument and result. `input_dims` and `output_dims` give, one
    list per name, the file's name of each extent, or an empty string where it is a number or has no name.

    ```mlir
    onnx.entry @main {inputs = ["input_ids"], input_dims = [["batch_size", "sequence_length"]], outputs = ["logits"],
                      output_dims = [["batch_size", "sequence_length", ""]]}
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$function, StrArrayAttr:$inputs, StrArrayAttr:$outputs,
                       OptionalAttr<TypedArrayAttrBase<StrArrayAttr, "array of string arrays">>:$input_dims,
                       OptionalAttr<TypedArrayAttrBase<StrArrayAttr, "array of string arrays">>:$output_dims,
                       OptionalAttr<StrAttr>:$producer);
  let assemblyFormat = "$function attr-dict";
}

def ONNX_CustomOp : Op<ONNX_Dialect, "custom", [ONNX_OpInterface]> {
  let summary = "an operator that the dialect does not know";
  let description = [{
    Keeps everything the file says: operands in order (`none` where absent), attributes under their names, subgraphs as
    regions in the order of `region_names`.

    ```mlir
    %y = onnx.custom "com.vendor" "Fancy" %x {onnx_attributes = {alpha = 1.0 : f32}, since_version = 1 : i64}
        : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$domain, StrAttr:$op_type, ONNX_IntOr<"1">:$since_version,
                       OptionalAttr<DictionaryAttr>:$onnx_attributes, OptionalAttr<StrArrayAttr>:$region_names,
                       Variadic<ONNX_Optional>:$inputs);
  let results = (outs Variadic<ONNX_Optional>:$outputs);
  let regions = (region VariadicRegion<AnyRegion>:$bodies);
  let assemblyFormat = "$domain $op_type operands attr-dict `:` functional-type(operands, results) regions";
  let extraClassDeclaration = [{
    ::llvm::StringRef getOnnxName() { return getOpType(); }
    ::llvm::StringRef getOnnxDomain() { return getDomain(); }
    static ::llvm::StringRef getSignature() { return "v:inputs | v:outputs"; }
  }];
  let hasVerifier = 1;
}

def ONNX_YieldOp : Op<ONNX_Dialect, "yield", [Pure, Terminator]> {
  let summary = "the outputs of a subgraph";
  let arguments = (ins Variadic<ONNX_Optional>:$values);
  let assemblyFormat = "($values^)? attr-dict (`:` type($values)^)?";
}

//===-- Operators with subgraphs ------------------------------------------------------------------------------===//

class ONNX_RegionOp<string name, int sinceVersion, list<Trait> traits = []>
    : ONNX_Op<name, sinceVersion, !listconcat(traits, [RecursiveMemoryEffects, RecursivelySpeculatable])> {
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results) regions";
}

def ONNX_IfOp : ONNX_RegionOp<"If", 25> {
  let summary = "one of two subgraphs";
  let description = [{
    The results are those of `then_branch` where `cond` holds, else of `else_branch`. Branches take no arguments and use
    values of the enclosing graph.

    ```mlir
    %y = onnx.If %c : (tensor<i1>) -> tensor<4xf32> {
      onnx.yield %a : tensor<4xf32>
    }, {
      onnx.yield %b : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins ONNX_Value:$cond);
  let regions = (region SizedRegion<1>:$then_branch, SizedRegion<1>:$else_branch);
  let results = (outs Variadic<ONNX_Optional>:$outputs);
  let hasVerifier = 1;
}

def ONNX_LoopOp : ONNX_RegionOp<"Loop", 25> {
  let summary = "repeats a subgraph with carried values";
  let description = [{
    The body takes (iteration, condition, carried values) and yields (condition, carried values, scan outputs). Results are
    the last carried values, then each scan output stacked over the iterations. `M` bounds the iterations, `cond` is the
    first condition; either may be absent.
  }];
  let arguments = (ins ONNX_Optional:$M, ONNX_Optional:$cond, Variadic<ONNX_Optional>:$v_initial);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<ONNX_Optional>:$v_final_and_scan_outputs);
  let hasVerifier = 1;
}

def ONNX_ScanOp : ONNX_RegionOp<"Scan", 25> {
  let summary = "runs a subgraph over slices of its inputs, with carried values";
  let description = [{
    Operands are the initial carried values, then `num_scan_inputs` tensors to slice. The body takes (carried values,
    slices) and yields (carried values, output slices). Results are the last carried values, then the stacked outputs.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$initial_state_and_scan_inputs, ONNX_Int:$num_scan_inputs,
                       OptionalAttr<DenseI64ArrayAttr>:$scan_input_axes,
                       OptionalAttr<DenseI64ArrayAttr>:$scan_input_directions,
                       OptionalAttr<DenseI64ArrayAttr>:$scan_output_axes,
                       OptionalAttr<DenseI64ArrayAttr>:$scan_output_directions);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<ONNX_Optional>:$final_state_and_scan_outputs);
  let hasVerifier = 1;
}

def ONNX_SequenceMapOp : ONNX_RegionOp<"SequenceMap", 17> {
  let summary = "applies a subgraph to each element of sequences";
  let description = [{
    The body takes one element of each sequence operand, and each tensor operand whole.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, Variadic<ONNX_Value>:$additional_inputs);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Variadic<ONNX_Value>:$out_sequence);
}

def ONNX_PreviewFlexAttentionOp
    : ONNX_OperatorOp<"preview.FlexAttention", "FlexAttention", "ai.onnx.preview", 1,
                      [RecursiveMemoryEffects, RecursivelySpeculatable]> {
  let summary = "attention with subgraphs that change scores and probabilities";
  let description = [{
    `score_mod` maps the scaled scores before softmax, `prob_mod` the probabilities after it; either region may be empty.
    Query, key and value have rank 4.
  }];
  let arguments = (ins ONNX_Value:$Q, ONNX_Value:$K, ONNX_Value:$V, OptionalAttr<ONNX_Float>:$scale,
                       OptionalAttr<TypeAttr>:$softmax_precision);
  let regions = (region MaxSizedRegion<1>:$score_mod, MaxSizedRegion<1>:$prob_mod);
  let results = (outs ONNX_Value:$Y);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results) $score_mod `,` $prob_mod";
}

#endif // QUIRE_DIALECTS_ONNX_ONNXCONTROLOPS_TD
