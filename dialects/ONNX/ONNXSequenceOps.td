// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: sequences and optionals.

#ifndef QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_SequenceAtOp : ONNX_Op<"SequenceAt", 11, [Pure]> {
  let summary = "one tensor of a sequence";
  let description = [{
    Outputs a tensor copy from the tensor at 'position' in 'input_sequence'. Accepted range for 'position' is in
    [-n, n - 1], where n is the number of tensors in 'input_sequence'.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, ONNX_Value:$position);
  let results = (outs ONNX_Value:$tensor);
}

def ONNX_SequenceConstructOp : ONNX_Op<"SequenceConstruct", 11, [Pure]> {
  let summary = "a sequence of tensors";
  let description = [{
    Construct a tensor sequence containing 'inputs' tensors. All tensors in 'inputs' must have the same data
    type.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$inputs);
  let results = (outs ONNX_Value:$output_sequence);
}

def ONNX_SequenceEmptyOp : ONNX_Op<"SequenceEmpty", 11, [Pure]> {
  let summary = "an empty sequence";
  let description = [{
    Construct an empty tensor sequence, with given data type.
  }];
  let arguments = (ins OptionalAttr<TypeAttr>:$dtype);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SequenceEraseOp : ONNX_Op<"SequenceErase", 11, [Pure]> {
  let summary = "a sequence without one of its tensors";
  let description = [{
    Outputs a tensor sequence that removes the tensor at 'position' from 'input_sequence'. Accepted range for
    'position' is in [-n, n - 1], where n is the number of tensors in 'input_sequence'.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, ONNX_Optional:$position);
  let results = (outs ONNX_Value:$output_sequence);
}

def ONNX_SequenceInsertOp : ONNX_Op<"SequenceInsert", 11, [Pure]> {
  let summary = "a sequence with one tensor more";
  let description = [{
    Outputs a tensor sequence that inserts 'tensor' into 'input_sequence' at 'position'. 'tensor' must have the
    same data type as 'input_sequence'. Accepted range for 'position' is in [-n, n], where n is the number of
    tensors in 'input_sequence'.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, ONNX_Value:$tensor, ONNX_Optional:$position);
  let results = (outs ONNX_Value:$output_sequence);
}

def ONNX_SequenceLengthOp : ONNX_Op<"SequenceLength", 11, [Pure]> {
  let summary = "the number of tensors in a sequence";
  let description = [{
    Produces a scalar(tensor of empty shape) containing the number of tensors in 'input_sequence'.
  }];
  let arguments = (ins ONNX_Value:$input_sequence);
  let results = (outs ONNX_Value:$length);
}

def ONNX_SplitToSequenceOp : ONNX_Op<"SplitToSequence", 24, [Pure]> {
  let summary = "cuts a tensor into a sequence";
  let description = [{
    Split a tensor into a sequence of tensors, along the specified 'axis'. Lengths of the parts can be specified
    using the optional argument 'split'.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Optional:$split, ONNX_IntOr<"0">:$axis, ONNX_IntOr<"1">:$keepdims);
  let results = (outs ONNX_Value:$output_sequence);
}

def ONNX_ConcatFromSequenceOp : ONNX_Op<"ConcatFromSequence", 11, [Pure]> {
  let summary = "joins the tensors of a sequence";
  let description = [{
    Concatenate a sequence of tensors into a single tensor. All input tensors must have the same shape, except
    for the dimension size of the axis to concatenate on.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, ONNX_Int:$axis, ONNX_IntOr<"0">:$new_axis);
  let results = (outs ONNX_Value:$concat_result);
}

def ONNX_OptionalOp : ONNX_Op<"Optional", 28, [Pure]> {
  let summary = "wraps a value, or nothing";
  let description = [{
    Constructs an optional-type value containing either an empty optional of a certain type specified by the
    attribute, or a non-empty value containing the input element.
  }];
  let arguments = (ins ONNX_Optional:$input, OptionalAttr<TypeAttr>:$type);
  let results = (outs ONNX_Value:$output);
}

def ONNX_OptionalGetElementOp : ONNX_Op<"OptionalGetElement", 28, [Pure]> {
  let summary = "unwraps an optional";
  let description = [{
    If the input is a tensor or sequence type, it returns the input. If the input is an optional type, it
    outputs the element in the input.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_OptionalHasElementOp : ONNX_Op<"OptionalHasElement", 28, [Pure]> {
  let summary = "whether an optional holds a value";
  let description = [{
    Returns true if (1) the input is an optional-type and contains an element, or, (2) the input is a tensor or
    sequence type. If the input is not provided or is an empty optional-type, this op returns false.
  }];
  let arguments = (ins ONNX_Optional:$input);
  let results = (outs ONNX_Value:$output);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_TD
