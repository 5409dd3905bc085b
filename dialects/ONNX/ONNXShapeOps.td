// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: shape, movement, indexing and generation of tensors.

#ifndef QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_ReshapeOp : ONNX_Op<"Reshape", 25, [Pure]> {
  let summary = "the same elements in another shape";
  let description = [{
    One extent may be -1, which takes what is left; 0 copies the extent of the operand unless `allowzero` is set.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$shape, ONNX_IntOr<"0">:$allowzero);
  let results = (outs ONNX_Value:$reshaped);
}

def ONNX_TransposeOp : ONNX_Op<"Transpose", 25, [Pure]> {
  let summary = "permutes axes";
  let description = [{
    Axis i of the result is axis perm[i] of the operand; without `perm` the order is reversed.
  }];
  let arguments = (ins ONNX_Value:$data, OptionalAttr<DenseI64ArrayAttr>:$perm);
  let results = (outs ONNX_Value:$transposed);
  let hasVerifier = 1;
}

def ONNX_SqueezeOp : ONNX_Op<"Squeeze", 25, [Pure]> {
  let summary = "removes axes of extent one";
  let description = [{
    Without `axes`, all of them.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes);
  let results = (outs ONNX_Value:$squeezed);
  let hasVerifier = 1;
}

def ONNX_UnsqueezeOp : ONNX_Op<"Unsqueeze", 25, [Pure]> {
  let summary = "inserts axes of extent one";
  let description = [{
    `axes` count in the result; negative ones from its end.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$axes);
  let results = (outs ONNX_Value:$expanded);
}

def ONNX_FlattenOp : ONNX_Op<"Flatten", 25, [Pure]> {
  let summary = "collapses a tensor into a matrix";
  let description = [{
    Axes before `axis` become rows, the others columns.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"1">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_ExpandOp : ONNX_Op<"Expand", 13, [Pure]> {
  let summary = "broadcasts to a shape";
  let description = [{
    Operand and shape are broadcast against each other, so an extent in `shape` may be 1 where the operand's is not.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$shape);
  let results = (outs ONNX_Value:$output);
}

def ONNX_TileOp : ONNX_Op<"Tile", 13, [Pure]> {
  let summary = "repeats a tensor along its axes";
  let description = [{
    Extent i becomes repeats[i] times as large.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$repeats);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ConcatOp : ONNX_Op<"Concat", 13, [Pure]> {
  let summary = "joins tensors along an axis";
  let description = [{
    Operands agree in all other extents.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$inputs, ONNX_Int:$axis);
  let results = (outs ONNX_Value:$concat_result);
  let hasVerifier = 1;
}

def ONNX_SplitOp : ONNX_Op<"Split", 18, [Pure]> {
  let summary = "cuts a tensor along an axis";
  let description = [{
    The pieces have the given sizes, or are `num_outputs` equal ones of which the last may be smaller.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Optional:$split, ONNX_IntOr<"0">:$axis,
        OptionalAttr<ONNX_Int>:$num_outputs);
  let results = (outs Variadic<ONNX_Optional>:$outputs);
  let hasVerifier = 1;
}

def ONNX_SliceOp : ONNX_Op<"Slice", 13, [Pure]> {
  let summary = "takes a strided range of chosen axes";
  let description = [{
    Bounds beyond an axis are clamped, negative ones count from its end, negative steps walk backwards.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$starts, ONNX_Value:$ends, ONNX_Optional:$axes,
        ONNX_Optional:$steps);
  let results = (outs ONNX_Value:$output);
}

def ONNX_PadOp : ONNX_Op<"Pad", 25, [Pure]> {
  let summary = "adds elements at the ends of axes, or removes them";
  let description = [{
    `pads` lists all begins, then all ends; negative numbers remove elements. `mode` is constant, reflect, edge or
    wrap.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$pads, ONNX_Optional:$constant_value, ONNX_Optional:$axes,
        ONNX_StrOr<"constant">:$mode);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_GatherOp : ONNX_Op<"Gather", 13, [Pure]> {
  let summary = "picks entries of an axis by index";
  let description = [{
    The extents of `indices` take the place of the axis. Negative indices count from the end.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_IntOr<"0">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_GatherElementsOp : ONNX_Op<"GatherElements", 13, [Pure]> {
  let summary = "picks one element per index along an axis";
  let description = [{
    `indices` has the rank of `data`; element (i, j) of the result is data[indices[i, j], j] when the axis is 0.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_IntOr<"0">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_GatherNDOp : ONNX_Op<"GatherND", 13, [Pure]> {
  let summary = "picks slices by index tuples";
  let description = [{
    The last axis of `indices` is a tuple that addresses the leading axes of `data` behind `batch_dims` common ones.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_IntOr<"0">:$batch_dims);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ScatterElementsOp : ONNX_Op<"ScatterElements", 18, [Pure]> {
  let summary = "writes one element per index along an axis";
  let description = [{
    The inverse movement of `onnx.GatherElements` on a copy of `data`; `reduction` combines with what is there.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_Value:$updates, ONNX_IntOr<"0">:$axis,
        ONNX_StrOr<"none">:$reduction);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_ScatterNDOp : ONNX_Op<"ScatterND", 18, [Pure]> {
  let summary = "writes slices at index tuples";
  let description = [{
    The inverse movement of `onnx.GatherND` on a copy of `data`; `reduction` combines with what is there.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_Value:$updates, ONNX_StrOr<"none">:$reduction);
  let results = (outs ONNX_Value:$output);
}

def ONNX_TensorScatterOp : ONNX_Op<"TensorScatter", 24, [Pure]> {
  let summary = "writes new rows into a cache, each sample at its own position";
  let description = [{
    Sample b's rows start at write_indices[b], or at 0; in mode circular they wrap at the end of the cache.
  }];
  let arguments = (ins ONNX_Value:$past_cache, ONNX_Value:$update, ONNX_Optional:$write_indices,
        ONNX_IntOr<"-2">:$axis, ONNX_StrOr<"linear">:$mode);
  let results = (outs ONNX_Value:$present_cache);
  let hasVerifier = 1;
}

def ONNX_ShapeOp : ONNX_Op<"Shape", 25, [Pure]> {
  let summary = "the extents of a tensor, or of a range of its axes";
  let description = [{
    `start` and `end` choose axes, negative ones from the end.
  }];
  let arguments = (ins ONNX_Value:$data, OptionalAttr<ONNX_Int>:$end, ONNX_IntOr<"0">:$start);
  let results = (outs ONNX_Value:$shape);
}

def ONNX_SizeOp : ONNX_Op<"Size", 25, [Pure]> {
  let summary = "the number of elements";
  let description = [{
    A scalar.
  }];
  let arguments = (ins ONNX_Value:$data);
  let results = (outs ONNX_Value:$size);
}

def ONNX_IdentityOp : ONNX_Op<"Identity", 25, [Pure]> {
  let summary = "the same value";
  let description = [{
    Exporters leave it where they renamed something.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ConstantOfShapeOp : ONNX_Op<"ConstantOfShape", 25, [Pure]> {
  let summary = "a tensor of one value";
  let description = [{
    The operand is the shape; the value is a float zero when the attribute is absent.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<ElementsAttr>:$value);
  let results = (outs ONNX_Value:$output);
}

def ONNX_EyeLikeOp : ONNX_Op<"EyeLike", 22, [Pure]> {
  let summary = "ones on a diagonal, zeros elsewhere";
  let description = [{
    `k` moves the diagonal, upwards when positive.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, ONNX_IntOr<"0">:$k);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RangeOp : ONNX_Op<"Range", 27, [Pure]> {
  let summary = "start, start + delta, ... before limit";
  let description = [{
    The number of elements is the rounded-up quotient of (limit - start) and delta, never negative.
  }];
  let arguments = (ins ONNX_Value:$start, ONNX_Value:$limit, ONNX_Value:$delta, ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$output);
}

def ONNX_OneHotOp : ONNX_Op<"OneHot", 28, [Pure]> {
  let summary = "one-hot encoding along a new axis";
  let description = [{
    `values` holds the off and the on value; indices outside the depth give a row of off values.
  }];
  let arguments = (ins ONNX_Value:$indices, ONNX_Value:$depth, ONNX_Value:$values, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_TriluOp : ONNX_Op<"Trilu", 14, [Pure]> {
  let summary = "upper or lower triangle of matrices";
  let description = [{
    `k` moves the diagonal up to which elements are kept; the others become zero.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Optional:$k, ONNX_IntOr<"1">:$upper);
  let results = (outs ONNX_Value:$output);
}

def ONNX_NonZeroOp : ONNX_Op<"NonZero", 13, [Pure]> {
  let summary = "indices of the elements that are not zero";
  let description = [{
    The result has one row per axis and one column per element found, in row-major order.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_CompressOp : ONNX_Op<"Compress", 28, [Pure]> {
  let summary = "slices of an axis where the condition holds";
  let description = [{
    Without an axis the operand is flattened first.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$condition, OptionalAttr<ONNX_Int>:$axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_UniqueOp : ONNX_Op<"Unique", 28, [Pure]> {
  let summary = "unique elements or slices";
  let description = [{
    Also gives where each was first seen, which one each element is, and how often it occurs.
  }];
  let arguments = (ins ONNX_Value:$X, OptionalAttr<ONNX_Int>:$axis, ONNX_IntOr<"1">:$sorted);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$indices, ONNX_Optional:$inverse_indices, ONNX_Optional:$counts);
}

def ONNX_ReverseSequenceOp : ONNX_Op<"ReverseSequence", 28, [Pure]> {
  let summary = "reverses sequences of different lengths";
  let description = [{
    Only the first sequence_lens[b] steps of sample b turn around.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$sequence_lens, ONNX_IntOr<"1">:$batch_axis,
        ONNX_IntOr<"0">:$time_axis);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_DepthToSpaceOp : ONNX_Op<"DepthToSpace", 28, [Pure]> {
  let summary = "moves blocks of channels into spatial axes";
  let description = [{
    `mode` says whether the block offsets are the outer (DCR) or the inner (CRD) part of the channels.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Int:$blocksize, ONNX_StrOr<"DCR">:$mode);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SpaceToDepthOp : ONNX_Op<"SpaceToDepth", 28, [Pure]> {
  let summary = "moves spatial blocks into channels";
  let description = [{
    The inverse movement of `onnx.DepthToSpace`.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Int:$blocksize, ONNX_StrOr<"DCR">:$mode);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ResizeOp : ONNX_Op<"Resize", 19, [Pure]> {
  let summary = "resamples a tensor";
  let description = [{
    Sizes come from `scales` or `sizes`; the attributes say how positions map and how values between samples are
    made.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Optional:$roi, ONNX_Optional:$scales, ONNX_Optional:$sizes,
        ONNX_IntOr<"0">:$antialias, OptionalAttr<DenseI64ArrayAttr>:$axes,
        ONNX_StrOr<"half_pixel">:$coordinate_transformation_mode, ONNX_FloatOr<"-0.75f">:$cubic_coeff_a,
        ONNX_IntOr<"0">:$exclude_outside, ONNX_FloatOr<"0.0f">:$extrapolation_value,
        ONNX_StrOr<"stretch">:$keep_aspect_ratio_policy, ONNX_StrOr<"nearest">:$mode,
        ONNX_StrOr<"round_prefer_floor">:$nearest_mode);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_BernoulliOp : ONNX_Op<"Bernoulli", 22> {
  let summary = "draws 0 or 1 with the given probabilities";
  let description = [{
    Each element of the operand is the probability of 1. Not deterministic, hence never folded.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MultinomialOp : ONNX_Op<"Multinomial", 22> {
  let summary = "draws from a categorical distribution";
  let description = [{
    Each row of the operand holds logarithms of weights. Not deterministic, hence never folded.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, ONNX_IntOr<"1">:$sample_size,
        OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RandomNormalOp : ONNX_Op<"RandomNormal", 22> {
  let summary = "draws from a normal distribution";
  let description = [{
    Not deterministic, hence never folded.
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape, OptionalAttr<TypeAttr>:$dtype, ONNX_FloatOr<"0.0f">:$mean,
        ONNX_FloatOr<"1.0f">:$scale, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RandomNormalLikeOp : ONNX_Op<"RandomNormalLike", 22> {
  let summary = "draws from a normal distribution, with another tensor's shape";
  let description = [{
    Not deterministic, hence never folded.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, ONNX_FloatOr<"0.0f">:$mean,
        ONNX_FloatOr<"1.0f">:$scale, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RandomUniformOp : ONNX_Op<"RandomUniform", 22> {
  let summary = "draws from a uniform distribution";
  let description = [{
    Not deterministic, hence never folded.
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape, OptionalAttr<TypeAttr>:$dtype, ONNX_FloatOr<"1.0f">:$high,
        ONNX_FloatOr<"0.0f">:$low, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RandomUniformLikeOp : ONNX_Op<"RandomUniformLike", 22> {
  let summary = "draws from a uniform distribution, with another tensor's shape";
  let description = [{
    Not deterministic, hence never folded.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, ONNX_FloatOr<"1.0f">:$high,
        ONNX_FloatOr<"0.0f">:$low, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_DropoutOp : ONNX_Op<"Dropout", 22, [Pure]> {
  let summary = "drops elements at random in training, the identity in inference";
  let description = [{
    `training_mode` is absent or false in an exported model; then nothing is dropped and the mask is all true.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$ratio, ONNX_Optional:$training_mode,
        OptionalAttr<ONNX_Int>:$seed);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$mask);
}

def ONNX_NonMaxSuppressionOp : ONNX_Op<"NonMaxSuppression", 11, [Pure]> {
  let summary = "filters overlapping boxes";
  let description = [{
    Keeps the best box and removes those that overlap it too much, class by class.
  }];
  let arguments = (ins ONNX_Value:$boxes, ONNX_Value:$scores, ONNX_Optional:$max_output_boxes_per_class,
        ONNX_Optional:$iou_threshold, ONNX_Optional:$score_threshold, ONNX_IntOr<"0">:$center_point_box);
  let results = (outs ONNX_Value:$selected_indices);
}

def ONNX_MSTriluOp : ONNX_MSOp<"Trilu", 1, [Pure]> {
  let summary = "upper or lower triangle of matrices";
  let description = [{
    ONNX Runtime's older form of `onnx.Trilu`.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Optional:$k, ONNX_IntOr<"1">:$upper);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSExpandDimsOp : ONNX_MSOp<"ExpandDims", 1, [Pure]> {
  let summary = "inserts an axis";
  let description = [{
    A single new axis, given as an operand.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$axis);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSGatherNDOp : ONNX_MSOp<"GatherND", 1, [Pure]> {
  let summary = "picks slices by index tuples";
  let description = [{
    ONNX Runtime's older form of `onnx.GatherND`, without common batch axes.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSRemovePaddingOp : ONNX_MSOp<"RemovePadding", 1, [Pure]> {
  let summary = "packs padded sequences";
  let description = [{
    Keeps the valid tokens of each row, one sequence behind the other, and remembers where they came from.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$sequence_token_count);
  let results = (outs ONNX_Value:$output, ONNX_Value:$token_offset, ONNX_Value:$cumulated_seq_len,
        ONNX_Value:$max_seq_len);
}

def ONNX_MSRestorePaddingOp : ONNX_MSOp<"RestorePadding", 1, [Pure]> {
  let summary = "unpacks sequences into padded form";
  let description = [{
    Puts packed tokens back to where `token_offset` says; the rest is zero.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$token_offset);
  let results = (outs ONNX_Value:$output);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_TD
