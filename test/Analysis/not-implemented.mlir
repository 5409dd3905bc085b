// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forms of operators that have no transfer rule refuse by name.
//
// RUN: quire-opt %s --split-input-file --test-print-element | FileCheck %s

// CHECK-LABEL: @conv_rank
// CHECK: refused: Conv 'c': not implemented: convolution of this rank
onnx.entry @conv_rank {inputs = ["x"], outputs = ["y"]}
func.func @conv_rank(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x3x3xf32> {
  %none = onnx.none : none
  %w = onnx.constant dense<1.0> : tensor<2x2x2x2xf32>
  %y = onnx.Conv %x, %w, %none : (tensor<1x2x4x4xf32>, tensor<2x2x2x2xf32>, none) -> tensor<1x2x3x3xf32> loc("c")
  return %y : tensor<1x2x3x3xf32>
}

// -----

// CHECK-LABEL: @conv_stride
// CHECK: refused: Conv 'c': not implemented: convolution with a stride
onnx.entry @conv_stride {inputs = ["x"], outputs = ["y"]}
func.func @conv_stride(%x: tensor<1x2x8xf32>) -> tensor<1x2x4xf32> {
  %none = onnx.none : none
  %w = onnx.constant dense<1.0> : tensor<2x2x1xf32>
  %y = onnx.Conv %x, %w, %none {strides = array<i64: 2>} : (tensor<1x2x8xf32>, tensor<2x2x1xf32>, none) -> tensor<1x2x4xf32> loc("c")
  return %y : tensor<1x2x4xf32>
}

// -----

// CHECK-LABEL: @conv_dilation
// CHECK: refused: Conv 'c': not implemented: dilated convolution
onnx.entry @conv_dilation {inputs = ["x"], outputs = ["y"]}
func.func @conv_dilation(%x: tensor<1x2x8xf32>) -> tensor<1x2x6xf32> {
  %none = onnx.none : none
  %w = onnx.constant dense<1.0> : tensor<2x2x2xf32>
  %y = onnx.Conv %x, %w, %none {dilations = array<i64: 2>} : (tensor<1x2x8xf32>, tensor<2x2x2xf32>, none) -> tensor<1x2x6xf32> loc("c")
  return %y : tensor<1x2x6xf32>
}

// -----

// CHECK-LABEL: @packed
// CHECK: refused: ms.RotaryEmbedding 'r': not implemented: packed batches
onnx.entry @packed {inputs = ["x"], outputs = ["y"]}
func.func @packed(%x: tensor<1x2x8xf32>) -> tensor<1x2x8xf32> {
  %p = onnx.constant dense<0> : tensor<1x2xi64>
  %t = onnx.constant dense<1.0> : tensor<4x4xf32>
  %y = onnx.ms.RotaryEmbedding %x, %p, %t, %t {is_packed_batching = 1 : i64} : (tensor<1x2x8xf32>, tensor<1x2xi64>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<1x2x8xf32> loc("r")
  return %y : tensor<1x2x8xf32>
}

// -----

// CHECK-LABEL: @batch_axes
// CHECK: refused: ms.FusedMatMul 'm': not implemented: transposed batch axes
onnx.entry @batch_axes {inputs = ["x"], outputs = ["y"]}
func.func @batch_axes(%x: tensor<2x2x2xf32>) -> tensor<2x2x2xf32> {
  %w = onnx.constant dense<1.0> : tensor<2x2x2xf32>
  %y = onnx.ms.FusedMatMul %x, %w {transBatchA = 1 : i64} : (tensor<2x2x2xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32> loc("m")
  return %y : tensor<2x2x2xf32>
}

// -----

// CHECK-LABEL: @gather_axis
// CHECK: refused: ms.GatherBlockQuantized 'g': not implemented: gather along another axis
onnx.entry @gather_axis {inputs = ["ids"], outputs = ["y"]}
func.func @gather_axis(%ids: tensor<1x2xi64>) -> tensor<4x1x2xf32> {
  %none = onnx.none : none
  %w = onnx.constant dense<1> : tensor<4x32xi8>
  %s = onnx.constant dense<1.0> : tensor<4x1xf32>
  %y = onnx.ms.GatherBlockQuantized %w, %ids, %s, %none {gather_axis = 1 : i64} : (tensor<4x32xi8>, tensor<1x2xi64>, tensor<4x1xf32>, none) -> tensor<4x1x2xf32> loc("g")
  return %y : tensor<4x1x2xf32>
}

// -----

// CHECK-LABEL: @row_zeros
// CHECK: refused: MatMulInteger 'm': not implemented: zero points per row
onnx.entry @row_zeros {inputs = ["ids"], outputs = ["y"]}
func.func @row_zeros(%ids: tensor<?x?xi64>) -> tensor<?x?x2xi32> {
  %none = onnx.none : none
  %t = onnx.constant dense<[[1, 2], [3, 5], [7, 4], [6, 9]]> : tensor<4x2xi8>
  %x = onnx.Gather %t, %ids : (tensor<4x2xi8>, tensor<?x?xi64>) -> tensor<?x?x2xi8> loc("x")
  %one = onnx.constant dense<[[1], [2], [3], [5]]> : tensor<4x1xi8>
  %z = onnx.Gather %one, %ids : (tensor<4x1xi8>, tensor<?x?xi64>) -> tensor<?x?x1xi8> loc("z")
  %w = onnx.constant dense<1> : tensor<2x2xi8>
  %y = onnx.MatMulInteger %x, %w, %z, %none : (tensor<?x?x2xi8>, tensor<2x2xi8>, tensor<?x?x1xi8>, none) -> tensor<?x?x2xi32> loc("m")
  return %y : tensor<?x?x2xi32>
}

// -----

// CHECK-LABEL: @data_scales
// CHECK: refused: DequantizeLinear 'd': not implemented: scales made of data
onnx.entry @data_scales {inputs = ["ids"], outputs = ["y"]}
func.func @data_scales(%ids: tensor<?x?xi64>) -> tensor<?x?x2xf32> {
  %none = onnx.none : none
  %t = onnx.constant dense<[[1, 2], [3, 5], [7, 4], [6, 9]]> : tensor<4x2xi8>
  %x = onnx.Gather %t, %ids : (tensor<4x2xi8>, tensor<?x?xi64>) -> tensor<?x?x2xi8> loc("x")
  %s = onnx.constant dense<[[1.0, 2.0], [3.0, 5.0], [7.0, 4.0], [6.0, 9.0]]> : tensor<4x2xf32>
  %z = onnx.Gather %s, %ids : (tensor<4x2xf32>, tensor<?x?xi64>) -> tensor<?x?x2xf32> loc("z")
  %y = onnx.DequantizeLinear %x, %z, %none : (tensor<?x?x2xi8>, tensor<?x?x2xf32>, none) -> tensor<?x?x2xf32> loc("d")
  return %y : tensor<?x?x2xf32>
}

// -----

// CHECK-LABEL: @segments
// CHECK: refused: ms.EmbedLayerNormalization 'e': not implemented: segment ids
onnx.entry @segments {inputs = ["ids", "segments"], outputs = ["y"]}
func.func @segments(%ids: tensor<?x?xi32>, %segments: tensor<?x?xi32>) -> tensor<?x?x2xf32> {
  %none = onnx.none : none
  %t = onnx.constant dense<1.0> : tensor<4x2xf32>
  %g = onnx.constant dense<1.0> : tensor<2xf32>
  %y, %m, %s = onnx.ms.EmbedLayerNormalization %ids, %segments, %t, %t, %t, %g, %g, %none, %none : (tensor<?x?xi32>, tensor<?x?xi32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, none, none) -> (tensor<?x?x2xf32>, none, none) loc("e")
  return %y : tensor<?x?x2xf32>
}
