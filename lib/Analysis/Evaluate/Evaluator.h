// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Runs the function of an imported model on concrete tensors: the reference interpreter.
#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATOR_H
#define QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATOR_H

#include "lib/Analysis/Evaluate/EvaluateOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

namespace quire::eval {

class Evaluator final : public EvaluateContext {
public:
  /// Runs the function that `onnx.entry` names, or @main. Weights are mapped from files below `modelFolder` at their
  /// first use and stay mapped as long as this object lives. The module must outlive it and must not change.
  Evaluator(mlir::ModuleOp module, llvm::StringRef modelFolder);

  /// Names in the file, one an argument or result; empty without `onnx.entry`.
  llvm::ArrayRef<std::string> inputNames() const { return inputs; }
  llvm::ArrayRef<std::string> outputNames() const { return outputs; }
  mlir::func::FuncOp function() const { return entry; }

  /// One tensor an argument; gives one a result. Errors name the node.
  llvm::Expected<Tensors> run(llvm::ArrayRef<Tensor> arguments);
  /// By the names of the file; every input must be given, and only inputs.
  llvm::Expected<llvm::StringMap<Tensor>> run(const llvm::StringMap<Tensor> &arguments);

  /// The value of one result or argument of the function's body, computing only what it needs.
  Result valueOf(mlir::Value value, llvm::ArrayRef<Tensor> arguments);

  llvm::Error runRegion(mlir::Region &region, llvm::ArrayRef<Tensor> arguments,
                        llvm::SmallVectorImpl<Tensor> &results) override;
  Result weight(mlir::FlatSymbolRefAttr symbol) override;

private:
  llvm::Error runBlock(mlir::Block &block, llvm::ArrayRef<Tensor> arguments, llvm::SmallVectorImpl<Tensor> &results);
  llvm::Error runOperation(mlir::Operation &op);
  llvm::Error checkArguments(llvm::ArrayRef<Tensor> arguments);
  llvm::Error checkArgument(unsigned index, const Tensor &argument);
  /// For each operation of a block, the values of the block that nothing after it reads.
  using LastUses = llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value, 2>>;
  const LastUses &lastUsesOf(mlir::Block &block);

  mlir::ModuleOp module;
  std::string folder;
  mlir::func::FuncOp entry;
  std::vector<std::string> inputs, outputs;
  llvm::DenseMap<mlir::Value, Tensor> values;
  llvm::DenseMap<mlir::Block *, LastUses> lastUses;
  llvm::DenseMap<mlir::Operation *, Tensor> constants;
  llvm::DenseMap<mlir::Attribute, Tensor> weights;
  llvm::StringMap<std::shared_ptr<llvm::MemoryBuffer>> files;
};

/// The name of an operation's node in the file, or of the operation.
std::string nodeName(mlir::Operation *op);

/// The value of an operation with one result whose operands are all `onnx.constant` (or absent), or none when it has
/// another form, is not implemented, fails, has side effects or subgraphs, or when the result has more than `limit`
/// elements.
std::optional<mlir::DenseElementsAttr> foldConstant(mlir::Operation *op, int64_t limit = 4096);

/// As an attribute of builtin tensor type; none for kinds that DenseElementsAttr does not hold.
std::optional<mlir::DenseElementsAttr> attributeOf(const Tensor &tensor, mlir::MLIRContext *context);

} // namespace quire::eval

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_EVALUATOR_H
