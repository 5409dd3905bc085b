// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Raising: from the function of an exported graph to a ragged step, with an account of what was found and decided.
#ifndef QUIRE_LIB_CONVERSION_ONNXTOKV_RAISEATTENTION_H
#define QUIRE_LIB_CONVERSION_ONNXTOKV_RAISEATTENTION_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace quire {

/// What was found about one layer of attention with KV state.
struct LayerReport {
  std::string node, idiom, positions, maskKind;
  int64_t window = 0, chunk = 0; // 0: none
  bool alibi = false, sinks = false;
  double softcap = 0, scale = 1;
  int64_t heads = 0, kvHeads = 0, keyDim = 0, valueDim = 0;
  std::string keyState, valueState;
  std::string reason; // empty when the layer was raised
};

/// What was found about an input of the graph.
struct InputReport {
  std::string name, type, role; // role by the name that --input-role takes
};

/// A cached state of the graph: which argument it is, which result takes its place in the next call, and where its rows lie.
struct StateReport {
  std::string name;
  unsigned input = 0;
  int output = -1; // -1: none
  int rowAxis = -1; // counts cached rows
  int64_t bufferRows = 0; // rows of a buffer that does not grow; 0: it grows
  std::vector<int64_t> shape; // for one sequence; -1: the rows
};

struct RaiseReport {
  bool raised = false;
  std::vector<std::string> reasons; // each names a node; empty when raised
  std::vector<std::string> assumptions;
  std::vector<LayerReport> layers;
  std::vector<InputReport> inputs;
  std::vector<StateReport> states;
  int logitsOutput = -1; // result of `@main` that holds the logits
  bool lastTokenOnly = false; // its rows are those of the last token of each call
  int64_t maxPositions = -1;
  int64_t tokenLimit = -1;
};

struct RaiseOptions {
  std::vector<std::string> inputRoles; // NAME=ROLE
  std::string weightFolder;            // where the files of initializers lie; empty: masks made of large tables are not understood
  bool keepSource = false;             // leave `@main` and its entry in the module beside `@step`
};

/// Replaces `@main` of an imported module by `@step`. Fails only on malformed modules or options, with a diagnostic. A refusal is a success with
/// `report.raised == false`; the module is then unchanged.
mlir::LogicalResult raiseModel(mlir::ModuleOp module, const RaiseOptions &options, RaiseReport &report);

/// The pass, with a place for the report.
std::unique_ptr<mlir::Pass> createRaiseAttentionPass(const RaiseOptions &options, std::shared_ptr<RaiseReport> report);

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "lib/Conversion/ONNXToKV/Passes.h.inc"

} // namespace quire

#endif // QUIRE_LIB_CONVERSION_ONNXTOKV_RAISEATTENTION_H
