// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --verify-roundtrip | FileCheck %s
// RUN: quire-opt %s --mlir-print-op-generic | quire-opt | FileCheck %s

// CHECK: onnx.initializer @embed {bytes = 8192 : i64, file = "model.onnx.data", offset = 4096 : i64} : tensor<32x64xf32>
onnx.initializer @embed {file = "model.onnx.data", offset = 4096 : i64, bytes = 8192 : i64} : tensor<32x64xf32>
// CHECK: onnx.initializer @"odd \22name\22" {bytes = 2 : i64, file = "w", offset = 0 : i64} : tensor<3xi4>
onnx.initializer @"odd \22name\22" {file = "w", offset = 0 : i64, bytes = 2 : i64} : tensor<3xi4>
// CHECK: onnx.initializer @flags {{.*}} : tensor<5xi1>
onnx.initializer @flags {file = "w", offset = 0 : i64, bytes = 5 : i64} : tensor<5xi1>
// CHECK: onnx.initializer @waves {{.*}} : tensor<2xcomplex<f32>>
onnx.initializer @waves {file = "w", offset = 0 : i64, bytes = 16 : i64} : tensor<2xcomplex<f32>>

// CHECK: onnx.entry @main {input_dims = {{\[\[}}"batch", "sequence"]], inputs = ["input_ids"], output_dims = {{\[\[}}"batch", "sequence", ""]], outputs = ["logits"], producer = "tests"}
onnx.entry @main {inputs = ["input_ids"], input_dims = [["batch", "sequence"]], outputs = ["logits"],
                  output_dims = [["batch", "sequence", ""]], producer = "tests"}

// CHECK-LABEL: func.func @main
func.func @main(%ids: tensor<?x?xi64>) -> tensor<?x?x64xf32> {
  // CHECK: %[[W:.*]] = onnx.weight @embed : tensor<32x64xf32>
  %w = onnx.weight @embed : tensor<32x64xf32>
  // CHECK: onnx.Gather %[[W]], %{{.*}} : (tensor<32x64xf32>, tensor<?x?xi64>) -> tensor<?x?x64xf32>
  %x = onnx.Gather %w, %ids : (tensor<32x64xf32>, tensor<?x?xi64>) -> tensor<?x?x64xf32>
  return %x : tensor<?x?x64xf32>
}

// CHECK-LABEL: func.func @values
func.func @values(%x: tensor<2x4xf32>) {
  // CHECK: %[[NONE:.*]] = onnx.none : none
  %none = onnx.none : none
  // CHECK: onnx.constant dense<[0, 2]> : tensor<2xi64>
  %c = onnx.constant dense<[0, 2]> : tensor<2xi64>
  // CHECK: onnx.constant dense<["a", "b"]> : tensor<2x!onnx.string>
  %s = onnx.constant dense<["a", "b"]> : tensor<2x!onnx.string>
  // CHECK: onnx.constant dense<[-1, 7]> : tensor<2xi4>
  %q = onnx.constant dense<[-1, 7]> : tensor<2xi4>
  // CHECK: onnx.constant dense<1.000000e+00> : tensor<2xf8E4M3FN>
  %f = onnx.constant dense<1.0> : tensor<2xf8E4M3FN>
  // CHECK: onnx.Clip %{{.*}}, %[[NONE]], %[[NONE]] : (tensor<2x4xf32>, none, none) -> tensor<2x4xf32>
  %y = onnx.Clip %x, %none, %none : (tensor<2x4xf32>, none, none) -> tensor<2x4xf32>
  // CHECK: onnx.custom "vendor" "Fancy" %{{.*}}, %{{.*}} {onnx_attributes = {alpha = 1.500000e+00 : f32}, since_version = 3 : i64} : (tensor<2x4xf32>, none) -> (tensor<*x!onnx.unknown>, none)
  %r:2 = onnx.custom "vendor" "Fancy" %x, %none {onnx_attributes = {alpha = 1.5 : f32}, since_version = 3 : i64} : (tensor<2x4xf32>, none) -> (tensor<*x!onnx.unknown>, none)
  // CHECK: onnx.custom "" "Regional" {region_names = ["body"]} : () -> () {
  onnx.custom "" "Regional" {region_names = ["body"]} : () -> () {
    onnx.yield %x : tensor<2x4xf32>
  }
  return
}

