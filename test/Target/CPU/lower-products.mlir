// RUN: quire-opt %s --lower-products=vector-bytes=32 --split-input-file --verify-diagnostics | FileCheck %s --check-prefixes=CHECK,AVX2
// RUN: quire-opt %s --lower-products=vector-bytes=64 --split-input-file --verify-diagnostics | FileCheck %s --check-prefixes=CHECK,AVX512

// CHECK-LABEL: func.func @step
func.func @step(%batch: !kvrt.batch, %x: memref<?x64xf32>, %x2: memref<?x64xf32>, %w: memref<4x64x32xf16>, %y: memref<?x100xf32>) {
  // Two products of one form share a kernel.
  // CHECK: kvrt.parallel (%[[B:.*]], %[[E:.*]]) = %{{.*}} on %{{.*}} grain 32 {
  // CHECK-NEXT: func.call @product_f16x32(%{{.*}}, %{{.*}}, %{{.*}}, %[[B]], %[[E]])
  kvrt.product ins(%x, %w, %batch : memref<?x64xf32>, memref<4x64x32xf16>) outs(%y : memref<?x100xf32>)
  // Another input: another loop.
  // CHECK: kvrt.parallel
  // CHECK-NEXT: func.call @product_f16x32(
  kvrt.product ins(%x2, %w, %batch : memref<?x64xf32>, memref<4x64x32xf16>) outs(%y : memref<?x100xf32>)
  return
}

// Products of one input share a loop: its tasks are the panels of the first (4 for each chunk of rows), then those of the second (3).
// CHECK-LABEL: func.func @group
// CHECK: %[[CHUNKS:.*]] = arith.divui
// CHECK: %[[COUNT:.*]] = arith.muli %[[CHUNKS]], %c7
// CHECK: kvrt.parallel (%[[B:.*]], %[[E:.*]]) = %[[COUNT]]
// CHECK: %[[MIN:.*]] = arith.minsi %[[E]], %[[END:.*]] : index
// CHECK: func.call @product_f16x32(
// CHECK: %[[START:.*]] = arith.muli %[[CHUNKS]], %c4
// CHECK: %[[LOW:.*]] = arith.maxsi %[[B]], %[[START]]
// CHECK: arith.subi %[[LOW]], %[[START]]
// CHECK: func.call @product_f16x32_0(
// CHECK-NOT: kvrt.parallel
// CHECK: return
func.func @group(%batch: !kvrt.batch, %x: memref<?x64xf32>, %w: memref<4x64x32xf16>, %y: memref<?x100xf32>, %z: memref<?x96xf32>) {
  kvrt.product ins(%x, %w, %batch : memref<?x64xf32>, memref<4x64x32xf16>) outs(%y : memref<?x100xf32>)
  %v = memref.subview %w[0, 0, 0] [3, 64, 32] [1, 1, 1] : memref<4x64x32xf16> to memref<3x64x32xf16>
  kvrt.product ins(%x, %v, %batch : memref<?x64xf32>, memref<3x64x32xf16>) outs(%z : memref<?x96xf32>)
  return
}

// CHECK-LABEL: func.func private @product_f16x32(
// The depth is that of the weight, whatever it is.
// CHECK: %[[K:.*]] = memref.dim %arg1, %c1{{(_.*)?}} :
// Weights are widened once for all rows of a block; every sum is a loop-carried vector.
// Blocks take turns on pieces of the depth; 6 rows are a block where 2 x 8 lanes are a vector, 8 where they are 16.
// AVX2: arith.cmpi sle, %{{.*}}, %c6{{(_.*)? :}}
// AVX512: arith.cmpi sle, %{{.*}}, %c8{{(_.*)? :}}
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[K]] step %{{.*}} {
// CHECK: scf.while
// AVX2: scf.for %{{.*}} iter_args({{.*}}) -> (vector<8xf32>
// AVX2: %[[NARROW:.*]] = vector.load %{{.*}} : memref<?x?x32xf16>, vector<8xf16>
// AVX2: %[[WIDE:.*]] = arith.extf %[[NARROW]] : vector<8xf16> to vector<8xf32>
// AVX2: vector.fma %[[WIDE]], %{{.*}}, %{{.*}} : vector<8xf32>
// AVX512: scf.for %{{.*}} iter_args({{.*}}) -> (vector<16xf32>
// AVX512: vector.load %{{.*}} : memref<?x?x32xf16>, vector<16xf16>
// AVX512: vector.fma {{.*}} : vector<16xf32>
// The last panel has 4 columns: the rest is not stored.
// CHECK: scf.if
// AVX2: vector.maskedstore %{{.*}} : memref<?x?xf32>, vector<8xi1>, vector<8xf32>
// AVX512: vector.maskedstore %{{.*}} : memref<?x?xf32>, vector<16xi1>, vector<16xf32>
// CHECK-NOT: func.func private @product_f16x32_1

// -----

func.func @tensors(%batch: !kvrt.batch, %x: tensor<?x64xf32>, %w: tensor<4x64x32xf16>, %y: tensor<?x100xf32>) {
  // expected-error @+1 {{expected memrefs: lower-products runs after bufferization}}
  %r = kvrt.product ins(%x, %w, %batch : tensor<?x64xf32>, tensor<4x64x32xf16>) outs(%y : tensor<?x100xf32>) -> tensor<?x100xf32>
  return
}
