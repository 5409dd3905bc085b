// RUN: quire-opt %s --convert-kvrt-to-llvm | FileCheck %s

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = bf16, block = 16, lanes = 8>

// CHECK-NOT: kvrt.
kvrt.raw @w {source = @w, offset = 4096} : tensor<100xf32>
kvrt.model @step {vocabulary = 100, token_limit = 90, max_positions = 2048, block_tokens = 16, layers = [!state],
                  query_heads = array<i64: 8>, windows = array<i64: 512>, place_is_position = array<i64: 1>, weights_bytes = 4544, scratch_fixed = 64, scratch_per_token = 128, scratch_per_selected = 192}

// heads, key, value, element, lanes, where V begins, bytes of a block, observed query heads, window, whether places must be positions
// CHECK-DAG: llvm.mlir.global internal constant @quire_model_layers(dense<[2, 64, 64, 2, 8, 4096, 8192, 8, 512, 1]> : tensor<10xi64>)
// CHECK-DAG: llvm.mlir.global internal constant @quire_model_description()
// CHECK-DAG: llvm.func @quire_model_query(%{{.*}}: i64) -> !llvm.ptr

// CHECK-LABEL: llvm.func internal @step(
// CHECK-SAME: %[[STEP:.*]]: !llvm.ptr
func.func @step(%batch: !kvrt.batch) {
  // The context is field 10, the runtime's table field 9 of the step; acquire is entry 3.
  // CHECK-DAG: llvm.getelementptr %[[STEP]][9]
  // CHECK-DAG: llvm.getelementptr %[[STEP]][10]
  // CHECK-DAG: llvm.getelementptr %{{.*}}[3]
  // CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> ()
  %s = kvrt.acquire %batch, 0 : !state
  // CHECK: llvm.getelementptr %{{.*}}[5]
  // CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64, i64, i64) -> ()
  kvrt.prefetch %batch {layer = 1}
  // tokens is field 11.
  // CHECK: llvm.getelementptr %[[STEP]][11]
  %n = kvrt.extent %batch[tokens]
  // CHECK: llvm.getelementptr %[[STEP]][16]
  %p = kvrt.read %batch[places] : memref<?xi64>
  // CHECK: llvm.getelementptr %[[STEP]][7]
  // CHECK: llvm.mlir.constant(4096 : i64)
  %w = kvrt.weight %batch, @w : memref<100xf32>
  // CHECK: llvm.intr.lifetime.start
  // CHECK: llvm.mlir.addressof @piece_task
  // CHECK: llvm.getelementptr %{{.*}}[2]
  // CHECK: llvm.call %{{.*}} : !llvm.ptr, (!llvm.ptr, i64, i64, !llvm.ptr, !llvm.ptr) -> ()
  // CHECK: llvm.intr.lifetime.end
  kvrt.parallel_call @piece(%n) on %batch grain 4 captures(%w, %p, %s, %batch : memref<100xf32>, memref<?xi64>, !state, !kvrt.batch)
  // CHECK: llvm.getelementptr %{{.*}}[4]
  // CHECK: llvm.call %{{.*}}(%{{.*}}, %{{.*}}) : !llvm.ptr, (!llvm.ptr, i64) -> ()
  kvrt.release %s, %batch : !state
  return
}

// CHECK-LABEL: llvm.func internal @piece(
func.func private @piece(%begin: index, %end: index, %w: memref<100xf32>, %p: memref<?xi64>, %s: !state, %batch: !kvrt.batch) {
  %k = kvrt.key_page %s[%begin] : !state
  // V lies 4096 bytes into the block.
  // CHECK: llvm.mlir.constant(4096 : i64)
  %v = kvrt.value_page %s[%begin] : !state
  %out = kvrt.logits %batch : memref<?x100xf32>
  // CHECK: llvm.extractvalue %{{.*}}[2] : !llvm.struct<(ptr, i64, ptr, ptr, i64)>
  %t = kvrt.tables %s, %batch : !state
  // CHECK: %[[LEFT:.*]] = llvm.extractvalue %{{.*}}[3] : !llvm.struct<(ptr, i64, ptr, ptr, i64)>
  // CHECK: llvm.icmp "ne" %[[LEFT]]
  %wanted = kvrt.is_observed %s : !state
  %left = kvrt.observed %s, %batch : !state -> memref<?x8x?x2xf32>
  %old = memref.load %left[%begin, %begin, %begin, %begin] : memref<?x8x?x2xf32>
  %zero = arith.constant 0.0 : f32
  %new = arith.select %wanted, %zero, %old : f32
  memref.store %new, %left[%begin, %begin, %begin, %begin] : memref<?x8x?x2xf32>
  %rows = kvrt.extent %batch[tokens]
  %h = kvrt.scratch %batch[%rows] {fixed = 64, per_token = 128, per_selected = 192} : memref<?x4xf32>
  %x = memref.load %w[%begin] : memref<100xf32>
  %c0 = arith.constant 0 : index
  %key = memref.load %k[%c0, %c0, %c0, %c0] : memref<2x2x64x8xbf16>
  memref.store %key, %v[%c0, %c0, %c0] : memref<2x16x64xbf16>
  %block = memref.load %t[%c0, %c0] : memref<?x?xi32>
  memref.store %block, %t[%c0, %end] : memref<?x?xi32>
  memref.store %x, %out[%begin, %end] : memref<?x100xf32>
  memref.store %x, %h[%begin, %end] : memref<?x4xf32>
  return
}

// CHECK: llvm.func internal @piece_task(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64)
// CHECK: llvm.call @piece(
