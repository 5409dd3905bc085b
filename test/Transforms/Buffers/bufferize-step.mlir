// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors become buffers: parts are computed in place, destinations are not shared, copies are linalg.
// RUN: quire-opt %s --bufferize-step --canonicalize --cse --allow-unregistered-dialect | FileCheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// Both halves are computed in the whole.
// CHECK-LABEL: func.func @halves(
// CHECK: %[[WHOLE:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?x16xf32>
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: %[[LOW:.*]] = memref.subview %[[WHOLE]][0, 0]
// CHECK: linalg.generic {{.*}} outs(%[[LOW]]
// CHECK: %[[HIGH:.*]] = memref.subview %[[WHOLE]][0, 8]
// CHECK: linalg.generic {{.*}} outs(%[[HIGH]]
func.func @halves(%batch: !kvrt.batch) {
  %t = kvrt.extent %batch[tokens]
  %half = tensor.empty(%t) : tensor<?x8xf32>
  %a = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%half : tensor<?x8xf32>) {
  ^bb0(%o: f32):
    %c = arith.constant 1.0 : f32
    linalg.yield %c : f32
  } -> tensor<?x8xf32>
  %b = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel", "parallel"]} outs(%half : tensor<?x8xf32>) {
  ^bb0(%o: f32):
    %c = arith.constant 2.0 : f32
    linalg.yield %c : f32
  } -> tensor<?x8xf32>
  %whole = tensor.empty(%t) : tensor<?x16xf32>
  %p = tensor.insert_slice %a into %whole[0, 0] [%t, 8] [1, 1] : tensor<?x8xf32> into tensor<?x16xf32>
  %q = tensor.insert_slice %b into %p[0, 8] [%t, 8] [1, 1] : tensor<?x8xf32> into tensor<?x16xf32>
  kvrt.write %q to %batch[logits] : tensor<?x16xf32>
  return
}
