// RUN: quire-opt %s --lower-append --split-input-file --verify-diagnostics | FileCheck %s

!state = !kvrt.state<heads = 2, key = 64, value = 20, element = f16, block = 16, lanes = 8>

// CHECK-LABEL: func.func @step
func.func @step(%s: !state, %batch: !kvrt.batch, %k: memref<?x2x64xf32>, %v: memref<?x2x20xf32>) {
  // CHECK: kvrt.parallel (%[[B:.*]], %[[E:.*]]) = %{{.*}} on %{{.*}} grain 8 {
  // CHECK-NEXT: func.call @append(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[B]], %[[E]])
  kvrt.append %k, %v into %s, %batch : memref<?x2x64xf32>, memref<?x2x20xf32>, !state
  return
}

// CHECK-LABEL: func.func private @append
// CHECK-SAME: %[[K:.*]]: memref<?x2x64xf32>, %[[V:.*]]: memref<?x2x20xf32>
// CHECK: kvrt.read %{{.*}}[sequence_of]
// CHECK: kvrt.read %{{.*}}[places]
// CHECK: kvrt.tables %{{.*}}, %{{.*}} : <
// CHECK: %[[KPAGE:.*]] = kvrt.key_page
// CHECK: %[[VPAGE:.*]] = kvrt.value_page
// CHECK: memref.load %[[K]]
// CHECK: arith.truncf
// CHECK: memref.store %{{.*}}, %[[KPAGE]]{{.*}} : memref<2x2x64x8xf16>
// CHECK: vector.load %[[V]]{{.*}} vector<8xf32>
// CHECK: vector.store %{{.*}}, %[[VPAGE]]{{.*}} : memref<2x16x20xf16>, vector<8xf16>
// The last 4 of 20 features.
// CHECK: vector.store %{{.*}}, %[[VPAGE]]{{.*}} : memref<2x16x20xf16>, vector<4xf16>

// -----

// Codes: the range of each group gives scale and zero, then numbers become codes.
!state = !kvrt.state<heads = 2, key = 160, value = 20, element = i8, block = 16, lanes = 8>

func.func @codes(%s: !state, %batch: !kvrt.batch, %k: memref<?x2x160xf32>, %v: memref<?x2x20xf32>) {
  kvrt.append %k, %v into %s, %batch : memref<?x2x160xf32>, memref<?x2x20xf32>, !state
  return
}

// CHECK-LABEL: func.func private @append
// CHECK: %[[KSCALES:.*]] = kvrt.key_scales
// CHECK-COUNT-2: memref.store %{{.*}}, %[[KSCALES]]{{.*}} : memref<2x2x2x16xf32>
// CHECK-COUNT-2: memref.store %{{.*}}, %[[KSCALES]]{{.*}} : memref<2x2x2x16xf32>
// CHECK: %[[VSCALES:.*]] = kvrt.value_scales
// CHECK-COUNT-2: memref.store %{{.*}}, %[[VSCALES]]{{.*}} : memref<2x1x2x16xf32>
// CHECK: arith.fptoui %{{.*}} : f32 to i8
// CHECK: memref.store %{{.*}} : memref<2x2x160x8xi8>
// CHECK: arith.fptoui %{{.*}} : vector<8xf32> to vector<8xi8>
// CHECK: vector.store %{{.*}} : memref<2x16x20xi8>, vector<8xi8>

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f16, block = 16, lanes = 8>
func.func @tensors(%s: !state, %batch: !kvrt.batch, %k: tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected memrefs: lower-append runs after bufferization}}
  kvrt.append %k, %k into %s, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  return
}
