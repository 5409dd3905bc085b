// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products: which weights are packed, which are not.
// RUN: quire-opt %s --convert-onnx-to-linalg=panel-columns=16 --allow-unregistered-dialect | FileCheck %s

// CHECK-DAG: kvrt.packed @w.packed {k = 64 : i64, layout = #kvrt.panels<nr = 16>, n = 100 : i64, source = @w{{.*}}} : tensor<7x64x16xf32>
// CHECK-DAG: kvrt.packed @e.packed_t {k = 64 : i64, layout = #kvrt.panels<nr = 16>, n = 96 : i64, source = @e{{.*}}transposed} : tensor<6x64x16xf32>
// CHECK-DAG: kvrt.packed @h.packed {{.*}} : tensor<1x64x16xf16>
// CHECK-DAG: kvrt.raw @b.raw {source = @b{{.*}}} : tensor<100xf32>
onnx.initializer @w {file = "m.data", offset = 0 : i64, bytes = 25600 : i64} : tensor<64x100xf32>
onnx.initializer @e {file = "m.data", offset = 25600 : i64, bytes = 24576 : i64} : tensor<96x64xf32>
onnx.initializer @b {file = "m.data", offset = 50176 : i64, bytes = 400 : i64} : tensor<100xf32>
onnx.initializer @h {file = "m.data", offset = 50688 : i64, bytes = 1280 : i64} : tensor<64x10xf16>

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[BATCH:.*]]: !kvrt.batch, %[[X:.*]]: tensor<1x?x64xf32>)
func.func @step(%batch: !kvrt.batch, %x: tensor<1x?x64xf32>) {
  // CHECK: %[[FLAT:.*]] = tensor.collapse_shape %[[X]] {{\[\[}}0, 1], [2]]
  // CHECK: %[[W:.*]] = kvrt.weight %[[BATCH]], @w.packed : tensor<7x64x16xf32>
  // CHECK: %[[P:.*]] = kvrt.product ins(%[[FLAT]], %[[W]], %[[BATCH]] : {{.*}}) outs(%{{.*}} : tensor<?x100xf32>)
  // CHECK: tensor.expand_shape %[[P]] {{\[\[}}0, 1], [2]]
  %w = onnx.weight @w : tensor<64x100xf32>
  %y = onnx.MatMul %x, %w : (tensor<1x?x64xf32>, tensor<64x100xf32>) -> tensor<1x?x100xf32>
  "test.use"(%y) : (tensor<1x?x100xf32>) -> ()

  // A bias that is added at once.
  // CHECK: %[[BIAS:.*]] = kvrt.weight %[[BATCH]], @b.raw : tensor<100xf32>
  // CHECK: kvrt.product ins({{.*}}, bias %[[BIAS]] :
  // CHECK-NOT: arith.addf
  // CHECK: "test.use"
  %b = onnx.weight @b : tensor<100xf32>
  %m = onnx.MatMul %x, %w : (tensor<1x?x64xf32>, tensor<64x100xf32>) -> tensor<1x?x100xf32>
  %a = onnx.Add %b, %m : (tensor<100xf32>, tensor<1x?x100xf32>) -> tensor<1x?x100xf32>
  "test.use"(%a) : (tensor<1x?x100xf32>) -> ()

  // A transposed initializer, and Gemm's own transposition.
  // CHECK: kvrt.weight %[[BATCH]], @e.packed_t
  // CHECK: kvrt.product
  // CHECK: kvrt.weight %[[BATCH]], @e.packed_t
  // CHECK: kvrt.product
  %e = onnx.weight @e : tensor<96x64xf32>
  %t = onnx.Transpose %e {perm = array<i64: 1, 0>} : (tensor<96x64xf32>) -> tensor<64x96xf32>
  %l = onnx.MatMul %x, %t : (tensor<1x?x64xf32>, tensor<64x96xf32>) -> tensor<1x?x96xf32>
  %none = onnx.none : none
  %shape = onnx.constant dense<[-1, 64]> : tensor<2xi64>
  %r = onnx.Reshape %x, %shape : (tensor<1x?x64xf32>, tensor<2xi64>) -> tensor<?x64xf32>
  %g = onnx.Gemm %r, %e, %none {transB = 1 : i64} : (tensor<?x64xf32>, tensor<96x64xf32>, none) -> tensor<?x96xf32>
  "test.use"(%l, %g) : (tensor<1x?x96xf32>, tensor<?x96xf32>) -> ()

  // Widening is left to the product.
  // CHECK: kvrt.weight %[[BATCH]], @h.packed : tensor<1x64x16xf16>
  // CHECK: kvrt.product {{.*}} outs(%{{.*}} : tensor<?x10xf32>)
  %h = onnx.weight @h : tensor<64x10xf16>
  %hw = onnx.Cast %h {to = f32} : (tensor<64x10xf16>) -> tensor<64x10xf32>
  %hy = onnx.MatMul %x, %hw : (tensor<1x?x64xf32>, tensor<64x10xf32>) -> tensor<1x?x10xf32>
  "test.use"(%hy) : (tensor<1x?x10xf32>) -> ()

  // Activations: a plain product; with a depth of one, an element-wise one.
  // CHECK-NOT: kvrt.product
  // CHECK: linalg.generic {{.*}}"reduction"]} ins(%[[X]]
  %small = onnx.constant dense<1.0> : tensor<64x2xf32>
  %s = onnx.MatMul %x, %small : (tensor<1x?x64xf32>, tensor<64x2xf32>) -> tensor<1x?x2xf32>
  %column = onnx.constant dense<[[[1.0], [2.0]]]> : tensor<1x2x1xf32>
  // CHECK: linalg.generic {{.*}}["parallel", "parallel", "parallel"]}
  // CHECK: arith.mulf
  %row = "test.make"() : () -> tensor<1x1x?xf32>
  %o = onnx.MatMul %column, %row : (tensor<1x2x1xf32>, tensor<1x1x?xf32>) -> tensor<1x2x?xf32>
  "test.use"(%s, %o) : (tensor<1x?x2xf32>, tensor<1x2x?xf32>) -> ()
  return
}
