// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: element-wise arithmetic, activations and products.

#ifndef QUIRE_DIALECTS_ONNX_ONNXMATHOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXMATHOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_AbsOp : ONNX_Op<"Abs", 13, [Pure]> {
  let summary = "absolute value of each element";
  let description = [{
    The result has the operand's type, integers included.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_AcosOp : ONNX_Op<"Acos", 22, [Pure]> {
  let summary = "arc cosine of each element";
  let description = [{
    In radians; NaN outside [-1, 1].
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AcoshOp : ONNX_Op<"Acosh", 22, [Pure]> {
  let summary = "inverse hyperbolic cosine of each element";
  let description = [{
    NaN below 1.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AsinOp : ONNX_Op<"Asin", 22, [Pure]> {
  let summary = "arc sine of each element";
  let description = [{
    In radians; NaN outside [-1, 1].
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AsinhOp : ONNX_Op<"Asinh", 22, [Pure]> {
  let summary = "inverse hyperbolic sine of each element";
  let description = [{
    Defined for every real number.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AtanOp : ONNX_Op<"Atan", 22, [Pure]> {
  let summary = "arc tangent of each element";
  let description = [{
    In radians.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AtanhOp : ONNX_Op<"Atanh", 22, [Pure]> {
  let summary = "inverse hyperbolic tangent of each element";
  let description = [{
    NaN outside [-1, 1].
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_CeilOp : ONNX_Op<"Ceil", 13, [Pure]> {
  let summary = "each element rounded up";
  let description = [{
    Integral values, zeros, infinities and NaN stay as they are.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_CosOp : ONNX_Op<"Cos", 22, [Pure]> {
  let summary = "cosine of each element";
  let description = [{
    The operand is in radians.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_CoshOp : ONNX_Op<"Cosh", 22, [Pure]> {
  let summary = "hyperbolic cosine of each element";
  let description = [{
    Defined for every real number.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ErfOp : ONNX_Op<"Erf", 13, [Pure]> {
  let summary = "error function of each element";
  let description = [{
    The integral of the normal bell curve, scaled to lie in (-1, 1).
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ExpOp : ONNX_Op<"Exp", 13, [Pure]> {
  let summary = "exponential of each element";
  let description = [{
    Base e.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_FloorOp : ONNX_Op<"Floor", 13, [Pure]> {
  let summary = "each element rounded down";
  let description = [{
    Integral values, zeros, infinities and NaN stay as they are.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_LogOp : ONNX_Op<"Log", 13, [Pure]> {
  let summary = "natural logarithm of each element";
  let description = [{
    NaN for negative elements, minus infinity for zero.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_NegOp : ONNX_Op<"Neg", 13, [Pure]> {
  let summary = "negation of each element";
  let description = [{
    Signed types only.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_ReciprocalOp : ONNX_Op<"Reciprocal", 13, [Pure]> {
  let summary = "one over each element";
  let description = [{
    Infinite for zero.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_RoundOp : ONNX_Op<"Round", 22, [Pure]> {
  let summary = "each element rounded to the nearest integer, halves to even";
  let description = [{
    2.5 becomes 2 and 3.5 becomes 4.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SigmoidOp : ONNX_Op<"Sigmoid", 13, [Pure]> {
  let summary = "1 / (1 + exp(-x)) of each element";
  let description = [{
    The logistic function.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SignOp : ONNX_Op<"Sign", 13, [Pure]> {
  let summary = "-1, 0 or 1 by the sign of each element";
  let description = [{
    Zero has sign 0.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SinOp : ONNX_Op<"Sin", 22, [Pure]> {
  let summary = "sine of each element";
  let description = [{
    The operand is in radians.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SinhOp : ONNX_Op<"Sinh", 22, [Pure]> {
  let summary = "hyperbolic sine of each element";
  let description = [{
    Defined for every real number.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SqrtOp : ONNX_Op<"Sqrt", 13, [Pure]> {
  let summary = "square root of each element";
  let description = [{
    NaN for negative elements.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_TanOp : ONNX_Op<"Tan", 22, [Pure]> {
  let summary = "tangent of each element";
  let description = [{
    The operand is in radians.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_TanhOp : ONNX_Op<"Tanh", 13, [Pure]> {
  let summary = "hyperbolic tangent of each element";
  let description = [{
    Lies in (-1, 1).
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ReluOp : ONNX_Op<"Relu", 14, [Pure]> {
  let summary = "max(x, 0)";
  let description = [{
    Negative elements become zero.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_LeakyReluOp : ONNX_Op<"LeakyRelu", 16, [Pure]> {
  let summary = "x, or alpha * x where x is negative";
  let description = [{
    One slope for the whole tensor.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"0.01f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_PReluOp : ONNX_Op<"PRelu", 16, [Pure]> {
  let summary = "x, or slope * x where x is negative";
  let description = [{
    Slopes are an operand, broadcast to the shape of `X`.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$slope);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_EluOp : ONNX_Op<"Elu", 22, [Pure]> {
  let summary = "x, or alpha * (exp(x) - 1) where x is negative";
  let description = [{
    Smooth below zero, where it tends to -alpha.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SeluOp : ONNX_Op<"Selu", 22, [Pure]> {
  let summary = "scaled exponential linear unit";
  let description = [{
    `gamma` times the exponential linear unit with `alpha`.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.6732632f">:$alpha, ONNX_FloatOr<"1.050701f">:$gamma);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_CeluOp : ONNX_Op<"Celu", 28, [Pure]> {
  let summary = "continuously differentiable exponential linear unit";
  let description = [{
    Below zero alpha * (exp(x / alpha) - 1), so that the slope at zero is 1 for every alpha.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_GeluOp : ONNX_Op<"Gelu", 20, [Pure]> {
  let summary = "Gaussian error linear unit, exact or by tanh";
  let description = [{
    x times the normal distribution function at x; `approximate = "tanh"` uses the usual cubic under tanh.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_StrOr<"none">:$approximate);
  let results = (outs ONNX_Value:$Y);
  let hasVerifier = 1;
}

def ONNX_HardSigmoidOp : ONNX_Op<"HardSigmoid", 22, [Pure]> {
  let summary = "max(0, min(1, alpha * x + beta))";
  let description = [{
    A straight line between two constant pieces.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"0.2f">:$alpha, ONNX_FloatOr<"0.5f">:$beta);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_HardSwishOp : ONNX_Op<"HardSwish", 22, [Pure]> {
  let summary = "x * HardSigmoid(x) with alpha 1/6 and beta 0.5";
  let description = [{
    A piecewise quadratic stand-in for Swish.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MishOp : ONNX_Op<"Mish", 22, [Pure]> {
  let summary = "x * tanh(softplus(x))";
  let description = [{
    Smooth, and slightly negative for small negative elements.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SoftplusOp : ONNX_Op<"Softplus", 22, [Pure]> {
  let summary = "ln(exp(x) + 1)";
  let description = [{
    A smooth form of Relu.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SoftsignOp : ONNX_Op<"Softsign", 22, [Pure]> {
  let summary = "x / (1 + |x|)";
  let description = [{
    Like tanh, but with slower tails.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SwishOp : ONNX_Op<"Swish", 24, [Pure]> {
  let summary = "x * sigmoid(alpha * x)";
  let description = [{
    With alpha = 1 also known as SiLU.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SwiGLUOp : ONNX_Op<"SwiGLU", 28, [Pure]> {
  let summary = "gated product with Swish";
  let description = [{
    The gate goes through Swish and is multiplied by the linear half: Swish(A, alpha) * B, element by element. Both
    operands have one shape.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_ShrinkOp : ONNX_Op<"Shrink", 9, [Pure]> {
  let summary = "moves each element towards zero by bias outside [-lambd, lambd], 0 inside";
  let description = [{
    Elements within the band become zero, those outside lose `bias` of their size.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_FloatOr<"0.0f">:$bias, ONNX_FloatOr<"0.5f">:$lambd);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ThresholdedReluOp : ONNX_Op<"ThresholdedRelu", 22, [Pure]> {
  let summary = "x where x > alpha, else 0";
  let description = [{
    Elements up to and including alpha become zero.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_AddOp : ONNX_Op<"Add", 14, [Pure]> {
  let summary = "sum of two tensors, with broadcasting";
  let description = [{
    Integers wrap on overflow.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_SubOp : ONNX_Op<"Sub", 14, [Pure]> {
  let summary = "difference of two tensors, with broadcasting";
  let description = [{
    Integers wrap on overflow.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_MulOp : ONNX_Op<"Mul", 14, [Pure]> {
  let summary = "product of two tensors, element by element, with broadcasting";
  let description = [{
    Integers wrap on overflow.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_DivOp : ONNX_Op<"Div", 14, [Pure]> {
  let summary = "quotient of two tensors, with broadcasting; integers truncate";
  let description = [{
    Integer division by zero has no defined result.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_ModOp : ONNX_Op<"Mod", 28, [Pure]> {
  let summary = "remainder, with the divisor's sign, or as C's fmod";
  let description = [{
    With `fmod = 0` only integers are allowed and the result takes the sign of `B`; with `fmod = 1` it takes the
    sign of `A`.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_IntOr<"0">:$fmod);
  let results = (outs ONNX_Value:$C);
}

def ONNX_PowOp : ONNX_Op<"Pow", 15, [Pure]> {
  let summary = "X to the power of Y, with broadcasting; the result has X's type";
  let description = [{
    Base and exponent may have different element types.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$Y);
  let results = (outs ONNX_Value:$Z);
}

def ONNX_MaxOp : ONNX_Op<"Max", 13, [Pure]> {
  let summary = "element-wise maximum of any number of tensors";
  let description = [{
    All operands are broadcast to one shape; there is at least one.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$data_0);
  let results = (outs ONNX_Value:$max);
}

def ONNX_MinOp : ONNX_Op<"Min", 13, [Pure]> {
  let summary = "element-wise minimum of any number of tensors";
  let description = [{
    All operands are broadcast to one shape; there is at least one.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$data_0);
  let results = (outs ONNX_Value:$min);
}

def ONNX_MeanOp : ONNX_Op<"Mean", 13, [Pure]> {
  let summary = "element-wise mean of any number of tensors";
  let description = [{
    All operands are broadcast to one shape; there is at least one.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$data_0);
  let results = (outs ONNX_Value:$mean);
}

def ONNX_SumOp : ONNX_Op<"Sum", 13, [Pure]> {
  let summary = "element-wise sum of any number of tensors";
  let description = [{
    All operands are broadcast to one shape; there is at least one.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$data_0);
  let results = (outs ONNX_Value:$sum);
}

def ONNX_CumSumOp : ONNX_Op<"CumSum", 14, [Pure]> {
  let summary = "running sum along an axis";
  let description = [{
    `exclusive` leaves out the element itself, `reverse` starts at the far end.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$axis, ONNX_IntOr<"0">:$exclusive, ONNX_IntOr<"0">:$reverse);
  let results = (outs ONNX_Value:$y);
}

def ONNX_CumProdOp : ONNX_Op<"CumProd", 26, [Pure]> {
  let summary = "running product along an axis";
  let description = [{
    `exclusive` leaves out the element itself, `reverse` starts at the far end.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$axis, ONNX_IntOr<"0">:$exclusive, ONNX_IntOr<"0">:$reverse);
  let results = (outs ONNX_Value:$y);
}

def ONNX_MatMulOp : ONNX_Op<"MatMul", 13, [Pure]> {
  let summary = "matrix product with NumPy's rules of broadcasting";
  let description = [{
    The last two axes are matrices, the others are broadcast. A vector operand gets an axis of extent one, which the
    result does not keep.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$Y);
  let hasVerifier = 1;
}

def ONNX_GemmOp : ONNX_Op<"Gemm", 13, [Pure]> {
  let summary = "alpha * A' * B' + beta * C, each of A and B perhaps transposed";
  let description = [{
    Both factors are matrices; C is broadcast to the product's shape and may be absent.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_Optional:$C, ONNX_FloatOr<"1.0f">:$alpha,
        ONNX_FloatOr<"1.0f">:$beta, ONNX_IntOr<"0">:$transA, ONNX_IntOr<"0">:$transB);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_EinsumOp : ONNX_Op<"Einsum", 28, [Pure]> {
  let summary = "sum of products in Einstein's notation";
  let description = [{
    Letters name axes; a letter missing on the right of the arrow is summed over.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$Inputs, StrAttr:$equation);
  let results = (outs ONNX_Value:$Output);
}

def ONNX_DetOp : ONNX_Op<"Det", 22, [Pure]> {
  let summary = "determinant of each matrix";
  let description = [{
    The last two axes form square matrices; the other axes are batches.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_ConvOp : ONNX_Op<"Conv", 22, [Pure]> {
  let summary = "convolution";
  let description = [{
    Operands are [batch, channels, space...] and [filters, channels / group, kernel...]. `pads` has all begins, then
    all ends.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$W, ONNX_Optional:$B, ONNX_StrOr<"NOTSET">:$auto_pad,
        OptionalAttr<DenseI64ArrayAttr>:$dilations, ONNX_IntOr<"1">:$group,
        OptionalAttr<DenseI64ArrayAttr>:$kernel_shape, OptionalAttr<DenseI64ArrayAttr>:$pads,
        OptionalAttr<DenseI64ArrayAttr>:$strides);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_ConvTransposeOp : ONNX_Op<"ConvTranspose", 22, [Pure]> {
  let summary = "transposed convolution";
  let description = [{
    The gradient of a convolution with respect to its input, as an operation of its own.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$W, ONNX_Optional:$B, ONNX_StrOr<"NOTSET">:$auto_pad,
        OptionalAttr<DenseI64ArrayAttr>:$dilations, ONNX_IntOr<"1">:$group,
        OptionalAttr<DenseI64ArrayAttr>:$kernel_shape, OptionalAttr<DenseI64ArrayAttr>:$output_padding,
        OptionalAttr<DenseI64ArrayAttr>:$output_shape, OptionalAttr<DenseI64ArrayAttr>:$pads,
        OptionalAttr<DenseI64ArrayAttr>:$strides);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSFusedMatMulOp : ONNX_MSOp<"FusedMatMul", 1, [Pure]> {
  let summary = "matrix product with transposed operands and a factor";
  let description = [{
    `transA` and `transB` exchange the last two axes, `transBatchA` and `transBatchB` move the first axis behind the
    other batch axes.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_FloatOr<"1.0f">:$alpha, ONNX_IntOr<"0">:$transA,
        ONNX_IntOr<"0">:$transB, ONNX_IntOr<"0">:$transBatchA, ONNX_IntOr<"0">:$transBatchB);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSTransposeMatMulOp : ONNX_MSOp<"TransposeMatMul", 1, [Pure]> {
  let summary = "matrix product with transposed operands";
  let description = [{
    An older name of `onnx.ms.FusedMatMul` with fewer options.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_FloatOr<"1.0f">:$alpha, ONNX_IntOr<"0">:$transA,
        ONNX_IntOr<"0">:$transB);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSBiasGeluOp : ONNX_MSOp<"BiasGelu", 1, [Pure]> {
  let summary = "Gelu(A + B)";
  let description = [{
    The exact Gelu of a sum; `B` is a vector along the last axis.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_MSFastGeluOp : ONNX_MSOp<"FastGelu", 1, [Pure]> {
  let summary = "tanh Gelu of X + bias";
  let description = [{
    The tanh form of Gelu; the bias is optional.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Optional:$bias);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSQuickGeluOp : ONNX_MSOp<"QuickGelu", 1, [Pure]> {
  let summary = "x * sigmoid(alpha * x)";
  let description = [{
    Swish with its own default for alpha, 1.702.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.702f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSGeluOp : ONNX_MSOp<"Gelu", 1, [Pure]> {
  let summary = "exact Gelu";
  let description = [{
    By the error function.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSBiasAddOp : ONNX_MSOp<"BiasAdd", 1, [Pure]> {
  let summary = "X + bias + skip";
  let description = [{
    The bias is a vector over channels.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$bias, ONNX_Value:$skip);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSSwiGLUOp : ONNX_MSOp<"SwiGLU", 1, [Pure]> {
  let summary = "gated product with Swish";
  let description = [{
    gate * sigmoid(activation_alpha * gate) * (up + activation_beta), with gate and up first clamped at `limit` when
    that is positive.
  }];
  let arguments = (ins ONNX_Value:$gate, ONNX_Optional:$up, ONNX_FloatOr<"1.0f">:$activation_alpha,
        ONNX_FloatOr<"0.0f">:$activation_beta, ONNX_FloatOr<"0.0f">:$limit, ONNX_IntOr<"0">:$round_activation);
  let results = (outs ONNX_Value:$output);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXMATHOPS_TD
