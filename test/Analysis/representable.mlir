// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers that count are exact, or nothing is said of them: a type that wraps or rounds positions makes them unknown.
//
// RUN: quire-opt %s --split-input-file --test-print-element | FileCheck %s

// CHECK-LABEL: @casts
// CHECK-DAG: to_i32 [L] P + i0
// CHECK-DAG: to_f32 [L] P + i0
// CHECK-DAG: to_i8 [L] {{.*}}positions beyond what i8 counts exactly
// CHECK-DAG: to_u8 [L] {{.*}}positions beyond what ui8 counts exactly
// CHECK-DAG: to_i16 [L] {{.*}}positions beyond what i16 counts exactly
// CHECK-DAG: to_f16 [L] rounded(P + i0)
// CHECK-DAG: to_bf16 [L] rounded(P + i0)
// CHECK-DAG: small [4] i0
// CHECK-DAG: difference [L] P + i0 - 1
// A difference of numbers below T is no larger than T, whatever its terms are.
// CHECK-DAG: from_last [L + P] -L - P + i0 + 1
// CHECK-DAG: twice [L + P] rounded(2*L + 2*P + 2*i0)
// CHECK-DAG: wraps32 [L] {{.*}}positions beyond what i32 counts exactly
// CHECK-DAG: wraps64 [L] {{.*}}positions beyond what i64 counts exactly
// CHECK-DAG: shifted64 [L] {{.*}}positions beyond what i64 counts exactly
// CHECK-DAG: absorbed [L] {{.*}}positions beyond what f32 counts exactly
// CHECK-DAG: absorbed64 [L] P + i0 + 33554432
// CHECK-DAG: scaled [L] 0.5*P + 0.5*i0
onnx.entry @casts {inputs = ["input_ids", "past"], outputs = ["y", "present"]}
func.func @casts(%ids: tensor<?x?xi64>, %past: tensor<?x2x?x4xf32>) -> (tensor<?xi64>, tensor<?x2x?x4xf32>) {
  %none = onnx.none : none
  %e = onnx.constant dense<[[1.0], [2.0]]> : tensor<2x1xf32>
  %row = onnx.Gather %e, %ids : (tensor<2x1xf32>, tensor<?x?xi64>) -> tensor<?x?x1xf32> loc("row")
  %present = onnx.Concat %past, %past {axis = 2 : i64} : (tensor<?x2x?x4xf32>, tensor<?x2x?x4xf32>) -> tensor<?x2x?x4xf32> loc("present")
  %one = onnx.constant dense<1> : tensor<i64>
  %two = onnx.constant dense<2> : tensor<i64>
  %shape = onnx.Shape %ids : (tensor<?x?xi64>) -> tensor<2xi64>
  %pshape = onnx.Shape %past : (tensor<?x2x?x4xf32>) -> tensor<4xi64>
  %p = onnx.Gather %pshape, %two : (tensor<4xi64>, tensor<i64>) -> tensor<i64>
  %l = onnx.Gather %shape, %one : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %t = onnx.Add %p, %l : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %position = onnx.Range %p, %t, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64> loc("position")
  %to_i32 = onnx.Cast %position {to = i32} : (tensor<?xi64>) -> tensor<?xi32> loc("to_i32")
  %to_f32 = onnx.Cast %position {to = f32} : (tensor<?xi64>) -> tensor<?xf32> loc("to_f32")
  %to_f64 = onnx.Cast %position {to = f64} : (tensor<?xi64>) -> tensor<?xf64> loc("to_f64")
  %to_i8 = onnx.Cast %position {to = i8} : (tensor<?xi64>) -> tensor<?xi8> loc("to_i8")
  %to_u8 = onnx.Cast %position {to = ui8} : (tensor<?xi64>) -> tensor<?xui8> loc("to_u8")
  %to_i16 = onnx.Cast %position {to = i16} : (tensor<?xi64>) -> tensor<?xi16> loc("to_i16")
  %to_f16 = onnx.Cast %position {to = f16} : (tensor<?xi64>) -> tensor<?xf16> loc("to_f16")
  %to_bf16 = onnx.Cast %position {to = bf16} : (tensor<?xi64>) -> tensor<?xbf16> loc("to_bf16")
  %table = onnx.constant dense<[0, 1, 2, 3]> : tensor<4xi64>
  %small = onnx.Cast %table {to = i8} : (tensor<4xi64>) -> tensor<4xi8> loc("small")
  %difference = onnx.Sub %position, %one : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("difference")
  %zero = onnx.constant dense<0> : tensor<i64>
  %keys = onnx.Range %zero, %t, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  %last = onnx.Sub %t, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %behind = onnx.Sub %keys, %last : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  %from_last = onnx.Cast %behind {to = f32} : (tensor<?xi64>) -> tensor<?xf32> loc("from_last")
  %sums = onnx.Add %keys, %t : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64>
  %doubled = onnx.Add %sums, %sums : (tensor<?xi64>, tensor<?xi64>) -> tensor<?xi64>
  %twice = onnx.Cast %doubled {to = f32} : (tensor<?xi64>) -> tensor<?xf32> loc("twice")
  %big32 = onnx.constant dense<33554432> : tensor<i32>
  %wraps32 = onnx.Mul %to_i32, %big32 : (tensor<?xi32>, tensor<i32>) -> tensor<?xi32> loc("wraps32")
  %big64 = onnx.constant dense<144115188075855872> : tensor<i64>
  %wraps64 = onnx.Mul %position, %big64 : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("wraps64")
  %top64 = onnx.constant dense<9223372036854775707> : tensor<i64>
  %shifted64 = onnx.Add %position, %top64 : (tensor<?xi64>, tensor<i64>) -> tensor<?xi64> loc("shifted64")
  %bigf = onnx.constant dense<33554432.0> : tensor<f32>
  %absorbed = onnx.Add %to_f32, %bigf : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("absorbed")
  %bigd = onnx.constant dense<33554432.0> : tensor<f64>
  %absorbed64 = onnx.Add %to_f64, %bigd : (tensor<?xf64>, tensor<f64>) -> tensor<?xf64> loc("absorbed64")
  %half = onnx.constant dense<0.5> : tensor<f32>
  %scaled = onnx.Mul %to_f32, %half : (tensor<?xf32>, tensor<f32>) -> tensor<?xf32> loc("scaled")
  return %position, %present : tensor<?xi64>, tensor<?x2x?x4xf32>
}
