// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{expected 24 bytes, but got 8}}
onnx.initializer @w {file = "w", offset = 0 : i64, bytes = 8 : i64} : tensor<2x3xf32>

// -----

// expected-error @+1 {{expected a non-negative offset, but got -4}}
onnx.initializer @w {file = "w", offset = -4 : i64, bytes = 4 : i64} : tensor<1xf32>

// -----

// expected-error @+1 {{expected an element type of fixed width, but got '!onnx.string'}}
onnx.initializer @w {file = "w", offset = 0 : i64, bytes = 4 : i64} : tensor<1x!onnx.string>

// -----

func.func @f() {
  // expected-error @+1 {{expected the name of an onnx.initializer, but got @nothing}}
  %0 = onnx.weight @nothing : tensor<1xf32>
  return
}

// -----

onnx.initializer @w {file = "w", offset = 0 : i64, bytes = 4 : i64} : tensor<1xf32>
func.func @f() {
  // expected-error @+1 {{expected the type of the initializer, 'tensor<1xf32>', but got 'tensor<2xf32>'}}
  %0 = onnx.weight @w : tensor<2xf32>
  return
}

// -----

// expected-error @+1 {{expected the name of a function, but got @main}}
onnx.entry @main {inputs = [], outputs = []}

// -----

// expected-error @+1 {{expected 1 names of inputs, but got 2}}
onnx.entry @main {inputs = ["a", "b"], outputs = []}
func.func private @main(tensor<2xf32>)

// -----

// expected-error @+1 {{expected dimension names of 1 outputs, but got 0}}
onnx.entry @main {inputs = [], outputs = ["y"], output_dims = []}
func.func private @main() -> tensor<2xf32>

// -----

// expected-error @+1 {{expected 2 dimension names for 'tensor<?x3xf32>', but got 1}}
onnx.entry @main {inputs = ["x"], input_dims = [["batch"]], outputs = []}
func.func private @main(tensor<?x3xf32>)

// -----

// expected-error @+1 {{expected a non-empty operator name}}
onnx.custom "vendor" "" : () -> ()

// -----

// expected-error @+1 {{expected 0 region names, but got 1}}
onnx.custom "vendor" "Fancy" {region_names = ["body"]} : () -> ()

// -----

func.func @f(%c: tensor<i1>, %x: tensor<f32>) {
  // expected-error @+1 {{expected 0 arguments of the subgraph, but got 1}}
  %0 = onnx.If %c : (tensor<i1>) -> tensor<f32> {
  ^bb0(%a: tensor<f32>):
    onnx.yield %x : tensor<f32>
  }, {
    onnx.yield %x : tensor<f32>
  }
  return
}

// -----

func.func @f(%c: tensor<i1>, %x: tensor<f32>) {
  // expected-error @+1 {{expected the subgraph to yield 1 values, but got 0}}
  %0 = onnx.If %c : (tensor<i1>) -> tensor<f32> {
    onnx.yield %x : tensor<f32>
  }, {
    onnx.yield
  }
  return
}

// -----

func.func @f(%c: tensor<i1>, %x: tensor<f32>) {
  // expected-error @+1 {{expected the subgraph to end in onnx.yield}}
  %0 = onnx.If %c : (tensor<i1>) -> tensor<f32> {
    %y = onnx.Neg %x : (tensor<f32>) -> tensor<f32>
  }, {
    onnx.yield %x : tensor<f32>
  }
  return
}

// -----

func.func @f(%n: tensor<i64>, %c: tensor<i1>, %x: tensor<f32>) {
  // expected-error @+1 {{expected at least 1 results, but got 0}}
  onnx.Loop %n, %c, %x : (tensor<i64>, tensor<i1>, tensor<f32>) -> () {
  ^bb0(%i: tensor<i64>, %go: tensor<i1>, %s: tensor<f32>):
    onnx.yield %go : tensor<i1>
  }
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{expected 1 to 1 scan inputs, but got 2}}
  %0 = onnx.Scan %x {num_scan_inputs = 2 : i64} : (tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%s: tensor<f32>):
    onnx.yield %s : tensor<f32>
  }
  return
}

// -----

func.func @f(%x: tensor<3xf32>) {
  // expected-error @+1 {{expected at least 1 results, but got 0}}
  onnx.Scan %x, %x {num_scan_inputs = 1 : i64} : (tensor<3xf32>, tensor<3xf32>) -> () {
  ^bb0(%s: tensor<3xf32>, %e: tensor<f32>):
    onnx.yield
  }
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected a result with elements of type 'f16', but got 'f32'}}
  %0 = onnx.Cast %x {to = f16} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2xui8>) {
  // expected-error @+1 {{expected direction to be one of LEFT, RIGHT, but got 'UP'}}
  %0 = onnx.BitShift %x, %x {direction = "UP"} : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>
  return
}

// -----

