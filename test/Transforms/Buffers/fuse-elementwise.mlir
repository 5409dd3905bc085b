// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A producer moves into its only user, unless the user would compute it more than once.
// RUN: quire-opt %s --fuse-elementwise | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#single = affine_map<(d0, d1) -> (d0, 0)>

// CHECK-LABEL: func.func @chain(
// CHECK: linalg.generic
// CHECK: math.exp
// CHECK-NEXT: arith.mulf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @chain(%x: tensor<?x8xf32>, %e: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = math.exp %i : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %x : tensor<?x8xf32>, tensor<?x8xf32>) outs(%e : tensor<?x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.mulf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  return %b : tensor<?x8xf32>
}

// One root for each row, used by 8 columns.
// CHECK-LABEL: func.func @row_scalar(
// CHECK: linalg.generic
// CHECK: math.sqrt
// CHECK: linalg.generic
// CHECK: arith.divf
func.func @row_scalar(%s: tensor<?x1xf32>, %x: tensor<?x8xf32>, %e: tensor<?x1xf32>, %f: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%s : tensor<?x1xf32>) outs(%e : tensor<?x1xf32>) {
  ^bb0(%i: f32, %o: f32):
    %r = math.sqrt %i : f32
    linalg.yield %r : f32
  } -> tensor<?x1xf32>
  %b = linalg.generic {indexing_maps = [#id, #single, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %a : tensor<?x8xf32>, tensor<?x1xf32>) outs(%f : tensor<?x8xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %r = arith.divf %i, %j : f32
    linalg.yield %r : f32
  } -> tensor<?x8xf32>
  return %b : tensor<?x8xf32>
}
