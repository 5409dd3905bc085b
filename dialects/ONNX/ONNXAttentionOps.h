// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: attention operators.

#ifndef QUIRE_DIALECTS_ONNX_ONNXATTENTIONOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXATTENTIONOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXAttentionOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXATTENTIONOPS_H
