// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Applies the rules to a module: products with packed weights first, since they look through what the others would convert.
#include "dialects/ONNX/ONNXControlOps.h"
#include "dialects/ONNX/ONNXDialect.h"
#include "dialects/ONNX/ONNXQuantOps.h"
#include "dialects/ONNX/ONNXReduceOps.h"
#include "dialects/KVRT/KVRT.h"
#include "lib/Conversion/ONNXToLinalg/Passes.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Rewrite/FrozenRewritePatternSet.h"
#include "mlir/Rewrite/PatternApplicator.h"

using namespace mlir;

namespace quire {
#define GEN_PASS_DEF_CONVERTONNXTOLINALG
#include "lib/Conversion/ONNXToLinalg/Passes.h.inc"

static bool isElement(Type type) { return isa<FloatType>(type) || type.isSignlessInteger(); }

LogicalResult checkTypes(RuleContext &context) {
  SmallVector<Type> types(context.op->getOperandTypes());
  llvm::append_range(types, context.op->getResultTypes());
  for (Type type : types) {
    if (isa<NoneType>(type))
      continue;
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return context.refuse("a value that is no ranked tensor");
    if (tensor.getNumDynamicDims() > 1)
      return context.refuse("a tensor with more than one unknown extent");
    if (!isElement(tensor.getElementType()))
      return context.refuse("unsigned or other elements");
  }
  return success();
}

namespace {
class ConvertONNXToLinalgPass : public impl::ConvertONNXToLinalgBase<ConvertONNXToLinalgPass> {
public:
  using Base::Base;

  void runOnOperation() override {
    bool failed = false;
    getOperation().walk([&](func::FuncOp function) { failed |= mlir::failed(convert(function)); });
    if (failed)
      return signalPassFailure();
  }

private:
  LogicalResult convert(func::FuncOp function) {
    ConversionState state;
    state.module = getOperation();
    state.panelColumns = panelColumns;
    if (!function.isExternal())
      for (BlockArgument argument : function.getArguments())
        if (isa<kvrt::BatchType>(argument.getType()))
          state.batch = argument;
    RewritePatternSet packed(&getContext()), all(&getContext());
    RuleSet packedRules(packed, state), rules(all, state);
    addPackedProductRules(packedRules);
    addElementwiseRules(rules);
    addActivationRules(rules);
    addProductRules(rules);
    addReductionRules(rules);
    addNormalizationRules(rules);
    addMovementRules(rules);
    addIndexingRules(rules);
    addRotaryRules(rules);
    addConstantRules(rules);
    applyInOrder(function, std::move(packed));
    eraseDeadOps(function);
    state.refusals.clear();
    applyInOrder(function, std::move(all));
    eraseDeadOps(function);
    return reportRemaining(function, state);
  }

  static SmallVector<Operation *> onnxOps(func::FuncOp function) {
    SmallVector<Operation *> ops;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa_and_nonnull<onnx::ONNXDialect>(op->getDialect()))
        ops.push_back(op);
    });
    return ops;
  }

  /// One sweep from the first op to the last; a pattern erases its own op only.
  static void applyInOrder(func::FuncOp function, RewritePatternSet &&patterns) {
    FrozenRewritePatternSet frozen(std::move(patterns));
    PatternApplicator applicator(frozen);
    applicator.applyDefaultCostModel();
    PatternRewriter rewriter(function.getContext());
    for (Operation *op : onnxOps(function)) {
      rewriter.setInsertionPoint(op);
      (void)applicator.matchAndRewrite(op, rewriter);
    }
  }

  static void eraseDeadOps(func::FuncOp function) {
    SmallVector<Operation *> ops = onnxOps(function);
    for (Operation *op : llvm::reverse(ops))
      if (isOpTriviallyDead(op))
        op->erase();
  }

  /// A constant or an absent operand of an operator that remains too: the operator is what is not implemented.
  static bool isOperandOfRemaining(Operation *op) {
    return isa<onnx::NoneOp, onnx::ConstantOp, onnx::WeightOp>(op) &&
           llvm::any_of(op->getUsers(), [](Operation *user) { return isa_and_nonnull<onnx::ONNXDialect>(user->getDialect()); });
  }

  /// What the operator belongs to, in the words of docs/tutorials/reading-a-refusal.md; empty: to nothing but its name.
  static StringRef purposeOf(Operation *op) {
    if (isa<onnx::MSMoEOp, onnx::MSQMoEOp>(op) || (isa<onnx::TopKOp>(op) && reachesProduct(op)))
      return "mixtures of experts";
    if (isa<onnx::QuantizeLinearOp, onnx::MSQuantizeLinearOp, onnx::DynamicQuantizeLinearOp>(op))
      return "quantised activations";
    if (isa<onnx::DequantizeLinearOp, onnx::MSDequantizeLinearOp, onnx::MatMulIntegerOp, onnx::QLinearMatMulOp, onnx::MSDynamicQuantizeMatMulOp,
            onnx::MSMatMulIntegerToFloatOp, onnx::MSMatMulNBitsOp, onnx::MSMatMulBnb4Op, onnx::MSMatMulNBitsMlpOp, onnx::MSMatMulNBitsQkvOp,
            onnx::MSGatherBlockQuantizedOp, onnx::MSQAttentionOp, onnx::MSQGemmOp, onnx::MSQEmbedLayerNormalizationOp>(op))
      return "quantised weights";
    return {};
  }

  /// A choice that later layers depend on is one of experts; one that only leaves the graph is a choice of tokens.
  static bool reachesProduct(Operation *op) {
    SetVector<Operation *> slice;
    getForwardSlice(op, &slice);
    return llvm::any_of(slice, llvm::IsaPred<kvrt::ProductOp>);
  }

  static LogicalResult reportRemaining(func::FuncOp function, const ConversionState &state) {
    LogicalResult result = success();
    for (Operation *op : onnxOps(function)) {
      if (isOperandOfRemaining(op))
        continue;
      InFlightDiagnostic diagnostic = op->emitError("not implemented: convert ") << op->getName();
      if (StringRef purpose = purposeOf(op); !purpose.empty())
        diagnostic << " (" << purpose << ")";
      if (auto why = state.refusals.find(op); why != state.refusals.end())
        diagnostic << ": " << why->second;
      result = failure();
    }
    return result;
  }
};
} // namespace

} // namespace quire
