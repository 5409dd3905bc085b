// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: shape, movement and indexing.

#ifndef QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXShapeOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXSHAPEOPS_H
