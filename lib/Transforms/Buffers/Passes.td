// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Passes from linalg on tensors to loops over buffers in the step's arena.
#ifndef QUIRE_LIB_TRANSFORMS_BUFFERS_PASSES
#define QUIRE_LIB_TRANSFORMS_BUFFERS_PASSES

include "mlir/Pass/PassBase.td"

def FuseElementwise : Pass<"fuse-elementwise", "::mlir::func::FuncOp"> {
  let summary = "element-wise generics with one user are computed by it";
  let description = [{
    Only where nothing is computed twice: the user runs over as many elements as the producer has.
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
}

def ShareWeights : Pass<"share-weights", "::mlir::ModuleOp"> {
  let summary = "a table that is a product's weight too is stored once";
  let description = [{
    The row-major entry of an embedding whose transpose is the weight of a product is dropped when it is only read element by element: row `r` of the
    table is column `r % nr` of panel `r / nr`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect", "::quire::kvrt::KVRTDialect"];
}

def BufferizeStep : Pass<"bufferize-step", "::mlir::ModuleOp"> {
  let summary = "tensors become buffers";
  let description = [{
    Empty tensors that end in a part of another tensor become that part; then one-shot bufferization. Copies, where they remain, are
    `linalg.generic`, never `memref.copy`.
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect", "::mlir::linalg::LinalgDialect", "::mlir::memref::MemRefDialect"];
}

def LowerLinalg : Pass<"lower-linalg", "::mlir::func::FuncOp"> {
  let summary = "linalg on buffers becomes loops over rows, in parallel, with vectors inside";
  let description = [{
    Consecutive operations over the rows of the step become one `kvrt.parallel`, since an operation that works row by row needs of another one
    only its own row. Within a row, the innermost contiguous axis runs in vectors of 16, 8, 4, 2 and 1 elements. A sum over that axis has 16
    partial sums, which are added in order at the end: the result of a row depends on nothing but the row. What is small and has no rows
    runs serially.
  }];
  let options = [
    Option<"grainWork", "grain-work", "int64_t", /*default=*/"16384", "element computations that are worth handing to another thread">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
                           "::quire::kvrt::KVRTDialect"];
}

def PlanScratch : Pass<"plan-scratch", "::mlir::ModuleOp"> {
  let summary = "every buffer of the step gets its place in the arena";
  let description = [{
    A buffer is live from its first to its last use in the step's block. Buffers whose sizes are fixed, or grow with the tokens, or with the selected
    rows lie in three parts of the arena; within a part, buffers that are not live together share bytes. The sizes of the parts are recorded in
    `kvrt.model`. A buffer that leaves as logits becomes the output itself.
  }];
  let dependentDialects = ["::quire::kvrt::KVRTDialect"];
}

def ShareLayers : Pass<"share-layers", "::mlir::ModuleOp"> {
  let summary = "repeated layers of the step become one function";
  let description = [{
    Looks for a sequence of operations with effects that the step repeats, as the layers of a decoder do, or groups of layers that alternate. The
    repetitions become calls of one private function, so that later passes and code generation see the sequence once. What they compute with
    (views, constants) is made again in the function; what differs between them are its arguments: places of weights, numbers of layers,
    constants and buffers. Runs after `plan-scratch` and `assign-weight-offsets`.
  }];
  let options = [
    Option<"leastOperations", "least-operations", "int64_t", /*default=*/"4", "operations with effects that a function is worth making for">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::func::FuncDialect", "::quire::kvrt::KVRTDialect"];
}

def VerifyResource : Pass<"verify-resource", "::mlir::ModuleOp"> {
  let summary = "checks the form of the resource phase";
  let description = [{
    No `onnx` operator is left in a function, and no `kv` operation or type anywhere. The step takes a `!kvrt.batch` alone and returns nothing.
  }];
}

def VerifyBuffer : Pass<"verify-buffer", "::mlir::ModuleOp"> {
  let summary = "checks the form of the buffer phase";
  let description = [{
    No tensors are left in functions, no linalg, no copies, and nothing that allocates.
  }];
}

#endif // QUIRE_LIB_TRANSFORMS_BUFFERS_PASSES
