// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: softmax and normalisation.

#ifndef QUIRE_DIALECTS_ONNX_ONNXNORMOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXNORMOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXNormOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXNORMOPS_H
