// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How a rule that converts one `onnx` operator is written and collected.
#ifndef QUIRE_LIB_CONVERSION_ONNXTOLINALG_RULES_H
#define QUIRE_LIB_CONVERSION_ONNXTOLINALG_RULES_H

#include "lib/Conversion/ONNXToLinalg/Emitter.h"

namespace quire {

/// What rules share while one module is converted.
struct ConversionState {
  /// Why an op was not converted.
  llvm::DenseMap<mlir::Operation *, std::string> refusals;
  /// The step's description; null outside of a step function.
  mlir::Value batch;
  /// The module's symbols, for weights.
  mlir::ModuleOp module;
  /// Columns of a panel of a packed weight.
  int64_t panelColumns = 16;
};

/// One op under conversion.
class RuleContext : public Emitter {
public:
  RuleContext(mlir::PatternRewriter &rewriter, mlir::Operation *op, ConversionState &state)
      : Emitter(rewriter, op->getLoc()), rewriter(rewriter), op(op), state(state) {}

  mlir::PatternRewriter &rewriter;
  mlir::Operation *op;
  ConversionState &state;

  /// States why the op cannot be converted.
  mlir::LogicalResult refuse(const llvm::Twine &why) {
    state.refusals[op] = why.str();
    return mlir::failure();
  }
};

/// Fills `results`, one value for each result; an absent or unused result may stay null. Emits nothing when it fails.
template <typename OpTy>
using Rule = mlir::LogicalResult (*)(OpTy op, RuleContext &context, llvm::MutableArrayRef<mlir::Value> results);

/// Checks what every rule may rely on: ranked tensors of signless integers and floats, one `?` at most.
mlir::LogicalResult checkTypes(RuleContext &context);

template <typename OpTy> class RulePattern : public mlir::OpRewritePattern<OpTy> {
public:
  RulePattern(mlir::MLIRContext *context, ConversionState &state, Rule<OpTy> rule)
      : mlir::OpRewritePattern<OpTy>(context), state(state), rule(rule) {}

  mlir::LogicalResult matchAndRewrite(OpTy op, mlir::PatternRewriter &rewriter) const override {
    RuleContext context(rewriter, op, state);
    llvm::SmallVector<mlir::Value> results(op->getNumResults());
    if (failed(checkTypes(context)) || failed(rule(op, context, results)))
      return mlir::failure();
    for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
      if (value)
        rewriter.replaceAllUsesWith(result, value);
    rewriter.eraseOp(op);
    return mlir::success();
  }

private:
  ConversionState &state;
  Rule<OpTy> rule;
};

/// Collects rules.
class RuleSet {
public:
  RuleSet(mlir::RewritePatternSet &patterns, ConversionState &state) : patterns(patterns), state(state) {}
  template <typename OpTy> void add(Rule<OpTy> rule) { patterns.add<RulePattern<OpTy>>(patterns.getContext(), state, rule); }

private:
  mlir::RewritePatternSet &patterns;
  ConversionState &state;
};

/// Matrix products with a weight that is packed. They see the chain from a weight to the product, so they come first.
void addPackedProductRules(RuleSet &rules);
void addElementwiseRules(RuleSet &rules);
void addActivationRules(RuleSet &rules);
void addProductRules(RuleSet &rules);
void addReductionRules(RuleSet &rules);
void addNormalizationRules(RuleSet &rules);
void addMovementRules(RuleSet &rules);
void addIndexingRules(RuleSet &rules);
void addRotaryRules(RuleSet &rules);
void addConstantRules(RuleSet &rules);

} // namespace quire

#endif // QUIRE_LIB_CONVERSION_ONNXTOLINALG_RULES_H
