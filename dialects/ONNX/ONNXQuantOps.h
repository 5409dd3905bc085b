// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: quantisation.

#ifndef QUIRE_DIALECTS_ONNX_ONNXQUANTOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXQUANTOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXQuantOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXQUANTOPS_H
