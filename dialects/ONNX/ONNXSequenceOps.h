// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operation classes of the `onnx` dialect: sequences and optionals.

#ifndef QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_H
#define QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_H

#include "dialects/ONNX/ONNXDialect.h"

#define GET_OP_CLASSES
#include "dialects/ONNX/ONNXSequenceOps.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXSEQUENCEOPS_H
