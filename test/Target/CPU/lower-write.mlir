// RUN: quire-opt %s --lower-write --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @own_buffer
func.func @own_buffer(%batch: !kvrt.batch, %x: memref<?x64xf32>, %w: memref<7x64x16xf32>) {
  %rows = kvrt.extent %batch[selected]
  // CHECK-NOT: memref.alloc
  // CHECK: %[[Y:.*]] = kvrt.logits %{{.*}} : memref<?x100xf32>
  %y = memref.alloc(%rows) : memref<?x100xf32>
  // CHECK: kvrt.product {{.*}} outs(%[[Y]] : memref<?x100xf32>)
  kvrt.product ins(%x, %w, %batch : memref<?x64xf32>, memref<7x64x16xf32>) outs(%y : memref<?x100xf32>)
  // CHECK-NOT: kvrt.write
  kvrt.write %y to %batch[logits] : memref<?x100xf32>
  return
}

// CHECK-LABEL: func.func @copied
func.func @copied(%batch: !kvrt.batch, %y: memref<?x100xf32, strided<[200, 1]>>) {
  // CHECK: %[[OUT:.*]] = kvrt.logits
  // CHECK: kvrt.parallel
  // CHECK: %[[ROW:.*]] = vector.load %{{.*}} : memref<?x100xf32, strided<[200, 1]>>, vector<8xf32>
  // CHECK: vector.store %[[ROW]], %[[OUT]]
  // CHECK: vector.store %{{.*}}, %[[OUT]]{{.*}} vector<4xf32>
  kvrt.write %y to %batch[logits] : memref<?x100xf32, strided<[200, 1]>>
  return
}

// -----

func.func @tensor(%batch: !kvrt.batch, %y: tensor<?x100xf32>) {
  // expected-error @+1 {{expected a memref: lower-write runs after bufferization}}
  kvrt.write %y to %batch[logits] : tensor<?x100xf32>
  return
}
