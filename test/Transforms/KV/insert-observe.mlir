// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --pass-pipeline='builtin.module(func.func(insert-observe))' | FileCheck %s
// RUN: quire-opt %s --pass-pipeline='builtin.module(func.func(insert-observe,insert-observe))' | FileCheck %s

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.paged<block = 16>>

// A state that two layers attend to is observed once, after the last of them.
// CHECK-LABEL: func.func @step
func.func @step(%batch: !kv.batch, %s: !s, %t: !s, %x: tensor<?x1x4xf32>) -> (!s, !s) {
  %n = kv.append %x, %x to %s, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  // CHECK: kv.attend
  // CHECK-NOT: kv.observe
  %a = kv.attend %x, %n, %batch {scale = 0.5} : tensor<?x1x4xf32>, !s -> tensor<?x1x4xf32>
  %m = kv.append %a, %a to %t, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  // CHECK: kv.append {{.*}} to %arg2
  // CHECK: kv.attend
  // CHECK-NEXT: kv.observe %[[T:.*]], %arg0
  %b = kv.attend %a, %m, %batch {scale = 0.5} : tensor<?x1x4xf32>, !s -> tensor<?x1x4xf32>
  // CHECK: kv.attend
  // CHECK-NEXT: kv.observe
  // CHECK-NOT: kv.observe
  %c = kv.attend %b, %n, %batch {scale = 0.5} : tensor<?x1x4xf32>, !s -> tensor<?x1x4xf32>
  return %n, %m : !s, !s
}
