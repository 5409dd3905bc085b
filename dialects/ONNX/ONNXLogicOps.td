// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: comparison, logic, bits, selection and conversion of the element type.

#ifndef QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_AndOp : ONNX_Op<"And", 7, [Pure]> {
  let summary = "logical and";
  let description = [{
    Returns the tensor resulted from performing the and logical operation elementwise on the input tensors A and
    B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_OrOp : ONNX_Op<"Or", 7, [Pure]> {
  let summary = "logical or";
  let description = [{
    Returns the tensor resulted from performing the or logical operation elementwise on the input tensors A and
    B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_XorOp : ONNX_Op<"Xor", 7, [Pure]> {
  let summary = "logical exclusive or";
  let description = [{
    Returns the tensor resulted from performing the xor logical operation elementwise on the input tensors A and
    B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_NotOp : ONNX_Op<"Not", 1, [Pure]> {
  let summary = "logical negation";
  let description = [{
    Returns the negation of the input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_EqualOp : ONNX_Op<"Equal", 19, [Pure]> {
  let summary = "A = B, with broadcasting";
  let description = [{
    Returns the tensor resulted from performing the equal logical operation elementwise on the input tensors A
    and B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_GreaterOp : ONNX_Op<"Greater", 13, [Pure]> {
  let summary = "A > B, with broadcasting";
  let description = [{
    Returns the tensor resulted from performing the greater logical operation elementwise on the input tensors A
    and B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_GreaterOrEqualOp : ONNX_Op<"GreaterOrEqual", 16, [Pure]> {
  let summary = "A >= B, with broadcasting";
  let description = [{
    Returns the tensor resulted from performing the greater_equal logical operation elementwise on the input
    tensors A and B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e.,
    Numpy-style) broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_LessOp : ONNX_Op<"Less", 13, [Pure]> {
  let summary = "A < B, with broadcasting";
  let description = [{
    Returns the tensor resulted from performing the less logical operation elementwise on the input tensors A
    and B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_LessOrEqualOp : ONNX_Op<"LessOrEqual", 16, [Pure]> {
  let summary = "A <= B, with broadcasting";
  let description = [{
    Returns the tensor resulted from performing the less_equal logical operation elementwise on the input
    tensors A and B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e.,
    Numpy-style) broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_IsInfOp : ONNX_Op<"IsInf", 20, [Pure]> {
  let summary = "whether each element is infinite";
  let description = [{
    Map infinity to true and other values to false.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_IntOr<"1">:$detect_negative, ONNX_IntOr<"1">:$detect_positive);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_IsNaNOp : ONNX_Op<"IsNaN", 20, [Pure]> {
  let summary = "whether each element is not a number";
  let description = [{
    Returns which elements of the input are NaN.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_WhereOp : ONNX_Op<"Where", 16, [Pure]> {
  let summary = "X where the condition holds, else Y, with broadcasting";
  let description = [{
    Return elements, either from X or Y, depending on condition. Where behaves like numpy.where with three
    parameters.
  }];
  let arguments = (ins ONNX_Value:$condition, ONNX_Value:$X, ONNX_Value:$Y);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ClipOp : ONNX_Op<"Clip", 13, [Pure]> {
  let summary = "limits each element to [min, max]";
  let description = [{
    Clip operator limits the given input within an interval. The interval is specified by the inputs 'min' and
    'max'.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Optional:$min, ONNX_Optional:$max);
  let results = (outs ONNX_Value:$output);
}

def ONNX_CastOp : ONNX_Op<"Cast", 28, [Pure]> {
  let summary = "converts the element type";
  let description = [{
    The operator casts the elements of a given input tensor to a data type specified by the 'to' argument and
    returns an output tensor of the same size in the converted type. The 'to' argument must be one of the data
    types specified in the 'DataType' enum field in the TensorProto message.
  }];
  let arguments = (ins ONNX_Value:$input, TypeAttr:$to, ONNX_StrOr<"up">:$round_mode, ONNX_IntOr<"1">:$saturate);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_CastLikeOp : ONNX_Op<"CastLike", 25, [Pure]> {
  let summary = "converts to the element type of another tensor";
  let description = [{
    The operator casts the elements of a given input tensor (the first input) to the same data type as the
    elements of the second input tensor. See documentation of the Cast operator for further details.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$target_type, ONNX_StrOr<"up">:$round_mode,
        ONNX_IntOr<"1">:$saturate);
  let results = (outs ONNX_Value:$output);
}

def ONNX_BitCastOp : ONNX_Op<"BitCast", 26, [Pure]> {
  let summary = "reads the same bits as another element type of that width";
  let description = [{
    Reinterprets the binary representation of a tensor as a different data type, specified by the 'to'
    attribute. Unlike Cast, BitCast preserves the exact bit pattern without any value conversion.
  }];
  let arguments = (ins ONNX_Value:$input, TypeAttr:$to);
  let results = (outs ONNX_Value:$output);
}

def ONNX_BitShiftOp : ONNX_Op<"BitShift", 28, [Pure]> {
  let summary = "shifts bits left or right";
  let description = [{
    Bitwise shift operator performs element-wise operation. For each input element, if the attribute "direction"
    is "RIGHT", this operator moves its binary representation toward the right side.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$Y, StrAttr:$direction);
  let results = (outs ONNX_Value:$Z);
  let hasVerifier = 1;
}

def ONNX_BitwiseAndOp : ONNX_Op<"BitwiseAnd", 18, [Pure]> {
  let summary = "bitwise and";
  let description = [{
    Returns the tensor resulting from performing the bitwise and operation elementwise on the input tensors A
    and B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_BitwiseOrOp : ONNX_Op<"BitwiseOr", 18, [Pure]> {
  let summary = "bitwise or";
  let description = [{
    Returns the tensor resulting from performing the bitwise or operation elementwise on the input tensors A and
    B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_BitwiseXorOp : ONNX_Op<"BitwiseXor", 18, [Pure]> {
  let summary = "bitwise exclusive or";
  let description = [{
    Returns the tensor resulting from performing the bitwise xor operation elementwise on the input tensors A
    and B (with Numpy-style broadcasting support). This operator supports multidirectional (i.e., Numpy-style)
    broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_BitwiseNotOp : ONNX_Op<"BitwiseNot", 18, [Pure]> {
  let summary = "bitwise complement";
  let description = [{
    Returns the bitwise not of the input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_TD
