// RUN: quire-opt %s --lower-attend --split-input-file --verify-diagnostics | FileCheck %s
// RUN: quire-opt %s --lower-attend=converts-half=false --split-input-file --verify-diagnostics | FileCheck %s --check-prefix=NO-HALF

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f16, block = 16, lanes = 8>

// CHECK-LABEL: func.func @step
func.func @step(%s: !state, %batch: !kvrt.batch, %q: memref<?x4x64xf32>, %o: memref<?x4x64xf32>) {
  // CHECK: kvrt.parallel (%[[B:.*]], %[[E:.*]]) = %{{.*}} on %{{.*}} grain 1 {
  // CHECK-NEXT: func.call @attend_4x64(%{{.*}}, %[[B]], %[[E]])
  kvrt.attend ins(%q, %s, %batch : memref<?x4x64xf32>, !state) outs(%o : memref<?x4x64xf32>) {scale = 0.125 : f32, softcap = 30.0 : f32, window = 100}
  // Other attributes, another kernel.
  // CHECK: func.call @attend_4x64_0(
  kvrt.attend ins(%q, %s, %batch : memref<?x4x64xf32>, !state) outs(%o : memref<?x4x64xf32>) {scale = 0.125 : f32, alibi_slopes = array<f32: 0.5, 0.25, 0.125, 0.0625>}
  return
}

// CHECK-LABEL: func.func private @attend_4x64(
// Carried maximum, sum and accumulator live on the stack.
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<12x64xf32>
// CHECK: scf.while
// One page after the other; the pages to come are prefetched into the second-level cache.
// CHECK: kvrt.key_page
// CHECK: kvrt.value_page
// CHECK: memref.prefetch %{{.*}}, read, locality<2>, data : memref<2x2x64x8xf16>
// CHECK: vector.load %{{.*}} : memref<2x2x64x8xf16>, vector<8xf16>
// CHECK: vector.fma
// CHECK: math.tanh
// CHECK: arith.cmpi sge
// CHECK: arith.cmpi slt
// CHECK: arith.select %{{.*}} : vector<8xi1>, vector<8xf32>
// CHECK: math.exp %{{.*}} : vector<8xf32>
// CHECK: memref.prefetch %{{.*}}, read, locality<2>, data : memref<2x16x64xf16>
// CHECK: vector.load %{{.*}} : memref<2x16x64xf16>, vector<8xf16>

// CHECK-LABEL: func.func private @attend_4x64_0(
// CHECK: memref.get_global @slopes
// CHECK-NOT: math.tanh
// CHECK: arith.sitofp
// CHECK: memref.global "private" constant @slopes : memref<4xf32> = dense<[5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02]>

// -----

// The last row of a sequence leaves what it sees of each page, if the runtime asks.
!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f32, block = 16, lanes = 8>

func.func @observed(%s: !state, %batch: !kvrt.batch, %q: memref<?x4x64xf32>, %o: memref<?x4x64xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x4x64xf32>, !state) outs(%o : memref<?x4x64xf32>) {scale = 0.125 : f32, observe}
  return
}

// CHECK-LABEL: func.func private @attend_4x64(
// CHECK: %[[WANTED:.*]] = kvrt.is_observed
// CHECK: %[[WATCHED:.*]] = arith.andi %[[WANTED]], %{{.*}} : i1
// CHECK: math.exp %{{.*}} : vector<8xf32>
// CHECK: scf.if %[[WATCHED]] {
// CHECK: kvrt.key_page
// CHECK: arith.addf %{{.*}} : vector<8xf32>
// CHECK: scf.if %[[WATCHED]] {
// CHECK: kvrt.observed %{{.*}} -> memref<?x4x?x2xf32>
// CHECK-COUNT-2: memref.store %{{.*}} : memref<?x4x?x2xf32>

// -----

// Codes are multiplied as they are; scale and zero join once for a key, and for each slot of V.
!state = !kvrt.state<heads = 2, key = 64, value = 64, element = i8, block = 16, lanes = 8>

func.func @codes(%s: !state, %batch: !kvrt.batch, %q: memref<?x2x64xf32>, %o: memref<?x2x64xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x2x64xf32>, !state) outs(%o : memref<?x2x64xf32>) {scale = 0.125 : f32}
  return
}

