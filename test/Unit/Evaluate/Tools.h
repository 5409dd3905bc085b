// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the evaluator's test tools share: importing a model and evaluating it.
#ifndef QUIRE_TEST_UNIT_EVALUATE_TOOLS_H
#define QUIRE_TEST_UNIT_EVALUATE_TOOLS_H

#include "lib/Analysis/Evaluate/Evaluator.h"
#include "mlir/IR/OwningOpRef.h"

namespace quire::eval {

/// An imported model and its interpreter, or what the importer said.
class ImportedModel {
public:
  explicit ImportedModel(mlir::MLIRContext &context) : context(context) {}
  llvm::Error load(llvm::StringRef path);
  Evaluator &evaluator() { return *interpreter; }

private:
  mlir::MLIRContext &context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Evaluator> interpreter;
};

/// A context with the dialects of an imported model and the evaluation rules.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Writes a tensor of f32, f16, i64, i32 or bool as a .npy file.
llvm::Error writeNpy(llvm::StringRef path, const Tensor &tensor);
/// Reads a C-ordered little-endian .npy file of these types.
Result readNpy(llvm::StringRef path);

} // namespace quire::eval

#endif // QUIRE_TEST_UNIT_EVALUATE_TOOLS_H
