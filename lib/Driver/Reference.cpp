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

} // namespace quire
