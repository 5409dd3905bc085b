// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --pass-pipeline='builtin.module(func.func(insert-prefetch))' | FileCheck %s
// RUN: quire-opt %s --pass-pipeline='builtin.module(func.func(insert-prefetch,insert-prefetch))' | FileCheck %s
// RUN: quire-opt %s --pass-pipeline='builtin.module(func.func(insert-prefetch{distance=2}))' | FileCheck %s --check-prefix=TWO
// RUN: quire-opt %s --pass-pipeline='builtin.module(func.func(insert-prefetch{distance=0}))' --remarks-filter-missed=kv 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: remark: {{.*}}the distance is 0
// NONE-NOT: kv.prefetch

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.paged<block = 16>>

// Layer l + 1 is requested before layer l is appended and attended.
// CHECK-LABEL: func.func @three_layers
// CHECK-SAME: %[[BATCH:.*]]: !kv.batch, %[[S0:[a-z0-9]*]]: !kv.state{{.*}}, %[[S1:[a-z0-9]*]]: !kv.state{{.*}}, %[[S2:[a-z0-9]*]]: !kv.state
// CHECK-NEXT: kv.prefetch %[[S0]], %[[BATCH]]
// CHECK-NEXT: kv.prefetch %[[S1]], %[[BATCH]]
// CHECK-NEXT: kv.append {{.*}} to %[[S0]]
// CHECK-NEXT: kv.attend
// CHECK-NEXT: kv.prefetch %[[S2]], %[[BATCH]]
// CHECK-NEXT: kv.append {{.*}} to %[[S1]]
// CHECK-NEXT: kv.attend
// CHECK-NEXT: kv.append {{.*}} to %[[S2]]
// CHECK-NOT: kv.prefetch

// TWO-LABEL: func.func @three_layers
// TWO-SAME: %[[BATCH:.*]]: !kv.batch, %[[S0:[a-z0-9]*]]: !kv.state{{.*}}, %[[S1:[a-z0-9]*]]: !kv.state{{.*}}, %[[S2:[a-z0-9]*]]: !kv.state
// TWO-NEXT: kv.prefetch %[[S0]]
// TWO-NEXT: kv.prefetch %[[S1]]
// TWO-NEXT: kv.prefetch %[[S2]]
// TWO-NEXT: kv.append {{.*}} to %[[S0]]
func.func @three_layers(%batch: !kv.batch, %s0: !s, %s1: !s, %s2: !s, %x: tensor<?x1x4xf32>) -> (!s, !s, !s) {
  %n0 = kv.append %x, %x to %s0, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  %o0 = kv.attend %x, %n0, %batch {scale = 1.0 : f64} : tensor<?x1x4xf32>, !s -> tensor<?x1x4xf32>
  %n1 = kv.append %o0, %x to %s1, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  %o1 = kv.attend %o0, %n1, %batch {scale = 1.0 : f64} : tensor<?x1x4xf32>, !s -> tensor<?x1x4xf32>
  %n2 = kv.append %o1, %x to %s2, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  %o2 = kv.attend %o1, %n2, %batch {scale = 1.0 : f64} : tensor<?x1x4xf32>, !s -> tensor<?x1x4xf32>
  return %n0, %n1, %n2 : !s, !s, !s
}
