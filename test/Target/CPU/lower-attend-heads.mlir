// With vectors of 64 bytes a task of one row has several KV heads, as many as have 16 KiB of values in a block, where there are tasks enough.
// RUN: quire-opt %s --lower-attend=vector-bytes=64 --canonicalize --split-input-file | FileCheck %s
// RUN: quire-opt %s --lower-attend=vector-bytes=32 --canonicalize --split-input-file | FileCheck %s --check-prefix=NARROW
// RUN: quire-opt %s --lower-attend="vector-bytes=64 prefetch-tokens=0" --canonicalize --split-input-file | FileCheck %s --check-prefix=NEVER

!state = !kvrt.state<heads = 8, key = 128, value = 128, element = f16, block = 16, lanes = 16>

// 4 KiB of a head: four heads. Each thread is to have eight tasks, 64 are enough for all.
// CHECK-LABEL: func.func @step
// CHECK: %[[THREADS:.*]] = kvrt.extent %{{.*}}[threads]
// CHECK: %[[TASKS:.*]] = arith.muli %[[THREADS]], %c4 : index
// CHECK: %[[ENOUGH:.*]] = arith.min{{.*}} %[[TASKS]], %c32 : index
// CHECK: arith.muli %[[ENOUGH]], %c2 : index
// CHECK: %[[WANTED:.*]] = arith.min{{.*}} %{{.*}}, %c8 : index
// CHECK: arith.divui %{{.*}}, %[[WANTED]] : index
// CHECK: arith.min{{.*}} %{{.*}}, %c4 : index
// One row, if two tasks are as many for each thread; one thread.
// CHECK: arith.rem{{.*}} %c2, %[[THREADS]] : index
// CHECK: %[[ONE:.*]] = arith.cmpi eq, %[[THREADS]], %c1 : index
// CHECK: %[[CHOSEN:.*]] = arith.select %[[ONE]], %c4, %{{.*}} : index
// CHECK: %[[HEADS:.*]] = arith.select %{{.*}}, %[[CHOSEN]], %c1 : index
// CHECK: func.call @attend_16x128({{.*}}, %[[HEADS]], %{{[^,]*}}, %{{[^,]*}})
// NARROW-LABEL: func.func @step
// NARROW-NOT: arith.select %{{.*}}, %c4
// NARROW: func.call @attend_16x128(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}})
func.func @step(%s: !state, %batch: !kvrt.batch, %q: memref<?x16x128xf32>, %o: memref<?x16x128xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x16x128xf32>, !state) outs(%o : memref<?x16x128xf32>) {scale = 0.125 : f32}
  return
}

// CHECK-LABEL: func.func private @attend_16x128(
// Six rows of two query heads, or one row of four heads.
// CHECK: memref.alloca() {alignment = 64 : i64} : memref<12x128xf32>
// CHECK: arith.divui %{{.*}}, %arg4 : index
// CHECK: arith.minsi %arg4, %{{.*}} : index
// Several rows: the values of all pages of a tile, each line asked for once.
// CHECK: scf.if
// CHECK: kvrt.value_page
// CHECK: %[[AHEAD:.*]] = kvrt.value_page
// CHECK: memref.prefetch %[[AHEAD]]{{.*}} : memref<8x16x128xf16>
// CHECK-NOT: memref.prefetch
// CHECK: vector.load %{{.*}} : memref<8x16x128xf16>
// One row: the step of the softmax head by head, then the values of a page head by head, asked for four pages ahead, three, two and one.
// CHECK: } else {
// CHECK: math.exp
// CHECK: kvrt.value_page
// CHECK: arith.addi %{{.*}}, %c4 : index
// CHECK: %[[FIRST:.*]] = kvrt.value_page
// CHECK: arith.addi %{{.*}}, %c3 : index
// CHECK: %[[SECOND:.*]] = kvrt.value_page
// CHECK: arith.addi %{{.*}}, %c2 : index
// CHECK: %[[THIRD:.*]] = kvrt.value_page
// CHECK: arith.addi %{{.*}}, %c1 : index
// CHECK: %[[LAST:.*]] = kvrt.value_page
// CHECK: scf.for
// CHECK: vector.load %{{.*}} : memref<12x128xf32>, vector<16xf32>
// CHECK: scf.for
// CHECK: memref.prefetch %[[FIRST]]{{.*}} : memref<8x16x128xf16>
// CHECK-NEXT: memref.prefetch %[[SECOND]]{{.*}} : memref<8x16x128xf16>
// CHECK-NEXT: memref.prefetch %[[THIRD]]{{.*}} : memref<8x16x128xf16>
// CHECK-NEXT: memref.prefetch %[[LAST]]{{.*}} : memref<8x16x128xf16>
// NARROW-LABEL: func.func private @attend_16x128(
// NARROW: memref.prefetch %{{.*}} : memref<8x16x128xf16>
// NARROW-NOT: {{^ *}}memref.prefetch %{{[^:]*}} : memref<8x16x128xf16>{{[[:space:]]+}}memref.prefetch
// NEVER-LABEL: func.func private @attend_16x128(
// NEVER-NOT: memref.prefetch

