// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// States become layers, arguments and results become the step structure.
// RUN: quire-opt %s --split-input-file --convert-kv-to-kvrt=lanes=16 --verify-diagnostics --allow-unregistered-dialect | FileCheck %s

// CHECK: kvrt.model @step {block_tokens = 32 : i64, layers = [!kvrt.state<heads = 2, key = 64, value = 32, element = f16, block = 32, lanes = 16>, !kvrt.state<heads = 2, key = 64, value = 32, element = f16, block = 32, lanes = 16>], max_positions = 77 : i64, place_is_position = array<i64: 1, 1>, query_heads = array<i64: 0, 4>, token_limit = 999 : i64, vocabulary = 1000 : i64, windows = array<i64: 8, 0>
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[B:.*]]: !kvrt.batch) {
!state = !kv.state<heads = 2, key = 64, value = 32, element = f16, layout = #kv.paged<block = 32>>
kv.entry @step {token_limit = 999 : i64, max_positions = 77 : i64}
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch, %s0: !state, %s1: !state) -> (tensor<1x?x1000xf32>, !state, !state) {
  // CHECK: %[[IDS:.*]] = kvrt.read %[[B]][ids] : tensor<1x?xi64>
  // CHECK: %[[P:.*]] = kvrt.read %[[B]][positions] : tensor<1x?xi64>
  // CHECK: %[[Q:.*]]:3 = "test.make"(%[[IDS]], %[[P]])
  %p = kv.positions %batch : tensor<1x?xi64>
  %q, %k, %v = "test.make"(%ids, %p) : (tensor<1x?xi64>, tensor<1x?xi64>) -> (tensor<?x4x64xf32>, tensor<?x2x64xf32>, tensor<?x2x32xf32>)
  // CHECK: kvrt.prefetch %[[B]] {layer = 1
  kv.prefetch %s1, %batch : !state
  // CHECK: %[[S0:.*]] = kvrt.acquire %[[B]], 0
  // CHECK: kvrt.append %[[Q]]#1, %[[Q]]#2 into %[[S0]], %[[B]]
  %t0 = kv.append %k, %v to %s0, %batch : tensor<?x2x64xf32>, tensor<?x2x32xf32>, !state
  // CHECK: kvrt.attend ins(%[[Q]]#0, %[[S0]], %[[B]]
  // CHECK-SAME: chunk = 16
  // CHECK-SAME: softcap = 3.000000e+01
  // CHECK-SAME: window = 8
  // CHECK: kvrt.release %[[S0]]
  %a0 = kv.attend %q, %t0, %batch {scale = 1.250000e-01 : f64, softcap = 3.000000e+01 : f64, window = 8 : i64, chunk = 16 : i64} : tensor<?x4x64xf32>, !state -> tensor<?x4x32xf32>
  // CHECK: %[[S1:.*]] = kvrt.acquire %[[B]], 1
  // CHECK: kvrt.append
  // CHECK: kvrt.attend
  // CHECK-SAME: alibi_slopes = array<f32: 1.000000e+00, 5.000000e-01, 2.500000e-01, 1.250000e-01>, observe
  // CHECK: kvrt.release %[[S1]]
  %t1 = kv.append %k, %v to %s1, %batch : tensor<?x2x64xf32>, tensor<?x2x32xf32>, !state
  %a1 = kv.attend %q, %t1, %batch {scale = 1.250000e-01 : f64, alibi = array<f32: 1.0, 0.5, 0.25, 0.125>} : tensor<?x4x64xf32>, !state -> tensor<?x4x32xf32>
  kv.observe %t1, %batch : !state
  %x = "test.join"(%a0, %a1) : (tensor<?x4x32xf32>, tensor<?x4x32xf32>) -> tensor<1x?x1000xf32>
  // CHECK: %[[N:.*]] = kvrt.extent %[[B]][selected]
  // CHECK: %[[ROWS:.*]] = kvrt.read %[[B]][selected] : tensor<?xi64>
  // CHECK: linalg.generic {{.*}} ins(%[[ROWS]] : tensor<?xi64>)
  // CHECK: tensor.extract
  %y = kv.select %x, %batch : tensor<1x?x1000xf32>
  // CHECK: %[[L:.*]] = tensor.collapse_shape
  // CHECK: kvrt.write %[[L]] to %[[B]][logits] : tensor<?x1000xf32>
  // CHECK: return
  return %y, %t0, %t1 : tensor<1x?x1000xf32>, !state, !state
}

