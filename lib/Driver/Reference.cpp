// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The original graph on one sequence alone, with contiguous caches.
#include "lib/Driver/Reference.h"

#include "lib/Analysis/Element/InputRole.h"

using namespace mlir;

namespace quire {

/// 64-bit integers as the integer or float kind that an input wants.
static eval::Tensor integers(eval::ElementKind kind, ArrayRef<int64_t> shape, std::vector<int64_t> values) {
  if (eval::isFloat(kind))
    return eval::storeAs<float>(kind, shape, std::vector<float>(values.begin(), values.end()));
  return eval::storeAs<int64_t>(kind, shape, std::move(values));
}

static std::vector<int64_t> ascending(int64_t from, int64_t count) {
  std::vector<int64_t> values(count);
  for (int64_t i = 0; i < count; ++i)
    values[i] = from + i;
  return values;
}

void Reference::startStates(ReferenceRun &run) {
  for (const StateReport &state : report.states) {
    auto type = cast<ShapedType>(evaluator.function().getArgument(state.input).getType());
    SmallVector<int64_t> shape;
    for (int64_t extent : state.shape)
      shape.push_back(extent < 0 ? state.bufferRows : extent);
    run.states.push_back(eval::Tensor::zeros(*eval::kindOf(type.getElementType()), shape));
  }
}

llvm::Expected<eval::Tensor> Reference::inputFor(unsigned index, ArrayRef<int64_t> tokens, int64_t past) {
  auto type = cast<ShapedType>(evaluator.function().getArgument(index).getType());
  std::optional<eval::ElementKind> kind = eval::kindOf(type.getElementType());
  if (!kind)
    return eval::fail("not implemented: an input of this element type");
  int64_t count = tokens.size(), rank = type.hasRank() ? type.getRank() : 2;
  auto shaped = [&](int64_t extent) { return rank == 1 ? SmallVector<int64_t>{extent} : SmallVector<int64_t>{1, extent}; };
  SmallVector<int64_t> one(rank, 1);
  switch (parseInputRole(report.inputs[index].role).value_or(InputRole::Unknown)) {
  case InputRole::InputIds:
    return integers(*kind, shaped(count), tokens.vec());
  case InputRole::PositionIds:
  case InputRole::CachePosition:
    return integers(*kind, shaped(count), ascending(past, count));
  case InputRole::AttentionMask:
    return integers(*kind, shaped(past + count), std::vector<int64_t>(past + count, 1));
  case InputRole::PastLengths:
  case InputRole::PastLength:
    return integers(*kind, one, {past});
  case InputRole::TotalLengths:
    return integers(*kind, one, {past + count});
  case InputRole::UseCacheBranch:
    return integers(*kind, one, {1});
  case InputRole::Unused: {
    SmallVector<int64_t> shape(type.hasRank() ? type.getShape() : ArrayRef<int64_t>(one));
    for (int64_t &extent : shape)
      extent = ShapedType::isDynamic(extent) ? 1 : extent;
    return eval::Tensor::zeros(*kind, shape);
  }
  default:
    return eval::fail("not implemented: an input of role " + report.inputs[index].role);
  }
}

llvm::Error Reference::call(ArrayRef<int64_t> tokens, int64_t past, ReferenceRun &run) {
  std::vector<eval::Tensor> arguments(report.inputs.size());
  for (auto [state, value] : llvm::zip_equal(report.states, run.states))
    arguments[state.input] = value;
  for (unsigned index = 0; index < arguments.size(); ++index) {
    if (arguments[index])
      continue;
    llvm::Expected<eval::Tensor> argument = inputFor(index, tokens, past);
    if (!argument)
      return argument.takeError();
    arguments[index] = std::move(*argument);
  }
  llvm::Expected<eval::Tensors> results = evaluator.run(arguments);
  if (!results)
    return results.takeError();
  for (auto [state, value] : llvm::zip_equal(report.states, run.states))
    if (state.output >= 0)
      value = (*results)[state.output];
  eval::Numbers<float> logits((*results)[report.logitsOutput]);
  run.logits.insert(run.logits.end(), logits.all().begin(), logits.all().end());
  return llvm::Error::success();
}

llvm::Expected<ReferenceRun> Reference::run(ArrayRef<int64_t> tokens) {
  ReferenceRun run;
  startStates(run);
  if (!report.lastTokenOnly) {
    if (llvm::Error error = call(tokens, 0, run))
      return std::move(error);
    return run;
  }
  for (int64_t at = 0; at < int64_t(tokens.size()); ++at)
    if (llvm::Error error = call(tokens.slice(at, 1), at, run))
      return std::move(error);
  return run;
}

} // namespace quire
