// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: shape, movement, indexing and generation of tensors.

#ifndef QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_ReshapeOp : ONNX_Op<"Reshape", 25, [Pure]> {
  let summary = "the same elements in another shape";
  let description = [{
    Reshape the input tensor similar to numpy.reshape. First input is the data tensor, second input is a shape
    tensor which specifies the output shape.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$shape, ONNX_IntOr<"0">:$allowzero);
  let results = (outs ONNX_Value:$reshaped);
}

def ONNX_TransposeOp : ONNX_Op<"Transpose", 25, [Pure]> {
  let summary = "permutes axes";
  let description = [{
    Returns a transpose of the input tensor. (Similar to numpy.transpose). The optional attribute perm specifies
    the permutation of the axes of the input tensor. perm must contain each axis index in [0, n-1] exactly once,
    so its length is equal to the rank n of the input tensor.
  }];
  let arguments = (ins ONNX_Value:$data, OptionalAttr<DenseI64ArrayAttr>:$perm);
  let results = (outs ONNX_Value:$transposed);
  let hasVerifier = 1;
}

def ONNX_SqueezeOp : ONNX_Op<"Squeeze", 25, [Pure]> {
  let summary = "removes axes of extent one";
  let description = [{
    Remove single-dimensional entries from the shape of a tensor. Takes an input axes with a list of axes to
    squeeze.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$axes);
  let results = (outs ONNX_Value:$squeezed);
  let hasVerifier = 1;
}

def ONNX_UnsqueezeOp : ONNX_Op<"Unsqueeze", 25, [Pure]> {
  let summary = "inserts axes of extent one";
  let description = [{
    Insert single-dimensional entries to the shape of an input tensor (data). Takes one required input axes -
    which contains a list of dimension indices and this operator will insert a dimension of value 1 into the
    corresponding index of the output tensor (expanded).
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$axes);
  let results = (outs ONNX_Value:$expanded);
}

def ONNX_FlattenOp : ONNX_Op<"Flatten", 25, [Pure]> {
  let summary = "collapses a tensor into a matrix";
  let description = [{
    Flattens the input tensor into a 2D matrix. If input tensor has shape (d_0, d_1, ... d_n) then the output
    will have shape (d_0 X d_1 ... d_(axis-1), d_axis X d_(axis+1) ...
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_IntOr<"1">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_ExpandOp : ONNX_Op<"Expand", 13, [Pure]> {
  let summary = "broadcasts to a shape";
  let description = [{
    Broadcast the input tensor following the given shape and the broadcast rule. The broadcast rule is similar
    to numpy.array(input) * numpy.ones(shape): Dimensions are right alignment; Two corresponding dimensions must
    have the same value, or one of them is equal to 1.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$shape);
  let results = (outs ONNX_Value:$output);
}

def ONNX_TileOp : ONNX_Op<"Tile", 13, [Pure]> {
  let summary = "repeats a tensor along its axes";
  let description = [{
    Constructs a tensor by tiling a given tensor. This is the same as function tile in Numpy, but no broadcast.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$repeats);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ConcatOp : ONNX_Op<"Concat", 13, [Pure]> {
  let summary = "joins tensors along an axis";
  let description = [{
    Concatenate a list of tensors into a single tensor. All input tensors must have the same shape, except for
    the dimension size of the axis to concatenate on.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$inputs, ONNX_Int:$axis);
  let results = (outs ONNX_Value:$concat_result);
  let hasVerifier = 1;
}

def ONNX_SplitOp : ONNX_Op<"Split", 18, [Pure]> {
  let summary = "cuts a tensor along an axis";
  let description = [{
    Split a tensor into a list of tensors, along the specified 'axis'. Either input 'split' or the attribute
    'num_outputs' should be specified, but not both.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Optional:$split, ONNX_IntOr<"0">:$axis,
        OptionalAttr<ONNX_Int>:$num_outputs);
  let results = (outs Variadic<ONNX_Optional>:$outputs);
  let hasVerifier = 1;
}

def ONNX_SliceOp : ONNX_Op<"Slice", 13, [Pure]> {
  let summary = "takes a strided range of chosen axes";
  let description = [{
    Produces a slice of the input tensor along multiple axes. Similar to numpy:
    https://numpy.org/doc/stable/user/basics.indexing.html?highlight=slice#slicing-and-striding Slice uses the
    starts, ends, axes and steps inputs to select a sub-tensor of its input data tensor.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$starts, ONNX_Value:$ends, ONNX_Optional:$axes,
        ONNX_Optional:$steps);
  let results = (outs ONNX_Value:$output);
}

def ONNX_PadOp : ONNX_Op<"Pad", 25, [Pure]> {
  let summary = "adds elements at the ends of axes, or removes them";
  let description = [{
    Given a tensor containing the data to be padded (data), a tensor containing the number of start and end pad
    values for axis (pads), (optionally) a mode, and (optionally) constant_value, a padded tensor (output) is
    generated.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$pads, ONNX_Optional:$constant_value, ONNX_Optional:$axes,
        ONNX_StrOr<"constant">:$mode);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_GatherOp : ONNX_Op<"Gather", 13, [Pure]> {
  let summary = "picks entries of an axis by index";
  let description = [{
    Given data tensor of rank r >= 1, and indices tensor of rank q, gather entries of the axis dimension of data
    (by default outer-most one as axis=0) indexed by indices, and concatenates them in an output tensor of rank
    q + (r - 1). It is an indexing operation that indexes into the input data along a single (specified) axis.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_IntOr<"0">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_GatherElementsOp : ONNX_Op<"GatherElements", 13, [Pure]> {
  let summary = "picks one element per index along an axis";
  let description = [{
    GatherElements takes two inputs data and indices of the same rank r >= 1 and an optional attribute axis that
    identifies an axis of data (by default, the outer-most axis, that is axis 0).
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_IntOr<"0">:$axis);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_GatherNDOp : ONNX_Op<"GatherND", 13, [Pure]> {
  let summary = "picks slices by index tuples";
  let description = [{
    Given data tensor of rank r >= 1, indices tensor of rank q >= 1, and batch_dims integer b, this operator
    gathers slices of data into an output tensor of rank q + r - indices_shape[-1] - 1 - b. indices is an
    q-dimensional integer tensor, best thought of as a (q-1)-dimensional tensor of index-tuples i.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_IntOr<"0">:$batch_dims);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ScatterElementsOp : ONNX_Op<"ScatterElements", 18, [Pure]> {
  let summary = "writes one element per index along an axis";
  let description = [{
    ScatterElements takes three inputs data, updates, and indices of the same rank r >= 1 and an optional
    attribute axis that identifies an axis of data (by default, the outer-most axis, that is axis 0).
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_Value:$updates, ONNX_IntOr<"0">:$axis,
        ONNX_StrOr<"none">:$reduction);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_ScatterNDOp : ONNX_Op<"ScatterND", 18, [Pure]> {
  let summary = "writes slices at index tuples";
  let description = [{
    ScatterND takes three inputs data tensor of rank r >= 1, indices tensor of rank q >= 1, and updates tensor
    of rank q + r - indices.shape[-1] - 1.
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices, ONNX_Value:$updates, ONNX_StrOr<"none">:$reduction);
  let results = (outs ONNX_Value:$output);
}

def ONNX_TensorScatterOp : ONNX_Op<"TensorScatter", 24, [Pure]> {
  let summary = "writes new rows into a cache, each sample at its own position";
  let description = [{
    TensorScatter is a generic tensor update operation, motivated by the requirements for KV cache updates for
    Attention ops commonly found in LLMs. It is a functional operation that models an in-place update to a KV
    cache buffer.
  }];
  let arguments = (ins ONNX_Value:$past_cache, ONNX_Value:$update, ONNX_Optional:$write_indices,
        ONNX_IntOr<"-2">:$axis, ONNX_StrOr<"linear">:$mode);
  let results = (outs ONNX_Value:$present_cache);
  let hasVerifier = 1;
}

def ONNX_ShapeOp : ONNX_Op<"Shape", 25, [Pure]> {
  let summary = "the extents of a tensor, or of a range of its axes";
  let description = [{
    Takes a tensor as input and outputs an 1D int64 tensor containing the shape of the input tensor. Optional
    attributes start and end can be used to compute a slice of the input tensor's shape.
  }];
  let arguments = (ins ONNX_Value:$data, OptionalAttr<ONNX_Int>:$end, ONNX_IntOr<"0">:$start);
  let results = (outs ONNX_Value:$shape);
}

def ONNX_SizeOp : ONNX_Op<"Size", 25, [Pure]> {
  let summary = "the number of elements";
  let description = [{
    Takes a tensor as input and outputs a int64 scalar that equals to the total number of elements of the input
    tensor.
  }];
  let arguments = (ins ONNX_Value:$data);
  let results = (outs ONNX_Value:$size);
}

def ONNX_IdentityOp : ONNX_Op<"Identity", 25, [Pure]> {
  let summary = "the same value";
  let description = [{
    Identity operator.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ConstantOfShapeOp : ONNX_Op<"ConstantOfShape", 25, [Pure]> {
  let summary = "a tensor of one value";
  let description = [{
    Generate a tensor with given value and shape.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<ElementsAttr>:$value);
  let results = (outs ONNX_Value:$output);
}

def ONNX_EyeLikeOp : ONNX_Op<"EyeLike", 22, [Pure]> {
  let summary = "ones on a diagonal, zeros elsewhere";
  let description = [{
    Generate a 2D tensor (matrix) with ones on the diagonal and zeros everywhere else. Only 2D tensors are
    supported, i.e. input T1 must be of rank 2.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, ONNX_IntOr<"0">:$k);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RangeOp : ONNX_Op<"Range", 27, [Pure]> {
  let summary = "start, start + delta, ... before limit";
  let description = [{
    Generate a tensor containing a sequence of numbers that begin at start and extends by increments of delta up
    to limit (exclusive).
  }];
  let arguments = (ins ONNX_Value:$start, ONNX_Value:$limit, ONNX_Value:$delta, ONNX_IntOr<"1">:$stash_type);
  let results = (outs ONNX_Value:$output);
}

def ONNX_OneHotOp : ONNX_Op<"OneHot", 28, [Pure]> {
  let summary = "one-hot encoding along a new axis";
  let description = [{
    Produces a one-hot tensor based on inputs.
  }];
  let arguments = (ins ONNX_Value:$indices, ONNX_Value:$depth, ONNX_Value:$values, ONNX_IntOr<"-1">:$axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_TriluOp : ONNX_Op<"Trilu", 14, [Pure]> {
  let summary = "upper or lower triangle of matrices";
  let description = [{
    Given a 2-D matrix or batches of 2-D matrices, returns the upper or lower triangular part of the tensor(s).
    The attribute "upper" determines whether the upper or lower part is retained.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Optional:$k, ONNX_IntOr<"1">:$upper);
  let results = (outs ONNX_Value:$output);
}

def ONNX_NonZeroOp : ONNX_Op<"NonZero", 13, [Pure]> {
  let summary = "indices of the elements that are not zero";
  let description = [{
    Returns the indices of the elements that are non-zero (in row-major order - by dimension). NonZero behaves
    similar to numpy.nonzero: https://docs.scipy.org/doc/numpy/reference/generated/numpy.nonzero.html, but for
    scalar input, NonZero produces output shape (0, N) instead of (1, N), which is different from Numpy's
    behavior.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_CompressOp : ONNX_Op<"Compress", 28, [Pure]> {
  let summary = "slices of an axis where the condition holds";
  let description = [{
    Selects slices from an input tensor along a given axis where condition evaluates to True for each axis
    index. In case axis is not provided, input is flattened before elements are selected.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$condition, OptionalAttr<ONNX_Int>:$axis);
  let results = (outs ONNX_Value:$output);
}

def ONNX_UniqueOp : ONNX_Op<"Unique", 28, [Pure]> {
  let summary = "unique elements or slices";
  let description = [{
    Find the unique elements of a tensor. When an optional attribute 'axis' is provided, unique subtensors
    sliced along the 'axis' are returned.
  }];
  let arguments = (ins ONNX_Value:$X, OptionalAttr<ONNX_Int>:$axis, ONNX_IntOr<"1">:$sorted);
  let results = (outs ONNX_Value:$Y, ONNX_Optional:$indices, ONNX_Optional:$inverse_indices, ONNX_Optional:$counts);
}

def ONNX_ReverseSequenceOp : ONNX_Op<"ReverseSequence", 28, [Pure]> {
  let summary = "reverses sequences of different lengths";
  let description = [{
    Reverse batch of sequences having different lengths specified by sequence_lens. For each slice i iterating
    on batch axis, the operator reverses the first sequence_lens[i] elements on time axis, and copies elements
    whose index's beyond sequence_lens[i] to the output.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$sequence_lens, ONNX_IntOr<"1">:$batch_axis,
        ONNX_IntOr<"0">:$time_axis);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_DepthToSpaceOp : ONNX_Op<"DepthToSpace", 28, [Pure]> {
  let summary = "moves blocks of channels into spatial axes";
  let description = [{
    DepthToSpace rearranges (permutes) data from depth into blocks of spatial data. This is the reverse
    transformation of SpaceToDepth.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Int:$blocksize, ONNX_StrOr<"DCR">:$mode);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SpaceToDepthOp : ONNX_Op<"SpaceToDepth", 28, [Pure]> {
  let summary = "moves spatial blocks into channels";
  let description = [{
    SpaceToDepth rearranges blocks of spatial data into depth. More specifically, this op outputs a copy of the
    input tensor where values from the height and width dimensions are moved to the depth dimension. mode
    determines whether blocks are ordered depth-column-row (DCR, the default) or column-row-depth (CRD).
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Int:$blocksize, ONNX_StrOr<"DCR">:$mode);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ResizeOp : ONNX_Op<"Resize", 19, [Pure]> {
  let summary = "resamples a tensor";
  let description = [{
    Resize the input tensor. In general, it calculates every value in the output tensor as a weighted average of
    neighborhood (a.k.a. sampling locations) in the input tensor.
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
    Draws binary random numbers (0 or 1) from a Bernoulli distribution. The input tensor should be a tensor
    containing probabilities p (a value in the range [0,1]) to be used for drawing the binary random number,
    where an output of 1 is produced with probability p and an output of 0 is produced with probability (1-p).
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MultinomialOp : ONNX_Op<"Multinomial", 22> {
  let summary = "draws from a categorical distribution";
  let description = [{
    Generate a tensor of samples from a multinomial distribution according to the probabilities of each of the
    possible outcomes.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, ONNX_IntOr<"1">:$sample_size,
        OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RandomNormalOp : ONNX_Op<"RandomNormal", 22> {
  let summary = "draws from a normal distribution";
  let description = [{
    Generate a tensor with random values drawn from a normal distribution. The shape of the tensor is specified
    by the shape argument and the parameter of the normal distribution specified by mean and scale.
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape, OptionalAttr<TypeAttr>:$dtype, ONNX_FloatOr<"0.0f">:$mean,
        ONNX_FloatOr<"1.0f">:$scale, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RandomNormalLikeOp : ONNX_Op<"RandomNormalLike", 22> {
  let summary = "draws from a normal distribution, with another tensor's shape";
  let description = [{
    Generate a tensor with random values drawn from a normal distribution. The shape of the output tensor is
    copied from the shape of the input tensor, and the parameters of the normal distribution are specified by
    mean and scale.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, ONNX_FloatOr<"0.0f">:$mean,
        ONNX_FloatOr<"1.0f">:$scale, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RandomUniformOp : ONNX_Op<"RandomUniform", 22> {
  let summary = "draws from a uniform distribution";
  let description = [{
    Generate a tensor with random values drawn from a uniform distribution. The shape of the tensor is specified
    by the shape argument and the range by low and high.
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape, OptionalAttr<TypeAttr>:$dtype, ONNX_FloatOr<"1.0f">:$high,
        ONNX_FloatOr<"0.0f">:$low, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_RandomUniformLikeOp : ONNX_Op<"RandomUniformLike", 22> {
  let summary = "draws from a uniform distribution, with another tensor's shape";
  let description = [{
    Generate a tensor with random values drawn from a uniform distribution. The shape of the output tensor is
    copied from the shape of the input tensor, and the parameters of the uniform distribution are specified by
    low and high.
  }];
  let arguments = (ins ONNX_Value:$input, OptionalAttr<TypeAttr>:$dtype, ONNX_FloatOr<"1.0f">:$high,
        ONNX_FloatOr<"0.0f">:$low, OptionalAttr<ONNX_Float>:$seed);
  let results = (outs ONNX_Value:$output);
}

def ONNX_DropoutOp : ONNX_Op<"Dropout", 22, [Pure]> {
  let summary = "drops elements at random in training, the identity in inference";
  let description = [{
    Dropout takes an input floating-point tensor, an optional input ratio (floating-point scalar) and an
    optional input training_mode (boolean scalar). It produces two tensor outputs, output (floating-point
    tensor) and mask (optional Tensor).
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Optional:$ratio, ONNX_Optional:$training_mode,
        OptionalAttr<ONNX_Int>:$seed);
  let results = (outs ONNX_Value:$output, ONNX_Optional:$mask);
}

def ONNX_NonMaxSuppressionOp : ONNX_Op<"NonMaxSuppression", 11, [Pure]> {
  let summary = "filters overlapping boxes";
  let description = [{
    Filter out boxes that have high intersection-over-union (IOU) overlap with previously selected boxes.
    Bounding boxes with score less than score_threshold are removed.
  }];
  let arguments = (ins ONNX_Value:$boxes, ONNX_Value:$scores, ONNX_Optional:$max_output_boxes_per_class,
        ONNX_Optional:$iou_threshold, ONNX_Optional:$score_threshold, ONNX_IntOr<"0">:$center_point_box);
  let results = (outs ONNX_Value:$selected_indices);
}

def ONNX_MSTriluOp : ONNX_MSOp<"Trilu", 1, [Pure]> {
  let summary = "upper or lower triangle of matrices";
  let description = [{
    Returns the upper or lower triangular part of a 2-D matrix, or batches of 2-D matrices. If the attribute
    "upper" is set to true, the upper triangular matrix is retained.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Optional:$k, ONNX_IntOr<"1">:$upper);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSExpandDimsOp : ONNX_MSOp<"ExpandDims", 1, [Pure]> {
  let summary = "inserts an axis";
  let description = [{
    ExpandDims echo operator.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$axis);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSGatherNDOp : ONNX_MSOp<"GatherND", 1, [Pure]> {
  let summary = "picks slices by index tuples";
  let description = [{
    Given data tensor of rank r >= 1, and indices tensor of rank q >= 1, gather slices of data into an output
    tensor of rank q - 1 + r - indices[-1].
  }];
  let arguments = (ins ONNX_Value:$data, ONNX_Value:$indices);
  let results = (outs ONNX_Value:$output);
}

def ONNX_MSRemovePaddingOp : ONNX_MSOp<"RemovePadding", 1, [Pure]> {
  let summary = "packs padded sequences";
  let description = [{
    Compress transformer input by removing paddings. It assumes padding is on the right side of sequence.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$sequence_token_count);
  let results = (outs ONNX_Value:$output, ONNX_Value:$token_offset, ONNX_Value:$cumulated_seq_len,
        ONNX_Value:$max_seq_len);
}

def ONNX_MSRestorePaddingOp : ONNX_MSOp<"RestorePadding", 1, [Pure]> {
  let summary = "unpacks sequences into padded form";
  let description = [{
    Restore paddings and fill padding with zeros. The input has padding with shape (total_tokens, hidden_size)
    and token_offset with shape (batch_size, sequence_length).
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$token_offset);
  let results = (outs ONNX_Value:$output);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_TD
