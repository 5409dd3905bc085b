// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operation of the `onnx` dialect, by family.

#ifndef QUIRE_DIALECTS_ONNX_ONNXOPS_TD
#define QUIRE_DIALECTS_ONNX_ONNXOPS_TD

include "dialects/ONNX/ONNXAttentionOps.td"
include "dialects/ONNX/ONNXControlOps.td"
include "dialects/ONNX/ONNXLogicOps.td"
include "dialects/ONNX/ONNXMathOps.td"
include "dialects/ONNX/ONNXNormOps.td"
include "dialects/ONNX/ONNXQuantOps.td"
include "dialects/ONNX/ONNXReduceOps.td"
include "dialects/ONNX/ONNXSequenceOps.td"
include "dialects/ONNX/ONNXShapeOps.td"

#endif // QUIRE_DIALECTS_ONNX_ONNXOPS_TD
