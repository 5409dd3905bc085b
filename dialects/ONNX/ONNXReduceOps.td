// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: reductions, selections of extremes, pooling and mixtures of experts.

#ifndef QUIRE_DIALECTS_ONNX_ONNXREDUCEOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXREDUCEOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_ReduceL1Op : ONNX_Op<"ReduceL1", 18, [Pure]> {
  let summary = "sum of absolute values over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceL2Op : ONNX_Op<"ReduceL2", 18, [Pure]> {
  let summary = "square root of the sum of squares over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceLogSumOp : ONNX_Op<"ReduceLogSum", 28, [Pure]> {
  let summary = "logarithm of the sum over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceLogSumExpOp : ONNX_Op<"ReduceLogSumExp", 28, [Pure]> {
  let summary = "logarithm of the sum of exponentials over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceMaxOp : ONNX_Op<"ReduceMax", 20, [Pure]> {
  let summary = "maximum over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceMeanOp : ONNX_Op<"ReduceMean", 18, [Pure]> {
  let summary = "mean over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceMinOp : ONNX_Op<"ReduceMin", 20, [Pure]> {
  let summary = "minimum over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceProdOp : ONNX_Op<"ReduceProd", 18, [Pure]> {
  let summary = "product over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceSumOp : ONNX_Op<"ReduceSum", 13, [Pure]> {
  let summary = "sum over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ReduceSumSquareOp : ONNX_Op<"ReduceSumSquare", 18, [Pure]> {
  let summary = "sum of squares over axes";
  let description = [{
    Without `axes` all axes are reduced, or none with `noop_with_empty_axes`. Reduced axes stay with extent one
    unless `keepdims` is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$noop_with_empty_axes);
  let results = (outs ONNX_Value:$reduced);
}

def ONNX_ArgMaxOp : ONNX_Op<"ArgMax", 13, [Pure]> {
  let summary = "index of the largest element along an axis";
  let description = [{
    Of equal elements the first one counts, or the last with `select_last_index`.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_IntOr<"0">:$axis, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$select_last_index);
  let results = (outs ONNX_Value:$reduced);
  let hasVerifier = 1;
}

def ONNX_ArgMinOp : ONNX_Op<"ArgMin", 13, [Pure]> {
  let summary = "index of the smallest element along an axis";
  let description = [{
    Of equal elements the first one counts, or the last with `select_last_index`.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_IntOr<"0">:$axis, ONNX_IntOr<"1">:$keepdims,
        ONNX_IntOr<"0">:$select_last_index);
  let results = (outs ONNX_Value:$reduced);
  let hasVerifier = 1;
}

def ONNX_TopKOp : ONNX_Op<"TopK", 24, [Pure]> {
  let summary = "the K largest or smallest elements along an axis and their indices";
  let description = [{
    Equal elements come in order of their index. With `sorted = 0` the order is not defined.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$K, ONNX_IntOr<"-1">:$axis, ONNX_IntOr<"1">:$largest,
        ONNX_IntOr<"1">:$sorted);
  let results = (outs ONNX_Value:$Values, ONNX_Value:$Indices);
  let hasVerifier = 1;
}

def ONNX_AveragePoolOp : ONNX_Op<"AveragePool", 22, [Pure]> {
  let summary = "mean over a sliding window";
  let description = [{
    Padding counts as elements only with `count_include_pad`.
  }];
  let arguments = (ins ONNX_Value:$X, DenseI64ArrayAttr:$kernel_shape, ONNX_StrOr<"NOTSET">:$auto_pad,
        ONNX_IntOr<"0">:$ceil_mode, ONNX_IntOr<"0">:$count_include_pad, OptionalAttr<DenseI64ArrayAttr>:$dilations,
        OptionalAttr<DenseI64ArrayAttr>:$pads, OptionalAttr<DenseI64ArrayAttr>:$strides);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MaxPoolOp : ONNX_Op<"MaxPool", 22, [Pure]> {
  let summary = "maximum over a sliding window";
  let description = [{
    The second result gives where each maximum was found.
  }];
  let arguments = (ins ONNX_Value:$X, DenseI64ArrayAttr:$kernel_shape, ONNX_StrOr<"NOTSET">:$auto_pad,
        ONNX_IntOr<"0">:$ceil_mode, OptionalAttr<DenseI64ArrayAttr>:$dilations,
        OptionalAttr<DenseI64ArrayAttr>:$pads, ONNX_IntOr<"0">:$storage_order,
        OptionalAttr<DenseI64ArrayAttr>:$strides);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$Indices);
}

def ONNX_GlobalAveragePoolOp : ONNX_Op<"GlobalAveragePool", 22, [Pure]> {
  let summary = "mean over all spatial axes";
  let description = [{
    Every spatial axis shrinks to extent one.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_GlobalMaxPoolOp : ONNX_Op<"GlobalMaxPool", 22, [Pure]> {
  let summary = "maximum over all spatial axes";
  let description = [{
    Every spatial axis shrinks to extent one.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSMoEOp : ONNX_MSOp<"MoE", 1, [Pure]> {
  let summary = "mixture of experts";
  let description = [{
    Each token goes to the `k` experts with the largest router scores; their outputs are summed with those weights.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$router_probs, ONNX_Value:$fc1_experts_weights,
        ONNX_Optional:$fc1_experts_bias, ONNX_Value:$fc2_experts_weights, ONNX_Optional:$fc2_experts_bias,
        ONNX_Optional:$fc3_experts_weights, ONNX_Optional:$fc3_experts_bias, ONNX_FloatOr<"1.0f">:$activation_alpha,
        ONNX_FloatOr<"0.0f">:$activation_beta, ONNX_StrOr<"relu">:$activation_type, ONNX_IntOr<"1">:$k,
        ONNX_IntOr<"0">:$normalize_routing_weights, ONNX_IntOr<"0">:$swiglu_fusion,
        OptionalAttr<ONNX_Float>:$swiglu_limit, ONNX_IntOr<"0">:$swiglu_limit_after_activation,
        ONNX_IntOr<"0">:$use_sparse_mixer);
  let results = (outs ONNX_Value:$output);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXREDUCEOPS_TD
