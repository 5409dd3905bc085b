// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that only say where something lies, and the symbols of weights.bin.
#ifndef QUIRE_KVRT_VIEWS_TD
#define QUIRE_KVRT_VIEWS_TD

include "dialects/KVRT/KVRTTypes.td"
include "dialects/KVRT/KVRTAttrs.td"

// A view of read-only memory: a tensor that no operation may be bufferized into, then a memref.
class KVRT_ReadOnlyViewOp<string mnemonic, list<Trait> traits = []>
    : KVRT_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<BufferizableOpInterface,
        ["bufferizesToAllocation", "isWritable", "getBufferType", "bufferize"]>], traits)> {
  let extraClassDefinition = [{
    bool $cppClass::bufferizesToAllocation(::mlir::Value) { return false; }
    bool $cppClass::isWritable(::mlir::Value, const ::mlir::bufferization::AnalysisState &) { return false; }
    ::mlir::FailureOr<::mlir::bufferization::BufferLikeType> $cppClass::getBufferType(::mlir::Value value,
        const ::mlir::bufferization::BufferizationOptions &, const ::mlir::bufferization::BufferizationState &,
        ::llvm::SmallVector<::mlir::Value> &) {
      return ::llvm::cast<::mlir::bufferization::BufferLikeType>(::mlir::Type(bufferTypeOfView(value.getType())));
    }
    ::llvm::LogicalResult $cppClass::bufferize(::mlir::RewriterBase &rewriter,
        const ::mlir::bufferization::BufferizationOptions &, ::mlir::bufferization::BufferizationState &) {
      return bufferizeView(rewriter, getOperation());
    }
  }];
}

def KVRT_ReadOp : KVRT_ReadOnlyViewOp<"read"> {
  let summary = "an array of the step structure";
  let description = [{
    Its shape is [?] or [1, ?].

    ```mlir
    %ids = kvrt.read %batch[ids] : tensor<1x?xi64>
    ```
  }];
  let arguments = (ins KVRT_BatchType:$batch, EnumProp<KVRT_Field>:$field);
  let results = (outs KVRT_Shaped:$result);
  let assemblyFormat = "$batch `[` $field `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def KVRT_ExtentOp : KVRT_Op<"extent", [Pure]> {
  let summary = "an extent of the step";
  let description = [{
    ```mlir
    %rows = kvrt.extent %batch[tokens]
    ```
  }];
  let arguments = (ins KVRT_BatchType:$batch, EnumProp<KVRT_Extent>:$extent);
  let results = (outs Index:$result);
  let assemblyFormat = "$batch `[` $extent `]` attr-dict";
}

def KVRT_WeightOp : KVRT_ReadOnlyViewOp<"weight", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an entry of weights.bin";
  let description = [{
    ```mlir
    %w = kvrt.weight %batch, @w_packed : tensor<60x960x16xf32>
    ```
  }];
  let arguments = (ins KVRT_BatchType:$batch, FlatSymbolRefAttr:$weight);
  let results = (outs KVRT_Shaped:$result);
  let assemblyFormat = "$batch `,` $weight attr-dict `:` type($result)";
}

def KVRT_WeightAtOp : KVRT_Op<"weight_at", [Pure]> {
  let summary = "an entry of weights.bin, by where it starts";
  let description = [{
    `offset` is in bytes, a multiple of 64. Functions that several layers share take the places of their weights as arguments.

    ```mlir
    %w = kvrt.weight_at %batch[%offset] : memref<60x960x16xf32>
    ```
  }];
  let arguments = (ins KVRT_BatchType:$batch, Index:$offset);
  let results = (outs AnyStaticShapeMemRef:$result);
  let assemblyFormat = "$batch `[` $offset `]` attr-dict `:` type($result)";
}

