// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: constants, structure and operators with subgraphs.

#ifndef QUIRE_DIALECTS_ONNX_ONNXCONTROLOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXCONTROLOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXControlOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXCONTROLOPS_H