// CHECK-LABEL: func.func private @attend_2x64(
// CHECK: %[[KS:.*]] = kvrt.key_scales
// CHECK: %[[VS:.*]] = kvrt.value_scales
// CHECK: memref.prefetch %{{.*}}, read, locality<2>, data : memref<2x1x2x16xf32>
// CHECK: vector.load %{{.*}} : memref<2x2x64x8xi8>, vector<8xi8>
// CHECK: arith.uitofp %{{.*}} : vector<8xi8> to vector<8xf32>
// CHECK: vector.load %[[KS]]{{.*}} : memref<2x1x2x16xf32>, vector<8xf32>
// CHECK: vector.load %{{.*}} : memref<2x16x64xi8>, vector<8xi8>
// CHECK: memref.load %[[VS]]{{.*}} : memref<2x1x2x16xf32>

// -----

// Bytes of two codes are loaded once; the lower halves are features 0 to 31, the upper ones 32 to 63.
!state = !kvrt.state<heads = 2, key = 64, value = 64, element = i4, block = 16, lanes = 8>

func.func @halves(%s: !state, %batch: !kvrt.batch, %q: memref<?x2x64xf32>, %o: memref<?x2x64xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x2x64xf32>, !state) outs(%o : memref<?x2x64xf32>) {scale = 0.125 : f32}
  return
}

// CHECK-LABEL: func.func private @attend_2x64(
// CHECK: vector.load %{{.*}} : memref<2x2x32x8xi8>, vector<8xi8>
// CHECK: %[[BYTES:.*]] = vector.load %{{.*}} : memref<2x2x32x8xi8>, vector<8xi8>
// CHECK: %[[WIDE:.*]] = arith.extui %[[BYTES]] : vector<8xi8> to vector<8xi32>
// CHECK: arith.andi %[[WIDE]], %cst{{.*}} : vector<8xi32>
// CHECK: arith.sitofp %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK: vector.fma
// CHECK: arith.shrui %{{.*}}, %cst{{.*}} : vector<8xi32>
// CHECK: vector.fma
// CHECK: %[[VBYTES:.*]] = vector.load %{{.*}} : memref<2x16x32xi8>, vector<8xi8>
// CHECK: arith.extui %[[VBYTES]]
// CHECK: arith.extui %[[VBYTES]]
// CHECK-NOT: arith.extui %[[VBYTES]]
// CHECK: vector.load %{{.*}} : memref<2x16x32xi8>, vector<8xi8>

// -----

// Numbers of 8 bits go by f16 where the processor converts that.
!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f8E5M2, block = 16, lanes = 8>

func.func @small_floats(%s: !state, %batch: !kvrt.batch, %q: memref<?x2x64xf32>, %o: memref<?x2x64xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x2x64xf32>, !state) outs(%o : memref<?x2x64xf32>) {scale = 0.125 : f32}
  return
}

// CHECK-LABEL: func.func private @attend_2x64(
// CHECK-NOT: kvrt.key_scales
// CHECK: vector.load %{{.*}} : memref<2x2x64x8xf8E5M2>, vector<8xf8E5M2>
// CHECK: arith.bitcast %{{.*}} : vector<8xi16> to vector<8xf16>
// CHECK: arith.extf %{{.*}} : vector<8xf16> to vector<8xf32>
// CHECK: vector.load %{{.*}} : memref<2x16x64xf8E5M2>, vector<8xf8E5M2>
// NO-HALF: vector.load %{{.*}} : memref<2x2x64x8xf8E5M2>, vector<8xf8E5M2>
// NO-HALF-NOT: vector<8xf16>
// NO-HALF: vector.load %{{.*}} : memref<2x16x64xf8E5M2>, vector<8xf8E5M2>
// NO-HALF-NOT: vector<8xf16> to vector<8xf32>
// NO-HALF: return

// -----

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f16, block = 16, lanes = 8>
func.func @tensors(%s: !state, %batch: !kvrt.batch, %q: tensor<?x4x64xf32>, %o: tensor<?x4x64xf32>) {
  // expected-error @+1 {{expected memrefs: lower-attend runs after bufferization}}
  %r = kvrt.attend ins(%q, %s, %batch : tensor<?x4x64xf32>, !state) outs(%o : tensor<?x4x64xf32>) {scale = 0.125 : f32} -> tensor<?x4x64xf32>
  return
}
