// RUN: quire-opt %s --expand-math | FileCheck %s

// CHECK-LABEL: func.func @polynomials
func.func @polynomials(%x: vector<8xf32>, %y: f32) -> (vector<8xf32>, f32, f32) {
  // CHECK-NOT: math.exp
  %a = math.exp %x : vector<8xf32>
  // CHECK-NOT: math.tanh
  %b = math.tanh %y : f32
  // CHECK: math.sin
  %c = math.sin %y : f32
  return %a, %b, %c : vector<8xf32>, f32, f32
}

// CHECK-LABEL: func.func @bfloat
func.func @bfloat(%x: vector<8xf32>, %y: bf16) -> (vector<8xbf16>, f32) {
  // No choice between numbers of bf16: LLVM may do that in f32.
  // CHECK-NOT: arith.truncf
  // CHECK: %[[NAN:.*]] = arith.cmpf uno
  // CHECK: %[[BITS:.*]] = arith.select %[[NAN]], %{{.*}}, %{{.*}} : vector<8xi1>, vector<8xi32>
  // CHECK: %[[UPPER:.*]] = arith.shrui %[[BITS]]
  // CHECK: %[[HALF:.*]] = arith.trunci %[[UPPER]] : vector<8xi32> to vector<8xi16>
  // CHECK: arith.bitcast %[[HALF]] : vector<8xi16> to vector<8xbf16>
  %a = arith.truncf %x : vector<8xf32> to vector<8xbf16>
  // CHECK-NOT: arith.extf
  %b = arith.extf %y : bf16 to f32
  return %a, %b : vector<8xbf16>, f32
}

// CHECK-LABEL: func.func @copy
func.func @copy(%a: memref<?x4xf32, strided<[8, 1]>>, %b: memref<?x4xf32>) {
  // CHECK-NOT: memref.copy
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: memref.load
  // CHECK: memref.store
  memref.copy %a, %b : memref<?x4xf32, strided<[8, 1]>> to memref<?x4xf32>
  return
}
