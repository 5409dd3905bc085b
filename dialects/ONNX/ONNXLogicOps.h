// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: comparison, logic and conversion.

#ifndef QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXLogicOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXLOGICOPS_H
