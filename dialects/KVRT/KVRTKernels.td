// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels: whole operations over pages and packed weights, on tensors and then on memrefs.
#ifndef QUIRE_KVRT_KERNELS_TD
#define QUIRE_KVRT_KERNELS_TD

include "dialects/KVRT/KVRTTypes.td"
include "dialects/KVRT/KVRTAttrs.td"

// A kernel that writes its last operand, the output.
class KVRT_DestinationOp<string mnemonic, list<Trait> traits = []>
    : KVRT_Op<mnemonic, !listconcat([DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<BufferizableOpInterface,
          ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>], traits)> {
  let extraClassDeclaration = "::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputMutable(); }";
  let extraClassDefinition = [{
    bool $cppClass::bufferizesToMemoryRead(::mlir::OpOperand &operand, const ::mlir::bufferization::AnalysisState &) {
      return !isDpsInit(&operand);
    }
    bool $cppClass::bufferizesToMemoryWrite(::mlir::OpOperand &operand, const ::mlir::bufferization::AnalysisState &) {
      return isDpsInit(&operand);
    }
    ::mlir::bufferization::AliasingValueList $cppClass::getAliasingValues(::mlir::OpOperand &operand,
        const ::mlir::bufferization::AnalysisState &) {
      if (!isDpsInit(&operand))
        return {};
      return {{getTiedOpResult(&operand), ::mlir::bufferization::BufferRelation::Equivalent}};
    }
    ::llvm::LogicalResult $cppClass::bufferize(::mlir::RewriterBase &rewriter,
        const ::mlir::bufferization::BufferizationOptions &options, ::mlir::bufferization::BufferizationState &state) {
      return bufferizeKernel(rewriter, getOperation(), options, state);
    }
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::SideEffects::EffectInstance<::mlir::MemoryEffects::Effect>> &effects) {
      kernelEffects(getOperation(), effects);
    }
  }];
  let hasVerifier = 1;
}

def KVRT_AppendOp : KVRT_Op<"append", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<BufferizableOpInterface,
      ["bufferizesToMemoryRead", "bufferizesToMemoryWrite", "getAliasingValues", "bufferize"]>]> {
  let summary = "writes the step's new K and V rows into the pages of a layer";
  let description = [{
    Row r goes to place `places[r]` of its sequence. Elements are converted to the state's element type. It comes before
    every attend of the same state.

    ```mlir
    kvrt.append %k, %v into %s, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
    ```
  }];
  let arguments = (ins KVRT_Shaped:$key, KVRT_Shaped:$value, KVRT_StateType:$state, KVRT_BatchType:$batch);
  let assemblyFormat = [{
    $key `,` $value `into` $state `,` $batch attr-dict `:` type($key) `,` type($value) `,` type($state)
  }];
  let hasVerifier = 1;
}

def KVRT_AttendOp : KVRT_DestinationOp<"attend", [AttrSizedOperandSegments]> {
  let summary = "attention of the step's rows over the pages of a layer";
  let description = [{
    Row r of sequence s at place p sees the keys k < past_lens[s] + rows of s for which all of these hold: `causal` implies k <= p;
    `window` > 0 implies p - k < window; `chunk` > 0 implies p / chunk = k / chunk. With `window`, `chunk` or `alibi_slopes` places must be positions,
    which the model says of the layer; the rest asks for their order only. The score of a visible key is
    `cap(scale * q . k) + slope[h] * k`, cap(x) = softcap * tanh(x / softcap) when `softcap` > 0. `sinks[h]` is the score of one more
    key without a value. Softmax and sums are in f32; a row that sees nothing gives 0. Query head h uses KV head h / (Hq / Hkv).

    `parts`, on memrefs, is room for results over parts of the keys, from which a target may make more tasks: each place
    holds the Hq / Hkv query heads of one row, KV head and part, with accumulator, maximum and sum of each. Its contents before and
    after do not matter.

    With `observe`, the last row of each sequence leaves what `kvrt.observed` describes, where the runtime asks for it. It may then be the only
    attend of the state.

    ```mlir
    %r = kvrt.attend ins(%q, %s, %batch : tensor<?x8x64xf32>, !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>)
           outs(%o : tensor<?x8x64xf32>) {scale = 0.125 : f32, window = 512} -> tensor<?x8x64xf32>
    ```
  }];
  let arguments = (ins KVRT_Shaped:$query, KVRT_StateType:$state, KVRT_BatchType:$batch, Optional<KVRT_Shaped>:$sinks,
                       Optional<MemRefRankOf<[F32], [3]>>:$parts, KVRT_Shaped:$output, F32Attr:$scale, DefaultValuedAttr<F32Attr, "0.0f">:$softcap,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$window,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$chunk,
                       DefaultValuedAttr<BoolAttr, "true">:$causal,
                       OptionalAttr<DenseF32ArrayAttr>:$alibi_slopes, UnitAttr:$observe);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $query `,` $state `,` $batch (`,` `sinks` $sinks^)? `:` type($query) `,` type($state) (`,` type($sinks)^)? `)`
    (`parts` `(` $parts^ `:` type($parts) `)`)? `outs` `(` $output `:` type($output) `)` attr-dict (`->` type($result)^)?
  }];
}

def KVRT_ProductOp : KVRT_DestinationOp<"product"> {
  let summary = "rows times a packed weight";
  let description = [{
    `output[m, n] = sum over k of input[m, k] * weight[k, n] (+ bias[n])`, one chain of fused multiply-adds in ascending k in f32, so that a
    row has the same bits whatever the other rows are. The weight is [ceil(N / nr)][K][nr]; the output has N columns.

    ```mlir
    %r = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, tensor<7x64x16xf32>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
    ```
  }];
  let arguments = (ins KVRT_Shaped:$input, KVRT_Shaped:$weight, KVRT_BatchType:$batch, Optional<KVRT_Shaped>:$bias,
                       KVRT_Shaped:$output);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    `ins` `(` $input `,` $weight `,` $batch (`,` `bias` $bias^)? `:` type($input) `,` type($weight) (`,` type($bias)^)? `)`
    `outs` `(` $output `:` type($output) `)` attr-dict (`->` type($result)^)?
  }];
}

#endif // QUIRE_KVRT_KERNELS_TD
