// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators that move elements: views where they are views.
// RUN: quire-opt %s --convert-onnx-to-linalg --allow-unregistered-dialect | FileCheck %s

// CHECK-LABEL: func.func @heads(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0], [1], [2, 3]] output_shape [1, %{{.*}}, 4, 16]
// CHECK: linalg.generic
// CHECK: tensor.collapse_shape
func.func @heads(%x: tensor<1x?x64xf32>) -> tensor<4x?x16xf32> {
  %shape = onnx.constant dense<[1, -1, 4, 16]> : tensor<4xi64>
  %y = onnx.Reshape %x, %shape : (tensor<1x?x64xf32>, tensor<4xi64>) -> tensor<1x?x4x16xf32>
  %z = onnx.Transpose %y {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x?x4x16xf32>) -> tensor<1x4x?x16xf32>
  %axes = onnx.constant dense<0> : tensor<1xi64>
  %s = onnx.Squeeze %z, %axes : (tensor<1x4x?x16xf32>, tensor<1xi64>) -> tensor<4x?x16xf32>
  return %s : tensor<4x?x16xf32>
}

// A transpose that moves extents of 1 only is a view.
// CHECK-LABEL: func.func @single_head(
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @single_head(%x: tensor<1x?x1x16xf32>) -> tensor<1x1x?x16xf32> {
  %z = onnx.Transpose %x {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x?x1x16xf32>) -> tensor<1x1x?x16xf32>
  return %z : tensor<1x1x?x16xf32>
}

// CHECK-LABEL: func.func @rotate_half(
// CHECK: %[[A:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [1, %{{.*}}, 8] [1, 1, 1]
// CHECK: %[[B:.*]] = tensor.extract_slice %{{.*}}[0, 0, 8] [1, %{{.*}}, 8] [1, 1, 1]
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[B]]
// CHECK: %[[I:.*]] = tensor.insert_slice %[[N]] into %{{.*}}[0, 0, 0] [1, %{{.*}}, 8]
// CHECK: tensor.insert_slice %[[A]] into %[[I]][0, 0, 8] [1, %{{.*}}, 8]
func.func @rotate_half(%x: tensor<1x?x16xf32>) -> tensor<1x?x16xf32> {
  %zero = onnx.constant dense<0> : tensor<1xi64>
  %half = onnx.constant dense<8> : tensor<1xi64>
  %end = onnx.constant dense<9223372036854775807> : tensor<1xi64>
  %axis = onnx.constant dense<2> : tensor<1xi64>
  %one = onnx.constant dense<1> : tensor<1xi64>
  %a = onnx.Slice %x, %zero, %half, %axis, %one : (tensor<1x?x16xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x?x8xf32>
  %b = onnx.Slice %x, %half, %end, %axis, %one : (tensor<1x?x16xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<1x?x8xf32>
  %n = onnx.Neg %b : (tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
  %c = onnx.Concat %n, %a {axis = -1 : i64} : (tensor<1x?x8xf32>, tensor<1x?x8xf32>) -> tensor<1x?x16xf32>
  return %c : tensor<1x?x16xf32>
}

// CHECK-LABEL: func.func @embedding(
// CHECK-SAME: %[[T:.*]]: tensor<100x8xf32>, %[[IDS:.*]]: tensor<1x?xi64>)
// CHECK: linalg.generic {{.*}} ins(%[[IDS]] : tensor<1x?xi64>)
// CHECK: %[[I:.*]] = arith.index_cast
// CHECK: %[[C:.*]] = linalg.index 2
// CHECK: tensor.extract %[[T]][%[[I]], %[[C]]]
func.func @embedding(%table: tensor<100x8xf32>, %ids: tensor<1x?xi64>) -> tensor<1x?x8xf32> {
  %x = onnx.Gather %table, %ids : (tensor<100x8xf32>, tensor<1x?xi64>) -> tensor<1x?x8xf32>
  return %x : tensor<1x?x8xf32>
}

// CHECK-LABEL: func.func @generated(
// CHECK: arith.constant dense<[2, 5, 8]> : tensor<3xi64>
// CHECK: arith.constant dense<7> : tensor<2x3xi64>
func.func @generated() -> (tensor<3xi64>, tensor<2x3xi64>) {
  %start = onnx.constant dense<2> : tensor<i64>
  %limit = onnx.constant dense<10> : tensor<i64>
  %delta = onnx.constant dense<3> : tensor<i64>
  %r = onnx.Range %start, %limit, %delta : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<3xi64>
  %shape = onnx.constant dense<[2, 3]> : tensor<2xi64>
  %c = onnx.ConstantOfShape %shape {value = dense<7> : tensor<1xi64>} : (tensor<2xi64>) -> tensor<2x3xi64>
  return %r, %c : tensor<3xi64>, tensor<2x3xi64>
}