// -----

// A head that has more is read alone, and so are elements that need registers to become numbers.
!long = !kvrt.state<heads = 8, key = 128, value = 128, element = f16, block = 128, lanes = 16>
!codes = !kvrt.state<heads = 8, key = 128, value = 128, element = i8, block = 16, lanes = 16>
!whole = !kvrt.state<heads = 16, key = 128, value = 128, element = f16, block = 512, lanes = 16>

// CHECK-LABEL: func.func @alone
// CHECK-NOT: kvrt.extent %{{.*}}[threads]
// CHECK: return
func.func @alone(%s: !long, %c: !codes, %w: !whole, %batch: !kvrt.batch, %q: memref<?x16x128xf32>, %o: memref<?x16x128xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x16x128xf32>, !long) outs(%o : memref<?x16x128xf32>) {scale = 0.125 : f32}
  kvrt.attend ins(%q, %c, %batch : memref<?x16x128xf32>, !codes) outs(%o : memref<?x16x128xf32>) {scale = 0.125 : f32}
  kvrt.attend ins(%q, %w, %batch : memref<?x16x128xf32>, !whole) outs(%o : memref<?x16x128xf32>) {scale = 0.125 : f32}
  return
}

// -----

// Where each query head has a KV head of its own, 128 KiB of values in a block need not be asked for: 32 heads. The second-level cache has
// room for 64. One row leaves each thread one task.
!many = !kvrt.state<heads = 40, key = 128, value = 128, element = f16, block = 16, lanes = 16>

// CHECK-LABEL: func.func @stream
// CHECK: %[[THREADS:.*]] = kvrt.extent %{{.*}}[threads]
// CHECK: %[[OF_THREAD:.*]] = arith.divui %{{.*}}, %[[THREADS]] : index
// CHECK: arith.muli %{{.*}}, %c16 : index
// CHECK: arith.select %{{.*}}, %[[OF_THREAD]], %{{.*}} : index
// CHECK: %[[SHARE:.*]] = arith.divui %{{.*}} : index
// CHECK: arith.cmpi sge, %{{.*}}, %c32 : index
// CHECK: func.call @attend_40x128
// NARROW-LABEL: func.func @stream
// NARROW-NOT: kvrt.extent %{{.*}}[threads]
// NARROW: return
func.func @stream(%s: !many, %batch: !kvrt.batch, %q: memref<?x40x128xf32>, %o: memref<?x40x128xf32>) {
  kvrt.attend ins(%q, %s, %batch : memref<?x40x128xf32>, !many) outs(%o : memref<?x40x128xf32>) {scale = 0.125 : f32}
  return
}

// CHECK-LABEL: func.func private @attend_40x128(
// Values in one go without a prefetch, or page by page with four.
// CHECK: %[[STREAMS:.*]] = arith.cmpi sge, %arg4, %c32 : index
// CHECK: scf.if %[[STREAMS]] {
// CHECK: kvrt.value_page
// CHECK-NOT: memref.prefetch
// CHECK: } else {
// CHECK-COUNT-4: memref.prefetch %{{.*}} : memref<40x16x128xf16>
