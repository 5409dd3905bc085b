// RUN: quire-opt %s --convert-kvrt-to-llvm --split-input-file --verify-diagnostics

kvrt.raw @w {source = @w} : tensor<100xf32>
func.func @step(%batch: !kvrt.batch, %i: index) -> f32 {
  // expected-error @+2 {{expected @w to have an offset: run assign-weight-offsets first}}
  // expected-error @+1 {{failed to legalize operation 'kvrt.weight'}}
  %w = kvrt.weight %batch, @w : memref<100xf32>
  %x = memref.load %w[%i] : memref<100xf32>
  return %x : f32
}

// -----

// expected-error @+1 {{expected a step that takes a batch only}}
kvrt.model @step {vocabulary = 4, token_limit = 4, max_positions = -1, block_tokens = 16, layers = []}
func.func @step(%batch: !kvrt.batch, %n: index) {
  return
}
