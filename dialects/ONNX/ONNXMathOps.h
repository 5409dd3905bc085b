// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: arithmetic, activations and products.

#ifndef QUIRE_DIALECTS_ONNX_ONNXMATHOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXMATHOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXMathOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXMATHOPS_H
