// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --paginate=block-tokens=32 --verify-paged | FileCheck %s
// RUN: quire-opt %s --paginate=block-tokens=32 --paginate=block-tokens=8 | FileCheck %s
// RUN: not quire-opt %s --paginate=block-tokens=24 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: quire-opt %s --paginate=block-tokens=32 --remarks-filter-missed=kv --paginate -o /dev/null 2>&1 | FileCheck %s --check-prefix=AGAIN

// RUN: quire-opt %s --paginate=kv-type=int8 --verify-paged | FileCheck %s --check-prefix=INT8
// RUN: quire-opt %s --paginate=kv-type=f16 | FileCheck %s --check-prefix=F16
// RUN: quire-opt %s --paginate=kv-type=bf16 | FileCheck %s --check-prefix=BF16
// RUN: quire-opt %s --paginate=kv-type=int4 --verify-paged | FileCheck %s --check-prefix=INT4
// RUN: quire-opt %s --paginate=kv-type=fp8_e4m3 --verify-paged | FileCheck %s --check-prefix=E4M3
// RUN: quire-opt %s --paginate=kv-type=fp8_e5m2 --verify-paged | FileCheck %s --check-prefix=E5M2
// RUN: not quire-opt %s --paginate=kv-type=int2 2>&1 | FileCheck %s --check-prefix=NO-TYPE

// INT8: !kv.state<heads = 1, key = 4, value = 4, element = i8, layout = #kv.paged<block = 16>>
// F16: !kv.state<heads = 1, key = 4, value = 4, element = f16, layout = #kv.paged<block = 16>>
// BF16: !kv.state<heads = 1, key = 4, value = 4, element = bf16, layout = #kv.paged<block = 16>>
// INT4: !kv.state<heads = 1, key = 4, value = 4, element = i4, layout = #kv.paged<block = 16>>
// E4M3: !kv.state<heads = 1, key = 4, value = 4, element = f8E4M3FN, layout = #kv.paged<block = 16>>
// E5M2: !kv.state<heads = 1, key = 4, value = 4, element = f8E5M2, layout = #kv.paged<block = 16>>
// NO-TYPE: error: expected kv-type model, f16, bf16, int8, int4, fp8_e4m3 or fp8_e5m2, but got 'int2'
// ODD: error: expected a block of a power of two of tokens, but got 24
// AGAIN: remark: {{.*}}no contiguous state is here

!s = !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.contiguous>

// CHECK-LABEL: func.func @step
// CHECK-SAME: !kv.state<heads = 1, key = 4, value = 4, element = f32, layout = #kv.paged<block = 32>>
// CHECK-NOT: #kv.contiguous
func.func @step(%batch: !kv.batch, %s: !s, %x: tensor<?x1x4xf32>) -> !s {
  %n = kv.append %x, %x to %s, %batch : tensor<?x1x4xf32>, tensor<?x1x4xf32>, !s
  return %n : !s
}

// Selection moves up through row-wise ops, and stops where the rows are needed whole.
// CHECK-LABEL: func.func @select_moves_up
func.func @select_moves_up(%batch: !kv.batch, %x: tensor<1x?x8xf32>, %w: tensor<8x16xf32>) -> (tensor<1x?x16xf32>, tensor<1x?x8xf32>) {
  // CHECK: %[[ABS:.*]] = onnx.Abs
  %a = onnx.Abs %x : (tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
  // CHECK: %[[ROWS:.*]] = kv.select %[[ABS]]
  // CHECK: %[[NEG:.*]] = onnx.Neg %[[ROWS]]
  // CHECK: %[[Y:.*]] = onnx.MatMul %[[NEG]]
  // CHECK: return %[[Y]], %[[ABS]]
  %n = onnx.Neg %a : (tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
  %y = onnx.MatMul %n, %w : (tensor<1x?x8xf32>, tensor<8x16xf32>) -> tensor<1x?x16xf32>
  %s = kv.select %y, %batch : tensor<1x?x16xf32>
  return %s, %a : tensor<1x?x16xf32>, tensor<1x?x8xf32>
}

// A value that only selected rows are read of is selected itself: the residual and what is computed from it. The row axis may move on the way.
// CHECK-LABEL: func.func @select_crosses_residuals
func.func @select_crosses_residuals(%batch: !kv.batch, %x: tensor<1x?x8xf32>, %o: tensor<?x2x4xf32>, %w: tensor<8x8xf32>) -> tensor<1x?x8xf32> {
  // CHECK: %[[O:.*]] = kv.select %arg2, %arg0 : tensor<?x2x4xf32>
  // CHECK: onnx.Reshape %[[O]]
  // CHECK: %[[X:.*]] = kv.select %arg1, %arg0 : tensor<1x?x8xf32>
  // CHECK-NOT: kv.select
  // CHECK: onnx.Add %[[X]]
  // CHECK: onnx.MatMul
  // CHECK: %[[Y:.*]] = onnx.Add
  // CHECK-NOT: kv.select
  // CHECK: return %[[Y]]
  %four = onnx.constant dense<[1, -1, 2, 4]> : tensor<4xi64>
  %three = onnx.constant dense<[1, -1, 8]> : tensor<3xi64>
  %a = onnx.Reshape %o, %four : (tensor<?x2x4xf32>, tensor<4xi64>) -> tensor<1x?x2x4xf32>
  %b = onnx.Transpose %a {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32>
  %c = onnx.Transpose %b {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x2x?x4xf32>) -> tensor<1x?x2x4xf32>
  %d = onnx.Reshape %c, %three : (tensor<1x?x2x4xf32>, tensor<3xi64>) -> tensor<1x?x8xf32>
  %r = onnx.Add %x, %d : (tensor<1x?x8xf32>, tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
  %m = onnx.MatMul %r, %w : (tensor<1x?x8xf32>, tensor<8x8xf32>) -> tensor<1x?x8xf32>
  %y = onnx.Add %r, %m : (tensor<1x?x8xf32>, tensor<1x?x8xf32>) -> tensor<1x?x8xf32>
  %s = kv.select %y, %batch : tensor<1x?x8xf32>
  return %s : tensor<1x?x8xf32>
}