def KVRT_WriteOp : KVRT_Op<"write", [MemoryEffects<[MemWrite<KVRT_OutputResource>]>,
    DeclareOpInterfaceMethods<BufferizableOpInterface,
      ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>]> {
  let summary = "the logits of the selected rows leave the step";
  let description = [{
    ```mlir
    kvrt.write %y to %batch[logits] : tensor<?x1000xf32>
    ```
  }];
  let arguments = (ins Arg<KVRT_Shaped, "", [MemRead]>:$source, KVRT_BatchType:$batch);
  let assemblyFormat = "$source `to` $batch `[` `logits` `]` attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def KVRT_LogitsOp : KVRT_Op<"logits", [Pure]> {
  let summary = "where the logits of the selected rows are written";
  let description = [{
    ```mlir
    %out = kvrt.logits %batch : memref<?x1000xf32>
    ```
  }];
  let arguments = (ins KVRT_BatchType:$batch);
  let results = (outs MemRefRankOf<[F32], [2]>:$result);
  let assemblyFormat = "$batch attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def KVRT_ScratchOp : KVRT_Op<"scratch", [Pure]> {
  let summary = "a buffer in the step's arena";
  let description = [{
    It starts at `fixed + per_token * tokens + per_selected * selected` bytes; all three are multiples of 64. `sizes` are the
    dynamic extents.

    ```mlir
    %h = kvrt.scratch %batch[%rows] {fixed = 64, per_token = 3840} : memref<?x960xf32>
    ```
  }];
  let arguments = (ins KVRT_BatchType:$batch, Variadic<Index>:$sizes,
                       DefaultValuedAttr<I64Attr, "0">:$fixed, DefaultValuedAttr<I64Attr, "0">:$per_token,
                       DefaultValuedAttr<I64Attr, "0">:$per_selected);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$batch (`[` $sizes^ `]`)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def KVRT_TablesOp : KVRT_Op<"tables", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the block tables of a layer: one row per sequence, `table_stride` entries";
  let description = [{
    The block that holds position p of sequence s is entry [s, p / block]. Layers may have different tables.

    ```mlir
    %t = kvrt.tables %s, %batch : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
    ```
  }];
  let arguments = (ins KVRT_StateType:$state, KVRT_BatchType:$batch);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$state `,` $batch attr-dict `:` type($state)";
}

def KVRT_KeyPageOp : KVRT_Op<"key_page", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the K part of one block";
  let description = [{
    ```mlir
    %k = kvrt.key_page %s[%block] : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
    ```
  }];
  let arguments = (ins KVRT_StateType:$state, Index:$block);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$state `[` $block `]` attr-dict `:` type($state)";
}

def KVRT_ValuePageOp : KVRT_Op<"value_page", [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the V part of one block";
  let description = [{
    ```mlir
    %v = kvrt.value_page %s[%block] : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
    ```
  }];
  let arguments = (ins KVRT_StateType:$state, Index:$block);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$state `[` $block `]` attr-dict `:` type($state)";
}

class KVRT_ScalesOp<string mnemonic> : KVRT_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let arguments = (ins KVRT_StateType:$state, Index:$block);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$state `[` $block `]` attr-dict `:` type($state)";
}

def KVRT_KeyScalesOp : KVRT_ScalesOp<"key_scales"> {
  let summary = "scales and zeros of the K codes of one block: [heads][groups][scale, zero][block]";
  let description = [{
    ```mlir
    %k = kvrt.key_scales %s[%block] : !kvrt.state<heads = 2, key = 64, value = 64, element = i8, block = 16, lanes = 8>
    ```
  }];
}

def KVRT_ValueScalesOp : KVRT_ScalesOp<"value_scales"> {
  let summary = "scales and zeros of the V codes of one block: [heads][groups][scale, zero][block]";
  let description = [{
    ```mlir
    %v = kvrt.value_scales %s[%block] : !kvrt.state<heads = 2, key = 64, value = 64, element = i8, block = 16, lanes = 8>
    ```
  }];
}

def KVRT_IsObservedOp : KVRT_Op<"is_observed", [Pure]> {
  let summary = "whether the runtime wants to know what of a layer is attended to";
  let description = [{
    ```mlir
    %wanted = kvrt.is_observed %s : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
    ```
  }];
  let arguments = (ins KVRT_StateType:$state);
  let results = (outs I1:$result);
  let assemblyFormat = "$state attr-dict `:` type($state)";
}

