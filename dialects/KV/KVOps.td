// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations on KV state.
#ifndef QUIRE_DIALECTS_KV_OPS
#define QUIRE_DIALECTS_KV_OPS

include "dialects/KV/KVTypes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def KV_Resource : Resource<"::quire::kv::KVResource">;

class KV_Op<string mnemonic, list<Trait> traits = []> : Op<KV_Dialect, mnemonic, traits>;

def KV_PositionsOp : KV_Op<"positions", [Pure]> {
  let summary = "position of every row in its sequence";
  let description = [{
    What the graph computes with. Row r of sequence s has position `past_lens[s] + r - query_starts[s]`, and more by what was dropped of s before.

    ```mlir
    %p = kv.positions %batch : tensor<1x?xi64>
    ```
  }];
  let arguments = (ins KV_BatchType:$batch);
  let results = (outs RankedTensorOf<[I64]>:$positions);
  let assemblyFormat = "$batch attr-dict `:` type($positions)";
  let hasVerifier = 1;
}

def KV_AppendOp : KV_Op<"append", [DeclareOpInterfaceMethods<KVConsumeOpInterface>, TypesMatchWith<"the next state has the type of the state", "state", "next", "$_self">]> {
  let summary = "stores the step's new rows at the end of each sequence";
  let description = [{
    `key` is `[rows, heads, key features]`, `value` `[rows, heads, value features]`. Consumes the state: reads of it come before. Each state is
    appended exactly once in a step, before it is attended.

    ```mlir
    %s1 = kv.append %k, %v to %s0, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.contiguous>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$key, RankedTensorOf<[AnyFloat]>:$value, Arg<KV_StateType, "", [MemRead<KV_Resource>, MemWrite<KV_Resource>]>:$state, KV_BatchType:$batch);
  let results = (outs KV_StateType:$next);
  let assemblyFormat = "$key `,` $value `to` $state `,` $batch attr-dict `:` type($key) `,` type($value) `,` type($state)";
  let hasVerifier = 1;
}

def KV_AttendOp : KV_Op<"attend", [DeclareOpInterfaceMethods<KVReadOpInterface>]> {
  let summary = "attention of the step's rows over the rows stored in a state";
  let description = [{
    For query row r of sequence s at position p and query head h, over the stored positions k of s, with KV head `h / (query heads / heads)`:

        score(k) = scale * dot(query[r, h], K[k])
        score(k) = softcap * tanh(score(k) / softcap)            if softcap
        score(k) = score(k) + alibi[h] * k                       if alibi
        visible(k) = k <= p                                      if causal
                 and p - k < window                              if window (visible keys, the query's own included)
                 and k / chunk == p / chunk                      if chunk
        result[r, h] = sum over visible k of softmax(score)(k) * V[k]

    With `sinks`, `exp(sinks[h])` joins the denominator of the softmax. Softmax and sums are computed in f32; a row that sees nothing is 0.
    The state must already hold the step's rows. A row's result depends on its position and stored rows only: it has the same bits alone or
    in any batch.

    Where tokens of s were dropped, p and k are places. `causal` then sees the same keys as with positions, since the order is the same; `window`, `chunk`
    and `alibi` do not, and such a state allows no dropping (`needsPositionsOfKeys`).

    ```mlir
    %o = kv.attend %q, %s1, %batch {scale = 1.250000e-01 : f64} : tensor<?x4x64xf32>, !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.contiguous> -> tensor<?x4x64xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyFloat]>:$query, Arg<KV_StateType, "", [MemRead<KV_Resource>]>:$state, KV_BatchType:$batch,
                       Optional<RankedTensorOf<[AnyFloat]>>:$sinks,
                       F64Attr:$scale, DefaultValuedAttr<BoolAttr, "true">:$causal, OptionalAttr<F64Attr>:$softcap, OptionalAttr<I64Attr>:$window,
                       OptionalAttr<I64Attr>:$chunk, OptionalAttr<DenseF32ArrayAttr>:$alibi);
  let results = (outs RankedTensorOf<[AnyFloat]>:$result);
  let assemblyFormat = "$query `,` $state `,` $batch (`sinks` `(` $sinks^ `:` type($sinks) `)`)? attr-dict `:` type($query) `,` type($state) `->` type($result)";
  let extraClassDeclaration = [{
    /// Whether a key's position, and not only its order among the stored ones, decides if it is seen or with which score.
    bool needsPositionsOfKeys() { return getWindow() || getChunk() || getAlibi(); }
  }];
  let hasVerifier = 1;
}

def KV_SelectOp : KV_Op<"select", [Pure, AllTypesMatch<["input", "result"]>]> {
  let summary = "keeps the rows whose logits are wanted";
  let description = [{
    The axis of extent `?` counts rows in the operand and the selected rows of the step in the result.

    ```mlir
    %y = kv.select %x, %batch : tensor<1x?x576xf32>
    ```
  }];
  let arguments = (ins RankedTensorOf<[AnyType]>:$input, KV_BatchType:$batch);
  let results = (outs RankedTensorOf<[AnyType]>:$result);
  let assemblyFormat = "$input `,` $batch attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$batch), [{ build($_builder, $_state, input.getType(), input, batch); }]>];
  let extraClassDeclaration = [{
    /// The axis that counts rows.
    int64_t getRowAxis();
  }];
  let hasVerifier = 1;
}

def KV_PrefetchOp : KV_Op<"prefetch", [DeclareOpInterfaceMethods<KVReadOpInterface>]> {
  let summary = "asks that blocks of a state be near when they are attended";
  let description = [{
    A hint: it may be dropped, and never changes a result. `first` and `count` are in blocks of every sequence; a negative count means all that
    are stored. It may come before the append of the step.

    ```mlir
    kv.prefetch %s0, %batch : !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 16>>
    ```
  }];
  let arguments = (ins Arg<KV_StateType, "", [MemRead<KV_Resource>, MemWrite<KV_Resource>]>:$state, KV_BatchType:$batch, DefaultValuedAttr<I64Attr, "0">:$first, DefaultValuedAttr<I64Attr, "-1">:$count);
  let assemblyFormat = "$state `,` $batch attr-dict `:` type($state)";
  let hasVerifier = 1;
}

def KV_ObserveOp : KV_Op<"observe", [DeclareOpInterfaceMethods<KVReadOpInterface>]> {
  let summary = "lets the runtime see which blocks of a state the step attended to";
  let description = [{
    The attend before it, of the same state, leaves for the last new row of every sequence and for every query head how much of its softmax each block
    had. It never changes a result, and costs next to nothing where the runtime does not ask.

    ```mlir
    kv.observe %s1, %batch : !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 16>>
    ```
  }];
  let arguments = (ins Arg<KV_StateType, "", [MemRead<KV_Resource>, MemWrite<KV_Resource>]>:$state, KV_BatchType:$batch);
  let assemblyFormat = "$state `,` $batch attr-dict `:` type($state)";
}

def KV_EntryOp : KV_Op<"entry", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "what a model's step function may be given";
  let description = [{
    Token ids are in `[0, token_limit)`; a sequence has at most `max_positions` tokens, -1 where no limit is known.

    ```mlir
    kv.entry @step {token_limit = 49152 : i64, max_positions = 8192 : i64}
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$function, I64Attr:$token_limit, DefaultValuedAttr<I64Attr, "-1">:$max_positions);
  let assemblyFormat = "$function attr-dict";
}

#endif // QUIRE_DIALECTS_KV_OPS
