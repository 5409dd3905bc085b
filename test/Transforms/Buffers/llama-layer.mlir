// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A layer of a Llama in the form of genai exports, from the paged form to buffers.
// RUN: quire-opt %s --quire-pipeline="compile-from=paged compile-to=resource" | FileCheck %s --check-prefix=RESOURCE
// RUN: quire-opt %s --quire-pipeline="compile-from=paged compile-to=buffer" | FileCheck %s --check-prefix=BUFFER

// RESOURCE-LABEL: func.func @step(%{{.*}}: !kvrt.batch) {
// RESOURCE-DAG: kvrt.read %{{.*}}[ids] : tensor<1x?xi64>
// RESOURCE-DAG: kvrt.read %{{.*}}[positions] : tensor<1x?xi64>
// RESOURCE: kvrt.product
// RESOURCE: %[[S:.*]] = kvrt.acquire %{{.*}}, 0
// RESOURCE: kvrt.append %{{.*}}, %{{.*}} into %[[S]]
// RESOURCE: kvrt.attend
// RESOURCE: kvrt.release %[[S]]
// RESOURCE: kvrt.write

// BUFFER: kvrt.model @step
// BUFFER-SAME: scratch_per_selected
// BUFFER-SAME: scratch_per_token
// BUFFER-LABEL: func.func @step(%{{.*}}: !kvrt.batch) {
// BUFFER-NOT: tensor<
// BUFFER-NOT: memref.alloc
// BUFFER: kvrt.logits
// BUFFER: return
module {
  onnx.initializer @embed {file = "m.data", offset = 0 : i64, bytes = 65536 : i64} : tensor<256x64xf32>
  onnx.initializer @wqkv {file = "m.data", offset = 65536 : i64, bytes = 32768 : i64} : tensor<64x128xf32>
  onnx.initializer @wo {file = "m.data", offset = 98304 : i64, bytes = 16384 : i64} : tensor<64x64xf32>
  onnx.initializer @wgate {file = "m.data", offset = 114688 : i64, bytes = 24576 : i64} : tensor<64x96xf32>
  onnx.initializer @wup {file = "m.data", offset = 139264 : i64, bytes = 24576 : i64} : tensor<64x96xf32>
  onnx.initializer @wdown {file = "m.data", offset = 163840 : i64, bytes = 24576 : i64} : tensor<96x64xf32>
  onnx.initializer @cos {file = "m.data", offset = 188416 : i64, bytes = 8192 : i64} : tensor<256x8xf32>
  onnx.initializer @sin {file = "m.data", offset = 196608 : i64, bytes = 8192 : i64} : tensor<256x8xf32>
  onnx.initializer @norm {file = "m.data", offset = 204800 : i64, bytes = 256 : i64} : tensor<64xf32>
  kv.entry @step {token_limit = 256 : i64, max_positions = 256 : i64}
  func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch,
                  %s0: !kv.state<heads = 2, key = 16, value = 16, element = f32, layout = #kv.paged<block = 16>>)
      -> (tensor<1x?x256xf32>, !kv.state<heads = 2, key = 16, value = 16, element = f32, layout = #kv.paged<block = 16>>) {
    %none = onnx.none : none
    %embed = onnx.weight @embed : tensor<256x64xf32>
    %g = onnx.weight @norm : tensor<64xf32>
    %cos = onnx.weight @cos : tensor<256x8xf32>
    %sin = onnx.weight @sin : tensor<256x8xf32>
    %wqkv = onnx.weight @wqkv : tensor<64x128xf32>
    %wo = onnx.weight @wo : tensor<64x64xf32>
    %wgate = onnx.weight @wgate : tensor<64x96xf32>
    %wup = onnx.weight @wup : tensor<64x96xf32>
    %wdown = onnx.weight @wdown : tensor<96x64xf32>
    %p = kv.positions %batch : tensor<1x?xi64>
    %x0 = onnx.Gather %embed, %ids : (tensor<256x64xf32>, tensor<1x?xi64>) -> tensor<1x?x64xf32>
    %n0, %unused = onnx.SimplifiedLayerNormalization %x0, %g {epsilon = 1.0e-06 : f32} : (tensor<1x?x64xf32>, tensor<64xf32>) -> (tensor<1x?x64xf32>, none)
    %qkv = onnx.MatMul %n0, %wqkv : (tensor<1x?x64xf32>, tensor<64x128xf32>) -> tensor<1x?x128xf32>
    %split = onnx.constant dense<[64, 32, 32]> : tensor<3xi64>
    %q, %k, %v = onnx.Split %qkv, %split {axis = 2 : i64} : (tensor<1x?x128xf32>, tensor<3xi64>) -> (tensor<1x?x64xf32>, tensor<1x?x32xf32>, tensor<1x?x32xf32>)
    %qr = onnx.ms.RotaryEmbedding %q, %p, %cos, %sin {num_heads = 4 : i64} : (tensor<1x?x64xf32>, tensor<1x?xi64>, tensor<256x8xf32>, tensor<256x8xf32>) -> tensor<1x?x64xf32>
    %kr = onnx.ms.RotaryEmbedding %k, %p, %cos, %sin {num_heads = 2 : i64} : (tensor<1x?x32xf32>, tensor<1x?xi64>, tensor<256x8xf32>, tensor<256x8xf32>) -> tensor<1x?x32xf32>
    %heads4 = onnx.constant dense<[-1, 4, 16]> : tensor<3xi64>
    %heads2 = onnx.constant dense<[-1, 2, 16]> : tensor<3xi64>
    %qh = onnx.Reshape %qr, %heads4 : (tensor<1x?x64xf32>, tensor<3xi64>) -> tensor<?x4x16xf32>
    %kh = onnx.Reshape %kr, %heads2 : (tensor<1x?x32xf32>, tensor<3xi64>) -> tensor<?x2x16xf32>
    %vh = onnx.Reshape %v, %heads2 : (tensor<1x?x32xf32>, tensor<3xi64>) -> tensor<?x2x16xf32>
    %s1 = kv.append %kh, %vh to %s0, %batch : tensor<?x2x16xf32>, tensor<?x2x16xf32>, !kv.state<heads = 2, key = 16, value = 16, element = f32, layout = #kv.paged<block = 16>>
    %a = kv.attend %qh, %s1, %batch {scale = 2.500000e-01 : f64} : tensor<?x4x16xf32>, !kv.state<heads = 2, key = 16, value = 16, element = f32, layout = #kv.paged<block = 16>> -> tensor<?x4x16xf32>
    %flat = onnx.constant dense<[1, -1, 64]> : tensor<3xi64>
    %ar = onnx.Reshape %a, %flat : (tensor<?x4x16xf32>, tensor<3xi64>) -> tensor<1x?x64xf32>
    %o = onnx.MatMul %ar, %wo : (tensor<1x?x64xf32>, tensor<64x64xf32>) -> tensor<1x?x64xf32>
    %n1, %u1, %u2, %x1 = onnx.ms.SkipSimplifiedLayerNormalization %x0, %o, %g, %none {epsilon = 1.0e-06 : f32}
        : (tensor<1x?x64xf32>, tensor<1x?x64xf32>, tensor<64xf32>, none) -> (tensor<1x?x64xf32>, none, none, tensor<1x?x64xf32>)
    %gate = onnx.MatMul %n1, %wgate : (tensor<1x?x64xf32>, tensor<64x96xf32>) -> tensor<1x?x96xf32>
    %up = onnx.MatMul %n1, %wup : (tensor<1x?x64xf32>, tensor<64x96xf32>) -> tensor<1x?x96xf32>
    %sg = onnx.Sigmoid %gate : (tensor<1x?x96xf32>) -> tensor<1x?x96xf32>
    %silu = onnx.Mul %gate, %sg : (tensor<1x?x96xf32>, tensor<1x?x96xf32>) -> tensor<1x?x96xf32>
    %mlp = onnx.Mul %silu, %up : (tensor<1x?x96xf32>, tensor<1x?x96xf32>) -> tensor<1x?x96xf32>
    %down = onnx.MatMul %mlp, %wdown : (tensor<1x?x96xf32>, tensor<96x64xf32>) -> tensor<1x?x64xf32>
    %n2, %u3, %u4, %u5 = onnx.ms.SkipSimplifiedLayerNormalization %x1, %down, %g, %none {epsilon = 1.0e-06 : f32}
        : (tensor<1x?x64xf32>, tensor<1x?x64xf32>, tensor<64xf32>, none) -> (tensor<1x?x64xf32>, none, none, none)
    %y = kv.select %n2, %batch : tensor<1x?x64xf32>
    %perm = onnx.Transpose %embed {perm = array<i64: 1, 0>} : (tensor<256x64xf32>) -> tensor<64x256xf32>
    %logits = onnx.MatMul %y, %perm : (tensor<1x?x64xf32>, tensor<64x256xf32>) -> tensor<1x?x256xf32>
    return %logits, %s1 : tensor<1x?x256xf32>, !kv.state<heads = 2, key = 16, value = 16, element = f32, layout = #kv.paged<block = 16>>
  }
}