// CHECK-LABEL: func.func @families
func.func @families(%x: tensor<2x4xf32>, %q: tensor<2x3x8xf32>, %w: tensor<4x4xf32>, %ids: tensor<2xi32>, %total: tensor<i32>) {
  %none = onnx.none : none
  // CHECK: onnx.Add %{{.*}}, %{{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %0 = onnx.Add %x, %x : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: onnx.Cast %{{.*}} {to = f16} : (tensor<2x4xf32>) -> tensor<2x4xf16>
  %1 = onnx.Cast %x {to = f16} : (tensor<2x4xf32>) -> tensor<2x4xf16>
  // CHECK: onnx.Softmax %{{[0-9a-z]*}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = onnx.Softmax %x {axis = -1 : i64} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK: onnx.Transpose %{{.*}} {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %3 = onnx.Transpose %x {perm = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  // CHECK: onnx.Split %{{.*}}, %{{.*}} {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<2x4xf32>, none) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  %4:2 = onnx.Split %x, %none {axis = 1 : i64, num_outputs = 2 : i64} : (tensor<2x4xf32>, none) -> (tensor<2x2xf32>, tensor<2x2xf32>)
  // CHECK: onnx.Concat %{{.*}}, %{{.*}}, %{{.*}} {axis = 0 : i64}
  %5 = onnx.Concat %x, %x, %x {axis = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  // CHECK: onnx.Attention %{{.*}} {kv_num_heads = 2 : i64, q_num_heads = 2 : i64}
  %6:4 = onnx.Attention %q, %q, %q, %none, %none, %none, %none {q_num_heads = 2 : i64, kv_num_heads = 2 : i64}
      : (tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>, none, none, none, none) -> (tensor<2x3x8xf32>, none, none, none)
  // CHECK: onnx.ms.GroupQueryAttention %{{.*}} {kv_num_heads = 1 : i64, num_heads = 2 : i64}
  %7:4 = onnx.ms.GroupQueryAttention %q, %none, %none, %none, %none, %ids, %total, %none, %none, %none, %none, %none, %none, %none, %none, %none, %none
      {num_heads = 2 : i64, kv_num_heads = 1 : i64}
      : (tensor<2x3x8xf32>, none, none, none, none, tensor<2xi32>, tensor<i32>, none, none, none, none, none, none, none, none, none, none)
      -> (tensor<2x3x4xf32>, tensor<2x1x?x2xf32>, tensor<2x1x?x2xf32>, none)
  // CHECK: onnx.DynamicQuantizeLinear %{{.*}} : (tensor<2x4xf32>) -> (tensor<2x4xui8>, tensor<f32>, tensor<ui8>)
  %8:3 = onnx.DynamicQuantizeLinear %x : (tensor<2x4xf32>) -> (tensor<2x4xui8>, tensor<f32>, tensor<ui8>)
  // CHECK: onnx.ReduceMean %{{.*}}, %{{.*}} {keepdims = 0 : i64} : (tensor<2x4xf32>, none) -> tensor<f32>
  %9 = onnx.ReduceMean %x, %none {keepdims = 0 : i64} : (tensor<2x4xf32>, none) -> tensor<f32>
  // CHECK: onnx.SequenceConstruct %{{.*}} : (tensor<2x4xf32>) -> !onnx.seq<tensor<2x4xf32>>
  %10 = onnx.SequenceConstruct %x : (tensor<2x4xf32>) -> !onnx.seq<tensor<2x4xf32>>
  // CHECK: onnx.Optional %{{.*}} : (tensor<2x4xf32>) -> !onnx.opt<tensor<2x4xf32>>
  %11 = onnx.Optional %x : (tensor<2x4xf32>) -> !onnx.opt<tensor<2x4xf32>>
  return
}

// CHECK-LABEL: func.func @subgraphs
func.func @subgraphs(%c: tensor<i1>, %n: tensor<i64>, %x: tensor<2xf32>, %rows: tensor<?x2xf32>, %q: tensor<1x2x3x4xf32>) {
  %none = onnx.none : none
  // CHECK: onnx.If %{{.*}} : (tensor<i1>) -> tensor<2xf32> {
  // CHECK:   onnx.yield %{{.*}} : tensor<2xf32>
  // CHECK: }, {
  %0 = onnx.If %c : (tensor<i1>) -> tensor<2xf32> {
    onnx.yield %x : tensor<2xf32>
  }, {
    %neg = onnx.Neg %x : (tensor<2xf32>) -> tensor<2xf32>
    onnx.yield %neg : tensor<2xf32>
  }
  // CHECK: onnx.Loop %{{.*}}, %{{.*}}, %{{.*}} : (tensor<i64>, none, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<i64>, %{{.*}}: tensor<i1>, %{{.*}}: tensor<2xf32>):
  %1:2 = onnx.Loop %n, %none, %x : (tensor<i64>, none, tensor<2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %state: tensor<2xf32>):
    onnx.yield %go, %state, %state : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  }
  // CHECK: onnx.Scan %{{.*}}, %{{.*}} {num_scan_inputs = 1 : i64} : (tensor<2xf32>, tensor<?x2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  %2:2 = onnx.Scan %x, %rows {num_scan_inputs = 1 : i64} : (tensor<2xf32>, tensor<?x2xf32>) -> (tensor<2xf32>, tensor<?x2xf32>) {
  ^bb0(%state: tensor<2xf32>, %row: tensor<2xf32>):
    onnx.yield %row, %state : tensor<2xf32>, tensor<2xf32>
  }
  // CHECK: onnx.preview.FlexAttention %{{.*}} : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  %3 = onnx.preview.FlexAttention %q, %q, %q : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32> {
  ^bb0(%score: tensor<?x?x?x?xf32>):
    onnx.yield %score : tensor<?x?x?x?xf32>
  }, {
  }
  // CHECK: onnx.SequenceMap
  %s = onnx.SequenceConstruct %x : (tensor<2xf32>) -> !onnx.seq<tensor<2xf32>>
  %4 = onnx.SequenceMap %s : (!onnx.seq<tensor<2xf32>>) -> !onnx.seq<tensor<2xf32>> {
  ^bb0(%element: tensor<2xf32>):
    onnx.yield %element : tensor<2xf32>
  }
  return
}
