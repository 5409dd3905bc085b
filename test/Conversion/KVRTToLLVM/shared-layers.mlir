// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --convert-kvrt-to-llvm | FileCheck %s

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = bf16, block = 16, lanes = 8>
// Numbers of layers and places of weights that are arguments, as in a function that layers share.
// CHECK-LABEL: llvm.func internal @shared(
// CHECK-SAME: %[[STEP:.*]]: !llvm.ptr, %[[BASE:.*]]: i64, %[[PLACE:.*]]: i64)
func.func private @shared(%batch: !kvrt.batch, %base: index, %place: index) {
  // CHECK: %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
  // CHECK: %[[NEXT:.*]] = llvm.add %[[BASE]], %[[TWO]]
  // CHECK: llvm.call %{{.*}}(%{{.*}}, %[[NEXT]], %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, i64, i64) -> ()
  kvrt.prefetch %batch, %base {layer = 2}
  // CHECK: %[[WEIGHTS:.*]] = llvm.load
  // CHECK: %[[W:.*]] = llvm.getelementptr %[[WEIGHTS]][%[[PLACE]]] : (!llvm.ptr, i64) -> !llvm.ptr, i8
  %w = kvrt.weight_at %batch[%place] : memref<100xf32>
  // CHECK: %[[THREE:.*]] = llvm.mlir.constant(3 : i64)
  // CHECK: %[[LAYER:.*]] = llvm.add %[[BASE]], %[[THREE]]
  // CHECK: llvm.call %{{.*}}(%{{.*}}, %[[LAYER]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> ()
  %s = kvrt.acquire %batch, %base + 3 : !state
  kvrt.release %s, %batch : !state
  %c0 = arith.constant 0 : index
  %v = memref.load %w[%c0] : memref<100xf32>
  %m = kvrt.scratch %batch : memref<1xf32>
  memref.store %v, %m[%c0] : memref<1xf32>
  return
}
