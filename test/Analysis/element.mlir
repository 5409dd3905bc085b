// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A line for each transfer rule: extents and the element at a generic index.
//
// RUN: quire-opt %s --split-input-file --test-print-element | FileCheck %s

// CHECK-LABEL: @shapes
// CHECK: shape [2] ([-i0 >= 0] ? B : L)
// CHECK: length [1] L
// CHECK: position [L] P + i0
// CHECK: column [L, 1] P + i0
// CHECK: visible [L, L + P] [P + i0 - i1 >= 0]
// CHECK: bias [L, L + P] ([P + i0 - i1 >= 0] ? 0 : -inf)
onnx.entry @shapes {inputs = ["input_ids", "past"], outputs = ["y", "present"]}
func.func @shapes(%ids: tensor<?x?xi64>, %past: tensor<?x2x?x4xf32>) -> (tensor<?x?xf32>, tensor<?x2x?x4xf32>) {
  %none = onnx.none : none
  %e = onnx.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %row = onnx.Gather %e, %ids : (tensor<2x1xf32>, tensor<?x?xi64>) -> tensor<?x?x1xf32> loc("row")
  %zero = onnx.constant dense<0> : tensor<i64>
  %one = onnx.constant dense<1> : tensor<i64>
  %a0 = onnx.constant dense<0> : tensor<1xi64>
  %a1 = onnx.constant dense<1> : tensor<1xi64>
  %a2 = onnx.constant dense<2> : tensor<1xi64>
  %two = onnx.constant dense<2> : tensor<i64>
  %present = onnx.Concat %past, %past {axis = 2 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32> loc("present")
  %shape = onnx.Shape %ids : (tensor<?x?xi64>) -> tensor<2xi64> loc("shape")
  %length = onnx.Slice %shape, %a1, %a2, %a0, %none : (tensor<2xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, none) -> tensor<1xi64> loc("length")
  %pshape = onnx.Shape %past : (tensor<?x2x?x4xf32>) -> tensor<4xi64> loc("pshape")
  %p = onnx.Gather %pshape, %two : (tensor<4xi64>, tensor<i64>) -> tensor<i64> loc("p")
  %l = onnx.Gather %shape, %one : (tensor<2xi64>, tensor<i64>) -> tensor<i64> loc("l")
  %t = onnx.Add %p, %l : (tensor<i64>, tensor<i64>) -> tensor<i64> loc("t")
  %position = onnx.Range %p, %t, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64> loc("position")
  %keys = onnx.Range %zero, %t, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64> loc("keys")
  %column = onnx.Unsqueeze %position, %a1 : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64> loc("column")
  %visible = onnx.LessOrEqual %keys, %column : (tensor<?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1> loc("visible")
  %open = onnx.constant dense<0.0> : tensor<f32>
  %hidden = onnx.constant dense<0xFF800000> : tensor<f32>
  %bias = onnx.Where %visible, %open, %hidden : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32> loc("bias")
  return %bias, %present : tensor<?x?xf32>, tensor<?x2x?x4xf32>
}

// -----

// Data is of one token; mixing tokens, sequences or an unknown operator is no proof.
// CHECK-LABEL: @tokens
// CHECK: row [B, L, 8] tab<@embed>(data<input_ids>[i1](), i2)
// CHECK: norm [B, L, 8] data<norm>[i1](i2)
// CHECK: product [B, L, 4] data<product>[i1](i2)
// CHECK: heads [B, L, 2, 2] data<product>[i1](2*i2 + i3)
// CHECK: swapped [B, 2, L, 2] data<product>[i2](2*i1 + i3)
// CHECK: tokens [B, 1, 8] bad<ReduceSum 'tokens': reduces or mixes over the token axis>
// CHECK: sequences [1, L, 8] bad<ReduceSum 'sequences': reduces or mixes over the batch axis>
// CHECK: cancelled [B, L, 8] bad<ReduceSum 'tokens': reduces or mixes over the token axis>
// CHECK: last [B, 1, 8] tab<@embed>(data<input_ids>[L - 1](), i2)
// CHECK: unknown [{{.*}}, 8] bad<vendor::Fancy 'unknown': no rule for this operator>
onnx.initializer @embed {file = "w", offset = 0 : i64, bytes = 512 : i64} : tensor<16x8xf32>
onnx.initializer @w {file = "w", offset = 0 : i64, bytes = 128 : i64} : tensor<8x4xf32>
onnx.initializer @g {file = "w", offset = 0 : i64, bytes = 32 : i64} : tensor<8xf32>
onnx.entry @tokens {inputs = ["input_ids"], outputs = ["y"]}
func.func @tokens(%ids: tensor<?x?xi64>) -> tensor<?x2x?x2xf32> {
  %none = onnx.none : none
  %e = onnx.weight @embed : tensor<16x8xf32> loc("e")
  %w = onnx.weight @w : tensor<8x4xf32> loc("w")
  %g = onnx.weight @g : tensor<8xf32> loc("g")
  %a0 = onnx.constant dense<0> : tensor<1xi64>
  %a1 = onnx.constant dense<1> : tensor<1xi64>
  %m1 = onnx.constant dense<-1> : tensor<1xi64>
  %end = onnx.constant dense<9223372036854775807> : tensor<1xi64>
  %split = onnx.constant dense<[0, 0, 2, 2]> : tensor<4xi64>
  %row = onnx.Gather %e, %ids : (tensor<16x8xf32>, tensor<?x?xi64>) -> tensor<?x?x8xf32> loc("row")
  %norm = onnx.RMSNormalization %row, %g : (tensor<?x?x8xf32>, tensor<8xf32>) -> tensor<?x?x8xf32> loc("norm")
  %product = onnx.MatMul %norm, %w : (tensor<?x?x8xf32>, tensor<8x4xf32>) -> tensor<?x?x4xf32> loc("product")
  %heads = onnx.Reshape %product, %split : (tensor<?x?x4xf32>, tensor<4xi64>) -> tensor<?x?x2x2xf32> loc("heads")
  %swapped = onnx.Transpose %heads {perm = array<i64: 0, 2, 1, 3>} : (tensor<?x?x2x2xf32>) -> tensor<?x2x?x2xf32> loc("swapped")
  %tokens = onnx.ReduceSum %row, %a1 : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<?x1x8xf32> loc("tokens")
  %sequences = onnx.ReduceSum %row, %a0 : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<1x?x8xf32> loc("sequences")
  %added = onnx.Add %row, %tokens : (tensor<?x?x8xf32>, tensor<?x1x8xf32>) -> tensor<?x?x8xf32> loc("added")
  %cancelled = onnx.Sub %added, %tokens : (tensor<?x?x8xf32>, tensor<?x1x8xf32>) -> tensor<?x?x8xf32> loc("cancelled")
  %last = onnx.Slice %row, %m1, %end, %a1, %none : (tensor<?x?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, none) -> tensor<?x?x8xf32> loc("last")
  %unknown = onnx.custom "vendor" "Fancy" %row : (tensor<?x?x8xf32>) -> tensor<?x8xf32> loc("unknown")
  return %swapped : tensor<?x2x?x2xf32>
}

// -----

// Extents must be equal or 1: a batch is never a length.
// CHECK-LABEL: @lengths
// CHECK: refused: Add 'outer': extents B and L differ
onnx.entry @lengths {inputs = ["input_ids"], outputs = ["y"]}
func.func @lengths(%ids: tensor<?x?xi64>) -> tensor<?x?xi64> {
  %turned = onnx.Transpose %ids {perm = array<i64: 1, 0>} : (tensor<?x?xi64>) -> tensor<?x?xi64> loc("turned")
  %outer = onnx.Add %ids, %turned : (tensor<?x?xi64>, tensor<?x?xi64>) -> tensor<?x?xi64> loc("outer")
  %e = onnx.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %row = onnx.Gather %e, %ids : (tensor<2x1xf32>, tensor<?x?xi64>) -> tensor<?x?x1xf32> loc("row")
  return %outer : tensor<?x?xi64>
}

// -----

// Malformed uses refuse.
// CHECK-LABEL: @malformed
// CHECK: refused: Reshape 'bad': extents 8 and 6 differ
onnx.entry @malformed {inputs = [], outputs = ["y"]}
func.func @malformed() -> tensor<?x?xi64> {
  %shape = onnx.constant dense<[2, 4]> : tensor<2xi64>
  %six = onnx.constant dense<[0, 1, 2, 3, 4, 9]> : tensor<6xi64>
  %bad = onnx.Reshape %six, %shape : (tensor<6xi64>, tensor<2xi64>) -> tensor<?x?xi64> loc("bad")
  return %bad : tensor<?x?xi64>
}

// -----

// Whole tables are compared with closed forms.
// CHECK-LABEL: @tables
// CHECK: ramp [4] 3*i0 + 2
// CHECK: triangle [8, 8] ([i0 - i1 >= 0] ? 1 : 0)
// CHECK: almost [6, 6] tab<almost>(i0, i1)
// CHECK: infinite [2] bad<constant 'infinite' has infinities and no closed form>
// CHECK: picked [] 8
onnx.entry @tables {inputs = [], outputs = ["y"]}
func.func @tables() -> tensor<i64> {
  %ramp = onnx.constant dense<[2, 5, 8, 11]> : tensor<4xi64> loc("ramp")
  %triangle = onnx.constant dense<[[1,0,0,0,0,0,0,0],[1,1,0,0,0,0,0,0],[1,1,1,0,0,0,0,0],[1,1,1,1,0,0,0,0],[1,1,1,1,1,0,0,0],[1,1,1,1,1,1,0,0],[1,1,1,1,1,1,1,0],[1,1,1,1,1,1,1,1]]> : tensor<8x8xi8> loc("triangle")
  %almost = onnx.constant dense<[[1,0,0,0,0,0],[1,1,0,0,0,0],[1,1,1,0,0,0],[1,1,1,1,0,0],[1,0,1,1,1,0],[1,1,1,1,1,1]]> : tensor<6x6xi8> loc("almost")
  %infinite = onnx.constant dense<[0.0, 0xFF800000]> : tensor<2xf32> loc("infinite")
  %two = onnx.constant dense<2> : tensor<i64>
  %picked = onnx.Gather %ramp, %two : (tensor<4xi64>, tensor<i64>) -> tensor<i64> loc("picked")
  return %picked : tensor<i64>
}

// -----

// Integer division truncates, and a slice from a length counts from the end only if that is certain.
// CHECK-LABEL: @bounds
// CHECK: chunk [L] div(P + i0, 8)
// CHECK: before [L] truncdiv(P + i0 - 8, 8)
// CHECK: ends [L] P + i0
onnx.entry @bounds {inputs = ["position_ids", "past"], outputs = ["y", "z"]}
func.func @bounds(%position: tensor<1x?xi64>, %past: tensor<1x2x?x4xf32>) -> (tensor<?xi64>, tensor<?xi64>) {
  %none = onnx.none : none
  %a0 = onnx.constant dense<0> : tensor<1xi64>
  %eight = onnx.constant dense<8> : tensor<i64>
  %row = onnx.Squeeze %position, %a0 : (tensor<1x?xi64>, tensor<1xi64>) -> tensor<?xi64> loc("row")
  %angle = onnx.Cast %position {to = f32} : (tensor<1x?xi64>) -> tensor<1x?xf32> loc("angle")
  %cosine = onnx.Cos %angle : (tensor<1x?xf32>) -> tensor<1x?xf32> loc("cosine")
  %chunk = onnx.Div %row, %eight : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("chunk")
  %less = onnx.Sub %row, %eight : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("less")
  %before = onnx.Div %less, %eight : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("before")
  %n = onnx.Shape %row : (tensor<?xi64>) -> tensor<1xi64> loc("n")
  %minus = onnx.Neg %n : (tensor<1xi64>) -> tensor<1xi64> loc("minus")
  %end = onnx.constant dense<9223372036854775807> : tensor<1xi64>
  %ends = onnx.Slice %row, %minus, %end, %a0, %none : (tensor<?xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, none) -> tensor<?xi64> loc("ends")
  return %before, %ends : tensor<?xi64>, tensor<?xi64>
}
