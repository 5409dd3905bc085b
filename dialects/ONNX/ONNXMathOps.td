// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ONNX operators: element-wise arithmetic, activations and products.

#ifndef QUIRE_DIALECTS_ONNX_ONNXMATHOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXMATHOPS_TD

include "dialects/ONNX/ONNXBase.td"

def ONNX_AbsOp : ONNX_Op<"Abs", 13, [Pure]> {
  let summary = "absolute value of each element";
  let description = [{
    Absolute takes one input data (Tensor) and produces one output data (Tensor) where absolute value, y =
    abs(x), is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_AcosOp : ONNX_Op<"Acos", 22, [Pure]> {
  let summary = "arc cosine of each element";
  let description = [{
    Calculates the arccosine (inverse of cosine) of the given input tensor, element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AcoshOp : ONNX_Op<"Acosh", 22, [Pure]> {
  let summary = "inverse hyperbolic cosine of each element";
  let description = [{
    Calculates the hyperbolic arccosine of the given input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AsinOp : ONNX_Op<"Asin", 22, [Pure]> {
  let summary = "arc sine of each element";
  let description = [{
    Calculates the arcsine (inverse of sine) of the given input tensor, element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AsinhOp : ONNX_Op<"Asinh", 22, [Pure]> {
  let summary = "inverse hyperbolic sine of each element";
  let description = [{
    Calculates the hyperbolic arcsine of the given input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AtanOp : ONNX_Op<"Atan", 22, [Pure]> {
  let summary = "arc tangent of each element";
  let description = [{
    Calculates the arctangent (inverse of tangent) of the given input tensor, element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_AtanhOp : ONNX_Op<"Atanh", 22, [Pure]> {
  let summary = "inverse hyperbolic tangent of each element";
  let description = [{
    Calculates the hyperbolic arctangent of the given input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_CeilOp : ONNX_Op<"Ceil", 13, [Pure]> {
  let summary = "each element rounded up";
  let description = [{
    Ceil takes one input data (Tensor) and produces one output data (Tensor) where the ceil is, y = ceil(x), is
    applied to the tensor elementwise. If x is integral, +0, -0, NaN, or infinite, x itself is returned.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_CosOp : ONNX_Op<"Cos", 22, [Pure]> {
  let summary = "cosine of each element";
  let description = [{
    Calculates the cosine of the given input tensor, element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_CoshOp : ONNX_Op<"Cosh", 22, [Pure]> {
  let summary = "hyperbolic cosine of each element";
  let description = [{
    Calculates the hyperbolic cosine of the given input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ErfOp : ONNX_Op<"Erf", 13, [Pure]> {
  let summary = "error function of each element";
  let description = [{
    Computes the error function of the given input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ExpOp : ONNX_Op<"Exp", 13, [Pure]> {
  let summary = "exponential of each element";
  let description = [{
    Calculates the exponential of the given input tensor, element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_FloorOp : ONNX_Op<"Floor", 13, [Pure]> {
  let summary = "each element rounded down";
  let description = [{
    Floor takes one input data (Tensor) and produces one output data (Tensor) where the floor is, y = floor(x),
    is applied to the tensor elementwise. If x is integral, +0, -0, NaN, or infinite, x itself is returned.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_LogOp : ONNX_Op<"Log", 13, [Pure]> {
  let summary = "natural logarithm of each element";
  let description = [{
    Calculates the natural log of the given input tensor, element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_NegOp : ONNX_Op<"Neg", 13, [Pure]> {
  let summary = "negation of each element";
  let description = [{
    Neg takes one input data (Tensor) and produces one output data (Tensor) where each element flipped sign, y =
    -x, is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_ReciprocalOp : ONNX_Op<"Reciprocal", 13, [Pure]> {
  let summary = "one over each element";
  let description = [{
    Reciprocal takes one input data (Tensor) and produces one output data (Tensor) where the reciprocal is, y =
    1/x, is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_RoundOp : ONNX_Op<"Round", 22, [Pure]> {
  let summary = "each element rounded to the nearest integer, halves to even";
  let description = [{
    Round takes one input Tensor and rounds the values, element-wise, meaning it finds the nearest integer for
    each value. In case of halves, the rule is to round them to the nearest even integer.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SigmoidOp : ONNX_Op<"Sigmoid", 13, [Pure]> {
  let summary = "1 / (1 + exp(-x)) of each element";
  let description = [{
    Sigmoid takes one input data (Tensor) and produces one output data (Tensor) where the sigmoid function, y =
    1 / (1 + exp(-x)), is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SignOp : ONNX_Op<"Sign", 13, [Pure]> {
  let summary = "-1, 0 or 1 by the sign of each element";
  let description = [{
    Calculate the sign of the given input tensor element-wise. If input > 0, output 1. if input < 0, output -1.
    if input == 0, output 0.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SinOp : ONNX_Op<"Sin", 22, [Pure]> {
  let summary = "sine of each element";
  let description = [{
    Calculates the sine of the given input tensor, element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SinhOp : ONNX_Op<"Sinh", 22, [Pure]> {
  let summary = "hyperbolic sine of each element";
  let description = [{
    Calculates the hyperbolic sine of the given input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SqrtOp : ONNX_Op<"Sqrt", 13, [Pure]> {
  let summary = "square root of each element";
  let description = [{
    Square root takes one input data (Tensor) and produces one output data (Tensor) where the square root is, y
    = x^0.5, is applied to the tensor elementwise. If x is negative, then it will return NaN.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_TanOp : ONNX_Op<"Tan", 22, [Pure]> {
  let summary = "tangent of each element";
  let description = [{
    Calculates the tangent of the given input tensor, element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_TanhOp : ONNX_Op<"Tanh", 13, [Pure]> {
  let summary = "hyperbolic tangent of each element";
  let description = [{
    Calculates the hyperbolic tangent of the given input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ReluOp : ONNX_Op<"Relu", 14, [Pure]> {
  let summary = "max(x, 0)";
  let description = [{
    Relu takes one input data (Tensor) and produces one output data (Tensor) where the rectified linear
    function, y = max(0, x), is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_LeakyReluOp : ONNX_Op<"LeakyRelu", 16, [Pure]> {
  let summary = "x, or alpha * x where x is negative";
  let description = [{
    LeakyRelu takes input data (Tensor) and an argument alpha, and produces one output data (Tensor) where the
    function f(x) = alpha * x for x = 0, is applied to the data tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"0.01f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_PReluOp : ONNX_Op<"PRelu", 16, [Pure]> {
  let summary = "x, or slope * x where x is negative";
  let description = [{
    PRelu takes input data (Tensor) and slope tensor as input, and produces one output data (Tensor) where the
    function f(x) = slope * x for x = 0., is applied to the data tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$slope);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_EluOp : ONNX_Op<"Elu", 22, [Pure]> {
  let summary = "x, or alpha * (exp(x) - 1) where x is negative";
  let description = [{
    Elu takes one input data (Tensor) and produces one output data (Tensor) where the function f(x) = alpha *
    (exp(x) - 1.) for x = 0., is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SeluOp : ONNX_Op<"Selu", 22, [Pure]> {
  let summary = "scaled exponential linear unit";
  let description = [{
    Selu takes one input data (Tensor) and produces one output data (Tensor) where the scaled exponential linear
    unit function, y = gamma * (alpha * e^x - alpha) for x 0, is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.6732632f">:$alpha, ONNX_FloatOr<"1.050701f">:$gamma);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_CeluOp : ONNX_Op<"Celu", 28, [Pure]> {
  let summary = "continuously differentiable exponential linear unit";
  let description = [{
    Continuously Differentiable Exponential Linear Units: Perform the linear unit element-wise on the input
    tensor X using formula.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_GeluOp : ONNX_Op<"Gelu", 20, [Pure]> {
  let summary = "Gaussian error linear unit, exact or by tanh";
  let description = [{
    Gelu takes one input data (Tensor) and produces one output data (Tensor) where the gaussian error linear
    units function, $y = 0.5 * x * (1 + erf(x/sqrt(2)))$ is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_StrOr<"none">:$approximate);
  let results = (outs ONNX_Value:$Y);
  let hasVerifier = 1;
}

def ONNX_HardSigmoidOp : ONNX_Op<"HardSigmoid", 22, [Pure]> {
  let summary = "max(0, min(1, alpha * x + beta))";
  let description = [{
    HardSigmoid takes one input data (Tensor) and produces one output data (Tensor) where the HardSigmoid
    function, y = max(0, min(1, alpha * x + beta)), is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"0.2f">:$alpha, ONNX_FloatOr<"0.5f">:$beta);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_HardSwishOp : ONNX_Op<"HardSwish", 22, [Pure]> {
  let summary = "x * HardSigmoid(x) with alpha 1/6 and beta 0.5";
  let description = [{
    HardSwish takes one input data (Tensor) and produces one output data (Tensor) where the HardSwish function,
    y = x * max(0, min(1, alpha * x + beta)) = x * HardSigmoid(x), where alpha = 1/6 and beta = 0.5, is applied
    to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MishOp : ONNX_Op<"Mish", 22, [Pure]> {
  let summary = "x * tanh(softplus(x))";
  let description = [{
    Mish: A Self Regularized Non-Monotonic Neural Activation Function. Perform the linear unit element-wise on
    the input tensor X using formula.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SoftplusOp : ONNX_Op<"Softplus", 22, [Pure]> {
  let summary = "ln(exp(x) + 1)";
  let description = [{
    Softplus takes one input data (Tensor) and produces one output data (Tensor) where the softplus function, y
    = ln(exp(x) + 1), is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SoftsignOp : ONNX_Op<"Softsign", 22, [Pure]> {
  let summary = "x / (1 + |x|)";
  let description = [{
    Calculates the softsign (x/(1+|x|)) of the given input tensor element-wise.
  }];
  let arguments = (ins ONNX_Value:$input);
  let results = (outs ONNX_Value:$output);
}

def ONNX_SwishOp : ONNX_Op<"Swish", 24, [Pure]> {
  let summary = "x * sigmoid(alpha * x)";
  let description = [{
    Swish function takes one input data (Tensor) and produces one output data (Tensor) of the same shape, where
    $Swish(x) = x * sigmoid(alpha * x)$.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_SwiGLUOp : ONNX_Op<"SwiGLU", 28, [Pure]> {
  let summary = "gated product with Swish";
  let description = [{
    SwiGLU is a gated activation that takes two inputs, a gate A and a linear (value) input B, and produces one
    output Y. It applies the Swish activation to the gate and multiplies the result elementwise by the linear
    input: The gate activation Swish_alpha is exactly the Swish operator with the same alpha, i.e.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_ShrinkOp : ONNX_Op<"Shrink", 9, [Pure]> {
  let summary = "moves each element towards zero by bias outside [-lambd, lambd], 0 inside";
  let description = [{
    Shrink takes one input data (Tensor) and produces one Tensor output, having same datatype and shape with
    input. It has two attributes, lambd and bias.
  }];
  let arguments = (ins ONNX_Value:$input, ONNX_FloatOr<"0.0f">:$bias, ONNX_FloatOr<"0.5f">:$lambd);
  let results = (outs ONNX_Value:$output);
}

def ONNX_ThresholdedReluOp : ONNX_Op<"ThresholdedRelu", 22, [Pure]> {
  let summary = "x where x > alpha, else 0";
  let description = [{
    ThresholdedRelu takes one input data (Tensor) and produces one output data (Tensor) where the rectified
    linear function, y = x for x > alpha, y = 0 otherwise, is applied to the tensor elementwise.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.0f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_AddOp : ONNX_Op<"Add", 14, [Pure]> {
  let summary = "sum of two tensors, with broadcasting";
  let description = [{
    Performs element-wise binary addition (with Numpy-style broadcasting support). This operator supports
    multidirectional (i.e., Numpy-style) broadcasting; for more details please check the doc. (Opset 14 change):
    Extend supported types to include uint8, int8, uint16, and int16.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_SubOp : ONNX_Op<"Sub", 14, [Pure]> {
  let summary = "difference of two tensors, with broadcasting";
  let description = [{
    Performs element-wise binary subtraction (with Numpy-style broadcasting support). This operator supports
    multidirectional (i.e., Numpy-style) broadcasting; for more details please check the doc. (Opset 14 change):
    Extend supported types to include uint8, int8, uint16, and int16.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_MulOp : ONNX_Op<"Mul", 14, [Pure]> {
  let summary = "product of two tensors, element by element, with broadcasting";
  let description = [{
    Performs element-wise binary multiplication (with Numpy-style broadcasting support). This operator supports
    multidirectional (i.e., Numpy-style) broadcasting; for more details please check the doc. (Opset 14 change):
    Extend supported types to include uint8, int8, uint16, and int16.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_DivOp : ONNX_Op<"Div", 14, [Pure]> {
  let summary = "quotient of two tensors, with broadcasting; integers truncate";
  let description = [{
    Performs element-wise binary division (with Numpy-style broadcasting support). This operator supports
    multidirectional (i.e., Numpy-style) broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_ModOp : ONNX_Op<"Mod", 28, [Pure]> {
  let summary = "remainder, with the divisor's sign, or as C's fmod";
  let description = [{
    Performs an element-wise binary modulo operation. The fmod attribute determines how the quotient is rounded.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_IntOr<"0">:$fmod);
  let results = (outs ONNX_Value:$C);
}

def ONNX_PowOp : ONNX_Op<"Pow", 15, [Pure]> {
  let summary = "X to the power of Y, with broadcasting; the result has X's type";
  let description = [{
    Pow takes input data (Tensor) and exponent Tensor, and produces one output data (Tensor) where the function
    f(x) = x^exponent, is applied to the data tensor elementwise. This operator supports multidirectional (i.e.,
    Numpy-style) broadcasting; for more details please check the doc.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$Y);
  let results = (outs ONNX_Value:$Z);
}

def ONNX_MaxOp : ONNX_Op<"Max", 13, [Pure]> {
  let summary = "element-wise maximum of any number of tensors";
  let description = [{
    Element-wise max of each of the input tensors (with Numpy-style broadcasting support). All inputs and
    outputs must have the same data type.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$data_0);
  let results = (outs ONNX_Value:$max);
}

def ONNX_MinOp : ONNX_Op<"Min", 13, [Pure]> {
  let summary = "element-wise minimum of any number of tensors";
  let description = [{
    Element-wise min of each of the input tensors (with Numpy-style broadcasting support). All inputs and
    outputs must have the same data type.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$data_0);
  let results = (outs ONNX_Value:$min);
}

def ONNX_MeanOp : ONNX_Op<"Mean", 13, [Pure]> {
  let summary = "element-wise mean of any number of tensors";
  let description = [{
    Element-wise mean of each of the input tensors (with Numpy-style broadcasting support). All inputs and
    outputs must have the same data type.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$data_0);
  let results = (outs ONNX_Value:$mean);
}

def ONNX_SumOp : ONNX_Op<"Sum", 13, [Pure]> {
  let summary = "element-wise sum of any number of tensors";
  let description = [{
    Element-wise sum of each of the input tensors (with Numpy-style broadcasting support). All inputs and
    outputs must have the same data type.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$data_0);
  let results = (outs ONNX_Value:$sum);
}

def ONNX_CumSumOp : ONNX_Op<"CumSum", 14, [Pure]> {
  let summary = "running sum along an axis";
  let description = [{
    Performs cumulative sum of the input elements along the given axis. By default, it will do the sum
    inclusively meaning the first element is copied as is.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$axis, ONNX_IntOr<"0">:$exclusive, ONNX_IntOr<"0">:$reverse);
  let results = (outs ONNX_Value:$y);
}

def ONNX_CumProdOp : ONNX_Op<"CumProd", 26, [Pure]> {
  let summary = "running product along an axis";
  let description = [{
    Performs cumulative product of the input elements along the given axis. By default, it will do the product
    inclusively meaning the first element is copied as is.
  }];
  let arguments = (ins ONNX_Value:$x, ONNX_Value:$axis, ONNX_IntOr<"0">:$exclusive, ONNX_IntOr<"0">:$reverse);
  let results = (outs ONNX_Value:$y);
}

def ONNX_MatMulOp : ONNX_Op<"MatMul", 13, [Pure]> {
  let summary = "matrix product with NumPy's rules of broadcasting";
  let description = [{
    Matrix product that behaves like numpy.matmul.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$Y);
  let hasVerifier = 1;
}

def ONNX_GemmOp : ONNX_Op<"Gemm", 13, [Pure]> {
  let summary = "alpha * A' * B' + beta * C, each of A and B perhaps transposed";
  let description = [{
    General Matrix multiplication: https://en.wikipedia.org/wiki/Basic_Linear_Algebra_Subprograms#Level_3 * A' =
    transpose(A) if transA else A * B' = transpose(B) if transB else B Compute Y = alpha * A' * B' + beta * C,
    where input tensor A has shape (M, K) or (K, M), input tensor B has shape (K, N) or.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_Optional:$C, ONNX_FloatOr<"1.0f">:$alpha,
        ONNX_FloatOr<"1.0f">:$beta, ONNX_IntOr<"0">:$transA, ONNX_IntOr<"0">:$transB);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_EinsumOp : ONNX_Op<"Einsum", 28, [Pure]> {
  let summary = "sum of products in Einstein's notation";
  let description = [{
    An einsum of the form term1, term2 -> output-term produces an output tensor using the following equation
    where the reduce-sum performs a summation over all the indices occurring in the input terms (term1, term2)
    that do not occur in the output-term.
  }];
  let arguments = (ins Variadic<ONNX_Value>:$Inputs, StrAttr:$equation);
  let results = (outs ONNX_Value:$Output);
}

def ONNX_DetOp : ONNX_Op<"Det", 22, [Pure]> {
  let summary = "determinant of each matrix";
  let description = [{
    Det calculates determinant of a square matrix or batches of square matrices. Det takes one input tensor of
    shape [*, M, M], where * is zero or more batch dimensions, and the inner-most 2 dimensions form square
    matrices.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_ConvOp : ONNX_Op<"Conv", 22, [Pure]> {
  let summary = "convolution";
  let description = [{
    The convolution operator consumes an input tensor and a filter, and computes the output.
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
    The convolution transpose operator consumes an input tensor and a filter, and computes the output.
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
    Matrix product that behaves like numpy.matmul:
    https://docs.scipy.org/doc/numpy-1.13.0/reference/generated/numpy.matmul.html.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_FloatOr<"1.0f">:$alpha, ONNX_IntOr<"0">:$transA,
        ONNX_IntOr<"0">:$transB, ONNX_IntOr<"0">:$transBatchA, ONNX_IntOr<"0">:$transBatchB);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSTransposeMatMulOp : ONNX_MSOp<"TransposeMatMul", 1, [Pure]> {
  let summary = "matrix product with transposed operands";
  let description = [{
    Duplicate of FusedMatMul. Going forward FusedMatMul should be used.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B, ONNX_FloatOr<"1.0f">:$alpha, ONNX_IntOr<"0">:$transA,
        ONNX_IntOr<"0">:$transB);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSBiasGeluOp : ONNX_MSOp<"BiasGelu", 1, [Pure]> {
  let summary = "Gelu(A + B)";
  let description = [{
    Bias Gelu. It's an extension of Gelu.
  }];
  let arguments = (ins ONNX_Value:$A, ONNX_Value:$B);
  let results = (outs ONNX_Value:$C);
}

def ONNX_MSFastGeluOp : ONNX_MSOp<"FastGelu", 1, [Pure]> {
  let summary = "tanh Gelu of X + bias";
  let description = [{
    GELU (Gaussian Error Linear Unit) approximation: Y=0.5*X*(1+tanh(0.797885*X+0.035677*X*X*X)) with an
    optional input of bias that will be added to X before GELU.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Optional:$bias);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSQuickGeluOp : ONNX_MSOp<"QuickGelu", 1, [Pure]> {
  let summary = "x * sigmoid(alpha * x)";
  let description = [{
    Compute x * Sigmoid(alpha * x).
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_FloatOr<"1.702f">:$alpha);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSGeluOp : ONNX_MSOp<"Gelu", 1, [Pure]> {
  let summary = "exact Gelu";
  let description = [{
    Gaussian Error Linear Unit. A high-performing neural network activation function.The GELU nonlinearity is
    the expected transformation of a stochastic regularizer which randomly applies the identity or zero map to a
    neuron's input.
  }];
  let arguments = (ins ONNX_Value:$X);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSBiasAddOp : ONNX_MSOp<"BiasAdd", 1, [Pure]> {
  let summary = "X + bias + skip";
  let description = [{
    Add input with bias, then add residual inputs.
  }];
  let arguments = (ins ONNX_Value:$X, ONNX_Value:$bias, ONNX_Value:$skip);
  let results = (outs ONNX_Value:$Y);
}

def ONNX_MSSwiGLUOp : ONNX_MSOp<"SwiGLU", 1, [Pure]> {
  let summary = "gated product with Swish";
  let description = [{
    Clamped SwiGLU, the gated activation of a feed-forward or MoE expert block: G = clamp(gate, max=limit) L =
    clamp(up, min=-limit, max=limit) output = G * Sigmoid(activation_alpha * G) * (L + activation_beta) with the
    arithmetic done in float regardless of T, widened to double for the product when act.
  }];
  let arguments = (ins ONNX_Value:$gate, ONNX_Optional:$up, ONNX_FloatOr<"1.0f">:$activation_alpha,
        ONNX_FloatOr<"0.0f">:$activation_beta, ONNX_FloatOr<"0.0f">:$limit, ONNX_IntOr<"0">:$round_activation);
  let results = (outs ONNX_Value:$output);
}

#endif // QUIRE_DIALECTS_ONNX_ONNXMATHOPS_TD
