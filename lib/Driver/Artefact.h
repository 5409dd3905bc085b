// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model folder: code, weights, report, manifest.
#ifndef QUIRE_LIB_DRIVER_ARTEFACT_H
#define QUIRE_LIB_DRIVER_ARTEFACT_H

#include "lib/Target/CPU/CpuTarget.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace quire {

struct Report;

/// What `kvrt.model` says, kept before the module is lowered to LLVM.
struct ModelFacts {
  int64_t vocabulary = 0, tokenLimit = 0, maxPositions = -1, blockTokens = 0, blockBytes = 0;
  int64_t scratchFixed = 0, scratchPerToken = 0, scratchPerSelected = 0;
  struct Layer {
    int64_t heads, key, value, lanes, valueOffset, blockBytes, queryHeads, window, placeIsPosition;
    std::string element;
  };
  std::vector<Layer> layers;
};

/// Reads the facts from a module that has `kvrt.model`.
std::optional<ModelFacts> modelFacts(mlir::ModuleOp module);

/// A feature that the code for `target` may use and this processor lacks; empty if there is none.
std::string missingFeature(const cpu::CpuTarget &target);

/// Writes `manifest.json` into a folder that already holds model.so, weights.bin and report.json.
bool writeManifest(llvm::StringRef folder, const ModelFacts &facts, const cpu::CpuTarget &target, std::string &error);

} // namespace quire

#endif // QUIRE_LIB_DRIVER_ARTEFACT_H
