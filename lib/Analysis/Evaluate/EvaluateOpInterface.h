// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations on concrete tensors: the interface, what it may ask of its surroundings, and the registration of all
// rules.
#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATEOPINTERFACE_H
#define QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATEOPINTERFACE_H

#include "lib/Analysis/Evaluate/Tensor.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/Region.h"

namespace mlir {
class DialectRegistry;
}

namespace quire::eval {

/// What a rule needs besides its operands.
class EvaluateContext {
public:
  virtual ~EvaluateContext() = default;
  /// Runs a region of one block; results are the operands of its terminator. Values from outside are visible.
  virtual llvm::Error runRegion(mlir::Region &region, llvm::ArrayRef<Tensor> arguments,
                                llvm::SmallVectorImpl<Tensor> &results) = 0;
  /// The value of an initializer.
  virtual Result weight(mlir::FlatSymbolRefAttr symbol) = 0;
};

} // namespace quire::eval

#include "lib/Analysis/Evaluate/EvaluateOpInterface.h.inc"

namespace quire {
/// Attaches EvaluateOpInterface to the operations of the `onnx` dialect.
void registerEvaluateExternalModels(mlir::DialectRegistry &registry);
} // namespace quire

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATEOPINTERFACE_H
