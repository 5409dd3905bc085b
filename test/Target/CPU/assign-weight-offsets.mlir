// RUN: quire-opt %s --assign-weight-offsets | FileCheck %s

// CHECK: kvrt.raw @a {offset = 0 : i64
kvrt.raw @a {source = @a} : tensor<3xf32>
// CHECK: kvrt.packed @p {{.*}}offset = 64 : i64
kvrt.packed @p {source = @a, layout = #kvrt.panels<nr = 16>, k = 3, n = 17} : tensor<2x3x16xf16>
// 64 + 192: already a multiple of 64.
// CHECK: kvrt.raw @b {offset = 256 : i64
kvrt.raw @b {source = @a} : tensor<5xi1>
// CHECK: kvrt.model {{.*}}weights_bytes = 320 : i64
kvrt.model @step {vocabulary = 4, token_limit = 4, max_positions = -1, block_tokens = 16, layers = []}
func.func @step(%batch: !kvrt.batch) {
  return
}
