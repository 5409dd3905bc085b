// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: softmax and normalisation.

#ifndef QUIRE_DIALECTS_ONNX_ONNXNORMOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXNORMOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_SoftmaxOp : ONNX_Op<"Softmax", 13, [Pure]> {
  let summary = "exponentials normalised along an axis";
  let description = [{
    Each slice along `axis` becomes positive and sums to one.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_LogSoftmaxOp : ONNX_Op<"LogSoftmax", 13, [Pure]> {
  let summary = "logarithm of softmax along an axis";
  let description = [{
    Equal to the logarithm of `onnx.Softmax`, without its underflow.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_HardmaxOp : ONNX_Op<"Hardmax", 13, [Pure]> {
  let summary = "one at the first maximum along an axis, zero elsewhere";
  let description = [{
    Of equal maxima the first one counts.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_LayerNormalizationOp : ONNX_Op<"LayerNormalization", 17, [Pure]> {
  let summary = "normalises by mean and variance over the trailing axes";
  let description = [{
    The axes from `axis` on are normalised together, then scaled and shifted. `stash_type` is the type of the
    statistics.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$Scale, ONNX_Optional:$B, ONNX_IntOr<"-1">:$axis,
        ONNX_FloatOr<"0.00001f">:$epsilon, ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$Mean, ONNX_Optional:$InvStdDev);
  let hasVerifier = 1;
}

def ONNX_RMSNormalizationOp : ONNX_Op<"RMSNormalization", 23, [Pure]> {
  let summary = "divides by the root of the mean square over the trailing axes";
  let description = [{
    The axes from `axis` on are normalised together, without subtracting a mean, then scaled. `stash_type` is the
    type of the statistics.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_IntOr<"-1">:$axis, ONNX_FloatOr<"0.00001f">:$epsilon,
        ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$Y);
  let hasVerifier = 1;
}

def ONNX_SimplifiedLayerNormalizationOp : ONNX_Op<"SimplifiedLayerNormalization", 1, [Pure]> {
  let summary = "RMS normalisation as ONNX Runtime spells it";
  let description = [{
    The same function as `onnx.RMSNormalization`, which came later; ONNX Runtime puts it in the standard domain.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_IntOr<"-1">:$axis, ONNX_FloatOr<"0.00001f">:$epsilon,
        ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$inv_std_var);
  let hasVerifier = 1;
}

def ONNX_BatchNormalizationOp : ONNX_Op<"BatchNormalization", 15, [Pure]> {
  let summary = "normalises each channel over the batch";
  let description = [{
    In inference the statistics are operands; in training they are computed and averaged by `momentum`.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_Value:$B, ONNX_Value:$input_mean,
        ONNX_Value:$input_var, ONNX_FloatOr<"0.00001f">:$epsilon, ONNX_FloatOr<"0.9f">:$momentum,
        ONNX_IntOr<"0">:$training_mode);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$running_mean, ONNX_Optional:$running_var);
}

def ONNX_InstanceNormalizationOp : ONNX_Op<"InstanceNormalization", 22, [Pure]> {
  let summary = "normalises each channel of each sample";
  let description = [{
    Mean and variance are taken over the spatial axes.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$scale, ONNX_Value:$B, ONNX_FloatOr<"0.00001f">:$epsilon);
  let results = (outs ONNX_Value:$output);
}

def ONNX_GroupNormalizationOp : ONNX_Op<"GroupNormalization", 21, [Pure]> {
  let summary = "normalises groups of channels of each sample";
  let description = [{
    Mean and variance are taken over the channels of a group and all spatial axes.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_Value:$bias, ONNX_Int:$num_groups,
        ONNX_FloatOr<"0.00001f">:$epsilon, ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_LpNormalizationOp : ONNX_Op<"LpNormalization", 22, [Pure]> {
  let summary = "divides by the Lp norm along an axis";
  let description = [{
    `p` is 1 or 2.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"-1">:$axis, ONNX_IntOr<"2">:$p);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MeanVarianceNormalizationOp : ONNX_Op<"MeanVarianceNormalization", 13, [Pure]> {
  let summary = "(x - mean) / sqrt(variance) over axes";
  let description = [{
    Without `axes` the statistics are over all axes but the channels.
  }];
  let arguments = (ins ONNX_Value:$X, OptionalAttr<DenseI64ArrayAttr>:$axes);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSSkipLayerNormalizationOp : ONNX_MSOp<"SkipLayerNormalization", 1, [Pure]> {
  let summary = "layer normalisation of input + skip + bias";
  let description = [{
    The sum that is normalised can also be a result, for the next residual connection.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$skip, ONNX_Value:$gamma, ONNX_Optional:$beta,
        ONNX_Optional:$bias, ONNX_FloatOr<"9.999999960041972e-13f">:$epsilon);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$mean, ONNX_Optional:$inv_std_var,
        ONNX_Optional:$input_skip_bias_sum);
}

def ONNX_MSSkipSimplifiedLayerNormalizationOp : ONNX_MSOp<"SkipSimplifiedLayerNormalization", 1, [Pure]> {
  let summary = "RMS normalisation of input + skip + bias";
  let description = [{
    As `onnx.ms.SkipLayerNormalization` with the root mean square in place of mean and variance.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$skip, ONNX_Value:$gamma, ONNX_Optional:$bias,
        ONNX_FloatOr<"9.999999960041972e-13f">:$epsilon);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$mean, ONNX_Optional:$inv_std_var,
        ONNX_Optional:$input_skip_bias_sum);
}

def ONNX_MSEmbedLayerNormalizationOp : ONNX_MSOp<"EmbedLayerNormalization", 1, [Pure]> {
  let summary = "layer normalisation of summed word, position and segment embeddings";
  let description = [{
    The first layer of a BERT model in one operation; it can also count the valid tokens of each mask row.
  }];
  let arguments = (ins ONNX_Value:$input_ids, ONNX_Optional:$segment_ids, ONNX_Value:$word_embedding,
        ONNX_Value:$position_embedding, ONNX_Optional:$segment_embedding, ONNX_Value:$gamma, ONNX_Value:$beta,
        ONNX_Optional:$mask, ONNX_Optional:$position_ids, ONNX_FloatOr<"9.999999960041972e-13f">:$epsilon,
        OptionalAttr<ONNX_Int>:$mask_index_type);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$mask_index, ONNX_Optional:$embedding_sum);
}

def ONNX_MSBiasSoftmaxOp : ONNX_MSOp<"BiasSoftmax", 1, [Pure]> {
  let summary = "softmax of data + bias";
  let description = [{
    The axes from `axis` on are flattened for the softmax; the bias is broadcast along inner or outer batch axes.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$bias, ONNX_Int:$is_inner_broadcast, ONNX_IntOr<"1">:$axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSGatedRMSNormOp : ONNX_MSOp<"GatedRMSNorm", 1, [Pure]> {
  let summary = "RMS normalisation with a gate";
  let description = [{
    Normalises, scales, and multiplies by an activation of `gate`.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_Value:$gate, ONNX_StrOr<"silu">:$activation,
        ONNX_FloatOr<"0.00001f">:$epsilon);
  let results = (outs ONNX_Value:$Y);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXNORMOPS_TD
