// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations over the rows of a step become one parallel loop with vectors inside.
// RUN: quire-opt %s --split-input-file --lower-linalg --canonicalize --cse --verify-diagnostics --allow-unregistered-dialect | FileCheck %s

#rows = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#single = affine_map<(d0, d1) -> (d0, 0)>

// A sum of squares and a scaling by it: one loop over rows.
// CHECK-LABEL: func.func @norm(
// CHECK: %[[T:.*]] = kvrt.extent %{{.*}}[tokens]
// CHECK: kvrt.parallel (%[[B:.*]], %[[E:.*]]) = %[[T]] on %{{.*}} grain {{[0-9]+}} {
// CHECK: scf.for %[[ROW:.*]] = %[[B]] to %[[E]] step
// 16 partial sums, added in halves, then the elements that fill no vector.
// CHECK: %[[P:.*]] = scf.for %[[K:.*]] = %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<16xf32>)
// CHECK: %[[X:.*]] = vector.load %{{.*}}[%[[ROW]], %[[K]]] : memref<?x100xf32>, vector<16xf32>
// CHECK: %[[Q:.*]] = arith.mulf %[[X]], %[[X]]
// CHECK: arith.addf %[[ACC]], %[[Q]] : vector<16xf32>
// CHECK: vector.shuffle %[[P]], %[[P]] [0, 1, 2, 3, 4, 5, 6, 7]
// CHECK: vector.shuffle %[[P]], %[[P]] [8, 9, 10, 11, 12, 13, 14, 15]
// CHECK: scf.for %{{.*}} -> (f32)
// CHECK: memref.store %{{.*}}[%[[ROW]], %{{.*}}] : memref<?x1xf32>
// What holds for the row is computed before its vectors.
// CHECK: %[[S:.*]] = memref.load %{{.*}}[%[[ROW]], %{{.*}}] : memref<?x1xf32>
// CHECK: %[[R:.*]] = math.sqrt %[[S]] : f32
// CHECK: scf.for
// CHECK-DAG: vector.load {{.*}} : memref<?x100xf32>, vector<16xf32>
// CHECK-DAG: vector.broadcast %[[R]] : f32 to vector<16xf32>
// CHECK-DAG: vector.load {{.*}} : memref<100xf32>, vector<16xf32>
// CHECK: vector.store {{.*}} vector<16xf32>
// 100 = 6 * 16 + 4
// CHECK: vector.store {{.*}} vector<4xf32>
// CHECK-NOT: kvrt.parallel
// CHECK: return
func.func @norm(%batch: !kvrt.batch, %gamma: memref<100xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = kvrt.extent %batch[tokens]
  %x = memref.alloc(%t) : memref<?x100xf32>
  "test.make"(%x) : (memref<?x100xf32>) -> ()
  %s = memref.alloc(%t) : memref<?x1xf32>
  linalg.fill ins(%zero : f32) outs(%s : memref<?x1xf32>)
  linalg.generic {indexing_maps = [#rows, #single], iterator_types = ["parallel", "reduction"]} ins(%x : memref<?x100xf32>) outs(%s : memref<?x1xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %q = arith.mulf %a, %a : f32
    %n = arith.addf %acc, %q : f32
    linalg.yield %n : f32
  }
  %y = memref.alloc(%t) : memref<?x100xf32>
  linalg.generic {indexing_maps = [#rows, #single, #column, #rows], iterator_types = ["parallel", "parallel"]}
      ins(%x, %s, %gamma : memref<?x100xf32>, memref<?x1xf32>, memref<100xf32>) outs(%y : memref<?x100xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32, %o: f32):
    %r = math.sqrt %b : f32
    %d = arith.divf %a, %r : f32
    %e = arith.mulf %d, %c : f32
    linalg.yield %e : f32
  }
  "test.use"(%y) : (memref<?x100xf32>) -> ()
  return
}

// -----

// Rows are taken from elsewhere: no common loop with what makes them.
#row = affine_map<(d0, d1) -> (d0)>
#rows = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @select(
// CHECK: kvrt.parallel
// CHECK: kvrt.parallel
// CHECK: %[[I:.*]] = arith.index_cast
// CHECK: vector.load %{{.*}}[%[[I]], %{{.*}}] : memref<?x32xf32>, vector<16xf32>
func.func @select(%batch: !kvrt.batch, %list: memref<?xi64>) {
  %t = kvrt.extent %batch[tokens]
  %x = memref.alloc(%t) : memref<?x32xf32>
  %y = memref.alloc(%t) : memref<?x32xf32>
  linalg.generic {indexing_maps = [#rows], iterator_types = ["parallel", "parallel"]} outs(%x : memref<?x32xf32>) {
  ^bb0(%o: f32):
    %one = arith.constant 1.0 : f32
    linalg.yield %one : f32
  }
  linalg.generic {indexing_maps = [#row, #rows], iterator_types = ["parallel", "parallel"]} ins(%list : memref<?xi64>) outs(%y : memref<?x32xf32>) {
  ^bb0(%i: i64, %o: f32):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = memref.load %x[%r, %c] : memref<?x32xf32>
    linalg.yield %v : f32
  }
  "test.use"(%y) : (memref<?x32xf32>) -> ()
  return
}

// -----

// A small product: neighbouring columns side by side, the depth in ascending order.
// CHECK-LABEL: func.func @product(
// CHECK-NOT: kvrt.parallel
// CHECK: scf.for
// CHECK: scf.for %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}) -> (vector<8xf32>)
// CHECK: memref.load
// CHECK: vector.load
// CHECK: vector.broadcast
func.func @product(%batch: !kvrt.batch, %a: memref<4x5xf32>, %b: memref<5x8xf32>, %c: memref<4x8xf32>) {
  linalg.matmul ins(%a, %b : memref<4x5xf32>, memref<5x8xf32>) outs(%c : memref<4x8xf32>)
  return
}

// -----

#rows = affine_map<(d0, d1) -> (d0, d1)>
#sum = affine_map<(d0, d1) -> (d1)>
func.func @sums_rows(%batch: !kvrt.batch, %x: memref<?x4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{not implemented: lower linalg.generic of this form}}
  linalg.generic {indexing_maps = [#rows, #sum], iterator_types = ["reduction", "parallel"]} ins(%x : memref<?x4xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %n = arith.addf %acc, %a : f32
    linalg.yield %n : f32
  }
  return
}
