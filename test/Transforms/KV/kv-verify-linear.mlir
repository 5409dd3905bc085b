// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --split-input-file --verify-diagnostics --kv-verify-linear

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @in_order(%batch: !kv.batch, %s: !s, %x: tensor<?x1x4xf32>) -> !s {
  kv.prefetch %s, %batch : !s
  %n = kv.append %x, %x to %s, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  %o = kv.attend %x, %n, %batch {scale = 1.0 : f64} : tensor<?x1x4xf32>, !s -> tensor<?x1x4xf32>
  return %n : !s
}

// -----

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @two_consumers(%batch: !kv.batch, %s: !s, %x: tensor<?x1x4xf32>) -> (!s, !s) {
  // expected-note @+1 {{the first is here}}
  %n = kv.append %x, %x to %s, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  // expected-error @+1 {{expected one consumer of a state, but got a second}}
  %m = kv.append %x, %x to %s, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  return %n, %m : !s, !s
}

// -----

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @read_after_append(%batch: !kv.batch, %s: !s, %x: tensor<?x1x4xf32>) -> !s {
  // expected-note @+1 {{the consumer is here}}
  %n = kv.append %x, %x to %s, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  // expected-error @+1 {{expected reads of a state before its consumer, but got one after it}}
  kv.prefetch %s, %batch : !s
  return %n : !s
}

// -----

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @read_before_append(%batch: !kv.batch, %s: !s, %x: tensor<?x1x4xf32>) -> !s {
  // expected-error @+1 {{expected the append of the step before this read of the state}}
  %o = kv.attend %x, %s, %batch {scale = 1.0 : f64} : tensor<?x1x4xf32>, !s -> tensor<?x1x4xf32>
  return %s : !s
}

// -----

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @two_appends(%batch: !kv.batch, %s: !s, %x: tensor<?x1x4xf32>) -> !s {
  %n = kv.append %x, %x to %s, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  // expected-error @+1 {{expected one append of a state in a step, but got a second}}
  %m = kv.append %x, %x to %n, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  return %m : !s
}

// -----

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @neither(%s: !s) -> !s {
  // expected-error @+1 {{expected a read or a consumer of a state, but got an op that is neither}}
  %n = builtin.unrealized_conversion_cast %s : !s to !s
  return %n : !s
}

// -----

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>
func.func @consumed_in_a_branch(%batch: !kv.batch, %s: !s, %x: tensor<?x1x4xf32>, %c: i1) {
  scf.if %c {
    // expected-error @+1 {{expected the consumer of a state in the block that defines it}}
    %n = kv.append %x, %x to %s, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  }
  return
}
