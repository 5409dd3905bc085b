// RUN: quire-opt %s --bufferize-step | FileCheck %s

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>
kvrt.raw @w {source = @w} : tensor<7x64x16xf32>
kvrt.raw @b {source = @b} : tensor<100xf32>

// Views stay views; a destination that nobody reads is written in place.
// CHECK-LABEL: func.func @step
// CHECK-NOT: memref.copy
func.func @step(%batch: !kvrt.batch) {
  %rows = kvrt.extent %batch[tokens]
  // CHECK: %[[W:.*]] = kvrt.weight %{{.*}}, @w : memref<7x64x16xf32>
  %w = kvrt.weight %batch, @w : tensor<7x64x16xf32>
  %s = kvrt.acquire %batch, 0 : !state
  // CHECK: %[[X:.*]] = memref.alloc
  %x = tensor.empty(%rows) : tensor<?x64xf32>
  // CHECK: %[[Y:.*]] = memref.alloc
  %y0 = tensor.empty(%rows) : tensor<?x100xf32>
  // CHECK: kvrt.product ins(%[[X]], %[[W]], %{{.*}} : memref<?x64xf32>, memref<7x64x16xf32>) outs(%[[Y]] : memref<?x100xf32>)
  %y = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, tensor<7x64x16xf32>) outs(%y0 : tensor<?x100xf32>) -> tensor<?x100xf32>
  // CHECK: %[[K:.*]] = memref.alloc
  %k = tensor.empty(%rows) : tensor<?x2x64xf32>
  // CHECK: kvrt.append %[[K]], %[[K]] into
  kvrt.append %k, %k into %s, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  // CHECK: %[[O:.*]] = memref.alloc
  %o = tensor.empty(%rows) : tensor<?x2x64xf32>
  // CHECK: kvrt.attend ins(%[[K]], %{{.*}}, %{{.*}}) outs(%[[O]] : memref<?x2x64xf32>) {scale = 1.000000e+00 : f32}
  %r = kvrt.attend ins(%k, %s, %batch : tensor<?x2x64xf32>, !state) outs(%o : tensor<?x2x64xf32>) {scale = 1.0 : f32} -> tensor<?x2x64xf32>
  // CHECK: kvrt.write %[[Y]] to
  kvrt.write %y to %batch[logits] : tensor<?x100xf32>
  return
}

// A weight is not written, even when nothing reads it afterwards.
// CHECK-LABEL: func.func @read_only
func.func @read_only(%batch: !kvrt.batch, %i: index) -> tensor<100xf32> {
  // CHECK: %[[B:.*]] = kvrt.weight %{{.*}}, @b : memref<100xf32>
  %b = kvrt.weight %batch, @b : tensor<100xf32>
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[COPY:.*]] = memref.alloc
  // CHECK: linalg.generic {{.*}} ins(%[[B]] : memref<100xf32>) outs(%[[COPY]] : memref<100xf32>)
  // CHECK: memref.store %{{.*}}, %[[COPY]]
  %r = tensor.insert %zero into %b[%i] : tensor<100xf32>
  return %r : tensor<100xf32>
}
