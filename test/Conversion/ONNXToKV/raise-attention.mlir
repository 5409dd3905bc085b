// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --raise-attention --canonicalize --cse | FileCheck %s

// One layer with two query heads on one KV head, positions from a table, and a causal mask computed from lengths. The names say nothing.

onnx.entry @main {inputs = ["a", "b", "c", "d"], outputs = ["e", "f", "g"]}

// CHECK-NOT: onnx.entry
// CHECK-NOT: @main
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[IDS:.*]]: tensor<1x?xi64>, %[[BATCH:.*]]: !kv.batch, %[[STATE:.*]]: !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>)
// CHECK-SAME: -> (tensor<?x6xf32>, !kv.state
func.func @main(%ids: tensor<?x?xi64>, %pk: tensor<?x1x?x4xf32>, %pv: tensor<?x1x?x4xf32>, %mask: tensor<?x?xi64>)
    -> (tensor<?x?x6xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) {
  %none = onnx.none : none
  %embed = onnx.weight @embed : tensor<6x8xf32>
  %table = onnx.weight @table : tensor<32x8xf32>
  %wq = onnx.weight @wq : tensor<8x8xf32>
  %wk = onnx.weight @wk : tensor<8x4xf32>
  %wv = onnx.weight @wv : tensor<8x4xf32>
  %wo = onnx.weight @wo : tensor<8x6xf32>
  %zero = onnx.constant dense<0> : tensor<i64>
  %one = onnx.constant dense<1> : tensor<i64>
  %two = onnx.constant dense<2> : tensor<i64>
  %v0 = onnx.constant dense<0> : tensor<1xi64>
  %scale = onnx.constant dense<0.5> : tensor<f32>
  %inf = onnx.constant dense<0xFF800000> : tensor<f32>
  %hidden_zero = onnx.constant dense<0.0> : tensor<f32>

  // Lengths: past from the cache, new tokens from the ids.
  %pshape = onnx.Shape %pk {start = 0 : i64} : (tensor<?x1x?x4xf32>) -> tensor<4xi64>
  %p = onnx.Gather %pshape, %two {axis = 0 : i64} : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  %ishape = onnx.Shape %ids {start = 0 : i64} : (tensor<?x?xi64>) -> tensor<2xi64>
  %l = onnx.Gather %ishape, %one {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %t = onnx.Add %p, %l : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %q_index = onnx.Range %p, %t, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %k_index = onnx.Range %zero, %t, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>

  // Rows: token and position embedding.
  // CHECK-DAG: %[[POS:.*]] = kv.positions %[[BATCH]] : tensor<1x?xi64>
  // CHECK-DAG: onnx.Gather %{{.*}}, %[[IDS]]
  %x0 = onnx.Gather %embed, %ids {axis = 0 : i64} : (tensor<6x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %pos = onnx.Gather %table, %q_index {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %x = onnx.Add %x0, %pos : (tensor<?x?x8xf32>, tensor<?x8xf32>) -> tensor<?x?x8xf32>

  // CHECK: kv.append %{{.*}}, %{{.*}} to %[[STATE]], %[[BATCH]] : tensor<?x1x4xf32>, tensor<?x1x4xf32>
  // CHECK: kv.attend %{{.*}}, %{{.*}}, %[[BATCH]] {scale = 5.000000e-01 : f64} : tensor<?x2x4xf32>
  // CHECK-NOT: onnx.Softmax
  %split = onnx.constant dense<[0, 0, 2, 4]> : tensor<4xi64>
  %split1 = onnx.constant dense<[0, 0, 1, 4]> : tensor<4xi64>
  %q1 = onnx.MatMul %x, %wq : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
  %q2 = onnx.Reshape %q1, %split : (tensor<?x?x8xf32>, tensor<4xi64>) -> tensor<?x?x2x4xf32>
  %q = onnx.Transpose %q2 {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x4xf32>) -> tensor<?x2x?x4xf32>
  %k1 = onnx.MatMul %x, %wk : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  %k2 = onnx.Reshape %k1, %split1 : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %k = onnx.Transpose %k2 {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
  %vv1 = onnx.MatMul %x, %wv : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  %vv2 = onnx.Reshape %vv1, %split1 : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x1x4xf32>
  %v = onnx.Transpose %vv2 {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x1x4xf32>) -> tensor<?x1x?x4xf32>
  %keys = onnx.Concat %pk, %k {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>
  %values = onnx.Concat %pv, %v {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>

  // Hidden where the key is after the query.
  %axis1 = onnx.constant dense<1> : tensor<1xi64>
  %q_column = onnx.Unsqueeze %q_index, %axis1 : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64>
  %after = onnx.Greater %k_index, %q_column : (tensor<?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1>
  %bias = onnx.Where %after, %inf, %hidden_zero : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32>
  %kt = onnx.Transpose %keys {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x1x?x4xf32>) -> tensor<?x1x4x?xf32>
  %s0 = onnx.MatMul %q, %kt : (tensor<?x2x?x4xf32>, tensor<?x1x4x?xf32>) -> tensor<?x2x?x?xf32>
  %s1 = onnx.Mul %s0, %scale : (tensor<?x2x?x?xf32>, tensor<f32>) -> tensor<?x2x?x?xf32>
  %s2 = onnx.Add %s1, %bias : (tensor<?x2x?x?xf32>, tensor<?x?xf32>) -> tensor<?x2x?x?xf32>
  %w = onnx.Softmax %s2 {axis = -1 : i64} : (tensor<?x2x?x?xf32>) -> tensor<?x2x?x?xf32>
  %o0 = onnx.MatMul %w, %values : (tensor<?x2x?x?xf32>, tensor<?x1x?x4xf32>) -> tensor<?x2x?x4xf32>
  %o1 = onnx.Transpose %o0 {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x2x?x4xf32>) -> tensor<?x?x2x4xf32>
  %merge = onnx.constant dense<[0, 0, 8]> : tensor<3xi64>
  %o2 = onnx.Reshape %o1, %merge : (tensor<?x?x2x4xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>
  // CHECK: %[[LOGITS:.*]] = onnx.MatMul
  // CHECK: kv.select %[[LOGITS]], %[[BATCH]] : tensor<1x?x6xf32>
  %logits = onnx.MatMul %o2, %wo : (tensor<?x?x8xf32>, tensor<8x6xf32>) -> tensor<?x?x6xf32>
  // CHECK: kv.entry @step {max_positions = 32 : i64, token_limit = 6 : i64}
  return %logits, %keys, %values : tensor<?x?x6xf32>, tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>
}

onnx.initializer @embed {file = "w", offset = 0 : i64, bytes = 192 : i64} : tensor<6x8xf32>
onnx.initializer @table {file = "w", offset = 192 : i64, bytes = 1024 : i64} : tensor<32x8xf32>
onnx.initializer @wq {file = "w", offset = 1216 : i64, bytes = 256 : i64} : tensor<8x8xf32>
onnx.initializer @wk {file = "w", offset = 1472 : i64, bytes = 128 : i64} : tensor<8x4xf32>
onnx.initializer @wv {file = "w", offset = 1600 : i64, bytes = 128 : i64} : tensor<8x4xf32>
onnx.initializer @wo {file = "w", offset = 1728 : i64, bytes = 192 : i64} : tensor<8x6xf32>
