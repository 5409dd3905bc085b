// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: quantisation and quantised products.

#ifndef QUIRE_DIALECTS_ONNX_ONNXQUANTOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXQUANTOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_QuantizeLinearOp : ONNX_Op<"QuantizeLinear", 28, [Pure]> {
  let summary = "x / scale + zero point, rounded and saturated";
  let description = [{
    Scales are one per tensor, one per entry of `axis`, or one per block of `block_size` along it. Rounding is to
    nearest, halves to even.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$y_scale, ONNX_Optional:$y_zero_point, ONNX_IntOr<"1">:$axis,
        ONNX_IntOr<"0">:$block_size, OptionalAttr<TypeAttr>:$output_dtype, OptionalAttr<TypeAttr>:$precision,
        ONNX_IntOr<"1">:$saturate);
  let results = (outs ONNX_Value:$y);
  let hasVerifier = 1;
}

def ONNX_DequantizeLinearOp : ONNX_Op<"DequantizeLinear", 28, [Pure]> {
  let summary = "(x - zero point) * scale";
  let description = [{
    Scales are one per tensor, one per entry of `axis`, or one per block of `block_size` along it.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$x_scale, ONNX_Optional:$x_zero_point, ONNX_IntOr<"1">:$axis,
        ONNX_IntOr<"0">:$block_size, OptionalAttr<TypeAttr>:$output_dtype);
  let results = (outs ONNX_Value:$y);
  let hasVerifier = 1;
}

def ONNX_DynamicQuantizeLinearOp : ONNX_Op<"DynamicQuantizeLinear", 11, [Pure]> {
  let summary = "quantises to unsigned bytes by the tensor's own range";
  let description = [{
    The range is widened to hold zero; scale and zero point are results.
  }];
  let arguments = (ins ONNX_Value:$x);
  let results = (outs ONNX_Value:$y, ONNX_Value:$y_scale, ONNX_Value:$y_zero_point);
}

def ONNX_MatMulIntegerOp : ONNX_Op<"MatMulInteger", 10, [Pure]> {
  let summary = "integer matrix product less the zero points";
  let description = [{
    8-bit operands, 32-bit results. A zero point may be per row of A or per column of B.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_Optional:$a_zero_point, ONNX_Optional:$b_zero_point);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_ConvIntegerOp : ONNX_Op<"ConvInteger", 10, [Pure]> {
  let summary = "integer convolution less the zero points";
  let description = [{
    8-bit operands, 32-bit results.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$w, ONNX_Optional:$x_zero_point, ONNX_Optional:$w_zero_point,
        ONNX_StrOr<"NOTSET">:$auto_pad, OptionalAttr<DenseI64ArrayAttr>:$dilations, ONNX_IntOr<"1">:$group,
        OptionalAttr<DenseI64ArrayAttr>:$kernel_shape, OptionalAttr<DenseI64ArrayAttr>:$pads,
        OptionalAttr<DenseI64ArrayAttr>:$strides);
  let results = (outs ONNX_Value:$y);
}

def ONNX_QLinearMatMulOp : ONNX_Op<"QLinearMatMul", 21, [Pure]> {
  let summary = "quantised matrix product";
  let description = [{
    Operands and result are 8 bits wide, each with its scale and zero point.
  }];
  let arguments = (ins ONNX_Value:$a, ONNX_Value:$a_scale, ONNX_Value:$a_zero_point, ONNX_Value:$b,
        ONNX_Value:$b_scale, ONNX_Value:$b_zero_point, ONNX_Value:$y_scale, ONNX_Value:$y_zero_point);
  let results = (outs ONNX_Value:$y);
}

def ONNX_MSQuantizeLinearOp : ONNX_MSOp<"QuantizeLinear", 1, [Pure]> {
  let summary = "x / scale + zero point, with ONNX Runtime's element types";
  let description = [{
    Allows 16-bit and 4-bit integers that the standard operator got later.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$y_scale, ONNX_Optional:$y_zero_point, OptionalAttr<ONNX_Int>:$axis);
  let results = (outs ONNX_Value:$y);
}

def ONNX_MSDequantizeLinearOp : ONNX_MSOp<"DequantizeLinear", 1, [Pure]> {
  let summary = "(x - zero point) * scale, with ONNX Runtime's element types";
  let description = [{
    Allows 16-bit, 4-bit and 32-bit integers that the standard operator got later.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$x_scale, ONNX_Optional:$x_zero_point, OptionalAttr<ONNX_Int>:$axis);
  let results = (outs ONNX_Value:$y);
}

def ONNX_MSDynamicQuantizeMatMulOp : ONNX_MSOp<"DynamicQuantizeMatMul", 1, [Pure]> {
  let summary = "product of a dynamically quantised and a quantised matrix";
  let description = [{
    `A` is quantised by its own range first; the product is scaled back to float.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_Value:$b_scale, ONNX_Optional:$b_zero_point,
        ONNX_Optional:$bias);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSMatMulIntegerToFloatOp : ONNX_MSOp<"MatMulIntegerToFloat", 1, [Pure]> {
  let summary = "integer matrix product with scales and bias";
  let description = [{
    Equal to an integer product, a conversion, and a multiplication by both scales.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_Value:$a_scale, ONNX_Value:$b_scale,
        ONNX_Optional:$a_zero_point, ONNX_Optional:$b_zero_point, ONNX_Optional:$bias);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSMatMulNBitsOp : ONNX_MSOp<"MatMulNBits", 1, [Pure]> {
  let summary = "matrix product with weights quantised in blocks to 2, 4 or 8 bits";
  let description = [{
    `B` is [N, blocks, bytes of a block]: rows of the transposed weight in blocks along K, each with a scale and an
    optional zero point (else the middle of the range). Low bits hold the earlier element.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_Value:$scales, ONNX_Optional:$zero_points,
        ONNX_Optional:$g_idx, ONNX_Optional:$bias, ONNX_Int:$K, ONNX_Int:$N, ONNX_Int:$block_size,
        ONNX_IntOr<"0">:$accuracy_level, ONNX_IntOr<"4">:$bits, ONNX_IntOr<"0">:$weight_prepacked);
  let results = (outs ONNX_Value:$Y);
  let hasVerifier = 1;
}

def ONNX_MSMatMulBnb4Op : ONNX_MSOp<"MatMulBnb4", 1, [Pure]> {
  let summary = "matrix product with weights in the FP4 or NF4 format";
  let description = [{
    Each 4-bit code stands for an entry of a fixed table; `absmax` scales each block.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_Value:$absmax, ONNX_Int:$K, ONNX_Int:$N,
        ONNX_Int:$block_size, ONNX_Int:$quant_type, ONNX_IntOr<"0">:$training_mode, ONNX_IntOr<"1">:$transB);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSMatMulNBitsMlpOp : ONNX_MSOp<"MatMulNBitsMlp", 1, [Pure]> {
  let summary = "gated product of two MatMulNBits";
  let description = [{
    act(A * gate) * (A * up), with an optional normalisation of A in front.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Optional:$skip, ONNX_Optional:$norm_scale, ONNX_Value:$gate_B,
        ONNX_Value:$gate_scales, ONNX_Optional:$gate_bias, ONNX_Value:$up_B, ONNX_Value:$up_scales,
        ONNX_Optional:$up_bias, ONNX_Int:$K, ONNX_Int:$N, StrAttr:$activation, ONNX_Int:$block_size,
        ONNX_IntOr<"0">:$accuracy_level, ONNX_IntOr<"4">:$bits, ONNX_FloatOr<"0.00001f">:$epsilon);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$input_skip_bias_sum);
}

def ONNX_MSMatMulNBitsQkvOp : ONNX_MSOp<"MatMulNBitsQkv", 1, [Pure]> {
  let summary = "query, key and value projections by MatMulNBits";
  let description = [{
    One normalisation, then three products with weights in blocks.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Optional:$skip, ONNX_Value:$norm_scale, ONNX_Value:$q_B,
        ONNX_Value:$q_scales, ONNX_Optional:$q_bias, ONNX_Value:$k_B, ONNX_Value:$k_scales, ONNX_Optional:$k_bias,
        ONNX_Value:$v_B, ONNX_Value:$v_scales, ONNX_Optional:$v_bias, ONNX_Int:$K, ONNX_Int:$Nkv, ONNX_Int:$Nq,
        ONNX_Int:$block_size, ONNX_IntOr<"0">:$accuracy_level, ONNX_IntOr<"4">:$bits,
        ONNX_FloatOr<"0.000001f">:$epsilon);
  let results = (outs ONNX_Value:$Q, ONNX_Value:$K_out, ONNX_Value:$V, ONNX_Optional:$input_skip_bias_sum);
}

def ONNX_MSGatherBlockQuantizedOp : ONNX_MSOp<"GatherBlockQuantized", 1, [Pure]> {
  let summary = "picks and dequantises rows of block-quantised data";
  let description = [{
    Equal to `onnx.Gather` on the dequantised data; the embedding table of a quantised model.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_Value:$scales, ONNX_Optional:$zero_points,
        ONNX_IntOr<"4">:$bits, ONNX_IntOr<"128">:$block_size, ONNX_IntOr<"0">:$gather_axis,
        ONNX_IntOr<"1">:$quantize_axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSQMoEOp : ONNX_MSOp<"QMoE", 1, [Pure]> {
  let summary = "mixture of experts with quantised weights";
  let description = [{
    As `onnx.ms.MoE` with expert weights in blocks or columns of low precision.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$router_probs, ONNX_Value:$fc1_experts_weights,
        ONNX_Optional:$fc1_scales, ONNX_Optional:$fc1_experts_bias, ONNX_Value:$fc2_experts_weights,
        ONNX_Optional:$fc2_scales, ONNX_Optional:$fc2_experts_bias, ONNX_Optional:$fc3_experts_weights,
        ONNX_Optional:$fc3_scales, ONNX_Optional:$fc3_experts_bias, ONNX_Optional:$fc1_zero_points,
        ONNX_Optional:$fc2_zero_points, ONNX_Optional:$fc3_zero_points, ONNX_Optional:$router_weights,
        ONNX_Optional:$fc1_global_scale, ONNX_Optional:$fc2_global_scale, ONNX_Optional:$fc1_act_scale,
        ONNX_Optional:$fc2_act_scale, ONNX_Optional:$fc1_act_block_scale, ONNX_Optional:$fc2_act_block_scale,
        ONNX_IntOr<"0">:$accuracy_level, ONNX_FloatOr<"1.0f">:$activation_alpha,
        ONNX_FloatOr<"0.0f">:$activation_beta, ONNX_StrOr<"relu">:$activation_type,
        OptionalAttr<ONNX_Int>:$block_size, ONNX_IntOr<"4">:$expert_weight_bits,
        OptionalAttr<ONNX_Int>:$fc1_expert_weight_bits, OptionalAttr<ONNX_Int>:$fc2_expert_weight_bits,
        OptionalAttr<ONNX_Int>:$fc3_expert_weight_bits, ONNX_IntOr<"1">:$k,
        ONNX_IntOr<"0">:$normalize_routing_weights, ONNX_StrOr<"int">:$quant_type, ONNX_IntOr<"0">:$swiglu_fusion,
        OptionalAttr<ONNX_Float>:$swiglu_limit, ONNX_IntOr<"0">:$swiglu_limit_after_activation,
        ONNX_IntOr<"0">:$use_sparse_mixer, ONNX_IntOr<"-1">:$weights_prepacked);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSQAttentionOp : ONNX_MSOp<"QAttention", 1, [Pure]> {
  let summary = "attention from quantised hidden states and weights";
  let description = [{
    As `onnx.ms.Attention` with 8-bit operands for the projection.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$weight, ONNX_Value:$bias, ONNX_Value:$input_scale,
        ONNX_Value:$weight_scale, ONNX_Optional:$mask_index, ONNX_Optional:$input_zero_point,
        ONNX_Optional:$weight_zero_point, ONNX_Optional:$past, ONNX_Int:$num_heads, ONNX_IntOr<"0">:$do_rotary,
        ONNX_FloatOr<"-10000.0f">:$mask_filter_value, ONNX_IntOr<"0">:$past_present_share_buffer,
        OptionalAttr<ONNX_Float>:$scale, ONNX_IntOr<"0">:$unidirectional);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$present);
}

def ONNX_MSQGemmOp : ONNX_MSOp<"QGemm", 1, [Pure]> {
  let summary = "quantised Gemm";
  let description = [{
    A Gemm on 8-bit factors; without the scale of the result it is float.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$a_scale, ONNX_Value:$a_zero_point, ONNX_Value:$B,
        ONNX_Value:$b_scale, ONNX_Value:$b_zero_point, ONNX_Optional:$C, ONNX_Optional:$y_scale,
        ONNX_Optional:$y_zero_point, ONNX_FloatOr<"1.0f">:$alpha, ONNX_IntOr<"0">:$transA, ONNX_IntOr<"0">:$transB);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSQLinearAddOp : ONNX_MSOp<"QLinearAdd", 1, [Pure]> {
  let summary = "quantised sum";
  let description = [{
    Both operands are dequantised, added and quantised again.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$A_scale, ONNX_Optional:$A_zero_point, ONNX_Value:$B,
        ONNX_Value:$B_scale, ONNX_Optional:$B_zero_point, ONNX_Value:$C_scale, ONNX_Optional:$C_zero_point);
  let results = (outs ONNX_Value:$C);
}

def ONNX_MSQLinearMulOp : ONNX_MSOp<"QLinearMul", 1, [Pure]> {
  let summary = "quantised product";
  let description = [{
    Both operands are dequantised, multiplied and quantised again.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$A_scale, ONNX_Optional:$A_zero_point, ONNX_Value:$B,
        ONNX_Value:$B_scale, ONNX_Optional:$B_zero_point, ONNX_Value:$C_scale, ONNX_Optional:$C_zero_point);
  let results = (outs ONNX_Value:$C);
}

def ONNX_MSQLinearSigmoidOp : ONNX_MSOp<"QLinearSigmoid", 1, [Pure]> {
  let summary = "quantised sigmoid";
  let description = [{
    Dequantises, applies the sigmoid, quantises again.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$X_scale, ONNX_Optional:$X_zero_point, ONNX_Value:$Y_scale,
        ONNX_Optional:$Y_zero_point);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSQLinearSoftmaxOp : ONNX_MSOp<"QLinearSoftmax", 1, [Pure]> {
  let summary = "quantised softmax";
  let description = [{
    Dequantises, applies softmax in the form of the operator set `opset`, quantises again.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$X_scale, ONNX_Optional:$x_zero_point, ONNX_Value:$y_scale,
        ONNX_Value:$y_zero_point, ONNX_Int:$opset, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSQLinearConcatOp : ONNX_MSOp<"QLinearConcat", 1, [Pure]> {
  let summary = "quantised concatenation";
  let description = [{
    Operands come in threes (data, scale, zero point); each is brought to the scale of the result.
  }];
  let arguments = (ins ONNX_Value:$Y_scale, ONNX_Value:$Y_zero_point, Variadic<ONNX_Value>:$inputs, ONNX_Int:$axis);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSQEmbedLayerNormalizationOp : ONNX_MSOp<"QEmbedLayerNormalization", 1, [Pure]> {
  let summary = "EmbedLayerNormalization with quantised tables";
  let description = [{
    As `onnx.ms.EmbedLayerNormalization` with 8-bit tables.
  }];
  let arguments = (ins ONNX_Value:$input_ids, ONNX_Optional:$segment_ids, ONNX_Value:$word_embedding_quant,
        ONNX_Value:$position_embedding_quant, ONNX_Optional:$segment_embedding, ONNX_Value:$gamma_quant,
        ONNX_Value:$beta_quant, ONNX_Optional:$mask, ONNX_Value:$word_embedding_scale,
        ONNX_Value:$position_embedding_scale, ONNX_Optional:$segment_embedding_scale, ONNX_Value:$gamma_scale,
        ONNX_Value:$beta_scale, ONNX_Value:$word_embedding_zero_point, ONNX_Value:$position_embedding_zero_point,
        ONNX_Optional:$segment_embedding_zero_point, ONNX_Value:$gamma_zero_point, ONNX_Value:$beta_zero_point,
        ONNX_FloatOr<"9.999999960041972e-13f">:$epsilon);
  let results = (outs ONNX_Value:$layernorm_out, ONNX_Value:$mask_index_out);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXQUANTOPS_TD
