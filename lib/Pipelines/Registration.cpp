// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dialects and the interfaces that the pipelines need of them.
#include "quire/Register.h"

#include "dialects/KV/KVDialect.h"
#include "dialects/KVRT/KVRT.h"
#include "dialects/ONNX/ONNXDialect.h"
#include "lib/Analysis/Element/Interp.h"
#include "lib/Analysis/Evaluate/EvaluateOpInterface.h"
#include "lib/Transforms/Buffers/Passes.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"

namespace quire {

void registerAllDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
  registry.insert<kv::KVDialect, kvrt::KVRTDialect, onnx::ONNXDialect>();
  registerElementExternalModels(registry);
  registerEvaluateExternalModels(registry);
  registerBufferInterfaces(registry);
}

} // namespace quire
