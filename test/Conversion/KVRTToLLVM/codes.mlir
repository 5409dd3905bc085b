// RUN: quire-opt %s --convert-kvrt-to-llvm | FileCheck %s
// Blocks of codes of 8 bits: where K's scales, V, and V's scales begin.

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = i8, block = 16, lanes = 8>

kvrt.model @step {vocabulary = 100, token_limit = 100, max_positions = -1, block_tokens = 16, layers = [!state]}

// heads, key, value, element, lanes, where V begins, bytes of a block and what is not given: 2048 codes and 256 scales and zeros for each of K and V
// CHECK-DAG: llvm.mlir.global internal constant @quire_model_layers(dense<[2, 64, 64, 3, 8, 2304, 4608, 0, 0, 0]> : tensor<10xi64>)

// CHECK-LABEL: llvm.func internal @step(
func.func @step(%batch: !kvrt.batch) {
  %c0 = arith.constant 0 : index
  %s = kvrt.acquire %batch, 0 : !state
  // CHECK: llvm.mlir.constant(2048 : i64)
  %ks = kvrt.key_scales %s[%c0] : !state
  // CHECK: llvm.mlir.constant(2304 : i64)
  %v = kvrt.value_page %s[%c0] : !state
  // CHECK: llvm.mlir.constant(4352 : i64)
  %vs = kvrt.value_scales %s[%c0] : !state
  %x = memref.load %ks[%c0, %c0, %c0, %c0] : memref<2x1x2x16xf32>
  memref.store %x, %vs[%c0, %c0, %c0, %c0] : memref<2x1x2x16xf32>
  %y = memref.load %v[%c0, %c0, %c0] : memref<2x16x64xi8>
  memref.store %y, %v[%c0, %c0, %c0] : memref<2x16x64xi8>
  kvrt.release %s, %batch : !state
  return
}
