// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A row that is the same for every token is a table of one row, and each row of the step takes that one.
// RUN: sed -f %S/Inputs/repeated_rows.sed %S/raise-attention.mlir > %t.mlir
// RUN: quire-opt %t.mlir --raise-attention | FileCheck %s

// CHECK: func.func @step(%[[IDS:[^:]*]]: tensor<1x?xi64>, %[[BATCH:[^:]*]]: !kv.batch
// CHECK: %[[POSITIONS:.*]] = kv.positions %[[BATCH]]
// CHECK: %[[FLAT:.*]] = onnx.Reshape %[[POSITIONS]], {{.*}} -> tensor<?xi64>
// CHECK: %[[NOTHING:.*]] = onnx.constant dense<0> : tensor<i64>
// CHECK: %[[ZEROS:.*]] = onnx.Mul %[[FLAT]], %[[NOTHING]]
// Numbers: one, then one for each row.
// CHECK: %[[TYPE:.*]] = onnx.constant dense<2> : tensor<1x1xi64>
// CHECK: %[[TYPES:.*]] = onnx.Gather %[[TYPE]], %[[ZEROS]] {axis = 1 : i64} : (tensor<1x1xi64>, tensor<?xi64>) -> tensor<1x?xi64>
// CHECK: onnx.Gather %{{.*}}, %[[TYPES]] : (tensor<6x8xf32>, tensor<1x?xi64>) -> tensor<1x?x8xf32>
// A row, and a number for all features of all rows.
// CHECK: %[[ROW:.*]] = onnx.Reshape %{{.*}} : (tensor<8xf32>, tensor<3xi64>) -> tensor<1x1x8xf32>
// CHECK: onnx.Gather %[[ROW]], %[[ZEROS]] {axis = 1 : i64} : (tensor<1x1x8xf32>, tensor<?xi64>) -> tensor<1x?x8xf32>
// CHECK: %[[NUMBER:.*]] = onnx.Gather %{{.*}}, %[[ZEROS]] {axis = 1 : i64} : (tensor<1x1x1xf32>, tensor<?xi64>) -> tensor<1x?x1xf32>
// CHECK: onnx.Expand %[[NUMBER]], {{.*}} -> tensor<1x?x8xf32>
// CHECK: %[[FILLED:.*]] = onnx.constant dense<1.500000e+00> : tensor<1x1x8xf32>
// CHECK: onnx.Gather %[[FILLED]], %[[ZEROS]] {axis = 1 : i64} : (tensor<1x1x8xf32>, tensor<?xi64>) -> tensor<1x?x8xf32>
