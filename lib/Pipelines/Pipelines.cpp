// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order of passes, phase by phase.
#include "lib/Pipelines/Pipelines.h"
#include "quire/Register.h"

#include "lib/Conversion/KVRTToLLVM/KVRTToLLVM.h"
#include "lib/Conversion/KVToKVRT/Passes.h"
#include "lib/Conversion/ONNXToLinalg/Passes.h"
#include "lib/Target/CPU/Passes.h"
#include "lib/Transforms/Buffers/Passes.h"
#include "lib/Transforms/KV/Passes.h"
#include "lib/Transforms/ONNX/DecomposeAttention.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace quire {

StringRef stringifyPhase(Phase phase) {
  switch (phase) {
  case Phase::Import:
    return "import";
  case Phase::Semantic:
    return "semantic";
  case Phase::Paged:
    return "paged";
  case Phase::Resource:
    return "resource";
  case Phase::Buffer:
    return "buffer";
  case Phase::Target:
    return "target";
  case Phase::Object:
    return "object";
  }
  return {};
}

std::optional<Phase> parsePhase(StringRef text) {
  for (Phase phase : {Phase::Import, Phase::Semantic, Phase::Paged, Phase::Resource, Phase::Buffer, Phase::Target, Phase::Object})
    if (text == stringifyPhase(phase))
      return phase;
  return std::nullopt;
}

static void buildSemantic(OpPassManager &pm, const PipelineOptions &options) {
  pm.addPass(createRaiseAttentionPass(options.raise, options.report));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSymbolDCEPass());
  pm.addPass(kv::createKVVerifyLinearPass());
}

static void buildPaged(OpPassManager &pm, const PipelineOptions &options) {
  kv::PaginatePassOptions paginate;
  paginate.blockTokens = options.blockTokens;
  paginate.kvType = options.kvType;
  pm.addPass(kv::createPaginatePass(paginate));
  kv::InsertPrefetchPassOptions prefetch;
  prefetch.distance = options.prefetchDistance;
  pm.addNestedPass<func::FuncOp>(kv::createInsertPrefetchPass(prefetch));
  pm.addNestedPass<func::FuncOp>(kv::createInsertObservePass());
  pm.addPass(createCSEPass());
  pm.addPass(kv::createKVVerifyLinearPass());
  pm.addPass(kv::createVerifyPagedPass());
}

void buildPipeline(OpPassManager &pm, const PipelineOptions &options) {
  auto crosses = [&](Phase phase) { return options.from < phase && phase <= options.to; };
  if (crosses(Phase::Semantic))
    buildSemantic(pm, options);
  if (crosses(Phase::Paged))
    buildPaged(pm, options);
  if (crosses(Phase::Resource))
    buildResourcePipeline(pm, std::min(options.target.lanes(), options.blockTokens), options.target.panelWidth());
  if (crosses(Phase::Buffer)) {
    buildBufferPipeline(pm, [](OpPassManager &inner) { inner.addPass(cpu::createReserveParts()); });
    pm.addPass(cpu::createAssignWeightOffsets());
  }
  if (crosses(Phase::Target)) {
    pm.addPass(createShareLayers());
    pm.addPass(createCanonicalizerPass());
    cpu::buildCpuTargetPipeline(pm, options.target, options.breakAttend);
  }
}

namespace {
struct TextOptions : PassPipelineOptions<TextOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("cpu"), llvm::cl::init("cpu")};
  Option<std::string> from{*this, "compile-from", llvm::cl::desc("the phase of the input: import, semantic or paged"), llvm::cl::init("import")};
  Option<std::string> to{*this, "compile-to", llvm::cl::desc("the phase to stop at: that of the input or a later one, import, semantic, paged, resource, buffer or target"), llvm::cl::init("target")};
  Option<int64_t> blockTokens{*this, "block-tokens", llvm::cl::desc("tokens of a block"), llvm::cl::init(16)};
  Option<std::string> kvType{*this, "kv-type", llvm::cl::desc("how K and V are stored: model, f16, bf16, int8, int4, fp8_e4m3 or fp8_e5m2"), llvm::cl::init("model")};
  Option<int64_t> prefetchDistance{*this, "prefetch-distance", llvm::cl::desc("layers that blocks are requested ahead"), llvm::cl::init(1)};
  Option<std::string> cpu{*this, "mcpu", llvm::cl::desc("CPU to compile for; host: this one"), llvm::cl::init("host")};
  ListOption<std::string> inputRoles{*this, "input-role", llvm::cl::desc("NAME=ROLE")};
};

/// Names of phases, for messages.
std::string phasesBetween(Phase first, Phase last) {
  std::string names;
  for (Phase phase = first; phase <= last; phase = Phase(int(phase) + 1))
    names += (names.empty() ? "" : "|") + stringifyPhase(phase).str();
  return names;
}

LogicalResult buildFromText(OpPassManager &pm, StringRef written, llvm::function_ref<LogicalResult(const llvm::Twine &)> fail) {
  TextOptions text;
  if (failed(text.parseFromString(written)))
    return failure();
  auto refuse = [&](const llvm::Twine &option, const llvm::Twine &expected, StringRef got) {
    return fail("quire-pipeline: expected " + option + "=" + expected + ", but got '" + got + "'");
  };
  PipelineOptions options;
  std::optional<Phase> from = parsePhase(text.from), to = parsePhase(text.to);
  if (!from || *from > Phase::Paged)
    return refuse("compile-from", phasesBetween(Phase::Import, Phase::Paged), text.from);
  if (!to || *to < *from || *to > Phase::Target)
    return refuse("compile-to", phasesBetween(*from, Phase::Target), text.to);
  if (text.target != "cpu")
    return refuse("target", "cpu", text.target);
  if (!cpu::CpuTarget::isKnown(text.cpu))
    return refuse("mcpu", "a 64-bit processor by LLVM's name", text.cpu);
  options.from = *from;
  options.to = *to;
  options.blockTokens = text.blockTokens;
  options.kvType = text.kvType;
  options.prefetchDistance = text.prefetchDistance;
  options.target = cpu::CpuTarget::named(text.cpu);
  options.raise.inputRoles.assign(text.inputRoles.begin(), text.inputRoles.end());
  buildPipeline(pm, options);
  return success();
}
} // namespace

void registerAllPasses() {
  registerRaiseAttentionPass();
  registerDecomposeAttentionPass();
  kv::registerKVVerifyLinearPass();
  kv::registerPaginatePass();
  kv::registerInsertObservePass();
  kv::registerInsertPrefetchPass();
  kv::registerVerifyPagedPass();
  registerKVToKVRTPasses();
  registerONNXToLinalgPasses();
  registerBuffersPasses();
  cpu::registerCPUTargetPasses();
  kvrt::registerKVRTToLLVMPasses();
  registerPassPipeline("quire-pipeline", "the compilation between two phases, as quirec runs it", buildFromText,
                       [](llvm::function_ref<void(const mlir::detail::PassOptions &)> show) { show(TextOptions()); });
}

} // namespace quire