func.func @f(%x: tensor<2xf32>) {
  // expected-error @+1 {{expected approximate to be one of none, tanh, but got 'erf'}}
  %0 = onnx.Gelu %x {approximate = "erf"} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%a: tensor<2x3xf32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{expected equal inner extents, but got 3 and 4}}
  %0 = onnx.MatMul %a, %b : (tensor<2x3xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @f(%a: tensor<f32>, %b: tensor<4x2xf32>) {
  // expected-error @+1 {{expected operands of rank 1 or more}}
  %0 = onnx.MatMul %a, %b : (tensor<f32>, tensor<4x2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{expected an axis within rank 2, but got 2}}
  %0 = onnx.Softmax %x {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %s: tensor<3xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected an axis within rank 2, but got -3}}
  %0:3 = onnx.LayerNormalization %x, %s, %none {axis = -3 : i64} : (tensor<2x3xf32>, tensor<3xf32>, none) -> (tensor<2x3xf32>, none, none)
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  %axes = onnx.constant dense<4> : tensor<1xi64>
  // expected-error @+1 {{expected an axis within rank 2, but got 4}}
  %0 = onnx.Squeeze %x, %axes : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{expected perm to be a permutation, but got array<i64: 0, 0>}}
  %0 = onnx.Transpose %x {perm = array<i64: 0, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>) {
  // expected-error @+1 {{expected perm of 2 axes, but got array<i64: 0>}}
  %0 = onnx.Transpose %x {perm = array<i64: 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

// expected-error @+1 {{expected at least one operand}}
%0 = onnx.Concat {axis = 0 : i64} : () -> tensor<2xf32>

// -----

func.func @f(%x: tensor<2x3xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected at least one result}}
  onnx.Split %x, %none : (tensor<2x3xf32>, none) -> ()
  return
}

// -----

func.func @f(%x: tensor<2x3xf32>, %p: tensor<4xi64>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected mode to be one of constant, reflect, edge, wrap, but got 'mirror'}}
  %0 = onnx.Pad %x, %p, %none, %none {mode = "mirror"} : (tensor<2x3xf32>, tensor<4xi64>, none, none) -> tensor<?x?xf32>
  return
}

// -----

func.func @f(%q: tensor<1x2x3x4xf32>, %x: tensor<1x2xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected K of rank 3 or 4, but got 'tensor<1x2xf32>'}}
  %0:4 = onnx.Attention %q, %x, %q, %none, %none, %none, %none
      : (tensor<1x2x3x4xf32>, tensor<1x2xf32>, tensor<1x2x3x4xf32>, none, none, none, none) -> (tensor<1x2x3x4xf32>, none, none, none)
  return
}

// -----

func.func @f(%q: tensor<1x2x3x4xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected past_key and past_value both or neither}}
  %0:4 = onnx.Attention %q, %q, %q, %none, %q, %none, %none
      : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>, none, tensor<1x2x3x4xf32>, none, none) -> (tensor<1x2x3x4xf32>, none, none, none)
  return
}

// -----

func.func @f(%q: tensor<1x3x8xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected q_num_heads and kv_num_heads with operands of rank 3}}
  %0:4 = onnx.Attention %q, %q, %q, %none, %none, %none, %none
      : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>, none, none, none, none) -> (tensor<1x3x8xf32>, none, none, none)
  return
}

// -----

func.func @f(%q: tensor<1x3x8xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected query heads to be a multiple of key-value heads, but got 4 and 3}}
  %0:4 = onnx.Attention %q, %q, %q, %none, %none, %none, %none {q_num_heads = 4 : i64, kv_num_heads = 3 : i64}
      : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>, none, none, none, none) -> (tensor<1x3x8xf32>, none, none, none)
  return
}

// -----

func.func @f(%q: tensor<1x3x8xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected positive head counts, but got 0 and 0}}
  %0:4 = onnx.ms.MultiHeadAttention %q, %q, %q, %none, %none, %none, %none, %none, %none, %none {num_heads = 0 : i64}
      : (tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>, none, none, none, none, none, none, none) -> (tensor<1x3x8xf32>, none, none, none)
  return
}

// -----

func.func @f(%x: tensor<1x3x8xf32>, %c: tensor<16x4xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected num_heads with an operand of rank 3}}
  %0 = onnx.RotaryEmbedding %x, %c, %c, %none : (tensor<1x3x8xf32>, tensor<16x4xf32>, tensor<16x4xf32>, none) -> tensor<1x3x8xf32>
  return
}

// -----

func.func @f(%a: tensor<2x32xf32>, %b: tensor<8x2x8xui8>, %s: tensor<8x2xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected 2, 4 or 8 bits, but got 3}}
  %0 = onnx.ms.MatMulNBits %a, %b, %s, %none, %none, %none {K = 32 : i64, N = 8 : i64, bits = 3 : i64, block_size = 16 : i64}
      : (tensor<2x32xf32>, tensor<8x2x8xui8>, tensor<8x2xf32>, none, none, none) -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%a: tensor<2x32xf32>, %b: tensor<8x2x8xui8>, %s: tensor<8x2xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected a block_size that is a power of two from 16, but got 24}}
  %0 = onnx.ms.MatMulNBits %a, %b, %s, %none, %none, %none {K = 32 : i64, N = 8 : i64, bits = 4 : i64, block_size = 24 : i64}
      : (tensor<2x32xf32>, tensor<8x2x8xui8>, tensor<8x2xf32>, none, none, none) -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%a: tensor<2x32xf32>, %b: tensor<8x2x8xui8>, %s: tensor<8x2xf32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected positive K and N, but got 0 and 8}}
  %0 = onnx.ms.MatMulNBits %a, %b, %s, %none, %none, %none {K = 0 : i64, N = 8 : i64, bits = 4 : i64, block_size = 16 : i64}
      : (tensor<2x32xf32>, tensor<8x2x8xui8>, tensor<8x2xf32>, none, none, none) -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4xi8>, %s: tensor<f32>) {
  %none = onnx.none : none
  // expected-error @+1 {{expected a block_size of zero or more, but got -1}}
  %0 = onnx.DequantizeLinear %x, %s, %none {block_size = -1 : i64} : (tensor<4xi8>, tensor<f32>, none) -> tensor<4xf32>
  return
}
