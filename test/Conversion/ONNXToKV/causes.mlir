// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A model of a kind that is not raised is refused by what its graph does, not by where the analysis stops.
// RUN: not quire-opt %s --split-input-file --raise-attention 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK: error: not raised: node 'attn': not implemented: PagedAttention, whose cache is in pages already{{$}}
onnx.entry @main {inputs = ["a", "b", "c", "d", "e", "f"], outputs = ["x", "y", "z"]}
func.func @main(%ids: tensor<?xi64>, %kc: tensor<?x16x1x8xf32>, %vc: tensor<?x16x1x8xf32>, %starts: tensor<?xi32>, %past: tensor<?xi32>, %blocks: tensor<?x?xi32>)
    -> (tensor<?x8xf32>, tensor<?x16x1x8xf32>, tensor<?x16x1x8xf32>) {
  %n = onnx.none : none
  %embed = onnx.constant dense<1.0> : tensor<6x8xf32>
  %x = onnx.Gather %embed, %ids {axis = 0 : i64} : (tensor<6x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>
  %y:3 = onnx.ms.PagedAttention %x, %x, %x, %kc, %vc, %starts, %past, %blocks, %n, %n, %n, %n, %n, %n, %n, %n, %n {num_heads = 1 : i64, kv_num_heads = 1 : i64}
      : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x16x1x8xf32>, tensor<?x16x1x8xf32>, tensor<?xi32>, tensor<?xi32>, tensor<?x?xi32>, none, none, none, none, none, none, none, none, none)
      -> (tensor<?x8xf32>, tensor<?x16x1x8xf32>, tensor<?x16x1x8xf32>) loc("attn")
  return %y#0, %y#1, %y#2 : tensor<?x8xf32>, tensor<?x16x1x8xf32>, tensor<?x16x1x8xf32>
}

// -----

// One line for each kind of operator; one that nobody reads is no cause.
// CHECK: error: not raised: node 'stateless': not implemented: CausalConvWithState, which takes a state from token to token{{$}}
// CHECK: error: not raised: node 'conv': not implemented: recurrent states, which CausalConvWithState replaces in every call (and 1 more of its kind)
// CHECK: error: not raised: node 'linear': not implemented: recurrent states, which LinearAttention replaces in every call{{$}}
onnx.entry @main {inputs = ["a", "b", "c"], outputs = ["x", "y", "z"]}
func.func @main(%ids: tensor<?x?xi64>, %conv: tensor<?x8x2xf32>, %state: tensor<?x1x8x8xf32>) -> (tensor<?x?x8xf32>, tensor<?x8x2xf32>, tensor<?x1x8x8xf32>) {
  %n = onnx.none : none
  %embed = onnx.constant dense<1.0> : tensor<6x8xf32>
  %w = onnx.constant dense<1.0> : tensor<8x1x3xf32>
  %x = onnx.Gather %embed, %ids {axis = 0 : i64} : (tensor<6x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %t = onnx.Transpose %x {perm = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32>) -> tensor<?x8x?xf32>
  %c:2 = onnx.CausalConvWithState %t, %w, %n, %conv : (tensor<?x8x?xf32>, tensor<8x1x3xf32>, none, tensor<?x8x2xf32>) -> (tensor<?x8x?xf32>, tensor<?x8x2xf32>) loc("conv")
  %d:3 = onnx.ms.CausalConvWithState %c#0, %w, %n, %conv : (tensor<?x8x?xf32>, tensor<8x1x3xf32>, none, tensor<?x8x2xf32>) -> (tensor<?x8x?xf32>, tensor<?x8x2xf32>, none) loc("again")
  %e:2 = onnx.CausalConvWithState %d#0, %w, %n, %n : (tensor<?x8x?xf32>, tensor<8x1x3xf32>, none, none) -> (tensor<?x8x?xf32>, tensor<?x8x2xf32>) loc("stateless")
  %unread:2 = onnx.LinearAttention %x, %x, %x, %n, %n, %n {q_num_heads = 1 : i64, kv_num_heads = 1 : i64, update_rule = "linear"}
      : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, none, none, none) -> (tensor<?x?x8xf32>, tensor<?x1x8x8xf32>) loc("unread")
  %r = onnx.Transpose %e#0 {perm = array<i64: 0, 2, 1>} : (tensor<?x8x?xf32>) -> tensor<?x?x8xf32>
  %y:2 = onnx.ms.LinearAttention %r, %r, %r, %state, %n, %n {q_num_heads = 1 : i64, kv_num_heads = 1 : i64, update_rule = "linear"}
      : (tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x?x8xf32>, tensor<?x1x8x8xf32>, none, none) -> (tensor<?x?x8xf32>, tensor<?x1x8x8xf32>) loc("linear")
  return %y#0, %d#1, %y#1 : tensor<?x?x8xf32>, tensor<?x8x2xf32>, tensor<?x1x8x8xf32>
}

