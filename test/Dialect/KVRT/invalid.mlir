// RUN: quire-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{expected lanes to divide block, but got 16 lanes and block 24}}
func.func private @state() -> !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 24, lanes = 16>

// -----

// expected-error @+1 {{expected lanes to be a power of two, but got 12}}
func.func private @state() -> !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 24, lanes = 12>

// -----

// expected-error @+1 {{expected positive heads, key, value, block and lanes}}
func.func private @state() -> !kvrt.state<heads = 0, key = 64, value = 64, element = f32, block = 16, lanes = 8>

// -----

// expected-error @+1 {{expected element f32, f16, bf16, i8, i4, f8E4M3FN or f8E5M2, but got 'f64'}}
func.func private @state() -> !kvrt.state<heads = 2, key = 64, value = 64, element = f64, block = 16, lanes = 8>

// -----

func.func @scales(%s: !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>, %block: index) {
  // expected-error @+1 {{expected a state of elements i8 or i4, but got '!kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>'}}
  %k = kvrt.key_scales %s[%block] : !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
  return
}

// -----

// Numbers of 8 bits have none either.
func.func @scales(%s: !kvrt.state<heads = 2, key = 64, value = 64, element = f8E5M2, block = 16, lanes = 8>, %block: index) {
  // expected-error @+1 {{expected a state of elements i8 or i4, but got '!kvrt.state<heads = 2, key = 64, value = 64, element = f8E5M2, block = 16, lanes = 8>'}}
  %v = kvrt.value_scales %s[%block] : !kvrt.state<heads = 2, key = 64, value = 64, element = f8E5M2, block = 16, lanes = 8>
  return
}

// -----

