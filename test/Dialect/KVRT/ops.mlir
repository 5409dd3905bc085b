// RUN: quire-opt %s --verify-roundtrip | FileCheck %s
// Every operation of the dialect, on tensors and on memrefs.

!state = !kvrt.state<heads = 2, key = 64, value = 32, element = f16, block = 16, lanes = 8>

// CHECK: kvrt.raw @w {source = @w} : tensor<100x64xf32>
kvrt.raw @w {source = @w} : tensor<100x64xf32>
// CHECK: kvrt.packed @w_packed {k = 64 : i64, layout = #kvrt.panels<nr = 16>, n = 100 : i64, source = @w, transposed} : tensor<7x64x16xf32>
kvrt.packed @w_packed {source = @w, layout = #kvrt.panels<nr = 16>, transposed, k = 64, n = 100} : tensor<7x64x16xf32>
// CHECK: kvrt.model @step {{.*}}layers = [!kvrt.state<heads = 2, key = 64, value = 32, element = f16, block = 16, lanes = 8>]
kvrt.model @step {vocabulary = 100, token_limit = 1000, max_positions = -1, block_tokens = 16, layers = [!state]}

// CHECK-LABEL: func.func @step
func.func @step(%batch: !kvrt.batch) {
  // CHECK: kvrt.read %{{.*}}[ids] : tensor<1x?xi64>
  %ids = kvrt.read %batch[ids] : tensor<1x?xi64>
  // CHECK: kvrt.extent %{{.*}}[tokens]
  %rows = kvrt.extent %batch[tokens]
  // CHECK: kvrt.extent %{{.*}}[selected]
  %selected = kvrt.extent %batch[selected]
  // CHECK: kvrt.weight %{{.*}}, @w_packed : tensor<7x64x16xf32>
  %w = kvrt.weight %batch, @w_packed : tensor<7x64x16xf32>
  // CHECK: kvrt.prefetch %{{.*}} {count = 4 : i64, first = 2 : i64, layer = 0 : i64}
  kvrt.prefetch %batch {layer = 0, first = 2, count = 4}
  // Numbers and places that are arguments.
  %base = kvrt.extent %batch[tokens]
  // CHECK: kvrt.weight_at %{{.*}}[%{{.*}}] : memref<7x64x16xf32>
  %at = kvrt.weight_at %batch[%base] : memref<7x64x16xf32>
  // CHECK: kvrt.prefetch %{{.*}}, %{{.*}} {count = 4 : i64, first = 2 : i64, layer = 0 : i64}
  kvrt.prefetch %batch, %base {layer = 0, first = 2, count = 4}
  // CHECK: kvrt.acquire %{{.*}}, %{{.*}} + 1 : <heads = 2
  %based = kvrt.acquire %batch, %base + 1 : !state
  // CHECK: %[[STATE:.*]] = kvrt.acquire %{{.*}}, 0 : <heads = 2
  %s = kvrt.acquire %batch, 0 : !state
  // CHECK: kvrt.tables %[[STATE]], %{{.*}} : <heads = 2
  %tables = kvrt.tables %s, %batch : !state
  %x = tensor.empty(%rows) : tensor<?x64xf32>
  %y0 = tensor.empty(%rows) : tensor<?x100xf32>
  // CHECK: kvrt.product ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x64xf32>, tensor<7x64x16xf32>) outs(%{{.*}} : tensor<?x100xf32>) -> tensor<?x100xf32>
  %y = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, tensor<7x64x16xf32>) outs(%y0 : tensor<?x100xf32>) -> tensor<?x100xf32>
  %bias = tensor.empty() : tensor<100xf32>
  // CHECK: kvrt.product ins(%{{.*}}, %{{.*}}, %{{.*}}, bias %{{.*}} : tensor<?x64xf32>, tensor<7x64x16xf32>, tensor<100xf32>)
  %z = kvrt.product ins(%x, %w, %batch, bias %bias : tensor<?x64xf32>, tensor<7x64x16xf32>, tensor<100xf32>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  %k = tensor.empty(%rows) : tensor<?x2x64xf32>
  %v = tensor.empty(%rows) : tensor<?x2x32xf32>
  // CHECK: kvrt.append %{{.*}}, %{{.*}} into %[[STATE]], %{{.*}} : tensor<?x2x64xf32>, tensor<?x2x32xf32>
  kvrt.append %k, %v into %s, %batch : tensor<?x2x64xf32>, tensor<?x2x32xf32>, !state
  %q = tensor.empty(%rows) : tensor<?x8x64xf32>
  %o = tensor.empty(%rows) : tensor<?x8x32xf32>
  %sinks = tensor.empty() : tensor<8xf32>
  // CHECK: kvrt.attend ins(%{{.*}}, %[[STATE]], %{{.*}}, sinks %{{.*}} : {{.*}}) outs({{.*}}) {scale = 1.250000e-01 : f32, window = 512 : i64} -> tensor<?x8x32xf32>
  %r = kvrt.attend ins(%q, %s, %batch, sinks %sinks : tensor<?x8x64xf32>, !state, tensor<8xf32>) outs(%o : tensor<?x8x32xf32>) {scale = 0.125 : f32, window = 512} -> tensor<?x8x32xf32>
  // CHECK: kvrt.release %[[STATE]], %{{.*}} : <heads = 2
  kvrt.release %s, %batch : !state
  // CHECK: kvrt.write %{{.*}} to %{{.*}}[logits] : tensor<?x100xf32>
  kvrt.write %z to %batch[logits] : tensor<?x100xf32>
  return
}

// CHECK-LABEL: func.func @buffers
func.func @buffers(%batch: !kvrt.batch, %block: index) {
  %rows = kvrt.extent %batch[tokens]
  // CHECK: kvrt.scratch %{{.*}}[%{{.*}}] {fixed = 64 : i64, per_token = 256 : i64} : memref<?x64xf32>
  %x = kvrt.scratch %batch[%rows] {fixed = 64, per_token = 256} : memref<?x64xf32>
  // CHECK: kvrt.scratch %{{.*}} {fixed = 128 : i64} : memref<16xf32>
  %f = kvrt.scratch %batch {fixed = 128} : memref<16xf32>
  // CHECK: kvrt.logits %{{.*}} : memref<?x100xf32>
  %logits = kvrt.logits %batch : memref<?x100xf32>
  %s = kvrt.acquire %batch, 0 : !state
  // CHECK: kvrt.key_page %{{.*}}[%{{.*}}] : <heads = 2
  %k = kvrt.key_page %s[%block] : !state
  // CHECK: kvrt.value_page %{{.*}}[%{{.*}}] : <heads = 2
  %v = kvrt.value_page %s[%block] : !state
  // CHECK: kvrt.is_observed %{{.*}} : <heads = 2
  %wanted = kvrt.is_observed %s : !state
  // CHECK: kvrt.observed %{{.*}}, %{{.*}} : <heads = 2{{.*}} -> memref<?x8x?x2xf32>
  %left = kvrt.observed %s, %batch : !state -> memref<?x8x?x2xf32>
  // Codes have scales and zeros: two groups of up to 128 features for K, one for V.
  // CHECK: %[[SCALES:.*]] = kvrt.key_scales %{{.*}}[%{{.*}}] : <heads = 2, key = 192
  // CHECK: memref.cast %[[SCALES]] : memref<2x2x2x16xf32> to
  // CHECK: %[[ZEROS:.*]] = kvrt.value_scales %{{.*}}[%{{.*}}] : <heads = 2, key = 192
  // CHECK: memref.cast %[[ZEROS]] : memref<2x1x2x16xf32> to
  %codes = kvrt.acquire %batch, 1 : !kvrt.state<heads = 2, key = 192, value = 128, element = i8, block = 16, lanes = 8>
  %ks = kvrt.key_scales %codes[%block] : !kvrt.state<heads = 2, key = 192, value = 128, element = i8, block = 16, lanes = 8>
  %ksc = memref.cast %ks : memref<2x2x2x16xf32> to memref<?x2x2x16xf32>
  %vs = kvrt.value_scales %codes[%block] : !kvrt.state<heads = 2, key = 192, value = 128, element = i8, block = 16, lanes = 8>
  %vsc = memref.cast %vs : memref<2x1x2x16xf32> to memref<?x1x2x16xf32>
  // Two codes of 4 bits are one byte; an odd number of them leaves half a byte.
  // CHECK: memref.cast %{{.*}} : memref<2x2x10x8xi8> to
  // CHECK: memref.cast %{{.*}} : memref<2x16x16xi8> to
  %halves = kvrt.acquire %batch, 2 : !kvrt.state<heads = 2, key = 19, value = 32, element = i4, block = 16, lanes = 8>
  %kh = kvrt.key_page %halves[%block] : !kvrt.state<heads = 2, key = 19, value = 32, element = i4, block = 16, lanes = 8>
  %khc = memref.cast %kh : memref<2x2x10x8xi8> to memref<?x2x10x8xi8>
  %vh = kvrt.value_page %halves[%block] : !kvrt.state<heads = 2, key = 19, value = 32, element = i4, block = 16, lanes = 8>
  %vhc = memref.cast %vh : memref<2x16x16xi8> to memref<?x16x16xi8>
  // The shape of a page follows from the state.
  // CHECK: memref.cast %{{.*}} : memref<2x2x64x8xf16> to
  %kc = memref.cast %k : memref<2x2x64x8xf16> to memref<?x2x64x8xf16>
  // CHECK: memref.cast %{{.*}} : memref<2x16x32xf16> to
  %vc = memref.cast %v : memref<2x16x32xf16> to memref<?x16x32xf16>
  %q = kvrt.scratch %batch[%rows] : memref<?x8x64xf16>
  %p = kvrt.scratch %batch : memref<9x4x34xf32>
  %o = kvrt.scratch %batch[%rows] : memref<?x8x32xf16>
  // CHECK: kvrt.attend ins(%{{.*}}) parts(%{{.*}} : memref<9x4x34xf32>) outs(%{{.*}} : memref<?x8x32xf16>) {scale = 1.250000e-01 : f32}
  kvrt.attend ins(%q, %s, %batch : memref<?x8x64xf16>, !state) parts(%p : memref<9x4x34xf32>) outs(%o : memref<?x8x32xf16>) {scale = 0.125 : f32}
  // CHECK: kvrt.parallel (%[[B:.*]], %[[E:.*]]) = %{{.*}} on %{{.*}} grain 16 {
  kvrt.parallel (%begin, %end) = %rows on %batch grain 16 {
    // CHECK-NEXT: memref.dim
    %d = memref.dim %x, %begin : memref<?x64xf32>
    // CHECK-NEXT: }
  }
  // CHECK: kvrt.parallel_call @piece(%{{.*}}) on %{{.*}} grain 1 captures(%{{.*}} : memref<?x64xf32>)
  kvrt.parallel_call @piece(%rows) on %batch grain 1 captures(%x : memref<?x64xf32>)
  return
}

func.func private @piece(%begin: index, %end: index, %x: memref<?x64xf32>) {
  return
}
