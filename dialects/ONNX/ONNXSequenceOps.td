// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: sequences and optionals.

#ifndef QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_SequenceAtOp : ONNX_Op<"SequenceAt", 11, [Pure]> {
  let summary = "one tensor of a sequence";
  let description = [{
    Negative positions count from the end.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, ONNX_Value:$position);
  let results = (outs ONNX_Value:$tensor);
}

def ONNX_SequenceConstructOp : ONNX_Op<"SequenceConstruct", 11, [Pure]> {
  let summary = "a sequence of tensors";
  let description = [{
    All operands have one element type; shapes may differ.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$inputs);
  let results = (outs ONNX_Value:$output_sequence);
}

def ONNX_SequenceEmptyOp : ONNX_Op<"SequenceEmpty", 11, [Pure]> {
  let summary = "an empty sequence";
  let description = [{
    `dtype` is the element type of the tensors that may join it; f32 when absent.
  }];
  let arguments = (ins OptionalAttr<TypeAttr>:$dtype);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SequenceEraseOp : ONNX_Op<"SequenceErase", 11, [Pure]> {
  let summary = "a sequence without one of its tensors";
  let description = [{
    The last one goes when there is no position.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, ONNX_Optional:$position);
  let results = (outs ONNX_Value:$output_sequence);
}

def ONNX_SequenceInsertOp : ONNX_Op<"SequenceInsert", 11, [Pure]> {
  let summary = "a sequence with one tensor more";
  let description = [{
    At the end when there is no position; negative positions count from the end.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, ONNX_Value:$tensor, ONNX_Optional:$position);
  let results = (outs ONNX_Value:$output_sequence);
}

def ONNX_SequenceLengthOp : ONNX_Op<"SequenceLength", 11, [Pure]> {
  let summary = "the number of tensors in a sequence";
  let description = [{
    A scalar.
  }];
  let arguments = (ins ONNX_Value:$input_sequence);
  let results = (outs ONNX_Value:$length);
}

def ONNX_SplitToSequenceOp : ONNX_Op<"SplitToSequence", 24, [Pure]> {
  let summary = "cuts a tensor into a sequence";
  let description = [{
    `split` is a size for all pieces or a list of sizes; without it every piece has extent one, and `keepdims` says
    whether that axis stays.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Optional:$split, ONNX_IntOr<"0">:$axis, ONNX_IntOr<"1">:$keepdims);
  let results = (outs ONNX_Value:$output_sequence);
}

def ONNX_ConcatFromSequenceOp : ONNX_Op<"ConcatFromSequence", 11, [Pure]> {
  let summary = "joins the tensors of a sequence";
  let description = [{
    With `new_axis` the tensors are stacked along an axis of their own.
  }];
  let arguments = (ins ONNX_Value:$input_sequence, ONNX_Int:$axis, ONNX_IntOr<"0">:$new_axis);
  let results = (outs ONNX_Value:$concat_result);
}

def ONNX_OptionalOp : ONNX_Op<"Optional", 28, [Pure]> {
  let summary = "wraps a value, or nothing";
  let description = [{
    Without an operand the result is empty and `type` says of what.
  }];
  let arguments = (ins ONNX_Optional:$input, OptionalAttr<TypeAttr>:$type);
  let results = (outs ONNX_Value:$output);
}

def ONNX_OptionalGetElementOp : ONNX_Op<"OptionalGetElement", 28, [Pure]> {
  let summary = "unwraps an optional";
  let description = [{
    An error at run time when there is nothing inside; other values pass through.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_OptionalHasElementOp : ONNX_Op<"OptionalHasElement", 28, [Pure]> {
  let summary = "whether an optional holds a value";
  let description = [{
    False also for an absent operand.
  }];
  let arguments = (ins ONNX_Optional:$input);
  let results = (outs ONNX_Value:$output);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_TD
