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

// Two codes of 4 bits share a byte: features 0 and 3 of 5, 1 and 4, then 2 alone.
!state = !kvrt.state<heads = 2, key = 5, value = 40, element = i4, block = 16, lanes = 8>

func.func @halves(%s: !state, %batch: !kvrt.batch, %k: memref<?x2x5xf32>, %v: memref<?x2x40xf32>) {
  kvrt.append %k, %v into %s, %batch : memref<?x2x5xf32>, memref<?x2x40xf32>, !state
  return
}

// CHECK-LABEL: func.func private @append
// CHECK: %[[KPAGE:.*]] = kvrt.key_page
// CHECK: %[[VPAGE:.*]] = kvrt.value_page
// CHECK: kvrt.value_scales
// CHECK: scf.for %[[PAIR:.*]] = %c0{{.*}} to %c2
// CHECK: %[[UPPER:.*]] = arith.addi %[[PAIR]], %c3{{.*}}
// CHECK: memref.load %{{.*}}, %[[UPPER]]] : memref<?x2x5xf32>
// CHECK: %[[LOW:.*]] = arith.fptoui %{{.*}} : f32 to i8
// CHECK: %[[HIGH:.*]] = arith.fptoui %{{.*}} : f32 to i8
// CHECK: %[[SHIFTED:.*]] = arith.shli %[[HIGH]], %c4_i8
// CHECK: %[[BYTE:.*]] = arith.ori %[[LOW]], %[[SHIFTED]] : i8
// CHECK: memref.store %[[BYTE]], %[[KPAGE]][%{{.*}}, %{{.*}}, %[[PAIR]], %{{.*}}] : memref<2x2x3x8xi8>
// CHECK: %[[LAST:.*]] = arith.fptoui %{{.*}} : f32 to i8
// CHECK: memref.store %[[LAST]], %[[KPAGE]]
// CHECK: vector.store %{{.*}}, %[[VPAGE]]{{.*}} : memref<2x16x20xi8>, vector<8xi8>
// CHECK: vector.store %{{.*}}, %[[VPAGE]]{{.*}} : memref<2x16x20xi8>, vector<4xi8>

// -----

// Numbers of 8 bits have no scales; 1138753536 is the largest of them, 448, and what is beyond becomes NaN.
!state = !kvrt.state<heads = 2, key = 16, value = 16, element = f8E4M3FN, block = 16, lanes = 8>

func.func @small_floats(%s: !state, %batch: !kvrt.batch, %k: memref<?x2x16xf32>, %v: memref<?x2x16xf32>) {
  kvrt.append %k, %v into %s, %batch : memref<?x2x16xf32>, memref<?x2x16xf32>, !state
  return
}

// CHECK-LABEL: func.func private @append
// CHECK-NOT: kvrt.key_scales
// CHECK: %[[FITS:.*]] = arith.cmpi ult, %{{.*}}, %c1138753537_i32
// CHECK: arith.select %[[FITS]], %{{.*}}, %c127_i32
// CHECK: arith.bitcast %{{.*}} : i8 to f8E4M3FN
// CHECK: memref.store %{{.*}} : memref<2x2x16x8xf8E4M3FN>
// CHECK: arith.bitcast %{{.*}} : vector<8xi8> to vector<8xf8E4M3FN>
// CHECK: vector.store %{{.*}} : memref<2x16x16xf8E4M3FN>, vector<8xf8E4M3FN>

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f16, block = 16, lanes = 8>
func.func @tensors(%s: !state, %batch: !kvrt.batch, %k: tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected memrefs: lower-append runs after bufferization}}
  kvrt.append %k, %k into %s, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  return
}
