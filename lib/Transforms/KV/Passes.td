// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes inside the `kv` level.
#ifndef QUIRE_LIB_TRANSFORMS_KV_PASSES
#define QUIRE_LIB_TRANSFORMS_KV_PASSES

include "mlir/Pass/PassBase.td"

def KVVerifyLinearPass : Pass<"kv-verify-linear"> {
  let summary = "checks that every KV state is used linearly";
  let description = [{
    A `!kv.state` value may have one consumer (an op with `KVConsumeOpInterface`, or a return); its readers all come before the consumer, in the
    same block or inside regions of ops before it. A read after an append would see rows that were not there, once states are memory.

    Each state that enters a function is appended exactly once before it is attended.
  }];
}

def PaginatePass : Pass<"paginate", "::mlir::ModuleOp"> {
  let summary = "gives contiguous KV states the paged layout";
  let description = [{
    Every `#kv.contiguous` state becomes `#kv.paged<block = block-tokens>`, and rows whose logits nobody wants are dropped as early as row-wise ops allow: `kv.select`
    moves up through them. Values do not change; the runtime finds rows through block tables from here on.
  }];
  let options = [Option<"blockTokens", "block-tokens", "int64_t", "16", "tokens of a block, a power of two">,
                 Option<"kvType", "kv-type", "std::string", "\"model\"", "how K and V are stored: model (as in the graph), f16, bf16, int8, int4, fp8_e4m3 or fp8_e5m2">];
  let dependentDialects = ["::quire::kv::KVDialect"];
}

def InsertPrefetchPass : Pass<"insert-prefetch", "::mlir::func::FuncOp"> {
  let summary = "requests the blocks of a layer before the layer before it ends";
  let description = [{
    Before each `kv.attend` of a state, a `kv.prefetch` of the state that is attended `distance` states later is inserted, so that a slow tier or a cache has the time of
    `distance` layers to bring the blocks. The first states of a step are requested at its start.
  }];
  let options = [Option<"distance", "distance", "int64_t", "1", "layers ahead; 0 inserts nothing">];
  let dependentDialects = ["::quire::kv::KVDialect"];
}

def InsertObservePass : Pass<"insert-observe", "::mlir::func::FuncOp"> {
  let summary = "lets the runtime see which blocks are attended to";
  let description = [{
    Inserts one `kv.observe` of each state, after the last `kv.attend` of it. Nothing is computed where the runtime does not ask.
  }];
  let dependentDialects = ["::quire::kv::KVDialect"];
}

def VerifyPagedPass : Pass<"verify-paged", "::mlir::ModuleOp"> {
  let summary = "checks the paged form";
  let description = [{
    After `paginate`: states are paged, tensors are ranked with at most one unknown extent, nothing but `kv.positions` knows of positions, and no `onnx` op outside of the
    row-wise set is left. See the rationale page of the ragged form.
  }];
}

#endif // QUIRE_LIB_TRANSFORMS_KV_PASSES
