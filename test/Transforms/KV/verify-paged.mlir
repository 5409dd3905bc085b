// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What may no longer occur in the paged form.
// RUN: quire-opt %s --split-input-file --verify-paged --verify-diagnostics

!paged = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.paged<block = 16>>
func.func @good(%batch: !kv.batch, %s: !paged, %x: tensor<1x?x4xf32>) -> (tensor<1x?x4xf32>, !paged) {
  %y = onnx.Abs %x : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>
  return %y, %s : tensor<1x?x4xf32>, !paged
}

// -----

!contiguous = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>
// expected-error @+1 {{expected paged states after paginate, but got '!kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>'}}
func.func @contiguous(%batch: !kv.batch, %s: !contiguous) {
  return
}

// -----

func.func @unranked(%x: tensor<1x?x4xf32>) {
  // expected-error @+1 {{expected a ranked tensor in the paged form, but got 'tensor<*xf32>'}}
  %y = onnx.Abs %x : (tensor<1x?x4xf32>) -> tensor<*xf32>
  return
}

// -----

// expected-error @+1 {{expected at most one unknown extent in the paged form, but got 'tensor<?x?x4xf32>'}}
func.func @lengths(%x: tensor<?x?x4xf32>) {
  return
}

// -----

func.func @extents(%x: tensor<1x?x4xf32>) {
  // expected-error @+1 {{expected row-wise operations in the paged form, but got this one}}
  %s = onnx.Shape %x : (tensor<1x?x4xf32>) -> tensor<3xi64>
  return
}
