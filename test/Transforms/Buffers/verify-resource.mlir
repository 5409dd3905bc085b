// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may no longer occur after the resource phase.
// RUN: quire-opt %s --split-input-file --verify-resource --verify-diagnostics

// expected-error @below {{expected no kv states after the resource phase, but got func.func}}
func.func @step(%batch: !kv.batch) {
  return
}

// -----

func.func @step(%batch: !kvrt.batch, %x: tensor<4xf32>) {
  // expected-error @below {{expected no onnx operators after the resource phase, but got onnx.Neg}}
  %y = onnx.Neg %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

kvrt.model @step {vocabulary = 10, token_limit = 10, max_positions = -1, block_tokens = 16, layers = []}
// expected-error @below {{expected a step of type (!kvrt.batch) -> (), but got '(!kvrt.batch) -> tensor<4xf32>'}}
func.func @step(%batch: !kvrt.batch) -> tensor<4xf32> {
  %x = arith.constant dense<0.0> : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

onnx.initializer @w {file = "m.data", offset = 0 : i64, bytes = 16 : i64} : tensor<4xf32>
kvrt.model @step {vocabulary = 10, token_limit = 10, max_positions = -1, block_tokens = 16, layers = []}
func.func @step(%batch: !kvrt.batch) {
  return
}

// -----

kvrt.raw @w {source = @w} : tensor<4xf32>
// expected-error @+1 {{expected a step function, but got @w}}
kvrt.model @w {vocabulary = 10, token_limit = 10, max_positions = -1, block_tokens = 16, layers = []}