def KVRT_ObservedOp : KVRT_Op<"observed", [Pure]> {
  let summary = "where the attention of a layer to its blocks goes: [sequences][query heads][table_stride][weight, maximum]";
  let description = [{
    Of a block: the sum of exp(score - maximum) over its visible keys, and a maximum that no score of it is above. Exists where `kvrt.is_observed` holds.

    ```mlir
    %o = kvrt.observed %s, %batch : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8> -> memref<?x8x?x2xf32>
    ```
  }];
  let arguments = (ins KVRT_StateType:$state, KVRT_BatchType:$batch);
  let results = (outs MemRefRankOf<[F32], [4]>:$result);
  let assemblyFormat = "$state `,` $batch attr-dict `:` type($state) `->` type($result)";
}

class KVRT_WeightSymbolOp<string mnemonic, list<Trait> traits = []> : KVRT_Op<mnemonic, !listconcat([Symbol], traits)>;

def KVRT_PackedOp : KVRT_WeightSymbolOp<"packed", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an entry of weights.bin: a product's weight in panels";
  let description = [{
    The artefact's writer makes it from the initializer `source`: a matrix [k, n], or [n, k] when `transposed`; elements are
    converted to the entry's type. `offset` is in bytes and set by `assign-weight-offsets`.

    ```mlir
    kvrt.packed @w_packed {source = @w, layout = #kvrt.panels<nr = 16>, k = 64, n = 100} : tensor<7x64x16xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$source, KVRT_PanelsAttr:$layout, UnitAttr:$transposed,
                       ConfinedAttr<I64Attr, [IntPositive]>:$k, ConfinedAttr<I64Attr, [IntPositive]>:$n,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$offset, TypeAttrOf<AnyRankedTensor>:$type);
  let assemblyFormat = "$sym_name attr-dict `:` $type";
  let hasVerifier = 1;
}

def KVRT_RawOp : KVRT_WeightSymbolOp<"raw", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an entry of weights.bin: an initializer, row-major";
  let description = [{
    The number of elements is the source's; its element type may differ between floating-point types.

    ```mlir
    kvrt.raw @e_raw {source = @e} : tensor<1000x64xf32>
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, FlatSymbolRefAttr:$source,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$offset, TypeAttrOf<AnyRankedTensor>:$type);
  let assemblyFormat = "$sym_name attr-dict `:` $type";
  let hasVerifier = 1;
}

def KVRT_ModelOp : KVRT_Op<"model", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "what the model says of itself: `quire_model_info`";
  let description = [{
    One per module. `layers` holds the state type of each layer, in the order of `kvrt.acquire`'s numbers; `query_heads`, `windows` and `place_is_position`, as long as
    that or empty, the query heads that attend to it (0: not observed), how many keys they see, their own included (0: all), and whether places of its keys must be
    their positions (0: no). Scratch of a step is
    `scratch_fixed + scratch_per_token * tokens + scratch_per_selected * selected` bytes.

    ```mlir
    kvrt.model @step {vocabulary = 1000, token_limit = 1000, max_positions = -1, block_tokens = 16,
      layers = [!kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>]}
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$step, ConfinedAttr<I64Attr, [IntPositive]>:$vocabulary,
                       ConfinedAttr<I64Attr, [IntPositive]>:$token_limit, I64Attr:$max_positions,
                       ConfinedAttr<I64Attr, [IntPositive]>:$block_tokens, TypeArrayAttr:$layers,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$query_heads, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$windows,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$place_is_position,
                       DefaultValuedAttr<I64Attr, "0">:$weights_bytes, DefaultValuedAttr<I64Attr, "0">:$scratch_fixed,
                       DefaultValuedAttr<I64Attr, "0">:$scratch_per_token,
                       DefaultValuedAttr<I64Attr, "0">:$scratch_per_selected);
  let assemblyFormat = "$step attr-dict";
  let hasVerifier = 1;
}

#endif // QUIRE_KVRT_VIEWS_TD
