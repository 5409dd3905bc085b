// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Feeding a model by the roles of its inputs.
#include "Generate.h"
#include "Kernels.h"
#include <limits>

using namespace mlir;

namespace quire::eval {

namespace {
/// One call: P cached tokens, the tokens of the call, and what is known of the input that is made.
struct Call {
  ArrayRef<int64_t> tokens;
  int64_t past = 0;
  int64_t physicalPast = 0; // rows of the first growing state

  int64_t length() const { return static_cast<int64_t>(tokens.size()); }
  int64_t total() const { return past + length(); }
};
} // namespace

/// 0 where key j is visible to token i, else the lowest number.
static Tensor causalBias(const Call &call, ElementKind kind) {
  std::vector<float> values(static_cast<size_t>(call.length() * call.total()), 0.0f);
  for (int64_t i = 0; i < call.length(); ++i)
    for (int64_t j = call.past + i + 1; j < call.total(); ++j)
      values[i * call.total() + j] = std::numeric_limits<float>::lowest();
  return storeAs(kind, {1, 1, call.length(), call.total()}, std::move(values));
}

static Result inputValue(const InputPlan &input, const Call &call, RankedTensorType type) {
  std::optional<ElementKind> kind = kindOf(type.getElementType());
  if (!kind)
    return fail("input '" + input.name + "': not implemented: its element type");
  auto counting = [&](int64_t from, int64_t count) {
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      values[i] = from + i;
    return values;
  };
  auto shaped = [&](std::vector<int64_t> values, Shape shape) { return storeAs(*kind, shape, std::move(values)); };
  int64_t length = call.length();
  switch (input.role) {
  case InputRole::InputIds:
    return shaped(call.tokens.vec(), {1, length});
  case InputRole::PositionIds:
    return shaped(counting(call.past, length), {1, length});
  case InputRole::CachePosition:
    return shaped(counting(call.past, length), {length});
  case InputRole::AttentionMask: {
    int64_t keys = input.physicalLength ? call.physicalPast + length : call.total();
    // A mask of fixed length covers a static buffer: ones for what exists.
    int64_t columns =
        type.hasStaticShape() || (type.getRank() == 2 && !type.isDynamicDim(1)) ? type.getDimSize(1) : keys;
    std::vector<int64_t> ones(static_cast<size_t>(columns), 0);
    std::fill_n(ones.begin(), std::min(keys, columns), 1);
    return shaped(std::move(ones), {1, columns});
  }
  case InputRole::PastLengths:
    return shaped({call.past}, {1});
  case InputRole::TotalLengths:
    return shaped({call.total()}, {1});
  case InputRole::LastPositions:
    return shaped({call.total() - 1}, Shape(static_cast<size_t>(type.getRank()), 1));
  case InputRole::TotalLength:
    return shaped({call.total()}, Shape(static_cast<size_t>(type.getRank()), 1));
  case InputRole::PastLength:
    return shaped({call.past}, type.getRank() == 0 ? Shape() : Shape({1}));
  case InputRole::UseCacheBranch:
    return shaped({call.past > 0 ? 1 : 0}, Shape(static_cast<size_t>(type.getRank()), 1));
  case InputRole::CallerMask:
    return causalBias(call, *kind);
  default:
    return fail("input '" + input.name + "': expected a role that says what to feed, or a fixed value");
  }
}

std::vector<Tensor> initialStates(const GenerationPlan &plan) {
  std::vector<Tensor> states;
  for (const StatePlan &state : plan.states)
    states.push_back(Tensor::zeros(state.kind, state.initialShape));
  return states;
}

Result feedForLogits(Evaluator &model, const GenerationPlan &plan, ArrayRef<int64_t> tokens, int64_t past,
                     std::vector<Tensor> &states, const llvm::StringMap<Tensor> &fixedInputs) {
  Call call{tokens, past};
  for (auto [state, tensor] : llvm::zip_equal(plan.states, states))
    if (state.sequenceAxis) {
      call.physicalPast = tensor.shape()[*state.sequenceAxis];
      break;
    }
  llvm::StringMap<Tensor> values(fixedInputs);
  for (const InputPlan &input : plan.inputs) {
    if (values.contains(input.name))
      continue;
    auto found = llvm::find(model.inputNames(), input.name);
    if (found == model.inputNames().end())
      return fail("expected an input '" + input.name + "'");
    auto type = dyn_cast<RankedTensorType>(model.function().getArgumentTypes()[found - model.inputNames().begin()]);
    if (!type)
      return fail("input '" + input.name + "': expected a ranked tensor");
    Result value = inputValue(input, call, type);
    if (!value)
      return value.takeError();
    values[input.name] = *value;
  }
  for (auto [state, tensor] : llvm::zip_equal(plan.states, states))
    values[state.input] = tensor;
  auto results = model.run(values);
  if (!results)
    return results.takeError();
  for (auto [state, tensor] : llvm::zip_equal(plan.states, states)) {
    auto next = results->find(state.output);
    if (next == results->end())
      return fail("expected an output '" + state.output + "'");
    tensor = next->second;
  }
  auto logits = results->find(plan.logits);
  if (logits == results->end() || logits->second.rank() < 1 || logits->second.count() == 0)
    return fail("expected logits in output '" + plan.logits + "'");
  return logits->second;
}

llvm::Expected<std::vector<float>> feedTokens(Evaluator &model, const GenerationPlan &plan, ArrayRef<int64_t> tokens,
                                              int64_t past, std::vector<Tensor> &states,
                                              const llvm::StringMap<Tensor> &fixedInputs) {
  Result logits = feedForLogits(model, plan, tokens, past, states, fixedInputs);
  if (!logits)
    return logits.takeError();
  Numbers<float> all(*logits);
  auto last = all.all().take_back(logits->extent(-1));
  return std::vector<float>(last.begin(), last.end());
}

llvm::Expected<Generated> generateGreedy(Evaluator &model, const GenerationPlan &plan, ArrayRef<int64_t> prompt,
                                         const GenerateOptions &options) {
  if (prompt.empty())
    return fail("expected a prompt of at least one token");
  Generated out;
  std::vector<Tensor> states = initialStates(plan);
  std::vector<int64_t> fresh(prompt.begin(), prompt.end());
  int64_t past = 0;
  while (static_cast<int64_t>(out.tokens.size()) < options.newTokens) {
    std::vector<float> logits;
    size_t chunk = options.prefillChunk > 0 ? static_cast<size_t>(options.prefillChunk) : fresh.size();
    for (size_t from = 0; from < fresh.size(); from += chunk) {
      ArrayRef<int64_t> part = ArrayRef<int64_t>(fresh).slice(from, std::min(chunk, fresh.size() - from));
      auto fed = feedTokens(model, plan, part, past, states, options.fixedInputs);
      if (!fed)
        return fed.takeError();
      logits = std::move(*fed);
      past += static_cast<int64_t>(part.size());
    }
    auto token = static_cast<int64_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
    out.tokens.push_back(token);
    out.logits.push_back(std::move(logits));
    if (llvm::is_contained(options.stop, token))
      break;
    fresh.assign(1, token);
  }
  return out;
}

} // namespace quire::eval
