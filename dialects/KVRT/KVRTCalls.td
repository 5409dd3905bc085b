// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations that are calls of the runtime, each one entry of `quire_runtime_table`.
#ifndef QUIRE_KVRT_CALLS_TD
#define QUIRE_KVRT_CALLS_TD

include "dialects/KVRT/KVRTTypes.td"
include "dialects/KVRT/KVRTAttrs.td"
include "dialects/KVRT/KVRTInterfaces.td"

class KVRT_CallOp<string mnemonic, string entry, list<Trait> traits = []>
    : KVRT_Op<mnemonic, !listconcat([DeclareOpInterfaceMethods<KVRT_RuntimeCallOpInterface>], traits)> {
  let extraClassDefinition = "::quire::kvrt::RuntimeEntry $cppClass::getRuntimeEntry() { return RuntimeEntry::" # entry # "; }";
}

def KVRT_AcquireOp : KVRT_CallOp<"acquire", "acquire", [MemoryEffects<[MemRead<KVRT_KVResource>, MemWrite<KVRT_KVResource>]>]> {
  let summary = "makes the pages of a layer resident and says where they are";
  let description = [{
    Layers are numbered as in `kvrt.model`; `base`, where it is given, is added to the number.

    ```mlir
    %s = kvrt.acquire %batch, 0 : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
    %t = kvrt.acquire %batch, %base + 0 : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
    ```
  }];
  let arguments = (ins KVRT_BatchType:$batch, ConfinedAttr<I64Attr, [IntNonNegative]>:$layer, Optional<Index>:$base);
  let results = (outs KVRT_StateType:$state);
  let assemblyFormat = "$batch `,` ($base^ `+`)? $layer attr-dict `:` type($state)";
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$batch, "::mlir::IntegerAttr":$layer), [{
    build($_builder, $_state, type, batch, layer, ::mlir::Value());
  }]>];
}

def KVRT_ReleaseOp : KVRT_CallOp<"release", "release", [MemoryEffects<[MemRead<KVRT_KVResource>, MemWrite<KVRT_KVResource>]>]> {
  let summary = "the step is done with the pages of a layer";
  let description = [{
    ```mlir
    kvrt.release %s, %batch : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
    ```
  }];
  let arguments = (ins KVRT_StateType:$state, KVRT_BatchType:$batch);
  let assemblyFormat = "$state `,` $batch attr-dict `:` type($state)";
}

def KVRT_PrefetchOp : KVRT_CallOp<"prefetch", "prefetch", [MemoryEffects<[MemRead<KVRT_KVResource>, MemWrite<KVRT_KVResource>]>]> {
  let summary = "asks that pages of a layer be resident soon";
  let description = [{
    `count` blocks of every sequence from block `first` on; `count` < 0: all of them. `base`, where it is given, is added to the layer's
    number.

    ```mlir
    kvrt.prefetch %batch {layer = 1, first = 0, count = -1}
    kvrt.prefetch %batch, %base {layer = 0, first = 0, count = -1}
    ```
  }];
  let arguments = (ins KVRT_BatchType:$batch, ConfinedAttr<I64Attr, [IntNonNegative]>:$layer,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$first,
                       DefaultValuedAttr<I64Attr, "-1">:$count, Optional<Index>:$base);
  let assemblyFormat = "$batch (`,` $base^)? attr-dict";
  let builders = [OpBuilder<(ins "::mlir::Value":$batch, "::mlir::IntegerAttr":$layer, "::mlir::IntegerAttr":$first, "::mlir::IntegerAttr":$count), [{
    build($_builder, $_state, batch, layer, first, count, ::mlir::Value());
  }]>];
}

def KVRT_ParallelOp : KVRT_Op<"parallel", [RecursiveMemoryEffects, AutomaticAllocationScope,
    SingleBlockImplicitTerminator<"::quire::kvrt::YieldOp">]> {
  let summary = "runs its region over pieces [begin, end) of [0, count), in any order, on any threads";
  let description = [{
    The pieces cover [0, count) and have at least `grain` iterations, but for the last. The region loops over its piece itself, so
    that it may keep what several iterations share. It captures memrefs, handles and scalars, not tensors; `outline-parallel`
    makes it a function and a `kvrt.parallel_call`. It does not nest.

    ```mlir
    kvrt.parallel (%begin, %end) = %rows on %batch grain 16 {
      scf.for %i = %begin to %end step %c1 {
        memref.store %zero, %m[%i] : memref<?xf32>
      }
    }
    ```
  }];
  let arguments = (ins Index:$count, KVRT_BatchType:$batch, ConfinedAttr<I64Attr, [IntPositive]>:$grain);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$count, "::mlir::Value":$batch, "int64_t":$grain,
      CArg<"::llvm::function_ref<void(::mlir::OpBuilder &, ::mlir::Location, ::mlir::Value, ::mlir::Value)>",
           "nullptr">:$body)>];
  let extraClassDeclaration = [{
    ::mlir::Value getBegin() { return getBody().getArgument(0); }
    ::mlir::Value getEnd() { return getBody().getArgument(1); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

def KVRT_YieldOp : KVRT_Op<"yield", [Pure, Terminator, HasParent<"ParallelOp">]> {
  let summary = "ends the region of kvrt.parallel";
  let assemblyFormat = "attr-dict";
}

def KVRT_ParallelCallOp : KVRT_CallOp<"parallel_call", "parallel",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>, MemoryEffects<[MemRead, MemWrite, MemRead<KVRT_KVResource>, MemWrite<KVRT_KVResource>]>]> {
  let summary = "hands an outlined piece function and its captures to the runtime's `parallel`";
  let description = [{
    The callee takes (begin, end, captures...).

    ```mlir
    kvrt.parallel_call @piece(%rows) on %batch grain 16 captures(%m : memref<?xf32>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Index:$count, KVRT_BatchType:$batch,
                       ConfinedAttr<I64Attr, [IntPositive]>:$grain, Variadic<AnyType>:$captures);
  let assemblyFormat = [{
    $callee `(` $count `)` `on` $batch `grain` $grain (`captures` `(` $captures^ `:` type($captures) `)`)? attr-dict
  }];
}

#endif // QUIRE_KVRT_CALLS_TD
