// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operation class of the `onnx` dialect; include one family's header instead where that is enough.

#ifndef QUIRE_DIALECTS_ONNX_ONNXOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXOPS_H

#include "dialects/ONNX/ONNXAttentionOps.h"
#include "dialects/ONNX/ONNXControlOps.h"
#include "dialects/ONNX/ONNXLogicOps.h"
#include "dialects/ONNX/ONNXMathOps.h"
#include "dialects/ONNX/ONNXNormOps.h"
#include "dialects/ONNX/ONNXQuantOps.h"
#include "dialects/ONNX/ONNXReduceOps.h"
#include "dialects/ONNX/ONNXSequenceOps.h"
#include "dialects/ONNX/ONNXShapeOps.h"

#endif // QUIRE_DIALECTS_ONNX_ONNXOPS_H
