// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Constants fold to themselves, unused values go, and the same constant is kept once.
// RUN: quire-opt %s --cse --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @fold
// CHECK-NEXT: onnx.constant dense<1> : tensor<1xi64>
// CHECK-NEXT: onnx.ReduceSum
// CHECK-NEXT: return
func.func @fold(%x: tensor<2x3xf32>) -> tensor<2x1xf32> {
  %none = onnx.none : none
  %a = onnx.constant dense<1> : tensor<1xi64>
  %b = onnx.constant dense<1> : tensor<1xi64>
  %unused = onnx.Relu %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %y = onnx.ReduceSum %x, %b : (tensor<2x3xf32>, tensor<1xi64>) -> tensor<2x1xf32>
  return %y : tensor<2x1xf32>
}

// Draws are no pure functions: two of them stay two, used or not.
// CHECK-LABEL: func.func @random
// CHECK-COUNT-2: onnx.RandomNormalLike
func.func @random(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = onnx.RandomNormalLike %x : (tensor<2xf32>) -> tensor<2xf32>
  %b = onnx.RandomNormalLike %x : (tensor<2xf32>) -> tensor<2xf32>
  return %a : tensor<2xf32>
}
