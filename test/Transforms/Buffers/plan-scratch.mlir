// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Buffers get places in the arena; those that are not live together share bytes.
// RUN: quire-opt %s --split-input-file --plan-scratch --verify-diagnostics --allow-unregistered-dialect | FileCheck %s

// Tokens: a (64 bytes a row) and b (128) are live together, c (128) only after b: it takes b's place.
// CHECK: kvrt.model @step {{.*}}scratch_fixed = 128 : i64, scratch_per_selected = 64 : i64, scratch_per_token = 192 : i64
// CHECK-LABEL: func.func @step(
kvrt.model @step {vocabulary = 100, token_limit = 10, max_positions = -1, block_tokens = 16, layers = []}
func.func @step(%batch: !kvrt.batch) {
  %t = kvrt.extent %batch[tokens]
  %s = kvrt.extent %batch[selected]
  // CHECK: %[[A:.*]] = kvrt.scratch %{{.*}}[%{{.*}}] {fixed = 128 : i64, per_token = 128 : i64} : memref<?x16xf32>
  %a = memref.alloc(%t) : memref<?x16xf32>
  // CHECK: %[[B:.*]] = kvrt.scratch %{{.*}}[%{{.*}}] {fixed = 128 : i64} : memref<?x32xf32>
  %b = memref.alloc(%t) : memref<?x32xf32>
  // CHECK: %[[C:.*]] = kvrt.scratch %{{.*}}[%{{.*}}] {fixed = 128 : i64} : memref<?x32xf32>
  %c = memref.alloc(%t) : memref<?x32xf32>
  // CHECK: kvrt.scratch %{{.*}}[%{{.*}}] {fixed = 128 : i64, per_token = 192 : i64} : memref<?x5xf16>
  %d = memref.alloc(%s) : memref<?x5xf16>
  // CHECK: kvrt.scratch %{{.*}} : memref<20xf32>
  %e = memref.alloc() : memref<20xf32>
  "test.use"(%a, %b) : (memref<?x16xf32>, memref<?x32xf32>) -> ()
  %view = memref.expand_shape %a [[0, 1], [2]] output_shape [1, %t, 16] : memref<?x16xf32> into memref<1x?x16xf32>
  "test.use"(%c) : (memref<?x32xf32>) -> ()
  "test.use"(%view, %d, %e) : (memref<1x?x16xf32>, memref<?x5xf16>, memref<20xf32>) -> ()
  return
}

// -----

// What leaves is computed where it leaves.
// CHECK-LABEL: func.func @logits(
func.func @logits(%batch: !kvrt.batch) {
  %s = kvrt.extent %batch[selected]
  // CHECK: %[[L:.*]] = kvrt.logits %{{.*}} : memref<?x10xf32>
  %a = memref.alloc(%s) : memref<?x10xf32>
  // CHECK: "test.use"(%[[L]])
  "test.use"(%a) : (memref<?x10xf32>) -> ()
  // CHECK-NOT: kvrt.write
  kvrt.write %a to %batch[logits] : memref<?x10xf32>
  return
}

// -----

func.func @region(%batch: !kvrt.batch) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %c1 step %c1 {
    // expected-error @below {{not implemented: a buffer that is allocated in a region}}
    %a = memref.alloc() : memref<4xf32>
    "test.use"(%a) : (memref<4xf32>) -> ()
  }
  return
}

// -----

func.func @unknown(%batch: !kvrt.batch) {
  %n = "test.size"() : () -> index
  // expected-error @below {{expected a buffer that grows with the tokens or the selected rows}}
  %a = memref.alloc(%n) : memref<?xf32>
  return
}

// -----

func.func @two(%batch: !kvrt.batch) {
  %t = kvrt.extent %batch[tokens]
  // expected-error @below {{expected a buffer with one unknown extent at most, but got 'memref<?x?xf32>'}}
  %a = memref.alloc(%t, %t) : memref<?x?xf32>
  return
}

// -----

func.func @strided(%batch: !kvrt.batch) {
  // expected-error @below {{not implemented: a buffer of type 'memref<4xf32, strided<[2]>>'}}
  %a = memref.alloc() : memref<4xf32, strided<[2]>>
  return
}
