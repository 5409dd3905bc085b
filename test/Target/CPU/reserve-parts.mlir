// Attention whose rows may see more keys than a part has gets room for results over parts, with 2 more floats than values.
// RUN: quire-opt %s --split-input-file --reserve-parts | FileCheck %s
// RUN: quire-opt %s --split-input-file --reserve-parts=part-tokens=64 | FileCheck %s --check-prefix=SMALL

!state = !kvrt.state<heads = 2, key = 64, value = 32, element = f16, block = 16, lanes = 8>

// CHECK-LABEL: func.func @unknown
func.func @unknown(%s: !state, %batch: !kvrt.batch, %q: memref<?x6x64xf32>, %o: memref<?x6x32xf32>) {
  // CHECK: %[[P:.*]] = memref.alloc() : memref<512x3x34xf32>
  // CHECK: kvrt.attend ins({{.*}}) parts(%[[P]] : memref<512x3x34xf32>) outs(
  kvrt.attend ins(%q, %s, %batch : memref<?x6x64xf32>, !state) outs(%o : memref<?x6x32xf32>) {scale = 0.125 : f32}
  // 31 tasks with 3 parts, and one more for a window that begins inside a part.
  // CHECK: memref.alloc() : memref<124x3x34xf32>
  kvrt.attend ins(%q, %s, %batch : memref<?x6x64xf32>, !state) outs(%o : memref<?x6x32xf32>) {scale = 0.125 : f32, window = 1500}
  // SMALL: memref.alloc() : memref<93x3x34xf32>
  // CHECK-NOT: memref.alloc
  kvrt.attend ins(%q, %s, %batch : memref<?x6x64xf32>, !state) outs(%o : memref<?x6x32xf32>) {scale = 0.125 : f32, window = 128}
  return
}

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 32, element = f16, block = 16, lanes = 8>
kvrt.model @limited {vocabulary = 8, token_limit = 8, max_positions = 512, block_tokens = 16, layers = [!state]}

// CHECK-LABEL: func.func @limited
// CHECK-NOT: memref.alloc
// SMALL-LABEL: func.func @limited
// SMALL: memref.alloc() : memref<248x3x34xf32>
func.func @limited(%batch: !kvrt.batch) {
  %rows = kvrt.extent %batch[tokens]
  %s = kvrt.acquire %batch, 0 : !state
  %q = kvrt.scratch %batch[%rows] : memref<?x6x64xf32>
  %o = kvrt.scratch %batch[%rows] {fixed = 64} : memref<?x6x32xf32>
  kvrt.attend ins(%q, %s, %batch : memref<?x6x64xf32>, !state) outs(%o : memref<?x6x32xf32>) {scale = 0.125 : f32}
  kvrt.release %s, %batch : !state
  return
}