kvrt.raw @w {source = @w} : tensor<4x4xf32>
// expected-error @+1 {{expected a positive panel width, but got 0}}
kvrt.packed @p {source = @w, layout = #kvrt.panels<nr = 0>, k = 4, n = 4} : tensor<1x4x4xf32>

// -----

func.func @read(%batch: !kvrt.batch) {
  // expected-error @+1 {{expected elements i64, but got 'i32'}}
  %ids = kvrt.read %batch[ids] : tensor<1x?xi32>
  return
}

// -----

func.func @read(%batch: !kvrt.batch) {
  // expected-error @+1 {{expected shape [?] or [1, ?], but got 'tensor<2x?xi64>'}}
  %ids = kvrt.read %batch[ids] : tensor<2x?xi64>
  return
}

// -----

func.func @weight(%batch: !kvrt.batch) {
  // expected-error @+1 {{expected an entry of weights.bin, but got @w}}
  %w = kvrt.weight %batch, @w : tensor<4xf32>
  return
}

// -----

kvrt.raw @w {source = @w} : tensor<4xf32>
func.func @weight(%batch: !kvrt.batch) {
  // expected-error @+1 {{expected the shape and elements of 'tensor<4xf32>', but got 'tensor<5xf32>'}}
  %w = kvrt.weight %batch, @w : tensor<5xf32>
  return
}

// -----

func.func @write(%batch: !kvrt.batch, %x: tensor<?x4xf16>) {
  // expected-error @+1 {{expected logits of shape [?, vocabulary] and f32, but got 'tensor<?x4xf16>'}}
  kvrt.write %x to %batch[logits] : tensor<?x4xf16>
  return
}

// -----

func.func @logits(%batch: !kvrt.batch) {
  // expected-error @+1 {{expected logits of shape [?, vocabulary] and f32, but got 'memref<?x?xf32>'}}
  %l = kvrt.logits %batch : memref<?x?xf32>
  return
}

// -----

func.func @scratch(%batch: !kvrt.batch) {
  // expected-error @+1 {{expected a multiple of 64 bytes, but got per_token = 100}}
  %s = kvrt.scratch %batch {per_token = 100} : memref<4xf32>
  return
}

// -----

func.func @scratch(%batch: !kvrt.batch) {
  // expected-error @+1 {{expected 1 sizes, but got 0}}
  %s = kvrt.scratch %batch : memref<?xf32>
  return
}

// -----

func.func @scratch(%batch: !kvrt.batch) {
  // expected-error @+1 {{expected a contiguous buffer, but got 'memref<4x4xf32, strided<[8, 1]>>'}}
  %s = kvrt.scratch %batch : memref<4x4xf32, strided<[8, 1]>>
  return
}

// -----

kvrt.raw @w {source = @w} : tensor<4x4xf32>
// expected-error @+1 {{expected shape 'tensor<2x4x3xf32>', but got 'tensor<1x4x3xf32>'}}
kvrt.packed @p {source = @w, layout = #kvrt.panels<nr = 3>, k = 4, n = 4} : tensor<1x4x3xf32>

// -----

kvrt.raw @w {source = @w} : tensor<4x4xf32>
// expected-error @+1 {{expected elements f32, f16 or bf16, but got 'i8'}}
kvrt.packed @p {source = @w, layout = #kvrt.panels<nr = 4>, k = 4, n = 4} : tensor<1x4x4xi8>

// -----

// expected-error @+1 {{expected a static shape, but got 'tensor<?xf32>'}}
kvrt.raw @w {source = @w} : tensor<?xf32>

// -----

// expected-error @+1 {{expected an initializer, but got @absent}}
kvrt.raw @w {source = @absent} : tensor<4xf32>

// -----

// expected-error @+1 {{expected layer 0 to be a state type, but got 'f32'}}
kvrt.model @step {vocabulary = 4, token_limit = 4, max_positions = -1, block_tokens = 16, layers = [f32]}

// -----

// expected-error @+1 {{expected layer 0 to have block 32, but got 16}}
kvrt.model @step {vocabulary = 4, token_limit = 4, max_positions = -1, block_tokens = 32, layers = [!kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>]}

// -----

// expected-error @+1 {{expected a function, but got @step}}
kvrt.model @step {vocabulary = 4, token_limit = 4, max_positions = -1, block_tokens = 32, layers = []}

// -----

func.func @nested(%batch: !kvrt.batch, %n: index) {
  kvrt.parallel (%b, %e) = %n on %batch grain 1 {
    // expected-error @+1 {{expected no parallel region around it}}
    kvrt.parallel (%c, %f) = %n on %batch grain 1 {
    }
  }
  return
}

// -----

func.func @region(%batch: !kvrt.batch, %n: index) {
  // expected-error @+1 {{expected a region with two index arguments}}
  "kvrt.parallel"(%n, %batch) <{grain = 1 : i64}> ({
  ^bb0(%b: index):
    kvrt.yield
  }) : (index, !kvrt.batch) -> ()
  return
}

// -----

func.func @call(%batch: !kvrt.batch, %n: index) {
  // expected-error @+1 {{expected a function, but got @absent}}
  kvrt.parallel_call @absent(%n) on %batch grain 1
  return
}

// -----

func.func private @piece(index, index, f32)
func.func @call(%batch: !kvrt.batch, %n: index) {
  // expected-error @+1 {{expected the callee to take begin, end and the captures}}
  kvrt.parallel_call @piece(%n) on %batch grain 1
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 32, element = f32, block = 16, lanes = 8>
func.func @append(%s: !state, %batch: !kvrt.batch, %k: tensor<?x2x64xi8>, %v: tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected key of f32, f16 or bf16, but got 'i8'}}
  kvrt.append %k, %v into %s, %batch : tensor<?x2x64xi8>, tensor<?x2x32xf32>, !state
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 32, element = f32, block = 16, lanes = 8>
func.func @append(%s: !state, %batch: !kvrt.batch, %k: tensor<?x128xf32>, %v: tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected key of shape [rows, heads, features], but got 'tensor<?x128xf32>'}}
  kvrt.append %k, %v into %s, %batch : tensor<?x128xf32>, tensor<?x2x32xf32>, !state
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 32, element = f32, block = 16, lanes = 8>
func.func @append(%s: !state, %batch: !kvrt.batch, %k: tensor<?x3x64xf32>, %v: tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected key with 2 heads, but got 3}}
  kvrt.append %k, %v into %s, %batch : tensor<?x3x64xf32>, tensor<?x2x32xf32>, !state
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 32, element = f32, block = 16, lanes = 8>
func.func @append(%s: !state, %batch: !kvrt.batch, %k: tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected value with 32 features, but got 64}}
  kvrt.append %k, %k into %s, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 32, element = f32, block = 16, lanes = 8>