// -----

// Whether the place of a key must be its position follows from what the scores depend on: the order of keys is enough for a causal mask, a cap and sinks.
// Attention that sees all keys beside one with a window leaves no window, but needs positions.
// CHECK: kvrt.model @places {{.*}}max_positions = -1 : i64, place_is_position = array<i64: 0, 0, 1, 1, 1>, token_limit = 10 : i64, vocabulary = 10 : i64, windows = array<i64: 0, 0, 0, 16, 0>}
!state = !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 32>>
func.func @places(%ids: tensor<1x?xi64>, %batch: !kv.batch, %s0: !state, %s1: !state, %s2: !state, %s3: !state, %s4: !state) -> (tensor<1x?x10xf32>, !state, !state, !state, !state, !state) {
  %q, %sinks = "test.make"(%ids) : (tensor<1x?xi64>) -> (tensor<?x2x64xf32>, tensor<2xf32>)
  %t0 = kv.append %q, %q to %s0, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  %a0 = kv.attend %q, %t0, %batch sinks(%sinks : tensor<2xf32>) {scale = 1.0 : f64, softcap = 3.000000e+01 : f64} : tensor<?x2x64xf32>, !state -> tensor<?x2x64xf32>
  %t1 = kv.append %q, %q to %s1, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  %a1 = kv.attend %q, %t1, %batch {scale = 1.0 : f64, causal = false} : tensor<?x2x64xf32>, !state -> tensor<?x2x64xf32>
  %t2 = kv.append %q, %q to %s2, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  %a2 = kv.attend %q, %t2, %batch {scale = 1.0 : f64, window = 8 : i64} : tensor<?x2x64xf32>, !state -> tensor<?x2x64xf32>
  %b2 = kv.attend %q, %t2, %batch {scale = 1.0 : f64} : tensor<?x2x64xf32>, !state -> tensor<?x2x64xf32>
  %t3 = kv.append %q, %q to %s3, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  %a3 = kv.attend %q, %t3, %batch {scale = 1.0 : f64, chunk = 16 : i64} : tensor<?x2x64xf32>, !state -> tensor<?x2x64xf32>
  %t4 = kv.append %q, %q to %s4, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  %a4 = kv.attend %q, %t4, %batch {scale = 1.0 : f64, alibi = array<f32: 1.0, 0.5>} : tensor<?x2x64xf32>, !state -> tensor<?x2x64xf32>
  %x = "test.join"(%a0, %a1, %a2, %b2, %a3, %a4) : (tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<?x2x64xf32>) -> tensor<1x?x10xf32>
  return %x, %t0, %t1, %t2, %t3, %t4 : tensor<1x?x10xf32>, !state, !state, !state, !state, !state
}

// -----

// 16-bit logits leave in f32.
// CHECK-LABEL: func.func @half(
!state = !kv.state<heads = 2, key = 64, value = 64, element = f16, layout = #kv.paged<block = 32>>
func.func @half(%ids: tensor<1x?xi64>, %batch: !kv.batch, %s0: !state) -> (tensor<1x?x10xf16>, !state) {
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf16>
  // CHECK: arith.extf
  // CHECK: kvrt.write %{{.*}} : tensor<?x10xf32>
  return %x, %s0 : tensor<1x?x10xf16>, !state
}

// -----

