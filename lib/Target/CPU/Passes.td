// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes of the CPU target, from memrefs and kernels of `kvrt` to functions that run pieces of parallel loops.
#ifndef QUIRE_LIB_TARGET_CPU_PASSES_TD
#define QUIRE_LIB_TARGET_CPU_PASSES_TD

include "mlir/Pass/PassBase.td"

class QuireCpuVectorOption<string text> : Option<"vectorBytes", "vector-bytes", "int64_t", "32", text>;

def AssignWeightOffsets : Pass<"assign-weight-offsets", "::mlir::ModuleOp"> {
  let summary = "gives every entry of weights.bin its offset";
  let description = [{
    Entries follow each other in the order of the module, each on a 64-byte boundary. `kvrt.model` gets the size of the file.
  }];
}

def LowerProducts : Pass<"lower-products", "::mlir::ModuleOp"> {
  let summary = "products become parallel loops over panels around one kernel per form of panels";
  let description = [{
    A kernel handles up to 6 rows at a time (8 with 64-byte vectors) against one panel; every output element is one chain of fused
    multiply-adds in ascending k, so that a row has the same bits for every number of rows. Products of one form (element types, width of panels, columns of
    the last one, a bias or none) share a kernel whatever their sizes. Products of one input with only views between them share a loop.
  }];
  let options = [QuireCpuVectorOption<"bytes of a native vector">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerAppend : Pass<"lower-append", "::mlir::ModuleOp"> {
  let summary = "appends become parallel loops that write rows into pages";
  let options = [QuireCpuVectorOption<"bytes of a native vector">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def LowerAttend : Pass<"lower-attend", "::mlir::ModuleOp"> {
  let summary = "attention becomes parallel loops over rows, KV heads and parts of the keys, around a few pages at a time";
  let description = [{
    The result of a row depends on what it sees only. Its keys are cut into parts of at least `part-tokens`, counted from the start of its sequence;
    within a part, tiles of pages come in ascending order, `tile-tokens` long, or one page if that is longer, and counted from the start as well.
    Pages of a tile share one step of the softmax. A tile of which the row sees nothing leaves its carried maximum, sum and accumulator as they are.
    Then parts are merged in ascending order. When a step has few rows and KV heads, each part is a task, and a second loop merges
    what the tasks kept in the `parts` of `kvrt.attend`; otherwise a task has all parts of its rows. `prefetch-tokens` is how far ahead the pages
    are prefetched into the second-level cache; 0: not at all.

    With vectors of 64 bytes and elements of 16 bits or more, a task that has one row has as many KV heads as have 16 KiB of values in a block, or
    fewer where that left threads without work. It reads the values of a page head by head, and prefetches them four times, from the whole distance
    to a quarter of it, but at least one to four pages ahead; pages longer than the distance twice, two ahead and one. Where each query head has a
    KV head of its own, and the share of a thread is several heads with 128 KiB of values in a block, a task has them all and prefetches no values.
    A row's bits do not depend on any of this.
  }];
  let options = [QuireCpuVectorOption<"bytes of a native vector">,
                 Option<"prefetchTokens", "prefetch-tokens", "int64_t", "64", "tokens between a page and its prefetch">,
                 Option<"partTokens", "part-tokens", "int64_t", "::quire::cpu::attendPartTokens", "tokens of the smallest parts">,
                 Option<"tileTokens", "tile-tokens", "int64_t", "128", "tokens of pages that share a step of the softmax, at most, unless one has more">,
                 Option<"convertsHalf", "converts-half", "bool", "true", "whether the processor converts f16, by which elements of 8 bits become numbers">,
                 Option<"breakWith", "break", "std::string", "", "for tests of certificates, an error in the code: causal, window, scale, heads, block or parts">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def ReserveParts : Pass<"reserve-parts", "::mlir::ModuleOp"> {
  let summary = "gives attention room for results over parts of the keys";
  let description = [{
    Every `kvrt.attend` whose rows may see more than one part gets a buffer as its `parts`, for up to 512 results: so many that a row has
    one for each part, and fewer where positions or windows are limited. Runs before `plan-scratch`, so that the
    buffer lies in the scratch.
  }];
  let options = [Option<"partTokens", "part-tokens", "int64_t", "::quire::cpu::attendPartTokens", "tokens of the smallest parts; as for lower-attend">];
  let dependentDialects = ["::mlir::memref::MemRefDialect"];
}

def LowerWrite : Pass<"lower-write", "::mlir::ModuleOp"> {
  let summary = "logits are computed where they leave, or copied there";
  let description = [{
    A source that is a buffer of its own (`memref.alloc`, `kvrt.scratch`) is replaced by the output itself.
  }];
  let options = [QuireCpuVectorOption<"bytes of a native vector">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
                           "::mlir::vector::VectorDialect"];
}

def OutlineParallel : Pass<"outline-parallel", "::mlir::ModuleOp"> {
  let summary = "the region of kvrt.parallel becomes a function";
  let description = [{
    Constants move into the function, other captures become arguments. Equal functions are shared.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

def ExpandMath : Pass<"expand-math", "::mlir::ModuleOp"> {
  let summary = "exp and tanh become polynomials, conversions of bf16 become integer operations, copies become loops";
  let description = [{
    What remains in `math` calls libm. Copies are loops because the model's object has no `memrefCopy` to call.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
                           "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

#endif // QUIRE_LIB_TARGET_CPU_PASSES_TD
