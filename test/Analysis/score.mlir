// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One decoder layer, and what single changes of it mean. Each change is a line of sed; what is not proved is refused.
//
// RUN: quire-opt %s --test-print-score | FileCheck %s
// CHECK-LABEL: @main: raised
// CHECK: state past_k grow keys output 1 heads 2 dim 4 rows [batch 1, head 2, token, feature 4]
// CHECK: state past_v grow values output 2 heads 2 dim 4 rows [batch 1, head 2, token, feature 4]
// CHECK: site attention mask causal scale 0.5 heads 2/2 keys past_k values past_v query [batch 1, head 2, token, feature 4] result [batch 1, head 2, token, feature 4]
//
// A row that is normalised over the tokens: both failures have one reason and must not cancel.
// RUN: sed 's/dense<2> : tensor<1xi64> loc("mean_axis")/dense<1> : tensor<1xi64> loc("mean_axis")/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=MEAN
// MEAN: @main: refused
// MEAN: reason {{.*}}ReduceMean 'mean': reduces or mixes over the token axis
//
// A bound at the end of the float range changes no score, unless it is on the other side, where it is all that is left of them.
// RUN: sed 's/onnx.Softmax %%masked/onnx.Softmax %%bounded/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=BOUND
// RUN: sed 's/onnx.Softmax %%masked/onnx.Softmax %%bounded/; s/onnx.Max/onnx.Min/; s/dense<-2.0e38>/dense<2.0e38>/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=BOUND
// BOUND: @main: raised
// BOUND: site attention mask causal scale 0.5
// RUN: sed 's/onnx.Softmax %%masked/onnx.Softmax %%bounded/; s/dense<-2.0e38>/dense<2.0e38>/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=COVER
// RUN: sed 's/onnx.Softmax %%masked/onnx.Softmax %%bounded/; s/onnx.Max/onnx.Min/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=COVER
// COVER: @main: refused
// COVER: reason node 'attention': score is no scaled product with additive terms: {{fmax|fmin}}(
//
// The NaN guard counts only as Where(IsNaN(p), 0, p).
// RUN: sed 's/onnx.Where %nan, %zero, %%p :/onnx.Where %nan, %%p, %zero :/; s/(tensor<1x2x?x?xi1>, tensor<f32>, tensor<1x2x?x?xf32>)/(tensor<1x2x?x?xi1>, tensor<1x2x?x?xf32>, tensor<f32>)/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=GUARD
// GUARD: @main: refused
// GUARD: reason {{.*}}probabilities are changed before the product
//
// A bias that is taken off promotes the hidden keys.
// RUN: sed 's/onnx.Add %weighted, %bias/onnx.Sub %weighted, %bias/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=PROMOTED
// PROMOTED: @main: refused
// PROMOTED: reason node 'attention': a visible score is
//
// A constant per case is no constant per row: visible keys with another one than the rest are biased.
// RUN: sed 's/dense<0xFF800000> : tensor<f32>/dense<3.0> : tensor<f32>/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=CASES
// CASES: @main: raised for one token
// CASES: flag right for calls of one token only: node 'attention': every key of the call is visible
//
// A query that depends on the length of the call.
// RUN: sed 's/onnx.Mul %qt, %one :/onnx.Mul %qt, %length :/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=LENGTH
// LENGTH: @main: refused
// LENGTH: reason node 'attention': the query depends on the call length, not only on the position
//
// Stored rows that differ from the attended ones.
// RUN: sed 's/onnx.Concat %%past_k, %kt {/onnx.Concat %%past_k, %vt {/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=STORED
// STORED: @main: refused
// STORED: reason node 'attention': key operand: the row attended differs from the row stored
//
// Cached rows that change.
// RUN: sed 's/%%past_v, %vt {/%decayed, %vt {/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=DECAYED
// DECAYED: @main: refused
// DECAYED: reason output 'present_v': cached rows are not kept in place
//
// The mask is off by one, or forgets the past.
// RUN: sed 's/onnx.LessOrEqual %cols, %rows/onnx.Less %cols, %rows/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=STRICT
// STRICT: @main: refused
// STRICT: reason node 'attention': mask has no known kind
// RUN: sed 's/onnx.Range %%P0, %%T0/onnx.Range %i0, %L0/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=TOPLEFT
// TOPLEFT: @main: refused
// TOPLEFT: reason node 'attention': mask depends on the lengths of the call
//
// A sum over all tokens reaches the output; a factor on the values.
// RUN: sed 's/onnx.MatMul %o3, %wo/onnx.MatMul %osum, %wo/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: @main: refused
// OUTPUT: reason {{.*}}'token_sum': reduces or mixes over the token axis
// RUN: sed 's/onnx.MatMul %guarded, %V :/onnx.MatMul %guarded, %V2 :/' %s | quire-opt --test-print-score | FileCheck %s --check-prefix=SCALED
// SCALED: @main: raised
// SCALED: site attention mask causal scale 0.5 result-scale 2 heads 2/2

