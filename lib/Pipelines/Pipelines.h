// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The phases of a compilation and the pipelines between them. Only this room orders passes.
#ifndef QUIRE_LIB_PIPELINES_PIPELINES_H
#define QUIRE_LIB_PIPELINES_PIPELINES_H

#include "lib/Conversion/ONNXToKV/RaiseAttention.h"
#include "lib/Target/CPU/CpuTarget.h"

#include "mlir/Pass/PassManager.h"

namespace quire {

/// Where a compilation stops, and where it may resume (import, semantic, paged).
enum class Phase {
  Import,   // `onnx` as exported
  Semantic, // `kv`, contiguous states
  Paged,    // `kv`, paged states, prefetch
  Resource, // `kvrt`, `linalg`, tensors
  Buffer,   // memrefs, arena
  Target,   // LLVM dialect
  Object    // object code, linked
};

llvm::StringRef stringifyPhase(Phase phase);
std::optional<Phase> parsePhase(llvm::StringRef text);

struct PipelineOptions {
  Phase from = Phase::Import, to = Phase::Target;
  int64_t blockTokens = 16;
  std::string kvType = "model"; // how K and V are stored, see paginate
  int64_t prefetchDistance = 1;
  cpu::CpuTarget target;
  std::string breakAttend; // an error in the generated code, for tests of certificates
  RaiseOptions raise;
  std::shared_ptr<RaiseReport> report; // may be null
};

/// Appends the passes that lead from `options.from` to `options.to`; Object adds nothing to Target.
void buildPipeline(mlir::OpPassManager &pm, const PipelineOptions &options);

} // namespace quire

#endif // QUIRE_LIB_PIPELINES_PIPELINES_H