func.func @append(%s: !state, %batch: !kvrt.batch, %k: tensor<?x2x64xf32>, %v: memref<?x2x32xf32>) {
  // expected-error @+1 {{expected tensors only or memrefs only}}
  kvrt.append %k, %v into %s, %batch : tensor<?x2x64xf32>, memref<?x2x32xf32>, !state
  return
}

// -----

// What is appended must be attended in the same step, so the order is fixed.
!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
func.func @order(%s: !state, %batch: !kvrt.batch, %k: memref<?x2x64xf32>, %o: memref<?x2x64xf32>) {
  // expected-note @+1 {{attended here}}
  kvrt.attend ins(%k, %s, %batch : memref<?x2x64xf32>, !state) outs(%o : memref<?x2x64xf32>) {scale = 1.0 : f32}
  // expected-error @+1 {{expected every attend of the state after its append}}
  kvrt.append %k, %k into %s, %batch : memref<?x2x64xf32>, memref<?x2x64xf32>, !state
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
func.func @attend(%s: !state, %batch: !kvrt.batch, %q: memref<?x3x64xf32>, %o: memref<?x3x64xf32>) {
  // expected-error @+1 {{expected a multiple of 2 query heads, but got 3}}
  kvrt.attend ins(%q, %s, %batch : memref<?x3x64xf32>, !state) outs(%o : memref<?x3x64xf32>) {scale = 1.0 : f32}
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
func.func @attend(%s: !state, %batch: !kvrt.batch, %q: memref<?x2x64xf32>, %o: memref<?x2x64xf32>) {
  // expected-error @+1 {{expected 2 slopes, but got 1}}
  kvrt.attend ins(%q, %s, %batch : memref<?x2x64xf32>, !state) outs(%o : memref<?x2x64xf32>) {scale = 1.0 : f32, alibi_slopes = array<f32: 0.5>}
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
func.func @attend(%s: !state, %batch: !kvrt.batch, %q: memref<?x2x64xf32>, %o: memref<?x2x64xf32>, %sinks: memref<3xf32>) {
  // expected-error @+1 {{expected 2 sinks, but got 'memref<3xf32>'}}
  kvrt.attend ins(%q, %s, %batch, sinks %sinks : memref<?x2x64xf32>, !state, memref<3xf32>) outs(%o : memref<?x2x64xf32>) {scale = 1.0 : f32}
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
func.func @attend(%s: !state, %batch: !kvrt.batch, %q: memref<?x6x64xf32>, %o: memref<?x6x64xf32>, %parts: memref<8x6x66xf32>) {
  // expected-error @+1 {{expected parts of shape [places, 3, 66], but got 'memref<8x6x66xf32>'}}
  kvrt.attend ins(%q, %s, %batch : memref<?x6x64xf32>, !state) parts(%parts : memref<8x6x66xf32>) outs(%o : memref<?x6x64xf32>) {scale = 1.0 : f32}
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
func.func @attend(%s: !state, %batch: !kvrt.batch, %q: tensor<?x2x64xf32>, %o: tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected one result}}
  kvrt.attend ins(%q, %s, %batch : tensor<?x2x64xf32>, !state) outs(%o : tensor<?x2x64xf32>) {scale = 1.0 : f32}
  return
}

// -----

func.func @product(%batch: !kvrt.batch, %x: tensor<?x64xf32>, %w: tensor<7x64x16xi8>, %y: tensor<?x100xf32>) {
  // expected-error @+1 {{expected elements f32, f16 or bf16, but got 'tensor<7x64x16xi8>'}}
  %r = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, tensor<7x64x16xi8>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  return
}

// -----

func.func @product(%batch: !kvrt.batch, %x: tensor<1x?x64xf32>, %w: tensor<7x64x16xf32>, %y: tensor<?x100xf32>) {
  // expected-error @+1 {{expected input [rows, K] and output [rows, N], but got 'tensor<1x?x64xf32>' and 'tensor<?x100xf32>'}}
  %r = kvrt.product ins(%x, %w, %batch : tensor<1x?x64xf32>, tensor<7x64x16xf32>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  return
}

// -----

func.func @product(%batch: !kvrt.batch, %x: tensor<?x64xf32>, %w: tensor<64x112xf32>, %y: tensor<?x100xf32>) {
  // expected-error @+1 {{expected a weight of shape [panels, K, nr], but got 'tensor<64x112xf32>'}}
  %r = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, tensor<64x112xf32>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  return
}

// -----

func.func @product(%batch: !kvrt.batch, %x: tensor<?x64xf32>, %w: tensor<6x64x16xf32>, %y: tensor<?x100xf32>) {
  // expected-error @+1 {{expected panels for 64 x 100, but got 'tensor<6x64x16xf32>'}}
  %r = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, tensor<6x64x16xf32>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  return
}

// -----

func.func @product(%batch: !kvrt.batch, %x: tensor<?x64xf32>, %w: tensor<7x64x16xf32>, %y: tensor<?x100xf32>, %b: tensor<99xf32>) {
  // expected-error @+1 {{expected a bias of 100 elements, but got 'tensor<99xf32>'}}
  %r = kvrt.product ins(%x, %w, %batch, bias %b : tensor<?x64xf32>, tensor<7x64x16xf32>, tensor<99xf32>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  return
}

// -----

func.func @product(%batch: !kvrt.batch, %x: tensor<?x64xf32>, %w: memref<7x64x16xf32>, %y: tensor<?x100xf32>) {
  // expected-error @+1 {{expected tensors only or memrefs only}}
  %r = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, memref<7x64x16xf32>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  return
}

// -----

func.func @product(%batch: !kvrt.batch, %x: memref<?x64xf32>, %w: memref<7x64x16xf32>, %y: memref<?x100xf32>) {
  // expected-error @+1 {{expected no result}}
  %r = kvrt.product ins(%x, %w, %batch : memref<?x64xf32>, memref<7x64x16xf32>) outs(%y : memref<?x100xf32>) -> tensor<?x100xf32>
  return
}

// -----

func.func @product(%batch: !kvrt.batch, %x: tensor<?x64xf32>, %w: tensor<7x64x16xf32>, %y: tensor<?x100xf32>) {
  // expected-error @+1 {{expected a result of type 'tensor<?x100xf32>'}}
  %r = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, tensor<7x64x16xf32>) outs(%y : tensor<?x100xf32>) -> tensor<4x100xf32>
  return
}

// -----

func.func @step(%batch: !kvrt.batch) { return }
// expected-error @+1 {{expected query_heads, windows and place_is_position of 1 numbers that are not negative}}
kvrt.model @step {vocabulary = 10, token_limit = 10, max_positions = -1, block_tokens = 16, windows = array<i64: 1, 2>,
                  layers = [!kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>]}

// -----

func.func @step(%batch: !kvrt.batch) { return }
// expected-error @+1 {{expected query_heads, windows and place_is_position of 1 numbers that are not negative}}
kvrt.model @step {vocabulary = 10, token_limit = 10, max_positions = -1, block_tokens = 16, place_is_position = array<i64: 1, 0>,
                  layers = [!kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>]}
