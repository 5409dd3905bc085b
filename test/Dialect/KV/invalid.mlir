// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{expected heads, key and value of at least 1, but got 0, 4 and 4}}
func.func private @bad(!kv.state<heads = 0, key = 4, value = 4, element = f32, layout = #kv.contiguous>)

// -----

// expected-error @+1 {{expected a float element, i8 or i4, but got 'i16'}}
func.func private @bad(!kv.state<heads = 1, key = 4, value = 4, element = i16, layout = #kv.contiguous>)

// -----

// expected-error @+2 {{expected a block of a power of two of tokens, but got 12}}
// expected-error @+1 {{failed to parse KV_StateType parameter 'layout'}}
func.func private @bad(!kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.paged<block = 12>>)

// -----

// expected-error @+2 {{expected a group that is not negative, but got -1}}
// expected-error @+1 {{failed to parse KV_StateType parameter 'layout'}}
func.func private @bad(!kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.paged<block = 8, group = -1>>)

// -----

func.func @bad(%batch: !kv.batch) {
  // expected-error @+1 {{expected positions of type [1, rows], but got 'tensor<?xi64>'}}
  %p = kv.positions %batch : tensor<?xi64>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %k: tensor<?x1x4xf32>, %v: tensor<?x2x4xf32>) {
  // expected-error @+1 {{expected key of type [rows, 2, 4], but got 'tensor<?x1x4xf32>'}}
  %n = kv.append %k, %v to %s, %batch : tensor<?x1x4xf32>, tensor<?x2x4xf32>, !s
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %k: tensor<?x2x4xf32>, %v: tensor<?x2x5xf32>) {
  // expected-error @+1 {{expected value of type [rows, 2, 4], but got 'tensor<?x2x5xf32>'}}
  %n = kv.append %k, %v to %s, %batch : tensor<?x2x4xf32>, tensor<?x2x5xf32>, !s
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %q: tensor<?x2x8xf32>) {
  // expected-error @+1 {{expected query of type [rows, heads, 4], but got 'tensor<?x2x8xf32>'}}
  %o = kv.attend %q, %s, %batch {scale = 1.0 : f64} : tensor<?x2x8xf32>, !s -> tensor<?x2x4xf32>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %q: tensor<?x3x4xf32>) {
  // expected-error @+1 {{expected query heads that are a multiple of 2, but got 3}}
  %o = kv.attend %q, %s, %batch {scale = 1.0 : f64} : tensor<?x3x4xf32>, !s -> tensor<?x3x4xf32>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %q: tensor<?x2x4xf32>) {
  // expected-error @+1 {{expected result of type [rows, 2, 4], but got 'tensor<?x2x8xf32>'}}
  %o = kv.attend %q, %s, %batch {scale = 1.0 : f64} : tensor<?x2x4xf32>, !s -> tensor<?x2x8xf32>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %q: tensor<?x2x4xf32>) {
  // expected-error @+1 {{expected a window of at least 1, but got 0}}
  %o = kv.attend %q, %s, %batch {scale = 1.0 : f64, window = 0 : i64} : tensor<?x2x4xf32>, !s -> tensor<?x2x4xf32>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %q: tensor<?x2x4xf32>) {
  // expected-error @+1 {{expected a chunk of at least 1, but got -4}}
  %o = kv.attend %q, %s, %batch {scale = 1.0 : f64, chunk = -4 : i64} : tensor<?x2x4xf32>, !s -> tensor<?x2x4xf32>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %q: tensor<?x2x4xf32>) {
  // expected-error @+1 {{expected a softcap above 0, but got 0.000000e+00}}
  %o = kv.attend %q, %s, %batch {scale = 1.0 : f64, softcap = 0.0 : f64} : tensor<?x2x4xf32>, !s -> tensor<?x2x4xf32>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %q: tensor<?x2x4xf32>) {
  // expected-error @+1 {{expected 2 alibi slopes, but got 1}}
  %o = kv.attend %q, %s, %batch {scale = 1.0 : f64, alibi = array<f32: 1.0>} : tensor<?x2x4xf32>, !s -> tensor<?x2x4xf32>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s, %q: tensor<?x2x4xf32>, %sinks: tensor<3xf32>) {
  // expected-error @+1 {{expected sinks of type [2], but got 'tensor<3xf32>'}}
  %o = kv.attend %q, %s, %batch sinks(%sinks : tensor<3xf32>) {scale = 1.0 : f64} : tensor<?x2x4xf32>, !s -> tensor<?x2x4xf32>
  return
}

// -----

func.func @bad(%batch: !kv.batch, %x: tensor<1x4x8xf32>) {
  // expected-error @+1 {{expected one extent '?', that of the rows, but got 'tensor<1x4x8xf32>'}}
  %y = kv.select %x, %batch : tensor<1x4x8xf32>
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s) {
  // expected-error @+1 {{expected a first block that is not negative, but got -1}}
  kv.prefetch %s, %batch {first = -1 : i64} : !s
  return
}

// -----

!s = !kv.state<heads = 2, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @bad(%batch: !kv.batch, %s: !s) {
  // expected-error @+1 {{expected a count of blocks that is not 0}}
  kv.prefetch %s, %batch {count = 0 : i64} : !s
  return
}

// -----

// expected-error @+1 {{expected a function, but got 'nowhere'}}
kv.entry @nowhere {token_limit = 10 : i64}
