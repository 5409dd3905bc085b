// RUN: quire-opt %s --convert-kvrt-to-llvm | FileCheck %s
// Blocks of codes of 4 bits, whose pages are bytes, and of numbers of 8 bits, which have no scales.

!halves = !kvrt.state<heads = 2, key = 63, value = 64, element = i4, block = 16, lanes = 8>
!e4m3 = !kvrt.state<heads = 2, key = 64, value = 64, element = f8E4M3FN, block = 16, lanes = 8>
!e5m2 = !kvrt.state<heads = 2, key = 64, value = 64, element = f8E5M2, block = 16, lanes = 8>

kvrt.model @step {vocabulary = 100, token_limit = 100, max_positions = -1, block_tokens = 16, layers = [!halves, !e4m3, !e5m2]}

// heads, key, value, element, lanes, where V begins, bytes of a block and what is not given: 1024 bytes of codes and 256 scales and zeros for each of K and V
// CHECK-DAG: @quire_model_layers(dense<[2, 63, 64, 4, 8, 1280, 2560, 0, 0, 0, 2, 64, 64, 5, 8, 2048, 4096, 0, 0, 0, 2, 64, 64, 6, 8, 2048, 4096, 0, 0, 0]> : tensor<30xi64>)

// CHECK-LABEL: llvm.func internal @step(
func.func @step(%batch: !kvrt.batch) {
  %c0 = arith.constant 0 : index
  %s = kvrt.acquire %batch, 0 : !halves
  %k = kvrt.key_page %s[%c0] : !halves
  // CHECK: llvm.mlir.constant(1024 : i64)
  %ks = kvrt.key_scales %s[%c0] : !halves
  // CHECK: llvm.mlir.constant(1280 : i64)
  %v = kvrt.value_page %s[%c0] : !halves
  // CHECK: llvm.mlir.constant(2304 : i64)
  %vs = kvrt.value_scales %s[%c0] : !halves
  %x = memref.load %ks[%c0, %c0, %c0, %c0] : memref<2x1x2x16xf32>
  memref.store %x, %vs[%c0, %c0, %c0, %c0] : memref<2x1x2x16xf32>
  %y = memref.load %v[%c0, %c0, %c0] : memref<2x16x32xi8>
  memref.store %y, %k[%c0, %c0, %c0, %c0] : memref<2x2x32x8xi8>
  kvrt.release %s, %batch : !halves
  %t = kvrt.acquire %batch, 1 : !e4m3
  %tk = kvrt.key_page %t[%c0] : !e4m3
  // CHECK: llvm.mlir.constant(2048 : i64)
  %tv = kvrt.value_page %t[%c0] : !e4m3
  // CHECK: llvm.load %{{.*}} : !llvm.ptr -> i8
  %z = memref.load %tv[%c0, %c0, %c0] : memref<2x16x64xf8E4M3FN>
  memref.store %z, %tk[%c0, %c0, %c0, %c0] : memref<2x2x64x8xf8E4M3FN>
  kvrt.release %t, %batch : !e4m3
  return
}
