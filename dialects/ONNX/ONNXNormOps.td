// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: softmax and normalisation.

#ifndef QUIRE_DIALECTS_ONNX_ONNXNORMOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXNORMOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_SoftmaxOp : ONNX_Op<"Softmax", 13, [Pure]> {
  let summary = "exponentials normalised along an axis";
  let description = [{
    The operator computes the normalized exponential values for the given input: Softmax(input, axis) =
    Exp(input) / ReduceSum(Exp(input), axis=axis, keepdims=1) The "axis" attribute indicates the dimension along
    which Softmax will be performed.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_LogSoftmaxOp : ONNX_Op<"LogSoftmax", 13, [Pure]> {
  let summary = "logarithm of softmax along an axis";
  let description = [{
    The operator computes the log of softmax values for the given input: LogSoftmax(input, axis) =
    Log(Softmax(input, axis=axis)) The "axis" attribute indicates the dimension along which LogSoftmax will be
    performed. The output tensor has the same shape and contains the LogSoftmax values of the corresponding
    input.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_HardmaxOp : ONNX_Op<"Hardmax", 13, [Pure]> {
  let summary = "one at the first maximum along an axis, zero elsewhere";
  let description = [{
    The operator computes the hardmax values for the given input: Hardmax(element in input, axis) = 1 if the
    element is the first maximum value along the specified axis, 0 otherwise The "axis" attribute indicates the
    dimension along which Hardmax will be performed.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_LayerNormalizationOp : ONNX_Op<"LayerNormalization", 17, [Pure]> {
  let summary = "normalises by mean and variance over the trailing axes";
  let description = [{
    This is layer normalization defined in ONNX as function. The overall computation can be split into two
    stages.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$Scale, ONNX_Optional:$B, ONNX_IntOr<"-1">:$axis,
        ONNX_FloatOr<"0.00001f">:$epsilon, ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$Mean, ONNX_Optional:$InvStdDev);
  let hasVerifier = 1;
}

def ONNX_RMSNormalizationOp : ONNX_Op<"RMSNormalization", 23, [Pure]> {
  let summary = "divides by the root of the mean square over the trailing axes";
  let description = [{
    This is RMS normalization defined in ONNX as function as described in the paper
    https://arxiv.org/pdf/1910.07467. The overall computation can be split into two stages.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_IntOr<"-1">:$axis, ONNX_FloatOr<"0.00001f">:$epsilon,
        ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$Y);
  let hasVerifier = 1;
}

def ONNX_SimplifiedLayerNormalizationOp : ONNX_Op<"SimplifiedLayerNormalization", 1, [Pure]> {
  let summary = "RMS normalisation as ONNX Runtime spells it";
  let description = [{
    SimplifiedLayerNormalization.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_IntOr<"-1">:$axis, ONNX_FloatOr<"0.00001f">:$epsilon,
        ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$inv_std_var);
  let hasVerifier = 1;
}

def ONNX_BatchNormalizationOp : ONNX_Op<"BatchNormalization", 15, [Pure]> {
  let summary = "normalises each channel over the batch";
  let description = [{
    Carries out batch normalization as described in the paper https://arxiv.org/abs/1502.03167. Depending on the
    mode it is being run, There are five required inputs 'X', 'scale', 'B', 'input_mean' and 'input_var'.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_Value:$B, ONNX_Value:$input_mean,
        ONNX_Value:$input_var, ONNX_FloatOr<"0.00001f">:$epsilon, ONNX_FloatOr<"0.9f">:$momentum,
        ONNX_IntOr<"0">:$training_mode);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$running_mean, ONNX_Optional:$running_var);
}

def ONNX_InstanceNormalizationOp : ONNX_Op<"InstanceNormalization", 22, [Pure]> {
  let summary = "normalises each channel of each sample";
  let description = [{
    Carries out instance normalization as described in the paper https://arxiv.org/abs/1607.08022. y = scale *
    (x - mean) / sqrt(variance + epsilon) + B, where mean and variance are computed per instance per channel.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$scale, ONNX_Value:$B, ONNX_FloatOr<"0.00001f">:$epsilon);
  let results = (outs ONNX_Value:$output);
}

def ONNX_GroupNormalizationOp : ONNX_Op<"GroupNormalization", 21, [Pure]> {
  let summary = "normalises groups of channels of each sample";
  let description = [{
    A GroupNormalization function. Carries out group normalization as described in the paper
    https://arxiv.org/abs/1803.08494 This operator transforms input according to where the mean and variance are
    computed per instance per group of channels, and scale and bias should be specified for each channel.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_Value:$bias, ONNX_Int:$num_groups,
        ONNX_FloatOr<"0.00001f">:$epsilon, ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_LpNormalizationOp : ONNX_Op<"LpNormalization", 22, [Pure]> {
  let summary = "divides by the Lp norm along an axis";
  let description = [{
    Given a matrix, apply Lp-normalization along the provided axis. The output is computed as: output = input /
    Lp_norm(input, axis).
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"-1">:$axis, ONNX_IntOr<"2">:$p);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MeanVarianceNormalizationOp : ONNX_Op<"MeanVarianceNormalization", 13, [Pure]> {
  let summary = "(x - mean) / sqrt(variance) over axes";
  let description = [{
    A MeanVarianceNormalization Function: Perform mean variance normalization on the input tensor X using
    formula: (X-EX)/sqrt(E(X-EX)^2).
  }];
  let arguments = (ins ONNX_Value:$X, OptionalAttr<DenseI64ArrayAttr>:$axes);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSSkipLayerNormalizationOp : ONNX_MSOp<"SkipLayerNormalization", 1, [Pure]> {
  let summary = "layer normalisation of input + skip + bias";
  let description = [{
    Skip and Layer Normalization Fusion.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$skip, ONNX_Value:$gamma, ONNX_Optional:$beta,
        ONNX_Optional:$bias, ONNX_FloatOr<"9.999999960041972e-13f">:$epsilon);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$mean, ONNX_Optional:$inv_std_var,
        ONNX_Optional:$input_skip_bias_sum);
}

def ONNX_MSSkipSimplifiedLayerNormalizationOp : ONNX_MSOp<"SkipSimplifiedLayerNormalization", 1, [Pure]> {
  let summary = "RMS normalisation of input + skip + bias";
  let description = [{
    Skip and Root Mean Square Layer Normalization.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$skip, ONNX_Value:$gamma, ONNX_Optional:$bias,
        ONNX_FloatOr<"9.999999960041972e-13f">:$epsilon);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$mean, ONNX_Optional:$inv_std_var,
        ONNX_Optional:$input_skip_bias_sum);
}

def ONNX_MSEmbedLayerNormalizationOp : ONNX_MSOp<"EmbedLayerNormalization", 1, [Pure]> {
  let summary = "layer normalisation of summed word, position and segment embeddings";
  let description = [{
    EmbedLayerNormalization is the fusion of embedding layer in BERT model, with optional mask processing.
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
    Y = softmax(scores + bias)) with simple broadcast on bias. Intended to specialize softmax(scores +
    additive_mask) commonly found in transformer models.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$bias, ONNX_Int:$is_inner_broadcast, ONNX_IntOr<"1">:$axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSGatedRMSNormOp : ONNX_MSOp<"GatedRMSNorm", 1, [Pure]> {
  let summary = "RMS normalisation with a gate";
  let description = [{
    Gated RMS normalization as used by Mamba2 / gated DeltaNet attention outputs: Y = X * rsqrt(mean(X^2) +
    epsilon) * scale * gate_activation(gate) where gate_activation is one of: - silu or swish: z * sigmoid(z) -
    sigmoid: sigmoid(z) The mean of squares is taken over the trailing C elements of each ro.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$scale, ONNX_Value:$gate, ONNX_StrOr<"silu">:$activation,
        ONNX_FloatOr<"0.00001f">:$epsilon);
  let results = (outs ONNX_Value:$Y);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXNORMOPS_TD
