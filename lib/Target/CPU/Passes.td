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
  let summary = "products become parallel loops over panels around one kernel per shape";
  let description = [{
    A kernel handles up to 6 rows at a time (8 with 64-byte vectors) against one panel; every output element is one chain of fused
    multiply-adds in ascending k, so that a row has the same bits for every number of rows. Products of one input with only views between
    them share a loop.
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
  let summary = "attention becomes parallel loops over rows and KV heads, around one page at a time";
  let description = [{
    The result of a row depends on its sequence's length only: pages come in ascending order, and a page that a row does not see
    leaves its carried maximum, sum and accumulator as they are. `prefetch-tokens` is how far ahead the pages are prefetched
    into the second-level cache; 0: not at all.
  }];
  let options = [QuireCpuVectorOption<"bytes of a native vector">,
                 Option<"prefetchTokens", "prefetch-tokens", "int64_t", "64", "tokens between a page and its prefetch">,
                 Option<"breakWith", "break", "std::string", "", "for tests of certificates, an error in the code: causal, window, scale, heads or block">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
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