// -----

// An encoder's output, which this model multiplies by weights itself.
// CHECK: error: not raised: input 'b': not implemented: hidden states of another model, as for cross attention{{$}}
onnx.entry @main {inputs = ["a", "b"], outputs = ["x"]}
func.func @main(%ids: tensor<?x?xi64>, %hidden: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %embed = onnx.constant dense<1.0> : tensor<6x8xf32>
  %w = onnx.constant dense<1.0> : tensor<8x8xf32>
  %x = onnx.Gather %embed, %ids {axis = 0 : i64} : (tensor<6x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %k = onnx.MatMul %hidden, %w : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
  %kt = onnx.Transpose %k {perm = array<i64: 0, 2, 1>} : (tensor<?x?x8xf32>) -> tensor<?x8x?xf32>
  %s = onnx.MatMul %x, %kt : (tensor<?x?x8xf32>, tensor<?x8x?xf32>) -> tensor<?x?x?xf32>
  %p = onnx.Softmax %s {axis = -1 : i64} : (tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
  %o = onnx.MatMul %p, %k : (tensor<?x?x?xf32>, tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  return %o : tensor<?x?x8xf32>
}

// -----

// CHECK: error: not raised: input 'a': not implemented: hidden states in place of token ids{{$}}
onnx.entry @main {inputs = ["a"], outputs = ["x"]}
func.func @main(%hidden: tensor<?x?x8xf32>) -> tensor<?x?x8xf32> {
  %w = onnx.constant dense<1.0> : tensor<8x8xf32>
  %same = onnx.Identity %hidden : (tensor<?x?x8xf32>) -> tensor<?x?x8xf32>
  %k = onnx.MatMul %same, %w : (tensor<?x?x8xf32>, tensor<8x8xf32>) -> tensor<?x?x8xf32>
  return %k : tensor<?x?x8xf32>
}

// -----

// The router's choice decides which weights a token is multiplied by; a choice of keys, of which there are as many as positions, would be another matter.
// CHECK: error: not raised: node 'router': not implemented: mixtures of experts, which TopK chooses{{$}}
onnx.entry @main {inputs = ["a"], outputs = ["x"]}
func.func @main(%ids: tensor<?x?xi64>) -> tensor<?x?x8xf32> {
  %embed = onnx.constant dense<1.0> : tensor<6x8xf32>
  %w = onnx.constant dense<1.0> : tensor<8x4xf32>
  %two = onnx.constant dense<2> : tensor<1xi64>
  %x = onnx.Gather %embed, %ids {axis = 0 : i64} : (tensor<6x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %s = onnx.MatMul %x, %w : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  %values, %which = onnx.TopK %s, %two {axis = -1 : i64} : (tensor<?x?x4xf32>, tensor<1xi64>) -> (tensor<?x?x2xf32>, tensor<?x?x2xi64>) loc("router")
  %p = onnx.Softmax %values {axis = -1 : i64} : (tensor<?x?x2xf32>) -> tensor<?x?x2xf32>
  %experts = onnx.constant dense<1.0> : tensor<2x8xf32>
  %y = onnx.MatMul %p, %experts : (tensor<?x?x2xf32>, tensor<2x8xf32>) -> tensor<?x?x8xf32>
  return %y : tensor<?x?x8xf32>
}

// -----

// What is chosen among the tokens, or only returned, is no expert.
// CHECK: error: not raised: {{.*}}no attention with
onnx.entry @main {inputs = ["a"], outputs = ["x", "y"]}
func.func @main(%ids: tensor<?x?xi64>) -> (tensor<?x?x2xf32>, tensor<?x2x4xf32>) {
  %embed = onnx.constant dense<1.0> : tensor<6x8xf32>
  %w = onnx.constant dense<1.0> : tensor<8x4xf32>
  %two = onnx.constant dense<2> : tensor<1xi64>
  %x = onnx.Gather %embed, %ids {axis = 0 : i64} : (tensor<6x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32>
  %s = onnx.MatMul %x, %w : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32>
  %values, %which = onnx.TopK %s, %two {axis = -1 : i64} : (tensor<?x?x4xf32>, tensor<1xi64>) -> (tensor<?x?x2xf32>, tensor<?x?x2xi64>)
  %tokens, %of = onnx.TopK %x, %two {axis = 1 : i64} : (tensor<?x?x8xf32>, tensor<1xi64>) -> (tensor<?x2x8xf32>, tensor<?x2x8xi64>)
  %y = onnx.MatMul %tokens, %w : (tensor<?x2x8xf32>, tensor<8x4xf32>) -> tensor<?x2x4xf32>
  return %values, %y : tensor<?x?x2xf32>, tensor<?x2x4xf32>
}
