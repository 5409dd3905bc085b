// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Repetitions of a step become calls of one function; what differs between them are its arguments.
// RUN: quire-opt %s --split-input-file --share-layers=least-operations=3 --canonicalize | FileCheck %s

!s = !kvrt.state<heads = 1, key = 4, value = 4, element = f32, block = 16, lanes = 4>
onnx.initializer @i {file = "w.bin", offset = 0, bytes = 4096} : tensor<32x32xf32>
kvrt.packed @w0 {source = @i, layout = #kvrt.panels<nr = 32>, k = 32, n = 32, offset = 0} : tensor<1x32x32xf32>
kvrt.packed @w1 {source = @i, layout = #kvrt.panels<nr = 32>, k = 32, n = 32, offset = 4096} : tensor<1x32x32xf32>
kvrt.packed @w2 {source = @i, layout = #kvrt.panels<nr = 32>, k = 32, n = 32, offset = 8192} : tensor<1x32x32xf32>
kvrt.model @step {vocabulary = 32, token_limit = 10, max_positions = -1, block_tokens = 16, layers = [!s, !s, !s]}

// Buffers, number of the layer and place of the weight differ; the table, the rows and the constant do not.
// CHECK-LABEL: func.func @step(
// CHECK-DAG: %[[A:.*]] = kvrt.scratch %arg0[%{{.*}}] : memref<?x32xf32>
// CHECK-DAG: %[[B:.*]] = kvrt.scratch %arg0[%{{.*}}] {per_token = 128 : i64} : memref<?x32xf32>
// CHECK-NOT: kvrt.product
// CHECK: call @layers(%arg0, %c0{{[_0-9]*}}, %[[A]], %c0{{[_0-9]*}}, %[[B]])
// CHECK-NEXT: call @layers(%arg0, %c1{{[_0-9]*}}, %[[B]], %c4096{{[_0-9]*}}, %[[A]])
// CHECK-NEXT: call @layers(%arg0, %c2{{[_0-9]*}}, %[[A]], %c8192{{[_0-9]*}}, %[[B]])
// CHECK-NOT: kvrt.product
// CHECK: kvrt.write

// CHECK: func.func private @layers(%[[BATCH:.*]]: !kvrt.batch, %[[LAYER:.*]]: index, %[[X:.*]]: memref<?x32xf32>, %[[PLACE:.*]]: index, %[[Y:.*]]: memref<?x32xf32>)
// CHECK: %[[S:.*]] = kvrt.acquire %[[BATCH]], %[[LAYER]] + 0
// CHECK: %[[W:.*]] = kvrt.weight_at %[[BATCH]][%[[PLACE]]] : memref<1x32x32xf32>
// CHECK: kvrt.product ins(%[[X]], %[[W]], %[[BATCH]] : {{.*}}) outs(%[[Y]] :
// CHECK: %[[ROWS:.*]] = kvrt.extent %[[BATCH]][tokens]
// CHECK: kvrt.parallel (%{{.*}}, %{{.*}}) = %[[ROWS]] on %[[BATCH]]
// CHECK: memref.store %{{.*}}, %[[Y]][
// CHECK: kvrt.release %[[S]], %[[BATCH]]
// CHECK: return
func.func @step(%batch: !kvrt.batch) {
  %rows = kvrt.extent %batch[tokens]
  %a = kvrt.scratch %batch[%rows] : memref<?x32xf32>
  %b = kvrt.scratch %batch[%rows] {per_token = 128} : memref<?x32xf32>
  %c1 = arith.constant 1 : index
  %s0 = kvrt.acquire %batch, 0 : !s
  %w0 = kvrt.weight %batch, @w0 : memref<1x32x32xf32>
  kvrt.product ins(%a, %w0, %batch : memref<?x32xf32>, memref<1x32x32xf32>) outs(%b : memref<?x32xf32>)
  kvrt.parallel (%begin, %end) = %rows on %batch grain 16 {
    scf.for %i = %begin to %end step %c1 {
      %v = memref.load %b[%i, %c1] : memref<?x32xf32>
      %n = arith.negf %v : f32
      memref.store %n, %b[%i, %c1] : memref<?x32xf32>
    }
  }
  kvrt.release %s0, %batch : !s
  %s1 = kvrt.acquire %batch, 1 : !s
  %w1 = kvrt.weight %batch, @w1 : memref<1x32x32xf32>
  kvrt.product ins(%b, %w1, %batch : memref<?x32xf32>, memref<1x32x32xf32>) outs(%a : memref<?x32xf32>)
  kvrt.parallel (%begin, %end) = %rows on %batch grain 16 {
    scf.for %i = %begin to %end step %c1 {
      %v = memref.load %a[%i, %c1] : memref<?x32xf32>
      %n = arith.negf %v : f32
      memref.store %n, %a[%i, %c1] : memref<?x32xf32>
    }
  }
  kvrt.release %s1, %batch : !s
  %s2 = kvrt.acquire %batch, 2 : !s
  %w2 = kvrt.weight %batch, @w2 : memref<1x32x32xf32>
  kvrt.product ins(%a, %w2, %batch : memref<?x32xf32>, memref<1x32x32xf32>) outs(%b : memref<?x32xf32>)
  kvrt.parallel (%begin, %end) = %rows on %batch grain 16 {
    scf.for %i = %begin to %end step %c1 {
      %v = memref.load %b[%i, %c1] : memref<?x32xf32>
      %n = arith.negf %v : f32
      memref.store %n, %b[%i, %c1] : memref<?x32xf32>
    }
  }
  kvrt.release %s2, %batch : !s
  kvrt.write %b to %batch[logits] : memref<?x32xf32>
  return
}

// -----

// A state that is taken in one repetition and given back in the next cannot cross: the layers begin where it does not.
!s = !kvrt.state<heads = 1, key = 4, value = 4, element = f32, block = 16, lanes = 4>
kvrt.model @step {vocabulary = 32, token_limit = 10, max_positions = -1, block_tokens = 16, layers = [!s, !s, !s, !s]}
// CHECK-LABEL: func.func @step(
// CHECK: kvrt.acquire
// CHECK-NEXT: kvrt.release
// CHECK-NEXT: call @layers(%arg0, %c2{{[_0-9]*}}, %c1{{[_0-9]*}})
// CHECK-NEXT: call @layers(%arg0, %c3{{[_0-9]*}}, %c2{{[_0-9]*}})
// CHECK-NEXT: kvrt.prefetch
// CHECK-NEXT: kvrt.acquire
// CHECK-NEXT: kvrt.release
// CHECK: func.func private @layers(%[[BATCH:.*]]: !kvrt.batch, %[[NEXT:.*]]: index, %[[LAYER:.*]]: index)
// CHECK-NEXT: kvrt.prefetch %[[BATCH]], %[[NEXT]] {layer = 0 : i64}
// CHECK-NEXT: %[[S:.*]] = kvrt.acquire %[[BATCH]], %[[LAYER]] + 0
// CHECK-NEXT: kvrt.release %[[S]]
// CHECK-NEXT: return
func.func @step(%batch: !kvrt.batch) {
  %c0 = arith.constant 0 : index
  %s0 = kvrt.acquire %batch, %c0 + 0 : !s
  kvrt.release %s0, %batch : !s
  kvrt.prefetch %batch {layer = 2}
  %s1 = kvrt.acquire %batch, 1 : !s
  kvrt.release %s1, %batch : !s
  kvrt.prefetch %batch {layer = 3}
  %s2 = kvrt.acquire %batch, 2 : !s
  kvrt.release %s2, %batch : !s
  kvrt.prefetch %batch {layer = 4}
  %s3 = kvrt.acquire %batch, 3 : !s
  kvrt.release %s3, %batch : !s
  return
}

// -----

// An operation that takes one buffer twice is not one that takes two: nothing is shared.
!s = !kvrt.state<heads = 1, key = 4, value = 4, element = f32, block = 16, lanes = 4>
kvrt.model @step {vocabulary = 32, token_limit = 10, max_positions = -1, block_tokens = 16, layers = [!s, !s]}
// CHECK-LABEL: func.func @step(
// CHECK-COUNT-2: kvrt.append
// CHECK-NOT: @layers
func.func @step(%batch: !kvrt.batch) {
  %rows = kvrt.extent %batch[tokens]
  %a = kvrt.scratch %batch[%rows] : memref<?x1x4xf32>
  %b = kvrt.scratch %batch[%rows] {per_token = 64} : memref<?x1x4xf32>
  %s0 = kvrt.acquire %batch, 0 : !s
  kvrt.append %a, %a into %s0, %batch : memref<?x1x4xf32>, memref<?x1x4xf32>, !s
  kvrt.release %s0, %batch : !s
  %s1 = kvrt.acquire %batch, 1 : !s
  kvrt.append %a, %b into %s1, %batch : memref<?x1x4xf32>, memref<?x1x4xf32>, !s
  kvrt.release %s1, %batch : !s
  return
}

// -----

// What is computed from a load goes with the repetition that uses it.
kvrt.model @step {vocabulary = 32, token_limit = 10, max_positions = -1, block_tokens = 16, layers = []}
// CHECK-LABEL: func.func @step(
// CHECK-NOT: memref.load
// CHECK: call @layers(
// CHECK-NEXT: call @layers(
// CHECK-NEXT: return
// CHECK: func.func private @layers(
// CHECK: %[[V:.*]] = memref.load
// CHECK: %[[D:.*]] = arith.addf %[[V]], %[[V]]
// CHECK: memref.store %[[D]]
func.func @step(%batch: !kvrt.batch) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = kvrt.scratch %batch : memref<16xf32>
  %b = kvrt.scratch %batch {fixed = 64} : memref<17xf32>
  %v0 = memref.load %a[%c0] : memref<16xf32>
  %d0 = arith.addf %v0, %v0 : f32
  memref.store %d0, %a[%c1] : memref<16xf32>
  memref.store %v0, %b[%c1] : memref<17xf32>
  %v1 = memref.load %a[%c0] : memref<16xf32>
  %d1 = arith.addf %v1, %v1 : f32
  memref.store %d1, %a[%c1] : memref<16xf32>
  memref.store %v1, %b[%c1] : memref<17xf32>
  return
}

// -----

// One whose result is used behind it stays.
kvrt.model @step {vocabulary = 32, token_limit = 10, max_positions = -1, block_tokens = 16, layers = []}
// CHECK-LABEL: func.func @step(
// CHECK-NOT: @layers
// CHECK: return
func.func @step(%batch: !kvrt.batch) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %a = kvrt.scratch %batch : memref<16xf32>
  %b = kvrt.scratch %batch {fixed = 64} : memref<17xf32>
  %v0 = memref.load %a[%c0] : memref<16xf32>
  memref.store %v0, %a[%c1] : memref<16xf32>
  memref.store %v0, %b[%c1] : memref<17xf32>
  %v1 = memref.load %a[%c0] : memref<16xf32>
  memref.store %v1, %a[%c1] : memref<16xf32>
  memref.store %v1, %b[%c1] : memref<17xf32>
  %d = arith.addf %v0, %v1 : f32
  memref.store %d, %b[%c0] : memref<17xf32>
  return
}
