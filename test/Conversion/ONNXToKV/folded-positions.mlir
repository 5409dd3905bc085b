// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Positions whose batch and token axes are folded into one before the table is read, as in exports of models with sinusoidal positions: each sequence has its own row of tokens.
// RUN: sed -e 's/%%pos = onnx.Gather %%table, %%q_index .*/%%grid = onnx.Expand %%q_index, %%ishape : (tensor<?xi64>, tensor<2xi64>) -> tensor<?x?xi64>\n  %%all = onnx.constant dense<-1> : tensor<1xi64>\n  %%folded = onnx.Reshape %%grid, %%all : (tensor<?x?xi64>, tensor<1xi64>) -> tensor<?xi64>\n  %%found = onnx.Gather %%table, %%folded {axis = 0 : i64} : (tensor<32x8xf32>, tensor<?xi64>) -> tensor<?x8xf32>\n  %%eight = onnx.constant dense<8> : tensor<1xi64>\n  %%unfold = onnx.Concat %%ishape, %%eight {axis = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<3xi64>\n  %%pos = onnx.Reshape %%found, %%unfold : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<?x?x8xf32>/' -e 's/onnx.Add %%x0, %%pos : (tensor<?x?x8xf32>, tensor<?x8xf32>)/onnx.Add %%x0, %%pos : (tensor<?x?x8xf32>, tensor<?x?x8xf32>)/' %S/raise-attention.mlir > %t.mlir
// RUN: quire-opt %t.mlir --raise-attention --canonicalize --cse | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK-DAG: %[[POS:.*]] = kv.positions %{{.*}} : tensor<1x?xi64>
// CHECK: onnx.Gather %{{.*}}, %{{.*}} : (tensor<32x8xf32>, {{.*}}
// CHECK: kv.attend
// CHECK: kv.entry @step {max_positions = 32 : i64, token_limit = 6 : i64}
