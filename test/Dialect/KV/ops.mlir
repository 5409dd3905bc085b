// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --verify-roundtrip | FileCheck %s

!contiguous = !kv.state<heads = 2, key = 64, value = 32, element = f32, layout = #kv.contiguous>
!paged = !kv.state<heads = 2, key = 64, value = 32, element = f16, layout = #kv.paged<block = 16>>

kv.entry @step {token_limit = 1000 : i64, max_positions = 4096 : i64}

// CHECK-LABEL: func.func @step
// CHECK-SAME: !kv.state<heads = 2, key = 64, value = 32, element = f32, layout = #kv.contiguous>
func.func @step(%batch: !kv.batch, %s0: !contiguous, %k: tensor<?x2x64xf32>, %v: tensor<?x2x32xf32>, %q: tensor<?x4x64xf32>) -> (tensor<?x4x32xf32>, !contiguous) {
  // CHECK: kv.positions %{{.*}} : tensor<1x?xi64>
  %p = kv.positions %batch : tensor<1x?xi64>
  // CHECK: kv.prefetch %{{.*}}, %{{.*}} {count = 4 : i64, first = 2 : i64}
  kv.prefetch %s0, %batch {first = 2 : i64, count = 4 : i64} : !contiguous
  // CHECK: kv.observe %{{.*}}, %{{.*}} : <heads
  kv.observe %s0, %batch : !contiguous
  // CHECK: kv.append %{{.*}}, %{{.*}} to %{{.*}}, %{{.*}} : tensor<?x2x64xf32>, tensor<?x2x32xf32>
  %s1 = kv.append %k, %v to %s0, %batch : tensor<?x2x64xf32>, tensor<?x2x32xf32>, !contiguous
  // CHECK: kv.attend %{{.*}}, %{{.*}}, %{{.*}} {scale = 1.250000e-01 : f64, window = 8 : i64}
  %o = kv.attend %q, %s1, %batch {scale = 0.125 : f64, window = 8 : i64} : tensor<?x4x64xf32>, !contiguous -> tensor<?x4x32xf32>
  return %o, %s1 : tensor<?x4x32xf32>, !contiguous
}

// CHECK-LABEL: func.func @every_modifier
func.func @every_modifier(%batch: !kv.batch, %s: !paged, %q: tensor<?x4x64xf16>, %sinks: tensor<4xf32>) -> tensor<?x4x32xf16> {
  // CHECK: kv.attend {{.*}} sinks(%{{.*}} : tensor<4xf32>) {alibi = array<f32: 5.000000e-01, 2.500000e-01, 1.250000e-01, 6.250000e-02>, causal = false, chunk = 32 : i64, scale = 1.000000e+00 : f64, softcap = 5.000000e+01 : f64}
  %o = kv.attend %q, %s, %batch sinks(%sinks : tensor<4xf32>) {scale = 1.0 : f64, causal = false, softcap = 50.0 : f64, chunk = 32 : i64,
      alibi = array<f32: 0.5, 0.25, 0.125, 0.0625>} : tensor<?x4x64xf16>, !paged -> tensor<?x4x32xf16>
  return %o : tensor<?x4x32xf16>
}

// CHECK-LABEL: func.func @selected_rows
func.func @selected_rows(%batch: !kv.batch, %x: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {
  // CHECK: kv.select %{{.*}}, %{{.*}} : tensor<1x?x8xf32>
  %y = kv.select %x, %batch : tensor<1x?x8xf32>
  return %y : tensor<1x?x8xf32>
}
