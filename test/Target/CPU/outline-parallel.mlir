// RUN: quire-opt %s --outline-parallel --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[BATCH:.*]]: !kvrt.batch, %[[A:.*]]: memref<?xf32>, %[[C:.*]]: memref<?xf32>, %[[N:.*]]: index
func.func @step(%batch: !kvrt.batch, %a: memref<?xf32>, %c: memref<?xf32>, %n: index) {
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: kvrt.parallel_call @piece(%[[N]]) on %[[BATCH]] grain 8 captures(%[[A]] : memref<?xf32>)
  kvrt.parallel (%b, %e) = %n on %batch grain 8 {
    scf.for %i = %b to %e step %c1 {
      memref.store %zero, %a[%i] : memref<?xf32>
    }
  }
  // The same body over another buffer is the same function.
  // CHECK: kvrt.parallel_call @piece(%[[N]]) on %[[BATCH]] grain 4 captures(%[[C]] : memref<?xf32>)
  kvrt.parallel (%b, %e) = %n on %batch grain 4 {
    scf.for %i = %b to %e step %c1 {
      memref.store %zero, %c[%i] : memref<?xf32>
    }
  }
  // CHECK: kvrt.parallel_call @piece_0(
  kvrt.parallel (%b, %e) = %n on %batch grain 4 {
    %x = memref.load %a[%b] : memref<?xf32>
    memref.store %x, %c[%b] : memref<?xf32>
  }
  return
}
// CHECK: func.func private @piece(%[[B:.*]]: index, %[[E:.*]]: index, %[[M:.*]]: memref<?xf32>)
// CHECK-DAG: arith.constant 1 : index
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: scf.for %[[I:.*]] = %[[B]] to %[[E]]
// CHECK: memref.store %[[ZERO]], %[[M]][%[[I]]]
// CHECK: func.func private @piece_0(%{{.*}}: index, %{{.*}}: index, %{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32>)

// -----

func.func @tensors(%batch: !kvrt.batch, %t: tensor<4xf32>, %m: memref<?xf32>, %n: index) {
  // expected-error @+1 {{expected no tensor from outside in the region, but got 'tensor<4xf32>'}}
  kvrt.parallel (%b, %e) = %n on %batch grain 8 {
    %x = tensor.extract %t[%b] : tensor<4xf32>
    memref.store %x, %m[%b] : memref<?xf32>
  }
  return
}
