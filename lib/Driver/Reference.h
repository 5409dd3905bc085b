// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The original graph on one sequence alone, with contiguous caches: what a certificate compares with.
#ifndef QUIRE_LIB_DRIVER_REFERENCE_H
#define QUIRE_LIB_DRIVER_REFERENCE_H

#include "lib/Analysis/Evaluate/Generate.h"
#include "lib/Conversion/ONNXToKV/RaiseAttention.h"

namespace quire {

/// What the graph gives for a sequence.
struct ReferenceRun {
  std::vector<float> logits;        // [tokens][vocabulary]
  std::vector<eval::Tensor> states; // after the last token, as in RaiseReport::states
};

class Reference {
public:
  /// `module` holds the imported graph; `report` says what its inputs are for.
  Reference(mlir::ModuleOp module, llvm::StringRef modelFolder, const RaiseReport &report);

  /// All tokens in one call on empty caches; a graph that gives the last row only is called token by token.
  llvm::Expected<ReferenceRun> run(llvm::ArrayRef<int64_t> tokens);

  /// States of zeros for `past` tokens, as in RaiseReport::states.
  std::vector<eval::Tensor> statesOf(int64_t past) const;

  /// The logits of `tokens`, fed one by one after `past` cached ones; replaces the states.
  llvm::Expected<std::vector<float>> continueFrom(std::vector<eval::Tensor> &states, int64_t past, llvm::ArrayRef<int64_t> tokens);

private:
  eval::Evaluator evaluator;
  eval::GenerationPlan plan;
  llvm::StringMap<eval::Tensor> unread; // inputs that nothing reads
  bool lastTokenOnly;
};

} // namespace quire

#endif // QUIRE_LIB_DRIVER_REFERENCE_H
