// RUN: quire-opt %s --lower-attend=prefetch-tokens=0 | FileCheck %s
// RUN: quire-opt %s --lower-attend=break=window | FileCheck %s --check-prefix=BROKEN
// RUN: quire-opt %s --lower-attend=tile-tokens=16 | FileCheck %s --check-prefix=PAGE
// RUN: quire-opt %s --lower-attend=tile-tokens=50 | FileCheck %s --check-prefix=TILE
// RUN: not quire-opt %s --lower-attend=break=everything 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// BROKEN: arith.constant 100 : index
// Scores of a tile: of one page, or of as many as are a power of two and no more than asked for.
// PAGE: memref.alloca() {alignment = 64 : i64} : memref<12x16xf32>
// TILE: memref.alloca() {alignment = 64 : i64} : memref<12x32xf32>
// UNKNOWN: expected break=causal, window, scale, heads, block or parts, but got 'everything'

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f16, block = 16, lanes = 8>

// CHECK-NOT: memref.prefetch
func.func @step(%s: !state, %batch: !kvrt.batch, %q: memref<?x4x64xf32>, %o: memref<?x4x64xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x4x64xf32>, !state) outs(%o : memref<?x4x64xf32>) {scale = 0.125 : f32, window = 100}
  return
}
