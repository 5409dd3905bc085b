// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element-wise operators: broadcasting, 16-bit floats in f32, constants in the body.
// RUN: quire-opt %s --convert-onnx-to-linalg --allow-unregistered-dialect | FileCheck %s

// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
// CHECK-DAG: #[[LAST:.*]] = affine_map<(d0, d1, d2) -> (d2)>
// CHECK-DAG: #[[SINGLE:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, 0)>

// CHECK-LABEL: func.func @add(
// CHECK-SAME: %[[X:.*]]: tensor<1x?x8xf32>, %[[Y:.*]]: tensor<8xf32>)
// CHECK: %[[ROWS:.*]] = tensor.dim %[[X]]
// CHECK: %[[E:.*]] = tensor.empty(%[[ROWS]]) : tensor<1x?x8xf32>
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[LAST]], #[[ID]]], iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[X]], %[[Y]] : tensor<1x?x8xf32>, tensor<8xf32>) outs(%[[E]]
// CHECK: arith.addf
func.func @add(%x: tensor<1x?x8xf32>, %y: tensor<8xf32>) -> tensor<1x?x8xf32> {
  %z = onnx.Add %x, %y : (tensor<1x?x8xf32>, tensor<8xf32>) -> tensor<1x?x8xf32>
  return %z : tensor<1x?x8xf32>
}

// CHECK-LABEL: func.func @half(
// CHECK: linalg.generic {indexing_maps = [#[[ID]], #[[SINGLE]], #[[ID]]]
// CHECK: %[[A:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[B:.*]] = arith.extf %{{.*}} : f16 to f32
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[B]] : f32
// CHECK: arith.truncf %[[P]] : f32 to f16
func.func @half(%x: tensor<1x?x8xf16>, %y: tensor<1x?x1xf16>) -> tensor<1x?x8xf16> {
  %z = onnx.Mul %x, %y : (tensor<1x?x8xf16>, tensor<1x?x1xf16>) -> tensor<1x?x8xf16>
  return %z : tensor<1x?x8xf16>
}

// CHECK-LABEL: func.func @scalar(
// CHECK: linalg.generic {{.*}} ins(%{{[^,]*}} : tensor<1x?x8xf32>)
// CHECK: %[[C:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: arith.subf %{{.*}}, %[[C]]
func.func @scalar(%x: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {
  %c = onnx.constant dense<0.5> : tensor<f32>
  %z = onnx.Sub %x, %c : (tensor<1x?x8xf32>, tensor<f32>) -> tensor<1x?x8xf32>
  return %z : tensor<1x?x8xf32>
}

// CHECK-LABEL: func.func @square(
// CHECK: arith.mulf %[[V:.*]], %[[V]] : f32
// CHECK-NOT: math.powf
// CHECK: return
func.func @square(%x: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {
  %c = onnx.constant dense<2.0> : tensor<f32>
  %z = onnx.Pow %x, %c : (tensor<1x?x8xf32>, tensor<f32>) -> tensor<1x?x8xf32>
  return %z : tensor<1x?x8xf32>
}

// CHECK-LABEL: func.func @select(
// CHECK: arith.cmpi sle
// CHECK: arith.select
func.func @select(%i: tensor<1x?xi64>, %j: tensor<1x?xi64>, %x: tensor<1x?xf32>) -> tensor<1x?xf32> {
  %c = onnx.LessOrEqual %i, %j : (tensor<1x?xi64>, tensor<1x?xi64>) -> tensor<1x?xi1>
  %m = onnx.constant dense<-1.0> : tensor<f32>
  %z = onnx.Where %c, %x, %m : (tensor<1x?xi1>, tensor<1x?xf32>, tensor<f32>) -> tensor<1x?xf32>
  return %z : tensor<1x?xf32>
}

// CHECK-LABEL: func.func @casts(
// CHECK: arith.sitofp %{{.*}} : i64 to f32
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: arith.cmpf une
func.func @casts(%i: tensor<1x?xi64>) -> tensor<1x?xi1> {
  %h = onnx.Cast %i {to = f16} : (tensor<1x?xi64>) -> tensor<1x?xf16>
  %b = onnx.Cast %h {to = i1} : (tensor<1x?xf16>) -> tensor<1x?xi1>
  return %b : tensor<1x?xi1>
}

// CHECK-LABEL: func.func @gelu(
// CHECK: math.erf
func.func @gelu(%x: tensor<1x?x8xf32>) -> tensor<1x?x8xf32> {
  %z = onnx.Gelu %x : (tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
  return %z : tensor<1x?x8xf32>
}
