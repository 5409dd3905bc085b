// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is not proved is refused, and the module stays as it was, to the bit.
// RUN: not quire-opt %S/raise-attention.mlir --raise-attention=input-role=a=mask 2>&1 | FileCheck %s --check-prefix=ROLE
// ROLE: error: expected NAME=ROLE with a role of input-ids, {{.*}}, but got 'a=mask'
// RUN: not quire-opt %S/raise-attention.mlir --raise-attention=input-role=nothing=state 2>&1 | FileCheck %s --check-prefix=NAME
// NAME: error: the model has no input 'nothing': expected one of a, b, c, d in NAME=ROLE, but got 'nothing=state'
// RUN: not quire-opt %s --raise-attention 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: error: expected an imported model with @main and onnx.entry{{$}}

// A model that is raised already. No diagnostic about a whole module prints it.
// RUN: quire-opt %S/raise-attention.mlir --raise-attention -o %t.raised.mlir
// RUN: not quire-opt %t.raised.mlir --raise-attention 2>&1 | FileCheck %s --check-prefix=RAISED --implicit-check-not="see current operation"
// RUN: not quire-opt %t.raised.mlir --paginate=block-tokens=12 2>&1 | FileCheck %s --check-prefix=BLOCK --implicit-check-not="see current operation"
// RUN: not quire-opt %t.raised.mlir --paginate=kv-type=f33 2>&1 | FileCheck %s --check-prefix=TYPE --implicit-check-not="see current operation"
// RAISED: error: expected an imported model with @main and onnx.entry, but got one that is raised already: say its phase by compile-from
// BLOCK: error: expected a block of a power of two of tokens, but got 12
// TYPE: error: expected kv-type model, {{.*}}, but got 'f33'

// One cause that reaches several outputs is one reason.
// RUN: sed 's/%%x = onnx.Add %%x0, %%pos/%%all = onnx.constant dense<1> : tensor<1xi64>\n  %%mixed = onnx.ReduceMean %%x0, %%all {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<?x?x8xf32>\n  %%x = onnx.Add %%mixed, %%pos/' %S/raise-attention.mlir > %t.mixed.mlir
// RUN: not quire-opt %t.mixed.mlir --raise-attention 2>&1 | FileCheck %s --check-prefix=MIXED --implicit-check-not=ReduceMean
// MIXED: error: not raised: output 'e' (and 2 more): ReduceMean {{.*}}

// A key that is after the query is visible: not causal.
// RUN: sed 's/onnx.Greater %%k_index, %%q_column/onnx.Less %%k_index, %%q_column/' %S/raise-attention.mlir > %t.less.mlir
// RUN: not quire-opt %t.less.mlir --raise-attention 2>&1 | FileCheck %s --check-prefix=LESS
// LESS: error: not raised: {{.*}}mask has no known kind: [k - p >= 0]

// Logits that mix the tokens of the call.
// RUN: sed 's/%%logits = onnx.MatMul %%o2, %%wo/%%mean_axis = onnx.constant dense<1> : tensor<1xi64>\n  %%mean = onnx.ReduceMean %%o2, %%mean_axis {keepdims = 1 : i64, noop_with_empty_axes = 0 : i64} : (tensor<?x?x8xf32>, tensor<1xi64>) -> tensor<?x?x8xf32>\n  %%logits = onnx.MatMul %%mean, %%wo/' %S/raise-attention.mlir > %t.mean.mlir
// RUN: not quire-opt %t.mean.mlir --raise-attention 2>&1 | FileCheck %s --check-prefix=MEAN
// MEAN: error: not raised: output 'e': ReduceMean {{.*}}

// The value that is stored is not the value that is attended.
// RUN: sed 's/%%values = onnx.Concat %%pv, %%v /%%doubled = onnx.Add %%v, %%v : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>\n  %%rows_kept = onnx.Concat %%pv, %%doubled {axis = 2 : i64} : (tensor<?x1x?x4xf32>, tensor<?x1x?x4xf32>) -> tensor<?x1x?x4xf32>\n  %%values = onnx.Concat %%pv, %%v /; s/return %%logits, %%keys, %%values/return %%logits, %%keys, %%rows_kept/' %S/raise-attention.mlir > %t.stored.mlir
// RUN: not quire-opt %t.stored.mlir --raise-attention 2>&1 | FileCheck %s --check-prefix=STORED
// STORED: error: not raised: {{.*}}the row attended differs from the row stored

// Refusal leaves the module bit-identical.
// RUN: quire-opt %t.stored.mlir -o %t.before.mlir
// RUN: not quire-opt %t.stored.mlir --raise-attention --mlir-print-ir-after-failure 2> %t.after.log
// RUN: sed '1,/IR Dump After/d; /^$/d' %t.after.log > %t.after.mlir
// RUN: sed '/^$/d' %t.before.mlir > %t.same.mlir
// RUN: diff %t.same.mlir %t.after.mlir

// Indices that are computed from token ids might leave the table.
// RUN: sed 's/%%x0 = onnx.Gather %%embed, %%ids /%%shifted = onnx.Add %%ids, %%one : (tensor<?x?xi64>, tensor<i64>) -> tensor<?x?xi64>\n  %%x0 = onnx.Gather %%embed, %%shifted /' %S/raise-attention.mlir > %t.shifted.mlir
// RUN: not quire-opt %t.shifted.mlir --raise-attention 2>&1 | FileCheck %s --check-prefix=SHIFTED
// SHIFTED: error: not raised: {{.*}}onnx.Gather: not implemented: indices that are computed from data

// A slice that walks backwards.
// RUN: sed 's/%%logits = onnx.MatMul %%o2, %%wo/%%from = onnx.constant dense<-1> : tensor<1xi64>\n  %%to = onnx.constant dense<-9> : tensor<1xi64>\n  %%along = onnx.constant dense<2> : tensor<1xi64>\n  %%back = onnx.Slice %%o2, %%from, %%to, %%along, %%from : (tensor<?x?x8xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?x?x8xf32>\n  %%logits = onnx.MatMul %%back, %%wo/' %S/raise-attention.mlir > %t.back.mlir
// RUN: not quire-opt %t.back.mlir --raise-attention 2>&1 | FileCheck %s --check-prefix=BACK
// BACK: error: not raised: {{.*}}negative step
