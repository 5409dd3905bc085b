// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rules for reductions. Sums run in f32, in ascending order, whatever the number of rows.
#include "dialects/ONNX/ONNXReduceOps.h"
#include "lib/Conversion/ONNXToLinalg/Rules.h"

using namespace mlir;

namespace quire {
namespace {

using Combine = Value (*)(OpBuilder &, Location, Value, Value);
using Finish = Value (*)(OpBuilder &, Location, Value, int64_t count);

template <typename FloatOp, typename IntOp> Value combine(OpBuilder &b, Location loc, Value accumulator, Value element) {
  if (isa<FloatType>(element.getType()))
    return FloatOp::create(b, loc, accumulator, element);
  return IntOp::create(b, loc, accumulator, element);
}

Value addSquare(OpBuilder &b, Location loc, Value accumulator, Value element) {
  return arith::AddFOp::create(b, loc, accumulator, arith::MulFOp::create(b, loc, element, element));
}

Value addMagnitude(OpBuilder &b, Location loc, Value accumulator, Value element) {
  return arith::AddFOp::create(b, loc, accumulator, math::AbsFOp::create(b, loc, element));
}

Value divideByCount(OpBuilder &b, Location loc, Value sum, int64_t count) {
  return arith::DivFOp::create(b, loc, sum, Emitter::scalar(b, loc, sum.getType(), static_cast<double>(count)));
}

Value squareRoot(OpBuilder &b, Location loc, Value sum, int64_t) { return math::SqrtOp::create(b, loc, sum); }

/// The axes that are reduced, ascending; nothing if they are not known.
std::optional<SmallVector<int64_t>> axesOf(Operation *op, Value operand, bool noopIfEmpty) {
  int64_t rank = rankedType(op->getOperand(0)).getRank();
  SmallVector<int64_t> axes;
  if (isPresent(operand)) {
    auto given = constantIntegers(operand);
    if (!given)
      return std::nullopt;
    for (int64_t axis : *given)
      axes.push_back(axis < 0 ? axis + rank : axis);
    llvm::sort(axes);
  }
  if (axes.empty() && !noopIfEmpty)
    llvm::append_range(axes, llvm::seq<int64_t>(0, rank));
  return axes;
}

/// The value that changes nothing under the reduction of a type.
double initialOf(Type element, bool isMax, bool isMin) {
  if (!isMax && !isMin)
    return 0;
  if (isa<FloatType>(element))
    return isMax ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  int64_t limit = element.getIntOrFloatBitWidth() >= 63 ? int64_t(1) << 62 : (int64_t(1) << (element.getIntOrFloatBitWidth() - 1)) - 1;
  return static_cast<double>(isMax ? -limit : limit);
}

template <typename OpTy, Combine combineFn, Finish finish = nullptr, bool floatsOnly = false>
LogicalResult convertReduction(OpTy op, RuleContext &context, MutableArrayRef<Value> results) {
  RankedTensorType source = rankedType(op->getOperand(0)), type = rankedType(op->getResult(0));
  auto axes = axesOf(op, op->getOperand(1), op.getNoopWithEmptyAxes() != 0);
  if (!axes)
    return context.refuse("the axes are no constant");
  for (int64_t axis : *axes)
    if (source.isDynamicDim(axis))
      return context.refuse("it reduces rows");
  bool isFloat = isa<FloatType>(source.getElementType());
  constexpr bool isFinished = finish != nullptr;
  if (!isFloat && (floatsOnly || isFinished))
    return context.refuse("integer elements");
  if (axes->empty()) {
    results[0] = op->getOperand(0);
    return success();
  }
  constexpr bool isMax = std::is_same_v<OpTy, onnx::ReduceMaxOp>, isMin = std::is_same_v<OpTy, onnx::ReduceMinOp>, isProduct = std::is_same_v<OpTy, onnx::ReduceProdOp>;
  Type accumulator = computeType(source.getElementType());
  double initial = isProduct ? 1 : initialOf(accumulator, isMax, isMin);
  Value value = context.reduce(op->getOperand(0), *axes, accumulator, initial, combineFn);
  int64_t count = 1;
  for (int64_t axis : *axes)
    count *= source.getDimSize(axis);
  if constexpr (isFinished)
    value = context.mapExact(value, rankedType(value), [&](OpBuilder &b, Location loc, ValueRange v) { return finish(b, loc, v[0], count); });
  value = context.convert(value, type.getElementType());
  results[0] = context.reshape(value, type);
  return results[0] ? success() : context.refuse("the result has another shape than the reduction gives");
}

} // namespace

void addReductionRules(RuleSet &rules) {
  constexpr Combine sum = combine<arith::AddFOp, arith::AddIOp>;
  rules.add<onnx::ReduceSumOp>(convertReduction<onnx::ReduceSumOp, sum>);
  rules.add<onnx::ReduceMeanOp>(convertReduction<onnx::ReduceMeanOp, sum, divideByCount>);
  rules.add<onnx::ReduceMaxOp>(convertReduction<onnx::ReduceMaxOp, combine<arith::MaximumFOp, arith::MaxSIOp>>);
  rules.add<onnx::ReduceMinOp>(convertReduction<onnx::ReduceMinOp, combine<arith::MinimumFOp, arith::MinSIOp>>);
  rules.add<onnx::ReduceProdOp>(convertReduction<onnx::ReduceProdOp, combine<arith::MulFOp, arith::MulIOp>>);
  rules.add<onnx::ReduceSumSquareOp>(convertReduction<onnx::ReduceSumSquareOp, addSquare, nullptr, true>);
  rules.add<onnx::ReduceL1Op>(convertReduction<onnx::ReduceL1Op, addMagnitude, nullptr, true>);
  rules.add<onnx::ReduceL2Op>(convertReduction<onnx::ReduceL2Op, addSquare, squareRoot>);
}

} // namespace quire
