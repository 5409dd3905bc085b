// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The `onnx` dialect, its types and the interface of its operators.

#ifndef QUIRE_DIALECTS_ONNX_ONNXDIALECT_H
#define QUIRE_DIALECTS_ONNX_ONNXDIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/ONNX/ONNXDialect.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/ONNX/ONNXTypes.h.inc"

#include "dialects/ONNX/ONNXInterfaces.h.inc"

#endif // QUIRE_DIALECTS_ONNX_ONNXDIALECT_H
