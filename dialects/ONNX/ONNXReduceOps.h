// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: reductions and pooling.

#ifndef QUIRE_DIALECTS_ONNX_ONNXREDUCEOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXREDUCEOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXReduceOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXREDUCEOPS_H