!state = !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.contiguous>
// expected-error @below {{expected paged states, but got '!kv.state}}
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch, %s0: !state) -> (tensor<1x?x10xf32>, !state) {
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf32>
  return %x, %s0 : tensor<1x?x10xf32>, !state
}

// -----

!state = !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 32, group = 1>>
// expected-error @below {{not implemented: convert states of more than one group of block tables}}
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch, %s0: !state) -> (tensor<1x?x10xf32>, !state) {
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf32>
  return %x, %s0 : tensor<1x?x10xf32>, !state
}

// -----

!a = !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 32>>
!b = !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 16>>
// expected-error @below {{not implemented: convert states of different block sizes}}
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch, %s0: !a, %s1: !b) -> (tensor<1x?x10xf32>, !a, !b) {
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf32>
  return %x, %s0, %s1 : tensor<1x?x10xf32>, !a, !b
}

// -----

// expected-error @below {{expected token ids, a batch and states, but got an argument of type 'tensor<4xf32>'}}
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch, %other: tensor<4xf32>) -> tensor<1x?x10xf32> {
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf32>
  return %x : tensor<1x?x10xf32>
}

// -----

// expected-error @below {{expected a step that takes a batch and returns logits}}
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch) {
  return
}

// -----

// expected-error @below {{expected logits of a known number of columns, but got 'tensor<1x?xi64>'}}
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch) -> tensor<1x?xi64> {
  return %ids : tensor<1x?xi64>
}

// -----

func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch) -> tensor<2x?x10xf32> {
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<2x?x10xf32>
  // expected-error @below {{expected logits [rows, columns], but got 'tensor<2x?x10xf32>'}}
  return %x : tensor<2x?x10xf32>
}

// -----

!state = !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 32>>
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch, %s0: !state) -> (tensor<1x?x10xf32>, !state) {
  %q, %k, %sinks, %x = "test.make"(%ids) : (tensor<1x?xi64>) -> (tensor<?x2x64xf32>, tensor<?x2x64xf32>, tensor<2xf32>, tensor<1x?x10xf32>)
  %s1 = kv.append %k, %k to %s0, %batch : tensor<?x2x64xf32>, tensor<?x2x64xf32>, !state
  // expected-error @below {{not implemented: convert kv.attend with alibi and sinks}}
  %a = kv.attend %q, %s1, %batch sinks(%sinks : tensor<2xf32>) {scale = 1.0 : f64, alibi = array<f32: 1.0, 0.5>} : tensor<?x2x64xf32>, !state -> tensor<?x2x64xf32>
  return %x, %s1 : tensor<1x?x10xf32>, !state
}

// -----

func.func @first(%ids: tensor<1x?xi64>, %batch: !kv.batch) -> tensor<1x?x10xf32> {
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf32>
  return %x : tensor<1x?x10xf32>
}
// expected-error @below {{expected one step, but got another one}}
func.func @second(%ids: tensor<1x?xi64>, %batch: !kv.batch) -> tensor<1x?x10xf32> {
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf32>
  return %x : tensor<1x?x10xf32>
}

// -----

// expected-error @below {{not implemented: convert a step of several blocks}}
func.func @step(%ids: tensor<1x?xi64>, %batch: !kv.batch) -> tensor<1x?x10xf32> {
  cf.br ^next
^next:
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf32>
  return %x : tensor<1x?x10xf32>
}

// -----

!state = !kv.state<heads = 2, key = 64, value = 64, element = f32, layout = #kv.paged<block = 32>>
func.func @observed_early(%ids: tensor<1x?xi64>, %batch: !kv.batch, %s0: !state) -> (tensor<1x?x10xf32>, !state) {
  // expected-error @+1 {{expected an attend of the state before it is observed}}
  kv.observe %s0, %batch : !state
  %x = "test.make"(%ids) : (tensor<1x?xi64>) -> tensor<1x?x10xf32>
  return %x, %s0 : tensor<1x?x10xf32>, !state
}
