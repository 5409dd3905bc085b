// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How kernels are bound to operations: a function `rule(Op, Operands)` an operation, found by the type of its first
// argument.
#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_RULES_H
#define QUIRE_LIB_ANALYSIS_EVALUATE_RULES_H

#include "lib/Analysis/Evaluate/EvaluateOpInterface.h"
#include "lib/Analysis/Evaluate/Kernels.h"

namespace quire::eval {

inline llvm::Error deliver(Result value, llvm::SmallVectorImpl<Tensor> &results) {
  if (!value)
    return value.takeError();
  results.push_back(std::move(*value));
  return llvm::Error::success();
}
inline llvm::Error deliver(Results values, llvm::SmallVectorImpl<Tensor> &results) {
  if (!values)
    return values.takeError();
  results.append(values->begin(), values->end());
  return llvm::Error::success();
}

/// Binds the overload `rule(Op, Operands)` of namespace quire::onnx.
template <typename Op>
struct RuleModel : EvaluateOpInterface::ExternalModel<RuleModel<Op>, Op> {
  llvm::Error evaluate(mlir::Operation *op, Operands operands, EvaluateContext &,
                       llvm::SmallVectorImpl<Tensor> &results) const {
    return deliver(rule(llvm::cast<Op>(op), operands), results);
  }
};
template <typename Op, UnaryKind kind>
struct UnaryModel : EvaluateOpInterface::ExternalModel<UnaryModel<Op, kind>, Op> {
  llvm::Error evaluate(mlir::Operation *, Operands operands, EvaluateContext &,
                       llvm::SmallVectorImpl<Tensor> &results) const {
    return deliver(unary(kind, *operands[0]), results);
  }
};
template <typename Op, BinaryKind kind>
struct BinaryModel : EvaluateOpInterface::ExternalModel<BinaryModel<Op, kind>, Op> {
  llvm::Error evaluate(mlir::Operation *, Operands operands, EvaluateContext &,
                       llvm::SmallVectorImpl<Tensor> &results) const {
    return deliver(binary(kind, *operands[0], *operands[1]), results);
  }
};

template <typename... Ops>
void attachRules(mlir::MLIRContext &context) {
  (Ops::template attachInterface<RuleModel<Ops>>(context), ...);
}
template <UnaryKind kind, typename Op>
void attachUnary(mlir::MLIRContext &context) {
  Op::template attachInterface<UnaryModel<Op, kind>>(context);
}
template <BinaryKind kind, typename Op>
void attachBinary(mlir::MLIRContext &context) {
  Op::template attachInterface<BinaryModel<Op, kind>>(context);
}

/// The element kind of a type attribute.
inline llvm::Expected<ElementKind> kindOrError(mlir::Type type) {
  if (std::optional<ElementKind> kind = kindOf(type))
    return *kind;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return fail("not implemented: elements of type " + text);
}
inline std::optional<Ints> optionalInts(Operand operand, llvm::SmallVector<int64_t, 8> &storage) {
  if (!operand)
    return std::nullopt;
  storage = integersOf(*operand);
  return Ints(storage);
}
/// A list attribute as a small vector, empty when it is absent.
inline llvm::SmallVector<int64_t, 3> listOf(std::optional<Ints> values) {
  return values ? llvm::SmallVector<int64_t, 3>(values->begin(), values->end()) : llvm::SmallVector<int64_t, 3>();
}
template <typename T>
std::optional<double> asDouble(std::optional<T> value) {
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}
inline std::optional<double> asDouble(std::optional<llvm::APFloat> value) {
  return value ? std::optional<double>(value->convertToDouble()) : std::nullopt;
}

/// A constant attribute as a tensor.
Result tensorOf(mlir::ElementsAttr attribute);

void attachMathRules(mlir::MLIRContext &context);
void attachLogicRules(mlir::MLIRContext &context);
void attachReduceRules(mlir::MLIRContext &context);
void attachShapeRules(mlir::MLIRContext &context);
void attachNormRules(mlir::MLIRContext &context);
void attachAttentionRules(mlir::MLIRContext &context);
void attachQuantRules(mlir::MLIRContext &context);
void attachControlRules(mlir::MLIRContext &context);

} // namespace quire::eval

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_RULES_H
