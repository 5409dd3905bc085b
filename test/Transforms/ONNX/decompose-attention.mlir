// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --split-input-file --pass-pipeline='builtin.module(func.func(onnx-decompose-attention))' | FileCheck %s

// Causal attention with a past: keys are the past, then the new rows; the last token sees all of them.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: %[[Q:.*]]: tensor<1x?x32xf32>, %[[K:.*]]: tensor<1x?x16xf32>, %[[V:.*]]: tensor<1x?x16xf32>, %[[PK:.*]]: tensor<1x2x?x8xf32>, %[[PV:.*]]: tensor<1x2x?x8xf32>
// CHECK: %[[KEYS:.*]] = onnx.Concat %[[PK]], %{{.*}} {axis = 2 : i64}
// CHECK: %[[VALUES:.*]] = onnx.Concat %[[PV]], %{{.*}} {axis = 2 : i64}
// CHECK: onnx.LessOrEqual
// CHECK: onnx.Expand
// CHECK: onnx.MatMul
// CHECK: onnx.Where
// CHECK: onnx.Softmax
// CHECK: %[[Y:.*]] = onnx.Reshape
// CHECK: return %[[Y]], %[[KEYS]], %[[VALUES]]
func.func @attention(%q: tensor<1x?x32xf32>, %k: tensor<1x?x16xf32>, %v: tensor<1x?x16xf32>, %pk: tensor<1x2x?x8xf32>, %pv: tensor<1x2x?x8xf32>)
    -> (tensor<1x?x32xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>) {
  %none = onnx.none : none
  %y:4 = onnx.Attention %q, %k, %v, %none, %pk, %pv, %none {is_causal = 1 : i64, q_num_heads = 4 : i64, kv_num_heads = 2 : i64}
      : (tensor<1x?x32xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>, none, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, none)
      -> (tensor<1x?x32xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, none)
  return %y#0, %y#1, %y#2 : tensor<1x?x32xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>
}

// -----

// Softcap comes before the mask.
// CHECK-LABEL: func.func @softcap
// CHECK: %[[CAPPED:.*]] = onnx.Tanh
// CHECK: %[[SCALED:.*]] = onnx.Mul %[[CAPPED]]
// CHECK: %[[MASKED:.*]] = onnx.Add %[[SCALED]]
// CHECK: onnx.Softmax %[[MASKED]]
func.func @softcap(%q: tensor<1x2x?x8xf32>, %k: tensor<1x2x?x8xf32>, %v: tensor<1x2x?x8xf32>, %m: tensor<?x?xf32>) -> tensor<1x2x?x8xf32> {
  %none = onnx.none : none
  %y:4 = onnx.Attention %q, %k, %v, %m, %none, %none, %none {softcap = 50.0 : f32}
      : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<?x?xf32>, none, none, none) -> (tensor<1x2x?x8xf32>, none, none, none)
  return %y#0 : tensor<1x2x?x8xf32>
}

// -----

// Packed rows, rotation at the position that seqlens_k gives, a window, and keys counted by the total length.
// CHECK-LABEL: func.func @group_query
// CHECK-SAME: %[[QKV:.*]]: tensor<?x?x64xf32>, %[[PK:.*]]: tensor<?x2x?x8xf32>, %[[PV:.*]]: tensor<?x2x?x8xf32>, %[[LENS:.*]]: tensor<?xi32>, %[[TOTAL:.*]]: tensor<i32>
// CHECK-COUNT-3: onnx.Slice %[[QKV]]
// CHECK: onnx.Cast %[[LENS]] {{.*}}to = i64
// CHECK-COUNT-2: onnx.RotaryEmbedding
// CHECK: onnx.Concat %[[PK]]
// CHECK: onnx.Concat %[[PV]]
// CHECK: onnx.Cast %[[TOTAL]] {{.*}}to = i64
// CHECK: onnx.Range
// CHECK-COUNT-2: onnx.LessOrEqual
// CHECK: onnx.And
// CHECK: onnx.Softmax
func.func @group_query(%qkv: tensor<?x?x64xf32>, %pk: tensor<?x2x?x8xf32>, %pv: tensor<?x2x?x8xf32>, %lens: tensor<?xi32>, %total: tensor<i32>, %cos: tensor<32x4xf32>, %sin: tensor<32x4xf32>)
    -> (tensor<?x?x32xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>) {
  %n = onnx.none : none
  %y:4 = onnx.ms.GroupQueryAttention %qkv, %n, %n, %pk, %pv, %lens, %total, %cos, %sin, %n, %n, %n, %n, %n, %n, %n, %n
      {num_heads = 4 : i64, kv_num_heads = 2 : i64, do_rotary = 1 : i64, local_window_size = 16 : i64}
      : (tensor<?x?x64xf32>, none, none, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?xi32>, tensor<i32>, tensor<32x4xf32>, tensor<32x4xf32>, none, none, none, none, none, none, none, none)
      -> (tensor<?x?x32xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, none)
  return %y#0, %y#1, %y#2 : tensor<?x?x32xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>
}

// -----

// CHECK-LABEL: func.func @multi_head
// CHECK-SAME: %[[Q:.*]]: tensor<1x?x16xf32>, %[[K:.*]]: tensor<1x?x16xf32>, %[[V:.*]]: tensor<1x?x16xf32>, %[[BIAS:.*]]: tensor<48xf32>, %[[PK:.*]]: tensor<1x2x?x8xf32>, %[[PV:.*]]: tensor<1x2x?x8xf32>
// CHECK-COUNT-3: onnx.Slice %[[BIAS]]
// CHECK: onnx.Concat %[[PK]]
// CHECK: onnx.Concat %[[PV]]
// CHECK: onnx.LessOrEqual
// CHECK: onnx.Softmax
func.func @multi_head(%q: tensor<1x?x16xf32>, %k: tensor<1x?x16xf32>, %v: tensor<1x?x16xf32>, %bias: tensor<48xf32>, %pk: tensor<1x2x?x8xf32>, %pv: tensor<1x2x?x8xf32>)
    -> (tensor<1x?x16xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>) {
  %n = onnx.none : none
  %y:4 = onnx.ms.MultiHeadAttention %q, %k, %v, %bias, %n, %n, %pk, %pv, %n, %n {num_heads = 2 : i64, unidirectional = 1 : i64}
      : (tensor<1x?x16xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>, tensor<48xf32>, none, none, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, none, none)
      -> (tensor<1x?x16xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, none)
  return %y#0, %y#1, %y#2 : tensor<1x?x16xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>
}
