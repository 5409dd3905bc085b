// With room for results over parts, a step with few tasks makes each part a task and merges afterwards.
// RUN: quire-opt %s --lower-attend --canonicalize | FileCheck %s
// RUN: quire-opt %s --lower-attend=part-tokens=64 --canonicalize | FileCheck %s --check-prefix=SMALL
// RUN: quire-opt %s --lower-attend=break=parts --canonicalize | FileCheck %s --check-prefix=BROKEN

!state = !kvrt.state<heads = 2, key = 64, value = 64, element = f16, block = 16, lanes = 8>

// CHECK-LABEL: func.func @step
// SMALL-LABEL: func.func @step
// The tasks are rows and KV heads; the most parts of a row are counted when they are few and uneven.
// CHECK: %[[TASKS:.*]] = arith.muli %{{.*}}, %c2 : index
// CHECK: %[[THREADS:.*]] = kvrt.extent %{{.*}}[threads]
// CHECK: arith.rem{{.*}} %[[TASKS]], %[[THREADS]] : index
// CHECK: arith.min{{.*}} %c32
// CHECK: %[[MOST:.*]] = scf.for %{{.*}} iter_args
// Keys beyond 32 parts of 512 double the size of a part.
// CHECK: arith.divui %{{.*}}, %c16384
// SMALL: arith.divui %{{.*}}, %c2048
// CHECK: math.ctlz
// CHECK: arith.shli %c32, %{{.*}} : index
// SMALL: arith.shli %c4, %{{.*}} : index
// CHECK: %[[PLACES:.*]] = arith.select %{{.*}}, %[[MOST]], %c0 : index
// CHECK: kvrt.parallel
// CHECK: func.call @attend_4x64({{.*}}, %[[PLACES]], %{{.*}}, %{{.*}})
// CHECK: %[[CUT:.*]] = arith.cmpi sge, %[[PLACES]], %c1 : index
// CHECK: scf.if %[[CUT]] {
// CHECK-NEXT: arith.muli %{{.*}}, %c4 : index
// CHECK-NEXT: kvrt.parallel
// CHECK-NEXT: func.call @combine_4x64({{.*}}, %[[PLACES]], %{{.*}}, %{{.*}})
func.func @step(%s: !state, %batch: !kvrt.batch, %q: memref<?x4x64xf32>, %p: memref<512x2x66xf32>, %o: memref<?x4x64xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x4x64xf32>, !state) parts(%p : memref<512x2x66xf32>) outs(%o : memref<?x4x64xf32>) {scale = 0.125 : f32}
  return
}

// Without room, or where several parts are one task, a task merges its parts itself, and the same code finishes.
// CHECK-LABEL: func.func @whole
// CHECK-NOT: scf.for
// CHECK: func.call @attend_4x64_0(
// CHECK-NOT: @combine
// CHECK: return
func.func @whole(%s: !state, %batch: !kvrt.batch, %q: memref<?x4x64xf32>, %o: memref<?x4x64xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x4x64xf32>, !state) outs(%o : memref<?x4x64xf32>) {scale = 0.125 : f32}
  return
}

// CHECK-LABEL: func.func private @attend_4x64(
// CHECK: memref.prefetch
// CHECK: vector.store %{{.*}} : memref<512x2x66xf32>
// CHECK: memref.store %{{.*}}[%{{.*}}, %{{.*}}, %c64] : memref<512x2x66xf32>
// CHECK: memref.store %{{.*}}[%{{.*}}, %{{.*}}, %c65] : memref<512x2x66xf32>

// CHECK-LABEL: func.func private @combine_4x64(
// CHECK: memref.load %{{.*}}[%{{.*}}, %{{.*}}, %c64] : memref<512x2x66xf32>
// CHECK: memref.load %{{.*}}[%{{.*}}, %{{.*}}, %c65] : memref<512x2x66xf32>
// CHECK: math.exp
// CHECK: vector.fma
// CHECK: arith.divf
// The first part is left out.
// BROKEN-LABEL: func.func private @combine_4x64(
// BROKEN: %[[FROM:.*]] = arith.addi %{{.*}}, %c1 : index
// BROKEN: scf.for %{{.*}} = %[[FROM]] to

// CHECK-LABEL: func.func private @attend_4x64_0(
// CHECK-NOT: memref<512x2x66xf32>
