// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The original graph on one sequence alone, with contiguous caches.
#include "lib/Driver/Reference.h"

using namespace mlir;

namespace quire {

Reference::Reference(ModuleOp module, StringRef modelFolder, const RaiseReport &report)
    : evaluator(module, modelFolder), lastTokenOnly(report.lastTokenOnly) {
  auto typeOf = [&](unsigned index) { return cast<ShapedType>(evaluator.function().getArgument(index).getType()); };
  for (const StateReport &state : report.states) {
    eval::StatePlan entry;
    entry.input = state.name;
    entry.output = state.output < 0 ? std::string() : evaluator.outputNames()[state.output];
    entry.kind = eval::kindOf(typeOf(state.input).getElementType()).value_or(eval::ElementKind::F32);
    for (int64_t extent : state.shape)
      entry.initialShape.push_back(extent < 0 ? state.bufferRows : extent);
    if (state.bufferRows == 0 && state.rowAxis >= 0)
      entry.sequenceAxis = state.rowAxis;
    plan.states.push_back(std::move(entry));
  }
  for (auto [index, input] : llvm::enumerate(report.inputs)) {
    InputRole role = parseInputRole(input.role).value_or(InputRole::Unknown);
    if (role == InputRole::Unused) {
      SmallVector<int64_t> shape(typeOf(index).hasRank() ? typeOf(index).getShape() : ArrayRef<int64_t>());
      llvm::replace(shape, ShapedType::kDynamic, int64_t(1));
      if (std::optional<eval::ElementKind> kind = eval::kindOf(typeOf(index).getElementType()))
        unread[input.name] = eval::Tensor::zeros(*kind, shape);
    }
    if (role != InputRole::State)
      plan.inputs.push_back({input.name, role, false});
  }
  if (report.logitsOutput >= 0)
    plan.logits = evaluator.outputNames()[report.logitsOutput];
}

llvm::Expected<ReferenceRun> Reference::run(ArrayRef<int64_t> tokens) {
  ReferenceRun run;
  run.states = eval::initialStates(plan);
  size_t step = lastTokenOnly ? 1 : tokens.size();
  for (size_t at = 0; at < tokens.size(); at += step) {
    eval::Result logits = eval::feedForLogits(evaluator, plan, tokens.slice(at, step), int64_t(at), run.states, unread);
    if (!logits)
      return logits.takeError();
    eval::Numbers<float> rows(*logits);
    run.logits.insert(run.logits.end(), rows.all().begin(), rows.all().end());
  }
  return run;
}

std::vector<eval::Tensor> Reference::statesOf(int64_t past) const {
  std::vector<eval::Tensor> states;
  for (const eval::StatePlan &state : plan.states) {
    eval::Shape shape = state.initialShape;
    if (state.sequenceAxis)
      shape[*state.sequenceAxis] = past;
    states.push_back(eval::Tensor::zeros(state.kind, shape));
  }
  return states;
}

llvm::Expected<std::vector<float>> Reference::continueFrom(std::vector<eval::Tensor> &states, int64_t past, ArrayRef<int64_t> tokens) {
  std::vector<float> logits;
  for (size_t at = 0; at < tokens.size(); ++at) {
    eval::Result row = eval::feedForLogits(evaluator, plan, tokens.slice(at, 1), past + int64_t(at), states, unread);
    if (!row)
      return row.takeError();
    eval::Numbers<float> numbers(*row);
    logits.insert(logits.end(), numbers.all().begin(), numbers.all().end());
  }
  return logits;
}

} // namespace quire
