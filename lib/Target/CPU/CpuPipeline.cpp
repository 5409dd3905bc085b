// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order of the CPU target's passes.
#include "lib/Conversion/KVRTToLLVM/KVRTToLLVM.h"
#include "lib/Target/CPU/CpuTarget.h"
#include "lib/Target/CPU/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void quire::cpu::buildCpuTargetPipeline(OpPassManager &passes, const CpuTarget &target, StringRef breakAttend) {
  int64_t vectorBytes = target.nativeVectorBytes;
  passes.addPass(createLowerWrite(LowerWriteOptions{vectorBytes}));
  passes.addPass(createLowerProducts(LowerProductsOptions{vectorBytes}));
  passes.addPass(createLowerAppend(LowerAppendOptions{vectorBytes}));
  LowerAttendOptions attend;
  attend.vectorBytes = vectorBytes;
  attend.convertsHalf = target.convertsHalf();
  attend.breakWith = breakAttend.str();
  passes.addPass(createLowerAttend(attend));
  passes.addPass(createOutlineParallel());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createExpandMath());
  passes.addPass(createConvertVectorToSCFPass());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(kvrt::createConvertKVRTToLLVM());
  passes.addPass(createReconcileUnrealizedCastsPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}
