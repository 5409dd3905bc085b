// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: comparison, logic, bits, selection and conversion of the element type.

#ifndef QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_AndOp : ONNX_Op<"And", 7, [Pure]> {
  let summary = "logical and";
  let description = [{
    Operands are broadcast against each other.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_OrOp : ONNX_Op<"Or", 7, [Pure]> {
  let summary = "logical or";
  let description = [{
    Operands are broadcast against each other.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_XorOp : ONNX_Op<"Xor", 7, [Pure]> {
  let summary = "logical exclusive or";
  let description = [{
    Operands are broadcast against each other.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_NotOp : ONNX_Op<"Not", 1, [Pure]> {
  let summary = "logical negation";
  let description = [{
    Turns true into false and the reverse.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_EqualOp : ONNX_Op<"Equal", 19, [Pure]> {
  let summary = "A = B, with broadcasting";
  let description = [{
    Operands are broadcast against each other; a NaN equals nothing.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_GreaterOp : ONNX_Op<"Greater", 13, [Pure]> {
  let summary = "A > B, with broadcasting";
  let description = [{
    Operands are broadcast against each other; the result is false where either element is NaN.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_GreaterOrEqualOp : ONNX_Op<"GreaterOrEqual", 16, [Pure]> {
  let summary = "A >= B, with broadcasting";
  let description = [{
    Operands are broadcast against each other; the result is false where either element is NaN.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_LessOp : ONNX_Op<"Less", 13, [Pure]> {
  let summary = "A < B, with broadcasting";
  let description = [{
    Operands are broadcast against each other; the result is false where either element is NaN.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_LessOrEqualOp : ONNX_Op<"LessOrEqual", 16, [Pure]> {
  let summary = "A <= B, with broadcasting";
  let description = [{
    Operands are broadcast against each other; the result is false where either element is NaN.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_IsInfOp : ONNX_Op<"IsInf", 20, [Pure]> {
  let summary = "whether each element is infinite";
  let description = [{
    The attributes say whether positive and negative infinities count.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_IntOr<"1">:$detect_negative, ONNX_IntOr<"1">:$detect_positive);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_IsNaNOp : ONNX_Op<"IsNaN", 20, [Pure]> {
  let summary = "whether each element is not a number";
  let description = [{
    The result is a boolean tensor of the operand's shape.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_WhereOp : ONNX_Op<"Where", 16, [Pure]> {
  let summary = "X where the condition holds, else Y, with broadcasting";
  let description = [{
    All three operands are broadcast against one another.
  }];
  let arguments = (ins ONNX_Value:$condition, ONNX_Value:$X, ONNX_Value:$Y);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ClipOp : ONNX_Op<"Clip", 13, [Pure]> {
  let summary = "limits each element to [min, max]";
  let description = [{
    An absent bound does not limit. With min above max every element becomes max.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Optional:$min, ONNX_Optional:$max);
  let results = (outs ONNX_Value:$output);
}

def ONNX_CastOp : ONNX_Op<"Cast", 28, [Pure]> {
  let summary = "converts the element type";
  let description = [{
    `saturate` and `round_mode` matter only for the 8-bit float formats. Float to integer truncates towards zero.
  }];
  let arguments = (ins ONNX_Value:$input, TypeAttr:$to, ONNX_StrOr<"up">:$round_mode, ONNX_IntOr<"1">:$saturate);
  let results = (outs ONNX_Value:$output);
  let hasVerifier = 1;
}

def ONNX_CastLikeOp : ONNX_Op<"CastLike", 25, [Pure]> {
  let summary = "converts to the element type of another tensor";
  let description = [{
    Only the element type of `target_type` is used, never its values.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_Value:$target_type, ONNX_StrOr<"up">:$round_mode,
        ONNX_IntOr<"1">:$saturate);
  let results = (outs ONNX_Value:$output);
}

def ONNX_BitCastOp : ONNX_Op<"BitCast", 26, [Pure]> {
  let summary = "reads the same bits as another element type of that width";
  let description = [{
    No bit changes; the element types must be equally wide.
  }];
  let arguments = (ins ONNX_Value:$input, TypeAttr:$to);
  let results = (outs ONNX_Value:$output);
}

def ONNX_BitShiftOp : ONNX_Op<"BitShift", 28, [Pure]> {
  let summary = "shifts bits left or right";
  let description = [{
    `direction` is LEFT or RIGHT; vacated bits are zero, as the element types are unsigned.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$Y, StrAttr:$direction);
  let results = (outs ONNX_Value:$Z);
  let hasVerifier = 1;
}

def ONNX_BitwiseAndOp : ONNX_Op<"BitwiseAnd", 18, [Pure]> {
  let summary = "bitwise and";
  let description = [{
    Operands are broadcast against each other.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_BitwiseOrOp : ONNX_Op<"BitwiseOr", 18, [Pure]> {
  let summary = "bitwise or";
  let description = [{
    Operands are broadcast against each other.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_BitwiseXorOp : ONNX_Op<"BitwiseXor", 18, [Pure]> {
  let summary = "bitwise exclusive or";
  let description = [{
    Operands are broadcast against each other.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_BitwiseNotOp : ONNX_Op<"BitwiseNot", 18, [Pure]> {
  let summary = "bitwise complement";
  let description = [{
    Inverts every bit.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_TD
