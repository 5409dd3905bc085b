// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(func.func(onnx-decompose-attention))'

// expected-error @+1 {{expected known numbers of heads and features}}
func.func @unknown_features(%q: tensor<1x2x?x?xf32>, %k: tensor<1x2x?x?xf32>, %v: tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32> {
  %none = onnx.none : none
  %y:4 = onnx.Attention %q, %k, %v, %none, %none, %none, %none
      : (tensor<1x2x?x?xf32>, tensor<1x2x?x?xf32>, tensor<1x2x?x?xf32>, none, none, none, none) -> (tensor<1x2x?x?xf32>, none, none, none)
  return %y#0 : tensor<1x2x?x?xf32>
}

// -----

// expected-error @+1 {{not implemented: a score output}}
func.func @scores(%q: tensor<1x2x?x8xf32>, %k: tensor<1x2x?x8xf32>, %v: tensor<1x2x?x8xf32>) -> tensor<1x2x?x?xf32> {
  %none = onnx.none : none
  %y:4 = onnx.Attention %q, %k, %v, %none, %none, %none, %none
      : (tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, none, none, none, none) -> (tensor<1x2x?x8xf32>, none, none, tensor<1x2x?x?xf32>)
  return %y#3 : tensor<1x2x?x?xf32>
}

// -----

// expected-error @+1 {{not implemented: a cache of quantised rows}}
func.func @quantised(%qkv: tensor<?x?x64xf32>, %pk: tensor<?x2x?x8xi8>, %pv: tensor<?x2x?x8xi8>, %lens: tensor<?xi32>, %total: tensor<i32>, %s: tensor<1xf32>) -> tensor<?x?x32xf32> {
  %n = onnx.none : none
  %y:4 = onnx.ms.GroupQueryAttention %qkv, %n, %n, %pk, %pv, %lens, %total, %n, %n, %n, %n, %n, %s, %s, %n, %n, %n
      {num_heads = 4 : i64, kv_num_heads = 2 : i64, k_quant_type = "PER_TENSOR", v_quant_type = "PER_TENSOR"}
      : (tensor<?x?x64xf32>, none, none, tensor<?x2x?x8xi8>, tensor<?x2x?x8xi8>, tensor<?xi32>, tensor<i32>, none, none, none, none, none, tensor<1xf32>, tensor<1xf32>, none, none, none)
      -> (tensor<?x?x32xf32>, tensor<?x2x?x8xi8>, tensor<?x2x?x8xi8>, none)
  return %y#0 : tensor<?x?x32xf32>
}

// -----

// expected-error @+1 {{not implemented: packed or projected keys and values}}
func.func @packed(%q: tensor<1x?x2x3x8xf32>) -> tensor<1x?x16xf32> {
  %n = onnx.none : none
  %y:4 = onnx.ms.MultiHeadAttention %q, %n, %n, %n, %n, %n, %n, %n, %n, %n {num_heads = 2 : i64}
      : (tensor<1x?x2x3x8xf32>, none, none, none, none, none, none, none, none, none) -> (tensor<1x?x16xf32>, none, none, none)
  return %y#0 : tensor<1x?x16xf32>
}

// -----

// expected-error @+1 {{not implemented: fused query norms, packed sequences, window caches and score outputs}}
func.func @query_norms(%qkv: tensor<?x?x64xf32>, %pk: tensor<?x2x?x8xf32>, %pv: tensor<?x2x?x8xf32>, %lens: tensor<?xi32>, %total: tensor<i32>, %w: tensor<8xf32>) -> tensor<?x?x32xf32> {
  %n = onnx.none : none
  %y:4 = onnx.ms.GroupQueryAttention %qkv, %n, %n, %pk, %pv, %lens, %total, %n, %n, %n, %n, %n, %n, %n, %w, %w, %n {num_heads = 4 : i64, kv_num_heads = 2 : i64}
      : (tensor<?x?x64xf32>, none, none, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?xi32>, tensor<i32>, none, none, none, none, none, none, none, tensor<8xf32>, tensor<8xf32>, none)
      -> (tensor<?x?x32xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, none)
  return %y#0 : tensor<?x?x32xf32>
}

// -----

// expected-error @+1 {{not implemented: shared buffers, beam search and score outputs}}
func.func @shared_buffer(%x: tensor<1x?x16xf32>, %p: tensor<1x2x?x8xf32>, %l: tensor<1xi32>) -> tensor<1x?x16xf32> {
  %n = onnx.none : none
  %y:4 = onnx.ms.MultiHeadAttention %x, %x, %x, %n, %n, %n, %p, %p, %l, %n {num_heads = 2 : i64}
      : (tensor<1x?x16xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>, none, none, none, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, tensor<1xi32>, none)
      -> (tensor<1x?x16xf32>, tensor<1x2x?x8xf32>, tensor<1x2x?x8xf32>, none)
  return %y#0 : tensor<1x?x16xf32>
}

// -----

// expected-error @+1 {{not implemented: a key padding mask that is no [batch, keys]}}
func.func @mask_of_lengths(%x: tensor<1x?x16xf32>, %l: tensor<1xi32>) -> tensor<1x?x16xf32> {
  %n = onnx.none : none
  %y:4 = onnx.ms.MultiHeadAttention %x, %x, %x, %n, %l, %n, %n, %n, %n, %n {num_heads = 2 : i64}
      : (tensor<1x?x16xf32>, tensor<1x?x16xf32>, tensor<1x?x16xf32>, none, tensor<1xi32>, none, none, none, none, none) -> (tensor<1x?x16xf32>, none, none, none)
  return %y#0 : tensor<1x?x16xf32>
}
