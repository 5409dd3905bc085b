// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order of passes from the paged form to tensors and from tensors to buffers.
#include "lib/Transforms/Buffers/Passes.h"

#include "lib/Conversion/KVToKVRT/Passes.h"
#include "lib/Conversion/ONNXToLinalg/Passes.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/AllInterfaces.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace quire {

void buildResourcePipeline(OpPassManager &pm, int64_t lanes, int64_t panelColumns) {
  pm.addPass(createConvertKVToKVRT(ConvertKVToKVRTOptions{lanes}));
  pm.addPass(createConvertONNXToLinalg(ConvertONNXToLinalgOptions{panelColumns}));
  pm.addPass(createShareWeights());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createFuseElementwise());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyResource());
}

void buildBufferPipeline(OpPassManager &pm, function_ref<void(OpPassManager &)> reserve) {
  pm.addPass(createBufferizeStep());
  pm.addPass(memref::createResolveShapedTypeResultDimsPass()); // copies of parts ask their source for its extents, which only the step knows
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addNestedPass<func::FuncOp>(createLowerLinalg());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  if (reserve)
    reserve(pm);
  pm.addPass(createPlanScratch());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyBuffer());
}

void registerBufferInterfaces(DialectRegistry &registry) {
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerAllDialectInterfaceImplementations(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
}

} // namespace quire
