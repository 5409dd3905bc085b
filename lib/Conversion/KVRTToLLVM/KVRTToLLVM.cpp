// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The conversion of a module of kernels and views to the LLVM dialect.
#include "lib/Conversion/KVRTToLLVM/KVRTToLLVM.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Transforms.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace quire::kvrt {
#define GEN_PASS_DEF_CONVERTKVRTTOLLVM
#include "lib/Conversion/KVRTToLLVM/Passes.h.inc"
} // namespace quire::kvrt

using namespace mlir;
using namespace quire::kvrt;

namespace {

struct ConvertKVRTToLLVM : quire::kvrt::impl::ConvertKVRTToLLVMBase<ConvertKVRTToLLVM> {
  using ConvertKVRTToLLVMBase::ConvertKVRTToLLVMBase;

  // Forms that the conversion patterns do not take.
  LogicalResult simplify() {
    RewritePatternSet patterns(&getContext());
    vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
    vector::populateVectorBroadcastLoweringPatterns(patterns);
    vector::populateVectorMaskOpLoweringPatterns(patterns);
    vector::populateVectorTransferLoweringPatterns(patterns);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    return applyPatternsGreedily(getOperation(), std::move(patterns));
  }

  LogicalResult convert() {
    LLVMTypeConverter converter(&getContext());
    populateKVRTToLLVMTypes(converter);
    LLVMConversionTarget target(getContext());
    target.addLegalOp<ModuleOp, ModelOp, PackedOp, RawOp>();
    // Symbols of other levels, which the caller erases afterwards.
    target.markUnknownOpDynamicallyLegal([](Operation *op) { return isa<SymbolOpInterface>(op); });
    target.addIllegalDialect<arith::ArithDialect, func::FuncDialect, math::MathDialect, memref::MemRefDialect,
                             vector::VectorDialect>();
    RewritePatternSet patterns(&getContext());
    SymbolTableCollection tables;
    populateRuntimeCallPatterns(converter, patterns);
    populateViewPatterns(converter, patterns, tables);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    index::populateIndexToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    // An intrinsic where there is one: libm's fmaf is no instruction.
    populateMathToLibmConversionPatterns(patterns, /*benefit=*/1);
    populateMathToLLVMConversionPatterns(converter, patterns, /*approximateLog1p=*/false, /*benefit=*/2);
    populateVectorToLLVMConversionPatterns(converter, patterns);
    ub::populateUBToLLVMConversionPatterns(converter, patterns);
    return applyFullConversion(getOperation(), target, std::move(patterns));
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(simplify()) || failed(convert()))
      return signalPassFailure();
    // Only the query is seen from outside; functions without a body are libm's.
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      function.setLinkage(function.isExternal() ? LLVM::Linkage::External : LLVM::Linkage::Internal);
    for (ModelOp model : llvm::make_early_inc_range(module.getOps<ModelOp>()))
      if (failed(emitModelQuery(model)))
        return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(*module.getBody()))
      if (!isa<LLVM::LLVMDialect>(op.getDialect()) && isa<SymbolOpInterface>(op))
        op.erase();
  }
};

} // namespace
