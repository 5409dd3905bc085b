// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What has no rule is an error at its operator.
// RUN: quire-opt %s --split-input-file --convert-onnx-to-linalg --verify-diagnostics --allow-unregistered-dialect

func.func @no_rule(%x: tensor<1x?x4xf32>) {
  // expected-error @below {{not implemented: convert onnx.Acosh}}
  %y = onnx.Acosh %x : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @unranked(%x: tensor<*xf32>) {
  // expected-error @below {{not implemented: convert onnx.Neg: a value that is no ranked tensor}}
  %y = onnx.Neg %x : (tensor<*xf32>) -> tensor<*xf32>
  "test.use"(%y) : (tensor<*xf32>) -> ()
  return
}

// -----

func.func @two_extents(%x: tensor<?x?xf32>) {
  // expected-error @below {{not implemented: convert onnx.Neg: a tensor with more than one unknown extent}}
  %y = onnx.Neg %x : (tensor<?x?xf32>) -> tensor<?x?xf32>
  "test.use"(%y) : (tensor<?x?xf32>) -> ()
  return
}

// -----

func.func @unsigned(%x: tensor<?xui8>) {
  // expected-error @below {{not implemented: convert onnx.Identity: unsigned or other elements}}
  %y = onnx.Identity %x : (tensor<?xui8>) -> tensor<?xui8>
  "test.use"(%y) : (tensor<?xui8>) -> ()
  return
}

// -----

func.func @mixes_rows(%x: tensor<4x?xf32>) {
  %shape = onnx.constant dense<[-1, 4]> : tensor<2xi64>
  // expected-error @below {{not implemented: convert onnx.Reshape: it mixes rows with other axes}}
  %y = onnx.Reshape %x, %shape : (tensor<4x?xf32>, tensor<2xi64>) -> tensor<?x4xf32>
  "test.use"(%y) : (tensor<?x4xf32>) -> ()
  return
}

// -----

func.func @reduces_rows(%x: tensor<1x?x4xf32>) {
  %axes = onnx.constant dense<1> : tensor<1xi64>
  // expected-error @below {{not implemented: convert onnx.ReduceSum: it reduces rows}}
  %y = onnx.ReduceSum %x, %axes : (tensor<1x?x4xf32>, tensor<1xi64>) -> tensor<1x1x4xf32>
  "test.use"(%y) : (tensor<1x1x4xf32>) -> ()
  return
}

// -----

func.func @unknown_axes(%x: tensor<1x?x4xf32>, %axes: tensor<1xi64>) {
  // expected-error @below {{not implemented: convert onnx.ReduceSum: the axes are no constant}}
  %y = onnx.ReduceSum %x, %axes : (tensor<1x?x4xf32>, tensor<1xi64>) -> tensor<1x?x1xf32>
  "test.use"(%y) : (tensor<1x?x1xf32>) -> ()
  return
}

// -----

func.func @slices_rows(%x: tensor<1x?x4xf32>) {
  %none = onnx.none : none
  %start = onnx.constant dense<1> : tensor<1xi64>
  %end = onnx.constant dense<9223372036854775807> : tensor<1xi64>
  // expected-error @below {{not implemented: convert onnx.Slice: it slices rows or its bounds are no constants}}
  %y = onnx.Slice %x, %start, %end, %start, %none : (tensor<1x?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, none) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @slices_backwards(%x: tensor<1x?x4xf32>) {
  %start = onnx.constant dense<-1> : tensor<1xi64>
  %end = onnx.constant dense<-9223372036854775807> : tensor<1xi64>
  %axis = onnx.constant dense<2> : tensor<1xi64>
  // expected-error @below {{not implemented: convert onnx.Slice: negative step}}
  %y = onnx.Slice %x, %start, %end, %axis, %start : (tensor<1x?x4xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @joins_rows(%x: tensor<1x?x4xf32>) {
  // expected-error @below {{not implemented: convert onnx.Concat: rows are joined}}
  %y = onnx.Concat %x, %x {axis = 1 : i64} : (tensor<1x?x4xf32>, tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @takes_row(%x: tensor<1x?x4xf32>) {
  %last = onnx.constant dense<-1> : tensor<i64>
  // expected-error @below {{not implemented: convert onnx.Gather: it takes one row}}
  %y = onnx.Gather %x, %last {axis = 1 : i64} : (tensor<1x?x4xf32>, tensor<i64>) -> tensor<1x4xf32>
  "test.use"(%y) : (tensor<1x4xf32>) -> ()
  return
}

// -----

func.func @gathers_rows(%x: tensor<1x?x4xf32>, %i: tensor<1x?xi64>) {
  // expected-error @below {{not implemented: convert onnx.Gather: it gathers rows}}
  %y = onnx.Gather %x, %i {axis = 1 : i64} : (tensor<1x?x4xf32>, tensor<1x?xi64>) -> tensor<1x1x?x4xf32>
  "test.use"(%y) : (tensor<1x1x?x4xf32>) -> ()
  return
}

// -----

func.func @sums_over_rows(%x: tensor<1x4x?xf32>, %y: tensor<1x?x4xf32>) {
  // expected-error @below {{not implemented: convert onnx.MatMul: it sums over rows}}
  %z = onnx.MatMul %x, %y : (tensor<1x4x?xf32>, tensor<1x?x4xf32>) -> tensor<1x4x4xf32>
  "test.use"(%z) : (tensor<1x4x4xf32>) -> ()
  return
}

// -----

func.func @normalises_rows(%x: tensor<1x?x4xf32>) {
  // expected-error @below {{not implemented: convert onnx.Softmax: it normalises over rows}}
  %y = onnx.Softmax %x {axis = 1 : i64} : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @integer_power(%x: tensor<1x?xi64>) {
  // expected-error @below {{not implemented: convert onnx.Pow: integer base}}
  %y = onnx.Pow %x, %x : (tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<1x?xi64>
  "test.use"(%y) : (tensor<1x?xi64>) -> ()
  return
}

// -----

func.func @no_heads(%x: tensor<1x?x64xf32>, %p: tensor<1x?xi64>, %c: tensor<9x8xf32>) {
  // expected-error @below {{not implemented: convert onnx.ms.RotaryEmbedding: the number of heads is not known}}
  %y = onnx.ms.RotaryEmbedding %x, %p, %c, %c {rotary_embedding_dim = 16 : i64} : (tensor<1x?x64xf32>, tensor<1x?xi64>, tensor<9x8xf32>, tensor<9x8xf32>) -> tensor<1x?x64xf32>
  "test.use"(%y) : (tensor<1x?x64xf32>) -> ()
  return
}

// -----

onnx.initializer @w {file = "m.data", offset = 0 : i64, bytes = 1024 : i64} : tensor<16x16xf32>
func.func @outside_of_a_step(%x: tensor<1x?x16xf32>) {
  // expected-error @below {{not implemented: convert onnx.weight: it is outside of a step}}
  %w = onnx.weight @w : tensor<16x16xf32>
  %y = onnx.MatMul %x, %w : (tensor<1x?x16xf32>, tensor<16x16xf32>) -> tensor<1x?x16xf32>
  "test.use"(%y) : (tensor<1x?x16xf32>) -> ()
  return
}

// -----

// A product with a weight that is computed is right, but slow.
onnx.initializer @w {file = "m.data", offset = 0 : i64, bytes = 16384 : i64} : tensor<64x64xf32>
func.func @computed_weight(%batch: !kvrt.batch, %x: tensor<1x?x64xf32>) {
  %w = onnx.weight @w : tensor<64x64xf32>
  %v = onnx.Neg %w : (tensor<64x64xf32>) -> tensor<64x64xf32>
  // expected-remark @below {{the weight is not packed}}
  %y = onnx.MatMul %x, %v : (tensor<1x?x64xf32>, tensor<64x64xf32>) -> tensor<1x?x64xf32>
  "test.use"(%y) : (tensor<1x?x64xf32>) -> ()
  return
}
