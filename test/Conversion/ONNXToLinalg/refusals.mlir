// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Forms of operators that a rule does not take.
// RUN: quire-opt %s --split-input-file --convert-onnx-to-linalg --verify-diagnostics --allow-unregistered-dialect

func.func @tile(%x: tensor<1x?x4xf32>, %r: tensor<3xi64>) {
  // expected-error @below {{not implemented: convert onnx.Tile: repeats are no constant}}
  %y = onnx.Tile %x, %r : (tensor<1x?x4xf32>, tensor<3xi64>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @tile_rows(%x: tensor<1x?x4xf32>) {
  %r = onnx.constant dense<[1, 2, 1]> : tensor<3xi64>
  // expected-error @below {{not implemented: convert onnx.Tile: rows are repeated}}
  %y = onnx.Tile %x, %r : (tensor<1x?x4xf32>, tensor<3xi64>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @split_rows(%x: tensor<1x?x4xf32>) {
  %s = onnx.constant dense<[1, 1]> : tensor<2xi64>
  // expected-error @below {{not implemented: convert onnx.Split: rows are split}}
  %y:2 = onnx.Split %x, %s {axis = 1 : i64} : (tensor<1x?x4xf32>, tensor<2xi64>) -> (tensor<1x?x4xf32>, tensor<1x?x4xf32>)
  "test.use"(%y#0) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @expand(%x: tensor<1x1x4xf32>) {
  %s = onnx.constant dense<[1, -1, 4]> : tensor<3xi64>
  // expected-error @below {{not implemented: convert onnx.Expand: the rows come from the shape only}}
  %y = onnx.Expand %x, %s : (tensor<1x1x4xf32>, tensor<3xi64>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @constant_of_rows(%s: tensor<2xi64>) {
  // expected-error @below {{not implemented: convert onnx.ConstantOfShape: the rows come from the shape only}}
  %y = onnx.ConstantOfShape %s : (tensor<2xi64>) -> tensor<1x?xf32>
  "test.use"(%y) : (tensor<1x?xf32>) -> ()
  return
}

// -----

func.func @range(%n: tensor<i64>) {
  // expected-error @below {{not implemented: convert onnx.Range: its bounds are no integer constants}}
  %y = onnx.Range %n, %n, %n : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  "test.use"(%y) : (tensor<?xi64>) -> ()
  return
}

// -----

func.func @pad_mode(%x: tensor<1x?x4xf32>) {
  %none = onnx.none : none
  %p = onnx.constant dense<[0, 0, 1, 0, 0, 1]> : tensor<6xi64>
  // expected-error @below {{not implemented: convert onnx.Pad: pads are no constants, or the mode is not constant}}
  %y = onnx.Pad %x, %p, %none, %none {mode = "edge"} : (tensor<1x?x4xf32>, tensor<6xi64>, none, none) -> tensor<1x?x6xf32>
  "test.use"(%y) : (tensor<1x?x6xf32>) -> ()
  return
}

// -----

func.func @pad_negative(%x: tensor<1x?x4xf32>) {
  %none = onnx.none : none
  %p = onnx.constant dense<[0, 0, -1, 0, 0, 0]> : tensor<6xi64>
  // expected-error @below {{not implemented: convert onnx.Pad: negative pads}}
  %y = onnx.Pad %x, %p, %none, %none : (tensor<1x?x4xf32>, tensor<6xi64>, none, none) -> tensor<1x?x3xf32>
  "test.use"(%y) : (tensor<1x?x3xf32>) -> ()
  return
}

// -----

func.func @pad_value(%x: tensor<1x?x4xf32>, %v: tensor<f32>) {
  %none = onnx.none : none
  %p = onnx.constant dense<[0, 0, 1, 0, 0, 0]> : tensor<6xi64>
  // expected-error @below {{not implemented: convert onnx.Pad: the padding value is no constant}}
  %y = onnx.Pad %x, %p, %v, %none : (tensor<1x?x4xf32>, tensor<6xi64>, tensor<f32>, none) -> tensor<1x?x5xf32>
  "test.use"(%y) : (tensor<1x?x5xf32>) -> ()
  return
}

// -----

func.func @pad_rows(%x: tensor<1x?x4xf32>) {
  %none = onnx.none : none
  %p = onnx.constant dense<[0, 1, 0, 0, 0, 0]> : tensor<6xi64>
  // expected-error @below {{not implemented: convert onnx.Pad: rows are padded}}
  %y = onnx.Pad %x, %p, %none, %none : (tensor<1x?x4xf32>, tensor<6xi64>, none, none) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @vector_product(%x: tensor<1x?x4xf32>, %v: tensor<4xf32>) {
  // expected-error @below {{not implemented: convert onnx.MatMul: an operand of rank 1}}
  %y = onnx.MatMul %x, %v : (tensor<1x?x4xf32>, tensor<4xf32>) -> tensor<1x?xf32>
  "test.use"(%y) : (tensor<1x?xf32>) -> ()
  return
}

// -----

func.func @integer_product(%x: tensor<1x?x4xi64>, %v: tensor<4x4xi64>) {
  // expected-error @below {{not implemented: convert onnx.MatMul: integer elements}}
  %y = onnx.MatMul %x, %v : (tensor<1x?x4xi64>, tensor<4x4xi64>) -> tensor<1x?x4xi64>
  "test.use"(%y) : (tensor<1x?x4xi64>) -> ()
  return
}

// -----

func.func @batch_axes(%x: tensor<1x?x4xf32>, %v: tensor<1x4x4xf32>) {
  // expected-error @below {{not implemented: convert onnx.ms.FusedMatMul: transBatchA or transBatchB}}
  %y = onnx.ms.FusedMatMul %x, %v {transBatchA = 1 : i64} : (tensor<1x?x4xf32>, tensor<1x4x4xf32>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @float_remainder(%x: tensor<1x?xf32>) {
  // expected-error @below {{not implemented: convert onnx.Mod: floating-point remainder without fmod}}
  %y = onnx.Mod %x, %x : (tensor<1x?xf32>, tensor<1x?xf32>) -> tensor<1x?xf32>
  "test.use"(%y) : (tensor<1x?xf32>) -> ()
  return
}

// -----

func.func @integer_root(%x: tensor<1x?xi64>) {
  // expected-error @below {{not implemented: convert onnx.Sqrt: elements of type integer}}
  %y = onnx.Sqrt %x : (tensor<1x?xi64>) -> tensor<1x?xi64>
  "test.use"(%y) : (tensor<1x?xi64>) -> ()
  return
}

// -----

func.func @integer_activation(%x: tensor<1x?xi64>) {
  // expected-error @below {{not implemented: convert onnx.Relu: integer elements}}
  %y = onnx.Relu %x : (tensor<1x?xi64>) -> tensor<1x?xi64>
  "test.use"(%y) : (tensor<1x?xi64>) -> ()
  return
}

// -----

func.func @integer_mean(%x: tensor<1x?x4xi64>) {
  %axes = onnx.constant dense<2> : tensor<1xi64>
  // expected-error @below {{not implemented: convert onnx.ReduceMean: integer elements}}
  %y = onnx.ReduceMean %x, %axes : (tensor<1x?x4xi64>, tensor<1xi64>) -> tensor<1x?x1xi64>
  "test.use"(%y) : (tensor<1x?x1xi64>) -> ()
  return
}

// -----

func.func @integer_softmax(%x: tensor<1x?x4xi64>) {
  // expected-error @below {{not implemented: convert onnx.Softmax: integer elements}}
  %y = onnx.Softmax %x : (tensor<1x?x4xi64>) -> tensor<1x?x4xi64>
  "test.use"(%y) : (tensor<1x?x4xi64>) -> ()
  return
}

// -----

func.func @uses_deviation(%x: tensor<1x?x4xf32>, %g: tensor<4xf32>) {
  // expected-error @below {{not implemented: convert onnx.SimplifiedLayerNormalization: the inverse deviation is used}}
  %y, %d = onnx.SimplifiedLayerNormalization %x, %g : (tensor<1x?x4xf32>, tensor<4xf32>) -> (tensor<1x?x4xf32>, tensor<1x?x1xf32>)
  "test.use"(%y, %d) : (tensor<1x?x4xf32>, tensor<1x?x1xf32>) -> ()
  return
}

// -----

func.func @uses_mean(%x: tensor<1x?x4xf32>, %g: tensor<4xf32>) {
  %none = onnx.none : none
  // expected-error @below {{not implemented: convert onnx.ms.SkipLayerNormalization: the mean or the inverse deviation is used}}
  %y, %m, %d, %s = onnx.ms.SkipLayerNormalization %x, %x, %g, %none, %none : (tensor<1x?x4xf32>, tensor<1x?x4xf32>, tensor<4xf32>, none, none) -> (tensor<1x?x4xf32>, tensor<1x?x1xf32>, none, none)
  "test.use"(%y, %m) : (tensor<1x?x4xf32>, tensor<1x?x1xf32>) -> ()
  return
}

// -----

func.func @normalises_rows(%x: tensor<1x?x4xf32>, %g: tensor<4xf32>) {
  // expected-error @below {{not implemented: convert onnx.RMSNormalization: it normalises over rows}}
  %y = onnx.RMSNormalization %x, %g {axis = 1 : i64} : (tensor<1x?x4xf32>, tensor<4xf32>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @one_position(%x: tensor<1x?x64xf32>, %p: tensor<1xi64>, %c: tensor<9x8xf32>) {
  // expected-error @below {{not implemented: convert onnx.ms.RotaryEmbedding: positions that are not given for each row}}
  %y = onnx.ms.RotaryEmbedding %x, %p, %c, %c {num_heads = 4 : i64} : (tensor<1x?x64xf32>, tensor<1xi64>, tensor<9x8xf32>, tensor<9x8xf32>) -> tensor<1x?x64xf32>
  "test.use"(%y) : (tensor<1x?x64xf32>) -> ()
  return
}

// -----

func.func @scaled(%x: tensor<1x?x64xf32>, %p: tensor<1x?xi64>, %c: tensor<9x8xf32>) {
  // expected-error @below {{not implemented: convert onnx.ms.RotaryEmbedding: scale}}
  %y = onnx.ms.RotaryEmbedding %x, %p, %c, %c {num_heads = 4 : i64, scale = 2.0 : f32} : (tensor<1x?x64xf32>, tensor<1x?xi64>, tensor<9x8xf32>, tensor<9x8xf32>) -> tensor<1x?x64xf32>
  "test.use"(%y) : (tensor<1x?x64xf32>) -> ()
  return
}

// -----

func.func @caches(%x: tensor<1x?x64xf32>, %p: tensor<1x?xi64>, %c: tensor<9x5xf32>) {
  // expected-error @below {{not implemented: convert onnx.ms.RotaryEmbedding: expected caches of 8 columns, but got 5}}
  %y = onnx.ms.RotaryEmbedding %x, %p, %c, %c {num_heads = 4 : i64} : (tensor<1x?x64xf32>, tensor<1x?xi64>, tensor<9x5xf32>, tensor<9x5xf32>) -> tensor<1x?x64xf32>
  "test.use"(%y) : (tensor<1x?x64xf32>) -> ()
  return
}

// -----

func.func @gather_elements(%x: tensor<1x?x4xf32>, %i: tensor<1x?x4xi64>) {
  // expected-error @below {{not implemented: convert onnx.GatherElements: it gathers rows}}
  %y = onnx.GatherElements %x, %i {axis = 1 : i64} : (tensor<1x?x4xf32>, tensor<1x?x4xi64>) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @gather_nd(%x: tensor<?x4xf32>, %i: tensor<3x1xi64>) {
  // expected-error @below {{not implemented: convert onnx.GatherND: it gathers rows}}
  %y = onnx.GatherND %x, %i : (tensor<?x4xf32>, tensor<3x1xi64>) -> tensor<3x4xf32>
  "test.use"(%y) : (tensor<3x4xf32>) -> ()
  return
}

// -----

func.func @gather_nd_batches(%x: tensor<4x4x?xf32>, %i: tensor<4x1xi64>) {
  // expected-error @below {{not implemented: convert onnx.GatherND: batch_dims, or positions of unknown length}}
  %y = onnx.GatherND %x, %i {batch_dims = 1 : i64} : (tensor<4x4x?xf32>, tensor<4x1xi64>) -> tensor<4x?xf32>
  "test.use"(%y) : (tensor<4x?xf32>) -> ()
  return
}

// -----

// The operator is what is missing, not its constants; what it belongs to has the words of the page on refusals.
// RUN: grep -F '`(quantised weights)`, `(quantised activations)` and `(mixtures of experts)`' %source/docs/tutorials/reading-a-refusal.md
func.func @quantized(%x: tensor<1x?x32xf32>) {
  %none = onnx.none : none
  %w = onnx.constant dense<1> : tensor<2x1x16xui8>
  %s = onnx.constant dense<1.0> : tensor<2xf32>
  // expected-error @below {{not implemented: convert onnx.ms.MatMulNBits (quantised weights)}}
  %y = onnx.ms.MatMulNBits %x, %w, %s, %none, %none, %none {K = 32 : i64, N = 2 : i64, bits = 4 : i64, block_size = 32 : i64}
      : (tensor<1x?x32xf32>, tensor<2x1x16xui8>, tensor<2xf32>, none, none, none) -> tensor<1x?x2xf32>
  "test.use"(%y) : (tensor<1x?x2xf32>) -> ()
  return
}

// -----

func.func @unknown_extents(%batch: !kvrt.batch) {
  // expected-error @below {{not implemented: convert onnx.constant: elements that are not dense}}
  %c = onnx.constant sparse<[[0]], [1.0]> : tensor<4xf32>
  "test.use"(%c) : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @dequantized(%x: tensor<1x?x4xi8>, %s: tensor<f32>) {
  %none = onnx.none : none
  // expected-error @below {{not implemented: convert onnx.DequantizeLinear (quantised weights)}}
  %y = onnx.DequantizeLinear %x, %s, %none : (tensor<1x?x4xi8>, tensor<f32>, none) -> tensor<1x?x4xf32>
  "test.use"(%y) : (tensor<1x?x4xf32>) -> ()
  return
}

// -----

func.func @quantized_rows(%x: tensor<1x?x4xf32>, %s: tensor<f32>, %z: tensor<i8>) {
  // expected-error @below {{not implemented: convert onnx.QuantizeLinear (quantised activations)}}
  %y = onnx.QuantizeLinear %x, %s, %z : (tensor<1x?x4xf32>, tensor<f32>, tensor<i8>) -> tensor<1x?x4xi8>
  "test.use"(%y) : (tensor<1x?x4xi8>) -> ()
  return
}

// -----

func.func @experts(%x: tensor<?x4xf32>, %p: tensor<?x2xf32>, %up: tensor<2x8x4xf32>, %down: tensor<2x4x8xf32>) {
  %none = onnx.none : none
  // expected-error @below {{not implemented: convert onnx.ms.MoE (mixtures of experts)}}
  %y = onnx.ms.MoE %x, %p, %up, %none, %down, %none, %none, %none {k = 1 : i64}
      : (tensor<?x4xf32>, tensor<?x2xf32>, tensor<2x8x4xf32>, none, tensor<2x4x8xf32>, none, none, none) -> tensor<?x4xf32>
  "test.use"(%y) : (tensor<?x4xf32>) -> ()
  return
}

// -----

// Experts spelled in primitive operators: what is chosen goes into a later product.
onnx.initializer @w {file = "m.data", offset = 0 : i64, bytes = 1024 : i64} : tensor<2x128xf32>
func.func @routed(%batch: !kvrt.batch, %scores: tensor<1x?x8xf32>) {
  %k = onnx.constant dense<2> : tensor<1xi64>
  // expected-error @below {{not implemented: convert onnx.TopK (mixtures of experts)}}
  %v, %i = onnx.TopK %scores, %k : (tensor<1x?x8xf32>, tensor<1xi64>) -> (tensor<1x?x2xf32>, tensor<1x?x2xi64>)
  %w = onnx.weight @w : tensor<2x128xf32>
  %y = onnx.MatMul %v, %w : (tensor<1x?x2xf32>, tensor<2x128xf32>) -> tensor<1x?x128xf32>
  "test.use"(%y) : (tensor<1x?x128xf32>) -> ()
  return
}

// -----

func.func @sampled(%logits: tensor<1x?x8xf32>) {
  %k = onnx.constant dense<2> : tensor<1xi64>
  // expected-error-re @below {{not implemented: convert onnx.TopK{{$}}}}
  %v, %i = onnx.TopK %logits, %k : (tensor<1x?x8xf32>, tensor<1xi64>) -> (tensor<1x?x2xf32>, tensor<1x?x2xi64>)
  "test.use"(%v, %i) : (tensor<1x?x2xf32>, tensor<1x?x2xi64>) -> ()
  return
}
