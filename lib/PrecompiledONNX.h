// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Beside MLIR's headers the operation classes of the `onnx` dialect, which take longer to parse than most files that include them.
#ifndef QUIRE_LIB_PRECOMPILEDONNX_H
#define QUIRE_LIB_PRECOMPILEDONNX_H

#include "lib/Precompiled.h"

#include "dialects/ONNX/ONNXOps.h"

#endif // QUIRE_LIB_PRECOMPILEDONNX_H