module {
  onnx.initializer @embed {file = "w", offset = 0 : i64, bytes = 512 : i64} : tensor<16x8xf32>
  onnx.initializer @wq {file = "w", offset = 0 : i64, bytes = 256 : i64} : tensor<8x8xf32>
  onnx.initializer @wk {file = "w", offset = 256 : i64, bytes = 256 : i64} : tensor<8x8xf32>
  onnx.initializer @wv {file = "w", offset = 512 : i64, bytes = 256 : i64} : tensor<8x8xf32>
  onnx.initializer @wo {file = "w", offset = 768 : i64, bytes = 512 : i64} : tensor<8x16xf32>
  onnx.entry @main {inputs = ["input_ids", "past_k", "past_v"], outputs = ["logits", "present_k", "present_v"]}
  func.func @main(%ids: tensor<1x?xi64>, %past_k: tensor<1x2x?x4xf32>, %past_v: tensor<1x2x?x4xf32>)
      -> (tensor<1x?x16xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) {
    %none = onnx.none : none
    %i0 = onnx.constant dense<0> : tensor<i64> loc("i0")
    %i1 = onnx.constant dense<1> : tensor<i64> loc("i1")
    %a0 = onnx.constant dense<0> : tensor<1xi64> loc("a0")
    %a1 = onnx.constant dense<1> : tensor<1xi64> loc("a1")
    %two = onnx.constant dense<2> : tensor<i64> loc("two")
    %mean_axis = onnx.constant dense<2> : tensor<1xi64> loc("mean_axis")
    %split = onnx.constant dense<[1, -1, 2, 4]> : tensor<4xi64> loc("split")
    %merge = onnx.constant dense<[1, -1, 8]> : tensor<3xi64> loc("merge")
    %zero = onnx.constant dense<0.0> : tensor<f32> loc("zero")
    %one = onnx.constant dense<1.0> : tensor<f32> loc("one")
    %half = onnx.constant dense<0.5> : tensor<f32> loc("half")
    %fade = onnx.constant dense<0.875> : tensor<f32> loc("fade")
    %twice = onnx.constant dense<2.0> : tensor<f32> loc("twice")
    %hidden = onnx.constant dense<0xFF800000> : tensor<f32> loc("hidden")
    %e = onnx.weight @embed : tensor<16x8xf32> loc("e")
    %wq = onnx.weight @wq : tensor<8x8xf32> loc("wq")
    %wk = onnx.weight @wk : tensor<8x8xf32> loc("wk")
    %wv = onnx.weight @wv : tensor<8x8xf32> loc("wv")
    %wo = onnx.weight @wo : tensor<8x16xf32> loc("wo")
    %x0 = onnx.Gather %e, %ids : (tensor<16x8xf32>, tensor<1x?xi64>) -> tensor<1x?x8xf32> loc("x0")
    %mean = onnx.ReduceMean %x0, %mean_axis : (tensor<1x?x8xf32>, tensor<1xi64>) -> tensor<1x?x1xf32> loc("mean")
    %x = onnx.Sub %x0, %mean : (tensor<1x?x8xf32>, tensor<1x?x1xf32>) -> tensor<1x?x8xf32> loc("x")
    %q0 = onnx.MatMul %x, %wq : (tensor<1x?x8xf32>, tensor<8x8xf32>) -> tensor<1x?x8xf32> loc("q0")
    %k0 = onnx.MatMul %x, %wk : (tensor<1x?x8xf32>, tensor<8x8xf32>) -> tensor<1x?x8xf32> loc("k0")
    %v0 = onnx.MatMul %x, %wv : (tensor<1x?x8xf32>, tensor<8x8xf32>) -> tensor<1x?x8xf32> loc("v0")
    %q1 = onnx.Reshape %q0, %split : (tensor<1x?x8xf32>, tensor<4xi64>) -> tensor<1x?x2x4xf32> loc("q1")
    %k1 = onnx.Reshape %k0, %split : (tensor<1x?x8xf32>, tensor<4xi64>) -> tensor<1x?x2x4xf32> loc("k1")
    %v1 = onnx.Reshape %v0, %split : (tensor<1x?x8xf32>, tensor<4xi64>) -> tensor<1x?x2x4xf32> loc("v1")
    %qt = onnx.Transpose %q1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32> loc("qt")
    %kt = onnx.Transpose %k1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32> loc("kt")
    %vt = onnx.Transpose %v1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x?x2x4xf32>) -> tensor<1x2x?x4xf32> loc("vt")
    %ids_shape = onnx.Shape %ids : (tensor<1x?xi64>) -> tensor<2xi64> loc("ids_shape")
    %past_shape = onnx.Shape %past_k : (tensor<1x2x?x4xf32>) -> tensor<4xi64> loc("past_shape")
    %L0 = onnx.Gather %ids_shape, %i1 : (tensor<2xi64>, tensor<i64>) -> tensor<i64> loc("L0")
    %P0 = onnx.Gather %past_shape, %two : (tensor<4xi64>, tensor<i64>) -> tensor<i64> loc("P0")
    %T0 = onnx.Add %P0, %L0 : (tensor<i64>, tensor<i64>) -> tensor<i64> loc("T0")
    %length = onnx.Cast %L0 {to = f32} : (tensor<i64>) -> tensor<f32> loc("length")
    %q = onnx.Mul %qt, %one : (tensor<1x2x?x4xf32>, tensor<f32>) -> tensor<1x2x?x4xf32> loc("q")
    %decayed = onnx.Mul %past_v, %fade : (tensor<1x2x?x4xf32>, tensor<f32>) -> tensor<1x2x?x4xf32> loc("decayed")
    %K = onnx.Concat %past_k, %kt {axis = 2 : i64} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> loc("K")
    %K_attended = onnx.Concat %past_k, %kt{axis = 2 : i64} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> loc("K_attended")
    %V = onnx.Concat %past_v, %vt {axis = 2 : i64} : (tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> loc("V")
    %V2 = onnx.Mul %V, %twice : (tensor<1x2x?x4xf32>, tensor<f32>) -> tensor<1x2x?x4xf32> loc("V2")
    %KT = onnx.Transpose %K_attended {perm = array<i64: 0, 1, 3, 2>} : (tensor<1x2x?x4xf32>) -> tensor<1x2x4x?xf32> loc("KT")
    %score = onnx.MatMul %q, %KT : (tensor<1x2x?x4xf32>, tensor<1x2x4x?xf32>) -> tensor<1x2x?x?xf32> loc("score")
    %weighted = onnx.Mul %score, %half : (tensor<1x2x?x?xf32>, tensor<f32>) -> tensor<1x2x?x?xf32> loc("weighted")
    %r0 = onnx.Range %P0, %T0, %i1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64> loc("r0")
    %c0 = onnx.Range %i0, %T0, %i1 : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64> loc("c0")
    %rows = onnx.Unsqueeze %r0, %a1 : (tensor<?xi64>, tensor<1xi64>) -> tensor<?x1xi64> loc("rows")
    %cols = onnx.Unsqueeze %c0, %a0 : (tensor<?xi64>, tensor<1xi64>) -> tensor<1x?xi64> loc("cols")
    %visible = onnx.LessOrEqual %cols, %rows : (tensor<1x?xi64>, tensor<?x1xi64>) -> tensor<?x?xi1> loc("visible")
    %bias = onnx.Where %visible, %zero, %hidden : (tensor<?x?xi1>, tensor<f32>, tensor<f32>) -> tensor<?x?xf32> loc("bias")
    %masked = onnx.Add %weighted, %bias : (tensor<1x2x?x?xf32>, tensor<?x?xf32>) -> tensor<1x2x?x?xf32> loc("masked")
    %edge = onnx.constant dense<-2.0e38> : tensor<f32> loc("edge")
    %bounded = onnx.Max %masked, %edge : (tensor<1x2x?x?xf32>, tensor<f32>) -> tensor<1x2x?x?xf32> loc("bounded")
    %p = onnx.Softmax %masked : (tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32> loc("p")
    %nan = onnx.IsNaN %p : (tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xi1> loc("nan")
    %guarded = onnx.Where %nan, %zero, %p : (tensor<1x2x?x?xi1>, tensor<f32>, tensor<1x2x?x?xf32>) -> tensor<1x2x?x?xf32> loc("guarded")
    %o1 = onnx.MatMul %guarded, %V : (tensor<1x2x?x?xf32>, tensor<1x2x?x4xf32>) -> tensor<1x2x?x4xf32> loc("attention")
    %o2 = onnx.Transpose %o1 {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x2x?x4xf32>) -> tensor<1x?x2x4xf32> loc("o2")
    %o3 = onnx.Reshape %o2, %merge : (tensor<1x?x2x4xf32>, tensor<3xi64>) -> tensor<1x?x8xf32> loc("o3")
    %tokens = onnx.ReduceSum %o3, %a1 : (tensor<1x?x8xf32>, tensor<1xi64>) -> tensor<1x1x8xf32> loc("token_sum")
    %osum = onnx.Add %o3, %tokens : (tensor<1x?x8xf32>, tensor<1x1x8xf32>) -> tensor<1x?x8xf32> loc("osum")
    %logits = onnx.MatMul %o3, %wo : (tensor<1x?x8xf32>, tensor<8x16xf32>) -> tensor<1x?x16xf32> loc("logits")
    return %logits, %K, %V : tensor<1x?x16xf32>, tensor<1x2x?x4xf32>, tensor<1x2x?x4xf32>
  }
}
