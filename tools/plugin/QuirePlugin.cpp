// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The project's dialects and passes for a stock mlir-opt of the same MLIR version.
#include "quire/Register.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Quire", QUIRE_VERSION, [](mlir::DialectRegistry *registry) { quire::registerAllDialects(*registry); }};
}

extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Quire", QUIRE_VERSION, quire::registerAllPasses};
}
