// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Greedy decoding of one sequence alone with contiguous caches: the original model's own answer.
#ifndef QUIRE_LIB_ANALYSIS_EVALUATE_GENERATE_H
#define QUIRE_LIB_ANALYSIS_EVALUATE_GENERATE_H

#include "lib/Analysis/Element/InputRole.h"
#include "lib/Analysis/Evaluate/Evaluator.h"

namespace quire::eval {

/// What to feed an input in a call with P cached tokens and L new ones.
struct InputPlan {
  std::string name;
  InputRole role = InputRole::Unknown;
  /// AttentionMask only: as long as the rows of the first state and the new tokens, where that is less than P + L.
  bool physicalLength = false;
};

/// A value that one call gives and the next one takes.
struct StatePlan {
  std::string input, output;
  ElementKind kind = ElementKind::F32;
  /// The zeros that the first call takes: extent 0 along the sequence for growing states, else the capacity.
  Shape initialShape;
  /// The axis that grows, where one does.
  std::optional<int64_t> sequenceAxis;
};

struct GenerationPlan {
  std::vector<InputPlan> inputs; // all but the states
  std::vector<StatePlan> states;
  std::string logits;
};

struct Generated {
  std::vector<int64_t> tokens;
  /// For each new token, the logits that it was chosen from.
  std::vector<std::vector<float>> logits;
};

struct GenerateOptions {
  int64_t newTokens = 1;
  std::vector<int64_t> stop;
  /// The most prompt tokens in one call; 0 feeds the prompt at once.
  int64_t prefillChunk = 0;
  /// Values for inputs with no role (encoder outputs and the like), the same in every call.
  llvm::StringMap<Tensor> fixedInputs;
};

/// Feeds the prompt, then one token a call; each token is the first of the largest logits.
llvm::Expected<Generated> generateGreedy(Evaluator &model, const GenerationPlan &plan, llvm::ArrayRef<int64_t> prompt,
                                         const GenerateOptions &options);

/// One call: feeds `tokens` after `past` cached ones, replaces the states, and gives the logits as the model returns them.
Result feedForLogits(Evaluator &model, const GenerationPlan &plan, llvm::ArrayRef<int64_t> tokens, int64_t past,
                     std::vector<Tensor> &states, const llvm::StringMap<Tensor> &fixedInputs);

/// The same; gives the logits of the last token.
llvm::Expected<std::vector<float>> feedTokens(Evaluator &model, const GenerationPlan &plan,
                                              llvm::ArrayRef<int64_t> tokens, int64_t past, std::vector<Tensor> &states,
                                              const llvm::StringMap<Tensor> &fixedInputs);
std::vector<Tensor> initialStates(const GenerationPlan &plan);

} // namespace quire::eval

#endif // QUIRE_LIB_ANALYSIS_EVALUATE_GENERATE_H
