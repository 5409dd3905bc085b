// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: quire-opt %s --paginate=block-tokens=32 --verify-paged | FileCheck %s
// RUN: quire-opt %s --paginate=block-tokens=32 --paginate=block-tokens=8 | FileCheck %s
// RUN: not quire-opt %s --paginate=block-tokens=24 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: quire-opt %s --paginate=block-tokens=32 --remarks-filter-missed=kv --paginate -o /dev/null 2>&1 | FileCheck %s --check-prefix=AGAIN

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
