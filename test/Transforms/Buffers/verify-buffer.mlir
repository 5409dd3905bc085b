// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may no longer occur after the buffer phase.
// RUN: quire-opt %s --split-input-file --verify-buffer --verify-diagnostics

func.func @step(%batch: !kvrt.batch) {
  // expected-error @below {{expected no tensors after the buffer phase, but got kvrt.read}}
  %ids = kvrt.read %batch[ids] : tensor<1x?xi64>
  return
}

// -----

func.func @step(%batch: !kvrt.batch, %x: memref<4xf32>) {
  %c = arith.constant 0.0 : f32
  // expected-error @below {{expected no linalg after the buffer phase, but got linalg.fill}}
  linalg.fill ins(%c : f32) outs(%x : memref<4xf32>)
  return
}

// -----

func.func @step(%batch: !kvrt.batch, %x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error @below {{expected no copies after the buffer phase, but got memref.copy}}
  memref.copy %x, %y : memref<4xf32> to memref<4xf32>
  return
}

// -----

func.func @step(%batch: !kvrt.batch) {
  // expected-error @below {{expected no allocations after the buffer phase, but got memref.alloc}}
  %x = memref.alloc() : memref<4xf32>
  return
}
